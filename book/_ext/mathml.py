"""Formulas become MathML when the book is built: no script in the page, nothing to fetch."""

from __future__ import annotations

import re
from html import unescape

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

logger = logging.getLogger(__name__)

_CONVERTER = LatexToMathML(annotation=True, fancy_error=False)

# What the converter accepts but a browser would show wrongly, each with what to write instead.
_REFUSED = {
    r"\\begin\{(equation|align|gather|mult\w+)\}": (
        "numbers itself: write aligned in a {math} block, with a :label: if it is referred to"
    ),
    r"^(?!.*\\begin\{).*\\\\": "breaks a line outside an environment: write aligned",
    r"\\(boxed|fbox|b?cancel|xcancel|sout|vec|widehat|widetilde)\b": (
        "is not drawn alike by all browsers: write it in words, or \\mathbf, \\bar, \\hat, \\tilde"
    ),
    # Chromium sets the bracket too low.
    r"\\[bB]igg?r?\s*(\\[{}|]|[^\s\w\\])\s*[_^]": "has a script: write \\left and \\right",
}
# What no line may begin with.
_CLOSING = re.compile(r"[.,:;?!)\]”’。，、：；？！）」]+")


class FormulaError(ValueError):
    """A formula that can't be shown faithfully."""


def to_mathml(tex: str, *, display: bool) -> str:
    """Return the ``<math>`` element of a formula, with its TeX source as annotation.

    Raises
    ------
    FormulaError
        If the formula is empty, is not valid TeX, or holds something that browsers show wrongly.
    """
    if not tex.strip():
        raise FormulaError("the formula is empty")
    for pattern, advice in _REFUSED.items():
        if found := re.search(pattern, tex, re.DOTALL):
            raise FormulaError(f"{found[0].splitlines()[-1]!r} {advice}")
    try:
        math = _CONVERTER.convert_with_local_state(tex, displaystyle=display)
    except LatexError as error:
        raise FormulaError(f"at character {error}") from None
    # XML, and so an EPUB, knows but these three names of signs.
    math = re.sub(r"&(?!amp;|lt;|gt;)\w+;", lambda name: unescape(name[0]), math)
    # The converter stretches a combining mark, which fonts draw beside the letters, not over them.
    math = math.replace("\u0332</mo></mover>", "\u203e</mo></mover>")
    return math.replace("\u0332</mo></munder>", "_</mo></munder>")


class KeepPunctuation(SphinxPostTransform):
    """Move the punctuation after a formula into it: browsers would break the line between them."""

    default_priority = 900
    formats = ("html",)

    def run(self, **_: object) -> None:
        """Give each formula its ``closing``."""
        for formula in self.document.findall(nodes.math):
            text = formula.next_node(descend=False, siblings=True)
            if isinstance(text, nodes.Text) and (closing := _CLOSING.match(text)):
                formula["closing"] = closing[0]
                text.parent.replace(text, nodes.Text(text[closing.end() :]))


def _convert(translator, node: nodes.Element, *, display: bool) -> str:
    tex = node.astext()
    try:
        return to_mathml(tex, display=display)
    except FormulaError as error:
        logger.warning("formula %r can't be shown: %s", tex, error, location=node, type="mathml")
        return f'<code class="formula-error">{translator.encode(tex)}</code>'


def _visit_inline(translator, node: nodes.math) -> None:
    formula = _convert(translator, node, display=False)
    closing = node.get("closing", "")
    translator.body.append(f'<span class="math">{formula}{closing}</span>')
    raise nodes.SkipNode


def _visit_block(translator, node: nodes.math_block) -> None:
    translator.body.append(translator.starttag(node, "div", CLASS="math"))
    if node["number"]:
        number = get_node_equation_number(translator, node)
        translator.body.append(f'<span class="eqno">({number})')
        translator.add_permalink_ref(node, "Link to this equation")
        translator.body.append("</span>")
    formula = _convert(translator, node, display=True)
    translator.body.append(f'<div class="formula">{formula}</div></div>\n')
    raise nodes.SkipNode


def setup(app) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_post_transform(KeepPunctuation)
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
