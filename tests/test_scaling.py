"""Scaled frequencies against 40-digit truth, published values and their own laws."""

import numpy as np
import pytest
import truth
from hypothesis import given, settings
from hypothesis import strategies as st

import posenc

mpf, pi, log = truth.exact.mpf, truth.exact.pi, truth.exact.log

METHODS = ["linear", "ntk", "dynamic", "yarn", "llama3", "longrope"]

properties = settings(deadline=None, max_examples=100)


def options_of(method, pairs, factor=8.0, original_length=2048, length=8192):
    options = {"factor": factor, "original_length": original_length}
    if method in ("dynamic", "longrope"):
        options["length"] = length
    if method == "longrope":
        options["short_factors"] = np.linspace(1, min(2, factor), pairs)
        options["long_factors"] = np.linspace(1, factor, pairs)
    return options


# Truth


def exact_ramp(value, start, end):
    return min(mpf(1), max(mpf(0), (value - start) / (end - start)))


def exact_scaled(method, d, base, factor, original_length, length, truncate=True, betas=(32, 1)):
    """Follow the formulas of the papers, the changed base of NTK included, with 40 digits."""
    plain = truth.inverse_frequencies(d, base)
    factor = mpf(factor)
    if method == "linear":
        return [w / factor for w in plain]
    if method in ("ntk", "dynamic"):
        if method == "dynamic":
            longest = max(length, original_length)
            factor = factor * longest / original_length - (factor - 1)
        return truth.inverse_frequencies(d, base * factor ** (mpf(d) / (d - 2)))
    if method == "longrope":
        options = options_of(method, d // 2, float(factor), original_length, length)
        name = "short_factors" if length <= original_length else "long_factors"
        return [w / mpf(float(f)) for w, f in zip(plain, options[name], strict=True)]
    if method == "llama3":
        slow = [1 - exact_ramp(original_length * w / (2 * pi), 1, 4) for w in plain]
    else:
        first, last = (
            d * log(original_length / (turns * 2 * pi)) / (2 * log(base)) for turns in betas
        )
        if truncate:
            first, last = truth.exact.floor(first), truth.exact.ceil(last)
        first, last = max(first, 0), min(last, d - 1)
        slow = [exact_ramp(i, first, last) for i in range(d // 2)]
    return [w * (1 - part) + w / factor * part for w, part in zip(plain, slow, strict=True)]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("original_length", [2048, 8192])
@pytest.mark.parametrize("factor", [1, 4, 10, 32.5])
def test_frequencies_are_exact(method, factor, original_length):
    for d, base in [(8, 10_000.0), (64, 500_000.0), (128, 10_000.0), (130, 1e6)]:
        for length in (original_length, 3 * original_length + 1):
            options = options_of(method, d // 2, float(factor), original_length, length)
            found = posenc.scaled_frequencies(d, method, base=base, **options)
            expected = exact_scaled(method, d, base, factor, original_length, length)
            assert found.dtype == np.float64
            assert found.shape == (d // 2,)
            assert truth.largest_relative_error(found, expected) <= 1e-15 + 4e-16 * factor


@pytest.mark.parametrize("truncate", [True, False])
@pytest.mark.parametrize("betas", [(32, 1), (16.0, 2.0), (4, 0.5)])
def test_yarn_is_exact_in_both_ways_to_place_its_boundaries(truncate, betas):
    for d, base, original_length in [
        (128, 10_000.0, 2048),
        (64, 500_000.0, 8192),
        (128, 10_000.0, 64),
        (64, 100.0, 8192),
    ]:
        found = posenc.scaled_frequencies(
            d,
            "yarn",
            base=base,
            factor=16,
            original_length=original_length,
            beta_fast=betas[0],
            beta_slow=betas[1],
            truncate=truncate,
        )
        expected = exact_scaled("yarn", d, base, 16, original_length, None, truncate, betas)
        assert truth.largest_relative_error(found, expected) <= 1e-15 + 4e-16 * 16


# Published values


def printed(frequencies):
    return [f"{frequency:.4e}" for frequency in frequencies]


# transformers tests/utils/test_modeling_rope_utils.py: d 128, base 10000, 2048 positions.
YARN_17_TO_40 = [
    *["8.3479e-02", "6.9590e-02", "5.7925e-02", "4.8136e-02", "3.9931e-02", "3.3061e-02"],
    *["2.7315e-02", "2.2515e-02", "1.8512e-02", "1.5177e-02", "1.2403e-02", "1.0101e-02"],
    *["8.1924e-03", "6.6143e-03", "5.3120e-03", "4.2400e-03", "3.3599e-03", "2.6396e-03"],
    *["2.0520e-03", "1.5746e-03", "1.1882e-03", "8.7713e-04", "6.2810e-04", "4.3007e-04"],
]
LLAMA3_30_TO_40 = [
    *["1.3335e-02", "1.0730e-02", "7.7785e-03", "5.6009e-03", "3.9991e-03", "2.8248e-03"],
    *["1.9675e-03", "1.3449e-03", "8.9549e-04", "5.7363e-04", "3.4539e-04"],
]
DYNAMIC = {
    1: "8.0931e-01",
    2: "6.5498e-01",
    8: "1.8404e-01",
    16: "3.3872e-02",
    32: "1.1473e-03",
    48: "3.8861e-05",
    62: "2.0097e-06",
    63: "1.6265e-06",
}


def test_transformers_yarn():
    plain = posenc.inverse_frequencies(128)
    found = posenc.scaled_frequencies(128, "yarn", factor=10, original_length=2048)
    np.testing.assert_array_equal(found[:17], plain[:17])
    assert printed(found[17:41]) == YARN_17_TO_40
    np.testing.assert_array_equal(found[41:], plain[41:] / 10)
    assert printed(found[[41, 63]]) == ["2.7384e-04", "1.1548e-05"]


def test_transformers_llama3():
    plain = posenc.inverse_frequencies(128)
    found = posenc.scaled_frequencies(128, "llama3", factor=10, original_length=2048)
    np.testing.assert_array_equal(found[:31], plain[:31])
    assert printed(found[30:41]) == LLAMA3_30_TO_40
    np.testing.assert_array_equal(found[41:], plain[41:] / 10)


def test_transformers_dynamic():
    found = posenc.scaled_frequencies(
        128, "dynamic", factor=10, original_length=2048, length=16_384
    )
    assert printed(found[list(DYNAMIC)]) == list(DYNAMIC.values())
    # The base that it stands for, and not that of another formula for the growth.
    assert found[1] ** -64 == pytest.approx(759_702.23, rel=1e-8)
    assert posenc.inverse_frequencies(128)[-1] / found[-1] == pytest.approx(71, rel=1e-15)


def test_transformers_longrope():
    plain = posenc.inverse_frequencies(128)
    options = {"short_factors": [2.5] * 64, "long_factors": list(range(1, 65))}
    for length, divisors in ((2048, [2.5] * 64), (2049, range(1, 65)), (20_480, range(1, 65))):
        found = posenc.scaled_frequencies(
            128, "longrope", original_length=2048, length=length, **options
        )
        np.testing.assert_array_equal(found, plain / np.array(divisors))
    attention = truth.exact.sqrt(1 + log(10) / log(2048))
    assert posenc.longrope_attention_factor(10, 2048) == pytest.approx(float(attention), rel=1e-15)


@pytest.mark.parametrize(
    ("factor", "position", "expected"),
    [
        (2, 1, [0.398157001, 0.994987488, 1.357008100, 1.004987478]),
        (2, 2, [-0.301168621, 0.989950180, 1.381773233, 1.009949803]),
        (5, 12, [-1.412856817, 0.975714266, -0.061930716, 1.023709655]),
    ],
)
def test_keras_hub_linear(factor, position, expected):
    angles = position * posenc.scaled_frequencies(4, "linear", factor=factor)
    turned_ones = [*(np.cos(angles) - np.sin(angles)), *(np.cos(angles) + np.sin(angles))]
    np.testing.assert_allclose(turned_ones, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("original_length", "kept", "slowed"), [(2048, 16, 41), (4096, 20, 46), (64, 0, 17)]
)
def test_yarn_boundaries(original_length, kept, slowed):
    plain = posenc.inverse_frequencies(128)
    ratios = plain / posenc.scaled_frequencies(
        128, "yarn", factor=40, original_length=original_length
    )
    np.testing.assert_array_equal(ratios[: kept + 1], 1)
    assert ((ratios[kept + 1 : slowed] > 1) & (ratios[kept + 1 : slowed] < 40)).all()
    np.testing.assert_allclose(ratios[slowed:], 40, rtol=1e-15)


@pytest.mark.parametrize(
    ("d", "factor", "kept", "blended", "divided"), [(128, 8, 29, 6, 29), (64, 32, 15, 3, 14)]
)
def test_llama_3_1_and_3_2_pairs(d, factor, kept, blended, divided):
    plain = posenc.inverse_frequencies(d, base=500_000)
    found = posenc.scaled_frequencies(
        d, "llama3", base=500_000, factor=factor, original_length=8192
    )
    ratios = found / plain
    assert np.count_nonzero(ratios == 1) == kept
    assert np.count_nonzero((ratios < 1) & (ratios > 1 / factor + 1e-12)) == blended
    assert np.count_nonzero(np.abs(ratios - 1 / factor) <= 1e-12) == divided


@pytest.mark.parametrize(("factor", "base"), [(4, 40_890), (8, 82_685), (16, 167_199)])
def test_ntk_bases(factor, base):
    found = posenc.scaled_frequencies(128, "ntk", factor=factor)
    assert round(found[1] ** -64) == base


def test_attention_factors_that_models_ship():
    assert posenc.yarn_attention_factor(8) == pytest.approx(1.2079441541679836, rel=1e-15)
    published = {4: 1.138629, 10: 1.230259, 16: 1.277259, 32: 1.346574, 40: 1.368888}
    for factor, expected in published.items():
        assert posenc.yarn_attention_factor(factor) == pytest.approx(expected, abs=5e-7)
    # On cosines and sines nothing is left, on the softmax scale the square.
    assert posenc.yarn_attention_factor(40, mscale=1, mscale_all_dim=1) == 1
    assert posenc.yarn_attention_factor(40) ** 2 == pytest.approx(1.873854, abs=5e-7)
    weighted = posenc.yarn_attention_factor(40, mscale=0.5, mscale_all_dim=0.8)
    expected = (1 + mpf("0.05") * log(40)) / (1 + mpf("0.08") * log(40))
    assert weighted == pytest.approx(float(expected), rel=1e-15)
    assert posenc.longrope_attention_factor(32, 4096) == pytest.approx(1.190238, abs=5e-7)
    assert posenc.longrope_attention_factor(1, 4096) == posenc.yarn_attention_factor(1) == 1


# Laws

sizes = st.integers(2, 64).map(lambda pairs: 2 * pairs)
factors = st.floats(1, 1000)
bases = st.floats(2, 1e8)
lengths = st.integers(1, 2**20)


@given(sizes, bases, factors, st.integers(-(2**20), 2**20))
@properties
def test_linear_scaling_is_division_of_positions(d, base, factor, position):
    scaled = posenc.scaled_frequencies(d, "linear", base=base, factor=factor)
    expected = position / factor * posenc.inverse_frequencies(d, base=base)
    np.testing.assert_allclose(position * scaled, expected, rtol=1e-15)


@given(sizes, bases, factors)
@properties
def test_ntk_keeps_the_fastest_pair_and_divides_the_slowest_by_the_factor(d, base, factor):
    plain = posenc.inverse_frequencies(d, base=base)
    found = posenc.scaled_frequencies(d, "ntk", base=base, factor=factor)
    assert found[0] == plain[0]
    assert found[-1] == plain[-1] / factor
    changed = posenc.inverse_frequencies(d, base=base * factor ** (d / (d - 2)))
    np.testing.assert_allclose(found, changed, rtol=5e-14)


@given(st.sampled_from(METHODS), sizes, bases, factors, lengths, lengths)
@properties
def test_every_method_lies_between_no_scaling_and_the_stretch(
    method, d, base, factor, original_length, length
):
    plain = posenc.inverse_frequencies(d, base=base)
    options = options_of(method, d // 2, factor, original_length, length)
    found = posenc.scaled_frequencies(d, method, base=base, **options)
    stretch = factor
    if method == "dynamic":
        stretch = 1 + factor * max(0, length / original_length - 1)
    tiny = 1e-14
    assert (found <= plain * (1 + tiny)).all()
    assert (found >= plain / stretch * (1 - tiny)).all()
    assert (np.diff(found) <= 0).all()
    # Slower pairs are slowed at least as much as faster ones, except where all are alike.
    assert (np.diff(plain / found) >= -tiny * factor).all()


@given(st.sampled_from(METHODS), sizes, bases, lengths, lengths)
@properties
def test_a_factor_of_one_changes_nothing(method, d, base, original_length, length):
    options = options_of(method, d // 2, 1, original_length, min(length, original_length))
    found = posenc.scaled_frequencies(d, method, base=base, **options)
    np.testing.assert_allclose(found, posenc.inverse_frequencies(d, base=base), rtol=3e-16)


@given(sizes, factors, lengths, lengths)
@properties
def test_dynamic_scaling_depends_on_the_length_alone_and_starts_after_the_original(
    d, factor, original_length, extra
):
    options = {"factor": factor, "original_length": original_length}
    plain = posenc.inverse_frequencies(d)
    within = posenc.scaled_frequencies(d, "dynamic", length=original_length, **options)
    np.testing.assert_array_equal(within, plain)
    longer = posenc.scaled_frequencies(d, "dynamic", length=original_length + extra, **options)
    assert longer[-1] < plain[-1]
    stretch = 1 + factor * extra / original_length
    np.testing.assert_array_equal(longer, posenc.scaled_frequencies(d, "ntk", factor=stretch))


@pytest.mark.parametrize(("original_length", "base", "kept"), [(10**9, 100.0, 4), (1, 10_000.0, 1)])
@pytest.mark.parametrize("truncate", [True, False])
def test_yarn_boundaries_outside_all_pairs(original_length, base, kept, truncate):
    """All pairs turn often enough to stay, or none does; the first pair always stays."""
    plain = posenc.inverse_frequencies(8, base=base)
    found = posenc.scaled_frequencies(
        8, "yarn", base=base, factor=4, original_length=original_length, truncate=truncate
    )
    np.testing.assert_array_equal(found[:kept], plain[:kept])
    np.testing.assert_array_equal(found[kept:], plain[kept:] / 4)


@given(factors, st.floats(0, 4), st.floats(0, 4))
@properties
def test_yarn_attention_factor_is_a_ratio_of_two_weights(factor, mscale, mscale_all_dim):
    found = posenc.yarn_attention_factor(factor, mscale=mscale, mscale_all_dim=mscale_all_dim)
    upper = posenc.yarn_attention_factor(factor, mscale=mscale)
    lower = posenc.yarn_attention_factor(factor, mscale=mscale_all_dim)
    assert found == pytest.approx(upper / lower, rel=1e-15)
    assert upper >= 1


@pytest.mark.parametrize("method", METHODS)
def test_what_all_methods_share_may_be_given_to_all(method):
    pairs = options_of("longrope", 4)
    own = {k: pairs[k] for k in ("short_factors", "long_factors") if method == "longrope"}
    found = posenc.scaled_frequencies(8, method, factor=4, original_length=2048, length=4096, **own)
    assert found[-1] < 0.001


# The smallest base


@pytest.mark.parametrize(
    ("length", "published"),
    [
        (2**10, "4.3e+03"),
        (2**11, "1.2e+04"),
        (2**12, "2.7e+04"),
        (2**13, "8.4e+04"),
        (2**14, "2.3e+05"),
        (2**15, "6.3e+05"),
    ],
)
def test_published_smallest_bases(length, published):
    assert f"{posenc.minimum_base(length, 128):.1e}" == published


@pytest.mark.parametrize("d", [6, 8, 64, 128])
@pytest.mark.parametrize("length", [3, 4, 100, 513])
def test_smallest_base_serves_and_no_smaller_one_does(length, d):
    distances = np.arange(length)
    found = posenc.minimum_base(length, d)
    assert posenc.position_kernel(distances, d, base=found).min() >= -1e-8
    grid = np.exp(np.linspace(0, np.log(found) - 1e-6, 1000))
    assert all(posenc.position_kernel(distances, d, base=base).min() < 0 for base in grid)
    # To nine digits: with 40 digits, a distance that fails below no longer fails above.
    below, above = mpf(found) * (1 - mpf("2e-9")), mpf(found) * (1 + mpf("2e-9"))
    obstacle = int(np.argmin(posenc.position_kernel(distances, d, base=float(below))))
    assert (
        truth.position_kernel(obstacle, d, below) < 0 <= truth.position_kernel(obstacle, d, above)
    )


@given(st.integers(1, 300), st.integers(3, 20).map(lambda pairs: 2 * pairs))
@settings(deadline=None, max_examples=30)
def test_smallest_base_never_falls_with_the_length(length, d):
    found, longer = posenc.minimum_base(length, d), posenc.minimum_base(length + 1, d)
    assert 1 <= found <= longer * (1 + 2e-9)


def test_smallest_base_needs_no_more_than_the_distances_that_occur():
    """cos 1 is positive and cos 2 is not, so the third position is the first that asks for more."""
    assert [posenc.minimum_base(n, 128) for n in (1, 2)] == [1, 1]
    assert posenc.minimum_base(3, 128) > 1


def test_a_larger_base_does_not_always_serve():
    assert posenc.minimum_base(1024, 128) < 5000
    distances = np.arange(1024)
    assert posenc.position_kernel(distances, 128, base=5000).min() < -0.1
    assert posenc.position_kernel(distances, 128, base=10_000).min() > 0
