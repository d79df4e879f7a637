"""Rounding to 16-bit formats against ml_dtypes, crafted ties, and counts of what survives."""

import functools
import struct

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import posenc

properties = settings(deadline=None, max_examples=200)
# Significant bits, exponent of the smallest normal number, and the rounding.
FORMATS = {
    "bfloat16": (8, -126, ml_dtypes.bfloat16, posenc.round_to_bfloat16),
    "float16": (11, -14, np.float16, posenc.round_to_float16),
}
formats = pytest.mark.parametrize("name", FORMATS)


def every_value(dtype):
    """All 65 536 bit patterns of a 16-bit format, as float64."""
    with np.errstate(invalid="ignore"):
        return np.arange(2**16, dtype=np.uint16).view(dtype).astype(np.float64)


@functools.cache
def finite_values(dtype):
    values = every_value(dtype)
    return np.unique(values[np.isfinite(values)])


def bits(array):
    """What tells -0.0 from 0.0; every nan counts as the same."""
    array = np.asarray(array, np.float64)
    return np.where(np.isnan(array), np.uint64(0x7FF8 << 48), array.view(np.uint64))


@formats
def test_numbers_of_the_format_stay_what_they_are(name):
    _, _, dtype, rounding = FORMATS[name]
    values = every_value(dtype)
    np.testing.assert_array_equal(bits(rounding(values)), bits(values))


@formats
def test_all_ties_and_their_neighbours_go_where_they_should(name):
    _, _, dtype, rounding = FORMATS[name]
    values = finite_values(dtype)
    below, above = values[:-1], values[1:]
    ties = (below + above) / 2
    np.testing.assert_array_equal(rounding(np.nextafter(ties, -np.inf)), below)
    np.testing.assert_array_equal(rounding(np.nextafter(ties, np.inf)), above)
    last_bits = below.astype(dtype).view(np.uint16) & 1
    np.testing.assert_array_equal(rounding(ties), np.where(last_bits, above, below))


def test_bfloat16_equals_ml_dtypes_on_float32_patterns_of_every_upper_half():
    # The upper half of a float32 decides all but the tie; these lower halves cover both sides.
    upper = np.arange(2**16, dtype=np.uint32) << 16
    for lower in (0x0000, 0x0001, 0x7FFF, 0x8000, 0x8001, 0xFFFF):
        x = (upper | np.uint32(lower)).view(np.float32)
        with np.errstate(invalid="ignore"):
            expected = x.astype(ml_dtypes.bfloat16).astype(np.float64)
            found = posenc.round_to_bfloat16(x)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(bits(found), bits(expected))


def test_float16_equals_numpy_on_float32_patterns_of_every_upper_half():
    upper = np.arange(2**16, dtype=np.uint32) << 16
    for lower in (0x0000, 0x0FFF, 0x1000, 0x1001, 0x3000, 0xF000, 0xFFFF):
        x = (upper | np.uint32(lower)).view(np.float32)
        with np.errstate(invalid="ignore", over="ignore"):
            expected = x.astype(np.float16).astype(np.float64)
            found = posenc.round_to_float16(x)
        assert found.dtype == np.float16
        np.testing.assert_array_equal(bits(found), bits(expected))


@formats
@pytest.mark.parametrize("exponent", [-150, -140, -130, -20, -15, -14, 0, 8, 15])
def test_rounded_once_and_not_through_float32(name, exponent):
    digits, least, _, rounding = FORMATS[name]
    spacing = 2.0 ** (max(exponent, least) - (digits - 1))
    # A hair above the tie: float32 rounds the hair away, and the tie then goes down to even.
    tie = 2.0**exponent + spacing / 2 if exponent >= least else spacing / 2
    hair = tie * 2.0**-40
    down = tie - spacing / 2
    assert rounding(tie) == down
    assert rounding(tie + hair) == down + spacing
    assert rounding(-tie - hair) == -down - spacing
    if np.float32(tie) == tie:
        assert rounding(np.float32(tie + hair)) == down, "no double rounding to tell apart here"


def test_ml_dtypes_itself_rounds_twice_where_we_do_not():
    x = np.array([1 + 2.0**-8 + 2.0**-40])
    assert posenc.round_to_bfloat16(x) == 1 + 2.0**-7
    assert posenc.round_to_bfloat16(x.astype(np.float32)) == 1.0


