"""Quizzes and lines to put in order as a reader meets them in a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from string import ascii_uppercase

import pytest
from conftest import ROOT
from test_practice import blocks, letters, practice

from posenc.exercises import ASSIGNMENTS

PAGE = "02-sinusoidal"
PAGES = [name for assignment in ASSIGNMENTS.values() for name in assignment.pages]
PHONE = {"viewport": {"width": 375, "height": 812}, "has_touch": True}
HEIGHTS = """() => [...document.querySelectorAll('.quiz, .parsons')]
    .map(box => box.getBoundingClientRect().height)"""


def source(page: str) -> str:
    return (ROOT / "book" / f"{page}.md").read_text(encoding="utf-8")


def quizzes(page: str) -> list[list]:
    """Return the questions of each quiz of a page."""
    return [practice.read_quiz(body) for _, body in blocks(source(page), "quiz")]


def questions(page: str) -> list:
    return [question for quiz in quizzes(page) for question in quiz]


def items(page: str) -> list:
    return [practice.read_parsons(*block) for block in blocks(source(page), "parsons")]


def right_letter(question) -> str:
    return ascii_uppercase[[option.idea for option in question.options].index(None)]


def order(item) -> str:
    """Return the letters of an item's lines in their order."""
    return "".join(ascii_uppercase[item.shown.index(line)] for line in item.lines)


def shows(shown: str, markdown: str) -> bool:
    """Say whether a text is shown; its formulas and the targets of its links are left out."""
    parts = re.split(r"\$.*?\$|\{\w+\}`.*?`|\[|\]\(.*?\)", markdown)
    return all(letters(part) in letters(shown) for part in parts)


@contextmanager
def opened(browser, address: str, page: str = PAGE, **options) -> Iterator:
    """Open a page that makes no noise and asks no other host; close what remembers with it."""
    context = browser.new_context(**options)
    tab = context.new_page()
    noise = []
    tab.on("pageerror", lambda error: noise.append(str(error)))
    tab.on("console", lambda said: noise.append(said.text) if said.type != "log" else None)
    tab.on(
        "request",
        lambda asked: None if asked.url.startswith(address) else noise.append(asked.url),
    )
    tab.goto(f"{address}/{page}.html")
    yield tab
    context.close()
    assert not [text for text in noise if not text.startswith("data:")]


def test_the_script_is_small_alone_and_only_where_there_is_practice(site):
    script = ROOT / "book" / "_static" / "practice.js"
    assert script.stat().st_size <= 10_000
    assert not re.search(r"\bimport\b|fetch|XMLHttpRequest|https?:", script.read_text("utf-8"))
    for path in site.rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        held = re.search('<div class="(quiz|parsons) ', page)
        tags = re.findall("<script[^>]*practice.js[^>]*>", page)
        assert len(tags) == (1 if held else 0), path
        assert all('type="module"' in tag for tag in tags)


# What is said when the choices are made one after the other, and at last about the whole quiz.
CHOOSE_ALL = """() => [...document.querySelectorAll('.quiz')].map(quiz => ({
    questions: [...quiz.querySelectorAll('.question')].map(box =>
        [...box.querySelectorAll(':scope > ol > li')].map(line => {
            line.querySelector('label').click();
            const [text, radio] = ['label > span:not([class])', 'input'].map(
                part => line.querySelector(part));
            return {
                shown: text.textContent,
                chosen: radio.checked,
                gap: text.getBoundingClientRect().left - radio.getBoundingClientRect().right,
                told: box.querySelector('[role=status]').textContent,
                height: line.getBoundingClientRect().height,
            };
        })),
    score: quiz.querySelector(':scope > .practice-controls').textContent,
    opened: quiz.querySelectorAll('details[open]').length,
}))"""


def test_every_page_answers_every_choice_and_checks_every_order(address, browser):
    with opened(browser, address, **PHONE) as tab:
        for page in PAGES:
            tab.goto(f"{address}/{page}.html")
            for quiz, seen in zip(quizzes(page), tab.evaluate(CHOOSE_ALL), strict=True):
                for question, choices in zip(quiz, seen["questions"], strict=True):
                    assert_answered(question, choices)
                first = sum(right_letter(question) == "A" for question in quiz)
                said = f"{len(quiz)} of {len(quiz)} answered, {first} right at the first try."
                assert said in seen["score"]
                assert seen["opened"] == 0
            for number, item in enumerate(items(page)):
                put_in_order(tab.locator(".parsons").nth(number), item)
            wide, window = tab.evaluate("[document.documentElement.scrollWidth, innerWidth]")
            assert wide <= window, page


