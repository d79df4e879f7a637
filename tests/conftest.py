"""Fixtures of the tests that need the built book or a browser."""

from __future__ import annotations

import importlib.util
import io
import os
import shutil
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from bs4 import BeautifulSoup
from sphinx.testing.util import SphinxTestApp

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


@pytest.fixture
def tiny(tmp_path: Path):
    """A copy of the book's machinery and of posenc, with one good page."""
    for name in ("_config.yml", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    ignore = shutil.ignore_patterns("__pycache__", "*.md")
    shutil.copytree(ROOT / "book", tmp_path / "book", ignore=ignore)
    shutil.copytree(ROOT / "posenc", tmp_path / "posenc", ignore=ignore)
    (tmp_path / "exercises" / "00-start").mkdir(parents=True)
    shutil.copy(ROOT / "exercises/00-start/00-start.ipynb", tmp_path / "exercises/00-start")

    def build(**pages: str) -> subprocess.CompletedProcess[str]:
        """Write these pages, the first as the root, and build."""
        for name, text in pages.items():
            (tmp_path / "book" / f"{name}.md").write_text(text, encoding="utf-8")
        root, *others = pages
        toc = {"format": "jb-book", "root": root, "chapters": [{"file": o} for o in others]}
        if not others:
            del toc["chapters"]
        (tmp_path / "_toc.yml").write_text(yaml.dump(toc), encoding="utf-8")
        return run_python(tmp_path / "book" / "build.py")

    return build


@pytest.fixture
def build_alone(tmp_path: Path):
    """Build one page with some extensions of the book; return the page and the warnings."""
    (tmp_path / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(ROOT / 'book' / '_ext')!r})\n", encoding="utf-8"
    )

    def build(text: str, builder: str, **settings: object) -> tuple[str, str]:
        (tmp_path / "index.md").write_text(text, encoding="utf-8")
        settings |= {"project": "Alone", "copyright": "2026", "version": "1"}
        warnings = io.StringIO()
        app = SphinxTestApp(
            builder, srcdir=tmp_path, warning=warnings, freshenv=True, confoverrides=settings
        )
        try:
            app.build()
        finally:
            app.cleanup()
        pages = list(app.outdir.glob("**/index.*html"))
        return pages[0].read_text(encoding="utf-8") if pages else "", warnings.getvalue()

    return build


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
