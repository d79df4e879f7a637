"""Chapter 0, start here: its exercise, and the ways it goes wrong."""

from __future__ import annotations

import cmath
import math

import numpy as np

from posenc import rotation
from posenc.exercises._model import Exercise, Misconceptions, case, holds, require, values

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
        holds(
            "lengths and orientation are kept",
            0.5,
            _keeps_shape,
            visible=lambda: [case(0.5)],
            drawn=lambda rng: [case(_angle(rng)), case(_angle(rng))],
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


EXERCISES = (ROTATION_MATRIX,)
