"""A submission's notebook as the judge sees it: cells that run elsewhere, names that live there."""

from __future__ import annotations

import ast
import base64
import builtins
import contextlib
import importlib
import re
import resource
import select
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from types import ModuleType
from typing import Any

import numpy as np

from posenc.grading import _limits
from posenc.grading._guard import Answer, Elsewhere
from posenc.grading._limits import CallFault
from posenc.grading.isolation import plain
from posenc.grading.isolation.sandbox import LIBRARIES, PATIENCE, Sandbox
from posenc.grading.isolation.wire import (
    FORWARDED,
    GRACE,
    TOGETHER_BYTES,
    Channel,
    Gone,
    Late,
    Opaque,
    clean,
    decode,
    encode,
    named,
)

# A process that is not ended by whoever waits for it is ended with the whole session.
MARGIN = 4.0
# What calls of the judge's functions may take, of the judge's memory too.
CALLBACKS = 20_000
CALLBACK_BYTES = 4 << 20
# Numbers in, times numbers asked for: with less than that, memory is not worth a watch.
SMALL = 1e6
CALLBACK_MEMORY = 512 << 20
NO_BOUND = contextlib.nullcontext()
# How often a graded cell may end the whole session, and how long running its cells again may take.
LOSSES = 2
REPLAY_SECONDS = 300.0
# Of what cells show, all together.
SHOWN_BYTES = 24 << 20
PNG = b"\x89PNG\r\n\x1a\n"
FAULTS = (
    "crash",
    "too slow",
    "out of memory",
    "calls the reference",
    "calls what is off limits",
    "not written yet",
)


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
    rich : bool
        Whether cells are expected to need IPython.
    """

    def __init__(
        self, sandbox: Sandbox, files: dict[str, bytes] | None = None, *, rich: bool = True
    ) -> None:
        self._sandbox, self._files, self._rich = sandbox, files or {}, rich
        self._done: list[tuple[dict[str, Any], list[bytes]]] = []
        self._talk: Channel | None = None
        self._life: socket.socket | None = None
        self._server: Channel | None = None
        self._poll, self._polled = select.poll(), (None, None)
        self._losses, self._replayed, self._room = 0, 0.0, SHOWN_BYTES
        self.generation = 0
        self.names = Names(self)
        self._start()

    def _start(self) -> None:
        """Start afresh, and bring it to where it was."""
        started = monotonic()
        self._talk, self._life = self._sandbox.copy(rich=self._rich)
        if self._files:
            request = {"do": "cell", "cell": "", "seconds": 10.0, "ours": False}
            self._fork({**request, "files": list(self._files)}, list(self._files.values()))
        for request, arrays in self._done:
            if self._talk is None or self._replayed + monotonic() - started > REPLAY_SECONDS:
                self._lose()
                break
            self._fork(request, arrays)
        if self._done:
            self._replayed += monotonic() - started

    def _lose(self) -> None:
        """End what is left of it; whoever needs it next starts it again."""
        self.close()
        self._losses += 1

    def cell(self, source: str, seconds: float, *, ours: bool = False) -> Ran:
        """Run a cell of the student's, or one of ours that needs no fork."""
        given, arrays = self.names.given()
        request = {"do": "cell", "cell": source, "seconds": seconds, "given": given}
        # After a cell of the student's, nothing is known to be what it was.
        request["ours"] = ours and not self._done
        request["known"] = self.names.own()
        started = monotonic()
        self._losses = 0
        reply, figures = self._fork(request, arrays)
        if "died" in reply:
            return Ran(ended=clean(reply["died"], 60), seconds=monotonic() - started)
        try:
            ran = self._ran(reply, figures, monotonic() - started)
            bound = list(map(str, reply["bound"]))
            if reply.get("forked") is not False:
                # A cell that leaves no working process behind must not cost the next one.
                self._talk.send({"do": "answer"})
                if self._talk.receive(seconds=PATIENCE)[0].get("answer") is not True:
                    raise Gone("it does not speak as agreed")
        except (Gone, Late, KeyError, TypeError, AttributeError, ValueError):
            self._lose()
            return Ran(ended="lost", seconds=monotonic() - started)
        self._done.append((request, arrays))
        self.names.forget(bound)
        self.names.ran(source)
        return ran

    @property
    def count(self) -> int:
        """How many cells had an effect that lasts."""
        return len(self._done)

    def again(self) -> Iterator[Ran]:
        """Run these cells afresh, in a copy in which no graded cell ran, and end with it."""
        done, self._done = self._done, []
        self.close()
        started, self._room = monotonic(), SHOWN_BYTES
        self._start()
        for request, arrays in done:
            if self._talk is None or monotonic() - started > REPLAY_SECONDS:
                return
            # Nothing comes after these that a cell could cost.
            reply, figures = self._fork({**request, "last": True}, arrays)
            try:
                yield self._ran(reply, figures, 0.0)
            except (KeyError, TypeError, AttributeError, ValueError):
                return

    def _ran(self, reply: dict[str, Any], figures: list[bytes], seconds: float) -> Ran:
        """Return what a cell showed; of what the other side says, only what can be shown safely."""
        error = None
        if reply["error"]:
            kind, sentence, line = reply["error"]
            error = clean(kind, 60), clean(sentence, 500), str(line) if str(line).isdigit() else ""
            error = error if error[0].isidentifier() else ("Error", *error[1:])
        shown = [
            {kind: data for kind, data in map(_safe, parts.items()) if data}
            for parts in reply["shown"]
        ]
        pictures = [data for data in map(bytes, figures) if data.startswith(PNG)]
        kept: dict[int, list] = {0: [], 1: []}
        for which, items in enumerate((shown, pictures)):
            for item in items:
                size = len(item) if which else sum(map(len, item.values()))
                if size <= self._room:
                    self._room -= size
                    kept[which].append(item)
        return Ran(clean(reply["printed"], 1 << 16), kept[0], kept[1], error, seconds=seconds)

    def _fork(
        self, request: dict[str, Any], arrays: list[bytes]
    ) -> tuple[dict[str, Any], list[bytes]]:
        """Let a fork run a cell, and go on with it, or with the one before it if it died."""
        try:
            channel = self._ask_for_fork(request, arrays)
        except Gone:
            return {"died": "lost"}, []
        try:
            reply, data = self._answer(channel, request["seconds"] + GRACE + MARGIN)
            if "died" not in reply:
                self._talk.send({})
                self._talk.close()
                self._talk, channel = channel, None
            return reply, data
        except (Gone, Late):
            self._lose()
            return {"died": "lost"}, []
        finally:
            if channel:
                channel.close()

    def _ask_for_fork(self, request: dict[str, Any], arrays: list[bytes]) -> Channel:
        """Return a channel to a new fork; start the session again if it is gone."""
        for last in (False, True):
            if self._talk is None and self._replayed <= REPLAY_SECONDS:
                self._start()
            if self._talk is None:
                break
            ours, theirs = socket.socketpair()
            try:
                self._talk.send(request, arrays, files=[theirs.fileno()])
                return Channel(ours, patience=PATIENCE)
            except Gone:
                ours.close()
                self._lose()
                if last:
                    raise
            finally:
                theirs.close()
        raise Gone("it ended again and again")

    def _answer(self, channel: Channel, seconds: float) -> tuple[dict[str, Any], list[bytes]]:
        """Return what a fork answers, or how it ended, as the process that waits for it says."""
        until = monotonic() + seconds
        ready = self._both(channel).poll(max(seconds, 0.0) * 1000)
        if not ready:
            raise Late
        if any(file == channel.socket.fileno() for file, _ in ready):
            with contextlib.suppress(Gone):
                return channel.receive(seconds=until - monotonic())[:2]
        reply, data, _ = self._talk.receive(seconds=max(until - monotonic(), 1.0))
        if "died" not in reply:
            raise Gone("it does not speak as agreed")
        return reply, data

    def _both(self, channel: Channel) -> select.poll:
        """Return what waits for a fork or for the process that waits for it."""
        if self._polled != (channel, self._talk):
            self._poll, self._polled = select.poll(), (channel, self._talk)
            for each in self._polled:
                self._poll.register(each.socket, select.POLLIN)
        return self._poll

    @contextlib.contextmanager
    def serving(self) -> Iterator[Names]:
        """Keep a fork that answers for the notebook's names, for one graded cell."""
        self._losses = 0
        try:
            yield self.names
        finally:
            if self._server:
                with contextlib.suppress(Gone):
                    self._server.send({"do": "end"})
                self._server.close()
                self._server = None
                try:
                    self._talk.receive(seconds=GRACE + MARGIN)
                except (Gone, Late):
                    self._lose()

    def ask(
        self, request: dict[str, Any], arrays: list[bytes], seconds: float
    ) -> tuple[dict[str, Any], list[bytes]]:
        """Ask the fork, and answer its calls of the judge's functions until it does.

        Raises
        ------
        CallFault
            If it ends, or does not answer.
        """
        until, calls = monotonic() + seconds, 0
        each = request.get("each", seconds)
        stack = contextlib.ExitStack()
        try:
            self._serve()
            self._server.send({**request, "seconds": seconds}, arrays)
            while True:
                left = until - monotonic() + GRACE + MARGIN
                reply, data = self._answer(self._server, left)
                if "call" not in reply:
                    break
                calls += 1
                if calls == 1:
                    limit = stack.enter_context(_limits.limits())
                left = min(each, until - monotonic())
                if calls > CALLBACKS or left < 0:
                    raise Late
                self._server.send(*self.names.called(reply, data, left, limit))
        except Late:
            self._lose()
            raise CallFault("too slow", f"still running after {seconds:.3g} seconds") from None
        except Gone as gone:
            self._lose()
            fault = CallFault("crash", "it ended the process that its notebook runs in")
            # For whoever looks into a fault of ours; the student reads the sentence alone.
            fault.add_note(str(gone))
            raise fault from None
        finally:
            stack.close()
        if "died" in reply:
            self._server.close()
            self._server = None
            raise CallFault(*_ended(reply["died"], seconds))
        return reply, data

    def attempt(
        self, request: dict[str, Any], arrays: list[bytes], seconds: float
    ) -> tuple[dict[str, Any], list[bytes]]:
        """Ask what can be asked for otherwise: what ends by it does not count as lost."""
        losses = self._losses
        try:
            return self.ask(request, arrays, seconds)
        except CallFault:
            self._losses = losses
            raise

    def ready(self) -> None:
        """Have a fork that answers, or leave it to the next question to say that there is none."""
        with contextlib.suppress(Gone):
            self._serve()

    def _serve(self) -> None:
        if self._server is None:
            if self._losses >= LOSSES:
                raise Gone("it ended again and again")
            self._server = self._ask_for_fork({"do": "serve"}, [])
            self.generation += 1
            self.names.prepare()

    def close(self) -> None:
        """End it, with everything that it started."""
        for each in (self._talk, self._life, self._server):
            if each:
                each.close()
        self._talk = self._life = self._server = None

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _safe(part: tuple[str, Any]) -> tuple[str, str]:
    """Return a part of a display, or nothing if it is neither text nor a picture of dots."""
    kind, data = part
    if kind == "text/plain":
        return kind, clean(data, 1 << 16)
    if kind == "image/png" and base64.b64decode(data, validate=True).startswith(PNG):
        return kind, data
    return kind, ""


