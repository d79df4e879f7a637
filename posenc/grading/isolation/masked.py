"""The ``posenc`` that student code finds where it is graded: earlier chapters, and no answers."""

from __future__ import annotations

import ast

import posenc
from posenc import exercises
from posenc.grading._guard import CHAPTER_MODULES, PACKAGE

# Modules that know no answers.
OPEN = ("__init__.py", "_validate.py", "plotting.py")
RUNNING = (
    "_limits.py",
    *(f"isolation/{name}.py" for name in ("__init__", "wire", "plain", "inside")),
)
CHECKS = '''"""Stands in for the checks; whoever grades runs them outside."""


def check(*_args, **_kwargs):
    """Do nothing here."""


def grade(*_args, **_kwargs):
    """Do nothing here."""
'''


def package(assignment: str) -> dict[str, str]:
    """Return the package's files and their texts.

    Parameters
    ----------
    assignment : str
        Whose functions, and those of later ones, only say that they are what is to be written.

    Returns
    -------
    dict of str to str
        By path, below a folder that is on the path of imports.
    """
    files = {name: (PACKAGE / name).read_text(encoding="utf-8") for name in OPEN}
    for name in RUNNING:
        files[f"grading/{name}"] = (PACKAGE / "grading" / name).read_text(encoding="utf-8")
    files["grading/__init__.py"] = CHECKS
    chapter = (
        exercises.ASSIGNMENTS[assignment].chapter if assignment in exercises.ASSIGNMENTS else 0
    )
    for number, modules in CHAPTER_MODULES.items():
        for module in modules:
            text = (PACKAGE / f"{module}.py").read_text(encoding="utf-8")
            files[f"{module}.py"] = masked(text, module, chapter, later=number >= chapter)
    return {f"posenc/{name}": text for name, text in files.items()}


def masked(text: str, module: str, chapter: int, *, later: bool) -> str:
    """Return a module's text without the answers of a chapter and of later ones.

    Parameters
    ----------
    text : str
        The module's text.
    module : str
        Its name, without the package's.
    chapter : int
        The chapter that is graded.
    later : bool
        Whether the module is of this chapter or of a later one: then nothing is left of it but the
        functions that were answers of earlier chapters, and what those need.
    """
    tree = ast.parse(text)
    defined = {
        node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    chapters = {
        name: exercises.ASSIGNMENTS[exercise.assignment].chapter
        for name, exercise in exercises.EXERCISES.items()
        if exercise.reference.__module__ == f"{posenc.__name__}.{module}"
    }
    if later:
        earlier = {name for name in chapters if chapters[name] < chapter}
        kept = _needed(earlier, tree.body)
    else:
        kept = set(defined) - {name for name in chapters if chapters[name] >= chapter}
        kept |= set(_assigned(tree.body))
    used = set().union(*(_names_used(node) for node in tree.body if _names_bound(node) & kept))
    body = [ast.parse("from posenc.grading._limits import masked").body[0]]
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module.startswith("posenc."):
            # What another module no longer has can't be imported from it.
            node.names = [alias for alias in node.names if alias.name in used]
            body += [node] if node.names else []
        elif isinstance(node, ast.Import | ast.ImportFrom) or _names_bound(node) & kept:
            body.append(node)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            stub = f"def {node.name}(*_args, **_kwargs):\n    masked({node.name!r})"
            body += ast.parse(stub).body
    # The import from __future__ stays first.
    body.sort(key=lambda node: getattr(node, "module", "") != "__future__")
    return ast.unparse(ast.fix_missing_locations(ast.Module(body, [])))


def _names_bound(node: ast.stmt) -> set[str]:
    """Return the names that a statement at the top of a module gives a value."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and _stored(n)}
    return set()


def _stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _assigned(body: list[ast.stmt]) -> set[str]:
    nodes = (node for node in body if isinstance(node, ast.Assign | ast.AnnAssign))
    return set().union(*map(_names_bound, nodes))


def _needed(names: set[str], body: list[ast.stmt]) -> set[str]:
    """Return names of a module with all others of it that they use."""
    owners = {name: node for node in body for name in _names_bound(node)}
    needed, todo = set(), list(names)
    while todo:
        name = todo.pop()
        if name in owners and name not in needed:
            needed.add(name)
            todo += _names_used(owners[name])
    return needed


def _names_used(node: ast.stmt) -> set[str]:
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
