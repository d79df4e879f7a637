# %% [markdown]
# # Learned versus RoPE
#
# {{facts}}
#
# When you are done, you can
#
# - look up positions in a trained table, and refuse those that it was not trained for;
# - say which rows of the table learn from a batch, and how much;
# - rotate queries and keys as RoPE does, in both layouts;
# - test whether a rotary function makes scores depend on the distance, and on the distance alone;
# - convert weights that were trained with one layout for code that uses the other.
#
# Before you start: you have solved [the rotation identity]({{site}}/03-rotation.html). Read the
# chapters [on learned positions]({{site}}/04-learned.html) and [on RoPE]({{site}}/04-rope.html)
# first.
#
# {{how}}

# %%
SITE, VERSION = "{{site}}", "{{version}}"
try:
    from posenc.grading import check, grade
except ImportError:
    from IPython import get_ipython

    get_ipython().run_line_magic("pip", f"install --quiet {SITE}/posenc-{VERSION}-py3-none-any.whl")
    from posenc.grading import check, grade

import numpy as np

from posenc import inverse_frequencies

# %% [markdown]
# ## 1. `lookup`
#
# {{task}}
#
# A learned encoding is a table with one trained row for each position. Return the rows of the
# positions asked for, which may be a single number, a list or an array. The table has no other
# rows: a position before its start or past its end is an error.
#
# <details><summary>Hint 1</summary>
#
# Indexing a table with an array of integers returns one row for each of them, in the array's
# shape.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# NumPy raises an IndexError past the end by itself, but it counts -1 from the end. That is the
# case which you must refuse.
#
# </details>


