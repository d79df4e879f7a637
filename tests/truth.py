"""Truth to 40 digits, computed from the formulas alone."""

import numpy as np
from mpmath.ctx_mp import MPContext

exact = MPContext()
exact.dps = 40


def inverse_frequencies(d_model, base=10_000.0):
    """Return base ** (-2i/d) for each pair."""
    return [exact.mpf(base) ** (exact.mpf(-2 * i) / d_model) for i in range(d_model // 2)]


def wavelengths(d_model, base=10_000.0):
    """Return 2 pi / w for each pair."""
    return [2 * exact.pi / frequency for frequency in inverse_frequencies(d_model, base)]


def encoding(position, d_model, base=10_000.0):
    """Return one row, sine and cosine side by side."""
    return [
        function(exact.mpf(position) * frequency)
        for frequency in inverse_frequencies(d_model, base)
        for function in (exact.sin, exact.cos)
    ]


def position_kernel(offset, d_model, base=10_000.0):
    """Return the dot product of the encodings of 0 and offset."""
    first, second = encoding(0, d_model, base), encoding(offset, d_model, base)
    return exact.fsum(a * b for a, b in zip(first, second, strict=True))


def shift_matrix(offset, d_model, base=10_000.0):
    """Return rows of the matrix that the addition theorems of sine and cosine spell out."""
    matrix = [[exact.mpf(0)] * d_model for _ in range(d_model)]
    for i, frequency in enumerate(inverse_frequencies(d_model, base)):
        sine, cosine = exact.sin(offset * frequency), exact.cos(offset * frequency)
        matrix[2 * i][2 * i : 2 * i + 2] = [cosine, sine]
        matrix[2 * i + 1][2 * i : 2 * i + 2] = [-sine, cosine]
    return matrix


def rope(vector, position, base=10_000.0, layout="interleaved"):
    """Multiply each pair, as a complex number, by exp(i position w)."""
    d = len(vector)
    rotated = [None] * d
    for i, frequency in enumerate(inverse_frequencies(d, base)):
        first, second = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + d // 2)
        pair = exact.mpc(float(vector[first]), float(vector[second]))
        turned = pair * exact.expj(exact.mpf(position) * frequency)
        rotated[first], rotated[second] = turned.real, turned.imag
    return rotated


def largest_error(found, expected):
    """Return the largest absolute difference of an array from nested lists of exact numbers."""
    found = np.asarray(found)
    assert found.dtype.kind == "f"
    expected = np.array(expected, dtype=object)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    pairs = zip(found.flat, expected.flat, strict=True)
    return float(max(abs(exact.mpf(float(a)) - b) for a, b in pairs))


def largest_relative_error(found, expected):
    """Return the largest relative difference of a vector from exact numbers."""
    pairs = zip(np.asarray(found), expected, strict=True)
    return float(max(abs(exact.mpf(float(a)) / b - 1) for a, b in pairs))
