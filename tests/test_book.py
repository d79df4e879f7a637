"""The book: its build is strict, and what it builds is whole."""

from __future__ import annotations

import email
import re
import shutil
import signal
import socket
import subprocess
import sys
import zipfile
from copy import copy
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit
from urllib.request import urlopen

import pytest
import yaml
from bs4 import BeautifulSoup
from conftest import ROOT, load, page_names, run_python

import posenc
from posenc.exercises import ASSIGNMENTS, SECTIONS, for_assignment

BASE = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["html"]["baseurl"]
WHEEL = f"posenc-{posenc.__version__}-py3-none-any.whl"


@pytest.fixture(scope="module")
def chapters(pages: dict[str, BeautifulSoup]) -> dict[str, BeautifulSoup]:
    """The pages that people wrote."""
    return {name: page for name, page in pages.items() if name != "search.html"}


def test_every_source_page_is_in_the_site(site: Path):
    book = ROOT / "book"
    sources = {path.relative_to(book).with_suffix("").as_posix() for path in book.rglob("*.md")}
    built = {name.removesuffix(".html") for name in page_names(site)}
    assert built == sources | {"search"}


def test_every_public_function_has_its_entry_in_the_reference(pages):
    reference = {n: page for n, page in pages.items() if n.startswith("reference/")}
    public = [f"posenc.{name}" for name in posenc.__all__]
    for name in [*public, "posenc.grading.check", "posenc.plotting.encoding_heatmap"]:
        places = [page for page, soup in reference.items() if soup.find("dt", id=name)]
        assert len(places) == 1, f"{name} is described on {places}"
    for path in (ROOT / "posenc").glob("[!_]*.py"):
        assert f"reference/{path.stem}.html" in reference, f"{path.stem} has no reference page"


def test_the_reference_shows_signatures_sections_and_plain_quotes(pages):
    entry = pages["reference/rotary.html"].find("dt", id="posenc.rope").parent
    text = entry.get_text()
    assert "posenc.rope(" in entry.dt.get_text()
    for section in ("Parameters:", "Returns:", "Raises:", "References", "Examples"):
        assert section in text
    assert "{'interleaved', 'half'}" in text
    assert "(..., seq_len, d)" in text


def test_every_link_image_and_download_leads_somewhere(site, pages):
    anchors = {
        name: {tag["id"] for tag in page.find_all(id=True)} | {"", "main-content"}
        for name, page in pages.items()
    }
    broken, checked = [], 0
    for name, page in pages.items():
        for tag in page.find_all(["a", "link", "img", "script", "source"]):
            target = tag.get("href") or tag.get("src")
            if not target or target.startswith(("mailto:", "data:")):
                continue
            url = urlsplit(urljoin(f"{BASE}/{name}", target))
            if f"{url.scheme}://{url.netloc}" != BASE:
                continue
            checked += 1
            file = unquote(url.path).lstrip("/") or "index.html"
            if not (site / file).is_file():
                broken.append(f"{name}: {target}")
            elif file in anchors and unquote(url.fragment) not in anchors[file]:
                broken.append(f"{name}: {target} (no such anchor)")
    assert not broken
    assert checked > 100


def test_every_section_that_reports_name_is_there(pages):
    for label, section in SECTIONS.items():
        target = pages[f"{section.page}.html"].find(id=label)
        assert target is not None, f"{section.page} has no label {label}"
        heading = target if target.name == "section" else target.find_parent("section")
        assert heading.find(["h2", "h3"]).get_text().rstrip("#") == section.title


def test_every_assignment_has_its_box_with_all_facts_and_its_notebook(site, pages):
    for name, assignment in ASSIGNMENTS.items():
        boxes = [
            box
            for page in assignment.pages
            for box in pages[f"{page}.html"].select("div.assignment")
            if f"{name}.ipynb" in box.get_text()
        ]
        assert boxes, f"no page of {name} has ```{{assignment}} {name}```"
        for box in boxes:
            exercises = for_assignment(name)
            assert f"{sum(e.points for e in exercises):g} points" in box.get_text()
            rows = [
                [cell.get_text(strip=True) for cell in row.find_all("td")]
                for row in box.select("tbody tr")
            ]
            assert [row[0].startswith(e.name) for row, e in zip(rows, exercises, strict=True)]
            for row, exercise in zip(rows, exercises, strict=True):
                assert row[1:4] == [
                    f"{exercise.points:g}",
                    str(exercise.difficulty),
                    str(exercise.importance),
                ]
            link = box.select_one("a.download")["href"]
            source = ROOT / "exercises" / name / f"{name}.ipynb"
            assert (site / link).read_bytes() == source.read_bytes()


