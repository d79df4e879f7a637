"""Chapter 3, the rotation identity: its exercises, and the ways they go wrong."""

from __future__ import annotations

import cmath
from functools import partial

import numpy as np

from posenc import rotation, sinusoidal
from posenc.exercises._model import (
    Exercise,
    Failure,
    Misconceptions,
    case,
    draw_base,
    draw_even,
    holds,
    leaves_unchanged,
    named_case,
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
    "whole steps forwards only",
    "an offset that is negative or not whole gives the identity; the angle is offset times "
    "frequency for every real offset",
    "rotation-shift-matrix",
)
def _(offset, d_model, *, base=10_000.0):
    possible = offset >= 0 and offset == int(offset)
    return _blocks(_angles(offset if possible else 0, d_model, base))


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


def _keeps_pairs(candidate, encoding, offset):
    encoding = np.asarray(encoding, dtype=float)
    moved = candidate(encoding, offset)
    before, after = (np.hypot(rows[..., 0::2], rows[..., 1::2]) for rows in (encoding, moved))
    gaps = np.abs(after - before)
    at = np.unravel_index(gaps.argmax(), gaps.shape)
    require(
        gaps[at] < 1e-5,
        f"a turn keeps the length of every pair; pair {at[-1]} had {before[at]:.6g} and now has "
        f"{after[at]:.6g}",
    )


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
        holds(
            "every pair keeps its length",
            0.5,
            _keeps_pairs,
            visible=lambda: [case(sinusoidal.sinusoidal_encoding([0, 1, 7], 8), 3)],
            drawn=lambda rng: [case(_rows(rng, 4), _whole(rng))],
        ),
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
            0.5,
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


_maps = Misconceptions()


def _split(table, offset):
    """Return the first and the second row of every pair."""
    table = np.asarray(table, dtype=float)
    return table[:-offset], table[offset:]


def _fitted(rows, later):
    return np.linalg.lstsq(rows, later, rcond=None)[0]


def _rmse(errors):
    return float(np.sqrt(np.mean(np.square(errors))))


def _errors(rows, later, n_train):
    """Return the errors of the map fitted to the first pairs: of those, and of the rest."""
    errors = rows @ _fitted(rows[:n_train], later[:n_train]) - later
    return errors[:n_train], errors[n_train:]


@_maps.idea(
    "in-sample twice",
    "both numbers come from the pairs that the map was fitted to; the second belongs to the pairs "
    "that were left out",
    "rotation-linearity",
)
def _(table, offset, n_train):
    fit, _ = _errors(*_split(table, offset), n_train)
    return _rmse(fit), _rmse(fit)


@_maps.idea(
    "fits on all rows",
    "the map is fitted to all pairs, so no pair is left out; only the first n_train may be used",
    "rotation-linearity",
)
def _(table, offset, n_train):
    rows, later = _split(table, offset)
    errors = rows @ _fitted(rows, later) - later
    return _rmse(errors[:n_train]), _rmse(errors[n_train:])


@_maps.idea(
    "a map for the rest as well",
    "the pairs left out get a map of their own; they are there to judge the first map",
    "rotation-linearity",
)
def _(table, offset, n_train):
    rows, later = _split(table, offset)
    fit, _ = _errors(rows, later, n_train)
    rest, _ = _errors(rows[n_train:], later[n_train:], len(rows))
    return _rmse(fit), _rmse(rest)


@_maps.idea(
    "fits the way back",
    "the map leads from row + offset to the row; it should lead from the row to row + offset",
    "rotation-linearity",
)
def _(table, offset, n_train):
    rows, later = _split(table, offset)
    fit, rest = _errors(later, rows, n_train)
    return _rmse(fit), _rmse(rest)


@_maps.idea(
    "always the next row",
    "each row is paired with its neighbour, and the offset is not used",
    "rotation-linearity",
)
def _(table, offset, n_train):
    fit, rest = _errors(*_split(table, 1), n_train)
    return _rmse(fit), _rmse(rest)


@_maps.idea(
    "wraps around",
    "np.roll pairs the last rows with the first ones; rows without a later row belong to no pair",
    "rotation-linearity",
)
def _(table, offset, n_train):
    fit, rest = _errors(np.asarray(table), np.roll(table, -offset, axis=0), n_train)
    return _rmse(fit), _rmse(rest)


@_maps.idea(
    "rows counted instead of pairs",
    "the map is fitted to the pairs within the first n_train rows, which are fewer; n_train "
    "counts pairs",
    "rotation-linearity",
)
def _(table, offset, n_train):
    fit, rest = _errors(*_split(table, offset), max(1, n_train - offset))
    return _rmse(fit), _rmse(rest)


@_maps.idea(
    "fits to the last pairs",
    "the map is fitted to the last n_train pairs, and the others are left out; n_train counts from "
    "the top of the table",
    "rotation-linearity",
)
def _(table, offset, n_train):
    rows, later = _split(table, offset)
    fit, rest = _errors(rows[::-1], later[::-1], n_train)
    return _rmse(fit), _rmse(rest)


