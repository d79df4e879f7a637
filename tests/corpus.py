"""Submissions that are hard to grade, or try to cheat: who writes them, and how each must end.

The kinds are in the modules ``corpus_*``; each registers its entries here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import nbformat

from posenc.exercises import for_assignment
from posenc.grading import assignments
from posenc.grading.results import BLANK, GRADED, MISSING, UNGRADABLE

ROOT = Path(__file__).parents[1]
MOST = "02-sinusoidal"
SETUP = assignments.SETUP
Notebook = dict[str, Any]
ENTRIES: list[Entry] = []


@dataclass(frozen=True)
class Entry:
    """One submission.

    Parameters
    ----------
    name : str
        Also the student's.
    what : str
        In one sentence.
    write : callable
        Writes it into a new folder.
    assignment : str
        Which it is for.
    state : str
        How it must end.
    points : dict of str to float
        What each task must earn; empty where nothing is graded.
    word : str
        What a note or the lines of a task must hold, in any case of letters.
    quick : bool
        Whether it is in the sample.
    """

    name: str
    what: str
    write: Callable[[Path], None]
    assignment: str
    state: str
    points: dict[str, float]
    word: str
    quick: bool


def entry(
    name: str,
    what: str,
    *,
    assignment: str = MOST,
    state: str = GRADED,
    lost: dict[str, float] | None = None,
    word: str = "",
    quick: bool = False,
) -> Callable:
    """Register what writes a submission; ``lost`` holds the points of tasks that don't get all."""

    def register(write: Callable[[Path], None]) -> Callable[[Path], None]:
        full = {task.name: float(task.points) for task in for_assignment(assignment)}
        assert set(lost or {}) <= set(full), name
        points = {
            GRADED: full | (lost or {}),
            BLANK: dict.fromkeys(full, 0.0),
            MISSING: {},
            UNGRADABLE: {},
        }[state]
        ENTRIES.append(Entry(name, what, write, assignment, state, points, word, quick))
        return write

    return register


@cache
def _notebooks(assignment: str) -> tuple[str, str]:
    solved = nbformat.writes(assignments.source_notebook(ROOT, assignment))
    path = ROOT / "exercises" / assignment / f"{assignment}.ipynb"
    return path.read_text("utf-8"), solved


def released(assignment: str = MOST) -> Notebook:
    """Return the notebook that is handed out, as JSON."""
    return json.loads(_notebooks(assignment)[0])


def complete(assignment: str = MOST) -> Notebook:
    """Return it with right answers."""
    notebook = released(assignment)
    solved = {cell["id"]: cell for cell in json.loads(_notebooks(assignment)[1])["cells"]}
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("solution"):
            text = "".join(solved[cell["id"]]["source"])
            cell["source"] = re.sub(r"\n *### (BEGIN|END) SOLUTION", "", text)
        else:
            cell["source"] = "".join(cell["source"])
    return notebook


def at(notebook: Notebook, name: str) -> int:
    """Return where the cell with an id stands."""
    return [cell.get("id") for cell in notebook["cells"]].index(name)


def cell(notebook: Notebook, name: str) -> dict[str, Any]:
    """Return the cell with an id."""
    return notebook["cells"][at(notebook, name)]


def code(source: str, name: str = "own") -> dict[str, Any]:
    """Return a new cell of the student's own."""
    return {
        "cell_type": "code",
        "id": name,
        "metadata": {},
        "source": source,
        "outputs": [],
        "execution_count": None,
    }


def save(folder: Path, notebook: Any, name: str = MOST, **options: Any) -> None:
    """Write JSON into a submission's folder."""
    text = json.dumps(notebook, ensure_ascii=False, **options)
    (folder / f"{name}.ipynb").write_text(text, encoding="utf-8", errors="surrogatepass")


def edited(name: str, what: str, *, assignment: str = MOST, **how: Any) -> Callable:
    """Register a complete notebook that the function edits, or replaces by what it returns."""

    def register(edit: Callable[[Notebook], Notebook | None]) -> Callable:
        def write(folder: Path) -> None:
            notebook = complete(assignment)
            save(folder, edit(notebook) or notebook, assignment)

        entry(name, what, assignment=assignment, **how)(write)
        return edit

    return register


def answers(
    name: str, what: str, sources: dict[str, str], *, assignment: str = MOST, **how: Any
) -> None:
    """Register a complete notebook with other answers."""

    @edited(name, what, assignment=assignment, **how)
    def _(notebook: Notebook) -> None:
        for task, source in sources.items():
            cell(notebook, task)["source"] = source


def cells(name: str, what: str, *sources: str, before: str = MOST, **how: Any) -> None:
    """Register a complete notebook with cells of the student's, after the setup if not told."""

    @edited(name, what, **how)
    def _(notebook: Notebook) -> None:
        place = at(notebook, SETUP) + 1 if before == MOST else at(notebook, before)
        notebook["cells"][place:place] = [
            code(source, f"own-{number}") for number, source in enumerate(sources)
        ]


def copied(notebook: Notebook, name: str) -> dict[str, Any]:
    """Return a copy of a cell as a notebook editor makes it: the same metadata, another id."""
    return {**deepcopy(cell(notebook, name)), "id": f"{name}-copy"}
