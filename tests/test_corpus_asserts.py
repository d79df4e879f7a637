"""Attacks on cells of plain asserts, as an instructor writes them for a course of their own."""

import pytest
from nbformat import writes
from nbformat.v4 import new_code_cell, new_notebook

from posenc.grading.isolation.sandbox import Sandbox
from posenc.grading.results import BLANK, FAULT, GRADED
from posenc.grading.workers import Assigned, Job, judged, unsolved

NAME = "own"
IMPORTS = "import math\nimport numpy as np\nfrom math import isclose"
TEST = "test-double"
POINTS = 2
RIGHT = "def double(x):\n    return [2.0 * value for value in x]"
WRONG = "def double(x):\n    return [0.5 for value in x]"
STUB = "def double(x):\n    raise NotImplementedError()"
# Right for a function of numbers.
TWICE = "assert double(3.0) == 6.0\nassert double(-1.0) == -2.0"


@pytest.fixture(scope="module")
def sandbox():
    """Start one for all."""
    with Sandbox(NAME) as running:
        yield running


def notebook(answer, test, *, own=(), before=IMPORTS, marked=True):
    """Make a notebook of an import cell, an answer, cells of the student's, and a graded cell."""

    def cell(name, source, **part):
        standard = {"grade": False, "locked": False, "solution": False, "task": False}
        made = new_code_cell(source, id=name)
        made.metadata["nbgrader"] = {**standard, "schema_version": 3, "grade_id": name, **part}
        return made

    first = cell("imports", before, locked=True) if marked else new_code_cell(before, id="imports")
    cells = [
        first,
        cell("double", answer, solution=True),
        *(new_code_cell(source, id=f"own-{number}") for number, source in enumerate(own)),
        cell(TEST, test, grade=True, locked=True, points=POINTS),
    ]
    return writes(new_notebook(cells=cells))


def ended(folder, sandbox, answer, test, *, own=(), right=RIGHT, files=None, **how):
    """Return the state, the points and the lines of a submission's graded cell."""
    source = notebook(right, test, **how)
    # Students don't see what is tested.
    released = notebook(STUB, "# hidden", **how)
    submission = folder / "submitted" / "somebody" / NAME
    submission.mkdir(parents=True)
    handed_in = notebook(answer, "# hidden", own=own, **how)
    (submission / f"{NAME}.ipynb").write_text(handed_in)
    given = Assigned(NAME, {NAME: source}, {NAME: released}, files or {}, 3.0)
    result = judged(Job("somebody", submission, NAME), given, sandbox).result
    return result.state, [(task.points, task.lines) for task in result.tasks], result.notes


def points(*args, **how):
    """Return the points of a graded cell, which must have been graded."""
    state, tasks, notes = ended(*args, **how)
    assert state in (GRADED, BLANK), (tasks, notes)
    return tasks[0][0]


