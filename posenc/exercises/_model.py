"""What an exercise is made of: cases, criteria, misconceptions, variants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

Draw = Callable[[np.random.Generator], "Sequence[Case]"]


def draw_even(rng: np.random.Generator, low: int = 8, high: int = 64) -> int:
    """Draw an even number of dimensions; visible checks and drawn ones use 8 or more."""
    return 2 * int(rng.integers(low // 2, high // 2 + 1))


def draw_base(rng: np.random.Generator) -> float:
    """Draw a base, log-uniformly from 30 to a million."""
    return float(np.exp(rng.uniform(np.log(30), np.log(1e6))).round(1))


class Failure(Exception):  # noqa: N818 - a finding about the student's work, not an error of ours
    """What is wrong with a candidate, in lines that a student reads.

    Parameters
    ----------
    *lines : str
        Sentences or parts of sentences, ASCII only.
    """

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


def require(condition: object, *lines: str) -> None:
    """Raise :class:`Failure` with these lines unless the condition holds."""
    if not condition:
        raise Failure(*lines)


@dataclass(frozen=True)
class Case:
    """The arguments of one call.

    Parameters
    ----------
    args : tuple
        Positional arguments.
    kwargs : dict, optional
        Keyword arguments.
    label : str, optional
        What reports call the case, where its arguments say less.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    label: str = ""


def case(*args: Any, **kwargs: Any) -> Case:
    """Write a case the way its call is written."""
    return Case(args, kwargs)


def named_case(label: str, /, *args: Any, **kwargs: Any) -> Case:
    """Write a case that reports call by a name."""
    return Case(args, kwargs, label)


@dataclass(frozen=True)
class Criterion:
    """One thing that earns points, on cases that everybody sees and on cases drawn when graded.

    Parameters
    ----------
    name : str
        Completes "Not right yet: ..." in a report.
    points : float
        What it earns, in steps of 0.5.
    kind : {'value', 'share', 'property', 'refusal', 'unchanged'}
        Equal to the reference in every case; equal, case by case, for a share of the points;
        ``test`` holds; a ValueError or IndexError; arguments are left as they were.
    visible : callable
        Makes the visible cases anew at each call, so that nobody can change a shared array.
    drawn : callable
        Draws cases from a generator.
    test : callable, optional
        Raises :class:`Failure` where a property does not hold.
    gate : bool, default False
        Whether nothing is earned unless this passes.
    """

    name: str
    points: float
    kind: Literal["value", "share", "property", "refusal", "unchanged"]
    visible: Callable[[], Sequence[Case]]
    drawn: Draw
    test: Callable[..., None] | None = None
    gate: bool = False


def values(
    name: str,
    points: float,
    *,
    visible: Callable[[], Sequence[Case]],
    drawn: Draw,
    gate: bool = False,
) -> Criterion:
    """Ask for the reference's values."""
    return Criterion(name, points, "value", visible, drawn, gate=gate)


def share(
    name: str, points: float, *, visible: Callable[[], Sequence[Case]], drawn: Draw
) -> Criterion:
    """Ask for the reference's values, and count the cases one by one, rounded down to halves."""
    return Criterion(name, points, "share", visible, drawn)


def holds(
    name: str,
    points: float,
    test: Callable[..., None],
    *,
    visible: Callable[[], Sequence[Case]],
    drawn: Draw,
) -> Criterion:
    """Ask for a property.

    ``test`` is called as ``test(candidate, *args, **kwargs)`` with a candidate that returns
    arrays of the reference's shape; it raises :class:`Failure` (see :func:`require`).
    """
    return Criterion(name, points, "property", visible, drawn, test)


def refuses(
    name: str, points: float, *, visible: Callable[[], Sequence[Case]], drawn: Draw
) -> Criterion:
    """Ask for a ValueError or an IndexError."""
    return Criterion(name, points, "refusal", visible, drawn)


def leaves_unchanged(
    name: str, points: float, *, visible: Callable[[], Sequence[Case]], drawn: Draw
) -> Criterion:
    """Ask that the arrays passed in hold the same numbers afterwards."""
    return Criterion(name, points, "unchanged", visible, drawn)


