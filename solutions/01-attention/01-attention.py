# %% [markdown]
# # Why position must be added
#
# {{facts}}
#
# When you are done, you can
#
# - turn scores into weights without overflow;
# - write self-attention, with and without a causal mask;
# - measure whether a function sees the order of its input, and tell invariant from equivariant;
# - say what the causal mask tells a model about order, and from which layer on.
#
# Before you start: you can multiply matrices in NumPy and you know what broadcasting does. Read
# [the chapter]({{site}}/01-attention.html) first.
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

# %% [markdown]
# ## 1. `softmax`
#
# {{task}}
#
# Turn scores into weights: each is positive, and along one axis they sum to one. Large scores
# such as 1000 must not overflow, and a score of minus infinity gets the weight 0.
#
# <details><summary>Hint 1</summary>
#
# The exponential of 1000 is more than a float can hold. What happens to the weights when the same
# number is subtracted from all scores?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Subtract the largest score of each slice. `keepdims=True` keeps the reduced axis, so that the
# result still broadcasts against the scores, whatever the axis.
#
# </details>


# %%
def softmax(scores, axis=-1):
    """Turn scores into weights that are positive and sum to one along an axis.

    Parameters
    ----------
    scores : ndarray
        Real scores of any shape; ``-inf`` stands for a forbidden entry.
    axis : int, default -1
        The axis along which the weights sum to one.

    Returns
    -------
    ndarray
        Weights, in the shape of ``scores``.

    Examples
    --------
    >>> softmax(np.array([0.0, 0.0, 1000.0])).tolist()
    [0.0, 0.0, 1.0]
    """
    ### BEGIN SOLUTION
    scores = np.asarray(scores, dtype=float)
    exponentials = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return exponentials / exponentials.sum(axis=axis, keepdims=True)
    ### END SOLUTION


# %%
check("softmax")

# %%
grade("softmax")

# %% [markdown]
# ## 2. `self_attention`
#
# {{task}}
#
# Let every token look at every other token. Project the tokens to queries, keys and values; score
# each query against each key; turn each row of scores into weights; average the values with them.
# With `causal=True`, token t looks at the tokens 0 to t only. You may call your `softmax`.
#
# <details><summary>Hint 1</summary>
#
# The scores have one row for each query and one column for each key, and they are divided by the
# square root of the width of one key. For a batch, swap the last two axes of the keys; `.T` would
# turn all axes round.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Mask before the softmax: a forbidden score of minus infinity becomes the weight 0, and the rest
# of the row still sums to one. `np.tri(n, dtype=bool)` is True on and below the diagonal.
#
# </details>


# %%
def self_attention(x, w_q, w_k, w_v, *, causal=False):
    """Let every row of a sequence look at every other row.

    Parameters
    ----------
    x : (..., n, d_model) ndarray
        A sequence of n token vectors, or a batch of them.
    w_q, w_k : (d_model, d_k) ndarray
        Projections to queries and keys.
    w_v : (d_model, d_v) ndarray
        Projection to values.
    causal : bool, default False
        Whether row t may look only at rows 0..t.

    Returns
    -------
    output : (..., n, d_v) ndarray
        The values, averaged with the weights.
    weights : (..., n, n) ndarray
        Row i holds how much token i looks at each token; rows sum to one.

    Examples
    --------
    >>> output, weights = self_attention(np.eye(3), np.eye(3), np.eye(3), np.eye(3), causal=True)
    >>> weights.round(2).tolist()
    [[1.0, 0.0, 0.0], [0.36, 0.64, 0.0], [0.26, 0.26, 0.47]]
    """
    ### BEGIN SOLUTION
    x = np.asarray(x, dtype=float)
    queries, keys, values = x @ w_q, x @ w_k, x @ w_v
    scores = queries @ np.swapaxes(keys, -1, -2) / np.sqrt(keys.shape[-1])
    if causal:
        scores = np.where(np.tri(x.shape[-2], dtype=bool), scores, -np.inf)
    weights = softmax(scores)
    return weights @ values, weights
    ### END SOLUTION


# %%
check("self_attention")

# %%
grade("self_attention")

