"""Softmax and attention against outside implementations and plain sums, and their symmetries."""

import math

import numpy as np
import onnx
import pytest
import truth
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from onnx.reference import ReferenceEvaluator

import posenc

properties = settings(deadline=None, max_examples=60)
seeds = st.integers(0, 2**32 - 1)
scores = arrays.arrays(
    np.float64,
    arrays.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=5),
    elements=st.floats(-1000, 1000),
)


def onnx_attention(queries, keys, values, *, causal):
    """Run the reference Attention of the ONNX standard on (batch, heads, n, d)."""
    given = {"queries": queries, "keys": keys, "values": values}
    inputs = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.DOUBLE, array.shape)
        for name, array in given.items()
    ]
    output = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.DOUBLE, None)
    node = onnx.helper.make_node("Attention", list(given), ["y"], is_causal=int(causal))
    graph = onnx.helper.make_graph([node], "attention", inputs, [output])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 23)])
    return ReferenceEvaluator(model).run(None, given)[0]


def projections(rng, d_model=4, d_k=3, d_v=5):
    return [rng.standard_normal((d_model, width)) for width in (d_k, d_k, d_v)]


@pytest.mark.parametrize("row", [[0.0], [1.0, 2.0, 3.0], [-5.0, 300.0, 299.0], [0.1] * 7])
def test_softmax_against_truth(row):
    exact = [truth.exact.exp(score) for score in row]
    total = truth.exact.fsum(exact)
    error = truth.largest_error(posenc.softmax(row), [power / total for power in exact])
    assert error <= 2e-16


@given(scores, st.data())
@properties
def test_softmax_weights_sum_to_one_along_the_axis_asked_for(scores, data):
    axis = data.draw(st.integers(-scores.ndim, scores.ndim - 1))
    before = scores.copy()
    weights = posenc.softmax(scores, axis=axis)
    assert weights.shape == scores.shape
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=axis), 1, rtol=1e-14)
    np.testing.assert_array_equal(scores, before)


@given(scores, st.floats(-1000, 1000))
@properties
def test_softmax_ignores_a_number_added_to_all_scores(scores, shift):
    shifted = posenc.softmax(scores + shift)
    np.testing.assert_allclose(shifted, posenc.softmax(scores), rtol=0, atol=1e-12)


def test_softmax_neither_overflows_nor_underflows_to_zero_over_zero():
    assert posenc.softmax([1e308, 0.0]).tolist() == [1.0, 0.0]
    assert posenc.softmax([-1e308, -1e308]).tolist() == [0.5, 0.5]


def test_forbidden_entries_have_no_weight():
    assert posenc.softmax([0.0, -np.inf, 0.0]).tolist() == [0.5, 0.0, 0.5]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_keep_their_dtype(dtype):
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(dtype)
    assert posenc.softmax(x).dtype == dtype
    for causal in (False, True):
        output, weights = posenc.self_attention(x, *[np.eye(4, dtype=dtype)] * 3, causal=causal)
        assert output.dtype == weights.dtype == dtype


def test_integer_scores_become_float64():
    for dtype in (np.uint8, np.int8, np.int64):
        weights = posenc.softmax(np.array([100, 0, 100], dtype))
        assert weights.dtype == np.float64
        np.testing.assert_allclose(weights, [0.5, 0, 0.5], atol=1e-15)


