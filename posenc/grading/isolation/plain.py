"""Cells that do without IPython: those that are only Python, and how these are run.

Of these, some can do nothing but give names to functions and to values that are written out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container
from functools import lru_cache
from typing import Any

# What IPython gives a notebook, what takes long to import, and what looks for a cell's text.
RICH = re.compile(
    r"\b(matplotlib|pyplot|plotting|IPython|get_ipython|display|In|Out|exit|quit|inspect"
    r"|__future__)\b"
)
# Names by which IPython keeps what cells showed, and what was typed.
KEPT = re.compile(r"_{1,3}|_i{1,3}|_[iod]h|_i?\d+")
ASYNCHRONOUS = (ast.Await, ast.AsyncFor, ast.AsyncWith)


@lru_cache(maxsize=64)
def parsed(source: str) -> ast.Module:
    """Return the tree of a cell, which is for all who ask, so nobody may change it."""
    return ast.parse(source)


def needs_ipython(source: str) -> bool:
    """Return whether a cell is more than Python, or reaches for what IPython has."""
    if RICH.search(source) or "\r" in source:
        return True
    try:
        tree = parsed(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr) and ";" in "\n".join(source.split("\n")[last.lineno - 1 :]):
        # It may be there to keep a value from being shown.
        return True
    loaded, stored = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (loaded if isinstance(node.ctx, ast.Load) else stored).add(node.id)
        if isinstance(node, ASYNCHRONOUS) or getattr(node, "is_async", 0):
            return True
    return any(map(KEPT.fullmatch, loaded - stored))


def evaluate(source: str, names: dict[str, Any], file: str) -> Any:
    """Run a cell, and return the value of its last line if that is an expression."""
    tree = ast.parse(source, file)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    # What this file imports from __future__ is not the cell's.
    exec(compile(tree, file, "exec", dont_inherit=True), names)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), file, "eval", dont_inherit=True), names)


def bound(source: str, modules: Container[str]) -> set[str] | None:
    """Return the names that a cell gives a value, or None if it may do anything else.

    Parameters
    ----------
    source : str
        The cell.
    modules : container of str
        Modules that are imported already, so that to import them does nothing more.
    """
    try:
        body = parsed(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    names: set[str] = set()
    for node in body:
        if not _is_plain(node, modules):
            return None
        names |= _names(node)
    return names


def _is_plain(node: ast.stmt, modules: Container[str]) -> bool:
    if isinstance(node, ast.FunctionDef):
        given = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
        hints = any(isinstance(n, ast.arg) and n.annotation for n in ast.walk(node.args))
        plain = all(isinstance(value, ast.Constant) for value in given)
        return plain and not hints and not node.decorator_list and not node.returns
    if isinstance(node, ast.Import):
        return all(alias.name in modules for alias in node.names)
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    if isinstance(node, ast.Assign):
        names = all(isinstance(target, ast.Name) for target in node.targets)
        return names and isinstance(node.value, ast.Constant | ast.Name)
    return False


def _names(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef):
        return {node.name}
    if isinstance(node, ast.Import):
        return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    targets = node.targets if isinstance(node, ast.Assign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}
