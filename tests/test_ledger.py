"""The claims ledger: whole, backed by cells, and usable with and without its script."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from types import SimpleNamespace

import jupytext
import pytest
from bs4 import BeautifulSoup
from conftest import ROOT, load

# What the review of the four texts found: text, then the numbers of its findings.
FINDINGS = {
    "000": [*range(1, 18), 19],
    "001": [1, 2, *range(4, 11)],
    "002": [*range(1, 5), *range(6, 13)],
    "004": range(1, 18),
}
WORDS = {
    "true",
    "imprecise",
    "false",
    "unsupported",
    "bug in code",
    "check that checks nothing",
}
CHINESE = re.compile(r"[\u4e00-\u9fff]")
PAGE = "05-ledger.html"
VISIBLE = "table.ledger tbody tr:visible"


@pytest.fixture(scope="module")
def page(site: Path) -> BeautifulSoup:
    """The chapter as it was built."""
    return BeautifulSoup((site / PAGE).read_text(encoding="utf-8"), "html.parser")


@pytest.fixture(scope="module")
def rows(page: BeautifulSoup) -> dict[str, SimpleNamespace]:
    """The rows of the ledger by their id."""
    found = {}
    for row in page.select("table.ledger tbody tr"):
        name, claim, verdict, value = row.find_all("td")
        where, dispute = name.find_all("a")
        key = where.get_text()
        assert key not in found, f"{key} is there twice"
        found[key] = SimpleNamespace(
            anchor=row.get("id"),
            claim=claim.get_text(" ", strip=True),
            verdict=verdict.get_text(strip=True),
            value=value.p.get_text(" ", strip=True),
            links=[link["href"] for link in value.find_all("a")],
            dispute=dispute,
        )
    return found


@pytest.fixture(scope="module")
def entries() -> dict[str, ast.Call]:
    """The calls of ``enter`` in the page's cells by the id that they enter."""
    notebook = jupytext.read(ROOT / "book" / "05-ledger.md")
    calls = {}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            for node in ast.walk(ast.parse(cell.source)):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "enter":
                    calls[node.args[0].value] = node
    return calls


def test_every_finding_has_its_row(rows):
    expected = {f"{text}-{number}" for text, numbers in FINDINGS.items() for number in numbers}
    assert len(expected) == 55
    assert expected <= set(rows)


def test_there_are_many_true_claims_and_every_word_is_used(rows):
    words = [row.verdict for row in rows.values()]
    assert words.count("true") >= 20
    assert set(words) == WORDS
    assert {key for key in rows if "-t" in key} <= {
        key for key, row in rows.items() if row.verdict == "true"
    }


def test_every_row_has_claim_value_and_anchor(rows):
    for key, row in rows.items():
        assert row.anchor == f"ledger-{key}"
        assert CHINESE.search(row.claim), f"{key} names no Chinese term"
        assert re.search(r"\d", row.value), f"{key} has no computed value: {row.value}"
        assert ("What would decide:" in row.value) == (row.verdict == "unsupported"), key
        assert ("Condition:" in row.value) == (row.verdict == "imprecise"), key
        assert not re.search(r"\b(nan|inf|None|True|False)\b", row.value), f"{key}: {row.value}"


def test_every_row_leads_to_the_cell_that_enters_it(rows, page):
    for key, row in rows.items():
        anchor = row.links[-2:] if len(row.links) > 1 else row.links
        (label,) = {link[1:] for link in anchor if link.startswith("#ledger-cell-")}
        section = page.find(id=label).find_parent("section")
        cells = [cell.get_text() for cell in section.select("div.cell_input")]
        assert any(f'"{key}"' in cell for cell in cells), f"{key} is not entered at {label}"
        outputs = [output.get_text() for output in section.select("div.cell_output")]
        shown = re.compile(rf"^{re.escape(key)} +{re.escape(row.verdict)}$", re.MULTILINE)
        assert any(shown.search(output) for output in outputs), f"{key}: {label} says otherwise"


def test_every_link_of_a_row_resolves(rows, site):
    pages: dict[str, set[str]] = {}
    for key, row in rows.items():
        for link in [*row.links, row.dispute["href"].partition("?row=" + key)[2]]:
            file, _, anchor = link.partition("#")
            file = file or PAGE
            if file not in pages:
                text = (site / file).read_text(encoding="utf-8")
                pages[file] = set(re.findall(r'\bid="([^"]+)"', text))
            assert anchor in pages[file], f"{key}: {link}"


def test_every_dispute_link_names_its_row_and_one_setting_makes_it_an_issue(rows):
    for key, row in rows.items():
        assert row.dispute.get_text() == f"dispute this: {key}"
        assert row.dispute["href"] == f"?row={key}#ledger-dispute"
    link = load("book/_ext/ledger.py").Ledger.dispute
    course = SimpleNamespace(config=SimpleNamespace(ledger_repository="https://github.com/a/b/"))
    assert link(course, "000-9") == "https://github.com/a/b/issues/new?title=Ledger%20000-9%3A%20"


