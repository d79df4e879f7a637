"""A submission's notebook as the judge sees it: cells that run elsewhere, names that live there."""

from __future__ import annotations

import builtins
import contextlib
import select
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import numpy as np

from posenc.grading._guard import Elsewhere
from posenc.grading._limits import CallFault
from posenc.grading.isolation.inside import GRACE
from posenc.grading.isolation.sandbox import Sandbox
from posenc.grading.isolation.wire import Channel, Gone, Late, Opaque, decode, encode, named

# A process that is not ended by whoever waits for it is ended with the whole session.
MARGIN = 4.0
CALLBACKS = 20_000
CALLBACK_BYTES = 1 << 27


@dataclass
class Ran:
    """What running a cell showed.

    Parameters
    ----------
    printed : str
        What it printed, errors and warnings too, cut after the first part.
    shown : list of dict
        What it displayed, by MIME type.
    figures : list of bytes
        Its figures, as PNG.
    error : tuple of str, optional
        Class and sentence of an error, and the line of the cell where it was raised.
    ended : str
        How the process ended that ran it, if it did; its effects are undone then.
    seconds : float
        How long it took.
    """

    printed: str = ""
    shown: list[dict[str, str]] = field(default_factory=list)
    figures: list[bytes] = field(default_factory=list)
    error: tuple[str, str, str] | None = None
    ended: str = ""
    seconds: float = 0.0


