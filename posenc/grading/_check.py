"""The two functions that a notebook calls."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, wraps
from textwrap import fill
from typing import Any

from posenc import exercises
from posenc.exercises import Exercise, Keyed, Misconception
from posenc.grading import _judge
from posenc.grading._guard import Elsewhere, Guard
from posenc.grading._judge import Result, listed
from posenc.grading._limits import CallFault, called_names, lifted
from posenc.grading._report import (
    Report,
    call_text,
    points_text,
    reading,
    recognised,
    resembling,
)

PRACTICE_SEED = "practice"
SEED_VARIABLE = "POSENC_SEED"
# Label to the right answer and why it is right.
Key = Mapping[str, tuple[str, str]]
# What a report says of a call, by what was found first.
SAYS = {
    "wrong": "is wrong",
    "not refused": "is not refused",
    "changes its input": "changes its input",
    "crash": "crashes",
    "too slow": "is too slow",
    "out of memory": "runs out of memory",
    "calls the reference": "calls the reference",
    "calls what is off limits": "calls what is off limits",
    "not written yet": "is not written yet",
}


def has_seed() -> bool:
    """Return whether cases are drawn from a seed that students don't know."""
    return os.environ.get(SEED_VARIABLE, PRACTICE_SEED) not in ("", PRACTICE_SEED)


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
    return check_in(sys._getframe(1).f_globals, function_or_name, seed=seed)


def check_in(
    namespace: Mapping[str, Any],
    function_or_name: str | Callable,
    *,
    seed: str | int | None = None,
) -> Report:
    """Do what :func:`check` does, where a name is looked up in this namespace."""
    exercise, function, problem = _resolve(function_or_name, namespace)
    mode = "visible" if seed is None else "practice"
    if problem:
        return _unready(exercise, *problem, "visible")
    if isinstance(exercise, Keyed):
        return _keyed_report(exercise, function, None, mode)
    return _report(exercise, function, seed=seed, mode=mode)


def grade(function_or_name: str | Callable, *, key: Key | None = None) -> Report:
    """Grade a function on cases drawn from the course's seed, for the locked cells of a notebook.

    The seed is the environment variable ``POSENC_SEED``; without it, practice cases are drawn and
    the report says so.

    Parameters
    ----------
    function_or_name : str or callable
        The exercise's name, looked up where ``grade`` is called, or the function itself.
    key : mapping of str to (str, str), optional
        Right answers, and why they are right, for a task that has them in the instructor's
        notebook alone.

    Returns
    -------
    Report
        Its plain text in a notebook is the number of points, which nbgrader records.

    Raises
    ------
    ValueError
        If no exercise has that name, or a key is given where none belongs or one that does not fit.
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
    return grade_in(sys._getframe(1).f_globals, function_or_name, key=key)


def grade_in(
    namespace: Mapping[str, Any], function_or_name: str | Callable, *, key: Key | None = None
) -> Report:
    """Do what :func:`grade` does, where a name is looked up in this namespace."""
    seed = os.environ.get(SEED_VARIABLE) or PRACTICE_SEED
    mode = "practice" if seed == PRACTICE_SEED else "graded"
    exercise, function, problem = _resolve(function_or_name, namespace)
    if key is not None and (not isinstance(exercise, Keyed) or set(key) != set(exercise.labels)):
        raise ValueError(f"{exercise.name} is not graded by this key")
    if problem:
        report = _unready(exercise, *problem, mode)
    elif isinstance(exercise, Keyed):
        report = _keyed_report(exercise, function, key, mode)
    else:
        report = _report(exercise, function, seed=seed, mode=mode)
    if os.environ.get("NBGRADER_EXECUTION") != "validate" or report.passed:
        return report
    if report.state == "answered":
        # Shown as text, not as the number that would be points: validation has no key.
        return replace(report, mode="visible")
    # nbgrader cuts lines at 87 characters.
    raise AssertionError("\n" + "\n".join(fill(line, 80) for line in report.lines)) from None


def prepare(assignment: str) -> None:
    """Find out what :func:`grade` and :func:`check` need for each answer to an assignment."""
    seed = os.environ.get(SEED_VARIABLE) or PRACTICE_SEED
    for exercise in exercises.for_assignment(assignment):
        if isinstance(exercise, Exercise):
            _judge.prepare(exercise, seed=seed)
            _judge.prepare(exercise)


def _resolve(
    function_or_name: str | Callable, namespace: Mapping[str, Any]
) -> tuple[Exercise | Keyed, Callable, tuple[str, str] | None]:
    """Return the exercise, the function, and what keeps it from being judged: state, sentence."""
    by_name = isinstance(function_or_name, str)
    name = function_or_name if by_name else getattr(function_or_name, "__name__", "")
    exercise = exercises.get(name)
    try:
        function = namespace[name] if by_name else function_or_name
    except KeyError:
        problem = "not run yet", f"run the cell that defines {name}, then this one."
        return exercise, check, problem
    if not callable(function):
        kind = type(function).__name__
        return exercise, check, ("not a function", f"{name} is {kind!r} here, expected a function.")
    return exercise, function, None


def _unready(exercise: Exercise | Keyed, state: str, sentence: str, mode: str) -> Report:
    line = f"{exercise.name}: {state}: {sentence}"
    return Report(exercise.name, 0.0, exercise.points, (), (line,), mode, state)


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
    score = f"{points:g} of {points_text(exercise.points)}{replaced}"
    if not failing:
        line = f"{exercise.name}: {score}. {_count_text(results, mode)}"
        return Report(exercise.name, points, exercise.points, (), (line,), mode)
    if len(failing) == len(results) and {_state(result) for result in failing} == {
        "not written yet"
    }:
        return _unready(exercise, "not written yet", f"{failing[0].fault}.", mode)

    names = [result.criterion.name for result in failing]
    alike = next((r for r in shown if not r.passed and r.criterion.name in names), None)
    state = _state(alike or failing[0])
    if alike:
        call = call_text(exercise.name, alike.case)
        lines = [f"{call} {SAYS[state]}: {score}.", "; ".join(alike.failure.lines)]
    else:
        lines = [
            f"{exercise.name} {SAYS[state]}: {score}.",
            "It fails on cases drawn for grading alone; no visible case shows it.",
        ]
    ideas, resembled, diagnosis = _diagnosis(exercise, results, seed)
    lines += [diagnosis] if diagnosis else []
    lines.append(_count_text(results, mode))
    site = _site(function)
    lines.append(reading((resembled or ideas or [exercise])[0].section, site))
    return Report(
        exercise.name,
        points,
        exercise.points,
        tuple(idea.name for idea in ideas),
        tuple(lines),
        mode,
        state,
        *(_judge.copied((alike.case.args, alike.case.kwargs)) if alike else ((), {})),
        site,
    )


def _site(function: Callable) -> str:
    """Return the book's address, which the first cell of a notebook holds, or nothing."""
    site = getattr(function, "__globals__", {}).get("SITE")
    known = isinstance(site, str) and re.fullmatch(r"https?://[\w.:/~-]+", site)
    return site.rstrip("/") if known else ""


