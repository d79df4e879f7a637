# %% [markdown]
# # The rotation identity
#
# {{facts}}
#
# When you are done, you can
#
# - move every encoding by an offset with one and the same matrix;
# - do the same without a matrix;
# - say how similar two encodings are from their offset alone;
# - test whether one linear map shifts every row of a table, on rows that were not fitted;
# - measure how much of a matrix of scores its diagonals explain.
#
# Before you start: you have solved [Start here]({{site}}/00-start.html) and [the sinusoidal
# formula]({{site}}/02-sinusoidal.html), and you have met the addition theorems of sine and
# cosine. Read [the chapter]({{site}}/03-rotation.html) first.
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
# ## 1. `shift_matrix`
#
# {{task}}
#
# Write the matrix that moves the encoding of any position p to the encoding of p + offset. It
# depends on the offset alone. It has a block of 2 by 2 on its diagonal for each pair, and zeros
# elsewhere. You may call `inverse_frequencies`.
#
# <details><summary>Hint 1</summary>
#
# Write sin(a + b) and cos(a + b) with the addition theorems, where a is the angle of the position
# and b that of the offset. The four factors of sin a and cos a are the block.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# A pair is stored as (sine, cosine), not as (cosine, sine). So the block is not the
# counter-clockwise rotation matrix, but its transpose. Its angle is the offset times the
# frequency of the pair.
#
# </details>


# %%
def shift_matrix(offset, d_model, *, base=10_000.0):
    """Return the one matrix that moves the encoding of every position by an offset.

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
        ``encoding(p + offset) == matrix @ encoding(p)`` for interleaved sinusoidal encodings.

    Examples
    --------
    >>> from posenc import sinusoidal_encoding
    >>> moved = shift_matrix(3, 8) @ sinusoidal_encoding(5, 8)
    >>> bool(np.allclose(moved, sinusoidal_encoding(8, 8)))
    True
    """
    ### BEGIN SOLUTION
    matrix = np.zeros((d_model, d_model))
    for pair, frequency in enumerate(inverse_frequencies(d_model, base=base)):
        cosine, sine = np.cos(offset * frequency), np.sin(offset * frequency)
        block = slice(2 * pair, 2 * pair + 2)
        matrix[block, block] = [[cosine, sine], [-sine, cosine]]
    return matrix
    ### END SOLUTION


# %%
check("shift_matrix")

# %%
grade("shift_matrix")

# %% [markdown]
# ## 2. `shift_encoding`
#
# {{task}}
#
# Move encodings by an offset without building the matrix and without knowing their positions. You
# may call `inverse_frequencies`.
#
# <details><summary>Hint 1</summary>
#
# Most entries of the matrix are zero. Each result needs the two members of its own pair only.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Take all sines, `[..., 0::2]`, and all cosines, and apply the addition theorems to the whole
# arrays. Write into a new array: the old sines are still needed for the new cosines.
#
# </details>


# %%
def shift_encoding(encoding, offset, *, base=10_000.0):
    """Move encodings by an offset without knowing their positions and without a matrix.

    Parameters
    ----------
    encoding : (..., d_model) ndarray
        Interleaved sinusoidal encodings.
    offset : float
        Number of positions to move; may be negative or fractional.
    base : float, default 10_000.0
        Base of the frequencies.

    Returns
    -------
    (..., d_model) ndarray
        The encodings ``offset`` positions later; ``encoding`` itself is left as it is.

    Examples
    --------
    >>> from posenc import sinusoidal_encoding
    >>> moved = shift_encoding(sinusoidal_encoding([0, 1], 8), 2.5)
    >>> bool(np.allclose(moved, sinusoidal_encoding([2.5, 3.5], 8)))
    True
    """
    ### BEGIN SOLUTION
    encoding = np.asarray(encoding, dtype=float)
    angles = offset * inverse_frequencies(encoding.shape[-1], base=base)
    sines, cosines = encoding[..., 0::2], encoding[..., 1::2]
    shifted = np.empty_like(encoding)
    shifted[..., 0::2] = sines * np.cos(angles) + cosines * np.sin(angles)
    shifted[..., 1::2] = cosines * np.cos(angles) - sines * np.sin(angles)
    return shifted
    ### END SOLUTION


# %%
check("shift_encoding")

# %%
grade("shift_encoding")

# %% [markdown]
# ## 3. `position_kernel`
#
# {{task}}
#
# Multiply the encodings of two positions and sum up: the result depends on how far apart they
# are, and on nothing else. Write this function of the offset. You may call `inverse_frequencies`.
#
# <details><summary>Hint 1</summary>
#
# One pair contributes sin a sin b + cos a cos b. There is an addition theorem for it.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# What is left is one cosine for each pair, of offset times frequency; sum them over the pairs. At
# offset 0 every cosine is 1, so the sum is half of `d_model`.
#
# </details>


