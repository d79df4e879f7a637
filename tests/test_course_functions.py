"""The functions of the later exercises, against brute force, exact truth, published figures."""

import itertools

import numpy as np
import pytest
import truth
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import posenc

properties = settings(deadline=None, max_examples=50)
numbers = st.floats(-100, 100, width=32)
CYCLE = [1, 2, 3, 4, 5, 0]


def draw(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


# split_pairs and angles


@given(arrays(np.float64, array_shapes(max_dims=3, max_side=4), elements=numbers))
@properties
def test_pairs_hold_neighbours(x):
    x = np.repeat(x, 2, axis=-1) + np.arange(2 * x.shape[-1])
    pairs = posenc.split_pairs(x)
    assert pairs.shape == (*x.shape[:-1], x.shape[-1] // 2, 2)
    np.testing.assert_array_equal(pairs[..., 0], x[..., 0::2])
    np.testing.assert_array_equal(pairs[..., 1], x[..., 1::2])


def test_pairs_are_new_memory_and_keep_their_dtype():
    x = np.arange(8, dtype=np.float32)
    pairs = posenc.split_pairs(x)
    assert pairs.dtype == np.float32
    pairs[...] = 0
    assert x.tolist() == list(range(8))


def test_pairs_of_an_encoding_are_points_on_the_circle():
    pairs = posenc.split_pairs(posenc.sinusoidal_encoding([0.5, 7, 1e6], 16))
    np.testing.assert_allclose(np.linalg.norm(pairs, axis=-1), 1, rtol=1e-15)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (2, 1, 3)])
def test_angles_multiply_every_position_with_every_frequency(shape):
    positions, frequencies = draw(0, *shape), draw(1, 5)
    found = posenc.angles(positions, frequencies)
    assert found.shape == (*shape, 5)
    for index in np.ndindex(shape):
        for pair in range(5):
            assert found[(*index, pair)] == positions[index] * frequencies[pair]


def test_angles_of_integers_do_not_overflow():
    positions = np.array([2**31 - 1], np.int32)
    assert posenc.angles(positions, np.array([4], np.int32)).tolist() == [[4.0 * (2**31 - 1)]]


def test_angles_of_the_paper_give_its_encoding():
    found = posenc.angles([0, 5, 131_071], posenc.inverse_frequencies(16))
    encoding = posenc.sinusoidal_encoding([0, 5, 131_071], 16)
    np.testing.assert_array_equal(np.sin(found), encoding[:, 0::2])
    np.testing.assert_array_equal(np.cos(found), encoding[:, 1::2])


# impossible_pairs

PRINTED = [
    [0, 1, 0, 1, 0, 1, 0, 1],
    [-0.757, -0.654, 0, 0, 0, 0, 0, 0],
    [0.412, -0.911, 0, 0, 0, 0, 0, 0],
    [0.991, 0.137, 0, 0, 0, 0, 0, 0],
    [0.150, 0.989, 0, 0, 0, 0, 0, 0],
]


def test_the_printed_table_has_twelve_impossible_pairs():
    expected = set(itertools.product(range(1, 5), range(1, 4)))
    found = posenc.impossible_pairs(PRINTED, tolerance=2e-3)
    assert found == expected
    assert len(found) == 12
    assert {type(number) for pair in found for number in pair} == {int}


def test_rounding_to_three_decimals_stays_below_the_tolerance_of_practice():
    # The largest error of the sum of squares is half a unit times |sin| + |cos|, twice.
    assert 2 * 0.0005 * np.sqrt(2) + 2 * 0.0005**2 < 2e-3
    rounded = posenc.sinusoidal_table(4096, 64).round(3)
    assert posenc.impossible_pairs(rounded, tolerance=2e-3) == set()
    assert posenc.impossible_pairs(rounded, tolerance=1e-3) != set()


@given(
    st.sets(st.tuples(st.integers(0, 9), st.integers(0, 7)), max_size=20),
    st.floats(0.1, 2),
    st.booleans(),
)
@properties
def test_exactly_the_pairs_that_were_spoilt_are_found(spoilt, factor, cosine):
    table = posenc.sinusoidal_encoding(np.arange(100, 110), 16)
    for row, pair in spoilt:
        table[row, 2 * pair : 2 * pair + 2] *= 1 + factor if cosine else 0
    assert posenc.impossible_pairs(table, tolerance=1e-9) == spoilt


def test_what_lies_within_the_tolerance_is_no_finding():
    table = [[0.0, 1.5], [0.0, 0.5]]
    assert posenc.impossible_pairs(table, tolerance=1.25) == set()
    assert posenc.impossible_pairs(table, tolerance=1.0) == {(0, 0)}
    assert posenc.impossible_pairs(table, tolerance=0.5) == {(0, 0), (1, 0)}


# nearest_repeat


