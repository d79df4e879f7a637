"""Quizzes and lines to put in order: practice without points, which needs no script.

Answers lie behind the browser's own toggle; with ``practice.js`` a choice is answered at once and
lines can be moved. Texts are Markdown. The directives hold YAML:

    ```{quiz}
    - question: Which?
      right: the right answer
      because: why it is right
      wrong:
        - answer: a wrong answer
          idea: EXERCISE/NAME of a misconception of posenc.exercises, or a plain name
          tempting: why it tempts
    ```

    ```{parsons} The title, from which the order is made in which the lines are shown
    prompt: what the lines do
    lines: [in the right order, ...]
    extra: # may be left out: lines that do not belong
      - {line: ..., idea: as in a quiz, why: why it does not belong}
    code: true # the lines are Python; tests/test_practice.py runs them, and then the test
    test: assert ...
    ```
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from string import ascii_uppercase
from typing import Any, NamedTuple, TypeVar

import yaml
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from posenc.exercises import Misconception, get

T = TypeVar("T")


class PracticeError(ValueError):
    """What is wrong with the text of a directive, and where in it."""


class Idea(NamedTuple):
    """The misconception behind a wrong answer; of the catalogue where ``exercise`` is given."""

    name: str
    exercise: str = ""
    explanation: str = ""


class Option(NamedTuple):
    """What can be chosen, and why it is right or tempts; what is right has no idea behind it."""

    text: str
    why: str
    idea: Idea | None = None


class Question(NamedTuple):
    """A question with its answers as they are shown."""

    text: str
    options: list[Option]


class Parsons(NamedTuple):
    """Lines to put in order; ``shown`` are those of ``lines`` and ``extra``, shuffled."""

    prompt: str
    lines: list[Option]
    extra: list[Option]
    shown: list[Option]
    code: bool
    test: str


def read_quiz(text: str) -> list[Question]:
    """Return the questions that the text of a quiz holds."""
    questions = [
        _question(item, f"question {number}")
        for number, item in enumerate(_items(_load(text), "a quiz"), start=1)
    ]
    _require_distinct([question.text for question in questions], "question", "the quiz")
    return questions


def read_parsons(title: str, text: str) -> Parsons:
    """Return the lines that the text of a Parsons item holds, and the order to show them in."""
    what = "the item"
    fields = _fields(_load(text), what, ("prompt", "lines"), ("extra", "code", "test"))
    lines = [
        Option(_text(line, f"line {number}"), "")
        for number, line in enumerate(_items(fields["lines"], "lines"), start=1)
    ]
    if len(lines) < 3:
        raise PracticeError(f"lines holds {len(lines)} of them, and 3 is the fewest worth ordering")
    extra = [
        _extra(item, f"extra line {number}")
        for number, item in enumerate(_items(fields.get("extra", []), "extra"), start=1)
    ]
    _require_distinct([line.text for line in lines + extra], "line", what)
    code = fields.get("code", False)
    if not isinstance(code, bool):
        raise PracticeError(f"code of the item is {code!r}; write true or leave it out")
    if code != ("test" in fields):
        raise PracticeError("code: true and a test go together; one of them is missing")
    test = _text(fields["test"], "test of the item") if code else ""
    prompt = _text(fields["prompt"], "prompt of the item")
    shown = _shuffled(lines + extra, title)
    if [line for line in shown if line in lines] == lines:
        raise PracticeError("the shuffle of this title leaves the lines in order; change the title")
    return Parsons(prompt, lines, extra, shown, code, test)


def _question(item: Any, where: str) -> Question:
    fields = _fields(item, where, ("question", "right", "because", "wrong"))
    text = _text(fields["question"], f"question of {where}")
    right = Option(
        _text(fields["right"], f"right of {where}"), _text(fields["because"], f"because of {where}")
    )
    options = [right]
    for number, wrong in enumerate(_items(fields["wrong"], f"wrong of {where}"), start=1):
        place = f"wrong answer {number} of {where}"
        parts = _fields(wrong, place, ("answer", "idea", "tempting"))
        options.append(
            Option(
                _text(parts["answer"], f"answer of {place}"),
                _text(parts["tempting"], f"tempting of {place}"),
                _idea(_text(parts["idea"], f"idea of {place}"), place),
            )
        )
    if len(options) < 2:
        raise PracticeError(f"{where} has no wrong answer")
    _require_distinct([option.text for option in options], "answer", where)
    return Question(text, _shuffled(options, text))


def _extra(item: Any, where: str) -> Option:
    fields = _fields(item, where, ("line", "idea", "why"))
    return Option(
        _text(fields["line"], f"line of {where}"),
        _text(fields["why"], f"why of {where}"),
        _idea(_text(fields["idea"], f"idea of {where}"), where),
    )


def _idea(name: str, where: str) -> Idea:
    if "/" not in name:
        return Idea(name)
    exercise, _, idea = name.partition("/")
    try:
        catalogue: Sequence[Misconception] = get(exercise).misconceptions
    except ValueError as error:
        raise PracticeError(f"idea of {where} is {name!r}, but {error}") from None
    known = {misconception.name: misconception for misconception in catalogue}
    if idea not in known:
        raise PracticeError(
            f"idea of {where} is {name!r}, but {exercise} has {', '.join(map(repr, known))}"
        )
    return Idea(idea, exercise, known[idea].explanation)


def _load(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise PracticeError(f"this is not YAML: {' '.join(str(error).split())}") from None


def _items(value: Any, what: str) -> list:
    if not isinstance(value, list):
        raise PracticeError(f"{what} should be a list, each item after '- '; got {value!r}")
    return value


def _fields(
    value: Any, where: str, required: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise PracticeError(f"{where} should have {', '.join(required)}; got {value!r}")
    known = (*required, *optional)
    for key in value:
        if key not in known:
            raise PracticeError(
                f"{where} has the unknown key {key!r}; known are {', '.join(known)}"
            )
    for key in required:
        if key not in value:
            raise PracticeError(f"{where} has no {key!r}")
    return value


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise PracticeError(f"{what} is {value!r}; it should be text, in quotes if it is a number")
    return value.rstrip()


def _require_distinct(texts: Sequence[str], what: str, where: str) -> None:
    for text in texts:
        if texts.count(text) > 1:
            raise PracticeError(f"{where} has the same {what} twice: {text!r}")


def _shuffled(options: list[Option], seed: str) -> list[Option]:
    """Return the options in an order that looks random and is the same in every build."""
    return sorted(options, key=lambda option: sha256(f"{seed}\n{option.text}".encode()).digest())


class lettered_list(nodes.enumerated_list):  # noqa: N801 - docutils names nodes so
    """A list whose items are A, B, C ... also where no style sheet is loaded.

    Its attribute ``answer`` holds the letters of what is right, in order, for the script.
    """


class code_line(nodes.literal):  # noqa: N801 - docutils names nodes so
    """One line of Python, with its indentation."""


class _Practice(SphinxDirective):
    """What both directives have in common."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Read the text and make its box, or report what is wrong with it."""
        try:
            return [self.box("\n".join(self.content))]
        except PracticeError as error:
            raise self.error(f"{self.name}: {error}") from None

    def box(self, text: str) -> nodes.Element:
        """Make the box."""
        raise NotImplementedError

    def parse(self, markdown: str) -> list[nodes.Node]:
        """Render Markdown."""
        holder = nodes.container()
        self.state.nested_parse(StringList(markdown.splitlines(), self.name), 0, holder)
        return holder.children

    def toggle(self, title: str, content: Sequence[nodes.Node]) -> nodes.Element:
        """Put content behind a toggle that the browser opens by itself."""
        (box,) = self.parse(f"```{{dropdown}} {title}\n```")
        box.extend(content)
        return box

    def choices(
        self, options: Sequence[Option], answer: str, *, code: bool = False
    ) -> nodes.Element:
        """List options by letters, of which ``answer`` are right."""
        choices = lettered_list(enumtype="upperalpha", prefix="", suffix=".", answer=answer)
        for option in options:
            shown = [_code(option.text)] if code else self.parse(option.text)
            choices += nodes.list_item("", *shown)
        return choices

    def wrong(self, options: Sequence[Option]) -> nodes.Element:
        """Say of every wrong option which idea is behind it."""
        notes = nodes.bullet_list(bullet="-")
        for letter, option in zip(ascii_uppercase, options, strict=False):
            if option.idea is None:
                continue
            name = nodes.strong("", f"{letter}: {option.idea.name}.", classes=["idea"])
            note = nodes.list_item("", nodes.paragraph("", "", name), *self.parse(option.why))
            if option.idea.exercise:
                note += nodes.paragraph(
                    "",
                    "",
                    nodes.Text("The check of "),
                    nodes.literal("", option.idea.exercise),
                    nodes.Text(f" names this idea: {option.idea.explanation}."),
                )
            notes += note
        return notes


