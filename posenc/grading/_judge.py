"""Judging a function on the criteria of its exercise, and recognising misconceptions."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from typing import Any

import numpy as np

from posenc import exercises
from posenc.exercises import Case, Criterion, Exercise, Failure
from posenc.grading._guard import Answer, Elsewhere, Guard
from posenc.grading._limits import CallFault, random_state_kept


@dataclass(frozen=True)
class Observation:
    """What one call did: its value or the kind of fault.

    Where the criterion asks for it, also whether arguments changed.
    """

    value: Any = None
    fault: str | None = None
    changed: bool = False


@dataclass(frozen=True)
class Result:
    """How a function did on one criterion."""

    criterion: Criterion
    failure: Failure | None
    case: Case | None
    fault: CallFault | None
    observations: tuple[Observation, ...]
    right: int
    calls: int

    @property
    def passed(self) -> bool:
        """Whether nothing was found wrong."""
        return self.failure is None

    @property
    def points(self) -> float:
        """What the criterion earns; a share of its points comes in halves, rounded down."""
        if self.criterion.kind == "share":
            return int(2 * self.criterion.points * self.right / self.calls) / 2
        return self.criterion.points if self.passed else 0.0


def judge(
    exercise: Exercise, function: Callable, *, seed: str | int | None = None, guard: Guard
) -> list[Result]:
    """Judge a function on the visible cases, or on those drawn from a seed."""
    known = _known(exercise, seed)
    drawn = known.drawn
    runs = [(at, number) for at, cases in enumerate(drawn) for number in range(len(cases))]
    if seed is not None:
        # A function that counts its calls must not know which comes next.
        _generator(exercise, f"{seed}/order").shuffle(runs)
    # Cases of one call come first, for these can be asked for together.
    runs.sort(key=lambda run: exercise.criteria[run[0]].kind == "property")
    single = [drawn[at][number] for at, number in runs if exercise.criteria[at].kind != "property"]
    here = not isinstance(function, Elsewhere)
    with random_state_kept() if here else nullcontext():
        answers = guard.ahead(function, [(case.args, case.kwargs) for case in single])
        found = {
            (at, number): _run_case(
                exercise, exercise.criteria[at], function, drawn[at][number], guard, known, answer
            )
            for (at, number), answer in zip_longest(runs, answers)
        }
    return [
        _result(criterion, cases, [found[at, number] for number in range(len(cases))])
        for at, (criterion, cases) in enumerate(zip(exercise.criteria, drawn, strict=True))
    ]


def prepare(exercise: Exercise, *, seed: str | int | None = None) -> None:
    """Find out what every judgement needs, before processes are forked that each would have to."""
    known = _known(exercise, seed)
    for criterion, cases in zip(exercise.criteria, known.drawn, strict=True):
        if criterion.kind in ("value", "share"):
            for case in cases:
                known.expected(case)
    with random_state_kept():
        for wrong in _wrong_results(exercise.name, seed).values():
            wrong.begin()


def draw_cases(exercise: Exercise, seed: str | int | None) -> list[Sequence[Case]]:
    """Return the cases of each criterion: the visible ones, or those that a seed draws."""
    if seed is None:
        return [criterion.visible() for criterion in exercise.criteria]
    rng = _generator(exercise, seed)
    return [criterion.drawn(rng) for criterion in exercise.criteria]


class _Cases:
    """The cases of an exercise, and what the reference returns in each, computed once."""

    def __init__(self, exercise: Exercise, seed: str | int | None) -> None:
        self._exercise = exercise
        self.drawn = draw_cases(exercise, seed)
        self._expected: dict[int, Any] = {}

    def expected(self, case: Case) -> Any:
        """Return what the reference returns in one of the cases."""
        if id(case) not in self._expected:
            args, kwargs = copied((case.args, case.kwargs))
            self._expected[id(case)] = self._exercise.reference(*args, **kwargs)
        return self._expected[id(case)]


def _known(exercise: Exercise, seed: str | int | None) -> _Cases:
    ours = exercises.EXERCISES.get(exercise.name) is exercise
    return _known_by_name(exercise.name, seed) if ours else _Cases(exercise, seed)


@lru_cache(maxsize=64)
def _known_by_name(name: str, seed: str | int | None) -> _Cases:
    return _Cases(exercises.get(name), seed)


def _generator(exercise: Exercise, seed: str | int) -> np.random.Generator:
    digest = hashlib.sha256(f"{seed}/{exercise.name}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))


def earned(results: Sequence[Result]) -> float:
    """Return the points: none unless a value check passes, and every check that is a gate."""
    if not any(result.passed and result.criterion.kind == "value" for result in results):
        return 0.0
    if any(result.criterion.gate and not result.passed for result in results):
        return 0.0
    return sum(result.points for result in results)


def recognise(
    exercise: Exercise, results: Sequence[Result], *, seed: str | int | None
) -> dict[str, frozenset[int]]:
    """Return the misconceptions whose wrong behaviour this is, each with the criteria it explains.

    A misconception is recognised where it fails and the candidate does the very same there; one
    that explains less than another is left out.
    """
    failing = {index for index, result in enumerate(results) if not result.passed}
    explained: dict[str, frozenset[int]] = {}
    with random_state_kept():
        for name, wrong in _wrong_results(exercise.name, seed).items():
            alike = set()
            for at in sorted(failing):
                if wrong.does(results[at], at):
                    alike.add(at)
                elif wrong.fails(at, so_far=True):
                    # It fails here by something else; the rest need not be asked for.
                    break
            else:
                wrong_at = {at for at in alike if wrong.fails(at)}
                others = (at for at in range(len(results)) if at not in alike)
                if wrong_at and not any(map(wrong.fails, others)):
                    explained[name] = frozenset(wrong_at)
    refusals = {index for index in failing if results[index].criterion.kind == "refusal"}
    if not earned(results) and all(indices <= refusals for indices in explained.values()):
        # Whatever returns something fails refusals in the same way, an empty answer too.
        return {}
    return {
        name: indices
        for name, indices in explained.items()
        if not any(indices < others for others in explained.values())
    }


def resembles(
    exercise: Exercise, results: Sequence[Result], *, seed: str | int | None
) -> list[str]:
    """Return the misconceptions that do the very same in the first criterion that fails.

    Two wrong ideas at once are seldom recognised as a whole, but one often shows in a call.
    """
    at = next(index for index, result in enumerate(results) if not result.passed)
    if any(observation.fault for observation in results[at].observations):
        return []
    if results[at].criterion.kind not in ("value", "share", "property"):
        return []
    with random_state_kept():
        return [
            name
            for name, wrong in _wrong_results(exercise.name, seed).items()
            if wrong.does(results[at], at) and wrong.fails(at)
        ]


class _WrongResults:
    """How a misconception does on each criterion, found case by case as far as it is asked for."""

    def __init__(self, exercise: Exercise, function: Callable, seed: str | int | None) -> None:
        self._exercise, self._function, self._seed = exercise, function, seed
        self._runs: dict[tuple[int, int], _Run] = {}

    def __len__(self) -> int:
        return len(self._exercise.criteria)

    def __getitem__(self, at: int) -> Result:
        cases = _known(self._exercise, self._seed).drawn[at]
        return _result(self._exercise.criteria[at], cases, list(self._cases(at)))

    def begin(self) -> None:
        """Find what any candidate is compared with first."""
        next(self._cases(0), None)

    def fails(self, at: int, *, so_far: bool = False) -> bool:
        """Return whether it fails a criterion, or is known to by what was found so far."""
        if so_far:
            return any(run.failure for (where, _), run in self._runs.items() if where == at)
        return any(run.failure for run in self._cases(at))

    def does(self, result: Result, at: int) -> bool:
        """Return whether it does the same as a candidate on a criterion."""
        mine = (observation for run in self._cases(at) for observation in run.observations)
        return _same(self._exercise, result.criterion, result.observations, mine)

    def _cases(self, at: int) -> Iterator[_Run]:
        known, criterion = _known(self._exercise, self._seed), self._exercise.criteria[at]
        for number, case in enumerate(known.drawn[at]):
            if (at, number) not in self._runs:
                self._runs[at, number] = _run_case(
                    self._exercise, criterion, self._function, case, Guard(None), known
                )
            yield self._runs[at, number]


@lru_cache(maxsize=64)
def _wrong_results(name: str, seed: str | int | None) -> dict[str, _WrongResults]:
    exercise = exercises.get(name)
    return {
        misconception.name: _WrongResults(exercise, misconception.function, seed)
        for misconception in exercise.misconceptions
    }


@dataclass(frozen=True)
class _Run:
    """What one case showed."""

    observations: tuple[Observation, ...]
    failure: Failure | None = None
    fault: CallFault | None = None


def _run_case(
    exercise: Exercise,
    criterion: Criterion,
    function: Callable,
    case: Case,
    guard: Guard,
    known: _Cases,
    answer: Answer | None = None,
) -> _Run:
    """Run one case, or take the answer if it was asked for before, and write its calls down."""
    observations: list[Observation] = []
    candidate = _Candidate(exercise, criterion, function, guard, observations, answer)
    failure = fault = None
    try:
        if criterion.kind in ("value", "share"):
            _compare(exercise, candidate.raw(case), known.expected(case))
        else:
            _CHECKS[criterion.kind](criterion, candidate, case)
    except Failure as found:
        failure = found
    except CallFault as found:
        failure, fault = _fault_failure(found), found
    return _Run(tuple(observations), failure, fault)


def _result(criterion: Criterion, cases: Sequence[Case], runs: Sequence[_Run]) -> Result:
    """Return every case's calls, so that functions can be compared, and the first failure."""
    wrong = [(run, case) for run, case in zip(runs, cases, strict=True) if run.failure]
    observations = tuple(observation for run in runs for observation in run.observations)
    right = len(cases) - len(wrong)
    if not wrong:
        return Result(criterion, None, None, None, observations, right, len(cases))
    first, failing_case = wrong[0]
    failure = first.failure
    if criterion.kind == "share":
        labels = listed([case.label for _, case in wrong])
        failure = Failure(*failure.lines, f"{len(wrong)} of {len(cases)} are not right: {labels}")
    return Result(criterion, failure, failing_case, first.fault, observations, right, len(cases))


