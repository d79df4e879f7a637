"""Quizzes, lines to put in order and predictions: every chapter has them, and they are right."""

from __future__ import annotations

import math
import re
from collections import Counter

import numpy as np
import pytest
from bs4 import BeautifulSoup
from conftest import ROOT, load

import posenc
from posenc.exercises import ASSIGNMENTS

practice = load("book/_ext/practice.py")


def source(assignment: str) -> str:
    """Return the text of an assignment's pages."""
    pages = (ROOT / "book" / f"{page}.md" for page in ASSIGNMENTS[assignment].pages)
    return "\n".join(page.read_text(encoding="utf-8") for page in pages)


def blocks(text: str, name: str) -> list[tuple[str, str]]:
    """Return argument and body of the directives of this name."""
    pattern = rf"^(`{{3,}}|:{{3,}})\{{{name}\}} ?(.*?)\n(.*?)^\1$"
    return [(argument, body) for _, argument, body in re.findall(pattern, text, re.M | re.S)]


def quiz(assignment: str) -> list:
    return [q for _, body in blocks(source(assignment), "quiz") for q in practice.read_quiz(body)]


def parsons(assignment: str) -> list:
    return [practice.read_parsons(*block) for block in blocks(source(assignment), "parsons")]


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_a_chapter_has_three_to_five_questions_a_page(name):
    assert 3 <= len(quiz(name)) <= 5 * len(ASSIGNMENTS[name].pages)
    for question in quiz(name):
        assert [option.idea for option in question.options].count(None) == 1
        for option in question.options:
            assert option.why
            assert option.idea is None or option.idea.name


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_a_chapter_has_lines_to_put_in_order(name):
    assert len(parsons(name)) >= 1


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_a_chapter_asks_for_a_prediction_and_hides_the_answer(name):
    asked = re.findall(
        r"^:{3,}\{admonition\} Predict, then run\n:class: predict\n(.*?)^:{3,}$"
        r"|^`{3,}\{admonition\} Predict, then run\n:class: predict\n(.*?)^`{3,}$",
        source(name),
        re.M | re.S,
    )
    assert asked
    for texts in asked:
        assert "?" in "".join(texts), f"a prediction asks nothing: {texts}"
    following = re.split(r"^\S{3,}\{admonition\} Predict, then run$", source(name), flags=re.M)[1:]
    for text in following:
        cell = re.search(r"^```\{code-cell\} .*?\n(.*?)^```$", text, re.M | re.S)[1]
        assert "hide-output" in cell


def runs(lines: list[str], test: str) -> bool:
    """Say whether the lines run in this order and their test holds afterwards."""
    names = {"np": np, "math": math, "posenc": posenc}
    try:
        exec("\n".join(lines), names)
        exec(test, names)
    except Exception:
        return False
    return True


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_lines_of_code_run_in_their_order_and_in_no_other_that_is_near(name):
    for item in parsons(name):
        if item.code:
            assert_only_this_order_runs(item)


def assert_only_this_order_runs(item) -> None:
    right = [line.text for line in item.lines]
    assert runs(right, item.test)
    shown = [line.text for line in item.shown]
    assert not runs(shown, item.test)
    assert not runs([line for line in shown if line in right], item.test)
    for place in range(len(right) - 1):
        swapped = [*right]
        swapped[place : place + 2] = reversed(right[place : place + 2])
        assert not runs(swapped, item.test), f"{right[place : place + 2]} can change places"
    for extra in item.extra:
        for place in range(len(right)):
            instead = [*right[:place], extra.text, *right[place + 1 :]]
            assert not runs(instead, item.test), f"{extra.text!r} can stand for {right[place]!r}"


def test_the_checks_of_an_order_can_fail():
    item = practice.read_parsons("A sum", ITEM)
    assert_only_this_order_runs(item)
    for lines, extra, test in (
        (item.lines[::-1], item.extra, item.test),
        (item.lines, item.extra, "assert False"),
        ([practice.Option("a = 1", ""), *item.lines], item.extra, item.test),
        (item.lines, [practice.Option("    total = i + 1", "")], item.test),
    ):
        with pytest.raises(AssertionError):
            assert_only_this_order_runs(item._replace(lines=lines, extra=extra, test=test))


def test_the_right_answer_has_no_fixed_place():
    places = Counter(
        [option.idea for option in question.options].index(None)
        for name in ASSIGNMENTS
        for question in quiz(name)
    )
    assert len(places) > 2
    assert max(places.values()) < 0.6 * places.total()


