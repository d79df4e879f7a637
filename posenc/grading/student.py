"""What students run on their own notebooks: ``posenc check`` and ``posenc reset``."""

from __future__ import annotations

import ast
import asyncio
import copy
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from functools import cached_property, partial
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import nbformat
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager

from posenc import exercises
from posenc.exercises import ASSIGNMENTS
from posenc.grading import _reading, rebuild
from posenc.grading._check import SEED_VARIABLE
from posenc.grading._execute import ToTheEnd
from posenc.grading.assignments import CELL_SECONDS, SETUP, CourseError

T = TypeVar("T")
NOTEBOOKS = "notebooks"
# A graded cell stops an endless function by itself, at worst after 100.
GRADED_SECONDS = 120
REPORT = "application/vnd.posenc.report+json"
# What a graded cell runs here: the report as data, and whether grading would find the course's
# own functions under the names that the locked cells call.
PROBE = """
from IPython.display import display
from posenc import grading
report = eval("function(task)", namespace, {"function": getattr(grading, call), "task": task})
bound = all(namespace.get(name) is getattr(grading, name) for name in ("check", "grade"))
names = ("points", "max_points", "lines", "state")
display({kind: {name: getattr(report, name) for name in names} | {"bound": bound}}, raw=True)
"""


@dataclass(frozen=True)
class Handed:
    """A notebook as it was handed out, from the installed package.

    Parameters
    ----------
    name : str
        The assignment's.
    cells : list
        Its cells.
    """

    name: str
    cells: list[Any]

    @classmethod
    def of(cls, name: str) -> Handed:
        """Read the notebook of an assignment."""
        file = resources.files("posenc.exercises") / NOTEBOOKS / f"{name}.ipynb"
        if not file.is_file():
            raise CourseError(
                f"this installation of posenc lacks the notebook of {name}; install posenc again"
            )
        return cls(name, nbformat.reads(file.read_text("utf-8"), as_version=4).cells)

    @cached_property
    def parts(self) -> dict[str, Any]:
        """The cells that nbgrader knows, by their grade id, in order."""
        return {_grade_id(cell): cell for cell in self.cells if _grade_id(cell)}

    @cached_property
    def given(self) -> list[rebuild.Given]:
        """The cells as those that grading puts answers into."""
        return rebuild.paired(self, self)

    @cached_property
    def notebook(self) -> Any:
        """A notebook of the cells."""
        return nbformat.v4.new_notebook(cells=self.cells)

    @cached_property
    def tasks(self) -> list[str]:
        """The names of the tasks, in order."""
        return [part.removeprefix("grade-") for part in self.parts if part.startswith("grade-")]


def parts_of(task: str) -> list[str]:
    """Return the grade ids of a task's cells: answer, check, graded cell."""
    return [SETUP] if task == SETUP else [task, f"check-{task}", f"grade-{task}"]


def _task_of(part: str) -> str:
    return re.sub("^(check|grade)-", "", part)


def _grade_id(cell: Any) -> str:
    return cell.metadata.get("nbgrader", {}).get("grade_id", "")


def _locked(cell: Any) -> bool:
    return bool(cell.metadata.get("nbgrader", {}).get("locked"))


