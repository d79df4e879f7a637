"""Biases added to attention scores: relative positions, ALiBi, T5's buckets (chapter 6)."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posenc import _validate as validate


def relative_positions(query_positions: ArrayLike, key_positions: ArrayLike) -> NDArray:
    """Subtract the position of every query from the position of every key.

    A key before the query has a negative relative position, as in T5. Papers that write
    ``i - j`` for query i and key j mean the opposite sign.

    Parameters
    ----------
    query_positions : (..., n) array_like
        Positions of the queries: integers of any type and size, or finite real numbers.
    key_positions : (..., m) array_like
        Positions of the keys; leading axes broadcast with those of the queries.

    Returns
    -------
    (..., n, m) ndarray
        ``key - query`` in positions. Integers give int64, whatever their type, and never wrap;
        differences that reach 2**62 come as Python integers. Other real numbers give float64.

    Raises
    ------
    ValueError
        If an argument has no axis, leading axes do not broadcast, a position is not finite, or
        a difference is beyond float64.
    TypeError
        If positions are not real numbers.

    References
    ----------
    Shaw et al. (2018), "Self-Attention with Relative Position Representations", section 3.2, where
    the distance ``j - i`` of key j from query i chooses the representation.

    Examples
    --------
    >>> relative_positions([0, 1, 2], [0, 1, 2]).tolist()
    [[0, 1, 2], [-1, 0, 1], [-2, -1, 0]]

    A decode step asks with one query, which stands where the cache ends:

    >>> relative_positions([4], range(5)).tolist()
    [[-4, -3, -2, -1, 0]]
    """
    queries = validate.exact(query_positions, "query_positions")
    keys = validate.exact(key_positions, "key_positions")
    validate.at_least_one_axis(queries, "query_positions")
    validate.at_least_one_axis(keys, "key_positions")
    queries, keys = queries[..., :, np.newaxis], keys[..., np.newaxis, :]
    validate.leading_axes(queries.shape, keys.shape, "query_positions and key_positions")

    if "f" in (queries.dtype.kind, keys.dtype.kind):
        with np.errstate(over="ignore"):
            difference = keys.astype(np.float64) - queries.astype(np.float64)
        return validate.real_array(difference, "key_positions - query_positions")
    return validate.int64_where_it_fits(np.asarray(keys - queries))


def alibi_slopes(n_heads: int, *, max_exponent: float = 8.0) -> NDArray[np.float64]:
    """Return how steeply each head's ALiBi penalty grows with distance.

    For a power of two, head h of n has slope ``2 ** (-max_exponent * h / n)``, counted from 1.
    Any other number takes the slopes of the power of two below it, and then every second slope of
    the power of two above it, as the authors' code does; the order is part of the convention.

    Parameters
    ----------
    n_heads : int
        Number of heads, at least 1.
    max_exponent : float, default 8.0
        The smallest slope of a power of two is ``2 ** -max_exponent``; others call it
        alibi_bias_max.

    Returns
    -------
    (n_heads,) ndarray
        Slopes between 0 and 1, per position of distance. They fall from head to head only within
        each of the two series.

    Raises
    ------
    ValueError
        If ``n_heads`` is below 1 or ``max_exponent`` is not positive.
    TypeError
        If ``n_heads`` is not an integer.

    References
    ----------
    Press et al. (2022), "Train Short, Test Long: Attention with Linear Biases Enables Input Length
    Extrapolation", section 3; ``get_slopes`` of the authors' code for other numbers of heads.

    Examples
    --------
    >>> alibi_slopes(4).tolist()
    [0.25, 0.0625, 0.015625, 0.00390625]
    >>> alibi_slopes(6).tolist()
    [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125]
    """
    n_heads = validate.integer(n_heads, "n_heads", minimum=1)
    max_exponent = validate.positive(max_exponent, "max_exponent")

    def geometric(n: int) -> NDArray[np.float64]:
        return 2.0 ** (-max_exponent * np.arange(1, n + 1) / n)

    below = 2 ** (n_heads.bit_length() - 1)
    return np.concatenate([geometric(below), geometric(2 * below)[::2][: n_heads - below]])


def alibi_bias(
    n_heads: int,
    query_positions: ArrayLike,
    key_positions: ArrayLike,
    *,
    max_exponent: float = 8.0,
) -> NDArray[np.float64]:
    """Penalise every score in proportion to the distance between query and key.

    Parameters
    ----------
    n_heads : int
        Number of heads, at least 1.
    query_positions : (..., n) array_like
        Positions of the queries; at a decode step, the one position where the cache ends.
    key_positions : (..., m) array_like
        Positions of the keys.
    max_exponent : float, default 8.0
        As in :func:`alibi_slopes`.

    Returns
    -------
    (..., n_heads, n, m) ndarray
        ``-slope * |key - query|``, to be added to the scores after their division by
        ``sqrt(d_k)``: zero where a token looks at itself, negative elsewhere.

    Raises
    ------
    ValueError
        If ``n_heads`` is below 1 or positions do not fit, as in :func:`relative_positions`.
    TypeError
        If ``n_heads`` is not an integer or positions are not real numbers.

    Notes
    -----
    Much code adds ``slope * (key - last key)`` instead, one row for all queries. Up to the query
    that differs from the form here by ``slope * (last key - query)``, which is constant along a
    row, and softmax ignores what is constant along a row. So the two give equal weights under
    a causal mask followed by softmax, and only there: without the mask the row form rewards keys
    after the query.

    References
    ----------
    Press et al. (2022), "Train Short, Test Long", section 3 and figure 3.

    Examples
    --------
    >>> alibi_bias(2, range(3), range(3))[0].tolist()
    [[0.0, -0.0625, -0.125], [-0.0625, 0.0, -0.0625], [-0.125, -0.0625, 0.0]]
    >>> alibi_bias(8, [4], range(5))[0].tolist()
    [[-2.0, -1.5, -1.0, -0.5, 0.0]]
    """
    slopes = alibi_slopes(n_heads, max_exponent=max_exponent)
    relative = relative_positions(query_positions, key_positions)
    distances = np.abs(validate.real_array(relative, "key_positions - query_positions"))
    # Subtracted from zero, so that no distance gives 0.0 and not -0.0.
    return 0.0 - slopes[:, np.newaxis, np.newaxis] * distances[..., np.newaxis, :, :]


def t5_bucket(
    relative_position: ArrayLike,
    *,
    bidirectional: bool = True,
    num_buckets: int = 32,
    max_distance: int = 128,
) -> NDArray[np.int64]:
    """Sort relative positions into T5's buckets, narrow near the query and wide far from it.

    With E = half the buckets of a direction, distances below E have a bucket each. The other
    R buckets grow geometrically: distance n falls into bucket
    ``E + floor(R * log(n / E) / log(max_distance / E))``, and everything from ``max_distance`` on
    into the last one. The comparison is made in integers, ``n**R >= max_distance**k * E**(R - k)``,
    so that no rounding of a logarithm moves a boundary.

    Parameters
    ----------
    relative_position : array_like of int
        ``key - query`` of any shape, as from :func:`relative_positions`.
    bidirectional : bool, default True
        Whether keys after the query have buckets of their own, the upper half, as in an encoder.
        If not, they all fall into bucket 0, as in a decoder, where the mask hides them.
    num_buckets : int, default 32
        Number of buckets: at least 4 and even if bidirectional, else at least 2.
    max_distance : int, default 128
        First distance that is certain to be in the last bucket; greater than E.

    Returns
    -------
    ndarray of int64
        Buckets from 0 to ``num_buckets - 1``, of the same shape: indices into a learned table.

    Raises
    ------
    ValueError
        If a number of buckets or the largest distance is out of range.
    TypeError
        If relative positions or sizes are not integers, or ``bidirectional`` is not a bool.

    References
    ----------
    Raffel et al. (2020), "Exploring the Limits of Transfer Learning with a Unified Text-to-Text
    Transformer", section 2.1.

    Examples
    --------
    >>> t5_bucket([0, -1, -7, -8, -16, -127, -128, 1, 128]).tolist()
    [0, 1, 7, 8, 10, 15, 15, 17, 31]
    >>> t5_bucket([0, -1, -16, -127, -128, 1], bidirectional=False).tolist()
    [0, 1, 16, 31, 31, 0]
    """
    relative = validate.int64_where_it_fits(
        validate.integers(relative_position, "relative_position")
    )
    directions = 2 if validate.flag(bidirectional, "bidirectional") else 1
    num_buckets = validate.integer(num_buckets, "num_buckets", minimum=2 * directions)
    validate.multiple(num_buckets, directions, "num_buckets", "one half for each direction")
    buckets = num_buckets // directions
    max_distance = validate.integer(
        max_distance, "max_distance", minimum=buckets // 2 + 1, maximum=2**62
    )

    # Everything beyond max_distance shares a bucket, so huge integers can be cut to fit int64.
    relative = np.asarray(np.clip(relative, -max_distance, max_distance)).astype(np.int64)
    distance = np.abs(relative) if bidirectional else np.maximum(-relative, 0)
    first_distances = _first_distances(buckets, max_distance)
    bucket = np.asarray(np.searchsorted(first_distances, distance, side="right"))
    return np.where(relative > 0, bucket + buckets, bucket) if bidirectional else bucket


def _first_distances(buckets: int, max_distance: int) -> list[int]:
    """Return the smallest distance of every bucket but the first."""
    exact = buckets // 2
    growing = buckets - exact
    distances = range(exact, max_distance + 1)
    return [
        *range(1, exact + 1),
        *(
            distances[
                bisect_left(
                    distances,
                    max_distance**k * exact ** (growing - k),
                    key=lambda distance: distance**growing,
                )
            ]
            for k in range(1, growing)
        ),
    ]