@_maps.idea(
    "fits to half of the pairs",
    "the pairs are cut in the middle, and n_train is not used; the map is fitted to the first "
    "n_train pairs",
    "rotation-linearity",
)
def _(table, offset, n_train):
    rows, later = _split(table, offset)
    fit, rest = _errors(rows, later, len(rows) // 2)
    return _rmse(fit), _rmse(rest)


@_maps.idea(
    "normal equations",
    "rows.T @ rows has no inverse where there are fewer pairs than columns or columns depend on "
    "each other; np.linalg.lstsq and np.linalg.pinv need none",
    "rotation-linearity",
)
def _(table, offset, n_train):
    rows, later = _split(table, offset)
    first = rows[:n_train]
    errors = rows @ np.linalg.solve(first.T @ first, first.T @ later[:n_train]) - later
    return _rmse(errors[:n_train]), _rmse(errors[n_train:])


@_maps.idea(
    "solved as a square system",
    "np.linalg.solve and np.linalg.inv need as many pairs as columns; the nearest map for any "
    "number of pairs is that of np.linalg.lstsq",
    "rotation-linearity",
)
def _(table, offset, n_train):
    rows, later = _split(table, offset)
    errors = rows @ np.linalg.solve(rows[:n_train], later[:n_train]) - later
    return _rmse(errors[:n_train]), _rmse(errors[n_train:])


@_maps.idea(
    "residuals of lstsq",
    "the second result of np.linalg.lstsq is empty where there are no more pairs than columns, or "
    "columns depend on each other, and the mean of nothing is nan; take the error from rows @ "
    "matrix - later",
    "rotation-linearity",
)
def _(table, offset, n_train):
    rows, later = _split(table, offset)
    matrix, residuals, _, _ = np.linalg.lstsq(rows[:n_train], later[:n_train], rcond=None)
    with np.errstate(all="ignore"):
        fit = float(np.sqrt(residuals.sum() / n_train / np.float64(residuals.size)))
    return fit, _rmse((rows @ matrix - later)[n_train:])


@_maps.idea(
    "map transposed",
    "the matrix of least squares is turned over before it is used; rows @ matrix comes near the "
    "later rows, rows @ matrix.T does not",
    "rotation-linearity",
)
def _(table, offset, n_train):
    rows, later = _split(table, offset)
    errors = rows @ _fitted(rows[:n_train], later[:n_train]).T - later
    return _rmse(errors[:n_train]), _rmse(errors[n_train:])


@_maps.idea(
    "a constant is fitted too",
    "a column of ones lets the map add a constant, so it is affine; a linear map is a matrix and "
    "nothing else",
    "rotation-linearity",
)
def _(table, offset, n_train):
    rows, later = _split(table, offset)
    fit, rest = _errors(np.column_stack([rows, np.ones(len(rows))]), later, n_train)
    return _rmse(fit), _rmse(rest)


@_maps.idea(
    "each column on its own",
    "every column is predicted from itself alone, by one factor; a linear map uses all columns "
    "for each, as a shift needs the partner of a pair",
    "rotation-linearity",
)
def _(table, offset, n_train):
    rows, later = _split(table, offset)
    first = rows[:n_train]
    factors = (first * later[:n_train]).sum(axis=0) / np.square(first).sum(axis=0)
    errors = rows * factors - later
    return _rmse(errors[:n_train]), _rmse(errors[n_train:])


@_maps.idea(
    "the two numbers swapped",
    "the error of the pairs left out comes first; the order is (fit, holdout)",
    "rotation-linearity",
)
def _(table, offset, n_train):
    fit, rest = _errors(*_split(table, offset), n_train)
    return _rmse(rest), _rmse(fit)


@_maps.idea(
    "no root",
    "this is the mean of the squared errors; its root is asked for",
    "rotation-linearity",
)
def _(table, offset, n_train):
    fit, rest = _errors(*_split(table, offset), n_train)
    return _rmse(fit) ** 2, _rmse(rest) ** 2


@_maps.idea(
    "sum instead of mean",
    "the root of the sum of squares grows with the number of entries; squares are averaged first",
    "rotation-linearity",
)
def _(table, offset, n_train):
    fit, rest = _errors(*_split(table, offset), n_train)
    return float(np.linalg.norm(fit)), float(np.linalg.norm(rest))


@_maps.idea(
    "mean over rows instead of entries",
    "the squares of a row are summed and only the rows are averaged, which is sqrt(d) times too "
    "much; the mean is over all entries",
    "rotation-linearity",
)
def _(table, offset, n_train):
    fit, rest = _errors(*_split(table, offset), n_train)
    root = np.sqrt(fit.shape[1])
    return _rmse(fit) * root, _rmse(rest) * root


@_maps.idea(
    "largest error",
    "the largest of the absolute errors is returned; the error asked for is the root of the mean "
    "of all squares",
    "rotation-linearity",
)
def _(table, offset, n_train):
    fit, rest = _errors(*_split(table, offset), n_train)
    return float(np.abs(fit).max()), float(np.abs(rest).max())


@_maps.idea(
    "mean of absolute errors",
    "absolute errors are averaged; squares are, and the root is taken last",
    "rotation-linearity",
)
def _(table, offset, n_train):
    fit, rest = _errors(*_split(table, offset), n_train)
    return float(np.abs(fit).mean()), float(np.abs(rest).mean())


@_maps.idea(
    "holdout over all pairs",
    "the pairs that the map was fitted to count in the second number too, and make it smaller; it "
    "belongs to the rest alone",
    "rotation-linearity",
)
def _(table, offset, n_train):
    fit, rest = _errors(*_split(table, offset), n_train)
    return _rmse(fit), _rmse(np.concatenate([fit, rest]))


_LINE = 1e-2
_WIDTH = 8


def _same_side(got, expected):
    """Compare two errors only as below or above 1e-2: what is beyond is rounding or chance."""
    require(got is not None, "expected two numbers, got None: is there a `return`?")
    try:
        errors = np.asarray(got)
    except ValueError:
        raise Failure("expected two numbers, fit and holdout") from None
    require(
        errors.shape == (2,) and errors.dtype.kind in "iuf",
        f"expected two numbers, fit and holdout; got shape {errors.shape}, dtype {errors.dtype}",
    )
    for name, error, wanted in zip(("fit", "holdout"), errors, expected, strict=True):
        if np.isnan(wanted) and np.isnan(error):
            # A wrong idea's nan, never the reference's.
            continue
        side = "below" if wanted < _LINE else "above"
        require(
            np.isfinite(error) and error >= 0,
            f"{name}: an error is a finite number, zero or more; got {error:.6g}",
        )
        require(
            (error < _LINE) == (wanted < _LINE),
            f"{name}: expected a number {side} {_LINE:g}, got {error:.6g}",
        )


def _waves(rng: np.random.Generator, count: int) -> np.ndarray:
    # With a small base all pairs move within a few rows, so that any sound solver gets there.
    positions = rng.integers(0, 100) + np.arange(count)
    return sinusoidal.sinusoidal_encoding(positions, _WIDTH, base=rng.uniform(5, 30))


def _noise(rng: np.random.Generator, count: int) -> np.ndarray:
    if rng.random() < 0.3:
        return rng.integers(-9, 10, (count, _WIDTH))
    return rng.normal(size=(count, _WIDTH)).astype(rng.choice([np.float64, np.float32]))


def _repeated(rng: np.random.Generator, period: int, count: int) -> np.ndarray:
    return np.resize(rng.normal(size=(period, _WIDTH)), (count, _WIDTH))


def _narrow(rng: np.random.Generator) -> np.ndarray:
    """Draw a matrix that cannot be undone."""
    return rng.normal(size=(_WIDTH, 3)) @ rng.normal(size=(3, _WIDTH))


def _one_way(rng: np.random.Generator, pairs: int) -> np.ndarray:
    """Make rows whose later halves follow from the earlier ones, which they do not determine."""
    rows = rng.normal(size=(pairs, _WIDTH))
    return np.concatenate([rows, rows @ _narrow(rng)])


def _mirror(rng: np.random.Generator) -> np.ndarray:
    """Draw a reflection, whose matrix is its own transpose."""
    normal = rng.normal(size=_WIDTH)
    return np.eye(_WIDTH) - 2 * np.outer(normal, normal) / np.square(normal).sum()


def _but_for(rng: np.random.Generator, offset: int, n_train: int, at: int) -> np.ndarray:
    """Make rows that one map shifts, all but one pair out of 16 more than are fitted."""
    turn = np.linalg.qr(rng.normal(size=(_WIDTH, _WIDTH)))[0]
    table = rng.normal(size=(n_train + 16 + offset, _WIDTH))
    if at < offset:
        # No map leads away from zero, so that the fit cannot come nearer to this pair.
        table[at] = 0
    for pair in range(n_train + 16):
        if pair != at:
            table[pair + offset] = table[pair] @ turn
    return table


def _scaled(table, offset, n_train, part, error):
    """Scale a table so that one of its two errors has this size."""
    return table * (error / rotation.shift_linearity(table, offset, n_train)[part])


def _wave_case(rng: np.random.Generator, offset: int):
    n_train = int(rng.integers(16, 30))
    table = _waves(rng, n_train + offset + int(rng.integers(12, 30)))
    return named_case(f"sines and cosines, offset {offset}", table, offset, n_train)


def _noise_case(rng: np.random.Generator, offset: int, n_train: int, rest: int | None = None):
    table = _noise(rng, n_train + offset + (rest or int(rng.integers(12, 30))))
    return named_case(f"a random table, offset {offset}, {n_train} pairs", table, offset, n_train)


def _few_case(rng: np.random.Generator, offset: int, rest: int | None = None):
    """Draw a table with fewer pairs to fit than columns, two of which are the same there."""
    n_train = int(rng.integers(4, _WIDTH))
    table = rng.integers(-9, 10, (n_train + offset + (rest or int(rng.integers(12, 30))), _WIDTH))
    # With 1024, a power of 2, as the largest product of the first column with any, elimination
    # leaves exactly 0 of the second: normal equations fail by a singular matrix, not by chance.
    table[:n_train, 0] = 0
    table[:4, 0] = rng.choice([-16, 16], 4)
    table[:n_train, 1] = table[:n_train, 0]
    table = table.astype(rng.choice([np.float64, np.float32, np.int64]))
    return named_case(f"a random table, offset {offset}, {n_train} pairs", table, offset, n_train)


def _many(rng: np.random.Generator) -> int:
    return int(rng.integers(2 * _WIDTH, 4 * _WIDTH))


def _offset(rng: np.random.Generator) -> int:
    return int(rng.integers(2, 9))


def _next_row_cases(rng: np.random.Generator):
    return [
        _wave_case(rng, 1),
        _few_case(rng, 1),
        _noise_case(rng, 1, _many(rng)),
        _noise_case(rng, 1, _WIDTH + 1),
        _wave_case(rng, 1),
    ]


def _offset_cases(rng: np.random.Generator):
    repeats, several = int(rng.integers(11, 14)), _offset(rng)
    again = _repeated(rng, repeats, 2 * repeats + _many(rng))
    return [
        _wave_case(rng, _offset(rng)),
        _few_case(rng, _offset(rng)),
        _noise_case(rng, _offset(rng), _many(rng)),
        # Within these rows alone there are no more pairs than dimensions.
        _noise_case(rng, several, _WIDTH + several - int(rng.integers(0, several - 1))),
        named_case(f"rows that repeat after {repeats}", again, repeats, repeats + 2),
    ]


def _direction_cases(rng: np.random.Generator):
    pairs = int(rng.integers(24, 40))
    there = _one_way(rng, pairs)
    back = np.concatenate([there[pairs:], there[:pairs]])
    images = np.concatenate([there[:pairs], there[:pairs] @ _mirror(rng)])
    return [
        named_case("rows that later ones follow from", there, pairs, 14),
        named_case("rows that follow from later ones", back, pairs, 14),
        named_case("rows and their mirror images", images, pairs, 14),
        _few_case(rng, _offset(rng), rest=5),
        _noise_case(rng, _offset(rng), _many(rng), rest=5),
    ]


def _line_cases(rng: np.random.Generator):
    offset, n_train = _offset(rng), int(rng.integers(28, 36))
    table = rng.normal(size=(n_train + offset + 30, _WIDTH))
    # So many rest that the error of all pairs is below the line where that of the rest is above.
    short = rng.normal(size=(_WIDTH + offset + 12, _WIDTH))
    near = [
        named_case(label, _scaled(rows, offset, count, part, error), offset, count)
        for label, rows, count, part, error in (
            ("a random table, errors of some 0.03", table, n_train, 0, 0.03),
            ("a random table, errors of some 0.006", table, n_train, 1, 0.006),
            ("a random table, errors of some 0.002", table, n_train, 1, 0.002),
            ("a random table, errors just above 0.01", table, n_train, 0, 0.0112),
            ("a random table, 8 pairs, 12 left out", short, _WIDTH, 1, 0.0115),
        )
    ]
    # The mean over 16 rows lies below the line, and the one number that is wrong above.
    one_number = _but_for(rng, 3, 24, 40)
    one_number[-1, rng.integers(_WIDTH)] += 0.03
    near.append(named_case("an exact table, but for one number", one_number, 3, 24))
    return near + [
        named_case(f"an exact table, but for {where}", _but_for(rng, 3, 24, at), 3, 24)
        for where, at in (
            ("the first pair", 0),
            ("the second pair", 1),
            ("the first pair left out", 24),
            ("the last pair", 39),
        )
    ]


def _fixed(draw, seed: int):
    """Turn drawn cases into visible ones, which are the same each time."""
    return lambda: draw(np.random.default_rng(seed))


def _rest_case(rng: np.random.Generator, offset: int, n_train: int):
    """Scale a table so that a map for all its pairs has a fit above 0.01, and the right map not."""
    drawn = _noise_case(rng, offset, n_train, rest=60)
    rows, later = _split(drawn.args[0], offset)
    right, _ = _errors(rows, later, n_train)
    all_pairs, _ = _errors(rows, later, len(rows))
    scale = _LINE / np.sqrt(_rmse(right) * _rmse(all_pairs[:n_train]))
    return named_case(drawn.label, drawn.args[0] * scale, offset, n_train)


def _leaves_rest_out(candidate, table, offset, n_train):
    other = np.array(table, dtype=float)
    other[n_train + offset :] *= -10
    fit, holdout = candidate(table, offset, n_train)
    other_fit, other_holdout = candidate(other, offset, n_train)
    require(
        np.isclose(fit, other_fit, rtol=1e-3),
        "the fit should not change when only rows of the pairs left out do; "
        f"it was {fit:.6g} and became {other_fit:.6g}",
    )
    require(
        not np.isclose(holdout, other_holdout, rtol=1e-2),
        f"the holdout should change when rows of the pairs left out do; it stayed {holdout:.6g}",
    )


def _grows_with_table(candidate, table, offset, n_train):
    table = np.array(table, dtype=float)
    before, after = candidate(table, offset, n_train), candidate(10 * table, offset, n_train)
    for name, small, large in zip(("fit", "holdout"), before, after, strict=True):
        require(
            np.isclose(large, 10 * small, rtol=1e-3),
            f"{name}: ten times the table should make ten times the error; it was {small:.6g} and "
            f"became {large:.6g}",
        )


SHIFT_LINEARITY = Exercise(
    reference=rotation.shift_linearity,
    assignment=ASSIGNMENT,
    section="rotation-linearity",
    difficulty=4,
    importance=4,
    minutes="15-25",
    same=_same_side,
    criteria=(
        holds(
            "pairs left out touch the holdout alone",
            0.5,
            _leaves_rest_out,
            visible=_fixed(lambda rng: [_rest_case(rng, 3, 20)], 1),
            drawn=lambda rng: [_rest_case(rng, _offset(rng), int(rng.integers(16, 21)))],
        ),
        holds(
            "errors grow with the table",
            0.5,
            _grows_with_table,
            visible=_fixed(lambda rng: [_noise_case(rng, 3, 20)], 2),
            drawn=lambda rng: [_noise_case(rng, _offset(rng), _many(rng))],
        ),
        values(
            "from each row to the next",
            1,
            visible=_fixed(_next_row_cases, 3),
            drawn=_next_row_cases,
        ),
        values("other offsets", 1, visible=_fixed(_offset_cases, 4), drawn=_offset_cases),
        values(
            "one way only, and few pairs left out",
            0.5,
            visible=_fixed(_direction_cases, 5),
            drawn=_direction_cases,
        ),
        values(
            "errors near 0.01, or of a single pair",
            0.5,
            visible=_fixed(_line_cases, 6),
            drawn=_line_cases,
        ),
    ),
    misconceptions=tuple(_maps),
)


@SHIFT_LINEARITY.variant("least squares")
def _(table, offset, n_train):
    fit, rest = _errors(*_split(table, offset), n_train)
    return _rmse(fit), _rmse(rest)


@SHIFT_LINEARITY.variant("pseudo-inverse, array of two")
def _(table, offset, n_train):
    rows, later = _split(table, offset)
    squares = (rows @ (np.linalg.pinv(rows[:n_train]) @ later[:n_train]) - later) ** 2
    return np.sqrt([squares[:n_train].mean(), squares[n_train:].mean()])


@SHIFT_LINEARITY.variant("singular values")
def _(table, offset, n_train):
    rows, later = _split(table, offset)
    left, sizes, right = np.linalg.svd(rows[:n_train], full_matrices=False)
    kept = sizes > 1e-10 * sizes[0]
    best = right[kept].T @ ((left[:, kept].T @ later[:n_train]) / sizes[kept, np.newaxis])
    errors = rows @ best - later
    return [_rmse(errors[:n_train]), _rmse(errors[n_train:])]


@SHIFT_LINEARITY.variant("loops, one column after the other")
def _(table, offset, n_train):
    rows = [[float(x) for x in row] for row in table]
    count, width = len(rows) - offset, len(rows[0])
    squares = [0.0] * count
    for column in range(width):
        targets = [rows[at + offset][column] for at in range(count)]
        factors = np.linalg.lstsq(rows[:n_train], targets[:n_train], rcond=None)[0]
        for at in range(count):
            squares[at] += (float(np.dot(rows[at], factors)) - targets[at]) ** 2
    fit = sum(squares[:n_train]) / (n_train * width)
    return fit**0.5, (sum(squares[n_train:]) / ((count - n_train) * width)) ** 0.5


@SHIFT_LINEARITY.variant("columns as vectors, float32")
def _(table, offset, n_train):
    columns = np.asarray(table, dtype=float).T
    before, after = columns[:, :-offset], columns[:, offset:]
    matrix = after[:, :n_train] @ np.linalg.pinv(before[:, :n_train])
    errors = (matrix @ before - after).astype(np.float32)
    return (
        np.linalg.norm(errors[:, :n_train]) / np.sqrt(errors[:, :n_train].size),
        np.linalg.norm(errors[:, n_train:]) / np.sqrt(errors[:, n_train:].size),
    )


_diagonal_shares = Misconceptions()


def _groups(matrix, index):
    """Return the sum of squares about the mean within groups, which whole numbers name."""
    matrix, index = np.asarray(matrix, dtype=float).ravel(), np.ravel(index)
    index = index - index.min()
    counts = np.maximum(np.bincount(index), 1)
    means = np.bincount(index, matrix) / counts
    return np.square(matrix - means[index]).sum()


def _total(matrix):
    return np.square(matrix - np.mean(matrix)).sum()


def _offsets(matrix):
    rows, columns = np.indices(np.shape(matrix))
    return columns - rows


def _share(within, matrix):
    total = _total(matrix)
    return 1.0 if total == 0 else float(1 - within / total)


@_diagonal_shares.idea(
    "anti-diagonals",
    "entries are grouped where row and column add up to the same number; a diagonal holds those "
    "with the same difference",
    "rotation-toeplitz",
)
def _(matrix):
    rows, columns = np.indices(np.shape(matrix))
    return _share(_groups(matrix, rows + columns), matrix)


@_diagonal_shares.idea(
    "nan for a constant matrix",
    "a constant matrix has nothing to explain, and 0 / 0 is not a number; every constant matrix is "
    "a Toeplitz matrix, so the answer is 1",
    "rotation-toeplitz",
)
def _(matrix):
    with np.errstate(all="ignore"):
        return float(1 - _groups(matrix, _offsets(matrix)) / np.float64(_total(matrix)))


@_diagonal_shares.idea(
    "0 for a constant matrix",
    "a matrix without any spread gets 0; every constant matrix is a Toeplitz matrix, so the "
    "answer is 1",
    "rotation-toeplitz",
)
def _(matrix):
    return _share(_groups(matrix, _offsets(matrix)), matrix) if _total(matrix) else 0.0


@_diagonal_shares.idea(
    "main diagonal only",
    "only the spread along the main diagonal is counted; every diagonal must be",
    "rotation-toeplitz",
)
def _(matrix):
    return _share(_total(np.diagonal(matrix)), matrix)


@_diagonal_shares.idea(
    "one side only",
    "diagonals below the main one are left out, so what varies there is not counted",
    "rotation-toeplitz",
)
def _(matrix):
    matrix = np.asarray(matrix, dtype=float)
    within = sum(_total(np.diagonal(matrix, k)) for k in range(matrix.shape[1]))
    return _share(within, matrix)


@_diagonal_shares.idea(
    "lower side only",
    "diagonals above the main one are left out, so what varies there is not counted",
    "rotation-toeplitz",
)
def _(matrix):
    matrix = np.asarray(matrix, dtype=float)
    within = sum(_total(np.diagonal(matrix, k)) for k in range(1 - len(matrix), 1))
    return _share(within, matrix)


@_diagonal_shares.idea(
    "rows and columns exchanged",
    "diagonals are numbered from 1 - m to n - 1, which leaves some out unless the matrix is "
    "square; with n rows and m columns they run from 1 - n to m - 1",
    "rotation-toeplitz",
)
def _(matrix):
    matrix = np.asarray(matrix, dtype=float)
    rows, columns = matrix.shape
    sides = range(max(1 - rows, 1 - columns), min(rows, columns))
    return _share(sum(_total(np.diagonal(matrix, k)) for k in sides), matrix)


@_diagonal_shares.idea(
    "distance instead of offset",
    "the diagonals k and -k are put together, as if before and after were the same; each has a "
    "mean of its own",
    "rotation-toeplitz",
)
def _(matrix):
    return _share(_groups(matrix, np.abs(_offsets(matrix))), matrix)


@_diagonal_shares.idea(
    "diagonals wrap around",
    "a diagonal that ends at an edge goes on at the other one, which holds for circulant matrices "
    "alone",
    "rotation-toeplitz",
)
def _(matrix):
    return _share(_groups(matrix, _offsets(matrix) % np.shape(matrix)[1]), matrix)


@_diagonal_shares.idea(
    "about zero instead of the mean",
    "the total is the sum of the squares themselves, so a constant that is added to all entries "
    "changes the answer; take the mean of all entries away first",
    "rotation-toeplitz",
)
def _(matrix):
    total = np.square(np.asarray(matrix, dtype=float)).sum()
    return 1.0 if total == 0 else float(1 - _groups(matrix, _offsets(matrix)) / total)


@_diagonal_shares.idea(
    "every diagonal counts alike",
    "the variances of the diagonals are averaged, so a corner of one entry weighs as much as the "
    "main diagonal; sums of squares are added up",
    "rotation-toeplitz",
)
def _(matrix):
    matrix = np.asarray(matrix, dtype=float)
    rows, columns = matrix.shape
    variances = [np.diagonal(matrix, k).var() for k in range(1 - rows, columns)]
    return 1.0 if matrix.var() == 0 else float(1 - np.mean(variances) / matrix.var())


@_diagonal_shares.idea(
    "variances added up",
    "the variances of the diagonals are added, so each is divided by its own length and the total "
    "by the number of all entries; sums of squares are divided by nothing",
    "rotation-toeplitz",
)
def _(matrix):
    matrix = np.asarray(matrix, dtype=float)
    rows, columns = matrix.shape
    variances = [np.diagonal(matrix, k).var() for k in range(1 - rows, columns)]
    return 1.0 if matrix.var() == 0 else float(1 - np.sum(variances) / matrix.var())


@_diagonal_shares.idea(
    "nan from a diagonal",
    "a diagonal of no entries has no mean, and ddof=1 gives one of a single entry no variance, so "
    "the sum is nan; diagonals run from 1 - n to m - 1, and squares are only added up",
    "rotation-toeplitz",
)
def _(matrix):
    matrix = np.asarray(matrix, dtype=float)
    rows, columns = matrix.shape
    diagonals = [np.diagonal(matrix, k) for k in range(1 - rows, columns)]
    with np.errstate(all="ignore"):
        within = sum(_total(one) * len(one) / np.float64(len(one) - 1) for one in diagonals)
    return _share(within, matrix)


@_diagonal_shares.idea(
    "variances with ddof=1",
    "sums of squares are made from variances that were divided by one less than the number of "
    "entries, which makes short diagonals count too much; ddof stays 0",
    "rotation-toeplitz",
)
def _(matrix):
    matrix = np.asarray(matrix, dtype=float)
    rows, columns = matrix.shape
    diagonals = [np.diagonal(matrix, k) for k in range(1 - rows, columns)]
    within = sum(len(one) * one.var(ddof=1) for one in diagonals if len(one) > 1)
    total = matrix.size * matrix.var(ddof=1)
    return 1.0 if total == 0 else float(1 - within / total)


@_diagonal_shares.idea(
    "the share left over",
    "this is the share that the diagonals do not explain; the answer is one minus it",
    "rotation-toeplitz",
)
def _(matrix):
    total = _total(matrix)
    return 1.0 if total == 0 else float(_groups(matrix, _offsets(matrix)) / total)


@_diagonal_shares.idea(
    "deviations instead of squares",
    "a root is taken of the sums of squares before they are divided; the share is one of squares",
    "rotation-toeplitz",
)
def _(matrix):
    total = _total(matrix)
    return 1.0 if total == 0 else float(1 - np.sqrt(_groups(matrix, _offsets(matrix)) / total))


@_diagonal_shares.idea(
    "as many diagonals as rows",
    "diagonals are counted by the number of rows on both sides; a matrix with more columns has "
    "more of them",
    "rotation-toeplitz",
)
def _(matrix):
    matrix = np.asarray(matrix, dtype=float)
    rows, columns = matrix.shape
    sides = range(1 - rows, min(rows, columns))
    return _share(sum(_total(np.diagonal(matrix, k)) for k in sides), matrix)


def _toeplitz(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    by_offset = rng.normal(size=rows + columns - 1).round(3)
    return by_offset[_offsets(np.empty((rows, columns))) + rows - 1]


def _hankel(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    return _toeplitz(rng, rows, columns)[:, ::-1]


def _roughly(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    noise = rng.uniform(0.3, 1) * rng.normal(size=(rows, columns))
    # Away from 0, so that the mean matters.
    return (_toeplitz(rng, rows, columns) + noise).round(3) + rng.integers(-3, 4)


def _side(rng: np.random.Generator) -> int:
    return int(rng.integers(5, 20))


def _square_cases(rng: np.random.Generator):
    sides = [_side(rng) for _ in range(4)]
    return [
        case(_roughly(rng, sides[0], sides[0])),
        case(_toeplitz(rng, sides[1], sides[1])),
        case(_roughly(rng, sides[2], sides[2]).astype(np.float32)),
        case(rng.integers(-9, 10, (sides[3], sides[3]))),
    ]


def _rectangular_cases(rng: np.random.Generator):
    short, more = _side(rng), int(rng.integers(4, 9))
    return [
        case(_roughly(rng, short, short + more)),
        case(_roughly(rng, short + more, short)),
        case(_toeplitz(rng, short, short + more)),
    ]


def _constant_cases(rng: np.random.Generator):
    # Quarters, whose sums and means are exact.
    constant = int(rng.integers(1, 40)) / 4
    return [
        case(np.full((_side(rng), _side(rng)), constant)),
        case(_roughly(rng, 8, 8)),
        case([[int(rng.integers(-9, 10))] * 5] * 4),
    ]


def _mirrored_cases(rng: np.random.Generator):
    side = _side(rng)
    even = _toeplitz(rng, side, side)
    return [
        case(_hankel(rng, side, side)),
        case(even + even.T),
        case(_hankel(rng, side, side + 3)),
    ]


def _after(small, draw, seed: int):
    """Put a matrix that reports can show before drawn ones, in which wrong ideas show."""
    return lambda: [case(np.array(small)), *_fixed(draw, seed)()]


def _ignores_unit(candidate, matrix):
    matrix = np.asarray(matrix, dtype=float)
    share, moved, larger = candidate(matrix), candidate(matrix + 5), candidate(3 * matrix)
    require(
        np.isclose(share, moved, atol=1e-5),
        f"adding 5 to every entry should change nothing; got {share:.6g}, then {moved:.6g}",
    )
    require(
        np.isclose(share, larger, atol=1e-5),
        f"three times the matrix should change nothing; got {share:.6g}, then {larger:.6g}",
    )


TOEPLITZ_R2 = Exercise(
    reference=rotation.toeplitz_r2,
    assignment=ASSIGNMENT,
    section="rotation-toeplitz",
    difficulty=3,
    importance=3,
    minutes="10-20",
    atol=1e-5,
    rtol=1e-5,
    criteria=(
        holds(
            "no change when entries are all moved or scaled",
            0.5,
            _ignores_unit,
            visible=lambda: [case([[1.0, 2.0, 4.0], [3.0, 1.0, 0.0]])],
            drawn=lambda rng: [case(_roughly(rng, _side(rng), _side(rng)))],
        ),
        values(
            "square matrices",
            1,
            visible=_after([[1.0, 2.0], [3.0, 5.0]], _square_cases, 2),
            drawn=_square_cases,
        ),
        values(
            "more rows than columns, and fewer",
            0.5,
            visible=_after([[1.0, 2.0, 4.0], [3.0, 1.0, 0.0]], _rectangular_cases, 3),
            drawn=_rectangular_cases,
        ),
        values(
            "constant matrices",
            0.5,
            visible=_after([[2.5, 2.5, 2.5], [2.5, 2.5, 2.5]], _constant_cases, 4),
            drawn=_constant_cases,
        ),
        values(
            "Hankel and symmetric matrices",
            0.5,
            visible=_after([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]], _mirrored_cases, 5),
            drawn=_mirrored_cases,
        ),
    ),
    misconceptions=tuple(_diagonal_shares),
)


@TOEPLITZ_R2.variant("diagonal by diagonal")
def _(matrix):
    matrix = np.asarray(matrix, dtype=float)
    rows, columns = matrix.shape
    if np.ptp(matrix) == 0:
        return 1.0
    within = sum(_total(np.diagonal(matrix, k)) for k in range(1 - rows, columns))
    return 1 - within / _total(matrix)


@TOEPLITZ_R2.variant("between diagonals over total")
def _(matrix):
    matrix = np.asarray(matrix, dtype=float)
    rows, columns = matrix.shape
    diagonals = [np.diagonal(matrix, k) for k in range(1 - rows, columns)]
    between = sum(len(one) * (one.mean() - matrix.mean()) ** 2 for one in diagonals)
    total = matrix.var() * matrix.size
    return between / total if total > 1e-12 else 1


@TOEPLITZ_R2.variant("loops over a list")
def _(matrix):
    diagonals: dict[int, list[float]] = {}
    for row, numbers in enumerate(matrix):
        for column, number in enumerate(numbers):
            diagonals.setdefault(column - row, []).append(float(number))
    everything = [number for numbers in diagonals.values() for number in numbers]

    def spread(numbers):
        mean = sum(numbers) / len(numbers)
        return sum((number - mean) ** 2 for number in numbers)

    if spread(everything) == 0:
        return 1
    return 1 - sum(map(spread, diagonals.values())) / spread(everything)


@TOEPLITZ_R2.variant("the nearest Toeplitz matrix")
def _(matrix):
    matrix = np.asarray(matrix, dtype=float)
    nearest = np.zeros_like(matrix)
    offsets = _offsets(matrix)
    for offset in np.unique(offsets):
        nearest[offsets == offset] = matrix[offsets == offset].mean()
    if np.allclose(matrix, matrix.mean(), rtol=0, atol=1e-12):
        return np.float64(1)
    return 1 - np.sum((matrix - nearest) ** 2) / np.sum((matrix - matrix.mean()) ** 2)


@TOEPLITZ_R2.variant("variances, float32")
def _(matrix):
    matrix = np.asarray(matrix, dtype=float)
    rows, columns = matrix.shape
    if matrix.var() == 0:
        return np.float32(1)
    diagonals = [np.diagonal(matrix, k) for k in range(1 - rows, columns)]
    within = sum(len(one) / matrix.size * one.var() for one in diagonals)
    return np.float32(1 - within / matrix.var())


EXERCISES = (SHIFT_MATRIX, SHIFT_ENCODING, POSITION_KERNEL, SHIFT_LINEARITY, TOEPLITZ_R2)
