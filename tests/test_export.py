"""The export: every student's state, and no score where there is none."""

import csv
import io
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from traitlets import Instance
from traitlets.config import Config, LoggingConfigurable

from posenc.grading import PRACTICE_SEED
from posenc.grading.export import COLUMNS, GradesExport
from posenc.grading.results import BLANK, FAULT, GRADED, UNGRADABLE, Result, stored

NAME = "a1"
TASKS = ("first", "second", "third")


class App(LoggingConfigurable):
    coursedir = Instance(CourseDirectory)

    def fail(self, message):
        raise SystemExit(message)


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course with one assignment of three tasks, worth a point each."""
    # nbgrader starts alembic by its name.
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    config = Config(CourseDirectory={"root": str(tmp_path), "course_id": "c"})
    course = CourseDirectory(config=config)
    with Gradebook(course.db_url, "c") as gradebook:
        gradebook.add_assignment(NAME)
        gradebook.add_notebook(NAME, NAME)
        for task in TASKS:
            gradebook.add_grade_cell(task, NAME, NAME, max_score=1, cell_type="code")
        yield SimpleNamespace(course=course, gradebook=gradebook, root=tmp_path)


def hand_in(course, student, scores=(None, None, None), result=None, **facts):
    """Write a submission as grading does."""
    gradebook = course.gradebook
    gradebook.update_or_create_student(student, **facts)
    gradebook.update_or_create_submission(NAME, student)
    for task, score in zip(TASKS, scores, strict=True):
        gradebook.find_grade(task, NAME, NAME, student).auto_score = score
    gradebook.db.commit()
    if result:
        notebook = SimpleNamespace(metadata={})
        result.store(notebook)
        path = course.root / "autograded" / student / NAME / f"{NAME}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"metadata": notebook.metadata, "cells": []}), "utf-8")
        return path
    return None


def exported(course, **options):
    target = course.root / "grades.csv"
    plugin = GradesExport(parent=App(coursedir=course.course), to=str(target), **options)
    plugin.export(course.gradebook)
    return target.read_bytes()


def rows(course, **options):
    text = exported(course, **options).decode()
    return {row["student_id"]: row for row in csv.DictReader(io.StringIO(text))}


def test_every_state_is_a_row_and_an_empty_score_is_never_a_zero(course):
    hand_in(course, "right", (1, 1, 1), Result(GRADED, ("a", "b"), seed="secret"))
    hand_in(course, "wrong", (0, 0, 0), Result(GRADED, seed="secret"))
    hand_in(course, "blank", (0, 0, 0), Result(BLANK, seed="secret"))
    hand_in(course, "broken", result=Result(UNGRADABLE, ("why",)))
    hand_in(course, "unlucky", result=Result(FAULT, ("why",)))
    hand_in(course, "partly", (1, None, 1), Result(FAULT, seed="secret"))
    hand_in(course, "again", (1, 0, 1), Result(UNGRADABLE, ("why",)))
    course.gradebook.add_student("absent")
    found = rows(course)
    shown = {
        student: (row["state"], row["raw_score"], row["score"], row["cases"], row["notes"])
        for student, row in found.items()
    }
    assert shown == {
        "absent": ("missing", "", "", "", ""),
        "again": ("ungradable", "2.0", "2.0", "", "1"),
        "blank": ("blank", "0.0", "0.0", "course", "0"),
        "broken": ("ungradable", "", "", "", "1"),
        "partly": ("grader fault", "", "", "course", "0"),
        "right": ("graded", "3.0", "3.0", "course", "2"),
        "unlucky": ("grader fault", "", "", "", "1"),
        "wrong": ("graded", "0.0", "0.0", "course", "0"),
    }
    assert {row["max_score"] for row in found.values()} == {"3.0"}
    assert all(tuple(row) == COLUMNS for row in found.values())


def test_points_given_by_hand_end_an_empty_score(course):
    hand_in(course, "broken", result=Result(UNGRADABLE, ("why",)))
    for task in TASKS:
        course.gradebook.find_grade(task, NAME, NAME, "broken").manual_score = 1
    course.gradebook.db.commit()
    assert rows(course)["broken"]["score"] == "3.0"


def test_sums_are_rounded_once(course):
    hand_in(course, "ada", (0.1, 0.2, 0.4), Result(GRADED))
    assert sum((0.1, 0.2, 0.4)) != 0.7
    row = rows(course)["ada"]
    assert (row["raw_score"], row["score"]) == ("0.7", "0.7")


def test_the_late_penalty_is_taken_off_but_never_below_nothing(course):
    for student, penalty in (("late", 0.5), ("later", 9)):
        hand_in(course, student, (1, 1, 0), Result(GRADED))
        submission = course.gradebook.find_submission_notebook(NAME, NAME, student)
        submission.late_submission_penalty = penalty
    course.gradebook.db.commit()
    found = rows(course)
    assert [found[name]["score"] for name in ("late", "later")] == ["1.5", "0.0"]


def test_practice_cases_are_marked(course):
    hand_in(course, "ada", (1, 1, 1), Result(GRADED, seed=PRACTICE_SEED))
    hand_in(course, "bob", (1, 1, 1), Result(GRADED, seed="secret"))
    found = rows(course)
    assert (found["ada"]["cases"], found["bob"]["cases"]) == ("practice", "course")
    assert b"secret" not in exported(course)


def test_what_others_graded_has_no_cases_and_a_student_can_forge_nothing(course):
    hand_in(course, "stock", (1, 0, 0))
    forged = hand_in(course, "forger", (1, 0, 0), Result(GRADED))
    text = forged.read_text("utf-8")
    found = rows(course)["stock"]
    assert (found["state"], found["cases"], found["score"]) == ("graded", "", "1.0")
    for metadata in (None, 3, [], {"posenc": 3}, {"posenc": {"state": "graded"}}):
        forged.write_text(json.dumps({"metadata": metadata}), "utf-8")
        assert stored(forged) is None
        assert rows(course)["forger"]["score"] == "1.0"
    forged.write_text(text[:20], "utf-8")
    assert stored(forged) is None


def test_names_with_commas_and_quotes_survive_in_a_fixed_order(course):
    for student, last in (("2", "Ng, Jr."), ("1", 'O"Neil'), ("4", None), ("3", None)):
        hand_in(course, student, (1, 1, 1), Result(GRADED), last_name=last)
    found = rows(course)
    assert list(found) == ["3", "4", "2", "1"]
    assert (found["2"]["last_name"], found["1"]["last_name"]) == ("Ng, Jr.", 'O"Neil')
    assert exported(course) == exported(course)


def test_work_that_waits_to_be_graded_is_not_missing(course):
    for student in ("waiting", "empty"):
        course.gradebook.add_student(student)
        (course.root / "submitted" / student / NAME).mkdir(parents=True)
    (course.root / "submitted/waiting" / NAME / f"{NAME}.ipynb").write_text("{", "utf-8")
    found = rows(course)
    assert (found["waiting"]["state"], found["empty"]["state"]) == ("not graded", "missing")
    assert found["waiting"]["score"] == ""


def test_students_and_assignments_can_be_chosen(course):
    for student in ("ada", "bob"):
        hand_in(course, student, (1, 1, 1), Result(GRADED))
    assert list(rows(course, student=["bob"])) == ["bob"]
    assert rows(course, assignment=["other"]) == {}


def test_a_place_that_cannot_be_written_is_one_sentence(course):
    course.root.joinpath("file").write_text("", "utf-8")
    plugin = GradesExport(
        parent=App(coursedir=course.course), to=str(course.root / "file/grades.csv")
    )
    with pytest.raises(SystemExit, match="can't be written"):
        plugin.export(course.gradebook)