class _Candidate:
    """The function under test: calls get copies of the arguments, and are written down."""

    def __init__(
        self,
        exercise: Exercise,
        criterion: Criterion,
        function: Callable,
        guard: Guard,
        observations: list[Observation],
        answer: Answer | None,
    ) -> None:
        self._exercise, self._criterion = exercise, criterion
        self._function, self._answer = function, answer
        self._guard, self._observations = guard, observations

    def raw(self, case: Case) -> Any:
        """Call and return whatever comes back."""
        args, kwargs = case.args, case.kwargs
        changes = not self._answer or self._answer.changes
        if changes:
            args, kwargs = copied((args, kwargs))
        try:
            if self._answer:
                value = self._guard.take(self._answer, self._function, args, kwargs)
            else:
                value = self._guard.call(self._function, args, kwargs)
        except CallFault as fault:
            cause = type(fault.__cause__).__name__ if fault.__cause__ else ""
            self._observations.append(Observation(fault=f"{fault.kind} {cause}"))
            raise
        changed = False
        if changes and self._criterion.kind == "unchanged":
            changed = not _identical((args, kwargs), (case.args, case.kwargs))
        self._observations.append(Observation(value=value, changed=changed))
        return value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call and return float64 arrays of the reference's shape."""
        case = Case(args, kwargs)
        again, options = copied((args, kwargs))
        expected = self._exercise.reference(*again, **options)
        return _shaped(self.raw(case), expected)


