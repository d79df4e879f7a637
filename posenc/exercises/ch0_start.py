"""Chapter 0, start here: its exercises, and the ways they go wrong."""

from __future__ import annotations

import cmath
import math

import numpy as np

from posenc import rotation, sinusoidal
from posenc.exercises._model import (
    Exercise,
    Misconceptions,
    case,
    draw_even,
    holds,
    require,
    values,
)

ASSIGNMENT = "00-start"

_rotations = Misconceptions()


@_rotations.idea(
    "clockwise",
    "the minus sign stands at the lower sine, which turns the other way; counter-clockwise has it "
    "in the first row",
    "start-turning-a-pair",
)
def _(angle):
    return np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])


@_rotations.idea(
    "degrees",
    "the angle is converted as if it were in degrees; it is in radians already",
    "start-turning-a-pair",
)
def _(angle):
    angle = np.deg2rad(angle)
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


@_rotations.idea(
    "reflection",
    "the minus sign stands at a cosine, so the plane is mirrored instead of turned: its "
    "determinant is -1",
    "start-turning-a-pair",
)
def _(angle):
    return np.array([[np.cos(angle), np.sin(angle)], [np.sin(angle), -np.cos(angle)]])


@_rotations.idea(
    "no minus sign",
    "all four entries are positive, so vectors are stretched and squeezed; a turn needs one minus "
    "sign",
    "start-turning-a-pair",
)
def _(angle):
    return np.array([[np.cos(angle), np.sin(angle)], [np.sin(angle), np.cos(angle)]])


@_rotations.idea(
    "sine and cosine swapped",
    "the sines stand on the diagonal, where the cosines belong: angle 0 must change nothing",
    "start-turning-a-pair",
)
def _(angle):
    return np.array([[np.sin(angle), -np.cos(angle)], [np.cos(angle), np.sin(angle)]])


def _keeps_shape(candidate, angle):
    matrix = candidate(angle)
    lengths = np.linalg.norm(matrix, axis=0)
    require(
        np.allclose(matrix.T @ matrix, np.eye(2), atol=1e-5),
        "the columns should have length 1 and be at right angles; got lengths "
        f"{lengths[0]:.3f} and {lengths[1]:.3f}, dot product {matrix[:, 0] @ matrix[:, 1]:.3f}",
    )
    require(
        np.linalg.det(matrix) > 0,
        "the determinant should be 1, got -1: this mirrors the plane instead of turning it",
    )


def _angle(rng: np.random.Generator) -> float:
    """Draw an angle whose sine and cosine are both far from 0 and from each other."""
    quarter, within = rng.integers(-6, 7), rng.choice([0.4, 1.1]) + rng.uniform(-0.2, 0.2)
    return float(quarter * np.pi / 2 + within)


ROTATION_MATRIX = Exercise(
    reference=rotation.rotation_matrix,
    assignment=ASSIGNMENT,
    section="start-turning-a-pair",
    difficulty=1,
    importance=4,
    minutes="5-10",
    criteria=(
        holds(
            "lengths and orientation are kept",
            0.5,
            _keeps_shape,
            visible=lambda: [case(0.5)],
            drawn=lambda rng: [case(_angle(rng)), case(_angle(rng))],
        ),
        values(
            "quarter turns",
            0.5,
            visible=lambda: [case(np.pi / 2), case(-np.pi / 2)],
            drawn=lambda rng: [
                case((2 * rng.integers(-3, 3) + 0.5) * np.pi),
                case((2 * rng.integers(-3, 3) - 0.5) * np.pi),
            ],
        ),
        values(
            "any angle",
            1,
            visible=lambda: [case(0.5), case(-2.0), case(4)],
            drawn=lambda rng: [case(_angle(rng)), case(_angle(rng)), case(_angle(rng))],
        ),
    ),
    misconceptions=tuple(_rotations),
)


@ROTATION_MATRIX.variant("nested lists from math")
def _(angle):
    return [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]


@ROTATION_MATRIX.variant("complex exponential")
def _(angle):
    turn = cmath.exp(1j * angle)
    return np.array([[turn.real, -turn.imag], [turn.imag, turn.real]])


@ROTATION_MATRIX.variant("entry by entry")
def _(angle):
    matrix = np.zeros((2, 2))
    for row in range(2):
        for column in range(2):
            matrix[row, column] = np.cos(angle + (row - column) * -np.pi / 2)
    return matrix


@ROTATION_MATRIX.variant("turned axes as columns")
def _(angle):
    first = [np.cos(angle), np.sin(angle)]
    second = [np.cos(angle + np.pi / 2), np.sin(angle + np.pi / 2)]
    return np.column_stack([first, second])


@ROTATION_MATRIX.variant("float32")
def _(angle):
    cosine, sine = np.cos(angle), np.sin(angle)
    return np.array([[cosine, -sine], [sine, cosine]], dtype=np.float32)


