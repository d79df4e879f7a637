"""The shift identity: matrices, rows and the kernel, against 40-digit truth and group laws."""

import numpy as np
import pytest
import truth
from hypothesis import given, settings
from hypothesis import strategies as st

import posenc

OFFSETS = [0, 1, 3, -1, 255, 0.5, -2.75, 4095, 131_071, 1e6]

properties = settings(deadline=None, max_examples=60)
sizes = st.integers(1, 12).map(lambda pairs: 2 * pairs)
offsets = st.floats(-1000, 1000)
bases = st.sampled_from([10_000.0, 500_000.0, 10.0])


def bound(offset):
    return 2.5e-16 * max(1, abs(offset)) + 1e-15


@pytest.mark.parametrize("angle", [0, 0.1, np.pi / 3, -2, 7.5])
def test_rotation_matrix_is_the_cosines_and_sines_of_its_angle(angle):
    found = posenc.rotation_matrix(angle)
    sine, cosine = truth.exact.sin(angle), truth.exact.cos(angle)
    assert truth.largest_error(found, [[cosine, -sine], [sine, cosine]]) <= 2e-16


def test_rotation_is_counter_clockwise():
    turned = posenc.rotation_matrix(np.pi / 2) @ [1.0, 0.0]
    np.testing.assert_allclose(turned, [0.0, 1.0], atol=1e-15)


@given(st.floats(-10, 10), st.floats(-10, 10))
@properties
def test_rotations_of_the_plane_add_their_angles(first, second):
    product = posenc.rotation_matrix(first) @ posenc.rotation_matrix(second)
    np.testing.assert_allclose(product, posenc.rotation_matrix(first + second), atol=2e-14)


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("d_model", [2, 6, 32])
def test_shift_matrix_against_truth(d_model, offset):
    error = truth.largest_error(
        posenc.shift_matrix(offset, d_model), truth.shift_matrix(offset, d_model)
    )
    assert error <= bound(offset)


@pytest.mark.parametrize("position", [0, 5, -7, 0.25, 131_071])
@pytest.mark.parametrize("offset", OFFSETS)
def test_shift_matrix_moves_the_encoding_forward(position, offset):
    moved = posenc.shift_matrix(offset, 64) @ posenc.sinusoidal_encoding(position, 64)
    error = truth.largest_error(moved, truth.encoding(position + offset, 64))
    assert error <= bound(abs(position) + abs(offset))


def test_shift_matrix_is_the_transpose_of_the_rotation():
    np.testing.assert_array_equal(posenc.shift_matrix(3, 2), posenc.rotation_matrix(3).T)


def test_transposed_shift_goes_back():
    encoding = posenc.sinusoidal_encoding(5, 8)
    back = posenc.shift_matrix(3, 8).T @ encoding
    np.testing.assert_allclose(back, posenc.sinusoidal_encoding(2, 8), atol=1e-14)


@given(offsets, offsets, sizes, bases)
@properties
def test_shifts_compose_by_adding_their_offsets(first, second, d_model, base):
    product = posenc.shift_matrix(first, d_model, base=base) @ posenc.shift_matrix(
        second, d_model, base=base
    )
    whole = posenc.shift_matrix(first + second, d_model, base=base)
    np.testing.assert_allclose(product, whole, atol=2e-12)


@given(offsets, sizes, bases)
@properties
def test_shifts_are_orthogonal_and_their_inverse_is_the_opposite_shift(offset, d_model, base):
    matrix = posenc.shift_matrix(offset, d_model, base=base)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(d_model), atol=1e-14)
    np.testing.assert_array_equal(posenc.shift_matrix(-offset, d_model, base=base), matrix.T)
    assert np.linalg.det(matrix) == pytest.approx(1)


@given(sizes)
@properties
def test_shift_by_nothing_is_the_identity(d_model):
    np.testing.assert_array_equal(posenc.shift_matrix(0, d_model), np.eye(d_model))


