"""Sinusoidal encodings against 40-digit truth, published values and their own identities."""

from fractions import Fraction

import numpy as np
import pytest
import truth
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import posenc

POSITIONS = [0, 1, 255, 4095, 131_071, 1e6, 1e7, -1, -4095, -131_071.5, 0.5, 1 / 3, 1234.5678]
SIZES = [2, 6, 64, 512, 768]

properties = settings(deadline=None, max_examples=60)
sizes = st.integers(1, 12).map(lambda pairs: 2 * pairs)
bases = st.sampled_from([10_000.0, 500_000.0, 10, 2.5])
shapes = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
positions = st.one_of(
    arrays.arrays(
        st.sampled_from([np.float64, np.float32]),
        shapes,
        elements=st.floats(-(2**20), 2**20, width=32),
    ),
    arrays.arrays(st.sampled_from([np.uint8, np.int8, np.uint16, np.int64, np.uint64]), shapes),
).map(lambda array: array % 2**20 if array.dtype.itemsize == 8 else array)


@pytest.mark.parametrize("base", [10_000.0, 500_000.0, 100])
@pytest.mark.parametrize("d_model", SIZES)
def test_frequencies_and_wavelengths_are_right_to_a_few_roundings(d_model, base):
    frequencies = posenc.inverse_frequencies(d_model, base=base)
    wavelengths = posenc.wavelengths(d_model, base=base)

    assert frequencies.dtype == wavelengths.dtype == np.float64
    assert frequencies.shape == wavelengths.shape == (d_model // 2,)
    exact = truth.inverse_frequencies(d_model, base)
    assert truth.largest_relative_error(frequencies, exact) <= 1e-15
    assert truth.largest_relative_error(wavelengths, truth.wavelengths(d_model, base)) <= 1e-15


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("d_model", SIZES)
def test_float64_error_grows_no_faster_than_the_position(d_model, position):
    found = posenc.sinusoidal_encoding(position, d_model)

    error = truth.largest_error(found, truth.encoding(position, d_model))
    assert found.dtype == np.float64
    assert error <= 2.5e-16 * max(1, abs(position)) + 1e-15


@pytest.mark.parametrize("d_model", SIZES)
def test_float32_is_right_at_every_position_because_angles_are_float64(d_model):
    found = posenc.sinusoidal_encoding(POSITIONS, d_model, dtype=np.float32)

    expected = [truth.encoding(position, d_model) for position in POSITIONS]
    assert found.dtype == np.float32
    assert truth.largest_error(found, expected) <= 1.2e-7


def test_another_base_is_right():
    found = posenc.sinusoidal_encoding(POSITIONS, 64, base=500_000.0)

    for row, position in zip(found, POSITIONS, strict=True):
        error = truth.largest_error(row, truth.encoding(position, 64, 500_000.0))
        assert error <= 2.5e-16 * max(1, abs(position)) + 1e-15


def test_frequencies_are_those_of_the_paper_and_not_of_tensor2tensor():
    np.testing.assert_allclose(posenc.inverse_frequencies(8), [1, 0.1, 0.01, 0.001], rtol=1e-15)


def test_two_dimensions_turn_once_in_two_pi():
    assert posenc.inverse_frequencies(2).tolist() == [1.0]
    assert posenc.wavelengths(2).tolist() == [2 * np.pi]


def test_longest_wavelength_stays_below_two_pi_base():
    assert posenc.wavelengths(64)[-1] == pytest.approx(47_117.24, abs=0.005)
    assert posenc.wavelengths(4096)[-1] < 2 * np.pi * 10_000


@pytest.mark.parametrize("d_model", [6, 8, 64])
def test_integer_base_gives_what_the_float_gives(d_model):
    for base in (10_000, np.int32(10_000), np.float32(10_000)):
        np.testing.assert_array_equal(
            posenc.inverse_frequencies(d_model, base=base),
            posenc.inverse_frequencies(d_model, base=10_000.0),
        )


def test_base_beyond_32_bits_does_not_overflow():
    found = posenc.inverse_frequencies(8, base=10**12)
    np.testing.assert_allclose(found, [1, 1e-3, 1e-6, 1e-9], rtol=1e-15)


PUBLISHED = {
    "keras-hub sine_position_encoding_test, d=6": (
        lambda: posenc.sinusoidal_encoding(3, 6),
        [0.14112, -0.98999, 0.13879, 0.99032, 0.00646, 0.99997],
        1e-5,
    ),
    "keras-hub sine_position_encoding_test, d=4": (
        lambda: posenc.sinusoidal_encoding(1, 4),
        [0.84147, 0.54030, 0.009999, 0.99995],
        1e-5,
    ),
    "transformers test_modeling_roformer, d=6 in halves": (
        lambda: posenc.sinusoidal_encoding(1, 6, layout="half"),
        [0.8415, 0.0464, 0.0022, 0.5403, 0.9989, 1.0],
        1e-4,
    ),
    "transformers test_modeling_roformer, d=512 in halves": (
        lambda: posenc.sinusoidal_table(3, 512, layout="half")[:, :5],
        [
            [0.0, 0.0, 0.0, 0.0, 0.0],
            [0.8415, 0.8219, 0.8020, 0.7819, 0.7617],
            [0.9093, 0.9364, 0.9581, 0.9749, 0.9870],
        ],
        1e-4,
    ),
    "fairseq test_positional_encoding, positions 3 to -3": (
        lambda: posenc.sinusoidal_table(7, 2, start=-3)[::-1],
        [
            [0.1411, -0.9900],
            [0.9093, -0.4161],
            [0.8415, 0.5403],
            [0.0, 1.0],
            [-0.8415, 0.5403],
            [-0.9093, -0.4161],
            [-0.1411, -0.9900],
        ],
        1e-4,
    ),
    "d=64, position 4": (
        lambda: posenc.sinusoidal_encoding(4, 64)[:8],
        [-0.757, -0.654, 0.142, -0.990, 0.778, -0.628, 0.993, -0.116],
        5e-4,
    ),
    "mean of a 512 x 512 table": (lambda: posenc.sinusoidal_table(512, 512).mean(), 0.267, 5e-4),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_values(name):
    call, expected, tolerance = PUBLISHED[name]
    np.testing.assert_allclose(call(), expected, rtol=0, atol=tolerance)


def test_tensor2tensor_spacing_is_another_encoding():
    tensor2tensor = [0.84147096, 0.82177866, 0.80180490, 0.78165019, 0.76140374]
    paper = posenc.sinusoidal_encoding(1, 512, layout="half")[:5]
    assert np.abs(paper - tensor2tensor).max() == pytest.approx(3.2e-4, abs=5e-5)


WRONG_ROWS_OF_POSITION_1 = {
    "exponent of the column, not of the pair": [0.841471, 0.999950, 0.0001, 1.0],
    "exponent zero by integer division": [0.841471, 0.540302, 0.841471, 0.540302],
    "base 1000 and odd exponents for the cosines": [0.841471, 0.984230, 0.031618, 0.999984],
    "positive exponent": [0.8415, 0.5403, -0.5064, 0.8623],
}


def test_row_of_position_1_is_right_and_none_of_the_known_wrong_ones():
    found = posenc.sinusoidal_encoding(1, 4)
    np.testing.assert_allclose(found, [0.841471, 0.540302, 0.0100, 0.999950], atol=5e-7)
    for wrong in WRONG_ROWS_OF_POSITION_1.values():
        assert np.abs(found - wrong).max() > 0.02


def test_every_position_has_a_row_of_its_own():
    table = posenc.sinusoidal_table(16_384, 32, dtype=np.float32)
    assert len(np.unique(table.view("V128"))) == len(table)


@pytest.mark.parametrize(("d_model", "distance"), [(4, 0.958903), (64, 1.471848), (512, 3.714270)])
def test_neighbours_lie_at_one_distance(d_model, distance):
    table = posenc.sinusoidal_table(100, d_model, start=-50)
    steps = np.linalg.norm(np.diff(table, axis=0), axis=1)
    np.testing.assert_allclose(steps, distance, atol=5e-7)


@given(positions, sizes, bases, st.sampled_from(["interleaved", "half"]))
@properties
def test_shape_dtype_and_unchanged_input(positions, d_model, base, layout):
    before = positions.copy()
    for dtype in (np.float16, np.float32, np.float64):
        found = posenc.sinusoidal_encoding(
            positions, d_model, base=base, layout=layout, dtype=dtype
        )
        assert found.shape == (*positions.shape, d_model)
        assert found.dtype == dtype
    np.testing.assert_array_equal(positions, before)


@given(positions, sizes, bases)
@properties
def test_an_array_of_positions_holds_the_encoding_of_each(positions, d_model, base):
    found = posenc.sinusoidal_encoding(positions, d_model, base=base)
    for index in np.ndindex(positions.shape):
        alone = posenc.sinusoidal_encoding(float(positions[index]), d_model, base=base)
        np.testing.assert_allclose(found[index], alone, rtol=0, atol=1e-15)


@given(positions, sizes, bases)
@properties
def test_layouts_differ_by_the_order_of_columns_alone(positions, d_model, base):
    interleaved = posenc.sinusoidal_encoding(positions, d_model, base=base)
    half = posenc.sinusoidal_encoding(positions, d_model, base=base, layout="half")
    order = [*range(0, d_model, 2), *range(1, d_model, 2)]
    np.testing.assert_array_equal(half, interleaved[..., order])


@given(positions, sizes)
@properties
def test_every_row_has_norm_root_of_half_the_size(positions, d_model):
    norms = np.linalg.norm(posenc.sinusoidal_encoding(positions, d_model), axis=-1)
    np.testing.assert_allclose(norms, np.sqrt(d_model / 2), rtol=1e-14)


@given(positions, sizes)
@properties
def test_opposite_positions_have_opposite_sines_and_equal_cosines(positions, d_model):
    forward = posenc.sinusoidal_encoding(positions.astype(float), d_model)
    backward = posenc.sinusoidal_encoding(-positions.astype(float), d_model)
    np.testing.assert_array_equal(backward[..., 0::2], -forward[..., 0::2])
    np.testing.assert_array_equal(backward[..., 1::2], forward[..., 1::2])


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=4),
    sizes,
    st.integers(-(10**6), 10**6),
    st.sampled_from(["interleaved", "half"]),
)
@properties
def test_blocks_from_start_concatenate_to_one_table(lengths, d_model, start, layout):
    blocks, position = [], start
    for length in lengths:
        blocks.append(posenc.sinusoidal_table(length, d_model, start=position, layout=layout))
        position += length
    whole = posenc.sinusoidal_table(sum(lengths), d_model, start=start, layout=layout)
    np.testing.assert_allclose(np.concatenate(blocks), whole, rtol=0, atol=1e-15)