# %% [markdown]
# ## 3. `equivariance_gap`
#
# {{task}}
#
# A function of a sequence is equivariant when it does not matter whether you reorder the rows
# before it or after it. Measure how far a function is from that: the largest absolute difference
# between the two. A gap of zero means that the function cannot see the order.
#
# <details><summary>Hint 1</summary>
#
# There are two ways from `x` to the result: permute the rows of the input, or permute the rows of
# the output. Indexing with `[permutation]` does either.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Use the same permutation on both ways, not its inverse on one of them. Take absolute values
# before you look for the largest, and return a plain float.
#
# </details>


# %%
def equivariance_gap(function, x, permutation):
    """Measure how far a function is from commuting with a permutation of rows.

    Parameters
    ----------
    function : callable
        Takes an (n, d) array and returns one (n, ...) array.
    x : (n, d) ndarray
        The input, one row for each position.
    permutation : (n,) ndarray of int
        Each of 0..n-1 once: row i of the permuted input is row ``permutation[i]`` of ``x``.

    Returns
    -------
    float
        Largest absolute difference of ``function(x[permutation])`` and
        ``function(x)[permutation]``.

    Examples
    --------
    >>> x, permutation = np.arange(6.0).reshape(3, 2), np.array([1, 2, 0])
    >>> equivariance_gap(np.tanh, x, permutation)
    0.0
    >>> equivariance_gap(lambda rows: np.cumsum(rows, axis=0), x, permutation)
    8.0
    """
    ### BEGIN SOLUTION
    x, permutation = np.asarray(x), np.asarray(permutation)
    permuted_before = np.asarray(function(x[permutation]))
    permuted_after = np.asarray(function(x))[permutation]
    return float(np.abs(permuted_before - permuted_after).max())
    ### END SOLUTION


# %%
check("equivariance_gap")

# %%
grade("equivariance_gap")

# %% [markdown]
# ## 4. `classify_symmetry`
#
# {{task}}
#
# Say in one word what a function does when the rows of its input change places. It is "invariant"
# if its output stays as it is for all the permutations given. If not, it is "equivariant" if the
# output has one row for each position and they move along with those of the input, for every one of
# the permutations. Otherwise it is "neither", also where the output stays as it is for some
# permutations and moves along for the others. Test in this order: a function may be both, and is
# called invariant then.
#
# One row for each position may also be a single number each, or a matrix. The output may also be
# pooled, without an axis for positions: a vector, a matrix or a single number. Two outputs count as
# equal if they differ by rounding alone.
#
# <details><summary>Hint 1</summary>
#
# One permutation proves nothing: mixing each row with its two neighbours, alike on both sides,
# commutes with reversal. Which of Python's `any` and `all` says what you mean?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `np.allclose` compares with a tolerance. Before you index an output with a permutation, see
# whether its first axis has as many entries as `x` has rows; a single number, as an array, has no
# axis at all.
#
# </details>


# %%
def classify_symmetry(function, x, permutations):
    """Say how a function answers when the rows of its input change places.

    Parameters
    ----------
    function : callable
        Takes an (n, d) array and returns an array, with one row for each position or without.
    x : (n, d) ndarray
        The input, one row for each position.
    permutations : (m, n) ndarray of int
        One or more permutations of 0..n-1: row i of the permuted input is row ``permutation[i]``
        of ``x``.

    Returns
    -------
    str
        "invariant", else "equivariant", else "neither", tested in this order over all the
        permutations.

    Examples
    --------
    >>> x, permutations = np.arange(6.0).reshape(3, 2), np.array([[1, 2, 0], [0, 2, 1]])
    >>> classify_symmetry(lambda rows: rows.mean(axis=0), x, permutations)
    'invariant'
    >>> classify_symmetry(np.tanh, x, permutations)
    'equivariant'
    >>> classify_symmetry(lambda rows: np.cumsum(rows, axis=0), x, permutations)
    'neither'
    """
    ### BEGIN SOLUTION
    output = np.asarray(function(x))
    has_rows = output.ndim > 0 and len(output) == len(x)
    stays, moves_along = True, has_rows
    for permutation in permutations:
        other = np.asarray(function(x[permutation]))
        stays = stays and np.allclose(other, output)
        moves_along = moves_along and np.allclose(other, output[permutation])
    if stays:
        return "invariant"
    return "equivariant" if moves_along else "neither"
    ### END SOLUTION