# Each is a test that the wrong answer fails.
TESTS = {
    "equal": "assert double([1.0, 2.5]) == [2.0, 5.0]",
    "allclose": "assert np.allclose(double([1.0, 2.5]), [2.0, 5.0])",
    "abs": "assert abs(double([3.0])[0] - 6.0) < 1e-9",
    "all": "assert all(value > 1 for value in double([1.0, 2.0]))",
    "any": "assert not any(value < 1 for value in double([1.0, 2.0]))",
    "isinstance": "assert isinstance(double([1.0]), list) and double([1.0])[0] == 2.0",
    "testing": "np.testing.assert_allclose(double([1.0, 4.0]), [2.0, 8.0])",
    "isclose": "assert isclose(double([1.0])[0], 2.0)",
    "math": "assert math.isclose(double([1.0])[0], 2.0)",
    "imported-here": "from numpy.testing import assert_array_equal as same\n"
    "import math as m\nsame(double([1.0]), [2.0])\nassert m.fsum(double([1.0])) == 2.0",
    "sum": "assert sum(double([1.0, 2.0])) == 6.0 and max(double([1.0, 2.0])) == 4.0",
    "helper-here": "def near(a, b):\n    return abs(a - b) < 1e-9\n"
    "assert near(double([1.0])[0], 2.0)",
    "sorted": "assert sorted(double([2.0, 1.0])) == [2.0, 4.0]",
    "message": "value = double([1.0])\nassert value == [2.0], f'got {value!r} {value}'",
    "zip": "for found, right in zip(double([1.0]), [2.0], strict=True):\n    assert found == right",
    "round": "assert round(double([1.0])[0], 3) == 2.0",
    "len": "assert len(double([1.0] * 3)) == 3 and set(double([1.0])) == {2.0}",
}
SHADOWS = {
    "names": "all = any = abs = isinstance = lambda *a, **k: True\nsorted = lambda x: [2.0, 4.0]\n"
    "sum = lambda x: 6.0\nmax = lambda x: 4.0\nround = lambda *a: 2.0\n"
    "isclose = lambda *a, **k: True\nset = lambda x: {2.0}\nlen = lambda x: 3\n"
    "zip = lambda *a, **k: []",
    "np": "class np:\n    allclose = isclose = staticmethod(lambda *a, **k: True)\n"
    "    class testing:\n        assert_allclose = staticmethod(lambda *a, **k: None)\n"
    "class math:\n    isclose = staticmethod(lambda *a, **k: True)",
    "patched": "import math, numpy, numpy.testing\nyes = lambda *a, **k: True\n"
    "numpy.allclose = numpy.isclose = math.isclose = yes\n"
    "for name in dir(numpy.testing):\n    if name.startswith('assert'):\n"
    "        setattr(numpy.testing, name, yes)\nmath.fsum = lambda x: 2.0",
    "replaced": "import types\nfake = types.SimpleNamespace\nyes = lambda *a, **k: True\n"
    "np.testing = fake(assert_allclose=yes)\nmath = fake(isclose=yes)\n"
    "np = fake(allclose=yes, testing=np.testing)",
    "modules": "import sys, types\nfor name in ('numpy', 'math', 'numpy.testing'):\n"
    "    fake = types.ModuleType(name)\n    fake.__getattr__ = lambda name: lambda *a, **k: True\n"
    "    sys.modules[name] = fake",
    "builtins": "import builtins\nfor name in ('all', 'any', 'abs', 'isinstance', 'sum'):\n"
    "    setattr(builtins, name, lambda *a, **k: True)\n"
    "builtins.AssertionError = type('A', (BaseException,), {})",
}


@pytest.mark.parametrize("shadow", SHADOWS)
@pytest.mark.parametrize("marked", [True, False], ids=["locked-imports", "plain-imports"])
def test_a_wrong_answer_fails_whatever_stands_in_for_what_tests_use(
    shadow, marked, tmp_path, sandbox
):
    passed = [
        name
        for name, test in TESTS.items()
        if points(tmp_path / name, sandbox, WRONG, test, own=[SHADOWS[shadow]], marked=marked)
    ]
    assert not passed


@pytest.mark.parametrize("shadow", sorted(set(SHADOWS) - {"builtins", "modules"}))
def test_a_right_answer_passes_whatever_the_student_calls_by_these_names(shadow, tmp_path, sandbox):
    failed = {
        name: found
        for name, test in TESTS.items()
        if (found := points(tmp_path / name, sandbox, RIGHT, test, own=[SHADOWS[shadow]])) != POINTS
    }
    assert not failed


def test_each_of_these_tests_tells_right_from_wrong(tmp_path, sandbox):
    for name, test in TESTS.items():
        assert points(tmp_path / f"{name}-right", sandbox, RIGHT, test) == POINTS, name
        assert points(tmp_path / f"{name}-wrong", sandbox, WRONG, test) == 0, name


