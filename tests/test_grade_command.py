"""``posenc grade``: what it keeps, what it says, and how it ends."""

import contextlib
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from nbgrader.utils import is_solution

from posenc.grading import PRACTICE_SEED, cli, demo
from posenc.grading.isolation import sandbox

ROOT = Path(__file__).parents[1]
NAME = "00-start"
NOTEBOOK = f"{NAME}/{NAME}.ipynb"
STUDENTS = ("ada", "bob", "cyd", "dee")
GOES_ON = "run the same command to go on"


def run(folder, *words, **variables):
    """Run a command of ours or nbgrader's in a course."""
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env=environment(folder) | variables,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def environment(folder):
    kept = {key: value for key, value in os.environ.items() if key != "POSENC_DB"}
    return kept | {
        "POSENC_SEED": "s",
        "PYTHONPATH": str(ROOT),
        "JUPYTER_CONFIG_DIR": str(folder / "none"),
    }


def grade(folder, *words, **variables):
    return run(folder, "posenc.grading.cli", "grade", *words, **variables)


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """A course with an assignment that is generated, and nothing handed in."""
    folder = tmp_path_factory.mktemp("course") / "course"
    folder.mkdir()
    for name in demo.COURSE_FILES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, folder / name)
    done = run(folder, "nbgrader", "generate_assignment", NAME)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def course(generated, tmp_path):
    """A copy of it, in which four handed in: two right, one blank, one not a notebook."""
    folder = shutil.copytree(generated, tmp_path / "course")
    for student in STUDENTS:
        (folder / "submitted" / student / NAME).mkdir(parents=True)
    solved = folder / "_build/source" / NOTEBOOK
    for student in ("ada", "bob"):
        shutil.copy(solved, folder / "submitted" / student / NOTEBOOK)
    shutil.copy(folder / "exercises" / NOTEBOOK, folder / "submitted/cyd" / NOTEBOOK)
    (folder / "submitted/dee" / NOTEBOOK).write_text('{"cells": [', "utf-8")
    return folder


@pytest.fixture
def here(course, monkeypatch):
    """The same course, for commands of this process."""
    monkeypatch.chdir(course)
    for key, value in environment(course).items():
        monkeypatch.setenv(key, value)
    monkeypatch.delenv("POSENC_DB", raising=False)
    return course


def scores(folder):
    """Return all that the gradebook holds of grades, without its random ids and times."""
    with sqlite3.connect(folder / "gradebook.db") as connection:
        query = """
            select submitted_assignment.student_id, base_cell.name, grade.auto_score,
                grade.needs_manual_grade
            from grade
            join base_cell on base_cell.id = grade.cell_id
            join submitted_notebook on submitted_notebook.id = grade.notebook_id
            join submitted_assignment
                on submitted_assignment.id = submitted_notebook.assignment_id
            order by 1, 2
        """
        return connection.execute(query).fetchall()


def graded(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted((folder / "autograded").rglob("*"))
        if path.is_file()
    }


def counted(said):
    """Return the table of states, and how many were handed in."""
    lines = said.splitlines()
    handed_in = int(re.match(rf"{NAME}: (\d+) handed in", lines[0])[1])
    return handed_in, {
        found[1]: int(found[2])
        for line in lines
        if (found := re.fullmatch(r"  ([a-z ]+?) +(\d+)", line))
    }


@pytest.mark.slow
def test_serial_and_parallel_give_the_same_bytes(course, tmp_path):
    other = shutil.copytree(course, tmp_path / "other")
    for folder, jobs in ((course, "1"), (other, "3")):
        done = grade(folder, NAME, "--jobs", jobs)
        assert done.returncode == 1, done.stderr
        assert "Traceback" not in done.stderr
        export = run(folder, "nbgrader", "export")
        assert export.returncode == 0, export.stderr
    assert len(graded(course)) == len(STUDENTS)
    assert graded(course) == graded(other)
    assert scores(course) == scores(other)
    assert (course / "grades.csv").read_bytes() == (other / "grades.csv").read_bytes()


