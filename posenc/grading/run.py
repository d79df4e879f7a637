"""Running a submission: its cells in the sandbox, its graded cells here."""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import math
import os
import re
from collections.abc import Callable
from functools import lru_cache
from itertools import groupby
from numbers import Real
from typing import Any

from nbformat import from_dict

import posenc
from posenc.grading import _check
from posenc.grading._limits import CallFault
from posenc.grading._reading import defined
from posenc.grading._report import Report
from posenc.grading.assignments import CELL_SECONDS, SETUP
from posenc.grading.isolation import plain
from posenc.grading.isolation.sandbox import Sandbox
from posenc.grading.isolation.session import Ran, Session
from posenc.grading.results import FAULT, GRADED, Result, Task

# For all cells of the student's together; what is left of them is not run, and is said.
NOTEBOOK_SECONDS = 300.0
PRINTED = 10_000
CHECK = re.compile(r"\s*check\(.\w+.\)\s*")


class GraderError(Exception):
    """The grader failed, and not the student."""


def run(
    notebook: Any,
    sandbox: Sandbox,
    *,
    files: dict[str, bytes] | None = None,
    notes: tuple[str, ...] = (),
    seconds: float = CELL_SECONDS,
    source: Any = None,
) -> Result:
    """Run a notebook that was built from the instructor's version, and write outputs into it.

    Parameters
    ----------
    notebook : NotebookNode
        The instructor's cells with the student's answers.
    sandbox : Sandbox
        Where the student's cells run.
    files : dict of str to bytes, optional
        What lies beside the notebook.
    notes : tuple of str
        What was repaired in it.
    seconds : float
        For one cell of the student's.
    source : NotebookNode, optional
        The instructor's version, with the model solutions; the notebook itself if not given.

    Returns
    -------
    Result
        Also written into the notebook.
    """
    left = NOTEBOOK_SECONDS
    seed = os.environ.get(_check.SEED_VARIABLE) or _check.PRACTICE_SEED
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for count, cell in enumerate(cells):
        cell.outputs, cell.execution_count = [], count + 1
    with Session(sandbox, files, rich=_is_rich(cells)) as session:
        judge = _Judge(session)
        judge.know((source or notebook).cells, solved=source is not None)
        later: dict[int, Any] = {}
        for judged, together in groupby(cells, _is_judged):
            if judged:
                judge.run_all(list(together))
                continue
            for cell in together:
                if left <= 0:
                    late = "it was not run: the cells before took too long"
                    cell.outputs = [_error("TooSlow", late)]
                else:
                    ours = cell.metadata.get("nbgrader", {}).get("grade_id") == SETUP
                    ran = session.cell(cell.source, min(seconds, left), ours=ours)
                    left -= ran.seconds
                    cell.outputs = outputs(ran, cell.execution_count)
                    if cell.outputs and judge.tasks and not ran.ended:
                        later[session.count - 1] = cell
        _show_again(session, later)
    state = FAULT if any(task.state == "fault" for task in judge.tasks) else GRADED
    result = Result(state, notes, tuple(judge.tasks), seed, posenc.__version__)
    result.store(notebook)
    return result


def _show_again(session: Session, later: dict[int, Any]) -> None:
    """Take what cells showed after a graded one from a run in which nothing was graded.

    A function could have noted what it was called with, for a later cell to print.
    """
    if not later:
        return
    for number, ran in enumerate(session.again()):
        if number in later:
            cell = later.pop(number)
            cell.outputs = outputs(ran, cell.execution_count)
    for cell in later.values():
        cell.outputs = [_error("NotShown", "what it showed could not be repeated")]


def _is_rich(cells: list[Any]) -> bool:
    """Return whether the student's cells need IPython."""
    theirs = [cell.source for cell in cells if not cell.metadata.get("nbgrader", {}).get("locked")]
    return any(map(plain.needs_ipython, theirs))


def _is_judged(cell: Any) -> bool:
    """Return whether a cell asks about what the student wrote, and is the instructor's."""
    part = cell.metadata.get("nbgrader", {})
    if part.get("solution"):
        return False
    return bool(part.get("grade")) or is_check(cell)


def is_check(cell: Any) -> bool:
    """Return whether a cell is a check of the instructor's, which counts nothing."""
    part = cell.metadata.get("nbgrader", {})
    return bool(part.get("locked") and not part.get("grade") and CHECK.fullmatch(cell.source))


