"""nbgrader's own commands on this course: a sample class, and submissions hard to grade."""

import csv
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbgrader.api import Gradebook

import posenc
from posenc.exercises import for_assignment
from posenc.grading import cli, demo

ROOT = Path(__file__).parents[1]
NAME = demo.ASSIGNMENT
NOTEBOOK = f"{NAME}/{NAME}.ipynb"
EXPECTED = {
    "complete": [4, 8, 3, 4, 2, 4],
    "blank": [0, 0, 0, 0, 0, 0],
    "halves": [4, 0, 3, 4, 2, 4],
    "fixed-base": [2.5, 8, 3, 4, 2, 4],
    "crash": [4, 8, 0, 4, 2, 4],
}


def nbgrader(folder, *words, **variables):
    """Run a command as a user does, without an activated environment."""
    environment = {key: value for key, value in os.environ.items() if key != "POSENC_DB"}
    environment |= {"POSENC_SEED": "s", "JUPYTER_CONFIG_DIR": str(folder / "none"), **variables}
    return subprocess.run(
        [Path(sys.executable).parent / "nbgrader", *words],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )


def totals(folder):
    """Return everybody's points."""
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}") as gradebook:
        submissions = gradebook.find_assignment(NAME).submissions
        return {submission.student.id: submission.score for submission in submissions}


def answer(path, name, add):
    """Append to the answer of a task in a submitted notebook."""
    notebook = nbformat.read(path, as_version=4)
    (cell,) = (cell for cell in notebook.cells if cell.id == name)
    cell.source += f"\n\n{add}"
    nbformat.write(notebook, path)


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """The graded sample class, and what the command said."""
    folder = tmp_path_factory.mktemp("demo") / "course"
    return folder, list(demo.run(ROOT, folder))


@pytest.fixture
def graded(sample, tmp_path):
    """A copy of the graded sample class, to grade again."""
    return shutil.copytree(sample[0], tmp_path / "course")


def test_everybody_gets_exactly_the_points_expected(sample):
    folder, said = sample
    earned = demo.points(folder)
    assert {student: list(points.values()) for student, points in earned.items()} == EXPECTED
    full = sum(exercise.points for exercise in for_assignment(NAME))
    assert sum(EXPECTED["complete"]) == full
    with (folder / "grades.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["student_id"]: float(row["score"]) for row in rows} == {
        student: sum(points) for student, points in EXPECTED.items()
    }
    assert {float(row["max_score"]) for row in rows} == {full}

    table = next(line for line in said if line.startswith(" "))
    last = table.splitlines()[-1].split()
    assert last == ["total", f"{full:g}", *(f"{sum(points):g}" for points in EXPECTED.values())]
    assert [line for line in said if line.startswith("graded ")] == [
        f"graded {student}" for student in sorted(EXPECTED)
    ]
    assert said[-1] == f"grades:   {folder / 'grades.csv'}"


def test_feedback_shows_reports_and_no_solution(sample):
    _, said = sample
    place = next(line for line in said if line.startswith("feedback: ")).split(": ")[1]
    solution = (ROOT / f"solutions/{NAME}/{NAME}.py").read_text("utf-8")
    regions = re.findall(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", solution, re.DOTALL)
    lines = {line.strip() for region in regions for line in region.splitlines()} - {""}
    text = {}
    for student in EXPECTED:
        page = Path(place.replace("STUDENT", student)).read_text("utf-8")
        text[student] = " ".join(BeautifulSoup(page, "html.parser").main.get_text(" ").split())
        assert all(exercise.name in text[student] for exercise in for_assignment(NAME))
        if student == "blank":
            assert not any(line in page for line in lines if len(line) > 20)
    assert "the cases are drawn from the course's seed" in text["complete"]
    assert "not written yet" in text["blank"]
    assert "Recognised: halves" in text["halves"]
    assert "Recognised: base ignored" in text["fixed-base"]
    assert "scored with a right inverse_frequencies in place of yours" in text["fixed-base"]
    assert "not run yet: run the cell that defines wavelengths" in text["crash"]
    assert not any(demo.SEED in of_student for of_student in text.values())


def test_the_seed_is_kept_with_the_grade_and_reaches_no_student(sample):
    folder, _ = sample
    for student in EXPECTED:
        graded = nbformat.read(folder / f"autograded/{student}/{NOTEBOOK}", as_version=4)
        assert graded.metadata.posenc["seed"] == demo.SEED
        assert graded.metadata.posenc["version"] == posenc.__version__
    released = [folder / "exercises" / NOTEBOOK, *(folder / "feedback").rglob("*.html")]
    assert len(released) == 1 + len(EXPECTED)
    assert not any(demo.SEED in path.read_text("utf-8") for path in released)


WRONG_VERDICTS = """

solved = verdicts()

def verdicts():
    other = "false" if solved["a"] == "true" else "true"
    return solved | {"a": other, "b": "unsure"}
"""


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    """A course in which two hand in the ledger: the solution, and one with some verdicts wrong."""
    folder = tmp_path_factory.mktemp("ledger")
    for name in demo.COURSE_FILES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, folder / name)
    done = nbgrader(folder, "generate_assignment", "05-ledger")
    assert done.returncode == 0, done.stdout
    right = {
        cell.id: cell.source
        for cell in nbformat.read(
            folder / "_build/source/05-ledger/05-ledger.ipynb", as_version=4
        ).cells
    }
    for student in ("right", "wrong"):
        path = folder / f"submitted/{student}/05-ledger/05-ledger.ipynb"
        path.parent.mkdir(parents=True)
        notebook = nbformat.read(folder / "exercises/05-ledger/05-ledger.ipynb", as_version=4)
        for cell in notebook.cells:
            if cell.id in ("verdicts", "nearest_repeat"):
                cell.source = right[cell.id]
            if cell.id == "verdicts" and student == "wrong":
                cell.source += WRONG_VERDICTS
        nbformat.write(notebook, path)
    for command in ("autograde", "generate_feedback"):
        done = nbgrader(folder, command, "05-ledger")
        assert done.returncode == 0, done.stdout
    return folder