def _is_small(args: Any, kwargs: Any) -> bool:
    """Return whether a call takes hardly any memory, whatever is computed from it."""
    size = 1.0
    for value in (*args, *kwargs.values()):
        if isinstance(value, int | np.integer) or _is_whole(value):
            size *= max(abs(int(value)), 1)
        elif isinstance(value, np.ndarray):
            size *= max(value.size, 1)
        elif isinstance(value, list | tuple | range):
            size *= max(len(value), 1)
            if not all(isinstance(item, int | float) for item in value):
                return False
        elif not isinstance(value, float | str | None | np.generic):
            return False
    return size < SMALL


def _is_whole(value: Any) -> bool:
    """Return whether a value is an array that can stand for a whole number."""
    return isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "iu"


@contextlib.contextmanager
def _bounded_memory() -> Iterator[None]:
    """Limit the memory of such a call."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    with contextlib.suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + CALLBACK_MEMORY
        if before[0] == resource.RLIM_INFINITY or most < before[0]:
            resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _ended(how: str, seconds: float) -> tuple[str, str]:
    """Return the fault and the sentence for a process that ended while it ran a function."""
    how = clean(how, 60)
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
    """What a graded cell sees: its own names first, then Python's, then the student's, live.

    Parameters
    ----------
    session : Session
        Where the student's names live.

    Attributes
    ----------
    asked : set of str
        Names that the student is asked to give a value although Python has them.
    slow : set of str
        Functions that used up their time.
    read : frozenset of str, optional
        Names that a right answer may read, so that what graded cells call by them is seen by the
        student's functions; all if None.
    operators : frozenset of str, optional
        Methods such as ``__add__`` that a right answer's objects may have; all if None.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(__builtins__=builtins)
        self.asked: set[str] = set()
        self.slow: set[str] = set()
        self.read: frozenset[str] | None = None
        self.operators: frozenset[str] | None = None
        self._session = session
        self._lasting: set[str] = {"__builtins__"}
        self._given: dict[str, Any] = {}
        self._replaced: list[dict[str, Callable]] = []
        # What was found about functions, by name and what was in the place of others then.
        self._found: dict[tuple[str, ...], dict[Any, Any]] = {}
        self._words: set[str] = set()
        # Functions of the judge's that the other side may call, by number.
        self._ours: list[Callable] = []
        self._numbers: dict[int, int] = {}

    def give(self, values: dict[str, Any]) -> None:
        """Give every graded cell these names, whatever the student calls by them."""
        for name, value in values.items():
            dict.__setitem__(self, name, value)
            self._lasting.add(name)

    def give_imports(self, source: str) -> None:
        """Give every graded cell what a cell of the instructor's imports at its top level.

        What a student puts in the place of a library could otherwise pass every test with it.
        """
        with contextlib.suppress(SyntaxError):
            for node in plain.parsed(source).body:
                if isinstance(node, ast.Import | ast.ImportFrom):
                    found: dict[str, Any] = {}
                    with contextlib.suppress(Exception):
                        exec(compile(ast.Module([node], []), "<imports>", "exec"), found)
                    found.pop("__builtins__", None)
                    self.give({k: v for k, v in found.items() if k not in self._lasting})

    def own(self) -> list[str]:
        """Return the names of graded cells, which a student's cell may give another value."""
        return [name for name in dict.keys(self) if name not in self._lasting]

    def forget(self, names: list[str]) -> None:
        """Forget names of graded cells to which the student gave a value after that."""
        for name in names:
            if name not in self._lasting:
                dict.pop(self, name, None)

    def ran(self, source: str) -> None:
        """Take note of a cell of the student's: only some leave functions what they were."""
        names = plain.bound(source, LIBRARIES)
        if names is None or not names.isdisjoint(self._words):
            self._found.clear()
        self._words.update(re.findall(r"\w+", source))

    def found(self, name: str | None) -> dict[Any, Any]:
        """Return what was found about a function, as long as it can't be different by now."""
        if name is None:
            return {}
        replaced = [other for functions in self._replaced for other in functions]
        return self._found.setdefault((name, *replaced), {})

    def given(self) -> tuple[Any, list[bytes]]:
        """Return what graded cells gave a value since the last cell of the student's."""
        values, self._given = self._given, {}
        return encode(values, _importable) if values else (None, [])

    def __missing__(self, name: str) -> Any:
        if name not in self.asked and hasattr(builtins, name):
            return getattr(builtins, name)
        return self.remote(name)

    def __contains__(self, name: object) -> bool:
        return dict.__contains__(self, name) or bool(self._ask({"do": "has", "name": name}))

    def __setitem__(self, name: str, value: Any) -> None:
        self._found.clear()
        if self.read is not None and name not in self.read:
            # What is expected, say, is nothing for the student's functions to see.
            super().__setitem__(name, value)
            return
        if isinstance(value, _Remote):
            # It lives where the names do; in another cell, the name may mean another one.
            dict.pop(self, name, None)
        else:
            super().__setitem__(name, value)
        form, arrays = self.encoded(value)
        if _crosses(value):
            self._given[name] = value
        with contextlib.suppress(CallFault):
            self._ask({"do": "set", "name": name, "form": form}, arrays)

    def __delitem__(self, name: str) -> None:
        self._found.clear()
        here = dict.__contains__(self, name)
        if here:
            super().__delitem__(name)
        self._given.pop(name, None)
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
        form, arrays = self.encoded(functions)
        self._ask({"do": "replace", "form": form}, arrays)

    def prepare(self) -> None:
        """Bring a new fork to where the one was that ended."""
        self._ours, self._numbers = [], {}
        for functions in list(self._replaced):
            self._replace(functions)

    def _put(self, value: Any) -> dict[str, Any] | None:
        """Return what stands for an object on the other side."""
        if isinstance(value, _Remote):
            return {"mine": value.target()}
        if isinstance(value, np.random.Generator):
            return {"generator": value.bit_generator.seed_seq.entropy}
        known = _importable(value)
        if known is None and callable(value):
            number = self._numbers.setdefault(id(value), len(self._ours))
            if number == len(self._ours):
                self._ours.append(value)
            return {"function": [number, str(getattr(value, "__name__", ""))]}
        return known

    def _get(self, of: str | None = None, *, opaque: bool = False) -> Callable[[str, Any], Any]:
        """Return what looks up objects of the other side."""

        def get(kind: str, content: Any) -> Any:
            if kind == "yours":
                return self._ours[content]
            if kind == "module":
                if opaque or not _known(content):
                    return named(Opaque, "module")()
                return importlib.import_module(content)
            number, is_callable, type_name, name = content
            if opaque:
                return named(Opaque, str(type_name))()
            kind = named(_RemoteFunction if is_callable is True else _Remote, str(type_name))
            value = kind.__new__(kind)
            value._attach(self, int(number), clean(name, 60), of)
            return value

        return get

    def called(
        self, request: dict[str, Any], arrays: list[bytes], seconds: float, limit: _limits.Limit
    ) -> tuple[dict[str, Any], list[bytes]]:
        """Call one of the judge's functions for the other side, and return the message.

        It gets so much time and no more, for its arguments are the student's.
        """
        try:
            args, kwargs = _decoded(request, arrays, self._get())
            function = self._ours[request["call"]]
        except (TypeError, ValueError, KeyError, IndexError) as error:
            raise Gone(f"it does not speak as agreed: {type(error).__name__}") from None
        try:
            if sum(map(len, arrays)) > CALLBACK_BYTES:
                raise MemoryError("a call of this size is not answered while grading")
            small = _is_small(args, kwargs)
            with limit(max(seconds, 0.01)), NO_BOUND if small else _bounded_memory():
                form, data = encode(function(*args, **kwargs), self._put)
        except _limits.TooSlow:
            raise Late from None
        except Gone:
            raise
        except Exception as error:
            kinds = [kind.__name__ for kind in type(error).__mro__]
            return {"raised": kinds, "text": str(error)[:500]}, []
        return {"form": form}, data

    def _ask(
        self, request: dict[str, Any], arrays: list[bytes] = (), *, of: str | None = None
    ) -> Any:
        """Ask about a name; raise KeyError if there is none."""
        try:
            return self.ask(request, arrays, of=of)
        except (KeyError, CallFault):
            raise
        except Exception as error:
            raise CallFault("crash", f"{type(error).__name__}: {error}") from error

    def ask(
        self, request: dict[str, Any], arrays: list[bytes] = (), *, of: str | None = None
    ) -> Any:
        """Ask anything; raise what is raised there."""
        reply, data = self._session.ask(request, list(arrays), 5.0)
        _raise(reply)
        try:
            return _decoded(reply, data, self._get(of))
        except Gone as error:
            raise CallFault("crash", str(error)) from None

    def encoded(self, value: Any) -> tuple[Any, list[bytes]]:
        """Return a value as it crosses to the fork that answers."""
        # A new one would know none of the numbers.
        self._session.ready()
        return encode(value, self._put)

    def call(
        self,
        remote: _Remote,
        args: tuple,
        kwargs: dict[str, Any],
        *,
        seconds: float = 5.0,
        off_limits: tuple[str, ...] = (),
        opaque: bool = False,
    ) -> Any:
        """Call a function of the student's, and change the arguments as it does."""
        form, arrays = self.encoded([list(args), kwargs])
        request = {"do": "call", "of": remote.target(), "form": form}
        request["off_limits"] = list(off_limits)
        reply, data = self._session.ask(request, arrays, seconds)
        return self._answer(reply, data, opaque, args, kwargs)

    def call_many(
        self,
        remote: _Remote,
        calls: list[tuple[tuple, dict[str, Any]]],
        *,
        seconds: float,
        total: float,
        off_limits: tuple[str, ...],
    ) -> list[Answer]:
        """Make calls together, as many as fit in a message and come to an end."""
        forms, counts, arrays, size = [], [], [], 0
        for args, kwargs in calls:
            form, data = self.encoded([list(args), kwargs])
            size += sum(map(len, data))
            if size > TOGETHER_BYTES:
                break
            forms.append(form)
            counts.append(len(data))
            arrays += data
        try:
            request = {"do": "calls", "of": remote.target(), "forms": forms, "counts": counts}
            request.update(each=seconds, off_limits=list(off_limits))
            reply, data = self._session.attempt(request, arrays, total)
            return [
                Answer(partial(self._answer, answer, part, True), "after" in answer)
                for answer, part in _answers(reply, data, len(forms))
            ]
        except (CallFault, Gone, MemoryError):
            # Whatever it was, a call alone will show it.
            return []

    def _answer(
        self,
        reply: dict[str, Any],
        data: list[bytes],
        opaque: bool,
        args: tuple,
        kwargs: dict[str, Any],
    ) -> Any:
        """Return or raise what a call gave, and change the arguments as it did."""
        if "raised" in reply:
            # What a function raises is a fault, but for what is meant to end a program.
            cause = _exception(reply["raised"], "")
            name = type(cause).__name__ if cause else "KeyboardInterrupt"
            raise CallFault("crash", f"it raises {name}") from cause
        _raise(reply)
        count = reply.get("values")
        if type(count) is not int:
            raise CallFault("crash", "what it returned can't be read")
        try:
            value = _decoded(reply, data[:count], self._get(opaque=opaque))
            if "after" in reply:
                after = decode(reply["after"], data[count:], lambda *_: None)
                _changed([list(args), kwargs], after)
        except Gone as error:
            raise CallFault("crash", f"what it returned can't be read: {error}") from None
        return value