def _state(result: Result) -> str:
    """Return in one or a few words how a criterion fails."""
    if result.fault:
        return result.fault.kind
    kinds = {"refusal": "not refused", "unchanged": "changes its input"}
    return kinds.get(result.criterion.kind, "wrong")


def _attempt(
    exercise: Exercise, function: Callable, seed: str | int | None, mode: str
) -> tuple[list[Result], list[Result]]:
    """Return the results that count, and those that may be shown."""
    results = _judged(exercise, function, seed)
    if mode != "graded" or all(result.passed for result in results):
        return results, results
    return results, _judged(exercise, function, None)


def _judged(exercise: Exercise, function: Callable, seed: str | int | None) -> list[Result]:
    """Judge a function, once where it stays in another process that knows nothing of it."""
    known = function.found() if isinstance(function, Elsewhere) else {}
    key = exercise.name, seed
    if key not in known:
        known[key] = _judge.judge(exercise, function, seed=seed, guard=Guard(exercise))
    return known[key]


def _count_text(results: list[Result], mode: str) -> str:
    failing = [result.criterion.name for result in results if not result.passed]
    right, count = len(results) - len(failing), len(results)
    passing = f"{right} of {count}" + (
        " visible checks pass" if mode == "visible" else " checks pass"
    )
    gates = [r.criterion.name for r in results if r.criterion.gate and not r.passed]
    if right and gates:
        passing += f", but nothing counts before this: {listed(gates)}"
    elif right and not any(r.passed and r.criterion.kind == "value" for r in results):
        passing += ", but count only once a check of values does"
    if mode == "visible":
        passing += f"; grading runs the same {count} on new cases."
    else:
        seed = "the course's seed" if mode == "graded" else "the practice seed, not the course's"
        passing += f"; the cases are drawn from {seed}."
    return f"Not right yet: {listed(failing)}. {passing}" if failing else passing


