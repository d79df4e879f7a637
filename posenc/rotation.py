"""The rotation identity: shifting a position turns its encoding (chapter 3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posenc import _validate as validate
from posenc.sinusoidal import inverse_frequencies, pair_columns


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


def shift_matrix(
    offset: float, d_model: int, *, base: float = 10_000.0, layout: str = "interleaved"
) -> NDArray[np.float64]:
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
    layout : {'interleaved', 'half'}
        Order of the columns, as in :func:`posenc.sinusoidal_encoding`.

    Returns
    -------
    (d_model, d_model) ndarray
        Orthogonal, and block-diagonal where pairs are neighbours:
        ``encoding(p + offset) == matrix @ encoding(p)``.

    Raises
    ------
    ValueError
        If ``d_model`` is odd or not positive, ``base`` is not positive, ``offset`` is not
        finite, or the layout is unknown.

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
    firsts, seconds = pair_columns(np.arange(d_model), validate.layout_name(layout))
    matrix = np.zeros((d_model, d_model))
    for first, second, frequency in zip(firsts, seconds, frequencies, strict=True):
        block = np.ix_([first, second], [first, second])
        matrix[block] = rotation_matrix(offset * frequency).T
    return matrix


def shift_encoding(
    encoding: ArrayLike, offset: float, *, base: float = 10_000.0, layout: str = "interleaved"
) -> NDArray[np.floating]:
    """Move encodings by an offset without knowing their positions and without a matrix.

    Parameters
    ----------
    encoding : (..., d_model) array_like
        Sinusoidal encodings.
    offset : float
        Number of positions to move; may be negative or fractional.
    base : float, default 10_000.0
        Base of the frequencies.
    layout : {'interleaved', 'half'}
        Order of the columns, as in :func:`posenc.sinusoidal_encoding`.

    Returns
    -------
    (..., d_model) ndarray
        The encodings ``offset`` positions later.

    Raises
    ------
    ValueError
        If the last axis is odd, ``base`` is not positive, ``offset`` is not finite, or the
        layout is unknown.

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
    layout = validate.layout_name(layout)
    sines, cosines = pair_columns(encoding, layout)
    shifted = np.empty_like(encoding)
    shifted_sines, shifted_cosines = pair_columns(shifted, layout)
    shifted_sines[...] = sines * np.cos(angles) + cosines * np.sin(angles)
    shifted_cosines[...] = cosines * np.cos(angles) - sines * np.sin(angles)
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


def shift_linearity(table: ArrayLike, offset: int, n_train: int) -> tuple[float, float]:
    """Measure how well one linear map takes every row of a table to a later one.

    The map is the best one for the first rows. That it fits those says little: a random table
    with as many dimensions as rows is fitted exactly. The rows left out tell.

    Parameters
    ----------
    table : (n, d) array_like
        One row for each position.
    offset : int
        How many rows later, 1 or more.
    n_train : int
        Number of pairs (row, row + offset), from the top of the table, that the map is fitted to.

    Returns
    -------
    fit : float
        Root of the mean squared error over all entries of those pairs.
    holdout : float
        The same over the rest of the pairs.

    Raises
    ------
    ValueError
        If the table has not two axes, or does not hold ``n_train`` pairs and one more.
    TypeError
        If ``offset`` or ``n_train`` is not an integer, or the table does not hold real numbers.

    References
    ----------
    Vaswani et al. (2017), "Attention Is All You Need", section 3.5, which holds the map for the
    reason to choose sines and cosines.

    Examples
    --------
    >>> from posenc import sinusoidal_table
    >>> shift_linearity(sinusoidal_table(64, 8), 3, 30)[1] < 1e-2
    True
    >>> fit, holdout = shift_linearity(np.random.default_rng(0).normal(size=(64, 8)), 3, 8)
    >>> fit < 1e-10, holdout > 1
    (True, True)
    """
    table = validate.matrix(table, "table")
    offset = validate.integer(offset, "offset", minimum=1, maximum=len(table) - 2)
    n_train = validate.integer(n_train, "n_train", minimum=1, maximum=len(table) - offset - 1)
    rows, later = table[:-offset], table[offset:]
    best = np.linalg.lstsq(rows[:n_train], later[:n_train], rcond=None)[0]
    squares = np.square(rows @ best - later)
    return float(np.sqrt(squares[:n_train].mean())), float(np.sqrt(squares[n_train:].mean()))


def toeplitz_r2(matrix: ArrayLike) -> float:
    """Return how much of a matrix its diagonals explain.

    Entry (i, j) of a Toeplitz matrix depends on j - i alone: scores that see distance and nothing
    else.

    Parameters
    ----------
    matrix : (n, m) array_like
        Real numbers, such as the scores of n queries and m keys.

    Returns
    -------
    float
        One minus the sum of squares about the mean of each diagonal over the sum of squares about
        the mean of all: 1 for a Toeplitz matrix, so for a constant one, and never below 0.

    Raises
    ------
    ValueError
        If ``matrix`` has not two axes, is empty or holds a number that is not finite.
    TypeError
        If ``matrix`` does not hold real numbers.

    References
    ----------
    Gray (2006), "Toeplitz and Circulant Matrices: A Review", section 1.1.

    Examples
    --------
    >>> toeplitz_r2([[0.0, 1.0], [-1.0, 0.0]])
    1.0
    >>> toeplitz_r2([[1.0, 0.0], [0.0, -1.0]])
    0.0
    """
    matrix = validate.matrix(matrix, "matrix")
    # With one entry taken away, a constant matrix is exactly zero, whatever its mean rounds to.
    matrix = matrix - matrix[0, 0]
    total = np.square(matrix - matrix.mean()).sum()
    if total == 0:
        return 1.0
    rows, columns = np.indices(matrix.shape)
    diagonals = (columns - rows + len(matrix) - 1).ravel()
    means = np.bincount(diagonals, matrix.ravel()) / np.bincount(diagonals)
    within = np.square(matrix.ravel() - means[diagonals]).sum()
    return max(0.0, float(1 - within / total))
