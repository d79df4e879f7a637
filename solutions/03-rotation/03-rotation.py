# %% [markdown]
# # The rotation identity
#
# {{facts}}
#
# When you are done, you can
#
# - move every encoding by an offset with one and the same matrix;
# - do the same without a matrix;
# - say how similar two encodings are from their offset alone.
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
