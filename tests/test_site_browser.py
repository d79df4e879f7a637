"""The book in a browser: quiet, whole, legible on a laptop and on a phone."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from bs4 import BeautifulSoup
from conftest import page_names

SIZES = {"laptop": (1280, 900), "phone": (375, 812)}

# Formulas that have no size, and why the page is wider than the window, if it is.
INVISIBLE = """() => [...document.querySelectorAll('math')]
    .filter(math => !math.getBoundingClientRect().width || !math.getBoundingClientRect().height)
    .map(math => math.textContent)"""
WIDTH = "() => [document.documentElement.scrollWidth, window.innerWidth]"
VISIBLE_SEARCHES = """() => [...document.querySelectorAll(
    '.search-button, .search-button-field, form.bd-search')]
    .filter(element => element.checkVisibility({visibilityProperty: true}) &&
        element.getBoundingClientRect().left >= 0).length"""
VISIBLE_SWITCHES = """() => [...document.querySelectorAll('.theme-switch-button')]
    .filter(element => element.checkVisibility({visibilityProperty: true})).length"""

# TeX, tags, entities, and what buttons say.
NOT_TEXT = re.compile(
    r"\\[a-z]+|</?(a|button|code|div|em|p|pre|span|strong|summary)\b|&[a-z]+;|Copy to|Show code"
)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_every_page_is_quiet_and_whole(site: Path, address: str, browser, size, scheme):
    width, height = SIZES[size]
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(f"{page.url}: {error}"))
    page.on(
        "console",
        lambda message: (
            faults.append(f"{page.url}: {message.text}")
            if message.type in ("error", "warning")
            else None
        ),
    )
    page.on(
        "request",
        lambda request: (
            None
            if request.url.startswith((address, "data:"))
            else faults.append(f"{page.url} asks {request.url}")
        ),
    )
    page.on(
        "response",
        lambda response: (
            faults.append(f"{page.url}: {response.url} answers {response.status}")
            if response.status >= 400
            else None
        ),
    )
    formulas = 0
    for name in page_names(site):
        page.goto(f"{address}/{name}", wait_until="networkidle")
        assert page.evaluate("document.documentElement.dataset.theme") == scheme
        if invisible := page.evaluate(INVISIBLE):
            faults.append(f"{name}: formulas without a size: {invisible}")
        formulas += page.locator("math").count()
        wide, window = page.evaluate(WIDTH)
        if wide > window:
            faults.append(f"{name} is {wide} pixels wide in a window of {window}")
        searches = page.evaluate(VISIBLE_SEARCHES)
        if searches != 1:
            faults.append(f"{name} shows {searches} search boxes")
        switches = page.evaluate(VISIBLE_SWITCHES)
        if switches != 1:
            faults.append(f"{name} shows {switches} theme switches")
    page.close()
    assert not faults
    assert formulas > 50


def test_formulas_use_the_font_that_the_site_brings(address: str, browser):
    page = browser.new_page()
    page.goto(f"{address}/02-sinusoidal.html", wait_until="networkidle")
    status = "[...document.fonts].filter(f => /STIX/.test(f.family)).map(f => f.status)"
    assert page.evaluate(status) == ["loaded"]
    bracket, entry = page.evaluate(
        """() => {
            const math = document.createElement('div');
            math.innerHTML = '<math display="block"><mo id="b">[</mo><mtable><mtr><mtd>' +
                '<mi>a</mi></mtd></mtr><mtr><mtd><mi>b</mi></mtd></mtr></mtable></math>';
            document.querySelector('article').append(math);
            return ['#b', 'mtd'].map(s => math.querySelector(s).getBoundingClientRect().height);
        }"""
    )
    assert bracket > 1.5 * entry, "brackets do not grow with what they enclose"
    page.close()


@pytest.fixture
def results(address: str, browser):
    """A function that searches for words and returns links and texts of the results."""
    page = browser.new_page()
    page.goto(f"{address}/search.html?q=", wait_until="networkidle")

    def search(words: str) -> list[tuple[str, str]]:
        page.evaluate("words => Search.performSearch(words)", words)
        page.wait_for_function(
            """() => /finished|did not match/.test(
                document.querySelector('#search-results .search-summary')?.textContent)"""
        )
        page.wait_for_load_state("networkidle")
        return page.evaluate(
            """() => [...document.querySelectorAll('#search-results ul.search > li')].map(
                item => [item.querySelector('a').href, item.innerText])"""
        )

    yield search
    page.close()


@pytest.mark.parametrize("word", ["wavelengths", "正弦位置编码"])
def test_search_finds_the_chapter(address: str, browser, word):
    page = browser.new_page()
    page.goto(f"{address}/index.html", wait_until="networkidle")
    page.locator(".search-button-field:visible").click()
    field = page.locator("dialog input[type=search]")
    field.fill(word)
    field.press("Enter")
    page.wait_for_url("**/search.html?q=*")
    hit = page.locator("#search-results a[href*='02-sinusoidal.html']").first
    hit.wait_for(timeout=10_000)
    hit.click()
    page.wait_for_url("**/02-sinusoidal.html*")
    page.close()


def test_search_finds_terms_in_both_languages_and_shows_text(site: Path, results):
    glossary = BeautifulSoup((site / "glossary.html").read_text(encoding="utf-8"), "html.parser")
    terms = [term.find(string=True).strip() for term in glossary.select("dl.glossary dt")]
    chinese = [term for term in terms if re.search("[\u4e00-\u9fff]", term)][::5]
    english = [term for term in terms if term.isascii()][::5]
    assert min(len(chinese), len(english)) >= 10
    ids: dict[str, set[str]] = {}
    for term in chinese + english:
        hits = results(term)
        assert any("glossary.html" in link for link, _ in hits), term
        assert len({urlsplit(link).path for link, _ in hits}) > 1 or " " in term, (
            f"{term} is found in the glossary alone"
        )
        for link, text in hits:
            url = urlsplit(link)
            file = url.path.lstrip("/")
            if file not in ids:
                page = BeautifulSoup((site / file).read_text(encoding="utf-8"), "html.parser")
                ids[file] = {tag["id"] for tag in page.find_all(id=True)} | {""}
            assert url.fragment in ids[file], link
            assert not NOT_TEXT.search(text), text


def test_search_finds_a_short_chinese_word_inside_longer_ones(results):
    found = {urlsplit(link).path for link, _ in results("正弦")}
    assert {"/02-sinusoidal.html", "/glossary.html", "/decision-guide.html"} <= found


def test_a_result_opens_at_its_section(results):
    links = [link for link, _ in results("Interleaving sine and cosine")]
    assert any(link.endswith("02-sinusoidal.html#interleaving-sine-and-cosine") for link in links)


def test_nothing_but_the_search_needs_a_script(site: Path, address: str, browser):
    context = browser.new_context(java_script_enabled=False, viewport={"width": 375, "height": 812})
    page = context.new_page()
    for name in page_names(site):
        page.goto(f"{address}/{name}")
        text = page.locator("main").inner_text()
        asks = re.search(r"(activate|enable) JavaScript", text)
        assert bool(asks) == (name == "search.html"), name
        # Every answer can be opened, and what it holds is text.
        for details in page.locator("main details:not([open])").all():
            assert details.locator("> summary").is_visible(), f"{name}: {details.inner_text()}"
            assert len(details.text_content().split()) > 3
        # Locators would be slow for some thousand formulas; what to try with a figure is there when
        # the figure is alive.
        shown = "main :is(math, pre, table, img):not(details *, .live-try *)"
        hidden = page.locator(shown).evaluate_all(
            """elements => elements.filter(element => !element.checkVisibility())
                .map(element => element.src ?? element.textContent)"""
        )
        assert not hidden, name
    # From page to page without the drawers, which need the script.
    page.goto(f"{address}/index.html")
    page.locator("a.right-next").click()
    assert page.url.endswith("00-start.html")
    page.set_viewport_size({"width": 1280, "height": 900})
    page.locator(".bd-sidebar-primary a", has_text="The sinusoidal formula").click()
    assert page.url.endswith("02-sinusoidal.html")
    context.close()


@pytest.mark.parametrize("name", ["02-sinusoidal.html", "05-ledger.html", "formula-sheet.html"])
def test_a_printed_page_is_its_text_and_all_of_it(address: str, browser, name):
    # As wide as the text on A4 paper.
    page = browser.new_page(viewport={"width": 672, "height": 950}, color_scheme="dark")
    page.goto(f"{address}/{name}", wait_until="networkidle")
    page.emulate_media(media="print")
    for part in (".bd-sidebar-primary", ".bd-sidebar-secondary", ".bd-header-article", "footer"):
        for element in page.locator(part).all():
            assert not element.is_visible(), part
    # The headings of the ledger's columns are buttons.
    for button in page.locator("button:not(th button), form").all():
        assert not button.is_visible(), button.evaluate("button => button.outerHTML")
    assert page.locator("article h1").first.is_visible()
    cut = page.evaluate(
        """() => [...document.querySelectorAll('main pre, main table, main math, main img')]
            .filter(element => element.checkVisibility())
            .filter(element => element.getBoundingClientRect().right > innerWidth + 1 ||
                element.scrollWidth > element.clientWidth + 1 && element.matches('pre'))
            .map(element => element.textContent.trim().slice(0, 60) || element.src)"""
    )
    assert not cut
    # Answers are printed although their boxes are closed.
    for details in page.locator("main details:not([open])").all():
        assert (
            details.bounding_box()["height"]
            > 1.5 * details.locator("> summary").bounding_box()["height"]
        ), details.text_content()[:80]
    colour = "element => getComputedStyle(element).color"
    assert page.locator("main p").first.evaluate(colour) == "rgb(0, 0, 0)"
    page.close()
