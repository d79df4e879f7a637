"""Submissions judged in processes of their own, side by side; one that fails costs itself alone."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import gc
import json
import multiprocessing
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import monotonic
from typing import Any

import nbformat
from nbgrader.utils import compute_checksum, determine_grade, is_grade, is_solution

import posenc
from posenc.grading import _check, rebuild, run
from posenc.grading.assignments import CELL_SECONDS, SOLUTION_MARK, CourseError
from posenc.grading.isolation.sandbox import Sandbox
from posenc.grading.isolation.wire import Gone
from posenc.grading.results import BLANK, FAULT, GRADED, MISSING, UNGRADABLE, Result

# For one submission with all that is done around it; its own limits end it long before.
JOB_SECONDS = 900.0
# In the place of a submission's number.
TRIAL = -1
# Of notebooks without an answer, but with cells of their own, there may be many.
BLANKS = 20


@dataclass(frozen=True)
class Job:
    """A notebook to judge.

    Parameters
    ----------
    student : str
        Whose it is.
    folder : Path
        The submission.
    name : str
        The notebook's name, without ending.
    """

    student: str
    folder: Path
    name: str


@dataclass(frozen=True)
class Assigned:
    """What submissions of an assignment are judged by.

    Parameters
    ----------
    name : str
        The assignment's name.
    sources, released : dict of str to str
        The instructor's notebooks and those that were handed out, by name, as JSON.
    files : dict of str to bytes
        What else the instructor hands out; it takes the place of what students hand in.
    cell_seconds : float
        For one cell of a student's.
    """

    name: str
    sources: dict[str, str]
    released: dict[str, str]
    files: dict[str, bytes]
    cell_seconds: float = CELL_SECONDS


@dataclass(frozen=True)
class Judged:
    """A notebook that was judged.

    Parameters
    ----------
    job : Job
        What was asked for.
    result : Result
        How it ended.
    notebook : str
        The notebook to be kept, as JSON; empty if nothing was handed in.
    files : dict of str to bytes
        What was handed in beside it.
    scores : dict of str to (float or None)
        The points of its tasks as nbgrader counts them, but for those on which the grader failed;
        None where a person has to.
    untouched : frozenset of str
        The answers that are as they were handed out.
    """

    job: Job
    result: Result
    notebook: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    scores: dict[str, float | None] = field(default_factory=dict)
    untouched: frozenset[str] = frozenset()

    @classmethod
    def of(cls, job: Job, result: Result, notebook: Any, files: dict[str, bytes]) -> Judged:
        """Take from a notebook what is written down of it; the result is stored in it."""
        result.store(notebook)
        failed = {task.grade_id for task in result.tasks if task.points is None}
        scores, untouched = {}, set()
        for cell in notebook.cells:
            if is_grade(cell) and cell.metadata.nbgrader.grade_id not in failed:
                scores[cell.metadata.nbgrader.grade_id] = determine_grade(cell)[0]
            if is_solution(cell) and cell.metadata.nbgrader.get("checksum") == compute_checksum(
                cell
            ):
                untouched.add(cell.metadata.nbgrader.grade_id)
        text = nbformat.writes(notebook) + "\n"
        return cls(job, result, text, files, scores, frozenset(untouched))


@lru_cache(maxsize=64)
def _valid(text: str) -> str:
    return json.dumps(nbformat.reads(text, as_version=4))


def notebook_of(text: str) -> Any:
    """Return a notebook of the instructor's, which is validated once."""
    return nbformat.from_dict(json.loads(_valid(text)))


def _validate(assigned: Assigned) -> None:
    """Read the instructor's notebooks, before processes are forked that each would have to."""
    for whose, texts in (("instructor's", assigned.sources), ("students'", assigned.released)):
        for name, text in texts.items():
            try:
                notebook_of(text)
            except Exception as error:
                raise CourseError(
                    f"the {whose} version of {name}.ipynb can't be read ({type(error).__name__}); "
                    f"run: nbgrader generate_assignment {assigned.name}"
                ) from None


