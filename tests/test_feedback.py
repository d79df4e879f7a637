"""Feedback pages: what they say, what they hide, and that nothing in them acts."""

from __future__ import annotations

import ast
import base64
import copy
import json
import os
import re
import struct
import subprocess
import sys
import zlib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup
from hypothesis import given, settings
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from nbgrader.api import Gradebook

from posenc.grading import assignments
from posenc.grading import run as running
from posenc.grading._shown import FIGURE_PIXELS, Room, coloured, figure, plain, printed
from posenc.grading.feedback import Entry, Grade, page
from posenc.grading.isolation.sandbox import Sandbox
from posenc.grading.results import BLANK, FAULT, GRADED, MISSING, STATES, UNGRADABLE, Result, Task

ROOT = Path(__file__).parents[1]
SEED = "the seed that nobody sees"
LIMIT = 60_000

# Each would set window.ran, ask for a file, or change what is read.
PAYLOADS = (
    "<script>window.ran = 1</script>",
    "</pre></code><script>window.ran = 1</script>",
    "</style></title></textarea><script>window.ran = 1</script>",
    "<img src=x onerror='window.ran = 1'>",
    '"><img src="https://example.org/track.png" onerror="window.ran = 1">',
    "<svg onload='window.ran = 1'><script>window.ran = 1</script></svg>",
    "<iframe srcdoc='<script>parent.ran = 1</script>'></iframe>",
    "<a href='javascript:window.ran = 1'>here</a> javascript:window.ran=1",
    "<meta http-equiv=refresh content='0;url=https://example.org/'>",
    "<base href='https://example.org/'><link rel=stylesheet href=https://example.org/a.css>",
    "<style>body { background: url(https://example.org/a.png) } main { display: none }</style>",
    "<form action='https://example.org/'><button autofocus onfocus='window.ran = 1'>",
    "<!-- <details open ontoggle='window.ran = 1'> -->",
    "![x](javascript:window.ran=1) [y](https://example.org/) <b>bold</b> $\\href{x}{y}$",
    "{{ 7 * 7 }} {% for i in range(9) %}{% endfor %} ]]> &lt;script&gt; &#60;script&#62;",
    "\x1b[31mred\x1b[0m \x1b]8;;https://example.org/\x07link\x1b]8;;\x07 \x1b]0;title\x07",
    "\u202egnp.exe\u2066 \u200e\u200f \ufeff \x00\x08\x7f \u2028 \ud800 end",
    "' onmouseover='window.ran = 1' x='",
    "https://example.org/'onclick='window.ran=1'",
    'https://example.org/"onclick="window.ran=1',
)
TAGS = {
    *("html", "head", "meta", "title", "link", "style", "body", "header", "main", "section"),
    *("footer", "h1", "h2", "h3", "p", "bdi", "div", "i", "strong", "ul", "li", "table", "thead"),
    *("tbody", "tr", "th", "td", "a", "span", "wbr", "pre", "code", "samp", "figure", "img"),
}
ATTRIBUTES = {
    *("lang", "dir", "charset", "http-equiv", "content", "name", "rel", "href", "class", "id"),
    *("aria-labelledby", "aria-hidden", "style", "scope", "tabindex", "src", "alt", "width"),
    "height",
}


