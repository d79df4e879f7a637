"""Fixtures of the tests that need the built book or a browser."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
from bs4 import BeautifulSoup

from posenc.grading.isolation.sandbox import can_isolate

ROOT = Path(__file__).resolve().parents[1]


def load(path: str) -> ModuleType:
    """Import a file of the book's machinery, which is no package."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page_names(site: Path) -> list[str]:
    """Return the addresses of the site's pages below its root."""
    names = (path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    return sorted(name for name in names if not name.startswith("_"))


def run_python(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a script from a folder that is not the project's; keep what it says."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=Path(sys.prefix),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )


@pytest.fixture(scope="session")
def site() -> Path:
    """The strictly built book."""
    result = run_python(ROOT / "book" / "build.py")
    assert result.returncode == 0, result.stdout
    return ROOT / "_build" / "html"


@pytest.fixture(scope="session")
def pages(site: Path) -> dict[str, BeautifulSoup]:
    """Every page of the site by its address below the root; not to be changed."""
    return {
        name: BeautifulSoup((site / name).read_text(encoding="utf-8"), "html.parser")
        for name in page_names(site)
    }


@pytest.fixture(scope="session")
def address(site: Path):
    """Where the built book is served while tests run."""
    serve = load("book/serve.py")
    with serve.Server(("127.0.0.1", 0), partial(serve.Handler, directory=site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()


def pytest_configure():
    """Where a sandbox is required, a machine that has none passes no tests."""
    if os.environ.get("POSENC_REQUIRE_SANDBOX") == "1" and not can_isolate():
        pytest.exit("student code can't be shut in here; install Debian's package bubblewrap", 1)


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium."""
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        message = "no Chromium on this machine; install Debian's package chromium"
        if os.environ.get("POSENC_REQUIRE_BROWSER") == "1":
            pytest.fail(message)
        pytest.skip(message)
    playwright = pytest.importorskip("playwright.sync_api")
    flags = [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
    ]
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=program, args=flags)
        yield chromium
        chromium.close()
