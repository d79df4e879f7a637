"""Every element of the four texts that the course follows has its place in the book.

A page marks it by a comment, ``% covers: C4, C5``, in the section that treats it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from conftest import ROOT

# For each element: what it is, and the pages where it belongs.
EXPECTED = {
    "C1": ("example sentences that differ in order alone", "00-transformer 01-attention"),
    "C2": ("recurrent, convolutional, Transformer: a table", "00-transformer 01-attention"),
    "C3": ("four properties of the encoding", "02-sinusoidal 03-rotation"),
    "C4": ("the formula of the encoding", "02-sinusoidal"),
    "C5": ("the frequencies, as a power and as an exponential", "02-sinusoidal"),
    "C6": ("a program: encode, add, verify, draw", "02-sinusoidal"),
    "C7": ("its printed table", "02-sinusoidal 05-ledger"),
    "C8": ("wavelengths, and where they end", "02-sinusoidal"),
    "C9": ("learned against sinusoidal", "02-sinusoidal 04-learned"),
    "C10": ("why sine and cosine", "02-sinusoidal"),
    "C11": ("three questions: meaning, odd sizes, RoPE", "02-sinusoidal 04-rope"),
    "C12": ("a decision tree", "05-ledger decision-guide"),
    "C13": ("interview questions", "01-attention 02-sinusoidal 03-rotation interview-cards"),
    "C14": ("a summary in four sentences", "index"),
    "C15": ("the rotation identity", "03-rotation"),
    "C16": ("a NumPy encoding and its unit test", "02-sinusoidal"),
    "C17": ("the flow of shapes", "02-sinusoidal formula-sheet"),
    "C18": ("a numerical checklist", "02-sinusoidal 05-ledger numerical-checklist"),
    "C19": ("a mnemonic", "02-sinusoidal 03-rotation formula-sheet"),
    "C20": ("metaphors", "01-attention 02-sinusoidal 03-rotation 04-learned 04-rope"),
    "C21": ("the base 10,000", "02-sinusoidal 05-ledger"),
    "C22": ("pictures of waves, heat maps and stripes", "02-sinusoidal"),
    "C23": ("one position predicted from another", "03-rotation 05-ledger"),
    "C24": ("a relative bias", "04-learned 04-rope 05-ledger decision-guide"),
    "C25": ("more dimensions; adding or concatenating", "02-sinusoidal 05-ledger"),
    "C26": ("attention without positions", "01-attention"),
    "C27": ("where encodings are used", "01-attention 02-sinusoidal"),
    "C28": ("pitfalls: length, mixing", "02-sinusoidal 04-learned 05-ledger"),
    "C29": ("an implementation with its first tables", "02-sinusoidal 03-rotation"),
    "C30": ("RoPE and its demonstration", "04-rope"),
    "C31": ("which models use RoPE", "04-rope"),
    "C32": ("three questions: sine, adding, RoPE", "02-sinusoidal 04-rope"),
    "C33": ("what, in plain words, why, used for, pitfalls", "index"),
    "C34": ("a concept map and a vocabulary", "concept-map glossary"),
}
HEADING = re.compile(r"#{1,6} (.+)")
MARK = re.compile(r"% covers: (C\d+(?:, C\d+)*)")
FENCE = re.compile(r"\s*(`{3,}|:{3,}|~{3,})(.*)")
PROSE = re.compile(r"\{(?!code-cell|math|quiz|parsons)")


def marks(text: str) -> list[tuple[str, str, int]]:
    """Return each marked element, its section's heading, and the words in that section."""
    found, heading, words, open_marks, fence, prose = [], "", 0, [], "", False
    body = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    for line in [*body.splitlines(), "# end"]:
        if match := FENCE.match(line):
            if not fence:
                fence, prose = match[1], bool(PROSE.match(match[2].strip()))
            elif line.strip() == fence:
                fence = ""
        elif fence:
            words += len(line.split()) if prose else 0
        elif match := HEADING.fullmatch(line):
            found += [(element, heading, words) for element in open_marks]
            heading, words, open_marks = match[1], 0, []
        elif line.startswith("% covers"):
            match = MARK.fullmatch(line.rstrip())
            assert match, f"{line!r} should read like '% covers: C4, C5'"
            open_marks += match[1].split(", ")
        elif not line.startswith(("%", "(")) or not line.endswith(")="):
            words += len(line.split())
    return found


