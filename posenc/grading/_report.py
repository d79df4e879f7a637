"""What a student reads after a check: at most six lines, the same in HTML and in text."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from posenc.exercises import ASSIGNMENTS, SECTIONS, Case, Misconception


@dataclass(frozen=True)
class Report:
    """Say what a check found; shows itself as HTML in a notebook and as text elsewhere.

    Parameters
    ----------
    name : str
        The function that was checked.
    points, max_points : float
        What was earned, and the most that can be.
    misconceptions : tuple of str
        Names of the wrong ideas that were recognised.
    lines : tuple of str
        The report, line by line.
    mode : {'visible', 'practice', 'graded'}
        Visible cases, cases drawn from the public practice seed, or from the course's seed.
    state : str
        In one or a few words what was found first: "right", "wrong", "not refused",
        "changes its input", "crash", "too slow", "out of memory", "calls the reference",
        "calls what is off limits", "not written yet", "not run yet", "not a function", or
        "answered" where the course alone knows the right answer.
    args : tuple
        Positional arguments of the visible call that the report shows: ``function(*report.args,
        **report.kwargs)`` repeats it.
    kwargs : dict
        Its keyword arguments.
    site : str
        Address of the book, if the notebook has it.
    """

    name: str
    points: float
    max_points: float
    misconceptions: tuple[str, ...]
    lines: tuple[str, ...]
    mode: Literal["visible", "practice", "graded"] = "visible"
    state: str = "right"
    args: tuple[Any, ...] = field(default=(), compare=False)
    kwargs: dict[str, Any] = field(default_factory=dict, compare=False)
    site: str = ""

    @property
    def passed(self) -> bool:
        """Whether all points were earned."""
        return self.points == self.max_points

    @property
    def text(self) -> str:
        """The report as plain text."""
        return "\n".join(self.lines)

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        colour = "#2e8540" if self.passed else "#b45309"
        first, *rest = (html.escape(line) for line in self.lines)
        if self.site and rest:
            # Only the last line holds an address that we wrote.
            address = rf"({re.escape(html.escape(self.site))}[^\s)]*)"
            rest[-1] = re.sub(address, r'<a href="\1">\1</a>', rest[-1])
        body = "".join(f"<div>{line}</div>" for line in rest)
        return (
            f'<div class="posenc-report" style="border-left: 4px solid {colour}; '
            f'padding: 0.2em 0.8em; overflow-wrap: anywhere"><strong>{first}</strong>{body}</div>'
        )

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        # nbgrader reads a graded cell's points from its plain text; people read the HTML.
        plain = self.text if self.mode == "visible" else f"{self.points:g}"
        return {"text/plain": plain, "text/html": self._repr_html_()}


def points_text(points: float) -> str:
    """Return "1 point", "2.5 points"."""
    return f"{points:g} point{'' if points == 1 else 's'}"


def call_text(name: str, case: Case) -> str:
    """Return a call as a person would write it; arrays of more than 8 numbers by their shape."""
    if case.label:
        return f"{name}({case.label})"
    parts = [_shown(value) for value in case.args]
    parts += [f"{key}={_shown(value)}" for key, value in case.kwargs.items()]
    return f"{name}({', '.join(parts)})"


def reading(label: str, site: str) -> str:
    """Return where in the book to read."""
    section = SECTIONS[label]
    chapter = next(a.chapter for a in ASSIGNMENTS.values() if section.page in a.pages)
    page = f"{site}/{section.page}.html" if site else f"{section.page}.html"
    return f'Read chapter {chapter}, "{section.title}" ({page}#{label}).'


def recognised(
    misconceptions: Sequence[Misconception], explained: Mapping[str, frozenset[int]]
) -> str:
    """Return the recognised ideas in one line: "or" between ideas that explain the same checks."""
    line, previous = "Recognised: ", None
    for item in misconceptions:
        if previous is not None:
            line += "; or " if explained[item.name] == previous else ". Also: "
        line += f"{item.name} - {item.explanation}"
        previous = explained[item.name]
    return f"{line}."


def resembling(misconceptions: Sequence[Misconception]) -> str:
    """Return the ideas that show in the first check that fails, though not in all."""
    ideas = "; or ".join(f"{item.name} - {item.explanation}" for item in misconceptions)
    return f"In the first of these, your answer is that of: {ideas}."


def _shown(value: Any) -> str:
    if callable(value):
        return getattr(value, "__name__", "function")
    if isinstance(value, str | bool | int):
        return repr(value)
    if isinstance(value, float):
        return f"{value:g}"
    try:
        array = np.asarray(value)
    except ValueError:
        return f"a {type(value).__name__} of {len(value)}"
    # A list as it is written has one of these; any other type may be what goes wrong.
    kind = "" if array.dtype in (np.float64, np.int64, bool) else f" of {array.dtype}"
    if array.size <= 8 and array.ndim <= 2 and array.dtype.kind in "biuf":
        return f"{np.round(array, 4).tolist()}{kind}"
    return f"array of shape {array.shape}{kind}"