def png(width=2, height=2):
    """Return a grey picture."""

    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    rows = (b"\0" + b"\x80" * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def encoded(content):
    return base64.b64encode(content).decode()


def part(cell, grade_id, **about):
    """Give a cell its part in grading."""
    about = {"grade": False, "solution": False, "locked": False, "task": False, **about}
    cell.metadata["nbgrader"] = {"schema_version": 3, "grade_id": grade_id, **about}
    cell.id = grade_id
    return cell


def small(*others, answer="def squares():\n    return 4", outputs=()):
    """Return a notebook with one task, and cells of the student's after it."""
    graded = part(new_code_cell("assert squares(HIDDEN) == 4"), "grade-squares", locked=True)
    graded.metadata["nbgrader"] |= {"grade": True, "points": 4}
    graded.outputs = [new_output("error", ename="E", evalue="HIDDEN", traceback=["HIDDEN"])]
    check = part(new_code_cell('check("squares")  # HIDDEN'), "check-squares", locked=True)
    check.outputs = [new_output("stream", text="HIDDEN")]
    solution = part(new_code_cell(answer), "squares", solution=True)
    solution.outputs = list(outputs)
    given_text = new_markdown_cell("# A title\n\nHIDDEN", id="markdown-0")
    return new_notebook(cells=[given_text, solution, check, graded, *others])


def graded(points=4.0, state="right", lines=("squares: 4 of 4 points.",), **about):
    task = Task("grade-squares", points, 4.0, state, tuple(lines))
    return Result(GRADED, tasks=(task,), seed=SEED, version="9.9", **about)


def soup(form):
    return BeautifulSoup(form, "html.parser")


def words(form):
    return " ".join(soup(form).get_text(" ").split())


def everywhere(payload):
    """Return a page with a text wherever somebody but us can put one."""
    kinds = ("text/html", "image/svg+xml", "application/javascript", "text/latex")
    data = dict.fromkeys(kinds, payload)
    shown = [
        new_output("stream", text=payload),
        new_output("display_data", data={**data, "text/plain": payload}),
        new_output("display_data", data=data),
        new_output("display_data", data={payload: payload}),
        new_output("display_data", data={"image/png": payload}),
        new_output("error", ename=payload, evalue=payload, traceback=[payload]),
    ]
    notebook = small(
        new_markdown_cell(payload),
        new_code_cell(payload, outputs=shown),
        answer=f"{payload}\n'{payload}' # {payload}",
        outputs=shown,
    )
    return page(
        notebook,
        graded(state=payload, lines=(payload, payload), notes=(payload,)),
        Entry(payload, "hw", payload, comments={"squares": payload}),
    )


def assert_harmless(form):
    for tag in soup(form).find_all(True):
        assert tag.name in TAGS, tag.name
        assert set(tag.attrs) <= ATTRIBUTES, tag
        if tag.name in ("a", "link"):
            assert re.match(r"#|https?://|data:,$", tag["href"]), tag
        if tag.name == "img":
            assert tag["src"].startswith("data:image/png;base64,")
        if "style" in tag.attrs:
            assert re.fullmatch(r"width: [\d.]+%", tag["style"])
    form.encode()


@pytest.mark.parametrize("payload", PAYLOADS)
def test_what_others_wrote_is_text(payload):
    form = everywhere(payload)
    assert_harmless(form)
    if "<" in payload:
        assert payload not in form
    # Nothing is lost, either: it reads as it was written.
    readable = plain(payload)
    assert soup(form).select_one("main").get_text().count(readable) >= 8
    assert len(form.encode()) < LIMIT


@settings(max_examples=40, deadline=None)
@given(
    st.text(st.sampled_from("<>/\"'&;=! -scriptonerror\n\r\t\x1b[]#{}%\\`$\u202e\x00"), max_size=90)
)
def test_any_text_is_text(payload):
    assert_harmless(everywhere(payload))


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=400), st.integers(0, 500), st.booleans())
def test_a_piece_never_takes_more_room_than_it_has(text, left, code):
    room = Room(left)
    form = room.take(text, 100, code=code)
    assert room.left == left - len(form.encode())
    assert len(form.encode()) <= max(left, 120)
    assert all(tag.name == "span" for tag in soup(form).find_all(True))


def test_terminals_and_directions_are_spelled_out_or_left_out():
    assert plain("\x1b[1;31mred\x1b[0m \x9b4mx \x1b]8;;https://e.org\x1b\\link\x1b]8;;\x07") == (
        "red x link"
    )
    assert plain("\u202eabc\x00\ud800\x1b") == r"\u202eabc\x00\ud800\x1b"
    kept = "é 位置 عربي \u0939\u094d\u200d 👩\u200d🔬\ttab\n"
    assert plain(kept) == kept
    assert printed("1%\r50%\r100%\r\ndone\rover") == "100%\nover"


def test_colours_change_no_character():
    source = "@d\ndef f(x: int):\n    '''doc'''\n    return f'{x}' + \"a\" # <b>\n\n\n('open"
    assert soup(coloured(source)).get_text() == source