def _answers(
    reply: dict[str, Any], data: list[bytes], most: int
) -> Iterator[tuple[dict[str, Any], list[bytes]]]:
    """Return the answers to several calls, each with its arrays."""
    answers, at = reply.get("answers"), 0
    if not isinstance(answers, list) or len(answers) > most:
        raise Gone("it does not speak as agreed")
    for answer in answers:
        count = answer.get("count") if isinstance(answer, dict) else None
        if type(count) is not int or not 0 <= count <= len(data) - at:
            raise Gone("it does not speak as agreed")
        yield answer, data[at : at + count]
        at += count


def _decoded(message: dict[str, Any], arrays: list[bytes], get: Callable[[str, Any], Any]) -> Any:
    if "form" not in message:
        raise Gone("it does not speak as agreed")
    return decode(message["form"], arrays, get)


def _known(module: Any) -> bool:
    """Return whether both sides have a module, and to import it does nothing else."""
    top = str(module).partition(".")[0]
    return top in LIBRARIES or (module in sys.modules and top in sys.stdlib_module_names)


def _importable(value: Any) -> dict[str, Any] | None:
    """Return how the other side imports a value, if both can."""
    if isinstance(value, ModuleType):
        return {"module": value.__name__} if _known(value.__name__) else None
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if isinstance(module, str) and isinstance(name, str) and callable(value) and _known(module):
        found = getattr(sys.modules.get(module), name, None)
        return {"imported": [module, name]} if found is value else None
    return None