class Session:
    """Runs a submission's cells in a copy of a sandbox.

    Parameters
    ----------
    sandbox : Sandbox
        A process that is ready.
    files : dict of str to bytes, optional
        Files that lie in the folder where the cells run.
    """

    def __init__(self, sandbox: Sandbox, files: dict[str, bytes] | None = None) -> None:
        self._sandbox, self._files = sandbox, files or {}
        self._done: list[tuple[str, float]] = []
        self.names = Names(self)
        self._server: Channel | None = None
        self._start()

    def _start(self) -> None:
        self._talk, self._life = self._sandbox.copy()
        if self._files:
            form = [[name, None] for name in self._files]
            self._fork({"do": "cell", "cell": "", "seconds": 10.0, "files": form}, self._files)

    def _lost(self) -> None:
        """Start again where the whole session is gone, and bring it to where it was."""
        self.close()
        self._start()
        for source, seconds in self._done:
            self._fork({"do": "cell", "cell": source, "seconds": seconds}, {})

    def cell(self, source: str, seconds: float) -> Ran:
        """Run a cell of the student's."""
        request = {"do": "cell", "cell": source, "seconds": seconds}
        started = monotonic()
        reply, figures = self._fork(request, {})
        if "died" in reply:
            if reply["died"] == "lost":
                self._lost()
            return Ran(ended=str(reply["died"]), seconds=monotonic() - started)
        try:
            ran = Ran(
                str(reply["printed"]),
                [
                    {str(kind): str(data) for kind, data in shown.items()}
                    for shown in reply["shown"]
                ],
                figures,
                tuple(map(str, reply["error"])) if reply["error"] else None,
                seconds=monotonic() - started,
            )
            bound = list(map(str, reply["bound"]))
        except (KeyError, TypeError, AttributeError):
            self._lost()
            return Ran(ended="lost")
        self._done.append((source, seconds))
        self.names.forget(bound)
        return ran

    def _fork(
        self, request: dict[str, Any], files: dict[str, bytes]
    ) -> tuple[dict[str, Any], list[bytes]]:
        """Let a fork run a cell, and go on with it, or with the one before it if it died."""
        channel = self._ask_for_fork(request, list(files.values()))
        try:
            reply, data, _ = self._answer(channel, request["seconds"] + GRACE + MARGIN)
        except (Gone, Late):
            return {"died": "lost"}, []
        if "died" in reply:
            channel.close()
        else:
            self._talk.close()
            self._talk = channel
        return reply, data

    def _ask_for_fork(self, request: dict[str, Any], arrays: list[bytes]) -> Channel:
        ours, theirs = _pair()
        try:
            self._talk.send(request, arrays, files=[theirs.fileno()])
        except Gone:
            self._lost()
            self._talk.send(request, arrays, files=[theirs.fileno()])
        finally:
            theirs.close()
        return Channel(ours)

    def _answer(
        self, channel: Channel, seconds: float
    ) -> tuple[dict[str, Any], list[bytes], list[int]]:
        """Return what a fork answers, or how it ended, as the process that waits for it says."""
        until = monotonic() + seconds
        ready = select.select([channel.socket, self._talk.socket], [], [], seconds)[0]
        if not ready:
            raise Late
        if channel.socket in ready:
            with contextlib.suppress(Gone):
                return channel.receive(seconds=until - monotonic())
        return self._talk.receive(seconds=max(until - monotonic(), 1.0))

    @contextlib.contextmanager
    def serving(self) -> Iterator[Names]:
        """Keep a fork that answers for the notebook's names, for one graded cell."""
        try:
            yield self.names
        finally:
            if self._server:
                with contextlib.suppress(Gone):
                    self._server.send({"do": "end"})
                self._finish()

    def _finish(self) -> None:
        """Wait until the process that waits for the fork says that it ended."""
        self._server.close()
        self._server = None
        try:
            self._talk.receive(seconds=GRACE + MARGIN)
        except (Gone, Late):
            self._lost()

    def ask(
        self,
        request: dict[str, Any],
        arrays: list[bytes],
        functions: list[Callable],
        seconds: float,
    ) -> tuple[dict[str, Any], list[bytes]]:
        """Ask the fork, and answer its calls of the judge's functions until it does.

        Raises
        ------
        CallFault
            If it ends, or does not answer.
        """
        if self._server is None:
            self._server = self._ask_for_fork({"do": "serve"}, [])
            self.names.prepare()
        until, calls = monotonic() + seconds, 0
        try:
            self._server.send({**request, "seconds": seconds}, arrays)
            while True:
                left = until - monotonic() + GRACE + MARGIN
                reply, data, _ = self._answer(self._server, max(left, 0.0))
                if "call" not in reply:
                    break
                calls += 1
                if calls > CALLBACKS or monotonic() > until:
                    raise Late
                self._server.send(*self._called(reply, data, functions))
        except (Gone, Late):
            self._server.close()
            self._server = None
            self._lost()
            raise CallFault("too slow", f"still running after {seconds:.3g} seconds") from None
        if "died" in reply:
            self._server.close()
            self._server = None
            raise CallFault(*_ended(reply["died"], seconds))
        return reply, data

    def _called(
        self, request: dict[str, Any], arrays: list[bytes], functions: list[Callable]
    ) -> tuple[dict[str, Any], list[bytes]]:
        """Call one of the judge's functions for the other side."""
        get = self.names.getter(functions)
        args, kwargs = decode(request["form"], arrays, get)
        try:
            function = functions[request["call"]]
            _must_be_small(args, kwargs)
            form, data = encode(function(*args, **kwargs), self.names.putter(functions))
        except Exception as error:
            kinds = [kind.__name__ for kind in type(error).__mro__]
            return {"raised": kinds, "text": str(error)[:500]}, []
        return {"form": form}, data

    def close(self) -> None:
        """End it, with everything that it started."""
        self._talk.close()
        self._life.close()
        if self._server:
            self._server.close()
            self._server = None

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _pair() -> tuple[Any, Any]:
    import socket

    ours, theirs = socket.socketpair()
    ours.settimeout(30)
    return ours, theirs


def _must_be_small(args: list[Any], kwargs: dict[str, Any]) -> None:
    """Refuse a call of the judge's functions that would take the judge's memory or time."""
    rows = whole = 1
    for value in (*args, *kwargs.values()):
        if isinstance(value, np.ndarray):
            rows = max(rows, value.size)
        elif isinstance(value, list | tuple):
            rows = max(rows, len(value))
        elif isinstance(value, int):
            whole = max(whole, abs(value))
    if whole > 1_000_000 or rows * whole * 8 > CALLBACK_BYTES:
        raise MemoryError("a call of this size is not answered while grading")


def _ended(how: str, seconds: float) -> tuple[str, str]:
    """Return the fault and the sentence for a process that ended while it ran a function."""
    how = str(how)
    if how == "too slow":
        return (
            "too slow",
            f"still running after {seconds:.3g} seconds, and could not be interrupted",
        )
    if how in ("signal 9", "signal 24"):
        return "out of memory", "the system ended its process: it took too much memory or time"
    if how.startswith("signal"):
        return "crash", f"it crashed Python ({how})"
    return "crash", f"it ended Python ({how})"


