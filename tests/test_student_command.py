"""`posenc check` and `posenc reset`, on notebooks as students leave them."""

import asyncio
import copy
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell

from posenc.exercises import ASSIGNMENTS, EXERCISES, KEYED
from posenc.grading import assignments, cli, demo, student

ROOT = Path(__file__).parents[1]
NAME = demo.ASSIGNMENT
FILE = f"{NAME}.ipynb"
CARRIED = ROOT / "posenc" / "exercises" / student.NOTEBOOKS
HANDED = student.Handed.of(NAME)
TASKS = HANDED.tasks
FIRST, SECOND, THIRD, FOURTH = TASKS[:4]


def given():
    """The notebook as it was handed out."""
    return nbformat.read(CARRIED / FILE, as_version=4)


def solved():
    """The notebook with all answers right."""
    source = assignments.source_notebook(ROOT, NAME)
    return demo.answered(given(), source, demo.Student("complete", ""))


def place(notebook, part):
    return next(i for i, cell in enumerate(notebook.cells) if student._grade_id(cell) == part)


def cell_of(notebook, part):
    return notebook.cells[place(notebook, part)]


def delete(notebook, *parts):
    for part in parts:
        del notebook.cells[place(notebook, part)]


def duplicate(notebook, part, name=None):
    cell = copy.deepcopy(cell_of(notebook, part))
    cell.id = f"copy-of-{part}"
    if name:
        cell.metadata.nbgrader.grade_id = name
    notebook.cells.insert(place(notebook, part), cell)


def retype(notebook, part):
    cell = cell_of(notebook, part)
    cell.cell_type = "markdown"
    del cell["outputs"], cell["execution_count"]


def add(notebook, source, before):
    notebook.cells.insert(place(notebook, before), new_code_cell(source))


def save(notebook, folder, name=FILE):
    path = folder / name
    nbformat.write(notebook, path)
    return path


def rows(lines):
    """What the table says of each task: points, most points, and in words."""
    found = (re.match(r"  (\w+) +([\d.]+) of ([\d.]+)(?:   (.*))?$", line) for line in lines)
    return {
        row[1]: (float(row[2]), float(row[3]), row[4] or "")
        for row in found
        if row and row[1] in TASKS
    }


def damage(notebook):
    """Do to a notebook what students do, and more."""
    add(notebook, "import nowhere", FIRST)
    add(notebook, "name = input('Your name: ')", FIRST)
    add(notebook, "%pip --version", FIRST)
    delete(notebook, f"check-{FIRST}")
    duplicate(notebook, FIRST)
    for part in (SECOND, f"check-{SECOND}", f"grade-{SECOND}"):
        del cell_of(notebook, part).metadata["nbgrader"]
    retype(notebook, THIRD)
    delete(notebook, f"grade-{THIRD}")
    delete(notebook, FOURTH)
    duplicate(notebook, f"check-{FOURTH}", "check-rotation_matrix")
    notebook.cells.append(new_code_cell("after = 'the tasks' / 2"))


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    """What the command says of a damaged notebook with a wrong name, and where that is."""
    notebook = solved()
    damage(notebook)
    path = save(notebook, tmp_path_factory.mktemp("damaged"), f"{NAME} (1).ipynb")
    return path, *student.check(path)


@pytest.mark.parametrize(
    "fault",
    [
        f"the file must be called {FILE}: rename it",
        f"the check of `{FIRST}` was deleted: posenc reset FILE {FIRST} --keep-answer puts it back",
        f"the cell of `{FIRST}` is there more than once, and only the last that was changed "
        f"counts: posenc reset FILE {FIRST} --keep-answer makes the other copies plain cells",
        f"the cell, the check and the graded cell of `{SECOND}` lost their nbgrader metadata: "
        f"posenc reset FILE {SECOND} --keep-answer repairs them",
        f"the cell of `{THIRD}` is no longer code: "
        f"posenc reset FILE {THIRD} --keep-answer puts it right",
        f"the graded cell of `{THIRD}` was deleted: "
        f"posenc reset FILE {THIRD} --keep-answer puts it back",
        f"the cell of `{FOURTH}` was deleted: posenc reset FILE {FOURTH} puts it back",
        "a cell of another notebook was copied into this one (`check-rotation_matrix`): "
        "posenc reset FILE rotation_matrix makes it a plain cell",
        "cell 5 (name = input('Your name: ')) calls input(), and nobody answers while grading: "
        "write the value into the code",
        "cell 4 (import nowhere) raises ModuleNotFoundError: No module named 'nowhere'",
    ],
)
def test_each_fault_is_one_sentence_with_what_helps(damaged, fault):
    path, lines, ready = damaged
    assert not ready
    assert "    " + fault.replace("FILE", f'"{path}"') in lines


