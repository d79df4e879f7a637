"""nbgrader's export with what grading found: an empty score is never written as a zero."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook
from nbgrader.plugins import ExportPlugin

from posenc.grading import rebuild
from posenc.grading._check import PRACTICE_SEED
from posenc.grading.assignments import write_whole
from posenc.grading.results import BLANK, FAULT, GRADED, MISSING, UNGRADABLE, stored

# nbgrader's columns, and ours.
COLUMNS = (
    "assignment",
    "duedate",
    "timestamp",
    "student_id",
    "last_name",
    "first_name",
    "email",
    "raw_score",
    "late_submission_penalty",
    "score",
    "max_score",
    "state",
    "cases",
    "notes",
)
# Handed in, and not graded since.
OPEN = "not graded"
# What an assignment of several notebooks is called: the first of these that one of them is.
WORST = (FAULT, UNGRADABLE, GRADED, BLANK)
# Sums of points such as 0.1 + 0.2 are rounded here, and nowhere else.
DIGITS = 6


class GradesExport(ExportPlugin):
    """Writes a row for every student and assignment, with the state that grading ended in."""

    def export(self, gradebook: Gradebook) -> None:
        """Write the table to ``--to``, or to grades.csv.

        Parameters
        ----------
        gradebook : Gradebook
            Where the points are.
        """
        target = Path(self.to or "grades.csv")
        self.log.info("Exporting grades to %s", target)
        rows = list(self._rows(gradebook))
        text = io.StringIO()
        table = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
        practice = sum(row.get("cases") == "practice" for row in rows)
        if practice:
            self.log.warning(
                "%d of %d rows come from the practice cases, which students can see",
                practice,
                len(rows),
            )
        try:
            write_whole(target, text.getvalue().encode())
        except OSError as error:
            self.parent.fail(f"{target} can't be written ({error.strerror})")

    def _rows(self, gradebook: Gradebook) -> Iterator[dict[str, Any]]:
        students = sorted(
            (student for student in gradebook.students if self._asked(self.student, student.id)),
            key=lambda student: (student.last_name or "", student.first_name or "", student.id),
        )
        for assignment in gradebook.assignments:
            if not self._asked(self.assignment, assignment.name):
                continue
            handed_in = {each.student_id: each for each in assignment.submissions}
            for student in students:
                yield self._row(assignment, student, handed_in.get(student.id))

    @staticmethod
    def _asked(wanted: list[Any], name: str) -> bool:
        return not wanted or name in map(str, wanted)

    def _row(self, assignment: Any, student: Any, submission: Any) -> dict[str, Any]:
        names = [notebook.name for notebook in assignment.notebooks]
        course = self.parent.coursedir
        row = {
            "assignment": assignment.name,
            "duedate": assignment.duedate,
            "student_id": student.id,
            "last_name": student.last_name,
            "first_name": student.first_name,
            "email": student.email,
            "max_score": _rounded(assignment.max_score),
        }
        if submission is None:
            folder = Path(
                course.format_path(course.submitted_directory, student.id, row["assignment"])
            )
            return {**row, "state": OPEN if _holds_work(folder, names) else MISSING}
        folder = Path(
            course.format_path(course.autograded_directory, student.id, row["assignment"])
        )
        results = [result for name in names if (result := stored(folder / f"{name}.ipynb"))]
        states = {result.state for result in results}
        state = next((state for state in WORST if state in states), GRADED)
        row["timestamp"] = submission.timestamp
        row["state"] = state
        seeds = {result.seed for result in results} - {""}
        if seeds:
            row["cases"] = "practice" if PRACTICE_SEED in seeds else "course"
        row["notes"] = sum(len(result.notes) for result in results)
        if state not in (UNGRADABLE, FAULT) or _is_whole(submission):
            penalty = submission.late_submission_penalty or 0.0
            row["raw_score"] = _rounded(submission.score)
            row["late_submission_penalty"] = _rounded(penalty)
            row["score"] = _rounded(max(0.0, submission.score - penalty))
        return row


def _is_whole(submission: Any) -> bool:
    """Return whether every graded cell has points, from before or by hand."""
    return all(
        grade.auto_score is not None or grade.manual_score is not None
        for notebook in submission.notebooks
        for grade in notebook.grades
    )


def _holds_work(folder: Path, names: list[str]) -> bool:
    """Return whether a student handed in what grading would not call missing."""
    return folder.is_dir() and any(
        rebuild.find(folder, name, others=frozenset(names) - {name}).state != MISSING
        for name in names
    )


def _rounded(points: float) -> float:
    return round(float(points), DIGITS)
