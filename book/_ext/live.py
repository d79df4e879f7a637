"""Figures that the reader can move: modules of book/_static/live in place of a static picture.

The directive ``{live} NAME`` names with ``:figure:`` a figure of its page, whose picture the module
``NAME.js`` replaces where scripts run. Its text, which says what to try, is shown only there. Other
options go to the module; the one called ``data`` names JSON that a cell above glued.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from myst_nb.core.variables import RetrievalError
from myst_nb.ext.glue.utils import retrieve_glue_data
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

MODULES = Path(__file__).resolve().parents[1] / "_static" / "live"
HELPERS = {"start", "core"}

logger = logging.getLogger(__name__)


class Stage(nodes.General, nodes.Element):
    """The part of a figure that a module replaces: all but the caption."""


class Try(nodes.General, nodes.Element):
    """What to try, for readers of a figure that is alive."""


class Live(SphinxDirective):
    """Mark a figure as alive, and say what to try."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {
        "figure": directives.unchanged_required,
        "small": directives.flag,
        "data": directives.unchanged_required,
        "d-model": directives.positive_int,
        "length": directives.positive_int,
        "position": int,
        "base": float,
        "layout": lambda value: directives.choice(value, ("interleaved", "half")),
    }

    def run(self) -> list[nodes.Node]:
        """Make the text, which carries what the figure will need."""
        name = self.arguments[0]
        names = sorted({path.stem for path in MODULES.glob("*.js")} - HELPERS)
        if name not in names:
            raise self.error(f"live: no figure is called {name!r}; there are {', '.join(names)}")
        options = {**self.options}
        if "figure" not in options:
            raise self.error("live: `:figure:` must name the figure that comes alive")
        if "data" in options:
            options["data"] = self.glued(options["data"])
        text = Try(target=options.pop("figure"), options={"figure": name, **options})
        text.source, text.line = self.get_source_info()
        self.state.nested_parse(self.content, self.content_offset, text)
        return [text]

    def glued(self, key: str) -> str:
        """Return the JSON that a cell of this page glued."""
        try:
            data = retrieve_glue_data(self.state.document, key).data["text/plain"]
        except RetrievalError as error:
            raise self.error(f"live: {error}") from None
        return json.dumps(json.loads(ast.literal_eval(data)), separators=(",", ":"))


def _set_stages(app, doctree) -> None:
    """Put the picture of every figure that is named on a stage."""
    for text in doctree.findall(Try):
        name = nodes.fully_normalize_name(text["target"])
        figure = doctree.ids.get(doctree.nameids.get(name))
        if not isinstance(figure, nodes.figure):
            logger.warning("live: this page has no figure %r", text["target"], location=text)
            continue
        stage = Stage(options=text["options"])
        kept = (nodes.caption, nodes.legend)
        stage += [child for child in figure if not isinstance(child, kept)]
        figure.children = [stage, *(child for child in figure if isinstance(child, kept))]
        stage.parent = figure


def _visit_stage(self, node: Stage) -> None:
    data = {
        f"data-{name}": "" if value is None else str(value)
        for name, value in node["options"].items()
    }
    self.body.append(self.starttag(node, "div", CLASS="live", **data))


def _visit_try(self, node: Try) -> None:
    if self.builder.name.startswith("epub") or not node.children:
        raise nodes.SkipNode
    self.body.append(self.starttag(node, "div", CLASS="live-try"))


def _close(self, node: nodes.Element) -> None:
    self.body.append("</div>\n")


def _add_script(app, pagename, templatename, context, doctree) -> None:
    if app.builder.name.startswith("epub") or doctree is None:
        return
    if any(True for _ in doctree.findall(Stage)):
        app.add_js_file("live/start.js", type="module")
        app.add_css_file("live.css")


def setup(app) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_node(Stage, html=(_visit_stage, _close))
    app.add_node(Try, html=(_visit_try, _close))
    app.add_directive("live", Live)
    app.connect("doctree-read", _set_stages)
    app.connect("html-page-context", _add_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
