"""What the book needs beyond Sphinx: the wheel, the course's address, and the exercise box.

Pages may write ``{{ site }}`` (the course's address), ``{{ wheel }}`` (the wheel's file name) and,
alone on a line, ``{{ pip_install }}`` (the command that installs it), and the directive
``{assignment} NAME``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.errors import ExtensionError
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

import posenc
from posenc.exercises import ASSIGNMENTS, for_assignment

ROOT = Path(__file__).resolve().parents[2]
WHEEL = f"posenc-{posenc.__version__}-py3-none-any.whl"

logger = logging.getLogger(__name__)


class AssignmentBox(SphinxDirective):
    """The box of a chapter's graded exercises; every fact in it comes from ``posenc.exercises``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Make the box, or warn that its notebook has not been generated."""
        name = self.arguments[0]
        if name not in ASSIGNMENTS:
            raise self.error(
                f"no assignment is called {name!r}; there are {', '.join(ASSIGNMENTS)}"
            )
        notebook = f"exercises/{name}/{name}.ipynb"
        if not (ROOT / notebook).is_file():
            logger.warning(
                "%s is missing: run `make exercises`", notebook, location=self.get_location()
            )
            return []
        box = nodes.container(classes=["assignment"])
        self.state.nested_parse(StringList(_box_lines(name, notebook), "assignment"), 0, box)
        return [box]


def _box_lines(name: str, notebook: str) -> list[str]:
    assignment, exercises = ASSIGNMENTS[name], for_assignment(name)
    total = sum(exercise.points for exercise in exercises)
    functions = "1 graded function" if len(exercises) == 1 else f"{len(exercises)} graded functions"
    rows = [
        f"| `{exercise.name}`<br>{exercise.summary} | {exercise.points:g} "
        f"| {exercise.difficulty} | {exercise.importance} | {{ref}}`{exercise.section}` |"
        for exercise in exercises
    ]
    return [
        f"**{assignment.title}: {functions}, {total:g} points, "
        f"about {assignment.minutes.replace('-', '–')} minutes**",
        "",
        "| Function | Points | Difficulty | Importance | Read |",
        "|:--|--:|--:|--:|:--|",
        *rows,
        "",
        f"Difficulty and importance go from 1 to 5. {{download}}`Download the notebook "
        f"{name}.ipynb </../{notebook}>`",
    ]


def _say_page(app, docname: str, source: list[str]) -> None:
    """Show progress, on the stream that book/build.py passes on."""
    print(f"book: page {docname}", file=sys.stderr, flush=True)


def _add_substitutions(app, config) -> None:
    site = config.html_baseurl.rstrip("/")
    if not site:
        raise ExtensionError("html: baseurl: in _config.yml must hold the address of the course")
    config.myst_substitutions |= {
        "site": f"<{site}>",
        "wheel": f"`{WHEEL}`",
        "pip_install": f"```shell\npython -m pip install {site}/{WHEEL}\n```",
    }


def _add_wheel(app, exception) -> None:
    """Put the wheel at the site's root, built from the same files as the pages."""
    if exception or app.builder.name != "html":
        return
    folder = Path(app.outdir).parent / "wheel"
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if result.returncode or not (folder / WHEEL).is_file():
        raise ExtensionError(f"{WHEEL} could not be built:\n{result.stdout}{result.stderr}")
    shutil.copy(folder / WHEEL, app.outdir)


def setup(app) -> dict[str, bool]:
    """Register with Sphinx."""
    # Jupyter Book sets this value even where the extension that reads it is left out.
    app.add_config_value("comments_config", {}, "")
    app.add_directive("assignment", AssignmentBox)
    app.connect("source-read", _say_page)
    app.connect("config-inited", _add_substitutions)
    app.connect("build-finished", _add_wheel)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
