"""From ``solutions/*/*.py`` to the notebooks that nbgrader reads and those that students get.

A solution is an ordinary Python file in cells. Nothing that has its home elsewhere is written in
it: the course's address, the points and the minutes are filled in, and a cell's part in grading
follows from what it holds (a solution between marks, ``check("name")``, ``grade("name")``).
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import posenc
from posenc import exercises
from posenc.exercises import ASSIGNMENTS, SECTIONS
from posenc.grading._report import points_text

if TYPE_CHECKING:
    from nbformat import NotebookNode

SOURCE = "_build/source"
RELEASE = "exercises"
# Copies in the package, which `posenc reset` restores from; students work in exercises/.
CARRIED = "posenc/exercises/notebooks"
# For one cell of the student's, in grading and in `posenc check`.
CELL_SECONDS = 60
STAMP = ".made-from"
RELEASED_STAMP = ".released"
SETUP = "setup"
SOLUTION_MARK = "### BEGIN SOLUTION"
HIDDEN_MARK = "### BEGIN HIDDEN TESTS"

HOW = """Each task has a cell for your answer, a check and a locked cell. Write your answer in place
of `raise NotImplementedError()`, run the cell, then run the check under it, as often as you like:
it says what is right and, where it can, which idea is wrong. To repeat the call that it shows, keep
the report: after `report = check("NAME")`, `NAME(*report.args, **report.kwargs)` is that call. A
check hides what your function prints. The locked cell counts the points. On your machine it draws
practice inputs; the course draws its own. Before you hand in, `posenc check FILE.ipynb` runs the
notebook as the course will, and `posenc reset FILE.ipynb NAME` puts a damaged task back."""


class CourseError(Exception):
    """What the user can put right, in one sentence."""


def find_root(start: Path | None = None) -> Path:
    """Return the course's folder: the nearest one upwards that holds _config.yml and solutions."""
    start = (start or Path.cwd()).resolve()
    for folder in (start, *start.parents):
        if (folder / "_config.yml").is_file() and (folder / "solutions").is_dir():
            return folder
    raise CourseError(
        f"{start} is not inside a course; go to the folder that holds _config.yml and solutions/"
    )


