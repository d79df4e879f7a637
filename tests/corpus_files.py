"""Submissions that are broken as files or as notebooks, by accident as a rule."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

from corpus import (
    MOST,
    ROOT,
    SETUP,
    Notebook,
    at,
    cell,
    cells,
    code,
    complete,
    copied,
    edited,
    entry,
    released,
    save,
)

from posenc.grading.results import BLANK, MISSING, UNGRADABLE

FILE = f"{MOST}.ipynb"
NOTHING = {"wavelengths": 0.0}
ENDING = {"add_positions": 0.0, "impossible_pairs": 0.0, "accepts": 0.0}


# What is in the folder.


@entry("complete", "The model solution.")
def _(folder: Path) -> None:
    save(folder, complete())


for assignment in ("00-start", "01-attention", "03-rotation", "04-learned-rope", "05-ledger"):
    edited(f"complete-{assignment}", "The model solution of another.", assignment=assignment)(
        lambda notebook: None
    )
    entry(f"blank-{assignment}", "Handed in as given.", assignment=assignment, state=BLANK)(
        lambda folder, assignment=assignment: save(folder, released(assignment), assignment)
    )


@entry("blank", "Handed in as it was handed out.", state=BLANK, quick=True)
def _(folder: Path) -> None:
    save(folder, released())


@entry("empty-folder", "An empty folder.", state=MISSING, word="no notebook")
def _(folder: Path) -> None:
    pass


@entry("only-html", "A copy as a web page and no notebook.", state=MISSING)
def _(folder: Path) -> None:
    (folder / f"{MOST}.html").write_text("<html></html>", "utf-8")


@entry("only-script", "A script and no notebook.", state=MISSING)
def _(folder: Path) -> None:
    (folder / f"{MOST}.py").write_text("def wavelengths(): pass", "utf-8")


@entry("html-copy", "A copy as a web page beside the notebook.")
def _(folder: Path) -> None:
    save(folder, complete())
    (folder / f"{MOST}.html").write_text("<script>alert(1)</script>", "utf-8")


@entry("empty-file", "A file without a byte.", state=UNGRADABLE, word="empty")
def _(folder: Path) -> None:
    (folder / FILE).write_bytes(b"")


@entry("truncated", "JSON that is cut off.", state=UNGRADABLE, word="cut off", quick=True)
def _(folder: Path) -> None:
    save(folder, complete())
    content = (folder / FILE).read_bytes()
    (folder / FILE).write_bytes(content[: len(content) // 2])


for name, content in {
    "zeros": b"\0" * 5000,
    "pdf": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj",
    "zip": b"PK\x03\x04\x14\0\0\0",
    "login-page": b"<!DOCTYPE html><html><body>Please log in</body></html>",
    "json-number": b"42",
    "json-list": b"[]",
    "json-null": b"null",
    "no-cells-key": b'{"metadata": {}, "nbformat": 4, "nbformat_minor": 5}',
    "cells-number": b'{"cells": 7, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}',
    "deep-json": b'{"cells": ' + b"[" * 200_000,
    "python-text": b"def wavelengths(d_model):\n    return 1\n",
}.items():
    entry(f"not-{name}", f"No notebook: {name}.", state=UNGRADABLE)(
        lambda folder, content=content: (folder / FILE).write_bytes(content)
    )


@entry("merge-conflict", "Two versions that Git could not merge.", state=UNGRADABLE, word="Git")
def _(folder: Path) -> None:
    save(folder, complete(), indent=1)
    text = (folder / FILE).read_text("utf-8")
    text = text.replace('\n "cells": [', '\n<<<<<<< HEAD\n "cells": [\n=======\n "cells": [', 1)
    (folder / FILE).write_text(text, "utf-8")


@entry("too-large", "A notebook of 60 MB.", state=UNGRADABLE, word="MB")
def _(folder: Path) -> None:
    save(folder, complete())
    os.truncate(folder / FILE, 60_000_000)


@entry("latin-1", "Saved in Latin-1.", word="Latin-1")
def _(folder: Path) -> None:
    notebook = complete()
    notebook["cells"].append(code("größe = 'é'"))
    text = json.dumps(notebook, ensure_ascii=False)
    (folder / FILE).write_bytes(text.encode("latin-1", "replace"))


for encoding in ("utf-8-sig", "utf-16", "utf-16-le", "utf-32"):

    @entry(f"in-{encoding}", f"Saved in {encoding}.")
    def _(folder: Path, encoding: str = encoding) -> None:
        (folder / FILE).write_bytes(json.dumps(complete()).encode(encoding))


@entry("one-bad-byte", "A damaged byte in a comment.")
def _(folder: Path) -> None:
    notebook = complete()
    cell(notebook, "wavelengths")["source"] += "\n# BROKEN"
    save(folder, notebook)
    path = folder / FILE
    path.write_bytes(path.read_bytes().replace(b"BROKEN", b"\xff"))


@entry("trailing-text", "Something after the end of the JSON.")
def _(folder: Path) -> None:
    save(folder, complete())
    with (folder / FILE).open("a", encoding="utf-8") as file:
        file.write("}\n}")


@entry("renamed", "Renamed as browsers do.", word="taken for", quick=True)
def _(folder: Path) -> None:
    save(folder, complete(), f"{MOST} (1)")


for number, name in enumerate(("Solution [final] + (v1.2)", "lösung", f"{MOST}-Copy1", "p(1)")):
    entry(f"renamed-{number}", f"Named {name}.", word="taken for")(
        lambda folder, name=name: save(folder, complete(), name)
    )


@entry("upper-case", "The ending in capitals.")
def _(folder: Path) -> None:
    save(folder, complete())
    (folder / FILE).rename(folder / f"{MOST}.IPYNB")


@entry("nested", "In a folder of its own.", word="taken for")
def _(folder: Path) -> None:
    (folder / MOST).mkdir()
    save(folder / MOST, complete())


@entry("two-candidates", "Two different ones, neither named right.", state=UNGRADABLE, word="which")
def _(folder: Path) -> None:
    save(folder, complete(), f"{MOST}(1)")
    save(folder, released(), f"{MOST}(2)")


@entry("two-copies", "The same under two names, neither right.")
def _(folder: Path) -> None:
    save(folder, complete(), f"{MOST}(1)")
    save(folder, complete(), f"{MOST}(2)")


@entry("copy-beside", "The right one and an empty copy.", word="not graded")
def _(folder: Path) -> None:
    save(folder, complete())
    save(folder, released(), f"{MOST}-Copy1")


@entry("checkpoint-beside", "A hidden folder of an editor, with an old version.")
def _(folder: Path) -> None:
    save(folder, complete())
    (folder / ".ipynb_checkpoints").mkdir()
    save(folder / ".ipynb_checkpoints", released(), f"{MOST}-checkpoint")


@entry("broken-and-copy", "The right name can't be read, a copy can.", word="taken for")
def _(folder: Path) -> None:
    (folder / FILE).write_text("", "utf-8")
    save(folder, complete(), f"{MOST}-Copy1")


@entry("wrong-assignment", "Another assignment under this name.", state=UNGRADABLE, word="01-att")
def _(folder: Path) -> None:
    save(folder, complete("01-attention"))


@entry("folder-named-so", "A folder with the notebook's name, and no notebook.", state=MISSING)
def _(folder: Path) -> None:
    (folder / FILE).mkdir()


@entry("fifo", "A pipe with the notebook's name.", state=MISSING)
def _(folder: Path) -> None:
    os.mkfifo(folder / FILE)


@entry("socket", "A socket with the notebook's name.", state=MISSING)
def _(folder: Path) -> None:
    here = Path.cwd()
    os.chdir(folder)
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(FILE)
    finally:
        os.chdir(here)


@entry("device", "The device /dev/zero with the notebook's name.", state=MISSING)
def _(folder: Path) -> None:
    os.mknod(folder / FILE, 0o020666, os.makedev(1, 5))


@entry("symlink", "A link to another student's notebook.", state=MISSING, quick=True)
def _(folder: Path) -> None:
    (folder / FILE).symlink_to(f"../../complete/{MOST}/{FILE}")


@entry("symlink-source", "A link to the solution.", state=MISSING)
def _(folder: Path) -> None:
    (folder / FILE).symlink_to(ROOT / "_build/source" / MOST / FILE)


@entry("symlink-loop", "A link to itself, and a folder that holds itself.", state=MISSING)
def _(folder: Path) -> None:
    (folder / FILE).symlink_to(FILE)
    (folder / "again").symlink_to(".")


@entry("special-files", "Pipes, devices, links and odd names beside the notebook.")
def _(folder: Path) -> None:
    save(folder, complete())
    os.mkfifo(folder / "pipe.txt")
    os.mknod(folder / "zero.txt", 0o020666, os.makedev(1, 5))
    (folder / "gradebook.db").symlink_to("../../../gradebook.db")
    (folder / "everybody").symlink_to("../..")
    (folder / ("n" * 251 + ".txt")).write_text("long", "utf-8")
    (folder / "two\nlines.txt").write_text("lines", "utf-8")
    (folder / os.fsdecode(b"\xff.txt")).write_text("bytes", "utf-8")
    (folder / "(a) [b] + .txt").write_text("signs", "utf-8")


@entry("many-files", "Three thousand files and thirty levels of folders.")
def _(folder: Path) -> None:
    save(folder, complete())
    (folder / "z").mkdir()
    for number in range(3000):
        (folder / "z" / f"{number}.txt").write_text("", "utf-8")
    deep = folder.joinpath("z", *["d"] * 30)
    deep.mkdir(parents=True)


@entry("large-files", "Helper files of 100 MB.")
def _(folder: Path) -> None:
    save(folder, complete())
    for number in range(3):
        (folder / f"data{number}.bin").touch()
        os.truncate(folder / f"data{number}.bin", 100_000_000)


@entry("shadowing-files", "Files named like modules that grading uses.", quick=True)
def _(folder: Path) -> None:
    save(folder, complete())
    for name in ("numpy", "posenc", "json", "sitecustomize", "IPython", "math", "random"):
        (folder / f"{name}.py").write_text("raise SystemExit('mine')", "utf-8")
    (folder / "matplotlibrc").write_text("backend: nonsense", "utf-8")


@entry("helper-module", "An answer in a module of the student's own beside the notebook.")
def _(folder: Path) -> None:
    notebook = complete()
    cell(notebook, "wavelengths")["source"] = (
        "from helper import turns\n\n\ndef wavelengths(d_model, *, base=10_000.0):\n"
        "    return turns(inverse_frequencies(d_model, base=base))"
    )
    (folder / "helper.py").write_text(
        "def turns(f):\n    return 2 * 3.141592653589793 / f", "utf-8"
    )
    save(folder, notebook)


# What is in the notebook.


@edited("format-3", "Format 3 of notebooks.")
def _(notebook: Notebook) -> Notebook:
    sheet = []
    for one in notebook["cells"]:
        one = dict(one)
        one.pop("id")
        if one["cell_type"] == "code":
            one |= {"input": one.pop("source"), "language": "python", "prompt_number": 1}
            one.pop("execution_count")
        sheet.append(one)
    return {
        "nbformat": 3,
        "nbformat_minor": 0,
        "metadata": {"name": "x"},
        "worksheets": [{"cells": sheet}],
    }


@edited("format-5", "A format that does not exist yet.", word="version 5")
def _(notebook: Notebook) -> None:
    notebook["nbformat"] = 5


@edited("format-odd", "A format that is text, and no minor one.")
def _(notebook: Notebook) -> None:
    notebook["nbformat"] = "four"
    del notebook["nbformat_minor"]


@edited("format-4-0", "Format 4.0, without ids of cells.")
def _(notebook: Notebook) -> None:
    notebook["nbformat_minor"] = 0
    for one in notebook["cells"]:
        one.pop("id")


@edited("no-metadata", "All metadata removed, as an editor may do.")
def _(notebook: Notebook) -> None:
    notebook["metadata"] = {}
    for one in notebook["cells"]:
        one["metadata"] = {}


@edited("names-alone", "Neither metadata nor ids; the defined names are left.", quick=True)
def _(notebook: Notebook) -> None:
    for one in notebook["cells"]:
        one["metadata"] = {}
        one.pop("id")


@edited("odd-metadata", "Metadata of all kinds that make no sense.")
def _(notebook: Notebook) -> None:
    notebook["metadata"] = None
    for number, one in enumerate(notebook["cells"]):
        if not one["metadata"]:
            one["metadata"] = [None, [], "text", {"nbgrader": 5}][number % 4]
    cell(notebook, "wavelengths")["metadata"]["nbgrader"]["points"] = "many"
    cell(notebook, "grade-wavelengths")["metadata"]["nbgrader"]["schema_version"] = -1


@edited("no-cells", "A notebook without any cell.", state=BLANK)
def _(notebook: Notebook) -> None:
    notebook["cells"] = []


@edited("odd-cells", "Cells that are none, between right ones.")
def _(notebook: Notebook) -> None:
    notebook["cells"][3:3] = [None, 5, "x", [], {}, {"cell_type": "code"}, {"cell_type": "chart"}]
    notebook["cells"].append({"cell_type": "code", "source": {"a": 1}, "metadata": {}})
    cell_ = notebook["cells"][0]
    cell_["source"] = [cell_["source"], None, 3]


@edited("bad-outputs", "Outputs that are broken, or are 20 MB.")
def _(notebook: Notebook) -> None:
    cell(notebook, "wavelengths")["outputs"] = [{"output_type": "nonsense"}, None, 3]
    long = {"output_type": "stream", "name": "stdout", "text": "x" * 20_000_000}
    cell(notebook, "grade-wavelengths")["outputs"] = [long]
    cell(notebook, "accepts")["outputs"] = "none"


@edited("duplicated-test", "A locked cell copied, which stops stock nbgrader.")
def _(notebook: Notebook) -> None:
    notebook["cells"].append(copied(notebook, "grade-wavelengths"))
    notebook["cells"].insert(3, copied(notebook, "check-accepts"))


@edited("duplicated-answer", "An answer's cell copied, all metadata too.")
def _(notebook: Notebook) -> None:
    notebook["cells"].insert(at(notebook, "wavelengths"), copied(notebook, "wavelengths"))


@edited("stub-then-answer", "The answer in a copy of its cell, the given one left as it was.")
def _(notebook: Notebook) -> None:
    second = copied(notebook, "wavelengths")
    first = cell(released(), "wavelengths")
    notebook["cells"].insert(at(notebook, "wavelengths") + 1, second)
    cell(notebook, "wavelengths")["source"] = first["source"]


@edited("everything-twice", "The whole notebook pasted behind itself.")
def _(notebook: Notebook) -> None:
    notebook["cells"] += [copied(notebook, one["id"]) for one in list(notebook["cells"])]


SPLIT = "def wavelengths(d_model, *, base=10_000.0):\n    return turned(d_model, base)"


@edited("split-answer", "An answer's cell split in two, which copies its metadata.", quick=True)
def _(notebook: Notebook) -> None:
    second = copied(notebook, "wavelengths")
    second["source"] = SPLIT
    cell(notebook, "wavelengths")["source"] = (
        "def turned(d_model, base):\n    return 2 * np.pi / inverse_frequencies(d_model, base=base)"
    )
    notebook["cells"].insert(at(notebook, "wavelengths") + 1, second)


@edited("split-bare", "An answer's cell split in two, the second part without metadata.")
def _(notebook: Notebook) -> None:
    cell(notebook, "wavelengths")["source"] = (
        "def turned(d_model, base):\n    return 2 * np.pi / inverse_frequencies(d_model, base=base)"
    )
    notebook["cells"].insert(at(notebook, "wavelengths") + 1, code(SPLIT))


@edited("merged", "The cell of an answer merged with the check and the test under it.")
def _(notebook: Notebook) -> None:
    where = at(notebook, "wavelengths")
    del notebook["cells"][where + 1 : where + 3]
    cell(notebook, "wavelengths")["source"] += '\n\ncheck("wavelengths")\ngrade("wavelengths")'


@edited("two-answers-in-one", "Two answers in one cell, the other cell deleted.", quick=True)
def _(notebook: Notebook) -> None:
    taken = cell(notebook, "inverse_frequencies")["source"]
    other = cell(notebook, "sinusoidal_encoding")
    cell(notebook, "inverse_frequencies")["source"] = f"{taken}\n\n\n{other['source']}"
    notebook["cells"].remove(other)


@edited("deleted-test", "A test deleted.")
def _(notebook: Notebook) -> None:
    notebook["cells"].remove(cell(notebook, "grade-wavelengths"))


@edited("answers-alone", "Everything deleted but the answers.")
def _(notebook: Notebook) -> None:
    tasks = ("inverse_frequencies", "sinusoidal_encoding", "wavelengths", "add_positions")
    kept = (*tasks, "impossible_pairs", "accepts")
    notebook["cells"] = [one for one in notebook["cells"] if one["id"] in kept]


@edited("deleted-answer", "An answer's cell deleted.", lost=NOTHING, word="wavelengths")
def _(notebook: Notebook) -> None:
    notebook["cells"].remove(cell(notebook, "wavelengths"))


@edited("rewritten-answer", "An answer's cell deleted, the answer in a cell of the student's.")
def _(notebook: Notebook) -> None:
    where = at(notebook, "wavelengths")
    notebook["cells"][where] = code(cell(notebook, "wavelengths")["source"])


@edited("answer-below", "The answer in a new cell under the one that was given.")
def _(notebook: Notebook) -> None:
    where = at(notebook, "wavelengths")
    notebook["cells"].insert(where + 1, code(notebook["cells"][where]["source"]))
    notebook["cells"][where]["source"] = cell(released(), "wavelengths")["source"]


@edited("reversed", "All cells in the opposite order.")
def _(notebook: Notebook) -> None:
    notebook["cells"].reverse()


@edited("answers-last", "All answers moved to the end.")
def _(notebook: Notebook) -> None:
    notebook["cells"].sort(
        key=lambda one: bool(one["metadata"].get("nbgrader", {}).get("solution"))
    )


@edited("test-markdown", "A test turned into text.")
def _(notebook: Notebook) -> None:
    cell(notebook, "grade-wavelengths")["cell_type"] = "markdown"


for kind in ("markdown", "raw"):

    @edited(f"answer-{kind}", f"An answer's cell turned into {kind}.")
    def _(notebook: Notebook, kind: str = kind) -> None:
        answer = cell(notebook, "wavelengths")
        answer["cell_type"] = kind
        del answer["outputs"], answer["execution_count"]


@edited("no-setup", "The cell with the imports deleted.")
def _(notebook: Notebook) -> None:
    notebook["cells"].remove(cell(notebook, SETUP))


@edited("edited-setup", "The locked cell with the imports edited.")
def _(notebook: Notebook) -> None:
    cell(notebook, SETUP)["source"] = "import sys; sys.exit()"


@edited("wrong-kernel", "Another language's kernel.")
def _(notebook: Notebook) -> None:
    notebook["metadata"] = {
        "kernelspec": {"name": "ir", "language": "R", "display_name": "R"},
        "language_info": {"name": "R"},
    }


@edited("swapped-ids", "Ids of two answers exchanged.", quick=True)
def _(notebook: Notebook) -> None:
    one, other = cell(notebook, "wavelengths"), cell(notebook, "add_positions")
    for key in ("id", "metadata"):
        one[key], other[key] = other[key], one[key]


@edited("same-ids", "All cells with one id.")
def _(notebook: Notebook) -> None:
    for one in notebook["cells"]:
        one["id"] = "same"


@edited("odd-ids", "Ids that are numbers, empty, or very long.")
def _(notebook: Notebook) -> None:
    for number, one in enumerate(notebook["cells"]):
        one["id"] = [number, "", "x" * 5000, None][number % 4]


@edited("own-marks", "The marks of solutions and hidden tests in an answer.")
def _(notebook: Notebook) -> None:
    answer = cell(notebook, "wavelengths")
    answer["source"] = (
        "### BEGIN HIDDEN TESTS\n" + answer["source"] + "\n### END HIDDEN TESTS\n### BEGIN SOLUTION"
    )


@edited("line-ends", "Line ends of Windows and old Macs, in lists and texts.")
def _(notebook: Notebook) -> None:
    for number, one in enumerate(notebook["cells"]):
        text = one["source"].replace("\n", ["\r\n", "\r"][number % 2])
        one["source"] = text if number % 3 else text.splitlines(keepends=True)


@edited("odd-characters", "Half a surrogate pair, a zero byte and a subscript zero in comments.")
def _(notebook: Notebook) -> None:
    cell(notebook, "wavelengths")["source"] += "\n# \ud800 \0 \u2080 \u2028"


@edited("many-cells", "A thousand cells of the student's own.")
def _(notebook: Notebook) -> None:
    notebook["cells"] += [{**code("x = 1"), "id": f"n{number}"} for number in range(1000)]


@edited("too-many-cells", "Cells that no person made.", state=UNGRADABLE)
def _(notebook: Notebook) -> None:
    notebook["cells"] += [code("x = 1")] * 20_000


@edited("typing-error", "A function's name mistyped.", lost=NOTHING, word="wavelengths")
def _(notebook: Notebook) -> None:
    answer = cell(notebook, "wavelengths")
    answer["source"] = answer["source"].replace("def wavelengths", "def wave_lengths")


@edited("syntax-error", "A parenthesis left open.", lost=NOTHING, word="wavelengths", quick=True)
def _(notebook: Notebook) -> None:
    cell(notebook, "wavelengths")["source"] += "\nx = ("


@edited("half-done", "Half of the answers as they were handed out.", lost=ENDING)
def _(notebook: Notebook) -> None:
    for name in ("add_positions", "impossible_pairs", "accepts"):
        cell(notebook, name)["source"] = cell(released(), name)["source"]


@edited("unfinished", "The second half deleted, with its tests.", lost=ENDING)
def _(notebook: Notebook) -> None:
    del notebook["cells"][at(notebook, "add_positions") - 1 :]


# The same by other means than the editor.

cells(
    "pasted-test",
    "A test pasted without its metadata.",
    'grade("wavelengths")',
    before="accepts",
    quick=True,
)
