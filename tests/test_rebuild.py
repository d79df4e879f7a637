"""What is graded of what was handed in: reading any file, and the instructor's notebook anew."""

import copy
import functools
import json
import os
import time
from pathlib import Path

import nbformat
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell

from posenc.exercises import ASSIGNMENTS, for_assignment
from posenc.grading import _reading, assignments, demo
from posenc.grading.rebuild import build, find, rebuild
from posenc.grading.results import GRADED, MISSING, UNGRADABLE

ROOT = Path(__file__).parents[1]
NAME = demo.ASSIGNMENT
FILE = f"{NAME}.ipynb"
TASKS = [exercise.name for exercise in for_assignment(NAME)]
FIRST, SECOND, THIRD = TASKS[:3]


@functools.cache
def _notebooks(name):
    source = assignments.source_notebook(ROOT, name)
    path = ROOT / assignments.RELEASE / name / f"{name}.ipynb"
    released = nbformat.read(path, as_version=4)
    solved = demo.answered(copy.deepcopy(released), source, demo.Student("complete", ""))
    return source, released, solved


def notebooks(name=NAME):
    """The instructor's version, what students get, and that with right answers."""
    return _notebooks(name)


def solved(name=NAME):
    return copy.deepcopy(notebooks(name)[2])


def grade_id(cell):
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def place(notebook, part):
    return next(i for i, cell in enumerate(notebook.cells) if grade_id(cell) == part)


def cell_of(notebook, part):
    return notebook.cells[place(notebook, part)]


def texts(notebook):
    return [cell.source for cell in notebook.cells]


def answers(notebook):
    return {
        grade_id(cell): cell.source
        for cell in notebook.cells
        if cell.metadata.get("nbgrader", {}).get("solution")
    }


def insert(notebook, cell, *, after):
    notebook.cells.insert(place(notebook, after) + 1, cell)
    return cell


def strip(notebook):
    """Leave of each cell what editors leave that know nothing of nbgrader."""
    for cell in notebook.cells:
        cell.metadata = {}
        cell.pop("id", None)
    notebook.nbformat_minor = 4


def retype(cell, kind):
    cell.cell_type = kind
    cell.pop("outputs", None)
    cell.pop("execution_count", None)


def graded(notebook, name=NAME):
    """Rebuild a notebook, and see to it that all that is the instructor's is there."""
    source, released, _ = notebooks(name)
    before = copy.deepcopy((source, released, notebook))
    built = build(source, released, notebook)
    assert before == (source, released, notebook), "an argument was changed"
    sound(built.notebook, source, released)
    assert len(built.origins) == len(built.notebook.cells)
    assert all(note and "\n" not in note for note in built.notes)
    return built


def sound(made, source, released):
    """Check that nothing of the instructor's is missing, changed or in another order."""
    nbformat.validate(made)
    ids = [cell.id for cell in made.cells]
    assert len(set(ids)) == len(ids)
    json.dumps(made).encode("utf-8")
    ours = [cell for cell in made.cells if cell.id in {one.id for one in source.cells}]
    assert [cell.id for cell in ours] == [cell.id for cell in source.cells]
    for cell, original, handed in zip(ours, source.cells, released.cells, strict=True):
        part = original.metadata.get("nbgrader", {})
        assert cell.cell_type == original.cell_type
        assert part.items() <= cell.metadata.get("nbgrader", {}).items()
        if part.get("solution"):
            assert cell.metadata == handed.metadata
            assert "SOLUTION" not in cell.source
        else:
            assert cell.source == original.source
    others = [cell for cell in made.cells if cell.id not in {one.id for one in source.cells}]
    assert all(cell.metadata == {} for cell in others)


def remade(notebook, name=NAME):
    """The answers, the notes and the texts of a notebook's rebuilt form."""
    built = graded(notebook, name)
    return answers(built.notebook), built.notes, texts(built.notebook)


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_a_sound_notebook_keeps_its_answers_and_needs_no_note(name):
    source, released, right = notebooks(name)
    made, notes, blank = rebuild(source, released, right)
    assert (notes, blank) == ((), False)
    assert answers(made) == answers(right)
    made, notes, blank = rebuild(source, released, released)
    assert (notes, blank) == ((), True)
    assert texts(made) == [
        handed.source if handed.metadata.get("nbgrader", {}).get("solution") else ours.source
        for ours, handed in zip(source.cells, released.cells, strict=True)
    ]


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_checksums_are_those_by_which_nbgrader_tells_that_nothing_was_written(name):
    from nbgrader.utils import compute_checksum, is_solution

    for notebook, changed in zip(notebooks(name)[1:], (False, True), strict=True):
        for cell in graded(notebook, name).notebook.cells:
            if "nbgrader" in cell.metadata:
                same = cell.metadata.nbgrader.checksum == compute_checksum(cell)
                assert same == (not (changed and is_solution(cell)))


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_answers_are_found_without_any_metadata_or_id(name):
    notebook = solved(name)
    strip(notebook)
    kept, notes, all_texts = remade(notebook, name)
    assert kept == answers(notebooks(name)[2])
    assert len(notes) == len(kept)
    assert all("had no marks of the course" in note for note in notes)
    assert len(all_texts) == len(notebooks(name)[0].cells)


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_answers_are_found_by_their_ids_whatever_they_define(name):
    notebook = solved(name)
    for cell in notebook.cells:
        if cell.metadata.pop("nbgrader", {}).get("solution"):
            cell.source = "x = 1  # not yet"
    kept, notes, _ = remade(notebook, name)
    assert set(kept.values()) == {"x = 1  # not yet"}
    assert all(note.endswith("was found by its id") for note in notes)


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_order_is_the_instructors_again(name):
    notebook = solved(name)
    notebook.cells.reverse()
    kept, notes, all_texts = remade(notebook, name)
    assert kept == answers(notebooks(name)[2])
    assert notes == ("cells were in another order, and are in the course's again",)
    assert len(all_texts) == len(notebooks(name)[0].cells)


