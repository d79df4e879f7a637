"""Tables of four and more columns are cards on a phone, so a cell carries its column's name."""

from __future__ import annotations

from docutils import nodes

WIDE = 4


def _add_labels(app, doctree: nodes.document) -> None:
    for table in doctree.findall(nodes.table):
        head = next(table.findall(nodes.thead), None)
        # The ledger has cards of its own.
        if head is None or len(head[0]) < WIDE or "ledger" in table["classes"]:
            continue
        table["classes"].append("cards")
        names = [entry.astext() for entry in head[0]]
        for row in table[0][-1]:
            for name, entry in zip(names, row, strict=True):
                entry["label"] = name


def _visit_entry(translator, node: nodes.entry) -> None:
    type(translator).visit_entry(translator, node)
    if node.get("label"):
        label = translator.attval(node["label"])
        translator.body[-1] = translator.body[-1].replace("<td", f'<td data-label="{label}"', 1)


def _depart_entry(translator, node: nodes.entry) -> None:
    type(translator).depart_entry(translator, node)


def setup(app) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_node(nodes.entry, override=True, html=(_visit_entry, _depart_entry))
    app.connect("doctree-read", _add_labels)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
