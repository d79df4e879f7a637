"""Longer contexts for a model trained on short ones: rescaled frequencies of RoPE (chapter 7)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posenc import _validate as validate
from posenc.sinusoidal import inverse_frequencies

METHODS = ("linear", "ntk", "dynamic", "yarn", "llama3", "longrope")
# What a method cannot do without.
_NEEDED = {
    "linear": ("factor",),
    "ntk": ("factor",),
    "dynamic": ("factor", "original_length", "length"),
    "yarn": ("factor", "original_length"),
    "llama3": ("factor", "original_length"),
    "longrope": ("original_length", "length", "short_factors", "long_factors"),
}
# Options of one method alone, with their defaults.
_OWNERS = {
    "beta_fast": ("yarn", 32.0),
    "beta_slow": ("yarn", 1.0),
    "truncate": ("yarn", True),
    "low_frequency_factor": ("llama3", 1.0),
    "high_frequency_factor": ("llama3", 4.0),
    "short_factors": ("longrope", None),
    "long_factors": ("longrope", None),
}

# The relative precision of the smallest base.
_SMALLEST_JUMP = 1e-9


def scaled_frequencies(
    d_model: int,
    method: str,
    *,
    base: float = 10_000.0,
    factor: float | None = None,
    original_length: int | None = None,
    length: int | None = None,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    truncate: bool = True,
    low_frequency_factor: float = 1.0,
    high_frequency_factor: float = 4.0,
    short_factors: ArrayLike | None = None,
    long_factors: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Slow down the frequencies of RoPE, so that a longer context turns no further than training.

    Parameters
    ----------
    d_model : int
        Number of rotated dimensions of a head, even and positive; at least 4 for ``ntk`` and
        ``dynamic``.
    method : {'linear', 'ntk', 'dynamic', 'yarn', 'llama3', 'longrope'}
        How to choose which pairs slow down; see Notes.
    base : float, default 10_000.0
        Base of the unscaled frequencies; greater than 1 for ``yarn``.
    factor : float, optional
        How many times longer the context becomes, at least 1. Every method but ``longrope``
        needs it.
    original_length : int, optional
        Length of the context of training, in positions. ``dynamic``, ``yarn``, ``llama3`` and
        ``longrope`` need it.
    length : int, optional
        Length of the sequence at hand, in positions. ``dynamic`` and ``longrope`` need it.
    beta_fast, beta_slow : float, default 32.0 and 1.0
        Of ``yarn``: pairs that turn at least ``beta_fast`` times within the original length stay
        as they are, pairs that turn at most ``beta_slow`` times slow down by ``factor``.
    truncate : bool, default True
        Of ``yarn``: whether the two boundaries are widened to whole pairs.
    low_frequency_factor, high_frequency_factor : float, default 1.0 and 4.0
        Of ``llama3``: the same two boundaries, in turns within the original length.
    short_factors, long_factors : (d_model / 2,) array_like, optional
        Of ``longrope``: divisors of the frequencies, found by search, for sequences up to and
        including the original length, and for longer ones.

    Returns
    -------
    (d_model / 2,) ndarray
        Angular frequencies in radians per position, in the place of
        :func:`inverse_frequencies`.

    Raises
    ------
    ValueError
        If the method is unknown, a size or factor is out of range, or an option belongs to
        another method.
    TypeError
        If the method lacks an argument that it needs, or an argument has the wrong type.

    Notes
    -----
    With w the unscaled frequencies, i the index of a pair, s the factor and d ``d_model``:

    - ``linear``, position interpolation: w / s, the same as dividing positions by s.
    - ``ntk``: the base becomes ``base * s ** (d / (d - 2))``, so the fastest pair keeps its
      frequency and the slowest is divided by exactly s.
    - ``dynamic``: ``ntk`` with ``1 + s * (length / original_length - 1)`` for s, and 1 up to the
      original length. The frequencies change with the length, so cached keys must be kept
      unrotated or be rotated again.
    - ``yarn``, NTK by parts: a ramp over i, from w above the fast boundary to w / s below the
      slow one. Scores want :func:`yarn_attention_factor` too.
    - ``llama3``: a ramp over the turns ``original_length * w / (2 pi)`` in the place of i.
    - ``longrope``: w divided by the searched factors; all pairs switch together. Scores want
      :func:`longrope_attention_factor` too.

    References
    ----------
    Chen et al. (2023), "Extending Context Window of Large Language Models via Positional
    Interpolation", section 2.3; Peng et al. (2023), "YaRN: Efficient Context Window Extension of
    Large Language Models", sections 3.1 to 3.3 for ``ntk``, ``yarn`` and ``dynamic``; Llama Team
    (2024), "The Llama 3 Herd of Models", and its published code for ``llama3``; Ding et al. (2024),
    "LongRoPE: Extending LLM Context Window Beyond 2 Million Tokens", section 3.

    Examples
    --------
    >>> inverse_frequencies(8).tolist()
    [1.0, 0.1, 0.01, 0.001]
    >>> scaled_frequencies(8, "linear", factor=4).round(6).tolist()
    [0.25, 0.025, 0.0025, 0.00025]
    >>> scaled_frequencies(8, "ntk", factor=4).round(6).tolist()
    [1.0, 0.062996, 0.003969, 0.00025]
    >>> scaled_frequencies(8, "yarn", factor=4, original_length=2048).round(6).tolist()
    [1.0, 0.1, 0.00625, 0.00025]
    """
    frequencies = inverse_frequencies(d_model, base=base)
    method = validate.choice(method, METHODS, "method")
    values = {
        "factor": factor,
        "original_length": original_length,
        "length": length,
        "beta_fast": beta_fast,
        "beta_slow": beta_slow,
        "truncate": truncate,
        "low_frequency_factor": low_frequency_factor,
        "high_frequency_factor": high_frequency_factor,
        "short_factors": short_factors,
        "long_factors": long_factors,
    }
    validate.options(method, values, _NEEDED, _OWNERS)
    if factor is not None:
        factor = validate.at_least(factor, 1, "factor")
    if original_length is not None:
        original_length = validate.integer(
            original_length, "original_length", minimum=1, maximum=2**53
        )
    if length is not None:
        length = validate.integer(length, "length", minimum=1, maximum=2**53)

    if method == "linear":
        return frequencies / factor
    if method == "ntk":
        return _ntk(frequencies, factor)
    if method == "dynamic":
        return _ntk(frequencies, 1 + factor * max(0, length - original_length) / original_length)
    if method == "longrope":
        name = "short_factors" if length <= original_length else "long_factors"
        factors = {
            known: validate.positive_vector(values[known], len(frequencies), known)
            for known in ("short_factors", "long_factors")
        }
        return frequencies / factors[name]
    if method == "yarn":
        slowed = _yarn_ramp(len(frequencies), base, original_length, beta_fast, beta_slow, truncate)
    else:
        low = validate.at_least(low_frequency_factor, 0, "low_frequency_factor")
        high = validate.above(
            high_frequency_factor, low, "high_frequency_factor", "the low_frequency_factor"
        )
        turns = original_length * frequencies / (2 * np.pi)
        slowed = 1 - np.clip((turns - low) / (high - low), 0, 1)
    return slowed * (frequencies / factor) + (1 - slowed) * frequencies