@pytest.fixture(scope="module")
def opened(browser, tmp_path_factory):
    """Open a page, and say what it did: requests, messages, and whether a script ran."""
    folder = tmp_path_factory.mktemp("pages")

    def opened(form, *, scheme="light", refused=None):
        path = folder / "page.html"
        path.write_text(form, encoding="utf-8")
        tab = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
        did = []
        tab.on("console", lambda message: did.append(message.text))
        tab.on("pageerror", lambda error: did.append(str(error)))
        tab.on("dialog", lambda dialog: did.append(dialog.message))
        tab.on(
            "request",
            lambda request: (
                None
                if request.url.startswith((path.as_uri(), "data:"))
                else did.append(request.url)
            ),
        )
        # Chromium tells of requests that the page's policy keeps it from sending.
        tab.on(
            "requestfailed",
            lambda request: refused.append(request.url) if request.failure == "csp" else None,
        )
        tab.goto(path.as_uri())
        if tab.evaluate("window.ran"):
            did.append("a script ran")
        return tab, did

    return opened


def test_nothing_acts_in_a_browser(opened):
    # A few together, so that one that is never closed can't hide all others.
    for start in range(4):
        tab, did = opened(everywhere("\n".join(PAYLOADS[start::4])))
        tab.locator("h1").hover()
        for link in tab.locator("a").all():
            link.hover()
        assert not tab.evaluate("window.ran")
        assert not did
        assert tab.url.endswith("page.html")
        tab.close()


def test_the_policy_stops_what_would_not_be_escaped(opened):
    acting = (
        "<script>window.ran = 1</script><img src='https://example.org/a.png' onerror='ran = 1'>"
        "<link rel=stylesheet href='https://example.org/a.css'>"
    )
    refused = []
    tab, did = opened(
        page(small(), graded(), Entry("s", "hw")).replace("</main>", acting), refused=refused
    )
    assert "a script ran" not in did
    assert set(refused) == {what for what in did if what.startswith("http")}
    assert len(refused) == 2
    assert len([what for what in did if "Content Security Policy" in what]) >= 3
    tab.close()


@pytest.fixture(scope="module")
def books():
    """Submissions as grading leaves them, by name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POSENC_SEED", SEED)
        with Sandbox("02-sinusoidal") as sandbox:
            made = {name: change(source("02-sinusoidal")) for name, change in CHANGES.items()}
            for notebook in made.values():
                running.run(notebook, sandbox)
        with Sandbox("05-ledger") as sandbox:
            made["verdicts"] = verdicts(source("05-ledger"))
            running.run(made["verdicts"], sandbox)
    return made


def source(name):
    """Return the instructor's notebook, its answers in place of a student's."""
    notebook = copy.deepcopy(assignments.source_notebook(ROOT, name))
    for cell in notebook.cells:
        cell.source = re.sub(r"\n *### (BEGIN|END) SOLUTION", "", cell.source)
    return notebook


def after(notebook, name, *cells):
    place = [cell.id for cell in notebook.cells].index(name) + 1
    notebook.cells[place:place] = cells


def cell_of(notebook, name):
    return next(cell for cell in notebook.cells if cell.id == name)


def right(notebook):
    after(
        notebook,
        "grade-sinusoidal_encoding",
        new_code_cell(
            "import matplotlib.pyplot as plt\n"
            "for d_model in (4, 8):\n"
            "    plt.figure(figsize=(2, 2))\n"
            "    plt.plot(sinusoidal_encoding(range(9), d_model))"
        ),
    )
    return notebook


def blank(_):
    notebook = copy.deepcopy(assignments.source_notebook(ROOT, "02-sinusoidal"))
    for cell in notebook.cells:
        region = re.compile(r"### BEGIN SOLUTION.*### END SOLUTION", re.DOTALL)
        cell.source = region.sub("raise NotImplementedError()", cell.source)
    return notebook


def wrong(notebook):
    answer = cell_of(notebook, "sinusoidal_encoding")
    answer.source = answer.source.replace("np.sin(angles)", "np.cos(angles)")
    answer = cell_of(notebook, "wavelengths")
    answer.source = answer.source.replace("return 2 * np.pi", "return (2 * np.pi")
    answer = cell_of(notebook, "add_positions")
    answer.source += (
        "\n\ndef add_positions(*a, **k):\n    raise ValueError('<script>ran = 1</script>')"
    )
    return notebook


def hostile(notebook):
    name = "<img src=x onerror=ran=1>"
    after(
        notebook,
        "grade-inverse_frequencies",
        new_markdown_cell("<script>window.ran = 1</script> **bold**"),
        new_code_cell("print('<script>window.ran = 1</script>' * 40_000)"),
        new_code_cell("print('\\x1b[31m</pre><img src=x onerror=ran=1>\\u202e')"),
        new_code_cell(f"raise type('{name}', (Exception,), {{}})('<svg onload=ran=1>' * 5000)"),
        new_code_cell(
            "from IPython.display import HTML, SVG, Javascript, Latex, display\n"
            "display(HTML('<script>window.ran = 1</script>'), Javascript('window.ran = 1'),\n"
            "        Latex('$<b>x</b>$'))"
        ),
        new_code_cell("def f(): pass\nf.__name__ = f.__qualname__ = '<script>ran = 1</script>'\nf"),
        new_code_cell("globals()['<b>'] = 1\n{'<b onclick=ran=1>': f}"),
    )
    answer = cell_of(notebook, "inverse_frequencies")
    answer.source += "\ninverse_frequencies.__name__ = '<script>ran = 1</script>'"
    answer = cell_of(notebook, "wavelengths")
    answer.source += f"\ndef wavelengths(*a, **k):\n    raise ValueError('{PAYLOADS[1]}' * 3000)"
    answer = cell_of(notebook, "accepts")
    answer.source = "accepts = '<script>ran = 1</script>'"
    cell_of(notebook, "setup").source += "\nSITE = 'javascript:window.ran=1'"
    return notebook


def verdicts(notebook):
    answer = cell_of(notebook, "verdicts")
    answer.source += """

