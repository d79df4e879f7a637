"""The rotation identity: shifting a position turns its encoding (chapter 3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posenc import _validate as validate
from posenc.sinusoidal import inverse_frequencies


def rotation_matrix(angle: float) -> NDArray[np.float64]:
    """Return the matrix that turns a vector of the plane counter-clockwise.

    Parameters
    ----------
    angle : float
        Angle in radians.

    Returns
    -------
    (2, 2) ndarray
        ``[[cos, -sin], [sin, cos]]``.

    Raises
    ------
    TypeError
        If ``angle`` is not a real number.
    ValueError
        If ``angle`` is not finite.

    References
    ----------
    Su et al. (2021), "RoFormer", section 3.2.1, equation 13.

    Examples
    --------
    >>> (rotation_matrix(np.pi / 2) @ [1.0, 0.0]).round(6).tolist()
    [0.0, 1.0]
    """
    angle = validate.scalar(angle, "angle")
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def shift_matrix(offset: float, d_model: int, *, base: float = 10_000.0) -> NDArray[np.float64]:
    """Return the one matrix that moves the encoding of every position by an offset.

    Each block acts on a (sine, cosine) pair, so it is the transpose of :func:`rotation_matrix`.

    Parameters
    ----------
    offset : float
        Number of positions to move; may be negative or fractional.
    d_model : int
        Number of dimensions, even and positive.
    base : float, default 10_000.0
        Base of the frequencies.

    Returns
    -------
    (d_model, d_model) ndarray
        Block-diagonal and orthogonal: ``encoding(p + offset) == matrix @ encoding(p)``.

    Raises
    ------
    ValueError
        If ``d_model`` is odd or not positive, ``base`` is not positive, or ``offset`` is
        not finite.

    References
    ----------
    Vaswani et al. (2017), "Attention Is All You Need", section 3.5.

    Examples
    --------
    >>> from posenc import sinusoidal_encoding
    >>> moved = shift_matrix(3, 8) @ sinusoidal_encoding(5, 8)
    >>> bool(np.allclose(moved, sinusoidal_encoding(8, 8)))
    True
    """
    offset = validate.scalar(offset, "offset")
    frequencies = inverse_frequencies(d_model, base=base)
    matrix = np.zeros((d_model, d_model))
    for pair, frequency in enumerate(frequencies):
        block = slice(2 * pair, 2 * pair + 2)
        matrix[block, block] = rotation_matrix(offset * frequency).T
    return matrix


def shift_encoding(
    encoding: ArrayLike, offset: float, *, base: float = 10_000.0
) -> NDArray[np.floating]:
    """Move encodings by an offset without knowing their positions and without a matrix.

    Parameters
    ----------
    encoding : (..., d_model) array_like
        Interleaved sinusoidal encodings.
    offset : float
        Number of positions to move; may be negative or fractional.
    base : float, default 10_000.0
        Base of the frequencies.

    Returns
    -------
    (..., d_model) ndarray
        The encodings ``offset`` positions later.

    Raises
    ------
    ValueError
        If the last axis is odd, ``base`` is not positive, or ``offset`` is not finite.

    References
    ----------
    Vaswani et al. (2017), "Attention Is All You Need", section 3.5.

    Examples
    --------
    >>> from posenc import sinusoidal_encoding
    >>> moved = shift_encoding(sinusoidal_encoding([0, 1], 8), 2.5)
    >>> bool(np.allclose(moved, sinusoidal_encoding([2.5, 3.5], 8)))
    True
    """
    encoding = validate.tensor(encoding, "encoding", min_ndim=1)
    offset = validate.scalar(offset, "offset")
    angles = offset * inverse_frequencies(encoding.shape[-1], base=base)
    sines, cosines = encoding[..., 0::2], encoding[..., 1::2]
    shifted = np.empty_like(encoding)
    shifted[..., 0::2] = sines * np.cos(angles) + cosines * np.sin(angles)
    shifted[..., 1::2] = cosines * np.cos(angles) - sines * np.sin(angles)
    return shifted


def position_kernel(
    offsets: ArrayLike, d_model: int, *, base: float = 10_000.0
) -> NDArray[np.float64]:
    """Return the dot product of two encodings as a function of their offset alone.

    Parameters
    ----------
    offsets : array_like
        Real offsets of any shape.
    d_model : int
        Number of dimensions, even and positive.
    base : float, default 10_000.0
        Base of the frequencies.

    Returns
    -------
    ndarray
        The sum of ``d_model / 2`` cosines for each offset, in the shape of ``offsets``.

    Raises
    ------
    ValueError
        If ``d_model`` is odd or not positive, ``base`` is not positive, or an offset is
        not finite.

    References
    ----------
    Vaswani et al. (2017), "Attention Is All You Need", section 3.5; the sum of cosines follows
    from sin a sin b + cos a cos b = cos(a - b).

    Examples
    --------
    >>> position_kernel([0, 5, -5], 512).round(1).tolist()
    [256.0, 189.6, 189.6]
    """
    offsets = validate.real_array(offsets, "offsets")
    return np.cos(offsets[..., np.newaxis] * inverse_frequencies(d_model, base=base)).sum(axis=-1)
