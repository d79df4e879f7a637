"""Reading what somebody handed in: files as they come, and notebooks of any age and encoding."""

from __future__ import annotations

import codecs
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbformat.notebooknode import NotebookNode

from posenc import exercises
from posenc.grading.results import GRADED, MISSING, UNGRADABLE

NOTEBOOK_BYTES = 50_000_000
FILE_BYTES, FILES_BYTES = 4_000_000, 16_000_000
# Nobody writes more; each costs time although it is small.
CELLS, ENTRIES, DEPTH, NOTEBOOKS = 5_000, 2_000, 8, 20
# A name at the start of a line that a function or class gets.
DEFINITION = re.compile(r"^(?:(?:async +)?def|class) +(\w+)|^(\w+) *= *lambda\b", re.MULTILINE)
BYTE_ORDER_MARKS = (
    # That of UTF-32 begins with that of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"{\0", "utf-16-le"),
    (b"\0{", "utf-16-be"),
)


@dataclass(frozen=True)
class Submitted:
    """What was found in a submission's folder.

    Parameters
    ----------
    notebook : NotebookNode or None
        The sources of its cells, and what tells which they are; None if it can't be graded.
    state : str
        ``results.MISSING``, ``results.UNGRADABLE``, or ``results.GRADED`` if it can be graded.
    notes : tuple of str
        Sentences for the instructor and the student: what was accepted, or why nothing was.
    files : dict of str to bytes
        Other small files, by their path in the folder.
    """

    notebook: NotebookNode | None
    state: str
    notes: tuple[str, ...] = ()
    files: dict[str, bytes] = field(default_factory=dict)


class UnreadableError(ValueError):
    """Why a file can't be read as a notebook, to be said after its name."""


@dataclass
class Cell:
    """What matters of a cell.

    Parameters
    ----------
    kind : str
        "code", "markdown" or "raw".
    text : str
        Its source.
    id : str
        Its own id, or nothing.
    part : str
        The id that nbgrader knows it by, or nothing.
    attachments : dict
        Pictures in a text.
    """

    kind: str
    text: str
    id: str = ""
    part: str = ""
    attachments: dict[str, Any] = field(default_factory=dict)


def find(folder: Path, name: str, *, others: frozenset[str] = frozenset()) -> Submitted:
    """Find the notebook of an assignment in the folder of one submission, and read it.

    Parameters
    ----------
    folder : Path
        Where it lies.
    name : str
        The assignment's notebook, without ``.ipynb``.
    others : frozenset of str, optional
        Its other notebooks.

    Returns
    -------
    Submitted
        Whatever is in the folder.
    """
    found, kept, total = [], {}, 0
    for path in _files(Path(folder)):
        if path.suffix.lower() == ".ipynb":
            found += [path] if path.stem not in others else []
        elif path.suffix.lower() not in (".html", ".htm"):
            content = _small(path, min(FILE_BYTES, FILES_BYTES - total))
            if content is not None:
                total += len(content)
                kept[_clean(path.relative_to(folder).as_posix())] = content
    if not found:
        return Submitted(None, MISSING, (f"no notebook was handed in; expected {name}.ipynb",))
    return _chosen(Path(folder), name, found, kept)


def _files(folder: Path) -> Iterator[Path]:
    """Yield the regular files that are not hidden, in an order that is always the same."""
    seen = 0
    folders = [folder]
    while folders:
        here = folders.pop(0)
        try:
            with os.scandir(here) as entries:
                entries = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            seen += 1
            if seen > ENTRIES:
                return
            if entry.name.startswith(".") or entry.name in ("__pycache__", "__MACOSX"):
                continue
            try:
                if entry.is_file(follow_symlinks=False):
                    yield here / entry.name
                elif entry.is_dir(follow_symlinks=False):
                    inside = here / entry.name
                    if len(inside.relative_to(folder).parts) <= DEPTH:
                        folders.append(inside)
            except OSError:
                continue


def _small(path: Path, most: int) -> bytes | None:
    """Return a file's content, if it is not too long."""
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError:
        return None
    return content if len(content) <= most else None