YES = "lambda self, *a, **k: True"
OBJECTS = {
    "eq": f"    __eq__ = {YES}\n    __hash__ = None",
    "ne": f"    __eq__ = {YES}\n    __ne__ = lambda self, other: False\n    __hash__ = None",
    "bool": f"    __bool__ = {YES}",
    "compare": f"    __lt__ = __le__ = __gt__ = __ge__ = {YES}",
    "minus": "    __sub__ = __rsub__ = lambda self, other: 0.0",
    "minus-itself": f"    __sub__ = __rsub__ = __abs__ = lambda self, *a: self\n"
    f"    __lt__ = __le__ = {YES}",
    "float": "    __float__ = lambda self: 6.0\n    __index__ = lambda self: 6",
    "array-priority": f"    __array_priority__ = 1e9\n    __eq__ = __req__ = {YES}\n"
    f"    __rsub__ = __sub__ = lambda self, other: 0.0\n    __hash__ = None",
    "array-function": f"    __array_function__ = __array_ufunc__ = {YES}\n"
    "    shape, dtype, ndim = (), float, 0",
    "array": "    __array__ = lambda self, *a, **k: np.array(7.0)\n"
    f"    __array_ufunc__ = __array_function__ = {YES}",
    "contains": f"    __contains__ = {YES}\n    __len__ = lambda self: 1\n"
    "    __iter__ = lambda self: iter([6.0])",
    "round": "    __round__ = lambda self, *a: 6.0",
    "class": "    __class__ = property(lambda self: float)",
    "format": "    __format__ = __str__ = __repr__ = lambda self, *a: '6.0'",
    "everything": f"    __getattr__ = lambda self, name: lambda *a, **k: True\n    __eq__ = {YES}",
}
EXTENDS = {
    "object": "class Lie:\n",
    "float": "class Lie(float):\n",
    "ndarray": "class Lie(np.ndarray):\n    def __new__(cls):\n"
    "        return np.zeros(()).view(cls)\n",
}
AGAINST = {
    "equal": "assert double(3.0) == 6.0",
    "not-unequal": "assert not double(3.0) != 6.0",
    "turned": "assert 6.0 == double(3.0)",
    "abs": "assert abs(double(3.0) - 6.0) < 1e-9",
    "abs-turned": "assert abs(6.0 - double(3.0)) < 1e-9",
    "isclose": "assert isclose(double(3.0), 6.0)",
    "allclose": "assert np.allclose(double(3.0), 6.0)",
    "testing": "np.testing.assert_allclose(double(3.0), 6.0)",
    "array-equal": "np.testing.assert_array_equal(double(3.0), 6.0)",
    "almost": "np.testing.assert_almost_equal(double(3.0), 6.0)",
    "between": "assert 5.9 < double(3.0) < 6.1",
    "is-even": "assert double(3.0) and double(3.0) == 6",
    "instance": "assert isinstance(double(3.0), float) and double(3.0) == 6.0",
    "in": "assert double(3.0) in (6.0, 6)",
    "in-list": "assert [double(3.0)] == [6.0]",
    "unittest": "import unittest\nunittest.TestCase().assertAlmostEqual(double(3.0), 6.0)",
    "unittest-equal": "import unittest\nunittest.TestCase().assertEqual(double(3.0), 6.0)",
}


@pytest.mark.parametrize(
    "kind",
    ["object", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("float", "ndarray"))],
)
@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_is_not_a_number_whatever_it_says(name, kind, tmp_path, sandbox):
    answer = f"{EXTENDS[kind]}{OBJECTS[name]}\ndef double(x):\n    return Lie()"
    passed = [
        against
        for against, test in AGAINST.items()
        if points(tmp_path / against, sandbox, answer, test)
    ]
    assert not passed