def _crosses(value: Any) -> bool:
    """Return whether a value can be given to the other side for good."""
    known = True

    def put(item: Any) -> dict[str, Any] | None:
        nonlocal known
        found = _importable(item)
        known = known and (found is not None or isinstance(item, list | tuple | dict | set))
        return found if found is not None or known else {"opaque": ""}

    try:
        encode(value, put)
    except MemoryError:
        return False
    return known


def _raise(reply: dict[str, Any]) -> None:
    """Raise what the other side says was raised there."""
    if "fault" in reply:
        try:
            kind, text = reply["fault"]
        except (TypeError, ValueError):
            kind, text = "crash", ""
        kind = kind if kind in FAULTS else "crash"
        text = " ".join(clean(text, 300).split())
        raise CallFault(kind, text) from _exception(reply.get("kinds"), text)
    if "raised" in reply:
        text = clean(reply.get("text", ""), 500)
        raise _exception(reply["raised"], text) or RuntimeError(text)


def _exception(kinds: Any, text: str) -> Exception | None:
    """Return an exception with the class's name that extends one that Python itself has."""
    if not isinstance(kinds, list) or not kinds or not all(isinstance(k, str) for k in kinds):
        return None
    if "StopIteration" in kinds:
        # A loop of the judge's would take it for its own end, and stop testing.
        return RuntimeError(text)
    for name in kinds[1:]:
        kind = getattr(builtins, name, None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            with contextlib.suppress(TypeError):
                return (kind if name == kinds[0] else named(kind, kinds[0]))(text)
            return RuntimeError(text)
    return None


def _changed(before: Any, after: Any) -> Any:
    """Change a value as the other side changed its copy, and return it or what took its place."""
    if isinstance(before, np.ndarray) and isinstance(after, np.ndarray):
        if before.shape != after.shape or before.dtype != after.dtype:
            return after
        if before.flags.writeable and before.tobytes() != after.tobytes():
            before[...] = after
        return before
    if isinstance(before, list) and isinstance(after, list):
        before[:] = _paired(before, after)
        return before
    if isinstance(before, tuple) and isinstance(after, tuple) and len(before) == len(after):
        _paired(list(before), list(after))
        return before
    if isinstance(before, dict) and isinstance(after, dict):
        kept = {k: _changed(before[k], v) if k in before else v for k, v in after.items()}
        before.clear()
        before.update(kept)
        return before
    if isinstance(before, set) and isinstance(after, set):
        before.clear()
        before.update(after)
        return before
    plain = (bool, int, float, complex, str, type(None))
    # Of functions and objects nothing comes back.
    return after if isinstance(before, plain) and isinstance(after, plain) else before


def _paired(before: list[Any], after: list[Any]) -> list[Any]:
    changed = [_changed(one, other) for one, other in zip(before, after, strict=False)]
    return changed + after[len(changed) :]


class _Remote:
    """An object of the student's; what Python asks of it is asked of the original."""

    def _attach(self, names: Names, number: int, name: str, of: str | None) -> None:
        self.__dict__.update(
            _names=names, _number=number, _of=of, _made=names._session.generation, __name__=name
        )

    def target(self) -> int | str:
        """Return what the other side looks it up by: where its fork ended, the name alone."""
        self._names._session.ready()
        if self._made == self._names._session.generation:
            return self._number
        if self._of is None:
            raise CallFault("crash", "it ended the process that held this object")
        return self._of

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._names.ask({"do": "attribute", "of": self.target(), "name": name})

    def _operation(self, name: str, *args: Any) -> Any:
        self._names._found.clear()
        target = self.target()
        form, arrays = self._names.encoded(list(args))
        request = {"do": "operation", "of": target, "name": name, "form": form}
        return self._names.ask(request, arrays)

    def __setattr__(self, name: str, value: Any) -> None:
        self._operation("setattr", name, value)

    def __delattr__(self, name: str) -> None:
        self._operation("delattr", name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._operation("list"))

    def __bool__(self) -> bool:
        return bool(self._operation("bool"))

    def __str__(self) -> str:
        return str(self._operation("str"))

    def __repr__(self) -> str:
        return str(self._operation("repr"))

    def __instancecheck__(self, value: Any) -> bool:
        return bool(self._operation("isinstance", value))

    def __eq__(self, other: object) -> bool:
        # Never the original's: an object that says it equals everything would pass every test.
        return self is other or (
            isinstance(other, _Remote)
            and (self._number, self._made) == (other._number, other._made)
        )

    def __hash__(self) -> int:
        return hash((self._number, self._made))

    __array__ = None


# What a test compares by; the rest gives values that are compared here.
JUDGING = set(FORWARDED) - {"getitem", "setitem", "delitem"}


def _forwarded(name: str) -> Callable[..., Any]:
    def method(self: _Remote, *args: Any) -> Any:
        operators = self._names.operators
        if name in JUDGING and operators is not None and f"__{name}__" not in operators:
            # An object that answers every comparison as one likes would pass every test.
            raise TypeError(f"{type(self).__name__} has no __{name}__ that counts here")
        return self._operation(name, *args)

    return method


for _name in ("len", "next", *FORWARDED):
    setattr(_Remote, f"__{_name}__", _forwarded(_name))


class _RemoteFunction(_Remote, Elsewhere):
    """A function of the student's."""

    @property
    def __globals__(self) -> Names:
        return self._names

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._names.call(self, args, kwargs)
        except CallFault as fault:
            raise fault.__cause__ or RuntimeError(f"{fault.kind}: {fault}") from None

    def call_bounded(
        self, args: tuple, kwargs: dict[str, Any], *, seconds: float, off_limits: tuple[str, ...]
    ) -> Any:
        """Call it within limits."""
        return self._names.call(
            self, args, kwargs, seconds=seconds, off_limits=off_limits, opaque=True
        )

    def call_many(
        self,
        calls: list[tuple[tuple, dict[str, Any]]],
        *,
        seconds: float,
        total: float,
        off_limits: tuple[str, ...],
    ) -> list[Answer]:
        """Make calls in one go, until one is too slow; none counts where its process ends by it."""
        return self._names.call_many(
            self, calls, seconds=seconds, total=total, off_limits=off_limits
        )

    def slow(self, now: bool = False) -> bool:
        """Return whether it ever used up its time; take note if it does now."""
        if now and self._of is not None:
            self._names.slow.add(self._of)
        return self._of in self._names.slow

    def found(self) -> dict[Any, Any]:
        """Return what was found about it, as long as it can't be different by now."""
        return self._names.found(self._of)

    def called_names(self) -> set[str]:
        """Return the global names that it uses."""
        known = self.found()
        if "names" not in known:
            names = self._names._ask({"do": "names", "of": self.target()})
            names = names if isinstance(names, list) else []
            known["names"] = {name for name in names if isinstance(name, str)}
        return known["names"]
