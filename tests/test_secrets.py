"""What lies between solution or hidden-test marks reaches no student by the wheel or the site.

The notebooks are searched in test_assignments.py, feedback pages in test_nbgrader.py.
"""

import ast
import html
import re
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MARKED = re.compile(r"### BEGIN (SOLUTION|HIDDEN TESTS)\n(.*?)### END \1", re.DOTALL)
TEXT = {".html", ".md", ".txt", ".js", ".json", ".ipynb", ".py", ".css", ".svg", ".xml", ".whl"}


def squeezed(text):
    """Return text without white space, so that indentation and line breaks hide nothing."""
    return re.sub(r"\s+", "", text)


@cache
def regions():
    """Return every marked region of the solutions, squeezed."""
    marked = [
        (kind, region)
        for path in sorted((ROOT / "solutions").glob("*/*.py"))
        for kind, region in MARKED.findall(path.read_text(encoding="utf-8"))
    ]
    # Of a key, each reason by itself, too.
    reasons = [
        node.value
        for kind, region in marked
        if kind == "HIDDEN TESTS"
        for node in ast.walk(ast.parse(region))
        if isinstance(node, ast.Constant) and len(str(node.value)) > 30
    ]
    assert len(marked) >= 29
    assert len(reasons) == 6
    return [squeezed(text) for text in (*(region for _, region in marked), *reasons)]


def readings(text):
    """Return a text as it stands, without its tags, and with escapes undone."""
    plain = html.unescape(re.sub(r"<[^>]*>", "", text))
    return [squeezed(form) for form in (text, plain, text.replace("\\n", "\n").replace('\\"', '"'))]


def leaks(texts):
    return [
        (name, region[:60])
        for name, text in texts
        for form in readings(text)
        for region in regions()
        if region in form
    ]


def test_the_search_finds_a_leak_in_every_form_that_it_can_take():
    path = ROOT / "solutions/02-sinusoidal/02-sinusoidal.py"
    source = MARKED.search(path.read_text(encoding="utf-8"))[2]
    escaped = html.escape(source).replace("return", '<span class="k">return</span>')
    in_a_notebook = repr(source).replace("'", '"')
    for form in (source, escaped, in_a_notebook):
        assert leaks([("page", form)]), form


def test_the_site_holds_no_solution(site):
    files = [path for path in site.rglob("*") if path.is_file() and path.suffix in TEXT - {".whl"}]
    assert {path.suffix for path in files} >= {".html", ".js", ".ipynb"}
    assert not leaks((path.name, path.read_text(encoding="utf-8")) for path in files)
    # Whatever else is published must be of a kind that holds no text of ours.
    others = {path.suffix for path in site.rglob("*") if path.is_file()} - TEXT
    assert others <= {".png", ".woff2", ".ttf", ".map", ".inv", ".mo", ".po", ""}, others


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def test_the_wheel_holds_no_solution_and_nothing_but_the_package(wheel):
    names = wheel.namelist()
    assert {name.split("/")[0] for name in names} == {
        "posenc",
        next(name for name in names if ".dist-info/" in name).split("/")[0],
    }
    assert not leaks((name, wheel.read(name).decode("utf-8")) for name in names)