def test_nothing_else_is_a_fault_and_the_points_are_those_of_what_is_there(damaged):
    _, lines, _ = damaged
    faults = lines[lines.index("  In the way of grading:") + 1 :]
    assert len(faults) == 10
    for task, (points, most, said) in rows(lines).items():
        assert most == EXERCISES[task].points
        assert (points, said) == ((0, "still blank") if task == FOURTH else (most, ""))
    most = sum(EXERCISES[task].points for task in TASKS)
    earned = most - EXERCISES[FOURTH].points
    assert f"  {earned:g} of {most:g} visible points; 1 task still blank" in lines


def test_a_sound_notebook_with_a_wrong_and_a_blank_answer_can_be_graded(
    tmp_path, monkeypatch, capfd
):
    notebook = solved()
    cell_of(notebook, SECOND).source += f"\n\n{SECOND} = lambda *_, **__: 'gr\u00fcn'"
    cell_of(notebook, THIRD).source = HANDED.parts[THIRD].source
    # Nothing of this counts: the kernel is this Python, and locked cells are the course's.
    notebook.metadata.kernelspec = {"name": "gone", "display_name": "Gone", "language": "R"}
    cell_of(notebook, f"grade-{FIRST}").source = "raise SystemExit"
    cell_of(notebook, "setup").source = "check = grade = print"
    (tmp_path / "beside.txt").write_text("here", "utf-8")
    add(
        notebook,
        "import os, pathlib\n"
        "assert 'POSENC_SEED' not in os.environ and pathlib.Path('beside.txt').is_file()\n"
        "assert not get_ipython().history_manager.hist_file.endswith('.sqlite')",
        FIRST,
    )
    path = save(notebook, tmp_path)
    before = path.read_bytes()
    os.utime(path, (1.8e9, 1.8e9))
    monkeypatch.setenv("POSENC_SEED", "s")
    monkeypatch.chdir(tmp_path)

    assert cli.main(["check", FILE]) == 0
    said, errors = capfd.readouterr()
    assert not errors
    assert said.isascii()
    assert path.read_bytes() == before
    assert sorted(item.name for item in tmp_path.iterdir()) == [FILE, "beside.txt"]

    lines = said.splitlines()
    saved = time.strftime("%Y-%m-%d %H:%M", time.localtime(1.8e9))
    assert lines[0] == f"{FILE}, saved {saved}"
    earns = {task: EXERCISES[task].points for task in TASKS}
    right = {task: (points, points, "") for task, points in earns.items()}
    assert rows(lines) == right | {
        SECOND: (0, earns[SECOND], "wrong"),
        THIRD: (0, earns[THIRD], "still blank"),
    }
    second = next(i for i, line in enumerate(lines) if line.startswith(f"  {SECOND} "))
    assert lines[second + 1].startswith(f"      {SECOND}(")
    # Why it is wrong, and no more of the report: that is the next task.
    assert lines[second + 2].startswith("      expected ")
    assert lines[second + 3].startswith(f"  {THIRD} ")
    most = sum(EXERCISES[task].points for task in TASKS)
    earned = most - EXERCISES[SECOND].points - EXERCISES[THIRD].points
    assert said.splitlines()[-3:] == [
        f"  {earned:g} of {most:g} visible points; 1 task still blank",
        "  Nothing is in the way of grading.",
        f"  posenc check -v {FILE} shows the whole reports.",
    ]


def test_a_reason_is_cut_at_the_width_of_the_terminal_and_whole_with_verbose(monkeypatch):
    reason = "the reason " * 20 + "ends"
    outcome = student.Outcome(0, 2, ["f(1) is wrong: 0 of 2 points.", reason, "Read."], "wrong")
    monkeypatch.setenv("COLUMNS", "60")
    _, head, cut = student._table({"f": outcome}, set(), verbose=False)
    assert head == f"      {outcome.lines[0]}"
    assert len(cut) <= 60
    assert re.fullmatch(r"      the reason the reason .*\.\.\.", cut)
    assert student._table({"f": outcome}, set(), verbose=True)[1:] == [
        f"      {line}" for line in outcome.lines
    ]


