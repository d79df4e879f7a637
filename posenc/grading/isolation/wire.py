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
from collections.abc import Callable, Iterator
from itertools import islice
from time import monotonic
from typing import Any

import numpy as np

HEADER_BYTES = 8 << 20
ARRAY_BYTES = 128 << 20
DEPTH = 24
ITEMS = 100_000
FRAME = struct.Struct("<II")
DTYPE = re.compile(r"[<>|=]?([biufc]\d+|[US]\d+|[mM]8(\[\d*\w+\])?)")
# Kinds of dtype whose content crosses; of any other, an array is an object of the other side.
NUMERIC = "biufc"
TEXTUAL = "USmM"
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


class Opaque:
    """Something of the other side that can't cross; its class has the name of that one's."""


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

    def inner(item: Any) -> Any:
        return _encode(item, put, arrays, depth + 1)

    if value is None or value is True or value is False:
        return value
    if type(value) is float or type(value) is str:
        return value
    if depth > DEPTH:
        return {"opaque": "nested too deeply"}
    if isinstance(value, np.ndarray | np.generic):
        return _encode_array(value, arrays)
    if isinstance(value, int):
        # Longer ones can't be read back.
        return int(value) if abs(value) < 10**4000 else {"opaque": "int"}
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    special = put(value)
    if special is not None:
        return special
    if isinstance(value, list):
        return [inner(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [inner(item) for item in value]}
    if isinstance(value, set | frozenset):
        return {"set": [inner(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[inner(key), inner(item)] for key, item in value.items()]}
    if isinstance(value, range):
        return {"range": [value.start, value.stop, value.step]}
    if isinstance(value, ITERATORS):
        items = [inner(item) for item in islice(value, ITEMS)]
        return {"items": [type(value).__name__, items]}
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        if array.dtype.kind in NUMERIC:
            return _encode_array(array, arrays)
    return {"opaque": type(value).__name__}


def _encode_array(value: np.ndarray | np.generic, arrays: list[bytes]) -> dict[str, Any]:
    array = np.asarray(value)
    if array.dtype.kind not in NUMERIC + TEXTUAL or not array.dtype.itemsize or array.dtype.fields:
        return {"objects": list(array.shape)}
    if array.nbytes > ARRAY_BYTES:
        raise MemoryError
    form: dict[str, Any] = {"array": [array.dtype.str, list(array.shape)]}
    if isinstance(value, np.generic):
        form["scalar"] = True
    if array.ndim and not array.flags.c_contiguous:
        form["strided"] = True
    if not array.flags.writeable and not isinstance(value, np.generic):
        form["fixed"] = True
    arrays.append(array.tobytes())
    return form


def decode(form: Any, arrays: list[bytes], get: Get) -> Any:
    """Return the value; ``get(kind, content)`` looks up what ``put`` gave out.

    Raises
    ------
    Gone
        If it is not what :func:`encode` makes.
    """
    try:
        return _decode(form, iter(arrays), get)
    except (Gone, KeyboardInterrupt):
        raise
    except Exception as error:
        raise Gone(f"it sent what is no value: {type(error).__name__}") from None


def _decode(form: Any, arrays: Iterator[bytes], get: Get) -> Any:
    def inner(item: Any) -> Any:
        return _decode(item, arrays, get)

    if isinstance(form, list):
        return [inner(item) for item in form]
    if not isinstance(form, dict):
        return form
    kind, content = next(iter(form.items()))
    if kind == "array":
        return _decode_array(content, form, next(arrays))
    if kind == "objects":
        small = math.prod(content) <= ITEMS
        return np.full(content, None, dtype=object) if small else named(Opaque, "ndarray")()
    if kind == "complex":
        return complex(*content)
    if kind == "tuple":
        return tuple(inner(item) for item in content)
    if kind == "set":
        return {inner(item) for item in content}
    if kind == "dict":
        return {inner(key): inner(item) for key, item in content}
    if kind == "range":
        numbers = range(*content)
        return numbers if len(numbers) <= ITEMS else named(Opaque, "range")()
    if kind == "items":
        return named(Items, content[0])([inner(item) for item in content[1]])
    if kind == "opaque":
        return named(Opaque, content)()
    return get(kind, content)


def _decode_array(content: list[Any], form: dict[str, Any], data: bytes) -> Any:
    name, shape = content
    if not DTYPE.fullmatch(name):
        raise Gone(f"it sent an array of an unknown dtype: {name!r:.40}")
    array = np.frombuffer(data, np.dtype(name)).reshape(shape)
    if form.get("scalar"):
        return array[()]
    if form.get("strided"):
        array = np.stack([array, array], axis=-1)[..., 0]
    else:
        array = array.copy()
    array.flags.writeable = not form.get("fixed")
    return array


class Channel:
    """Messages over a socket."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection

    def send(self, header: dict[str, Any], arrays: list[bytes] = (), *, files: list[int] = ()):
        """Send a message, and open files along with it.

        Raises
        ------
        Gone
            If the other side ended.
        """
        text = json.dumps({**header, "arrays": [len(data) for data in arrays]}).encode()
        size = sum(map(len, arrays))
        if len(text) > HEADER_BYTES or size > ARRAY_BYTES:
            raise MemoryError
        start = FRAME.pack(len(text), size)
        try:
            if files:
                socket.send_fds(self.socket, [start], list(files))
            else:
                self.socket.sendall(start)
            self.socket.sendall(b"".join([text, *arrays]))
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
                start += self._exactly(FRAME.size - len(start), until) if start else b""
                if not start:
                    raise Gone("it ended")
            else:
                start = self._exactly(FRAME.size, until)
            length, size = FRAME.unpack(start)
            if length > HEADER_BYTES or size > ARRAY_BYTES:
                raise Gone("it sent more than can be taken")
            header = json.loads(self._exactly(length, until))
            data = memoryview(self._exactly(size, until))
            arrays, at = [], 0
            for count in header["arrays"]:
                if not 0 <= count <= size - at:
                    raise Gone("it sent less than it said")
                arrays.append(bytes(data[at : at + count]))
                at += count
        except (Gone, Late, KeyboardInterrupt):
            raise
        except OSError as error:
            raise Gone(str(error)) from None
        except Exception as error:
            raise Gone(f"it sent what is no message: {type(error).__name__}") from None
        return header, arrays, given

    def _exactly(self, count: int, until: float | None) -> bytes:
        data = bytearray()
        while len(data) < count:
            if until is not None:
                left = until - monotonic()
                if left <= 0 or not select.select([self.socket], [], [], left)[0]:
                    raise Late
            piece = self.socket.recv(min(1 << 20, count - len(data)))
            if not piece:
                raise Gone("it ended")
            data += piece
        return bytes(data)

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()
