"""Relative positions, ALiBi and T5's buckets against exact arithmetic and published values."""

from fractions import Fraction

import numpy as np
import pytest
import truth
from hypothesis import given, settings
from hypothesis import strategies as st

import posenc

INTEGERS = [np.dtype(kind) for kind in "bBhHiIqQ"]

properties = settings(deadline=None, max_examples=100)
any_integer = st.one_of(st.integers(-300, 300), st.integers(-(2**70), 2**70))
head_counts = st.integers(1, 200)


def both_directions(text, values):
    return pytest.mark.parametrize(
        (*text, "bidirectional"), [(*value, way) for value in values for way in (True, False)]
    )


# Relative positions


@pytest.mark.parametrize("query_type", INTEGERS, ids=str)
@pytest.mark.parametrize("key_type", INTEGERS, ids=str)
def test_integer_types_never_wrap_at_their_ends(query_type, key_type):
    ends = [int(np.iinfo(query_type).min), 0, 1, int(np.iinfo(query_type).max)]
    others = [int(np.iinfo(key_type).min), 0, 1, int(np.iinfo(key_type).max)]
    queries, keys = np.array(ends, query_type), np.array(others, key_type)
    found = posenc.relative_positions(queries, keys)
    assert found.tolist() == [[key - query for key in others] for query in ends]
    assert found.dtype == (np.int64 if max(query_type.itemsize, key_type.itemsize) < 8 else object)
    assert queries.tolist() == ends
    assert keys.tolist() == others


@given(st.lists(any_integer, max_size=4), st.lists(any_integer, max_size=4))
@properties
def test_python_integers_of_any_size_are_exact(queries, keys):
    found = posenc.relative_positions(queries, keys)
    assert found.shape == (len(queries), len(keys))
    assert found.tolist() == [[key - query for key in keys] for query in queries]


@pytest.mark.parametrize("large", [2**63, 2**64 - 1, 2**64])
def test_a_list_of_integers_around_the_end_of_int64_is_not_rounded(large):
    """NumPy alone makes float64 of [0, 2**63]."""
    found = posenc.relative_positions([0, large], [-1, large - 1])
    assert found.tolist() == [[-1, large - 1], [-1 - large, -1]]
    assert posenc.t5_bucket([-1, large, 0]).tolist() == [1, 31, 0]


def test_differences_that_fit_are_int64_even_of_huge_positions():
    found = posenc.relative_positions([2**80], [2**80 + 3, 2**80 - 2**61])
    assert found.dtype == np.int64
    assert found.tolist() == [[3, -(2**61)]]


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_real_positions_are_subtracted_in_float64(kind):
    queries, keys = np.array([0.1, 1e3], kind), np.array([0.3, -7.75, 0.0], kind)
    found = posenc.relative_positions(queries, keys)
    assert found.dtype == np.float64
    expected = np.subtract.outer(queries.astype(float), keys.astype(float))
    np.testing.assert_array_equal(found, -expected)
    np.testing.assert_array_equal(
        posenc.relative_positions(range(2), keys), keys.astype(float) - [[0.0], [1.0]]
    )


def test_leading_axes_broadcast():
    queries, keys = np.arange(6).reshape(2, 1, 3), np.arange(20).reshape(4, 5)
    found = posenc.relative_positions(queries, keys)
    assert found.shape == (2, 4, 3, 5)
    assert found[1, 2, 0, 4] == keys[2, 4] - queries[1, 0, 0]
    bias = posenc.alibi_bias(7, queries, keys)
    assert bias.shape == (2, 4, 7, 3, 5)
    np.testing.assert_array_equal(bias[1, 2], posenc.alibi_bias(7, queries[1, 0], keys[2]))
    assert posenc.t5_bucket(found).shape == found.shape


# ALiBi


@pytest.mark.parametrize(
    ("n_heads", "max_exponent", "expected"),
    [
        (8, 8, [0.5**h for h in range(1, 9)]),
        (1, 8, [2**-8]),
        (2, 12, [0.015625, 0.00024414]),
        (3, 6, [0.125, 0.015625, 0.35355338]),
        (12, 8, [*(0.5**h for h in range(1, 9)), 0.70710677, 0.35355338, 0.17677669, 0.08838835]),
        (16, 8, [2 ** (-h / 2) for h in range(1, 17)]),
    ],
)
def test_published_slopes(n_heads, max_exponent, expected):
    found = posenc.alibi_slopes(n_heads, max_exponent=max_exponent)
    np.testing.assert_allclose(found, expected, rtol=2e-5 if max_exponent == 12 else 1e-7)


