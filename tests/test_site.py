"""The site as it is published: light, described, found, and at home in any folder of any host."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import bench_site
import pytest
import yaml
from bs4 import BeautifulSoup
from conftest import ROOT, load, page_names

CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
BASE = CONFIG["html"]["baseurl"].rstrip("/")
UNLISTED = {"404.html", "search.html"}
MOST_BYTES = 400 * 1024
SITEMAP = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
XHTML = "{http://www.w3.org/1999/xhtml}"


@pytest.fixture(scope="module")
def host(site: Path):
    """The site on a host that compresses, below a folder."""
    with bench_site.served("/some/folder/") as address:
        yield address


def meta(page: BeautifulSoup, name: str) -> list[str]:
    tags = page.find_all("meta", attrs={"name": name}) + page.find_all("meta", property=name)
    return [tag["content"] for tag in tags]


def test_each_page_says_what_it_is_once(pages):
    for name, page in pages.items():
        assert page.html["lang"] == "en", name
        assert len(page.find_all("title")) == 1, name
        assert len(meta(page, "viewport")) == 1, name
        assert len(meta(page, "description")) == 1, name
        assert 40 <= len(meta(page, "description")[0]) <= 220, name
        assert len(page.find_all("h1")) == 1, name
    for kind in ("title", "description"):
        said = [
            page.title.get_text() if kind == "title" else meta(page, kind)[0]
            for page in pages.values()
        ]
        assert len(set(said)) == len(said), f"two pages have the same {kind}"


def test_a_shared_link_shows_title_description_and_card(site, pages):
    for name, page in pages.items():
        if name in UNLISTED:
            assert meta(page, "robots") == ["noindex"]
            assert not meta(page, "og:title")
            continue
        address = f"{BASE}/" + ("" if name == "index.html" else name)
        assert page.find("link", rel="canonical")["href"] == address
        assert meta(page, "og:url") == [address]
        assert meta(page, "og:description") == meta(page, "description")
        assert meta(page, "og:title")[0] in page.title.get_text()
        assert meta(page, "og:image") == [f"{BASE}/card.png"]
        assert len(meta(page, "og:image:alt")[0]) > 40
        assert meta(page, "twitter:card") == ["summary_large_image"]
        assert not meta(page, "robots")
    header = (site / "card.png").read_bytes()[:24]
    assert header.startswith(b"\x89PNG")
    assert struct.unpack(">II", header[16:]) == (1200, 630)


def test_a_page_loads_one_sheet_and_no_script_that_blocks(site, pages):
    for name, page in pages.items():
        sheets = page.find_all("link", rel="stylesheet")
        assert [re.sub(r".*/|\?v=\w{8}$", "", s["href"]) for s in sheets] == ["site.css"], name
        assert not page.find_all("link", rel="preload"), name
        files = [script for script in page.find_all("script") if script.get("src")]
        for script in files:
            assert script.has_attr("defer") or script.get("type") == "module", f"{name}: {script}"
        assert "?v=" in files[0]["src"]
        for tag in page.find_all(["script", "link", "img", "iframe"]):
            target = urlsplit(tag.get("src") or tag.get("href") or "")
            if not set(tag.get("rel", ())) & {"canonical", "alternate"}:
                assert not target.netloc, f"{name} loads {target.geturl()}"


def test_pictures_keep_their_place_and_wait(pages):
    seen = 0
    for name, page in pages.items():
        for image in page.find_all("img"):
            seen += 1
            assert int(image["width"]) > 0, f"{name}: {image}"
            assert int(image["height"]) > 0, f"{name}: {image}"
            assert image["loading"] == "lazy"
            assert image["decoding"] == "async"
    assert seen > 20


def test_nothing_of_font_awesome_or_bootstrap_is_published(site, pages):
    files = [path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()]
    assert not [f for f in files if re.search(r"fontawesome|bootstrap|webfonts|\.map$", f)]
    sheet = (site / "_static" / "site.css").read_text(encoding="utf-8")
    assert "Font Awesome" not in re.findall(r"@font-face\{[^}]*\}", sheet)
    for target in re.findall(r"url\(([^)]*)\)", sheet):
        target = target.strip("\"'")
        assert target.startswith("data:") or (site / "_static" / target).is_file(), target
    icons = {
        icon
        for page in pages.values()
        for tag in page.select(".fa-solid")
        for icon in tag["class"]
        if icon.startswith("fa-") and icon not in ("fa-solid", "fa-lg")
    }
    assert len(icons) > 5
    for icon in icons:
        assert re.search(rf"\.{icon}\{{--icon:", sheet), f"{icon} has no picture"


def test_the_sitemap_lists_every_page_for_readers(site, pages):
    root = ET.parse(site / "sitemap.xml").getroot()
    listed = {place.text for place in root.iter(f"{SITEMAP}loc")}
    names = {"" if name == "index.html" else name for name in pages if name not in UNLISTED}
    assert listed == {f"{BASE}/{name}" for name in names}
    assert f"Sitemap: {BASE}/sitemap.xml" in (site / "robots.txt").read_text(encoding="utf-8")


def test_a_page_in_two_languages_names_both_and_one_for_all_others():
    publishing = load("book/_ext/publishing.py")
    languages = {"en": "https://a.example/pe/", "zh-CN": "https://b.example"}
    assert publishing.alternates(languages, "02-sinusoidal") == [
        ("en", "https://a.example/pe/02-sinusoidal.html"),
        ("zh-CN", "https://b.example/02-sinusoidal.html"),
        ("x-default", "https://a.example/pe/02-sinusoidal.html"),
    ]
    assert publishing.alternates({}, "index") == []
    assert publishing.alternates({"en": BASE}, "index") == []
    root = ET.fromstring(publishing.sitemap("https://a.example/pe/", languages, ["index", "x"]))
    links = [(a["hreflang"], a["href"]) for a in (t.attrib for t in root.iter(f"{XHTML}link"))]
    assert links[:3] == publishing.alternates(languages, "index")
    assert len(links) == 6


@pytest.mark.slow
def test_a_course_in_a_folder_and_two_languages(tiny, tmp_path):
    config = tmp_path / "_config.yml"
    text = config.read_text(encoding="utf-8")
    text = text.replace(f"baseurl: {BASE}", "baseurl: https://a.example/some/folder")
    languages = "{en: https://a.example/some/folder, zh-CN: https://a.example/zh}"
    text = text.replace("course_languages: {}", f"course_languages: {languages}")
    config.write_text(text, encoding="utf-8")
    result = tiny(index="# Good\n", other="# Other\n")
    assert result.returncode == 0, result.stdout
    site = tmp_path / "_build" / "html"
    page = BeautifulSoup((site / "other.html").read_text(encoding="utf-8"), "html.parser")
    links = page.find_all("link", rel="alternate")
    assert [(link["hreflang"], link["href"]) for link in links] == [
        ("en", "https://a.example/some/folder/other.html"),
        ("zh-CN", "https://a.example/zh/other.html"),
        ("x-default", "https://a.example/some/folder/other.html"),
    ]
    address = "https://a.example/some/folder/other.html"
    assert page.find("link", rel="canonical")["href"] == address
    lost = BeautifulSoup((site / "404.html").read_text(encoding="utf-8"), "html.parser")
    targets = [t.get("href") or t.get("src") or t.get("action") for t in lost.find_all(True)]
    outside = [t for t in targets if t and not t.startswith(("/some/folder/", "#"))]
    assert not outside
    assert lost.html["data-content_root"] == "/some/folder/"


def test_the_site_works_in_a_folder(host, browser):
    page = browser.new_page()
    failed: list[str] = []
    page.on("response", lambda r: failed.append(r.url) if r.status >= 400 else None)
    page.on("pageerror", lambda error: failed.append(str(error)))
    page.goto(host, wait_until="networkidle")
    page.locator(".bd-links a[href='02-sinusoidal.html']").click()
    page.wait_for_url(f"{host}02-sinusoidal.html")
    page.goto(f"{host}reference/rotary.html", wait_until="networkidle")
    page.keyboard.press("Control+k")
    field = page.locator("dialog input[type=search]")
    field.fill("wavelengths")
    field.press("Enter")
    hit = page.locator("#search-results a[href*='02-sinusoidal.html']").first
    hit.click(timeout=10_000)
    page.wait_for_url(re.compile(re.escape(host) + "02-sinusoidal.html"))
    page.close()
    assert not failed


@pytest.mark.parametrize("place", ["gone.html", "no/such/place/gone.html"])
def test_lost_readers_find_the_way_back(address, browser, place):
    page = browser.new_page()
    answer = page.goto(f"{address}/{place}", wait_until="networkidle")
    assert answer.status == 404
    assert page.locator("h1").inner_text() == "Page not found"
    sheet = "getComputedStyle(document.querySelector('.bd-sidebar-primary')).display"
    assert page.evaluate(sheet) == "flex"
    page.locator("article a", has_text="contents").click()
    page.wait_for_url(f"{address}/index.html")
    page.close()


def test_a_page_is_light(site, host, browser):
    """Count the bytes of a first visit, without figures."""
    heavy = {}
    chapters = [name for name in page_names(site) if re.match(r"index|0\d-", name)]
    assert len(chapters) > 9
    for name in chapters:
        # A new context has nothing in its cache.
        page = browser.new_context().new_page()
        requests = []
        page.on("requestfinished", lambda request, *_, found=requests: found.append(request))
        page.goto(host + name, wait_until="networkidle")
        total = sum(
            sizes["responseBodySize"] + sizes["responseHeadersSize"]
            for sizes in (r.sizes() for r in requests if r.resource_type != "image")
        )
        page.context.close()
        assert len(requests) >= 3
        if total > MOST_BYTES:
            heavy[name] = total
    assert not heavy


def test_the_colours_are_there_before_any_script(host, browser):
    for mode, scheme, expected in (
        ("auto", "dark", "dark"),
        ("auto", "light", "light"),
        ("dark", "light", "dark"),
    ):
        context = browser.new_context(color_scheme=scheme)
        context.add_init_script(f"localStorage.setItem('mode', '{mode}')")
        page = context.new_page()
        page.route("**/site.js*", lambda route: route.abort())
        page.goto(f"{host}index.html")
        assert page.evaluate("document.documentElement.dataset.theme") == expected
        context.close()


def test_the_theme_switch_is_remembered(host, browser):
    page = browser.new_context(color_scheme="light").new_page()
    page.goto(f"{host}index.html", wait_until="networkidle")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    page.locator(".theme-switch-button").first.click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.goto(f"{host}02-sinusoidal.html", wait_until="networkidle")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.context.close()


def test_the_drawers_of_a_phone_open_and_close(host, browser):
    page = browser.new_context(viewport={"width": 375, "height": 700}, has_touch=True).new_page()
    page.goto(f"{host}02-sinusoidal.html", wait_until="networkidle")
    for button, drawer in ((".primary-toggle", "primary"), (".secondary-toggle", "secondary")):
        inside = page.locator(f"#pst-{drawer}-sidebar-modal a").first
        assert not inside.is_visible()
        page.locator(button).tap()
        inside.wait_for(state="visible")
        page.keyboard.press("Escape")
        inside.wait_for(state="hidden")
    page.context.close()


def test_what_scrolls_is_a_stop_of_the_tab_key(host, browser):
    page = browser.new_context(viewport={"width": 375, "height": 700}).new_page()
    page.goto(f"{host}02-sinusoidal.html", wait_until="networkidle")
    stops = """() => [...document.querySelectorAll('pre')].filter(e => e.checkVisibility())
        .map(e => [e.scrollWidth > e.clientWidth, e.tabIndex === 0])"""
    page.evaluate(
        """() => {
            const wide = document.createElement('pre');
            const folded = document.createElement('details');
            wide.textContent = 'x'.repeat(1000);
            wide.style.overflow = 'auto';
            wide.style.whiteSpace = 'pre';
            folded.append(wide.cloneNode(true));
            document.querySelector('article').append(wide, folded);
            dispatchEvent(new Event('resize'));
        }"""
    )
    page.wait_for_timeout(1000)
    found = page.evaluate(stops)
    assert any(scrolls for scrolls, _ in found)
    assert all(scrolls == stop for scrolls, stop in found)
    page.evaluate("document.querySelector('article > details:last-child').open = true")
    page.wait_for_timeout(500)
    assert len(page.evaluate(stops)) == len(found) + 1
    assert all(scrolls == stop for scrolls, stop in page.evaluate(stops))
    page.set_viewport_size({"width": 9000, "height": 700})
    page.wait_for_timeout(1000)
    found = page.evaluate(stops)
    assert all(scrolls == stop for scrolls, stop in found)
    page.context.close()


def test_what_is_folded_away_is_not_laid_out_while_a_page_loads(host, browser):
    page = browser.new_context(viewport={"width": 375, "height": 700}).new_page()
    page.add_init_script(
        """{
            const {get} = Object.getOwnPropertyDescriptor(Element.prototype, 'scrollWidth');
            window.asked = [];
            Object.defineProperty(Element.prototype, 'scrollWidth', {get() {
                asked.push(this.closest('details:not([open])'));
                return get.call(this);
            }});
        }"""
    )
    page.goto(f"{host}05-ledger.html", wait_until="networkidle")
    assert page.locator("details:not([open]) pre").count()
    page.wait_for_function(
        "shown => asked.length >= shown", arg=page.locator("pre:visible").count()
    )
    assert page.evaluate("asked.every(folded => !folded)")
    page.context.close()


STYLES = """async () => {
  document.body.getBoundingClientRect();
  await document.fonts.ready;
  const names = ['color', 'backgroundColor', 'font', 'display', 'visibility', 'padding', 'margin',
    'border', 'position', 'float', 'listStyleType', 'textDecorationLine', 'whiteSpace', 'opacity'];
  return [...document.querySelectorAll('body *')].map(element => {
    const style = getComputedStyle(element), box = element.getBoundingClientRect();
    return `${element.tagName}.${element.getAttribute('class')} ${box.x} ${box.y} ${box.width} ` +
      `${box.height} ` + names.map(name => style[name]).join('|');
  });
}"""

# Put a style sheet in the place of the page's own.
SWAP = """sheet => {
  const style = document.createElement('style');
  const folder = `${document.documentElement.dataset.content_root}_static/`;
  style.textContent = sheet.replaceAll(/url\\((?!["']?data:)/g, `url(${folder}`);
  document.querySelector('link[rel=stylesheet], head > style.swapped').replaceWith(style);
  style.className = 'swapped';
}"""


@pytest.mark.slow
def test_a_rule_that_was_left_out_changes_no_page(site, address, browser):
    whole = (site.parent / "site-whole.css").read_text(encoding="utf-8")
    small = (site / "_static" / "site.css").read_text(encoding="utf-8")
    assert len(small) < len(whole) / 2
    still = "*, ::before, ::after { transition: none !important; animation: none !important; }"
    page = browser.new_page()

    def different():
        """Return what looks different by the two sheets, at once."""
        looks = []
        for sheet in (small, whole):
            page.evaluate(SWAP, sheet + still)
            for width, scheme in ((1280, "light"), (375, "dark")):
                page.set_viewport_size({"width": width, "height": 800})
                page.emulate_media(color_scheme=scheme)
                page.wait_for_function(
                    "scheme => document.documentElement.dataset.theme === scheme", arg=scheme
                )
                looks.append(page.evaluate(STYLES))
        assert looks[0] != looks[1]
        return [four for four in zip(*looks, strict=True) if four[:2] != four[2:]]

    for name in page_names(site):
        page.goto(f"{address}/{name}", wait_until="networkidle")
        # The page may mark another heading as the current one meanwhile; a rule differs each time.
        found = all(different() for _ in range(3)) and different()
        assert not found, f"{name}: {found[-1]}"
    page.close()


def test_the_workflow_publishes_what_was_tested(tmp_path):
    text = (ROOT / ".github" / "workflows" / "pages.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    steps = jobs["build"]["steps"]
    order = [step.get("run", step.get("uses", "")) for step in steps]
    places = [
        next(i for i, step in enumerate(order) if part in step)
        for part in ("baseurl", "make exercises", "make book", "pytest", "upload-pages-artifact")
    ]
    assert places == sorted(places)
    assert jobs["publish"]["needs"] == "build"
    # The command that sets the address finds the line, and only that.
    before = (ROOT / "_config.yml").read_text(encoding="utf-8")
    (tmp_path / "_config.yml").write_text(before, encoding="utf-8")
    address = "https://owner.example/name"
    result = subprocess.run(
        [
            "sh",
            "-e",
            "-c",
            steps[[s.get("name") for s in steps].index("Set the address of the course")]["run"],
        ],
        cwd=tmp_path,
        env={**os.environ, "ADDRESS": address},
        check=False,
        capture_output=True,
    )
    assert result.returncode == 0, result.stderr
    after = yaml.safe_load((tmp_path / "_config.yml").read_text(encoding="utf-8"))
    expected = yaml.safe_load(before)
    expected["html"]["baseurl"] = address
    assert after == expected


def test_without_node_the_measurement_ends_in_one_sentence(site, tmp_path):
    result = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "bench_site.py")],
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert result.stderr.splitlines() == [
        "node was not found, and Lighthouse needs it; install Node.js 18 or newer"
    ]


def test_the_measurement_takes_medians_and_names_what_failed():
    runs = [
        {**dict.fromkeys((*bench_site.BARS, *bench_site.TIMES), value), "failed": failed}
        for value, failed in ((0.9, ["a"]), (0.5, []), (1.0, ["b", "a"]))
    ]
    result = bench_site.median(runs)
    assert result["performance"] == 0.9
    assert result["failed"] == ["a", "b"]
    assert json.dumps(result)


def test_relative_links_of_the_lost_page_start_at_the_root():
    publishing = load("book/_ext/publishing.py")
    page = '<a href="x.html"> <a href="#top"> <img src="./i.png"> <a href="https://a.example">'
    anchored = publishing.anchored(page, "https://a.example/some/folder/")
    targets = re.findall(r'"([^"]*)"', anchored)
    assert targets == ["/some/folder/x.html", "#top", "/some/folder/i.png", "https://a.example"]
    assert urljoin("https://a.example/deep/er/", targets[0]).endswith("example/some/folder/x.html")