def test_a_function_that_is_not_there_is_explained_by_what_its_cell_did(tmp_path):
    notebook = solved()
    for part, source in {
        FIRST: "while True:\n    pass",
        SECOND: f"def {SECOND}(:",
        THIRD: "def another():\n    pass",
    }.items():
        cell_of(notebook, part).source = source
    answer = notebook.cells.pop(place(notebook, FOURTH))
    notebook.cells.insert(place(notebook, f"grade-{FOURTH}") + 1, answer)
    path = save(notebook, tmp_path)
    lines, ready = student.check(path, timeout=5)
    assert not ready
    said = rows(lines)
    for task, why in {
        FIRST: "its cell did not end and was interrupted after 5 seconds: make it end sooner",
        SECOND: "its cell raises SyntaxError: invalid syntax (line 1)",
        THIRD: "no cell above its graded cell defines it",
    }.items():
        assert said[task] == (0, EXERCISES[task].points, "not defined")
        assert f"      {task}: {why}" in lines
    # Grading puts it back in its place, as this does.
    assert said[FOURTH] == (EXERCISES[FOURTH].points, EXERCISES[FOURTH].points, "")
    faults = lines[lines.index("  In the way of grading:") + 1 :]
    assert len(faults) == 3
    assert not any("whole reports" in line for line in lines)


@pytest.mark.parametrize("where", ["deleted", "last"])
def test_a_first_cell_that_is_gone_or_moved_is_one_fault(tmp_path, where):
    notebook = solved()
    cell = notebook.cells.pop(place(notebook, student.SETUP))
    notebook.cells += [cell] if where == "last" else []
    lines, ready = student.check(save(notebook, tmp_path))
    assert not ready
    said = "\n".join(lines)
    assert "    the first code cell " in said
    assert "is not the course's" not in said


def test_a_name_of_the_course_that_means_something_else_is_said(tmp_path):
    notebook = solved()
    add(notebook, "grade = 5", f"check-{FIRST}")
    lines, ready = student.check(save(notebook, tmp_path), seed="s")
    assert not ready
    assert (
        f"    where the graded cell of `{FIRST}` runs, `check` or `grade` is not the course's: "
        "run the first cell, and use other names for your own"
    ) in lines
    assert lines[0].endswith("; cases drawn from the seed 's'")


def test_a_task_that_only_the_course_can_judge_is_answered_or_not(tmp_path):
    (name,) = KEYED
    task = KEYED[name]
    handed = nbformat.read(CARRIED / f"{task.assignment}.ipynb", as_version=4)
    words = dict.fromkeys(task.labels, task.words[0])
    cell_of(handed, name).source = f"def {name}():\n    return {words}"
    path, told = save(handed, tmp_path, f"{task.assignment}.ipynb"), []
    lines, ready = student.check(path, progress=told.append)
    assert ready
    tasks = student.Handed.of(task.assignment).tasks
    assert told == [f"{number} of {len(tasks)}: {one}" for number, one in enumerate(tasks, 1)]
    (row,) = (line for line in lines if line.startswith(f"  {name} "))
    assert re.fullmatch(rf"  {name} +\? of {task.points:g}   answered", row)
    others = [other for other in tasks if other != name]
    most = sum(EXERCISES[other].points for other in others)
    assert lines[-2] == (
        f"  0 of {most:g} visible points, without what only the course's key can judge; "
        f"{len(others)} task{'s' if others[1:] else ''} still blank"
    )


