"""What the course adds to nbgrader, through settings of nbgrader_config.py.

nbgrader makes its exporter after it has found the notebooks and before it removes anything, so
that is where work is kept from being lost.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter
from nbgrader.converters import NbGraderException

from posenc.grading import assignments
from posenc.grading._check import SEED_VARIABLE


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
