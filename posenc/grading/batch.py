"""Grading an assignment: which submissions, in which order, and what is kept of them.

``posenc grade``, ``nbgrader autograde`` and the formgrader's button all come here.
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbgrader.utils import find_all_files

from posenc.grading._check import SEED_VARIABLE
from posenc.grading.assignments import CELL_SECONDS, CourseError, write_whole
from posenc.grading.isolation.sandbox import Sandbox
from posenc.grading.results import FAULT, MISSING, Result
from posenc.grading.workers import Assigned, Job, Judged, judging

NO_SEED = (
    f"{SEED_VARIABLE} is not set, so graded cells draw the practice cases, which students can see"
)


@dataclass
class Plan:
    """What there is to do.

    Parameters
    ----------
    jobs : list of Job
        Submissions to grade.
    skipped : list of str
        Students whose submissions are graded already.
    """

    jobs: list[Job]
    skipped: list[str]


def assigned(course: Any, name: str, *, cell_seconds: float = CELL_SECONDS) -> Assigned:
    """Return what submissions of an assignment are judged by.

    Parameters
    ----------
    course : CourseDirectory
        Knows where everything is.
    name : str
        The assignment.
    cell_seconds : float
        For one cell of a student's.

    Raises
    ------
    CourseError
        If the instructor's notebooks or those that were handed out are missing.
    """
    source = Path(course.format_path(course.source_directory, ".", name))
    release = Path(course.format_path(course.release_directory, ".", name))
    sources = {path.stem: path.read_text("utf-8") for path in sorted(source.glob("*.ipynb"))}
    released = {path.stem: path.read_text("utf-8") for path in sorted(release.glob("*.ipynb"))}
    missing = sorted(sources.keys() - released.keys())
    if not sources or missing:
        what = f"{missing[0]}.ipynb is not in {release}" if missing else f"{source} has no notebook"
        raise CourseError(f"{what}; run: nbgrader generate_assignment {name}")
    files = {
        Path(path).relative_to(source).as_posix(): Path(path).read_bytes()
        for path in find_all_files(str(source), [*course.ignore, "*.ipynb"])
    }
    return Assigned(name, sources, released, files, cell_seconds)


def plan(course: Any, name: str, *, student: str = "*", force: bool = False) -> Plan:
    """Return the submissions to grade, in the order of their students.

    Parameters
    ----------
    course : CourseDirectory
        Knows where submissions lie.
    name : str
        The assignment.
    student : str
        Whose; all if it is "*".
    force : bool
        Whether submissions that were graded before are graded again.
    """
    pattern = course.format_path(course.submitted_directory, student, name)
    known = re.compile(
        course.format_path(course.submitted_directory, "(?P<student>.*)", name, escape=True)
    )
    source = Path(course.format_path(course.source_directory, ".", name))
    names = sorted(path.stem for path in source.glob("*.ipynb"))
    excluded = set((course.student_id_exclude or "").split(","))
    work = Plan([], [])
    root = Path(course.root)
    for folder in sorted(root.glob(os.path.relpath(pattern, root))):
        found = known.fullmatch(str(folder))
        if not folder.is_dir() or not found or found["student"] in excluded:
            continue
        if force or _is_open(course, folder, found["student"], name, names):
            work.jobs += [Job(found["student"], folder, notebook) for notebook in names]
        else:
            work.skipped.append(found["student"])
    return work


def _is_open(course: Any, folder: Path, student: str, name: str, names: list[str]) -> bool:
    """Return whether a submission was not graded yet, or handed in again, or the grader failed."""
    graded = Path(course.format_path(course.autograded_directory, student, name))
    for notebook in names:
        path = graded / f"{notebook}.ipynb"
        if not path.is_file():
            return True
        result = Result.of(nbformat.read(path, as_version=4))
        if result and result.state == FAULT:
            return True
    new, old = (_timestamp(course, where) for where in (folder, graded))
    return new is not None and old is not None and new > old


def _timestamp(course: Any, folder: Path) -> Any:
    """Return when a submission was handed in, or None where its file holds no time."""
    try:
        return course.get_existing_timestamp(str(folder))
    except (OSError, ValueError, AttributeError):
        # nbgrader 0.9.6 calls a method here that it does not have.
        return None


def grade(
    course: Any,
    work: Plan,
    given: Assigned,
    *,
    jobs: int = 1,
    create_students: bool = True,
    sandbox: Sandbox | None = None,
) -> Iterator[Judged]:
    """Judge submissions side by side, and write each down as soon as those before it are.

    Parameters
    ----------
    course : CourseDirectory
        Where results go.
    work : Plan
        What to grade.
    given : Assigned
        What to judge by.
    jobs : int
        How many at a time.
    create_students : bool
        Whether students that the gradebook does not know are added to it.
    sandbox : Sandbox, optional
        One for this assignment that gets ready already.

    Yields
    ------
    Judged
        Each submission, once it is written down.
    """
    with judging(work.jobs, given, jobs, sandbox) as results:
        # Imported while the first submissions are judged; hardly anything of it is garbage.
        gc.disable()
        try:
            from posenc.grading.record import Recorder
        finally:
            gc.freeze()
            gc.enable()

        with Recorder(course, given, create_students=create_students) as recorder:
            for judged in results:
                if judged.result.state == MISSING:
                    recorder.know(judged.job.student)
                else:
                    timestamp = _timestamp(course, judged.job.folder)
                    recorder.write(judged, timestamp)
                    _keep(course, judged, given)
                yield judged


def _keep(course: Any, judged: Judged, given: Assigned) -> None:
    """Write the graded notebook and what lies beside it, in place of an earlier one."""
    job = judged.job
    folder = Path(course.format_path(course.autograded_directory, job.student, given.name))
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in {**judged.files, **given.files}.items():
        # A folder where a file was before, or the reverse, costs that file alone.
        with contextlib.suppress(OSError):
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            write_whole(target, content)
    write_whole(folder / f"{job.name}.ipynb", judged.notebook.encode(), mode=0o444)