@pytest.mark.parametrize("command", ["check", "reset"])
def test_files_that_cannot_be_read_are_one_sentence(tmp_path, command, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = [TASKS[0]] if command == "reset" else []
    (tmp_path / "folder").mkdir()
    (tmp_path / "broken.ipynb").write_text('{"cells": [', "utf-8")
    (tmp_path / "empty.ipynb").write_text("{}", "utf-8")
    save(nbformat.v4.new_notebook(cells=[new_code_cell("1 + 1")]), tmp_path, "another.ipynb")
    for name, said in {
        FILE: f"no file is called {FILE}; there are another.ipynb, broken.ipynb, empty.ipynb",
        "folder/x.ipynb": "x.ipynb; no notebook is in that folder",
        "folder": "folder is a folder; name the notebook in it",
        "broken.ipynb": "broken.ipynb is not a notebook that can be read (NotJSONError)",
        "empty.ipynb": "empty.ipynb is not a notebook that can be read",
        "another.ipynb": "holds no task of this course; the notebooks are 00-start.ipynb, ",
    }.items():
        assert cli.main([command, name, *words]) == 1
        error = capsys.readouterr().err
        assert error.startswith("posenc: ")
        assert said in error
        assert len(error.splitlines()) == 1


@pytest.mark.parametrize(
    ("source", "asks"),
    [
        ("x = input()", True),
        ("%time x = 1\nx = float(input('x'))", True),
        ("x = (input('x')", True),
        ("# input() is not for here", False),
        ("text = 'input()'\nmy.input()", False),
        ("def f(input):\n    return input + 1", False),
    ],
)
def test_what_asks_for_input(source, asks):
    assert student._asks(source) == asks


def test_help_begins_with_what_students_need(capsys):
    for words in ([], ["check"], ["reset"]):
        with pytest.raises(SystemExit) as stopped:
            cli.main([*words, "--help"])
        assert stopped.value.code == 0
        said = capsys.readouterr().out
        assert said.startswith(f"usage: {' '.join(['posenc', *words])}")
        if not words:
            commands = re.findall(r"^    (\w+)  ", said, re.MULTILINE)
            assert commands[:2] == ["check", "reset"]
            assert "For students: " in said
            assert "For those who run the course: " in " ".join(said.split())


def test_wrong_words_are_not_understood(tmp_path, capsys):
    path = str(save(given(), tmp_path))
    for words, said in [
        (["check", path, "--timeout", "0"], "expected whole seconds, at least 1, got '0'"),
        (["reset", path], f"name a task of {FILE}: {FIRST}, "),
        (["reset", path, f"{FIRST}s"], f"{FILE} has no task '{FIRST}s'; did you mean {FIRST}?"),
        (["reset", path, "zzz"], f"{FILE} has no task 'zzz'; there are {FIRST}, {SECOND}, "),
    ]:
        try:
            status = cli.main(words)
        except SystemExit as stopped:
            status = stopped.code
        assert status == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["nbclient", "ipykernel", "nbformat"])
def test_a_missing_package_is_one_sentence(tmp_path, missing):
    code = (
        f"import sys; sys.modules['nbgrader'] = None; sys.modules[{missing!r}] = None\n"
        "from posenc.grading.cli import main\n"
        f"sys.exit(main(['check', {str(save(given(), tmp_path))!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert (
        done.stderr == f"posenc: {missing} is not installed; run: pip install nbclient ipykernel\n"
    )


def test_neither_command_needs_what_instructors_install():
    code = (
        "import sys; from posenc.grading import student; "
        "heavy = {'jupytext', 'nbgrader', 'nbconvert', 'yaml', 'matplotlib', 'sqlalchemy'}; "
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_the_package_carries_the_notebooks_that_are_handed_out(name):
    handed = ROOT / assignments.RELEASE / name / f"{name}.ipynb"
    assert (CARRIED / f"{name}.ipynb").read_bytes() == handed.read_bytes(), "run `posenc exercises`"
    parts = student.Handed.of(name)
    assert parts.tasks
    assert set(parts.parts) == {"setup"}.union(*map(student.parts_of, parts.tasks))


def test_reset_restores_the_stub_and_keeps_the_answer_as_text(tmp_path, capsys):
    notebook = solved()
    old = cell_of(notebook, SECOND).source
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [nbformat.v4.new_output("stream", text="some\noutput\n")]
    notebook.metadata["mine"] = {"a": ["\u00fc", 1]}
    path = save(notebook, tmp_path)
    path.chmod(0o600)
    assert cli.main(["reset", str(path), SECOND]) == 0
    said = capsys.readouterr().out
    assert f"`{SECOND}` is as it was handed out; your old cell is below it" in said
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]

    after = nbformat.read(path, as_version=4)
    nbformat.validate(after)
    index = place(notebook, SECOND)
    kept = after.cells.pop(index + 1)
    assert kept.cell_type == "raw"
    head, empty, text = kept.source.split("\n", 2)
    assert re.fullmatch(
        rf"Your answer to {SECOND} until \d{{4}}-\d\d-\d\d \d\d:\d\d, kept by posenc reset\. "
        r"It is text and does not run\.",
        head,
    )
    assert (empty, text) == ("", old)
    assert after.cells[index].source == HANDED.parts[SECOND].source
    assert after.cells[index].outputs == []
    notebook.cells[index] = after.cells[index]
    assert after == notebook
    assert json.loads(path.read_text("utf-8"))["metadata"]["mine"] == {"a": ["\u00fc", 1]}

    once = path.read_bytes()
    assert cli.main(["reset", str(path), SECOND]) == 0
    assert "are as they should be; nothing was changed" in capsys.readouterr().out
    assert path.read_bytes() == once