@pytest.mark.parametrize(("d_model", "offset"), [(4, 3795), (8, 3676), (16, 1), (32, 1), (64, 1)])
def test_a_small_base_repeats_only_in_few_dimensions(d_model, offset):
    assert posenc.nearest_repeat(d_model, 10, 8192)[0] == offset


def test_the_neighbour_is_nearest_at_64_dimensions():
    # The published figure is per pair: root mean square over the 32 of them.
    assert round(posenc.nearest_repeat(64, 10, 8192)[1] / np.sqrt(32), 3) == 0.470


@pytest.mark.parametrize(("length", "offset"), [(1, 1), (18, 6), (43, 25), (44, 44), (709, 333)])
def test_one_circle_repeats_at_the_best_fractions_of_a_turn(length, offset):
    # 6/1, 25/4, 44/7, 333/53, 710/113 and 103993/16551 are convergents of 2 pi.
    assert posenc.nearest_repeat(2, 10_000, length)[0] == offset


def test_small_distances_are_exact():
    for length, offset in ((50_000, 710), (200_000, 103_993)):
        found, distance = posenc.nearest_repeat(2, 10_000, length)
        expected = abs(2 * truth.exact.sin(truth.exact.mpf(offset) / 2))
        assert found == offset
        assert abs(distance / expected - 1) < 1e-6


@given(st.integers(1, 6), st.sampled_from([2.0, 10, 100.0, 10_000]), st.integers(1, 300))
@properties
def test_nearest_repeat_against_all_the_distances(pairs, base, length):
    offset, distance = posenc.nearest_repeat(2 * pairs, base, length)
    encodings = posenc.sinusoidal_encoding(np.arange(length + 1), 2 * pairs, base=base)
    distances = np.linalg.norm(encodings[1:] - encodings[0], axis=-1)
    assert 1 <= offset <= length
    assert type(offset) is int
    assert type(distance) is float
    assert distance == pytest.approx(distances.min(), abs=1e-12)
    assert distances[offset - 1] == pytest.approx(distance, abs=1e-12)


# classify_symmetry

PERMUTATIONS = [CYCLE, [2, 0, 1, 5, 4, 3], [0, 1, 3, 2, 5, 4]]
REVERSAL = [[5, 4, 3, 2, 1, 0]]
weights = draw(7, 3, 4, 4)


def attend(x, causal=False):
    return posenc.self_attention(x, *weights, causal=causal)[0]


def smooth(x):
    padded = np.pad(x, ((1, 1), (0, 0)))
    return padded[:-2] + 2 * padded[1:-1] + padded[2:]


FUNCTIONS = {
    "attention": (attend, "equivariant"),
    "causal attention": (lambda x: attend(x, causal=True), "neither"),
    "attention, then mean": (lambda x: attend(x).mean(axis=0), "invariant"),
    "with positions": (lambda x: attend(x + posenc.sinusoidal_table(6, 4)), "neither"),
    "weights": (lambda x: x @ x.T, "neither"),
    "norms": (lambda x: np.linalg.norm(x, axis=-1), "equivariant"),
    "one number": (lambda x: x.max(), "invariant"),
    "Gram matrix of columns": (lambda x: x.T @ x, "invariant"),
    "constant": (lambda x: np.ones((6, 2)), "invariant"),
    "zero": (lambda x: 0 * x, "invariant"),
    "convolution": (smooth, "neither"),
    "first row": (lambda x: x[0], "neither"),
    "list": (lambda x: x.tolist(), "equivariant"),
    "sort": (lambda x: np.sort(x, axis=0), "invariant"),
    "one row more": (lambda x: np.vstack([x, x[:1]]), "neither"),
    "float32": (lambda x: attend(x).astype(np.float32), "equivariant"),
    "tiny": (lambda x: 1e-30 * np.cumsum(x, axis=0), "neither"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_symmetries(name):
    function, expected = FUNCTIONS[name]
    assert posenc.classify_symmetry(function, draw(3, 6, 4), PERMUTATIONS) == expected


def test_reversal_alone_misjudges_a_symmetric_convolution():
    assert posenc.classify_symmetry(smooth, draw(3, 6, 4), REVERSAL) == "equivariant"
    assert posenc.classify_symmetry(smooth, draw(3, 6, 4), [*REVERSAL, CYCLE]) == "neither"


def test_a_function_cannot_change_the_input_for_the_next():
    x = draw(3, 6, 4)
    before = x.copy()

    def spoil(rows):
        rows *= 2
        return rows

    assert posenc.classify_symmetry(spoil, x, PERMUTATIONS) == "equivariant"
    np.testing.assert_array_equal(x, before)


def test_every_permutation_counts():
    for place in range(3):
        permutations = [list(range(6))] * 3
        permutations[place] = CYCLE
        found = posenc.classify_symmetry(
            lambda x: np.cumsum(x, axis=0), draw(0, 6, 2), permutations
        )
        assert found == "neither"


# causal_mean and prefix_order_gap


def test_the_mask_alone_counts_positions():
    flag = np.zeros((50, 1))
    flag[0] = 1
    np.testing.assert_array_equal(posenc.causal_mean(flag)[:, 0], 1 / np.arange(1, 51))


@given(arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 3)), elements=numbers))
@properties
def test_causal_mean_is_uniform_causal_attention(x):
    zero, same = np.zeros((x.shape[1], 1)), np.eye(x.shape[1])
    expected, _ = posenc.self_attention(x, zero, zero, same, causal=True)
    np.testing.assert_allclose(posenc.causal_mean(x), expected, atol=1e-12)
    for t in range(len(x)):
        np.testing.assert_allclose(posenc.causal_mean(x)[t], x[: t + 1].mean(axis=0), atol=1e-12)


