"""JupyterLab as `make lab` starts it: the instructor's page, and a student at work."""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from posenc.exercises import ASSIGNMENTS, for_assignment
from posenc.grading import demo

ROOT = Path(__file__).parents[1]
NAME = "02-sinusoidal"
FREQUENCIES = """def inverse_frequencies(d_model, *, base=10_000.0):
    return base ** (-2 * np.arange(d_model // 2) / d_model)"""
HALVES = """def sinusoidal_encoding(positions, d_model, *, base=10_000.0):
    if d_model % 2:
        raise ValueError("d_model must be even")
    frequencies = inverse_frequencies(d_model, base=base)
    angles = np.asarray(positions, dtype=np.float64)[..., None] * frequencies
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)"""
ENCODING = HALVES.replace(
    "np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)",
    "np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(*angles.shape[:-1], d_model)",
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A copy of the course."""
    folder = tmp_path_factory.mktemp("lab") / "course"
    folder.mkdir()
    for name in (*demo.COURSE_FILES, "exercises"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def lab(course):
    """The address of a JupyterLab in a copy of the course, started with the words of `make lab`."""
    folder = course.parent
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = re.search(
        r"^lab:.*\n\t@\$\(PY\) (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE
    )[1]
    own = ["--no-browser", "--allow-root", f"--port={port}", "--ServerApp.port_retries=0"]
    with (folder / "log").open("w+", encoding="utf-8") as log:
        process = subprocess.Popen(
            [sys.executable, *words.split(), *own, "--IdentityProvider.token="],
            cwd=course,
            env=os.environ
            | {
                "JUPYTER_CONFIG_DIR": str(folder / "none"),
                "JUPYTER_DATA_DIR": str(folder / "data"),
            },
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        address = f"http://127.0.0.1:{port}"
        try:
            _wait(address, process, log)
            yield address
        finally:
            process.terminate()
            process.wait()


def _wait(address, process, log):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(f"{address}/api")
            return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.2)
    log.seek(0)
    pytest.fail(f"JupyterLab did not start:\n{log.read()}")


@pytest.fixture
def page(browser, lab):
    with browser.new_context(viewport={"width": 1300, "height": 900}) as context:
        context.set_default_timeout(60_000)
        yield context.new_page()


def test_the_formgrader_lists_the_assignments(page, lab):
    page.goto(f"{lab}/formgrader/manage_assignments")
    page.wait_for_selector(f"text={next(reversed(ASSIGNMENTS))}")
    listed = page.locator("#main_table td.name, td.name").all_inner_texts()
    assert [name.strip() for name in listed] == list(ASSIGNMENTS)


def test_a_student_answers_reads_what_is_wrong_and_hands_in(page, lab, course, tmp_path):
    page.goto(lab)
    page.wait_for_url(f"{lab}/lab/tree/exercises")
    page.wait_for_selector(f".jp-DirListing-item >> text={NAME}")
    page.dblclick(f".jp-DirListing-item >> text={NAME}")
    page.dblclick(f".jp-DirListing-item >> text={NAME}.ipynb")
    page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]", state="attached")
    page.wait_for_selector("#jp-main-statusbar >> text=/Python 3.*Idle/")

    setup, stub, its_check = (page.locator(".jp-CodeCell").nth(number) for number in range(3))
    for cell in (setup, stub, its_check):
        run(page, cell)
    its_check.locator(".jp-OutputArea-output >> text=not written yet").wait_for()
    assert "YOUR CODE HERE" in stub.inner_text()
    write(page, stub, FREQUENCIES)
    for cell in (stub, its_check):
        run(page, cell)
    its_check.locator(".jp-OutputArea-output >> text=4 of 4 points").wait_for()

    stub, its_check = (page.locator(".jp-CodeCell").nth(number) for number in (4, 5))
    write(page, stub, HALVES)
    for cell in (stub, its_check):
        run(page, cell)
    report = its_check.locator(".jp-OutputArea-output")
    report.locator("text=/Recognised: halves/").wait_for()
    assert "Interleaving sine and cosine" in report.inner_text()
    write(page, stub, ENCODING)
    for cell in (stub, its_check):
        run(page, cell)
    report.locator("text=8 of 8 points").wait_for()

    saved = course / "exercises" / NAME / f"{NAME}.ipynb"
    save(page, saved, "np.stack(")
    checked = subprocess.run(
        [Path(sys.executable).parent / "posenc", "check", saved.name],
        cwd=saved.parent,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        check=False,
    )
    assert checked.returncode == 0, checked.stdout
    rows = re.findall(r"^  (\w+) +([\d.]+) of ", checked.stdout, re.MULTILINE)
    by_check = {task: float(points) for task, points in rows if not task.isdecimal()}
    assert by_check == {exercise.name: 0 for exercise in for_assignment(NAME)} | {
        "inverse_frequencies": 4,
        "sinusoidal_encoding": 8,
    }
    assert points_by_nbgrader(saved, tmp_path / "graded") == by_check


def points_by_nbgrader(notebook, folder):
    """Grade a notebook as a submission to a course of its own; return the points of each task."""
    demo._make_course(ROOT, folder)
    submitted = folder / "submitted" / "student" / NAME
    submitted.mkdir(parents=True)
    shutil.copy2(notebook, submitted)
    for command in ("generate_assignment", "autograde"):
        list(demo._nbgrader(folder, command, NAME))
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}") as gradebook:
        grades = gradebook.find_submission_notebook(NAME, NAME, "student").grades
        return {grade.name.removeprefix("grade-"): grade.auto_score for grade in grades}


def write(page, cell, text):
    """Replace what a cell holds."""
    for _ in range(3):
        cell.locator(".cm-content").click()
        page.keyboard.press("Control+A")
        page.keyboard.insert_text(text)
        if text.splitlines()[-1].strip() in cell.inner_text():
            return
    pytest.fail(f"the cell did not take the answer: {cell.inner_text()}")


def save(page, path, text):
    """Save the notebook, and wait until the file holds a text."""
    for _ in range(6):
        page.keyboard.press("Control+S")
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            if text in path.read_text("utf-8"):
                return
            time.sleep(0.2)
    pytest.fail(f"the notebook was not saved:\n{page.inner_text('body')}")


def run(page, cell):
    """Run a code cell and wait until it is done; try again, as people do on a slow machine."""
    playwright = pytest.importorskip("playwright.sync_api")
    prompt = cell.locator(".jp-InputPrompt")
    before = prompt.inner_text()
    done = (
        "([prompt, before]) => /\\[\\d+\\]/.test(prompt.innerText) && prompt.innerText !== before"
    )
    for _ in range(6):
        cell.locator(".cm-content").click()
        page.keyboard.press("Shift+Enter")
        with contextlib.suppress(playwright.TimeoutError):
            page.wait_for_function(done, arg=[prompt.element_handle(), before], timeout=15_000)
            return
    pytest.fail(f"the cell did not run: {cell.inner_text()}\n{page.inner_text('body')}")
