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

from posenc.exercises import ASSIGNMENTS
from posenc.grading import demo

ROOT = Path(__file__).parents[1]
ANSWER = """def inverse_frequencies(d_model, *, base=10_000.0):
    return base ** (-2 * np.arange(d_model // 2) / d_model)"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The address of a JupyterLab in a copy of the course, started with the words of `make lab`."""
    folder = tmp_path_factory.mktemp("lab")
    course = folder / "course"
    course.mkdir()
    for name in (*demo.COURSE_FILES, "exercises"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, course / name)
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


def test_a_student_opens_a_notebook_and_runs_a_check(page, lab):
    page.goto(lab)
    page.wait_for_url(f"{lab}/lab/tree/exercises")
    page.wait_for_selector(".jp-DirListing-item >> text=02-sinusoidal")
    page.dblclick(".jp-DirListing-item >> text=02-sinusoidal")
    page.dblclick(".jp-DirListing-item >> text=02-sinusoidal.ipynb")
    page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]", state="attached")
    page.wait_for_selector("#jp-main-statusbar >> text=/Python 3.*Idle/")

    setup, stub, its_check = (page.locator(".jp-CodeCell").nth(number) for number in range(3))
    for cell in (setup, stub, its_check):
        run(page, cell)
    its_check.locator(".jp-OutputArea-output >> text=not written yet").wait_for()
    assert "YOUR CODE HERE" in stub.inner_text()

    stub.locator(".cm-content").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(ANSWER)
    for cell in (stub, its_check):
        run(page, cell)
    its_check.locator(".jp-OutputArea-output >> text=4 of 4 points").wait_for()


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