def known(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of assignments, all if none is given; an unknown one is a ValueError."""
    for name in names:
        exercises.for_assignment(name)
    return tuple(names) or tuple(ASSIGNMENTS)


def course_address(root: Path) -> str:
    """Return the address that ``html: baseurl:`` of _config.yml gives the course."""
    import yaml

    settings = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8")) or {}
    address = (settings.get("html") or {}).get("baseurl")
    if not address:
        raise CourseError("_config.yml has no course address; set baseurl: under html:")
    return str(address).rstrip("/")


def source_notebook(root: Path, name: str) -> NotebookNode:
    """Return the instructor's notebook of an assignment, as nbgrader reads it."""
    import jupytext

    path = root / "solutions" / name / f"{name}.py"
    if not path.is_file():
        raise CourseError(f"{path.relative_to(root)} is missing, so {name} can't be generated")
    notebook = jupytext.reads(path.read_text(encoding="utf-8"), fmt="py:percent")
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    try:
        _fill_in(notebook.cells, name, course_address(root))
        _give_parts(notebook.cells, name)
    except ValueError as error:
        raise CourseError(f"{path.relative_to(root)}: {error}") from None
    return notebook


def _fill_in(cells: list[Any], name: str, site: str) -> None:
    """Replace {{facts}}, {{how}}, {{task}}, {{site}} and {{version}}."""
    texts = {
        "facts": _assignment_facts(name),
        "how": HOW,
        "site": site,
        "version": posenc.__version__,
    }
    task = None
    for cell in reversed(cells):
        # A task's text stands above its answer.
        task = _solved(cell) or task

        def text(match: re.Match, task: str | None = task) -> str:
            key = match[1]
            if key == "task" and task:
                return _task_facts(task, site)
            if key not in texts:
                raise ValueError(f"nothing is known to fill in for {match[0]}")
            return texts[key]

        cell.source = re.sub(r"\{\{(\w+)\}\}", text, cell.source)


def _assignment_facts(name: str) -> str:
    total = sum(exercise.points for exercise in exercises.for_assignment(name))
    return f"**{points_text(total)}, about {_range(ASSIGNMENTS[name].minutes)} minutes.**"


def _task_facts(task: str, site: str) -> str:
    exercise = exercises.get(task)
    section = SECTIONS[exercise.section]
    return (
        f"**{points_text(exercise.points)}.** Difficulty {exercise.difficulty} of 5, "
        f"importance {exercise.importance} of 5, about {_range(exercise.minutes)} minutes. "
        f"Read: [{section.title}]({site}/{section.page}.html#{exercise.section})."
    )


def _range(minutes: str) -> str:
    return minutes.replace("-", " to ")


def _solved(cell: Any) -> str | None:
    """Return the function that a cell with a solution defines."""
    if cell.cell_type != "code" or SOLUTION_MARK not in cell.source:
        return None
    found = re.search(r"^def (\w+)", cell.source, re.MULTILINE)
    if not found:
        raise ValueError("a cell with a solution defines no function")
    return found[1]


def _give_parts(cells: list[Any], name: str) -> None:
    """Give each cell its part in grading, and an id that stays the same from run to run."""
    expected = [SETUP] + [
        grade_id
        for exercise in exercises.for_assignment(name)
        for grade_id in (exercise.name, f"check-{exercise.name}", f"grade-{exercise.name}")
    ]
    found = []
    for index, cell in enumerate(cells):
        cell.metadata = {}
        part = _part(cell)
        if part:
            cell.metadata["nbgrader"] = {"schema_version": 3, "task": False, **part}
            found.append(part["grade_id"])
        cell.id = part["grade_id"] if part else f"{cell.cell_type}-{index}"
    for got, want in zip_longest(found, expected, fillvalue="the end"):
        if got != want:
            raise ValueError(f"expected the cell {want}, got {got}")


def _part(cell: Any) -> dict[str, Any] | None:
    """Return a cell's nbgrader metadata, if it has a part in grading."""
    if cell.cell_type != "code":
        return None
    solved = _solved(cell)
    if solved:
        return {"grade": False, "grade_id": solved, "locked": False, "solution": True}
    call = re.fullmatch(r'(check|grade)\("(\w+)"\)', cell.source.strip())
    # The key of a task that has one stands between nbgrader's marks, which no student sees.
    call = call or re.match(rf'report = (grade)\("(\w+)"\)\n{HIDDEN_MARK}\n', cell.source)
    locked = {"grade": False, "locked": True, "solution": False}
    if call and call[1] == "grade":
        points = exercises.get(call[2]).points
        return locked | {
            "grade": True,
            "grade_id": f"grade-{call[2]}",
            "points": int(points) if points == int(points) else points,
        }
    if call:
        return locked | {"grade_id": f"check-{call[2]}"}
    if "from posenc.grading import" in cell.source:
        return locked | {"grade_id": SETUP}
    return None


def refresh_source(root: Path) -> bool:
    """Write ``_build/source`` anew if it is missing or made from other solutions.

    Returns
    -------
    bool
        Whether anything was written.
    """
    folder = root / SOURCE
    made_from = _inputs(root)
    stamp = folder / STAMP
    notebooks = {name: folder / name / f"{name}.ipynb" for name in ASSIGNMENTS}
    fresh = stamp.is_file() and stamp.read_text(encoding="utf-8") == made_from
    if fresh and all(path.is_file() for path in notebooks.values()):
        return False
    import nbformat

    texts = {name: nbformat.writes(source_notebook(root, name)) + "\n" for name in notebooks}
    shutil.rmtree(folder, ignore_errors=True)
    for name, path in notebooks.items():
        path.parent.mkdir(parents=True)
        path.write_text(texts[name], encoding="utf-8", newline="\n")
    stamp.write_text(made_from, encoding="utf-8")
    return True


def _inputs(root: Path) -> str:
    """Return a hash of all that the notebooks are made from."""
    facts = [
        (exercise.name, exercise.points, exercise.difficulty, exercise.importance, exercise.minutes)
        for exercise in (*exercises.EXERCISES.values(), *exercises.KEYED.values())
    ]
    digest = hashlib.sha256(repr((posenc.__version__, ASSIGNMENTS, SECTIONS, facts)).encode())
    for name in ASSIGNMENTS:
        path = root / "solutions" / name / f"{name}.py"
        digest.update(path.read_bytes() if path.is_file() else b"missing")
    for path in (root / "_config.yml", Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def student_notebooks(root: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Return the notebooks that students get, made by ``nbgrader generate_assignment``.

    It works in a temporary folder and without a gradebook, so nothing in the course changes but
    ``_build/source``.
    """
    from nbgrader.converters import GenerateAssignment, NbGraderException
    from nbgrader.coursedir import CourseDirectory
    from traitlets.config import Config, PyFileConfigLoader

    refresh_source(root)
    with tempfile.TemporaryDirectory() as folder:
        config = PyFileConfigLoader("nbgrader_config.py", path=str(root)).load_config()
        config.merge(
            Config(
                CourseDirectory={"release_directory": folder},
                GenerateAssignment={"no_database": True},
                SaveCells={"enabled": False},
            )
        )
        notebooks = {}
        for name in names:
            course = CourseDirectory(config=config, assignment_id=name)
            try:
                GenerateAssignment(coursedir=course, config=config).start()
            except NbGraderException as error:
                raise CourseError(f"nbgrader could not generate {name}: {error}") from None
            notebooks[name] = (Path(folder) / name / f"{name}.ipynb").read_bytes()
        return notebooks


def stale(root: Path, names: Sequence[str]) -> list[str]:
    """Return the assignments whose notebook in ``exercises/`` is not the generated one."""
    return [
        name
        for name, content in student_notebooks(root, names).items()
        if _bytes(_released(root, name)) != content or not _carries(root, name, content)
    ]


def is_released(root: Path, names: Sequence[str]) -> bool:
    """Return whether ``exercises/`` was last generated from the solutions as they are now."""
    # refresh_source removes the stamp with everything else that was made from other solutions.
    return (
        not refresh_source(root)
        and (root / SOURCE / RELEASED_STAMP).is_file()
        and all(_released(root, name).is_file() for name in names)
    )


def generate(root: Path, names: Sequence[str], *, replace_answers: bool = True) -> Iterator[str]:
    """Write the notebooks that students get into ``exercises/``, and tell what is done.

    Parameters
    ----------
    root : Path
        The course's folder.
    names : sequence of str
        Assignments.
    replace_answers : bool, default True
        Whether a notebook that somebody has worked in is replaced, after a copy of it was kept.

    Yields
    ------
    str
        One sentence for each assignment.
    """
    for name, content in student_notebooks(root, names).items():
        if not _carries(root, name, content):
            write_whole(_carried(root, name), content)
        path = _released(root, name)
        shown = path.relative_to(root).as_posix()
        if _bytes(path) == content:
            yield f"{shown} is up to date"
            continue
        if path.is_file() and holds_answers(path) and not replace_answers:
            yield f"{shown} holds answers and is left as it is"
            continue
        kept = keep_answers(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
        yield f"{shown} written" + (f"; the answers it held are in {kept.name}" if kept else "")
    if set(names) == set(ASSIGNMENTS):
        (root / SOURCE / RELEASED_STAMP).touch()


def _released(root: Path, name: str) -> Path:
    return root / RELEASE / name / f"{name}.ipynb"


def _carried(root: Path, name: str) -> Path:
    return root / CARRIED / f"{name}.ipynb"


def _carries(root: Path, name: str, content: bytes) -> bool:
    """Return whether the package's copy is right, or this is a course without the package."""
    path = _carried(root, name)
    return not path.parent.is_dir() or _bytes(path) == content


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def write_whole(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write a file whole or not at all."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    Path(temporary).chmod(mode)
    Path(temporary).replace(path)


def keep_answers(path: Path) -> Path | None:
    """Copy a student's notebook that somebody has worked in, before it is replaced.

    The copy lies beside the assignment's folder, which ``nbgrader generate_assignment`` removes.
    """
    if not path.is_file() or not holds_answers(path):
        return None
    moment = time.strftime("%Y%m%d-%H%M%S")
    kept = path.parents[1] / f"{path.stem}.kept-{moment}.ipynb"
    shutil.copy2(path, kept)
    return kept


def holds_answers(path: Path) -> bool:
    """Return whether somebody has written into a generated notebook, or it can't be read."""
    import nbformat
    from nbgrader.utils import compute_checksum, is_solution

    try:
        cells = nbformat.read(path, as_version=4).cells
    except Exception:
        return True
    for cell in cells:
        if is_solution(cell):
            if cell.metadata.nbgrader.get("checksum") != compute_checksum(cell):
                return True
        elif "nbgrader" not in cell.metadata and not re.fullmatch(
            rf"{cell.cell_type}-\d+", cell.get("id", "")
        ):
            return True
    return False