@given(head_counts, st.floats(0.5, 64))
@properties
def test_slopes_are_exact_and_fall_within_each_series(n_heads, max_exponent):
    found = posenc.alibi_slopes(n_heads, max_exponent=max_exponent)
    below = max(2**k for k in range(8) if 2**k <= n_heads)
    two, largest = truth.exact.mpf(2), truth.exact.mpf(max_exponent)
    # The second series holds the odd steps of twice as many heads, which lie between the first's.
    steps = [Fraction(h, below) for h in range(1, below + 1)]
    steps += [Fraction(2 * h - 1, 2 * below) for h in range(1, n_heads - below + 1)]
    expected = [two ** (-largest * step.numerator / step.denominator) for step in steps]
    assert truth.largest_relative_error(found, expected) <= 2e-16 * (2 + max_exponent)
    assert len(set(found.tolist())) == n_heads
    assert (np.diff(found[:below]) < 0).all()
    assert (np.diff(found[below:]) < 0).all()
    assert 0 < found.min() <= found.max() < 1


@given(
    head_counts,
    st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=4),
    st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=4),
)
@properties
def test_bias_is_symmetric_and_falls_with_distance(n_heads, queries, keys):
    found = posenc.alibi_bias(n_heads, queries, keys)
    assert found.shape == (n_heads, len(queries), len(keys))
    np.testing.assert_array_equal(
        found, np.swapaxes(posenc.alibi_bias(n_heads, keys, queries), -1, -2)
    )
    distance = np.abs(np.subtract.outer(queries, keys))
    expected = -posenc.alibi_slopes(n_heads)[:, np.newaxis, np.newaxis] * distance
    np.testing.assert_array_equal(found, expected)


def test_no_distance_gives_a_plain_zero_for_integers_and_reals():
    for positions in ([0, 5], [0.0, 5.5]):
        zeros = posenc.alibi_bias(3, positions, positions)[:, [0, 1], [0, 1]]
        assert not np.signbit(zeros).any()
        assert (zeros == 0).all()


# T5's buckets


def bucket_by_fractions(relative, bidirectional, num_buckets, max_distance):
    """Count the exact powers of the ratio that a distance has reached."""
    buckets = num_buckets // 2 if bidirectional else num_buckets
    small = buckets // 2
    distance = abs(relative) if bidirectional else max(-relative, 0)
    bucket = distance
    if distance >= small:
        ratio = Fraction(distance, small) ** (buckets - small)
        bucket = small
        while bucket < buckets - 1 and ratio >= Fraction(max_distance, small) ** (
            bucket + 1 - small
        ):
            bucket += 1
    return bucket + (buckets if bidirectional and relative > 0 else 0)


def bucket_by_logarithms(relative, bidirectional, num_buckets, max_distance):
    """Follow the published formula with 40 digits; ties, seen to 30 digits, belong above."""
    buckets = num_buckets // 2 if bidirectional else num_buckets
    small = buckets // 2
    distance = abs(relative) if bidirectional else max(-relative, 0)
    bucket = distance
    if distance >= small:
        log, tie = truth.exact.log, truth.exact.mpf("1e-30")
        share = log(truth.exact.mpf(distance) / small) / log(truth.exact.mpf(max_distance) / small)
        bucket = min(buckets - 1, small + int(share * (buckets - small) + tie))
    return bucket + (buckets if bidirectional and relative > 0 else 0)


LISTED = [(32, 128), (12, 10), (32, 256), (64, 128), (16, 64)]
OTHERS = [(4, 3), (4, 1000), (6, 27), (10, 250), (34, 81), (48, 81), (96, 600), (128, 129), (8, 5)]


@both_directions(("num_buckets", "max_distance"), [*LISTED, *OTHERS])
def test_buckets_are_exact_over_a_range(num_buckets, max_distance, bidirectional):
    relative = range(-300, 301)
    options = (bidirectional, num_buckets, max_distance)
    found = posenc.t5_bucket(
        list(relative),
        bidirectional=bidirectional,
        num_buckets=num_buckets,
        max_distance=max_distance,
    )
    assert found.dtype == np.int64
    assert found.tolist() == [bucket_by_fractions(n, *options) for n in relative]
    assert found.tolist() == [bucket_by_logarithms(n, *options) for n in relative]


