"""Learned position tables and their gradient (chapter 4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posenc import _validate as validate


def lookup(table: ArrayLike, positions: ArrayLike) -> NDArray[np.floating]:
    """Return the rows of a position table.

    Parameters
    ----------
    table : (max_len, d_model) array_like
        One trainable row for each position.
    positions : array_like of int
        Positions of any shape.

    Returns
    -------
    (..., d_model) ndarray
        A copy of the rows: ``positions.shape + (d_model,)``.

    Raises
    ------
    IndexError
        If a position is negative or not below ``max_len``: a learned table has no other rows.
    TypeError
        If positions are not integers.

    References
    ----------
    Gehring et al. (2017), "Convolutional Sequence to Sequence Learning", section 3.1.

    Examples
    --------
    >>> lookup([[1.0, 2.0], [3.0, 4.0]], [1, 1, 0]).tolist()
    [[3.0, 4.0], [3.0, 4.0], [1.0, 2.0]]
    """
    table = validate.tensor(table, "table", ndim=2)
    positions = validate.rows(validate.integers(positions, "positions"), len(table), "table")
    return table[positions]


def lookup_gradient(
    positions: ArrayLike, upstream: ArrayLike, max_len: int
) -> NDArray[np.floating]:
    """Return the gradient of a loss with respect to the table, given that of the looked-up rows.

    Parameters
    ----------
    positions : (..., n) array_like of int
        The positions that were looked up.
    upstream : (..., n, d_model) array_like
        Gradient of the loss with respect to ``lookup(table, positions)``; leading axes that
        ``positions`` lacks are batches.
    max_len : int
        Number of rows of the table.

    Returns
    -------
    (max_len, d_model) ndarray
        Repeated positions add up, rows that were not looked up are zero.

    Raises
    ------
    IndexError
        If a position is outside the table.
    ValueError
        If ``positions`` and ``upstream`` do not fit together.

    References
    ----------
    Gehring et al. (2017), "Convolutional Sequence to Sequence Learning", section 3.1.

    Examples
    --------
    >>> lookup_gradient([0, 2, 2], [[1.0, 1.0], [2.0, 3.0], [4.0, 5.0]], 4).tolist()
    [[1.0, 1.0], [0.0, 0.0], [6.0, 8.0], [0.0, 0.0]]
    """
    upstream = validate.tensor(upstream, "upstream", min_ndim=1)
    max_len = validate.integer(max_len, "max_len", minimum=1)
    positions = validate.rows(validate.integers(positions, "positions"), max_len, "table")
    validate.broadcasts(positions.shape, upstream.shape[:-1], "positions")
    gradient = np.zeros((max_len, upstream.shape[-1]), upstream.dtype)
    # Unlike `gradient[positions] += ...`, which keeps one of several repeated rows.
    np.add.at(gradient, np.broadcast_to(positions, upstream.shape[:-1]), upstream)
    return gradient


class LearnedPositions:
    """A trainable table of position vectors.

    Parameters
    ----------
    max_len : int
        Number of positions; there are no others.
    d_model : int
        Number of dimensions.
    rng : numpy.random.Generator or int, optional
        Source of the initial values, or its seed; seed 0 where it is left out.
    scale : float, default 0.02
        Standard deviation of the initial values.

    Attributes
    ----------
    table : (max_len, d_model) ndarray
        The trainable values.

    References
    ----------
    Devlin et al. (2019), "BERT", section 3: learned tables in a Transformer encoder.

    Examples
    --------
    >>> positions = LearnedPositions(512, 64)
    >>> positions.lookup([0, 1, 2]).shape
    (3, 64)
    """

    def __init__(
        self,
        max_len: int,
        d_model: int,
        rng: np.random.Generator | int | None = None,
        scale: float = 0.02,
    ) -> None:
        max_len = validate.integer(max_len, "max_len", minimum=1)
        d_model = validate.integer(d_model, "d_model", minimum=1)
        scale = validate.positive(scale, "scale")
        rng = validate.generator(0 if rng is None else rng)
        self.table = scale * rng.standard_normal((max_len, d_model))

    def lookup(self, positions: ArrayLike) -> NDArray[np.floating]:
        """Return the rows of the table at the given positions.

        Parameters
        ----------
        positions : array_like of int
            Positions of any shape, as in :func:`posenc.lookup`.

        Returns
        -------
        (..., d_model) ndarray
            A copy of the rows: ``positions.shape + (d_model,)``.
        """
        return lookup(self.table, positions)

    def gradient(self, positions: ArrayLike, upstream: ArrayLike) -> NDArray[np.floating]:
        """Return the gradient of a loss with respect to the table.

        Parameters
        ----------
        positions : (..., n) array_like of int
            The positions that were looked up.
        upstream : (..., n, d_model) array_like
            Gradient with respect to the rows, as in :func:`posenc.lookup_gradient`.

        Returns
        -------
        (max_len, d_model) ndarray
            Repeated positions add up, rows that were not looked up are zero.
        """
        return lookup_gradient(positions, upstream, len(self.table))