@given(st.integers(0, 20), sizes, bases, st.integers(-(10**6), 10**6))
@properties
def test_a_table_holds_the_encodings_of_consecutive_positions(length, d_model, base, start):
    table = posenc.sinusoidal_table(length, d_model, start=start, base=base)
    rows = posenc.sinusoidal_encoding(range(start, start + length), d_model, base=base)
    assert table.shape == (length, d_model)
    furthest = max(1, abs(start), abs(start + length))
    fastest = max(1, posenc.inverse_frequencies(d_model, base=base).max())
    np.testing.assert_allclose(table, rows, rtol=0, atol=2.5e-16 * furthest * fastest + 1e-15)


@pytest.mark.parametrize(
    "given_positions",
    [
        [3, 200],
        (3, 200),
        range(3, 201, 197),
        np.array([3, 200], np.uint8),
        np.array([3, 200], np.float16),
        np.array([3, 200], object),
        np.array([[3, 0], [200, 0]])[:, 0],
        [np.int64(3), Fraction(200)],
    ],
    ids=lambda value: f"{type(value).__name__} {getattr(value, 'dtype', '')}",
)
def test_every_form_of_the_same_positions_gives_the_same_rows(given_positions):
    expected = posenc.sinusoidal_encoding([3.0, 200.0], 8)
    np.testing.assert_array_equal(posenc.sinusoidal_encoding(given_positions, 8), expected)