def test_what_was_deleted_is_there_again():
    notebook = solved()
    for part in ("setup", f"check-{FIRST}", f"grade-{FIRST}", SECOND):
        del notebook.cells[place(notebook, part)]
    del notebook.cells[0]
    kept, notes, _ = remade(notebook)
    assert kept == answers(notebooks()[2]) | {SECOND: answers(notebooks()[1])[SECOND]}
    assert notes == (
        f"`{SECOND}`: no cell holds an answer, and it counts as blank",
        "locked cells were deleted, and are there again: "
        f"`setup`, `check-{FIRST}`, `grade-{FIRST}`",
    )
    kept, notes, _ = remade(new_notebook())
    assert kept == answers(notebooks()[1])
    assert len(notes) == len(TASKS) + 1
    assert notes[-1].endswith(" more")


def test_locked_cells_are_the_instructors_whatever_was_written_into_them():
    notebook = solved()
    cell_of(notebook, f"grade-{FIRST}").source = "100"
    cell_of(notebook, f"grade-{FIRST}").metadata.nbgrader.points = 100
    cell_of(notebook, f"check-{FIRST}").metadata.nbgrader.solution = True
    cell_of(notebook, "setup").source = "check = grade = print"
    retype(cell_of(notebook, f"check-{SECOND}"), "markdown")
    kept, notes, all_texts = remade(notebook)
    assert kept == answers(notebooks()[2])
    assert notes == (
        f"locked cells were changed, and are the course's again: `setup`, `grade-{FIRST}`",
    )
    assert not {"100", "check = grade = print"} & set(all_texts)


def test_what_answers_may_need_of_a_locked_cell_is_kept_after_it():
    notebook = solved()
    cell_of(notebook, "setup").source += "\nimport math\n\n\n@print\ndef helper():\n    return 1\n"
    cell_of(notebook, f"check-{FIRST}").source = f'report = check("{FIRST}")\nreport.args'
    made = graded(notebook).notebook
    setup = place(made, "setup")
    assert made.cells[setup + 1].source == "import math\n@print\ndef helper():\n    return 1"
    after = made.cells[place(made, f"check-{FIRST}") + 1]
    assert after.source == f'report = check("{FIRST}")'

    notebook = solved()
    wanted = cell_of(notebook, FIRST).source
    cell_of(notebook, FIRST).source = answers(notebooks()[1])[FIRST]
    cell_of(notebook, f"check-{FIRST}").source = f'{wanted}\n\ncheck("{FIRST}")'
    kept, notes, all_texts = remade(notebook)
    assert kept[FIRST] == wanted
    assert all_texts.count(wanted) == 1
    assert notes[0].startswith(f"`{FIRST}`: the answer was found in a cell that had no marks")


def test_the_students_own_cells_stay_between_their_neighbours():
    notebook = solved()
    own = {
        "first": new_markdown_cell("notes at the top"),
        "setup": new_code_cell("import itertools"),
        FIRST: new_code_cell("helper = 1"),
        f"check-{FIRST}": new_raw_cell("raw"),
        f"grade-{TASKS[-1]}": new_code_cell("after = 'all'"),
    }
    notebook.cells.insert(0, own.pop("first"))
    for part, cell in own.items():
        insert(notebook, cell, after=part)
        insert(notebook, new_code_cell("  \n"), after=part)
    built = graded(notebook)
    made = built.notebook
    assert built.notes == ()
    assert made.cells[0].source == "notes at the top"
    for part, cell in own.items():
        after = made.cells[place(made, part) + 1]
        assert after.source == cell.source
        assert after.cell_type == ("markdown" if cell.cell_type == "raw" else cell.cell_type)
    assert len(made.cells) == len(notebooks()[0].cells) + 5
    for cell, origin in zip(made.cells, built.origins, strict=True):
        if cell.id.startswith("own-"):
            assert notebook.cells[origin].source == cell.source