def yarn_attention_factor(
    factor: float, *, mscale: float = 1.0, mscale_all_dim: float = 0.0
) -> float:
    """Return by how much YaRN lengthens rotated queries and keys.

    Longer contexts spread attention over more keys; YaRN sharpens it again by multiplying both
    queries and keys, or cosines and sines, by this number, and so scores by its square.

    Parameters
    ----------
    factor : float
        How many times longer the context becomes, at least 1.
    mscale : float, default 1.0
        Weight of the logarithm, 0 or more; DeepSeek's models set it.
    mscale_all_dim : float, default 0.0
        Weight of the logarithm in a divisor, 0 or more: the share that such models apply to the
        softmax scale instead, as the square of this function's value for
        ``mscale=mscale_all_dim``. Equal weights give exactly 1.

    Returns
    -------
    float
        ``(0.1 * mscale * ln(factor) + 1) / (0.1 * mscale_all_dim * ln(factor) + 1)``.

    Raises
    ------
    ValueError
        If ``factor`` is below 1, or a weight is negative.
    TypeError
        If an argument is not a real number.

    References
    ----------
    Peng et al. (2023), "YaRN: Efficient Context Window Extension of Large Language Models",
    section 3.4; the two weights are those of DeepSeek-V2's published code.

    Examples
    --------
    >>> round(yarn_attention_factor(4), 6)
    1.138629
    >>> yarn_attention_factor(40, mscale=0.707, mscale_all_dim=0.707)
    1.0
    """
    logarithm = math.log(validate.at_least(factor, 1, "factor"))
    numerator = 0.1 * validate.at_least(mscale, 0, "mscale") * logarithm + 1
    denominator = 0.1 * validate.at_least(mscale_all_dim, 0, "mscale_all_dim") * logarithm + 1
    return numerator / denominator