@formats
def test_the_end_of_the_range(name):
    _, _, dtype, rounding = FORMATS[name]
    largest = finite_values(dtype)[-1]
    beyond = largest + (largest - finite_values(dtype)[-2])
    tie = (largest + beyond) / 2
    assert rounding(np.nextafter(tie, 0)) == largest
    # The tie's other neighbour would be a power of two, which is even; it is out of range.
    assert rounding(tie) == np.inf
    assert rounding(-tie) == -np.inf
    assert rounding(np.finfo(np.float64).max) == np.inf
    assert rounding(np.inf) == np.inf
    assert np.isnan(rounding(np.nan))


@formats
def test_the_smallest_numbers(name):
    digits, least, _, rounding = FORMATS[name]
    smallest = 2.0 ** (least - (digits - 1))
    assert rounding(smallest) == smallest
    assert rounding(smallest / 2) == 0
    assert rounding(np.nextafter(smallest / 2, 1)) == smallest
    assert rounding(1.5 * smallest) == 2 * smallest
    assert rounding(5e-324) == 0
    assert np.signbit(rounding(-5e-324))


@formats
@given(st.floats(allow_nan=False, width=64))
@properties
def test_no_number_of_the_format_is_nearer(name, x):
    _, _, dtype, rounding = FORMATS[name]
    values = finite_values(dtype)
    found = float(rounding(x))
    if np.isfinite(found):
        near = values[np.clip(np.searchsorted(values, x) + np.arange(-1, 2), 0, len(values) - 1)]
        # Differences of numbers this close are exact, or so large that the order is plain.
        assert abs(found - x) == np.abs(near - x).min()
    else:
        assert abs(x) > values[-1]


@formats
def test_shape_type_and_input(name):
    _, _, _, rounding = FORMATS[name]
    x = np.linspace(-3, 3, 24).reshape(2, 3, 4)
    before = x.copy()
    rounded = rounding(x[:, ::-1])
    assert rounded.shape == (2, 3, 4)
    assert rounded.dtype == {"bfloat16": np.float32, "float16": np.float16}[name]
    np.testing.assert_array_equal(x, before)
    assert rounding(x.astype(np.float16)).dtype == rounded.dtype
    assert rounding(np.arange(3, dtype=np.uint8)).tolist() == [0, 1, 2]
    assert rounding(np.empty((0, 2))).shape == (0, 2)


def test_bfloat16_is_the_upper_half_of_a_float32():
    rounded = posenc.round_to_bfloat16(np.random.default_rng(0).standard_normal(1000))
    assert not (rounded.view(np.uint32) & 0xFFFF).any()


def test_float16_agrees_with_the_standard_library():
    for x in np.random.default_rng(1).standard_normal(1000) * 1e-4:
        assert float(posenc.round_to_float16(x)) == struct.unpack("e", struct.pack("e", x))[0]


@pytest.mark.parametrize(
    ("low", "high", "dtype", "count"),
    [
        (0, 257, "bfloat16", 257),
        (256, 512, "bfloat16", 129),
        (16_384, 32_768, "bfloat16", 129),
        (-512, -255, "bfloat16", 129),
        (0, 2049, "float16", 2049),
        (2048, 4096, "float16", 1025),
        (65_519, 65_600, "float16", 2),
        (2**24 - 5, 2**24 + 1, "float32", 6),
        (2**24, 2**24 + 8, "float32", 5),
        (2**53 - 8, 2**53, "float64", 8),
        (7, 7, "bfloat16", 0),
        (256, 512, ml_dtypes.bfloat16, 129),
        (256, 512, np.float16, 256),
        (256, 512, np.dtype("float32"), 256),
    ],
)
def test_distinct_positions(low, high, dtype, count):
    assert posenc.distinct_positions(low, high, dtype) == count


@formats
@given(st.integers(-70_000, 70_000), st.integers(0, 3000))
@properties
def test_distinct_positions_counts_a_set(name, low, length):
    _, _, dtype, _ = FORMATS[name]
    with np.errstate(over="ignore"):
        rounded = np.arange(low, low + length).astype(np.float64).astype(dtype)
    expected = len(set(rounded.astype(np.float64).tolist()))
    assert posenc.distinct_positions(low, low + length, name) == expected
