"""A report is the same text where student code runs shut in and where it does not."""

from __future__ import annotations

import os

import pytest

from posenc.grading import _check
from posenc.grading.isolation.sandbox import Sandbox
from posenc.grading.isolation.session import Session

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system can't fork")
SETUP = """import numpy as np
import array, collections, datetime, decimal, enum, fractions, itertools, types
class Liar:
    def __eq__(self, other): return True
    __hash__ = None
class Everything:
    def __eq__(self, other): return True
    def __len__(self): return 2
    def __getitem__(self, key): return 0.0
    def __iter__(self): return iter([[1.0, 0.0], [0.0, 1.0]])
    def __bool__(self): return True
    def __float__(self): return 1.0
    def __call__(self, *_): return 1.0
    __hash__ = None
class ArrayLike:
    def __array__(self, *_, **__): return np.eye(2)
class BrokenArray:
    def __array__(self, *_, **__): raise RuntimeError("no array")
class ObjectArray:
    def __array__(self, *_, **__): return np.array([None, None])
class Long:
    def __len__(self): return 10**9
    def __getitem__(self, key): return 0.0
class NegativeLength:
    def __len__(self): return -1
class BadRepr:
    def __repr__(self): raise RuntimeError("no repr")
class MyArray(np.ndarray): pass
class MyList(list): pass
class MyFloat(float):
    def __eq__(self, other): return True
    __hash__ = None
class Slots:
    __slots__ = ()
Pair = collections.namedtuple("Pair", "a b")
class Level(enum.IntEnum):
    HIGH = 1
class Meta(type):
    def __repr__(cls): raise RuntimeError
class Odd(metaclass=Meta): pass
loop = []
loop.append(loop)
def deep(n):
    value = []
    for _ in range(n): value = [value]
    return value
"""
# What a function returns, ``right`` among it being what is asked for.
RETURNED = r"""
None
...
NotImplemented
True
False
np.bool_(True)
0
-1
10**30
10**400
10**4000
-(10**5000)
1.5
float("nan")
float("inf")
-0.0
1 + 2j
complex("nan")
np.float32(1)
np.float64("nan")
np.int8(3)
np.complex128(1j)
"text"
""
"\ud800"
"\x1b[31mred\n"
[]
()
{}
set()
[1, 2]
[[1, 0], [0, 1]]
right.tolist()
tuple(map(tuple, right))
[[1, 2], [3]]
[[1, None], [3, 4]]
["a", "b"]
[["1", "0"], ["0", "1"]]
[right]
[right, right]
(right, None)
{"a": right}
{1: [2, (3, None)]}
{1, 2}
{"x", 1}
range(4)
map(list, right)
(row for row in right)
iter([1])
reversed([1, 2])
iter("ab")
iter(range(3))
iter({1})
zip([1], [2])
{}.keys()
dict(a=1).items()
print
len
lambda x: x
rotation_matrix
type
int
Liar
Liar()
ArrayLike()
ObjectArray()
NegativeLength()
BadRepr()
Slots()
Odd
Odd()
MyList([1, 2])
MyList(right.tolist())
MyFloat(1.5)
Pair(1, 2)
Level.HIGH
np
types
object()
Exception("x")
np.random.default_rng(1)
fractions.Fraction(1, 2)
decimal.Decimal(1)
datetime.date(2020, 1, 1)
np.array(None)
np.array([None, 1])
np.array([[1, 0], [0, 1]], dtype=object)
right.astype(object)
np.array([Liar(), Liar()])
np.array([[Liar(), Liar()], [Liar(), Liar()]])
np.full((2, 2), Liar())
np.array([10**30])
np.array([10**30, 1]).reshape(2)
np.array(["a", "b"])
np.array([["a", "b"], ["c", "d"]])
right.astype(str)
right.astype("S9")
np.array(["\ud800"])
np.frombuffer(bytes([255] * 16), "U1").reshape(2, 2)
np.array(["2020-01-01"], "M8[D]")
np.ones((2, 2), "m8[s]")
np.matrix(right)
np.matrix(right) + 1
right.view(MyArray)
(right + 1).view(MyArray)
np.ma.array(right, mask=[[0, 1], [1, 0]])
np.ma.array(right + 1, mask=[[0, 1], [1, 0]])
np.ma.array(right)
np.ma.masked
right.T
right.T.copy()
right[::-1]
np.asfortranarray(right)
np.asfortranarray(right.T)
right.astype(">f8")
right.T.astype(">f8")
right.astype("f4")
right.astype("f2")
right.astype("g")
right.astype(complex)
right + 1j
right.astype(int)
right.astype(bool)
right > 0
right[None]
right[0]
right.ravel()
right[..., None]
np.zeros((0, 2))
np.zeros((2, 0))
np.zeros(())
np.zeros((1,) * 60)
np.empty((2, 2), "U0")
np.full((2, 2), np.nan)
np.full((2, 2), np.inf)
-right
np.broadcast_to(1.0, (2, 2))
right.flat
right.dtype
np.s_[1:2]
np.char.array(["a"])
angle
[angle]
deep(10)
exec("raise SystemExit") or 1
(_ for _ in ()).throw(StopIteration)
(_ for _ in ()).throw(GeneratorExit)
(_ for _ in ()).throw(Exception("a\nb"))
(_ for _ in ()).throw(Exception("x" * 10_000))
(_ for _ in ()).throw(NotImplementedError("x"))
(_ for _ in ()).throw(np.linalg.LinAlgError("singular"))
undefined_name
rotation_matrix()
np.nope
1 / 0
np.array(right, order="F")[None]
[np.float64(1)]
[True, 1.5, None]
""".strip().splitlines()
FUNCTIONS = {
    "generator function": "def rotation_matrix(angle):\n    yield 1\n",
    "no arguments": "def rotation_matrix():\n    return 1\n",
    "a class": "def rotation_matrix(angle):\n    class Local: pass\n    return Local()\n",
    "prints": "def rotation_matrix(angle):\n    print('x' * 100); return None\n",
    "warns": "def rotation_matrix(angle):\n    import warnings; warnings.warn('x'); return None\n",
    "global state": "calls = []\n"
    "def rotation_matrix(angle):\n    calls.append(1); return len(calls)\n",
    "not a function": "rotation_matrix = 3\n",
    "not a function list": "rotation_matrix = [3]\n",
    "none": "rotation_matrix = None\n",
    "array instead": "rotation_matrix = np.eye(2)\n",
    "class": "class rotation_matrix:\n    def __init__(self, angle): self.a = angle\n",
    "callable": "class C:\n    def __call__(self, angle): return 1\nrotation_matrix = C()\n",
    "partial": "import functools\nrotation_matrix = functools.partial(lambda a, b: b, 1)\n",
    "ufunc": "rotation_matrix = np.cos\n",
    "builtin": "rotation_matrix = len\n",
    "deep recursion": "def rotation_matrix(angle):\n    return rotation_matrix(angle)\n",
    "changes its input": "def rotation_matrix(angle):\n"
    "    if np.ndim(angle): angle[...] = 0\n    return angle\n",
}
# Sequences and buffers that NumPy reads as arrays: the answer of some, and right.
SEQUENCES = (
    "collections.deque(map(list, right))",
    "collections.UserList(right.tolist())",
    "[collections.deque(row) for row in right]",
    "[array.array('d', row) for row in right]",
    "right.data",
)
KEYS = ("{frozenset({1}): 2}", "{frozenset({1}), frozenset()}", "frozenset()")


