"""Number formats of 16 bits, and how many positions survive in them (chapter 8)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from posenc import _validate as validate


def round_to_bfloat16(x: ArrayLike) -> NDArray[np.float32]:
    """Round numbers to bfloat16, which keeps 8 significant bits and float32's range.

    Each number is rounded once, from float64, to the nearest that bfloat16 holds; a tie goes to
    the neighbour whose last bit is zero. Rounding to float32 first would move some numbers onto a
    tie, and from there to the wrong side.

    Parameters
    ----------
    x : array_like
        Real numbers of any shape, taken as float64; infinities and nan stay what they are.

    Returns
    -------
    ndarray
        The rounded numbers as float32, because NumPy has no bfloat16 of its own.

    Raises
    ------
    TypeError
        If ``x`` does not hold real numbers.

    References
    ----------
    IEEE 754-2019, section 4.3.1, for rounding to nearest, ties to even; Kalamkar et al. (2019),
    "A Study of BFLOAT16 for Deep Learning Training", abstract, for what the format keeps.

    Examples
    --------
    >>> round_to_bfloat16([256, 257, 258, 259, 260]).tolist()
    [256.0, 256.0, 258.0, 260.0, 260.0]
    >>> float(round_to_bfloat16(3.14159))
    3.140625
    """
    return _round(x, np.float32, digits=8, least_exponent=-126)


def round_to_float16(x: ArrayLike) -> NDArray[np.float16]:
    """Round numbers to float16, which keeps 11 significant bits and ends at 65504.

    Each number is rounded once, from float64, as in :func:`round_to_bfloat16`.

    Parameters
    ----------
    x : array_like
        Real numbers of any shape, taken as float64; infinities and nan stay what they are.

    Returns
    -------
    ndarray
        The rounded numbers as float16; those from 65520 on are infinite.

    Raises
    ------
    TypeError
        If ``x`` does not hold real numbers.

    References
    ----------
    IEEE 754-2019, sections 3.6 (binary16) and 4.3.1 (rounding).

    Examples
    --------
    >>> round_to_float16([2048, 2049, 2051, 65519, 65520]).tolist()
    [2048.0, 2048.0, 2052.0, 65504.0, inf]
    """
    return _round(x, np.float16, digits=11, least_exponent=-14)


def distinct_positions(low: int, high: int, dtype: DTypeLike) -> int:
    """Count how many of the positions ``low .. high - 1`` a number format tells apart.

    Parameters
    ----------
    low : int
        The first position.
    high : int
        The position after the last, at least ``low``.
    dtype : str or dtype
        The format that positions are rounded to: 'bfloat16', 'float16', 'float32', 'float64'.

    Returns
    -------
    int
        Number of different values; ``high - low`` where every position survives. Memory grows
        with ``high - low``.

    Raises
    ------
    TypeError
        If ``low`` or ``high`` is not an integer.
    ValueError
        If ``high`` is below ``low``, a position is beyond float64's integers, or the format is
        unknown.

    Examples
    --------
    >>> [distinct_positions(low, 2 * low, "bfloat16") for low in (128, 256, 512)]
    [128, 129, 129]
    >>> distinct_positions(256, 512, "float16")
    256
    """
    low = validate.integer(low, "low", minimum=-(2**53))
    high = validate.integer(high, "high", minimum=low, maximum=2**53)
    name = validate.number_format(dtype, tuple(FORMATS))
    if low == high:
        return 0
    # Rounding keeps order, so that equal values stand side by side.
    rounded = FORMATS[name](np.arange(low, high, dtype=np.float64))
    return 1 + int(np.count_nonzero(rounded[1:] != rounded[:-1]))


FORMATS = {
    "bfloat16": round_to_bfloat16,
    "float16": round_to_float16,
    "float32": lambda x: x.astype(np.float32),
    "float64": lambda x: x,
}


def _round(
    x: ArrayLike, dtype: DTypeLike, *, digits: int, least_exponent: int
) -> NDArray[np.floating]:
    """Round to ``digits`` significant bits, fewer below ``2 ** least_exponent``; ties to even."""
    x = validate.tensor(x, "x").astype(np.float64)
    # x = fraction * 2 ** exponent with fraction in [1/2, 1), so its leading bit is exponent - 1.
    _, exponent = np.frexp(x)
    last_bit = np.maximum(exponent - 1, least_exponent) - (digits - 1)
    # As the standard asks, numbers beyond the format become infinite, and every nan a quiet one.
    with np.errstate(over="ignore", invalid="ignore"):
        # Scaling by a power of two is exact; rint alone rounds, and sends ties to even.
        rounded = np.ldexp(np.rint(np.ldexp(x, -last_bit)), last_bit)
        return rounded.astype(dtype)
