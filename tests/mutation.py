"""Small mechanical changes to the exercises' references, which their graders should notice.

``python tests/mutation.py [FUNCTION ...]`` prints those that no grader noticed and that
``equivalent_mutants.toml`` does not list.
"""

from __future__ import annotations

import ast
import copy
import dis
import inspect
import signal
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import chain, count
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

import numpy as np

from posenc.exercises import EXERCISES, Case, Exercise
from posenc.grading import _judge
from posenc.grading._guard import CallFault, Guard

# None judges on the visible cases.
SEEDS = (None, "mutation 1", "mutation 2", "mutation 3")
INPUTS = 1000
SECONDS = 5.0
# Of the largest number of an answer, for another way to the same numbers: float32's rounding.
ROUNDING = 1e-5
KNOWN = tomllib.loads(
    Path(__file__).with_name("equivalent_mutants.toml").read_text(encoding="utf-8")
)

BINARY: dict[type, tuple[type, ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div, ast.Add),
    ast.Div: (ast.Mult, ast.FloorDiv),
    ast.FloorDiv: (ast.Mult, ast.Div),
    ast.Mod: (ast.Mult, ast.FloorDiv),
    ast.Pow: (ast.Mult,),
    ast.MatMult: (ast.Mult,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.BitXor: (ast.BitAnd,),
}
COMPARED: dict[type, tuple[type, ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),  # codespell:ignore
    ast.NotIn: (ast.In,),  # codespell:ignore
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
# Attributes and functions that are easily mistaken for one another.
NAMES = {
    name: other
    for pair in (
        ("sin", "cos"),
        ("zeros", "ones"),
        ("max", "min"),
        ("argmax", "argmin"),
        ("mean", "sum"),
        ("all", "any"),
        ("real", "imag"),
        ("multiply", "divide"),
        ("add", "subtract"),
        ("cumsum", "cumprod"),
        ("floor", "ceil"),
    )
    for name, other in (pair, pair[::-1])
}
# Functions of one argument that are easily forgotten.
FORGOTTEN = {"abs", "sqrt", "square", "exp", "log", "cumsum", "sort"}


# Where a string is more than the name of an argument in a message.
WITH_WORDS = (ast.Compare, ast.Return, ast.IfExp, ast.arguments)


@dataclass(frozen=True)
class Mutant:
    """A reference with one change.

    Attributes
    ----------
    exercise : Exercise
        Whose reference it is.
    statement, changed : str
        ``function: statement`` and what became of the statement; without line numbers, which move.
    function : callable
        The changed reference.
    """

    exercise: Exercise
    statement: str
    changed: str
    function: Callable[..., Any]

    @property
    def change(self) -> str:
        """The statement before and after."""
        return f"{self.statement} -> {self.changed}"


def mutants(exercise: Exercise) -> Iterator[Mutant]:
    """Yield the mutants of what runs of a reference and of the package's helpers that it calls."""
    parts = _parts(exercise)
    compiled = {part: _compiled(tree, part) for part, tree in parts.items()}
    for (module, name), tree in parts.items():
        idle = {
            id(node) for each in _idle(exercise, (module, name), tree) for node in ast.walk(each)
        }
        seen = {ast.unparse(tree)}
        for statement, changed_line, changed in _changed(tree, idle):
            source = ast.unparse(changed)
            if source in seen:
                continue
            seen.add(source)
            try:
                code = _compiled(changed, (module, name))
            except SyntaxError:
                continue
            function = _linked(exercise, {**compiled, (module, name): code})
            yield Mutant(exercise, f"{name}: {statement}", changed_line, function)


def never_run(exercise: Exercise) -> list[str]:
    """Return the statements of a reference and its helpers that no case reaches, outermost only."""
    return [
        f"{name}: {_line(statement)}"
        for (module, name), tree in _parts(exercise).items()
        for statement in _idle(exercise, (module, name), tree)
    ]


def survives(mutant: Mutant) -> bool:
    """Return whether a mutant gets full points on the visible cases and with every seed."""
    for seed in SEEDS:
        try:
            with _time_limit():
                results = _judge.judge(
                    mutant.exercise, mutant.function, seed=seed, guard=Guard(None)
                )
        except _TimeIsUpError:
            return False
        if _judge.earned(results) < mutant.exercise.points:
            return False
    return True


def difference(mutant: Mutant) -> float:
    """Return how far a mutant's answers to many random calls lie from the reference's at most.

    Relative to the largest number of an answer, or to 1 where that is larger; infinite where
    something else than numbers differs: a shape, a word, a refusal, a changed argument.
    """
    return max(
        _apart(expected, _outcome(mutant.function, case))
        for case, expected in _observed(mutant.exercise.name).inputs
    )


NUMBERS = (np.ndarray, np.generic, float, int)
Part = tuple[ModuleType, str]
Outcome = tuple[Any, Any]


@dataclass(frozen=True)
class _Observed:
    """What a reference did: random inputs with its outcomes, and the lines that ran."""

    inputs: list[tuple[Case, Outcome]]
    lines: set[tuple[str, int]]


@cache
def _observed(name: str) -> _Observed:
    """Call a reference on the cases of its graders, and on random ones with other seeds."""
    exercise = EXERCISES[name]
    parts = _parts(exercise)
    # Defined anew, because the original may hold what an earlier call computed.
    reference = _linked(exercise, {part: _compiled(tree, part) for part, tree in parts.items()})
    files = {module.__file__ for module, _ in parts}
    lines: set[tuple[str, int]] = set()

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        if frame.f_code.co_filename not in files:
            return None
        if event == "line":
            lines.add((frame.f_code.co_filename, frame.f_lineno))
        return trace

    seeds = chain(SEEDS, (f"inputs {number}" for number in count()))
    drawn = ((seed, cases) for seed in seeds for cases in _judge.draw_cases(exercise, seed))
    inputs: list[tuple[Case, Outcome]] = []
    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        for seed, cases in drawn:
            for case in cases:
                outcome = _outcome(reference, case)
                if seed not in SEEDS:
                    inputs.append((case, outcome))
            if len(inputs) >= INPUTS:
                return _Observed(inputs, lines)
    finally:
        sys.settrace(previous)
    raise AssertionError("there are endlessly many seeds")


def _idle(exercise: Exercise, part: Part, tree: ast.FunctionDef) -> Iterator[ast.stmt]:
    """Yield the outermost statements of a part that never ran."""
    file, lines = part[0].__file__, _observed(exercise.name).lines

    def ran(statement: ast.stmt) -> bool:
        body = getattr(statement, "body", None)
        first, last = statement.lineno, statement.end_lineno
        if isinstance(statement, ast.FunctionDef):
            first = body[0].lineno
        elif body:
            last = max(first, body[0].lineno - 1)
        return any((file, line) in lines for line in range(first, last + 1))

    def idle(statement: ast.stmt) -> Iterator[ast.stmt]:
        if not ran(statement):
            yield statement
            return
        for field in ("body", "orelse", "handlers", "finalbody"):
            for inner in getattr(statement, field, ()):
                yield from idle(inner)

    yield from idle(tree)


def _outcome(function: Callable, case: Case) -> Outcome:
    """Return what a call returned, or the type that it raised; and its arguments afterwards."""
    args, kwargs = copy.deepcopy((case.args, case.kwargs))
    try:
        with _time_limit():
            value = Guard(None).call(function, args, kwargs)
    except CallFault as fault:
        # Exercises ask for either of these two.
        refused = isinstance(fault.__cause__, ValueError | IndexError)
        value = "refused" if refused else type(fault.__cause__)
    except _TimeIsUpError:
        value = _TimeIsUpError
    return value, (args, kwargs)


def _apart(first: Any, second: Any) -> float:
    if isinstance(first, tuple | list) and isinstance(second, tuple | list):
        if len(first) != len(second):
            return np.inf
        return max(map(_apart, first, second), default=0.0)
    if isinstance(first, dict) and isinstance(second, dict):
        return (
            np.inf
            if first.keys() != second.keys()
            else _apart([*first.values()], [*second.values()])
        )
    if callable(first) and callable(second) and not isinstance(first, type):
        return 0.0
    if not all(isinstance(value, NUMBERS) for value in (first, second)):
        return 0.0 if type(first) is type(second) and first == second else np.inf
    first, second = np.asarray(first), np.asarray(second)
    if first.shape != second.shape:
        return np.inf
    if np.array_equal(first, second, equal_nan=True):
        return 0.0
    largest = np.abs(np.subtract(first, second, dtype=np.float64)).max()
    return float(largest / max(1.0, np.abs(first).max())) if np.isfinite(largest) else np.inf


def _parts(exercise: Exercise) -> dict[Part, ast.FunctionDef]:
    """Return the reference and its helpers, without docstrings and annotations."""
    graded = {inspect.unwrap(other.reference) for other in EXERCISES.values()}
    waiting, parts = [inspect.unwrap(exercise.reference)], {}
    while waiting:
        function = waiting.pop(0)
        module = sys.modules[function.__module__]
        name = function.__name__
        if (module, name) in parts:
            continue
        parts[module, name] = _definition(module, function)
        defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
        used = (vars(module).get(name) for name in _global_names(function.__code__))
        for value in map(inspect.unwrap, (*used, *defaults)):
            if (
                inspect.isfunction(value)
                and value.__module__.startswith("posenc.")
                and not value.__module__.startswith("posenc.exercises._")
                and value not in graded
            ):
                waiting.append(value)
    return parts


def _global_names(code: CodeType) -> set[str]:
    inner = (_global_names(each) for each in code.co_consts if isinstance(each, CodeType))
    own = {step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"}
    return own.union(*inner)


def _definition(module: ModuleType, function: Callable) -> ast.FunctionDef:
    (tree,) = (
        copy.deepcopy(node)
        for node in _module_tree(module).body
        if isinstance(node, ast.FunctionDef) and node.name == function.__name__
    )
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
            if ast.get_docstring(node) is not None:
                node.body = node.body[1:]
        if isinstance(node, ast.arg):
            node.annotation = None
    return tree


@cache
def _module_tree(module: ModuleType) -> ast.Module:
    return ast.parse(inspect.getsource(module))


def _compiled(tree: ast.FunctionDef, part: Part) -> Any:
    module = ast.Module([tree], type_ignores=[])
    return compile(ast.fix_missing_locations(module), part[0].__file__, "exec", dont_inherit=True)


def _linked(exercise: Exercise, compiled: dict[Part, Any]) -> Callable:
    """Define the functions in copies of their modules, so that they call one another."""
    spaces = {module: dict(vars(module)) for module, _ in compiled}
    # Helpers first, since some are the defaults of arguments.
    for (module, _), code in reversed(compiled.items()):
        exec(code, spaces[module])
    for space in spaces.values():
        for module, name in compiled:
            if space.get(name) is vars(module)[name]:
                space[name] = spaces[module][name]
    reference = inspect.unwrap(exercise.reference)
    return spaces[sys.modules[reference.__module__]][reference.__name__]


def _changed(tree: ast.FunctionDef, idle: set[int]) -> Iterator[tuple[str, str, ast.FunctionDef]]:
    """Yield a statement, what becomes of it, and a copy of the function with that one change."""
    for number, place in enumerate(_places(tree)):
        if id(place[3]) in idle:
            continue
        for option in range(len(list(_alternatives(*place[:3])))):
            changed = copy.deepcopy(tree)
            parent, field, index, statement = list(_places(changed))[number]
            before = _line(statement)
            new = list(_alternatives(parent, field, index))[option]
            dropped = _value(parent, field, index) is statement
            _replace(parent, field, index, new)
            yield before, _line(new if dropped else statement), changed


Place = tuple[ast.AST, str, int | None, ast.stmt]


def _places(tree: ast.FunctionDef) -> Iterator[Place]:
    """Yield where a node stands: its parent, the field, its index there, and the statement."""

    def within(node: ast.AST, statement: ast.stmt) -> Iterator[Place]:
        for field, value in ast.iter_fields(node):
            # Decorators and the messages of exceptions are no mathematics.
            if field == "decorator_list" or isinstance(value, ast.Raise):
                continue
            entries = enumerate(value) if isinstance(value, list) else [(None, value)]
            for index, child in entries:
                inner = child if isinstance(child, ast.stmt) else statement
                yield node, field, index, inner
                if isinstance(child, ast.AST) and not isinstance(child, ast.Raise):
                    yield from within(child, inner)

    yield from within(tree, tree)


def _value(parent: ast.AST, field: str, index: int | None) -> Any:
    value = getattr(parent, field)
    return value if index is None else value[index]


def _replace(parent: ast.AST, field: str, index: int | None, new: Any) -> None:
    if index is None:
        setattr(parent, field, new)
    elif new is None:
        del getattr(parent, field)[index]
    else:
        getattr(parent, field)[index] = new


def _line(statement: ast.stmt) -> str:
    """Return a statement, of a compound one the first line."""
    return ast.unparse(ast.fix_missing_locations(statement)).splitlines()[0]


def _is_check(node: ast.AST) -> bool:
    """Return whether this is a call of the package's checks of arguments."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "validate"
    )


def _alternatives(parent: ast.AST, field: str, index: int | None) -> Iterator[Any]:
    """Yield what could stand in a place instead."""
    node = _value(parent, field, index)
    match node:
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield from map(ast.Constant, sorted({value + 1, value - 1, 0} - {value}))
        case ast.Constant(value=float(value)):
            yield from map(ast.Constant, sorted({-value, 2 * value, value / 2} - {value}))
        case ast.Constant(value=str(value)) if isinstance(parent, WITH_WORDS):
            yield ast.Constant(f"{value}?")
        case ast.UnaryOp(op=ast.USub() | ast.Not() | ast.Invert()):
            yield node.operand
        case ast.BinOp():
            for operator in BINARY.get(type(node.op), ()):
                yield ast.BinOp(node.left, operator(), node.right)
            if isinstance(node.op, ast.MatMult):
                yield ast.BinOp(node.right, node.op, node.left)
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield ast.BoolOp(other, node.values)
        case ast.Compare(ops=[operator]):
            for other in COMPARED.get(type(operator), ()):
                yield ast.Compare(node.left, [other()], node.comparators)
        case ast.Slice():
            yield from _slices(node)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[argument, *_]) if (
            name in FORGOTTEN
        ):
            yield argument
        case ast.Attribute(attr="T"):
            yield node.value
        case ast.Attribute(attr=name) if name in NAMES:
            yield ast.Attribute(node.value, NAMES[name], node.ctx)
        case ast.Name(id=name) if name in NAMES and name in ("max", "min", "all", "any", "sum"):
            yield ast.Name(NAMES[name], node.ctx)
        case ast.IfExp():
            yield node.body
            yield node.orelse
        case ast.keyword() if isinstance(parent, ast.Call) and not _is_check(parent):
            yield None
        case ast.AugAssign():
            for operator in BINARY.get(type(node.op), ()):
                yield ast.AugAssign(node.target, operator(), node.value)
    if isinstance(node, ast.stmt) and not isinstance(node, ast.Pass):
        yield ast.Pass()
    if isinstance(node, ast.expr) and field == "test":
        yield ast.UnaryOp(ast.Not(), node)


def _slices(node: ast.Slice) -> Iterator[ast.Slice]:
    for field, added in (("lower", 1), ("upper", -1), ("step", 2)):
        changed = copy.copy(node)
        setattr(changed, field, None if getattr(node, field) else ast.Constant(added))
        yield changed


class _TimeIsUpError(BaseException):
    """Raised in code that runs too long."""


@contextmanager
def _time_limit() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise _TimeIsUpError

    previous = signal.signal(signal.SIGALRM, stop)
    # Again and again, for code that is called once more.
    signal.setitimer(signal.ITIMER_REAL, SECONDS, 0.5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


@dataclass(frozen=True)
class Findings:
    """What the mutants of one reference showed.

    Attributes
    ----------
    count : int
        How many there were.
    survivors : int
        How many of them no grader noticed.
    missed : list of str
        Survivors that are not known to be as good as the reference, and statements that no case
        reaches and that are not known either.
    stale : list of str
        What is known and no longer happens.
    """

    count: int
    survivors: int
    missed: list[str]
    stale: list[str]


def examine(exercise: Exercise) -> Findings:
    """Judge all mutants of a reference, and compare the survivors with the known ones."""
    known_idle, known_same, known_close = (
        {change for group in KNOWN[kind] for change in group["changes"].get(exercise.name, ())}
        for kind in ("never_run", "same", "close")
    )
    idle = set(never_run(exercise))
    missed = [f"never run: {statement}" for statement in sorted(idle - known_idle)]
    total, survivors, met = 0, 0, set()
    for mutant in mutants(exercise):
        total += 1
        if not survives(mutant):
            continue
        survivors += 1
        names = {mutant.statement, mutant.change}
        met |= names
        found = difference(mutant)
        allowed = ROUNDING if names & known_close else 0.0
        if found > allowed or not names & (known_close | known_same):
            missed.append(f"{mutant.change}   (difference {found:.3g})")
    stale = sorted((known_idle - idle) | ((known_same | known_close) - met))
    return Findings(total, survivors, missed, stale)


def main() -> None:
    """Print what no grader notices and is not known, and what is known and no longer so."""
    count = survivors = 0
    for name in sys.argv[1:] or EXERCISES:
        findings = examine(EXERCISES[name])
        count, survivors = count + findings.count, survivors + findings.survivors
        for kind in ("missed", "stale"):
            for line in getattr(findings, kind):
                print(f"{name} | {kind} | {line}", flush=True)
    print(f"{count} mutants, {survivors} of them not noticed")


if __name__ == "__main__":
    main()
