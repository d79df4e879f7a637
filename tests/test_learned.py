"""Learned tables: rows, the ends of the table, and gradients against finite differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import posenc

properties = settings(deadline=None, max_examples=60)
shapes = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
integer_types = st.sampled_from([np.int64, np.uint8, np.int8, np.uint64])
positions = integer_types.flatmap(
    lambda dtype: arrays.arrays(dtype, shapes, elements=st.integers(0, 5))
)


@given(positions, st.sampled_from([np.float16, np.float32, np.float64]))
@properties
def test_lookup_returns_one_row_for_each_position(positions, dtype):
    table = np.random.default_rng(0).standard_normal((6, 3)).astype(dtype)
    before = positions.copy()
    found = posenc.lookup(table, positions)
    assert found.shape == (*positions.shape, 3)
    assert found.dtype == dtype
    for index in np.ndindex(positions.shape):
        np.testing.assert_array_equal(found[index], table[int(positions[index])])
    np.testing.assert_array_equal(positions, before)


def test_rows_of_a_long_table_are_found_and_trained():
    table = np.arange(70_000.0)[:, np.newaxis]
    late = np.array([255, 256, 69_999], np.uint32)
    assert posenc.lookup(table, late).ravel().tolist() == [255, 256, 69_999]
    gradient = posenc.lookup_gradient(late, np.ones((3, 1)), 70_000)
    assert np.flatnonzero(gradient).tolist() == [255, 256, 69_999]


@pytest.mark.parametrize("positions", [2, [2], [[2, 2]]])
def test_looked_up_rows_are_copies(positions):
    table = np.ones((4, 3))
    posenc.lookup(table, positions)[...] = 7
    assert (table == 1).all()


def test_lookup_takes_lists_and_makes_integers_real():
    found = posenc.lookup([[1, 2], [3, 4]], (1, 0))
    assert found.dtype == np.float64
    assert found.tolist() == [[3.0, 4.0], [1.0, 2.0]]


@pytest.mark.parametrize(
    "outside",
    [-1, 4, np.int8(-128), np.uint8(255), 2**63, 2**70, -(2**70), [[0, 1], [2, 4]]],
    ids=str,
)
def test_positions_outside_the_table_raise_and_are_never_clamped_or_wrapped(outside):
    named = np.asarray(outside).flat[-1]
    for call in (
        lambda: posenc.lookup(np.ones((4, 3)), outside),
        lambda: posenc.lookup_gradient(outside, np.ones((*np.shape(outside), 3)), 4),
    ):
        with pytest.raises(IndexError, match=rf"rows 0\.\.3, got position {named}$"):
            call()


def test_repeated_positions_add_up_and_the_rest_is_zero():
    found = posenc.lookup_gradient([3, 1, 3, 3], [[1.0], [10.0], [100.0], [1000.0]], 5)
    assert found.tolist() == [[0.0], [10.0], [0.0], [1101.0], [0.0]]


@given(st.integers(0, 3), st.integers(0, 4), st.integers(0, 2**32 - 1))
@properties
def test_gradient_against_finite_differences(batch, length, seed):
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((5, 3))
    positions = rng.integers(0, 5, (batch, length))

    def loss(table):
        return np.sin(posenc.lookup(table, positions)).sum()

    upstream = np.cos(posenc.lookup(table, positions))
    found = posenc.lookup_gradient(positions, upstream, 5)
    step = 1e-6
    for index in np.ndindex(table.shape):
        nudge = np.zeros_like(table)
        nudge[index] = step
        slope = (loss(table + nudge) - loss(table - nudge)) / (2 * step)
        assert found[index] == pytest.approx(slope, abs=1e-7)


@given(positions, st.integers(0, 2**32 - 1))
@properties
def test_gradient_is_the_transpose_of_lookup(positions, seed):
    rng = np.random.default_rng(seed)
    table, upstream = rng.standard_normal((6, 3)), rng.standard_normal((*positions.shape, 3))
    before = upstream.copy()
    gradient = posenc.lookup_gradient(positions, upstream, 6)
    assert gradient.shape == (6, 3)
    through_rows = (posenc.lookup(table, positions) * upstream).sum()
    assert (table * gradient).sum() == pytest.approx(through_rows, abs=1e-12)
    np.testing.assert_array_equal(upstream, before)


def test_batches_that_share_positions_are_summed():
    upstream = np.random.default_rng(2).standard_normal((4, 3, 2))
    found = posenc.lookup_gradient([5, 0, 5], upstream, 6)
    summed = upstream.sum(axis=0)
    np.testing.assert_allclose(found[0], summed[1], atol=1e-15)
    np.testing.assert_allclose(found[5], summed[0] + summed[2], atol=1e-14)
    assert not found[1:5].any()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_gradient_keeps_the_dtype_of_upstream(dtype):
    assert posenc.lookup_gradient([0], np.ones((1, 2), dtype), 3).dtype == dtype


def test_object_is_the_two_functions_around_its_table():
    learned = posenc.LearnedPositions(6, 4)
    upstream = np.ones((2, 3, 4))
    assert learned.table.shape == (6, 4)
    np.testing.assert_array_equal(learned.lookup([5, 0]), learned.table[[5, 0]])
    np.testing.assert_array_equal(
        learned.gradient([1, 1, 2], upstream), posenc.lookup_gradient([1, 1, 2], upstream, 6)
    )
    with pytest.raises(IndexError, match=r"rows 0\.\.5, got position 6"):
        learned.lookup([6])
    with pytest.raises(IndexError, match=r"rows 0\.\.5, got position -1"):
        learned.gradient([-1], np.ones((1, 4)))


def test_initial_values_are_reproducible_and_follow_the_generator():
    first, second = posenc.LearnedPositions(6, 4), posenc.LearnedPositions(6, 4)
    np.testing.assert_array_equal(first.table, second.table)
    third = posenc.LearnedPositions(6, 4, np.random.default_rng(5))
    assert not np.allclose(first.table, third.table)
    np.testing.assert_array_equal(third.table, posenc.LearnedPositions(6, 4, 5).table)


def test_scale_is_the_standard_deviation_of_the_initial_values():
    assert posenc.LearnedPositions(1000, 50).table.std() == pytest.approx(0.02, rel=0.02)
    table = posenc.LearnedPositions(1000, 50, scale=3.0).table
    assert table.std() == pytest.approx(3.0, rel=0.02)
    assert table.mean() == pytest.approx(0.0, abs=0.05)


def test_gradient_steps_learn_the_rows_that_were_seen_and_no_others():
    learned = posenc.LearnedPositions(8, 6)
    start, target = learned.table.copy(), posenc.sinusoidal_table(8, 6)
    seen = np.arange(5)
    for _ in range(100):
        learned.table -= 0.2 * learned.gradient(seen, learned.lookup(seen) - target[seen])
    np.testing.assert_allclose(learned.lookup(seen), target[seen], atol=1e-8)
    np.testing.assert_array_equal(learned.table[5:], start[5:])