class Quiz(_Practice):
    """Questions with one right answer each."""

    def box(self, text: str) -> nodes.Element:
        """Show the questions, each with its answer behind a toggle."""
        quiz = nodes.container(classes=["quiz"])
        for number, question in enumerate(read_quiz(text), start=1):
            letters = dict(zip(ascii_uppercase, question.options, strict=False))
            right, why = next((a, o.why) for a, o in letters.items() if o.idea is None)
            answer = [*self.parse(f"**{right} is right.** {why}"), self.wrong(question.options)]
            quiz += nodes.container(
                "",
                *self.parse(f"**Question {number}.** {question.text}"),
                self.choices(question.options, right),
                self.toggle("Answer", answer),
                classes=["question"],
            )
        return quiz


class ParsonsItem(_Practice):
    """Lines to put in order."""

    required_arguments = 1
    final_argument_whitespace = True

    def box(self, text: str) -> nodes.Element:
        """Show the shuffled lines, and their order behind a toggle."""
        title = self.arguments[0]
        item = read_parsons(title, text)
        letters = {line.text: letter for line, letter in zip(item.shown, ascii_uppercase)}  # noqa: B905
        order = [letters[line.text] for line in item.lines]
        answer = self.parse(f"**The order is {', '.join(order)}.**")
        if item.code:
            code = "\n".join(line.text for line in item.lines)
            answer.append(nodes.literal_block(code, code, language="python"))
        else:
            ordered = nodes.enumerated_list(enumtype="arabic", prefix="", suffix=".")
            ordered += [nodes.list_item("", *self.parse(line.text)) for line in item.lines]
            answer.append(ordered)
        if item.extra:
            answer += self.parse("What does not belong:")
            answer.append(self.wrong(item.shown))
        return nodes.container(
            "",
            *self.parse(f"**Put in order: {title}.** {item.prompt}"),
            self.choices(item.shown, "".join(order), code=item.code),
            self.toggle("Answer", answer),
            classes=["parsons"],
        )


