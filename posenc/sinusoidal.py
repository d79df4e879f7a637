"""The sinusoidal encoding: frequencies, wavelengths, tables, and adding them (chapter 2)."""

from __future__ import annotations

from decimal import Decimal, localcontext
from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from posenc import _validate as validate

# A table is written in blocks of this many bytes, so that what is read again stays in the cache.
BLOCK_BYTES = 2**20
PAIR_TYPES = {
    np.dtype(np.float32): np.dtype(np.complex64),
    np.dtype(np.float64): np.dtype(np.complex128),
}
TWO_PI = Decimal("6.28318530717958647692528676655900576839433879875021164194988918461563281257")


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
    return base ** (np.arange(0, -d_model, -2) / d_model)


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
    return _encode(positions, inverse_frequencies(d_model, base=base), layout, dtype)


def timing_signal(
    positions: ArrayLike,
    d_model: int,
    *,
    base: float = 10_000.0,
    layout: str = "half",
    dtype: DTypeLike = np.float64,
) -> NDArray[np.floating]:
    """Encode positions with the spacing of tensor2tensor: the other encoding called sinusoidal.

    Pair ``i`` turns by ``base ** (-i / (d_model / 2 - 1))``, so that the last frequency is exactly
    ``1 / base``, where the paper's is ``base ** (2 / d_model)`` times as fast. fairseq, M2M-100 and
    diffusion models use it too, most with all sines first.

    Parameters
    ----------
    positions : array_like
        Real positions of any shape.
    d_model : int
        Number of dimensions, even and positive; 2 dimensions have the one frequency 1.
    base : float, default 10_000.0
        First frequency over the last; tensor2tensor's max_timescale / min_timescale.
    layout : {'half', 'interleaved'}
        Whether all sines come first, or pair i sits at columns (2i, 2i + 1).
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
    Vaswani et al. (2018), "Tensor2Tensor for Neural Machine Translation"; the spacing is that of
    its function get_timing_signal_1d.

    Examples
    --------
    >>> timing_signal(2, 6).round(6).tolist()
    [0.909297, 0.019999, 0.0002, -0.416147, 0.9998, 1.0]
    """
    pairs = validate.even_size(d_model) // 2
    base = validate.positive(base, "base")
    return _encode(positions, base ** (-np.arange(pairs) / max(1, pairs - 1)), layout, dtype)


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

    A shift by k turns every pair by its own angle (chapter 3). With a pair written as the complex
    number sin + i cos, ``encoding(p + k) = encoding(p) * exp(-i k w)``, so that sines and cosines
    are needed for the first row and for shifts by 1, 2, 4 .. alone; all else is multiplied.
    :func:`sinusoidal_encoding` is the slow form, row by row. float64 is right to 3e-15 at any
    position, float32 to 1.45e-7 (five half units in the last place).

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
    base = validate.positive(base, "base")
    layout = validate.layout_name(layout)
    if out is None:
        out = np.empty((length, d_model), validate.floating_dtype(dtype))
    else:
        out = validate.output(out, (length, d_model))
    # Beyond 2**53, float64 no longer tells neighbouring positions apart.
    start = validate.integer(start, "start", minimum=-(2**53), maximum=2**53 - length)

    pair = PAIR_TYPES.get(out.dtype, np.dtype(complex))
    real = np.float64 if out.dtype == np.float32 else np.longdouble
    first, shifts = _first_and_shifts(start, length, d_model, base, real)
    count = max(1, BLOCK_BYTES // (first.size * pair.itemsize))
    near = repeated_turns(shifts, min(length, 2 ** (count.bit_length() - 1))).astype(pair)
    pairs = complex_pairs(out, layout)
    block = np.empty_like(near) if pairs is None else None

    # Runs of rows yet to write, each with the encoding of its first row.
    runs = [(0, length, first)] if length else []
    while runs:
        begin, end, encoding = runs.pop()
        rows = end - begin
        if rows > len(near):
            power = (rows - 1).bit_length() - 1
            middle = begin + 2**power
            runs += [(middle, end, encoding * shifts[power]), (begin, middle, encoding)]
        elif pairs is not None:
            np.multiply(encoding.astype(pair), near[:rows], out=pairs[begin:end])
        else:
            turned = np.multiply(encoding.astype(pair), near[:rows], out=block[:rows])
            sines, cosines = pair_columns(out[begin:end], layout)
            sines[...], cosines[...] = turned.real, turned.imag
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


def split_pairs(x: ArrayLike) -> NDArray[np.floating]:
    """Put neighbouring dimensions together: pair i is (2i, 2i + 1).

    Parameters
    ----------
    x : (..., d) array_like
        Vectors whose last axis is even.

    Returns
    -------
    (..., d / 2, 2) ndarray
        The pairs, in new memory; floats keep their dtype, integers become float64.

    Raises
    ------
    ValueError
        If the last axis is odd or empty, or there is no axis.
    TypeError
        If ``x`` does not hold real numbers.

    References
    ----------
    Vaswani et al. (2017), "Attention Is All You Need", section 3.5: dimension 2i holds the sine
    and 2i + 1 the cosine of one angle.

    Examples
    --------
    >>> split_pairs([1.0, 2.0, 3.0, 4.0]).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    x = validate.tensor(x, "x", min_ndim=1)
    pairs = validate.even_size(x.shape[-1], "the last axis of x") // 2
    return x.reshape(*x.shape[:-1], pairs, 2).copy()


def angles(positions: ArrayLike, frequencies: ArrayLike) -> NDArray[np.float64]:
    """Return how far every pair has turned at every position.

    Parameters
    ----------
    positions : array_like
        Real positions of any shape.
    frequencies : (h,) array_like
        Radians per position of each pair.

    Returns
    -------
    (..., h) ndarray
        Each position times each frequency: ``positions.shape + (h,)``.

    Raises
    ------
    ValueError
        If the frequencies are none, have not one axis, or a number is not finite.
    TypeError
        If an argument does not hold real numbers.

    References
    ----------
    Vaswani et al. (2017), "Attention Is All You Need", section 3.5.

    Examples
    --------
    >>> angles([0, 3], [1.0, 0.5]).tolist()
    [[0.0, 0.0], [3.0, 1.5]]
    """
    positions = validate.real_array(positions, "positions")
    return positions[..., np.newaxis] * validate.vector(frequencies, "frequencies")


def impossible_pairs(table: ArrayLike, *, tolerance: float) -> set[tuple[int, int]]:
    """Find the pairs of a table that cannot be the sine and the cosine of one angle.

    Parameters
    ----------
    table : (n, d_model) array_like
        An interleaved table, one row for each position; ``d_model`` is even.
    tolerance : float
        How far the sum of a pair's squares may be from 1. Rounding to three decimals alone
        reaches 1.4e-3.

    Returns
    -------
    set of (int, int)
        Index of the row and of the pair: ``(r, i)`` stands for columns 2i and 2i + 1 of row r.

    Raises
    ------
    ValueError
        If the table has not two axes, an odd or empty axis or a number that is not finite, or
        ``tolerance`` is negative.
    TypeError
        If an argument does not hold real numbers.

    References
    ----------
    Vaswani et al. (2017), "Attention Is All You Need", section 3.5.

    Examples
    --------
    >>> printed = [[0.0, 1.0, 0.0, 1.0], [0.841, 0.540, 0.0, 0.0]]
    >>> impossible_pairs(printed, tolerance=2e-3)
    {(1, 1)}
    """
    table = validate.matrix(table, "table")
    validate.even_size(table.shape[-1], "the last axis of table")
    tolerance = validate.at_least(tolerance, 0, "tolerance")
    squares = np.square(table[:, 0::2]) + np.square(table[:, 1::2])
    return set(map(tuple, np.argwhere(np.abs(squares - 1) > tolerance).tolist()))


def nearest_repeat(d_model: int, base: float, length: int) -> tuple[int, float]:
    """Return the offset at which an encoding comes nearest to repeating itself.

    The distance of two encodings depends on their offset alone, so that position 0 speaks for all.

    Parameters
    ----------
    d_model : int
        Number of dimensions, even and positive.
    base : float
        Base of the frequencies.
    length : int
        Offsets 1, 2 .. ``length`` are compared.

    Returns
    -------
    offset : int
        The offset whose encoding lies nearest to that of position 0.
    distance : float
        Euclidean distance of the two encodings.

    Raises
    ------
    ValueError
        If ``d_model`` is odd or not positive, ``base`` is not positive, or ``length`` is below 1.
    TypeError
        If ``d_model`` or ``length`` is not an integer, or ``base`` not a real number.

    References
    ----------
    Vaswani et al. (2017), "Attention Is All You Need", section 3.5; two points of a circle that
    lie an angle a apart are 2 sin(a / 2) from each other.

    Examples
    --------
    >>> offset, distance = nearest_repeat(8, 10.0, 8192)
    >>> offset, round(distance, 3)
    (3676, 0.419)
    """
    frequencies = inverse_frequencies(d_model, base=base)
    offsets = np.arange(1, validate.integer(length, "length", minimum=1) + 1)
    # Pair by pair, so that a long range needs no table; half angles keep small distances exact.
    squares = sum(np.square(2 * np.sin(offsets * (frequency / 2))) for frequency in frequencies)
    nearest = int(squares.argmin())
    return nearest + 1, float(np.sqrt(squares[nearest]))


def pair_columns(array: NDArray, layout: str) -> tuple[NDArray, NDArray]:
    """Return views of the first and the second member of every pair of the last axis."""
    if layout == "interleaved":
        return array[..., 0::2], array[..., 1::2]
    half = array.shape[-1] // 2
    return array[..., :half], array[..., half:]


def complex_pairs(array: NDArray, layout: str) -> NDArray[np.complexfloating] | None:
    """Return a view of the pairs of the last axis as complex numbers, or None if memory forbids."""
    pair = PAIR_TYPES.get(array.dtype) if layout == "interleaved" else None
    return array.view(pair) if pair and array.strides[-1] == array.itemsize else None


def repeated_turns(doublings: list[NDArray], count: int) -> NDArray[np.complex128]:
    """Return the turns by 0, 1, 2 .. count - 1 steps, given those by 1, 2, 4 .. steps."""
    turns = np.empty((count, *doublings[0].shape), complex)
    turns[:1] = 1
    for power, doubling in enumerate(doublings):
        rows = turns[2**power : 2 ** (power + 1)]
        np.multiply(turns[: len(rows)], doubling, out=rows)
    return turns


def _encode(
    positions: ArrayLike, frequencies: NDArray, layout: str, dtype: DTypeLike
) -> NDArray[np.floating]:
    positions = validate.real_array(positions, "positions")
    layout = validate.layout_name(layout)
    dtype = validate.floating_dtype(dtype)

    angles = positions[..., np.newaxis] * frequencies
    encoding = np.empty((*positions.shape, 2 * len(frequencies)), dtype)
    sines, cosines = pair_columns(encoding, layout)
    sines[...] = np.sin(angles)
    cosines[...] = np.cos(angles)
    return encoding


def _first_and_shifts(
    start: int, length: int, d_model: int, base: float, real: type
) -> tuple[NDArray, list[NDArray]]:
    """Return the pairs of position ``start``, and exp(-i k w) for k = 1, 2, 4 .. below length.

    Angles are whole numbers of 2**-192 turn. To reduce them is to drop whole turns, which is
    exact, so that late rows are as right as early ones.
    """
    with localcontext(prec=100):
        ratio = int(Decimal(base) ** (Decimal(-2) / d_model) * 2**192)
        fastest = int(2**192 / TWO_PI)
    angles = list(
        accumulate(range(d_model // 2 - 1), lambda w, _: w * ratio >> 192, initial=fastest)
    )

    def digits(shift: int, multiple: int = 1) -> NDArray[np.uint64]:
        return np.array([multiple * w >> shift & 2**64 - 1 for w in angles], np.uint64)

    def turn(fractions: NDArray[np.uint64]) -> NDArray[np.complex128]:
        radians = fractions.view(np.int64) * (np.arctan(real(1)) / 2**61)
        turned = np.empty(fractions.shape, complex)
        turned.real, turned.imag = np.cos(radians), -np.sin(radians)
        return turned

    high, low = digits(128), digits(64)
    shifts = []
    for _ in range(max(1, (length - 1).bit_length())):
        shifts.append(turn(high))
        high, low = high << 1 | low >> 63, low << 1
    # sin + i cos is i exp(-i angle).
    return 1j * turn(digits(128, start)), shifts