def _chosen(folder: Path, name: str, found: list[Path], kept: dict[str, bytes]) -> Submitted:
    """Return the notebook with the right name; else the only one that can be graded."""
    right = folder / f"{name}.ipynb"
    right_first = sorted(found, key=lambda path: (path != right, _distance(folder, path, name)))
    readable: dict[Path, tuple[Any, tuple[str, ...]]] = {}
    faults: list[str] = []
    for path in right_first[:NOTEBOOKS]:
        shown = _shown(path.relative_to(folder).as_posix())
        try:
            notebook, notes = read_file(path)
            _of_assignment(notebook, name, named=path == right)
        except UnreadableError as error:
            faults.append(f"{shown} {error}")
            continue
        readable[path] = notebook, tuple(f"{shown} {note}" for note in notes)
        if path == right:
            break
    if not readable:
        more = f"; nor can {len(faults) - 1} more be graded" if faults[1:] else ""
        return Submitted(None, UNGRADABLE, (faults[0] + more,), kept)
    if right not in readable:
        nearest = min(_distance(folder, path, name) for path in readable)
        first = next(iter(readable.values()))
        near = {path for path in readable if _distance(folder, path, name) == nearest}
        if len(near) > 1 and any(readable[path][0] != first[0] for path in readable):
            shown = sorted(_shown(path.relative_to(folder).as_posix()) for path in near)
            names = " and ".join(shown)
            said = f"{names} could each be {name}.ipynb; ask the student which counts"
            return Submitted(None, UNGRADABLE, (said,), kept)
        right = min(near)
        shown = _shown(right.relative_to(folder).as_posix())
        faults = [f"{shown} was taken for {name}.ipynb, which is not there", *faults]
        if folder / f"{name}.ipynb" in found:
            faults[0] = f"{shown} was taken for {name}.ipynb"
    others = [_shown(path.relative_to(folder).as_posix()) for path in found if path != right]
    if others:
        faults.append(f"other notebooks were not graded: {', '.join(others[:NOTEBOOKS])}")
    notebook, notes = readable[right]
    return Submitted(notebook, GRADED, (*notes, *faults), kept)


def _distance(folder: Path, path: Path, name: str) -> int:
    """Return how far a notebook's name is from the right one."""
    if path.name == f"{name}.ipynb":
        return min(len(path.relative_to(folder).parts) - 1, 1)
    # What browsers, systems and editors make of a second file with a name.
    stem = re.sub(r"([ _-]*(\(\d+\)|copy\d*|kopie\d*))+$", "", path.stem.strip().casefold())
    return 2 if stem.strip() == name.casefold() else 3


def _of_assignment(notebook: NotebookNode, name: str, *, named: bool) -> None:
    """Refuse the notebook of another assignment, and any other that is not named as this one."""
    if name not in exercises.ASSIGNMENTS:
        return
    counts = tasks_held(notebook)
    if counts[name]:
        return
    other = max(counts, key=lambda other: counts[other])
    if counts[other]:
        raise UnreadableError(
            f"holds the tasks of {other} and none of {name}; ask the student for {name}.ipynb"
        )
    if not named:
        raise UnreadableError(f"holds no task of {name}; ask the student for {name}.ipynb")


def tasks_held(notebook: Any) -> dict[str, int]:
    """Return of how many tasks a notebook holds something, for each assignment.

    Parameters
    ----------
    notebook : NotebookNode
        Or any other JSON.

    Returns
    -------
    dict of str to int
        For every assignment of the course.
    """
    held: set[str] = set()
    for cell in cells_of(notebook):
        held |= {re.sub("^(check|grade)-", "", known) for known in (cell.part, cell.id)}
        if cell.kind == "code":
            held |= defined(cell.text)
    return {
        name: sum(exercise.name in held for exercise in exercises.for_assignment(name))
        for name in exercises.ASSIGNMENTS
    }


def read_file(path: Path) -> tuple[NotebookNode, tuple[str, ...]]:
    """Return a notebook and what was unusual, each to be said after the file's name.

    Parameters
    ----------
    path : Path
        A file.

    Returns
    -------
    tuple of NotebookNode and tuple of str
        The notebook holds what :class:`Cell` does.

    Raises
    ------
    UnreadableError
        If no cells can be read.
    """
    try:
        size = path.stat().st_size
        content = _small(path, NOTEBOOK_BYTES)
    except OSError:
        size, content = 0, None
    if size > NOTEBOOK_BYTES:
        raise UnreadableError(
            f"is {size / 1e6:.0f} MB, and {NOTEBOOK_BYTES / 1e6:.0f} are read; ask the student "
            "for it without its outputs"
        )
    if content is None:
        raise UnreadableError("can't be opened; ask the student for it again")
    return read(content)


def read(content: bytes) -> tuple[NotebookNode, tuple[str, ...]]:
    """Return the notebook that bytes hold; see :func:`read_file`."""
    text, notes = _decoded(content)
    text = text.strip("\0 \t\r\n")
    if not text:
        raise UnreadableError("is empty; ask the student for it again")
    document, end = _parsed(text)
    if end < len(text):
        notes.append("had something after its end, which was left out")
    cells = _found_cells(document)
    if cells is None:
        raise UnreadableError("is no notebook: it has no cells; ask the student for the notebook")
    if len(cells) > CELLS:
        raise UnreadableError(f"has {len(cells)} cells; ask the student for one that a person made")
    version = document.get("nbformat")
    if isinstance(version, int) and not isinstance(version, bool) and not 3 <= version <= 4:
        notes.append(f"is in version {version:.0f} of the format, and was read as far as known")
    return _notebook(cells), tuple(notes)


def _decoded(content: bytes) -> tuple[str, list[str]]:
    for mark, encoding in BYTE_ORDER_MARKS:
        if content.startswith(mark):
            note = f"was in {encoding.upper().removesuffix('-SIG')} with marks of its own"
            plain = encoding == "utf-8-sig"
            return content.decode(encoding, "replace"), [] if plain else [note]
    try:
        return content.decode("utf-8"), []
    except UnicodeDecodeError:
        text = content.decode("utf-8", "replace")
    # A damaged byte among many that are right, or another encoding.
    wrong = text.count("\ufffd")
    if sum(not character.isascii() for character in text) > 2 * wrong:
        return text, [f"has damaged characters ({wrong})"]
    # Five bytes mean nothing there.
    text = content.decode("cp1252", "replace")
    return text, ["was not in UTF-8, and was read as Windows-1252 (Latin-1)"]


