"""The sinusoidal encoding: frequencies, wavelengths, tables, and adding them (chapter 2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from posenc import _validate as validate


def inverse_frequencies(d_model: int, *, base: float = 10_000.0) -> NDArray[np.float64]:
    """Return how far each pair of dimensions turns from one position to the next.

    Pair ``i`` turns by ``base ** (-2 i / d_model)``: a geometric sequence that starts at 1.

    Parameters
    ----------
    d_model : int
        Number of dimensions, even and positive.
    base : float, default 10_000.0
        The number that is raised to the power; larger bases turn more slowly.

    Returns
    -------
    (d_model / 2,) ndarray
        Angular frequencies in radians per position.

    Raises
    ------
    ValueError
        If ``d_model`` is odd or not positive, or ``base`` is not positive.

    References
    ----------
    Vaswani et al. (2017), "Attention Is All You Need", section 3.5.

    Examples
    --------
    >>> inverse_frequencies(8).round(6).tolist()
    [1.0, 0.1, 0.01, 0.001]
    """
    d_model = validate.even_size(d_model)
    base = validate.positive(base, "base")
    return base ** (-np.arange(0, d_model, 2) / d_model)


def wavelengths(d_model: int, *, base: float = 10_000.0) -> NDArray[np.float64]:
    """Return after how many positions each pair of dimensions has turned once.

    Parameters
    ----------
    d_model : int
        Number of dimensions, even and positive.
    base : float, default 10_000.0
        Base of the frequencies.

    Returns
    -------
    (d_model / 2,) ndarray
        Positions per turn. The first is 2 pi; the last stays below ``2 pi base``.

    Raises
    ------
    ValueError
        If ``d_model`` is odd or not positive, or ``base`` is not positive.

    References
    ----------
    Vaswani et al. (2017), "Attention Is All You Need", section 3.5.

    Examples
    --------
    >>> wavelengths(8).round(2).tolist()
    [6.28, 62.83, 628.32, 6283.19]
    """
    return 2 * np.pi / inverse_frequencies(d_model, base=base)


def sinusoidal_encoding(
    positions: ArrayLike,
    d_model: int,
    *,
    base: float = 10_000.0,
    layout: str = "interleaved",
    dtype: DTypeLike = np.float64,
) -> NDArray[np.floating]:
    """Encode positions as sines and cosines of geometrically spaced frequencies.

    Parameters
    ----------
    positions : array_like
        Real positions of any shape: negative, fractional and huge ones are right too.
    d_model : int
        Number of dimensions, even and positive.
    base : float, default 10_000.0
        Base of the frequencies.
    layout : {'interleaved', 'half'}
        Whether pair i sits at columns (2i, 2i + 1), as in the paper, or all sines come first.
    dtype : dtype, default float64
        Type of the result; angles are formed in float64 whatever it is.

    Returns
    -------
    (..., d_model) ndarray
        One row for each position: ``positions.shape + (d_model,)``.

    Raises
    ------
    ValueError
        If ``d_model`` is odd, ``base`` is not positive, the layout is unknown or a position
        is not finite.
    TypeError
        If positions are not real numbers.

    References
    ----------
    Vaswani et al. (2017), "Attention Is All You Need", section 3.5.

    Examples
    --------
    >>> sinusoidal_encoding([0, 1], 4).round(4).tolist()
    [[0.0, 1.0, 0.0, 1.0], [0.8415, 0.5403, 0.01, 1.0]]
    """
    positions = validate.real_array(positions, "positions")
    frequencies = inverse_frequencies(d_model, base=base)
    layout = validate.layout_name(layout)
    dtype = validate.floating_dtype(dtype)

    angles = positions[..., np.newaxis] * frequencies
    encoding = np.empty((*positions.shape, 2 * len(frequencies)), dtype)
    sines, cosines = pair_columns(encoding, layout)
    sines[...] = np.sin(angles)
    cosines[...] = np.cos(angles)
    return encoding


def sinusoidal_table(
    length: int,
    d_model: int,
    *,
    start: int = 0,
    base: float = 10_000.0,
    layout: str = "interleaved",
    dtype: DTypeLike = np.float64,
    out: NDArray | None = None,
) -> NDArray[np.floating]:
    """Encode the consecutive positions from ``start`` to ``start + length - 1``.

    Parameters
    ----------
    length : int
        Number of rows, zero or more.
    d_model : int
        Number of dimensions, even and positive.
    start : int, default 0
        Position of the first row; may be negative.
    base : float, default 10_000.0
        Base of the frequencies.
    layout : {'interleaved', 'half'}
        Order of the columns, as in :func:`sinusoidal_encoding`.
    dtype : dtype, default float64
        Type of the result; ignored where ``out`` is given.
    out : (length, d_model) ndarray, optional
        Array to fill instead of a new one.

    Returns
    -------
    (length, d_model) ndarray
        The table, ``out`` itself where it was given.

    Raises
    ------
    ValueError
        If a size is out of range, or ``out`` has another shape.
    TypeError
        If ``length`` or ``start`` is not an integer.

    References
    ----------
    Vaswani et al. (2017), "Attention Is All You Need", section 3.5.

    Examples
    --------
    >>> sinusoidal_table(2, 4, start=5).shape
    (2, 4)
    """
    length = validate.integer(length, "length", minimum=0)
    d_model = validate.even_size(d_model)
    if out is None:
        out = np.empty((length, d_model), validate.floating_dtype(dtype))
    else:
        out = validate.output(out, (length, d_model))
    # Beyond 2**53, float64 no longer tells neighbouring positions apart.
    first = validate.integer(start, "start", minimum=-(2**53), maximum=2**53 - length)
    positions = np.arange(first, first + length)
    out[...] = sinusoidal_encoding(positions, d_model, base=base, layout=layout, dtype=out.dtype)
    return out


def add_positions(x: ArrayLike, table: ArrayLike, *, start: int = 0) -> NDArray[np.floating]:
    """Add consecutive rows of a position table to a sequence of embeddings.

    Parameters
    ----------
    x : (..., n, d_model) array_like
        Embeddings; leading axes are batches, and every sequence gets the same rows.
    table : (length, d_model) array_like
        One row for each position.
    start : int, default 0
        Position of the first embedding.

    Returns
    -------
    (..., n, d_model) ndarray
        ``x + table[start : start + n]`` in the dtype of ``x``.

    Raises
    ------
    ValueError
        If ``start`` is negative or the widths differ.
    IndexError
        If the sequence runs past the end of the table.

    References
    ----------
    Vaswani et al. (2017), "Attention Is All You Need", section 3.5.

    Examples
    --------
    >>> add_positions(np.zeros((2, 3, 4)), sinusoidal_table(8, 4), start=5).shape
    (2, 3, 4)
    """
    x = validate.tensor(x, "x", min_ndim=2)
    table = validate.tensor(table, "table", ndim=2)
    start = validate.integer(start, "start", minimum=0)
    validate.same_axis(table.shape[-1], x.shape[-1], "last axis of table must be d_model")
    rows = validate.rows(np.arange(start, start + x.shape[-2]), len(table), "table")
    return x + table[rows].astype(x.dtype)


def pair_columns(array: NDArray, layout: str) -> tuple[NDArray, NDArray]:
    """Return views of the first and the second member of every pair of the last axis."""
    if layout == "interleaved":
        return array[..., 0::2], array[..., 1::2]
    half = array.shape[-1] // 2
    return array[..., :half], array[..., half:]
