"""What ``posenc grade`` does and says: a course's configuration, progress, the closing table."""

from __future__ import annotations

import contextlib
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from nbgrader.coursedir import CourseDirectory
from traitlets.config import PyFileConfigLoader
from traitlets.config.loader import ConfigFileNotFound

from posenc.grading import assignments, batch
from posenc.grading._check import PRACTICE_SEED, SEED_VARIABLE, has_seed
from posenc.grading.assignments import CourseError
from posenc.grading.isolation import sandbox as sandboxes
from posenc.grading.results import FAULT, STATES, UNGRADABLE, Result, stored
from posenc.grading.workers import Assigned, Job

# Between two lines of progress where there is no terminal for a bar.
QUIET_SECONDS = 5.0
PRACTICE = (
    "these grades come from the practice cases, which students can see; the export says so in its "
    "column cases"
)
Say = Callable[[str], None]


class Unknown(CourseError):  # noqa: N818 - a sentence for the user, as its base
    """There is no such assignment."""


class Stopped(Exception):  # noqa: N818 - not an error: the user asked for it
    """Ctrl-C, with a sentence on what is kept."""


@dataclass
class _Ended:
    """How each notebook ended; those graded before are among them."""

    results: dict[Job, Result] = field(default_factory=dict)
    before: int = 0

    @property
    def failed(self) -> dict[Job, Result]:
        """Those that somebody has to look at, in the order of students."""
        return {
            job: result for job, result in self.ordered() if result.state in (UNGRADABLE, FAULT)
        }

    def ordered(self) -> list[tuple[Job, Result]]:
        """Return all, in the order of students."""
        return sorted(self.results.items(), key=lambda item: (item[0].student, item[0].name))


def grade(
    root: Path,
    name: str,
    *,
    student: str = "*",
    jobs: int | None = None,
    force: bool = False,
    practice: bool = False,
    verbose: bool = False,
    sandbox: sandboxes.Sandbox | None = None,
    say: Say,
    warn: Say,
) -> bool:
    """Grade an assignment's submissions as the course's configuration says.

    Parameters
    ----------
    root : Path
        The course's folder.
    name : str
        The assignment.
    student : str
        Whose submissions; all if it is "*".
    jobs : int, optional
        How many at a time; as many as there are processors if not given.
    force : bool
        Whether those that were graded before are graded again.
    practice : bool
        Whether the practice cases will do.
    verbose : bool
        Whether each repair is told.
    sandbox : Sandbox, optional
        One for this assignment that gets ready already.
    say, warn : callable
        Called with each line of the result, and with each line of progress or warning.

    Returns
    -------
    bool
        Whether nobody has to look at anything.

    Raises
    ------
    CourseError
        If nothing can be graded, or not go on.
    Unknown
        If there is no such assignment.
    Stopped
        If the user stops it.
    """
    with _seed(practice):
        if practice:
            warn(PRACTICE)
        course = _course(root, name)
        work, given, ended = _planned(course, name, student, force)
        if work.jobs:
            if not sandboxes.can_isolate():
                warn(f"WARNING: {sandboxes.WEAKER}")
            _run(course, work, given, jobs or processors(), ended, sandbox, warn)
    for line in _closing(course, name, ended, verbose=verbose):
        say(line)
    return not ended.failed


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextlib.contextmanager
def _seed(practice: bool) -> Iterator[None]:
    """Draw cases from the course's seed, or, where that is asked for, from the practice seed."""
    if not practice:
        if not has_seed():
            raise CourseError(
                f"{batch.NO_SEED}; set {SEED_VARIABLE} to your course's secret seed, or grade with "
                "the practice cases by --demo-seed"
            )
        yield
        return
    before = os.environ.get(SEED_VARIABLE)
    os.environ[SEED_VARIABLE] = PRACTICE_SEED
    try:
        yield
    finally:
        if before is None:
            del os.environ[SEED_VARIABLE]
        else:
            os.environ[SEED_VARIABLE] = before


def _course(root: Path, name: str) -> Any:
    """Return what knows where everything is, as nbgrader_config.py says."""
    assignments.refresh_source(root)
    try:
        config = PyFileConfigLoader("nbgrader_config.py", path=str(root)).load_config()
    except ConfigFileNotFound:
        raise CourseError(
            f"{root} has no nbgrader_config.py; copy it from the course's repository"
        ) from None
    except Exception as error:
        raise CourseError(
            f"nbgrader_config.py can't be read ({type(error).__name__}: {error})"
        ) from None
    config.CourseDirectory.setdefault("root", str(root))
    course = CourseDirectory(config=config, assignment_id=name)
    if not Path(course.format_path(course.source_directory, ".", name)).is_dir():
        try:
            assignments.known([name])
        except ValueError as error:
            raise Unknown(str(error)) from None
    return course


