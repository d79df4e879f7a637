"""The notebook that is graded: the instructor's cells with a student's answers in them.

Nothing of a submission is trusted but texts: those of its answers, and of cells of its own. Tests,
points and everything that nbgrader knows of a cell come from the instructor's version.
"""

from __future__ import annotations

import ast
import copy
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import Any

from nbformat.notebooknode import NotebookNode

from posenc.grading._reading import Cell, Submitted, _shown, cells_of, defined, find

__all__ = ["Submitted", "find", "rebuild"]

EMPTY_STUB = "raise NotImplementedError()"
# Longer texts are not analysed: Python's own parser takes long, and much memory.
PARSED = 100_000
# At most so many parts are put together, and named in a sentence.
PARTS, NAMED = 20, 8


@dataclass
class Given:
    """A cell of the instructor's.

    Parameters
    ----------
    cell : NotebookNode
        It as it was written.
    released : NotebookNode
        It as it was handed out.
    """

    cell: Any
    released: Any

    def __post_init__(self) -> None:
        part = self.cell.metadata.get("nbgrader", {})
        self.part: str = part.get("grade_id") or ""
        self.answer = bool(part.get("solution"))
        self.ids = {one.get("id") for one in (self.cell, self.released)} - {None}
        self.texts = {plain(one.source) for one in (self.cell, self.released)}
        self.stub = plain(self.released.source)
        self.names: set[str] = set()
        if self.answer:
            self.texts = {self.stub}
            self.names = defined(self.released.source) or defined(self.cell.source)

    def unanswered(self, text: str) -> bool:
        """Return whether nobody has written an answer."""
        return plain(text) in ("", self.stub)


@dataclass
class Found:
    """Cells of a submission, and what each is.

    Parameters
    ----------
    cells : list of Cell
        With the parts of a split one put together.
    places : list of int
        Where each of them began in the submission.
    split : list of int
        Of how many parts each was made.
    role : list of int or None
        Which of the instructor's it is, or None for one of the student's own.
    how : list of str
        What told that: "part", "id", "text" or, for an answer, "name", and "mark" if the name tells
        against the marks of another answer.
    answers : dict of int to int
        For the instructor's answer cells, which of these it is.
    elsewhere : dict of int to int
        For answers that stand in the cell of another one, which of these that is.
    """

    cells: list[Cell]
    places: list[int]
    split: list[int]
    role: list[int | None] = field(default_factory=list)
    how: list[str] = field(default_factory=list)
    answers: dict[int, int] = field(default_factory=dict)
    elsewhere: dict[int, int] = field(default_factory=dict)


@dataclass
class Rebuilt:
    """A notebook that can be graded.

    Parameters
    ----------
    notebook : NotebookNode
        To be run.
    notes : tuple of str
        What was repaired.
    blank : bool
        Whether every answer is as handed out.
    origins : list of int or None
        For each of its cells, where its text stood in the submission.
    """

    notebook: NotebookNode
    notes: tuple[str, ...]
    blank: bool
    origins: list[int | None]


def rebuild(
    source: NotebookNode, released: NotebookNode, submitted: NotebookNode
) -> tuple[NotebookNode, tuple[str, ...], bool]:
    """Put a student's answers and own cells into the instructor's notebook.

    Parameters
    ----------
    source : NotebookNode
        The instructor's version, with hidden tests.
    released : NotebookNode
        What students got.
    submitted : NotebookNode
        What one of them handed in, in any state.

    Returns
    -------
    tuple of NotebookNode, tuple of str and bool
        What to run, what was repaired in a sentence each, and whether every answer is as handed
        out.
    """
    built = build(source, released, submitted)
    return built.notebook, built.notes, built.blank