def test_a_distance_that_a_float32_logarithm_puts_into_the_bucket_below():
    """36 = 24 * (81 / 24) ** (8 / 24) exactly, so it is the first of bucket 24 + 8."""
    share = np.log(np.float32(36) / np.float32(24)) / np.log(np.float32(81 / 24))
    assert 24 + int(share * np.float32(24)) == 31
    found = posenc.t5_bucket([-35, -36], bidirectional=False, num_buckets=48, max_distance=81)
    assert found.tolist() == [31, 32]


@pytest.mark.parametrize(
    ("bidirectional", "expected"),
    [
        (True, [0, 1, 7, 8, 9, 10, 11, 12, 14, 15, 15]),
        (False, [0, 1, 7, 8, 15, 16, 21, 21, 26, 31, 31]),
    ],
)
def test_default_buckets(bidirectional, expected):
    before = -np.array([0, 1, 7, 8, 15, 16, 31, 32, 64, 127, 128])
    assert posenc.t5_bucket(before, bidirectional=bidirectional).tolist() == expected
    after = [n + 16 for n in expected[1:]] if bidirectional else [0] * 10
    assert posenc.t5_bucket(-before[1:], bidirectional=bidirectional).tolist() == after


@st.composite
def bucket_options(draw):
    bidirectional = draw(st.booleans())
    directions = 2 if bidirectional else 1
    num_buckets = directions * draw(st.integers(2, 40))
    smallest = num_buckets // directions // 2 + 1
    max_distance = draw(st.one_of(st.integers(smallest, 600), st.integers(smallest, 2**62)))
    return {
        "bidirectional": bidirectional,
        "num_buckets": num_buckets,
        "max_distance": max_distance,
    }


@given(bucket_options(), st.lists(st.one_of(any_integer, st.integers(-700, 700)), min_size=1))
@properties
def test_buckets_rise_with_distance_within_their_range(options, relative):
    relative = sorted(relative)
    found = posenc.t5_bucket(relative, **options)
    way = (options["bidirectional"], options["num_buckets"], options["max_distance"])
    assert found.tolist() == [bucket_by_fractions(n, *way) for n in relative]
    before = found[[n <= 0 for n in relative]]
    after = found[[n > 0 for n in relative]]
    buckets = options["num_buckets"] // (2 if options["bidirectional"] else 1)
    assert (np.diff(before) <= 0).all()
    assert ((before >= 0) & (before < buckets)).all()
    if options["bidirectional"]:
        assert (np.diff(after) >= 0).all()
        mirrored = posenc.t5_bucket([-n for n in relative if n > 0], **options)
        np.testing.assert_array_equal(after, mirrored + buckets)
    else:
        assert (after == 0).all()


@given(bucket_options())
@properties
def test_small_distances_have_their_own_bucket_and_the_largest_the_last(options):
    buckets = options["num_buckets"] // (2 if options["bidirectional"] else 1)
    small = -np.arange(buckets // 2 + 1)
    assert posenc.t5_bucket(small, **options).tolist() == [-n for n in small.tolist()]
    far = [-options["max_distance"], -(10**30)]
    assert posenc.t5_bucket(far, **options).tolist() == [buckets - 1] * 2


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_ends_of_integer_types_fall_into_the_right_buckets(kind):
    ends = [int(np.iinfo(kind).min), int(np.iinfo(kind).max)]
    for bidirectional in (True, False):
        options = (bidirectional, 32, 128)
        found = posenc.t5_bucket(np.array(ends, kind), bidirectional=bidirectional)
        assert found.tolist() == [bucket_by_fractions(n, *options) for n in ends]


@pytest.mark.parametrize("bidirectional", [True, False])
def test_shape_is_kept_from_a_number_to_no_number_at_all(bidirectional):
    for shape in ((), (0,), (3, 0), (2, 1, 3)):
        found = posenc.t5_bucket(np.full(shape, -1), bidirectional=bidirectional)
        assert isinstance(found, np.ndarray)
        assert found.shape == shape
        assert (found == 1).all()
