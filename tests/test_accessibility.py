"""The site for everyone: axe-core finds nothing, and a keyboard alone does all."""

from __future__ import annotations

from pathlib import Path

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from conftest import page_names

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
VIEWS = {
    "desk, light": (1280, 900, "light"),
    "desk, dark": (1280, 900, "dark"),
    "phone, light": (375, 812, "light"),
    "phone, dark": (375, 812, "dark"),
}
# Pages that hold each kind of thing: cards, figures, tables, quizzes, code, ledger, references.
KINDS = (
    "00-numpy.html",
    "05-ledger.html",
    "bibliography.html",
    "index.html",
    "notation.html",
    "reference/learned.html",
    "search.html",
)
FAULTS = """([rules, contrast]) => axe.run({
    runOnly: {type: 'tag', values: rules}, resultTypes: ['violations'], elementRef: false,
    rules: {'color-contrast': {enabled: contrast}},
}).then(found => found.violations.flatMap(
    fault => fault.nodes.map(node => `${fault.id}: ${node.target} ${node.html}`)))"""

# The element that has the focus: where it is, whether something lies over it, and whether it looks
# otherwise than without the focus. An outline may be on a parent or a child.
STOP = """() => {
  const element = document.activeElement;
  if (!element || element === document.body) return null;
  const around = [element, element.parentElement, element.parentElement.parentElement,
    ...element.querySelectorAll('*')];
  const look = () => around.map(node => ['', '::before', '::after'].map(pseudo => {
    const style = getComputedStyle(node, pseudo);
    const outline = style.outlineStyle === 'none' ? '' : style.outlineWidth + style.outlineColor;
    return [outline, style.boxShadow, style.borderColor, style.borderWidth, style.backgroundColor,
      style.textDecorationLine, style.textDecorationThickness].join();
  }).join()).join();
  const focused = look();
  HTMLElement.prototype.blur.call(element); // focus.js takes this method from some buttons
  const marked = look() !== focused;
  element.focus({preventScroll: true});
  const boxes = [element, ...element.children].flatMap(node => [...node.getClientRects()]);
  const box = boxes.find(box => box.width && box.height) ?? element.getBoundingClientRect();
  const [x, y] = [box.left + Math.min(box.width, 40) / 2, box.top + Math.min(box.height, 20) / 2];
  const top = document.elementFromPoint(
    Math.min(Math.max(x, 0), innerWidth - 1), Math.min(Math.max(y, 0), innerHeight - 1));
  return {
    name: `${element.tagName} ${element.id || element.className} ` +
      (element.getAttribute('aria-label') ?? element.textContent).trim().slice(0, 40),
    number: [...document.querySelectorAll('*')].indexOf(element),
    inside: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
    free: !!top && (element.contains(top) || top.contains(element)),
    marked,
  };
}"""
FOCUS = "() => document.activeElement.className + '#' + document.activeElement.id"
STILL = "*, ::before, ::after {transition: none !important; animation: none !important}"


def open_page(browser, url: str, width: int = 1280, height: int = 900, scheme: str = "light"):
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.goto(url, wait_until="networkidle")
    page.add_style_tag(content=STILL)
    return page


def assert_axe_is_content(
    browser, address: str, names: list[str], view: str, *, contrast: bool = True
):
    faults = []
    width, height, scheme = VIEWS[view]
    for name in names:
        page = open_page(browser, f"{address}/{name}", width, height, scheme)
        page.evaluate(AXE_SCRIPT)
        faults += [f"{name}, {view}, {fault}" for fault in page.evaluate(FAULTS, [RULES, contrast])]
        page.close()
    assert not faults, "\n".join(faults)


def test_axe_finds_nothing_on_a_page_of_each_kind(address: str, browser):
    assert_axe_is_content(browser, address, list(KINDS[::2]), "desk, light")
    assert_axe_is_content(browser, address, list(KINDS[1::2]), "phone, dark")


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing_on_any_page(site: Path, address: str, browser, view):
    # Contrast takes nine tenths of the time, so it is measured once for light and once for dark.
    contrast = view in ("desk, light", "phone, dark")
    assert_axe_is_content(browser, address, page_names(site), view, contrast=contrast)


def test_axe_would_find_a_fault(address: str, browser):
    page = open_page(browser, f"{address}/search.html")
    page.evaluate("document.querySelector('main').innerHTML = '<button></button>'")
    page.evaluate(AXE_SCRIPT)
    assert any(fault.startswith("button-name") for fault in page.evaluate(FAULTS, [RULES, False]))
    page.close()


