"""The four marks of the pages: claim, verdict, misconception, exercise.

An admonition of the class ``claim``, ``misconception`` or ``predict``, and the box of graded
exercises, begin with a tag that names the mark. The role ``{verdict}`` sets one of the ledger's
words as a badge.
"""

from __future__ import annotations

from docutils import nodes
from ledger import badge
from sphinx.util.docutils import SphinxRole

TAGS = {
    "claim": "Claim",
    "misconception": "Misconception",
    "predict": "Exercise",
    "assignment": "Exercise",
}


class Verdict(SphinxRole):
    """A verdict of the ledger, as a badge."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Make the badge, or say which words there are."""
        try:
            return [badge(self.text)], []
        except ValueError as error:
            message = self.inliner.reporter.error(str(error), line=self.lineno)
            return [self.inliner.problematic(self.rawtext, self.rawtext, message)], [message]


def _add_tags(app, doctree: nodes.document) -> None:
    """Put the tag before the first words of a box."""
    for box in doctree.findall(nodes.Element):
        for name in box.get("classes", []):
            if name in TAGS and isinstance(box, nodes.admonition | nodes.container):
                first = box[0]
                first.insert(0, nodes.inline("", TAGS[name], classes=["mark"]))
                first.insert(1, nodes.Text(" "))


def setup(app) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_role("verdict", Verdict())
    app.connect("doctree-read", _add_tags)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