def _planned(
    course: Any, name: str, student: str, force: bool
) -> tuple[batch.Plan, Assigned, _Ended]:
    """Return what to grade, what to judge by, and what was graded before."""
    settings = course.config.get("SubmissionExporter", {})
    given = batch.assigned(
        course, name, cell_seconds=settings.get("cell_seconds", assignments.CELL_SECONDS)
    )
    work = batch.plan(course, name, student=student, force=force)
    if not work.jobs and not work.skipped:
        where = course.format_path(course.submitted_directory, student, name)
        raise CourseError(
            f"there is nothing to grade in {where}"
            if student == "*"
            else f"{student} has handed in nothing for {name}; there is no {where}"
        )
    ended = _Ended()
    for whose in work.skipped:
        folder = Path(course.format_path(course.autograded_directory, whose, name))
        for notebook in given.sources:
            result = stored(folder / f"{notebook}.ipynb")
            if result:
                ended.results[Job(whose, folder, notebook)] = result
                ended.before += 1
    return work, given, ended


def _run(
    course: Any,
    work: batch.Plan,
    given: Assigned,
    jobs: int,
    ended: _Ended,
    sandbox: sandboxes.Sandbox | None,
    warn: Say,
) -> None:
    """Grade, tell how far it is, and end in one sentence whatever stops it."""
    count, kept = len(work.jobs), 0
    warn(f"grading {count} of {given.name}, {min(jobs, count)} at a time")
    try:
        with (
            _progress(count, warn) as step,
            contextlib.closing(
                batch.grade(course, work, given, jobs=jobs, sandbox=sandbox)
            ) as results,
        ):
            for judged in results:
                ended.results[judged.job] = judged.result
                kept += 1
                step()
        return
    except KeyboardInterrupt:
        raise Stopped(
            f"stopped; {kept} of {count} are graded and kept, run the same command to go on"
        ) from None
    except ModuleNotFoundError as error:
        what = f"{error.name} is not installed, which the gradebook's address needs; install it"
    except OSError as error:
        what = f"{error.filename} can't be written ({error.strerror}); put that right"
    except Exception as error:
        # Imported by now, if it is one.
        from sqlalchemy.exc import SQLAlchemyError

        if not isinstance(error, SQLAlchemyError):
            raise
        why = str(getattr(error, "orig", None) or error).splitlines()[0]
        what = f"the gradebook can't be used ({why}); close what else writes to it"
    done = f"; {kept} of {count} are graded and kept" if kept else ""
    raise CourseError(f"{what}, then run the same command again{done}")


@contextlib.contextmanager
def _progress(count: int, warn: Say) -> Iterator[Callable[[], object]]:
    """Show a bar with the time left on a terminal, and lines elsewhere."""
    if sys.stderr.isatty():
        from tqdm import tqdm

        # A bar without a thread of its own: processes of a threaded program start slowly.
        tqdm.monitor_interval = 0
        with tqdm(total=count, unit="notebook", dynamic_ncols=True, leave=False) as bar:
            yield bar.update
        return
    done, said = 0, monotonic()

    def step() -> None:
        nonlocal done, said
        done += 1
        if monotonic() - said > QUIET_SECONDS or done == count:
            said = monotonic()
            warn(f"graded {done} of {count}")

    yield step


def _closing(course: Any, name: str, ended: _Ended, *, verbose: bool) -> Iterator[str]:
    """Return the table of states, what somebody has to look at, and what comes next."""
    counts = Counter(result.state for result in ended.results.values())
    before = f", {ended.before} of them graded before" if ended.before else ""
    yield f"{name}: {len(ended.results)} handed in{before}"
    for state in STATES:
        if counts[state]:
            yield f"  {state:<12} {counts[state]:>5}"
    several = len({job.name for job in ended.results}) > 1

    def told(job: Job, what: str) -> str:
        return f"  {job.student}/{job.name}: {what}" if several else f"  {job.student}: {what}"

    if ended.failed:
        yield "somebody has to look at:"
        for job, result in ended.failed.items():
            yield told(job, "; ".join((result.state, *result.notes)))
    notes = [
        (job, note)
        for job, result in ended.ordered()
        if job not in ended.failed
        for note in result.notes
    ]
    if notes and verbose:
        yield "notes:"
        yield from (told(job, note) for job, note in notes)
    elif notes:
        yield f"notes: {len(notes)}, which --verbose shows"
    pages = Path(course.format_path(course.feedback_directory, "STUDENT", name))
    yield f"feedback: nbgrader generate_feedback {name}, into {os.path.relpath(pages, course.root)}"
    yield "grades:   nbgrader export, into grades.csv"