# %%
check("classify_symmetry")

# %%
grade("classify_symmetry")

# %% [markdown]
# ## 5. `causal_mean`
#
# {{task}}
#
# Average each row with all rows before it: row t of the result is the mean of rows 0 to t. This is
# what causal attention computes when all its scores are equal. `x` may be a batch of sequences, and
# each is averaged for itself. It may also hold integers; their means need not be integers.
#
# <details><summary>Hint 1</summary>
#
# Row 0 of the result is row 0 of `x`. Row 1 is half the sum of two rows. How many rows does row t
# share its sum among?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `np.cumsum` adds up along an axis that you name; counted from the end, that of the tokens is -2.
# Divide by a column of counts, one for each row, so that it lines up with the rows and not with
# the features.
#
# </details>


# %%
def causal_mean(x):
    """Average every row with all rows before it.

    Parameters
    ----------
    x : (..., n, d) ndarray
        A sequence of n vectors, or a batch of them.

    Returns
    -------
    (..., n, d) ndarray
        Row t is the mean of rows 0..t.

    Examples
    --------
    >>> causal_mean(np.array([[1.0], [0.0], [0.0], [0.0]])).round(4).tolist()
    [[1.0], [0.5], [0.3333], [0.25]]
    """
    ### BEGIN SOLUTION
    lower = np.tri(x.shape[-2])
    weights = lower / lower.sum(axis=-1, keepdims=True)
    return weights @ x
    ### END SOLUTION


# %%
check("causal_mean")

# %%
grade("causal_mean")

# %% [markdown]
# ## 6. `prefix_order_gap`
#
# {{task}}
#
# What does the last token notice when the tokens before it are put in another order? Apply all the
# layers of self-attention one after the other, each to the output of the one before it and with
# nothing in between: once to `x`, and once to `x` with the tokens before the last one permuted. The
# last token stays where it is. Return how much its output changes: the largest absolute
# difference of the two, in a batch over all its sequences. The array `x` that you are given stays
# as it is. You may call your `self_attention`.
#
# <details><summary>Hint 1</summary>
#
# `permutation` has one entry less than `x` has tokens. To permute the tokens before the last one
# with it and keep the last one, which list of row numbers do you need?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `self_attention` returns two values; the next layer takes the first. Pass `causal` on to each
# layer. Counted from the end, the tokens' axis is -2, also in a batch: `x[..., order, :]`.
#
# </details>


# %%
def prefix_order_gap(x, layers, permutation, *, causal):
    """Measure how much the last token notices of the order of the tokens before it.

    Parameters
    ----------
    x : (..., n, d) ndarray
        A sequence of n token vectors, or a batch of them.
    layers : sequence of (w_q, w_k, w_v)
        Weights of one or more layers of ``self_attention``; each works on the output of the one
        before it.
    permutation : (n - 1,) ndarray of int
        Each of 0..n-2 once: row i of the new order is row ``permutation[i]`` of ``x``.
    causal : bool
        Whether token t may look only at tokens 0..t.

    Returns
    -------
    float
        Largest absolute change of the last token's output.

    Examples
    --------
    >>> x = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> layers, permutation = [(np.eye(2), np.eye(2), np.eye(2))] * 2, np.array([1, 2, 0])
    >>> round(prefix_order_gap(x, layers, permutation, causal=True), 3)
    0.158
    >>> prefix_order_gap(x, layers, permutation, causal=False) < 1e-12
    True
    """
    ### BEGIN SOLUTION
    order = np.append(permutation, x.shape[-2] - 1)
    before, after = x, x[..., order, :]
    for w_q, w_k, w_v in layers:
        before, _ = self_attention(before, w_q, w_k, w_v, causal=causal)
        after, _ = self_attention(after, w_q, w_k, w_v, causal=causal)
    return float(np.abs(after - before)[..., -1, :].max())
    ### END SOLUTION


# %%
check("prefix_order_gap")

# %%
grade("prefix_order_gap")