def read(path: Path) -> Any:
    """Return a student's notebook; what keeps it from being read is one sentence."""
    if path.is_dir():
        raise CourseError(f"{path} is a folder; name the notebook in it")
    if not path.is_file():
        near = sorted(other.name for other in path.parent.glob("*.ipynb"))
        there = f"there are {', '.join(near)}" if near else "no notebook is in that folder"
        raise CourseError(f"no file is called {path}; {there}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            # What the file format asks for; nbformat itself does not insist on it.
            cell.cell_type, cell.metadata.get, cell.source.strip  # noqa: B018
    except Exception as error:
        kind = type(error).__name__
        raise CourseError(
            f"{path.name} is not a notebook that can be read ({kind}); nobody can grade it: take "
            "an earlier version, or begin again with the notebook that was handed out"
        ) from None
    return notebook


def _read_as_graded(path: Path) -> tuple[Any, tuple[str, ...]]:
    """Return a notebook as :func:`read` does, or as grading can still read it, and what is odd."""
    try:
        return read(path), ()
    except CourseError as error:
        if not path.is_file():
            raise
        try:
            notebook, notes = _reading.read_file(path)
        except _reading.UnreadableError:
            raise error from None
        return notebook, notes or ("lacks what every notebook has, though grading can read it",)


def handed_out(path: Path, notebook: Any) -> Handed:
    """Return the notebook that a student's was made from: by its name, else by what is in it."""
    counts = _reading.tasks_held(notebook)
    best = max(counts, key=lambda name: counts[name])
    if path.stem in ASSIGNMENTS and (counts[path.stem] or not counts[best]):
        return Handed.of(path.stem)
    if not counts[best]:
        raise CourseError(
            f"{path.name} holds no task of this course; the notebooks are "
            f"{', '.join(f'{name}.ipynb' for name in ASSIGNMENTS)}"
        )
    return Handed.of(best)


def _marked(cells: list[Any], part: str) -> list[int]:
    """Return where the cells are that nbgrader knows by this grade id."""
    return [index for index, cell in enumerate(cells) if _grade_id(cell) == part]


def _index(cells: list[Any], handed: Handed, part: str) -> int | None:
    """Return where a part is: the cell that grading takes for it."""
    return next(iter(rebuild.where(handed.given, {"cells": cells}).get(part, [])), None)


def _places(cells: list[Any], handed: Handed, task: str) -> list[int]:
    """Return where a task's cells are, in the order in which they should be."""
    marked = [_marked(cells, part) for part in parts_of(task)]
    answer = _index(cells, handed, task)
    if answer is not None and _grade_id(cells[answer]) in {*handed.parts} - {task}:
        # It has the marks of another answer.
        marked[0] = [answer]
    places = [indices[-1] for indices in marked if indices]
    if task == SETUP:
        # Every other part comes after the first code cell.
        tasks = (part for part in handed.parts if part != SETUP)
        others = [indices[0] for part in tasks if (indices := _marked(cells, part))]
        places += [min(others)] if places and others else []
    return places


def _moved(cells: list[Any], handed: Handed, task: str) -> bool:
    places = _places(cells, handed, task)
    return places != sorted(places)


def _put_in_order(cells: list[Any], handed: Handed, task: str) -> list[str]:
    """Move a task's cells, each to right before the first of those that come after it."""
    moved = []
    while _moved(cells, handed, task):
        places = _places(cells, handed, task)
        late = next(place for n, place in enumerate(places) if place > min(places[n:]))
        moved.append(_grade_id(cells[late]))
        cells.insert(min(places[places.index(late) :]), cells.pop(late))
    return moved


@dataclass
class Outcome:
    """What running one task showed.

    Parameters
    ----------
    points, max_points : float
        Of its report.
    lines : list of str
        Its report.
    state : str
        Its report's.
    bound : bool
        Whether the names ``check`` and ``grade`` are the course's where its graded cell stands.
    """

    points: float = 0.0
    max_points: float = 0.0
    lines: list[str] = field(default_factory=list)
    state: str = "crash"
    bound: bool = True


def check(
    path: Path,
    *,
    seed: str | None = None,
    timeout: int = CELL_SECONDS,
    verbose: bool = False,
    progress: Callable[[str], None] = lambda line: None,
) -> tuple[list[str], bool]:
    """Run a notebook as the autograder will, and tell what it would find.

    Parameters
    ----------
    path : Path
        A student's notebook, which is not changed.
    seed : str, optional
        Draw the cases of the graded cells from this course seed; without one, from the seed that
        an autograded notebook records; else run the visible checks.
    timeout : int
        Seconds for a cell.
    verbose : bool
        Whether to show the whole reports.
    progress : callable
        Is told which task runs.

    Returns
    -------
    tuple of list of str and bool
        What to print, and whether nothing is in the way of grading.
    """
    if importlib.util.find_spec("ipykernel") is None:
        raise ModuleNotFoundError("no kernel", name="ipykernel")
    notebook, odd = _read_as_graded(path)
    handed = handed_out(path, notebook)
    saved = f"{datetime.fromtimestamp(path.stat().st_mtime):%Y-%m-%d %H:%M}"
    recorded = notebook.metadata.get("posenc", {}).get("seed")
    title = f"{path.name}, saved {saved}"
    if seed is not None:
        title += f"; cases drawn from the seed {seed!r}"
    elif recorded is not None:
        seed = str(recorded)
        title += f"; cases drawn from the seed that it records, {seed!r}"

    cells = _as_graded(notebook.cells, handed)
    faults = [f"the file {note}: save it in JupyterLab before you hand it in" for note in odd]
    faults += _faults(path, notebook.cells, handed)
    faults += _questions(cells)
    outcomes, stopped = _finish(_run(cells, handed, path.resolve().parent, seed, timeout, progress))
    faults += [f"{_cell_name(index, cells[index])} {what}" for index, what in stopped.items()]
    faults += [
        f"where the graded cell of `{task}` runs, `check` or `grade` is not the course's: run the "
        "first cell, and use other names for your own"
        for task, outcome in outcomes.items()
        if not outcome.bound
    ][:1]
    blank = _blank(cells, handed, outcomes)
    failed = {_grade_id(cells[index]): what for index, what in stopped.items()}
    for task, outcome in outcomes.items():
        if task not in blank and outcome.state == "not run yet":
            why = "no cell above its graded cell defines it"
            if task in failed:
                why = f"its cell {failed[task]}"
            outcome.state, outcome.lines = "not defined", [f"{task}: {why}"]
    lines = [title, *_table(outcomes, blank, verbose)]
    lines.append(f"  {_sum(outcomes, blank, 'visible' if seed is None else 'graded')}")
    if faults:
        lines += ["  In the way of grading:", *(f"    {fault}" for fault in faults)]
    else:
        lines.append("  Nothing is in the way of grading.")
    if not verbose and any(outcome.lines[1:] for outcome in _failing(outcomes, blank).values()):
        lines.append(f"  posenc check -v {_shown(path)} shows the whole reports.")
    return lines, not faults


def _faults(path: Path, cells: list[Any], handed: Handed) -> list[str]:
    """Return what would make grading fail, from the notebook as it lies there."""
    faults = []
    if path.name != f"{handed.name}.ipynb":
        faults.append(f"the file must be called {handed.name}.ipynb: rename it")
    found: dict[tuple[str, str], list[str]] = {}
    places = rebuild.where(handed.given, {"cells": cells})
    split = rebuild.split_answers(handed.given, {"cells": cells})
    faults += [
        f"the cell of `{task}` was split into {parts}, and grading joins them: select them and "
        "choose Edit > Merge Selected Cells"
        for task, parts in split.items()
    ]
    elsewhere = rebuild.taken_from(handed.given, {"cells": cells})
    faults += [
        f"grading takes `{task}` from the cell of `{other}`: write it into its own cell"
        + ("" if task in places else f", which {_command(path, task)} puts back")
        for task, other in elsewhere.items()
    ]
    for part in handed.parts:
        marked = _marked(cells, part)
        if part in elsewhere and part not in places:
            continue
        kinds = []
        if part not in places:
            kinds.append("deleted")
        elif not marked or _grade_id(cells[places[part][0]]) in {*handed.parts} - {part, *split}:
            kinds.append("lost")
        elif len(marked) > 1 and part not in split:
            kinds.append("copied")
        if marked and part in places and cells[places[part][0]].cell_type != "code":
            kinds.append("retyped")
        for kind in kinds:
            found.setdefault((_task_of(part), kind), []).append(part)
    for (task, kind), parts in found.items():
        faults.append(_fault(path, task, kind, parts))
    for task in filter(partial(_moved, cells, handed), (SETUP, *handed.tasks)):
        which, what, keep = f"cell of `{task}`", "a cell that needs it", " --keep-answer"
        if task == SETUP:
            which, keep = "first code cell", ""
        elif _marked(cells, task) and _marked(cells, task)[-1] == min(_places(cells, handed, task)):
            which, what = f"check of `{task}`", "its graded cell"
        faults.append(f"the {which} comes after {what}: {_command(path, task)}{keep} moves it back")
    foreign = {
        _grade_id(cell) for cell in cells if _grade_id(cell) and _grade_id(cell) not in handed.parts
    }
    faults += [
        f"a cell of another notebook was copied into this one (`{part}`): "
        f"{_command(path, _task_of(part))} makes it a plain cell"
        for part in sorted(foreign)
    ]
    return faults


def _fault(path: Path, task: str, kind: str, parts: list[str]) -> str:
    """Return one sentence about cells of a task that share a fault, with the command that helps."""
    what = _named(parts) + ("" if task == SETUP else f" of `{task}`")
    many = len(parts) > 1
    keep = task != SETUP and not (kind == "deleted" and task in parts)
    command = _command(path, task) + (" --keep-answer" if keep else "")
    them = "them" if many else "it"
    if kind == "deleted":
        return f"{what} {'were' if many else 'was'} deleted: {command} puts {them} back"
    if kind == "lost":
        return (
            f"{what} lost {'their' if many else 'its'} nbgrader metadata: {command} repairs {them}"
        )
    if kind == "copied":
        return (
            f"{what} {'are' if many else 'is'} there more than once, and only the last that was "
            f"changed counts: {command} makes the other copies plain cells"
        )
    return f"{what} {'are' if many else 'is'} no longer code: {command} puts {them} right"


def _named(parts: list[str]) -> str:
    """Return "the cell, the check and the graded cell"."""
    *names, last = [
        "the first code cell" if part == SETUP
        else "the check" if part.startswith("check-")
        else "the graded cell" if part.startswith("grade-")
        else "the cell"
        for part in parts
    ]  # fmt: skip
    return f"{', '.join(names)} and {last}" if names else last


def _command(path: Path, task: str) -> str:
    return f"posenc reset {_shown(path)} {task}"


def _shown(path: Path) -> str:
    return f'"{path}"' if " " in str(path) else str(path)


def _questions(cells: list[Any]) -> list[str]:
    """Return a sentence for each cell that asks for input."""
    return [
        f"{_cell_name(index, cell)} calls input(), and nobody answers while grading: write the "
        "value into the code"
        for index, cell in enumerate(cells)
        if cell.cell_type == "code" and _asks(cell.source)
    ]


def _asks(source: str) -> bool:
    try:
        # Lines of IPython's own are no Python.
        tree = ast.parse(re.sub(r"(?m)^\s*[%!?].*$", "", source))
    except (SyntaxError, ValueError):
        return bool(re.search(r"(?m)^[^#]*(?<![\w.])input\(", source))
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "input"
        for node in ast.walk(tree)
    )