def _parsed(text: str) -> tuple[Any, int]:
    """Return the first JSON value of a text, and where it ends."""
    # A whole number of thousands of digits is a plain ValueError, and read as a float instead.
    for whole_number in (None, float):
        try:
            return json.JSONDecoder(strict=False, parse_int=whole_number).raw_decode(text)
        except json.JSONDecodeError as error:
            fault = error
            break
        except RecursionError:
            raise UnreadableError("is nested too deeply; ask the student for it again") from None
        except ValueError:
            continue
    if text.startswith("<"):
        raise UnreadableError("is a web page; ask the student for the notebook itself")
    if text.startswith("PK"):
        raise UnreadableError("is a ZIP archive; ask the student for the notebook in it")
    if re.search(r"^<<<<<<< ", text, re.MULTILINE):
        raise UnreadableError("holds two versions that Git could not merge; ask for one of them")
    cut = fault.pos >= len(text) or fault.msg.startswith("Unterminated string")
    what = "is cut off in the middle" if text.startswith("{") and cut else "is not a notebook"
    where = "" if cut else f" (its JSON breaks in line {fault.lineno})"
    raise UnreadableError(f"{what}{where}; ask the student for it again")


def _found_cells(document: Any) -> list[Any] | None:
    """Return the cells of any version of the format, or None."""
    if not isinstance(document, dict):
        return None
    cells = document.get("cells")
    if isinstance(cells, list):
        return cells
    sheets = document.get("worksheets")
    if not isinstance(sheets, list):
        return None
    inside = [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)]
    return [cell for cells in inside if isinstance(cells, list) for cell in cells]


def _notebook(cells: list[Any]) -> NotebookNode:
    made = []
    for cell in map(_cell, cells):
        if cell is None:
            continue
        metadata = {"nbgrader": NotebookNode(grade_id=cell.part)} if cell.part else {}
        node = NotebookNode(cell_type=cell.kind, metadata=NotebookNode(metadata), source=cell.text)
        if cell.id:
            node["id"] = cell.id
        if cell.kind == "code":
            node["outputs"], node["execution_count"] = [], None
        elif cell.attachments:
            node["attachments"] = NotebookNode(cell.attachments)
        made.append(node)
    return NotebookNode(cells=made, metadata=NotebookNode(), nbformat=4, nbformat_minor=5)


def cells_of(notebook: Any) -> list[Cell]:
    """Return what matters of a notebook's cells, whatever JSON it is."""
    return [cell for cell in map(_cell, _found_cells(notebook) or []) if cell is not None]


def _cell(cell: Any) -> Cell | None:
    if not isinstance(cell, dict):
        return None
    kind = cell.get("cell_type")
    written = next((cell[key] for key in ("source", "input", "code") if key in cell), "")
    text = _text(written)
    if kind == "heading":
        level = cell.get("level")
        text = "#" * (level if level in (1, 2, 3, 4, 5, 6) else 1) + " " + " ".join(text.split())
    if kind not in ("code", "markdown", "raw"):
        kind = "markdown" if kind in ("heading", "html", "text") else "code"
    metadata = cell.get("metadata")
    part = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    part = part.get("grade_id") if isinstance(part, dict) else None
    own = cell.get("id")
    return Cell(
        kind,
        text,
        own if isinstance(own, str) else "",
        _clean(part) if isinstance(part, str) else "",
        _attachments(cell.get("attachments")),
    )


def _text(source: Any) -> str:
    """Return a source as one text, from a text or its lines with or without their ends."""
    if isinstance(source, list):
        lines = [line for line in source if isinstance(line, str)]
        ends = any(line.endswith("\n") for line in lines[:-1])
        source = ("" if ends else "\n").join(lines)
    if not isinstance(source, str):
        return ""
    return _clean(source.replace("\r\n", "\n").replace("\r", "\n"))


def _clean(text: str) -> str:
    """Return a text that can be written: half of a surrogate pair can't."""
    if not text.isascii():
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        text = text.encode("utf-8", "replace").decode("utf-8")
    return text.replace("\0", "")


def _attachments(attachments: Any) -> dict[str, Any]:
    if not isinstance(attachments, dict):
        return {}
    return {
        _clean(name): {_clean(kind): _clean(data) for kind, data in bundle.items()}
        for name, bundle in attachments.items()
        if isinstance(bundle, dict) and all(isinstance(data, str) for data in bundle.values())
    }


def defined(text: str) -> set[str]:
    """Return the functions and classes that a cell defines, also one that is no valid Python."""
    return {first or second for first, second in DEFINITION.findall(text)}


def _shown(name: str) -> str:
    """Return a student's name of something as text that is safe to print."""
    name = "".join(c if c.isprintable() else "?" for c in _clean(name))
    return name if len(name) <= 80 else f"{name[:77]}..."