QUESTION = """\
- question: "What is $\\\\omega_0$?"
  right: "$1$ *always*"
  because: because
  wrong:
    - answer: "`b`"
      idea: inverse_frequencies/positive exponent
      tempting: "$b$ is the base"
    - answer: another
      idea: a plain name
      tempting: tempting
"""
ITEM = """\
prompt: add up
lines: ["total = 0", "for i in range(3):", "    total += i", "total = total / 3"]
extra:
  - {line: "    total = i", idea: rope/changes x, why: forgets}
code: true
test: assert total == 1
"""
WRONG_QUIZZES = {
    "a: b": "should be a list",
    "- [": "not YAML",
    "- just text": "question 1 should have question, right, because, wrong",
    QUESTION + "  hint: h": "question 1 has the unknown key 'hint'",
    QUESTION.replace("  because: because\n", ""): "question 1 has no 'because'",
    QUESTION.replace("because: because", "because: 4"): "because of question 1 is 4",
    QUESTION.replace("because: because", "because: '  '"): "because of question 1 is '  '",
    QUESTION.split("  wrong:")[0] + "  wrong: []": "question 1 has no wrong answer",
    QUESTION.split("  wrong:")[0] + "  wrong: x": "wrong of question 1 should be a list",
    QUESTION.replace(
        "      tempting: tempting", ""
    ): "wrong answer 2 of question 1 has no 'tempting'",
    QUESTION.replace("answer: another", 'answer: "`b`"'): "question 1 has the same answer twice",
    QUESTION + QUESTION: "the quiz has the same question twice",
    QUESTION.replace(
        "a plain name", "rope/gone"
    ): "'rope/gone', but rope has 'x returned as it is'",
    QUESTION.replace("a plain name", "gone/x"): "no exercise is called 'gone'",
}
WRONG_ITEMS = {
    "- a": "the item should have prompt, lines",
    ITEM.replace("prompt: add up\n", ""): "the item has no 'prompt'",
    ITEM + "hint: h": "the item has the unknown key 'hint'",
    'prompt: p\nlines: ["a", "b"]': "lines holds 2",
    "prompt: p\nlines: [a, b, 3]": "line 3 is 3",
    "prompt: p\nlines: [a, b, a]": "the item has the same line twice",
    ITEM.replace("code: true", "code: 1"): "code of the item is 1",
    ITEM.replace("test: assert total == 1\n", ""): "go together",
    ITEM.replace("code: true\n", ""): "go together",
    ITEM.replace("rope/changes x", "rope/gone"): "idea of extra line 1 is 'rope/gone'",
    ITEM.replace(", why: forgets", ""): "extra line 1 has no 'why'",
}


@pytest.mark.parametrize(("text", "message"), WRONG_QUIZZES.items())
def test_a_quiz_that_is_not_right_is_refused(text, message):
    with pytest.raises(practice.PracticeError, match=re.escape(message)):
        practice.read_quiz(text)


@pytest.mark.parametrize(("text", "message"), WRONG_ITEMS.items())
def test_an_item_that_is_not_right_is_refused(text, message):
    with pytest.raises(practice.PracticeError, match=re.escape(message)):
        practice.read_parsons("Title", text)


def test_a_title_that_leaves_the_lines_in_order_is_refused():
    text = "prompt: p\nlines: [a, b, c]"
    outcomes = Counter()
    for number in range(40):
        try:
            shown = practice.read_parsons(f"Title {number}", text).shown
            outcomes["".join(line.text for line in shown)] += 1
        except practice.PracticeError as error:
            outcomes[str(error).split(";")[1]] += 1
    assert set(outcomes) == {" change the title", "acb", "bac", "bca", "cab", "cba"}


@pytest.fixture
def build(build_alone):
    """Build one page with the directives, by any builder."""

    def build(text: str, builder: str = "html") -> tuple[str, str]:
        return build_alone(
            text,
            builder,
            extensions=["myst_parser", "sphinx_design", "mathml", "practice"],
            myst_enable_extensions=["dollarmath"],
            html_math_renderer="mathml",
        )

    return build


PAGE = f"# Page\n\n```{{quiz}}\n{QUESTION}```\n\n```{{parsons}} A sum\n{ITEM}```\n"


