"""What crosses between the judge and student code: plain data whole, all else as a name."""

from __future__ import annotations

import ast
import collections
import contextlib
import decimal
import enum
import fractions
import json
import math
import os
import resource
import select
import socket
import struct
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from posenc.grading.isolation import wire
from posenc.grading.isolation.wire import Channel, Gone, Items, Late, Opaque, decode, encode

quick = settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))


def unknown(kind, _content):
    raise Gone(f"unknown: {kind}")


def crossed(value):
    """Return what the other side makes of a value, through the text of a message."""
    form, arrays = encode(value)
    return decode(json.loads(json.dumps(form)), [bytearray(data) for data in arrays], unknown)


def same(one, other) -> bool:
    """Return whether two values can't be told apart: classes, signs of zero, NaN and layout too."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray | np.generic):
        if one.dtype != other.dtype or np.shape(one) != np.shape(other):
            return False
        if isinstance(one, np.ndarray):
            flags = ("C_CONTIGUOUS", "F_CONTIGUOUS", "WRITEABLE")
            if any(one.flags[flag] != other.flags[flag] for flag in flags):
                return False
        return one.tobytes() == other.tobytes()
    if isinstance(one, float):
        return struct.pack("d", one) == struct.pack("d", other) or (one != one and other != other)
    if isinstance(one, complex):
        return same(one.real, other.real) and same(one.imag, other.imag)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return same(list(one), list(other)) and same(list(one.values()), list(other.values()))
    if isinstance(one, set | frozenset):
        # A NaN is equal to nothing.
        return sorted(map(repr, one)) == sorted(map(repr, other))
    return one == other


numbers = st.one_of(
    st.booleans(),
    st.integers(),
    st.integers(-(2**12_999), 2**12_999),
    st.floats(),
    st.complex_numbers(allow_nan=True, allow_infinity=True),
)
scalars = st.one_of(st.none(), numbers, st.text())
dtypes = st.one_of(
    arrays_of.boolean_dtypes(),
    arrays_of.integer_dtypes(endianness="?"),
    arrays_of.unsigned_integer_dtypes(endianness="?"),
    arrays_of.floating_dtypes(endianness="?"),
    arrays_of.complex_number_dtypes(endianness="?"),
    arrays_of.unicode_string_dtypes(endianness="?", max_len=9),
    arrays_of.byte_string_dtypes(max_len=9),
    arrays_of.datetime64_dtypes(endianness="?"),
    arrays_of.timedelta64_dtypes(endianness="?"),
)
some_arrays = dtypes.flatmap(
    lambda dtype: arrays_of.arrays(
        dtype, arrays_of.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
    )
)
hashable = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=5)
nested = st.recursive(
    st.one_of(scalars, some_arrays),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(hashable, inner, max_size=4),
        st.sets(hashable, max_size=4),
        st.frozensets(hashable, max_size=4),
    ),
    max_leaves=12,
)


# What crosses whole.


@quick
@given(nested)
def test_plain_data_arrives_as_it_was(value):
    assert same(crossed(value), value)


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, -0.0, 5e-324, 0.1, complex(-0.0, math.nan), complex(math.inf)],
)
def test_special_numbers_keep_sign_and_kind(value):
    assert same(crossed(value), value)


@quick
@given(st.text(st.characters(categories=("Cs", "Lu", "So", "Cc"))))
def test_text_arrives_as_whole_characters(text):
    found = crossed(text)
    found.encode()
    assert type(found) is str
    assert found == text or any("\ud800" <= character <= "\udfff" for character in text)


def test_half_a_character_becomes_a_question_mark():
    assert crossed("a\ud800b") == "a?b"
    assert crossed({"\udc80": ["\udc80"]}) == {"?": ["?"]}


def order(array, which: str):
    """Return an array of the same content that lies in memory in another way."""
    if which == "F":
        return np.asfortranarray(array)
    if which == "strided":
        return np.repeat(array, 2, axis=-1)[..., ::2]
    if which == "reversed":
        return array[::-1].copy()[::-1]
    if which == "turned":
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, -1, 0)), 0, -1)
    return np.broadcast_to(array[:1], array.shape)


@quick
@given(
    arrays_of.arrays(
        st.one_of(
            arrays_of.floating_dtypes(endianness="="),
            arrays_of.integer_dtypes(endianness="="),
            arrays_of.boolean_dtypes(),
            arrays_of.datetime64_dtypes(endianness="="),
        ),
        arrays_of.array_shapes(min_dims=1, max_dims=4, max_side=4),
    ),
    st.sampled_from(["F", "strided", "reversed", "turned", "broadcast"]),
    st.booleans(),
)
def test_layout_in_memory_and_read_only_are_kept(array, which, fixed):
    array = order(array, which)
    if fixed:
        array.flags.writeable = False
    found = crossed(array)
    assert found.flags.c_contiguous == array.flags.c_contiguous
    assert found.flags.f_contiguous == array.flags.f_contiguous
    assert found.flags.writeable == array.flags.writeable
    assert found.dtype == array.dtype
    assert found.tobytes() == array.tobytes()


def test_an_array_that_arrives_is_nobody_elses():
    form, arrays = encode(np.zeros(3))
    data = bytearray(arrays[0])
    found = decode(form, [data], unknown)
    data[:] = b"\xff" * len(data)
    found[0] = 1.0
    assert found.tolist() == [1.0, 0.0, 0.0]


@quick
@given(dtypes.flatmap(lambda dtype: arrays_of.arrays(dtype, ())).map(lambda array: array[()]))
def test_scalars_of_numpy_stay_scalars(value):
    found = crossed(value)
    assert type(found) is type(value)
    assert np.asarray(found).tobytes() == np.asarray(value).tobytes()


@pytest.mark.parametrize("kind", "?bhilqBHILQefdgFDG")
def test_every_kind_of_number_of_numpy_crosses(kind):
    array = np.arange(6).astype(kind).reshape(2, 3)
    assert same(crossed(array), array)
    assert same(crossed(array[:0]), array[:0])
    found = crossed(array[1, 2])
    assert isinstance(found, np.generic)
    assert found == array[1, 2]
    assert found.dtype == array.dtype


@pytest.mark.parametrize(
    "numbers", [range(0), range(5), range(2, 20, 3), range(5, 0, -1), range(-3, 3)]
)
def test_ranges_stay_ranges(numbers):
    found = crossed(numbers)
    assert type(found) is range
    assert found == numbers


@pytest.mark.parametrize(
    ("iterator", "name", "items"),
    [
        (map(abs, [-1, 2]), "map", [1, 2]),
        (filter(None, [0, 2]), "filter", [2]),
        (zip([1], "a", strict=True), "zip", [(1, "a")]),
        (enumerate("a"), "enumerate", [(0, "a")]),
        (reversed("ab"), "reversed", ["b", "a"]),
        (iter([1, 2]), "list_iterator", [1, 2]),
        ((n for n in range(3)), "generator", [0, 1, 2]),
        ({"a": 1}.keys(), "dict_keys", ["a"]),
        ({"a": 1}.values(), "dict_values", [1]),
        ({"a": 1}.items(), "dict_items", [("a", 1)]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_iterators_arrive_with_what_they_give_and_are_no_lists(iterator, name, items):
    found = crossed(iterator)
    assert isinstance(found, Items)
    assert type(found).__name__ == name
    assert list(found) == items


def test_an_endless_iterator_is_cut():
    found = crossed(n for n in iter(int, 1))
    assert len(list(found)) == wire.ITEMS


class Named(collections.namedtuple("Named", "a b")):
    pass


class Level(enum.IntEnum):
    HIGH = 3


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (Named(1, 2), (1, 2)),
        (Level.HIGH, 3),
        (collections.OrderedDict(a=1), {"a": 1}),
        (collections.Counter("aa"), {"a": 2}),
        (frozenset({1}), frozenset({1})),
        (type("S", (str,), {})("x"), "x"),
        (type("F", (float,), {"__repr__": lambda self: "]"})(1.5), 1.5),
        (type("L", (list,), {})([1]), [1]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_subclass_crosses_as_what_it_extends(value, found):
    assert same(crossed(value), found)


@pytest.mark.parametrize("value", [{frozenset({1}): 2}, {frozenset({1}), 2}])
def test_sets_that_can_be_keys_cross(value):
    assert crossed(value) == value


def test_a_strided_array_keeps_its_byte_order():
    array = np.arange(10, dtype=">f8")[::2]
    assert crossed(array).dtype == array.dtype


# What does not.


class Liar:
    def __eq__(self, other):
        return True

    __hash__ = None


class Broken:
    def __array__(self, *_, **__):
        raise RuntimeError


class Sly:
    def __reduce__(self):
        raise AssertionError("it was pickled")

    __reduce_ex__ = __getstate__ = __reduce__


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (Liar(), "Liar"),
        (Broken(), "Broken"),
        (Sly(), "Sly"),
        (b"bytes", "bytes"),
        (bytearray(b"x"), "bytearray"),
        (decimal.Decimal(1), "Decimal"),
        (fractions.Fraction(1, 2), "Fraction"),
        (slice(3), "slice"),
        (..., "ellipsis"),
        (int, "type"),
        (json, "module"),
        (len, "builtin_function_or_method"),
        (lambda: None, "function"),
        (ValueError("x"), "ValueError"),
        (np.random.default_rng(1), "Generator"),
        (10**4000, "int"),
        (Path("x"), type(Path("x")).__name__),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_anything_else_arrives_as_its_name_alone(value, name):
    for found in (crossed(value), crossed([{"a": (value,)}])[0]["a"][0]):
        assert isinstance(found, Opaque)
        assert type(found).__name__ == name
        assert repr(found) == f"<{name}>"


@pytest.mark.parametrize("name", ["", "a b", "<script>", "x" * 61, "\ud800", "a\n", "1"])
def test_a_name_that_can_not_be_shown_is_not(name):
    assert repr(decode({"opaque": name}, [], unknown)) == "<object>"


@pytest.mark.parametrize(
    "array",
    [
        np.array([Sly(), None]),
        np.array([1, 2], dtype=object),
        np.zeros(2, [("a", "f8")]),
        np.zeros(2, "V4"),
    ],
    ids=["objects", "numbers as objects", "fields", "raw bytes"],
)
def test_arrays_of_objects_arrive_without_them(array):
    found = crossed(array)
    assert found.dtype == object
    assert found.shape == array.shape
    assert all(item is None for item in found.ravel())


def test_what_is_nested_too_deeply_is_cut():
    value = []
    for _ in range(100_000):
        value = [value]
    found, depth = crossed(value), 0
    while isinstance(found, list):
        found, depth = found[0], depth + 1
    assert isinstance(found, Opaque)
    assert depth == wire.DEPTH + 1


def test_what_the_sides_look_up_goes_by_number():
    kept = []

    def put(value):
        if callable(value):
            kept.append(value)
            return {"ours": len(kept) - 1}
        return None

    form, arrays = encode({"f": [len, 1]}, put)
    assert form == {"dict": [["f", [{"ours": 0}, 1]]]}
    assert decode(form, arrays, lambda kind, number: (kind, kept[number])) == {
        "f": [("ours", len), 1]
    }


@pytest.mark.parametrize("path", sorted(Path(wire.__file__).parent.glob("*.py")), ids=str)
def test_nothing_is_pickled(path):
    names = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            assert not names & {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert (node.module or "").partition(".")[0] not in names
        elif isinstance(node, ast.keyword):
            assert node.arg != "allow_pickle"


# Values that nobody encoded.

N = 2**61 - 1
VALUES = {
    "an empty object": {},
    "an unknown kind": {"pickle": "x"},
    "a private kind": {"_may_hash": []},
    "its own method": {"value": 1},
    "an array without bytes": {"array": ["<f8", [2]]},
    "an array of objects": {"array": ["|O", [1]]},
    "fields": {"array": ["f8,f8", [1]]},
    "a dtype that is none": {"array": ["<f3", [1]]},
    "a dtype that is a list": {"array": [[["a", "O"]], [1]]},
    "a huge dtype": {"array": ["<U99999999999", [0]]},
    "a strange unit": {"array": ["<M8[parsec]", [1]]},
    "no shape": {"array": ["<f8"]},
    "a shape of text": {"array": ["<f8", "1"]},
    "a shape that is negative": {"objects": [-1]},
    "a shape of many dimensions": {"objects": [1] * 100},
    "a shape of fractions": {"objects": [1.5]},
    "a shape of nothing by much": {"objects": [0, 10**30]},
    "no complex": {"complex": [1, 2, 3]},
    "a complex of lists": {"complex": [[], []]},
    "a tuple of nothing": {"tuple": None},
    "a set of lists": {"set": [[1]]},
    "a key that is a list": {"dict": [[[], 1]]},
    "an entry that is no pair": {"dict": [[1, 2, 3]]},
    "a dict that is none": {"dict": 3},
    "a range of text": {"range": ["1"]},
    "a range of step 0": {"range": [1, 2, 0]},
    "items of nothing": {"items": None},
    "items of no name": {"items": [1, []]},
    "a name that is none": {"opaque": 1},
}


@pytest.mark.parametrize("bad", VALUES)
def test_what_is_no_value_is_refused(bad):
    for form in (VALUES[bad], [1, {"tuple": [VALUES[bad]]}]):
        with pytest.raises(Gone):
            decode(form, [bytearray(8)] if bad in ("a strange unit", "fields") else [], unknown)


@pytest.mark.parametrize(
    ("dtype", "shape", "size"),
    [
        ("<f8", [2], 15),
        ("<f8", [2], 24),
        ("<f8", [10**12], 8),
        ("<f8", [-2, -2], 8),
        ("<U3", [2], 12),
    ],
)
def test_arrays_whose_bytes_do_not_fit_are_refused(dtype, shape, size):
    with pytest.raises(Gone):
        decode({"array": [dtype, shape]}, [bytearray(size)], unknown)


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.one_of(st.sampled_from((*wire.KINDS, "scalar", "order", "fixed")), st.text()),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=15,
)


@quick
@given(json_values, st.lists(st.binary(max_size=40).map(bytearray), max_size=3))
def test_any_json_is_a_value_or_refused(form, arrays):
    with contextlib.suppress(Gone):
        decode(form, arrays, unknown)


@pytest.mark.parametrize(
    "form",
    [
        {"set": [n * N for n in range(1, 300_000)]},
        {"dict": [[n * N, n] for n in range(1, 300_000)]},
        [{"set": [n * N for n in range(1, 5000)]}] * 50,
        {"range": [0, 10**18]},
        {"range": [0, 10**40]},
        {"objects": [10**9]},
        [[] for _ in range(1_000_000)],
    ],
    ids=["a set", "a dict", "many sets", "a range", "a longer range", "an array", "lists"],
)
def test_a_message_that_asks_for_much_is_read_in_little_time(form):
    started = time.process_time()
    decode(form, [], unknown)
    assert time.process_time() - started < 5


# What hostile messages of 8 MB cost, by what a small part of them does.
COSTLY = {
    "a product of long numbers": {"objects": [10**4298] * 300},
    "many arrays of objects": [{"objects": [wire.ITEMS]}] * 100,
    "long keys that collide": {"set": [{"tuple": [1] * 350 + [n * N]} for n in range(1, 2000)]},
    "many classes": [{"opaque": "a"}] * 40_000,
}


@pytest.mark.parametrize("form", COSTLY)
def test_what_a_message_costs_grows_with_its_length(form):
    before, started = _memory(), time.process_time()
    # Held while it is measured.
    with contextlib.suppress(Gone):
        kept = decode(COSTLY[form], [], unknown)
        assert kept is not None
        assert _memory() - before < 40 << 20
    assert time.process_time() - started < 1.0


def _memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


# Messages.


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def framed(header, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<II", len(text), len(data)) + text + data


MESSAGE = {"a": 1, "arrays": [3, 0, 2]}


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 50])
def test_a_message_in_small_pieces_is_read(pair, size):
    ours, theirs = pair
    whole = framed(MESSAGE, b"abcde")

    def write():
        for start in range(0, len(whole), size):
            theirs.sendall(whole[start : start + size])
            time.sleep(0.001)

    writer = threading.Thread(target=write)
    writer.start()
    header, arrays, files = Channel(ours).receive(seconds=20.0)
    writer.join()
    assert header == MESSAGE
    assert [bytes(data) for data in arrays] == [b"abc", b"", b"de"]
    assert files == []


def test_messages_that_come_together_are_read_one_by_one(pair):
    ours, theirs = pair
    theirs.sendall(framed({"n": 1, "arrays": [2]}, b"ab") + framed({"n": 2, "arrays": []}) * 2)
    theirs.close()
    channel = Channel(ours)
    assert channel.receive()[:2] == ({"n": 1, "arrays": [2]}, [b"ab"])
    assert channel.receive()[0]["n"] == 2
    # A message that is here is read, however little time is left.
    assert channel.receive(seconds=5.0)[0]["n"] == 2
    with pytest.raises(Gone):
        channel.receive()


@quick
@given(st.lists(st.binary(max_size=300), max_size=5), st.text(st.characters(), max_size=50))
def test_what_is_sent_is_received(arrays, text):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        Channel(ours).send({"text": text}, arrays)
        header, got, _ = Channel(theirs).receive(seconds=5.0)
    assert header["text"] == text
    assert got == arrays


def test_large_arrays_cross_both_ways(pair):
    value = [np.arange(3_000_000.0), np.ones((1000, 1000), order="F"), "x" * 100_000]
    one, other = map(Channel, pair)

    def echo():
        header, arrays, _ = other.receive(seconds=30.0)
        other.send(header, arrays)

    thread = threading.Thread(target=echo)
    thread.start()
    form, arrays = encode(value)
    one.send({"form": form}, arrays)
    header, arrays, _ = one.receive(seconds=30.0)
    thread.join()
    assert same(decode(header["form"], arrays, unknown), value)


def test_open_files_come_along(pair, tmp_path):
    path = tmp_path / "file"
    path.write_text("text")
    with path.open() as file:
        Channel(pair[0]).send({"do": "x"}, [b"ab"], files=[file.fileno()])
    header, arrays, (number,) = Channel(pair[1]).receive(files=1)
    assert (header["do"], arrays) == ("x", [b"ab"])
    with os.fdopen(number) as file:
        assert file.read() == "text"


def test_files_come_with_the_message_that_they_were_sent_with(pair, tmp_path):
    sender, receiver = map(Channel, pair)
    for text in ("one", "two", "three"):
        (tmp_path / text).write_text(text)
        with (tmp_path / text).open() as file:
            sender.send({"do": text}, [b"ab"], files=[file.fileno()])
    for text in ("one", "two", "three"):
        header, _, (number,) = receiver.receive(files=1)
        with os.fdopen(number) as file:
            assert header["do"] == file.read() == text


BAD = {
    "nothing": b"",
    "half a start": b"\x01\x00",
    "no text": struct.pack("<II", 0, 0),
    "half a text": framed(MESSAGE, b"abcde")[:20],
    "half the arrays": framed(MESSAGE, b"abcde")[:-1],
    "no json": framed(b"x" * 50),
    "no text at all": framed(b"\xff\xfe\x00"),
    "a list": framed([]),
    "null": framed(b"null"),
    "a number": framed(b"7"),
    "deep": framed(b"[" * 100_000),
    "deep objects": framed(b'{"a":' * 100_000),
    "a long number": framed(b'{"arrays": [], "x": ' + b"9" * 100_000 + b"}"),
    "no arrays": framed({"a": 1}),
    "arrays that are a number": framed({"arrays": 1}),
    "arrays that are an object": framed({"arrays": {"a": 1}}),
    "sizes of text": framed({"arrays": ["5"]}, b"abcde"),
    "sizes that are true": framed({"arrays": [True]}, b"a"),
    "sizes that are fractions": framed({"arrays": [5.0]}, b"abcde"),
    "a size that is NaN": framed(b'{"arrays": [NaN]}'),
    "negative sizes": framed({"arrays": [-5, 10]}, b"abcde"),
    "sizes too small": framed({"arrays": [4]}, b"abcde"),
    "sizes too large": framed({"arrays": [6]}, b"abcde"),
    "a huge text": struct.pack("<II", 2**32 - 1, 0),
    "huge arrays": struct.pack("<II", 2, 2**32 - 1) + b"{}",
    "a text just too long": struct.pack("<II", wire.HEADER_BYTES + 1, 0),
    "arrays just too long": struct.pack("<II", 2, wire.ARRAY_BYTES + 1),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("files", [0, 1])
def test_what_is_no_message_is_refused(pair, bad, files):
    ours, theirs = pair

    def write():
        # It may be refused before all of it is written.
        with theirs, contextlib.suppress(OSError):
            theirs.sendall(BAD[bad])

    writer = threading.Thread(target=write)
    writer.start()
    started = time.monotonic()
    with pytest.raises(Gone):
        Channel(ours).receive(seconds=20.0, files=files)
    assert time.monotonic() - started < 5
    ours.close()
    writer.join()


@quick
@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_refused(data):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(data)
        theirs.close()
        with contextlib.suppress(Gone):
            Channel(ours).receive(seconds=5.0)


def test_what_is_announced_takes_no_memory(pair):
    ours, theirs = pair
    theirs.sendall(struct.pack("<II", wire.HEADER_BYTES, wire.ARRAY_BYTES) + b"{")
    before = _memory()
    with pytest.raises(Late):
        Channel(ours).receive(seconds=0.3)
    assert _memory() - before < 16 << 20


def test_many_empty_arrays_are_read_in_little_time(pair):
    ours, theirs = pair
    text = b'{"arrays": [' + b"0," * 500_000 + b"0]}"
    writer = threading.Thread(target=theirs.sendall, args=[framed(text)])
    writer.start()
    started = time.process_time()
    assert len(Channel(ours).receive(seconds=30.0)[1]) == 500_001
    writer.join()
    assert time.process_time() - started < 5


@pytest.mark.parametrize("sent", [b"", b"\x05", framed(MESSAGE, b"abcde")[:-1]])
def test_a_silent_side_is_late(pair, sent):
    ours, theirs = pair
    theirs.sendall(sent)
    started = time.monotonic()
    with pytest.raises(Late):
        Channel(ours).receive(seconds=0.3)
    assert 0.25 < time.monotonic() - started < 5


def test_the_time_that_a_process_sets_for_all_sockets_is_not_for_these(pair):
    _, raw = pair
    socket.setdefaulttimeout(0.01)
    try:
        again = Channel(socket.socket(fileno=os.dup(raw.fileno())))
    finally:
        socket.setdefaulttimeout(None)
    assert again.socket.gettimeout() is None
    again.close()


def test_what_is_there_after_the_time_is_late(pair):
    """However fast a side sends or reads on, it gets no more time."""
    ours, theirs = pair
    theirs.sendall(framed(MESSAGE, b"abcde"))
    channel = Channel(ours)
    with pytest.raises(Late):
        channel.receive(seconds=-1.0)
    assert not channel._waited(select.POLLOUT, time.monotonic() - 1)
    assert channel._waited(select.POLLOUT, time.monotonic() + 1)
    assert channel.receive(seconds=5.0)[0] == MESSAGE


def test_a_side_that_dribbles_gets_no_more_time(pair):
    ours, theirs = pair
    ended = threading.Event()

    def write():
        with contextlib.suppress(OSError):
            theirs.sendall(struct.pack("<II", 1000, 0))
            while not ended.wait(0.02):
                theirs.sendall(b" ")

    writer = threading.Thread(target=write)
    writer.start()
    started = time.monotonic()
    with pytest.raises(Late):
        Channel(ours).receive(seconds=0.5)
    ended.set()
    writer.join()
    assert time.monotonic() - started < 5


def test_a_side_that_does_not_read_is_given_up(pair):
    started = time.monotonic()
    with pytest.raises(Gone):
        Channel(pair[0], patience=0.3).send({}, [bytes(32 << 20)])
    assert 0.25 < time.monotonic() - started < 5


def test_a_side_that_does_not_read_gets_no_files(pair):
    ours, theirs = pair
    ours.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            ours.send(bytes(1 << 12))
    with pytest.raises(Gone):
        Channel(ours, patience=0.1).send({}, files=[theirs.fileno()])


def test_a_side_that_reads_slowly_is_given_up(pair):
    ours, theirs = pair
    ended = threading.Event()

    def read():
        while not ended.wait(0.02):
            theirs.recv(100)

    reader = threading.Thread(target=read)
    reader.start()
    started = time.monotonic()
    with pytest.raises(Gone):
        Channel(ours, patience=0.5).send({}, [bytes(32 << 20)])
    ended.set()
    reader.join()
    assert time.monotonic() - started < 5


def test_a_side_that_ended_is_gone(pair):
    ours, theirs = pair
    theirs.close()
    with pytest.raises(Gone):
        Channel(ours).send({}, [bytes(1 << 20)])
    with pytest.raises(Gone):
        Channel(ours).receive()


def test_what_is_too_large_is_not_sent(pair):
    channel = Channel(pair[0])
    with pytest.raises(MemoryError):
        channel.send({"x": "x" * (wire.HEADER_BYTES + 1)})
    with pytest.raises(MemoryError):
        channel.send({}, [bytes(wire.ARRAY_BYTES + 1)])
    with pytest.raises(MemoryError):
        encode(np.broadcast_to(1.0, (10**5, 10**4)))
    channel.send({"x": 1})
    assert Channel(pair[1]).receive()[0]["x"] == 1