@pytest.mark.parametrize("part", [FIRST, f"check-{FIRST}", f"grade-{FIRST}", "setup"])
def test_copies_of_the_instructors_cells_are_no_cells_of_the_students(part):
    notebook = copy.deepcopy(notebooks()[1])
    for metadata in (cell_of(notebook, part).metadata, {}):
        cell = new_code_cell(cell_of(notebook, part).source, metadata=copy.deepcopy(metadata))
        notebook.cells.append(cell)
    notebook.cells.append(new_markdown_cell(notebook.cells[2].source))
    built = graded(notebook)
    assert len(built.notebook.cells) == len(notebooks()[0].cells)
    assert built.blank


def test_of_several_copies_the_last_that_was_changed_counts_and_the_others_run_before_it():
    notebook = solved()
    stub = answers(notebooks()[1])[FIRST]
    original = cell_of(notebook, FIRST)
    for source in ("def helper():\n    return 1", original.source, "final = 2", stub, "  "):
        cell = new_code_cell(source, metadata=copy.deepcopy(original.metadata))
        insert(notebook, cell, after=f"grade-{FIRST}" if source == stub else FIRST)
    # They stand in the order: original, empty, final, original again, helper, ..., stub.
    kept, notes, all_texts = remade(notebook)
    assert kept[FIRST] == "def helper():\n    return 1"
    index = all_texts.index(kept[FIRST])
    assert all_texts[index - 2 : index] == [original.source, "final = 2"]
    assert all_texts.count(stub) == 0
    assert notes == (
        f"`{FIRST}`: there were 3 different cells for it; the last one that was changed counts, "
        "and the others run before it",
    )


def test_a_copy_far_below_is_the_answer_in_its_place_with_what_stood_before_it():
    notebook = solved()
    old = cell_of(notebook, FIRST)
    notebook.cells += [
        new_code_cell("def helper():\n    return 1"),
        new_code_cell(f"def {FIRST}():\n    return helper()", metadata=old.metadata),
    ]
    made = graded(notebook).notebook
    index = place(made, FIRST)
    assert [cell.source for cell in made.cells[index - 2 : index + 1]] == [
        old.source,
        "def helper():\n    return 1",
        f"def {FIRST}():\n    return helper()",
    ]
    assert grade_id(made.cells[index + 1]) == f"check-{FIRST}"


@pytest.mark.parametrize("marks", ["both", "first", "second", "none"])
@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_a_split_answer_is_one_again(name, marks):
    notebook = solved(name)
    for task in answers(notebook):
        index = place(notebook, task)
        whole = notebook.cells.pop(index)
        lines = whole.source.split("\n")
        # Inside of the body, after its text, so that both parts may be valid without the other.
        middle = max(i for i, line in enumerate(lines) if line.strip() == '"""') + 1
        for i, part in enumerate(("\n".join(lines[middle:]), "\n".join(lines[:middle]))):
            cell = new_code_cell(part)
            if marks == "both" or marks == ("second", "first")[i]:
                cell.metadata = copy.deepcopy(whole.metadata)
            notebook.cells.insert(index, cell)
    kept, notes, all_texts = remade(notebook, name)
    assert kept == answers(notebooks(name)[2])
    assert sum("was in 2 parts" in note for note in notes) == len(kept)
    assert len(all_texts) == len(notebooks(name)[0].cells)


def test_a_split_in_a_line_in_three_and_one_with_an_error_in_it():
    notebook = solved()
    for task, parts in {
        FIRST: [f"def {FIRST}(d_mo", "del):\n    return 1"],
        SECOND: [f"def {SECOND}():\n    x = 1", "\n    y = 2\n", "    return x"],
        THIRD: [f"def {THIRD}(:", "    return 1"],
    }.items():
        cell = cell_of(notebook, task)
        cell.source = parts[0]
        for part in reversed(parts[1:]):
            insert(notebook, new_code_cell(part, metadata=cell.metadata), after=task)
    kept, notes, _ = remade(notebook)
    assert kept[FIRST] == f"def {FIRST}(d_model):\n    return 1"
    assert kept[SECOND] == f"def {SECOND}():\n    x = 1\n    y = 2\n    return x"
    assert kept[THIRD] == f"def {THIRD}(:\n    return 1"
    assert [note.split(" ")[5] for note in notes] == ["2", "3", "2"]


@pytest.mark.parametrize("kind", ["markdown", "raw"])
@pytest.mark.parametrize("marked", [True, False])
def test_an_answer_that_was_made_text_is_code_again(kind, marked):
    notebook = solved()
    cell = cell_of(notebook, FIRST)
    retype(cell, kind)
    if not marked:
        cell.metadata = {}
        del cell["id"]
    kept, notes, _ = remade(notebook)
    assert kept == answers(notebooks()[2])
    assert notes[-1] == f"`{FIRST}`: its cell was of the kind {kind}, and is code again"


def test_an_old_answer_that_reset_kept_as_text_is_no_answer():
    notebook = copy.deepcopy(notebooks()[1])
    old = f"Your answer to {FIRST} until now.\n\n{answers(notebooks()[2])[FIRST]}"
    insert(notebook, new_raw_cell(old), after=FIRST)
    built = graded(notebook)
    assert built.blank
    assert cell_of(built.notebook, FIRST).source == answers(notebooks()[1])[FIRST]
    assert old in texts(built.notebook)


