"""Names and roles that the theme and Sphinx leave out or get wrong, as axe-core finds them."""

from __future__ import annotations

import re

# An entry of a list of references has a role of its own, but it was withdrawn.
_CITATION = 'role="doc-biblioentry"'
# Every theorem and every proof without a label has the same id, which nothing refers to.
_REPEATED_ID = re.compile(r' id="proof(-content)?"(?=>)')
# A button that reads "Show code cell output" is called so, too.
_TOGGLE_NAME = ' aria-label="Toggle hidden content"'
# Parameters on lines of their own are a <dl> of <dd> alone: a layout, not a list of terms.
_SIGNATURE = re.compile(r"<dl>(\s*(?:<dd>.*?</dd>\s*)+)</dl>", re.DOTALL)
# A wide table scrolls in this box, where the theme's script makes it a stop of the Tab key.
_TABLE_BOX = '<div class="pst-scrollable-table-container">'
_HEADING = re.compile(r"<h[1-6][^>]*>(.*?)<a class=\"headerlink\"", re.DOTALL)
_TAG = re.compile(r"<annotation.*?</annotation>|<[^>]+>", re.DOTALL)


def with_names(body: str) -> str:
    """Return a page's text with what assistive technology needs."""
    body = body.replace(_CITATION, 'role="listitem"').replace(_TOGGLE_NAME, "")
    body = _REPEATED_ID.sub("", body)
    body = _SIGNATURE.sub(
        lambda found: f'<div class="sig-parameters">{found[1].replace("dd>", "div>")}</div>', body
    )
    pieces = body.split(_TABLE_BOX)
    section = "Table"
    for number, piece in enumerate(pieces[1:], start=1):
        headings = _HEADING.findall(pieces[number - 1])
        if headings:
            name = _TAG.sub("", headings[-1]).strip().replace('"', "&quot;")
            section = f"Table: {name}"
        box = f'<div class="pst-scrollable-table-container" role="group" aria-label="{section}">'
        pieces[number] = box + piece
    return "".join(pieces)


def _add_names(app, pagename, templatename, context, doctree) -> None:
    if app.builder.format != "html":
        return
    if "body" in context:
        context["body"] = with_names(context["body"])
    if navigation := context.get("generate_toctree_html"):

        def with_named_buttons(*args, **kwargs):
            soup = navigation(*args, **kwargs)
            for summary in soup.select("details > summary"):
                page = summary.find_parent("li").find("a").get_text(strip=True)
                summary["aria-label"] = f"Pages of: {page}"
            return soup

        context["generate_toctree_html"] = with_named_buttons


def setup(app) -> dict[str, bool]:
    """Register with Sphinx."""
    # After the theme has added its functions.
    app.connect("html-page-context", _add_names, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