def judged(
    job: Job, assigned: Assigned, sandbox: Sandbox, blanks: dict[str, tuple] | None = None
) -> Judged:
    """Judge one submission; whatever goes wrong on our side is a result too.

    Parameters
    ----------
    job : Job
        What to judge.
    assigned : Assigned
        What to judge by.
    sandbox : Sandbox
        Where the student's cells run.
    blanks : dict of str to tuple, optional
        Notebooks without an answer that were judged before, and their results, by their text;
        another one with the same text is not run again.
    """
    files: dict[str, bytes] = {}
    try:
        source = notebook_of(assigned.sources[job.name])
        released = notebook_of(assigned.released[job.name])
        others = frozenset(assigned.sources) - {job.name}
        submitted = rebuild.find(job.folder, job.name, others=others)
        files = submitted.files
        if submitted.state == MISSING:
            return Judged(job, _result(MISSING, submitted.notes))
        if submitted.notebook is None:
            notebook, result = released, _result(UNGRADABLE, submitted.notes)
        else:
            notebook, notes, blank = rebuild.rebuild(source, released, submitted.notebook)
            notes = (*submitted.notes, *notes)
            text = nbformat.writes(notebook) if blank and not files and blanks is not None else ""
            if text and text in blanks:
                notebook, result = copy.deepcopy(blanks[text])
                return Judged.of(job, replace(result, notes=notes), notebook, files)
            result = run.run(
                notebook,
                sandbox,
                files={**files, **assigned.files},
                notes=notes,
                seconds=assigned.cell_seconds,
                source=source,
            )
            if blank and result.state == GRADED:
                result = replace(result, state=BLANK)
                if text and len(blanks) < BLANKS:
                    blanks[text] = notebook, result
    except Exception as error:
        return _failed(job, assigned, f"{type(error).__name__}: {error}", files)
    return Judged.of(job, result, notebook, files)


def _failed(job: Job, assigned: Assigned, what: str, files: dict[str, bytes]) -> Judged:
    return Judged.of(job, fault(what), notebook_of(assigned.released[job.name]), files)


def unsolved(assigned: Assigned, sandbox: Sandbox) -> str:
    """Return a sentence if a model solution does not earn its points, so that no answer could."""
    for name, text in assigned.sources.items():
        if SOLUTION_MARK not in text:
            # Nobody says that what stands in there is a solution.
            continue
        source = notebook_of(text)
        parts = [cell.metadata.get("nbgrader", {}) for cell in source.cells]
        judged = {part["grade_id"] for part in parts if part.get("grade") and not part["solution"]}
        tried = notebook_of(text)
        tried.cells = [cell for cell in tried.cells if not run.is_check(cell)]
        result = run.run(
            tried,
            sandbox,
            files=assigned.files,
            seconds=assigned.cell_seconds,
            source=source,
        )
        for task in result.tasks:
            if task.grade_id in judged and task.points != task.max_points:
                return (
                    f"the model solution of {name} does not earn all points in the cell "
                    f"{task.grade_id} ({' '.join(task.lines)[:200]}), so no answer is graded"
                )
    return ""


def fault(what: str) -> Result:
    """Return the result of a submission on which the grader failed."""
    return _result(FAULT, (f"the grader failed ({what:.300}); grade this submission again",))


def _result(state: str, notes: tuple[str, ...]) -> Result:
    return Result(state, notes, version=posenc.__version__)


@contextlib.contextmanager
def judging(
    jobs: Sequence[Job], assigned: Assigned, count: int, sandbox: Sandbox | None = None
) -> Iterator[Iterator[Judged]]:
    """Judge submissions in so many processes, which start at once and end with the block.

    Parameters
    ----------
    jobs : sequence of Job
        Submissions of one assignment.
    assigned : Assigned
        What they are judged by.
    count : int
        How many at a time.
    sandbox : Sandbox, optional
        One for this assignment that gets ready already.

    Yields
    ------
    iterator of Judged
        One for each job, in the order of the jobs.

    Raises
    ------
    CourseError
        If no process for student code can be started here, or, when the first result is asked for,
        if no answer can be right.
    """
    if not jobs:
        yield iter(())
        return
    try:
        sandbox = sandbox or Sandbox(assigned.name)
    except RuntimeError as error:
        raise CourseError(str(error)) from None
    workers: list[_Worker] = []
    with contextlib.closing(sandbox):
        _validate(assigned)
        number = max(1, min(count, len(jobs)))
        if number > 1:
            # What fails here fails in a submission too, whose result says so.
            with contextlib.suppress(Exception):
                _check.prepare(assigned.name)
        # Of the objects that there are by now, none is looked at again for what can be freed.
        gc.freeze()
        try:
            workers += [_Worker(assigned, sandbox) for _ in range(number)]
            todo = [*list(enumerate(jobs))[::-1], (TRIAL, None)]
            # While one process tries the model solution, the others begin.
            for worker in workers:
                worker.give(*todo.pop())
            yield _results(workers, todo, len(jobs), sandbox)
        finally:
            for worker in workers:
                worker.end()
            gc.unfreeze()


