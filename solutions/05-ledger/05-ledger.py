# %% [markdown]
# # The claims ledger
#
# {{facts}}
#
# When you are done, you can
#
# - tell a true sentence from one that lacks a condition, and both from a false one;
# - find the case that decides;
# - say from which offset on an encoding nearly repeats itself, for any base and size.
#
# Before you start: you have solved [learned versus RoPE]({{site}}/04-rope.html). Read [the
# chapter]({{site}}/05-ledger.html) first.
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
# ## 1. `verdicts`
#
# {{task}}
#
# Here are six sentences. The book prints none of them. Decide each by thinking, or by a few lines
# of code in cells of your own; `posenc` has all you need.
#
# - **a** Take one sequence and add to every token the encoding of its position. Self-attention
#   without a mask gives some outputs for these sums. Shuffle the sums: it now gives the same
#   outputs, shuffled in the same way.
# - **b** Attention scores stay as they are when all positions are counted from 1 instead of
#   from 0.
# - **c** A training step on 64 input tokens gives a gradient to 64 rows of a learned position
#   table.
# - **d** Taking half of every position gives the same sinusoidal encodings as taking twice the
#   base.
# - **e** If all tokens get one and the same position, RoPE leaves every score as it is without
#   RoPE.
# - **f** The mean of the sinusoidal encodings of positions 4 and 6 is the encoding of position 5.
#
# The three words mean:
#
# - `true`: it holds in every case that the sentence speaks of;
# - `imprecise`: it is true only with a condition or a number that the sentence leaves out, so it
#   holds in some ordinary cases and fails in other ordinary ones;
# - `false`: it fails in every ordinary case, and no condition of a usual kind mends it. A match by
#   accident, as at position 0, does not count.
#
# A sentence that does not say which encoding it means speaks of all that the course has: the
# sinusoidal encoding and a learned table, which are added to the embeddings, and RoPE. An encoding
# is the whole vector: a sentence about it that holds in some columns alone, or only nearly in slow
# pairs, does not hold there. Numbers are equal here if they differ by rounding alone. Weights,
# queries, keys and embeddings are any that training might start from.
#
# Each right verdict counts by itself. The check below says only whether all six are answered, for
# `posenc` does not hold the key; after grading, the feedback says which verdicts are wrong and why.
#
# <details><summary>Hint 1</summary>
#
# Ask of each sentence what it does not mention: which encoding, how many dimensions, which base,
# one sequence or several. Change that, and see whether the sentence still holds.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# One case against it, and a sentence is not `true`; one ordinary case for it, and it is not
# `false`. Cases alone never show that it is `true`: for that, look for the reason.
#
# </details>


# %%
def verdicts():
    """Return your verdict on each of the six sentences.

    Returns
    -------
    dict of str to str
        For each of the letters "a" to "f" one of the words "true", "imprecise" and "false".

    Examples
    --------
    >>> sorted(verdicts())
    ['a', 'b', 'c', 'd', 'e', 'f']
    """
    ### BEGIN SOLUTION
    return {
        "a": "true",
        "b": "imprecise",
        "c": "imprecise",
        "d": "false",
        "e": "true",
        "f": "false",
    }
    ### END SOLUTION


# %%
check("verdicts")

# %%
report = grade("verdicts")
### BEGIN HIDDEN TESTS
report = grade(
    "verdicts",
    key={
        "a": (
            "true",
            "Once it is added, the position travels with its token, and attention itself is "
            "equivariant whatever the rows hold.",
        ),
        "b": (
            "imprecise",
            "It is true of RoPE, whose scores see differences of positions alone; with an encoding "
            "or a table row added to the embeddings, every score changes.",
        ),
        "c": (
            "imprecise",
            "It is true of one sequence of 64 tokens; four sequences of 16 share the same 16 rows, "
            "whose gradients add up.",
        ),
        "d": (
            "false",
            "Half the position slows every pair by the same factor; twice the base slows pair i by "
            "2**(2i/d), and pair 0 not at all.",
        ),
        "e": (
            "true",
            "Queries and keys turn by the same angles, so the angles between them stay, at "
            "position 7 as at position 0.",
        ),
        "f": (
            "false",
            "Sines and cosines are not straight lines: the mean of p - 1 and p + 1 is pair i of p "
            "times cos(w_i), and that is 0.54 for pair 0 whatever the base.",
        ),
    },
)
### END HIDDEN TESTS
report

# %% [markdown]
# ## 2. `nearest_repeat`
#
# {{task}}
#
# An encoding never repeats exactly, but how nearly? Compare the encodings of the positions 1, 2,
# ... up to and including `length` with that of position 0. Return the offset whose encoding lies
# nearest, and its Euclidean distance: the root of the sum of the squared differences of all
# `d_model` numbers, divided by nothing. The distance of two encodings depends on their offset
# alone, so position 0 speaks for all. You may call `inverse_frequencies`.
#
# <details><summary>Hint 1</summary>
#
# Make all the angles at once, one row for each offset and one column for each pair. Position 0 is
# (0, 1) in every pair.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# A pair that has turned by an angle a has moved by (sin a, cos a - 1); sum the squares over all
# pairs. The smallest entry of the distances is at index 0 where the offset is 1.
#
# </details>


# %%
def nearest_repeat(d_model, base, length):
    """Return the offset at which an encoding comes nearest to repeating itself.

    Parameters
    ----------
    d_model : int
        Number of dimensions, even and positive.
    base : float
        Base of the frequencies.
    length : int
        Offsets 1, 2 .. ``length`` are compared.

    Returns
    -------
    offset : int
        The offset whose encoding lies nearest to that of position 0.
    distance : float
        Euclidean distance of the two encodings.

    Examples
    --------
    >>> offset, distance = nearest_repeat(8, 10.0, 8192)
    >>> offset, round(distance, 3)
    (3676, 0.419)
    """
    ### BEGIN SOLUTION
    angles = np.outer(np.arange(1, length + 1), inverse_frequencies(d_model, base=base))
    moved = np.square(np.sin(angles)) + np.square(np.cos(angles) - 1)
    distances = np.sqrt(moved.sum(axis=1))
    nearest = distances.argmin()
    return int(nearest) + 1, float(distances[nearest])
    ### END SOLUTION


# %%
check("nearest_repeat")

# %%
grade("nearest_repeat")