def build(source: Any, released: Any, submitted: Any) -> Rebuilt:
    """Do what :func:`rebuild` does, and keep where each cell came from."""
    given = paired(source, released)
    found = match(given, submitted)
    slots, foreign = _own_cells(given, found)
    cells: list[Any] = []
    origins: list[int | None] = []
    ids, own_ids = _ids(given)
    blank = True
    for place, one in enumerate([*given, None]):
        for cell, origin in slots.get(place, []):
            cells.append(_own_cell(cell, next(own_ids)))
            origins.append(origin)
        if one is None:
            break
        at = found.answers.get(place)
        written = None if at is None else found.cells[at]
        if written is not None and one.unanswered(written.text):
            written = None
        if place in found.elsewhere:
            at = found.elsewhere[place]
            written = _pointing(given, place, found.role[at], found.cells[at])
        blank = blank and written is None
        cells.append(_graded_cell(one, written))
        cells[-1]["id"] = ids[place]
        origins.append(None if at is None else found.places[at])
    notebook = NotebookNode(
        cells=cells, metadata=copy.deepcopy(source.metadata), nbformat=4, nbformat_minor=5
    )
    return Rebuilt(notebook, tuple(_notes(given, found, foreign)), blank, origins)


def _pointing(given: list[Given], place: int, other: int, cell: Cell) -> Cell:
    """Return what is run in the place of an answer that stands in the cell of another one.

    A stub there would take the place of the student's function.
    """
    if other > place:
        # Its tests come before that cell, which runs again in its own place.
        return Cell("code", cell.text)
    names = " and ".join(sorted(given[place].names))
    return Cell("code", f"# {names} is in the cell of {given[other].part}.")


def _ids(given: list[Given]) -> tuple[list[str], Iterator[str]]:
    """Return the ids of the instructor's cells, and such for others; all differ from one another.

    They are the same for the same submission.
    """
    ids: list[str] = []
    for place, one in enumerate(given):
        known = one.cell.get("id") or one.released.get("id") or one.part or f"cell-{place}"
        known = re.sub(r"[^a-zA-Z0-9_-]", "-", known)[:64]
        ids.append(known if known not in ids else f"{known[:50]}-{place}")
    return ids, (name for n in count(1) if (name := f"own-{n}") not in ids)


def where(given: list[Given], submitted: Any) -> dict[str, list[int]]:
    """Return where the cells are that nbgrader should know: that which counts, then its copies."""
    found = match(given, submitted)
    places: dict[str, list[int]] = {}
    for place, one in enumerate(given):
        copies = [i for i, role in enumerate(found.role) if role == place]
        if one.part and copies:
            marked = [i for i in copies if found.how[i] == "part"]
            counts = found.answers.get(place, (marked or copies)[-1])
            rest = [found.places[i] for i in copies if i != counts]
            places[one.part] = [found.places[counts], *rest]
    return places


def split_answers(given: list[Given], submitted: Any) -> dict[str, int]:
    """Return of how many cells each answer is put together that is in several."""
    found = match(given, submitted)
    counts = {given[place].part: found.split[at] for place, at in found.answers.items()}
    return {part: parts for part, parts in counts.items() if parts > 1}


def taken_from(given: list[Given], submitted: Any) -> dict[str, str]:
    """Return in the cell of which answer each one stands that has no cell of its own."""
    found = match(given, submitted)
    return {given[place].part: given[found.role[at]].part for place, at in found.elsewhere.items()}


def plain(text: str) -> str:
    """Return a text without what editors change by themselves."""
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def paired(source: Any, released: Any) -> list[Given]:
    """Return the instructor's cells, each with what was handed out of it."""
    by_part, by_id, by_text = {}, {}, {}
    for cell in released.cells:
        part = cell.metadata.get("nbgrader", {}).get("grade_id")
        if part:
            by_part[part] = cell
        else:
            by_id[cell.get("id")] = by_text[plain(cell.source)] = cell
    made = []
    for cell in source.cells:
        part = cell.metadata.get("nbgrader", {}).get("grade_id")
        handed = by_part.get(part) if part else by_text.get(plain(cell.source))
        if handed is None and not part and cell.get("id"):
            handed = by_id.get(cell.id)
        if handed is None:
            handed = copy.deepcopy(cell)
            if cell.metadata.get("nbgrader", {}).get("solution"):
                # A solution never gets into a student's notebook.
                handed.source = EMPTY_STUB
        made.append(Given(cell, handed))
    # A name that two answers define tells nothing.
    counts = Counter(name for one in made for name in one.names)
    for one in made:
        one.names = {name for name in one.names if counts[name] == 1}
    return made