def test_an_answer_beside_its_untouched_cell_counts_but_a_variable_of_its_name_does_not():
    notebook = copy.deepcopy(notebooks()[1])
    answer = answers(notebooks()[2])[FIRST]
    notebook.cells += [new_code_cell(answer), new_code_cell(f"{SECOND} = 5")]
    built = graded(notebook)
    assert not built.blank
    assert cell_of(built.notebook, FIRST).source == answer
    assert cell_of(built.notebook, SECOND).source == answers(notebooks()[1])[SECOND]
    # What follows an answer goes with it.
    after = built.notebook.cells[place(built.notebook, FIRST) + 1]
    assert after.source == f"{SECOND} = 5"


@pytest.mark.parametrize("deleted", [True, False])
@pytest.mark.parametrize(("holder", "lacking"), [(FIRST, SECOND), (SECOND, FIRST)])
def test_no_stub_takes_the_place_of_an_answer_that_stands_in_the_cell_of_another(
    holder, lacking, deleted
):
    notebook = solved()
    both = f"{cell_of(notebook, holder).source}\n\n\n{cell_of(notebook, lacking).source}"
    cell_of(notebook, holder).source = both
    cell_of(notebook, lacking).source = answers(notebooks()[1])[lacking]
    if deleted:
        del notebook.cells[place(notebook, lacking)]
    built = graded(notebook)
    kept = answers(built.notebook)
    assert kept[holder] == both
    # What is tested after the holder needs nothing; what is tested before it needs all of it.
    pointing = f"# {lacking} is in the cell of {holder}."
    assert kept[lacking] == (pointing if holder == FIRST else both)
    assert built.notes == (f"`{lacking}`: the answer was found in the cell of `{holder}`",)
    assert not built.blank
    cell = cell_of(built.notebook, lacking)
    assert cell.metadata == cell_of(notebooks()[1], lacking).metadata


def test_no_stub_takes_the_place_of_two_answers_in_one_cell_of_the_students():
    notebook = solved()
    both = "\n\n\n".join(answers(notebook)[task] for task in (FIRST, SECOND))
    for task in (FIRST, SECOND):
        del notebook.cells[place(notebook, task)]
    insert(notebook, new_code_cell(both), after="setup")
    kept, _, all_texts = remade(notebook)
    assert (kept[FIRST], kept[SECOND]) == (both, f"# {SECOND} is in the cell of {FIRST}.")
    assert all_texts.count(both) == 1


def test_an_answer_that_is_imported_counts_where_its_cell_is_gone_and_no_function_is_there():
    notebook = solved()
    wanted = answers(notebook)
    del notebook.cells[place(notebook, FIRST)]
    imported = insert(notebook, new_code_cell(f"from mine import {FIRST}"), after="setup")
    assert remade(notebook)[0] == wanted | {FIRST: imported.source}

    imported.source = f"{FIRST} = {FIRST}(4)"
    cell_of(notebook, SECOND).source += f"\n\n\n{wanted[FIRST]}"
    assert remade(notebook)[0][FIRST] == cell_of(notebook, SECOND).source


def test_the_name_tells_an_answer_where_its_marks_are_those_of_another():
    notebook = solved()
    wanted = answers(notebook)
    one, other = cell_of(notebook, FIRST), cell_of(notebook, THIRD)
    for key in ("id", "metadata"):
        one[key], other[key] = other[key], one[key]
    kept, notes, all_texts = remade(notebook)
    said = "its cell had the marks of another answer and was found by its name"
    assert kept == wanted
    assert notes == tuple(f"`{task}`: {said}" for task in (FIRST, THIRD))
    assert len(all_texts) == len(notebooks()[0].cells)

    # Uses of the name are no answers.
    notebook.cells.append(new_code_cell(f"{FIRST} = {FIRST}(4)"))
    assert remade(notebook)[0] == wanted
    # A cell that holds its own answer too is where it belongs.
    notebook = solved()
    cell_of(notebook, THIRD).source += f"\n\n\ndef {FIRST}():\n    return 1"
    assert remade(notebook)[0] == answers(notebook)


def test_marks_of_an_answer_on_another_cell_of_the_course_tell_nothing():
    notebook = copy.deepcopy(notebooks()[1])
    for part in (FIRST, f"grade-{FIRST}", SECOND):
        notebook.cells.insert(
            0,
            new_code_cell(
                cell_of(notebook, part).source,
                metadata=copy.deepcopy(cell_of(notebook, THIRD).metadata),
            ),
        )
    del notebook.cells[place(notebook, THIRD)]
    built = graded(notebook)
    assert built.blank
    assert answers(built.notebook) == answers(notebooks()[1])


def test_cells_of_other_notebooks_are_ordinary_ones():
    notebook = solved()
    foreign = [cell for cell in solved("00-start").cells if "nbgrader" in cell.metadata]
    notebook.cells[3:3] = copy.deepcopy(foreign)
    kept, notes, all_texts = remade(notebook)
    assert kept == answers(notebooks()[2])
    assert len(notes) == 1
    assert "other notebooks were copied into this one" in notes[0]
    assert "`rotation_matrix`" in notes[0]
    # The first cell is in every notebook.
    assert len(all_texts) == len(notebook.cells) - 1
    assert {cell.source for cell in foreign} <= set(all_texts)


