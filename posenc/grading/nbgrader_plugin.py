"""What the course adds to nbgrader, through settings of nbgrader_config.py.

nbgrader makes its exporter after it has found the notebooks and before it removes anything, so
that is where work is kept from being lost.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter
from nbgrader.converters import Autograde, GenerateFeedback, NbGraderException
from nbgrader.preprocessors import DeduplicateIds, Execute, NbGraderPreprocessor
from nbgrader.utils import is_locked

import posenc
from posenc.grading import assignments
from posenc.grading._check import PRACTICE_SEED, SEED_VARIABLE
from posenc.grading._execute import ToTheEnd


class ReleaseExporter(NotebookExporter):
    """Keeps a copy of answers that somebody wrote into ``exercises/``."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        course = self.parent.coursedir
        for folder in self.parent.assignments:
            name = Path(folder).name
            released = Path(course.format_path(course.release_directory, ".", name))
            kept = assignments.keep_answers(released / f"{name}.ipynb")
            if kept:
                self.log.warning("%s.ipynb held answers, which are now in %s", name, kept)


class SubmissionExporter(NotebookExporter):
    """Sets submissions aside that can't be graded, before their last graded version is removed."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        converter = self.parent
        if not os.environ.get(SEED_VARIABLE):
            self.log.warning(
                "%s is not set: graded cells draw the practice cases, which students can see",
                SEED_VARIABLE,
            )
        faults = list(self._set_aside(converter))
        if faults:
            convert = converter.convert_notebooks

            def convert_the_rest() -> None:
                convert()
                for fault in faults:
                    self.log.error(fault)
                raise NbGraderException("; ".join(faults))

            converter.convert_notebooks = convert_the_rest

    def _set_aside(self, converter: Any) -> Any:
        """Yield one sentence for each submission that is taken out of the batch."""
        course = converter.coursedir
        pattern = course.format_path(
            course.submitted_directory, course.student_id, course.assignment_id
        )
        root = Path(course.root)
        for folder in sorted(root.glob(os.path.relpath(pattern, root))):
            fault = _fault(folder, whole=course.notebook_id == "*")
            if fault:
                converter.assignments.pop(str(folder), None)
                yield (
                    f"{folder.relative_to(root).as_posix()} was not graded, and what was graded "
                    f"before is kept: {fault}"
                )


def _fault(folder: Path, *, whole: bool) -> str | None:
    """Return what keeps a submission from being graded, and what to do."""
    expected = folder / f"{folder.name}.ipynb"
    if not expected.is_file():
        if not whole:
            return None
        others = sorted(path.name for path in folder.glob("*.ipynb"))
        if others:
            return f"no notebook is named {expected.name}; rename {' or '.join(others)} to that"
        return f"it holds no notebook; ask the student for {expected.name}"
    try:
        nbformat.read(expected, as_version=4)
    except Exception as error:
        kind = type(error).__name__
        return f"{expected.name} is not a notebook that can be read ({kind}); ask for it again"
    return None


class ForgetCopies(DeduplicateIds):
    """Treats a copied cell of nbgrader's as an ordinary one.

    nbgrader leaves it with empty metadata, takes these for an old version, and ends the batch.
    """

    def preprocess_cell(self, cell: Any, resources: Any, cell_index: int) -> tuple[Any, Any]:
        """Take out what nbgrader emptied."""
        cell, resources = super().preprocess_cell(cell, resources, cell_index)
        if cell.metadata.get("nbgrader") == {}:
            del cell.metadata["nbgrader"]
        return cell, resources


class ExecuteToTheEnd(ToTheEnd, Execute):
    """Executes a notebook to its last cell, in a new kernel where a cell ends or blocks the old.

    nbgrader would drop the whole submission, and with it the points of every other task.
    """


class RecordSeed(NbGraderPreprocessor):
    """Writes into the autograded notebook what its cases were drawn from, for a replay.

    Feedback pages don't show a notebook's metadata.
    """

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Replace whatever the student's notebook says there."""
        seed = os.environ.get(SEED_VARIABLE) or PRACTICE_SEED
        nb.metadata["posenc"] = {"seed": seed, "version": posenc.__version__}
        return nb, resources


class HideKeys(NbGraderPreprocessor):
    """Leaves the key of a task out of the feedback; the cell's output says what was wrong."""

    def preprocess_cell(self, cell: Any, resources: Any, cell_index: int) -> tuple[Any, Any]:
        """Cut what stands between the marks of a locked cell."""
        if is_locked(cell):
            region = rf"{assignments.HIDDEN_MARK}\n.*?### END HIDDEN TESTS\n?"
            cell.source = re.sub(region, "", cell.source, flags=re.DOTALL)
        return cell, resources


def _names(preprocessors: list[type]) -> list[str]:
    """Return names, and not classes, so that the formgrader can show the configuration."""
    return [f"{preprocessor.__module__}.{preprocessor.__name__}" for preprocessor in preprocessors]


def _with(preprocessors: str, old: type, new: type) -> list[type]:
    """Return one of nbgrader's lists of preprocessors, with one replaced."""
    stock = getattr(Autograde(), preprocessors)
    return [new if preprocessor is old else preprocessor for preprocessor in stock]


SANITIZE_PREPROCESSORS = _names(_with("sanitize_preprocessors", DeduplicateIds, ForgetCopies))
AUTOGRADE_PREPROCESSORS = _names(
    [RecordSeed, *_with("autograde_preprocessors", Execute, ExecuteToTheEnd)]
)
FEEDBACK_PREPROCESSORS = _names([HideKeys, *GenerateFeedback().preprocessors])