def copied(value: Any) -> Any:
    """Return a deep copy of arguments; what can't change, and arrays, take no detour."""
    return _copied(value, {})


def _copied(value: Any, made: dict[int, Any]) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, float, complex, str):
        return value
    if id(value) in made:
        return made[id(value)]
    if kind is np.ndarray and value.dtype != object:
        new: Any = value.copy(order="K")
    elif kind is tuple:
        return tuple(_copied(item, made) for item in value)
    elif kind is list:
        new = [_copied(item, made) for item in value]
    elif kind is dict:
        new = {name: _copied(item, made) for name, item in value.items()}
    else:
        return copy.deepcopy(value, made)
    made[id(value)] = new
    return new


def _compare(exercise: Exercise, got: Any, expected: Any) -> None:
    if exercise.same:
        exercise.same(got, expected)
    else:
        compare(got, expected, atol=exercise.atol, rtol=exercise.rtol)


def _check_property(criterion: Criterion, candidate: _Candidate, case: Case) -> None:
    assert criterion.test is not None
    criterion.test(candidate, *case.args, **case.kwargs)


def _check_refusal(_criterion: Criterion, candidate: _Candidate, case: Case) -> None:
    try:
        candidate.raw(case)
    except CallFault as fault:
        if isinstance(fault.__cause__, ValueError | IndexError):
            return
        raise
    raise Failure("expected a ValueError or an IndexError, but the call returned")


