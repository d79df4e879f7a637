"""The book in a browser: quiet, whole, legible on a laptop and on a phone."""

from __future__ import annotations

from pathlib import Path

import pytest
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


@pytest.mark.parametrize("word", ["wavelengths", "正弦位置编码"])
def test_search_finds_the_chapter(address: str, browser, word):
    page = browser.new_page()
    page.goto(f"{address}/index.html", wait_until="networkidle")
    page.locator(".search-button-field:visible").click()
    field = page.locator("dialog input[type=search]")
    field.fill(word)
    field.press("Enter")
    page.wait_for_url("**/search.html?q=*")
    page.locator("#search-results a[href*='02-sinusoidal.html']").first.wait_for(timeout=10_000)
    page.close()
