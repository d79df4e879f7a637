"""Every line of code is an element, so that a style sheet can wrap it under its own indentation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pygments.formatters import HtmlFormatter
from sphinx.highlighting import PygmentsBridge

TAG = re.compile(r"<[^>]+>")
# A Python prompt counts as indentation.
INDENTATION = re.compile(r"((&gt;&gt;&gt;|\.\.\.) )? *")


class LineFormatter(HtmlFormatter):
    """Pygments' formatter, with an element for each line that knows how far it is indented."""

    def wrap(self, source: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """Wrap each line, and then all of them as Pygments does."""
        return super().wrap((kind, _line(html) if kind else html) for kind, html in source)


def _line(html: str) -> str:
    indentation = INDENTATION.match(TAG.sub("", html))[0].replace("&gt;", ">")
    style = f' style="--in:{len(indentation)}"' if indentation else ""
    return f'<span class="line"{style}>{html}</span>'


def setup(app) -> dict[str, bool]:
    """Register with Sphinx."""
    PygmentsBridge.html_formatter = LineFormatter
    return {"parallel_read_safe": True, "parallel_write_safe": True}