def test_causal_mean_averages_each_sequence_of_a_batch():
    x = draw(0, 2, 5, 3)
    np.testing.assert_array_equal(posenc.causal_mean(x)[1], posenc.causal_mean(x[1]))


def test_causal_mean_adds_in_float64_and_keeps_the_dtype():
    means = posenc.causal_mean(np.full((100_000, 1), 0.1, np.float32))
    assert means.dtype == np.float32
    assert (means == np.float32(0.1)).all()


def test_causal_mean_leaves_its_input():
    x = np.arange(4.0).reshape(4, 1)
    posenc.causal_mean(x)
    assert x[:, 0].tolist() == [0, 1, 2, 3]


layers = draw(11, 3, 3, 4, 4) / 2


@pytest.mark.parametrize(
    ("count", "causal", "sees"),
    [(1, True, False), (2, True, True), (3, True, True), (1, False, False), (3, False, False)],
)
@pytest.mark.parametrize("seed", range(5))
def test_two_causal_layers_see_the_order_of_the_prefix_and_one_does_not(count, causal, sees, seed):
    x = draw(seed, 7, 4)
    gap = posenc.prefix_order_gap(x, layers[:count], CYCLE, causal=causal)
    assert gap > 0.1 if sees else gap < 1e-13


def test_prefix_order_gap_against_two_layers_written_out():
    x = draw(0, 7, 4)
    outputs = []
    for rows in (x, x[[1, 2, 3, 4, 5, 0, 6]]):
        middle, _ = posenc.self_attention(rows, *layers[0], causal=True)
        last, _ = posenc.self_attention(middle, *layers[1], causal=True)
        outputs.append(last[6])
    expected = max(abs(a - b) for a, b in zip(*outputs, strict=True))
    assert posenc.prefix_order_gap(x, layers[:2], CYCLE, causal=True) == expected


def test_prefix_order_gap_of_a_batch_is_the_largest_of_its_sequences():
    x = draw(0, 3, 7, 4)
    gaps = [posenc.prefix_order_gap(rows, layers[:2], CYCLE, causal=True) for rows in x]
    found = posenc.prefix_order_gap(x, layers[:2], CYCLE, causal=True)
    assert found == pytest.approx(max(gaps), rel=1e-12)


def test_a_prefix_that_stays_as_it_is_makes_no_difference():
    x = draw(0, 7, 4)
    assert posenc.prefix_order_gap(x, layers, range(6), causal=True) == 0
    assert posenc.prefix_order_gap(x[:1], layers, [], causal=True) == 0


# shift_linearity and toeplitz_r2


def test_a_random_table_is_fitted_exactly_as_long_as_it_has_few_rows():
    fit, holdout = posenc.shift_linearity(draw(0, 48, 64), 5, 42)
    assert fit < 1e-13
    assert holdout > 1


def test_what_is_left_out_tells_random_tables_from_sinusoidal_ones():
    fit, _ = posenc.shift_linearity(draw(0, 256, 64), 5, 250)
    assert round(fit, 2) == 0.86
    for seed in range(5):
        assert posenc.shift_linearity(draw(seed, 256, 64), 5, 128)[1] > 1.3
    for d_model, bound in ((8, 1e-13), (16, 1e-7), (64, 2e-2)):
        fit, holdout = posenc.shift_linearity(posenc.sinusoidal_table(256, d_model), 5, 128)
        assert fit < 1e-13
        assert holdout < bound