_pairs = Misconceptions()


@_pairs.idea(
    "halves",
    "pair i is made of columns i and i + d/2; neighbours belong together, columns 2i and 2i + 1",
    "start-pairs",
)
def _(x):
    half = x.shape[-1] // 2
    return np.stack([x[..., :half], x[..., half:]], axis=-1)


@_pairs.idea(
    "halves as rows",
    "reshape has 2 before d/2, so each of two long rows holds half of the vector; every pair has "
    "two numbers, so 2 comes last",
    "start-pairs",
)
def _(x):
    return x.reshape(*x.shape[:-1], 2, -1)


@_pairs.idea(
    "transposed",
    "the right numbers, but one row holds all first members and one all second ones; each pair has "
    "a row of its own, of length 2",
    "start-pairs",
)
def _(x):
    return np.stack([x[..., 0::2], x[..., 1::2]], axis=-2)


@_pairs.idea(
    "stacked along the first axis",
    "np.stack puts its new axis first unless told otherwise; the two members of a pair lie along "
    "the last axis, so axis=-1",
    "start-pairs",
)
def _(x):
    return np.stack([x[..., 0::2], x[..., 1::2]])


@_pairs.idea(
    "joined instead of stacked",
    "np.concatenate lays the second members behind the first ones and makes no new axis; np.stack "
    "makes one",
    "start-pairs",
)
def _(x):
    return np.concatenate([x[..., 0::2], x[..., 1::2]], axis=-1)


@_pairs.idea(
    "second before first",
    "the odd column of each pair comes first; pair i is (2i, 2i + 1) in this order",
    "start-pairs",
)
def _(x):
    return np.stack([x[..., 1::2], x[..., 0::2]], axis=-1)


@_pairs.idea(
    "overlapping pairs",
    "every column is paired with the next one, so most of them are used twice; the pairs start at "
    "even columns alone",
    "start-pairs",
)
def _(x):
    return np.stack([x[..., :-1], x[..., 1:]], axis=-1)


@_pairs.idea(
    "pairs of rows",
    "x[0::2] takes every second row of a table; x[..., 0::2] takes every second column, whatever "
    "axes come before",
    "start-pairs",
)
def _(x):
    return np.stack([x[0::2], x[1::2]], axis=-1)


@_pairs.idea(
    "axes before the last one lost",
    "reshape(-1, 2) makes one long list of pairs; the axes before the last one stay as they are",
    "start-pairs",
)
def _(x):
    return x.reshape(-1, 2)


def _numbers(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).round(2)


SPLIT_PAIRS = Exercise(
    reference=sinusoidal.split_pairs,
    assignment=ASSIGNMENT,
    section="start-pairs",
    difficulty=1,
    importance=4,
    minutes="3-5",
    criteria=(
        values(
            "the pairs of one vector",
            0.5,
            visible=lambda: [case(np.arange(10, 18)), case(_numbers(np.random.default_rng(1), 12))],
            drawn=lambda rng: [
                case(_numbers(rng, draw_even(rng))),
                case(rng.integers(-99, 100, draw_even(rng))),
            ],
        ),
        values(
            "the pairs of each row, in a table or a batch",
            0.5,
            # An even number of rows lets a split of rows go on without an error.
            visible=lambda: [
                case(np.arange(48.0).reshape(6, 8)),
                case(_numbers(np.random.default_rng(1), 2, 3, 10)),
            ],
            drawn=lambda rng: [
                case(_numbers(rng, 2 * int(rng.integers(2, 5)), draw_even(rng, high=20))),
                case(_numbers(rng, *map(int, rng.integers(2, 5, 2)), draw_even(rng, high=20))),
            ],
        ),
    ),
    misconceptions=tuple(_pairs),
)


@SPLIT_PAIRS.variant("reshape")
def _(x):
    return np.reshape(x, (*np.shape(x)[:-1], -1, 2))


@SPLIT_PAIRS.variant("every second column, stacked last")
def _(x):
    x = np.asarray(x)
    return np.stack([x[..., 0::2], x[..., 1::2]], axis=-1)