def pages() -> dict[str, list[tuple[str, str, int]]]:
    """Return the marks of each page of the book."""
    return {
        path.stem: marks(path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / "book").glob("*.md"))
    }


@pytest.mark.parametrize("element", EXPECTED)
def test_every_element_is_covered_where_it_belongs(element):
    what, allowed = EXPECTED[element]
    found = {page for page, there in pages().items() for mark in there if mark[0] == element}
    assert found, f"no page has '% covers: {element}' ({what}); it belongs in {allowed}"
    assert found & set(allowed.split()), f"{element} ({what}) is in {found}, not in {allowed}"


def test_marks_name_known_elements_and_stand_in_sections_with_text():
    for page, there in pages().items():
        for element, heading, words in there:
            assert element in EXPECTED, f"{page}: {element} is not one of C1..C34"
            assert heading, f"{page}: {element} stands before the first heading"
            assert words >= 10, f"{page}: {element} marks {heading!r}, which has {words} words"


def test_a_mark_belongs_to_its_section_and_code_is_not_text():
    code = "```\n% covers: C4\n```\n"
    page = "# One\n\n% covers: C1, C2\nthree words here\n\n## Two\n% covers: C3\n" + code
    assert marks(page) == [("C1", "One", 3), ("C2", "One", 3), ("C3", "Two", 0)]
    assert marks("# One\n% covers: C5\n```{dropdown} Why?\nBecause so.\n```\n") == [
        ("C5", "One", 2)
    ]
    with pytest.raises(AssertionError, match="should read like"):
        marks("# One\n% covers C1\n")


def glossary() -> tuple[dict[str, str], dict[str, str]]:
    """Return English to Chinese, by the entries and by the Chinese index."""
    text = (ROOT / "book" / "glossary.md").read_text(encoding="utf-8")
    body = text.split("```{glossary}\n")[1].split("\n```")[0]
    entries = {}
    for entry in body.split("\n\n"):
        english, chinese, *definition = entry.strip("\n").splitlines()
        assert len(definition) >= 2, f"{english} has no definition"
        entries[english] = chinese
    rows = re.findall(
        r"^\| \[(.+?)\]\{#zh-[\w-]+\} \| .+ \| \{term\}`(.+?)` \|$", text, re.MULTILINE
    )
    return entries, {english: chinese for chinese, english in rows}


def test_the_glossary_has_every_term_in_both_languages():
    entries, index = glossary()
    assert entries == index
    assert len(entries) >= 50
    assert list(entries) == sorted(entries, key=str.lower)


def built(site: Path, page: str):
    """Return a page of the site as a tree."""
    return BeautifulSoup((site / f"{page}.html").read_text(encoding="utf-8"), "html.parser")


def test_glossary_links_lead_there_and_back(site):
    page = built(site, "glossary")
    entries, _ = glossary()
    terms = [term for term in page.select("dl.glossary > dt") if term.get("id")]
    assert len(terms) == 2 * len(entries)
    for definition in page.select("dl.glossary > dd"):
        row = page.find(id=definition.find_all("a")[-1]["href"].lstrip("#")).find_parent("tr")
        back = page.find(id=row.select("a")[-1]["href"].lstrip("#"))
        assert back.find_next("dd") is definition


def test_a_search_for_a_chinese_term_finds_its_chapter(site):
    # To Sphinx a run of Chinese characters is a word, and a query that is a word finds no other.
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    data = json.loads(index[len("Search.setIndex(") : index.rindex(")")])
    for term, chapter in (
        ("置换等变", "01-attention"),
        ("正弦位置编码", "02-sinusoidal"),
        ("旋转矩阵", "03-rotation"),
        ("可学习位置嵌入", "04-learned"),
        ("旋转位置编码", "04-rope"),
    ):
        found = set()
        for words in (data["terms"], data["titleterms"]):
            numbers = words.get(term, [])
            numbers = [numbers] if isinstance(numbers, int) else numbers
            found |= {data["docnames"][number] for number in numbers}
        assert chapter in found, (
            f"{term} is a word of {found}; write it between spaces in {chapter}"
        )
