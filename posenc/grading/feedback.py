"""Feedback pages, made from what grading found and what the student wrote, and from nothing else.

No page holds a cell of the instructor's, nor an output of one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from nbconvert.exporters import Exporter

from posenc.grading._report import points_text
from posenc.grading._shown import FIGURES, Room, figure, plain
from posenc.grading.results import BLANK, FAULT, GRADED, MISSING, UNGRADABLE, Result, Task

# Bytes of a page, figures apart, that a student's answers, reports and other cells may fill.
ANSWERS, REPORTS, OTHERS = 18_000, 12_000, 10_000
# Characters of one piece.
ANSWER, CELL, OUTPUT, LINE, NOTE = 8_000, 4_000, 2_000, 1_200, 300
NOTES = 10
# A cell's own tags, so that thousands of empty ones fill a page no more than long ones.
TAGS = 160
# What each state means, and what to do.
STATES = {
    GRADED: ("Graded", "Every task was run and its points were counted."),
    BLANK: (
        "Handed in blank",
        "The notebook came in as it was given out, with no answer in it. If you did write answers, "
        "another copy of the file was handed in: ask your instructor whether you may send yours.",
    ),
    MISSING: (
        "Nothing handed in",
        "No notebook came in under your name. If you did hand one in, tell your instructor.",
    ),
    UNGRADABLE: (
        "Could not be graded",
        "What came in could not be read as this assignment's notebook, so no points were counted, "
        "which is not the same as zero. A person will look at it. The note below says what is "
        "wrong; if you have a notebook that opens, offer it to your instructor.",
    ),
    FAULT: (
        "Not fully graded: the grader failed",
        "This is no fault of yours. Tasks where the grader failed have no new points, and need to "
        "be graded again. You need not do anything; if this page stays as it is, show it to your "
        "instructor.",
    ),
}
# Where the page says more than the report's own word.
TASK_STATES = {
    "fault": "the grader failed",
    "wrong": "not right yet",
    "not refused": "does not refuse wrong input",
    "crash": "stops with an error",
    "not run yet": "not defined",
}
# Ids that the course gives to cells without a part in grading.
GIVEN = re.compile(r"(markdown|code|raw)-\d+")


@dataclass(frozen=True)
class Grade:
    """What the gradebook holds of one graded cell.

    Parameters
    ----------
    points : float, optional
        Those that count; none if nobody has counted them.
    max_points : float
        The most that can be.
    by_hand : bool, default False
        Whether a person set them.
    """

    points: float | None
    max_points: float
    by_hand: bool = False


@dataclass(frozen=True)
class Entry:
    """What the gradebook holds of a submitted notebook.

    Parameters
    ----------
    student, assignment : str
        As they are called in the gradebook.
    name : str
        The student's own name.
    grades : mapping of str to Grade
        By the graded cell's id.
    comments : mapping of str to str
        What a person wrote, by the id of the cell.
    late_penalty : float
        Points that are taken off.
    """

    student: str
    assignment: str
    name: str = ""
    grades: Mapping[str, Grade] = field(default_factory=dict)
    comments: Mapping[str, str] = field(default_factory=dict)
    late_penalty: float = 0.0


class FeedbackExporter(Exporter):
    """Makes feedback pages, as ``c.GenerateFeedback.exporter_class``."""

    file_extension = ".html"
    output_mimetype = "text/html"

    def from_notebook_node(
        self, nb: Any, resources: Any = None, **kwargs: Any
    ) -> tuple[str, dict[str, Any]]:
        """Return the page, and resources for nbconvert's writer.

        No preprocessor is run: nothing of the notebook reaches the page but by :func:`page`.
        """
        resources = self._init_resources(resources)
        about = resources["nbgrader"]
        entry = entry_of(
            about["db_url"], about["student"], about["assignment"], about.get("notebook")
        )
        given = self._given(about["assignment"], about.get("notebook"))
        try:
            result = Result.of(nb)
        except (AttributeError, KeyError, TypeError):
            # Not of our making: without our grader, what a student wrote there stands there.
            result = None
        return page(nb, result, entry, given=given), resources

    def _given(self, assignment: str, notebook: str | None) -> frozenset[str] | None:
        """Return the texts of the instructor's cells, or None if there is no such notebook."""
        course = getattr(self.parent, "coursedir", None)
        if course is None:
            return None
        folder = course.format_path(course.source_directory, ".", assignment)
        return _sources(str(Path(folder) / f"{notebook or assignment}.ipynb"))