@pytest.mark.slow
def test_verdicts_are_graded_by_a_key_that_no_student_sees(ledger):
    with Gradebook(f"sqlite:///{ledger / 'gradebook.db'}") as gradebook:
        submissions = gradebook.find_assignment("05-ledger").submissions
        assert {each.student.id: each.score for each in submissions} == {"right": 5, "wrong": 4}
    source = (ROOT / "solutions/05-ledger/05-ledger.py").read_text("utf-8")
    (region,) = re.findall(r"### BEGIN HIDDEN TESTS\n(.*?)### END HIDDEN TESTS", source, re.DOTALL)
    namespace = {"grade": lambda name, *, key: key}
    exec(region, namespace)
    reasons = [reason for _, reason in namespace["report"].values()]
    assert len(reasons) == 6
    released = (ledger / "exercises/05-ledger/05-ledger.ipynb").read_text("utf-8")
    pages = {
        student: (ledger / f"feedback/{student}/05-ledger/05-ledger.html").read_text("utf-8")
        for student in ("right", "wrong")
    }
    for text in (released, *pages.values()):
        assert "HIDDEN TESTS" not in text
        assert "key=" not in text
    assert not any(reason in text for reason in reasons for text in (released, pages["right"]))
    page = " ".join(BeautifulSoup(pages["wrong"], "html.parser").get_text().split())
    assert "verdicts: 2 of 3 points." in page
    assert "Without one of the words true, imprecise or false: b ('unsure')." in page
    # The reason of the wrong verdict is there, and no other.
    assert [reason in page for reason in reasons] == [True] + [False] * (len(reasons) - 1)


