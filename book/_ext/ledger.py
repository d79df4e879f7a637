"""The claims ledger: a table of what a page's cells computed, one row a claim.

The directive ``{ledger} KEY`` shows the rows that a cell of the same page glued under that key, as
JSON: a list of objects with ``id``, ``claim``, ``verdict``, ``value``, ``cell`` (the label above
the cell) and ``see`` (a label, or nothing). Texts are Markdown. A row has the label ``ledger-ID``.

Each row links to where its verdict can be disputed. ``ledger_repository`` in _config.yml, the
address of the course's repository, makes that a new issue; without it, it is the section
``ledger-dispute`` of the page.
"""

from __future__ import annotations

import ast
import json
from urllib.parse import quote

from docutils import nodes
from docutils.statemachine import StringList
from myst_nb.core.variables import RetrievalError
from myst_nb.ext.glue.utils import retrieve_glue_data
from sphinx.util.docutils import SphinxDirective

VERDICTS = (
    "true",
    "imprecise",
    "false",
    "unsupported",
    "bug in code",
    "check that checks nothing",
)
COLUMNS = ("Row", "Claim", "Verdict", "What was computed")
FIELDS = {"id", "claim", "verdict", "value", "cell", "see"}


def badge(verdict: str) -> nodes.inline:
    """Return a verdict with the classes that give it its sign and colour."""
    if verdict not in VERDICTS:
        raise ValueError(f"{verdict!r} is no verdict; there are {', '.join(VERDICTS)}")
    return nodes.inline("", verdict, classes=["verdict", f"verdict-{verdict.split()[0]}"])


class Ledger(SphinxDirective):
    """The table of the rows that a cell glued."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Make the table, or say which row can't be shown."""
        try:
            glued = retrieve_glue_data(self.state.document, self.arguments[0])
        except RetrievalError as error:
            raise self.error(f"ledger: {error}") from None
        rows = json.loads(ast.literal_eval(glued.data["text/plain"]))
        for row in rows:
            if set(row) != FIELDS or row["verdict"] not in VERDICTS:
                raise self.error(f"ledger: a row should have {sorted(FIELDS)}; got {row}")
        group = nodes.tgroup("", cols=len(COLUMNS))
        group += [nodes.colspec(colwidth=1) for _ in COLUMNS]
        head = nodes.row("", *(nodes.entry("", nodes.paragraph("", name)) for name in COLUMNS))
        group += nodes.thead("", head)
        group += nodes.tbody("", *map(self.row, rows))
        # The script puts the search here: a new sibling of the table would restyle every row.
        place = nodes.container(classes=["ledger-place"])
        return [place, nodes.table("", group, classes=["ledger"])]

    def row(self, row: dict[str, str]) -> nodes.row:
        """Make one row, with its label."""
        label = f"ledger-{row['id']}"
        link = nodes.reference("", row["id"], refid=label, internal=True)
        dispute = nodes.reference("", "dispute this", refuri=self.dispute(row["id"]), internal=True)
        # Read aloud, so that links of the same words tell where they lead.
        dispute += nodes.inline("", f": {row['id']}", classes=["visually-hidden"])
        value = row["value"].rstrip(".")
        places = f"{{ref}}`Cell <{row['cell']}>`"
        if row["see"]:
            places += f". See {{ref}}`{row['see']}`"
        entries = (
            nodes.entry("", nodes.paragraph("", "", link), nodes.paragraph("", "", dispute)),
            nodes.entry("", *self.parse(row["claim"])),
            nodes.entry("", nodes.paragraph("", "", badge(row["verdict"]))),
            nodes.entry("", *self.parse(f"{value}."), *self.parse(f"{places}.")),
        )
        made = nodes.row("", *entries, ids=[label], names=[label])
        self.state.document.note_explicit_target(made)
        return made

    def dispute(self, row: str) -> str:
        """Return where the verdict on a row is disputed."""
        repository = self.config.ledger_repository.rstrip("/")
        if repository:
            return f"{repository}/issues/new?title={quote(f'Ledger {row}: ')}"
        return f"?row={quote(row)}#ledger-dispute"

    def parse(self, markdown: str) -> list[nodes.Node]:
        """Render Markdown."""
        holder = nodes.container()
        self.state.nested_parse(StringList(markdown.splitlines(), "ledger"), 0, holder)
        return holder.children


def _add_script(app, pagename, templatename, context, doctree) -> None:
    if doctree is not None and any("ledger" in t["classes"] for t in doctree.findall(nodes.table)):
        app.add_js_file("ledger.js", type="module")
        app.add_css_file("ledger.css")


def setup(app) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_config_value("ledger_repository", "", "env")
    app.add_directive("ledger", Ledger)
    app.connect("html-page-context", _add_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
