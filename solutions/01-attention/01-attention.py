# %% [markdown]
# # Why position must be added
#
# {{facts}}
#
# When you are done, you can
#
# - turn scores into weights without overflow;
# - write self-attention, with and without a causal mask;
# - measure whether a function sees the order of its input.
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