def test_the_sample_class_never_writes_into_a_folder_that_is_in_use(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    (tmp_path / "mine.txt").write_text("mine", "utf-8")
    assert cli.main(["demo", "--keep", str(tmp_path)]) == 1
    assert "is not empty; name a new folder" in capsys.readouterr().err


def test_ctrl_c_ends_quietly(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "posenc.grading.cli", "demo", "--keep", tmp_path / "course"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        start_new_session=True,
    )
    while "generating" not in (line := process.stdout.readline()):
        assert line, "the command ended by itself"
    os.killpg(process.pid, signal.SIGINT)
    assert process.stdout.read() == "stopped\n"
    assert process.wait() == 130


def test_a_fresh_clone_generates_an_assignment_into_the_database_named(tmp_path):
    for name in (*demo.COURSE_FILES, "exercises"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, tmp_path / name)
    released = tmp_path / "exercises/00-start/00-start.ipynb"
    committed = released.read_bytes()
    released.write_bytes(committed.replace(b"raise NotImplementedError()", b"return 'mine'"))
    database = tmp_path / "elsewhere.db"
    done = nbgrader(tmp_path, "generate_assignment", "00-start", POSENC_DB=f"sqlite:///{database}")
    assert done.returncode == 0, done.stdout
    assert released.read_bytes() == committed
    (kept,) = (tmp_path / "exercises").glob("00-start.kept-*.ipynb")
    assert b"return 'mine'" in kept.read_bytes()
    assert f"00-start.ipynb held answers, which are now in {kept}" in done.stdout

    with sqlite3.connect(database) as connection:
        assert connection.execute("select name from assignment").fetchall() == [("00-start",)]
    assert not (tmp_path / "gradebook.db").exists()


def test_validate_shows_the_report(sample):
    folder, _ = sample
    shown = nbgrader(folder, "validate", f"submitted/halves/{NOTEBOOK}").stdout
    assert "VALIDATION FAILED ON 1 CELL(S)" in shown
    report = " ".join(shown.split())
    assert re.search(r"sinusoidal_encoding\(.*\) is wrong: 0 of 8 points\.", report)
    assert (
        "Recognised: halves - all sines come first and all cosines after them; the paper "
        "interleaves them: sine at column 2i, cosine at 2i + 1."
    ) in report
    assert 'Read chapter 2, "Interleaving sine and cosine"' in report
    shown = nbgrader(folder, "validate", f"submitted/complete/{NOTEBOOK}").stdout
    assert "Success! Your notebook passes all the tests." in shown


def test_submissions_that_cannot_be_graded_cost_nobody_anything(graded):
    submitted = graded / "submitted"
    (submitted / f"complete/{NOTEBOOK}").unlink()
    (submitted / f"halves/{NOTEBOOK}").rename(submitted / f"halves/{NAME}/{NAME} (1).ipynb")
    (submitted / f"fixed-base/{NOTEBOOK}").write_text('{"cells": [', "utf-8")
    before = (graded / f"autograded/complete/{NOTEBOOK}").read_bytes()
    (submitted / "crash").rename(submitted / "another")

    done = nbgrader(graded, "autograde", NAME, "--force", POSENC_SEED="")
    assert done.returncode == 1
    assert "Traceback" not in done.stdout
    assert "POSENC_SEED is not set" in done.stdout
    for student, state in {
        "another": "graded",
        "blank": "blank",
        "complete": "missing",
        "fixed-base": "ungradable",
        "halves": "graded",
    }.items():
        assert f"Autograded {student}: {state}" in done.stdout
    assert f"{NAME} (1).ipynb was taken for {NAME}.ipynb" in done.stdout
    assert "somebody has to look at: fixed-base (ungradable)" in done.stdout
    assert (graded / f"autograded/complete/{NOTEBOOK}").read_bytes() == before
    # Nobody's earlier grade was lost, and a person is told to look where that is needed.
    assert totals(graded) == {
        **{student: sum(points) for student, points in EXPECTED.items()},
        "another": sum(EXPECTED["crash"]),
    }
    with Gradebook(f"sqlite:///{graded / 'gradebook.db'}") as gradebook:
        submissions = gradebook.find_assignment(NAME).submissions
        manual = {each.student.id for each in submissions if each.needs_manual_grade}
    assert manual == {"fixed-base"}


@pytest.mark.slow
def test_a_cell_that_never_ends_or_ends_python_costs_its_own_task_alone(graded):
    submitted = graded / "submitted"
    # Interrupted after the function was defined, so nothing is lost.
    answer(submitted / f"halves/{NOTEBOOK}", "wavelengths", "while True:\n    pass")
    # Compiled code that no interrupt reaches: the cell's own task is lost.
    answer(submitted / f"complete/{NOTEBOOK}", "add_positions", "sum(range(10**14))")
    answer(submitted / f"fixed-base/{NOTEBOOK}", "wavelengths", "import os\nos._exit(0)")
    # A copied locked cell, which stops the whole batch of a stock nbgrader.
    path = submitted / f"blank/{NOTEBOOK}"
    notebook = nbformat.read(path, as_version=4)
    copied = nbformat.from_dict({**notebook.cells[-1], "id": "copied"})
    notebook.cells.append(copied)
    nbformat.write(notebook, path)

    done = nbgrader(graded, "autograde", NAME, "--force", "--SubmissionExporter.cell_seconds=4")
    assert done.returncode == 0, done.stdout
    assert totals(graded) == {
        "complete": 4 + 8 + 3 + 2 + 4,
        "blank": 0,
        "halves": sum(EXPECTED["halves"]),
        "fixed-base": 2.5 + 8 + 4 + 2 + 4,
        "crash": sum(EXPECTED["crash"]),
    }
    for student, words in {
        "complete": "ran too long and could not be interrupted",
        "fixed-base": "ended Python",
    }.items():
        notebook = nbformat.read(graded / f"autograded/{student}/{NOTEBOOK}", as_version=4)
        errors = [output for cell in notebook.cells for output in cell.get("outputs", [])]
        assert [words in output.evalue for output in errors if output.output_type == "error"] == [
            True
        ]


def test_an_unknown_assignment_is_one_sentence_with_the_known_ones(graded):
    done = nbgrader(graded, "autograde", "02-sinus")
    assert done.returncode != 0
    said = done.stdout + (done.stderr or "")
    assert "posenc: no assignment is called '02-sinus'; there are 00-start, " in said