@SPLIT_PAIRS.variant("array filled in place")
def _(x):
    pairs = np.empty((*x.shape[:-1], x.shape[-1] // 2, 2))
    pairs[..., 0], pairs[..., 1] = x[..., 0::2], x[..., 1::2]
    return pairs


@SPLIT_PAIRS.variant("nested lists by recursion")
def _(x):
    def split(rows):
        if isinstance(rows[0], list):
            return [split(row) for row in rows]
        return [[rows[index], rows[index + 1]] for index in range(0, len(rows), 2)]

    return split(x.tolist())


@SPLIT_PAIRS.variant("float32 from np.split")
def _(x):
    return np.stack(np.split(np.float32(x), x.shape[-1] // 2, axis=-1), axis=-2)


_turns = Misconceptions()


def _column(positions) -> np.ndarray:
    """Return positions in float64 with a new last axis."""
    return np.asarray(positions, dtype=float)[..., np.newaxis]


@_turns.idea(
    "one axis taken for granted",
    "[:, np.newaxis] suits a list of positions alone: a single position has no axis, and a table "
    "gets its new axis in the middle; [..., np.newaxis] puts it last in any case",
    "start-pairs",
)
def _(positions, frequencies):
    return np.asarray(positions, dtype=float)[:, np.newaxis] * frequencies


@_turns.idea(
    "np.outer",
    "np.outer makes one long list of all positions first, as reshape(-1, 1) does, and of a single "
    "one a list of one; the axes of the positions stay as they are",
    "start-pairs",
)
def _(positions, frequencies):
    return np.outer(np.asarray(positions, dtype=float), frequencies)


@_turns.idea(
    "a list of one",
    "a single position is made a list of one, as by np.atleast_1d, so its angles have an axis too "
    "many; np.asarray leaves a single number without axes",
    "start-pairs",
)
def _(positions, frequencies):
    return _column(np.atleast_1d(positions)) * frequencies


@_turns.idea(
    "frequencies first",
    "the axis of the frequencies comes first; each position has a row of angles, so it comes last",
    "start-pairs",
)
def _(positions, frequencies):
    return np.multiply.outer(np.asarray(frequencies, dtype=float), positions)


@_turns.idea(
    "no new axis",
    "positions and frequencies are multiplied one by one; every position meets every frequency, "
    "for which the positions need one more axis at the end",
    "start-pairs",
)
def _(positions, frequencies):
    return np.asarray(positions, dtype=float) * frequencies


@_turns.idea(
    "arrays taken for granted",
    "a number or a list cannot be indexed with [..., np.newaxis]; np.asarray makes an array of it "
    "first",
    "start-pairs",
)
def _(positions, frequencies):
    return np.multiply(positions[..., np.newaxis], frequencies, dtype=float)


@_turns.idea(
    "integer overflow",
    "integers are multiplied in the type they came in, and int8 ends at 127: larger products wrap "
    "round without a word; convert to float64 first",
    "start-pairs",
)
def _(positions, frequencies):
    return np.asarray(positions)[..., np.newaxis] * np.asarray(frequencies)


@_turns.idea(
    "row numbers instead of positions",
    "positions are counted anew with np.arange, so their own values have no effect",
    "start-pairs",
)
def _(positions, frequencies):
    counted = np.arange(np.size(positions)).reshape(np.shape(positions))
    return _column(counted) * frequencies


@_turns.idea(
    "positions truncated",
    "positions are cut to integers; between 7 and 8 a pair turns on, so 7.5 has angles of its own",
    "start-pairs",
)
def _(positions, frequencies):
    return np.trunc(_column(positions)) * frequencies


@_turns.idea(
    "divided instead of multiplied",
    "positions are divided by the frequencies; a frequency is how far a pair turns in one "
    "position, so it multiplies",
    "start-pairs",
)
def _(positions, frequencies):
    return _column(positions) / frequencies


@_turns.idea(
    "degrees",
    "the product is converted as if it were in degrees; frequencies are radians per position",
    "start-pairs",
)
def _(positions, frequencies):
    return np.deg2rad(_column(positions) * frequencies)


@_turns.idea(
    "times 2 pi",
    "frequencies are taken for turns per position and multiplied by 2 pi; they are in radians "
    "already",
    "start-pairs",
)
def _(positions, frequencies):
    return 2 * np.pi * _column(positions) * frequencies


@_turns.idea(
    "reduced to one turn",
    "angles are reduced to what is left of the last turn; position times frequency counts whole "
    "turns, too",
    "start-pairs",
)
def _(positions, frequencies):
    return _column(positions) * frequencies % (2 * np.pi)


@_turns.idea(
    "reduced to one turn, sign kept",
    "whole turns are taken off, forwards and backwards, as by np.fmod; position times frequency "
    "counts them, too",
    "start-pairs",
)
def _(positions, frequencies):
    return np.fmod(_column(positions) * frequencies, 2 * np.pi)


@_turns.idea(
    "sine of the angle",
    "the sine of each angle is returned; asked for is the angle itself",
    "start-pairs",
)
def _(positions, frequencies):
    return np.sin(_column(positions) * frequencies)


@_turns.idea(
    "running total",
    "angles are added up from one position to the next; the angle at a position is that position "
    "times the frequency, whatever comes before it",
    "start-pairs",
)
def _(positions, frequencies):
    return np.cumsum(_column(positions) * frequencies, axis=0)


@_turns.idea(
    "counted from the first position",
    "the first position is subtracted from all; the angles are 0 at position 0, wherever the list "
    "starts",
    "start-pairs",
)
def _(positions, frequencies):
    positions = np.asarray(positions, dtype=float)
    return _column(positions - positions.flat[0]) * frequencies


def _frequencies(rng: np.random.Generator, pairs: int) -> np.ndarray:
    """Draw frequencies that fall from about 1, none of which is 1."""
    return (rng.uniform(0.5, 0.9) ** np.arange(1, pairs + 1)).round(4)


def _places(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Draw positions with gaps and fractions, some of them far enough for more than one turn."""
    return rng.choice([-1, 1], shape) * (rng.integers(20, 200, shape) + 0.5)


def _few_bits(rng: np.random.Generator, dtype: type, *shape: int) -> np.ndarray:
    """Draw integers at the upper end of a type, so that twice each is beyond it."""
    most = np.iinfo(dtype).max
    return (most - rng.integers(0, 30, shape)).astype(dtype)


ANGLES = Exercise(
    reference=sinusoidal.angles,
    assignment=ASSIGNMENT,
    section="start-pairs",
    difficulty=2,
    importance=5,
    minutes="5-10",
    criteria=(
        values(
            "a row of positions",
            0.5,
            # Where there are as many positions as frequencies, a missing axis raises no error.
            visible=lambda: [
                case(np.array([0.0, 1.0, 7.5, -20.0]), np.array([0.9, 0.5, 0.1, 0.01])),
                case(np.array([3.0, 2.0, 100.25]), np.array([0.9, 0.5, 0.1, 0.01])),
            ],
            drawn=lambda rng: [
                case(_places(rng, 5), _frequencies(rng, 5)),
                case(_places(rng, int(rng.integers(6, 9))), _frequencies(rng, 4)),
            ],
        ),
        values(
            "a single position",
            0.5,
            visible=lambda: [
                case(7.5, np.array([0.9, 0.5, 0.1, 0.01])),
                case(100, np.array([0.9, 0.5, 0.1, 0.01])),
            ],
            drawn=lambda rng: [
                case(float(_places(rng)), _frequencies(rng, 4)),
                case(int(rng.integers(20, 999)), _frequencies(rng, int(rng.integers(5, 9)))),
            ],
        ),
        values(
            "positions in a table, and in a list",
            0.5,
            visible=lambda: [
                case(
                    np.array([[0.0, 1.0, 2.0], [50.0, 7.5, -3.0]]), np.array([0.9, 0.5, 0.1, 0.01])
                ),
                case([3, 10, 4], np.array([0.9, 0.5, 0.1, 0.01])),
            ],
            drawn=lambda rng: [
                case(_places(rng, 3, 2), _frequencies(rng, int(rng.integers(4, 7)))),
                case(_places(rng, 2, 1, 3), _frequencies(rng, 4)),
                case(_places(rng, 2, 2).tolist(), _frequencies(rng, 5)),
            ],
        ),
        values(
            "integers of few bits",
            0.5,
            visible=lambda: [
                case(np.array([3, 100, -120], dtype=np.int8), np.array([5, 4, 3, 2], np.int8)),
                case(np.array([7, 2_000_000], np.int32), np.array([5000, 400, 30, 2], np.int32)),
            ],
            drawn=lambda rng: [
                case(_few_bits(rng, np.int8, 3), rng.integers(2, 9, 4).astype(np.int8)),
                case(_few_bits(rng, np.int32, 4), rng.integers(2, 9, 5).astype(np.int32)),
            ],
        ),
    ),
    misconceptions=tuple(_turns),
)


@ANGLES.variant("new last axis")
def _(positions, frequencies):
    return np.asarray(positions, dtype=np.float64)[..., None] * np.asarray(frequencies)


@ANGLES.variant("outer product of any shape")
def _(positions, frequencies):
    return np.multiply.outer(np.float64(positions), frequencies)


@ANGLES.variant("np.outer, put back in shape")
def _(positions, frequencies):
    products = np.outer(np.float64(positions), frequencies)
    return products.reshape(*np.shape(positions), len(frequencies))


@ANGLES.variant("nested lists by recursion")
def _(positions, frequencies):
    if np.ndim(positions):
        return [ANGLES.variants["nested lists by recursion"](p, frequencies) for p in positions]
    return [float(positions) * float(frequency) for frequency in frequencies]


@ANGLES.variant("einsum")
def _(positions, frequencies):
    return np.einsum("...,h->...h", np.float64(positions), np.float64(frequencies))


@ANGLES.variant("float32 result")
def _(positions, frequencies):
    return np.float32(np.multiply.outer(np.float64(positions), frequencies))


@ANGLES.variant("float32 throughout")
def _(positions, frequencies):
    return np.multiply.outer(np.float32(positions), np.float32(frequencies))


EXERCISES = (ROTATION_MATRIX, SPLIT_PAIRS, ANGLES)