def assert_answered(question, choices: list[dict]) -> None:
    """Compare what is said of each choice with what the book knows of it."""
    names = [option.idea.name for option in question.options if option.idea]
    for letter, option, seen in zip(ascii_uppercase, question.options, choices, strict=False):
        told = seen["told"]
        assert seen["chosen"]
        assert seen["height"] >= 44
        assert 0 < seen["gap"] < 16
        assert shows(seen["shown"], option.text)
        assert shows(told, option.why)
        if option.idea is None:
            assert told.startswith(f"✓ {letter} is right.")
            assert not [name for name in names if f": {name}." in told]
        else:
            assert told.startswith("✗ ")
            assert letters(told).startswith(letters(f"Not right. {letter}: {option.idea.name}."))
            assert shows(told, option.idea.explanation)
            assert "is right." not in told
    assert len(choices) == len(question.options)


def test_a_question_is_a_group_of_radio_buttons_that_a_finger_can_hit(address, browser):
    with opened(browser, address, **PHONE) as tab:
        question = questions(PAGE)[0]
        box = tab.locator(".question").first
        group = box.get_by_role("radiogroup")
        assert shows(group.aria_snapshot().split("\n")[0], question.text)
        for place, option in enumerate(question.options):
            group.locator("li").nth(place).tap()
            group.locator(f"li:nth-child({place + 1}) input:checked").wait_for()
            radio = group.get_by_role("radio").nth(place)
            told = "not right" if option.idea else "right"
            assert re.search(rf"{ascii_uppercase[place]}\. .*, {told}\"", radio.aria_snapshot())


# Press buttons and boxes of an item by their names.
PRESS = """(box, names) => names.forEach(name => [...box.querySelectorAll('button, input')]
    .find(control => (control.ariaLabel ?? control.textContent) === name).click())"""
SMALLEST = """box => Math.min(...[...box.querySelectorAll('button')].flatMap(
    button => [button.getBoundingClientRect().width, button.getBoundingClientRect().height]))"""
LINES = "ol.practice-on > li"


def put_in_order(box, item) -> None:
    """Check an item as it is shown, leave out what does not belong, then get it right."""
    right, told, lines = order(item), box.locator(".practice-told"), box.locator(LINES)
    assert box.evaluate(SMALLEST) >= 24
    assert lines.count() == len(item.shown)
    assert told.get_attribute("role") == "status"
    for line, shown in zip(item.shown, lines.all_text_contents(), strict=True):
        assert shows(shown, line.text)

    box.evaluate(PRESS, ["Check"])
    shown = [letter for letter in ascii_uppercase[: len(item.shown)] if letter in right]
    fault = next(letter for letter, other in zip(shown, right, strict=True) if letter != other)
    assert f"✗ Line {fault} is the first that is out of place." in told.text_content()
    for extra in item.extra:
        letter = ascii_uppercase[item.shown.index(extra)]
        assert shows(told.text_content(), f"Does not belong. {letter}: {extra.idea.name}.")
        assert shows(told.text_content(), extra.why)
        assert shows(told.text_content(), extra.idea.explanation)
        box.evaluate(PRESS, [f"Use line {letter}"])
    box.evaluate(PRESS, [f"Move line {letter} up" for letter in moves(item)] + ["Check"])
    assert told.text_content() == "✓ All lines are in order."

    # Against the top, where nothing happens, then down by one.
    first, second, third = right[:3]
    box.evaluate(PRESS, [f"Move line {first} up", f"Move line {first} down", "Check"])
    assert told.text_content() == f"✗ Line {second} is the first that is out of place."
    moved = box.locator(".visually-hidden[role=status]").last.text_content()
    assert moved == f"Line {first} is number 2 of {len(item.shown)}."
    box.evaluate(PRESS, [f"Move line {first} up", f"Use line {third}", "Check"])
    assert told.text_content() == "✗ A line that belongs is left out."
    box.evaluate(PRESS, ["Start again"])
    assert told.text_content() == ""
    shown = [line[0] for line in lines.all_text_contents()]
    assert "".join(shown) == ascii_uppercase[: len(item.shown)]
    assert box.locator("input:not(:checked)").count() == 0


def moves(item) -> list[str]:
    """Return which lines to move up, one by one, until they are in order."""
    lines, made = list(ascii_uppercase[: len(item.shown)]), []
    for place, letter in enumerate(order(item)):
        made += [letter] * (lines.index(letter) - place)
        lines.remove(letter)
        lines.insert(place, letter)
    return made


# Tab moves on until what has the focus is inside the box that this selects.
FOCUSED = "selector => document.activeElement.closest(selector) !== null"
RING = """() => {
    const style = getComputedStyle(document.activeElement);
    return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
}"""