def test_no_verdict_is_typed(rows, entries):
    assert set(entries) == set(rows)
    for key, call in entries.items():
        given = call.args[2]
        if isinstance(given, ast.Constant):
            assert given.value is None
            assert rows[key].verdict == "unsupported"
        for keyword in call.keywords:
            if keyword.arg == "saved":
                assert not isinstance(keyword.value, ast.Constant), key


def test_contradictions_stand_side_by_side(page, rows):
    section = page.find(id="ledger-contradictions").find_parent("section")
    lines = section.select("table tbody tr")
    assert len(lines) == 4
    for line in lines:
        sides = [
            {link.get_text() for link in cell.find_all("a")} for cell in line.find_all("td")[1:]
        ]
        assert all(sides)
        assert not sides[0] & sides[1]
        for key in sides[0] | sides[1]:
            assert f"{key} ({rows[key].verdict})" in line.get_text()


def test_the_graded_sentences_are_not_in_the_book(site):
    source = (ROOT / "solutions" / "05-ledger" / "05-ledger.py").read_text(encoding="utf-8")
    listed = re.findall(r"^# - \*\*[a-f]\*\* ((?:.*\n#   )*.*)$", source, re.MULTILINE)
    sentences = [" ".join(text.replace("\n#", " ").split()) for text in listed]
    assert len(sentences) == 6
    for path in site.glob("*.html"):
        text = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser").get_text(" ")
        text = " ".join(text.split())
        assert not [sentence for sentence in sentences if sentence in text], path.name


def test_the_script_is_small_alone_and_on_no_other_page(site, page):
    script = ROOT / "book" / "_static" / "ledger.js"
    assert script.stat().st_size <= 4096
    assert not re.search(r"\bimport\b|fetch|XMLHttpRequest|https?:", script.read_text("utf-8"))
    (tag,) = page.select("script[src*='ledger.js']")
    assert tag["type"] == "module"
    others = [path.name for path in site.glob("*.html") if "ledger.js" in path.read_text("utf-8")]
    assert others == [PAGE]


@pytest.mark.parametrize(
    ("query", "expected"),
    [("permutation equivariant", "000-t1"), ("置换等变", "000-t1"), ("NTK", "004-16")],
)
def test_search_finds_english_and_chinese(address, browser, query, expected):
    tab = browser.new_page()
    tab.goto(f"{address}/{PAGE}", wait_until="networkidle")
    total = tab.locator(VISIBLE).count()
    tab.get_by_label("Search the ledger").fill(query)
    found = tab.locator(VISIBLE).count()
    assert 0 < found < total / 4
    assert tab.locator(f"#ledger-{expected}").is_visible()
    assert tab.locator(".ledger-search output").text_content() == f"{found} of {total} claims"
    tab.get_by_label("Search the ledger").fill("xyzzy")
    assert tab.locator(VISIBLE).count() == 0
    # A link to a row brings it back.
    tab.evaluate("location.hash = 'ledger-000-9'")
    tab.locator("#ledger-000-9").wait_for(state="visible")
    assert tab.locator(VISIBLE).count() == total
    tab.close()


def test_columns_are_sorted_by_keyboard_and_say_so(address, browser):
    tab = browser.new_page()
    tab.goto(f"{address}/{PAGE}", wait_until="networkidle")
    names = f"{VISIBLE} td:first-child a:first-child"
    before = tab.locator(names).all_text_contents()
    verdict = tab.locator("table.ledger th", has_text="Verdict")
    verdict.locator("button").focus()
    tab.keyboard.press("Enter")
    assert verdict.get_attribute("aria-sort") == "ascending"
    words = tab.locator(f"{VISIBLE} td:nth-child(3)").all_text_contents()
    assert [word.strip() for word in words] == sorted(word.strip() for word in words)
    assert tab.locator(names).all_text_contents() != before
    tab.keyboard.press("Space")
    assert verdict.get_attribute("aria-sort") == "descending"

    row = tab.locator("table.ledger th", has_text="Row")
    row.locator("button").click()
    assert verdict.get_attribute("aria-sort") is None
    ordered = tab.locator(names).all_text_contents()
    assert sorted(ordered) == sorted(before)
    assert ordered.index("000-2") < ordered.index("000-10") < ordered.index("001-1")
    tab.close()


def test_without_the_script_all_rows_are_there(address, browser, rows):
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(f"{address}/{PAGE}")
    assert tab.locator(VISIBLE).count() == len(rows)
    assert tab.locator(".ledger-search").count() == 0
    context.close()


def test_on_a_phone_rows_are_cards_and_dispute_says_which_row(address, browser):
    tab = browser.new_page(viewport={"width": 375, "height": 812})
    tab.goto(f"{address}/{PAGE}", wait_until="networkidle")
    wide, inner = tab.locator("table.ledger").evaluate("t => [t.scrollWidth, t.clientWidth]")
    assert wide <= inner
    link = tab.locator("#ledger-000-9 a", has_text="dispute this")
    link.click()
    note = tab.locator(".ledger-disputed a")
    note.wait_for()
    assert note.get_attribute("href") == "#ledger-000-9"
    tab.close()