@cache
def _sources(path: str) -> frozenset[str] | None:
    import nbformat

    try:
        cells = nbformat.read(path, as_version=4).cells
    except Exception:
        return None
    return frozenset(cell.source.strip() for cell in cells)


def entry_of(db_url: str, student: str, assignment: str, notebook: str | None = None) -> Entry:
    """Return what the gradebook at an address holds of a submitted notebook."""
    from nbgrader.api import Gradebook, MissingEntry

    with Gradebook(db_url) as gradebook:
        try:
            kept = gradebook.find_submission_notebook(notebook or assignment, assignment, student)
        except MissingEntry:
            return Entry(student, assignment)
        person = kept.student
        return Entry(
            student,
            assignment,
            " ".join(filter(None, (person.first_name, person.last_name))),
            {grade.name: _grade(grade) for grade in kept.grades},
            {each.name: each.manual_comment for each in kept.comments if each.manual_comment},
            float(kept.late_submission_penalty or 0.0),
        )


def _grade(grade: Any) -> Grade:
    by_hand = grade.manual_score is not None or bool(grade.extra_credit)
    counted = by_hand or grade.auto_score is not None
    points = float(grade.score) if counted else None
    return Grade(points, float(grade.max_score or 0.0), by_hand)


@dataclass
class _Row:
    """A graded cell in the table of points."""

    grade_id: str
    points: float | None
    max_points: float
    state: str
    kind: str

    @property
    def name(self) -> str:
        return plain(self.grade_id.removeprefix("grade-"))

    @property
    def score(self) -> str:
        most = points_text(self.max_points)
        return (
            f"{self.points:g} of {most}" if self.points is not None else f"no points yet of {most}"
        )

    @property
    def short(self) -> str:
        return "–" if self.points is None else f"{self.points:g}"


@dataclass
class _Part:
    """An answer of the student's, the graded cells after it, and what else stands there."""

    answers: list[Any] = field(default_factory=list)
    graded: list[str] = field(default_factory=list)
    others: list[Any] = field(default_factory=list)
    title: str = ""
    rows: list[_Row] = field(default_factory=list)
    reports: list[tuple[str, list[Any]]] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)

    @property
    def says_more(self) -> bool:
        """Whether there is anything to read but points."""
        return bool(self.answers or self.reports or self.comments or self.others)


def page(
    notebook: Any,
    result: Result | None,
    entry: Entry,
    *,
    given: Collection[str] | None = None,
) -> str:
    """Return a feedback page.

    Parameters
    ----------
    notebook : NotebookNode
        The graded notebook; nothing is read of the instructor's cells in it but their place.
    result : Result, optional
        How it ended; without one, the gradebook alone says so.
    entry : Entry
        What the gradebook says.
    given : collection of str, optional
        Texts of the cells that everybody got; without it, such cells are known by their ids.

    Returns
    -------
    str
        A whole page of HTML, which holds no script and asks for no other file.
    """
    tasks = {task.grade_id: task for task in result.tasks} if result else {}
    parts = list(_parts(notebook.cells, tasks, entry, given))
    rows = [row for part in parts for row in part.rows]
    state = result.state if result else GRADED
    counted = [row.points for row in rows if row.points is not None]
    total = sum(counted) - entry.late_penalty if counted else None
    notes = result.notes if result else ()
    room = Room(NOTES * NOTE)
    return _template().render(
        student=plain(entry.student),
        name=plain(entry.name),
        assignment=plain(entry.assignment),
        title=_title(notebook, entry.assignment),
        state=state,
        state_label=STATES[state][0],
        state_text=STATES[state][1],
        notes=[_safe(room.take(note, NOTE)) for note in notes[:NOTES]],
        more_notes=max(len(notes) - NOTES, 0),
        total=total,
        most=sum(row.max_points for row in rows),
        whole=len(counted) == len(rows),
        late_penalty=entry.late_penalty,
        rows=rows,
        parts=parts,
        version=result.version if result else "",
    )


