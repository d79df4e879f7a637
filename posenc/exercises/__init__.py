"""The course's graded exercises as data.

Everything that a notebook, the book or the grader needs to know about a graded function has its
one home here: :data:`EXERCISES` maps its name to its :class:`Exercise`.
"""

from __future__ import annotations

from difflib import get_close_matches

from posenc.exercises import (
    ch0_start,
    ch1_attention,
    ch2_sinusoidal,
    ch3_rotation,
    ch4_learned_rope,
)
from posenc.exercises._model import (
    Assignment,
    Case,
    Criterion,
    Exercise,
    Failure,
    Misconception,
    Section,
)

ASSIGNMENTS = {
    assignment.name: assignment
    for assignment in (
        Assignment("00-start", "Start here", "10-20", ("00-start",)),
        Assignment("01-attention", "Why position must be added", "45-60", ("01-attention",)),
        Assignment("02-sinusoidal", "The sinusoidal formula", "60-80", ("02-sinusoidal",)),
        Assignment("03-rotation", "The rotation identity", "50-70", ("03-rotation",)),
        Assignment("04-learned-rope", "Learned versus RoPE", "70-90", ("04-learned", "04-rope")),
    )
}

SECTIONS = {
    "start-turning-a-pair": Section("00-start", "Turning a pair"),
    "start-how-checks-work": Section("00-start", "How checks work"),
    "attention-softmax": Section("01-attention", "Softmax"),
    "attention-scores": Section("01-attention", "Self-attention"),
    "attention-causal-mask": Section("01-attention", "The causal mask"),
    "attention-equivariance": Section("01-attention", "Equivariance"),
    "sinusoidal-frequencies": Section("02-sinusoidal", "Frequencies"),
    "sinusoidal-interleaving": Section("02-sinusoidal", "Interleaving sine and cosine"),
    "sinusoidal-positions": Section("02-sinusoidal", "Positions are numbers, not row indices"),
    "sinusoidal-precision": Section("02-sinusoidal", "Angles in float64"),
    "sinusoidal-wavelengths": Section("02-sinusoidal", "Wavelengths"),
    "sinusoidal-adding": Section("02-sinusoidal", "Adding positions to embeddings"),
    "rotation-shift-matrix": Section("03-rotation", "The shift matrix"),
    "rotation-without-matrix": Section("03-rotation", "Shifting without a matrix"),
    "rotation-kernel": Section("03-rotation", "The position kernel"),
    "learned-lookup": Section("04-learned", "Looking up a row"),
    "rope-pairs": Section("04-rope", "Rotating pairs"),
    "rope-layouts": Section("04-rope", "Two layouts"),
    "rope-scores": Section("04-rope", "Scores that see distance"),
    "rope-testing": Section("04-rope", "Testing relativity"),
    "rope-traps": Section("04-rope", "Traps of the code"),
}

EXERCISES: dict[str, Exercise] = {
    exercise.name: exercise
    for module in (ch0_start, ch1_attention, ch2_sinusoidal, ch3_rotation, ch4_learned_rope)
    for exercise in module.EXERCISES
}

__all__ = [
    "ASSIGNMENTS",
    "EXERCISES",
    "SECTIONS",
    "Assignment",
    "Case",
    "Criterion",
    "Exercise",
    "Failure",
    "Misconception",
    "Section",
    "for_assignment",
    "get",
]


def get(name: str) -> Exercise:
    """Return the exercise of this name.

    Parameters
    ----------
    name : str
        Name of a graded function.

    Returns
    -------
    Exercise
        Its criteria, misconceptions and variants.

    Raises
    ------
    ValueError
        If there is none; the message names the nearest, or all.
    """
    if name not in EXERCISES:
        near = get_close_matches(name, EXERCISES)
        known = f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(EXERCISES)}"
        raise ValueError(f"no exercise is called {name!r}; {known}")
    return EXERCISES[name]


def for_assignment(name: str) -> tuple[Exercise, ...]:
    """Return the exercises of one assignment, in the order of its notebook.

    Parameters
    ----------
    name : str
        Name of an assignment, such as "02-sinusoidal".

    Returns
    -------
    tuple of Exercise
        At least one.

    Raises
    ------
    ValueError
        If there is no such assignment; the message names all.
    """
    if name not in ASSIGNMENTS:
        raise ValueError(f"no assignment is called {name!r}; there are {', '.join(ASSIGNMENTS)}")
    return tuple(exercise for exercise in EXERCISES.values() if exercise.assignment == name)
