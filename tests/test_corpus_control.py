"""The corpus's thefts reach what they are after where nothing is shut in: they are real ones."""

import http.server
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import corpus
import corpus_attacks
import nbformat
import pytest
from test_corpus import ENTRIES, SEED

from posenc.grading import assignments
from posenc.grading.isolation import sandbox
from posenc.grading.isolation.sandbox import can_isolate

pytestmark = pytest.mark.skipif(not can_isolate(), reason="bubblewrap is not installed")

# These are cheats that take nothing from anybody, or take it from another submission.
NO_THEFT = {"steal-example", "steal-replaced-helper", "steal-hard-link", "steal-leftovers"}
THEFTS = [name for name in ENTRIES if name.startswith("steal-") and name not in NO_THEFT]
FUNCTIONS = {"start-file": "angles", "ledger-frames": "verdicts"}


@pytest.fixture
def course(tmp_path):
    """Make a course as instructors have it, with answers, a gradebook and a submission."""
    folder = tmp_path / "course"
    shutil.copytree(corpus.ROOT / "solutions", folder / "solutions")
    source = folder / corpus_attacks.SOURCE
    source.parent.mkdir(parents=True)
    nbformat.write(assignments.source_notebook(corpus.ROOT, corpus.MOST), source)
    other = folder / "submitted" / "complete" / corpus.MOST
    other.mkdir(parents=True)
    corpus.save(other, corpus.complete())
    with closing(sqlite3.connect(folder / "gradebook.db")) as database, database:
        database.execute("create table grade (manual_score, auto_score)")
        database.execute("insert into grade values (1, 1)")
    return folder


@pytest.fixture(scope="module")
def site():
    """Serve something where thieves look for the book, and return the port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def unguarded(course, folder, *words):
    """Run Python where all of a course can be read and written, and nothing else is at risk."""
    root = corpus.ROOT
    box = ["bwrap", "--unshare-pid", "--as-pid-1", "--die-with-parent", "--proc", "/proc"]
    box += ["--dev", "/dev", "--tmpfs", "/tmp", "--ro-bind", "/usr", "/usr"]
    for name in ("/lib", "/lib64", "/bin", "/sbin"):
        box += ["--ro-bind-try", name, name]
    for place in (*sandbox._libraries(), root / "posenc", root / "tests"):
        box += ["--ro-bind", str(place), str(place)]
    box += ["--bind", str(course), str(course), "--chdir", str(course)]
    done = subprocess.run(
        [*box, sys.executable, str(root / "tests" / "corpus_outside.py"), str(folder), *words],
        env={"PYTHONPATH": str(root), "POSENC_SEED": SEED, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout.strip(), done.stderr[-2000:]


def cells_of(entry, course, port):
    """Write a submission into the course, and return its folder and the cells to run."""
    folder = course / "submitted" / entry.name / entry.assignment
    folder.mkdir(parents=True)
    entry.write(folder)
    path = folder / f"{entry.assignment}.ipynb"
    notebook = json.loads(path.read_text())
    # What it holds itself is no loot.
    path.unlink()
    for link in folder.iterdir():
        aim = str(link.readlink())
        link.unlink()
        link.symlink_to(aim.replace(str(corpus.ROOT), str(course)))
    cells = [
        cell["source"].replace(str(corpus.ROOT), str(course)).replace(":8000", f":{port}")
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
        and not cell["metadata"].get("nbgrader", {}).get("grade_id", "").startswith("grade-")
    ]
    return folder, cells


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if ENTRIES[name].quick else pytest.mark.slow)
        for name in (*THEFTS, *FUNCTIONS)
    ],
)
def test_a_theft_finds_what_it_is_after_where_nothing_is_shut_in(name, course, site):
    folder, cells = cells_of(ENTRIES[name], course, site)
    function = FUNCTIONS.get(name, "wavelengths")
    assert unguarded(course, folder, function, json.dumps(cells)) == ("true", "")


def test_a_function_without_a_theft_finds_nothing_there(course, site):
    folder, cells = cells_of(ENTRIES["bad-zeros"], course, site)
    assert unguarded(course, folder, "wavelengths", json.dumps(cells))[0] == "false"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["solutions", "_build"])
@pytest.mark.parametrize("how", ["by-path", "by-way-up"])
def test_either_file_with_answers_is_enough_for_a_thief(name, how, course, site):
    shutil.rmtree(course / name)
    folder, cells = cells_of(ENTRIES[f"steal-{how}"], course, site)
    assert unguarded(course, folder, "wavelengths", json.dumps(cells)) == ("true", "")


@pytest.mark.parametrize(
    "name",
    [
        "gradebook-cell",
        *(pytest.param(f"gradebook-{how}", marks=pytest.mark.slow) for how in ("by-path", "link")),
    ],
)
def test_a_gradebook_is_written_where_nothing_is_shut_in(name, course, site):
    folder, cells = cells_of(ENTRIES[name], course, site)
    unguarded(course, folder, "wavelengths", json.dumps(cells))
    with closing(sqlite3.connect(course / "gradebook.db")) as database:
        assert database.execute("select * from grade").fetchall() == [(99, 99)]


@pytest.mark.parametrize("name", ["leaves"])
def test_what_one_leaves_is_found_by_another_in_the_same_process(name, course, site):
    _, first = cells_of(ENTRIES[name], course, site)
    folder, cells = cells_of(ENTRIES["steal-leftovers"], course, site)
    assert unguarded(course, folder, "wavelengths", json.dumps(cells))[0] == "false"
    assert unguarded(course, folder, "wavelengths", json.dumps(first + cells)) == ("true", "")