@dataclass(frozen=True)
class Misconception:
    """A wrong idea as an executable implementation that differs from a right one by that idea.

    Parameters
    ----------
    name : str
        What reports call it.
    function : callable
        The wrong implementation.
    explanation : str
        Completes "Recognised: name - ...", without a final period.
    section : str
        Label of the book's section to read.
    """

    name: str
    function: Callable[..., Any]
    explanation: str
    section: str


class Misconceptions(list[Misconception]):
    """A catalogue that is filled by a decorator above each wrong implementation."""

    def idea(self, name: str, explanation: str, section: str) -> Callable[[Callable], Callable]:
        """Add the decorated function; the explanation completes "Recognised: ..."."""

        def add(function: Callable) -> Callable:
            self.append(Misconception(name, function, explanation, section))
            return function

        return add


@dataclass(frozen=True)
class Exercise:
    """One graded function: everything that the notebook, the book and the grader know of it.

    Parameters
    ----------
    reference : callable
        Has the right values, and the exercise's name.
    assignment : str
        Name of its assignment.
    section : str
        Label of the book's section to read.
    difficulty, importance : int
        From 1 to 5.
    minutes : str
        A range such as "5-10".
    criteria : tuple of Criterion
        What earns points.
    misconceptions : tuple of Misconception
        Wrong ideas that reports name.
    variants : dict, optional
        Other right implementations, which the checks must accept.
    atol, rtol : float, optional
        Values are right within ``atol + rtol * |expected|``.
    same : callable, optional
        ``same(got, expected)`` raises :class:`Failure` where a value is not right; in place of
        the comparison by ``atol`` and ``rtol``.
    off_limits : tuple of str, optional
        Functions of the student's own notebook that may not be called.
    """

    reference: Callable[..., Any]
    assignment: str
    section: str
    difficulty: int
    importance: int
    minutes: str
    criteria: tuple[Criterion, ...]
    misconceptions: tuple[Misconception, ...]
    variants: dict[str, Callable[..., Any]] = field(default_factory=dict)
    atol: float = 1e-6
    rtol: float = 1e-6
    same: Callable[[Any, Any], None] | None = None
    off_limits: tuple[str, ...] = ()

    def variant(self, name: str) -> Callable[[Callable], Callable]:
        """Add the decorated function to the right implementations."""

        def add(function: Callable) -> Callable:
            self.variants[name] = function
            return function

        return add

    @property
    def name(self) -> str:
        """The function's name, which is the exercise's."""
        return self.reference.__name__

    @property
    def points(self) -> float:
        """The most that can be earned."""
        return sum(criterion.points for criterion in self.criteria)

    @property
    def summary(self) -> str:
        """First line of the reference's docstring."""
        return (self.reference.__doc__ or "").strip().splitlines()[0]


@dataclass(frozen=True)
class Keyed:
    """A graded task whose right answers lie in the instructor's notebook alone.

    Parameters
    ----------
    name : str
        Name of the function that returns the answers as a dict.
    summary : str
        First line of its docstring.
    labels : tuple of str
        The questions' labels, which are the dict's keys.
    words : tuple of str
        The answers that can be given.
    points_each : float
        What a right answer earns.
    assignment : str
        Name of its assignment.
    section : str
        Label of the book's section to read.
    difficulty, importance : int
        From 1 to 5.
    minutes : str
        A range such as "5-10".
    """

    name: str
    summary: str
    labels: tuple[str, ...]
    words: tuple[str, ...]
    points_each: float
    assignment: str
    section: str
    difficulty: int
    importance: int
    minutes: str

    @property
    def points(self) -> float:
        """The most that can be earned."""
        return self.points_each * len(self.labels)


@dataclass(frozen=True)
class Assignment:
    """One notebook of exercises, and the pages of the book that go with it.

    Parameters
    ----------
    name : str
        Name of the folder and the notebook; starts with the chapter's number.
    title : str
        What people call it.
    minutes : str
        A range such as "60-80".
    pages : tuple of str
        Names of the book's pages, without ending.
    """

    name: str
    title: str
    minutes: str
    pages: tuple[str, ...]

    @property
    def chapter(self) -> int:
        """The chapter's number, which starts the name."""
        return int(self.name.split("-")[0])


@dataclass(frozen=True)
class Section:
    """A section of the book that a report can point to.

    Parameters
    ----------
    page : str
        Name of the page, without ending.
    title : str
        The section's heading.
    """

    page: str
    title: str
