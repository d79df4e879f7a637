"""How the judge and the process that holds student code talk: plain data, never pickle.

A message is a JSON header and the bytes of its arrays. None, bool, int, float, complex, str,
numeric arrays and nested list, tuple, dict and set of them cross as they are; functions and objects
as numbers that only their own side can look up; a Generator as its seed.
"""

from __future__ import annotations

import json
import math
import re
import select
import socket
import struct
from array import array as Buffer  # noqa: N812 - beside NumPy's
from collections import UserList, deque
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from time import monotonic
from typing import Any

import numpy as np

HEADER_BYTES = 8 << 20
ARRAY_BYTES = 128 << 20
# Calls that are asked for together, and what they give, are cut where arrays take more.
TOGETHER_BYTES = 4 << 20
DEPTH = 24
ITEMS = 100_000
# Members of sets and keys of dicts in one message, with what is in them: numbers can be chosen so
# that all collide.
HASHED = 10_000
# Longer ints can't be read back.
INT_BITS = 13_000
# Beyond the time for a cell or a call, until the process that runs it is killed.
GRACE = 2.0
# What is read, and sent, at once.
PIECE = 1 << 16
FRAME = struct.Struct("<II")
READER, WRITER = json.JSONDecoder(), json.JSONEncoder()
DTYPE = re.compile(r"[<>|=]?([biufc]\d+|[US]\d+|[mM]8(\[\d*\w+\])?)")
# Kinds of dtype whose content crosses; of any other, an array is an object of the other side.
NUMERIC = "biufc"
TEXTUAL = "USmM"
KINDS = (
    *("array", "objects", "complex", "tuple", "set", "frozenset", "dict", "range", "items"),
    "opaque",
)
# What crosses as JSON has it.
ALIKE = (int, float, bool, type(None))
SHORT = (float, bool, str, type(None))
# Different classes of opaque things in one message.
CLASSES = 1000
# What the judge asks of an object as Python's operators do; never whether it is equal.
FORWARDED = (
    *("getitem", "setitem", "delitem", "contains", "add", "sub", "mul", "truediv", "floordiv"),
    *("mod", "pow", "matmul", "neg", "abs", "lt", "le", "gt", "ge"),
)
SEQUENCES = (deque, UserList, Buffer, memoryview)
ITERATORS = (
    map,
    filter,
    zip,
    enumerate,
    reversed,
    type(iter([])),
    type(n for n in ()),
    type({}.keys()),
    type({}.values()),
    type({}.items()),
)


class Gone(Exception):  # noqa: N818 - an event, not an error of ours
    """The other side ended, or does not speak as agreed."""


class Late(Exception):  # noqa: N818
    """The other side did not answer in time."""