def test_both_directives_make_plain_html(build):
    html, warnings = build(PAGE)
    assert not warnings
    page = BeautifulSoup(html, "html.parser")
    question, item = page.select_one("div.question"), page.select_one("div.parsons")
    assert question.math is not None
    assert question.find("ol", type="A", recursive=False)
    choices = question.ol.find_all("li")
    assert len(choices) == 3
    right = next(i for i, choice in enumerate(choices) if choice.find("em"))
    answer = question.details.get_text(" ", strip=True)
    assert question.summary.get_text(strip=True) == "Answer"
    assert f"{'ABC'[right]} is right." in answer
    assert "positive exponent." in answer
    assert "The check of inverse_frequencies names this idea: the exponent has the wrong" in answer
    assert "a plain name." in answer
    assert len(question.details.select("math")) == 1

    # The parser keeps spaces in <pre> alone; in the page they are kept by the style sheet.
    page = BeautifulSoup(html.replace("<code", "<pre").replace("</code", "</pre"), "html.parser")
    item = page.select_one("div.parsons")
    shown = [line.get_text() for line in item.select("ol > li > p > pre.code-line")]
    assert shown == [line.text for line in practice.read_parsons("A sum", ITEM).shown]
    answer = item.details.get_text(" ", strip=True)
    letters = re.search(r"The order is (.*?)\.", answer)[1].split(", ")
    in_order = [shown["ABCDE".index(letter)] for letter in letters]
    assert "\n".join(in_order) == item.details.pre.get_text().strip("\n")
    assert "changes x." in answer
    ids = [tag["id"] for tag in page.find_all(id=True)]
    assert len(ids) == len(set(ids))


def test_lines_in_words_are_shown_in_order_in_the_answer(build):
    html, warnings = build(
        "# Page\n\n```{parsons} Steps\nprompt: p\nlines: [one, two, $c=d$]\n```\n"
    )
    assert not warnings
    answer = BeautifulSoup(html, "html.parser").select_one("div.parsons details")
    lines = [line.get_text(strip=True) for line in answer.select("ol > li")]
    assert lines[:2] == ["one", "two"]
    assert "c" in lines[2]


@pytest.mark.parametrize("builder", ["latex", "epub", "text"])
def test_other_builders_do_not_crash_and_get_no_script(build, builder):
    text, warnings = build(PAGE, builder)
    assert not warnings
    assert "practice.js" not in text
    assert ("practice.css" in text) == (builder == "epub")


def test_the_script_learns_what_is_right_and_comes_only_where_it_is_needed(build):
    html, _ = build(PAGE)
    page = BeautifulSoup(html, "html.parser")
    assert page.select_one("script[src*='practice.js']")["type"] == "module"
    for box in page.select("div.question, div.parsons"):
        choices = len(box.ol.find_all("li"))
        told = re.search(r"(\w) is right|The order is (.*?)\.", box.details.get_text())
        answer = re.sub(r"\W", "", told[1] or told[2])
        assert box.ol["data-answer"] == answer
        # One note for each other letter, in the last part of the answer.
        notes = box.select_one("details > div").find_all(recursive=False)[-1]
        assert [note.strong.get_text()[0] for note in notes.find_all("li")] == [
            letter for letter in "ABCDEF"[:choices] if letter not in answer
        ]
    for file in ("practice.js", "practice.css"):
        assert file in html
        assert file not in build("# Page\n\nText.\n")[0]


@pytest.mark.parametrize("directive", ["{quiz}", "{parsons} Title"])
def test_an_error_names_page_and_line(build, directive):
    _, warnings = build(f"# Page\n\nText.\n\n```{directive}\nprompt: p\n```\n")
    assert re.search(r"index\.md:5: ERROR: (quiz|parsons): ", warnings), warnings


def letters(text: str) -> str:
    """Leave out what typography changes: quotes, dashes and spaces."""
    return re.sub(r"\W", "", text)


def test_the_book_shows_every_question_and_its_answer_without_a_script(site):
    for name, assignment in ASSIGNMENTS.items():
        pages = [
            BeautifulSoup((site / f"{page}.html").read_text(encoding="utf-8"), "html.parser")
            for page in assignment.pages
        ]
        shown = [box for page in pages for box in page.select("div.question")]
        assert len(shown) == len(quiz(name))
        for box, question in zip(shown, quiz(name), strict=True):
            assert len(box.ol.find_all("li", recursive=False)) == len(question.options)
            answer = letters(box.details.get_text())
            for option in question.options:
                if option.idea:
                    assert letters(option.idea.name) in answer
                    assert letters(option.idea.explanation) in answer
        assert sum(len(page.select("div.parsons > details")) for page in pages) >= 1
        assert sum(len(page.select(".predict")) for page in pages) >= 1
        for page in pages:
            assert not page.select(".system-message, .bd-content script:not([type])"), name