def returning(value: str) -> str:
    """Return the source of a function that returns something else."""
    lines = (
        "def rotation_matrix(angle):",
        "c, s = np.cos(angle), np.sin(angle)",
        "right = np.array([[c, -s], [s, c]])",
        f"return {value}",
    )
    return "\n    ".join(lines)


@pytest.fixture(scope="module")
def session():
    with Sandbox("00-start") as sandbox, Session(sandbox) as session:
        yield session


def both(session: Session, source: str):
    """Return the two reports."""
    source = f"{SETUP}\n{source}"
    namespace: dict = {}
    exec(source, namespace)
    here = _check.check_in(namespace, "rotation_matrix")
    assert session.cell(source, 20.0).error is None
    with session.serving() as names:
        there = _check.check_in(names, "rotation_matrix")
    return here, there


def same(session: Session, source: str) -> None:
    here, there = both(session, source)
    assert there.lines == here.lines
    assert (there.points, there.state) == (here.points, here.state)
    "\n".join(there.lines).encode()


@pytest.mark.parametrize("value", RETURNED)
def test_whatever_is_returned_is_called_the_same(session, value):
    same(session, returning(value))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_whatever_a_function_is_it_is_called_the_same(session, function):
    same(session, FUNCTIONS[function])


@pytest.mark.parametrize("value", SEQUENCES)
def test_what_numpy_reads_as_an_array_is_judged_as_one(session, value):
    same(session, returning(value))


@pytest.mark.parametrize("value", KEYS)
def test_frozen_sets_are_called_the_same(session, value):
    same(session, returning(value))


# What can't be told there without running student code here, or is cut for its size.
OTHERWISE = (
    "Everything()",
    "BrokenArray()",
    "bytearray(b'x')",
    "(1/0 for _ in right)",
    "np.zeros((2, 2), [('a', 'f8')])",
    "collections.OrderedDict(a=right)",
    "np.nditer(right)",
    "np.poly1d([1, 2])",
    "deep(100)",
    "loop",
)


@pytest.mark.parametrize("value", OTHERWISE)
def test_what_is_called_otherwise_earns_the_same(session, value):
    here, there = both(session, returning(value))
    assert here.points == there.points == 0
    assert there.state in ("wrong", "crash")
    assert len(there.lines) == len(here.lines)