def tab_to(page, selector: str) -> None:
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate(FOCUSED, selector):
            assert page.evaluate(RING), f"{selector} has the focus and does not show it"
            return
    raise AssertionError(f"Tab does not reach {selector}")


def test_a_quiz_works_by_keyboard_alone(address, browser):
    with opened(browser, address, "05-ledger") as tab:
        box = tab.locator(".question").first
        radios = box.get_by_role("radio")
        told = box.get_by_role("status")
        # Tab goes on from a click beside everything that takes the focus.
        box.locator("p").first.click()
        tab_to(tab, ".question input")
        assert tab.evaluate("document.activeElement === document.querySelector('.question input')")
        keys = box.locator(".practice-keys")
        assert "Arrow keys move" in keys.text_content()
        assert keys.evaluate("hint => getComputedStyle(hint).clipPath") == "none"

        # Moving tells nothing, and goes round at both ends.
        for key, place in [("ArrowUp", 2), ("ArrowDown", 0), ("ArrowRight", 1), ("ArrowLeft", 0)]:
            tab.keyboard.press(key)
            assert radios.nth(place).evaluate("radio => radio === document.activeElement")
            assert tab.evaluate(RING)
        assert box.locator("input:checked").count() == 0
        assert told.text_content() == ""

        tab.keyboard.press("Control+ArrowDown")
        assert radios.nth(0).evaluate("radio => radio === document.activeElement")
        tab.keyboard.press("Space")
        assert radios.nth(0).is_checked()
        first = told.text_content()
        assert first
        tab.keyboard.press("ArrowDown")
        assert told.text_content() == first
        tab.keyboard.press("Enter")
        assert radios.nth(1).is_checked()
        assert told.text_content() not in ("", first)

        tab_to(tab, ".question summary")
        tab.keyboard.press("Enter")
        assert box.locator("details[open]").count() == 1
        tab_to(tab, ".quiz > .practice-controls button")
        tab.keyboard.press("Enter")
        assert radios.nth(0).evaluate("radio => radio === document.activeElement")
        assert tab.locator(".quiz input:checked").count() == 0
        assert told.text_content() == ""
        assert not tab.locator(".quiz > .practice-controls button").is_visible()


def test_lines_are_put_in_order_by_keyboard_alone(address, browser):
    item = items(PAGE)[0]
    extra = ascii_uppercase[item.shown.index(item.extra[0])]
    with opened(browser, address) as tab:
        box = tab.locator(".parsons")
        box.locator("p").first.click()
        tab_to(tab, ".parsons input")
        for letter, again in groupby(moves(item)):
            # Shift+Tab would do, and takes long.
            box.get_by_role("button", name=f"Move line {letter} up").focus()
            for _ in again:
                tab.keyboard.press("Enter")
                assert tab.evaluate("document.activeElement.ariaLabel") == f"Move line {letter} up"
        box.get_by_role("checkbox", name=f"Use line {extra}").focus()
        tab.keyboard.press("Space")
        tab_to(tab, ".parsons .practice-controls")
        tab.keyboard.press("Enter")
        assert box.locator(".practice-told").text_content() == "✓ All lines are in order."


def test_a_line_is_dragged_by_its_letter(address, browser):
    with opened(browser, address) as tab:
        box = tab.locator(".parsons")
        box.scroll_into_view_if_needed()
        for letter, target in (("B", "F"), ("G", "A")):
            grip = box.locator(".grip", has_text=letter).bounding_box()
            goal = box.locator(LINES, has_text=re.compile(rf"^{target}\.")).bounding_box()
            tab.mouse.move(grip["x"] + 16, grip["y"] + 10)
            tab.mouse.down()
            tab.mouse.move(grip["x"] + 40, goal["y"] + goal["height"] / 2, steps=20)
            tab.mouse.up()
            tab.mouse.move(grip["x"] + 40, grip["y"])
        shown = [line[0] for line in box.locator(LINES).all_text_contents()]
        assert "".join(shown) == "GACDEFBHIJ"