def longrope_attention_factor(factor: float, original_length: int) -> float:
    """Return by how much LongRoPE lengthens rotated queries and keys.

    Parameters
    ----------
    factor : float
        How many times longer the context becomes, at least 1.
    original_length : int
        Length of the context of training, in positions, at least 2.

    Returns
    -------
    float
        ``sqrt(1 + ln(factor) / ln(original_length))``, the factor of cosines and sines.

    Raises
    ------
    ValueError
        If ``factor`` is below 1 or ``original_length`` below 2.
    TypeError
        If ``factor`` is not a real number or ``original_length`` not an integer.

    References
    ----------
    Ding et al. (2024), "LongRoPE: Extending LLM Context Window Beyond 2 Million Tokens"; the factor
    is that of the models that Microsoft published with it, Phi-3.

    Examples
    --------
    >>> round(longrope_attention_factor(32, 4096), 6)
    1.190238
    """
    factor = validate.at_least(factor, 1, "factor")
    original_length = validate.integer(original_length, "original_length", minimum=2)
    return math.sqrt(1 + math.log(factor) / math.log(original_length))


def minimum_base(length: int, d_model: int) -> float:
    """Return the smallest base of RoPE that serves a context.

    A base serves if, at every distance m within the context, a key that resembles the query is
    expected to score at least as high as a random one. That holds where the sum over all pairs of
    ``cos(m * base ** (-2 i / d_model))`` is not negative.

    Parameters
    ----------
    length : int
        Length of the context in positions; distances run from 0 to ``length - 1``.
    d_model : int
        Number of rotated dimensions of a head, even, at least 4: a single pair turns at a speed
        that no base changes.

    Returns
    -------
    float
        The smallest base of at least 1 that serves, to about nine digits (seven if ``d_model`` is
        4, where rounding of the cosines decides).

    Raises
    ------
    ValueError
        If ``length`` is not positive, or ``d_model`` is odd or below 4.
    TypeError
        If an argument is not an integer.

    Notes
    -----
    A larger base does not always serve: just above the smallest one there are gaps.

    No base is missed by a step of a grid. At a distance whose sum is negative, Taylor's theorem
    bounds the sum from above by ``K + K' t + M t ** 2 / 2`` when the base is multiplied by
    ``exp(t)``, where ``M = sum((2 i / d_model) ** 2 * (m w + (m w) ** 2))`` bounds the second
    derivative. Up to the root of that parabola no base serves, so the search jumps there.

    References
    ----------
    Men et al. (2024), "Base of RoPE Bounds Context Length", arXiv 2405.14591, theorem 1.

    Examples
    --------
    >>> round(minimum_base(1024, 128)), round(minimum_base(4096, 128))
    (4293, 26952)
    """
    length = validate.integer(length, "length", minimum=1)
    d_model = validate.integer(validate.even_size(d_model), "d_model", minimum=4)
    exponents = np.arange(0, d_model, 2) / d_model

    log_base = 0.0
    while True:
        sums = _sums_of_cosines(length, np.exp(-log_base * exponents))
        negative = np.flatnonzero(sums < 0)
        if negative.size == 0:
            return math.exp(log_base)
        # The distances with the longest jumps, about; one of them is the obstacle for a while.
        obstacles = negative[np.argsort(sums[negative] / negative)[:64]]
        jump = 1.0
        while jump > _SMALLEST_JUMP:
            jump = _jump(obstacles, log_base, exponents)
            log_base += max(jump, _SMALLEST_JUMP)


