"""The corpus as a class: graded whole, by nbgrader's command and by ours."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import corpus
import nbformat
import pytest
import test_corpus
from nbgrader.api import Gradebook

from posenc.grading import demo
from posenc.grading.isolation.sandbox import can_isolate
from posenc.grading.results import BLANK, GRADED, MISSING, UNGRADABLE, Result

pytestmark = pytest.mark.skipif(not can_isolate(), reason="bubblewrap is not installed")

NAME = corpus.MOST
CLASS = [entry for entry in corpus.ENTRIES if entry.assignment == NAME]
SAMPLE = [entry for entry in CLASS if entry.quick]


def command(folder, *words):
    """Run a command in a course, and return how it ended and what it said."""
    environment = {key: value for key, value in os.environ.items() if key != "POSENC_DB"}
    environment |= {
        "POSENC_SEED": test_corpus.SEED,
        "JUPYTER_CONFIG_DIR": str(folder / "none"),
        "PYTHONPATH": str(corpus.ROOT),
        # nbgrader starts alembic by its name.
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    }
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )


def course(folder, entries):
    """Make a course in which a class has handed in."""
    for name in demo.COURSE_FILES:
        copy = shutil.copytree if (corpus.ROOT / name).is_dir() else shutil.copy2
        copy(corpus.ROOT / name, folder / name)
    done = command(folder, "nbgrader", "generate_assignment", NAME)
    assert done.returncode == 0, done.stdout
    for entry in entries:
        submitted = folder / "submitted" / entry.name / NAME
        submitted.mkdir(parents=True)
        entry.write(submitted)


def contents(folder):
    """Return a hash of every file that students and instructors wrote."""
    return {
        path: hashlib.sha256(path.read_bytes()).hexdigest()
        for top in ("submitted", "_build/source", "exercises", "solutions")
        for path in sorted((folder / top).rglob("*"))
        if path.is_file() and not path.is_symlink() and path.stat().st_size < 50_000_000
    }


def ended(folder, entry, gradebook):
    """Return the state of a submission, and the points that the gradebook holds."""
    path = folder / "autograded" / entry.name / NAME / f"{NAME}.ipynb"
    if not path.is_file():
        return MISSING, {}
    state = Result.of(nbformat.read(path, as_version=4)).state
    notebook = gradebook.find_submission_notebook(NAME, NAME, entry.name)
    points = {grade.name.removeprefix("grade-"): grade.auto_score for grade in notebook.grades}
    if state == UNGRADABLE:
        assert all(grade.needs_manual_grade for grade in notebook.grades), entry.name
        assert set(points.values()) == {None}, entry.name
        points = {}
    return state, points


def wrong_ends(folder, entries):
    """Return what ended otherwise than it must."""
    wrong = {}
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}") as gradebook:
        handed_in = {each.student.id for each in gradebook.find_assignment(NAME).submissions}
        assert handed_in == {entry.name for entry in entries if entry.state != MISSING}
        for entry in entries:
            found = ended(folder, entry, gradebook)
            if found != (entry.state, entry.points):
                wrong[entry.name] = found, (entry.state, entry.points)
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entries", "words"),
    [
        (CLASS, ("nbgrader", "autograde", NAME, "--SubmissionExporter.jobs=2")),
        (SAMPLE, ("posenc.grading.cli", "grade", NAME, "--jobs", "2")),
    ],
    ids=["nbgrader", "posenc"],
)
def test_a_class_of_the_corpus_ends_as_it_should(entries, words, tmp_path):
    course(tmp_path, entries)
    before = contents(tmp_path)
    if words[0] == "nbgrader":
        words = (*words, f"--SubmissionExporter.cell_seconds={test_corpus.SECONDS}")
    done = command(tmp_path, *words)
    # Some can't be graded.
    assert done.returncode == 1, done.stdout[-3000:]
    assert "Traceback" not in done.stdout, done.stdout[-3000:]
    assert not wrong_ends(tmp_path, entries)
    assert contents(tmp_path) == before
    states = {entry.state for entry in entries}
    assert states == {GRADED, BLANK, MISSING, UNGRADABLE}
    assert not list(Path(tmp_path, "autograded").rglob("*.db"))
