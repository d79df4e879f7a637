"""A sample class: five submissions made from the solutions, graded by nbgrader's own commands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from posenc.exercises import for_assignment
from posenc.grading._check import SEED_VARIABLE
from posenc.grading.assignments import RELEASE, SOURCE, CourseError

if TYPE_CHECKING:
    from nbformat import NotebookNode

ASSIGNMENT = "02-sinusoidal"
DEFAULT_FOLDER = "_build/demo"
SEED = "a seed for the sample class alone"
COURSE_FILES = ("_config.yml", "nbgrader_config.py", "solutions")


@dataclass(frozen=True)
class Student:
    """A submission: the solution with some text replaced, or the notebook as it was handed out."""

    name: str
    what: str
    changes: dict[str, str] = field(default_factory=dict)
    blank: bool = False


CLASS = (
    Student("complete", "hands in the model solution"),
    Student("blank", "hands in the notebook as it was given out", blank=True),
    Student(
        "halves",
        "stores all sines first and all cosines after them",
        {
            "encoding[..., 0::2]": "encoding[..., : d_model // 2]",
            "encoding[..., 1::2]": "encoding[..., d_model // 2 :]",
        },
    ),
    Student(
        "fixed-base",
        "computes frequencies with the base 10,000, whatever base is given",
        {"return base ** (-2 * pairs": "return 10_000.0 ** (-2 * pairs"},
    ),
    Student(
        "crash",
        "leaves a parenthesis open in the third answer",
        {
            "return 2 * np.pi / frequencies": "return (2 * np.pi / frequencies",
        },
    ),
)


def run(root: Path, folder: Path | None = None) -> Iterator[str]:
    """Grade the sample class in a course folder of its own, and tell what is done.

    Parameters
    ----------
    root : Path
        The course whose solutions are used.
    folder : Path, optional
        Where the sample course is made; ``_build/demo``, made anew, if not given.

    Yields
    ------
    str
        Progress, the gradebook as a table, and where the results are.
    """
    folder = _make_course(root, folder)
    csv = folder / "grades.csv"
    yield f"the sample course is in {folder}"
    yield "generating the assignment"
    _finish(_nbgrader(folder, "generate_assignment", ASSIGNMENT))
    for student in CLASS:
        _submit(folder, student)
        yield f"submitted: {student.name}, who {student.what}"
    for line in _nbgrader(folder, "autograde", ASSIGNMENT):
        graded = re.search(r"Autograded ([\w-]+): (.*)", line)
        if graded:
            yield f"graded {graded[1]}"
    yield "writing feedback"
    _finish(_nbgrader(folder, "generate_feedback", ASSIGNMENT))
    yield "exporting grades"
    _finish(_nbgrader(folder, "export", "--to", str(csv)))
    yield ""
    yield table(points(folder))
    yield ""
    yield f"feedback: {folder / 'feedback' / 'STUDENT' / ASSIGNMENT / f'{ASSIGNMENT}.html'}"
    yield f"grades:   {csv}"


def _finish(lines: Iterator[str]) -> None:
    for _ in lines:
        pass


def points(folder: Path) -> dict[str, dict[str, float]]:
    """Return the points in the gradebook: for each student, those of each task."""
    from nbgrader.api import Gradebook

    earned: dict[str, dict[str, float]] = {}
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}") as gradebook:
        for student in CLASS:
            notebook = gradebook.find_submission_notebook(ASSIGNMENT, ASSIGNMENT, student.name)
            scores = {grade.name.removeprefix("grade-"): grade.score for grade in notebook.grades}
            earned[student.name] = {
                exercise.name: scores[exercise.name] for exercise in for_assignment(ASSIGNMENT)
            }
    return earned


def table(earned: dict[str, dict[str, float]]) -> str:
    """Return points as text: a row for each task, a column for each student."""
    exercises = for_assignment(ASSIGNMENT)
    rows = [["", "points", *earned]]
    rows += [
        [
            exercise.name,
            f"{exercise.points:g}",
            *(f"{by[exercise.name]:g}" for by in earned.values()),
        ]
        for exercise in exercises
    ]
    total = sum(exercise.points for exercise in exercises)
    rows.append(["total", f"{total:g}", *(f"{sum(by.values()):g}" for by in earned.values())])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    )


def _make_course(root: Path, folder: Path | None) -> Path:
    """Copy what a course needs into a new folder."""
    if folder is None:
        folder = root / DEFAULT_FOLDER
        shutil.rmtree(folder, ignore_errors=True)
    folder = folder.resolve()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CourseError(f"{folder} is not empty; name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    for name in COURSE_FILES:
        copy = shutil.copytree if (root / name).is_dir() else shutil.copy2
        copy(root / name, folder / name)
    return folder


def _submit(folder: Path, student: Student) -> None:
    import nbformat

    path = Path(ASSIGNMENT) / f"{ASSIGNMENT}.ipynb"
    handed_out = nbformat.read(folder / RELEASE / path, as_version=4)
    solved = nbformat.read(folder / SOURCE / path, as_version=4)
    target = folder / "submitted" / student.name / path
    target.parent.mkdir(parents=True)
    nbformat.write(answered(handed_out, solved, student), target)


def answered(handed_out: NotebookNode, solved: NotebookNode, student: Student) -> NotebookNode:
    """Return the handed-out notebook with a student's answers in it."""
    if student.blank:
        return handed_out
    answers = {cell.id: cell.source for cell in solved.cells}
    changes = dict(student.changes)
    for cell in handed_out.cells:
        if not cell.metadata.get("nbgrader", {}).get("solution"):
            continue
        cell.source = answers[cell.id]
        for old in list(changes):
            if old in cell.source:
                cell.source = cell.source.replace(old, changes.pop(old))
        cell.source = re.sub(r"\n *### (BEGIN|END) SOLUTION", "", cell.source)
    if changes:
        raise CourseError(f"the solution no longer holds {' or '.join(changes)}")
    return handed_out


def _nbgrader(folder: Path, *words: str) -> Iterator[str]:
    """Run a command of nbgrader in a course, apart from what this machine's user has set up.

    Yields
    ------
    str
        What it says, line by line.
    """
    environment = {key: value for key, value in os.environ.items() if key != "POSENC_DB"}
    environment |= {SEED_VARIABLE: SEED, "JUPYTER_CONFIG_DIR": str(folder / ".jupyter")}
    said = []
    with subprocess.Popen(
        [sys.executable, "-m", "nbgrader", *words],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        for line in process.stdout:
            said.append(line)
            yield line
    if process.returncode:
        raise CourseError(f"nbgrader {words[0]} failed; it said:\n{''.join(said).strip()}")