# %%
def lookup(table, positions):
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
        One row for each position: ``positions.shape + (d_model,)``.

    Raises
    ------
    IndexError
        If a position is negative or not below ``max_len`` (a ValueError is fine too).

    Examples
    --------
    >>> lookup([[1.0, 2.0], [3.0, 4.0]], [1, 1, 0]).tolist()
    [[3.0, 4.0], [3.0, 4.0], [1.0, 2.0]]
    """
    ### BEGIN SOLUTION
    table, positions = np.asarray(table), np.asarray(positions)
    outside = (positions < 0) | (positions >= len(table))
    if outside.any():
        raise IndexError(f"the table has rows 0 to {len(table) - 1}, got {positions[outside][0]}")
    return table[positions]
    ### END SOLUTION


# %%
check("lookup")

# %%
grade("lookup")

# %% [markdown]
# ## 2. `lookup_gradient`
#
# {{task}}
#
# Send gradients back through the lookup. `upstream` holds one row for each position that was
# looked up: how the loss changes with the row that came back. Return how the loss changes with
# each row of the table. A row that was looked up several times gets the sum of its gradients,
# whether it repeats within one sequence or between the sequences of a batch; a row that was not
# looked up gets zeros.
#
# The axes of a batch come first. With two sequences of five positions and rows of eight numbers,
# `upstream` has the shape (2, 5, 8). `positions` has the shape (2, 5) where each sequence has
# positions of its own, or (5,) where both share one list. The batch may also have more axes than
# one. A single position comes as a plain number, 3 for example, which has no methods such as
# `.min()`; its `upstream` is one row. As in `lookup`, raise an IndexError or a ValueError where a
# position is outside the table.
#
# <details><summary>Hint 1</summary>
#
# Forget the batch first: give the positions the shape of `upstream` without its last axis, then
# make one long list of positions and one of rows.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# With an array of indices, `+=` writes once to each row, however often the row occurs. A loop over
# single places adds up, and so does `np.add.at`. A third way is the lookup as a matrix of zeros and
# ones, and its transpose.
#
# </details>


# %%
def lookup_gradient(positions, upstream, max_len):
    """Return the gradient of a loss with respect to the table, given that of the looked-up rows.

    Parameters
    ----------
    positions : (..., n) array_like of int
        The positions that were looked up; a single number too.
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
        If a position is negative or not below ``max_len`` (a ValueError is fine too).

    Examples
    --------
    >>> lookup_gradient([0, 2, 2], [[1.0, 1.0], [2.0, 3.0], [4.0, 5.0]], 4).tolist()
    [[1.0, 1.0], [0.0, 0.0], [6.0, 8.0], [0.0, 0.0]]

    Three sequences that share their two positions:

    >>> lookup_gradient([0, 2], np.ones((3, 2, 1)), 4).tolist()
    [[3.0], [0.0], [3.0], [0.0]]
    """
    ### BEGIN SOLUTION
    positions, upstream = np.asarray(positions), np.asarray(upstream, dtype=float)
    outside = (positions < 0) | (positions >= max_len)
    if outside.any():
        raise IndexError(f"the table has {max_len} rows, got position {positions[outside][0]}")
    places = np.broadcast_to(positions, upstream.shape[:-1]).ravel()
    gradients = upstream.reshape(len(places), -1)
    selection = places[:, np.newaxis] == np.arange(max_len)
    return selection.T @ gradients
    ### END SOLUTION


# %%
check("lookup_gradient")

# %%
grade("lookup_gradient")

# %% [markdown]
# ## 3. `rope`
#
# {{task}}
#
# Rotate each pair of dimensions counter-clockwise by the angle position times frequency. In the
# layout `"interleaved"`, pair i is the columns 2i and 2i + 1; in the layout `"half"`, it is the
# columns i and i + d/2. The frequencies are those of the sinusoidal encoding. Form angles in
# float64: positions may be in the hundreds of thousands. You may call `inverse_frequencies`.
#
# <details><summary>Hint 1</summary>
#
# The two layouts differ in one thing: which columns are the first and which the second members of
# the pairs. Choose them as two slices, and the rest is the same.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# A counter-clockwise rotation by the angle a turns (u, v) into (u cos a - v sin a, u sin a + v
# cos a). Write into a new float array, through the same two slices, so that `x` is left as it is.
#
# </details>


# %%
def rope(x, positions, *, base=10_000.0, layout="interleaved"):
    """Rotate each pair of dimensions by an angle that grows with the position.

    Parameters
    ----------
    x : (..., seq_len, d) array_like
        Queries or keys; ``d`` is the head dimension and must be even.
    positions : array_like
        Real positions: 1-D of length ``seq_len``, or with one axis for each of ``x``'s but the
        last. They may be in the hundreds of thousands, so angles are formed in float64.
    base : float, default 10_000.0
        Base of the frequencies.
    layout : {'interleaved', 'half'}
        Whether pair i is columns (2i, 2i + 1) or columns (i, i + d / 2).

    Returns
    -------
    (..., seq_len, d) ndarray
        The rotated vectors; ``x`` itself is left as it is.

    Raises
    ------
    ValueError
        If ``d`` is odd or the layout is unknown (an IndexError is fine too).

    Examples
    --------
    >>> rope([[1.0, 2.0, 3.0, 4.0]], [1]).round(4).tolist()
    [[-1.1426, 1.9221, 2.9599, 4.0298]]
    >>> rope([[1.0, 2.0, 3.0, 4.0]], [1], layout="half").round(4).tolist()
    [[-1.9841, 1.9599, 2.4624, 4.0198]]
    """
    ### BEGIN SOLUTION
    x = np.asarray(x, dtype=float)
    width = x.shape[-1]
    if width % 2:
        raise ValueError(f"the last axis of x must be even, got {width}")
    if layout == "interleaved":
        first, second = slice(0, None, 2), slice(1, None, 2)
    elif layout == "half":
        first, second = slice(0, width // 2), slice(width // 2, None)
    else:
        raise ValueError(f"layout must be 'interleaved' or 'half', got {layout!r}")

    positions = np.asarray(positions, dtype=float)
    angles = positions[..., np.newaxis] * inverse_frequencies(width, base=base)
    cosines, sines = np.cos(angles), np.sin(angles)
    rotated = np.empty_like(x)
    rotated[..., first] = x[..., first] * cosines - x[..., second] * sines
    rotated[..., second] = x[..., first] * sines + x[..., second] * cosines
    return rotated
    ### END SOLUTION


# %%
check("rope")

# %%
grade("rope")

# %% [markdown]
# ## 4. `rope_scores`
#
# {{task}}
#
# Score every query against every key. Rotate the queries by their positions and the keys by
# theirs, take all dot products, and scale them as attention does. You may call your `rope`.
#
# <details><summary>Hint 1</summary>
#
# Rotation comes first and the product after it: a rotated product of unrotated vectors is
# something else.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Attention divides by the square root of the width of one key. Swap the last two axes of the
# keys, so that a batch works too.
#
# </details>


# %%
def rope_scores(queries, keys, query_positions, key_positions, *, base=10_000.0):
    """Score every query against every key after both were rotated by their own positions.

    Parameters
    ----------
    queries : (..., n, d) ndarray
        Queries before rotation.
    keys : (..., m, d) ndarray
        Keys before rotation.
    query_positions, key_positions : ndarray
        Their positions, as in :func:`rope`.
    base : float, default 10_000.0
        Base of the frequencies.

    Returns
    -------
    (..., n, m) ndarray
        Dot products divided by ``sqrt(d)``.

    Examples
    --------
    >>> query, key = np.array([[1.0, 2.0, 3.0, 4.0]]), np.array([[4.0, -1.0, 2.0, 0.5]])
    >>> near = rope_scores(query, key, np.array([4]), np.array([1]))
    >>> far = rope_scores(query, key, np.array([14]), np.array([11]))
    >>> bool(np.allclose(near, far))
    True
    """
    ### BEGIN SOLUTION
    rotated_queries = rope(queries, query_positions, base=base)
    rotated_keys = rope(keys, key_positions, base=base)
    products = rotated_queries @ np.swapaxes(rotated_keys, -1, -2)
    return products / np.sqrt(rotated_keys.shape[-1])
    ### END SOLUTION


# %%
check("rope_scores")

# %%
grade("rope_scores")

# %% [markdown]
# ## 5. `relative_errors`
#
# {{task}}
#
# Write a test for somebody else's rotary function. Take one query and one key, and let only
# positions change: the query stands at an offset, the key at 0, and then both are moved by the
# same shift. A score is the plain dot product of the two rotated vectors, not divided by sqrt(d).
# Return two numbers: how much a score changes by shifting, which should be nothing, and how much
# scores differ between offsets, which should be something.
#
# <details><summary>Hint 1</summary>
#
# Call `rope_function(x, positions)` with the same row repeated, `np.tile(q, (n, 1))`, so that
# content cannot be mistaken for position.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Write a helper that returns the scores of all offsets for one shift. The first number compares
# the helper's results for a shift and for shift 0; the second looks at shift 0 alone.
#
# </details>


# %%
def relative_errors(rope_function, q, k, offsets, shifts):
    """Test whether a rotary function makes scores depend on the offset, and on it alone.

    A score is the plain dot product of the two rotated vectors, not divided by sqrt(d).

    Parameters
    ----------
    rope_function : callable
        Called as ``rope_function(x, positions)`` with ``x`` of shape (m, d), positions (m,).
    q, k : (d,) ndarray
        The query and the key.
    offsets : (n,) ndarray
        Distances between query and key.
    shifts : (m,) ndarray
        How far both are moved together.

    Returns
    -------
    shift_error : float
        Largest absolute change of a score, over all offsets and shifts, between the query at
        ``offset`` with the key at 0 and the query at ``offset + shift`` with the key at
        ``shift``.
    distance_effect : float
        Largest absolute difference between the unshifted scores of two offsets.

    Examples
    --------
    >>> q, k = np.array([1.0, 2.0, 3.0, 4.0]), np.array([4.0, -1.0, 2.0, 0.5])
    >>> offsets, shifts = np.array([0, 3, 7]), np.array([10, 100])
    >>> shift_error, distance_effect = relative_errors(rope, q, k, offsets, shifts)
    >>> bool(shift_error < 1e-12), round(distance_effect, 2)
    (True, 6.88)
    """
    ### BEGIN SOLUTION
    offsets = np.asarray(offsets, dtype=float)
    queries = np.tile(q, (len(offsets), 1))

    def scores(shift):
        rotated_queries = np.asarray(rope_function(queries, offsets + shift))
        rotated_key = np.asarray(rope_function(np.tile(k, (1, 1)), np.array([float(shift)])))[0]
        return rotated_queries @ rotated_key

    unshifted = scores(0)
    shift_error = max(np.abs(scores(shift) - unshifted).max() for shift in shifts)
    return float(shift_error), float(unshifted.max() - unshifted.min())
    ### END SOLUTION


# %%
check("relative_errors")

# %%
grade("relative_errors")

# %% [markdown]
# ## 6. `convert_layout`
#
# {{task}}
#
# A checkpoint was trained with one layout of RoPE, and your code uses the other. The weight of a
# query or key projection has one row for each dimension of a query or key: d rows for the first
# head, then d for the second, and so on. Reorder the rows within each head, so that the code gets
# its pairs where it looks for them, in the same order and with the same partner first. `to` is the
# layout of the result, and the weight that you get is in the other one. A bias has one axis and is
# reordered in the same way. The weight passed in stays as it is. Refuse an unknown layout, and rows
# that do not divide into heads of an even width.
#
# <details><summary>Hint 1</summary>
#
# Take one head of eight rows and write its pairs down in both layouts. In the interleaved one, pair
# 1 is rows 2 and 3; in the half one, it is rows 1 and 5. So the row that stands at 5 of the half
# layout comes from 3 of the interleaved one.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Make the order as an array of row numbers with one line for each head, and index the weight with
# it at the end: this gives a new array. One direction gathers every other row, the other spreads
# each half over every other place.
#
# </details>


# %%
def convert_layout(weight, n_heads, *, to):
    """Reorder the rows of a query or key projection for the other layout of RoPE.

    Parameters
    ----------
    weight : (n_heads * d, ...) array_like
        Weight or bias of a projection; ``d`` is the head dimension and must be even.
    n_heads : int
        Number of heads.
    to : {'interleaved', 'half'}
        Layout of the result; the input is in the other one.

    Returns
    -------
    (n_heads * d, ...) ndarray
        A reordered copy; ``weight`` itself is left as it is.

    Raises
    ------
    ValueError
        If the rows do not divide into heads of an even dimension, or the layout is unknown (an
        IndexError is fine too).

    Examples
    --------
    >>> convert_layout([0, 1, 2, 3, 10, 11, 12, 13], 2, to="half").tolist()
    [0, 2, 1, 3, 10, 12, 11, 13]
    """
    ### BEGIN SOLUTION
    weight = np.asarray(weight)
    if len(weight) % (2 * n_heads):
        raise ValueError(f"{len(weight)} rows do not make {n_heads} heads of an even dimension")
    order = np.arange(len(weight)).reshape(n_heads, -1)
    half = order.shape[1] // 2
    if to == "half":
        order = np.concatenate([order[:, 0::2], order[:, 1::2]], axis=1)
    elif to == "interleaved":
        order = np.stack([order[:, :half], order[:, half:]], axis=2)
    else:
        raise ValueError(f"to must be 'interleaved' or 'half', got {to!r}")
    return weight[order.ravel()]
    ### END SOLUTION


# %%
check("convert_layout")

# %%
grade("convert_layout")