def test_every_image_says_what_it_shows(pages):
    for name, page in pages.items():
        for image in page.select("img"):
            alt = image.get("alt", "")
            assert len(alt.split()) >= 3, f"{name}: {image.get('src')} has alt {alt!r}"
            assert not re.search(r"[/\\]|\.(png|svg)|_build", alt), f"{name}: {alt!r} is a path"


def test_every_formula_became_mathml(chapters):
    count = 0
    for name, page in chapters.items():
        count += len(page.find_all("math"))
        for container in page.select(".math"):
            assert container.find("math"), f"{name}: {container}"
        assert not page.select(".formula-error, merror"), name
        rest = copy(page)
        for tag in rest(["script", "style", "pre", "code", "annotation"]):
            tag.decompose()
        left = re.findall(r"\\(?:begin|frac|sin|cos|mathrm|text|omega|theta)\b|\$\$", rest.text)
        assert not left, f"{name}: TeX that was not rendered: {left}"
    assert count > 50


def test_pages_load_nothing_from_elsewhere_and_no_renderer(site, pages):
    for name, page in pages.items():
        for tag in page.find_all(["script", "img", "source", "iframe"]):
            assert "//" not in tag.get("src", ""), f"{name}: {tag}"
            assert not re.search("mathjax|thebe", str(tag), re.IGNORECASE), f"{name}: {tag}"
        for tag in page.select("link[rel~=stylesheet], link[rel~=preload], link[rel~=icon]"):
            assert "//" not in tag["href"], f"{name}: {tag}"
    assert not [path for path in site.rglob("*") if re.search("mathjax|thebe", path.name, re.I)]


def test_every_chapter_introduces_itself(chapters):
    for name, page in chapters.items():
        assert page.html["lang"] == "en"
        assert page.find("h1"), name
        description = page.find("meta", attrs={"name": "description"})
        assert len(description["content"] if description else "") >= 40, f"{name}: {description}"
        assert page.select_one("link[rel=icon]")["href"].endswith("favicon.svg")


def test_the_site_carries_the_wheel_of_this_package(site, pages):
    with zipfile.ZipFile(site / WHEEL) as wheel:
        files = {name for name in wheel.namelist() if name.startswith("posenc/")}
        metadata = email.message_from_bytes(
            wheel.read(f"posenc-{posenc.__version__}.dist-info/METADATA")
        )
        assert wheel.read("posenc/__init__.py") == Path(posenc.__file__).read_bytes()
    assert metadata["Version"] == posenc.__version__
    assert files >= {path.relative_to(ROOT).as_posix() for path in (ROOT / "posenc").rglob("*.py")}
    assert list(site.glob("*.whl")) == [site / WHEEL]
    assert f"pip install {BASE}/{WHEEL}" in pages["00-start.html"].get_text()