class Items:
    """An iterator of the other side, with what it gave."""

    def __init__(self, items: list[Any]) -> None:
        self._items = items

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class Opaque:
    """Something of the other side that can't cross; its class has the name of that one's."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


@lru_cache(maxsize=1024)
def named(base: type, name: str) -> type:
    """Return a subclass with a name from the other side, if it is one that can be shown."""
    known = name.isidentifier() and len(name) <= 60
    return type(name if known else "object", (base,), {})


Put = Callable[[Any], dict[str, Any] | None]
Get = Callable[[str, Any], Any]


def encode(value: Any, put: Put = lambda value: None) -> tuple[Any, list[bytes]]:
    """Return a value as JSON and the bytes of its arrays.

    ``put(value)`` returns what stands for a function or an object, or None where it is not known.
    """
    arrays: list[bytes] = []
    return _encode(value, put, arrays, 0), arrays


def _encode(value: Any, put: Put, arrays: list[bytes], depth: int) -> Any:
    """Return one value; a subclass crosses as the class that it extends."""
    if type(value) in SHORT:
        return value
    if type(value) is int and value.bit_length() <= INT_BITS:
        return value
    if depth > DEPTH:
        return {"opaque": "nested too deeply"}
    if isinstance(value, np.ndarray | np.generic):
        return _encode_array(value, arrays)
    if isinstance(value, int):
        short = int.bit_length(value) <= INT_BITS
        return int.__int__(value) if short else {"opaque": "int"}
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    special = put(value)
    if special is not None:
        return special

    def inner(item: Any) -> Any:
        return _encode(item, put, arrays, depth + 1)

    if isinstance(value, list):
        return [item if type(item) in SHORT else inner(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [item if type(item) in SHORT else inner(item) for item in value]}
    if isinstance(value, set | frozenset):
        kind = "set" if isinstance(value, set) else "frozenset"
        return {kind: [inner(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[inner(key), inner(item)] for key, item in value.items()]}
    if isinstance(value, range) and max(map(int.bit_length, _bounds(value))) <= INT_BITS:
        return {"range": _bounds(value)}
    if isinstance(value, ITERATORS):
        try:
            items = [inner(item) for item in islice(value, ITEMS)]
        except Exception:
            return {"opaque": type(value).__name__}
        return {"items": [type(value).__name__, items]}
    # What NumPy reads as an array crosses as one.
    if isinstance(value, SEQUENCES) or hasattr(value, "__array__"):
        try:
            array = np.asarray(value)
        except Exception:
            return {"opaque": type(value).__name__}
        if array.dtype.kind in NUMERIC:
            return _encode_array(array, arrays)
    return {"opaque": type(value).__name__}


def _bounds(numbers: range) -> list[int]:
    return [numbers.start, numbers.stop, numbers.step]


def _encode_array(value: np.ndarray | np.generic, arrays: list[bytes]) -> dict[str, Any]:
    array = np.asarray(value)
    if array.dtype.kind not in NUMERIC + TEXTUAL or not array.dtype.itemsize or array.dtype.fields:
        return {"objects": list(array.shape)}
    if array.nbytes > ARRAY_BYTES:
        raise MemoryError
    form: dict[str, Any] = {"array": [array.dtype.str, list(array.shape)]}
    if isinstance(value, np.generic):
        form["scalar"] = True
    if not array.flags.c_contiguous:
        form["order"] = "F" if array.flags.f_contiguous else "strided"
    if not array.flags.writeable and not isinstance(value, np.generic):
        form["fixed"] = True
    arrays.append(array.tobytes())
    return form


def clean(text: Any, most: int) -> str:
    """Return text of the other side that can be written to a file: cut, and whole characters."""
    return str(text)[:most].encode("utf-8", "replace").decode()


def decode(form: Any, arrays: list[bytes], get: Get) -> Any:
    """Return the value; ``get(kind, content)`` looks up what ``put`` gave out.

    Raises
    ------
    Gone
        If it is not what :func:`encode` makes.
    """
    try:
        return _Decoder(arrays, get).value(form)
    except (Gone, KeyboardInterrupt):
        raise
    except Exception as error:
        raise Gone(f"it sent what is no value: {type(error).__name__}") from None


class _Decoder:
    """Reads the value of one message."""

    def __init__(self, arrays: list[bytes], get: Get) -> None:
        self._arrays, self._get, self._hashed, self._objects = iter(arrays), get, 0, 0
        self._classes: dict[tuple[type, str], type] = {}

    def _named(self, base: type, name: str) -> Any:
        """Return the class of a name, one for all that have it: a class takes a kilobyte."""
        key = base, name if len(self._classes) < CLASSES else ""
        if key not in self._classes:
            self._classes[key] = named(*key)
        return self._classes[key]

    def value(self, form: Any) -> Any:
        shape = type(form)
        if shape is list:
            return self._values(form)
        if shape is str:
            return form if form.isascii() else clean(form, len(form))
        if shape is not dict:
            return form
        kind, content = next(iter(form.items()))
        read = READ.get(kind)
        return read(self, content, form) if read else self._get(kind, content)

    def _values(self, forms: list[Any]) -> list[Any]:
        return [form if type(form) in ALIKE else self.value(form) for form in forms]

    def _read_array(self, content: Any, form: dict[str, Any]) -> Any:
        name, shape = content
        array = np.frombuffer(next(self._arrays), _dtype(name)).reshape(shape)
        if form.get("scalar"):
            return array[()]
        order = form.get("order")
        if order == "strided":
            spread = np.empty((*array.shape, 2), array.dtype)[..., 0]
            spread[...] = array
            array = spread
        else:
            array = array.copy(order="F" if order == "F" else "C")
        array.flags.writeable = not form.get("fixed")
        return array

    def _read_objects(self, content: Any, _form: dict[str, Any]) -> Any:
        if len(content) > 64 or not all(type(n) is int and 0 <= n < 1 << 62 for n in content):
            raise Gone("it sent an array of no shape")
        # With each array's own size, so that empty ones are not free.
        self._objects += 1 + math.prod(content)
        small = self._objects <= ITEMS
        return np.full(content, None, dtype=object) if small else self._named(Opaque, "ndarray")()

    def _read_complex(self, content: Any, _form: dict[str, Any]) -> complex:
        return complex(*content)

    def _read_tuple(self, content: Any, _form: dict[str, Any]) -> tuple:
        return tuple(self._values(content))

    def _read_set(self, content: Any, _form: dict[str, Any]) -> Any:
        if not self._may_hash(content):
            return self._named(Opaque, "set")()
        return {self.value(item) for item in content}

    def _read_frozenset(self, content: Any, _form: dict[str, Any]) -> Any:
        if not self._may_hash(content):
            return self._named(Opaque, "frozenset")()
        return frozenset(self.value(item) for item in content)

    def _read_dict(self, content: Any, _form: dict[str, Any]) -> Any:
        if not self._may_hash([key for key, _ in content]):
            return self._named(Opaque, "dict")()
        return {self.value(key): self.value(item) for key, item in content}

    def _may_hash(self, content: list[Any]) -> bool:
        self._hashed += _weight(content)
        return self._hashed <= HASHED

    def _read_range(self, content: Any, _form: dict[str, Any]) -> Any:
        try:
            numbers = range(*content)
            return numbers if len(numbers) <= ITEMS else self._named(Opaque, "range")()
        except OverflowError:
            return self._named(Opaque, "range")()

    def _read_items(self, content: Any, _form: dict[str, Any]) -> Any:
        return self._named(Items, content[0])([self.value(item) for item in content[1]])

    def _read_opaque(self, content: Any, _form: dict[str, Any]) -> Any:
        return self._named(Opaque, content)()


@lru_cache(maxsize=64)
def _dtype(name: str) -> np.dtype:
    if not DTYPE.fullmatch(name):
        raise Gone(f"it sent an array of an unknown dtype: {name!r:.40}")
    return np.dtype(name)


READ = {kind: getattr(_Decoder, f"_read_{kind}") for kind in KINDS}


def _weight(form: Any) -> int:
    """Return how many values a form is made of."""
    if isinstance(form, dict):
        form = list(form.values())
    return sum(map(_weight, form)) if isinstance(form, list) else 1


class Channel:
    """Messages over a socket.

    Parameters
    ----------
    connection : socket
        One of a pair.
    patience : float, optional
        How long the other side may leave a message unread.
    """

    def __init__(self, connection: socket.socket, *, patience: float | None = None) -> None:
        self.socket, self._patience = connection, patience
        # Whatever a student made the default.
        connection.settimeout(None)
        self._rest = bytearray()

    def send(self, header: dict[str, Any], arrays: list[bytes] = (), *, files: list[int] = ()):
        """Send a message, and open files along with it.

        Raises
        ------
        Gone
            If the other side ended.
        """
        text = WRITER.encode({**header, "arrays": [*map(len, arrays)]}).encode()
        size = sum(map(len, arrays))
        if len(text) > HEADER_BYTES or size > ARRAY_BYTES:
            raise MemoryError
        start = FRAME.pack(len(text), size)
        try:
            if files:
                self._send_all(start, files)
                start = b""
            if size < PIECE:
                self._send_all(b"".join([start, text, *arrays]))
            else:
                for part in (start + text, *arrays):
                    self._send_all(part)
        except OSError as error:
            raise Gone(str(error)) from None

    def receive(
        self, *, seconds: float | None = None, files: int = 0
    ) -> tuple[dict[str, Any], list[bytes], list[int]]:
        """Return a message: its header, the bytes of its arrays, and files.

        Raises
        ------
        Gone
            If the other side ended, or sends what is no message.
        Late
            If it takes longer than ``seconds``.
        """
        until = None if seconds is None else monotonic() + seconds
        given: list[int] = []
        try:
            if files:
                start, given, _, _ = socket.recv_fds(self.socket, FRAME.size, files)
                if len(start) < FRAME.size:
                    raise Gone("it ended")
            else:
                start = self._exactly(FRAME.size, until)
            length, size = FRAME.unpack(start)
            if length > HEADER_BYTES or size > ARRAY_BYTES:
                raise Gone("it sent more than can be taken")
            # What is read beyond this message loses the files that come with the next one.
            ahead = 0 if files else PIECE
            header = READER.decode(self._exactly(length, until, ahead).decode())
            counts = _parted(header["arrays"], size)
            arrays = [self._exactly(count, until, ahead) for count in counts]
        except (Gone, Late, KeyboardInterrupt):
            raise
        except OSError as error:
            raise Gone(str(error)) from None
        except Exception as error:
            raise Gone(f"it sent what is no message: {type(error).__name__}") from None
        return header, arrays, given

    def _send_all(self, data: bytes | bytearray, files: list[int] = ()) -> None:
        flags = 0 if self._patience is None else socket.MSG_DONTWAIT
        until, left = None, memoryview(data)
        while left:
            try:
                if files:
                    # socket.send_fds forgets the flags.
                    passed = socket.SOL_SOCKET, socket.SCM_RIGHTS, Buffer("i", files)
                    sent, files = self.socket.sendmsg([left], [passed], flags), ()
                else:
                    sent = self.socket.send(left, flags)
                left = left[sent:]
            except BlockingIOError:
                until = until or monotonic() + self._patience
                if not self._waited(select.POLLOUT, until):
                    raise Gone("it does not read") from None

    def _exactly(self, count: int, until: float | None, ahead: int = PIECE) -> bytearray:
        # Its pages are taken as they are filled, whatever was announced.
        while len(self._rest) < count:
            if until is not None and monotonic() >= until:
                raise Late
            most = max(ahead, min(count - len(self._rest), 16 * PIECE))
            try:
                # Mostly it is there already.
                got = self.socket.recv(most, 0 if until is None else socket.MSG_DONTWAIT)
            except BlockingIOError:
                if not self._waited(select.POLLIN, until):
                    raise Late from None
                continue
            if not got:
                raise Gone("it ended")
            self._rest += got
        data = self._rest[:count]
        del self._rest[:count]
        return data

    def _waited(self, event: int, until: float) -> bool:
        """Wait until it can be read or written to, and return whether it could in time."""
        poll, left = select.poll(), until - monotonic()
        poll.register(self.socket, event)
        return left > 0 and bool(poll.poll(left * 1000))

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()


def _parted(counts: list[int], size: int) -> list[int]:
    """Return the sizes of a message's arrays, which fill it."""
    if any(type(count) is not int or count < 0 for count in counts) or sum(counts) != size:
        raise Gone("it sent arrays of other sizes than it said")
    return counts


def readable(sockets: list[Any], seconds: float) -> list[Any]:
    """Return those of some sockets or files that can be read, waiting until one can."""
    # Not select.select, which knows no file above 1023.
    poll = select.poll()
    by_file = {each if isinstance(each, int) else each.fileno(): each for each in sockets}
    for file in by_file:
        poll.register(file, select.POLLIN)
    return [by_file[file] for file, _ in poll.poll(max(seconds, 0.0) * 1000)]
