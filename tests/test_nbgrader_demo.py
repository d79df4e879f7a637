"""nbgrader's own demo course and test notebooks, graded by stock and by ours."""

import shutil
from pathlib import Path

import nbgrader
import pytest
from nbgrader.api import Gradebook
from test_corpus_course import command

PACKAGE = Path(nbgrader.__file__).parent
GUIDE = PACKAGE / "docs" / "source" / "user_guide"
FILES = PACKAGE / "tests" / "apps" / "files"
OURS = "--Autograde.exporter_class=posenc.grading.nbgrader_plugin.SubmissionExporter"
NAME = "ps1"
# Each is handed in for this one, as nbgrader's tests do.
SOURCE = "submitted-unchanged"
SUBMITTED = {
    "unchanged": SOURCE,
    "changed": "submitted-changed",
    "test-changed": "submitted-grade-cell-changed",
    "text-changed": "submitted-locked-cell-changed",
    "cheat": "submitted-cheat-attempt",
    "cheat-again": "submitted-cheat-attempt-alternative",
}


def graded(folder, *words):
    """Generate and autograde, and return each student's points for each graded cell."""
    (folder / "nbgrader_config.py").write_text(
        "c = get_config()\nc.CourseDirectory.course_id = 'demo'\n", encoding="utf-8"
    )
    done = command(folder, "nbgrader", "generate_assignment", NAME)
    assert done.returncode == 0, done.stdout
    done = command(folder, "nbgrader", "autograde", NAME, *words)
    assert done.returncode == 0, done.stdout[-3000:]
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}") as gradebook:
        return {
            (submission.student.id, notebook.name, grade.name): (
                grade.auto_score,
                bool(grade.needs_manual_grade),
            )
            for submission in gradebook.find_assignment(NAME).submissions
            for notebook in submission.notebooks
            for grade in notebook.grades
        }


def by_both(make, tmp_path):
    """Return what stock and ours find in the same course."""
    found = []
    for name, words in (("stock", ()), ("ours", (OURS,))):
        make(tmp_path / name)
        found.append(graded(tmp_path / name, *words))
    return found


@pytest.mark.slow
def test_the_demo_course_earns_what_stock_nbgrader_gives(tmp_path):
    def make(folder):
        for part in ("source", "submitted"):
            for path in (GUIDE / part).rglob(f"{NAME}/*"):
                target = folder / path.relative_to(GUIDE)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, target)

    stock, ours = by_both(make, tmp_path)
    assert ours == stock
    totals = {"bitdiddle": 0.0, "hacker": 0.0}
    for (student, _, _), (points, _) in ours.items():
        totals[student] += points or 0.0
    # What nbgrader's documentation shows.
    assert totals == {"bitdiddle": 1.5, "hacker": 3.0}


@pytest.mark.slow
def test_the_test_notebooks_earn_what_stock_nbgrader_gives(tmp_path):
    def make(folder):
        (folder / "source" / NAME).mkdir(parents=True)
        shutil.copy(FILES / f"{SOURCE}.ipynb", folder / "source" / NAME / "p1.ipynb")
        for student, name in SUBMITTED.items():
            (folder / "submitted" / student / NAME).mkdir(parents=True)
            target = folder / "submitted" / student / NAME / "p1.ipynb"
            shutil.copy(FILES / f"{name}.ipynb", target)

    stock, ours = by_both(make, tmp_path)
    assert {student for student, _, _ in ours} == set(SUBMITTED)
    assert ours == stock
