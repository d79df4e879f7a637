"""Build the book strictly: a warning, a broken link or a crashed cell fails the build."""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "_build"
# What is built: in which folder of _build, which is also Sphinx's name for it, and what to open.
SITE, EPUB = ("html", "index.html"), ("epub", "positional-encoding.epub")
CACHE = BUILD / ".jupyter_cache"

# Written last, so it is there only when all is whole, and says what it was made from.
STAMP = ".made-from"
CACHE_STAMP = BUILD / ".executed-with"

# What a cell can see beside its own page: a change in any of it makes every cached output stale.
EXECUTION_INPUTS = (
    "posenc/**/*.py",
    "solutions/**/*.py",
    "exercises/**/*.ipynb",
    "nbgrader_config.py",
    "tests/equivalent_mutants.toml",
)
PAGE_INPUTS = ("book/**/*", "_config.yml", "_toc.yml", "pyproject.toml", "README.md", "LICENSE")
PACKAGES = ("jupyter-book", "sphinx", "myst-nb", "ipykernel", "numpy", "matplotlib", "math-core")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def fingerprint(root: Path, patterns: Iterable[str]) -> str:
    """Return a hash of the names and bytes of all files under ``root`` that match a pattern."""
    digest = hashlib.sha256()
    files = {path for pattern in patterns for path in root.glob(pattern) if path.is_file()}
    for path in sorted(files):
        if "__pycache__" in path.parts or ".ipynb_checkpoints" in path.parts:
            continue
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(root).as_posix()} {content}\n".encode())
    return digest.hexdigest()


def build(product: tuple[str, str] = SITE, *, clean: bool = False) -> int:
    """Build the site or the EPUB unless it is up to date; return the exit status."""
    try:
        versions = " ".join(f"{package}={version(package)}" for package in PACKAGES)
    except PackageNotFoundError as error:
        say(f"{error.name} is not installed; run: pip install -e '.[book]'")
        return 1
    executed_with = f"{fingerprint(ROOT, EXECUTION_INPUTS)} {versions}"
    made_from = f"{fingerprint(ROOT, PAGE_INPUTS)} {executed_with}"
    folder, start_page = BUILD / product[0], BUILD / product[0] / product[1]
    with _alone():
        if not clean and _read(folder / STAMP) == made_from:
            say(f"nothing has changed since the last good build: {start_page}")
            return 0
        start = time.monotonic()
        if _build(product[0], executed_with, clean=clean):
            say("the book was NOT built; the messages above name the page and the reason")
            return 1
        (folder / STAMP).write_text(made_from, encoding="utf-8")
        say(f"built in {time.monotonic() - start:.0f} s: {start_page}")
        return 0


def _build(builder: str, executed_with: str, *, clean: bool) -> int:
    # Sphinx would keep a page that failed and pass it the next time, so it never starts from one.
    shutil.rmtree(BUILD / builder, ignore_errors=True)
    shutil.rmtree(BUILD / ".doctrees", ignore_errors=True)
    if clean or _read(CACHE_STAMP) != executed_with:
        say("posenc or the exercises are new to this book: every page will be executed")
        shutil.rmtree(CACHE, ignore_errors=True)
        CACHE_STAMP.write_text(executed_with, encoding="utf-8")

    # Matplotlib builds its font cache on first use and says so on stderr, which fails a page.
    say("preparing Matplotlib's fonts")
    subprocess.run([sys.executable, "-c", "import matplotlib.font_manager"], check=True)

    say("executing and rendering the pages")
    return _run_jupyter_book(builder)


@contextmanager
def _alone() -> Iterator[None]:
    """Let one build at a time work in this tree."""
    BUILD.mkdir(exist_ok=True)
    # SQLite's lock works on every system and ends with the process that holds it.
    lock = sqlite3.connect(BUILD / ".lock", timeout=600, isolation_level=None)
    try:
        lock.execute("BEGIN EXCLUSIVE")
        yield
    finally:
        lock.close()


def _run_jupyter_book(builder: str) -> int:
    """Run Jupyter Book, pass on what it has to say, and return its exit status."""
    # Without that module jsonschema skips grammars of addresses, which take a second to read.
    start = "import sys; sys.modules['rfc3987_syntax'] = None; "
    start += "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", start, "build"]
    command += [str(ROOT / "book"), "--path-output", str(ROOT)]
    command += ["--config", str(ROOT / "_config.yml"), "--toc", str(ROOT / "_toc.yml")]
    command += ["--all", "-W", "-n", "--keep-going", "--quiet"]
    if builder != "html":
        command += ["--builder", "custom", "--custom-builder", builder]
    # Cells import this tree's posenc, whichever is installed.
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    # Pages are executed side by side, and threads of small matrix products only get in their way.
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    environment = {**os.environ, **threads, "PYTHONPATH": path, "PYTHONUTF8": "1"}
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    )
    for line in _readable(process.stderr):
        print(line, flush=True)
    return process.wait()


def _readable(lines: Iterable[str]) -> Iterator[str]:
    """Drop colours, the kernel's start-up warning, and stacks that are not a cell's."""
    fatal = in_stack = False
    for line in lines:
        line = COLOUR.sub("", line.rstrip())
        fatal = fatal or line.endswith(" error:") or line == "Exception occurred:"
        if line == "Traceback (most recent call last):":
            in_stack = True
        elif in_stack and not line.startswith(" "):
            in_stack = fatal  # after a fatal error only Jupyter Book's own stack follows
        if line and not in_stack and not line.startswith("[IPKernelApp] WARNING"):
            yield line


def say(message: str) -> None:
    """Print what the build does, at once even when the output goes to a file."""
    print(f"book: {message}", flush=True)


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--clean", action="store_true", help="execute and render everything, whatever is there"
    )
    parser.add_argument("--epub", action="store_true", help="build the EPUB instead of the site")
    options = parser.parse_args()
    return build(EPUB if options.epub else SITE, clean=options.clean)


if __name__ == "__main__":
    sys.exit(main())
