"""Writing what was found into nbgrader's gradebook, in one place."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.utils import is_grade
from sqlalchemy.exc import SAWarning

from posenc.grading.assignments import CourseError
from posenc.grading.results import BLANK, FAULT, GRADED
from posenc.grading.workers import Assigned, Judged, notebook_of


class Recorder:
    """The gradebook of a course, open while an assignment is graded.

    Parameters
    ----------
    course : CourseDirectory
        Names the database.
    assigned : Assigned
        What submissions are judged by.
    create_students : bool
        Whether students that the gradebook does not know are added to it.

    Raises
    ------
    CourseError
        If the assignment is not in the gradebook as it is now.
    """

    def __init__(self, course: Any, assigned: Assigned, *, create_students: bool = True) -> None:
        self._course, self._name = course, assigned.name
        self._create_students = create_students
        self._gradebook = Gradebook(course.db_url, course.course_id)
        try:
            self._check(assigned)
        except BaseException:
            self._gradebook.close()
            raise

    def _check(self, assigned: Assigned) -> None:
        again = f"run: nbgrader generate_assignment {self._name}"
        # Names of cells by what grades and comments refer to; to ask each of them takes a query.
        self._cells: dict[str, str] = {}
        for name, text in assigned.sources.items():
            try:
                notebook = self._gradebook.find_notebook(name, self._name)
            except MissingEntry:
                raise CourseError(
                    f"the gradebook does not know {self._name} yet; {again}"
                ) from None
            known = {cell.name: float(cell.max_score) for cell in notebook.grade_cells}
            for cells in (notebook.grade_cells, notebook.solution_cells, notebook.task_cells):
                self._cells.update({cell.id: cell.name for cell in cells})
            cells = notebook_of(text).cells
            now = {
                cell.metadata.nbgrader.grade_id: float(cell.metadata.nbgrader.points)
                for cell in cells
                if is_grade(cell)
            }
            if known != now:
                raise CourseError(
                    f"{name} has other tasks or points than the gradebook; if nobody has handed "
                    f"it in yet, {again}"
                )

    def write(self, judged: Judged, timestamp: Any = None) -> None:
        """Write down one submission, whole or not at all."""
        database = self._gradebook.db
        try:
            with self._together():
                submission = self._submission(judged.job.student, timestamp)
                found = next(nb for nb in submission.notebooks if nb.name == judged.job.name)
                self._grade(found, judged)
                self._penalise(submission, found)
            database.commit()
        except BaseException:
            database.rollback()
            raise
        finally:
            # What is written down is not needed any more.
            database.expire_all()

    @contextlib.contextmanager
    def _together(self) -> Iterator[None]:
        """Keep nbgrader, which commits after each step, from committing a part."""
        database = self._gradebook.db
        database.commit = lambda: None
        try:
            yield
        finally:
            del database.commit

    def know(self, student: str) -> None:
        """See to it that the gradebook knows a student."""
        if self._create_students:
            self._gradebook.update_or_create_student(student)
            return
        try:
            self._gradebook.find_student(student)
        except MissingEntry:
            raise CourseError(f"the gradebook knows no student {student!r}") from None

    def _submission(self, student: str, timestamp: Any) -> Any:
        self.know(student)
        facts = {"timestamp": timestamp} if timestamp else {}
        with warnings.catch_warnings():
            # Of nbgrader's own, and about nothing that is lost.
            warnings.simplefilter("ignore", SAWarning)
            return self._gradebook.update_or_create_submission(self._name, student, **facts)

    def _grade(self, found: Any, judged: Judged) -> None:
        whole = judged.result.state in (GRADED, BLANK)
        partly = judged.result.state == FAULT and bool(judged.result.tasks)
        for grade in found.grades:
            name = self._cells.get(grade.cell_id)
            if (whole or partly) and name in judged.scores:
                grade.auto_score = judged.scores[name]
                grade.needs_manual_grade = (
                    grade.manual_score is not None or grade.auto_score is None
                )
            else:
                # An earlier grade stays, and a person has to look.
                grade.needs_manual_grade = True
        for comment in found.comments:
            untouched = whole and self._cells.get(comment.cell_id) in judged.untouched
            comment.auto_comment = "No response." if untouched else None

    def _penalise(self, submission: Any, found: Any) -> None:
        """Do what nbgrader's AssignLatePenalties does, with the plug-in that is configured."""
        found.late_submission_penalty = None
        late = submission.total_seconds_late
        if late > 0:
            # It takes long to import, and most are in time.
            from nbgrader.preprocessors import AssignLatePenalties

            assign = AssignLatePenalties(parent=self._course)
            assign.init_plugin()
            self._gradebook.db.flush()
            student = submission.student.id
            penalty = assign.plugin_inst.late_submission_penalty(student, found.score, late)
            if penalty is not None:
                found.late_submission_penalty = assign._check_late_penalty(found, penalty)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._gradebook.close()