def test_the_table_counts_all_and_names_those_to_look_at(here, capsys):
    assert cli.main(["grade", NAME, "--jobs", "2"]) == 1
    said = capsys.readouterr()
    assert counted(said.out) == (4, {"graded": 2, "blank": 1, "ungradable": 1})
    assert re.search(rf"^  dee: ungradable; {NAME}.ipynb ", said.out, re.MULTILINE)
    assert f"nbgrader generate_feedback {NAME}" in said.out
    assert "graded 4 of 4" in said.err
    before = graded(here)

    # Those that were graded stay in the table, and are not graded again.
    assert cli.main(["grade", NAME]) == 1
    said = capsys.readouterr()
    assert said.out.startswith(f"{NAME}: 4 handed in, 4 of them graded before\n")
    assert counted(said.out)[1] == {"graded": 2, "blank": 1, "ungradable": 1}
    assert said.err == ""
    assert graded(here) == before

    shutil.copy(here / "submitted/ada" / NOTEBOOK, here / "submitted/dee" / NOTEBOOK)
    assert cli.main(["grade", NAME, "--student", "dee", "--force"]) == 0
    assert counted(capsys.readouterr().out) == (1, {"graded": 1})


def test_notes_are_counted_or_shown(here, capsys):
    for student in ("cyd", "dee"):
        shutil.rmtree(here / "submitted" / student)
    (here / "submitted/bob" / NOTEBOOK).rename(here / f"submitted/bob/{NAME}/{NAME} (1).ipynb")
    assert cli.main(["grade", NAME]) == 0
    said = capsys.readouterr().out
    assert "notes: 1, which --verbose shows" in said
    assert f"{NAME} (1)" not in said
    assert cli.main(["grade", NAME, "--verbose"]) == 0
    assert re.search(rf"^  bob: .*{NAME} \(1\)", capsys.readouterr().out, re.MULTILINE)


def test_a_time_that_cannot_be_read_stops_nobody(here, capsys):
    for student, text in (("ada", b"yesterday"), ("bob", b"\xff\xfe"), ("cyd", b"")):
        (here / "submitted" / student / NAME / "timestamp.txt").write_bytes(text)
    for _ in range(2):
        assert cli.main(["grade", NAME]) == 1
        assert counted(capsys.readouterr().out)[1] == {"graded": 2, "blank": 1, "ungradable": 1}