RAISES = {
    "assertion": "raise AssertionError('all right')",
    "own-assertion": "raise type('AssertionError', (Exception,), {})('all right')",
    "base-assertion": "raise type('AssertionError', (BaseException,), {})",
    "exit": "import sys; sys.exit(0)",
    "system-exit": "raise SystemExit",
    "os-exit": "import os; os._exit(0)",
    "interrupt": "raise KeyboardInterrupt",
    "generator-exit": "raise GeneratorExit",
    "stop": "raise StopIteration",
    "stop-own": "raise type('Own', (StopIteration,), {})",
    "stop-async": "raise StopAsyncIteration",
    "index": "raise IndexError",
    "fault": "raise type('CallFault', (Exception,), {})('right', '')",
    "grader": "raise type('GraderError', (Exception,), {})('right')",
    "name": "raise NameError('double')",
    "key": "raise KeyError('double')",
    "memory": "raise MemoryError",
    "recursion": "return double(x)",
    "group": "raise BaseExceptionGroup('x', [SystemExit(0)])",
    "not-written": "raise NotImplementedError()",
    "odd-text": "raise ValueError(type('T', (), {'__str__': lambda s: 1 / 0})())",
}
CAUGHT = {
    "plain": "assert double(3.0) == 6.0",
    "map": "assert all(map(lambda x: double(x) == 2 * x, [1.0, 2.0]))",
    "map-itself": "assert all(map(double, [1.0, 2.0])) and list(map(double, [1.0])) != [0.0]",
    "generator": "assert all(double(x) == 2 * x for x in [1.0, 2.0])",
    "for": "for x, found in zip([1.0, 2.0], map(double, [1.0, 2.0])):\n    assert found == 2 * x",
    "iter": "for found in iter(lambda: double(1.0), 2.0):\n    assert found == 2.0",
    "else": "try:\n    double(None)\nexcept TypeError:\n    pass\nelse:\n    assert False",
    "sort": "assert sorted([3.0, 1.0], key=double) == [1.0, 3.0]",
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("stop", "exit", "os-exit") else pytest.mark.slow)
        for name in RAISES
    ],
)
def test_what_a_function_raises_is_no_right_answer(name, tmp_path, sandbox):
    answer = f"def double(x):\n    {RAISES[name]}"
    passed = [
        caught
        for caught, test in CAUGHT.items()
        if points(tmp_path / caught, sandbox, answer, test)
    ]
    assert not passed


READS = {
    "globals": "return globals()[name]",
    "builtins": "import builtins\n        return vars(builtins)[name]",
    "main": "import __main__\n        return vars(__main__)[name]",
    "shell": "return get_ipython().user_ns[name]",
    "frames": "import sys\n        frame = sys._getframe()\n        while frame:\n"
    "            if name in frame.f_locals and frame.f_code.co_name != 'double':\n"
    "                return frame.f_locals[name]\n            frame = frame.f_back",
    "gc": "import gc\n        return next(d[name] for d in gc.get_objects()\n"
    "                    if type(d) is dict and isinstance(d.get(name), float))",
}
KEYS = {
    "variable": "expected = 6.0\nassert double(3.0) == expected",
    "local": "def test():\n    expected = 6.0\n    assert double(3.0) == expected\ntest()",
    "default": "def test(expected=6.0):\n    assert double(3.0) == expected\ntest()",
    "loop": "for x, expected in [(3.0, 6.0), (4.0, 8.0)]:\n    assert double(x) == expected",
    "comprehension": "assert all(double(x) == expected for x, expected in [(3.0, 6.0)])",
}


@pytest.mark.parametrize("key", KEYS)
def test_a_function_finds_no_answer_in_the_cell_that_asks(key, tmp_path, sandbox):
    passed = []
    for name, source in READS.items():
        answer = (
            f"def double(x, name='expected'):\n    try:\n        {source}\n"
            "    except BaseException:\n        pass\n    return 0.0"
        )
        if points(tmp_path / name, sandbox, answer, KEYS[key]):
            passed.append(name)
    assert not passed


