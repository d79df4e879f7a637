"""Formulas: drawn by the font that travels along, within the page, and read aloud once."""

from __future__ import annotations

from pathlib import Path

from conftest import ROOT, page_names
from fontTools.pens.boundsPen import BoundsPen
from fontTools.ttLib import TTFont

FONT = ROOT / "book" / "_static" / "stix-two-math.woff2"
# Single letters of <mi> are drawn in italics, which are signs of their own.
ITALIC = {
    **{chr(ord("A") + i): chr(0x1D434 + i) for i in range(26)},
    **{chr(ord("a") + i): chr(0x1D44E + i) for i in range(26)},
    "h": "\u210e",
    **{chr(0x391 + i): chr(0x1D6E2 + i) for i in range(17)},
    **{chr(0x3A3 + i): chr(0x1D6F4 + i) for i in range(7)},
    **{chr(0x3B1 + i): chr(0x1D6FC + i) for i in range(25)},
}
TOO_WIDE = """() => [...document.querySelectorAll('div.math .formula, span.math')]
    .filter(box => box.clientWidth && box.scrollWidth > box.clientWidth + 1)
    .map(box => box.querySelector('annotation').textContent)"""
# Firefox keeps scripts at 8 points, so that the widest formulas in small type get wider by a ninth.
TOO_WIDE_FOR_FIREFOX = """() => [...document.querySelectorAll('.cards p span.math')].filter(box => {
    const { width } = box.querySelector('math').getBoundingClientRect();
    return width * 10 / 9 > box.closest('p').clientWidth;
}).map(box => box.querySelector('annotation').textContent)"""
# With lines broken wherever a browser may: the formulas whose punctuation is not at their end.
LEFT_BY_PUNCTUATION = """() => [...document.querySelectorAll('span.math')].filter(box => {
    const range = document.createRange();
    range.selectNode(box.lastChild);
    const closing = range.getBoundingClientRect();
    const formula = box.firstChild.getBoundingClientRect();
    const apart = Math.abs(closing.left - formula.right) > 1 || closing.top > formula.bottom;
    return box.lastChild !== box.firstChild && formula.width && apart;
}).map(box => box.textContent)"""


def test_the_font_has_every_sign_of_every_formula(pages):
    signs = TTFont(FONT).getBestCmap()
    drawn = set()
    # What stands beside the first part of <semantics> is the TeX source.
    for formula in (math.semantics.contents[0] for page in pages.values() for math in page("math")):
        drawn |= set(formula.get_text()) - {" ", "\n"}
        drawn |= {
            ITALIC.get(letter.get_text(), letter.get_text()[0])
            for letter in formula("mi")
            if len(letter.get_text()) == 1 and letter.get("mathvariant") != "normal"
        }
    missing = {sign for sign in drawn if ord(sign) not in signs}
    assert not missing, f"build a larger subset of the font: {sorted(missing)}"
    assert len(drawn) > 80


def test_formulas_fit_a_phone(site: Path, address: str, browser):
    page = browser.new_page(viewport={"width": 375, "height": 812})
    faults = []
    for name in page_names(site):
        page.goto(f"{address}/{name}")
        page.evaluate("document.fonts.ready")
        for script in (TOO_WIDE, TOO_WIDE_FOR_FIREFOX):
            faults += [f"{name}: {tex}" for tex in page.evaluate(script)]
    page.close()
    assert not faults


def test_punctuation_stays_with_its_formula(pages, address: str, browser):
    count = 0
    for name, soup in pages.items():
        for formula in soup.select("span.math"):
            count += bool(formula.contents[1:])
            following = str(formula.next_sibling or "")
            assert not following.startswith(tuple(".,:;?!)”，。：；")), f"{name}: {formula}"
    assert count > 500
    page = browser.new_page()
    for width in (375, 1280):
        page.set_viewport_size({"width": width, "height": 812})
        page.goto(f"{address}/03-rotation.html")
        page.add_style_tag(content=".bd-content p { width: min-content !important }")
        page.evaluate("document.fonts.ready")
        assert not page.evaluate(LEFT_BY_PUNCTUATION), f"at {width} px"
    page.close()


def test_primes_reach_down_beside_their_letter():
    font = TTFont(FONT)
    signs, glyphs, constants = font.getBestCmap(), font.getGlyphSet(), font["MATH"].table
    scale = constants.MathConstants.ScriptPercentScaleDown / 100
    shift = constants.MathConstants.SuperscriptShiftUp.Value
    capital = font["OS/2"].sCapHeight
    for prime in "\u2032\u2033\u2034":
        bounds = BoundsPen(glyphs)
        glyphs[signs[ord(prime)]].draw(bounds)
        low, high = (shift + scale * bounds.bounds[side] for side in (1, 3))
        assert low < 0.75 * capital
        assert capital < high < 1.2 * capital


def test_screen_readers_get_mathml_without_its_source(address: str, browser):
    page = browser.new_page()
    page.goto(f"{address}/02-sinusoidal.html", wait_until="networkidle")
    shown = "[...document.querySelectorAll('annotation')].filter(a => a.checkVisibility()).length"
    assert page.evaluate(shown) == 0
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    roles = [node["role"]["value"] for node in nodes if not node["ignored"]]
    names = [node.get("name", {}).get("value", "") for node in nodes if not node["ignored"]]
    page.close()
    assert sum(role.startswith("Math") for role in roles) > 1000
    assert not [name for name in names if "\\omega" in name or "\\frac" in name]
