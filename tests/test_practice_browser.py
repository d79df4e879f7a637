"""Quizzes and lines to put in order as a reader meets them in a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
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
    return sum(quizzes(page), [])


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


def test_every_choice_is_answered_with_the_idea_behind_it(address, browser):
    with opened(browser, address, **PHONE) as tab:
        for page in PAGES:
            tab.goto(f"{address}/{page}.html")
            boxes = tab.locator(".question")
            assert boxes.count() == len(questions(page))
            for number, question in enumerate(questions(page)):
                answer_all(boxes.nth(number), question)
            wide, window = tab.evaluate("[document.documentElement.scrollWidth, innerWidth]")
            assert wide <= window, page
            for number, quiz in enumerate(quizzes(page)):
                score = tab.locator(".quiz").nth(number).locator("> .practice-controls")
                first = sum(right_letter(question) == "A" for question in quiz)
                said = f"{len(quiz)} of {len(quiz)} answered, {first} right at the first try."
                assert said in score.text_content()


def answer_all(box, question) -> None:
    """Choose every answer of a question, one after the other, and read what is said."""
    group = box.get_by_role("radiogroup")
    assert shows(group.aria_snapshot().split("\n")[0], question.text)
    status = box.get_by_role("status")
    assert status.text_content() == ""
    ideas = {option.idea.name for option in question.options if option.idea}
    for place, option in enumerate(question.options):
        radio = group.get_by_role("radio").nth(place)
        line = group.locator("li").nth(place)
        assert shows(line.text_content(), option.text)
        assert line.bounding_box()["height"] >= 44
        line.tap(position={"x": 60, "y": 10})
        assert radio.is_checked()
        said = status.text_content()
        assert shows(said, option.why)
        letter = ascii_uppercase[place]
        if option.idea is None:
            assert said.startswith(f"✓ {letter} is right.")
            assert not [name for name in ideas if f": {name}." in said]
        else:
            # The answer typesets quotes and dashes.
            assert said.startswith(f"✗ Not right. {letter}: ")
            assert letters(said).startswith(letters(f"Not right. {letter}: {option.idea.name}."))
            assert shows(said, option.idea.explanation)
            assert "is right." not in said
        told = "right" if option.idea is None else "not right"
        assert re.search(rf"{letter}\. .*, {told}\"", radio.aria_snapshot(), re.S)
    assert box.locator("details[open]").count() == 0


def press_to_its_place(tab, box, letter: str, place: int) -> None:
    """Move a line up by its own button."""
    up = box.get_by_role("button", name=f"Move line {letter} up")
    lines = box.locator("ol.practice-on > li")
    here = [line[0] for line in lines.all_text_contents()].index(letter)
    for _ in range(here - place):
        up.tap()
    assert lines.nth(place).text_content().startswith(letter)


def test_lines_are_moved_into_order_and_the_check_says_what_is_wrong(address, browser):
    with opened(browser, address, **PHONE) as tab:
        for page in filter(items, PAGES):
            tab.goto(f"{address}/{page}.html")
            for number, item in enumerate(items(page)):
                put_in_order(tab, tab.locator(".parsons").nth(number), item)
            wide, window = tab.evaluate("[document.documentElement.scrollWidth, innerWidth]")
            assert wide <= window, page


def put_in_order(tab, box, item) -> None:
    """Check an item as it is shown, keep and leave out what is wrong, then get it right."""
    right = order(item)
    for button in box.locator("button").all():
        size = button.bounding_box()
        assert size["height"] >= 24
        assert size["width"] >= 24
    check = box.get_by_role("button", name="Check")
    status = box.locator(".verdict")
    assert status.get_attribute("role") == "status"

    check.tap()
    shown = [letter for letter in ascii_uppercase[: len(item.shown)] if letter in right]
    fault = next(letter for letter, other in zip(shown, right, strict=True) if letter != other)
    assert f"✗ Line {fault} is the first that is out of place." in status.text_content()
    for extra in item.extra:
        letter = ascii_uppercase[item.shown.index(extra)]
        assert shows(status.text_content(), f"Does not belong. {letter}: {extra.idea.name}.")
        assert shows(status.text_content(), extra.why)
        assert shows(status.text_content(), extra.idea.explanation)
        box.get_by_role("checkbox", name=f"Use line {letter}").tap()
    for place, letter in enumerate(right):
        press_to_its_place(tab, box, letter, place)
    said = f"Line {right[-1]} is number {len(right)} of {len(item.shown)}."
    moved = box.locator(".visually-hidden[role=status]").text_content()
    assert moved == said or right[-1] not in moved
    check.tap()
    assert status.text_content() == "✓ All lines are in order."

    last = box.get_by_role("checkbox", name=f"Use line {right[-1]}")
    last.tap()
    check.tap()
    assert status.text_content() == "✗ A line that belongs is left out."
    box.get_by_role("button", name="Start again").tap()
    assert status.text_content() == ""
    assert last.is_checked()
    first = box.locator("ol.practice-on > li").first.text_content()
    assert first.startswith("A.")
