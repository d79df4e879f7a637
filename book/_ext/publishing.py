"""What makes the site known: descriptions, previews, languages, sitemap, robots.txt, 404 page.

Links between pages are relative, so that the folder can be put anywhere. Only these need the
course's address, ``html: baseurl:`` in _config.yml. ``course_languages`` there maps a language to
the address of the course in it, this one's own included; each page then names the same page in
each, and the first language is for readers of all others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit
from xml.sax.saxutils import escape, quoteattr

import matplotlib.pyplot as plt
from docutils import nodes

import posenc

CARD = "card.png"
CARD_SIZE = (1200, 630)
CARD_ALT = (
    "The title of the course beside a heat map: a row for each of 64 positions, a column for each "
    "of 64 dimensions, stripes that get slower from left to right."
)
DESCRIPTIONS = {
    "search": "Search the course on positional encoding, in English or Chinese.",
    "404": "No page of the course on positional encoding has this address.",
}
VIEWPORT = re.compile(r'<meta name="viewport"[^>]*>\s*')
RELATIVE = re.compile(r'(?<= )(href|src|action|data-content_root)="(?![a-z]+:|#|/)(?:\./)?')


def page_address(site: str, page: str) -> str:
    """Return where a page is: the first page at the site's own address."""
    return f"{site.rstrip('/')}/" + ("" if page == "index" else f"{page}.html")


def alternates(languages: Mapping[str, str], page: str) -> list[tuple[str, str]]:
    """Return the page's address in each language, the first also as that of all others."""
    found = [(language, page_address(site, page)) for language, site in languages.items()]
    return [*found, ("x-default", found[0][1])] if len(found) > 1 else []


def sitemap(site: str, languages: Mapping[str, str], pages: list[str]) -> str:
    """Return the list of pages that search engines read."""
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
        ' xmlns:xhtml="http://www.w3.org/1999/xhtml">',
    ]
    for page in pages:
        links = "".join(
            f'<xhtml:link rel="alternate" hreflang="{language}" href={quoteattr(address)}/>'
            for language, address in alternates(languages, page)
        )
        lines.append(f"<url><loc>{escape(page_address(site, page))}</loc>{links}</url>")
    return "\n".join([*lines, "</urlset>", ""])


def anchored(page: str, site: str) -> str:
    """Return a page whose relative links start at the site's root, wherever it is shown."""
    root = urlsplit(site).path.rstrip("/")
    return RELATIVE.sub(rf'\1="{root}/', page)


def draw_card(path: Path, title: str) -> None:
    """Draw the picture that previews of a link show."""
    width, height = CARD_SIZE
    with plt.rc_context({"font.family": "DejaVu Sans", "figure.dpi": 100}):
        figure = plt.figure(figsize=(width / 100, height / 100), facecolor="#14181e")
        figure.text(0.06, 0.55, title.replace(" ", "\n"), color="white", size=56, weight="bold")
        lines = "Every claim tested.\nGraded exercises\nthat name the mistake."
        figure.text(0.06, 0.20, lines, color="#ced6dd", size=20, linespacing=1.6)
        axes = figure.add_axes((1 - 0.9 * height / width, 0.08, 0.84 * height / width, 0.84))
        axes.imshow(posenc.sinusoidal_table(64, 64), cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
        axes.set_axis_off()
        figure.savefig(path, metadata={"Software": None})
        plt.close(figure)


def _describe(app, pagename, templatename, context, doctree) -> None:
    """Give the template what the head of the page says."""
    if app.builder.name != "html":
        return
    metas = doctree.findall(nodes.meta) if doctree else ()
    found = next((meta["content"] for meta in metas if meta.get("name") == "description"), "")
    listed = pagename not in DESCRIPTIONS
    site = app.config.html_baseurl
    width, height = CARD_SIZE
    context |= {
        "listed": listed,
        "description": found or DESCRIPTIONS.get(pagename, ""),
        "pageurl": page_address(site, pagename) if listed else None,
        "card": {
            "address": f"{site.rstrip('/')}/{CARD}",
            "width": width,
            "height": height,
            "alt": CARD_ALT,
        },
        "alternates": alternates(app.config.course_languages, pagename),
        # The theme's page says how wide it is, once.
        "metatags": VIEWPORT.sub("", context.get("metatags", "")),
    }


def _add_page(app) -> Iterator[tuple[str, dict, str]]:
    if app.builder.name == "html":
        yield "404", {"title": "Page not found"}, "404.html"


def _write(app, exception) -> None:
    if exception or app.builder.name != "html":
        return
    out, site, languages = Path(app.outdir), app.config.html_baseurl, app.config.course_languages
    pages = sorted(app.env.found_docs)
    (out / "sitemap.xml").write_text(sitemap(site, languages, pages), encoding="utf-8")
    robots = f"User-agent: *\nAllow: /\n\nSitemap: {site.rstrip('/')}/sitemap.xml\n"
    (out / "robots.txt").write_text(robots, encoding="utf-8")
    draw_card(out / CARD, app.config.project)
    lost = out / "404.html"
    lost.write_text(anchored(lost.read_text(encoding="utf-8"), site), encoding="utf-8")


def setup(app) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_config_value("course_languages", {}, "html")
    app.connect("html-collect-pages", _add_page)
    app.connect("html-page-context", _describe)
    app.connect("build-finished", _write, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