def match(given: list[Given], submitted: Any) -> Found:
    """Find out which cell of a submission is which of the instructor's."""
    parts = {one.part: place for place, one in enumerate(given) if one.part}
    ids = {known: place for place, one in enumerate(given) for known in one.ids}
    texts: dict[str, int] = {}
    for place, one in enumerate(given):
        for text in one.texts - {""}:
            texts.setdefault(text, place)

    def role(cell: Cell) -> tuple[int | None, str]:
        same = texts.get(plain(cell.text))
        if cell.part in parts:
            marked = given[parts[cell.part]]
            # Marks of an answer on what is another cell of the course to the letter.
            if same is not None and marked.answer and plain(cell.text) not in marked.texts:
                return same, "text"
            return parts[cell.part], "part"
        if same is not None:
            return same, "text"
        if not cell.text.strip():
            return None, ""
        return ids.get(cell.id), "id"

    found = _joined(given, cells_of(submitted), role)
    _take_roles(given, found, role)
    _take_names(given, found)
    for place, one in enumerate(given):
        if one.answer:
            _choose(place, one, found)
    for place, one in enumerate(given):
        if one.answer:
            _look_elsewhere(given, place, found)
    return found


def _take_roles(given: list[Given], found: Found, role: Any) -> None:
    """Say what each cell is; what was written into a locked one becomes a cell after it."""
    cells, places, split = found.cells, found.places, found.split
    found.cells, found.places, found.split = [], [], []
    for cell, origin, number in zip(cells, places, split, strict=True):
        place, how = role(cell)
        written = None if place is None else _written_into(given[place], cell)
        for one, its_role, its_how in ((cell, place, how), (written, None, "")):
            if one is not None:
                found.cells.append(one)
                found.places.append(origin)
                found.split.append(number)
                found.role.append(its_role)
                found.how.append(its_how)


def _take_names(given: list[Given], found: Found) -> None:
    """Believe the name of a function where the marks of its cell are another answer's."""
    marked = _written_answers(given, found)
    told = {
        index: defined(cell.text)
        for index, cell in enumerate(found.cells)
        if index in marked or (found.role[index] is None and cell.kind == "code")
    }
    counts = Counter(name for names in told.values() for name in names)
    for index, place in marked.items():
        claims = [n for n, one in enumerate(given) if one.answer and one.names & told[index]]
        if len(claims) != 1 or claims[0] == place:
            continue
        claimed = given[claims[0]]
        if any(counts[name] > 1 for name in claimed.names & told[index]):
            continue
        rest = [found.cells[i] for i, n in marked.items() if n == claims[0]]
        # Only if it holds nothing of what it is marked as, and the cells marked as that lack it.
        if not _holds(given[place], found.cells[index], loosely=True) and not any(
            _holds(claimed, cell, loosely=True) for cell in rest
        ):
            found.role[index], found.how[index] = claims[0], "mark"


def _written_answers(given: list[Given], found: Found) -> dict[int, int]:
    """Return which cells are those of answers, with something written into them, and of which."""
    return {
        index: place
        for index, place in enumerate(found.role)
        if place is not None
        and given[place].answer
        and not given[place].unanswered(found.cells[index].text)
    }


def _written_into(one: Given, cell: Cell) -> Cell | None:
    """Return what a student wrote into a cell that was not meant for it, as one that may run."""
    if one.answer or not cell.text.strip() or plain(cell.text) in one.texts:
        return None
    if not one.part or cell.kind != "code" or one.cell.cell_type != "code":
        return Cell(cell.kind, cell.text, attachments=cell.attachments)
    tree = tree_of(cell.text)
    if tree is None:
        return Cell("code", cell.text) if defined(cell.text) else None
    ours = tree_of(one.cell.source)
    known = set().union(*map(_bound, ours.body)) if ours else set()
    # Imports and definitions that answers may need; not another value of the course's own names.
    lines = cell.text.split("\n")
    kept = []
    for statement in tree.body:
        if _bound(statement) - known:
            decorators = getattr(statement, "decorator_list", [])
            first = min([statement.lineno, *(one.lineno for one in decorators)])
            kept += lines[first - 1 : statement.end_lineno]
    return Cell("code", "\n".join(kept)) if kept else None


