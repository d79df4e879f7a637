"""Chapter 3, the rotation identity: its exercises, and the ways they go wrong."""

from __future__ import annotations

import cmath
from functools import partial

import numpy as np

from posenc import rotation, sinusoidal
from posenc.exercises._model import (
    Exercise,
    Misconceptions,
    case,
    draw_base,
    draw_even,
    holds,
    leaves_unchanged,
    require,
    values,
)

ASSIGNMENT = "03-rotation"

_size = partial(draw_even, high=48)


def _whole(rng: np.random.Generator) -> int:
    return int(rng.integers(2, 60))


def _fraction(rng: np.random.Generator) -> float:
    return int(rng.integers(1, 40)) + float(rng.choice([0.25, 0.5, 0.75]))


def _angles(offset, d_model, base=10_000.0):
    return offset * base ** (-np.arange(0, d_model, 2) / d_model)


def _interleave(sines: np.ndarray, cosines: np.ndarray) -> np.ndarray:
    return np.stack([sines, cosines], axis=-1).reshape(*sines.shape[:-1], -1)


def _blocks(angles):
    """Return the block-diagonal matrix that adds these angles to (sine, cosine) pairs."""
    matrix = np.zeros((2 * len(angles), 2 * len(angles)))
    even = 2 * np.arange(len(angles))
    matrix[even, even] = matrix[even + 1, even + 1] = np.cos(angles)
    matrix[even, even + 1] = np.sin(angles)
    matrix[even + 1, even] = -np.sin(angles)
    return matrix


_matrices = Misconceptions()


@_matrices.idea(
    "transposed blocks",
    "each block turns the wrong way, so the matrix leads to position p - offset. A pair is "
    "(sine, cosine), not (cosine, sine), and that moves the minus sign",
    "rotation-shift-matrix",
)
def _(offset, d_model, *, base=10_000.0):
    return _blocks(_angles(offset, d_model, base)).T


@_matrices.idea(
    "blocks laid for halves",
    "the matrix is right for an encoding with all sines first and all cosines after them; here "
    "sine and cosine of a pair are neighbours, so blocks sit on the diagonal",
    "rotation-shift-matrix",
)
def _(offset, d_model, *, base=10_000.0):
    angles = _angles(offset, d_model, base)
    cosines, sines = np.diag(np.cos(angles)), np.diag(np.sin(angles))
    return np.block([[cosines, sines], [-sines, cosines]])


