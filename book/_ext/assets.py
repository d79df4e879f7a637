"""What a page loads: one style sheet and one deferred script, made of all that the parts bring.

The theme, its extensions and ``book/_static`` bring some twenty files. The sheets become
``_static/site.css``, without the theme's rules that no page needs; the scripts become
``_static/site.js``. A script of ``type="module"`` stays apart: it is deferred by nature, and loaded
where it is asked for. ``shell.css`` draws the theme's icons in place of Font Awesome, and no page
needs Bootstrap's script. Beside the site, ``site-whole.css`` has every rule, for tests.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import lightningcss
from PIL import Image
from sphinx.errors import ExtensionError

# Of the files in book/_static, those that every page needs; extensions ask for the others.
EVERYWHERE = {"course.css", "focus.js", "print.css", "shell.css", "shell.js"}
THEME_STYLES = ("styles/theme.css", "styles/pydata-sphinx-theme.css")
THEME_SCRIPTS = ("scripts/pydata-sphinx-theme.js",)
# Scripts of what the book does not use, and of the search page, which asks for them itself.
UNUSED_SCRIPTS = {"design-tabs.js", "searchtools.js", "language_data.js"}
ICON_FONT = re.compile(r"@font-face\s*\{[^}]*Font Awesome[^}]*\}")
IMPORT = re.compile(r'@import (?:url\()?"?([^")]+)"?\)?;')
SOURCE_MAP = re.compile(r"//# sourceMappingURL=.*")
# The theme makes stops of the Tab key, which lays the page out many times; shell.js does it.
TAB_STOPS = re.compile(
    r'"complete"===document\.readyState\?(\w+)\(\):window\.addEventListener\("load",\1\)'
)
NAME = re.compile(r"[\w-]+")
IMAGE = re.compile(r"<img ([^>]*?)\s*/?>")


def smaller_sheet(css: str, used: set[str]) -> str:
    """Return a style sheet without fonts of icons, and without rules for names not in ``used``."""
    unused = set(re.findall(r"[.#]([A-Za-z_][\w-]*)", css)) - used
    css = ICON_FONT.sub("", css)
    return lightningcss.process_stylesheet(css, minify=True, unused_symbols=unused)


def with_sizes(html: str, folder: Path) -> str:
    """Return a page whose pictures say how large they are and wait until they are near."""

    def complete(tag: re.Match) -> str:
        source = re.search(r'src="([^"]+)"', tag[1])
        attributes = tag[1]
        path = folder / source[1]
        if "width=" not in attributes and path.suffix == ".png":
            with Image.open(path) as image:
                attributes += ' width="{}" height="{}"'.format(*image.size)
        return f'<img {attributes} loading="lazy" decoding="async">'

    return IMAGE.sub(complete, html)


def _collect(app, pagename, templatename, context, doctree) -> None:
    """Note what the page asks for, and leave it only the scripts that are its own."""
    if app.builder.name != "html":
        return
    for sheet in sorted(context["css_files"], key=lambda sheet: sheet.priority):
        app.env.site_styles[str(sheet.filename).removeprefix("_static/")] = None
    context["page_scripts"] = []
    for script in sorted(context["script_files"], key=lambda script: script.priority):
        name = str(script.filename or "").removeprefix("_static/")
        if script.attributes.get("type") == "module":
            context["page_scripts"].append(script)
        elif name and name not in UNUSED_SCRIPTS:
            app.env.site_scripts[name] = None


def _bundle(app, exception) -> None:
    """Write the bundles, finish the pages, and remove what nothing asks for."""
    if exception or app.builder.name != "html":
        return
    site, static = Path(app.outdir), Path(app.outdir) / "_static"
    source = Path(app.srcdir) / "_static"
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    pages = {path: page for path, page in pages.items() if static not in path.parents}

    def read(name: str) -> str:
        return (static / name).read_text(encoding="utf-8")

    def with_imports(name: str) -> str:
        return IMPORT.sub(
            lambda found: with_imports((Path(name).parent / found[1]).as_posix()), read(name)
        )

    own = {p.relative_to(source).as_posix() for p in source.rglob("*") if p.is_file()}
    styles = dict.fromkeys((*THEME_STYLES, *app.env.site_styles))
    theirs = "\n".join(with_imports(name) for name in styles if name not in own)
    ours = "\n".join(read(name) for name in sorted(own & set(styles)))
    # A file may end without a semicolon.
    script = ";\n".join(read(name) for name in (*app.env.site_scripts, *THEME_SCRIPTS))
    script, found = TAB_STOPS.subn("0", SOURCE_MAP.sub("", script))
    if found != 1:
        raise ExtensionError(
            "the theme's script sets stops of the Tab key in another way than known"
        )
    bundled = {*styles, *app.env.site_scripts, *THEME_SCRIPTS}
    modules = [read(name) for name in own if name.endswith("js")]
    text = "\n".join([script, *modules, *pages.values()])
    # Ours are kept whole: some rules wait for what a script makes.
    ours = lightningcss.process_stylesheet(ours, minify=True)
    sheet = smaller_sheet(theirs, set(NAME.findall(text))) + ours
    whole = lightningcss.process_stylesheet(ICON_FONT.sub("", theirs), minify=True) + ours
    (site.parent / "site-whole.css").write_text(whole, encoding="utf-8")

    text += sheet
    for path in [p for p in static.rglob("*") if p.is_file()]:
        name = path.relative_to(static).as_posix()
        if name in bundled or (name not in own and path.name not in text):
            path.unlink()
    for folder in sorted((p for p in static.rglob("*") if p.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()

    for name, content in {"site.css": sheet, "site.js": script}.items():
        (static / name).write_text(content, encoding="utf-8")
        digest = hashlib.sha256(content.encode()).hexdigest()[:8]
        pages = {
            path: page.replace(f'_static/{name}"', f'_static/{name}?v={digest}"')
            for path, page in pages.items()
        }
    for path, page in pages.items():
        path.write_text(with_sizes(page, path.parent), encoding="utf-8")


def _keep_for_pages_that_ask(app, config) -> None:
    """Take sheets and scripts back from every page, where Jupyter Book puts all it finds."""
    static = Path(app.srcdir) / "_static"
    own = {path.relative_to(static).as_posix() for path in static.rglob("*")}
    for files in (config.html_css_files, config.html_js_files):
        files[:] = [name for name in files if name in EVERYWHERE or name not in own]


def _start(app) -> None:
    app.env.site_styles, app.env.site_scripts = {}, {}


def setup(app) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("config-inited", _keep_for_pages_that_ask)
    app.connect("builder-inited", _start)
    # After every extension has said what it needs, and after the theme has written its files.
    app.connect("html-page-context", _collect, priority=900)
    app.connect("build-finished", _bundle, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