VALUES = {
    # What the instructor's last line gives, and what that earns; None where it can't count.
    "none": ("None", POINTS),
    "part": ("1", 1),
    "part-float": ("0.5", 0.5),
    "zero": ("0", 0),
    "all": ("2", POINTS),
    "true": ("True", POINTS),
    "text": ("'10'", POINTS),
    "numpy-int": ("np.int64(1)", 1),
    "numpy-sum": ("sum(np.isclose([1.0, 2.0], [1.0, 3.0]))", 1),
    "numpy-float": ("np.float32(0.5)", 0.5),
    "numpy-zero": ("np.sum([0, 0])", 0),
    "numpy-array-0d": ("np.array(1)", POINTS),
    "minus": ("-10", None),
    "too-many": ("10", None),
    "nan": ("float('nan')", None),
    "inf": ("float('inf')", None),
    "numpy-nan": ("np.float64('nan')", None),
    "numpy-too-many": ("np.int64(10)", None),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_last_line_counts_as_points_where_it_can(name, tmp_path, sandbox):
    line, earned = VALUES[name]
    state, tasks, _ = ended(tmp_path, sandbox, RIGHT, f"double([1.0])\n{line}")
    assert (state, tasks[0][0]) == (GRADED if earned is not None else FAULT, earned)


@pytest.mark.parametrize(
    "value",
    ["2", "True", "'10'", "-10", "float('nan')", "float('inf')", "1e9", "None", "np.int64(2)",
     "type('Two', (int,), {})(2)", "type('R', (), {'points': 2, '__float__': lambda s: 2.0})()",
     "np.array([2.0])", "2j", "10**400"],
)  # fmt: skip
def test_a_student_names_no_points_in_a_cell_that_ends_with_an_assert(value, tmp_path, sandbox):
    test = "found = double(3.0)\nassert isinstance(found, float) and found == 6.0, found"
    assert points(tmp_path, sandbox, f"def double(x):\n    return {value}", test) == 0


HELPER = f"{IMPORTS}\ndef near(a, b):\n    return abs(a - b) < 1e-9\nLIMIT = 6.0"


@pytest.mark.parametrize("own", ["near = lambda a, b: True", "LIMIT = 0.5", "abs = lambda x: 0",
                                 "near.__code__ = (lambda a, b: True).__code__"])  # fmt: skip
def test_a_function_of_a_locked_cell_stays_the_instructors(own, tmp_path, sandbox):
    test = "assert near(double([3.0])[0], LIMIT)"
    assert points(tmp_path / "right", sandbox, RIGHT, test, before=HELPER) == POINTS
    assert points(tmp_path / "wrong", sandbox, WRONG, test, own=[own], before=HELPER) == 0


RETURNS = {
    # What a right function returns, and a test that it passes.
    "bytes": ("b'x'", "assert double(1) == b'x'"),
    "bytearray": ("bytearray(b'x')", "assert double(1) == bytearray(b'x')"),
    "fraction": (
        "__import__('fractions').Fraction(1, 3)",
        "from fractions import Fraction\nassert double(1) == Fraction(1, 3)",
    ),
    "decimal": (
        "__import__('decimal').Decimal('0.1')",
        "from decimal import Decimal\nassert double(1) == Decimal('0.1')",
    ),
    "date": (
        "__import__('datetime').date(2026, 1, 2)",
        "import datetime\nassert double(1) == datetime.date(2026, 1, 2)",
    ),
    "path": (
        "__import__('pathlib').Path('x')",
        "from pathlib import Path\nassert double(1) == Path('x')",
    ),
    "counter": (
        "__import__('collections').Counter('aab')",
        "from collections import Counter\nassert double(1) == Counter(a=2, b=1)",
    ),
    "counter-method": (
        "__import__('collections').Counter('aab')",
        "assert double(1).most_common(1) == [('a', 2)]",
    ),
    "deque": (
        "__import__('collections').deque([1, 2])",
        "from collections import deque\nassert double(1) == deque([1, 2])",
    ),
    "named-tuple": (
        "__import__('collections').namedtuple('P', 'x y')(1, 2)",
        "assert double(1) == (1, 2)",
    ),
    "named-tuple-field": (
        "__import__('collections').namedtuple('P', 'x y')(1, 2)",
        "assert double(1).x == 1",
    ),
    "named-space": ("__import__('types').SimpleNamespace(x=1)", "assert double(1).x == 1"),
    "type": ("int", "assert double(1) is int"),
    "none": ("None", "assert double(1) is None"),
    "bool": ("True", "assert double(1) is True"),
    "numpy-bool": ("np.True_", "assert double(1)"),
    "complex": ("2 + 1j", "assert double(1) == 2 + 1j"),
    "frozenset": ("frozenset({1})", "assert double(1) == frozenset({1}) and {double(1)}"),
    "set-of-tuples": ("{(1, 2)}", "assert double(1) == {(1, 2)}"),
    "dict-keys": ("{'a': 1}.keys()", "assert set(double(1)) == {'a'}"),
    "range": ("range(3)", "assert double(1) == range(3)"),
    "generator": ("(x for x in [1, 2])", "assert list(double(1)) == [1, 2]"),
    "endless-generator": ("__import__('itertools').count()", "assert next(double(1)) == 0"),
    "function": ("lambda x: x + 1", "assert double(1)(2) == 3"),
    "strings-array": ("np.array(['a', 'b'])", "assert (double(1) == ['a', 'b']).all()"),
    "objects-array": ("np.array([1, 'b'], dtype=object)", "assert list(double(1)) == [1, 'b']"),
    "dates-array": (
        "np.array(['2026-01-02'], 'M8[D]')",
        "assert str(double(1)[0]) == '2026-01-02'",
    ),
    "structured-array": ("np.zeros(2, [('a', float)])", "assert (double(1)['a'] == 0).all()"),
    "bool-array": ("np.array([True, False])", "assert double(1).tolist() == [True, False]"),
    "big-int": ("2 ** 5000", "assert double(1) == 2 ** 5000"),
    "nan": ("float('nan')", "assert math.isnan(double(1))"),
    "inf": ("float('-inf')", "assert double(1) == -math.inf"),
    "minus-zero": ("-0.0", "assert math.copysign(1, double(1)) == -1"),
    "random": ("np.random.default_rng(3).integers(9)", "assert 0 <= double(1) < 9"),
    "exception": ("ValueError('x')", "assert isinstance(double(1), ValueError)"),
    "match": ("__import__('re').match('(x)', 'x')", "assert double(1).group(1) == 'x'"),
    "nested": ("{'a': [(1, {2}), None]}", "assert double(1) == {'a': [(1, {2}), None]}"),
    "text": ("'größe \\ud83d\\ude00 😀'", "assert double(1).endswith('😀')"),
    "polynomial": (
        "np.polynomial.Polynomial([1, 2])",
        "assert double(1)(2.0) == 5.0",
    ),
    "figure": (
        "__import__('matplotlib.pyplot').pyplot.subplots()[1]",
        "assert double(1).get_title() == ''",
    ),
}  # fmt: skip


# What does not cross to whoever judges: values that are no plain data, objects that say themselves
# whom they equal, and what belongs to the process that a function runs in.
CANNOT = {
    *("bytes", "bytearray", "fraction", "decimal", "date", "path", "counter-method", "deque"),
    *("named-tuple-field", "type", "objects-array", "structured-array", "exception"),
    *("eq", "eq-of-sum", "hash", "with", "inherit", "type", "in-list"),
    *("doc", "signature", "source", "printed", "input-builtins", "input-mock", "seed"),
    *("seed-numpy", "file-written", "warning", "magic", "shell", "await", "data", "module"),
}


def passes_or_is_refused(name, folder, sandbox, answer, test, files=None):
    """Say that a right answer gets its points, or that nothing is graded and the reason is told."""
    source = notebook(f"### BEGIN SOLUTION\n{answer}\n### END SOLUTION", test)
    given = Assigned(NAME, {NAME: source}, {NAME: source}, files or {}, 3.0)
    why = unsolved(given, sandbox)
    if name in CANNOT:
        assert why.startswith(f"the model solution of {NAME} does not earn all points in the cell")
        assert why.endswith("so no answer is graded")
        return
    assert not why
    found = ended(folder, sandbox, answer, test, right=answer, files=files)
    assert found[:2] == (GRADED, [(POINTS, ())])


@pytest.mark.slow
@pytest.mark.parametrize("name", RETURNS)
def test_a_right_answer_of_any_kind_passes(name, tmp_path, sandbox):
    value, test = RETURNS[name]
    passes_or_is_refused(name, tmp_path, sandbox, f"def double(x):\n    return {value}", test)


CLASS = """class double:
    def __init__(self, x, y=0):
        self.x, self.y = x, y
    def __add__(self, other):
        return double(self.x + other.x, self.y + other.y)
    def __eq__(self, other):
        return (self.x, self.y) == (other.x, other.y)
    def __hash__(self):
        return hash((self.x, self.y))
    def __repr__(self):
        return f"double({self.x}, {self.y})"
    def __len__(self):
        return 2
    def __iter__(self):
        return iter((self.x, self.y))
    def __call__(self, x):
        return self.x * x
    def __enter__(self):
        return self
    def __exit__(self, *args):
        self.x = 0
    def __lt__(self, other):
        return self.x < other.x
    @property
    def norm(self):
        return abs(self.x)
    @classmethod
    def zero(cls):
        return cls(0)
"""
ASKS = {
    "attribute": "assert double(1, 2).y == 2",
    "add": "assert (double(1, 2) + double(3, 4)).x == 4",
    "eq": "assert double(1, 2) == double(1, 2)",
    "not-eq": "assert double(1, 2) != double(1, 3)",
    "eq-of-sum": "assert double(1, 2) + double(3, 4) == double(4, 6)",
    "hash": "assert len({double(1, 2), double(1, 2)}) == 1",
    "repr": "assert repr(double(1, 2)) == 'double(1, 2)'",
    "format": "assert f'{double(1, 2)}' == 'double(1, 2)'",
    "len": "assert len(double(1, 2)) == 2",
    "unpack": "x, y = double(1, 2)\nassert (x, y) == (1, 2)",
    "call": "assert double(2)(3) == 6",
    "with": "with double(1) as one:\n    assert one.x == 1\nassert one.x == 0",
    "sorted": "assert sorted([double(3), double(1)])[0].x == 1",
    "property": "assert double(-3).norm == 3",
    "class-method": "assert double.zero().x == 0",
    "isinstance": "assert isinstance(double(1), double)",
    "set-attribute": "one = double(1)\none.x = 5\nassert one.norm == 5",
    "inherit": "class More(double):\n    pass\nassert More(1).x == 1",
    "hasattr": "assert hasattr(double(1), 'x') and not hasattr(double(1), 'z')",
    "type": "assert type(double(1)) is double",
    "name": "assert double.__name__ == 'double'",
    "in-list": "assert double(1, 2) in [double(1, 2)]",
    "sum": "assert sum([double(1), double(2)], double(0)).x == 3",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ASKS)
def test_a_right_class_passes(name, tmp_path, sandbox):
    passes_or_is_refused(name, tmp_path, sandbox, CLASS, ASKS[name])


ANSWER = """import random
import numpy as np
total = 3
table = {"a": [1, 2]}
def double(x: float = 1.0) -> float:
    "Return twice a number."
    return 2.0 * x
def hello():
    print("hello")
def asked():
    return int(input("Which? "))
def rolled():
    return random.randint(1, 10**6), np.random.randint(10**6)
def reads():
    return total
def writes():
    with open("out.txt", "w") as file:
        file.write("x")
def warns():
    import warnings
    warnings.warn("careful")
def counts(seen=[]):
    seen.append(1)
    return len(seen)
def refuses():
    raise ValueError("no negative numbers")
def outer():
    return double(2.0)
"""
CUSTOMS = {
    "variable": "assert total == 3",
    "dict": "assert table['a'][1] == 2",
    "globals": "assert 'total' in globals()",
    "not-globals": "assert 'nothing' not in globals()",
    "doc": "assert 'twice' in double.__doc__",
    "name": "assert double.__name__ == 'double'",
    "callable": "assert callable(double)",
    "signature": "import inspect\nassert list(inspect.signature(double).parameters) == ['x']",
    "source": "import inspect\nassert 'for' not in inspect.getsource(double)",
    "defaults": "assert double() == 2.0",
    "printed": "import io\nfrom contextlib import redirect_stdout\nsaid = io.StringIO()\n"
    "with redirect_stdout(said):\n    hello()\nassert said.getvalue() == 'hello\\n'",
    "input": "input = lambda *a: '3'\nassert asked() == 3",
    "input-builtins": "import builtins\nbuiltins.input = lambda *a: '3'\nassert asked() == 3",
    "input-mock": "from unittest.mock import patch\n"
    "with patch('builtins.input', return_value='3'):\n    assert asked() == 3",
    "seed": "import random\nrandom.seed(3)\nfirst = rolled()[0]\nrandom.seed(3)\n"
    "assert rolled()[0] == first",
    "seed-numpy": "np.random.seed(3)\nfirst = rolled()[1]\nnp.random.seed(3)\n"
    "assert rolled()[1] == first",
    "global-set": "total = 5\nassert reads() == 5",
    "global-of-another": "def double(x):\n    return -1.0\nassert outer() == -1.0",
    "file-written": "writes()\nassert open('out.txt').read() == 'x'",
    "warning": "import warnings\nwith warnings.catch_warnings(record=True) as seen:\n"
    "    warnings.simplefilter('always')\n    warns()\nassert len(seen) == 1",
    "state": "assert [counts(), counts()] == [1, 2]",
    "refusal": "try:\n    refuses()\nexcept ValueError as error:\n"
    "    assert 'negative' in str(error)\nelse:\n    raise AssertionError('no error')",
    "raises-unittest": "import unittest\nwith unittest.TestCase().assertRaises(ValueError):\n"
    "    refuses()",
    "raises-numpy": "np.testing.assert_raises(ValueError, refuses)",
    "magic": "%matplotlib inline\nassert double(1.0) == 2.0",
    "shell": "!echo x\nassert double(1.0) == 2.0",
    "display": "from IPython.display import display\ndisplay(double(1.0))\n"
    "assert double(1.0) == 2.0",
    "prints": "print('ok', double(1.0))\nassert double(1.0) == 2.0",
    "await": "import asyncio\nawait asyncio.sleep(0)\nassert double(1.0) == 2.0",
    "future": "from __future__ import annotations\nassert double(1.0) == 2.0",
    "del": "del total\nassert 'total' not in globals()",
    "data": "assert open('data.txt').read() == 'given'",
    "module": "import helper\nassert helper.value == double(2.0)",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CUSTOMS)
def test_what_instructors_are_used_to_write_passes_a_right_answer(name, tmp_path, sandbox):
    files = {"data.txt": b"given", "helper.py": b"value = 4.0"}
    passes_or_is_refused(name, tmp_path, sandbox, ANSWER, CUSTOMS[name], files)


def test_an_answer_may_have_the_name_of_a_function_of_pythons(tmp_path, sandbox):
    """Where a task asks for one, the student's own is tested, whatever its cell is called."""

    def asked(answer, place):
        def made(source, test):
            return notebook(source, test).replace("def double", "def sorted")

        test = "assert sorted([2, 1]) == [1, 2]"
        submission = tmp_path / place
        submission.mkdir()
        (submission / f"{NAME}.ipynb").write_text(made(answer, "# hidden"))
        given = Assigned(NAME, {NAME: made(RIGHT, test)}, {NAME: made(STUB, "# hidden")}, {}, 3.0)
        return judged(Job("somebody", submission, NAME), given, sandbox).result.tasks[0].points

    assert asked("def sorted(x):\n    return [1, 2]", "right") == POINTS
    assert asked("def sorted(x):\n    return x", "wrong") == 0