def _bound(statement: ast.stmt) -> set[str]:
    """Return the names that a statement gives a value, in whatever block of it."""
    names = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def binds(text: str) -> set[str]:
    """Return the names that a cell gives a value, by whatever means."""
    tree = tree_of(text)
    names = defined(text)
    for statement in tree.body if tree else ():
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names |= _bound(statement)
    return names


def _joined(given: list[Given], cells: list[Cell], role: Any) -> Found:
    """Put the parts of answers together that were split."""
    joined = Found([], [], [])
    names = set().union(*(one.names for one in given))
    # Which answer the last cell is part of; None where the next can't be a part of it.
    last: tuple[int | None, str] | None = None
    for place, cell in enumerate(cells):
        where, _ = role(cell)
        # An empty cell between two parts is none.
        if where is None and not cell.text.strip():
            continue
        mine = (where, cell.text) if where is None or given[where].answer else None
        if mine and last and joined.split[-1] < PARTS:
            owners = {where, last[0]} - {None}
            known = len(owners) == 1 or (not owners and defined(last[1]) & names)
            code = cell.kind == "code" or where is not None
            whole = _whole(last[1], cell.text) if known and code else None
            if whole is not None:
                before = joined.cells[-1]
                marked = before if before.part or not cell.part else cell
                joined.cells[-1] = Cell(before.kind, whole, marked.id, marked.part)
                joined.split[-1] += 1
                last = (next(iter(owners), None), whole)
                continue
        joined.cells.append(cell)
        joined.places.append(place)
        joined.split.append(1)
        # An untouched stub and a text go on with nothing.
        goes_on = mine and (where is not None or cell.kind == "code")
        last = mine if goes_on else None
    return joined


def _whole(first: str, second: str) -> str | None:
    """Return two parts of one cell together, or None if they are two cells."""
    indented = second.lstrip("\n")[:1] in (" ", "\t")
    if parses(first) and (not indented or parses(second)):
        return None
    for between in ("\n", ""):
        # In the middle of a line only where neither part is anything by itself.
        if between or not indented:
            whole = first.rstrip("\n") + between + second.lstrip("\n")
            if parses(whole):
                return whole
    if indented and not parses(first) and not parses(second):
        return first.rstrip("\n") + "\n" + second.lstrip("\n")
    return None


def parses(text: str) -> bool:
    """Return whether a cell is Python, apart from IPython's own lines."""
    return tree_of(text) is not None


def tree_of(text: str) -> ast.Module | None:
    """Return the syntax tree of a cell, or None if it has none."""
    if len(text) > PARSED:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(re.sub(r"(?m)^([ \t]*)[%!?].*$", r"\1pass", text))
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _choose(place: int, one: Given, found: Found) -> None:
    """Say which cell holds an answer.

    Of several copies the last that was changed counts: it is what the student's own Python had.
    """
    copies = [i for i, role in enumerate(found.role) if role == place]
    for how in ("mark", "part", "id"):
        written = [
            i for i in copies if found.how[i] == how and not one.unanswered(found.cells[i].text)
        ]
        if written:
            found.answers[place] = written[-1]
            return
    ways = {"strict": bool(copies), "loosely": _loosely(place, one, found)}
    named = [i for i in range(len(found.cells)) if _defines(one, found, i, **ways)]
    if named:
        found.answers[place] = named[-1]
        found.how[named[-1]] = "name"
        found.role[named[-1]] = place
    elif copies:
        found.answers[place] = copies[-1]


