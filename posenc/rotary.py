"""Rotary position embedding (RoPE), and how to test that it is relative (chapter 4)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posenc import _validate as validate
from posenc.sinusoidal import inverse_frequencies, pair_columns


def rope(
    x: ArrayLike, positions: ArrayLike, *, base: float = 10_000.0, layout: str = "interleaved"
) -> NDArray[np.floating]:
    """Rotate each pair of dimensions by an angle that grows with the position.

    Parameters
    ----------
    x : (..., seq_len, d) array_like
        Queries or keys; ``d`` is the head dimension and must be even.
    positions : array_like
        Real positions: 1-D of length ``seq_len``, or with one axis for each of ``x``'s but the
        last. For ``x`` of (batch, heads, seq, d), positions of a batch are (batch, 1, seq).
        Angles are formed in float64, whatever the dtype of ``x``.
    base : float, default 10_000.0
        Base of the frequencies; others call it rope_theta.
    layout : {'interleaved', 'half'}
        Whether pair i is dimensions (2i, 2i + 1), as in RoFormer, Meta's code and GPT-J, or
        (i, i + d / 2), as in GPT-NeoX and Hugging Face.

    Returns
    -------
    (..., seq_len, d) ndarray
        The rotated vectors, of the same norm; floats keep their dtype, integers become float64.

    Raises
    ------
    ValueError
        If ``d`` is odd, the positions do not fit ``x``, ``base`` is not positive, or the
        layout is unknown.
    TypeError
        If ``x`` or the positions are not real numbers.

    References
    ----------
    Su et al. (2021), "RoFormer: Enhanced Transformer with Rotary Position Embedding",
    section 3.2.2, equation 15.

    Examples
    --------
    >>> rope([[1.0, 2.0, 3.0, 4.0]], [1]).round(4).tolist()
    [[-1.1426, 1.9221, 2.9599, 4.0298]]
    >>> rope([[1.0, 2.0, 3.0, 4.0]], [1], layout="half").round(4).tolist()
    [[-1.9841, 1.9599, 2.4624, 4.0198]]
    """
    x = validate.tensor(x, "x", min_ndim=2)
    positions = validate.aligned_positions(positions, x.shape)
    layout = validate.layout_name(layout)
    frequencies = inverse_frequencies(
        validate.even_size(x.shape[-1], "the last axis of x"), base=base
    )

    angles = positions[..., np.newaxis] * frequencies
    cosines, sines = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)
    first, second = pair_columns(x, layout)
    rotated = np.empty_like(x)
    rotated_first, rotated_second = pair_columns(rotated, layout)
    rotated_first[...] = first * cosines - second * sines
    rotated_second[...] = first * sines + second * cosines
    return rotated


def rope_scores(
    queries: ArrayLike,
    keys: ArrayLike,
    query_positions: ArrayLike,
    key_positions: ArrayLike,
    *,
    base: float = 10_000.0,
) -> NDArray[np.floating]:
    """Score every query against every key after both were rotated by their own positions.

    Parameters
    ----------
    queries : (..., n, d) array_like
        Queries before rotation.
    keys : (..., m, d) array_like
        Keys before rotation.
    query_positions, key_positions : array_like
        Their positions, as in :func:`rope`.
    base : float, default 10_000.0
        Base of the frequencies.

    Returns
    -------
    (..., n, m) ndarray
        Dot products divided by ``sqrt(d)``. An entry depends on the positions through their
        difference alone.

    Raises
    ------
    ValueError
        If the last axes differ, leading axes do not broadcast, or positions do not fit.

    References
    ----------
    Su et al. (2021), "RoFormer", section 3.2.2, equation 16; Vaswani et al. (2017), section 3.2.1
    for the scale.

    Examples
    --------
    >>> query, key = [[1.0, 2.0, 3.0, 4.0]], [[4.0, -1.0, 2.0, 0.5]]
    >>> near, far = rope_scores(query, key, [4], [1]), rope_scores(query, key, [14], [11])
    >>> bool(np.allclose(near, far))
    True
    """
    queries = validate.tensor(queries, "queries", min_ndim=2)
    keys = validate.tensor(keys, "keys", min_ndim=2)
    validate.same_axis(
        keys.shape[-1], queries.shape[-1], "last axis of keys must be that of queries"
    )
    validate.leading_axes(queries.shape, keys.shape, "queries and keys")
    rotated_queries = rope(queries, query_positions, base=base)
    rotated_keys = rope(keys, key_positions, base=base)
    return rotated_queries @ np.swapaxes(rotated_keys, -1, -2) / math.sqrt(queries.shape[-1])


def relative_errors(
    rope_function: Callable[..., ArrayLike],
    q: ArrayLike,
    k: ArrayLike,
    offsets: ArrayLike,
    shifts: ArrayLike,
) -> tuple[float, float]:
    """Test whether a rotary function makes scores depend on the offset, and on it alone.

    The same two vectors are used at every place, so that only positions change: the query stands
    at position ``offset``, the key at 0; then both move together by a shift. A score is the plain
    dot product of the two rotated vectors, not divided by sqrt(d).

    Parameters
    ----------
    rope_function : callable
        Called as ``rope_function(x, positions)`` with ``x`` of shape (m, d), positions (m,).
    q, k : (d,) array_like
        The query and the key.
    offsets : (n,) array_like
        Distances between query and key.
    shifts : (m,) array_like
        How far both are moved together.

    Returns
    -------
    shift_error : float
        Largest absolute change of a score, over all offsets and shifts, between the query at
        ``offset`` with the key at 0 and the query at ``offset + shift`` with the key at
        ``shift``. Zero, up to rounding, for a relative encoding.
    distance_effect : float
        Largest absolute difference between the unshifted scores of two offsets. Zero for a
        function that ignores positions.

    Raises
    ------
    ValueError
        If ``q`` and ``k`` are not vectors of one length, offsets or shifts are empty, or the
        function changes the shape of its input.

    References
    ----------
    Su et al. (2021), "RoFormer", section 3.1, equation 11: the property that is tested.

    Examples
    --------
    >>> q, k = np.array([1.0, 2.0, 3.0, 4.0]), np.array([4.0, -1.0, 2.0, 0.5])
    >>> shift_error, distance_effect = relative_errors(rope, q, k, [0, 3, 7], [10, 100])
    >>> bool(shift_error < 1e-12), round(distance_effect, 2)
    (True, 6.88)
    """
    q, k = validate.tensor(q, "q"), validate.tensor(k, "k")
    validate.same_shape(q.shape, (q.size,), "q")
    validate.same_shape(k.shape, (q.size,), "k")
    offsets = validate.non_empty(validate.real_array(offsets, "offsets"), "offsets").ravel()
    shifts = validate.non_empty(validate.real_array(shifts, "shifts"), "shifts").ravel()

    def rotated(vector: NDArray, positions: NDArray) -> NDArray:
        rows = np.tile(vector, (len(positions), 1))
        result = validate.tensor(rope_function(rows, positions), "the function's output")
        validate.same_shape(result.shape, (len(positions), q.size), "the function's output")
        return result

    def scores(shift: float) -> NDArray:
        return rotated(q, offsets + shift) @ rotated(k, np.array([shift]))[0]

    unshifted = scores(0.0)
    # np.max, because Python's max loses a nan.
    shift_error = np.max([np.abs(scores(shift) - unshifted).max() for shift in shifts])
    return float(shift_error), float(np.ptp(unshifted))