@pytest.mark.parametrize("causal", [False, True])
def test_onnx_attends_in_the_same_way(causal):
    rng = np.random.default_rng(1)
    x, (w_q, w_k, w_v) = rng.standard_normal((2, 6, 4)), projections(rng)
    output, _ = posenc.self_attention(x, w_q, w_k, w_v, causal=causal)
    heads = [(x @ w)[:, np.newaxis] for w in (w_q, w_k, w_v)]
    expected = onnx_attention(*heads, causal=causal)[:, 0]
    np.testing.assert_allclose(output, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_the_sums_of_its_definition(causal):
    rng = np.random.default_rng(2)
    x, (w_q, w_k, w_v) = rng.standard_normal((5, 4)), projections(rng)
    output, weights = posenc.self_attention(x, w_q, w_k, w_v, causal=causal)
    for i in range(5):
        seen = range(i + 1 if causal else 5)
        powers = [
            math.exp(sum((x[i] @ w_q)[c] * (x[j] @ w_k)[c] for c in range(3)) / math.sqrt(3))
            for j in seen
        ]
        expected = [power / sum(powers) for power in powers] + [0.0] * (5 - len(powers))
        np.testing.assert_allclose(weights[i], expected, atol=1e-15)
        row = sum(weight * (x[j] @ w_v) for j, weight in enumerate(expected))
        np.testing.assert_allclose(output[i], row, atol=1e-14)


@given(st.integers(0, 3), st.integers(0, 6), st.booleans(), seeds)
@properties
def test_sequences_of_a_batch_do_not_see_each_other(batch, length, causal, seed):
    rng = np.random.default_rng(seed)
    x, weights = rng.standard_normal((batch, length, 4)), projections(rng)
    before = x.copy()
    output, attention = posenc.self_attention(x, *weights, causal=causal)
    assert output.shape == (batch, length, 5)
    assert attention.shape == (batch, length, length)
    for b in range(batch):
        alone, own = posenc.self_attention(x[b], *weights, causal=causal)
        np.testing.assert_allclose(output[b], alone, atol=1e-12)
        np.testing.assert_allclose(attention[b], own, atol=1e-12)
    np.testing.assert_array_equal(x, before)


@given(st.permutations(range(6)), seeds)
@properties
def test_attention_is_equivariant(permutation, seed):
    rng = np.random.default_rng(seed)
    x, weights = rng.standard_normal((6, 4)), projections(rng)
    permutation = list(permutation)
    output, attention = posenc.self_attention(x, *weights)
    permuted, permuted_attention = posenc.self_attention(x[permutation], *weights)
    np.testing.assert_allclose(permuted, output[permutation], atol=1e-12)
    expected = attention[permutation][:, permutation]
    np.testing.assert_allclose(permuted_attention, expected, atol=1e-12)
    gap = posenc.equivariance_gap(
        lambda rows: posenc.self_attention(rows, *weights)[0], x, permutation
    )
    assert gap <= 1e-12


@given(st.integers(1, 6), seeds)
@properties
def test_causal_rows_depend_on_their_prefix_alone(prefix, seed):
    rng = np.random.default_rng(seed)
    x, weights = rng.standard_normal((7, 4)), projections(rng)
    output, attention = posenc.self_attention(x, *weights, causal=True)
    changed = np.concatenate([x[:prefix], rng.standard_normal((7 - prefix, 4))])
    other, _ = posenc.self_attention(changed, *weights, causal=True)
    np.testing.assert_allclose(other[:prefix], output[:prefix], atol=1e-12)
    shorter, _ = posenc.self_attention(x[:prefix], *weights, causal=True)
    np.testing.assert_allclose(shorter, output[:prefix], atol=1e-12)
    assert not np.triu(attention, 1).any()
    np.testing.assert_allclose(attention.sum(axis=-1), 1, rtol=1e-14)


@given(st.permutations(range(5)), seeds)
@properties
def test_one_causal_layer_does_not_show_the_last_row_the_order_of_the_others(order, seed):
    rng = np.random.default_rng(seed)
    x, weights = rng.standard_normal((6, 4)), projections(rng)
    last = posenc.self_attention(x, *weights, causal=True)[0][-1]
    shuffled = posenc.self_attention(x[[*order, 5]], *weights, causal=True)[0][-1]
    np.testing.assert_allclose(shuffled, last, atol=1e-12)


def test_causal_attention_is_not_equivariant():
    rng = np.random.default_rng(3)
    x, weights = rng.standard_normal((6, 4)), projections(rng)
    gap = posenc.equivariance_gap(
        lambda rows: posenc.self_attention(rows, *weights, causal=True)[0], x, [1, 2, 0, 4, 5, 3]
    )
    assert gap > 0.1


@pytest.mark.parametrize(
    ("function", "gap"),
    [
        (np.tanh, 0.0),
        (lambda rows: rows - rows.mean(axis=0), 0.0),
        (lambda rows: rows * [[1.0], [2.0], [4.0]], 20.0),
        (lambda rows: rows[:, 0] * [1.0, 2.0, 4.0], 10.0),
        (lambda rows: np.arange(3, dtype=np.uint8), 2.0),
        (lambda rows: np.roll(rows, 1, axis=0), 0.0),
        (lambda rows: rows.cumsum(axis=0).tolist(), 20.0),
    ],
    ids=[
        "row by row",
        "minus the mean",
        "weighted by row",
        "one number a row",
        "row numbers in uint8",
        "cyclic shift under a cyclic permutation",
        "running sum as a list",
    ],
)
def test_gap_of_functions_whose_gap_is_known(function, gap):
    x = np.array([[0.0, 0.0], [10.0, 20.0], [0.0, 0.0]])
    assert posenc.equivariance_gap(function, x, [1, 2, 0]) == gap


def test_gap_applies_the_permutation_itself_and_not_its_inverse():
    x = np.arange(6.0).reshape(3, 2)
    seen = []

    def function(rows):
        seen.append(rows.copy())
        return np.arange(3.0)

    permutation = [1, 2, 0]
    assert posenc.equivariance_gap(function, x, permutation) == 2.0
    np.testing.assert_array_equal(seen[0], x[permutation])
    np.testing.assert_array_equal(seen[1], x)


def test_a_function_that_changes_its_input_changes_nothing_outside():
    x = np.arange(6.0).reshape(3, 2)

    def function(rows):
        rows += 1
        return rows

    assert posenc.equivariance_gap(function, x, [1, 2, 0]) == 0.0
    np.testing.assert_array_equal(x, np.arange(6.0).reshape(3, 2))


@given(st.integers(1, 3), st.integers(1, 5), st.booleans(), seeds)
@properties
def test_four_terms_add_up_to_the_scores_of_attention(batch, length, own_places, seed):
    rng = np.random.default_rng(seed)
    x, (w_q, w_k, w_v) = rng.standard_normal((batch, length, 4)), projections(rng)
    places = rng.standard_normal((batch, length, 4) if own_places else (length, 4))
    before = x.copy(), places.copy()
    terms = posenc.additive_score_terms(x, places, w_q, w_k)
    _, weights = posenc.self_attention(x + places, w_q, w_k, w_v)
    np.testing.assert_allclose(posenc.softmax(sum(terms)), weights, atol=1e-12)
    for array, copy in zip((x, places), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_each_of_the_four_terms_sees_its_own_two_sides():
    rng = np.random.default_rng(4)
    x, places = rng.standard_normal((2, 5, 4))
    w_q, w_k, _ = projections(rng)
    terms = posenc.additive_score_terms(x, places, w_q, w_k)
    sides = [(x, x), (x, places), (places, x), (places, places)]
    for term, (asking, asked) in zip(terms, sides, strict=True):
        for i in range(5):
            for j in range(5):
                expected = sum((asking[i] @ w_q)[c] * (asked[j] @ w_k)[c] for c in range(3))
                assert term[i, j] == pytest.approx(expected / math.sqrt(3), abs=1e-13)
    other = posenc.additive_score_terms(rng.standard_normal((5, 4)), places, w_q, w_k)
    np.testing.assert_array_equal(other[3], terms[3])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_four_terms_keep_the_dtype(dtype):
    x = np.random.default_rng(5).standard_normal((3, 4)).astype(dtype)
    terms = posenc.additive_score_terms(x, x, *[np.eye(4, dtype=dtype)] * 2)
    assert {term.dtype for term in terms} == {np.dtype(dtype)}


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((5,), (5, 4), (4, 3), (4, 3)), "x must have at least 2 axes"),
        (((5, 4), (1, 4), (4, 3), (4, 3)), "number of rows of position_vectors.*expected 5, got 1"),
        (((5, 4), (6, 4), (4, 3), (4, 3)), "number of rows of position_vectors.*expected 5, got 6"),
        (((5, 4), (5, 2), (4, 3), (4, 3)), "last axis of position_vectors.*expected 4, got 2"),
        (((2, 5, 4), (3, 5, 4), (4, 3), (4, 3)), "leading axes of x and position_vectors"),
        (((5, 4), (5, 4), (2, 3), (4, 3)), "first axis of w_q must be d_model: expected 4, got 2"),
        (((5, 4), (5, 4), (4, 3), (4, 2)), "last axis of w_k must be that of w_q"),
        (((5, 4), (5, 4), (4, 0), (4, 0)), "last axis of w_k must be at least 1"),
    ],
)
def test_four_terms_of_arrays_that_do_not_fit_are_refused(shapes, message):
    with pytest.raises(ValueError, match=message):
        posenc.additive_score_terms(*[np.ones(shape) for shape in shapes])
