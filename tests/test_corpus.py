"""Submissions that are hard to grade or try to cheat: each ends as it should."""

import json

import corpus
import corpus_answers
import corpus_attacks
import corpus_files
import pytest

from posenc.exercises import ASSIGNMENTS
from posenc.grading import run
from posenc.grading.isolation.sandbox import Sandbox, can_isolate
from posenc.grading.results import STATES
from posenc.grading.workers import Assigned, Job, judged

pytestmark = pytest.mark.skipif(not can_isolate(), reason="bubblewrap is not installed")

KINDS = (corpus_files, corpus_answers, corpus_attacks)
SEED = "a seed of the corpus"
# For a cell of the student's; those that never end would take most of the time.
SECONDS = 3.0
ENTRIES = {entry.name: entry for entry in corpus.ENTRIES}


@pytest.fixture(scope="module")
def sandboxes():
    """Start one for each assignment when it is needed, with what its submissions are judged by."""
    started = {}

    def sandbox(name):
        if name not in started:
            released, source = corpus._notebooks(name)
            given = Assigned(name, {name: source}, {name: released}, {}, SECONDS)
            started[name] = Sandbox(name), given
        return started[name]

    yield sandbox
    for running, _ in started.values():
        running.close()


@pytest.fixture(autouse=True)
def seeded(monkeypatch):
    """The cases are not those that students see."""
    monkeypatch.setenv("POSENC_SEED", SEED)


def judge(entry, folder, sandboxes):
    """Write a submission, and judge it."""
    # As deep as in a course, so that paths that lead out of it would reach what they aim at.
    folder = folder / "submitted" / entry.name / entry.assignment
    folder.mkdir(parents=True)
    entry.write(folder)
    sandbox, given = sandboxes(entry.assignment)
    return judged(Job(entry.name, folder, entry.assignment), given, sandbox)


def stopped(notebook):
    """Return the errors that a graded notebook shows."""
    cells = json.loads(notebook)["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return [output["evalue"][:80] for output in outputs if output["output_type"] == "error"]


def difference(entry, found):
    """Return in words how a submission ended otherwise than it must, or nothing."""
    result = found.result
    points = {task.grade_id.removeprefix("grade-"): task.points for task in result.tasks}
    said = [*result.notes, *(line for task in result.tasks for line in task.lines)]
    if result.state != entry.state:
        return f"{result.state}, expected {entry.state}: {said}"
    if points != entry.points:
        wrong = {
            name
            for name in points.keys() | entry.points
            if points.get(name) != entry.points.get(name)
        }
        lines = [
            task.lines for task in result.tasks if task.grade_id.removeprefix("grade-") in wrong
        ]
        shown = {name: (points.get(name), entry.points.get(name)) for name in sorted(wrong)}
        return f"points (found, expected) {shown}: {lines} {result.notes} {stopped(found.notebook)}"
    if entry.word.casefold() not in " ".join(said).casefold():
        return f"{entry.word!r} is not said: {said}"
    return ""


def test_every_entry_says_what_it_is_and_how_it_ends():
    assert len(ENTRIES) == len(corpus.ENTRIES) > 200
    assert {entry.assignment for entry in corpus.ENTRIES} == set(ASSIGNMENTS)
    for entry in corpus.ENTRIES:
        assert entry.state in STATES
        assert entry.what.endswith(".")
        assert len(entry.name) < 40


@pytest.mark.parametrize("name", [entry.name for entry in corpus.ENTRIES if entry.quick])
def test_a_sample_ends_as_it_should(name, tmp_path, sandboxes):
    assert not difference(ENTRIES[name], judge(ENTRIES[name], tmp_path, sandboxes))


@pytest.mark.slow
@pytest.mark.parametrize("name", [entry.name for entry in corpus.ENTRIES if not entry.quick])
def test_each_ends_as_it_should(name, tmp_path, sandboxes):
    assert not difference(ENTRIES[name], judge(ENTRIES[name], tmp_path, sandboxes))


def test_the_same_notebook_without_an_answer_is_run_once(tmp_path, sandboxes, monkeypatch):
    sandbox, given = sandboxes("00-start")
    ran = []
    monkeypatch.setattr(
        run, "run", lambda *args, run=run.run, **more: ran.append(1) or run(*args, **more)
    )
    blanks = {}

    def ended(whose, blanks, *, own="", beside=""):
        folder = tmp_path / whose
        folder.mkdir()
        notebook = json.loads(given.released["00-start"])
        if own:
            cell = {"cell_type": "code", "id": "own", "metadata": {}, "outputs": [], "source": own}
            notebook["cells"].append({**cell, "execution_count": None})
        (folder / "00-start.ipynb").write_text(json.dumps(notebook), "utf-8")
        if beside:
            (folder / "mine.py").write_text(beside, "utf-8")
        found = judged(Job(whose, folder, "00-start"), given, sandbox, blanks)
        return found.result, found.notebook, found.scores, found.untouched

    first = ended("first", blanks)
    assert first[0].state == "blank"
    assert ended("second", blanks) == first
    assert len(ran) == 1
    assert ended("alone", None) == first
    # One that shows something, or may find something, is another one.
    assert "17 and 4" in ended("shows", blanks, own="print('17', 'and', 4)")[1]
    assert ended("beside", blanks, beside="x = 1")[0].state == "blank"
    assert len(ran) == 4


@pytest.mark.parametrize("order", [("leaves", "steal-leftovers"), ("steal-leftovers", "leaves")])
def test_nothing_that_one_leaves_is_found_by_the_next_or_lost_by_the_one_before(
    order, tmp_path, sandboxes
):
    sandbox, _ = sandboxes(ENTRIES["leaves"].assignment)
    started = sandbox._process.pid
    for name in (*order, *order):
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        assert not difference(ENTRIES[name], judge(ENTRIES[name], folder, sandboxes)), name
    # It is about one process that is ready, not about one that was started again.
    assert sandbox._process.pid == started