def test_whitespace_that_editors_change_is_no_change():
    notebook = copy.deepcopy(notebooks()[1])
    for cell in notebook.cells:
        cell.source = "\n" + cell.source.replace("\n", "  \r\n") + "\r\n\r\n"
    built = graded(notebook)
    assert (built.notes, built.blank) == ((), True)
    assert answers(built.notebook) == answers(notebooks()[1])


def test_a_new_test_or_other_points_after_the_release_count():
    from nbgrader.utils import compute_checksum

    source, released, right = copy.deepcopy(notebooks())
    cell_of(source, f"grade-{FIRST}").metadata.nbgrader.points = 40
    cell_of(source, f"check-{FIRST}").source = "check('another')"
    released.cells = [cell for cell in released.cells if grade_id(cell) != SECOND]
    del right.cells[place(right, SECOND)]
    made, _, _ = rebuild(source, released, right)
    assert cell_of(made, f"grade-{FIRST}").metadata.nbgrader.points == 40
    assert cell_of(made, f"check-{FIRST}").source == "check('another')"
    assert cell_of(made, SECOND).source == "raise NotImplementedError()"
    for part in (f"grade-{FIRST}", f"check-{FIRST}", SECOND):
        cell = cell_of(made, part)
        assert cell.metadata.nbgrader.checksum == compute_checksum(cell)


# Any JSON document, and such as look like a notebook.
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(categories=None), max_size=20)
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)
KNOWN = st.sampled_from([FIRST, f"check-{FIRST}", "setup", "markdown-0", "foreign"]) | LEAVES
SOURCES = st.sampled_from(
    [f"def {FIRST}():\n    pass", "    return 1", f'check("{FIRST}")', "\ud800", "a\0b", '"""']
)
CELLS = st.fixed_dictionaries(
    {},
    optional={
        "cell_type": st.sampled_from(["code", "markdown", "raw", "heading", "html"]) | JSON,
        "source": SOURCES | st.lists(SOURCES | JSON, max_size=3) | JSON,
        "input": SOURCES,
        "id": KNOWN,
        "level": JSON,
        "outputs": JSON,
        "attachments": JSON,
        "metadata": JSON
        | st.fixed_dictionaries(
            {"nbgrader": st.fixed_dictionaries({}, optional={"grade_id": KNOWN}) | JSON}
        ),
    },
)
DOCUMENTS = JSON | st.fixed_dictionaries(
    {},
    optional={
        "cells": st.lists(CELLS | JSON, max_size=8) | JSON,
        "worksheets": st.lists(st.fixed_dictionaries({"cells": st.lists(CELLS)}) | JSON) | JSON,
        "nbformat": JSON,
        "nbformat_minor": JSON,
        "metadata": JSON,
    },
)
MANY = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@given(DOCUMENTS)
@MANY
def test_any_json_can_be_rebuilt(document):
    source, released, _ = notebooks()
    made, _, _ = rebuild(source, released, document)
    sound(made, source, released)
    # The same again gives the same, to the byte.
    assert json.dumps(made) == json.dumps(rebuild(source, released, copy.deepcopy(document))[0])


@given(DOCUMENTS)
@MANY
def test_any_json_can_be_read(tmp_path, document):
    (tmp_path / FILE).write_text(json.dumps(document), "utf-8")
    submitted = find(tmp_path, NAME)
    source, released, _ = notebooks()
    if submitted.state == GRADED:
        sound(rebuild(source, released, submitted.notebook)[0], source, released)
    else:
        assert submitted.state == UNGRADABLE
        assert submitted.notebook is None
        assert submitted.notes[0].startswith(f"{FILE} ")


@given(st.binary(max_size=300))
@MANY
def test_any_bytes_can_be_read(tmp_path, content):
    (tmp_path / FILE).write_bytes(content)
    assert find(tmp_path, NAME).state in (GRADED, UNGRADABLE)


