"""RoPE against an outside implementation, 40-digit truth, published values and its own laws."""

import numpy as np
import onnx
import pytest
import truth
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

import posenc

LAYOUTS = ["interleaved", "half"]
POSITIONS = [0, 1, 255, 4095, 131_071, 1e6, -1, -4095, 0.5, 1 / 3, 1234.5678]

properties = settings(deadline=None, max_examples=60)
sizes = st.integers(1, 8).map(lambda pairs: 2 * pairs)
seeds = st.integers(0, 2**32 - 1)
layouts = st.sampled_from(LAYOUTS)
places = st.floats(-(2**12), 2**12, width=32)


def onnx_rope(x, cosines, sines, layout, position_ids=None, rotary_dim=0):
    """Run the reference RotaryEmbedding of the ONNX standard on (batch, heads, seq, d)."""
    given = {"x": x, "cosines": cosines, "sines": sines}
    if position_ids is not None:
        given["position_ids"] = position_ids
    node = onnx.helper.make_node(
        "RotaryEmbedding",
        list(given),
        ["y"],
        interleaved=int(layout == "interleaved"),
        rotary_embedding_dim=rotary_dim,
    )
    inputs = [
        onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in given.items()
    ]
    output = onnx.helper.make_tensor_value_info("y", inputs[0].type.tensor_type.elem_type, None)
    graph = onnx.helper.make_graph([node], "rope", inputs, [output])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 23)])
    return ReferenceEvaluator(model).run(None, given)[0]


def exact_angles(positions, d, base=10_000.0):
    frequencies = truth.inverse_frequencies(d, base)
    return np.array(
        [
            [[function(float(p) * w) for w in frequencies] for p in positions]
            for function in (truth.exact.cos, truth.exact.sin)
        ],
        dtype=float,
    )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("base", [10_000.0, 500_000.0])
def test_onnx_rotates_by_position_ids_in_the_same_way(layout, base):
    rng = np.random.default_rng(3)
    x = rng.standard_normal((2, 3, 7, 16))
    ids = np.array([[0, 1, 2, 3, 4, 5, 6], [40, 3, 3, 0, 11, 2, 39]])
    cosines, sines = exact_angles(range(41), 16, base)
    expected = onnx_rope(x, cosines, sines, layout, ids)
    found = posenc.rope(x, ids[:, np.newaxis], base=base, layout=layout)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


@given(st.lists(places, min_size=1, max_size=5), sizes, layouts, seeds)
@properties
def test_onnx_rotates_any_real_positions_in_the_same_way(positions, d, layout, seed):
    x = np.random.default_rng(seed).standard_normal((1, 2, len(positions), d))
    cosines, sines = exact_angles(positions, d)
    expected = onnx_rope(x, cosines[np.newaxis], sines[np.newaxis], layout)
    found = posenc.rope(x, positions, layout=layout)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("d", [2, 6, 64, 128])
def test_error_grows_no_faster_than_the_position(d, layout):
    x = np.random.default_rng(4).standard_normal((len(POSITIONS), d))
    found = posenc.rope(x, POSITIONS, layout=layout)
    single = posenc.rope(x.astype(np.float32), POSITIONS, layout=layout)
    largest = np.abs(x).max()
    for row, turned, turned_single, position in zip(x, found, single, POSITIONS, strict=True):
        error = truth.largest_error(turned, truth.rope(row, position, layout=layout))
        assert error <= largest * (4e-16 * max(1, abs(position)) + 2e-15)
        row = row.astype(np.float32)
        error = truth.largest_error(turned_single, truth.rope(row, position, layout=layout))
        assert error <= largest * 3e-7


ROFORMER_ROWS = [
    [0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07],
    [-0.2012, 0.8897, 0.0263, 0.9401, 0.2074, 0.9463, 0.3481, 0.9343],
    [-1.7057, 0.6271, -1.2145, 1.3897, -0.6303, 1.7647, -0.1173, 1.8985],
    [-2.1731, -1.6397, -2.7358, 0.2854, -2.1840, 1.7183, -1.3018, 2.4871],
    [0.2717, -3.6173, -2.9206, -2.1988, -3.6638, 0.3858, -2.9155, 2.2980],
    [3.9859, -2.1580, -0.7984, -4.4904, -4.1181, -2.0252, -4.4782, 1.1253],
]
KERAS_NORMAL_ROW = [
    *[0.611709595, 1.03343689, 0.47380957, -1.18679309, -8.96309502e-05, 0.660170913],
    *[-1.29010022, 0.395278841, 1.74827969, 1.07050526, -1.14252377, -0.699575782],
    *[-0.436457992, -1.1677202, 1.73807859, -0.495785743],
]


