# %% [markdown]
# # Start here
#
# {{facts}}
#
# When you are done, you can
#
# - turn a vector with a matrix of your own;
# - see a long vector as pairs;
# - say how far every pair has turned at every position;
# - read what a check tells you.
#
# Before you start: you can write a function in Python, and you know what sine and cosine are.
# Read [the chapter]({{site}}/00-start.html) first.
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
# ## 1. `rotation_matrix`
#
# {{task}}
#
# Write the matrix that turns every vector of the plane counter-clockwise by an angle in radians.
# It keeps lengths, and a quarter turn sends (1, 0) to (0, 1).
#
# <details><summary>Hint 1</summary>
#
# The first column of a matrix is where it sends (1, 0), and the second is where it sends (0, 1).
# Draw both after a small turn.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Turned by the angle a, (1, 0) lands on (cos a, sin a). The vector (0, 1) is a quarter turn ahead
# of it, so it lands on the point that is a quarter turn ahead of (cos a, sin a).
#
# </details>


# %%
def rotation_matrix(angle):
    """Return the matrix that turns a vector of the plane counter-clockwise.

    Parameters
    ----------
    angle : float
        Angle in radians.

    Returns
    -------
    (2, 2) ndarray
        Multiplied from the left with a vector of shape (2,), it turns that vector by ``angle``.

    Examples
    --------
    >>> (rotation_matrix(np.pi / 2) @ [1.0, 0.0]).round(6).tolist()
    [0.0, 1.0]
    """
    ### BEGIN SOLUTION
    cosine, sine = np.cos(angle), np.sin(angle)
    return np.array([[cosine, -sine], [sine, cosine]])
    ### END SOLUTION


# %%
check("rotation_matrix")

# %%
grade("rotation_matrix")

# %% [markdown]
# ## 2. `split_pairs`
#
# {{task}}
#
# A vector of d numbers is d/2 pairs of neighbours: columns 0 and 1 are pair 0, columns 2 and 3 are
# pair 1, and so on. Give the result two axes at the end, one for the pairs and one for the two
# members of each. `x` may be one vector, a table of them or a batch of tables; all axes but the
# last stay as they are.
#
# <details><summary>Hint 1</summary>
#
# Write down the result for the vector (10, 11, 12, 13, 14, 15). It has three rows of two. What
# shape has it for a table of five such vectors?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `x[..., 0::2]` holds the first members of all pairs, whatever axes come before. `np.stack` can lay
# two arrays side by side along a new last axis; `reshape` does the task in one step.
#
# </details>


# %%
def split_pairs(x):
    """Put neighbouring dimensions together: pair i is (2i, 2i + 1).

    Parameters
    ----------
    x : (..., d) ndarray
        Vectors whose last axis is even.

    Returns
    -------
    (..., d / 2, 2) ndarray
        The pairs, in the order of the dimensions.

    Examples
    --------
    >>> split_pairs(np.array([1.0, 2.0, 3.0, 4.0])).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    ### BEGIN SOLUTION
    first_members, second_members = x[..., 0::2], x[..., 1::2]
    return np.stack([first_members, second_members], axis=-1)
    ### END SOLUTION


# %%
check("split_pairs")

# %%
grade("split_pairs")

# %% [markdown]
# ## 3. `angles`
#
# {{task}}
#
# Each pair turns at its own speed: its frequency, in radians per position. Return the angle of each
# pair at each position, which is position times frequency, whole turns included. The positions come
# as a single number, a list, or an array of any shape; the result has the same axes and one more at
# the end, with one angle for each frequency. Both may be integers of a small type such as int8,
# whose products do not fit into it. So make floats of them before you multiply.
#
# <details><summary>Hint 1</summary>
#
# For positions of shape (5,) and 4 frequencies, the result has the shape (5, 4); for a single
# position, (4,). Broadcasting does the rest if the positions have an axis of length 1 at the end.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `np.asarray(positions, dtype=np.float64)` makes an array of whatever came in. Indexed with
# `[..., np.newaxis]`, it has one more axis at the end, also where it had none.
#
# </details>


# %%
def angles(positions, frequencies):
    """Return how far every pair has turned at every position.

    Parameters
    ----------
    positions : array_like
        Real positions of any shape.
    frequencies : (h,) array_like
        Radians per position of each pair.

    Returns
    -------
    (..., h) ndarray
        Each position times each frequency: ``positions.shape + (h,)``.

    Examples
    --------
    >>> angles([0, 3], [1.0, 0.5]).tolist()
    [[0.0, 0.0], [3.0, 1.5]]
    """
    ### BEGIN SOLUTION
    column = np.asarray(positions, dtype=np.float64)[..., np.newaxis]
    return column * np.asarray(frequencies, dtype=np.float64)
    ### END SOLUTION


# %%
check("angles")

# %%
grade("angles")