def test_small_integer_types_do_not_wrap():
    found = posenc.sinusoidal_encoding(np.array([-128, 127], np.int8), 64)
    np.testing.assert_array_equal(found, posenc.sinusoidal_encoding([-128.0, 127.0], 64))


def test_integers_beyond_64_bits_are_positions_too():
    expected = truth.encoding(2**70, 4, 1e42)
    found = posenc.sinusoidal_encoding([2**70], 4, base=1e42)[0]
    assert truth.largest_error(found[2:], expected[2:]) <= 1e-15


def test_half_precision_results_keep_neighbours_apart():
    for position in (256, 2048):
        near, far = posenc.sinusoidal_encoding([position, position + 1], 64, dtype=np.float16)
        assert np.abs(near - far).max() > 0.3


def test_table_fills_the_array_it_is_given():
    out = np.full((5, 12), 7.0, np.float32)[:, ::2]
    result = posenc.sinusoidal_table(5, 6, start=2, layout="half", out=out)
    assert result is out
    expected = posenc.sinusoidal_table(5, 6, start=2, layout="half", dtype=np.float32)
    np.testing.assert_array_equal(out, expected)
    assert (out.base[:, 1::2] == 7).all()


def test_a_table_of_no_rows_is_empty():
    assert posenc.sinusoidal_table(0, 6).shape == (0, 6)