def _check_unchanged(_criterion: Criterion, candidate: _Candidate, case: Case) -> None:
    candidate.raw(case)
    if candidate._observations[-1].changed:
        raise Failure("changes its input: the array passed in holds other numbers afterwards")


_CHECKS: dict[str, Callable[..., None]] = {
    "property": _check_property,
    "refusal": _check_refusal,
    "unchanged": _check_unchanged,
}


def compare(got: Any, expected: Any, *, atol: float, rtol: float) -> None:
    """Raise :class:`Failure` with the place and the size of the first difference."""
    if isinstance(expected, tuple):
        for index, (part, wanted) in enumerate(
            zip(_parts(got, len(expected)), expected, strict=True)
        ):
            try:
                compare(part, wanted, atol=atol, rtol=rtol)
            except Failure as failure:
                raise Failure(f"value {index + 1} of {len(expected)}: {failure}") from None
    elif isinstance(expected, str | bool | np.bool_):
        _compare_word(got, expected)
    elif isinstance(expected, set):
        _compare_set(got, expected)
    else:
        _compare_numbers(got, np.asarray(expected), atol, rtol)


def _compare_word(got: Any, expected: str | bool) -> None:
    kinds = (str,) if isinstance(expected, str) else (bool, np.bool_)
    if not isinstance(got, kinds):
        raise Failure(f"expected {expected!r}, got {_described(got)}")
    if got != expected:
        raise Failure(f"expected {expected!r}, got {kinds[0](got)!r}")


def _compare_set(got: Any, expected: set) -> None:
    try:
        found = {tuple(int(number) for number in item) for item in got}
        whole = all(number == int(number) for item in got for number in item)
    except Exception:
        try:
            shown = f", such as {next(iter(got))!r}"
        except Exception:
            shown = ""
        raise Failure(
            f"expected a set of pairs of integers, got {_described(got)}{shown}"
        ) from None
    if not whole:
        raise Failure("expected pairs of integers, got fractions")
    missing, extra = sorted(expected - found), sorted(found - expected)
    if missing or extra:
        details = [f"expected {len(expected)} in all, got {len(found)}"]
        details += [f"missing {listed(missing, 3)}"] if missing else []
        details += [f"too many {listed(extra, 3)}"] if extra else []
        raise Failure("; ".join(details))


def _compare_numbers(got: Any, wanted: np.ndarray, atol: float, rtol: float) -> None:
    array = _shaped(got, wanted)
    if not _is_close(array, wanted, atol, rtol):
        raise _Difference(array, wanted, atol, rtol, np.asarray(got).dtype)


class _Difference(Failure):
    """Where numbers differ, put into words when somebody reads them, which is seldom."""

    def __init__(
        self, array: np.ndarray, wanted: np.ndarray, atol: float, rtol: float, dtype: np.dtype
    ) -> None:
        Exception.__init__(self)
        self._array, self._wanted, self._atol, self._rtol = array, wanted, atol, rtol
        self._dtype = dtype

    def __str__(self) -> str:
        return "\n".join(self.lines)

    @property
    def lines(self) -> tuple[str, ...]:
        array, wanted, atol = self._array, self._wanted, self._atol
        close = np.isclose(array, wanted, atol=atol, rtol=self._rtol, equal_nan=True)
        not_finite = np.isfinite(wanted) & ~np.isfinite(array)
        shown = not_finite if not_finite.any() else ~close
        first = tuple(int(index) for index in np.argwhere(shown)[0])
        expected = 0.0 if abs(wanted[first]) <= atol else wanted[first]
        difference = f"expected {expected:.6g}, got {array[first]:.6g}"
        if not first:
            return (f"not finite: {difference}" if not_finite.any() else difference,)
        where = f"at {list(first)}: {difference}"
        if not_finite.any():
            details = [
                f"not finite: first {where}",
                f"{not_finite.sum()} of {close.size} entries are nan or infinite",
            ]
        else:
            details = [
                f"first difference {where}",
                f"largest error {np.abs(array - wanted)[~close].max():.3g}",
                f"{(~close).sum()} of {close.size} entries differ",
            ]
        return ("; ".join([*details, f"yours is {self._dtype} of shape {array.shape}"]),)


