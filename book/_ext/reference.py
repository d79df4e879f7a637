"""API reference: ``{module-reference} NAME`` describes all that a module of posenc exports.

What is listed, and in which order, follows from the module's source, so that a new function needs
no line in the book.
"""

from __future__ import annotations

import importlib
import inspect

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

import posenc


class ModuleReference(SphinxDirective):
    """A module's docstring, a table of its public functions, and the docstring of each."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Have autodoc and autosummary write the page."""
        name = f"posenc.{self.arguments[0]}"
        try:
            members = public_members(name)
        except ModuleNotFoundError as error:
            raise self.error(f"{name} can't be imported: {error}") from None
        if not members:
            raise self.error(f"{name} exports nothing")
        lines = [f".. automodule:: {name}", "   :no-index:", ""]
        lines += [".. currentmodule:: posenc", "", ".. autosummary::", "   :nosignatures:", ""]
        lines += [f"   {path.removeprefix('posenc.')}" for path in members]
        for path, kind in members.items():
            lines += ["", f".. auto{kind}:: {path}"]
            if kind == "class":
                lines += ["   :members:", "   :member-order: bysource"]
        page = nodes.container(classes=["reference-page"])
        source = ["```````{eval-rst}", *lines, "```````"]
        self.state.nested_parse(StringList(source, "module-reference"), 0, page)
        for node in page.findall(nodes.Element):
            node["support_smartquotes"] = False  # {'interleaved', 'half'} is code
        return page.children


def public_members(module_name: str) -> dict[str, str]:
    """Return the public path of what a module exports, in the source's order, with its kind.

    What the package exports is named as people call it: ``posenc.rope``, not
    ``posenc.rotary.rope``; helpers that chapters share are left out there.
    """
    kinds = {
        name: "class" if inspect.isclass(value) else "function"
        for name, value in vars(importlib.import_module(module_name)).items()
        if not name.startswith("_")
        and (inspect.isfunction(value) or inspect.isclass(value))
        and value.__module__.startswith(module_name)
    }
    exported = {f"posenc.{name}": kind for name, kind in kinds.items() if name in posenc.__all__}
    return exported or {f"{module_name}.{name}": kind for name, kind in kinds.items()}


def setup(app) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("module-reference", ModuleReference)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