@given(st.data(), st.sampled_from(sorted(ASSIGNMENTS)))
@settings(max_examples=120, deadline=None)
def test_no_edit_loses_an_answer_that_is_still_there(data, name):
    _, released, right = copy.deepcopy(notebooks(name))
    cells = right.cells
    for n in range(data.draw(st.integers(0, 3))):
        cells.insert(data.draw(st.integers(0, len(cells))), new_code_cell(f"own_{n} = {n}"))
    for _ in range(data.draw(st.integers(0, 12))):
        if not cells:
            break
        index = data.draw(st.integers(0, len(cells) - 1))
        cell = cells[index]
        edit = data.draw(
            st.sampled_from(["drop", "copy", "move", "retype", "strip", "id", "empty", "shuffle"])
        )
        if edit == "drop":
            del cells[index]
        elif edit == "copy":
            cells.insert(data.draw(st.integers(0, len(cells))), copy.deepcopy(cell))
        elif edit == "move":
            cells.insert(data.draw(st.integers(0, len(cells) - 1)), cells.pop(index))
        elif edit == "retype":
            retype(cell, data.draw(st.sampled_from(["markdown", "raw"])))
        elif edit == "strip":
            cell.metadata = {}
        elif edit == "id":
            cell.pop("id", None)
        elif edit == "empty":
            cell.source = ""
        else:
            cells[:] = data.draw(st.permutations(cells))
    built = graded(right, name)
    there = {cell.source for cell in cells}
    stubs = answers(released)
    blank = True
    for task, answer in answers(notebooks(name)[2]).items():
        kept = answers(built.notebook)[task]
        assert kept == (answer if answer in there else stubs[task])
        blank = blank and kept != answer
    assert built.blank == blank
    own = {text for text in there if text.startswith("own_")}
    assert own <= set(texts(built.notebook))


def write(folder, notebook, name=FILE):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    return path


def found(folder, name=NAME):
    """Find a notebook that can be graded, and rebuild it."""
    submitted = find(folder, name)
    assert submitted.state == GRADED, submitted.notes
    nbformat.validate(rebuild(*notebooks(name)[:2], submitted.notebook)[0])
    return answers(graded(submitted.notebook, name).notebook), submitted.notes


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_a_sound_file_is_found_without_a_note(tmp_path, name):
    write(tmp_path, solved(name), f"{name}.ipynb")
    assert found(tmp_path, name) == (answers(notebooks(name)[2]), ())


@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        ("utf-8-sig", ()),
        ("utf-16", ("UTF-16",)),
        ("utf-16-le", ("UTF-16",)),
        ("utf-32", ("UTF-32",)),
        ("cp1252", ("Latin-1",)),
        ("latin-1", ("Latin-1",)),
    ],
)
def test_encodings(tmp_path, encoding, said):
    notebook = solved()
    cell_of(notebook, FIRST).source += "\n# gr\u00f6\u00dfer"
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = "text"
    text = json.dumps(notebook, ensure_ascii=False)
    (tmp_path / FILE).write_bytes(text.encode(encoding))
    kept, notes = found(tmp_path)
    assert kept[FIRST].endswith("# gr\u00f6\u00dfer")
    assert len(notes) == len(said)
    assert all(part in note for part, note in zip(said, notes, strict=True))


def test_one_damaged_byte_costs_one_character(tmp_path):
    notebook = solved()
    cell_of(notebook, FIRST).source += "\n# \u4f4d\u7f6e\u7f16\u7801 \u4e00\u4e8c"
    content = json.dumps(notebook, ensure_ascii=False).encode()
    (tmp_path / FILE).write_bytes(content.replace("\u4e00".encode(), b"\xff"))
    kept, notes = found(tmp_path)
    assert kept[FIRST].endswith("# \u4f4d\u7f6e\u7f16\u7801 \ufffd\u4e8c")
    assert notes == (f"{FILE} has damaged characters (1)",)


def _third(notebook):
    return nbformat.v4.downgrade(copy.deepcopy(notebook))


def _as_list(notebook, ends):
    for cell in notebook.cells:
        cell.source = [line + ends for line in cell.source.split("\n")]
    return notebook


def _bare(notebook):
    return {"cells": [{"source": cell.source} for cell in notebook.cells]}


def _nonsense(notebook):
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [None, 5, {"output_type": []}]
            cell.execution_count = "many"
    return notebook


def _with(notebook, **values):
    return {**notebook, **values}


@pytest.mark.parametrize(
    ("change", "noted"),
    [
        (_third, False),
        (lambda notebook: _as_list(notebook, "\n"), False),
        (lambda notebook: _as_list(notebook, ""), False),
        (_bare, False),
        (_nonsense, False),
        (lambda notebook: _with(notebook, nbformat=4, nbformat_minor=99), False),
        (lambda notebook: _with(notebook, nbformat=5, nbformat_minor=0), True),
        (lambda notebook: _with(notebook, nbformat="4", nbformat_minor=None, metadata=[]), False),
        (lambda notebook: _with(notebook, cells=[*notebook.cells, None, 3, [], "x"]), False),
        (lambda notebook: _with(notebook, bad=float("nan"), worse="long"), False),
    ],
)
def test_formats(tmp_path, change, noted):
    # Python neither writes nor reads a number as long as this.
    text = json.dumps(change(solved())).replace('"long"', "9" * 6_000)
    (tmp_path / FILE).write_text(text, "utf-8")
    kept, notes = found(tmp_path)
    wanted = answers(notebooks()[2])
    assert {task: text.strip() for task, text in kept.items()} == wanted
    assert bool(notes) == noted