def _cell_name(index: int, cell: Any) -> str:
    part = _grade_id(cell)
    if part == SETUP:
        return "the first code cell"
    if part:
        return f"the cell of `{part}`"
    first = next(iter(cell.source.strip().splitlines()), "")
    return f"cell {cell.metadata.get('origin', index) + 1} ({_short(first, 40)})"


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3].rstrip()}..."


def _as_graded(cells: list[Any], handed: Handed) -> list[Any]:
    """Return the cells as grading puts them together; each knows where it stood."""
    built = rebuild.build(handed.notebook, handed.notebook, {"cells": cells})
    for cell, origin in zip(built.notebook.cells, built.origins, strict=True):
        cell.metadata["origin"] = origin
        if origin is not None and "tags" in cells[origin].metadata:
            cell.metadata["tags"] = cells[origin].metadata["tags"]
    return built.notebook.cells


def _finish(running: Coroutine[Any, Any, T]) -> T:
    """Return its result, from within a running event loop too, such as a notebook's."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        # Ctrl-C cancels it where it waits, so that nothing is left half made.
        return asyncio.run(running)
    with ThreadPoolExecutor(1) as other:
        return other.submit(asyncio.run, running).result()


async def _run(
    cells: list[Any],
    handed: Handed,
    folder: Path,
    seed: str | None,
    timeout: int,
    progress: Callable[[str], None],
) -> tuple[dict[str, Outcome], dict[int, str]]:
    """Run the cells; return what each task showed, and what stopped or failed, by its index."""
    present = {_grade_id(cell): index for index, cell in enumerate(cells)}
    # What fails after the last task costs nothing.
    last = present[f"grade-{handed.tasks[-1]}"]
    for cell in cells:
        call, _, task = _grade_id(cell).partition("-")
        if call == "grade" and task in handed.tasks:
            given = {"kind": REPORT, "task": task, "call": "check" if seed is None else "grade"}
            cell.source = f"exec({PROBE!r}, {given!r} | {{'namespace': globals()}})"
        elif call == "check" and task in handed.tasks and seed is None:
            # The graded cell runs the same check here.
            cell.source = ""

    outcomes: dict[str, Outcome] = {}
    stopped = {}
    notebook = nbformat.v4.new_notebook(cells=cells)
    async with _Kernel(notebook, folder, seed, timeout) as kernel:
        for index in range(len(cells)):
            part = _grade_id(cells[index])
            graded = part.startswith("grade-")
            if graded:
                task = part.removeprefix("grade-")
                progress(f"{len(outcomes) + 1} of {len(handed.tasks)}: {task}")
            kernel.timeout = max(timeout, GRADED_SECONDS) if graded else timeout
            await kernel.async_execute_cell(cells[index], index, store_history=True)
            cell = cells[index]
            if graded:
                outcomes[task] = _outcome(cell)
            elif cell.cell_type == "code" and index < last:
                what = _failure(cell, timeout)
                if what:
                    stopped[index] = what
    return {task: outcomes[task] for task in handed.tasks}, stopped


def _outcome(cell: Any) -> Outcome:
    for output in cell.outputs:
        if REPORT in output.get("data", {}):
            return Outcome(**output.data[REPORT])
    errors = [output.evalue for output in cell.outputs if output.output_type == "error"]
    lines = [f"it could not be checked: {' '.join(errors) or 'no report came back'}"]
    return Outcome(max_points=cell.metadata.nbgrader.points, lines=lines)


def _failure(cell: Any, timeout: int) -> str:
    """Return what kept a cell from running to its end, to be said after its name, or nothing."""
    if "raises-exception" in cell.metadata.get("tags", []):
        return ""
    errors = {output.ename: output for output in cell.outputs if output.output_type == "error"}
    if "CellTimeoutError" in errors:
        return f"did not end and was interrupted after {timeout} seconds: make it end sooner"
    if "CellStopped" in errors:
        return errors["CellStopped"].evalue.removeprefix("This cell ").split(". ")[0]
    for kind, error in errors.items():
        # The cell has no file that anybody knows.
        why = re.sub(r" \(\S+, line (\d+)\)$", r" (line \1)", str(error.evalue).split("\n")[0])
        if kind != "StdinNotImplementedError":
            return f"raises {kind}: {_short(why, 160)}"
    return ""


class _ThisPython(KernelSpecManager):
    """Knows one kernel, this Python, whatever kernels are installed and named in a notebook."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """Return it under any name."""
        words = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=words, display_name="Python 3", language="python")


class _Kernel(ToTheEnd):
    """Executes cells as nbgrader does, in a kernel that ends with the ``with`` block."""

    def __init__(self, notebook: Any, folder: Path, seed: str | None, timeout: int) -> None:
        self._home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        # A profile of one's own would run code that grading does not.
        self._environment = {
            name: value
            for name, value in os.environ.items()
            if name not in (SEED_VARIABLE, "PYTHONSTARTUP")
        } | {"IPYTHONDIR": self._home.name, "NBGRADER_EXECUTION": "autograde"}
        if seed is not None:
            self._environment[SEED_VARIABLE] = seed
        super().__init__(
            notebook,
            resources={"metadata": {"path": str(folder)}},
            timeout=timeout,
            interrupt_on_timeout=True,
            allow_errors=True,
            raise_on_iopub_timeout=True,
            error_on_timeout={"ename": "CellTimeoutError", "evalue": "", "traceback": []},
            shutdown_kernel="immediate",
        )

    async def __aenter__(self) -> _Kernel:
        # pyzmq says on Windows how it gets by with its event loop, which is of no use to anybody.
        warnings.filterwarnings("ignore", "Proactor event loop", RuntimeWarning)
        self.create_kernel_manager()
        try:
            await self.async_start_new_kernel()
            await self.async_start_new_kernel_client()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            if self.km is not None:
                await self._async_cleanup_kernel()
        finally:
            self._home.cleanup()

    def create_kernel_manager(self) -> Any:
        """Choose this Python."""
        self.km = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=_ThisPython())
        return self.km

    async def async_start_new_kernel(self, **options: Any) -> None:
        """Start it with the environment that grading has."""
        # What the kernel itself says is no news of the notebook.
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        await super().async_start_new_kernel(env=self._environment, **quiet, **options)

    def on_cell_executed(self, *, cell: Any, cell_index: int, execute_reply: Any) -> None:
        """Note a time-out in the cell, as nbgrader does."""
        reply = execute_reply["content"]
        if reply.get("ename") == "CellTimeoutError":
            cell.outputs.append(
                nbformat.v4.new_output("error", ename=reply["ename"], evalue="", traceback=[])
            )


def _blank(cells: list[Any], handed: Handed, outcomes: dict[str, Outcome]) -> set[str]:
    """Return the tasks that nobody has written an answer to."""
    blank = set()
    for task, outcome in outcomes.items():
        answer = next(cell for cell in cells if _grade_id(cell) == task)
        untouched = answer.source == handed.parts[task].source
        if outcome.state == "not written yet" or (untouched and outcome.state == "not run yet"):
            blank.add(task)
    return blank


def _failing(outcomes: dict[str, Outcome], blank: set[str]) -> dict[str, Outcome]:
    """Return the outcomes of answers that are written and not right."""
    return {
        task: outcome
        for task, outcome in outcomes.items()
        if task not in blank and outcome.state != "right"
    }


def _table(outcomes: dict[str, Outcome], blank: set[str], verbose: bool) -> list[str]:
    """Return a line for each task, and the first two lines of its report or all of it."""
    scores = {
        task: f"{'?' if task in exercises.KEYED else f'{outcome.points:g}'} "
        f"of {outcome.max_points:g}"
        for task, outcome in outcomes.items()
    }
    name_width, score_width = max(map(len, outcomes)), max(map(len, scores.values()))
    width = shutil.get_terminal_size().columns - 6
    failing = _failing(outcomes, blank)
    lines = []
    for task, outcome in outcomes.items():
        said = "still blank" if task in blank else outcome.state if task in failing else ""
        lines.append(f"  {task:{name_width}}  {scores[task]:>{score_width}}   {said}".rstrip())
        if verbose:
            lines += [f"      {line}" for line in outcome.lines]
        elif task in failing:
            lines += [f"      {line}" for line in outcome.lines[:1]]
            lines += [f"      {_short(line, width)}" for line in outcome.lines[1:2]]
    return lines


def _sum(outcomes: dict[str, Outcome], blank: set[str], kind: str) -> str:
    known = [outcome for task, outcome in outcomes.items() if task not in exercises.KEYED]
    points, most = (
        sum(getattr(outcome, name) for outcome in known) for name in ("points", "max_points")
    )
    text = f"{points:g} of {most:g} {kind} points"
    if len(known) < len(outcomes):
        text += ", without what only the course's key can judge"
    if blank:
        text += f"; {len(blank)} task{'' if len(blank) == 1 else 's'} still blank"
    return text


def tasks(path: Path) -> tuple[str, ...]:
    """Return the names that ``posenc reset`` takes for a notebook."""
    return (*handed_out(path, read(path)).tasks, SETUP)


def reset(path: Path, task: str, *, keep_answer: bool = False) -> list[str]:
    """Put the cells of one task back as they were handed out; nothing else changes.

    Parameters
    ----------
    path : Path
        A student's notebook, which is written whole or not at all.
    task : str
        Its name, or "setup" for the first code cell.
    keep_answer : bool
        Whether the answer stays, and only the other cells and what nbgrader needs are restored.

    Returns
    -------
    list of str
        What was done.

    Raises
    ------
    ValueError
        If the notebook has no such task; the message names the nearest, or all.
    """
    notebook = read(path)
    handed = handed_out(path, notebook)
    before = copy.deepcopy(notebook)
    cells = notebook.cells
    foreign = [i for part in parts_of(task) for i in _marked(cells, part)]
    if task not in (*handed.tasks, SETUP):
        if not foreign:
            near = get_close_matches(task, handed.tasks)
            known = f"did you mean {' or '.join(near)}?" if near else ""
            known = known or f"there are {', '.join((*handed.tasks, SETUP))}"
            raise ValueError(f"{path.name} has no task {task!r}; {known}")
        for index in foreign:
            _make_plain(cells[index])
        _write(path, notebook)
        return [f"the copied cells of `{task}` are plain ones now", *_reload()]

    kept, copies, missing, restored = None, 0, [], []
    for part in parts_of(task):
        pristine = handed.parts[part]
        index = _index(cells, handed, part)
        for copied in _marked(cells, part):
            if copied != index:
                _make_plain(cells[copied])
                copies += 1
        if index is None:
            missing.append(part)
            _insert(notebook, handed, part)
            continue
        cell = cells[index]
        stays = not _locked(pristine) and keep_answer
        old = cell.source
        same = old.strip() == pristine.source.strip()
        cells[index] = _restored(cell, pristine, old if stays or same else pristine.source)
        if not (stays or same or _locked(pristine)):
            kept = old
        elif cells[index] != cell:
            restored.append(part)
    moved = [part for part in _put_in_order(cells, handed, task) if part not in missing]
    if kept is not None:
        cells.insert(_marked(cells, task)[0] + 1, _kept(notebook, task, kept))
    if notebook == before:
        return [f"the cells of `{task}` are as they should be; nothing was changed"]
    _write(path, notebook)
    lines = []
    if kept is not None:
        said = f"`{task}` is as it was handed out; your old cell is below it, as text that no run"
        lines.append(f"{said} executes")
    done = [
        f"{verb} {_named(parts)}"
        for verb, parts in (("moved", moved), ("put back", missing), ("restored", restored))
        if parts
    ]
    if copies:
        done.append(f"made {copies} {'copies plain cells' if copies > 1 else 'copy a plain cell'}")
    if done and keep_answer and task != SETUP and task not in missing:
        done.append("your answer is as it was")
    if done:
        lines.append(f"`{task}`: {'; '.join(done)}")
    return [*lines, *_reload()]


def _reload() -> list[str]:
    return ["if it is open in JupyterLab: File > Reload Notebook from Disk, before you save"]


def _make_plain(cell: Any) -> None:
    for name in ("nbgrader", "deletable", "editable"):
        cell.metadata.pop(name, None)


def _restored(cell: Any, pristine: Any, source: str) -> Any:
    """Return a cell with what nbgrader needs; outputs stay unless the source changes."""
    restored = copy.deepcopy(cell)
    if cell.cell_type != "code" or cell.source != source:
        restored = nbformat.v4.new_code_cell(source, metadata=cell.metadata)
        restored.pop("id")
        if "id" in cell:
            restored.id = cell.id
    # Marks of the course's own that a student's editor has no business with are the old ones.
    for name in ("nbgrader", "deletable", "editable"):
        restored.metadata.pop(name, None)
        if name in pristine.metadata:
            restored.metadata[name] = copy.deepcopy(pristine.metadata[name])
    return restored


def _kept(notebook: Any, task: str, source: str) -> Any:
    """Return a cell that keeps an old answer and is never executed."""
    now = f"{datetime.now():%Y-%m-%d %H:%M}"
    cell = nbformat.v4.new_raw_cell(
        f"Your answer to {task} until {now}, kept by posenc reset. It is text and does not run.\n\n"
        f"{source}"
    )
    return _fitting(notebook, cell)


def _fitting(notebook: Any, cell: Any) -> Any:
    """Return a new cell with an id where the notebook's version has ids, and where it is free."""
    if (notebook.nbformat, notebook.nbformat_minor) < (4, 5):
        cell.pop("id", None)
    elif cell.id in {other.get("id") for other in notebook.cells}:
        cell.id = nbformat.v4.new_raw_cell().id
    return cell


def _insert(notebook: Any, handed: Handed, part: str) -> None:
    """Insert a part where it belongs: after what came before it when it was handed out."""
    cells = notebook.cells
    names = [_grade_id(cell) or cell.id for cell in handed.cells]
    place = names.index(part)

    def found(pristine: Any) -> int | None:
        if _grade_id(pristine):
            return _index(cells, handed, _grade_id(pristine))
        same = (
            index
            for index, cell in enumerate(cells)
            if cell.cell_type == pristine.cell_type
            and (cell.get("id") == pristine.id or cell.source == pristine.source)
        )
        return next(same, None)

    new = _fitting(notebook, copy.deepcopy(handed.parts[part]))
    for earlier in reversed(handed.cells[:place]):
        index = found(earlier)
        if index is not None:
            cells.insert(index + 1, new)
            return
    later = (found(cell) for cell in handed.cells[place + 1 :])
    cells.insert(next((index for index in later if index is not None), len(cells)), new)


def _write(path: Path, notebook: Any) -> None:
    """Write a notebook whole or not at all."""
    path = path.resolve()
    text = nbformat.writes(notebook).rstrip("\n") + "\n"
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        shutil.copymode(path, temporary)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