@given(st.integers(0, 100), st.integers(1, 5), st.integers(1, 8))
@properties
def test_shift_linearity_solves_the_normal_equations(seed, offset, spare):
    table = draw(seed, 16 + spare + offset, 4)
    rows, later = table[: len(table) - offset], table[offset:]
    best = np.linalg.pinv(rows[:16]) @ later[:16]
    errors = rows @ best - later
    found = posenc.shift_linearity(table, offset, 16)
    expected = (
        np.linalg.norm(errors[:16]) / np.sqrt(errors[:16].size),
        np.linalg.norm(errors[16:]) / np.sqrt(errors[16:].size),
    )
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_the_map_leads_forward():
    # Backward, the nilpotent table has no map: its last rows are all zero.
    table = np.array([[8.0, 0], [0, 8], [0, 0], [0, 0], [0, 0]])
    assert posenc.shift_linearity(table, 1, 3) == (0, 0)
    assert posenc.shift_linearity(table[::-1], 1, 3)[1] > 1


def diagonals_by_hand(matrix):
    rows, columns = matrix.shape
    within = sum(
        ((line - line.mean()) ** 2).sum()
        for line in (np.diagonal(matrix, k) for k in range(1 - rows, columns))
    )
    return 1 - within / ((matrix - matrix.mean()) ** 2).sum()


@given(st.integers(1, 6), st.integers(2, 6), st.integers(0, 100))
@properties
def test_toeplitz_r2_against_the_diagonals_one_by_one(rows, columns, seed):
    matrix = draw(seed, rows, columns)
    found = posenc.toeplitz_r2(matrix)
    assert 0 <= found <= 1
    assert found == pytest.approx(diagonals_by_hand(matrix), abs=1e-12)
    assert posenc.toeplitz_r2(3 * matrix + 5) == pytest.approx(found, abs=1e-12)
    assert posenc.toeplitz_r2(matrix.T) == pytest.approx(found, abs=1e-12)


@pytest.mark.parametrize("value", [0, 0.1, -1e9, 1e-300])
def test_a_constant_matrix_is_toeplitz(value):
    assert posenc.toeplitz_r2(np.full((7, 7), value)) == 1


@pytest.mark.parametrize("length", [16, 64, 256])
def test_raw_products_of_encodings_see_distance_alone(length):
    table = posenc.sinusoidal_table(length, 64)
    assert posenc.toeplitz_r2(table @ table.T) == pytest.approx(1, abs=1e-12)


def test_random_weights_between_them_spoil_it():
    # 64 positions, 64 dimensions, 20 draws; the range published is 0.03 to 0.34.
    table = posenc.sinusoidal_table(64, 64)
    scores = [posenc.toeplitz_r2(table @ draw(seed, 64, 64) @ table.T) for seed in range(20)]
    assert min(scores) < 0.1
    assert np.median(scores) < 0.34
    assert max(scores) < 0.9


def test_weights_that_turn_and_scale_pairs_keep_it_and_see_direction():
    weight = np.zeros((64, 64))
    for pair, (a, b) in enumerate(draw(0, 32, 2)):
        weight[2 * pair : 2 * pair + 2, 2 * pair : 2 * pair + 2] = [[a, -b], [b, a]]
    table = posenc.sinusoidal_table(64, 64)
    scores = table @ weight @ table.T
    assert posenc.toeplitz_r2(scores) == pytest.approx(1, abs=1e-12)
    assert abs(scores - scores.T).max() > 1


def test_anti_diagonals_do_not_count():
    hankel = np.add.outer(np.arange(6.0), np.arange(6.0))
    assert posenc.toeplitz_r2(hankel) == pytest.approx(0, abs=1e-12)
    assert posenc.toeplitz_r2(hankel[::-1]) == pytest.approx(1, abs=1e-12)


# shift_matrix and shift_encoding in the half layout


def halves_first(d_model):
    return [*range(0, d_model, 2), *range(1, d_model, 2)]


@pytest.mark.parametrize("d_model", [2, 6, 32])
@pytest.mark.parametrize("offset", [0, 3, -2.75, 4095])
def test_half_layout_is_the_interleaved_one_with_its_columns_reordered(d_model, offset):
    order = halves_first(d_model)
    matrix = posenc.shift_matrix(offset, d_model, base=500.0)
    half = posenc.shift_matrix(offset, d_model, base=500.0, layout="half")
    np.testing.assert_array_equal(half, matrix[np.ix_(order, order)])

    rows = draw(0, 5, d_model)
    shifted = posenc.shift_encoding(rows, offset, base=500.0)
    found = posenc.shift_encoding(rows[:, order], offset, base=500.0, layout="half")
    np.testing.assert_array_equal(found, shifted[:, order])


@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_both_layouts_move_their_own_encodings(layout):
    rows = posenc.sinusoidal_encoding([0, 5, -7, 0.25], 16, layout=layout)
    later = posenc.sinusoidal_encoding([2.5, 7.5, -4.5, 2.75], 16, layout=layout)
    moved = posenc.shift_encoding(rows, 2.5, layout=layout)
    np.testing.assert_allclose(moved, later, atol=1e-14)
    matrix = posenc.shift_matrix(2.5, 16, layout=layout)
    np.testing.assert_allclose(rows @ matrix.T, later, atol=1e-14)