# What the converter must show, with an element that proves it, and what it must refuse.
SHOWN = {
    r"\begin{aligned} a &= b \\ &= c \end{aligned}": "<mtable",
    r"\begin{align*} a &= b \\ &= c \end{align*}": "<mtable",
    r"\begin{bmatrix} 1 & 0 \\ 0 & 1 \end{bmatrix}^{\top}": "<mo>[</mo><mtable",
    r"\begin{pmatrix} x \\ y \end{pmatrix}": "<mo>(</mo><mtable",
    r"\begin{cases} 0 & \text{if } j \le i \\ -\infty & \text{otherwise} \end{cases}": "otherwise",
    r"\operatorname{softmax}(x)": "<mi>softmax</mi>",
    r"\lVert x \rVert": "‖",
    r"\mathbb{R}^{n \times d}": "ℝ",
    r"\mathbf{PE}": "𝐏𝐄",
    r"\big( x \big)": 'minsize="1.2em"',
    r"\sum_{i=0}^{d/2-1} \cos(\omega_i k)": "∑",
    r"\frac{Q K^\top}{\sqrt{d_k}}": "<mfrac>",
    r"\overline{\overline{x} + y}": '<mo>+</mo><mi>y</mi></mrow><mo stretchy="true">‾</mo></mover>',
    r"\underline{x}": '<mo stretchy="true">_</mo></munder>',
}
REFUSED = {
    r"\foo x": "Unknown command",
    r"\begin{foo} x \end{foo}": "Unknown environment",
    r"\begin{align} a &= b \end{align}": "aligned",
    r"\begin{equation} a \end{equation}": ":label:",
    r"a \\ b": "aligned",
    r"\frac{a}": "reached end",
    r"{a": "reached end",
    r"a}": "Unmatched",
    r"x_1_2": "Duplicate",
    r"a & b": "table-like",
    r"\boxed{x}": "not drawn alike",
    r"\bigl( x \bigr)^2": "write \\left and \\right",
    r"\bigl| x \bigr|_i": "write \\left and \\right",
    "  ": "empty",
}


@pytest.fixture(scope="module")
def mathml():
    return load("book/_ext/mathml.py")


@pytest.mark.parametrize("display", [True, False])
@pytest.mark.parametrize(("tex", "part"), SHOWN.items())
def test_a_formula_is_shown_with_its_source(mathml, tex, part, display):
    math = BeautifulSoup(mathml.to_mathml(tex, display=display), "html.parser").math
    assert (math.get("display") == "block") is display
    assert part in str(math)
    assert math.annotation.get_text() == tex


@pytest.mark.parametrize(("tex", "reason"), REFUSED.items())
def test_a_formula_that_cannot_be_shown_is_refused(mathml, tex, reason):
    with pytest.raises(mathml.FormulaError, match=re.escape(reason)):
        mathml.to_mathml(tex, display=True)


FRONT = "---\nfile_format: mystnb\nkernelspec: {name: python3, display_name: Python 3}\n---\n\n"


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


@pytest.mark.slow
def test_every_kind_of_fault_fails_the_build(tiny):
    faults = {
        "unknown_command": ("$\\foo x$", "unknown_command.md:3: WARNING: formula '\\\\foo x'"),
        "broken_link": ("[gone](gone.md)", "broken_link.md:3: WARNING"),
        "missing_label": ("{ref}`gone`", "missing_label.md:3: WARNING: undefined label"),
        "missing_equation": ("{eq}`gone`", "missing_equation.md:3: WARNING"),
        "missing_citation": ("{cite}`gone`", "missing_citation.md:3: WARNING"),
        "missing_image": ("![An image](gone.png)", "missing_image.md:3: WARNING"),
        "missing_download": ("{download}`gone.zip`", "missing_download.md:3: WARNING"),
        "missing_notebook": ("```{assignment} 01-attention\n```", "run `make exercises`"),
        "unknown_assignment": ("```{assignment} 99\n```", "no assignment is called '99'"),
        "unknown_directive": ("```{gone}\n```", "unknown_directive.md:3: WARNING"),
    }
    pages = {name: f"# {name}\n\n{text}\n" for name, (text, _) in faults.items()}
    for _ in range(2):  # the second time nothing has changed, and it must not turn green by itself
        result = tiny(index="# Good\n\n$x$\n", **pages)
        assert result.returncode == 1, result.stdout
        for _, message in faults.values():
            assert message in result.stdout
        assert "index.md" not in result.stdout
        assert "NOT built" in result.stdout


@pytest.mark.slow
def test_a_crashed_or_muttering_cell_fails_the_build_and_names_the_page(tiny):
    crash = FRONT + "# Crash\n\n```{code-cell} ipython3\n1 / 0\n```\n"
    mutter = FRONT + (
        "# Mutter\n\n```{code-cell} ipython3\nimport sys\nprint('oh', file=sys.stderr)\n```\n"
    )
    for _ in range(2):
        result = tiny(index=crash)
        assert result.returncode == 1, result.stdout
        assert "index.md" in result.stdout
        assert "ZeroDivisionError: division by zero" in result.stdout
        assert "jupyter_book/cli" not in result.stdout
    result = tiny(index=mutter)
    assert result.returncode == 1, result.stdout
    assert "index.md" in result.stdout