def _results(
    workers: list[_Worker], todo: list[tuple[int, Job | None]], count: int, sandbox: Sandbox
) -> Iterator[Judged]:
    try:
        sandbox.wait()
    except RuntimeError as error:
        raise CourseError(str(error)) from None
    done, at = {}, 0
    while at < count:
        for worker in workers:
            if todo and not worker.busy:
                worker.give(*todo.pop())
        for number, outcome in _answers(workers):
            if number == TRIAL and outcome:
                raise CourseError(outcome)
            done[number] = outcome
        while TRIAL in done and at in done:
            yield done.pop(at)
            at += 1


def _answers(workers: list[_Worker]) -> Iterator[tuple[int, Any]]:
    """Wait for the next answers; replace processes that ended or take too long."""
    busy = {worker.connection: worker for worker in workers if worker.busy}
    ready = wait(list(busy), timeout=min(worker.left for worker in busy.values()))
    for connection, worker in busy.items():
        if connection in ready:
            yield worker.answer()
        elif worker.left <= 0:
            yield worker.given_up()


class _Worker:
    """A process that judges one submission after the other."""

    def __init__(self, assigned: Assigned, sandbox: Sandbox) -> None:
        self._assigned, self._sandbox = assigned, sandbox
        self.busy = False
        self._start()

    def _start(self) -> None:
        # A fork of a process with threads may hang.
        forks = sys.platform == "linux" and threading.active_count() == 1
        context = multiprocessing.get_context("fork" if forks else "spawn")
        self.connection, theirs = context.Pipe()
        shared = None
        if forks:
            # Where its process ended, the worker starts another one.
            with contextlib.suppress(Gone):
                shared = self._sandbox.shared()
        given = theirs, self._assigned, shared
        self._process = context.Process(target=_work, args=given, daemon=True)
        self._process.start()
        theirs.close()

    @property
    def left(self) -> float:
        """How many seconds are left for its job."""
        return self._until - monotonic()

    def give(self, number: int, job: Job | None = None) -> None:
        """Let it judge a submission, or try the model solution."""
        self.busy, self._number, self._job = True, number, job
        self._until = monotonic() + JOB_SECONDS
        with contextlib.suppress(OSError):
            self.connection.send(job)

    def answer(self) -> tuple[int, Any]:
        """Return what it found; if it ended, start another."""
        try:
            found = self.connection.recv()
        except (EOFError, OSError):
            return self._failed("its process ended")
        self.busy = False
        return self._number, found

    def given_up(self) -> tuple[int, Any]:
        """Start another in its place."""
        return self._failed(f"no end after {JOB_SECONDS:g} seconds")

    def _failed(self, what: str) -> tuple[int, Any]:
        job, self.busy = self._job, False
        self.end()
        self._start()
        if job is None:
            return self._number, f"the model solution could not be tried: {what}"
        return self._number, _failed(job, self._assigned, what, {})

    def end(self) -> None:
        """End the process."""
        self.connection.close()
        self._process.terminate()
        self._process.join(5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _work(connection: Connection, assigned: Assigned, sandbox: Sandbox | None) -> None:
    """Judge what comes, until nobody is there any more."""
    # Ctrl-C is for the process that asks, which then ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _leave)
    if sys.platform == "linux":
        # A fork holds the other end of its own connection, so it would never see that one close.
        ctypes.CDLL(None).prctl(1, signal.SIGTERM, 0, 0, 0)
    try:
        sandbox = sandbox or Sandbox(assigned.name)
        blanks: dict[str, tuple] = {}
        while True:
            job = connection.recv()
            if job is None:
                connection.send(unsolved(assigned, sandbox))
                continue
            found = judged(job, assigned, sandbox, blanks)
            if found.result.state == FAULT:
                # It may be the process for student code that failed, so once more with another.
                sandbox.close()
                sandbox = Sandbox(assigned.name)
                found = judged(job, assigned, sandbox)
            connection.send(found)
    except (EOFError, OSError, RuntimeError):
        return
    finally:
        if sandbox:
            sandbox.close()


def _leave(*_: Any) -> None:
    sys.exit(0)