# %%
def position_kernel(offsets, d_model, *, base=10_000.0):
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
        One dot product for each offset, in the shape of ``offsets``.

    Examples
    --------
    >>> position_kernel([0, 5, -5], 512).round(1).tolist()
    [256.0, 189.6, 189.6]
    """
    ### BEGIN SOLUTION
    angles = np.asarray(offsets, dtype=float)[..., np.newaxis] * inverse_frequencies(
        d_model, base=base
    )
    return np.cos(angles).sum(axis=-1)
    ### END SOLUTION


# %%
check("position_kernel")

# %%
grade("position_kernel")

# %% [markdown]
# ## 4. `shift_linearity`
#
# {{task}}
#
# Test any table, not only a sinusoidal one: is there *one* linear map that takes each row to the
# row `offset` later? A table of n rows has n - `offset` such pairs of rows. Fit a matrix, without a
# constant, to the first `n_train` pairs by least squares. Then return two errors: of these pairs,
# and of all the pairs that are left. An error is the root of the mean of the squared differences
# over all entries, not over rows.
#
# Tables have 8 columns here. The check asks of each error on which side of 0.01 it lies, not for
# its digits. Mostly that is easy: what lies far below is rounding, and what lies far above is
# chance. But some tables are scaled so that the right error is 0.006, say, or 0.0112. There a sum
# or a mean of another kind falls on the wrong side.
#
# Some cases have fewer pairs to fit than columns. Many maps fit them then, and any of these will
# do; but a method that needs the inverse of a matrix fails there, as there is none.
#
# <details><summary>Hint 1</summary>
#
# Two slices make the pairs: all rows but the last `offset`, and all rows but the first. Row t of
# the one belongs to row t of the other. Only then cut off the first `n_train`.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `np.linalg.lstsq(before, after, rcond=None)[0]` is the matrix that comes nearest to
# `before @ matrix == after`. Fit it once, and use the same matrix on both parts.
#
# </details>


# %%
def shift_linearity(table, offset, n_train):
    """Measure how well one linear map takes every row of a table to a later one.

    Parameters
    ----------
    table : (n, d) ndarray
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

    Examples
    --------
    >>> from posenc import sinusoidal_table
    >>> fit, holdout = shift_linearity(sinusoidal_table(64, 8), 3, 30)
    >>> fit < 1e-2, holdout < 1e-2
    (True, True)
    >>> fit, holdout = shift_linearity(np.random.default_rng(0).normal(size=(64, 8)), 3, 8)
    >>> fit < 1e-2, holdout < 1e-2
    (True, False)
    """
    ### BEGIN SOLUTION
    table = np.asarray(table, dtype=float)
    before, after = table[:-offset], table[offset:]
    matrix = np.linalg.lstsq(before[:n_train], after[:n_train], rcond=None)[0]
    squares = (before @ matrix - after) ** 2
    fit, holdout = np.sqrt(squares[:n_train].mean()), np.sqrt(squares[n_train:].mean())
    return float(fit), float(holdout)
    ### END SOLUTION


# %%
check("shift_linearity")

# %%
grade("shift_linearity")

# %% [markdown]
# ## 5. `toeplitz_r2`
#
# {{task}}
#
# In a matrix of scores, the entries whose column minus row is the same form a diagonal. Say which
# share of the spread of all entries the diagonals explain: 1 - within / total. Here total is the
# sum of the squared differences of all entries from the mean of all. Within is the sum of the
# squared differences of all entries from the mean of their own diagonal. There are as many
# diagonals as rows and columns together, less one. A matrix whose entries are all equal has
# nothing to explain; its answer is 1. Matrices need not be square.
#
# <details><summary>Hint 1</summary>
#
# `np.diagonal(matrix, k)` is the diagonal on which column minus row is k, and k may be negative.
# Which is the smallest k of a matrix with n rows, and which the largest with m columns?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Write a function for the sum of squares about the mean and use it for both: on every diagonal,
# and on the whole matrix. Equal entries come first: `np.max(matrix) == np.min(matrix)` tells.
# Their total need not be exactly 0, for their mean is rounded.
#
# </details>


# %%
def toeplitz_r2(matrix):
    """Return how much of a matrix its diagonals explain.

    Parameters
    ----------
    matrix : (n, m) array_like
        Real numbers, such as the scores of n queries and m keys.

    Returns
    -------
    float
        One minus the sum of squares about the mean of each diagonal over the sum of squares about
        the mean of all: 1 for a Toeplitz matrix, so for a constant one, and never below 0.

    Examples
    --------
    >>> toeplitz_r2([[0.0, 1.0], [-1.0, 0.0]])
    1.0
    >>> toeplitz_r2([[1.0, 0.0], [0.0, -1.0]])
    0.0
    """
    ### BEGIN SOLUTION
    matrix = np.asarray(matrix, dtype=float)

    if np.max(matrix) == np.min(matrix):
        return 1.0

    def spread(entries):
        return np.sum((entries - entries.mean()) ** 2)

    rows, columns = matrix.shape
    within = sum(spread(matrix.diagonal(k)) for k in range(1 - rows, columns))
    return float(1 - within / spread(matrix))
    ### END SOLUTION


# %%
check("toeplitz_r2")

# %%
grade("toeplitz_r2")