@pytest.mark.slow
def test_pages_are_executed_again_when_posenc_changes(tiny, tmp_path):
    page = FRONT + (
        "# Good\n\n```{code-cell} ipython3\nimport posenc\n\nprint(posenc.__version__, 'it is')\n"
        "```\n\n{{ pip_install }}\n\nFrom {{ site }} comes {{ wheel }}.\n"
    )
    site = tmp_path / "_build" / "html"
    result = tiny(index=page)
    assert result.returncode == 0, result.stdout
    assert f"{posenc.__version__} it is" in (site / "index.html").read_text(encoding="utf-8")
    assert "nothing has changed" in tiny(index=page).stdout

    package = tmp_path / "posenc" / "__init__.py"
    text = package.read_text(encoding="utf-8")
    package.write_text(text.replace(posenc.__version__, "9.9.9"), encoding="utf-8")
    result = tiny(index=page)
    assert result.returncode == 0, result.stdout
    html = (site / "index.html").read_text(encoding="utf-8")
    text = BeautifulSoup(html, "html.parser").get_text()
    assert "9.9.9 it is" in text
    assert f"pip install {BASE}/posenc-9.9.9-py3-none-any.whl" in text
    assert f"From {BASE} comes posenc-9.9.9-py3-none-any.whl." in text
    assert [path.name for path in site.glob("*.whl")] == ["posenc-9.9.9-py3-none-any.whl"]


def test_a_fingerprint_sees_content_and_names_and_nothing_else(tmp_path):
    fingerprint = load("book/build.py").fingerprint
    (tmp_path / "posenc" / "__pycache__").mkdir(parents=True)
    module = tmp_path / "posenc" / "rope.py"
    module.write_text("a = 1")
    patterns = ("posenc/**/*.py",)
    first = fingerprint(tmp_path, patterns)
    (tmp_path / "posenc" / "__pycache__" / "rope.py").write_text("cached")
    (tmp_path / "posenc" / "notes.txt").write_text("no code")
    assert fingerprint(tmp_path, patterns) == first
    module.write_text("a = 2")
    assert fingerprint(tmp_path, patterns) != first
    module.write_text("a = 1")
    assert fingerprint(tmp_path, patterns) == first
    module.rename(module.with_name("rotary.py"))
    assert fingerprint(tmp_path, patterns) != first


def test_a_build_without_changes_says_so_at_once(site):
    result = run_python(ROOT / "book" / "build.py")
    assert result.returncode == 0
    assert "nothing has changed" in result.stdout


def test_both_commands_explain_themselves():
    for script in ("build.py", "serve.py"):
        result = run_python(ROOT / "book" / script, "--help")
        assert result.returncode == 0
        assert "usage:" in result.stdout


def test_serving_on_a_taken_port_is_one_clear_sentence(site):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = run_python(ROOT / "book" / "serve.py", "--port", port)
    assert result.returncode == 1
    assert f"port {port} can't be used" in result.stdout
    assert "make course PORT=" in result.stdout
    assert len(result.stdout.splitlines()) == 1


def test_serving_without_a_book_is_one_clear_sentence(tmp_path):
    (tmp_path / "book").mkdir()
    shutil.copy(ROOT / "book" / "serve.py", tmp_path / "book")
    result = run_python(tmp_path / "book" / "serve.py")
    assert result.returncode == 1
    assert result.stdout.strip() == "there is no finished book to serve; run `make book` first"


def test_the_server_serves_says_where_and_stops_quietly(site):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "book" / "serve.py"), "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert f"http://localhost:{port} " in process.stdout.readline()
        with urlopen(f"http://localhost:{port}/") as answer:
            assert b"<h1>" in answer.read()
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=10)
        assert process.returncode == 0
        assert not rest.strip()
    finally:
        process.kill()