def _defines(one: Given, found: Found, index: int, *, strict: bool, loosely: bool) -> bool:
    """Return whether a cell that is no answer by its marks defines what one should."""
    cell = found.cells[index]
    if found.role[index] is not None or not _holds(one, cell, loosely=loosely):
        return False
    # Text may quote code; it is an answer if it is nothing but code.
    return cell.kind == "code" or (not strict and parses(cell.text))


def _holds(one: Given, cell: Cell, *, loosely: bool) -> bool:
    """Return whether a cell defines the name of an answer; loosely, whether it binds it."""
    if defined(cell.text) & one.names:
        return True
    known = loosely and cell.kind == "code" and any(name in cell.text for name in one.names)
    return known and bool(binds(cell.text) & one.names)


def _loosely(place: int, one: Given, found: Found) -> bool:
    """Return whether an import, or any variable, of its name can be an answer."""
    return place not in found.role and not any(defined(c.text) & one.names for c in found.cells)


def _look_elsewhere(given: list[Given], place: int, found: Found) -> None:
    """Find an answer that nobody wrote into its own cell in the cells of other answers."""
    one, at = given[place], found.answers.get(place)
    if at is not None and not one.unanswered(found.cells[at].text):
        return
    loosely = _loosely(place, one, found)
    holding = [
        index
        for index in _written_answers(given, found)
        if _holds(one, found.cells[index], loosely=loosely)
    ]
    if holding:
        found.elsewhere[place] = holding[-1]


def _own_cells(
    given: list[Given], found: Found
) -> tuple[dict[int, list[tuple[Cell, int]]], list[str]]:
    """Return the student's own cells by the place before which they stand, and foreign ids.

    They follow the cell that they followed; a copy of an answer comes before the one that counts.
    """
    anchors: dict[int, int] = {}
    for index, place in enumerate(found.role):
        if place is None or place in anchors.values():
            continue
        if found.answers.get(place, index) == index:
            anchors[index] = place
    following: list[int | None] = [None] * len(found.cells)
    after = None
    for index in reversed(range(len(found.cells))):
        following[index] = after
        after = anchors.get(index, after)

    slots: dict[int, list[tuple[Cell, int]]] = {}
    foreign = []
    taken = {place: {plain(found.cells[at].text)} for place, at in found.answers.items()}
    previous = None
    for index, cell in enumerate(found.cells):
        if index in anchors:
            previous = anchors[index]
            continue
        place, slot = found.role[index], _slot(given, previous, following[index])
        if place is not None:
            text = plain(cell.text)
            # Nothing of a student's is in a copy of a stub, or of what counts.
            if not given[place].answer or given[place].unanswered(text) or text in taken[place]:
                continue
            taken[place].add(text)
            slot = min(slot, place)
            cell = Cell(given[place].cell.cell_type, cell.text)
        elif cell.part:
            foreign.append(cell.part)
        slots.setdefault(slot, []).append((cell, found.places[index]))
    return slots, foreign


def _slot(given: list[Given], previous: int | None, following: int | None) -> int:
    """Return the instructor's cell before which a cell belongs that stood between two of them."""
    if previous is None:
        return len(given) if following is None else following
    # An answer that is moved up takes with it what stood before it and may define what it needs.
    if following is not None and following <= previous and given[following].answer:
        return following
    return previous + 1


def _own_cell(cell: Cell, name: str) -> NotebookNode:
    """Return a cell of the student's, without anything that could mean something to nbgrader."""
    kind = "code" if cell.kind == "code" else "markdown"
    node = _node(kind, cell.text, NotebookNode(), cell.attachments)
    node["id"] = name
    return node


