"""Rotary position embedding (RoPE), and how to test that it is relative (chapter 4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from posenc import _validate as validate
from posenc.sinusoidal import (
    PAIR_TYPES,
    complex_pairs,
    inverse_frequencies,
    pair_columns,
    repeated_turns,
)

# Pairs are turned by so many angles at a time, so that these stay in the cache.
BLOCK_PAIRS = 2**16


def rope(
    x: ArrayLike,
    positions: ArrayLike,
    *,
    base: float = 10_000.0,
    layout: str = "interleaved",
    rotary_dim: int | None = None,
    frequencies: ArrayLike | None = None,
    out: NDArray | None = None,
) -> NDArray[np.floating]:
    """Rotate each pair of dimensions by an angle that grows with the position.

    Parameters
    ----------
    x : (..., seq_len, d) array_like
        Queries or keys; ``d`` is the head dimension.
    positions : array_like
        Real positions: 1-D of length ``seq_len``, or with one axis for each of ``x``'s but the
        last. For ``x`` of (batch, heads, seq, d), positions of a batch are (batch, 1, seq).
        Angles are formed in float64, whatever the dtype of ``x``.
    base : float, default 10_000.0
        Base of the frequencies; others call it rope_theta. Not used where frequencies are given.
    layout : {'interleaved', 'half'}
        Whether pair i is dimensions (2i, 2i + 1), as in RoFormer, Meta's code and GPT-J, or
        (i, i + rotary_dim / 2), as in GPT-NeoX and Hugging Face.
    rotary_dim : int, optional
        How many of the first dimensions are rotated, even; all ``d`` by default. The rest is
        passed on as it is. Pair i then turns by ``base ** (-2 i / rotary_dim)``;
        :func:`partial_frequencies` names the other convention.
    frequencies : (rotary_dim / 2,) array_like, optional
        Radians per position of each pair, in place of those that follow from ``base``.
    out : (..., seq_len, d) ndarray, optional
        Array to fill instead of a new one. It may be ``x`` itself, which is then overwritten.

    Returns
    -------
    (..., seq_len, d) ndarray
        The rotated vectors, of the same norm; ``out`` itself where it was given. Floats keep
        their dtype, integers become float64. float16 is rotated in float64 and rounded once.

    Raises
    ------
    ValueError
        If the rotated size is odd, the positions do not fit ``x``, ``base`` is not positive, the
        layout is unknown, or ``out`` has another shape or overlaps ``x`` in part.
    TypeError
        If ``x`` or the positions are not real numbers.

    References
    ----------
    Su et al. (2021), "RoFormer: Enhanced Transformer with Rotary Position Embedding",
    section 3.2.2, equation 15; equation 12 for a pair as a complex number.

    Examples
    --------
    >>> rope([[1.0, 2.0, 3.0, 4.0]], [1]).round(4).tolist()
    [[-1.1426, 1.9221, 2.9599, 4.0298]]
    >>> rope([[1.0, 2.0, 3.0, 4.0]], [1], layout="half").round(4).tolist()
    [[-1.9841, 1.9599, 2.4624, 4.0198]]
    >>> rope([[1.0, 2.0, 3.0, 4.0]], [1], rotary_dim=2).round(4).tolist()
    [[-1.1426, 1.9221, 3.0, 4.0]]
    """
    x = validate.tensor(x, "x", min_ndim=2)
    positions = validate.aligned_positions(positions, x.shape)
    layout = validate.layout_name(layout)
    width = validate.rotary_size(rotary_dim, x.shape[-1])
    if frequencies is None:
        frequencies = _frequencies(width, validate.positive(base, "base"))
    else:
        frequencies = validate.pair_frequencies(frequencies, width)
    out = np.empty_like(x) if out is None else validate.rotated_output(out, x)

    if width == x.shape[-1]:
        _rotate(x, positions, frequencies, layout, out)
    else:
        if out is not x:
            out[..., width:] = x[..., width:]
        _rotate(x[..., :width], positions, frequencies, layout, out[..., :width])
    return out


@lru_cache(maxsize=32)
def _frequencies(width: int, base: float) -> NDArray[np.float64]:
    """Keep the frequencies of the last few sizes: a decode step is as short as computing them."""
    return inverse_frequencies(width, base=base)


def _rotate(
    x: NDArray, positions: NDArray, frequencies: NDArray, layout: str, out: NDArray
) -> None:
    """Multiply every pair, as a complex number, by exp(i position w), a block of rows at a time."""
    read, write = complex_pairs(x, layout), complex_pairs(out, layout)
    direct = read is not None and write is not None
    angles = math.prod(positions.shape[:-1]) * len(frequencies)
    size = max(1, BLOCK_PAIRS // max(1, angles))
    begin = 0
    for turn in _turns(positions, frequencies, size, PAIR_TYPES.get(x.dtype, complex)):
        rows = (..., slice(begin, begin + size), slice(None))
        if direct:
            np.multiply(read[rows], turn, out=write[rows])
        else:
            _rotate_block(x[rows], turn, layout, out[rows])
        begin += size


def _rotate_block(x: NDArray, turn: NDArray, layout: str, out: NDArray) -> None:
    """Write x cos + partner sin: real numbers, for pairs that cannot be seen as complex ones."""
    dtype = x.dtype if x.dtype in (np.float32, np.longdouble) else np.float64
    cosines, sines = np.empty((2, *turn.shape[:-1], x.shape[-1]), dtype)
    first, second = pair_columns(cosines, layout)
    first[...] = second[...] = turn.real
    first, second = pair_columns(sines, layout)
    first[...], second[...] = -turn.imag, turn.imag

    # Leading axes are taken one by one as far as what is left is more than a block.
    taken = 0
    while taken < x.ndim - 2 and math.prod(x.shape[taken:]) > 2 * BLOCK_PAIRS:
        taken += 1
    if taken:
        cosines, sines = (np.broadcast_to(factors, x.shape) for factors in (cosines, sines))
    product, partner = np.empty((2, *x.shape[taken:]), dtype)
    first, second = pair_columns(partner, layout)
    for index in np.ndindex(x.shape[:taken]) if taken else [...]:
        second[...], first[...] = pair_columns(x[index], layout)
        np.multiply(partner, sines[index], out=partner)
        np.multiply(x[index], cosines[index], out=product)
        np.add(product, partner, out=out[index], casting="same_kind")


def _turns(
    positions: NDArray, frequencies: NDArray, size: int, dtype: DTypeLike
) -> Iterator[NDArray[np.complexfloating]]:
    """Yield exp(i position w) for ``size`` positions at a time.

    Where positions go in equal steps, the first block is built by doubling, and every other one
    is that block, turned as a whole.
    """
    length = positions.shape[-1]
    if length > size and positions.ndim == 1:
        step = positions[1] - positions[0]
        if np.array_equal(positions, positions[0] + step * np.arange(length)):
            powers = range(max(1, (size - 1).bit_length()))
            near = repeated_turns([_turn(2**power * step, frequencies) for power in powers], size)
            block = np.empty(near.shape, dtype)
            for begin in range(0, length, size):
                rows = min(size, length - begin)
                turn = _turn(positions[begin], frequencies)
                yield np.multiply(turn, near[:rows], out=block[:rows])
            return
    for begin in range(0, length, size):
        yield _turn(positions[..., begin : begin + size], frequencies, dtype)


def _turn(
    positions: NDArray, frequencies: NDArray, dtype: DTypeLike = complex
) -> NDArray[np.complexfloating]:
    angles = positions[..., np.newaxis] * frequencies
    turn = np.empty(angles.shape, dtype)
    turn.real, turn.imag = np.cos(angles), np.sin(angles)
    return turn


def partial_frequencies(
    d: int, rotary_dim: int, *, base: float = 10_000.0, denominator: str = "rotary_dim"
) -> NDArray[np.float64]:
    """Return the frequencies of the rotated dimensions when only some of ``d`` are rotated.

    Two conventions are in use, and weights trained with one are useless with the other.

    Parameters
    ----------
    d : int
        Head dimension, even.
    rotary_dim : int
        How many dimensions are rotated, even and at most ``d``.
    base : float, default 10_000.0
        Base of the frequencies.
    denominator : {'rotary_dim', 'd'}
        What the exponent ``-2 i / denominator`` is divided by. ``'rotary_dim'`` spreads the
        whole range of frequencies over the rotated dimensions, as in GPT-J and GPT-NeoX.
        ``'d'`` takes the first, fast frequencies of the whole head; padded with zeros to
        ``d / 2`` it is what Hugging Face calls proportional.

    Returns
    -------
    (rotary_dim / 2,) ndarray
        Radians per position, for the ``frequencies`` of :func:`rope`.

    Raises
    ------
    ValueError
        If a size is odd or out of range, ``base`` is not positive or the denominator unknown.

    References
    ----------
    Black et al. (2022), "GPT-NeoX-20B", section 2.1, for rotating a part of the dimensions.

    Examples
    --------
    >>> partial_frequencies(8, 4).tolist()
    [1.0, 0.01]
    >>> partial_frequencies(8, 4, denominator="d").round(6).tolist()
    [1.0, 0.1]
    """
    d = validate.even_size(d, "d")
    rotary_dim = validate.rotary_size(rotary_dim, d)
    denominator = validate.choice(denominator, ("rotary_dim", "d"), "denominator")
    over = d if denominator == "d" else rotary_dim
    return inverse_frequencies(over, base=base)[: rotary_dim // 2]


def rope_2d(
    x: ArrayLike,
    rows: ArrayLike,
    columns: ArrayLike,
    *,
    base: float = 10_000.0,
    layout: str = "interleaved",
    out: NDArray | None = None,
) -> NDArray[np.floating]:
    """Rotate the patches of an image: one half of the dimensions by row, the other by column.

    Parameters
    ----------
    x : (..., n_patches, d) array_like
        Queries or keys; ``d`` must be a multiple of 4.
    rows : array_like
        Row of each patch, in the forms that :func:`rope` takes positions in. Turns the first
        ``d / 2`` dimensions.
    columns : array_like
        Column of each patch. Turns the last ``d / 2`` dimensions.
    base : float, default 10_000.0
        Base of the frequencies, ``base ** (-4 i / d)`` in both halves. Images are small, so that
        Heo et al. use 100.
    layout : {'interleaved', 'half'}
        How pairs lie within each half.
    out : (..., n_patches, d) ndarray, optional
        Array to fill instead of a new one; may be ``x`` itself, which is then overwritten.

    Returns
    -------
    (..., n_patches, d) ndarray
        The rotated vectors. Scores depend on differences of rows and of columns alone.

    Raises
    ------
    ValueError
        If ``d`` is no multiple of 4, or rows or columns do not fit ``x``.

    References
    ----------
    Heo et al. (2024), "Rotary Position Embedding for Vision Transformer", section 3.2, axial
    frequencies.

    Examples
    --------
    >>> rows, columns = np.divmod(np.arange(6), 3)  # a picture of 2 x 3 patches, row by row
    >>> rope_2d(np.ones((6, 4)), rows, columns)[1].round(4).tolist()
    [1.0, 1.0, -0.3012, 1.3818]
    """
    x = validate.tensor(x, "x", min_ndim=2)
    d = validate.even_size(x.shape[-1], "the last axis of x")
    half = validate.multiple(d, 4, "the last axis of x", "pairs for rows and for columns") // 2
    rows = validate.aligned_positions(rows, x.shape, "rows")
    columns = validate.aligned_positions(columns, x.shape, "columns")
    out = np.empty_like(x) if out is None else validate.rotated_output(out, x)
    options = {"base": base, "layout": layout}
    rope(x[..., :half], rows, **options, out=out[..., :half])
    rope(x[..., half:], columns, **options, out=out[..., half:])
    return out


def rope_scores(
    queries: ArrayLike,
    keys: ArrayLike,
    query_positions: ArrayLike,
    key_positions: ArrayLike,
    *,
    base: float = 10_000.0,
    layout: str = "interleaved",
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
    layout : {'interleaved', 'half'}
        How pairs of dimensions lie, as in :func:`rope`.

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
    validate.aligned_positions(query_positions, queries.shape, "query_positions")
    validate.aligned_positions(key_positions, keys.shape, "key_positions")
    rotated_queries = rope(queries, query_positions, base=base, layout=layout)
    rotated_keys = rope(keys, key_positions, base=base, layout=layout)
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
    rope_function = validate.function(rope_function, "rope_function")
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


def convert_layout(weight: ArrayLike, n_heads: int, *, to: str) -> NDArray:
    """Reorder the rows of a query or key projection for the other layout of RoPE.

    Checkpoints trained with one layout give the same scores in code of the other, once the output
    dimensions of both projections are reordered within each head. Values have no layout.

    Parameters
    ----------
    weight : (n_heads * d, ...) array_like
        Weight, (n_heads * d, d_model) as checkpoints store it, or bias of a projection. ``d`` is
        the head dimension; for grouped queries pass the number of key heads with keys.
    n_heads : int
        Number of heads.
    to : {'interleaved', 'half'}
        Layout of the result; the input is in the other one.

    Returns
    -------
    (n_heads * d, ...) ndarray
        A reordered copy, of the same dtype.

    Raises
    ------
    ValueError
        If the rows do not divide into heads of an even dimension, or the layout is unknown.

    References
    ----------
    Su et al. (2021), "RoFormer", section 3.2.2, equation 15, pairs neighbours; Black et al. (2022),
    "GPT-NeoX-20B", section 2.1, describes the code that pairs halves.

    Examples
    --------
    >>> convert_layout([0, 1, 2, 3, 10, 11, 12, 13], 2, to="half").tolist()
    [0, 2, 1, 3, 10, 12, 11, 13]
    """
    validate.tensor(weight, "weight", min_ndim=1)
    weight = np.asarray(weight)
    n_heads = validate.integer(n_heads, "n_heads", minimum=1)
    to = validate.layout_name(to)
    rows = validate.integer(len(weight), "the first axis of weight", minimum=1)
    reason = "pairs of dimensions in every head"
    d = validate.multiple(rows, 2 * n_heads, "the first axis of weight", reason) // n_heads

    pairs = (d // 2, 2) if to == "half" else (2, d // 2)
    heads = weight.reshape(n_heads, *pairs, *weight.shape[1:])
    return heads.swapaxes(1, 2).reshape(weight.shape).copy()


class KeyCache:
    """Rotated keys of a sequence that grows: positions continue where the cache ended.

    Feeding a whole sequence at once, or a first part and then token by token, gives the same keys.

    Parameters
    ----------
    start : int, default 0
        Position of the first token.
    **options
        ``base``, ``layout``, ``rotary_dim`` and ``frequencies`` of :func:`rope`.

    Attributes
    ----------
    position : int
        Position of the next token.

    Raises
    ------
    ValueError
        If an option has another name.

    References
    ----------
    Su et al. (2021), "RoFormer", section 3.2.2: a key is rotated by its own position alone, so
    that it can be kept.

    Examples
    --------
    >>> cache = KeyCache()
    >>> _, keys = cache.extend(np.ones((5, 8)), np.ones((5, 8)))
    >>> query, keys = cache.extend(np.ones((1, 8)), np.ones((1, 8)))
    >>> cache.position, keys.shape, bool(np.allclose(query, rope(np.ones((1, 8)), [5])))
    (6, (6, 8), True)
    """

    def __init__(self, start: int = 0, **options: object) -> None:
        self.position: int = validate.integer(start, "start", minimum=-(2**53), maximum=2**53)
        for name in options:
            validate.choice(name, ("base", "layout", "rotary_dim", "frequencies"), "an option")
        self._options = options
        self._buffer: NDArray | None = None
        self._begin = self._end = 0

    def extend(
        self, queries: ArrayLike, keys: ArrayLike
    ) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """Rotate the next tokens' queries and keys, and keep the keys.

        Parameters
        ----------
        queries, keys : (..., n, d) array_like
            The next n tokens before rotation; heads of queries and keys may differ in number.

        Returns
        -------
        queries : (..., n, d) ndarray
            The queries, rotated by their positions.
        keys : (..., m, d) ndarray
            All m kept keys, rotated: a read-only view, valid until the next call.

        Raises
        ------
        ValueError
            If queries and keys differ in length, or keys in shape from those before.
        """
        queries = validate.tensor(queries, "queries", min_ndim=2)
        keys = validate.tensor(keys, "keys", min_ndim=2)
        new = keys.shape[-2]
        validate.same_axis(queries.shape[-2], new, "number of queries must be that of keys")
        after = validate.integer(
            self.position + new, "position after these tokens", minimum=-(2**53), maximum=2**53
        )
        buffer = self._buffer
        if buffer is None:
            buffer = np.empty_like(keys, shape=(*keys.shape[:-2], 0, keys.shape[-1]))
        expected = (*buffer.shape[:-2], new, buffer.shape[-1])
        validate.same_shape(keys.shape, expected, "keys")

        positions = np.arange(self.position, after)
        rotated = rope(queries, positions, **self._options)
        # Only now, so that a call that was refused leaves the cache as it was.
        self._buffer = buffer
        end = self._end + new
        if end > self._buffer.shape[-2]:
            # Doubling keeps the cost of a token constant on average.
            kept = self._buffer[..., self._begin : self._end, :]
            shape = (*keys.shape[:-2], 2 * (end - self._begin), keys.shape[-1])
            self._buffer = np.empty_like(self._buffer, shape=shape)
            self._buffer[..., : kept.shape[-2], :] = kept
            self._begin, self._end, end = 0, kept.shape[-2], kept.shape[-2] + new
        rope(keys, positions, **self._options, out=self._buffer[..., self._end : end, :])
        self._end = end
        self.position = after
        kept = self._buffer[..., self._begin : self._end, :]
        kept.flags.writeable = False
        return rotated, kept

    def drop(self, count: int) -> None:
        """Forget the oldest keys; positions of later tokens stay what they were.

        Parameters
        ----------
        count : int
            Number of keys to forget, at most as many as are kept.

        Raises
        ------
        ValueError
            If fewer than ``count`` keys are kept.
        """
        kept = self._end - self._begin
        self._begin += validate.integer(count, "count", minimum=0, maximum=kept)
