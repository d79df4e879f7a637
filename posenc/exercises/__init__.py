"""The course's graded exercises as data.

Everything that a notebook, the book or the grader needs to know about a graded function has its
one home here: :data:`EXERCISES` maps its name to its :class:`Exercise`, and :data:`KEYED` that of a
task with a secret key to its :class:`Keyed`.
"""

from __future__ import annotations

from difflib import get_close_matches

from posenc.exercises import (
    ch0_start,
    ch1_attention,
    ch2_sinusoidal,
    ch3_rotation,
    ch4_learned_rope,
    ch5_ledger,
)
from posenc.exercises._model import (
    Assignment,
    Case,
    Criterion,
    Exercise,
    Failure,
    Keyed,
    Misconception,
    Section,
)

ASSIGNMENTS = {
    assignment.name: assignment
    for assignment in (
        Assignment("00-start", "Start here", "15-25", ("00-start",)),
        Assignment("01-attention", "Why position must be added", "70-105", ("01-attention",)),
        Assignment("02-sinusoidal", "The sinusoidal formula", "90-120", ("02-sinusoidal",)),
        Assignment("03-rotation", "The rotation identity", "75-105", ("03-rotation",)),
        Assignment("04-learned-rope", "Learned versus RoPE", "90-120", ("04-learned", "04-rope")),
        Assignment("05-ledger", "The claims ledger", "25-35", ("05-ledger",)),
    )
}

SECTIONS = {
    "start-turning-a-pair": Section("00-start", "Turning a pair"),
    "start-pairs": Section("00-start", "Pairs and angles"),
    "start-how-checks-work": Section("00-start", "How checks work"),
    "attention-softmax": Section("01-attention", "Softmax"),
    "attention-scores": Section("01-attention", "Self-attention"),
    "attention-causal-mask": Section("01-attention", "The causal mask"),
    "attention-equivariance": Section("01-attention", "Equivariance"),
    "attention-symmetries": Section("01-attention", "Invariant, equivariant, neither"),
    "attention-causal-mean": Section("01-attention", "What a causal average knows"),
    "attention-prefix-order": Section("01-attention", "The order of the prefix"),
    "sinusoidal-frequencies": Section("02-sinusoidal", "Frequencies"),
    "sinusoidal-interleaving": Section("02-sinusoidal", "Interleaving sine and cosine"),
    "sinusoidal-positions": Section("02-sinusoidal", "Positions are numbers, not row indices"),
    "sinusoidal-precision": Section("02-sinusoidal", "Angles in float64"),
    "sinusoidal-wavelengths": Section("02-sinusoidal", "Wavelengths"),
    "sinusoidal-adding": Section("02-sinusoidal", "Adding positions to embeddings"),
    "sinusoidal-impossible": Section("02-sinusoidal", "Rows that cannot be"),
    "sinusoidal-testing": Section("02-sinusoidal", "A test that can fail"),
    "rotation-shift-matrix": Section("03-rotation", "The shift matrix"),
    "rotation-without-matrix": Section("03-rotation", "Shifting without a matrix"),
    "rotation-kernel": Section("03-rotation", "The position kernel"),
    "rotation-linearity": Section("03-rotation", "One linear map, fitted"),
    "rotation-toeplitz": Section("03-rotation", "How Toeplitz a matrix is"),
    "learned-lookup": Section("04-learned", "Looking up a row"),
    "learned-gradient": Section("04-learned", "The gradient of the table"),
    "rope-pairs": Section("04-rope", "Rotating pairs"),
    "rope-layouts": Section("04-rope", "Two layouts"),
    "rope-scores": Section("04-rope", "Scores that see distance"),
    "rope-testing": Section("04-rope", "Testing relativity"),
    "rope-traps": Section("04-rope", "Traps of the code"),
    "rope-convert": Section("04-rope", "One layout for the weights, another for the code"),
    "ledger-verdicts": Section("05-ledger", "Verdicts"),
    "ledger-repeat": Section("05-ledger", "The nearest repeat"),
}

EXERCISES: dict[str, Exercise] = {
    exercise.name: exercise
    for module in (
        ch0_start,
        ch1_attention,
        ch2_sinusoidal,
        ch3_rotation,
        ch4_learned_rope,
        ch5_ledger,
    )
    for exercise in module.EXERCISES
}
KEYED: dict[str, Keyed] = {task.name: task for task in (ch5_ledger.VERDICTS,)}

__all__ = [
    "ASSIGNMENTS",
    "EXERCISES",
    "KEYED",
    "SECTIONS",
    "Assignment",
    "Case",
    "Criterion",
    "Exercise",
    "Failure",
    "Keyed",
    "Misconception",
    "Section",
    "for_assignment",
    "get",
]


def get(name: str) -> Exercise | Keyed:
    """Return the exercise of this name.

    Parameters
    ----------
    name : str
        Name of a graded function.

    Returns
    -------
    Exercise or Keyed
        Its criteria, misconceptions and variants; or the labels of a task with a secret key.

    Raises
    ------
    ValueError
        If there is none; the message names the nearest, or all.
    """
    tasks = EXERCISES | KEYED
    if name not in tasks:
        near = get_close_matches(name, tasks)
        known = f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(tasks)}"
        raise ValueError(f"no exercise is called {name!r}; {known}")
    return tasks[name]


def for_assignment(name: str) -> tuple[Exercise | Keyed, ...]:
    """Return the tasks of one assignment, in the order of its notebook.

    Parameters
    ----------
    name : str
        Name of an assignment, such as "02-sinusoidal".

    Returns
    -------
    tuple of Exercise or Keyed
        At least one; those with a secret key come first.

    Raises
    ------
    ValueError
        If there is no such assignment; the message names all.
    """
    if name not in ASSIGNMENTS:
        raise ValueError(f"no assignment is called {name!r}; there are {', '.join(ASSIGNMENTS)}")
    tasks = (*KEYED.values(), *EXERCISES.values())
    return tuple(task for task in tasks if task.assignment == name)