class Names(dict):
    """What a graded cell sees: its own names first, then the student's, live.

    Parameters
    ----------
    session : Session
        Where the student's names live.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(__builtins__=builtins)
        self._session = session
        self._lasting: set[str] = {"__builtins__"}
        self._replaced: list[dict[str, Callable]] = []

    def give(self, functions: dict[str, Any]) -> None:
        """Give every graded cell these names, whatever the student calls by them."""
        for name, value in functions.items():
            dict.__setitem__(self, name, value)
            self._lasting.add(name)

    def forget(self, names: list[str]) -> None:
        """Forget names of graded cells to which the student gave a value after that."""
        for name in names:
            if name not in self._lasting:
                dict.pop(self, name, None)

    def __missing__(self, name: str) -> Any:
        return self.remote(name)

    def __contains__(self, name: object) -> bool:
        return dict.__contains__(self, name) or bool(self._ask({"do": "has", "name": name}))

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        form, arrays, functions = self._encoded(value)
        with contextlib.suppress(CallFault):
            self._ask({"do": "set", "name": name, "form": form}, arrays, functions)

    def __delitem__(self, name: str) -> None:
        here = dict.__contains__(self, name)
        if here:
            super().__delitem__(name)
        try:
            self._ask({"do": "delete", "name": name})
        except KeyError:
            if not here:
                raise

    def get(self, name: str, default: Any = None) -> Any:
        """Return a name's value, or the default."""
        try:
            return self[name]
        except KeyError:
            return default

    def remote(self, name: str) -> Any:
        """Return the student's value of a name."""
        return self._ask({"do": "get", "name": name}, of=name)

    @contextlib.contextmanager
    def replaced(self, functions: dict[str, Callable]) -> Iterator[None]:
        """Put functions in the place of the student's for a while."""
        if not functions:
            yield
            return
        self._replaced.append(functions)
        try:
            self._replace(functions)
            yield
        finally:
            self._replaced.remove(functions)
            with contextlib.suppress(CallFault):
                self._ask({"do": "restore"})

    def _replace(self, functions: dict[str, Callable]) -> None:
        form, arrays, ours = self._encoded(functions)
        self._ask({"do": "replace", "form": form}, arrays, ours)

    def prepare(self) -> None:
        """Bring a new fork to where the one was that ended."""
        for functions in list(self._replaced):
            self._replace(functions)

    def _encoded(self, value: Any) -> tuple[Any, list[bytes], list[Callable]]:
        functions = self._functions()
        form, arrays = encode(value, self.putter(functions))
        return form, arrays, functions

    def _functions(self) -> list[Callable]:
        """Return a list for functions that the other side may call, after those it has."""
        return [f for functions in self._replaced for f in functions.values()]

    def putter(self, functions: list[Callable]) -> Callable[[Any], dict[str, Any] | None]:
        """Return what stands for the judge's functions; new ones are added to the list."""

        def put(value: Any) -> dict[str, Any] | None:
            if isinstance(value, _Remote):
                return {"mine": value._target}
            if isinstance(value, np.random.Generator):
                return {"generator": value.bit_generator.seed_seq.entropy}
            if callable(value):
                if value not in functions:
                    functions.append(value)
                return {"function": [functions.index(value), getattr(value, "__name__", "")]}
            return None

        return put

    def getter(
        self, functions: list[Callable], of: str | None = None, *, opaque: bool = False
    ) -> Callable[[str, Any], Any]:
        """Return what looks up objects of the other side."""

        def get(kind: str, content: Any) -> Any:
            if kind == "yours":
                return functions[content]
            number, is_callable, type_name, name = content
            if opaque:
                return named(Opaque, str(type_name))()
            base = _RemoteFunction if is_callable else _Remote
            made = named(base, str(type_name)).__new__
            value = made(named(base, str(type_name)))
            value._attach(self, of if of is not None else int(number), str(name))
            return value

        return get

    def _ask(
        self,
        request: dict[str, Any],
        arrays: list[bytes] = (),
        functions: list[Callable] = (),
        *,
        of: str | None = None,
        seconds: float = 5.0,
    ) -> Any:
        reply, data = self._session.ask(request, list(arrays), list(functions), seconds)
        _raise(reply)
        return decode(reply["form"], data, self.getter(list(functions), of))

    def call(
        self,
        target: str | int,
        args: tuple,
        kwargs: dict[str, Any],
        *,
        seconds: float = 5.0,
        off_limits: tuple[str, ...] = (),
        opaque: bool = False,
    ) -> Any:
        """Call a function of the student's, and change the arguments as it does."""
        form, arrays, functions = self._encoded([list(args), kwargs])
        request = {"do": "call", "of": target, "form": form, "off_limits": list(off_limits)}
        reply, data = self._session.ask(request, arrays, functions, seconds)
        _raise(reply)
        try:
            count = int(reply["values"])
            value = decode(reply["form"], data[:count], self.getter(functions, opaque=opaque))
            if "after" in reply:
                after = decode(reply["after"], data[count:], lambda *_: None)
                _write_back([list(args), kwargs], after)
        except (Gone, KeyError, TypeError, ValueError) as error:
            raise CallFault("crash", f"what it returned can't be read: {error}") from None
        return value