def test_tables_do_not_share_memory():
    first = posenc.sinusoidal_table(4, 6)
    first[...] = 0
    assert posenc.sinusoidal_table(4, 6).any()


@given(st.integers(1, 4), st.integers(0, 5), st.integers(0, 3), st.integers(0, 2**32 - 1))
@properties
def test_adding_gives_every_sequence_of_a_batch_the_same_rows(batch, length, start, seed):
    x = np.random.default_rng(seed).standard_normal((batch, length, 6))
    table = posenc.sinusoidal_table(8, 6)
    before = x.copy(), table.copy()
    found = posenc.add_positions(x, table, start=start)
    for sequence, embeddings in zip(found, x, strict=True):
        for row in range(length):
            np.testing.assert_array_equal(sequence[row], embeddings[row] + table[start + row])
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(table, before[1])
    assert not np.shares_memory(found, x)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_adding_a_float64_table_keeps_the_dtype_of_the_embeddings(dtype):
    x = np.ones((2, 3, 4), dtype)
    assert posenc.add_positions(x, posenc.sinusoidal_table(3, 4)).dtype == dtype


def test_integer_embeddings_do_not_round_positions_away():
    x = np.zeros((4, 6), np.int64)
    table = posenc.sinusoidal_table(4, 6)
    np.testing.assert_array_equal(posenc.add_positions(x, table), table)


def test_adding_one_token_at_a_time_equals_adding_to_the_whole_sequence():
    x = np.random.default_rng(1).standard_normal((2, 7, 6))
    table = posenc.sinusoidal_table(7, 6)
    steps = [posenc.add_positions(x[:, :3], table)]
    steps += [posenc.add_positions(x[:, t : t + 1], table, start=t) for t in range(3, 7)]
    np.testing.assert_array_equal(np.concatenate(steps, axis=1), posenc.add_positions(x, table))


def test_the_last_row_of_a_table_can_be_added_and_no_later_one():
    table = posenc.sinusoidal_table(8, 6)
    posenc.add_positions(np.zeros((3, 6)), table, start=5)
    with pytest.raises(IndexError, match=r"rows 0\.\.7, got position 8"):
        posenc.add_positions(np.zeros((3, 6)), table, start=6)
