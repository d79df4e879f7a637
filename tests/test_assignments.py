"""Solutions, the notebooks generated from them, and the `posenc exercises` command."""

import doctest
import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient
from numpydoc.docscrape import NumpyDocString

import posenc
from posenc import exercises
from posenc.exercises import ASSIGNMENTS, EXERCISES, KEYED, SECTIONS
from posenc.grading import assignments, check, cli

ROOT = Path(__file__).parents[1]
SITE = assignments.course_address(ROOT)
STUB = "# YOUR CODE HERE\n    raise NotImplementedError()"


def read(folder, name):
    return nbformat.read(ROOT / folder / name / f"{name}.ipynb", as_version=4)


def cells(name, folder=assignments.RELEASE):
    return {cell.id: cell for cell in read(folder, name).cells}


def functions(name, folder):
    """Define a notebook's functions here, with its graded cells left out."""
    namespace = {"np": np, "inverse_frequencies": posenc.inverse_frequencies}
    for exercise in exercises.for_assignment(name):
        exec(cells(name, folder)[exercise.name].source, namespace)
    return namespace


@pytest.fixture(scope="module", autouse=True)
def source():
    assignments.refresh_source(ROOT)


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A copy of the course, which is the current folder."""
    for name in ("_config.yml", "nbgrader_config.py", "solutions", "exercises"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, tmp_path / name)
    for kept in (tmp_path / "exercises").glob("*.ipynb"):
        kept.unlink()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def edit(path, old, new):
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def test_exercises_are_what_the_solutions_generate():
    generated = assignments.student_notebooks(ROOT, tuple(ASSIGNMENTS))
    for name, content in generated.items():
        committed = ROOT / assignments.RELEASE / name / f"{name}.ipynb"
        assert committed.read_bytes() == content, f"{name}: run `posenc exercises`"
        assert sorted(path.name for path in committed.parent.iterdir()) == [committed.name]


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_no_output_and_no_solution_is_handed_out(name):
    notebook = read(assignments.RELEASE, name)
    text = "\n".join(cell.source for cell in notebook.cells)
    solution = (ROOT / f"solutions/{name}/{name}.py").read_text("utf-8")
    hidden = re.findall(r"### BEGIN (SOLUTION|HIDDEN TESTS)\n(.*?)### END \1", solution, re.DOTALL)
    assert len(hidden) >= len(exercises.for_assignment(name))
    released = {line.strip() for line in text.splitlines()}
    for _, region in hidden:
        for line in filter(None, map(str.strip, region.splitlines())):
            assert line not in released
            assert len(line) < 20 or line not in text, line
    assert "SOLUTION" not in text
    assert "{{" not in text
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in notebook.cells)
    assert not re.search(r"https?://\S*\.whl", text)


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_each_task_has_its_facts_hints_stub_check_and_locked_grade(name):
    notebook = read(assignments.RELEASE, name)
    graded = exercises.for_assignment(name)
    ids = [cell.id for cell in notebook.cells]
    assert ids[:2] == ["markdown-0", "setup"]
    assert len(ids) == 2 + 4 * len(graded)
    total = sum(exercise.points for exercise in graded)
    assert f"{total:g} points" in notebook.cells[0].source
    assert ASSIGNMENTS[name].title in notebook.cells[0].source

    for number, exercise in enumerate(graded, 1):
        text, stub, check_cell, grade_cell = notebook.cells[4 * number - 2 : 4 * number + 2]
        assert text.source.startswith(f"## {number}. `{exercise.name}`\n")
        section = SECTIONS[exercise.section]
        assert (
            f"{exercise.points:g} point{'s' if exercise.points > 1 else ''}.** Difficulty "
            f"{exercise.difficulty} of 5, importance {exercise.importance} of 5, about "
            f"{exercise.minutes.replace('-', ' to ')} minutes. Read: [{section.title}]"
            f"({SITE}/{section.page}.html#{exercise.section})."
        ) in text.source
        assert text.source.count("<details><summary>Hint ") == 2
        assert text.source.count("</details>") == 2

        assert stub.id == stub.metadata.nbgrader.grade_id == exercise.name
        assert stub.metadata.nbgrader.solution
        assert stub.source.rstrip().endswith(STUB)
        assert check_cell.id == check_cell.metadata.nbgrader.grade_id == f"check-{exercise.name}"
        assert check_cell.source == f'check("{exercise.name}")'
        assert grade_cell.id == grade_cell.metadata.nbgrader.grade_id == f"grade-{exercise.name}"
        call = f'grade("{exercise.name}")'
        keyed = exercise.name in KEYED
        assert grade_cell.source == (f"report = {call}\nreport" if keyed else call)
        assert grade_cell.metadata.nbgrader.points == exercise.points
        for locked in (check_cell, grade_cell):
            assert locked.metadata.nbgrader.locked
            assert not locked.metadata.editable
            assert not locked.metadata.deletable


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_links_lead_to_pages_and_sections_of_the_book(name):
    text = "\n".join(cell.source for cell in read(assignments.RELEASE, name).cells)
    links = re.findall(rf"{re.escape(SITE)}/([\w-]+)\.html(?:#([\w-]+))?", text)
    assert {page for page, _ in links} >= set(ASSIGNMENTS[name].pages)
    for page, label in links:
        content = (ROOT / f"book/{page}.md").read_text("utf-8")
        assert not label or f"({label})=" in content


def test_the_first_cell_is_the_same_everywhere_and_installs_posenc_where_it_is_missing():
    sources = {cells(name)["setup"].source.split("\nimport numpy")[0] for name in ASSIGNMENTS}
    assert len(sources) == 1
    code = """