def _ntk(frequencies: NDArray[np.float64], factor: float) -> NDArray[np.float64]:
    """Return frequencies of base * factor ** (d / (d - 2)), without forming that base."""
    pairs = len(frequencies)
    validate.integer(2 * pairs, "d_model of an NTK-aware method", minimum=4)
    # The last exponent is exactly 1, so the slowest pair is divided by exactly the factor.
    return frequencies / factor ** (np.arange(pairs) / (pairs - 1))


def _yarn_ramp(
    pairs: int,
    base: float,
    original_length: int,
    beta_fast: float,
    beta_slow: float,
    truncate: bool,
) -> NDArray[np.float64]:
    """Return how much of every pair is slowed down, from 0 at fast pairs to 1 at slow ones."""
    base = validate.above(base, 1, "base", "so that YaRN finds slower pairs after faster ones")
    beta_slow = validate.positive(beta_slow, "beta_slow")
    beta_fast = validate.at_least(beta_fast, beta_slow, "beta_fast")

    def pair_that_turns(times: float) -> float:
        return pairs * math.log(original_length / (times * 2 * math.pi)) / math.log(base)

    first, last = pair_that_turns(beta_fast), pair_that_turns(beta_slow)
    if validate.flag(truncate, "truncate"):
        first, last = math.floor(first), math.ceil(last)
    first, last = np.clip([first, last], 0, 2 * pairs - 1)
    # The published code's way out of a division by zero.
    return np.clip((np.arange(pairs) - first) / (last - first or 0.001), 0, 1)


def _sums_of_cosines(length: int, frequencies: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum of cos(m w) over all pairs at m = 0 .. length - 1.

    With m = a + b, cos(m w) = cos(a w) cos(b w) - sin(a w) sin(b w): two matrix products, and
    about sqrt(length) cosines a pair.
    """
    block = math.isqrt(length - 1) + 1
    far = np.multiply.outer(np.arange(0, length, block), frequencies)
    near = np.multiply.outer(np.arange(block), frequencies)
    # Not `@`: for matrices as small as these, its threads cost more than they save.
    cosines = np.einsum("ai,bi->ab", np.cos(far), np.cos(near))
    sines = np.einsum("ai,bi->ab", np.sin(far), np.sin(near))
    return (cosines - sines).ravel()[:length]


def _jump(distances: NDArray[np.int64], log_base: float, exponents: NDArray[np.float64]) -> float:
    """Return how far the logarithm of the base must grow before all these sums can be positive."""
    frequencies = np.exp(-log_base * exponents)
    angles = np.multiply.outer(distances, frequencies)
    sums = np.cos(angles).sum(axis=1)
    negative = sums < 0
    if not negative.any():
        return 0.0
    angles, sums = angles[negative], sums[negative]
    slopes = (exponents * angles * np.sin(angles)).sum(axis=1)
    curvatures = (exponents**2 * (angles + angles**2)).sum(axis=1)
    return float(np.max(-2 * sums / (slopes + np.sqrt(slopes**2 - 2 * curvatures * sums))))
