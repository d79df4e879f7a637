"""Checks on arguments: the only module of the package that raises on what a caller passes."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

LAYOUTS = ("interleaved", "half")


def real_array(value: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return ``value`` as float64 after checking that it holds finite real numbers."""
    array = _numbers(value, name).astype(np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got nan or infinity")
    return array


def tensor(
    value: ArrayLike, name: str, *, min_ndim: int = 0, ndim: int | None = None
) -> NDArray[np.floating]:
    """Return ``value`` as a floating array: floats keep their dtype, integers become float64."""
    array = _numbers(value, name)
    if array.dtype.kind != "f":
        array = array.astype(np.float64)
    if ndim is not None and array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} axes, got shape {array.shape}")
    if array.ndim < min_ndim:
        raise ValueError(f"{name} must have at least {min_ndim} axes, got shape {array.shape}")
    return array


def integer(value: int, name: str, *, minimum: int, maximum: int | None = None) -> int:
    """Return ``value`` as an int of at least ``minimum``; bool is refused."""
    if not _is_integer(value):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}")
    if maximum is not None and value > maximum:
        raise ValueError(f"{name} must be at most {maximum}, got {value}")
    return int(value)


def integers(value: ArrayLike, name: str) -> NDArray:
    """Return ``value`` as an array of integers; floats are refused even where they are whole."""
    array = _rectangular(value, name)
    if array.size == 0:
        return array.astype(np.int64)
    if not _holds_integers(array):
        raise TypeError(f"{name} must hold integers, got dtype {array.dtype}")
    return array


def even_size(value: int, name: str = "d_model") -> int:
    """Return ``value`` as a positive even int: dimensions come in (sine, cosine) pairs."""
    size = integer(value, name, minimum=1)
    if size % 2:
        raise ValueError(
            f"{name} must be even, because dimensions come in (sine, cosine) pairs; got {size}"
        )
    return size


def scalar(value: float, name: str) -> float:
    """Return ``value`` as a finite float; bool, strings and arrays are refused."""
    if not _is_real(value):
        raise TypeError(f"{name} must be a real number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = np.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {number}")
    return number


def positive(value: float, name: str) -> float:
    """Return ``value`` as a finite float above zero."""
    number = scalar(value, name)
    if number <= 0:
        raise ValueError(f"{name} must be positive, got {number}")
    return number


def layout_name(value: str) -> str:
    """Return ``value`` if it names a known layout."""
    return choice(value, LAYOUTS, "layout")