def _title(notebook: Any, assignment: str) -> str:
    from posenc.exercises import ASSIGNMENTS

    if assignment in ASSIGNMENTS:
        return ASSIGNMENTS[assignment].title
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and cell.source.startswith("# "):
            return plain(cell.source[2:202].split("\n")[0]).strip()
    return plain(assignment)


def _parts(
    cells: list[Any],
    tasks: Mapping[str, Task],
    entry: Entry,
    given: Collection[str] | None,
) -> Iterator[_Part]:
    """Yield what the page shows, answer by answer, in the notebook's order."""
    parts = [_Part()]
    for cell in cells:
        about = cell.metadata.get("nbgrader") or {}
        about = about if isinstance(about, dict) else {}
        grade_id = str(about.get("grade_id", ""))
        if about.get("solution"):
            if parts[-1].graded or len(parts) == 1:
                parts.append(_Part())
            parts[-1].answers.append(cell)
        elif about.get("grade") or about.get("task"):
            if len(parts) == 1 or about.get("task"):
                parts.append(_Part())
        elif not about and cell.source.strip():
            is_given = _is_given(cell, given)
            if not is_given or (cell.cell_type == "code" and cell.outputs):
                parts[-1].others.append((cell, is_given))
        if about.get("grade") or about.get("task"):
            parts[-1].graded.append(grade_id)
    # What was graded counts, whatever became of its cell.
    found = {grade_id for part in parts for grade_id in part.graded}
    parts += [
        _Part(graded=[one]) for one in dict.fromkeys((*tasks, *entry.grades)) if one not in found
    ]
    yield from _filled(parts, tasks, entry)


def _is_given(cell: Any, given: Collection[str] | None) -> bool:
    if given is None:
        return GIVEN.fullmatch(str(cell.get("id", ""))) is not None
    return cell.source.strip() in given


def _filled(parts: list[_Part], tasks: Mapping[str, Task], entry: Entry) -> Iterator[_Part]:
    """Yield the parts that hold something, with all that is shown of them."""
    sources = _sources_of([cell for part in parts for cell in part.answers])
    reports = _reports_of([tasks[one] for part in parts for one in part.graded if one in tasks])
    shown, others = _Figures(), Room(OTHERS)
    for part in parts:
        names = [str(cell.metadata.nbgrader.get("grade_id", "")) for cell in part.answers]
        part.rows = [_row(one, tasks.get(one), entry.grades.get(one)) for one in part.graded]
        part.title = ", ".join(row.name for row in part.rows) or ", ".join(map(plain, names))
        part.reports = [
            (row.kind, reports[row.grade_id]) for row in part.rows if reports.get(row.grade_id)
        ]
        part.comments = [
            plain(entry.comments[one])
            for one in dict.fromkeys((*names, *part.graded))
            if one in entry.comments
        ]
        made = shown.counter(f"the answer to task {part.title}")
        part.answers = [
            {
                "code": cell.cell_type == "code",
                "source": sources[id(cell)],
                "outputs": list(_outputs(cell, others, made)),
            }
            for cell in part.answers
        ]
        place = (
            f"the cell after task {part.title}" if part.title else "a cell before the first task"
        )
        part.others = list(_others(part.others, others, shown.counter(place)))
        if part.title or part.others:
            yield part


def _sources_of(cells: list[Any]) -> dict[int, Any]:
    """Return the answers as HTML; short ones leave the room that they don't need to long ones."""
    room, sources = Room(ANSWERS), {}
    for count, cell in enumerate(sorted(cells, key=lambda cell: len(cell.source))):
        share = room.left // (len(cells) - count)
        code = cell.cell_type == "code"
        sources[id(cell)] = _safe(room.take(cell.source, ANSWER, code=code, share=share))
    return sources