def _diagnosis(
    exercise: Exercise, results: list[Result], seed: str | int | None
) -> tuple[list[Misconception], list[Misconception], str]:
    """Return the ideas recognised, those that show in the first failure alone, and sentences."""
    explained = _judge.recognise(exercise, results, seed=seed)
    # The idea that explains the call shown comes first.
    first = next(index for index, result in enumerate(results) if not result.passed)
    ideas = [item for item in exercise.misconceptions if item.name in explained]
    ideas.sort(key=lambda item: first not in explained[item.name])
    named = bool(ideas) and first in explained[ideas[0].name]
    names = [] if named else _judge.resembles(exercise, results, seed=seed)
    alike = [item for item in exercise.misconceptions if item.name in names][:2]
    sentences = [resembling(alike)] if alike else []
    sentences += [recognised(ideas, explained)] if ideas else []
    return ideas, alike, " ".join(sentences)


def _keyed_report(task: Keyed, function: Callable, key: Key | None, mode: str) -> Report:
    """Judge the answers of a task whose key lies in the instructor's notebook alone."""

    def report(points: float, state: str, *lines: str) -> Report:
        return Report(task.name, points, task.points, (), lines, mode, state)

    try:
        answers = Guard(task).call(function, (), {})
    except CallFault as fault:
        if fault.kind == "not written yet":
            return _unready(task, fault.kind, f"{fault}.", mode)
        return report(
            0.0, fault.kind, f"{task.name}() {SAYS[fault.kind]}.", f"{fault.kind}: {fault}"
        )
    if not isinstance(answers, Mapping):
        kind = type(answers).__name__
        return report(0.0, "wrong", f"{task.name}() is wrong.", f"expected a dict, got {kind!r}")
    given = {_word(label): _word(answer) for label, answer in answers.items()}
    open_ = [label for label in task.labels if given.get(label) not in task.words]
    words = ", ".join(task.words[:-1]) + f" or {task.words[-1]}"
    shown = [label + (f" ({given[label]!r})" if given.get(label) else "") for label in open_]
    missing = f"Without one of the words {words}: {', '.join(shown)}." if open_ else ""
    if key is None:
        head = f"{task.name}: {len(task.labels) - len(open_)} of {len(task.labels)} answered"
        if open_:
            return report(0.0, "wrong", f"{head}.", missing)
        return report(0.0, "answered", f"{head}; the course holds the key and counts the points.")
    wrong = [label for label in task.labels if given.get(label) != _word(key[label][0])]
    points = task.points_each * (len(task.labels) - len(wrong))
    lines = [f"{task.name}: {points:g} of {points_text(task.points)}."]
    lines += [
        f"{label}: yours is {given[label]!r}, the verdict is {key[label][0]!r}: {key[label][1]}"
        for label in wrong
        if label not in open_
    ]
    lines += [missing] if missing else []
    return report(points, "wrong" if wrong else "right", *lines)


def _word(answer: Any) -> str:
    return str(answer).strip().lower()


@contextmanager
def _right_dependencies(exercise: Exercise, function: Callable) -> Iterator[list[str]]:
    """Put right functions in place of earlier ones of the notebook that fail and are called."""
    namespace = getattr(function, "__globals__", {})
    elsewhere = isinstance(function, Elsewhere)
    used = function.called_names() if elsewhere else called_names(function)
    names = []
    for other in exercises.for_assignment(exercise.assignment):
        if other.name == exercise.name:
            break
        if other.name in exercise.off_limits or isinstance(other, Keyed):
            continue
        if other.name in used and not _is_right(other, namespace):
            names.append(other.name)
    replaced = namespace.replaced if elsewhere else partial(_replaced, namespace)
    with replaced({name: _right(exercises.get(name)) for name in names}):
        yield names


@contextmanager
def _replaced(namespace: dict[str, Any], functions: dict[str, Callable]) -> Iterator[None]:
    """Put functions into a notebook for a while."""
    kept = {name: namespace[name] for name in functions if name in namespace}
    namespace.update(functions)
    try:
        yield
    finally:
        for name in functions:
            del namespace[name]
        namespace.update(kept)


def _is_right(exercise: Exercise, namespace: dict[str, Any]) -> bool:
    """Return whether a notebook's function earns all points; one that is missing does not."""
    mine = namespace.get(exercise.name)
    if not callable(mine):
        return False
    return _judge.earned(_judged(exercise, mine, None)) == exercise.points


def _right(exercise: Exercise) -> Callable:
    """Return the reference in a form that a candidate may call."""

    @wraps(exercise.reference)
    def right(*args: Any, **kwargs: Any) -> Any:
        with lifted():
            return exercise.reference(*args, **kwargs)

    return right
