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
        """Have autodoc write the page."""
        name = f"posenc.{self.arguments[0]}"
        try:
            members = public_members(name)
        except ModuleNotFoundError as error:
            raise self.error(f"{name} can't be imported: {error}") from None
        if not members:
            raise self.error(f"{name} exports nothing")
        prefix = next(iter(members)).rpartition(".")[0]
        lines = [f".. automodule:: {name}", "   :no-index:", "", f".. currentmodule:: {prefix}", ""]
        # Autosummary ends a summary at "start .. stop"; numpydoc's rule is that it is one line.
        lines += [".. list-table::", "   :class: autosummary", ""]
        for path, (_, summary) in members.items():
            lines += [f"   * - :py:obj:`{path.rpartition('.')[2]}`", f"     - {summary}"]
        for path, (kind, _) in members.items():
            lines += ["", f".. auto{kind}:: {path}"]
            if kind == "class":
                lines += ["   :members:", "   :member-order: bysource"]
        page = nodes.container(classes=["reference-page"])
        source = ["```````{eval-rst}", *lines, "```````"]
        self.state.nested_parse(StringList(source, "module-reference"), 0, page)
        for node in page.findall(nodes.Element):
            node["support_smartquotes"] = False  # {'interleaved', 'half'} is code
        return page.children


def public_members(module_name: str) -> dict[str, tuple[str, str]]:
    """Return kind and summary of what a module exports by its public path, in the source's order.

    What the package exports is named as people call it: ``posenc.rope``, not
    ``posenc.rotary.rope``; helpers that chapters share are left out there.
    """
    found = {
        name: ("class" if inspect.isclass(value) else "function", inspect.getdoc(value))
        for name, value in vars(importlib.import_module(module_name)).items()
        if not name.startswith("_")
        and (inspect.isfunction(value) or inspect.isclass(value))
        and value.__module__.startswith(module_name)
    }
    exported = [name for name in found if name in posenc.__all__]
    prefix = "posenc" if exported else module_name
    return {
        f"{prefix}.{name}": (found[name][0], found[name][1].partition("\n")[0])
        for name in exported or found
    }


def setup(app) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("module-reference", ModuleReference)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
