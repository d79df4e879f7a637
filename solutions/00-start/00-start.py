# %% [markdown]
# # Start here
#
# {{facts}}
#
# When you are done, you will have turned a vector with a matrix of your own, and you will know
# how checks work.
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