def _is_close(array: np.ndarray, wanted: np.ndarray, atol: float, rtol: float) -> bool:
    """Return whether all numbers are as wanted; to find those that are not takes longer."""
    if wanted.dtype.kind != "f":
        # The size of an integer may be none that an integer can have.
        wanted = wanted.astype(np.result_type(wanted, 1.0))
    if np.isfinite(array).all() and np.isfinite(wanted).all():
        return bool((np.abs(array - wanted) <= atol + rtol * np.abs(wanted)).all())
    return bool(np.isclose(array, wanted, atol=atol, rtol=rtol, equal_nan=True).all())


def listed(items: Sequence[Any], most: int = 4) -> str:
    """Return items in one line, cut after the first few."""
    rest = len(items) - most
    return "; ".join(map(str, items[:most])) + (f"; and {rest} more" if rest > 0 else "")


def _parts(got: Any, count: int) -> Sequence[Any]:
    several = isinstance(got, tuple | list) or (isinstance(got, np.ndarray) and got.ndim > 0)
    if not several or len(got) != count:
        raise Failure(f"expected {count} values, got {_described(got)}")
    return got


def _shaped(got: Any, expected: Any) -> Any:
    """Return what came back as float64 arrays of the expected shape, or say what it is."""
    if isinstance(expected, tuple):
        parts = _parts(got, len(expected))
        return tuple(_shaped(part, wanted) for part, wanted in zip(parts, expected, strict=True))
    if isinstance(expected, str | bool | set):
        return got
    wanted = np.asarray(expected)
    if got is None:
        raise Failure("expected an array, got None: is there a `return`?")
    try:
        array = np.asarray(got)
    except Exception:
        raise Failure(f"expected an array of shape {wanted.shape}, got {_described(got)}") from None
    wanted_kind = "real numbers" if wanted.ndim else "a real number"
    if array.dtype.kind not in "biufc":
        raise Failure(f"expected {wanted_kind}, got dtype {array.dtype} ({_described(got)})")
    if array.shape != wanted.shape:
        raise Failure(f"expected shape {wanted.shape}, got shape {array.shape} of {array.dtype}")
    if array.dtype.kind in "bc":
        raise Failure(f"expected {wanted_kind}, got dtype {array.dtype} ({_described(got)})")
    return array.astype(np.float64)


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    if isinstance(value, tuple | list | set):
        return f"a {type(value).__name__} of {len(value)}"
    if value is None:
        return "None"
    kind = type(value).__name__
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _fault_failure(fault: CallFault) -> Failure:
    return Failure(f"{fault.kind}: {fault}")


def _identical(first: Any, second: Any) -> bool:
    if isinstance(first, tuple | list):
        return len(first) == len(second) and all(map(_identical, first, second))
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(_identical(first[k], second[k]) for k in first)
    if isinstance(first, np.ndarray):
        return np.array_equal(first, second, equal_nan=first.dtype.kind == "f")
    return callable(first) or bool(first == second)


def same_observations(exercise: Exercise, first: Result, second: Result) -> bool:
    """Return whether two functions did the same on a criterion."""
    return _same(exercise, first.criterion, first.observations, second.observations)


def _same(
    exercise: Exercise,
    criterion: Criterion,
    first: Iterable[Observation],
    second: Iterable[Observation],
) -> bool:
    """Return whether calls did the same, as far as a criterion looks."""

    def alike(one: Observation | None, two: Observation | None) -> bool:
        if one is None or two is None:
            return False
        if criterion.kind == "refusal":
            return (one.fault is None) == (two.fault is None)
        if criterion.kind == "unchanged":
            return one.changed == two.changed
        if one.fault or two.fault:
            return one.fault == two.fault
        return _equal_values(exercise, one.value, two.value)

    return all(alike(one, two) for one, two in zip_longest(first, second))


def _equal_values(exercise: Exercise, one: Any, two: Any) -> bool:
    if isinstance(two, tuple) and not exercise.same:
        return (
            isinstance(one, tuple | list)
            and len(one) == len(two)
            and all(
                _equal_values(exercise, first, second)
                for first, second in zip(one, two, strict=True)
            )
        )
    try:
        if isinstance(two, str | bool | np.bool_ | set | tuple) or exercise.same:
            _compare(exercise, one, two)
            return True
        wanted = np.asarray(two)
        return _is_close(_shaped(one, wanted), wanted, exercise.atol, exercise.rtol)
    except Failure:
        return False