@pytest.mark.parametrize("keep", [True, False])
def test_reset_repairs_each_task_of_a_damaged_notebook(tmp_path, keep):
    notebook = solved()
    answers = {task: cell_of(notebook, task).source for task in TASKS}
    damage(notebook)
    delete(notebook, "setup")
    path = save(notebook, tmp_path)
    for task in ("setup", *TASKS, "rotation_matrix"):
        student.reset(path, task, keep_answer=keep)
    repaired = nbformat.read(path, as_version=4)
    nbformat.validate(repaired)
    assert not student._faults(path, repaired.cells, HANDED)
    assert list(filter(None, map(student._grade_id, repaired.cells))) == list(HANDED.parts)
    for task in TASKS:
        index = place(repaired, task)
        pristine = HANDED.parts[task].source
        if keep and task != FOURTH:
            assert repaired.cells[index].source == answers[task]
        else:
            assert repaired.cells[index].source == pristine
            assert (repaired.cells[index + 1].cell_type == "raw") == (task != FOURTH)
    for part, pristine in HANDED.parts.items():
        assert cell_of(repaired, part).metadata == pristine.metadata
    # What was no cell of the task is where it was.
    texts = [cell.source for cell in repaired.cells]
    assert texts.index("import nowhere") < place(repaired, FIRST)
    assert texts[-1] == "after = 'the tasks' / 2"
    assert sum(text == answers[FIRST] for text in texts) == 1 + keep


def test_reset_puts_a_whole_task_back_between_its_neighbours_whatever_is_left(tmp_path):
    notebook = given()
    notebook.nbformat_minor = 4
    for cell in notebook.cells:
        del cell["id"]
    delete(notebook, *student.parts_of(SECOND))
    path = save(notebook, tmp_path)
    student.reset(path, SECOND)
    after = nbformat.read(path, as_version=4)
    nbformat.validate(after)
    expected = given()
    assert [cell.source for cell in after.cells] == [cell.source for cell in expected.cells]

    only = nbformat.v4.new_notebook(cells=[cell_of(given(), f"grade-{FOURTH}")])
    path = save(only, tmp_path, FILE)
    for task in (SECOND, FOURTH, "setup"):
        student.reset(path, task)
    after = nbformat.read(path, as_version=4)
    assert [student._grade_id(cell) for cell in after.cells] == [
        "setup",
        *student.parts_of(SECOND),
        *student.parts_of(FOURTH),
    ]


def test_a_file_that_cannot_be_written_is_left_alone(tmp_path, monkeypatch):
    path = save(solved(), tmp_path)
    before = path.read_bytes()

    def full(*_):
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="disk full"):
        student.reset(path, FIRST)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
