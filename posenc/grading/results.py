"""What grading a submission found, as it stands in the autograded notebook's metadata."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

KEY = "posenc"
GRADED, BLANK, MISSING = "graded", "blank", "missing"
# The student's side, and ours.
UNGRADABLE, FAULT = "ungradable", "grader fault"
STATES = (GRADED, BLANK, MISSING, UNGRADABLE, FAULT)


@dataclass(frozen=True)
class Task:
    """How one graded cell ended.

    Parameters
    ----------
    grade_id : str
        Its id.
    points, max_points : float
        What was earned, and the most that can be.
    state : str
        In one or a few words, as in a report; "fault" where the grader failed.
    lines : tuple of str
        What the student reads.
    misconceptions : tuple of str
        Names of the wrong ideas that were recognised.
    """

    grade_id: str
    points: float | None
    max_points: float
    state: str = "right"
    lines: tuple[str, ...] = ()
    misconceptions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """How a submission ended.

    Parameters
    ----------
    state : str
        One of :data:`STATES`.
    notes : tuple of str
        What was repaired, and what a person should look at, a sentence each.
    tasks : tuple of Task
        Its graded cells, in order.
    seed : str
        What the cases were drawn from.
    version : str
        Of posenc.
    """

    state: str
    notes: tuple[str, ...] = ()
    tasks: tuple[Task, ...] = ()
    seed: str = ""
    version: str = ""

    def store(self, notebook: Any) -> None:
        """Write it into a notebook, in place of what the student wrote there."""
        notebook.metadata[KEY] = asdict(self)

    @classmethod
    def of(cls, notebook: Any) -> Result | None:
        """Return what :meth:`store` wrote, or None."""
        kept = notebook.metadata.get(KEY)
        if not kept or kept.get("state") not in STATES:
            return None
        tasks = tuple(
            Task(
                **{
                    **task,
                    "lines": tuple(task["lines"]),
                    "misconceptions": tuple(task["misconceptions"]),
                }
            )
            for task in kept["tasks"]
        )
        return cls(kept["state"], tuple(kept["notes"]), tasks, kept["seed"], kept["version"])


def stored(path: Path) -> Result | None:
    """Return what grading wrote into an autograded notebook, or None.

    Parameters
    ----------
    path : Path
        The notebook.
    """
    try:
        metadata = json.loads(path.read_bytes())["metadata"]
        return Result.of(SimpleNamespace(metadata=metadata))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        # Not graded by us, and what stands there may be a student's.
        return None