@_matrices.idea(
    "frequency missing",
    "every block turns by the offset itself; pair i turns by the offset times its own frequency",
    "rotation-shift-matrix",
)
def _(offset, d_model, *, base=10_000.0):
    return _blocks(np.full(d_model // 2, float(offset)))


@_matrices.idea(
    "one frequency for all blocks",
    "all blocks turn alike, by the frequency of the last pair; each block needs its own pair's",
    "rotation-shift-matrix",
)
def _(offset, d_model, *, base=10_000.0):
    return _blocks(np.full(d_model // 2, _angles(offset, d_model, base)[-1]))


@_matrices.idea(
    "first block only",
    "only the first pair is turned, and the rest of the matrix is an identity",
    "rotation-shift-matrix",
)
def _(offset, d_model, *, base=10_000.0):
    matrix = np.eye(d_model)
    matrix[:2, :2] = _blocks(_angles(offset, d_model, base))[:2, :2]
    return matrix


@_matrices.idea(
    "steps counted one by one",
    "a step is repeated offset times in a loop, which can take neither part of a step nor a "
    "negative number of them: a negative offset gives an identity",
    "rotation-shift-matrix",
)
def _(offset, d_model, *, base=10_000.0):
    matrix = np.eye(d_model)
    for _ in range(int(offset)):
        matrix = _blocks(_angles(1, d_model, base)) @ matrix
    return matrix


@_matrices.idea(
    "fractions cut off",
    "the offset is turned into an integer, so 2.5 moves by 2 only",
    "rotation-shift-matrix",
)
def _(offset, d_model, *, base=10_000.0):
    return _blocks(_angles(int(offset), d_model, base))


@_matrices.idea(
    "sign of the offset lost",
    "a negative offset moves forwards, as if it were positive; its sign must reach the sines",
    "rotation-shift-matrix",
)
def _(offset, d_model, *, base=10_000.0):
    return _blocks(_angles(abs(offset), d_model, base))


@_matrices.idea(
    "reflection",
    "each block mirrors its pair instead of turning it: the two sines need opposite signs, the "
    "two cosines the same sign",
    "rotation-shift-matrix",
)
def _(offset, d_model, *, base=10_000.0):
    matrix = _blocks(_angles(offset, d_model, base))
    matrix[1::2] *= -1
    return matrix


@_matrices.idea(
    "no minus sign",
    "both sines of a block are positive; sin(a + b) has a plus, but cos(a + b) has a minus",
    "rotation-shift-matrix",
)
def _(offset, d_model, *, base=10_000.0):
    matrix = _blocks(_angles(offset, d_model, base))
    even = np.arange(0, d_model, 2)
    matrix[even + 1, even] *= -1
    return matrix


@_matrices.idea(
    "degrees",
    "the angle is converted as if it were in degrees; offset times frequency is in radians already",
    "rotation-shift-matrix",
)
def _(offset, d_model, *, base=10_000.0):
    return _blocks(np.deg2rad(_angles(offset, d_model, base)))


@_matrices.idea(
    "exponent i/d",
    "the factor 2 of the exponent -2i/d is missing, so frequencies fall only half as fast",
    "sinusoidal-frequencies",
)
def _(offset, d_model, *, base=10_000.0):
    return _blocks(_angles(offset, d_model, base**0.5))


@_matrices.idea(
    "exponent 4i/d",
    "the factor 2 is there twice: an index that already counts 0, 2, 4, ... is doubled again",
    "sinusoidal-frequencies",
)
def _(offset, d_model, *, base=10_000.0):
    return _blocks(_angles(offset, d_model, base**2))


@_matrices.idea(
    "base ignored",
    "the base is fixed at 10,000, and the argument is not used",
    "rotation-shift-matrix",
)
def _(offset, d_model, *, base=10_000.0):
    return _blocks(_angles(offset, d_model))


def _moves_encodings(candidate, offset, d_model):
    matrix = candidate(offset, d_model)
    positions = np.array([0, 1, 5, 12])
    moved = sinusoidal.sinusoidal_encoding(positions, d_model) @ matrix.T
    wanted = sinusoidal.sinusoidal_encoding(positions + offset, d_model)
    errors = np.abs(moved - wanted).max(axis=-1)
    at = int(errors.argmax())
    require(
        errors[at] < 1e-5,
        f"matrix @ encoding of position {positions[at]} should be the encoding of position "
        f"{positions[at] + offset:g}; largest error {errors[at]:.3g}",
    )


def _composes(candidate, offset, d_model):
    once, twice = candidate(offset, d_model), candidate(2 * offset, d_model)
    require(
        np.allclose(once @ once, twice, atol=1e-5),
        f"the matrix times itself should be the matrix of offset {2 * offset}; "
        f"largest error {np.abs(once @ once - twice).max():.3g}",
    )
    require(
        np.allclose(candidate(0, d_model), np.eye(d_model), atol=1e-5),
        "offset 0 should change nothing: its matrix is the identity",
    )


SHIFT_MATRIX = Exercise(
    reference=rotation.shift_matrix,
    assignment=ASSIGNMENT,
    section="rotation-shift-matrix",
    difficulty=3,
    importance=5,
    minutes="20-30",
    criteria=(
        holds(
            "moves every encoding by the offset",
            1,
            _moves_encodings,
            visible=lambda: [case(3, 8)],
            drawn=lambda rng: [
                case(_whole(rng), _size(rng)),
                case(_whole(rng), _size(rng)),
            ],
        ),
        holds(
            "two shifts make one, and offset 0 makes none",
            1,
            _composes,
            visible=lambda: [case(3, 8)],
            drawn=lambda rng: [case(_whole(rng), _size(rng))],
        ),
        values(
            "whole offsets",
            1.5,
            visible=lambda: [case(3, 8), case(20, 12)],
            drawn=lambda rng: [case(_whole(rng), _size(rng)) for _ in range(3)],
        ),
        values(
            "negative offsets",
            1,
            visible=lambda: [case(-3, 8)],
            drawn=lambda rng: [case(-_whole(rng), _size(rng)) for _ in range(2)],
        ),
        values(
            "fractional offsets",
            1,
            visible=lambda: [case(2.5, 8), case(0.25, 8)],
            drawn=lambda rng: [case(_fraction(rng), _size(rng)) for _ in range(2)],
        ),
        values(
            "another base",
            0.5,
            visible=lambda: [case(3, 8, base=500.0)],
            drawn=lambda rng: [
                case(_whole(rng), _size(rng), base=draw_base(rng)),
                case(_whole(rng), _size(rng), base=draw_base(rng)),
            ],
        ),
    ),
    misconceptions=tuple(_matrices),
)


@SHIFT_MATRIX.variant("loop over entries, nested lists")
def _(offset, d_model, *, base=10_000.0):
    matrix = [[0.0] * d_model for _ in range(d_model)]
    for pair in range(d_model // 2):
        angle = offset / base ** (2 * pair / d_model)
        matrix[2 * pair][2 * pair] = matrix[2 * pair + 1][2 * pair + 1] = float(np.cos(angle))
        matrix[2 * pair][2 * pair + 1] = float(np.sin(angle))
        matrix[2 * pair + 1][2 * pair] = -float(np.sin(angle))
    return matrix


@SHIFT_MATRIX.variant("vectorised")
def _(offset, d_model, *, base=10_000.0):
    return _blocks(_angles(offset, d_model, base))


@SHIFT_MATRIX.variant("Kronecker products")
def _(offset, d_model, *, base=10_000.0):
    angles = _angles(offset, d_model, base)
    return np.kron(np.diag(np.cos(angles)), np.eye(2)) + np.kron(
        np.diag(np.sin(angles)), [[0, 1], [-1, 0]]
    )


@SHIFT_MATRIX.variant("halves, then permuted")
def _(offset, d_model, *, base=10_000.0):
    angles = _angles(offset, d_model, base)
    cosines, sines = np.diag(np.cos(angles)), np.diag(np.sin(angles))
    order = np.arange(d_model).reshape(2, -1).T.ravel()
    return np.block([[cosines, sines], [-sines, cosines]])[np.ix_(order, order)]


@SHIFT_MATRIX.variant("complex numbers")
def _(offset, d_model, *, base=10_000.0):
    matrix = np.zeros((d_model, d_model))
    for pair, angle in enumerate(_angles(offset, d_model, base)):
        turn = cmath.exp(-1j * angle)
        matrix[2 * pair : 2 * pair + 2, 2 * pair] = turn.real, turn.imag
        matrix[2 * pair : 2 * pair + 2, 2 * pair + 1] = -turn.imag, turn.real
    return matrix


@SHIFT_MATRIX.variant("columns from two quarter turns")
def _(offset, d_model, *, base=10_000.0):
    # Column 2i + 1 is the encoding of the offset itself, because position 0 is (0, 1).
    moved = sinusoidal.sinusoidal_encoding(offset, d_model, base=base)
    matrix = np.zeros((d_model, d_model))
    for pair in range(0, d_model, 2):
        sine, cosine = moved[pair : pair + 2]
        matrix[pair : pair + 2, pair : pair + 2] = [[cosine, sine], [-sine, cosine]]
    return matrix


@SHIFT_MATRIX.variant("float32 from float64 angles")
def _(offset, d_model, *, base=10_000.0):
    return _blocks(_angles(offset, d_model, base)).astype(np.float32)


_shifts = Misconceptions()


def _shifted(encoding, angles):
    encoding = np.asarray(encoding)
    sines, cosines = encoding[..., 0::2], encoding[..., 1::2]
    return _interleave(
        sines * np.cos(angles) + cosines * np.sin(angles),
        cosines * np.cos(angles) - sines * np.sin(angles),
    )


def _width(encoding):
    return np.shape(encoding)[-1]


@_shifts.idea(
    "roll across pairs",
    "a roll by one column brings each cosine to its sine, but brings to each cosine the sine of "
    "the next pair: even columns come out right, odd ones do not",
    "rotation-without-matrix",
)
def _(encoding, offset, *, base=10_000.0):
    angles = np.repeat(_angles(offset, _width(encoding), base), 2)
    return encoding * np.cos(angles) + np.roll(encoding, -1, axis=-1) * np.sin(angles)


@_shifts.idea(
    "roll without an axis",
    "np.roll without an axis moves numbers across pairs, and from one encoding of a table to the "
    "next; a shift stays within each pair",
    "rotation-without-matrix",
)
def _(encoding, offset, *, base=10_000.0):
    angles = np.repeat(_angles(offset, _width(encoding), base), 2)
    return encoding * np.cos(angles) + np.roll(encoding, -1) * np.sin(angles)


@_shifts.idea(
    "no minus sign in odd columns",
    "odd columns add where they should subtract: sin(a + b) has a plus, but cos(a + b) has a minus",
    "rotation-without-matrix",
)
def _(encoding, offset, *, base=10_000.0):
    encoding = np.asarray(encoding)
    angles = _angles(offset, _width(encoding), base)
    sines, cosines = encoding[..., 0::2], encoding[..., 1::2]
    return _interleave(
        sines * np.cos(angles) + cosines * np.sin(angles),
        cosines * np.cos(angles) + sines * np.sin(angles),
    )


@_shifts.idea(
    "shifts the wrong way",
    "the result is the encoding offset positions earlier: the minus sign belongs to the cosines' "
    "columns",
    "rotation-without-matrix",
)
def _(encoding, offset, *, base=10_000.0):
    return _shifted(encoding, -_angles(offset, _width(encoding), base))


@_shifts.idea(
    "changes its input",
    "the result is written into the array passed in, so the caller's encodings are changed",
    "rotation-without-matrix",
)
def _(encoding, offset, *, base=10_000.0):
    encoding[...] = _shifted(encoding, _angles(offset, _width(encoding), base))
    return encoding


@_shifts.idea(
    "uses the new sine",
    "the sine is overwritten first, and the cosine is then computed from the new sine instead of "
    "the old one",
    "rotation-without-matrix",
)
def _(encoding, offset, *, base=10_000.0):
    result = np.array(encoding, dtype=float)
    angles = _angles(offset, _width(encoding), base)
    sines, cosines = result[..., 0::2], result[..., 1::2]
    sines[...] = sines * np.cos(angles) + cosines * np.sin(angles)
    cosines[...] = cosines * np.cos(angles) - sines * np.sin(angles)
    return result


@_shifts.idea(
    "overwrites its input while it reads it",
    "new sines are written into the array passed in, where the cosines still need the old ones; "
    "the caller's encodings are changed too",
    "rotation-without-matrix",
)
def _(encoding, offset, *, base=10_000.0):
    angles = _angles(offset, _width(encoding), base)
    sines, cosines = encoding[..., 0::2], encoding[..., 1::2]
    sines[...] = sines * np.cos(angles) + cosines * np.sin(angles)
    cosines[...] = cosines * np.cos(angles) - sines * np.sin(angles)
    return encoding


@_shifts.idea(
    "halves",
    "the first half of the columns is taken for the sines and the second for the cosines; they "
    "are interleaved",
    "rotation-without-matrix",
)
def _(encoding, offset, *, base=10_000.0):
    angles = _angles(offset, _width(encoding), base)
    sines, cosines = np.split(np.asarray(encoding), 2, axis=-1)
    return np.concatenate(
        [
            sines * np.cos(angles) + cosines * np.sin(angles),
            cosines * np.cos(angles) - sines * np.sin(angles),
        ],
        axis=-1,
    )


@_shifts.idea(
    "adds the offset's encoding",
    "encodings do not add up: the encoding of p + offset is not that of p plus that of offset. "
    "Each pair is turned",
    "rotation-without-matrix",
)
def _(encoding, offset, *, base=10_000.0):
    angles = _angles(offset, _width(encoding), base)
    return encoding + _interleave(np.sin(angles), np.cos(angles))


@_shifts.idea(
    "frequency missing",
    "every pair turns by the offset itself; pair i turns by the offset times its own frequency",
    "rotation-without-matrix",
)
def _(encoding, offset, *, base=10_000.0):
    return _shifted(encoding, np.full(_width(encoding) // 2, float(offset)))


@_shifts.idea(
    "fractions cut off",
    "the offset is turned into an integer, so 2.5 moves by 2 only",
    "rotation-without-matrix",
)
def _(encoding, offset, *, base=10_000.0):
    return _shifted(encoding, _angles(int(offset), _width(encoding), base))


@_shifts.idea(
    "sign of the offset lost",
    "a negative offset moves forwards, as if it were positive; its sign must reach the sines",
    "rotation-without-matrix",
)
def _(encoding, offset, *, base=10_000.0):
    return _shifted(encoding, _angles(abs(offset), _width(encoding), base))


@_shifts.idea(
    "base ignored",
    "the base is fixed at 10,000, and the argument is not used",
    "rotation-without-matrix",
)
def _(encoding, offset, *, base=10_000.0):
    return _shifted(encoding, _angles(offset, _width(encoding)))


def _row(rng: np.random.Generator, **kwargs) -> np.ndarray:
    return _rows(rng, 1, **kwargs)[0]


def _rows(rng: np.random.Generator, *shape: int, **kwargs) -> np.ndarray:
    return sinusoidal.sinusoidal_encoding(rng.integers(0, 200, shape), _size(rng), **kwargs)


def _drawn_base(rng: np.random.Generator):
    base = draw_base(rng)
    return case(_row(rng, base=base), _whole(rng), base=base)


SHIFT_ENCODING = Exercise(
    reference=rotation.shift_encoding,
    assignment=ASSIGNMENT,
    section="rotation-without-matrix",
    difficulty=3,
    importance=4,
    minutes="10-20",
    criteria=(
        values(
            "one encoding",
            1,
            visible=lambda: [case(sinusoidal.sinusoidal_encoding(5, 8), 3)],
            drawn=lambda rng: [case(_row(rng), _whole(rng)) for _ in range(3)],
        ),
        values(
            "tables and batches of encodings",
            0.5,
            visible=lambda: [
                case(sinusoidal.sinusoidal_encoding([0, 1, 7], 8), 3),
                case(sinusoidal.sinusoidal_encoding([[0, 1, 7], [4, 2, 9]], 8), 20),
            ],
            drawn=lambda rng: [
                case(_rows(rng, 4), _whole(rng)),
                case(_rows(rng, 2, 3), _whole(rng)),
            ],
        ),
        values(
            "negative offsets",
            1,
            visible=lambda: [case(sinusoidal.sinusoidal_encoding(5, 8), -3)],
            drawn=lambda rng: [case(_row(rng), -_whole(rng)) for _ in range(2)],
        ),
        values(
            "fractional offsets",
            0.5,
            visible=lambda: [case(sinusoidal.sinusoidal_encoding(5, 8), 2.5)],
            drawn=lambda rng: [case(_row(rng), _fraction(rng)) for _ in range(2)],
        ),
        values(
            "another base",
            0.5,
            visible=lambda: [
                case(sinusoidal.sinusoidal_encoding(5, 8, base=500.0), 3, base=500.0),
            ],
            drawn=lambda rng: [_drawn_base(rng), _drawn_base(rng)],
        ),
        leaves_unchanged(
            "the encodings passed in are left unchanged",
            0.5,
            visible=lambda: [case(sinusoidal.sinusoidal_encoding([0, 1, 7], 8), 3)],
            drawn=lambda rng: [case(_rows(rng, 4), _whole(rng))],
        ),
    ),
    misconceptions=tuple(_shifts),
)


@SHIFT_ENCODING.variant("vectorised")
def _(encoding, offset, *, base=10_000.0):
    return _shifted(encoding, _angles(offset, _width(encoding), base))


@SHIFT_ENCODING.variant("loop over entries")
def _(encoding, offset, *, base=10_000.0):
    encoding = np.asarray(encoding)
    result = np.zeros(encoding.shape)
    for index in np.ndindex(encoding.shape[:-1]):
        for pair in range(0, encoding.shape[-1], 2):
            angle = offset * base ** (-pair / encoding.shape[-1])
            sine, cosine = encoding[index][pair : pair + 2]
            result[(*index, pair)] = sine * np.cos(angle) + cosine * np.sin(angle)
            result[(*index, pair + 1)] = cosine * np.cos(angle) - sine * np.sin(angle)
    return result


@SHIFT_ENCODING.variant("complex numbers")
def _(encoding, offset, *, base=10_000.0):
    encoding = np.asarray(encoding)
    turned = (encoding[..., 1::2] + 1j * encoding[..., 0::2]) * np.exp(
        1j * _angles(offset, _width(encoding), base)
    )
    return _interleave(turned.imag, turned.real)


@SHIFT_ENCODING.variant("block matrix")
def _(encoding, offset, *, base=10_000.0):
    return np.asarray(encoding) @ _blocks(_angles(offset, _width(encoding), base)).T


@SHIFT_ENCODING.variant("swapped pairs with signs")
def _(encoding, offset, *, base=10_000.0):
    columns = np.arange(_width(encoding))
    angles = np.repeat(_angles(offset, len(columns), base), 2)
    swapped = np.asarray(encoding)[..., columns ^ 1] * np.where(columns % 2, -1, 1)
    return encoding * np.cos(angles) + swapped * np.sin(angles)


@SHIFT_ENCODING.variant("nested lists, float32")
def _(encoding, offset, *, base=10_000.0):
    shifted = _shifted(encoding, _angles(offset, _width(encoding), base))
    return shifted.astype(np.float32).tolist()


_kernels = Misconceptions()


def _offset_angles(offsets, d_model, base=10_000.0):
    return _angles(np.asarray(offsets, dtype=float)[..., np.newaxis], d_model, base)


@_kernels.idea(
    "sum of sines and cosines",
    "all columns of the offset's encoding are added up. Position 0 is (0, 1) in every pair, so "
    "the dot product keeps cosines alone, and is the same for k and -k",
    "rotation-kernel",
)
def _(offsets, d_model, *, base=10_000.0):
    angles = _offset_angles(offsets, d_model, base)
    return (np.sin(angles) + np.cos(angles)).sum(axis=-1)


@_kernels.idea(
    "sines instead of cosines",
    "sin a sin b + cos a cos b is the cosine of a - b, not its sine: at offset 0 the kernel is d/2",
    "rotation-kernel",
)
def _(offsets, d_model, *, base=10_000.0):
    return np.sin(_offset_angles(offsets, d_model, base)).sum(axis=-1)


@_kernels.idea(
    "counts every pair twice",
    "each of the d columns contributes a cosine; sine and cosine of a pair together give one "
    "cosine, so there are d/2",
    "rotation-kernel",
)
def _(offsets, d_model, *, base=10_000.0):
    return 2 * np.cos(_offset_angles(offsets, d_model, base)).sum(axis=-1)


@_kernels.idea(
    "mean instead of sum",
    "this is the mean over the pairs (the cosine similarity); the dot product is their sum",
    "rotation-kernel",
)
def _(offsets, d_model, *, base=10_000.0):
    return np.cos(_offset_angles(offsets, d_model, base)).mean(axis=-1)


@_kernels.idea(
    "scaled by sqrt(d)",
    "the dot product is divided by sqrt(d), as attention scores are; the kernel is the plain dot "
    "product",
    "rotation-kernel",
)
def _(offsets, d_model, *, base=10_000.0):
    return np.cos(_offset_angles(offsets, d_model, base)).sum(axis=-1) / np.sqrt(d_model)


@_kernels.idea(
    "a monotone stand-in",
    "a decay that always falls takes the place of the dot product; the true kernel rises again "
    "and can be negative",
    "rotation-kernel",
)
def _(offsets, d_model, *, base=10_000.0):
    return d_model / 2 * np.exp(-np.abs(np.asarray(offsets, dtype=float)) / d_model)


@_kernels.idea(
    "absolute cosines",
    "cosines are made positive before they are added; negative ones must be allowed to cancel",
    "rotation-kernel",
)
def _(offsets, d_model, *, base=10_000.0):
    return np.abs(np.cos(_offset_angles(offsets, d_model, base))).sum(axis=-1)


@_kernels.idea(
    "frequency missing",
    "all pairs turn alike, by the offset itself; pair i turns by the offset times its own "
    "frequency",
    "rotation-kernel",
)
def _(offsets, d_model, *, base=10_000.0):
    return d_model / 2 * np.cos(np.asarray(offsets, dtype=float))


@_kernels.idea(
    "cosine of the summed frequencies",
    "frequencies are added before the cosine is taken; the kernel is a sum of cosines",
    "rotation-kernel",
)
def _(offsets, d_model, *, base=10_000.0):
    return np.cos(_offset_angles(offsets, d_model, base).sum(axis=-1))


@_kernels.idea(
    "fractions cut off",
    "offsets are turned into integers, so 2.5 gets the value of 2",
    "rotation-kernel",
)
def _(offsets, d_model, *, base=10_000.0):
    offsets = np.asarray(offsets).astype(int)
    return np.cos(_offset_angles(offsets, d_model, base)).sum(axis=-1)


@_kernels.idea(
    "offsets flattened",
    "np.outer makes one row of all offsets, so their shape is lost; the result has the shape of "
    "offsets, also for a single number",
    "rotation-kernel",
)
def _(offsets, d_model, *, base=10_000.0):
    return np.cos(_offset_angles(np.ravel(offsets), d_model, base)).sum(axis=-1)


@_kernels.idea(
    "base ignored",
    "the base is fixed at 10,000, and the argument is not used",
    "rotation-kernel",
)
def _(offsets, d_model, *, base=10_000.0):
    return np.cos(_offset_angles(offsets, d_model)).sum(axis=-1)


def _even_kernel(candidate, offsets, d_model):
    offsets = np.asarray(offsets)
    forwards, backwards = candidate(offsets, d_model), candidate(-offsets, d_model)
    gaps = np.abs(forwards - backwards)
    at = int(gaps.argmax())
    require(
        gaps[at] < 1e-5 * d_model,
        f"offsets {offsets[at]:g} and {-offsets[at]:g} should give the same value; "
        f"got {forwards[at]:.6g} and {backwards[at]:.6g}",
    )
    origin = candidate(np.zeros(1), d_model)[0]
    require(
        np.isclose(origin, d_model / 2, atol=1e-5),
        f"offset 0 should give d_model / 2 = {d_model // 2}, the squared length of an encoding; "
        f"got {origin:.6g}",
    )


POSITION_KERNEL = Exercise(
    reference=rotation.position_kernel,
    assignment=ASSIGNMENT,
    section="rotation-kernel",
    difficulty=2,
    importance=4,
    minutes="10-15",
    atol=1e-5,
    rtol=1e-5,
    criteria=(
        holds(
            "d/2 at offset 0, and the same both ways",
            0.5,
            _even_kernel,
            visible=lambda: [case([1, 3, 20], 8)],
            drawn=lambda rng: [case(rng.integers(1, 100, 5), _size(rng))],
        ),
        values(
            "whole offsets",
            1,
            visible=lambda: [case([0, 1, 3, 20], 8), case(np.arange(-2, 5), 16)],
            drawn=lambda rng: [case(rng.integers(-100, 100, 6), _size(rng)) for _ in range(3)],
        ),
        values(
            "fractional offsets",
            0.5,
            visible=lambda: [case([0.5, 2.75, -1.25], 8)],
            drawn=lambda rng: [case(rng.uniform(-50, 50, 6).round(2), _size(rng))],
        ),
        values(
            "a single offset, a grid of offsets",
            0.5,
            visible=lambda: [case(3, 8), case([[1, 3], [-2, 20]], 8)],
            drawn=lambda rng: [
                case(_whole(rng), _size(rng)),
                case(rng.integers(-50, 50, (3, 2)), _size(rng)),
            ],
        ),
        values(
            "another base",
            0.5,
            visible=lambda: [case([1, 3, 20], 8, base=500.0)],
            drawn=lambda rng: [
                case(rng.integers(5, 100, 5), _size(rng), base=draw_base(rng)) for _ in range(2)
            ],
        ),
    ),
    misconceptions=tuple(_kernels),
)


@POSITION_KERNEL.variant("vectorised")
def _(offsets, d_model, *, base=10_000.0):
    return np.cos(_offset_angles(offsets, d_model, base)).sum(axis=-1)


@POSITION_KERNEL.variant("dot product of two encodings")
def _(offsets, d_model, *, base=10_000.0):
    start = 7.0
    moved = sinusoidal.sinusoidal_encoding(start + np.asarray(offsets), d_model, base=base)
    return moved @ sinusoidal.sinusoidal_encoding(start, d_model, base=base)


@POSITION_KERNEL.variant("loop over pairs")
def _(offsets, d_model, *, base=10_000.0):
    offsets = np.asarray(offsets, dtype=float)
    total = np.zeros(offsets.shape)
    for pair in range(d_model // 2):
        total += np.cos(offsets / base ** (2 * pair / d_model))
    return total


@POSITION_KERNEL.variant("complex exponential")
def _(offsets, d_model, *, base=10_000.0):
    return np.exp(1j * _offset_angles(offsets, d_model, base)).sum(axis=-1).real


@POSITION_KERNEL.variant("half of the shift matrix's trace")
def _(offsets, d_model, *, base=10_000.0):
    traces = [np.trace(_blocks(_angles(offset, d_model, base))) for offset in np.ravel(offsets)]
    return np.reshape(traces, np.shape(offsets)) / 2


@POSITION_KERNEL.variant("nested lists, float32")
def _(offsets, d_model, *, base=10_000.0):
    kernel = np.cos(_offset_angles(offsets, d_model, base)).astype(np.float32).sum(axis=-1)
    return kernel.tolist()


EXERCISES = (SHIFT_MATRIX, SHIFT_ENCODING, POSITION_KERNEL)