def test_a_cell_that_never_ends_or_ends_python_costs_its_own_task_alone(tmp_path):
    notebook = solved()
    # Interrupted after the function was defined, so nothing is lost.
    cell_of(notebook, FIRST).source += "\n\nwhile True:\n    pass"
    cell_of(notebook, SECOND).source += "\n\nimport os\nos._exit(0)"
    # Compiled code that no interrupt reaches: the cell's own task is lost.
    cell_of(notebook, THIRD).source += "\n\nsum(range(10**14))"
    cell_of(notebook, FOURTH).source = f"def {FOURTH}(*_, **__):\n    while True: pass"
    lines, ready = student.check(save(notebook, tmp_path), timeout=20)
    assert not ready
    faults = "\n".join(lines[lines.index("  In the way of grading:") :])
    assert f"the cell of `{FIRST}` did not end and was interrupted after 20 seconds: " in faults
    assert f"the cell of `{SECOND}` ended Python: it may have run out of memory" in faults
    assert f"the cell of `{THIRD}` ran longer than 20 seconds and could not be" in faults
    said = rows(lines)
    assert said[FIRST] == (EXERCISES[FIRST].points, EXERCISES[FIRST].points, "")
    assert said[SECOND] == (0, EXERCISES[SECOND].points, "not defined")
    assert said[THIRD] == (0, EXERCISES[THIRD].points, "not defined")
    assert said[FOURTH] == (0, EXERCISES[FOURTH].points, "too slow")
    # Those after them run, even where they need what is lost.
    assert all(said[task][2] in ("", "crash") for task in TASKS[4:])


def test_it_can_be_called_where_an_event_loop_runs(tmp_path):
    path = save(given(), tmp_path)

    async def called():
        return student.check(path)

    # Not in this thread, where a test with a browser has left its loop.
    with ThreadPoolExecutor(1) as other:
        assert other.submit(asyncio.run, called()).result() == student.check(path)


# Ctrl-C while the kernel starts once left it behind, or made the command wait for ever.
@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends a signal to a group of processes")
@pytest.mark.parametrize("after", [0, 0.002, 0.01, 0.05, 0.3, 0.8, "running", "again"])
def test_ctrl_c_stops_at_once_and_leaves_no_kernel(tmp_path, after):
    notebook = given()
    if after == "again":
        # Its second run is the one that brings a new kernel to where the first one ended.
        once = "import os\nif os.path.exists('once'):\n"
        loop = "    open('pid', 'w').write(str(os.getpid()))\n    while True: pass\n"
        add(notebook, f"{once}{loop}open('once', 'w').close()", FIRST)
        add(notebook, "os._exit(1)", SECOND)
    else:
        loop = "import os\nopen('pid', 'w').write(str(os.getpid()))\nwhile True: pass"
        add(notebook, loop, FIRST)
    path = save(notebook, tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-m", "posenc.grading.cli", "check", path],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        start_new_session=True,
    )
    pid = tmp_path / "pid"
    deadline = time.monotonic() + 60
    if after in ("running", "again"):
        while not (pid.is_file() and pid.read_text("utf-8")):
            assert time.monotonic() < deadline
            time.sleep(0.1)
    else:
        while not _children(process.pid):
            assert time.monotonic() < deadline
            time.sleep(0.001)
        time.sleep(after)
    kernels = _children(process.pid)
    assert kernels
    os.killpg(process.pid, signal.SIGINT)
    try:
        said, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (said, process.returncode) == ("stopped\n", 130)
    assert not [kernel for kernel in kernels if Path(f"/proc/{kernel}").exists()]


