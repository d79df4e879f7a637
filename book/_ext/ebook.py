"""The EPUB: the same pages as strict XHTML, with the font of formulas and without scripts."""

from __future__ import annotations

import re
from pathlib import Path

from bs4 import BeautifulSoup
from sphinx.builders.epub3 import Epub3Builder

import posenc

MATHML = "http://www.w3.org/1998/Math/MathML"
SVG = "http://www.w3.org/2000/svg"
STYLES = re.compile(r"(pygments|epub|ebook|sphinx-design.*)\.css")
OWN = Path(__file__).parents[1] / "_ebook"
ITEM = re.compile(r'(<item id="[^"]*" href="([^"]*)" media-type="application/xhtml\+xml") />')


class EbookBuilder(Epub3Builder):
    """Sphinx's builder, which would take along every script and knows no web fonts."""

    html_tag = Epub3Builder.html_tag.replace(">", ' lang="en" xml:lang="en">')
    media_types = Epub3Builder.media_types | {".woff2": "font/woff2"}

    def init(self) -> None:
        """Describe the book."""
        config = self.config
        config.version = posenc.__version__
        config.epub_title = config.project
        config.epub_identifier = config.html_baseurl
        super().init()

    def build_content(self) -> None:
        """List what the pages use, and say which pages have formulas or drawings."""
        out = Path(self.outdir)
        pages = {
            path.relative_to(out).as_posix(): path.read_text(encoding="utf-8")
            for path in out.rglob("*.xhtml")
        }
        sheets = [path.read_text(encoding="utf-8") for path in (out / "_static").glob("*.css")]
        text = "".join([*pages.values(), *sheets])
        self.config.epub_exclude_files = [
            path.relative_to(out).as_posix()
            for path in out.rglob("*")
            if path.is_file() and path.suffix != ".xhtml" and path.name not in text
        ]
        super().build_content()

        # Sphinx leaves these properties out, and readers may then not show formulas.
        def with_properties(item: re.Match[str]) -> str:
            page = pages.get(item[2], "")
            kinds = {"mathml": "<math", "svg": "<svg"}
            found = " ".join(kind for kind, tag in kinds.items() if tag in page)
            return f'{item[1]} properties="{found}" />' if found else item[0]

        package = out / "content.opf"
        content = package.read_text(encoding="utf-8")
        content = re.sub(r"\s*<dc:contributor>unknown</dc:contributor>", "", content)
        package.write_text(ITEM.sub(with_properties, content), encoding="utf-8")

    def toc_metadata(self, level: int, navpoints: list) -> dict:
        """Name the book as its package does."""
        return super().toc_metadata(level, navpoints) | {"uid": self.config.epub_identifier}


def as_xhtml(body: str) -> str:
    """Return HTML as the XML that EPUB readers know, with MathML 3 for its formulas."""
    soup = BeautifulSoup(body, "html.parser")
    for title in soup.select("summary > p"):
        title.name = "span"
    for link in soup.select("a[href^='?']"):
        link["href"] = link["href"][link["href"].index("#") :]
    for table in soup("mtable"):
        table.attrs.pop("scriptlevel", None)
    for tag in soup.select("math [displaystyle]:not(mstyle, mtable)"):
        tag.wrap(soup.new_tag("mstyle", displaystyle=tag.attrs.pop("displaystyle")))
    for name, namespace in {"math": MATHML, "svg": SVG}.items():
        for tag in soup(name):
            tag["xmlns"] = namespace
    return str(soup)


def _make_page(app, pagename, templatename, context, doctree) -> None:
    if app.builder.name != "epub":
        return
    own = {path.name for path in Path(app.srcdir, "_static").glob("*.css")} - {"print.css"}
    names = [(sheet, Path(str(sheet.filename)).name) for sheet in context["css_files"]]
    context["css_files"] = [s for s, name in names if name in own or STYLES.fullmatch(name)]
    context["script_files"] = []
    # Said by the template already.
    context["metatags"] = re.sub(r'<meta name="viewport"[^>]*>', "", context.get("metatags", ""))
    if "body" in context:
        context["body"] = as_xhtml(context["body"])


def _add_styles(app) -> None:
    if app.builder.name == "epub":
        app.config.html_static_path.append(str(OWN))
        app.add_css_file("ebook.css", priority=100)


def setup(app) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_builder(EbookBuilder, override=True)
    app.connect("builder-inited", _add_styles)
    app.connect("html-page-context", _make_page, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