def test_json_that_others_refuse(tmp_path):
    text = json.dumps(solved())
    for changed, said in {
        text.replace("{", '{"nbformat": 4, "nbformat": 4, ', 1): (),
        text + '\n}, "left": "of a longer file"}': ("left out",),
        text.replace("\\n", "\n", 3): (),
        "\ufeff\n" + text + "\0\0\0": (),
    }.items():
        (tmp_path / FILE).write_text(changed, "utf-8")
        kept, notes = found(tmp_path)
        assert kept == answers(notebooks()[2])
        assert len(notes) == len(said)
        assert all(part in note for part, note in zip(said, notes, strict=True))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b" \n\0\0", "is empty"),
        (b"\xff\xfe", "is empty"),
        (b"def f():\n    pass", "is not a notebook (its JSON breaks in line 1)"),
        (b"<!doctype html><html>", "is a web page"),
        (b"PK\x03\x04", "is a ZIP archive"),
        (b'{"cells": [\n<<<<<<< HEAD\n', "holds two versions that Git could not merge"),
        (b"[" * 200_000, "is nested too deeply"),
        (b'{"cells": ' + b'[{"a":' * 50_000, "is nested too deeply"),
        (b"{}", "is no notebook: it has no cells"),
        (b"[]", "is no notebook"),
        (b"17", "is no notebook"),
        (b'{"cells": {}}', "is no notebook"),
        (b'{"cells": [' + b"0, " * 6000 + b"0]}", "has 6001 cells"),
    ],
)
def test_files_that_cannot_be_graded_are_one_sentence_with_what_to_ask_for(tmp_path, content, said):
    (tmp_path / FILE).write_bytes(content)
    submitted = find(tmp_path, NAME)
    assert (submitted.state, submitted.notebook) == (UNGRADABLE, None)
    (note,) = submitted.notes
    assert note.startswith(f"{FILE} {said}")
    assert "ask " in note


def test_a_file_that_is_cut_off_anywhere_is_ungradable(tmp_path):
    content = json.dumps(solved()).encode()
    for length in range(1, len(content) - 1, len(content) // 150):
        (tmp_path / FILE).write_bytes(content[:length])
        submitted = find(tmp_path, NAME)
        assert submitted.state == UNGRADABLE
        assert submitted.notes[0].startswith(f"{FILE} is "), length


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    with (tmp_path / FILE).open("wb") as file:
        file.truncate(50_000_001)
    submitted = find(tmp_path, NAME)
    assert submitted.state == UNGRADABLE
    assert submitted.notes == (
        f"{FILE} is 50 MB, and 50 are read; ask the student for it without its outputs",
    )


def test_huge_outputs_are_dropped_at_once(tmp_path):
    notebook = solved()
    cell_of(notebook, FIRST).outputs = [
        nbformat.v4.new_output("stream", text="0123456789" * 2_000_000)
    ]
    path = write(tmp_path, notebook)
    assert path.stat().st_size > 20_000_000
    start = time.process_time()
    kept, notes = found(tmp_path)
    assert (kept, notes) == (answers(notebooks()[2]), ())
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    "name",
    [
        "p(1).ipynb",
        f"{NAME} (1).ipynb",
        f" {FILE}",
        FILE.upper().replace(".IPYNB", ".IPYNB"),
        f"{NAME}-Copy1.ipynb",
        f"homework/{FILE}",
        "homework/mine.IPYNB",
        "a[b]+(c).ipynb",
    ],
)
def test_one_notebook_with_another_name_is_taken_with_a_note(tmp_path, name):
    write(tmp_path, solved(), name)
    kept, notes = found(tmp_path)
    assert kept == answers(notebooks()[2])
    assert notes == (f"{name} was taken for {FILE}, which is not there",)


def test_of_several_notebooks_the_one_with_the_right_name_or_none(tmp_path):
    mine = solved()
    cell_of(mine, FIRST).source += "\n# mine"
    for folder, files, taken in [
        ("right", {FILE: mine, "another.ipynb": solved()}, FILE),
        ("near", {f"{NAME} (1).ipynb": mine, "another.ipynb": solved()}, f"{NAME} (1).ipynb"),
        ("inside", {f"x/{FILE}": mine, f"{NAME}(2).ipynb": solved()}, f"x/{FILE}"),
        ("scratch", {"b.ipynb": mine, "a.ipynb": new_notebook()}, "b.ipynb"),
        ("start", {"b.ipynb": mine, "a.ipynb": solved("00-start")}, "b.ipynb"),
        ("same", {"a.ipynb": mine, "b.ipynb": mine}, "a.ipynb"),
    ]:
        for name, notebook in files.items():
            write(tmp_path / folder, notebook, name)
        kept, notes = found(tmp_path / folder)
        assert kept[FIRST].endswith("# mine"), folder
        assert any("other notebooks were not graded" in note for note in notes)
        assert any(note.startswith(f"{taken} was taken") for note in notes) == (taken != FILE)

    for name in ("a.ipynb", "b.ipynb"):
        write(tmp_path / "two", mine if name == "a.ipynb" else solved(), name)
    submitted = find(tmp_path / "two", NAME)
    assert submitted.state == UNGRADABLE
    assert submitted.notes == (
        f"a.ipynb and b.ipynb could each be {FILE}; ask the student which counts",
    )


