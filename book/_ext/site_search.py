"""The search: finds short Chinese terms, and shows text as a reader sees it."""

from __future__ import annotations

import re

from sphinx.search.en import SearchEnglish

_CHINESE = re.compile(r"[\u4e00-\u9fff]{3,}")


class SearchEnglishAndChinese(SearchEnglish):
    """English words, and every two neighbouring signs of Chinese, which writes no spaces.

    The script in the page finds parts of words from three letters on, but most Chinese terms have
    two signs.
    """

    def split(self, input: str) -> list[str]:
        """Return the words to be indexed."""
        pairs = (
            run[start : start + 2]
            for run in _CHINESE.findall(input)
            for start in range(len(run) - 1)
        )
        return [*super().split(input), *pairs]


def _add_script(app, pagename, templatename, context, doctree) -> None:
    if templatename == "search.html":
        app.add_js_file("search.js", type="module")


def setup(app) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_search_language(SearchEnglishAndChinese)
    app.connect("html-page-context", _add_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