def _children(pid):
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8").split()
    except OSError:
        pytest.skip("this system does not list processes in /proc")


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course folder with the assignment generated."""
    folder = tmp_path_factory.mktemp("graded") / "course"
    demo._make_course(ROOT, folder)
    nbgrader(folder, "generate_assignment", NAME)
    return folder


def nbgrader(folder, *words, **variables):
    environment = {
        key: value for key, value in os.environ.items() if key not in ("POSENC_DB", "POSENC_SEED")
    }
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *words],
        cwd=folder,
        env=environment | {"JUPYTER_CONFIG_DIR": str(folder / "none")} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout


def points_by_nbgrader(folder, who):
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}") as gradebook:
        grades = gradebook.find_submission_notebook(NAME, NAME, who).grades
        return {grade.name.removeprefix("grade-"): grade.auto_score for grade in grades}


def points_by_check(lines):
    return {task: points for task, (points, *_) in rows(lines).items()}


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["a seed of this test", None])
def test_points_are_those_of_nbgrader_and_an_autograded_notebook_can_be_replayed(course, seed):
    notebook = solved()
    # Half right: part of the points. A wrong base, and a later task that uses it.
    cell_of(notebook, FIRST).source = cell_of(notebook, FIRST).source.replace(
        "return base **", "return 10_000.0 **"
    )
    cell_of(notebook, THIRD).source = f"def {THIRD}(*_, **__):\n    return None"
    cell_of(notebook, f"grade-{FOURTH}").source = "100"
    duplicate(notebook, THIRD)
    retype(notebook, SECOND)
    add(notebook, "1 / 0", SECOND)
    who = "seeded" if seed else "practice"
    folder = course / "submitted" / who / NAME
    folder.mkdir(parents=True)
    path = save(notebook, folder)
    variables = {"POSENC_SEED": seed} if seed else {}
    nbgrader(course, "autograde", NAME, "--student", who, **variables)

    graded = points_by_nbgrader(course, who)
    assert set(graded) == set(TASKS)
    assert 0 < graded[FIRST] < EXERCISES[FIRST].points
    assert graded[THIRD] == 0
    lines, _ = student.check(path)
    assert points_by_check(lines) == graded
    lines, _ = student.check(path, seed=seed or "practice")
    assert points_by_check(lines) == graded
    assert any("graded points" in line for line in lines)

    autograded = course / "autograded" / who / NAME / FILE
    lines, _ = student.check(autograded)
    assert lines[0].endswith(f"cases drawn from the seed that it records, {seed or 'practice'!r}")
    assert points_by_check(lines) == graded
    shutil.rmtree(folder)


def test_an_answer_in_two_cells_is_said_and_is_one_as_in_grading(tmp_path):
    notebook = solved()
    cell = cell_of(notebook, FIRST)
    whole = cell.source
    cell.source, _, rest = whole.rpartition("\n")
    notebook.cells.insert(place(notebook, FIRST) + 1, new_code_cell(rest, metadata=cell.metadata))
    (said,) = student._faults(save(notebook, tmp_path), notebook.cells, HANDED)
    assert said.startswith(f"the cell of `{FIRST}` was split into 2, and grading joins them: ")
    cells = student._as_graded(notebook.cells, HANDED)
    assert [cell.source for cell in cells if student._grade_id(cell) == FIRST] == [whole]
    assert len(cells) == len(HANDED.cells)


def test_a_file_that_grading_alone_can_read_is_checked_and_said(tmp_path):
    text = json.dumps(solved(), ensure_ascii=False).replace("NumPy", "N\u00fcmPy")
    path = tmp_path / FILE
    for content, said in {
        text.encode("cp1252", "replace"): "was not in UTF-8, and was read as Windows-1252",
        text.replace('"nbformat": 4', '"nbformat": 9').encode(): "is in version 9 of the format",
        text.replace('"metadata": ', '"lost": ').encode(): "lacks what every notebook has",
    }.items():
        path.write_bytes(content)
        notebook, odd = student._read_as_graded(path)
        assert len(odd) == 1
        assert odd[0].startswith(said)
        assert student.handed_out(path, notebook).name == NAME
        cells = student._as_graded(notebook.cells, HANDED)
        answers = {student._grade_id(cell): cell.source for cell in cells}
        assert answers[FIRST].replace("N\u00fcmPy", "NumPy") == cell_of(solved(), FIRST).source
        # Nothing is written into such a file.
        with pytest.raises(assignments.CourseError, match="is not a notebook that can be read"):
            student.reset(path, FIRST)
        assert path.read_bytes() == content


@pytest.mark.parametrize("part", [student.SETUP, SECOND])
def test_a_cell_that_was_moved_below_those_that_need_it_is_said_and_moved_back(tmp_path, part):
    notebook = solved()
    in_order = list(filter(None, map(student._grade_id, notebook.cells)))
    cell = notebook.cells.pop(place(notebook, part))
    below = place(notebook, FIRST if part == student.SETUP else f"grade-{part}")
    notebook.cells.insert(below + 1, cell)
    path = save(notebook, tmp_path)
    said = student._faults(path, notebook.cells, HANDED)
    assert len(said) == 1
    assert "comes after a cell that needs it: posenc reset " in said[0]
    keep = part != student.SETUP
    assert said[0].endswith(f" {part}{' --keep-answer' if keep else ''} moves it back")

    told = student.reset(path, part, keep_answer=keep)
    name, answer = ("cell", "; your answer is as it was") if keep else ("first code cell", "")
    assert told[0] == f"`{part}`: moved the {name}{answer}"
    mended = nbformat.read(path, as_version=4)
    assert list(filter(None, map(student._grade_id, mended.cells))) == in_order
    assert student._faults(path, mended.cells, HANDED) == []
    assert cell_of(mended, SECOND).source == cell_of(solved(), SECOND).source
    # Without keeping the answer, the stub is back in its place, and the answer is kept below it.
    nbformat.write(notebook, path)
    student.reset(path, SECOND)
    mended = nbformat.read(path, as_version=4)
    assert "NotImplementedError" in cell_of(mended, SECOND).source
    assert place(mended, SECOND) < place(mended, f"check-{SECOND}")


def test_a_check_below_its_graded_cell_is_named_and_two_first_cells_are_no_disorder(tmp_path):
    notebook = solved()
    cell = notebook.cells.pop(place(notebook, f"check-{FIRST}"))
    notebook.cells.insert(place(notebook, f"grade-{FIRST}") + 1, cell)
    duplicate(notebook, student.SETUP)
    path = save(notebook, tmp_path)
    copied, moved = student._faults(path, notebook.cells, HANDED)
    assert copied.startswith("the first code cell is there more than once")
    assert moved.startswith(f"the check of `{FIRST}` comes after its graded cell: ")


def test_reset_says_what_it_changed(tmp_path):
    notebook = solved()
    answer = copy.deepcopy(cell_of(notebook, FIRST))
    answer.id = "pasted"
    notebook.cells.insert(place(notebook, f"grade-{FIRST}") + 1, answer)
    delete(notebook, f"check-{FIRST}")
    cell_of(notebook, f"grade-{FIRST}").source = "100"
    cell_of(notebook, student.SETUP).source = "grade = print"
    path = save(notebook, tmp_path)
    before = path.read_bytes()
    changed = "put back the check; restored the graded cell; made 1 copy a plain cell"
    told = student.reset(path, FIRST, keep_answer=True)
    assert told[0] == f"`{FIRST}`: moved the cell; {changed}; your answer is as it was"
    assert student.reset(path, student.SETUP)[0] == "`setup`: restored the first code cell"
    mended = nbformat.read(path, as_version=4)
    assert list(filter(None, map(student._grade_id, mended.cells))) == list(HANDED.parts)
    # The copy that does not count runs first.
    assert mended.cells[place(mended, FIRST) - 1].source == answer.source

    path.write_bytes(before)
    told = student.reset(path, FIRST)
    assert told[0].startswith(f"`{FIRST}` is as it was handed out; your old cell is below it")
    assert told[1] == f"`{FIRST}`: moved the cell; {changed}"
    assert "JupyterLab" in told[2]


def test_answers_that_have_the_marks_of_each_other_are_repaired_one_by_one(tmp_path):
    notebook = solved()
    one, other = cell_of(notebook, FIRST), cell_of(notebook, SECOND)
    wanted = {FIRST: one.source, SECOND: other.source}
    one.source, other.source = other.source, one.source
    path = save(notebook, tmp_path)
    said = student._faults(path, notebook.cells, HANDED)
    assert sum("lost its nbgrader metadata" in line for line in said) == 2
    assert said[2:] == [line for line in said if f"`{FIRST}` comes after a cell" in line]
    for task in (FIRST, SECOND):
        student.reset(path, task, keep_answer=True)
    repaired = nbformat.read(path, as_version=4)
    assert not student._faults(path, repaired.cells, HANDED)
    for task, source in wanted.items():
        assert cell_of(repaired, task).source == source


def test_an_answer_in_the_cell_of_another_counts_and_is_said(tmp_path):
    notebook = solved()
    cell_of(notebook, FIRST).source += f"\n\n\n{cell_of(notebook, SECOND).source}"
    delete(notebook, SECOND)
    path = save(notebook, tmp_path)
    lines, sound = student.check(path)
    assert not sound
    assert all((got, said) == (most, "") for got, most, said in rows(lines).values())
    assert set(rows(lines)) == set(TASKS)
    (said,) = student._faults(path, notebook.cells, HANDED)
    assert said.startswith(f"grading takes `{SECOND}` from the cell of `{FIRST}`")
    student.reset(path, SECOND)
    (said,) = student._faults(path, nbformat.read(path, as_version=4).cells, HANDED)
    assert said.endswith("write it into its own cell")