def test_an_assignment_of_several_notebooks(tmp_path):
    write(tmp_path, solved(), "a.ipynb")
    write(tmp_path, solved(), "b.ipynb")
    for name, other in ("ab", "ba"):
        assert find(tmp_path, name, others=frozenset({other})).notes == ()
    (tmp_path / "a.ipynb").unlink()
    assert find(tmp_path, "a", others=frozenset({"b"})).state == MISSING


def test_a_broken_file_with_the_right_name_gives_way_to_a_sound_one(tmp_path):
    (tmp_path / FILE).write_bytes(b"")
    write(tmp_path, solved(), f"{NAME} (1).ipynb")
    kept, notes = found(tmp_path)
    assert kept == answers(notebooks()[2])
    assert notes[0] == f"{NAME} (1).ipynb was taken for {FILE}"
    assert notes[1].startswith(f"{FILE} is empty")


@pytest.mark.parametrize("name", [FILE, "mine.ipynb"])
def test_the_notebook_of_another_assignment_is_named(tmp_path, name):
    write(tmp_path, solved("03-rotation"), name)
    submitted = find(tmp_path, NAME)
    assert submitted.state == UNGRADABLE
    assert submitted.notes == (
        f"{name} holds the tasks of 03-rotation and none of {NAME}; ask the student for {FILE}",
    )


def test_a_notebook_of_no_assignment_is_blank_under_the_right_name_alone(tmp_path):
    notebook = new_notebook(cells=[new_code_cell("1 + 1")])
    path = write(tmp_path, notebook)
    kept, _ = found(tmp_path)
    assert kept == answers(notebooks()[1])
    path.rename(tmp_path / "another.ipynb")
    submitted = find(tmp_path, NAME)
    assert submitted.state == UNGRADABLE
    assert "holds no task of" in submitted.notes[0]
    # An assignment that is not of this course.
    assert find(tmp_path, "ps1").state == GRADED


def test_nothing_there_is_missing(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_bytes(b"")
    hidden = tmp_path / "hidden" / ".ipynb_checkpoints"
    write(hidden, solved())
    for name in ("nowhere", "empty", "file", "hidden"):
        submitted = find(tmp_path / name, NAME)
        assert (submitted.state, submitted.notebook, submitted.files) == (MISSING, None, {})
        assert submitted.notes == (f"no notebook was handed in; expected {FILE}",)


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
def test_no_link_is_followed(tmp_path):
    secret = write(tmp_path / "other", solved())
    (tmp_path / "other" / "secret.txt").write_text("secret", "utf-8")
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / FILE).symlink_to(secret)
    (mine / "secret.txt").symlink_to(tmp_path / "other" / "secret.txt")
    (mine / "folder").symlink_to(tmp_path / "other")
    os.mkfifo(mine / "pipe.txt")
    submitted = find(mine, NAME)
    assert (submitted.state, submitted.files) == (MISSING, {})


def test_small_files_come_along(tmp_path):
    write(tmp_path, solved())
    for name, content in {
        "data/a b.csv": b"1,2",
        "helper.py": b"x = 1",
        "page.html": b"<script>",
        ".hidden": b"x",
        "__pycache__/x.pyc": b"x",
        "large.bin": b"x" * 4_000_001,
        **{f"many/{n}.bin": b"x" * 3_999_000 for n in range(5)},
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    files = find(tmp_path, NAME).files
    assert {"data/a b.csv", "helper.py"} <= set(files)
    assert files["data/a b.csv"] == b"1,2"
    assert not {"page.html", ".hidden", "__pycache__/x.pyc", "large.bin", FILE} & set(files)
    assert sum(name.startswith("many/") for name in files) == 4
    assert sum(map(len, files.values())) <= 16_000_000


def test_thousands_of_files_end(tmp_path):
    for n in range(2_100):
        (tmp_path / f"{n}.txt").write_bytes(b"")
    start = time.process_time()
    assert find(tmp_path, NAME).state == MISSING
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    "text",
    [
        "(" * 90_000,
        "-" * 90_000 + "1",
        "a" + ".a" * 45_000,
        "x = 1\n" * 50_000,
        "def f(:\n" * 10_000,
    ],
)
def test_texts_that_are_hard_to_analyse_are_kept(text):
    notebook = solved()
    cell_of(notebook, FIRST).source = text
    insert(notebook, new_code_cell("    return 1"), after=FIRST)
    cell_of(notebook, "setup").source = text
    kept, _, _ = remade(notebook)
    assert kept[FIRST].startswith(text.rstrip())


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_an_ordinary_notebook_takes_no_time(tmp_path, name):
    write(tmp_path, solved(name), f"{name}.ipynb")
    source, released, _ = notebooks(name)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        rebuild(source, released, find(tmp_path, name).notebook)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.01


def test_names_of_a_students_are_printable(tmp_path):
    notebook = solved()
    cell = new_code_cell("1", metadata={"nbgrader": {"grade_id": "\x1b[31m\ud800" + "x" * 500}})
    notebook.cells.append(cell)
    (note,) = graded(notebook).notes
    assert note.isprintable()
    assert len(note) < 250
    assert _reading._shown("a\nb") == "a?b"