class _Judge:
    """Runs the instructor's cells against the student's names."""

    def __init__(self, session: Session) -> None:
        self.tasks: list[Task] = []
        self._session, self._names = session, session.names
        self._reports: list[Report] = []
        self._fault: Exception | None = None
        self._names.give(
            {
                "check": self._reporting(_check.check_in),
                "grade": self._reporting(_check.grade_in),
            }
        )

    def know(self, cells: list[Any], *, solved: bool) -> None:
        """Take from the instructor's cells what no student's cell may stand in for."""
        solutions = []
        for cell in cells:
            part = cell.metadata.get("nbgrader", {})
            if cell.cell_type != "code":
                continue
            if part.get("solution"):
                self._names.asked.add(part["grade_id"])
                solutions.append(cell.source)
            elif not CHECK.fullmatch(cell.source):
                self._names.give_imports(cell.source)
                if part.get("locked") and not part.get("grade"):
                    self._names.give(_definitions(cell.source))
        if solved:
            text = "\n".join(solutions)
            self._names.asked.update(defined(text))
            self._names.read = _read(text)
            self._names.operators = frozenset(re.findall(r"__\w+__", text))

    def run_all(self, cells: list[Any]) -> None:
        """Run cells that no student's cell comes between.

        Each graded cell gets a fork of its own. Checks count nothing, so they make do with what the
        graded cell after them leaves.
        """
        waiting: list[Any] = []
        for cell in cells:
            if not cell.metadata.nbgrader.get("grade"):
                waiting.append(cell)
                continue
            with self._session.serving():
                self.tasks.append(self._run(cell))
                for check in waiting:
                    self._run(check)
            waiting = []
        if waiting:
            with self._session.serving():
                for check in waiting:
                    self._run(check)

    def _reporting(self, function: Callable[..., Report]) -> Callable[..., Report]:
        def reporting(name: Any, **options: Any) -> Report:
            try:
                report = function(self._names, name, **options)
            except (CallFault, AssertionError):
                raise
            except Exception as error:
                self._fault = error
                raise GraderError(f"{type(error).__name__}: {error}") from error
            self._reports.append(report)
            return report

        return reporting

    def _run(self, cell: Any) -> Task | None:
        """Run one cell, write its outputs, and return how it ended if it counts."""
        part = cell.metadata.nbgrader
        self._reports, self._fault, error, value = [], None, None, None
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            try:
                value = plain.evaluate(cell.source, self._names, "<graded cell>")
            except Exception as raised:
                error = raised
        if printed.getvalue():
            text = printed.getvalue()[:PRINTED]
            cell.outputs.append(_output("stream", name="stdout", text=text))
        if isinstance(error, CallFault):
            error = error.__cause__ or RuntimeError(f"{error.kind}: {error}")
        points = _points(value, error, part)
        if self._fault is None and points is None and part.get("grade") and error is None:
            self._fault = ValueError(f"the graded cell's value is {value!r:.80}")
        if error is not None:
            cell.outputs.append(_error(type(error).__name__, str(error)))
        elif isinstance(value, Report):
            data = value._repr_mimebundle_()
            cell.outputs.append(
                _output("execute_result", data=data, execution_count=cell.execution_count)
            )
        elif isinstance(value, Real) and not isinstance(value, bool):
            cell.outputs.append(
                _output(
                    "execute_result",
                    data={"text/plain": repr(float(value))},
                    execution_count=cell.execution_count,
                )
            )
        if not part.get("grade"):
            return None
        most = float(part["points"])
        if self._fault is not None:
            line = (
                f"the grader failed ({type(self._fault).__name__}); ask for it to be graded again"
            )
            return Task(part["grade_id"], None, most, "fault", (line,))
        if self._reports:
            report = self._reports[-1]
            return Task(
                part["grade_id"], points, most, report.state, report.lines, report.misconceptions
            )
        if error is None:
            return Task(part["grade_id"], points, most)
        sentence = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return Task(part["grade_id"], points, most, "wrong", (sentence,))


@lru_cache(maxsize=8)
def _read(source: str) -> frozenset[str]:
    """Return the names that stand in a text."""
    tree = ast.parse(source)
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


def _definitions(source: str) -> dict[str, Any]:
    """Return the functions, classes and plain values that a cell of the instructor's defines."""
    found: dict[str, Any] = {}
    with contextlib.suppress(SyntaxError):
        kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
        body = [
            node
            for node in plain.parsed(source).body
            if isinstance(node, kinds) or (isinstance(node, ast.Assign) and _is_plain(node.value))
        ]
        tree = ast.Module(body, [])
        with contextlib.suppress(Exception):
            exec(compile(tree, "<definitions>", "exec", dont_inherit=True), found)
    found.pop("__builtins__", None)
    return found


def _is_plain(value: ast.expr) -> bool:
    if isinstance(value, ast.Tuple | ast.List):
        return all(map(_is_plain, value.elts))
    return isinstance(value, ast.Constant)


def _points(value: Any, error: Exception | None, part: dict[str, Any]) -> float | None:
    """Return the points of a graded cell as nbgrader counts them, or None for what can't be."""
    most = float(part.get("points", 0))
    if error is not None:
        return 0.0
    if isinstance(value, Report):
        value = value.points
    if isinstance(value, bool) or not isinstance(value, Real):
        return most
    if math.isfinite(value) and 0 <= value <= most:
        return float(value)
    return None


def outputs(ran: Ran, execution_count: int) -> list[Any]:
    """Return what a student's cell showed, as a notebook's outputs."""
    shown = []
    if ran.printed:
        shown.append(_output("stream", name="stdout", text=ran.printed))
    for data in ran.shown:
        shown.append(_output("display_data", data=data))
    for picture in ran.figures:
        data = {"image/png": base64.b64encode(picture).decode()}
        shown.append(_output("display_data", data=data))
    if ran.error:
        kind, sentence, line = ran.error
        shown.append(_error(kind, sentence + (f" (line {line} of this cell)" if line else "")))
    if ran.ended:
        shown.append(_error("CellStopped", f"this cell {_ended(ran.ended)}; what it did is undone"))
    return shown


def _output(kind: str, **content: Any) -> Any:
    """Return an output; the whole notebook is validated when it is written."""
    rich = {"metadata": {}} if "data" in content else {}
    return from_dict({"output_type": kind, **rich, **content})


def _ended(how: str) -> str:
    if how == "too slow":
        return "ran too long and could not be interrupted"
    if how in ("signal 9", "signal 24"):
        return "was ended by the system: it took too much memory or time"
    return f"ended Python ({how})"


def _error(kind: str, sentence: str) -> Any:
    text = f"{kind}: {sentence}" if sentence else kind
    return _output("error", ename=kind, evalue=sentence, traceback=[text])
