"""How the pages look: one scale of type, four marks, code and tables that fit a phone."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from conftest import ROOT, load, page_names, run_python

from posenc.exercises import EXERCISES

DESK = {"width": 1280, "height": 800}
PHONE = {"width": 375, "height": 700}

MARKS = {
    "claim": "Claim",
    "misconception": "Misconception",
    "predict": "Exercise",
    "assignment": "Exercise",
}

# What is hidden at first comes into view, and then each box that scrolls sideways is named.
OPEN = """() => {
    document.querySelectorAll('details').forEach(box => box.open = true);
    document.querySelectorAll('.toggle-hidden').forEach(
        box => box.classList.remove('toggle-hidden'));
}"""
TOO_WIDE = """() => [...document.querySelectorAll('.bd-article :is(pre, table, .output)')]
    .map(box => [box, box.closest('.pst-scrollable-table-container') ?? box])
    .filter(([box, holder]) => Math.max(
        holder.scrollWidth - holder.clientWidth,
        box.getBoundingClientRect().right - window.innerWidth) > 1)
    .map(([box]) => box.innerText.trim().slice(0, 60))"""
SMALLEST = """() => Math.min(...[...document.querySelectorAll('.bd-article pre .line')]
    .map(line => parseFloat(getComputedStyle(line).fontSize)))"""
BOTTOM = "element => element.getBoundingClientRect().bottom"
TOP = "element => element.getBoundingClientRect().top"


@pytest.fixture(scope="module")
def soups(site: Path) -> dict[str, BeautifulSoup]:
    """The pages that people wrote, and the reference."""
    return {
        name: BeautifulSoup((site / name).read_text(encoding="utf-8"), "html.parser")
        for name in page_names(site)
    }


@pytest.fixture
def open_page(address: str, browser):
    """Open a page in a window of some size, in a fresh tab each time."""
    tabs = []

    def open_it(name: str, size: dict[str, int] = DESK, scheme: str = "light"):
        tabs.append(browser.new_page(viewport=size, color_scheme=scheme))
        tabs[-1].goto(f"{address}/{name}", wait_until="networkidle")
        return tabs[-1]

    yield open_it
    for tab in tabs:
        tab.close()


def test_no_code_output_or_table_scrolls_sideways_on_a_phone(site, address, browser):
    page = browser.new_page(viewport=PHONE)
    faults = []
    for name in page_names(site):
        page.goto(f"{address}/{name}", wait_until="domcontentloaded")
        page.evaluate(OPEN)
        faults += [f"{name}: {text}" for text in page.evaluate(TOO_WIDE)]
        if page.evaluate(SMALLEST) < 12:
            faults.append(f"{name} has code of less than 12 pixels")
    page.close()
    assert not faults


def test_a_line_that_is_too_long_goes_on_under_its_indentation_with_a_mark(open_page):
    page = open_page("02-sinusoidal.html", PHONE)
    page.evaluate(OPEN)
    lines = page.evaluate(
        """() => [...document.querySelectorAll('.cell_input .line')].map(line => {
            const range = document.createRange();
            range.selectNodeContents(line);
            const edges = [...range.getClientRects()].filter(box => box.width).map(box => box.left);
            const rows = line.getBoundingClientRect().height /
                parseFloat(getComputedStyle(line).lineHeight);
            const mark = parseFloat(getComputedStyle(line, '::before').height);
            return [line.textContent.trimEnd(), Math.round(rows), mark, edges];
        })"""
    )
    assert {text for text, *_ in lines} >= {"import numpy as np", "print(table)"}
    wrapped = [line for line in lines if line[1] > 1]
    assert len(wrapped) > 20
    for text, rows, mark, _ in lines:
        assert (mark > 1) == (rows > 1), f"{text!r}: {rows} rows, a mark of {mark} pixels"
    left = min(min(edges) for _, _, _, edges in lines if edges)
    for text, _, _, edges in wrapped:
        indentation = len(text) - len(text.lstrip())
        assert max(edges) > left, text
        if indentation == 0:
            assert min(edges[1:]) == pytest.approx(left, abs=1) or min(edges[1:]) > left


def test_copied_code_is_what_the_cell_holds(site, soups):
    page = json.loads((site.parent / "jupyter_execute" / "02-sinusoidal.ipynb").read_text())
    sources = ["".join(cell["source"]).strip() for cell in page["cells"]]
    cells = soups["02-sinusoidal.html"].select(".cell_input pre")
    shown = [cell.get_text().strip() for cell in cells]
    assert len(shown) > 20
    assert set(shown) <= set(sources)


def test_text_has_a_readable_measure_on_a_desk_and_a_wide_screen(open_page):
    for width in (1280, 1920):
        page = open_page("02-sinusoidal.html", {"width": width, "height": 900})
        lengths = page.evaluate(
            """() => [...document.querySelectorAll('.bd-article section > p')]
                .filter(p => p.textContent.length > 300 && !p.querySelector('math'))
                .map(p => p.textContent.length / Math.round(
                    p.clientHeight / parseFloat(getComputedStyle(p).lineHeight)))"""
        )
        assert len(lengths) > 5
        assert 60 <= sorted(lengths)[len(lengths) // 2] <= 75


def test_headings_and_text_follow_one_scale_on_pages_of_all_kinds(address, browser):
    sizes: dict[str, set[str]] = {}
    page = browser.new_page(viewport=DESK)
    kinds = ("index", "02-sinusoidal", "05-ledger", "glossary", "hardness", "reference/rotary")
    for name in (f"{kind}.html" for kind in kinds):
        page.goto(f"{address}/{name}", wait_until="domcontentloaded")
        found = page.evaluate(
            """() => ['h1', 'h2', 'h3', 'h4', 'section > p', 'figcaption', 'td', 'pre .line'].map(
                kind => [kind, [...document.querySelectorAll(`.bd-article ${kind}`)].map(
                    element => getComputedStyle(element).fontSize)])"""
        )
        for kind, values in found:
            sizes.setdefault(kind, set()).update(values)
    page.close()
    ordered = [float(value.removesuffix("px")) for kind in list(sizes)[:5] for value in sizes[kind]]
    assert ordered == sorted(set(ordered), reverse=True), sizes
    for kind in ("h1", "h2", "section > p", "figcaption", "pre .line"):
        assert len(sizes[kind]) == 1, sizes


def test_the_landing_page_says_on_its_first_screen_what_this_is(open_page):
    page = open_page("index.html")
    assert page.locator(".bd-article h1").evaluate(TOP) >= 0
    doors = page.locator(".doors .sd-card")
    assert doors.count() == 3
    for number in range(3):
        assert doors.nth(number).evaluate(BOTTOM) <= DESK["height"]
    targets = [door.get_attribute("href") for door in doors.locator("a.sd-stretched-link").all()]
    assert targets == ["01-attention.html", "00-start.html", "instructor-guide.html"]
    assert page.locator("#fig-index-clock").evaluate(BOTTOM) <= DESK["height"]
    summary = page.locator(".admonition.note").first
    assert "中文摘要" in summary.inner_text()
    assert summary.evaluate(TOP) >= DESK["height"]

    phone = open_page("index.html", PHONE)
    assert phone.locator("#fig-index-clock").evaluate(BOTTOM) <= PHONE["height"]
    assert phone.locator(".admonition.note").first.evaluate(TOP) >= PHONE["height"]


def test_the_landing_pages_counts_are_those_of_the_ledger_and_the_catalogue(soups):
    shown = soups["index.html"].select_one(".different").get_text(" ", strip=True)
    rows = soups["05-ledger.html"].select("table.ledger tbody tr")
    verdicts = [row.select_one(".verdict").get_text() for row in rows]
    counts = [len(rows), *(verdicts.count(word) for word in ("true", "imprecise", "false"))]
    mistakes = sum(len(exercise.misconceptions) for exercise in EXERCISES.values())
    assert [int(number) for number in re.findall(r"\d+", shown)] == [*counts, mistakes]


def test_every_mark_begins_with_its_name(soups):
    found = dict.fromkeys(MARKS, 0)
    for name, page in soups.items():
        for kind, tag in MARKS.items():
            for box in page.select(f".admonition.{kind}, div.{kind}"):
                text = box.get_text().strip()
                assert box.select_one(".mark").get_text() == tag
                assert text.startswith(f"{tag} "), f"{name}: {text[:60]}"
                found[kind] += 1
        for claim in page.select(".admonition.claim"):
            assert claim.select_one(".verdict"), f"{name}: no verdict on {claim.get_text()[:60]}"
    assert min(found.values()) >= 5, found


def test_no_page_shows_a_directive_as_text(soups):
    for name, page in soups.items():
        shown = page.select_one("article").get_text() if page.select_one("article") else ""
        assert not re.search(r"(```|:::)\{|^:class:|\{verdict\}", shown, re.MULTILINE), name


def test_verdicts_are_the_ledgers_words_and_never_plain_text(soups):
    ledger = load("book/_ext/ledger.py")
    with pytest.raises(ValueError, match="'maybe' is no verdict"):
        ledger.badge("maybe")
    shown = {mark.get_text() for page in soups.values() for mark in page.select(".verdict")}
    assert shown == set(ledger.VERDICTS)
    for path in (ROOT / "book").glob("*.md"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if re.search(r"\bVerdict( on [a-z ]+)?:", line):
                assert "{verdict}`" in line, f"{path.name}: {line[:80]}"


def test_marks_differ_in_shape_and_sign_and_not_in_colour_alone(open_page):
    style = """element => {
        const box = getComputedStyle(element);
        const sign = getComputedStyle(element.querySelector('.mark') ?? element, '::before');
        return [['Top', 'Left', 'Bottom'].map(
            side => [box[`border${side}Style`], box[`border${side}Width`]]).flat().join(' '),
            sign.content];
    }"""
    for scheme in ("light", "dark"):
        page = open_page("index.html", scheme=scheme)
        styles = [
            page.locator(f".bd-article .{kind}").first.evaluate(style)
            for kind in ("claim", "misconception", "predict", "verdict")
        ]
        assert len({shape for shape, _ in styles}) == len(styles), styles
        words = page.locator("#four-marks > p .verdict")
        assert words.count() == 6
        signs = [word.evaluate(style)[1] for word in words.all()]
        assert len(set(signs)) == 6, signs
        assert len({sign for _, sign in styles} | set(signs)) == 9
        page.close()


def test_the_readmes_pictures_are_there_small_and_described():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    pictures = re.findall(r"!\[([^]]+)\]\((\.github/[^)]+)\)", readme)
    assert len(pictures) == 2
    for text, path in pictures:
        assert len(text) > 40
        assert (ROOT / path).stat().st_size < 150_000


@pytest.mark.slow
def test_the_pictures_are_made_by_a_command(site, tmp_path):
    result = run_python(ROOT / "book" / "screenshots.py", tmp_path)
    assert result.returncode == 0, result.stdout
    made = sorted(tmp_path.iterdir())
    assert [path.name for path in made] == ["chapter-2.png", "landing.png"]
    for path in made:
        assert path.read_bytes().startswith(b"\x89PNG")
        assert 20_000 < path.stat().st_size < 150_000
