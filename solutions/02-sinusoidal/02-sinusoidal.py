# %% [markdown]
# # The sinusoidal formula
#
# {{facts}}
#
# When you are done, you can
#
# - compute the frequencies and wavelengths of an encoding for any width and base;
# - encode positions of any kind, exactly where many implementations lose digits;
# - add a table of positions to embeddings without going past its end;
# - see in a printed table which numbers cannot be right;
# - write a test that wrong encodings fail and right ones pass.
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

# %% [markdown]
# ## 5. `impossible_pairs`
#
# {{task}}
#
# Columns 2i and 2i + 1 of a row are the sine and the cosine of one angle, whatever position and
# base the row is of. So their squares add up to 1, up to rounding. Return all pairs for which the
# sum of the two squares differs from 1, up or down, by more than `tolerance`: a set of tuples
# (row, pair), where row is the index in the table and pair is i. Both count from 0. If there are
# none, the set is empty.
#
# The table may be an array or nested lists, its rows may be of any positions in any order, and you
# do not need to know them.
#
# <details><summary>Hint 1</summary>
#
# Square the table and add the even columns to the odd ones: that makes one number for each row and
# pair. Compare its distance from 1 with the tolerance.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `np.argwhere` lists where a boolean array is true, as one row of indices for each place. Make
# integers and tuples of them: arrays can't be members of a set.
#
# </details>


# %%
def impossible_pairs(table, *, tolerance):
    """Find the pairs of a table that cannot be the sine and the cosine of one angle.

    Parameters
    ----------
    table : (n, d_model) array_like
        An interleaved table, one row for each position; ``d_model`` is even.
    tolerance : float
        How far the sum of a pair's squares may be from 1. Rounding to three decimals alone
        reaches 1.4e-3.

    Returns
    -------
    set of (int, int)
        Index of the row and of the pair: ``(r, i)`` stands for columns 2i and 2i + 1 of row r.

    Examples
    --------
    >>> printed = [[0.0, 1.0, 0.0, 1.0], [0.841, 0.540, 0.0, 0.0]]
    >>> impossible_pairs(printed, tolerance=2e-3)
    {(1, 1)}
    """
    ### BEGIN SOLUTION
    pairs = np.asarray(table, dtype=np.float64).reshape(len(table), -1, 2)
    errors = np.abs((pairs**2).sum(axis=-1) - 1)
    return {(int(row), int(pair)) for row, pair in np.argwhere(errors > tolerance)}
    ### END SOLUTION


# %%
check("impossible_pairs")

# %%
grade("impossible_pairs")

# %% [markdown]
# ## 6. `accepts`
#
# {{task}}
#
# Now you write the test. `accepts` gets a function, the candidate, that can be called like
# `sinusoidal_encoding`: `candidate(positions, d_model, *, base=10_000.0)`. Return True if it is
# right, False if it is wrong. You can't read its code; you can only call it and look at what comes
# back.
#
# Right candidates differ in form. They return an array or nested lists, and some store their
# numbers in float32. At positions up to a million all are right within 1e-6, so accept errors of
# that size, and none much larger.
#
# Any right candidate takes real positions of any shape, a single number included, and any even
# width. Odd widths and empty arrays are not asked for, so what happens there tells nothing.
#
# Wrong candidates have one mistake each. Some show it in every call, others in a few calls only.
# They may return another shape or nan, or raise an error; `accepts` itself does not raise then,
# but answers False. Numbers rounded to three or four digits, as float16 does, are wrong, too.
#
# So call the candidate more than once. Between them, your calls should have
#
# - several positions in one call, out of order, with negative, fractional and large ones (100,000
#   and more) among them;
# - two widths, both even and 6 or more, one of them no power of two;
# - the base left out, and another base given.
#
# Work out inside `accepts` what the right rows are. No function called `sinusoidal_encoding` may
# be called here, neither yours nor posenc's; your `inverse_frequencies` may.
#
# You earn nothing unless every right candidate is accepted, and then a share of the points: the
# share of wrong ones that you reject, rounded down to half a point. Grading shuffles the
# candidates and gives the wrong ones other numbers (another wrong base, another first position).
#
# A check names the first candidate that you misjudge. After `report = check("accepts")`, it is
# `report.args[0]`, a function that you can call to see what it returns.
#
# <details><summary>Hint 1</summary>
#
# A property such as the norm of the rows is not enough: every encoding made of sines and cosines
# has it, at whatever frequencies. Compare numbers with the formula, after you compared the shapes.
# `np.allclose` with `rtol=0` and a tolerance of your own is False for nan, too.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Write the calls down as a list of positions, width and base, and go through it in a loop. Let a
# `try` surround the call of the candidate and `np.asarray` of its result, and answer False where
# it fails. A `dict` of keyword arguments that is empty in one of the calls leaves the base out.
#
# </details>


# %%
def accepts(candidate):
    """Say whether a function is the sinusoidal encoding.

    Parameters
    ----------
    candidate : callable
        Called as ``candidate(positions, d_model, *, base=10_000.0)``. It is right if its numbers
        are, within 1e-6 at positions up to a million, in an array or in nested lists; wrong also
        if it raises an error or returns another shape.

    Returns
    -------
    bool
        True if nothing is found wrong.

    Examples
    --------
    >>> def zeros(positions, d_model, *, base=10_000.0):
    ...     return np.zeros((len(positions), d_model))
    >>> accepts(zeros)
    False
    """
    ### BEGIN SOLUTION
    calls = [
        ([0, 1, 2, 3, 4, 5], 8, {}),
        ([250_003, -12, 6.5, 0, 99], 10, {"base": 300.0}),
        ([-0.25, 700_001, 40, 3], 64, {}),
    ]
    for positions, d_model, options in calls:
        frequencies = inverse_frequencies(d_model, **options)
        angles = np.array(positions)[:, np.newaxis] * frequencies
        expected = np.empty((len(positions), d_model))
        expected[:, 0::2], expected[:, 1::2] = np.sin(angles), np.cos(angles)
        try:  # A wrong candidate may raise anything.
            rows = np.asarray(candidate(positions, d_model, **options), dtype=float)
        except Exception:
            return False
        if rows.shape != expected.shape or not np.allclose(rows, expected, rtol=0, atol=2e-6):
            return False
    return True
    ### END SOLUTION


# %%
check("accepts")

# %%
grade("accepts")
