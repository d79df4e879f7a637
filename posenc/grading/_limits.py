"""One call of a function that nobody trusts: bounded in time, silent, its faults in words.

It runs where student code runs, in a notebook on Windows too, so it knows no answers.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import random
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType, FunctionType
from typing import Any, NoReturn

import numpy as np

# Within so many seconds.
Limit = Callable[[float], contextlib.AbstractContextManager]


class CallFault(Exception):  # noqa: N818 - a finding about the student's work, not an error of ours
    """A call that did not return: ``kind`` names what happened in the report's words."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class TooSlow(BaseException):
    """Raised inside a call that used up its time."""


class OffLimits(BaseException):
    """Raised inside a call that reaches for a function it is asked to write, or told not to use."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Discard(io.TextIOBase):
    """A text stream that keeps nothing, however much is printed."""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        return len(text)


class Watch:
    """While active, a call to an answer raises.

    Parameters
    ----------
    own : iterable
        What the student's own notebook has under names that may not be called; functions are
        watched.
    files : frozenset of str
        Files whose functions are off limits.
    allowed, later : frozenset of code
        Functions in those files that are not, and functions elsewhere that are.
    """

    # What a masked function of the reference noted, so that to swallow its exception is no help.
    reached: OffLimits | None = None

    def __init__(
        self,
        own: Iterable[Any] = (),
        files: frozenset[str] = frozenset(),
        allowed: frozenset[CodeType] = frozenset(),
        later: frozenset[CodeType] = frozenset(),
    ) -> None:
        own = (getattr(value, "__func__", value) for value in own)
        self._own = {each: each.__code__ for each in own if isinstance(each, FunctionType)}
        self._files, self._allowed, self._later = files, allowed, later
        self._previous: Any = None
        self._caught: tuple[str, str] | None = None

    def __enter__(self) -> None:
        if Watch.reached:
            # Only then, for Python forgets what it knows about a class that changes.
            Watch.reached = None
        self._previous = sys.getprofile()
        if self._files:
            sys.setprofile(self._profile)
        # Quicker than to look at every call, of which a loop over numbers makes many.
        for function, code in self._own.items():
            function.__code__ = _told(code, _Own(self, code.co_name))

    def __exit__(self, *_: object) -> None:
        for function, code in self._own.items():
            function.__code__ = code
        if self._files:
            sys.setprofile(self._previous)
        if self._caught:
            # Also where the candidate swallowed the exception.
            raise OffLimits(*self._caught)
        if Watch.reached:
            raise Watch.reached

    def _profile(self, frame: FrameType, event: str, _argument: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code in self._later or (code.co_filename in self._files and code not in self._allowed):
            self.catch(calls_the_reference(code.co_name))

    def catch(self, fault: tuple[str, str]) -> NoReturn:
        """End the call that reached for what it may not."""
        self._caught = fault
        raise OffLimits(*fault)


class _Own:
    """Tells a watch that a function of the student's own was called."""

    def __init__(self, watch: Watch, name: str) -> None:
        self._watch, self._name = watch, name

    @property
    def called(self) -> NoReturn:
        what = f"it calls your {self._name}, and this task asks you to do without"
        self._watch.catch(("calls what is off limits", what))


_TELLS = (lambda *_, **__: (...).called).__code__


def _told(code: CodeType, own: _Own) -> CodeType:
    """Return what stands in for a function's code and tells of a call, whatever its module has."""
    constants = tuple(own if each is ... else each for each in _TELLS.co_consts)
    return _TELLS.replace(co_consts=constants, co_name=code.co_name, co_freevars=code.co_freevars)


def calls_the_reference(name: str) -> tuple[str, str]:
    """Return the fault, and the sentence that says it."""
    return (
        "calls the reference",
        f"it calls posenc's {name}, which is what you are asked to write",
    )


def masked(name: str) -> NoReturn:
    """Stand in for a function of the reference where student code runs."""
    Watch.reached = OffLimits(*calls_the_reference(name))
    raise Watch.reached


class lifted:  # noqa: N801 - used like a function
    """Let the answers be called for a while, by functions of ours that a candidate was given."""

    def __enter__(self) -> None:
        self._profile = sys.getprofile()
        sys.setprofile(None)

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self._profile)


def call(
    function: Callable,
    args: tuple,
    kwargs: dict[str, Any],
    *,
    seconds: float | None,
    watch: Watch,
    until: Callable[[float], contextlib.AbstractContextManager] | None = None,
) -> Any:
    """Call the function, without a limit where ``seconds`` is None.

    ``until(seconds)`` interrupts it; :func:`deadline` if not given.

    Raises
    ------
    CallFault
        If it does not return.
    """
    try:
        with quiet(), watch, (until or deadline)(seconds) if seconds else contextlib.nullcontext():
            return function(*args, **kwargs)
    except TooSlow:
        raise CallFault("too slow", f"still running after {seconds:.3g} seconds") from None
    except OffLimits as error:
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


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Discard prints and warnings, which cost a student nothing."""
    sink = Discard()
    with (
        contextlib.redirect_stdout(sink),
        contextlib.redirect_stderr(sink),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise ``TooSlow`` in this thread once the time is up, again and again until it ends."""
    thread = ctypes.c_ulong(threading.get_ident())
    set_exception = ctypes.pythonapi.PyThreadState_SetAsyncExc
    running, firing, done = threading.Lock(), threading.Lock(), []

    def interrupt() -> None:
        wait = seconds
        while not running.acquire(timeout=wait):
            with firing:
                if not done:
                    set_exception(thread, ctypes.py_object(TooSlow))
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
            except TooSlow:
                continue

    running.acquire()
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        yield
    finally:
        settle()
        running.release()


@contextlib.contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Do what :func:`deadline` does, for less time, by a signal: in the main thread, on POSIX."""
    with _alarms(), _Alarm(seconds):
        yield


@contextlib.contextmanager
def limits() -> Iterator[Limit]:
    """Yield what is the quicker one of the two here, for several calls."""
    if threading.current_thread() is not threading.main_thread():
        yield deadline
        return
    with _alarms():
        yield _Alarm


@contextlib.contextmanager
def _alarms() -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, _late)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, before)


def _late(*_: object) -> NoReturn:
    raise TooSlow


class _Alarm:
    """One time limit, where the signal is taken care of."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        # More than once, for code that swallows every exception.
        signal.setitimer(signal.ITIMER_REAL, self._seconds, 0.2)

    def __exit__(self, *_: object) -> None:
        while True:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0)
                return
            except TooSlow:
                continue


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


def called_names(function: Callable) -> set[str]:
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