def _code(line: str) -> nodes.Element:
    return nodes.paragraph("", "", code_line(line, line))


def _visit_lettered_list(translator, node: lettered_list) -> None:
    attributes = {"type": "A", "data-answer": node["answer"]}
    translator.body.append(translator.starttag(node, "ol", CLASS="upperalpha", **attributes))


def _depart_lettered_list(translator, node: lettered_list) -> None:
    translator.body.append("</ol>\n")


def _visit_code_line(translator, node: code_line) -> None:
    # Sphinx's own inline code would lose the indentation.
    code = translator.highlighter.highlight_block(
        node.astext(), "python", force=True, location=node, nowrap=True
    )
    translator.body.append(f'<code class="code-line highlight">{code.rstrip()}</code>')
    raise nodes.SkipNode


def _add_files(app, pagename, templatename, context, doctree) -> None:
    if doctree is not None and any(doctree.findall(lettered_list)):
        app.add_css_file("practice.css")
        if app.builder.name != "epub":
            app.add_js_file("practice.js", type="module")


def setup(app) -> dict[str, bool]:
    """Register with Sphinx."""
    # Other builders fall back on the standard nodes that these derive from.
    app.add_node(lettered_list, html=(_visit_lettered_list, _depart_lettered_list))
    app.add_node(code_line, html=(_visit_code_line, None))
    app.add_directive("quiz", Quiz)
    app.add_directive("parsons", ParsonsItem)
    app.connect("html-page-context", _add_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
