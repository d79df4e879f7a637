"""The limits of one judgement: time, and the answers that a candidate may not call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import monotonic
from types import CodeType
from typing import Any

import posenc
from posenc import exercises
from posenc.grading import _limits
from posenc.grading._limits import CallFault, Watch, called_names, lifted

PACKAGE = Path(posenc.__file__).parent
# The modules that hold each chapter's references. A test sees to it that none is forgotten.
CHAPTER_MODULES = {
    1: ("attention",),
    2: ("sinusoidal",),
    3: ("rotation",),
    4: ("learned", "rotary"),
    # Not graded yet, so off limits in all chapters that are.
    6: ("bias",),
    7: ("scaling", "lab"),
    8: ("precision",),
}


@dataclass(frozen=True)
class Answer:
    """A call that was made before.

    Attributes
    ----------
    give : callable
        Changes the arguments as that call did, and returns or raises what it did.
    changes : bool
        Whether it changed any.
    """

    give: Callable[[tuple, dict[str, Any]], Any]
    changes: bool


class Elsewhere(ABC):
    """A function in another process, which holds no answers and sets the limits itself.

    Its ``__globals__`` is the notebook that it belongs to, with a method ``replaced(functions)``
    that puts functions into it for a ``with`` block.
    """

    @abstractmethod
    def call_bounded(
        self, args: tuple, kwargs: dict[str, Any], *, seconds: float, off_limits: tuple[str, ...]
    ) -> Any:
        """Call it, and change the arguments as it does; raise :class:`CallFault` if it fails."""

    @abstractmethod
    def call_many(
        self,
        calls: list[tuple[tuple, dict[str, Any]]],
        *,
        seconds: float,
        total: float,
        off_limits: tuple[str, ...],
    ) -> list[Answer]:
        """Make calls in one go, until one is too slow; none counts where its process ends by it."""

    @abstractmethod
    def slow(self, now: bool = False) -> bool:
        """Return whether it ever used up its time; take note if it does now."""

    @abstractmethod
    def found(self) -> dict[Any, Any]:
        """Return what was found about it, as long as it can't be different by now."""

    @abstractmethod
    def called_names(self) -> set[str]:
        """Return the global names that it uses, directly or through its notebook."""


@dataclass
class Guard:
    """Limits for the calls of one judgement.

    Attributes
    ----------
    exercise : Exercise, Keyed or None
        Whose answers are off limits; None lifts that ban, for functions of our own.
    call_seconds, total_seconds : float
        Time for one call, and for all calls together.
    """

    exercise: exercises.Exercise | exercises.Keyed | None
    call_seconds: float = 5.0
    total_seconds: float = 20.0
    _spent: float = 0.0
    _unwritten: str = ""

    def ahead(self, function: Callable, calls: list[tuple[tuple, dict[str, Any]]]) -> list[Answer]:
        """Make calls of a function elsewhere together, as many as come to an end in time."""
        if not isinstance(function, Elsewhere) or self._spent or function.slow():
            return []
        started = monotonic()
        answers = function.call_many(
            calls,
            seconds=self.call_seconds,
            total=self.total_seconds,
            off_limits=self._names_off_limits(),
        )
        if answers:
            self._spent += monotonic() - started
        return answers

    def take(self, answer: Answer, function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Do what :meth:`call` does, for a call that was made ahead."""
        if self._unwritten:
            raise CallFault("not written yet", self._unwritten)
        try:
            return answer.give(args, kwargs)
        except CallFault as fault:
            self._note(fault, function, 0.0)
            raise

    def call(self, function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Call the function; raise :class:`CallFault` if it does not return."""
        if isinstance(function, Elsewhere) and not self._spent and function.slow():
            # It had its time when it was judged before.
            self.call_seconds, self.total_seconds = 1.0, 2.0
        left = min(self.call_seconds, self.total_seconds - self._spent)
        if self._unwritten:
            raise CallFault("not written yet", self._unwritten)
        if left <= 0:
            raise CallFault("too slow", f"no time was left after {self.total_seconds:g} seconds")
        started = monotonic()
        try:
            return self._call(function, args, kwargs, left)
        except CallFault as fault:
            self._note(fault, function, left)
            raise
        finally:
            self._spent += monotonic() - started

    def _note(self, fault: CallFault, function: Callable, seconds: float) -> None:
        """Take from a fault what it says about the calls to come."""
        elsewhere = isinstance(function, Elsewhere)
        if fault.kind == "too slow":
            # A student waits for this report, so the other calls of endless code get less.
            self.total_seconds = min(self.total_seconds, self._spent + seconds + 3.0)
            self.call_seconds = 1.0
            if elsewhere:
                function.slow(now=True)
        elif fault.kind == "not written yet":
            names = function.called_names() if elsewhere else called_names(function)
            if names == {"NotImplementedError"}:
                # Nothing else is in it, so no other call will find more.
                self._unwritten = str(fault)

    def _call(self, function: Callable, args: tuple, kwargs: dict[str, Any], left: float) -> Any:
        if not self.exercise:
            return _limits.call(function, args, kwargs, seconds=None, watch=Watch())
        if isinstance(function, Elsewhere):
            names = self._names_off_limits()
            return function.call_bounded(args, kwargs, seconds=left, off_limits=names)
        namespace = getattr(function, "__globals__", {})
        own = map(namespace.get, self._names_off_limits())
        watch = Watch(own, *_answers(self.exercise.assignment))
        args = tuple(map(_permitted, args))
        kwargs = {name: _permitted(value) for name, value in kwargs.items()}
        return _limits.call(function, args, kwargs, seconds=left, watch=watch)

    def _names_off_limits(self) -> tuple[str, ...]:
        return getattr(self.exercise, "off_limits", ())


def _permitted(value: Any) -> Any:
    """Wrap a function that we pass in, so that it may use what the candidate may not."""
    if not callable(value) or isinstance(value, type):
        return value

    def permitted(*args: Any, **kwargs: Any) -> Any:
        with lifted():
            return value(*args, **kwargs)

    return permitted


@cache
def _answers(
    assignment: str,
) -> tuple[frozenset[str], frozenset[CodeType], frozenset[CodeType]]:
    """Return the files whose functions are off limits, those in them that are not, and others."""
    chapter = exercises.ASSIGNMENTS[assignment].chapter
    files = {
        str(PACKAGE / f"{module}.py")
        for number, modules in CHAPTER_MODULES.items()
        if number >= chapter
        for module in modules
    }
    files |= {str(path) for path in (PACKAGE / "exercises").glob("ch*.py")}
    earlier, later = set(), set()
    for other in exercises.EXERCISES.values():
        known = exercises.ASSIGNMENTS[other.assignment].chapter < chapter
        (earlier if known else later).add(other.reference.__code__)
    return frozenset(files), frozenset(earlier), frozenset(later)