def test_without_the_course_seed_nothing_is_graded_but_by_wish(here, monkeypatch, capsys):
    for seed in ("", PRACTICE_SEED, None):
        if seed is None:
            monkeypatch.delenv("POSENC_SEED")
        else:
            monkeypatch.setenv("POSENC_SEED", seed)
        assert cli.main(["grade", NAME]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert "POSENC_SEED is not set" in line
        assert "--demo-seed" in line
    assert not (here / "autograded").exists()

    assert cli.main(["grade", NAME, "--student", "ada", "--demo-seed"]) == 0
    assert "practice cases, which students can see" in capsys.readouterr().err
    assert "POSENC_SEED" not in os.environ
    export = run(here, "nbgrader", "export")
    assert "1 of 1 rows come from the practice cases" in export.stderr
    assert ",graded,practice," in (here / "grades.csv").read_text("utf-8")


@pytest.mark.parametrize(
    ("change", "words", "status", "sentence"),
    [
        (None, ["02-sinus"], 2, "no assignment is called '02-sinus'; there are 00-start, "),
        (None, [NAME, "--student", "eve"], 1, f"eve has handed in nothing for {NAME}"),
        (None, ["02-sinusoidal"], 1, "run: nbgrader generate_assignment 02-sinusoidal"),
        ("submitted", [NAME], 1, "there is nothing to grade in "),
        ("gradebook.db", [NAME], 1, f"run: nbgrader generate_assignment {NAME}"),
        ("nbgrader_config.py", [NAME], 1, "has no nbgrader_config.py"),
        ("autograded", [NAME], 1, "autograded"),
        ("exercises", [NAME], 1, f"students' version of {NAME}.ipynb can't be read (NotJSONError)"),
    ],
)
def test_what_stops_it_is_one_sentence(here, capsys, change, words, status, sentence):
    if change == "autograded":
        (here / change).write_text("in the way", "utf-8")
    elif change == "submitted":
        shutil.rmtree(here / change)
    elif change == "exercises":
        (here / change / NOTEBOOK).write_text("{", "utf-8")
    elif change:
        (here / change).unlink()
    assert cli.main(["grade", *words]) == status
    said = capsys.readouterr()
    assert said.out == ""
    line = said.err.splitlines()[-1]
    assert line.startswith("posenc: ")
    assert sentence in line


def test_the_start_leaves_out_what_grading_does_not_use():
    """What is left out can be imported later all the same."""
    source = """
import sys
from posenc.grading import cli
with cli._importing_less():
    from posenc.grading import grade_command
from posenc.grading import record
loaded = {name.partition(".")[0] for name in sys.modules}
assert not loaded & {"setuptools", "pkg_resources", "urllib3", "jupyter_server"}, loaded
from importlib.util import find_spec
assert find_spec("requests").origin
from setuptools.archive_util import unpack_archive
import requests.exceptions
assert callable(unpack_archive) and callable(requests.get)
"""
    words = [sys.executable, "-c", source]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    assert ended.returncode == 0, ended.stderr


def test_a_locked_gradebook_is_one_sentence(here, capsys):
    with sqlite3.connect(here / "gradebook.db") as connection:
        connection.execute("begin exclusive")
        assert cli.main(["grade", NAME, "--student", "ada"]) == 1
        connection.rollback()
    line = capsys.readouterr().err.splitlines()[-1]
    assert "the gradebook can't be used (database is locked)" in line
    assert cli.main(["grade", NAME, "--student", "ada"]) == 0


def test_a_configuration_that_is_no_python_is_one_sentence(here, capsys):
    with (here / "nbgrader_config.py").open("a", encoding="utf-8") as file:
        file.write("\nc.Autograde = (\n")
    assert cli.main(["grade", NAME]) == 1
    assert "nbgrader_config.py can't be read (SyntaxError" in capsys.readouterr().err


def test_a_missing_nbgrader_is_one_sentence(here, monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "posenc.grading.grade_command", raising=False)
    monkeypatch.delattr("posenc.grading.grade_command", raising=False)
    monkeypatch.setitem(sys.modules, "nbgrader", None)
    monkeypatch.setitem(sys.modules, "nbgrader.coursedir", None)
    assert cli.main(["grade", NAME]) == 1
    assert 'nbgrader is not installed; run: pip install "posenc[class]"' in capsys.readouterr().err


@pytest.mark.skipif(not sandbox.can_isolate(), reason="nothing is bound without bubblewrap")
def test_what_notebooks_import_and_is_missing_is_one_sentence(here, monkeypatch, capsys):
    found = sandbox.find_spec
    monkeypatch.setattr(sandbox, "find_spec", lambda n: None if n == "matplotlib" else found(n))
    assert cli.main(["grade", NAME]) == 1
    said = capsys.readouterr().err
    assert said == 'posenc: matplotlib is not installed; run: pip install "posenc[class]"\n'


@pytest.mark.parametrize("words", [["--jobs", "0"], ["--jobs", "two"], ["--jobs"], []])
def test_wrong_words(words, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["grade", *([NAME] if words else []), *words])
    assert ended.value.code == 2
    assert "usage: posenc grade" in capsys.readouterr().err


def test_where_nothing_shuts_student_code_in_it_is_said_once(here, monkeypatch, capsys):
    monkeypatch.setattr(sandbox, "can_isolate", lambda: False)
    assert cli.main(["grade", NAME, "--student", "ada"]) == 0
    assert capsys.readouterr().err.count(sandbox.WEAKER) == 1


def parents():
    """Return every process that has not ended, with its parent."""
    found = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent = place.read_text().rsplit(")", 1)[1].split()[:2]
            if state != "Z":
                found[int(place.parent.name)] = int(parent)
    return found


def started_by(process):
    """Return the processes that a command has started, sandboxes among them."""
    found, grown = {process.pid}, True
    while grown:
        more = {child for child, parent in parents().items() if parent in found}
        grown = bool(more - found)
        found |= more
    return found


def left(started):
    """Return which of these there still are, after some time to end."""
    until = time.monotonic() + 10
    while (alive := started & parents().keys()) and time.monotonic() < until:
        time.sleep(0.05)
    return alive


def waits(path):
    """Let a notebook wait as soon as it runs."""
    notebook = nbformat.read(path, as_version=4)
    answer = next(cell for cell in notebook.cells if is_solution(cell))
    answer.source = f"import time\n\ntime.sleep(50)\n{answer.source}"
    nbformat.write(notebook, path)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_ctrl_c_keeps_what_is_done_and_leaves_no_process(course):
    waits(course / "submitted/bob" / NOTEBOOK)
    process = subprocess.Popen(
        [sys.executable, "-m", "posenc.grading.cli", "grade", NAME, "--jobs", "1"],
        cwd=course,
        env=environment(course),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    )
    first = course / "autograded/ada" / NOTEBOOK
    while not first.is_file() and process.poll() is None:
        time.sleep(0.01)
    started = started_by(process)
    assert len(started) > 4
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.splitlines()[-1] == f"posenc: stopped; 1 of 4 are graded and kept, {GOES_ON}"
    assert (out, left(started)) == ("", set())
    assert "Traceback" not in err
    assert list(graded(course)) == [f"autograded/ada/{NOTEBOOK}"]


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_where_it_is_killed_its_processes_end_too(course):
    waits(course / "submitted/ada" / NOTEBOOK)
    process = subprocess.Popen(
        [sys.executable, "-m", "posenc.grading.cli", "grade", NAME, "--jobs", "2"],
        cwd=course,
        env=environment(course),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    until = time.monotonic() + 60
    while len(started_by(process)) < 9 and time.monotonic() < until:
        time.sleep(0.1)
    started = started_by(process)
    assert len(started) >= 9
    process.kill()
    process.wait()
    assert left(started) == set()


def test_on_a_terminal_a_bar_says_how_far_it_is(course):
    pty, termios = pytest.importorskip("pty"), pytest.importorskip("termios")
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    with subprocess.Popen(
        [sys.executable, "-m", "posenc.grading.cli", "grade", NAME],
        cwd=course,
        env=environment(course),
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 1000)
            except OSError:
                break
            if not part:
                break
            shown += part
    os.close(ours)
    assert process.returncode == 1
    assert re.search(rb"\d+%\|.*\| [1-4]/4 \[", shown)
    assert b"graded 4 of 4" not in shown


def test_help_says_what_it_does(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["grade", "--help"])
    assert ended.value.code == 0
    said = " ".join(capsys.readouterr().out.split())
    for word in ("ASSIGNMENT", "--student", "--jobs N", "--force", "--demo-seed", "gradebook"):
        assert word in said


def test_a_late_penalty_is_that_of_the_grade_as_it_is_now(course):
    config = course / "nbgrader_config.py"
    method = '\nc.LateSubmissionPlugin.penalty_method = "zero"\n'
    config.write_text(config.read_text("utf-8") + method, "utf-8")
    with sqlite3.connect(course / "gradebook.db") as connection:
        connection.execute("update assignment set duedate = '2020-01-12 00:00:00.000000'")
    work = course / "submitted/ada" / NAME
    penalties = []
    for day, handed_in in enumerate((course / "exercises", course / "_build/source"), start=1):
        shutil.copy(handed_in / NOTEBOOK, work)
        (work / "timestamp.txt").write_text(f"2020-01-1{day} 12:00:00 UTC", "utf-8")
        done = grade(course, NAME, "--student", "ada")
        assert done.returncode == 0, done.stderr
        with sqlite3.connect(course / "gradebook.db") as connection:
            query = "select late_submission_penalty from submitted_notebook"
            penalties += connection.execute(query).fetchall()
    most = sum(score for _, _, score, _ in scores(course))
    assert penalties == [(None,), (most,)]
    assert most > 0


@pytest.mark.parametrize("jobs", ["0", "-1"])
def test_fewer_than_one_at_a_time_is_one(course, jobs):
    words = (NAME, "--student=ada", f"--SubmissionExporter.jobs={jobs}")
    done = run(course, "nbgrader", "autograde", *words)
    assert done.returncode == 0, done.stderr
    assert scores(course)
