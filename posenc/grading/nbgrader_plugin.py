"""What the course adds to nbgrader, through settings of nbgrader_config.py.

nbgrader makes its exporter after it has found the notebooks and before it removes anything, so
that is where work is kept from being lost.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nbconvert.exporters import NotebookExporter
from nbgrader.converters import NbGraderException
from traitlets import Float, Integer, List, Unicode

from posenc.grading import assignments, batch
from posenc.grading._check import has_seed
from posenc.grading.assignments import CourseError
from posenc.grading.isolation import sandbox
from posenc.grading.results import FAULT, UNGRADABLE


class ReleaseExporter(NotebookExporter):
    """Keeps a copy of answers that somebody wrote into ``exercises/``."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        course = self.parent.coursedir
        for folder in self.parent.assignments:
            name = Path(folder).name
            released = Path(course.format_path(course.release_directory, ".", name))
            kept = assignments.keep_answers(released / f"{name}.ipynb")
            if kept:
                self.log.warning("%s.ipynb held answers, which are now in %s", name, kept)


class SubmissionExporter(NotebookExporter):
    """Grades submissions by :mod:`posenc.grading.batch`, in place of nbgrader's two conversions."""

    jobs = Integer(1, help="How many submissions are graded at a time.").tag(config=True)
    cell_seconds = Float(
        assignments.CELL_SECONDS, help="For one cell of a student's notebook."
    ).tag(config=True)

    only = List(
        Unicode(), help="Assignments that are graded here and not by nbgrader alone; all if empty."
    ).tag(config=True)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not self.only or self.parent.coursedir.assignment_id in self.only:
            self.parent.convert_notebooks = self._grade

    def _grade(self) -> None:
        """Grade what the command names, and end with an error if somebody has to look."""
        converter = self.parent
        course = converter.coursedir
        if not has_seed():
            self.log.warning(batch.NO_SEED)
        if not sandbox.can_isolate():
            self.log.warning(sandbox.WEAKER)
        failed = []
        try:
            given = batch.assigned(course, course.assignment_id, cell_seconds=self.cell_seconds)
            work = batch.plan(
                course, course.assignment_id, student=course.student_id, force=converter.force
            )
            for student in work.skipped:
                self.log.info("Skipping %s, which is graded already", student)
            for judged in batch.grade(
                course, work, given, jobs=self.jobs, create_students=converter.create_student
            ):
                self.log.info("Autograded %s: %s", judged.job.student, judged.result.state)
                for note in judged.result.notes:
                    self.log.warning("%s: %s", judged.job.student, note)
                if judged.result.state in (UNGRADABLE, FAULT):
                    failed.append(f"{judged.job.student} ({judged.result.state})")
        except CourseError as error:
            self.log.error(str(error))
            raise NbGraderException(str(error)) from None
        if failed:
            what = f"somebody has to look at: {', '.join(failed)}"
            self.log.error(what)
            raise NbGraderException(what)