def _reports_of(tasks: list[Task]) -> dict[str, list[Any]]:
    """Return the lines of reports as HTML; short ones leave room to long ones."""
    room, reports = Room(REPORTS), {}
    for count, task in enumerate(sorted(tasks, key=lambda task: sum(map(len, task.lines)))):
        share = Room(room.left // (len(tasks) - count))
        room.left -= share.left
        reports[task.grade_id] = _lines(task.lines, share)
        room.left += share.left
    return reports


def _row(grade_id: str, task: Task | None, grade: Grade | None) -> _Row:
    most = grade.max_points if grade else task.max_points if task else 0.0
    points = grade.points if grade else task.points if task else None
    if task and task.state == "fault" and grade and grade.points is not None:
        words = "the grader failed; points of an earlier grading"
        return _Row(grade_id, points, most, words, "open")
    if task:
        words = TASK_STATES.get(task.state, task.state)
        if task.state == "wrong" and task.points:
            words = "partly right"
    elif points is None:
        words = "not graded yet"
    elif grade and grade.by_hand:
        words = "read by a person"
    else:
        words = "right" if points >= most else "partly right" if points else "not right yet"
    if task and grade and grade.by_hand:
        words += "; points set by hand"
    kind = "open" if points is None else "right" if points >= most else "some" if points else "none"
    return _Row(grade_id, points, most, plain(words), kind)


def _lines(lines: tuple[str, ...], room: Room) -> list[Any]:
    """Return a report's lines; an address in the last one is a link."""
    shown = []
    for number, line in enumerate(lines):
        form = room.take(line, LINE)
        if number == len(lines) - 1 and number:
            form = re.sub(
                r"https?://[^\s<>()&]+(?<![.,;])",
                r'<a href="\g<0>" rel="noopener noreferrer">\g<0></a>',
                form,
            )
        shown.append(_safe(form))
    return shown


class _Figures:
    """Counts the figures of a page."""

    def __init__(self) -> None:
        self.shown = 0

    def counter(self, place: str) -> Any:
        """Return what turns data into a figure of a place, numbered from 1."""
        count = 0

        def made(data: Any) -> dict[str, Any]:
            nonlocal count
            count += 1
            label = f"figure {count} of {place}"
            if self.shown >= FIGURES:
                return {"said": f"{label} is not shown: a page shows {FIGURES}"}
            found = figure(data)
            if isinstance(found, str):
                return {"said": f"{label} is not shown: {found}"}
            self.shown += 1
            address, width, height = found
            return {"address": address, "alt": label, "width": width, "height": height}

        return made


def _others(cells: list[tuple[Any, bool]], room: Room, made: Any) -> Iterator[dict[str, Any]]:
    """Yield a student's own cells; when the room is full, their figures alone."""
    left_out = 0
    for cell, is_given in cells:
        full = room.left < 2 * TAGS
        left_out += full
        if full and not cell.get("outputs"):
            continue
        room.left -= 0 if full else TAGS
        code = cell.cell_type == "code"
        source = "" if is_given or full else room.take(cell.source, CELL, code=code)
        shown = list(_outputs(cell, room, made, say=not full))
        if source or shown:
            yield {"code": code, "source": _safe(source), "outputs": shown}
    if left_out:
        yield {
            "said": f"of {left_out} more of your cells, figures alone are shown: the page is full"
        }


def _outputs(cell: Any, room: Room, made: Any, *, say: bool = True) -> Iterator[dict[str, Any]]:
    """Yield what a cell showed, as text or as a figure and never as anything else."""
    left_out = 0
    for output in cell.get("outputs", ()):
        data = output.get("data")
        data = data if isinstance(data, dict) else {}
        full = room.left < 2 * TAGS
        room.left -= 0 if full else TAGS
        if "image/png" in data:
            shown = made(data["image/png"])
            if not full or "address" in shown:
                yield shown
        elif full:
            left_out += 1
        elif output.get("output_type") == "error":
            text = f"{output.get('ename', '')}: {output.get('evalue', '')}".rstrip(": ")
            yield {"error": True, "text": _safe(room.take(text, OUTPUT))}
        elif (text := output.get("text", data.get("text/plain"))) is not None:
            text = "".join(text) if isinstance(text, list) else str(text)
            if text.strip():
                yield {"text": _safe(room.take(text, OUTPUT))}
        elif data:
            kinds = room.take(", ".join(map(str, data)), 100)
            said = f"an output of the type {kinds} is not shown: pages show text and PNG"
            yield {"said": _safe(said)}
    if left_out and say:
        yield {"said": f"{left_out} more outputs not shown: the page is full"}


def _safe(form: str) -> Any:
    """Mark HTML that was escaped here, so that the template does not escape it again."""
    from markupsafe import Markup

    return Markup(form)


@cache
def _template() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("posenc.grading", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("feedback.html.j2")
