"""Checks on arguments: the only module of the package that raises on what a caller passes."""

from __future__ import annotations

import numbers

import numpy as np
from numpy.typing import ArrayLike, NDArray

LAYOUTS = ("interleaved", "half")


def real_array(value: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return ``value`` as float64 after checking that it holds finite real numbers."""
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must be a rectangular array of real numbers") from None
    if array.dtype.kind == "O" and all(_is_real(item) for item in array.flat):
        array = array.astype(np.float64)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}")
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got nan or infinity")
    return array


def tensor(value: ArrayLike, name: str, *, min_ndim: int = 0) -> NDArray[np.floating]:
    """Return ``value`` as a floating array: floats keep their dtype, integers become float64."""
    array = np.asarray(value)
    if array.dtype.kind in "iu":
        array = array.astype(np.float64)
    if array.dtype.kind != "f":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}")
    if array.ndim < min_ndim:
        raise ValueError(f"{name} must have at least {min_ndim} axes, got shape {array.shape}")
    return array


def integer(value: int, name: str, *, minimum: int) -> int:
    """Return ``value`` as an int of at least ``minimum``; bool is refused."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}")
    return int(value)


def integers(value: ArrayLike, name: str) -> NDArray[np.int64]:
    """Return ``value`` as int64; floats are refused even where they are whole."""
    array = np.asarray(value)
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold integers, got dtype {array.dtype}")
    return array.astype(np.int64)


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
    number = float(value)
    if not np.isfinite(number):
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
    if value not in LAYOUTS:
        raise ValueError(f"layout must be one of {', '.join(LAYOUTS)}; got {value!r}")
    return value


def floating_dtype(value: object, name: str = "dtype") -> np.dtype:
    """Return ``value`` as a real floating dtype."""
    dtype = np.dtype(value)
    if dtype.kind != "f":
        raise TypeError(f"{name} must be a real floating type, got {dtype}")
    return dtype


def permutation(value: ArrayLike, size: int) -> NDArray[np.int64]:
    """Return ``value`` as an index array that holds each of ``0..size-1`` once."""
    array = integers(value, "permutation")
    if array.shape != (size,) or not np.array_equal(np.sort(array), np.arange(size)):
        raise ValueError(
            f"permutation must hold each of 0..{size - 1} once, got {np.asarray(value).tolist()}"
        )
    return array


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


def non_empty(array: NDArray, name: str) -> NDArray:
    """Return ``array`` if it holds at least one number."""
    if array.size == 0:
        raise ValueError(f"{name} must hold at least one number, got an empty array")
    return array


def rows(positions: NDArray[np.int64], length: int, what: str) -> None:
    """Raise ``IndexError`` where a position lies outside a table of ``length`` rows."""
    if positions.size and (positions.min() < 0 or positions.max() >= length):
        outside = positions[(positions < 0) | (positions >= length)].flat[0]
        raise IndexError(f"{what} has rows 0..{length - 1}, got position {outside}")


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


def _is_real(value: object) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 0 and value.dtype.kind in "iuf"
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
