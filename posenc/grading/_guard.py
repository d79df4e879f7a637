"""Running a student's function: bounded in time, silent, and kept off the answers.

Nothing here exists on POSIX alone; it works in a notebook on Windows.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import random
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import monotonic
from types import CodeType, FrameType
from typing import Any

import numpy as np

import posenc
from posenc import exercises

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


class CallFault(Exception):  # noqa: N818 - a finding about the student's work, not an error of ours
    """A call that did not return: ``kind`` names what happened in the report's words."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class _TooSlow(BaseException):
    """Raised inside a call that used up its time."""


class _OffLimits(BaseException):
    """Raised inside a call that reaches for a function it is asked to write, or told not to use."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class _Discard(io.TextIOBase):
    """A text stream that keeps nothing, however much is printed."""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        return len(text)


@dataclass
class Guard:
    """Limits for the calls of one judgement.

    Attributes
    ----------
    exercise : Exercise, Keyed or None
        Whose answers are off limits; None lifts that ban, for functions of our own.
    own_off_limits : frozenset of code
        The student's own functions that may not be called.
    call_seconds, total_seconds : float
        Time for one call, and for all calls together.
    """

    exercise: exercises.Exercise | exercises.Keyed | None
    own_off_limits: frozenset[CodeType] = frozenset()
    call_seconds: float = 5.0
    total_seconds: float = 20.0
    _spent: float = 0.0

    def call(self, function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Call the function; raise :class:`CallFault` if it does not return."""
        left = min(self.call_seconds, self.total_seconds - self._spent)
        if left <= 0:
            raise CallFault("too slow", f"no time was left after {self.total_seconds:g} seconds")
        watch = _Watch(self.exercise, self.own_off_limits)
        args = tuple(watch.permit(value) for value in args)
        kwargs = {name: watch.permit(value) for name, value in kwargs.items()}
        started = monotonic()
        try:
            with _quiet(), watch, _deadline(left) if self.exercise else contextlib.nullcontext():
                return function(*args, **kwargs)
        except _TooSlow:
            # A student waits for this report, so the other calls of endless code get less.
            self.total_seconds = min(self.total_seconds, self._spent + left + 3.0)
            self.call_seconds = 1.0
            raise CallFault("too slow", f"still running after {left:.3g} seconds") from None
        except _OffLimits as error:
            raise CallFault(error.kind, str(error)) from None
        except NotImplementedError:
            raise CallFault("not written yet", "its cell raises NotImplementedError") from None
        except MemoryError:
            raise CallFault("out of memory", "it asked for more memory than there is") from None
        except SystemExit:
            raise CallFault("crash", "it calls exit") from None
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            text = str(error).strip().splitlines()
            shown = f"{type(error).__name__}: {text[0][:160]}" if text else type(error).__name__
            raise CallFault("crash", shown) from error
        finally:
            self._spent += monotonic() - started


class _Watch:
    """While active, a call to an answer raises; functions passed in as arguments may do so."""

    def __init__(
        self,
        exercise: exercises.Exercise | exercises.Keyed | None,
        own_off_limits: frozenset[CodeType] = frozenset(),
    ) -> None:
        self._own = own_off_limits
        self._files, self._allowed, self._later = (
            _answers(exercise.assignment) if exercise else (frozenset(),) * 3
        )
        self._previous: Any = None
        self._caught: tuple[str, str] | None = None

    def permit(self, value: Any) -> Any:
        """Wrap a function that we pass in, so that it may use what the candidate may not."""
        if not self._files or not callable(value) or isinstance(value, type):
            return value

        def permitted(*args: Any, **kwargs: Any) -> Any:
            with lifted():
                return value(*args, **kwargs)

        return permitted

    def __enter__(self) -> None:
        self._previous = sys.getprofile()
        if self._files:
            sys.setprofile(self._profile)

    def __exit__(self, *_: object) -> None:
        if self._files:
            sys.setprofile(self._previous)
        if self._caught:
            # Also where the candidate swallowed the exception.
            raise _OffLimits(*self._caught)

    def _profile(self, frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event != "call":
            return
        if code in self._own:
            self._caught = (
                "calls what is off limits",
                f"it calls your {code.co_name}, and this task asks you to do without",
            )
        elif code in self._later or (code.co_filename in self._files and code not in self._allowed):
            self._caught = (
                "calls the reference",
                f"it calls posenc's {code.co_name}, which is what you are asked to write",
            )
        else:
            return
        raise _OffLimits(*self._caught)


@contextlib.contextmanager
def lifted() -> Iterator[None]:
    """Let the answers be called for a while, by functions of ours that a candidate was given."""
    profile = sys.getprofile()
    sys.setprofile(None)
    try:
        yield
    finally:
        sys.setprofile(profile)


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


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Discard prints and warnings, which cost a student nothing."""
    sink = _Discard()
    with (
        contextlib.redirect_stdout(sink),
        contextlib.redirect_stderr(sink),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    """Raise ``_TooSlow`` in this thread once the time is up, again and again until it ends."""
    thread = ctypes.c_ulong(threading.get_ident())
    set_exception = ctypes.pythonapi.PyThreadState_SetAsyncExc
    running, firing, done = threading.Lock(), threading.Lock(), []

    def interrupt() -> None:
        wait = seconds
        while not running.acquire(timeout=wait):
            with firing:
                if not done:
                    set_exception(thread, ctypes.py_object(_TooSlow))
            # More than once, for code that swallows every exception.
            wait = 0.2

    def settle() -> None:
        """Stop the clock, and take an exception that is still on its way."""
        while True:
            try:
                with firing:
                    done.append(True)
                # A pending exception arrives in this loop. To withdraw it instead (by setting
                # None) makes CPython 3.11 spin forever while a profile function is set.
                for _ in range(100):
                    pass
                return
            except _TooSlow:
                continue

    running.acquire()
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        yield
    finally:
        settle()
        running.release()


@contextlib.contextmanager
def random_state_kept() -> Iterator[None]:
    """Leave Python's and NumPy's global generators as they were."""
    python_state = random.getstate()
    numpy_state = np.random.get_state()  # noqa: NPY002 - the global state is what is kept
    try:
        yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)  # noqa: NPY002