def _raise(reply: dict[str, Any]) -> None:
    """Raise what the other side says was raised there."""
    if "fault" in reply:
        kind, text = map(str, reply["fault"])
        raise CallFault(kind, text) from _builtin(reply.get("kinds", []), text)
    if "raised" in reply:
        raise _builtin(reply["raised"], str(reply.get("text", ""))) or RuntimeError()


def _builtin(kinds: list[Any], text: str) -> Exception | None:
    """Return an exception of the first of the classes that Python itself has."""
    for name in kinds if isinstance(kinds, list) else []:
        kind = getattr(builtins, str(name), None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            try:
                return kind(text)
            except TypeError:
                return RuntimeError(text)
    return None


def _write_back(before: Any, after: Any) -> None:
    """Change arguments as the other side changed its copies of them."""
    if isinstance(before, np.ndarray) and isinstance(after, np.ndarray):
        if before.shape == after.shape and before.dtype == after.dtype and before.flags.writeable:
            before[...] = after
    elif isinstance(before, list | tuple) and isinstance(after, list | tuple):
        for one, other in zip(before, after, strict=False):
            _write_back(one, other)
        if isinstance(before, list):
            plain = (int, float, str, type(None))
            if len(before) != len(after) or any(
                isinstance(new, plain) and new != old
                for old, new in zip(before, after, strict=False)
            ):
                before[:] = after
    elif isinstance(before, dict) and isinstance(after, dict):
        for key in before.keys() & after.keys():
            _write_back(before[key], after[key])


class _Remote:
    """An object of the student's; what Python asks of it is asked of the original."""

    def _attach(self, names: Names, target: str | int, name: str) -> None:
        self._names, self._target, self.__name__ = names, target, name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._names._ask({"do": "attribute", "of": self._target, "name": name})

    def _operation(self, name: str, *args: Any) -> Any:
        form, arrays, functions = self._names._encoded(list(args))
        request = {"do": "operation", "of": self._target, "name": name, "form": form}
        return self._names._ask(request, arrays, functions)

    def __len__(self) -> int:
        return self._operation("len")

    def __getitem__(self, key: Any) -> Any:
        return self._operation("item", key)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._operation("list"))

    def __str__(self) -> str:
        return str(self._operation("str"))

    def __repr__(self) -> str:
        return str(self._operation("repr"))

    def __instancecheck__(self, value: Any) -> bool:
        return bool(self._operation("isinstance", value))

    # Never the original's: an object that says it equals everything would pass every test.
    __eq__ = object.__eq__
    __hash__ = object.__hash__
    __array__ = None


class _RemoteFunction(_Remote, Elsewhere):
    """A function of the student's."""

    @property
    def __globals__(self) -> Names:
        return self._names

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._names.call(self._target, args, kwargs)
        except CallFault as fault:
            raise fault.__cause__ or RuntimeError(f"{fault.kind}: {fault}") from None

    def call_bounded(
        self, args: tuple, kwargs: dict[str, Any], *, seconds: float, off_limits: tuple[str, ...]
    ) -> Any:
        """Call it within limits."""
        return self._names.call(
            self._target, args, kwargs, seconds=seconds, off_limits=off_limits, opaque=True
        )

    def called_names(self) -> set[str]:
        """Return the global names that it uses."""
        return set(self._names._ask({"do": "names", "of": self._target}))