@pytest.mark.parametrize(
    ("name", "width"),
    [
        ("index.html", 1280),
        ("index.html", 375),
        ("search.html?q=rotation", 1280),
        ("reference/rotary.html", 1280),
        pytest.param("02-sinusoidal.html", 1280, marks=pytest.mark.slow),
        pytest.param("02-sinusoidal.html", 375, marks=pytest.mark.slow),
        pytest.param("05-ledger.html", 1280, marks=pytest.mark.slow),
    ],
)
def test_the_tab_key_reaches_everything_visibly_and_in_order(address: str, browser, name, width):
    page = open_page(browser, f"{address}/{name}", width)
    reachable = page.evaluate(
        """() => [...document.querySelectorAll(
            'a[href], button, input, select, textarea, summary, [tabindex="0"]')].filter(
            element => element.checkVisibility({visibilityProperty: true}) && !element.disabled &&
                element.tabIndex >= 0 && element.type !== 'radio').length"""
    )
    # The search page puts the focus into its field, so the walk begins where the page does.
    page.evaluate("document.activeElement.blur(); getSelection().setPosition(document.body, 0)")
    stops = []
    for _ in range(reachable + 20):
        page.keyboard.press("Tab")
        stop = page.evaluate(STOP)
        if stop is None:
            break
        stops.append(stop)
    else:
        pytest.fail(f"a trap: {stops[-1]['name']}")
    page.close()
    faults = [s for s in stops if not (s["inside"] and s["free"] and s["marked"])]
    assert not faults
    assert [s["number"] for s in stops] == sorted({s["number"] for s in stops})
    assert len(stops) >= reachable


def test_the_first_stop_skips_to_the_text(address: str, browser):
    page = open_page(browser, f"{address}/02-sinusoidal.html")
    page.keyboard.press("Tab")
    skip = page.locator("#pst-skip-link a")
    assert skip.evaluate("link => link === document.activeElement")
    assert skip.bounding_box()["y"] >= 0
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("!!document.activeElement.closest('#main-content')")
    page.close()


@pytest.mark.parametrize("width", [1280, 375])
def test_the_search_opens_by_keyboard_and_gives_the_focus_back(address: str, browser, width):
    page = open_page(browser, f"{address}/glossary.html", width)
    button = page.locator(".search-button:visible, .search-button-field:visible")
    assert button.count() == 1
    button.focus()
    before = page.evaluate(FOCUS)
    for key in ("Control+k", "Enter"):
        page.keyboard.press(key)
        page.locator("dialog[open] input[type=search]:focus").wait_for()
        page.keyboard.press("Escape")
        page.locator("#pst-search-dialog[open]").wait_for(state="detached")
        assert page.evaluate(FOCUS) == before
    page.close()


@pytest.mark.parametrize("width", [1280, 375])
def test_the_theme_switch_works_by_keyboard_and_keeps_the_focus(address: str, browser, width):
    page = open_page(browser, f"{address}/index.html", width)
    switch = page.locator(".theme-switch-button:visible")
    assert switch.count() == 1
    switch.focus()
    seen = []
    for _ in range(3):
        page.keyboard.press("Enter")
        seen.append(page.evaluate("document.documentElement.dataset.mode"))
        assert switch.evaluate("button => button === document.activeElement")
    assert sorted(seen) == ["auto", "dark", "light"]
    page.close()


@pytest.mark.parametrize("side", ["primary", "secondary"])
def test_the_drawers_of_a_phone_work_by_keyboard(address: str, browser, side):
    page = open_page(browser, f"{address}/02-sinusoidal.html", 375, 812)
    button = page.locator(f".{side}-toggle:visible")
    button.focus()
    page.keyboard.press("Enter")
    drawer = page.locator(f"#pst-{side}-sidebar-modal[open]")
    drawer.wait_for()
    for _ in range(3):
        page.keyboard.press("Tab")
        assert drawer.evaluate("drawer => drawer.contains(document.activeElement)")
        stop = page.evaluate(STOP)
        assert stop["inside"], stop
        assert stop["free"], stop
        assert stop["marked"], stop
    page.keyboard.press("Escape")
    drawer.wait_for(state="detached")
    assert button.evaluate("button => button === document.activeElement")
    page.close()


def test_scrolling_boxes_have_names(address: str, browser):
    page = open_page(browser, f"{address}/instructor-guide.html", 375)
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('.pst-scrollable-table-container')].filter(box =>
            box.getAttribute('role') !== 'group' || !box.ariaLabel.startsWith('Table')).length"""
    )
    assert unnamed == 0
    page.close()