solved = verdicts()

def verdicts():
    other = "false" if solved["a"] == "true" else "true"
    return solved | {"a": other, "b": "<script>ran = 1</script>" * 9000}
"""
    return notebook


CHANGES = {"right": right, "blank": blank, "wrong": wrong, "hostile": hostile}


def page_of(books, name):
    assignment = "05-ledger" if name == "verdicts" else "02-sinusoidal"
    return page(books[name], Result.of(books[name]), Entry(f"id-{name}", assignment))


def test_pages_of_real_submissions_are_quiet_and_legible_everywhere(books, opened):
    for name in books:
        form = page_of(books, name)
        assert_harmless(form)
        tab, did = opened(form)
        for width in (375, 1280):
            tab.set_viewport_size({"width": width, "height": 900})
            for scheme in ("light", "dark"):
                tab.emulate_media(color_scheme=scheme)
                assert tab.evaluate("document.documentElement.scrollWidth") <= width, name
                background = tab.evaluate("getComputedStyle(document.body).backgroundColor")
                shade = int(re.search(r"\d+", background)[0])
                assert (shade < 64) == (scheme == "dark")
        assert not did, (name, did)
        tab.close()


def test_pages_of_real_submissions_are_small_and_hold_whole_answers(books):
    for name, notebook in books.items():
        form = page_of(books, name)
        without_figures = re.sub(r"data:image/png;base64,[\w+/=]+", "", form)
        assert len(without_figures.encode()) < LIMIT, name
        if name in ("right", "blank", "wrong"):
            assert len(without_figures.encode()) < LIMIT / 2, name
            text = soup(form).get_text()
            for cell in notebook.cells:
                if cell.metadata.get("nbgrader", {}).get("solution"):
                    assert cell.source.strip() in text


def test_nothing_of_the_instructors_is_in_a_page(books):
    regions = [
        region
        for path in (ROOT / "solutions").glob("*/*.py")
        for region in re.findall(
            r"### BEGIN SOLUTION\n(.*?)### END", path.read_text("utf-8"), re.DOTALL
        )
    ]
    blank_page = words(page_of(books, "blank"))
    assert len(regions) > 25
    assert not [region for region in regions if " ".join(region.split()) in blank_page]
    for name in books:
        form = page_of(books, name)
        for hidden in (SEED, "HIDDEN TESTS", "grade(", "check(", "report =", "key=", "Traceback"):
            assert hidden not in form, (name, hidden)
            assert hidden not in soup(form).get_text()
        others = [f"id-{other}" for other in books if other != name]
        assert not [other for other in others if other in form]


def test_only_the_reason_of_a_wrong_verdict_is_told(books):
    text = (ROOT / "solutions/05-ledger/05-ledger.py").read_text("utf-8")
    (region,) = re.findall(r"### BEGIN HIDDEN TESTS\n(.*?)### END", text, re.DOTALL)
    strings = [
        node.value
        for node in ast.walk(ast.parse(region))
        if isinstance(node, ast.Constant) and len(str(node.value)) > 30
    ]
    assert len(strings) == 6
    shown = words(page_of(books, "verdicts"))
    assert [" ".join(reason.split()) in shown for reason in strings] == [True] + [False] * 5
    assert "cut here" in shown


def test_reports_are_shown_line_by_line(books):
    for name in ("right", "blank", "wrong"):
        shown = soup(page_of(books, name)).select(".report")
        lines = [tuple(line.get_text() for line in report.select("p")) for report in shown]
        assert lines == [task.lines for task in Result.of(books[name]).tasks]
    links = soup(page_of(books, "wrong")).select(".report a")
    assert links
    assert all(link["href"].startswith("http://localhost:8000/02-sin") for link in links)
    assert not soup(page_of(books, "hostile")).select(".report a")


def test_students_figures_are_kept_and_described(books):
    shown = soup(page_of(books, "right")).select("img")
    assert [image["alt"] for image in shown] == [
        "figure 1 of the cell after task sinusoidal_encoding",
        "figure 2 of the cell after task sinusoidal_encoding",
    ]
    outputs = [
        output.data["image/png"]
        for cell in books["right"].cells
        for output in cell.get("outputs", ())
        if "image/png" in output.get("data", {})
    ]
    assert [image["src"].split(",")[1] for image in shown] == [
        "".join(data.split()) for data in outputs
    ]


def test_only_png_figures_of_a_sensible_size_are_shown():
    content = png()
    assert figure(encoded(content))[1:] == (2, 2)
    svg = encoded(b"<svg xmlns='http://www.w3.org/2000/svg'><script>ran = 1</script></svg>")
    for bad in ("", "?", svg, encoded(content[:20]), encoded(content[:16] + bytes(8)), None):
        assert figure(bad) == "it is not a PNG"
    header = content[:16] + struct.pack(">II", FIGURE_PIXELS, 2) + content[24:]
    assert "too large" in figure(encoded(header))
    assert "too large" in figure(encoded(content + bytes(3_000_000)))
    many = [new_output("display_data", data={"image/png": encoded(content)}) for _ in range(40)]
    full = [new_code_cell("x" * 4000)] * 20
    form = page(small(new_code_cell("plots()", outputs=many)), graded(), Entry("s", "hw"))
    assert len(soup(form).select("img")) == 20
    assert "figure 21 of the cell after task squares is not shown: a page shows 20" in words(form)
    # Text that fills the page leaves room for figures.
    form = page(small(*full, new_code_cell("plots()", outputs=many)), graded(), Entry("s", "hw"))
    assert len(soup(form).select("img")) == 20


@pytest.mark.parametrize(
    "text", ["x" * 1_000_000, "<" * 1_000_000, "'\n" * 500_000, "位" * 300_000]
)
def test_a_page_stays_small_whatever_is_in_it(text):
    shown = [new_output("stream", text=text)]
    cells = [new_code_cell(text, outputs=shown * 3), new_markdown_cell(text)] * 200
    tasks = tuple(Task(f"grade-{n}", 0.0, 1.0, "crash", (text,) * 6) for n in range(8))
    notebook = small(*cells, answer=text, outputs=shown * 200)
    form = page(notebook, Result(GRADED, (text,) * 50, tasks), Entry("s", "hw"))
    assert len(form.encode()) < LIMIT
    for said in ("characters in all", "more of your cells, figures", "And 40 more."):
        assert said in words(form)
    empty = page(small(*[new_code_cell("1")] * 5000), graded(), Entry("s", "hw"))
    assert len(empty.encode()) < LIMIT


STATE_WORDS = {
    GRADED: "Every task was run",
    BLANK: "with no answer in it",
    MISSING: "No notebook came in under your name",
    UNGRADABLE: "not the same as zero",
    FAULT: "This is no fault of yours",
}


@pytest.mark.parametrize("state", STATES)
def test_every_state_says_what_it_means(state):
    form = page(new_notebook(), Result(state, ("One note.",)), Entry("s", "02-sinusoidal"))
    text = words(form)
    assert STATE_WORDS[state] in text
    assert "One note." in text
    assert "The sinusoidal formula" in text
    assert "points yet" not in text
    # Where the gradebook has no points, none are made up.
    entry = Entry("s", "02-sinusoidal", grades={"grade-accepts": Grade(None, 4.0)})
    text = words(page(new_notebook(), Result(state), entry))
    assert "No points yet, of 4" in text
    assert "0 of 4" not in text
    # Nor is there a part without anything in it.
    assert not soup(page(new_notebook(), Result(state), entry)).select("a")


def test_a_fault_costs_nothing_and_keeps_what_was_earned():
    fault = replace(graded(None, "fault", ("the grader failed (KeyError)",)), state=FAULT)
    text = words(page(small(), fault, Entry("s", "hw")))
    assert "no points yet of 4 points : the grader failed" in text.replace("points:", "points :")
    entry = Entry("s", "hw", grades={"grade-squares": Grade(3.0, 4.0)})
    text = words(page(small(), fault, entry))
    assert "3 of 4 points: the grader failed; points of an earlier grading" in text


def test_the_gradebook_decides_points_and_its_comments_are_shown():
    entry = Entry(
        "s1",
        "hw",
        "Ada L",
        {"grade-squares": Grade(3.5, 4.0, by_hand=True)},
        {"squares": "Nearly.\nLook again.", "other": "Not shown."},
        late_penalty=1.0,
    )
    form = page(small(), graded(0.0, "wrong", ("squares() is wrong.",)), entry)
    text = words(form)
    assert "Ada L ( s1 )" in text
    assert "2.5 of 4 points" in text
    assert "1 point is taken off" in text
    assert "3.5 of 4 points: not right yet; points set by hand" in text
    assert soup(form).select_one(".comment").get_text() == "Nearly.\nLook again."
    assert "Not shown" not in form


def test_cells_that_everybody_got_are_not_shown_as_the_students():
    mine, given = new_markdown_cell("Mine."), new_markdown_cell("Given to all.")
    plot = new_code_cell("HIDDEN()", outputs=[new_output("stream", text="of my function")])
    notebook = small(given, plot, mine)
    everybodys = {cell.source for cell in (*notebook.cells[:1], given, plot)}
    form = page(notebook, graded(), Entry("s", "hw"), given=everybodys)
    assert "Mine." in form
    assert "of my function" in form
    assert "Given to all." not in form
    assert "HIDDEN" not in form


def test_marked_regions_are_cut_wherever_they_are():
    source = (
        "a = 1\n### BEGIN SOLUTION\nSECRET\n### END SOLUTION\nb\n### BEGIN HIDDEN TESTS\nSECRET"
    )
    form = page(small(new_code_cell(source), answer=source), graded(), Entry("s", "hw"))
    assert "SECRET" not in form
    assert soup(form).get_text().count("# (not shown)") == 4


def test_pages_print_whole_and_without_links_back(books, opened):
    tab, _ = opened(page_of(books, "right"), scheme="dark")
    tab.emulate_media(media="print")
    assert not tab.locator(".back:visible").count()
    background = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == "rgb(255, 255, 255)"
    assert tab.evaluate("getComputedStyle(document.querySelector('pre')).whiteSpace") == "pre-wrap"
    tab.close()


def test_pages_can_be_read_by_their_headings_and_landmarks(books):
    for name in books:
        read = soup(page_of(books, name))
        assert [len(read.select(tag)) for tag in ("h1", "header", "main", "footer")] == [1] * 4
        levels = [int(heading.name[1]) for heading in read.find_all(re.compile(r"h\d"))]
        assert levels[0] == 1
        assert all(b - a <= 1 for a, b in pairwise(levels))
        ids = [tag["id"] for tag in read.select("[id]")]
        assert len(ids) == len(set(ids))
        for section in read.select("section"):
            assert read.find(id=section["aria-labelledby"]).get_text(strip=True)
        for link in read.select("a[href^='#']"):
            assert link["href"][1:] in ids
        rows = read.select("tbody tr")
        assert [row.th.get_text() for row in rows] == [
            task.grade_id.removeprefix("grade-") for task in Result.of(books[name]).tasks
        ]


CONFIGURATION = """
c = get_config()
c.CourseDirectory.course_id = "small"
c.GenerateFeedback.exporter_class = "posenc.grading.feedback.FeedbackExporter"
"""


@pytest.mark.slow
def test_stock_nbgrader_makes_the_pages_by_configuration(tmp_path, monkeypatch):
    # nbgrader starts alembic by its name.
    scripts = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", os.pathsep.join([scripts, os.environ["PATH"]]))
    (tmp_path / "nbgrader_config.py").write_text(CONFIGURATION, encoding="utf-8")
    given = new_markdown_cell("Given to all.")
    paths = {"ours": graded(1.0, "wrong", ("squares() is wrong.",)), "stock": None, "bad": None}
    for student, result in paths.items():
        own = new_code_cell("mine()", outputs=[new_output("stream", text=f"only {student}")])
        notebook = small(given, own)
        if result:
            result.store(notebook)
        if student == "bad":
            notebook.metadata["posenc"] = {"state": GRADED, "tasks": [{"lines": 3}]}
        save(notebook, tmp_path / f"autograded/{student}/hw/hw.ipynb")
    save(small(given), tmp_path / "source/hw/hw.ipynb")
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}") as gradebook:
        gradebook.add_assignment("hw")
        gradebook.add_notebook("hw", "hw")
        gradebook.add_grade_cell("grade-squares", "hw", "hw", max_score=4, cell_type="code")
        gradebook.add_solution_cell("squares", "hw", "hw")
        for student in paths:
            gradebook.add_student(student, first_name=f"First {student}", last_name="Last")
            gradebook.add_submission("hw", student)
            gradebook.find_grade("grade-squares", "hw", "hw", student).auto_score = 1.0
        gradebook.find_grade("grade-squares", "hw", "hw", "stock").manual_score = 2.5
        gradebook.find_comment("squares", "hw", "hw", "stock").manual_comment = "Well <b>tried</b>."
        gradebook.db.commit()
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", "generate_feedback", "hw"],
        cwd=tmp_path,
        env={**os.environ, "JUPYTER_CONFIG_DIR": str(tmp_path / "none"), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout
    forms = {
        student: (tmp_path / f"feedback/{student}/hw/hw.html").read_text(encoding="utf-8")
        for student in paths
    }
    for student, form in forms.items():
        assert_harmless(form)
        assert f"First {student} Last" in form
        assert f"only {student}" in form
        assert not [other for other in paths if other != student and f"First {other}" in form]
        assert "Given to all." not in form
        assert "HIDDEN" not in form
    assert "squares() is wrong." in words(forms["ours"])
    assert "1 of 4 points: partly right" in words(forms["ours"])
    assert "2.5 of 4 points: read by a person" in words(forms["stock"])
    assert soup(forms["stock"]).select_one(".comment").get_text() == "Well <b>tried</b>."


def save(notebook, path):
    path.parent.mkdir(parents=True)
    nbformat.write(notebook, path)


NOTES = """

noted = {name}

def {name}(*args, **kwargs):
    with open("noted.txt", "a") as file:
        print(args, kwargs, file=file)
    return noted(*args, **kwargs)
"""


@pytest.mark.parametrize("again", [True, False])
def test_no_cell_can_show_what_a_graded_one_called_a_function_with(monkeypatch, again):
    monkeypatch.setenv("POSENC_SEED", SEED)
    if not again:
        # That the words would be there, or else this test sees nothing.
        monkeypatch.setattr(running, "_show_again", lambda *_: None)
    notebook = source("00-start")
    first = next(
        cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("solution")
    )
    first.source += NOTES.format(name=first.id)
    notebook.cells.append(new_code_cell("print('mine')\nprint('noted', open('noted.txt').read())"))
    with Sandbox("00-start") as sandbox:
        result = running.run(notebook, sandbox)
    assert all(task.points == task.max_points for task in result.tasks)
    shown = json.dumps(notebook.cells[-1].outputs)
    assert "mine" in shown
    assert ("noted (" in shown) is not again
    assert ("FileNotFoundError" in shown) is again