def floating_dtype(value: object, name: str = "dtype") -> np.dtype:
    """Return ``value`` as a real floating dtype."""
    try:
        dtype = np.dtype(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a real floating type, got {value!r}") from None
    if dtype.kind != "f":
        raise TypeError(f"{name} must be a real floating type, got {dtype}")
    return dtype


def number_format(value: object, known: tuple[str, ...], name: str = "dtype") -> str:
    """Return the name of a number format, given as a dtype or by name, if it is a known one."""
    return choice(
        np.dtype(value).name if isinstance(value, type | np.dtype) else value, known, name
    )


def output(array: NDArray, shape: tuple[int, ...], name: str = "out") -> NDArray[np.floating]:
    """Return ``array`` if a floating result of ``shape`` can be written into it."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name} must be an array, got {type(array).__name__}")
    same_shape(array.shape, shape, name)
    floating_dtype(array.dtype, f"{name}.dtype")
    if not array.flags.writeable:
        raise ValueError(f"{name} must be writeable, got a read-only array")
    return array


def axis(value: int, ndim: int) -> int:
    """Return ``value`` if it is an axis of an array; a single number has axis -1 or 0 too."""
    ndim = max(ndim, 1)
    return integer(value, "axis", minimum=-ndim, maximum=ndim - 1)


def permutation(value: ArrayLike, size: int) -> NDArray[np.int64]:
    """Return ``value`` as an index array that holds each of ``0..size-1`` once."""
    array = integers(value, "permutation")
    if array.shape != (size,) or not np.array_equal(np.sort(array), np.arange(size)):
        raise ValueError(f"permutation must hold each of 0..{size - 1} once, got {array.tolist()}")
    return array.astype(np.int64)


def same_axis(found: int, expected: int, what: str) -> None:
    """Raise unless ``found`` equals ``expected``; ``what`` says whose axis it is."""
    if found != expected:
        raise ValueError(f"{what}: expected {expected}, got {found}")


def same_shape(found: tuple[int, ...], expected: tuple[int, ...], name: str) -> None:
    """Raise unless two shapes are equal."""
    if tuple(found) != tuple(expected):
        raise ValueError(f"{name} must have shape {expected}, got {found}")


def broadcasts(found: tuple[int, ...], expected: tuple[int, ...], name: str) -> None:
    """Raise unless shape ``found`` broadcasts to ``expected``."""
    try:
        fits = np.broadcast_shapes(found, expected) == tuple(expected)
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"{name} of shape {found} do not broadcast to {expected}")


def leading_axes(first: tuple[int, ...], second: tuple[int, ...], names: str) -> None:
    """Raise unless the axes before the last two broadcast."""
    try:
        np.broadcast_shapes(first[:-2], second[:-2])
    except ValueError:
        raise ValueError(
            f"leading axes of {names} do not broadcast: got shapes {first} and {second}"
        ) from None


def non_empty(array: NDArray, name: str) -> NDArray:
    """Return ``array`` if it holds at least one number."""
    if array.size == 0:
        raise ValueError(f"{name} must hold at least one number, got an empty array")
    return array


def vector(value: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return ``value`` as float64 with exactly one axis and at least one number."""
    array = non_empty(real_array(value, name), name)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one axis, got shape {array.shape}")
    return array


def matrix(value: ArrayLike, name: str, *, square: bool = False) -> NDArray[np.float64]:
    """Return ``value`` as float64 with exactly two axes, of one length if ``square``."""
    array = non_empty(real_array(value, name), name)
    if array.ndim != 2 or (square and array.shape[0] != array.shape[1]):
        expected = "be square" if square else "have two axes"
        raise ValueError(f"{name} must {expected}, got shape {array.shape}")
    return array


def pair_indices(value: ArrayLike, count: int, name: str = "pairs") -> NDArray[np.int64]:
    """Return ``value`` as the indices of some of ``count`` pairs of dimensions, or of others."""
    array = non_empty(integers(value, name), name)
    if array.ndim != 1 or array.min() < 0 or array.max() >= count:
        raise ValueError(f"{name} must be a list from 0..{count - 1}, got {array.tolist()}")
    return array.astype(np.int64)


def rows(positions: NDArray, length: int, what: str) -> NDArray[np.int64]:
    """Return integer ``positions`` as int64 if each is a row of a table of ``length`` rows."""
    if positions.size and (positions.min() < 0 or positions.max() >= length):
        outside = positions[(positions < 0) | (positions >= length)].flat[0]
        raise IndexError(f"{what} has rows 0..{length - 1}, got position {outside}")
    return positions.astype(np.int64)


def aligned_positions(
    positions: ArrayLike, shape: tuple[int, ...], name: str = "positions"
) -> NDArray[np.float64]:
    """Return positions that are 1-D, or have one axis for each of ``shape`` but the last.

    Broadcasting alone would accept (batch, seq) against (batch, heads, seq, d) whenever
    batch equals heads, and rotate by head.
    """
    array = real_array(positions, name)
    length = shape[-2]
    expected = shape[:-1]
    if array.ndim not in (1, len(expected)):
        raise ValueError(
            f"{name} must be 1-D of length {length} or have {len(expected)} axes to match an input "
            f"of shape {shape}, got shape {array.shape}; "
            "for (batch, heads, seq, d) pass positions as (batch, 1, seq)"
        )
    pairs = zip(array.shape[-2::-1], expected[-2::-1], strict=False)
    fits = all(have in (1, want) for have, want in pairs)
    if array.shape[-1] != length or not fits:
        raise ValueError(
            f"{name} of shape {array.shape} do not fit an input of shape {shape}: "
            f"expected ({length},) or something that broadcasts to {expected}"
        )
    return array


def choice(value: object, known: tuple[str, ...], name: str) -> str:
    """Return ``value`` if it is one of the ``known`` names."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}; got {value!r}")
    return value


def flag(value: object, name: str) -> bool:
    """Return ``value`` if it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def function(value: object, name: str) -> Callable:
    """Return ``value`` if it can be called."""
    if not callable(value):
        raise TypeError(f"{name} must be a function, got {value!r}")
    return value


def generator(value: object, name: str = "rng") -> np.random.Generator:
    """Return ``value`` if it is a random generator, or a new one whose seed it is."""
    if isinstance(value, np.random.Generator):
        return value
    if not _is_integer(value):
        raise TypeError(f"{name} must be a numpy.random.Generator or an integer, got {value!r}")
    return np.random.default_rng(integer(value, name, minimum=0))


def at_least(value: float, minimum: float, name: str) -> float:
    """Return ``value`` as a finite float of at least ``minimum``."""
    number = scalar(value, name)
    if number < minimum:
        raise ValueError(f"{name} must be at least {minimum:g}, got {number}")
    return number


def above(value: float, bound: float, name: str, reason: str) -> float:
    """Return ``value`` as a finite float greater than ``bound``; ``reason`` says why it must be."""
    number = scalar(value, name)
    if number <= bound:
        raise ValueError(f"{name} must be greater than {bound:g}, {reason}; got {number}")
    return number


def exact(value: ArrayLike, name: str) -> NDArray:
    """Return integers as int64, or as Python's own where they are huge; other reals as float64."""
    array = _rectangular(value, name)
    return int64_where_it_fits(array) if _holds_integers(array) else real_array(array, name)


def int64_where_it_fits(array: NDArray) -> NDArray:
    """Return integers as int64 if sums and differences of two stay below 2**63, else as objects."""
    fits = array.size == 0 or (array.min() >= -(2**62) and array.max() < 2**62)
    return array.astype(np.int64 if fits else object)


def options(method: str, values: dict, needed: dict, owners: dict) -> None:
    """Raise if ``method`` lacks an option that it needs, or was given one of another method.

    ``needed`` maps methods to names; ``owners`` maps names to their method and default.
    """
    for name in needed[method]:
        if values[name] is None:
            raise TypeError(f"method {method!r} needs {name}")
    for name, (owner, default) in owners.items():
        if owner != method and not np.array_equal(values[name], default):
            raise ValueError(f"{name} belongs to method {owner!r}, got it with {method!r}")


def at_least_one_axis(array: NDArray, name: str) -> NDArray:
    """Return ``array`` unless it is a single number."""
    if array.ndim == 0:
        raise ValueError(f"{name} must have at least one axis, got a single number")
    return array


def multiple(value: int, of: int, name: str, reason: str) -> int:
    """Return ``value`` if it is a multiple of ``of``; ``reason`` says why it must be."""
    if value % of:
        raise ValueError(f"{name} must be a multiple of {of}, {reason}; got {value}")
    return value


def positive_vector(value: ArrayLike, length: int, name: str) -> NDArray[np.float64]:
    """Return ``value`` as ``length`` positive finite numbers."""
    array = real_array(value, name)
    same_shape(array.shape, (length,), name)
    if (array <= 0).any():
        raise ValueError(f"{name} must be positive, got {array.min()}")
    return array


def rotary_size(value: int | None, size: int) -> int:
    """Return how many of ``size`` dimensions are rotated: all for None, else an even part."""
    if value is None:
        return even_size(size, "the last axis of x")
    value = even_size(value, "rotary_dim")
    if value > size:
        raise ValueError(f"rotary_dim must be at most the {size} dimensions there are, got {value}")
    return value


def pair_frequencies(value: ArrayLike, size: int) -> NDArray[np.float64]:
    """Return ``value`` as one finite float64 frequency for each pair of ``size`` dimensions."""
    array = real_array(value, "frequencies")
    same_shape(array.shape, (size // 2,), "frequencies")
    return array


def rotated_output(array: NDArray, x: NDArray) -> NDArray[np.floating]:
    """Return ``array`` if it can take what ``x`` becomes: ``x`` itself, or memory apart from it."""
    array = output(array, x.shape)
    if array is not x and np.shares_memory(array, x):
        first, second = array.__array_interface__, x.__array_interface__
        if any(first[key] != second[key] for key in ("data", "strides", "typestr")):
            raise ValueError("out must be x itself or share no memory with it, got a part of x")
    return array


def tuples(value: Iterable, size: int, name: str, holds: str) -> list[tuple]:
    """Return ``value`` as a list of one or more tuples of ``size`` items; ``holds`` names them."""
    try:
        found = [tuple(item) for item in value]
    except TypeError:
        raise TypeError(f"{name} must be a sequence of tuples of {holds}, got {value!r}") from None
    if not found:
        raise ValueError(f"{name} must hold at least one tuple of {holds}, got none")
    for item in found:
        same_axis(len(item), size, f"each of {name} must hold {holds}")
    return found


def short_column_and_row(
    column: ArrayLike, row: ArrayLike, most: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return an (n, 1) array and an (m,) array, neither of more than ``most`` numbers."""
    column, row = matrix(column, "column"), vector(row, "row")
    if column.shape[1] != 1 or len(column) > most:
        raise ValueError(
            f"column must have shape (n, 1) with n from 1 to {most}, got {column.shape}"
        )
    if len(row) > most:
        raise ValueError(f"row must have shape (m,) with m from 1 to {most}, got {row.shape}")
    return column, row


def boxes_and_arrows(
    boxes: Mapping[str, tuple[float, float]], arrows: Sequence[tuple[str, str, str]]
) -> None:
    """Raise unless there is a box, and every arrow goes from one to another."""
    if not boxes:
        raise ValueError("boxes must hold at least one box, got none")
    for name in (name for arrow in arrows for name in arrow[:2]):
        if name not in boxes:
            raise ValueError(f"an arrow names the box {name!r}, but there is {list(boxes)}")


def _rectangular(value: ArrayLike, name: str) -> NDArray:
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must be a rectangular array of numbers") from None
    # NumPy rounds a list of integers to floats where some are below 2**63 and some are not.
    if array.dtype == np.float64 and not hasattr(value, "dtype") and (abs(array) >= 2**63).any():
        objects = np.asarray(value, dtype=object)
        array = objects if all(_is_integer(item) for item in objects.flat) else array
    return array


def _numbers(value: ArrayLike, name: str) -> NDArray:
    array = _rectangular(value, name)
    if array.dtype.kind == "O" and all(_is_real(item) for item in array.flat):
        try:
            array = array.astype(np.float64)
        except OverflowError:
            raise ValueError(f"{name} must be finite, got an integer beyond float64") from None
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}")
    return array


def _holds_integers(array: NDArray) -> bool:
    """Say whether an array holds integers, also Python's own where they are huge."""
    if array.dtype.kind == "O":
        return all(_is_integer(item) for item in array.flat)
    return array.dtype.kind in "iu"


def _is_integer(value: object) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_)


def _is_real(value: object) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 0 and value.dtype.kind in "iuf"
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