def test_practice_is_remembered_until_the_tab_is_closed(address, browser):
    question = questions(PAGE)[0]
    right = ascii_uppercase.index(right_letter(question))
    state = """() => [...document.querySelectorAll('.quiz, .parsons')].map(box =>
        [...box.querySelectorAll('li, .practice-told, .practice-controls span, input')].map(
            part => part.checked ?? (part.checkVisibility() && part.textContent)).join('|'))"""
    with opened(browser, address) as tab:
        fresh = tab.evaluate(state)
        radios = tab.locator(".question").first.get_by_role("radio")
        radios.nth(right - 1).check()
        radios.nth(right).check()
        box = tab.locator(".parsons")
        box.get_by_role("button", name="Move line C up").click()
        box.get_by_role("checkbox", name="Use line A").uncheck()
        box.get_by_role("button", name="Check").click()
        done = tab.evaluate(state)
        assert "1 of 5 answered, 0 right at the first try." in done[0]
        assert "out of place" in done[1]

        tab.locator("a[href='03-rotation.html']").last.click()
        tab.wait_for_url("**/03-rotation.html")
        assert tab.locator(".practice-told > *").count() == 0
        tab.go_back()
        assert tab.evaluate(state) == done
        tab.goto(f"{address}/{PAGE}.html#exercises")
        assert tab.evaluate(state) == done
        heading = tab.locator("#exercises h2")
        tab.wait_for_function("document.readyState === 'complete'")
        assert 0 <= heading.bounding_box()["y"] < 200, "what was remembered moved the goal away"

        for box in tab.locator(".quiz, .parsons").all():
            box.get_by_role("button", name="Start again").click()
        assert tab.evaluate(state) == fresh
        tab.reload()
        assert tab.evaluate(state) == fresh
    with opened(browser, address) as tab:
        assert tab.evaluate(state) == fresh


# Withheld from this script alone, since the theme complains on its own account.
REFUSED = """const {sessionStorage} = window;
    Object.defineProperty(window, 'sessionStorage', {get() {
        if (!new Error().stack.includes('practice.js')) return sessionStorage;
        window.failed = true;
        throw new DOMException('no', 'SecurityError');
    }});"""
FULL = """Storage.prototype.setItem = name => {
    if (!name.startsWith('practice')) return;
    window.failed = true;
    throw new DOMException('full', 'QuotaExceededError');
};"""
RUBBISH = """const rubbish =
    {'quiz-1-1': 'Z☃{', 'quiz-1-2': '!a', 'quiz-1-3': '[', 'lines-1': 'AAB!'};
    Storage.prototype.getItem = name => {
        window.failed = true;
        return rubbish[name.split(' ').at(-1)] ?? null;
    };"""


@pytest.mark.parametrize("storage", [REFUSED, FULL, RUBBISH], ids=["refused", "full", "rubbish"])
def test_storage_that_fails_breaks_nothing(address, browser, storage):
    with opened(browser, address, "index") as tab:
        tab.add_init_script(storage)
        tab.goto(f"{address}/{PAGE}.html")
        assert tab.evaluate("window.failed"), "the storage was not asked"
        assert tab.locator(".practice-on input:checked").count() == len(items(PAGE)[0].shown)
        box = tab.locator(".question").nth(1)
        box.get_by_role("radio").first.check()
        assert box.get_by_role("status").text_content()
        parsons = tab.locator(".parsons")
        assert parsons.locator(".practice-told > *").count() == 0
        parsons.get_by_role("button", name="Check").click()
        assert "out of place" in parsons.locator(".practice-told").text_content()


def test_without_javascript_letters_and_answers_are_there(address, browser):
    with opened(browser, address, java_script_enabled=False) as tab:
        assert tab.locator(".quiz :is(input, button), .parsons :is(input, button)").count() == 0
        for box in tab.locator(".question, .parsons").all():
            line = box.locator("> ol > li").first
            assert line.evaluate("line => getComputedStyle(line).listStyleType") == "upper-alpha"
            body = box.locator("> details > div")
            assert not body.is_visible()
            box.locator("> details > summary").click()
            assert body.is_visible()


def test_on_paper_a_quiz_is_a_list_of_letters(address, browser):
    with opened(browser, address) as tab:
        box = tab.locator(".question").first
        box.get_by_role("radio").first.check()
        tab.emulate_media(media="print")
        for box in tab.locator(".question, .parsons").all():
            assert box.locator(".letter").first.is_visible()
            for hidden in box.locator("input, button, .practice-keys, .practice-told").all():
                assert not hidden.is_visible()


@pytest.mark.parametrize(("width", "pages"), [(1280, [PAGE]), (375, PAGES)])
def test_nothing_jumps_when_the_script_comes(address, browser, tmp_path, width, pages):
    empty = tmp_path / "practice.js"
    empty.touch()
    with opened(browser, address, "index", viewport={"width": width, "height": 800}) as tab:
        for page in pages:
            tab.route("**/practice.js*", lambda route: route.fulfill(path=empty))
            tab.goto(f"{address}/{page}.html")
            tab.evaluate("document.fonts.load('16px \"STIX Two Math\"').then(() => null)")
            assert tab.locator(".practice-on").count() == 0
            before = tab.evaluate(HEIGHTS)
            tab.unroute("**/practice.js*")
            tab.add_script_tag(type="module", url="_static/practice.js")
            tab.locator(".practice-on").first.wait_for()
            assert tab.evaluate(HEIGHTS) == pytest.approx(before, abs=1), page
