# %% [markdown]
# # The sinusoidal formula
#
# {{facts}}
#
# When you are done, you can
#
# - compute the frequencies and wavelengths of an encoding for any width and base;
# - encode positions of any kind, exactly where many implementations lose digits;
# - add a table of positions to embeddings without going past its end.
#
# Before you start: you know sine, cosine and radians, and how NumPy broadcasts a column against a
# row. Read [the chapter]({{site}}/02-sinusoidal.html) first.
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
# ## 1. `inverse_frequencies`
#
# {{task}}
#
# Each pair of dimensions has its own speed. Return, for the pairs i = 0, 1, 2, ..., how far they
# turn from one position to the next: the base raised to the power -2i/d. The base may be an
# integer.
#
# <details><summary>Hint 1</summary>
#
# There is one frequency for each pair, half as many as dimensions. The first is 1 whatever the
# base, and each is smaller than the one before.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Count pairs with `np.arange` and make the exponent an array. NumPy refuses to raise integers to
# negative integers, so see to it that the exponent is a float.
#
# </details>


# %%
def inverse_frequencies(d_model, *, base=10_000.0):
    """Return how far each pair of dimensions turns from one position to the next.

    Parameters
    ----------
    d_model : int
        Number of dimensions, even and positive.
    base : float, default 10_000.0
        The number that is raised to the power; larger bases turn more slowly.

    Returns
    -------
    (d_model / 2,) ndarray
        Angular frequencies in radians per position.

    Examples
    --------
    >>> inverse_frequencies(8).round(6).tolist()
    [1.0, 0.1, 0.01, 0.001]
    """
    ### BEGIN SOLUTION
    pairs = np.arange(d_model // 2)
    return base ** (-2 * pairs / d_model)
    ### END SOLUTION


# %%
check("inverse_frequencies")

# %%
grade("inverse_frequencies")

# %% [markdown]
# ## 2. `sinusoidal_encoding`
#
# {{task}}
#
# Encode positions. Pair i of a row holds the sine and the cosine of position times frequency,
# sine at column 2i and cosine at column 2i + 1. Use the positions that you are given: they may
# have gaps, be negative or fractional, and come as a single number or in an array of any shape.
# Form angles in float64: positions may be in the hundreds of thousands. You may call your
# `inverse_frequencies`.
#
# <details><summary>Hint 1</summary>
#
# Give the positions one more axis at the end, and broadcasting makes the table of angles: one
# angle for each position and pair.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Make an empty float64 array of the final shape and fill its even columns, `[..., 0::2]`, and its
# odd ones. Check `d_model` before anything else.
#
# </details>


# %%
def sinusoidal_encoding(positions, d_model, *, base=10_000.0):
    """Encode positions as sines and cosines of geometrically spaced frequencies.

    Parameters
    ----------
    positions : array_like
        Real positions of any shape: negative, fractional and huge ones are right too, so angles
        are formed in float64.
    d_model : int
        Number of dimensions, even and positive.
    base : float, default 10_000.0
        Base of the frequencies.

    Returns
    -------
    (..., d_model) ndarray
        One row for each position: ``positions.shape + (d_model,)``.

    Raises
    ------
    ValueError
        If ``d_model`` is odd (an IndexError is fine too).

    Examples
    --------
    >>> sinusoidal_encoding([0, 1], 4).round(4).tolist()
    [[0.0, 1.0, 0.0, 1.0], [0.8415, 0.5403, 0.01, 1.0]]
    """
    ### BEGIN SOLUTION
    if d_model % 2:
        raise ValueError(f"d_model must be even, got {d_model}")
    positions = np.asarray(positions, dtype=np.float64)
    angles = positions[..., np.newaxis] * inverse_frequencies(d_model, base=base)
    encoding = np.empty((*positions.shape, d_model))
    encoding[..., 0::2] = np.sin(angles)
    encoding[..., 1::2] = np.cos(angles)
    return encoding
    ### END SOLUTION


# %%
check("sinusoidal_encoding")

# %%
grade("sinusoidal_encoding")

# %% [markdown]
# ## 3. `wavelengths`
#
# {{task}}
#
# A frequency says how far a pair turns in one position. Its wavelength says how many positions it
# takes to turn once.
#
# <details><summary>Hint 1</summary>
#
# One turn is 2 pi radians.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# There are as many wavelengths as frequencies: one for each pair. The first is 2 pi, whatever the
# base.
#
# </details>


# %%
def wavelengths(d_model, *, base=10_000.0):
    """Return after how many positions each pair of dimensions has turned once.

    Parameters
    ----------
    d_model : int
        Number of dimensions, even and positive.
    base : float, default 10_000.0
        Base of the frequencies.

    Returns
    -------
    (d_model / 2,) ndarray
        Positions per turn.

    Examples
    --------
    >>> wavelengths(8).round(2).tolist()
    [6.28, 62.83, 628.32, 6283.19]
    """
    ### BEGIN SOLUTION
    frequencies = inverse_frequencies(d_model, base=base)
    return 2 * np.pi / frequencies
    ### END SOLUTION


# %%
check("wavelengths")

# %%
grade("wavelengths")

# %% [markdown]
# ## 4. `add_positions`
#
# {{task}}
#
# Add rows of a position table to the embeddings of a sequence: row `start` to the first token,
# the next row to the second, and so on. Every sequence of a batch gets the same rows. Where the
# table has no row for a token, raise an error instead of going on with fewer rows.
#
# <details><summary>Hint 1</summary>
#
# The tokens lie along the second last axis of `x`. A slice of the table has the shape (n,
# d_model), which broadcasts over the batch by itself.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Python answers `table[-3:0]` and a slice past the end without an error. So compare `start` and
# `start + n` with the table's length before you slice.
#
# </details>


# %%
def add_positions(x, table, *, start=0):
    """Add consecutive rows of a position table to a sequence of embeddings.

    Parameters
    ----------
    x : (..., n, d_model) ndarray
        Embeddings; leading axes are batches, and every sequence gets the same rows.
    table : (length, d_model) ndarray
        One row for each position.
    start : int, default 0
        Position of the first embedding.

    Returns
    -------
    (..., n, d_model) ndarray
        ``x + table[start : start + n]``; ``x`` itself is left as it is.

    Raises
    ------
    ValueError
        If ``start`` is negative (an IndexError is fine too).
    IndexError
        If the sequence runs past the end of the table (a ValueError is fine too).

    Examples
    --------
    >>> table = np.array([[1, 1], [2, 2], [3, 3]])
    >>> add_positions(np.zeros((2, 2)), table, start=1).tolist()
    [[2.0, 2.0], [3.0, 3.0]]
    """
    ### BEGIN SOLUTION
    x, table = np.asarray(x), np.asarray(table)
    end = start + x.shape[-2]
    if start < 0:
        raise ValueError(f"start must not be negative, got {start}")
    if end > len(table):
        raise IndexError(f"the table has {len(table)} rows, the sequence needs {end}")
    return x + table[start:end]
    ### END SOLUTION


# %%
check("add_positions")

# %%
grade("add_positions")