import sys, types
asked = []
def run_line_magic(magic, line):
    asked.append((magic, line))
    del sys.modules["posenc.grading"]
shell = types.SimpleNamespace(run_line_magic=run_line_magic)
sys.modules["IPython"] = types.SimpleNamespace(get_ipython=lambda: shell)
sys.modules["posenc.grading"] = None
"""
    wheel = f"posenc-{posenc.__version__}-py3-none-any.whl"
    code += f"{sources.pop()}\nassert asked == [('pip', 'install --quiet {SITE}/{wheel}')], asked\n"
    code += "assert check and grade"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
def test_stubs_agree_with_the_reference(exercise):
    stub = functions(exercise.assignment, assignments.RELEASE)[exercise.name]
    asked = inspect.signature(stub).parameters
    known = inspect.signature(exercise.reference).parameters
    for name, parameter in asked.items():
        assert (parameter.kind, parameter.default) == (known[name].kind, known[name].default)
    assert all(known[name].default is not inspect.Parameter.empty for name in known.keys() - asked)

    assert inspect.getdoc(stub).splitlines()[0] == exercise.summary
    document = NumpyDocString(inspect.getdoc(stub))
    reference = NumpyDocString(inspect.getdoc(exercise.reference))
    listed = [name for entry in document["Parameters"] for name in entry.name.split(", ")]
    assert listed == list(asked)
    types = {entry.name: entry.type for entry in reference["Parameters"]}
    for entry in document["Parameters"]:
        # A stub may ask for arrays alone where the reference takes lists, too.
        known_type = types[entry.name]
        assert entry.type in (known_type, known_type.replace("array_like", "ndarray"))
    assert all(entry.desc for entry in document["Parameters"] + document["Returns"])
    for entry, known_entry in zip(document["Returns"], reference["Returns"], strict=True):
        assert (entry.name, entry.type) == (known_entry.name, known_entry.type)
    raised = {entry.type for entry in document["Raises"]}
    assert raised <= {entry.type for entry in reference["Raises"]}
    assert not any(c.kind == "refusal" for c in exercise.criteria) or raised
    assert document["Examples"]


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
def test_stubs_earn_nothing_and_say_that_they_are_not_written(exercise):
    report = check(functions(exercise.assignment, assignments.RELEASE)[exercise.name])
    assert report.points == 0
    assert "not written yet" in report.text


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
def test_examples_of_the_stubs_hold_for_the_solutions(exercise):
    namespace = functions(exercise.assignment, assignments.SOURCE)
    (examples,) = doctest.DocTestFinder(recurse=False).find(
        namespace[exercise.name], exercise.name, globs=namespace
    )
    result = doctest.DocTestRunner().run(examples)
    assert result.attempted
    assert not result.failed


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_solutions_run_from_top_to_bottom_and_earn_full_marks(name, monkeypatch):
    monkeypatch.setenv("POSENC_SEED", "a seed of this test")
    notebook = read(assignments.SOURCE, name)
    NotebookClient(notebook, kernel_name="python3", timeout=60).execute()
    for cell in notebook.cells:
        outputs = cell.get("outputs", [])
        assert not any(output.output_type == "stream" for output in outputs), cell.source
        if cell.id.startswith("grade-"):
            points = cell.metadata.nbgrader.points
            assert [output.data["text/plain"] for output in outputs] == [f"{points:g}"]
        elif cell.id.startswith("check-"):
            name = cell.id.removeprefix("check-")
            points = exercises.get(name).points
            said = "6 of 6 answered" if name in KEYED else f"{points:g} of {points:g} point"
            assert outputs[0].data["text/plain"].startswith(f"{name}: {said}")


def test_a_notebook_that_is_missing_or_stale_is_written_and_check_says_which(course, capsys):
    assert cli.main(["exercises", "--check"]) == 0
    edit(course / "exercises/03-rotation/03-rotation.ipynb", "The rotation identity", "Old title")
    shutil.rmtree(course / "exercises/00-start")
    assert cli.main(["exercises", "--check"]) == 1
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    assert "00-start, 03-rotation" in error
    assert "run: posenc exercises" in error

    assert cli.main(["exercises"]) == 0
    said = capsys.readouterr().out
    assert "exercises/00-start/00-start.ipynb written" in said
    assert "exercises/03-rotation/03-rotation.ipynb written" in said
    assert "exercises/01-attention/01-attention.ipynb is up to date" in said
    assert cli.main(["exercises", "--check"]) == 0
    assert not list(course.glob("**/*.db"))
    assert not list((course / "exercises").glob("*.ipynb"))


def test_the_source_is_made_anew_when_what_it_is_made_from_changes(course):
    assert assignments.refresh_source(course)
    assert not assignments.refresh_source(course)
    edit(course / "solutions/00-start/00-start.py", "# # Start here", "# # Start")
    assert assignments.refresh_source(course)
    path = course / assignments.SOURCE / "00-start/00-start.ipynb"
    assert "# Start\\n" in path.read_text("utf-8")
    path.unlink()
    assert assignments.refresh_source(course)


def test_answers_are_kept_before_a_notebook_is_replaced(course, capsys):
    path = course / "exercises/00-start/00-start.ipynb"
    edit(path, "raise NotImplementedError()", "return 'my answer'")
    # From the command that runs on each `make course`, answers are safe where they are.
    assert cli.main(["exercises", "--if-stale"]) == 0
    assert "holds answers and is left as it is" in capsys.readouterr().out
    assert "my answer" in path.read_text("utf-8")
    assert cli.main(["exercises", "--if-stale"]) == 0
    assert capsys.readouterr().out == "exercises/ is up to date\n"

    assert cli.main(["exercises", "00-start"]) == 0
    said = capsys.readouterr().out
    (kept,) = (course / "exercises").glob("00-start.kept-*.ipynb")
    assert f"the answers it held are in {kept.name}" in said
    assert "my answer" in kept.read_text("utf-8")
    assert "my answer" not in path.read_text("utf-8")


@pytest.mark.parametrize(
    "worked_in",
    [
        lambda notebook: notebook.cells[3].update(source="# nothing\n"),
        lambda notebook: notebook.cells.append(nbformat.v4.new_code_cell("1 + 1")),
        lambda notebook: notebook.cells[3].metadata.pop("nbgrader"),
    ],
    ids=["an answer", "a cell of one's own", "an editor that drops metadata"],
)
def test_what_counts_as_answers(course, worked_in):
    path = course / "exercises/00-start/00-start.ipynb"
    assert not assignments.holds_answers(path)
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.execution_count = 1
    nbformat.write(notebook, path)
    assert not assignments.holds_answers(path)
    worked_in(notebook)
    nbformat.write(notebook, path)
    assert assignments.holds_answers(path)
    path.write_text("{", "utf-8")
    assert assignments.holds_answers(path)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('check("rotation_matrix")', "", "expected the cell check-rotation_matrix, got grade-"),
        (
            'grade("rotation_matrix")',
            "",
            "expected the cell grade-rotation_matrix, got split_pairs",
        ),
        ('grade("rotation_matrix")', 'grade("rotation_matrx")', "no exercise is called"),
        ("{{how}}", "{{hwo}}", "nothing is known to fill in for {{hwo}}"),
        ("def rotation_matrix", "rotation_matrix = lambda", "defines no function"),
    ],
)
def test_a_broken_solution_is_one_sentence(course, capsys, old, new, said):
    edit(course / "solutions/00-start/00-start.py", old, new)
    before = (course / "exercises/00-start/00-start.ipynb").read_bytes()
    assert cli.main(["exercises"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("posenc: solutions/00-start/00-start.py: ")
    assert said in error
    assert len(error.splitlines()) == 1
    assert (course / "exercises/00-start/00-start.ipynb").read_bytes() == before


def test_the_address_has_one_home(course, capsys):
    edit(course / "_config.yml", f"baseurl: {SITE}", "baseurl: https://course.example/pe/")
    assert cli.main(["exercises", "02-sinusoidal"]) == 0
    text = (course / "exercises/02-sinusoidal/02-sinusoidal.ipynb").read_text("utf-8")
    assert SITE not in text
    assert "https://course.example/pe/02-sinusoidal.html#sinusoidal-frequencies" in text
    assert 'SITE, VERSION = \\"https://course.example/pe\\"' in text
    edit(course / "_config.yml", "baseurl:", "other:")
    assert cli.main(["exercises"]) == 1
    assert "_config.yml has no course address" in capsys.readouterr().err


def test_an_unknown_name_is_one_sentence_with_the_known_ones(course, capsys):
    assert cli.main(["exercises", "2-sinusoidal"]) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    assert all(name in error for name in ("2-sinusoidal", *ASSIGNMENTS))


def test_any_folder_of_a_course_will_do_and_another_is_one_sentence(course, monkeypatch, capsys):
    monkeypatch.chdir(course / "solutions/00-start")
    assert assignments.find_root() == course.resolve()
    monkeypatch.chdir(course.parent)
    for command in ("exercises", "demo"):
        assert cli.main([command]) == 1
        error = capsys.readouterr().err
        assert "is not inside a course; go to the folder that holds _config.yml" in error
        assert len(error.splitlines()) == 1


@pytest.mark.parametrize("module", ["jupytext", "nbgrader"])
def test_a_missing_package_is_one_sentence(course, module):
    code = f"import sys; sys.modules[{module!r}] = None\nfrom posenc.grading.cli import main\n"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}sys.exit(main(['exercises']))"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == f'posenc: {module} is not installed; run: pip install "posenc[class]"\n'


@pytest.mark.parametrize(
    "words", [[], ["exercises"], ["demo"]], ids=["posenc", "exercises", "demo"]
)
def test_help(words, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main([*words, "--help"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: {' '.join(['posenc', *words])}")


def test_the_installed_command_and_words_that_it_does_not_know():
    command = [Path(sys.executable).parent / "posenc"]
    version = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout == f"posenc {posenc.__version__}\n"
    wrong = subprocess.run([*command, "mark"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "invalid choice: 'mark'" in wrong.stderr


def test_the_command_starts_without_what_only_instructors_install():
    code = (
        "import sys; from posenc.grading import cli; "
        "heavy = {'jupytext', 'nbgrader', 'nbformat', 'nbconvert', 'yaml', 'matplotlib'}; "
        "assert not heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