def _graded_cell(one: Given, written: Cell | None) -> NotebookNode:
    """Return a cell of the instructor's, with an answer in it if there is one."""
    metadata = copy.deepcopy(one.released.metadata)
    source = one.released.source if one.answer else one.cell.source
    part = one.cell.metadata.get("nbgrader")
    if part is not None:
        handed = metadata.get("nbgrader", {})
        marks = {key: value for key, value in part.items() if key not in ("checksum", "cell_type")}
        metadata["nbgrader"] = NotebookNode({**handed, **copy.deepcopy(marks)})
        same = all(handed.get(key) == marks[key] for key in marks)
        if source != one.released.source or not same or "checksum" not in handed:
            # Students saw it without its hidden tests, or with other points, or not at all.
            _sign(metadata["nbgrader"], one.cell.cell_type, source)
    if written is not None:
        return _node(one.cell.cell_type, written.text, metadata, written.attachments)
    return _node(one.cell.cell_type, source, metadata, one.cell.get("attachments", {}))


def _sign(part: NotebookNode, kind: str, source: str) -> None:
    """Write down the checksum by which nbgrader knows a text that nobody changed."""
    from nbgrader.utils import compute_checksum

    part["cell_type"] = kind
    part["checksum"] = compute_checksum(_node(kind, source, NotebookNode(nbgrader=part), {}))


def _node(kind: str, text: str, metadata: NotebookNode, attachments: Any) -> NotebookNode:
    cell = NotebookNode(id="", cell_type=kind, metadata=metadata, source=text)
    if kind == "code":
        cell["outputs"], cell["execution_count"] = [], None
    elif attachments:
        cell["attachments"] = copy.deepcopy(attachments)
    return cell


def _notes(given: list[Given], found: Found, foreign: list[str]) -> list[str]:
    """Return what was repaired, in a sentence for each kind or each answer."""
    notes = []
    changed, deleted, order = [], [], []
    for place, one in enumerate(given):
        copies = [i for i, role in enumerate(found.role) if role == place]
        if one.answer:
            notes += _answer_notes(given, place, found, copies)
        elif one.part and not copies:
            deleted.append(one.part)
        elif one.part and any(plain(found.cells[i].text) not in one.texts for i in copies):
            changed.append(one.part)
        if one.part and copies:
            order.append(found.answers.get(place, copies[0]))
    if changed:
        notes.append(f"locked cells were changed, and are the course's again: {_listed(changed)}")
    if deleted:
        notes.append(f"locked cells were deleted, and are there again: {_listed(deleted)}")
    if any(first > second for first, second in pairwise(order)):
        notes.append("cells were in another order, and are in the course's again")
    if foreign:
        notes.append(
            "cells of other notebooks were copied into this one, and are ordinary cells: "
            f"{_listed(dict.fromkeys(foreign))}"
        )
    return notes


def _answer_notes(given: list[Given], place: int, found: Found, copies: list[int]) -> list[str]:
    """Return what was repaired of one answer."""
    one, at = given[place], found.answers.get(place)
    if place in found.elsewhere:
        other = found.role[found.elsewhere[place]]
        return [f"`{one.part}`: the answer was found in the cell of `{given[other].part}`"]
    if at is None:
        return [f"`{one.part}`: no cell holds an answer, and it counts as blank"]
    notes = []
    if found.split[at] > 1:
        notes.append(f"its cell was in {found.split[at]} parts, which were put together in order")
    cell, how = found.cells[at], found.how[at]
    if how == "name":
        notes.append("the answer was found in a cell that had no marks of the course")
    elif how == "mark":
        notes.append("its cell had the marks of another answer and was found by its name")
    elif how == "id" and not one.unanswered(cell.text):
        notes.append("its cell had lost its marks and was found by its id")
    written = {
        plain(found.cells[i].text) for i in copies if not one.unanswered(found.cells[i].text)
    }
    if len(written) > 1:
        notes.append(
            f"there were {len(written)} different cells for it; the last one that was changed "
            "counts, and the others run before it"
        )
    if cell.kind != one.cell.cell_type:
        notes.append(f"its cell was of the kind {cell.kind}, and is {one.cell.cell_type} again")
    return [f"`{one.part}`: {note}" for note in notes]


def _listed(parts: Iterable[str]) -> str:
    shown = [f"`{_shown(part)}`" for part in parts]
    more = f" and {len(shown) - NAMED} more" if len(shown) > NAMED else ""
    return ", ".join(shown[:NAMED]) + more