def turned_ones(position, d):
    return posenc.rope(np.ones((1, d)), [position], layout="half")[0]


PUBLISHED = {
    "transformers test_modeling_roformer, interleaved": (
        lambda: posenc.rope(np.arange(2 * 12 * 16 * 64).reshape(2, 12, 16, 64) / 100, range(16))[
            0, 0, :6, :8
        ],
        ROFORMER_ROWS,
        1e-4,
    ),
    "keras-hub rotary_embedding_test, ones, half": (
        lambda: turned_ones(3, 6),
        [-1.1311, 0.8515, 0.9935, -0.8489, 1.1291, 1.0064],
        1e-4,
    ),
    "keras-hub, positions scaled by 1/2, position 1": (
        lambda: turned_ones(1 / 2, 4),
        [0.398157001, 0.994987488, 1.357008100, 1.004987478],
        1e-6,
    ),
    "keras-hub, positions scaled by 1/2, position 2": (
        lambda: turned_ones(2 / 2, 4),
        [-0.301168621, 0.989950180, 1.381773233, 1.009949803],
        1e-6,
    ),
    "keras-hub, positions scaled by 1/5, position 12": (
        lambda: turned_ones(12 / 5, 4),
        [-1.412856817, 0.975714266, -0.061930716, 1.023709655],
        1e-6,
    ),
    "keras-hub, normal float32 values, half": (
        lambda: posenc.rope(
            np.random.default_rng(0).standard_normal((2, 2, 1, 16)).astype(np.float32)[1, 1],
            [1],
            layout="half",
        )[0],
        KERAS_NORMAL_ROW,
        1e-6,
    ),
    "fairseq test_rotary_positional_embedding, d=2": (
        lambda: posenc.rope([[1.0, 0.0]] * 3, [0, 1, 2]),
        [[1.0, 0.0], [0.5403, 0.8415], [-0.4161, 0.9093]],
        1e-4,
    ),
    "1, 2, 3, 4 at position 1, interleaved": (
        lambda: posenc.rope([[1, 2, 3, 4]], [1])[0],
        [-1.14264, 1.922076, 2.959851, 4.0298],
        1e-6,
    ),
    "1, 2, 3, 4 at position 1, half": (
        lambda: posenc.rope([[1, 2, 3, 4]], [1], layout="half")[0],
        [-1.984111, 1.959901, 2.462378, 4.0198],
        1e-6,
    ),
    "scores of ones against distance, d=128": (
        lambda: (
            np.sqrt(128)
            * posenc.rope_scores(
                np.ones((1, 128)),
                np.ones((8, 128)),
                [600],
                600 - np.array([0, 1, 2, 5, 10, 50, 100, 500]),
            )[0]
        ),
        [128, 124.2, 114.8, 94.4, 85.6, 69.9, 61.1, 38.2],
        0.05,
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_values(name):
    call, expected, tolerance = PUBLISHED[name]
    np.testing.assert_allclose(call(), expected, rtol=0, atol=tolerance)


QUERY, KEY = np.array([1.0, 2.0, 3.0, 4.0]), np.array([4.0, -1.0, 2.0, 0.5])


@pytest.mark.parametrize(("layout", "score"), [("interleaved", 7.481466), ("half", -8.638702)])
@pytest.mark.parametrize("position", [0, 1, 11])
def test_score_at_offset_3_is_the_same_wherever_the_pair_stands(position, layout, score):
    query = posenc.rope([QUERY], [position], layout=layout)[0]
    key = posenc.rope([KEY], [position + 3], layout=layout)[0]
    assert query @ key == pytest.approx(score, abs=1e-6)


def mixed_rope(x, positions):
    """Angles laid for neighbours, halves rotated: the best-known mistake."""
    x = np.asarray(x)
    angles = np.multiply.outer(positions, posenc.inverse_frequencies(x.shape[-1])).repeat(2, -1)
    first, second = np.split(x, 2, axis=-1)
    return x * np.cos(angles) + np.concatenate([-second, first], axis=-1) * np.sin(angles)


def test_mixed_layouts_stretch_vectors_and_lose_relativity():
    turned = mixed_rope([QUERY], [1])[0]
    np.testing.assert_allclose(turned, [-1.984111, -2.285279, 3.00985, 4.0198], atol=1e-5)
    assert np.linalg.norm(turned) == pytest.approx(5.8632, abs=1e-4)
    for layout in LAYOUTS:
        right = posenc.rope([QUERY], [1], layout=layout)[0]
        assert np.linalg.norm(right) == pytest.approx(5.4772, abs=1e-4)
        assert np.abs(right - turned).max() > 0.4


@given(st.lists(places, min_size=1, max_size=6), sizes, layouts, seeds)
@properties
def test_norm_of_every_pair_is_kept(positions, d, layout, seed):
    x = np.random.default_rng(seed).standard_normal((len(positions), d))
    found = posenc.rope(x, positions, layout=layout)
    shape = (-1, 2, d // 2) if layout == "half" else (-1, d // 2, 2)
    axis = 1 if layout == "half" else 2
    before = np.linalg.norm(x.reshape(shape), axis=axis)
    after = np.linalg.norm(found.reshape(shape), axis=axis)
    np.testing.assert_allclose(after, before, rtol=1e-13)


@given(st.lists(places, min_size=1, max_size=6), sizes, seeds)
@properties
def test_layouts_differ_by_the_order_of_dimensions_alone(positions, d, seed):
    x = np.random.default_rng(seed).standard_normal((len(positions), d))
    order = [*range(0, d, 2), *range(1, d, 2)]
    half = posenc.rope(x[:, order], positions, layout="half")
    np.testing.assert_allclose(half, posenc.rope(x, positions)[:, order], rtol=0, atol=8e-15)


@given(places, places, sizes, layouts, seeds)
@properties
def test_rotations_compose_by_adding_positions(first, second, d, layout, seed):
    x = np.random.default_rng(seed).standard_normal((1, d))
    twice = posenc.rope(posenc.rope(x, [first], layout=layout), [second], layout=layout)
    once = posenc.rope(x, [first + second], layout=layout)
    np.testing.assert_allclose(twice, once, atol=1e-10)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_position_0_changes_nothing(layout):
    x = np.random.default_rng(5).standard_normal((3, 8))
    np.testing.assert_array_equal(posenc.rope(x, [0, 0, 0], layout=layout), x)


@given(
    st.lists(places, min_size=1, max_size=4),
    st.lists(places, min_size=1, max_size=4),
    places,
    sizes,
    seeds,
)
@properties
def test_scores_depend_on_the_difference_of_positions_alone(at, against, shift, d, seed):
    rng = np.random.default_rng(seed)
    queries, keys = rng.standard_normal((len(at), d)), rng.standard_normal((len(against), d))
    scores = posenc.rope_scores(queries, keys, at, against)
    assert scores.shape == (len(at), len(against))
    moved = posenc.rope_scores(queries, keys, np.add(at, shift), np.add(against, shift))
    np.testing.assert_allclose(moved, scores, atol=1e-10)


@pytest.mark.parametrize("base", [10_000.0, 100.0])
def test_scores_are_scaled_dot_products_of_rotated_rows(base):
    rng = np.random.default_rng(6)
    queries, keys = rng.standard_normal((2, 3, 8)), rng.standard_normal((2, 5, 8))
    at, against = [4, 0, 2.5], [1, 2, 3, 4, -5]
    found = posenc.rope_scores(queries, keys, at, against, base=base)
    for b, i, j in np.ndindex(2, 3, 5):
        query = truth.rope(queries[b, i], at[i], base)
        key = truth.rope(keys[b, j], against[j], base)
        exact = truth.exact.fdot(query, key) / truth.exact.sqrt(8)
        assert found[b, i, j] == pytest.approx(float(exact), abs=1e-14)


@given(
    st.lists(st.integers(1, 3), max_size=2),
    st.integers(0, 4),
    sizes,
    st.sampled_from([np.float16, np.float32, np.float64]),
    layouts,
    seeds,
)
@properties
def test_shape_dtype_and_unchanged_input(axes, length, d, dtype, layout, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((*axes, length, d)).astype(dtype)
    positions = rng.integers(0, 200, length).astype(np.uint8)
    before = x.copy(), positions.copy()
    found = posenc.rope(x, positions, layout=layout)
    assert found.shape == x.shape
    assert found.dtype == dtype
    assert not np.shares_memory(found, x)
    assert posenc.rope_scores(x, x, positions, positions).dtype == dtype
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(positions, before[1])


@given(
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 4),
    st.sampled_from([(1, 1), (0, 1), (1, 0), (0, 0)]),
    seeds,
)
@properties
def test_each_sequence_is_rotated_by_its_own_positions(batch, heads, length, kept, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((batch, heads, length, 4))
    shape = (batch if kept[0] else 1, heads if kept[1] else 1, length)
    positions = rng.uniform(-50, 50, shape)
    found = posenc.rope(x, positions)
    for b, h in np.ndindex(batch, heads):
        own = positions[b * kept[0], h * kept[1]]
        np.testing.assert_allclose(found[b, h], posenc.rope(x[b, h], own), atol=1e-15)


def test_one_token_at_a_time_equals_the_whole_sequence():
    x = np.random.default_rng(7).standard_normal((2, 9, 8))
    steps = [posenc.rope(x[:, :4], range(4))]
    steps += [posenc.rope(x[:, t : t + 1], [t]) for t in range(4, 9)]
    whole = posenc.rope(x, range(9))
    np.testing.assert_allclose(np.concatenate(steps, axis=1), whole, atol=1e-15)


def test_packed_sequences_restart_at_the_positions_given():
    x = np.random.default_rng(8).standard_normal((5, 8))
    packed = posenc.rope(x, [0, 1, 2, 0, 1])
    apart = np.concatenate([posenc.rope(x[:3], range(3)), posenc.rope(x[3:], range(2))])
    np.testing.assert_allclose(packed, apart, atol=1e-15)


def test_left_padding_moves_all_positions_and_no_score():
    x = np.random.default_rng(9).standard_normal((6, 8))
    scores = posenc.rope_scores(x, x, range(6), range(6))
    padded = posenc.rope_scores(x, x, range(10, 16), range(10, 16))
    np.testing.assert_allclose(padded, scores, atol=1e-14)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_half_precision_vectors_keep_late_positions_apart(layout):
    x = np.ones((2, 8), np.float16)
    for position in (256, 2048, 65_536):
        near, far = posenc.rope(x, [position, position + 1], layout=layout)
        expected = posenc.rope(np.ones((2, 8)), [position, position + 1], layout=layout)
        np.testing.assert_allclose([near, far], expected, atol=2e-3)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint64])
def test_integer_positions_do_not_wrap(dtype):
    x = np.random.default_rng(10).standard_normal((2, 8))
    found = posenc.rope_scores(x, x, np.array([0, 1], dtype), np.array([1, 127], dtype))
    expected = posenc.rope_scores(x, x, [0.0, 1.0], [1.0, 127.0])
    np.testing.assert_array_equal(found, expected)


def test_strided_views_are_rotated_like_their_copies():
    x = np.random.default_rng(11).standard_normal((8, 6, 2)).transpose(2, 1, 0)[:, ::2]
    found, expected = posenc.rope(x, range(3)), posenc.rope(x.copy(), range(3))
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-15)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rope_passes_its_own_test_of_relativity(layout):
    def rope(x, positions):
        return posenc.rope(x, positions, layout=layout)

    shift_error, distance_effect = posenc.relative_errors(rope, QUERY, KEY, [0, 3, 7], [10, 100])
    assert shift_error < 1e-12
    assert distance_effect > 1


@pytest.mark.parametrize(
    ("function", "shift_error", "distance_effect"),
    [
        (lambda x, positions: x, 0.0, 0.0),
        (lambda x, positions: x * np.reshape(positions, (-1, 1)), 80.0, 0.0),
        (lambda x, positions: x * np.exp2(np.reshape(positions, (-1, 1))), 2**18 - 4, 3.5),
    ],
    ids=["ignores positions", "multiplies by the position", "multiplies by 2 ** position"],
)
def test_errors_of_functions_whose_scores_are_known(function, shift_error, distance_effect):
    query, key = np.array([2.0, 3.0]), np.array([-1.0, 1.0])
    found = posenc.relative_errors(function, query, key, [-1, 2], [1, 8])
    assert found == (shift_error, distance_effect)


@pytest.mark.parametrize("strange", [2, 3, 4, 12, 13, 14, 102, 103, 104])
def test_every_shift_and_every_offset_is_tried(strange):
    def rope(x, positions):
        return x + np.equal(positions, strange)[:, np.newaxis]

    shift_error, _ = posenc.relative_errors(rope, QUERY, KEY, [2, 3, 4], [10, 100])
    assert shift_error == KEY.sum()


def test_mixed_layouts_fail_the_test_of_relativity():
    shift_error, _ = posenc.relative_errors(mixed_rope, QUERY, KEY, [0, 3, 7], [10, 100])
    assert shift_error > 1


def test_a_rotation_that_yields_nan_somewhere_is_not_called_relative():
    def rope(x, positions):
        return posenc.rope(x, positions) * (np.nan if positions[0] > 50 else 1.0)

    shift_error, _ = posenc.relative_errors(rope, QUERY, KEY, [0, 3], [10, 100])
    assert np.isnan(shift_error)


def test_a_rotation_that_changes_its_input_changes_nothing_outside():
    query, key = QUERY.copy(), KEY.copy()

    def rope(x, positions):
        x *= 2
        return x

    assert posenc.relative_errors(rope, query, key, [0, 1], [1]) == (0.0, 0.0)
    np.testing.assert_array_equal(query, QUERY)
    np.testing.assert_array_equal(key, KEY)
