"""How hard the graders are: the wrong ideas they catch and name, the right forms they accept."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from posenc.exercises import EXERCISES, Exercise
from posenc.grading import _judge
from posenc.grading._guard import Guard

# The judge's word for the visible cases is None.
Seed = str | None
Results = list[_judge.Result]
COLUMNS = ("function", "points", "mutants", "killed", "variants", "accepted", "diagnosis right")


@dataclass(frozen=True)
class Row:
    """What the graders make of one function's catalogue.

    Attributes
    ----------
    function : str
        Its name.
    points : float
        What it earns.
    mutants, killed : int
        Wrong implementations, and those that lose points on the visible cases and with every seed.
    variants, accepted : int
        Right implementations, the reference among them, and those that get full points every time.
    diagnosed : int
        Wrong implementations that are named every time, and nothing else; where two cannot be told
        apart by any output, both.
    survivors : tuple of str
        Names of the wrong implementations that keep all points at least once.
    problems : tuple of str
        All that went otherwise than it should, in sentences.
    """

    function: str
    points: float
    mutants: int
    killed: int
    variants: int
    accepted: int
    diagnosed: int
    survivors: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def table(seeds: int = 20, *, progress: Callable[[str], object] | None = None) -> list[Row]:
    """Judge every wrong and every right implementation of the catalogue.

    Parameters
    ----------
    seeds : int, default 20
        How many times graded cases are drawn, beside the visible ones.
    progress : callable, optional
        Called with the name of each function before it is judged.

    Returns
    -------
    list of Row
        One for each graded function.

    Examples
    --------
    >>> rows = table(seeds=0)
    >>> all(row.killed == row.mutants and row.accepted == row.variants for row in rows)
    True
    """
    drawn = [None, *(f"hardness {number}" for number in range(1, seeds + 1))]
    rows = []
    for exercise in EXERCISES.values():
        if progress:
            progress(exercise.name)
        rows.append(_row(exercise, drawn))
    return rows


def formatted(rows: Sequence[Row]) -> str:
    """Return the table as text, with a line of totals.

    Parameters
    ----------
    rows : sequence of Row
        What :func:`table` returned.

    Returns
    -------
    str
        One line for each function.

    Examples
    --------
    >>> print(formatted([Row("rope", 9.0, 40, 40, 9, 9, 40)]))
    function  points  mutants  killed  variants  accepted  diagnosis right
    rope           9       40      40         9         9               40
    total          9       40      40         9         9               40
    """
    lines = [
        (
            row.function,
            row.points,
            row.mutants,
            row.killed,
            row.variants,
            row.accepted,
            row.diagnosed,
        )
        for row in rows
    ]
    totals = [sum(column) for column in list(zip(*lines, strict=True))[1:]]
    cells = [
        [f"{cell:g}" if isinstance(cell, float) else str(cell) for cell in line]
        for line in (COLUMNS, *lines, ("total", *totals))
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])])
        for line in cells
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, and what went wrong.

    Parameters
    ----------
    arguments : sequence of str, optional
        Words of the command line.

    Returns
    -------
    int
        Exit status: 1 if a wrong implementation keeps its points or is misnamed, or a right one
        loses some.
    """
    parser = argparse.ArgumentParser(prog="python -m posenc.grading.hardness", description=__doc__)
    parser.add_argument(
        "--seeds",
        type=_count,
        default=20,
        metavar="N",
        help="how many times graded cases are drawn, beside the visible ones (default 20)",
    )
    seeds = parser.parse_args(arguments).seeds
    on_terminal = sys.stderr.isatty()
    names = list(EXERCISES)

    def progress(name: str) -> None:
        line = f"{names.index(name) + 1} of {len(names)}: {name}"
        print(f"\r{line:60}", end="", file=sys.stderr, flush=True)

    rows = table(seeds, progress=progress if on_terminal else None)
    if on_terminal:
        print(f"\r{'':60}\r", end="", file=sys.stderr, flush=True)
    print(formatted(rows))
    problems = [f"{row.function}: {problem}" for row in rows for problem in row.problems]
    if problems:
        print("", *problems, sep="\n")
    return 1 if problems else 0


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number of seeds, got {text!r}")
    return int(text)


def _row(exercise: Exercise, seeds: Sequence[Seed]) -> Row:
    # Judged once, by the judge itself, which needs them to recognise anything.
    wrong = {seed: _judge._wrong_results(exercise.name, seed) for seed in seeds}
    right = {**exercise.variants, "the reference": exercise.reference}
    survived = dict(_survivors(exercise, wrong))
    rejected = dict(_rejected(exercise, right, seeds))
    misnamed = dict(_misnamed(exercise, wrong))
    return Row(
        exercise.name,
        exercise.points,
        mutants=len(exercise.misconceptions),
        killed=len(exercise.misconceptions) - len(survived),
        variants=len(right),
        accepted=len(right) - len(rejected),
        diagnosed=len(exercise.misconceptions) - len(misnamed),
        survivors=tuple(survived),
        problems=(*survived.values(), *rejected.values(), *misnamed.values()),
    )


def _survivors(
    exercise: Exercise, wrong: dict[Seed, dict[str, Results]]
) -> Iterator[tuple[str, str]]:
    for seed, by_name in wrong.items():
        for name, results in by_name.items():
            if _judge.earned(results) >= exercise.points:
                yield name, f"the mutant {name!r} keeps all its points {_on(seed)}"


def _rejected(
    exercise: Exercise, right: dict[str, Callable], seeds: Sequence[Seed]
) -> Iterator[tuple[str, str]]:
    for name, function in right.items():
        for seed in seeds:
            results = _judge.judge(exercise, function, seed=seed, guard=Guard(None))
            failed = next((result for result in results if not result.passed), None)
            if failed:
                where = f"{failed.criterion.name!r} {_on(seed)}: {failed.failure}"
                yield name, f"the variant {name!r} loses points for {where}"
                break


def _misnamed(
    exercise: Exercise, wrong: dict[Seed, dict[str, Results]]
) -> Iterator[tuple[str, str]]:
    for name in (misconception.name for misconception in exercise.misconceptions):
        expected = {other for other in wrong[None] if _never_apart(exercise, wrong, name, other)}
        for seed, by_name in wrong.items():
            named = set(_judge.recognise(exercise, by_name[name], seed=seed))
            if named != expected:
                called = " or ".join(map(repr, sorted(named))) or "nothing known"
                yield name, f"the mutant {name!r} is called {called} {_on(seed)}"
                break


def _never_apart(
    exercise: Exercise, wrong: dict[Seed, dict[str, Results]], one: str, two: str
) -> bool:
    return one == two or all(
        _judge.same_observations(exercise, first, second)
        for by_name in wrong.values()
        for first, second in zip(by_name[one], by_name[two], strict=True)
    )


def _on(seed: Seed) -> str:
    return "on the visible cases" if seed is None else f"with the seed {seed!r}"


if __name__ == "__main__":
    sys.exit(main())
