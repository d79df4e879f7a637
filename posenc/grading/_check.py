"""The two functions that a notebook calls."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from textwrap import fill
from types import CodeType
from typing import Any

from posenc import exercises
from posenc.exercises import Exercise, Misconception
from posenc.grading import _judge
from posenc.grading._guard import Guard, lifted
from posenc.grading._report import (
    Report,
    call_text,
    listed,
    points_text,
    reading,
    recognised,
    resembling,
)

PRACTICE_SEED = "practice"
SEED_VARIABLE = "POSENC_SEED"


def check(function_or_name: str | Callable, *, seed: str | int | None = None) -> Report:
    """Check a function of an exercise, and say which idea is wrong if one is.

    Parameters
    ----------
    function_or_name : str or callable
        The exercise's name, looked up where ``check`` is called, or the function itself.
    seed : str or int, optional
        Without one, the fixed visible cases are run; with one, cases are drawn from it.

    Returns
    -------
    Report
        Points and what to read; it shows itself in a notebook and at a prompt.

    Raises
    ------
    ValueError
        If no exercise has that name.

    Examples
    --------
    >>> def rotation_matrix(angle):
    ...     return [[1.0, 0.0], [0.0, 1.0]]
    >>> check(rotation_matrix).points
    0.0
    """
    exercise, function, problem = _resolve(function_or_name, sys._getframe(1).f_globals)
    if problem:
        return _unready(exercise, problem, "visible")
    return _report(exercise, function, seed=seed, mode="visible" if seed is None else "practice")


def grade(function_or_name: str | Callable) -> Report:
    """Grade a function on cases drawn from the course's seed, for the locked cells of a notebook.

    The seed is the environment variable ``POSENC_SEED``; without it, practice cases are drawn and
    the report says so.

    Parameters
    ----------
    function_or_name : str or callable
        The exercise's name, looked up where ``grade`` is called, or the function itself.

    Returns
    -------
    Report
        Its plain text in a notebook is the number of points, which nbgrader records.

    Raises
    ------
    ValueError
        If no exercise has that name.
    AssertionError
        With the report as its message, where ``nbgrader validate`` runs the cell and points are
        missing: validation shows nothing else.

    Examples
    --------
    >>> def rotation_matrix(angle):
    ...     return [[1.0, 0.0], [0.0, 1.0]]
    >>> grade(rotation_matrix).points
    0.0
    """
    seed = os.environ.get(SEED_VARIABLE) or PRACTICE_SEED
    mode = "practice" if seed == PRACTICE_SEED else "graded"
    exercise, function, problem = _resolve(function_or_name, sys._getframe(1).f_globals)
    if problem:
        report = _unready(exercise, problem, mode)
    else:
        report = _report(exercise, function, seed=seed, mode=mode)
    if os.environ.get("NBGRADER_EXECUTION") == "validate" and not report.passed:
        # nbgrader cuts lines at 87 characters.
        raise AssertionError("\n" + "\n".join(fill(line, 80) for line in report.lines)) from None
    return report


def _resolve(
    function_or_name: str | Callable, namespace: dict[str, Any]
) -> tuple[Exercise, Callable, str | None]:
    """Return the exercise, the function, and in one sentence what keeps it from being judged."""
    by_name = isinstance(function_or_name, str)
    name = function_or_name if by_name else getattr(function_or_name, "__name__", "")
    exercise = exercises.get(name)
    if by_name and name not in namespace:
        return exercise, check, f"not run yet: run the cell that defines {name}, then this one."
    function = namespace[name] if by_name else function_or_name
    if not callable(function):
        kind = type(function).__name__
        return exercise, check, f"not a function: {name} is {kind!r} here, expected a function."
    return exercise, function, None


def _unready(exercise: Exercise, problem: str, mode: str) -> Report:
    return Report(exercise.name, 0.0, exercise.points, (), (f"{exercise.name}: {problem}",), mode)


def _report(exercise: Exercise, function: Callable, *, seed: str | int | None, mode: str) -> Report:
    results, shown = _attempt(exercise, function, seed, mode)
    points, replaced = _judge.earned(results), ""
    if points < exercise.points:
        with _right_dependencies(exercise, function) as names:
            again = _attempt(exercise, function, seed, mode) if names else (results, shown)
        if _judge.earned(again[0]) > points:
            (results, shown), points = again, _judge.earned(again[0])
            replaced = f" (scored with a right {' and '.join(names)} in place of yours)"
    failing = [result for result in results if not result.passed]
    if len(failing) == len(results) and all(
        result.fault is not None and result.fault.kind == "not written yet" for result in failing
    ):
        return _unready(exercise, f"not written yet: {failing[0].fault}.", mode)

    lines = [
        f"{exercise.name}: {points:g} of {points_text(exercise.points)}{replaced}. "
        f"{_count_text(results, points, mode)}"
    ]
    ideas: list[Misconception] = []
    if failing:
        explained = _judge.recognise(exercise, results, seed=seed)
        # The idea that explains the call shown comes first.
        first = next(index for index, result in enumerate(results) if not result.passed)
        ideas = [item for item in exercise.misconceptions if item.name in explained]
        ideas.sort(key=lambda item: first not in explained[item.name])
        named = bool(ideas) and first in explained[ideas[0].name]
        names = [] if named else _judge.resembles(exercise, results, seed=seed)
        alike = [item for item in exercise.misconceptions if item.name in names][:2]
        lines += _details(exercise, results, shown)
        diagnosis = [resembling(alike)] if alike else []
        diagnosis += [recognised(ideas, explained)] if ideas else []
        lines += [" ".join(diagnosis)] if diagnosis else []
        lines.append(reading((alike or ideas or [exercise])[0].section))
    return Report(
        exercise.name,
        points,
        exercise.points,
        tuple(idea.name for idea in ideas),
        tuple(lines),
        mode,
    )


def _attempt(
    exercise: Exercise, function: Callable, seed: str | int | None, mode: str
) -> tuple[list, list]:
    """Return the results that count, and those that may be shown."""
    results = _judge.judge(exercise, function, seed=seed, guard=Guard(exercise))
    if mode != "graded" or all(result.passed for result in results):
        return results, results
    return results, _judge.judge(exercise, function, guard=Guard(exercise))


def _count_text(results: list, points: float, mode: str) -> str:
    right, count = sum(result.passed for result in results), len(results)
    passing = f"{right} of {count}" + (
        " visible checks pass" if mode == "visible" else " checks pass"
    )
    if right and not points:
        passing += ", but count only once a check of values does"
    if mode == "visible":
        return f"{passing}; grading runs the same {count} on new cases."
    seed = "the course's seed" if mode == "graded" else "the practice seed, not the course's"
    return f"{passing}; the cases are drawn from {seed}."


def _details(exercise: Exercise, results: list, shown: list) -> list[str]:
    """Return what is wrong, by the first of the results that may be shown and fails alike."""
    failing = [result for result in results if not result.passed]
    if len(failing) == len(results):
        lines = ["None of the checks passes yet. The first:"]
    else:
        lines = [f"Not right yet: {listed([result.criterion.name for result in failing])}."]
    alike = [
        result
        for result in shown
        if not result.passed and result.criterion.name == failing[0].criterion.name
    ]
    if not alike:
        return [*lines, "It fails on cases drawn for grading alone; no visible case shows it."]
    lines.append(f"{call_text(exercise.name, alike[0].case)}:")
    lines.append("; ".join(alike[0].failure.lines))
    return lines


@contextmanager
def _right_dependencies(exercise: Exercise, function: Callable) -> Iterator[list[str]]:
    """Put right functions in place of earlier ones of the notebook that fail and are called."""
    namespace = getattr(function, "__globals__", {})
    names = []
    for other in exercises.for_assignment(exercise.assignment):
        if other.name == exercise.name:
            break
        if other.name in _called_names(function) and callable(namespace.get(other.name)):
            mine = namespace[other.name]
            if _judge.earned(_judge.judge(other, mine, guard=Guard(other))) < other.points:
                names.append(other.name)
    kept = {name: namespace[name] for name in names}
    namespace.update({name: _right(exercises.get(name)) for name in names})
    try:
        yield names
    finally:
        namespace.update(kept)


def _right(exercise: Exercise) -> Callable:
    """Return the reference in a form that a candidate may call."""

    @wraps(exercise.reference)
    def right(*args: Any, **kwargs: Any) -> Any:
        with lifted():
            return exercise.reference(*args, **kwargs)

    return right


def _called_names(function: Callable) -> set[str]:
    """Return the global names that a function uses, directly or through its notebook."""
    namespace = getattr(function, "__globals__", {})
    names: set[str] = set()
    todo = [getattr(function, "__code__", None)]
    while todo:
        code = todo.pop()
        if code is None:
            continue
        todo += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        for name in set(code.co_names) - names:
            names.add(name)
            used = namespace.get(name)
            if getattr(used, "__globals__", None) is namespace:
                todo.append(getattr(used, "__code__", None))
    return names