def test_shift_matrix_is_zero_outside_its_blocks():
    matrix = posenc.shift_matrix(1.5, 12)
    outside = np.kron(np.eye(6), np.ones((2, 2))) == 0
    assert not matrix[outside].any()
    assert matrix[~outside].all()


@given(st.lists(st.integers(1, 3), max_size=2), offsets, sizes, bases, st.integers(0, 2**32 - 1))
@properties
def test_shift_encoding_is_the_matrix_product(axes, offset, d_model, base, seed):
    encoding = np.random.default_rng(seed).standard_normal((*axes, d_model))
    before = encoding.copy()
    found = posenc.shift_encoding(encoding, offset, base=base)
    matrix = posenc.shift_matrix(offset, d_model, base=base)
    np.testing.assert_allclose(found, encoding @ matrix.T, atol=1e-14)
    np.testing.assert_array_equal(encoding, before)
    assert not np.shares_memory(found, encoding)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_shift_encoding_keeps_the_dtype_and_forms_angles_in_float64(dtype):
    encoding = posenc.sinusoidal_encoding([10, 1000], 16, dtype=dtype)
    found = posenc.shift_encoding(encoding, 100_000)
    assert found.dtype == dtype
    expected = posenc.sinusoidal_encoding([100_010, 101_000], 16)
    np.testing.assert_allclose(found, expected, atol=4 * np.finfo(dtype).eps + 1e-10)


def test_rolling_columns_is_no_shift():
    encoding = posenc.sinusoidal_encoding(5, 64)
    right = posenc.shift_encoding(encoding, 1)
    frequencies = posenc.inverse_frequencies(64).repeat(2)
    rolled = encoding * np.cos(frequencies) + np.roll(encoding, 1) * np.sin(frequencies)
    assert np.abs(rolled - right).max() > 1
    np.testing.assert_allclose(right, posenc.sinusoidal_encoding(6, 64), atol=1e-14)


@pytest.mark.parametrize("d_model", [2, 6, 64, 512])
def test_kernel_against_truth(d_model):
    found = posenc.position_kernel(OFFSETS, d_model)
    for value, offset in zip(found, OFFSETS, strict=True):
        error = truth.largest_error(value, truth.position_kernel(offset, d_model))
        assert error <= bound(offset) * d_model / 2


@given(st.floats(-1000, 1000), offsets, sizes, bases)
@properties
def test_kernel_is_the_dot_product_at_every_position(position, offset, d_model, base):
    first, second = posenc.sinusoidal_encoding([position, position + offset], d_model, base=base)
    kernel = posenc.position_kernel(offset, d_model, base=base)
    np.testing.assert_allclose(first @ second, kernel, atol=1e-11)


@given(st.lists(offsets, min_size=1, max_size=5), sizes)
@properties
def test_kernel_is_even_and_largest_at_zero(offsets, d_model):
    kernel = posenc.position_kernel(offsets, d_model)
    opposite = [-offset for offset in offsets]
    np.testing.assert_array_equal(kernel, posenc.position_kernel(opposite, d_model))
    assert posenc.position_kernel(0, d_model) == d_model / 2
    assert (kernel <= d_model / 2).all()


def test_kernel_keeps_the_shape_of_the_offsets():
    assert posenc.position_kernel(3, 8).shape == ()
    assert posenc.position_kernel(np.zeros((2, 0, 3)), 8).shape == (2, 0, 3)
    assert posenc.position_kernel(np.zeros((2, 3), np.uint8), 8).dtype == np.float64


def test_kernel_of_neighbours_at_64_dimensions():
    assert posenc.position_kernel(1, 64) == pytest.approx(30.9168, abs=5e-5)


def test_kernel_does_not_fall_steadily_with_distance():
    kernel = posenc.position_kernel(np.arange(36), 128)
    dips = [k for k in range(1, 35) if kernel[k] < min(kernel[k - 1], kernel[k + 1])]
    assert dips == [11, 17, 23, 28, 34]
