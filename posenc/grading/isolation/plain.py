"""Cells that can do nothing but give names to functions and to values that are written out."""

from __future__ import annotations

import ast
from collections.abc import Container


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
        body = ast.parse(source).body
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
