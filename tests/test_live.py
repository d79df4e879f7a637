"""Figures that come alive: right to rounding, quiet, small, and for every reader."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from bs4 import BeautifulSoup
from conftest import page_names

import posenc

SIZES = [4, 8, 16, 32, 64, 128, 256, 512]
BASES = [round(10 ** (quarters / 4)) for quarters in range(1, 25)]  # the stops of a slider
LIMIT = 40_000


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, BeautifulSoup]:
    """The pages that have a figure."""
    found = {}
    for name in page_names(site):
        text = (site / name).read_text(encoding="utf-8")
        if 'class="live"' in text:
            found[name] = BeautifulSoup(text, "html.parser")
    return found


@pytest.fixture
def opened(address, browser):
    """Open a page, by default as a laptop; faults and requests are kept."""
    contexts = []

    def opened(name: str, held: str | None = None, **options):
        contexts.append(
            browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        )
        page = contexts[-1].new_page()
        page.faults, page.asked = [], []
        page.on("pageerror", lambda error: page.faults.append(str(error)))
        page.on(
            "console",
            lambda message: (
                page.faults.append(message.text) if message.type in ("error", "warning") else None
            ),
        )
        page.on("request", lambda request: page.asked.append(request.url))
        if held:  # comes empty, until it is asked for again
            page.route(f"**/{held}?*", lambda route: route.fulfill(content_type="text/javascript"))
        page.goto(f"{address}/{name}", wait_until="load")
        return page

    yield opened
    for context in contexts:
        context.close()


def figure_of(page, name: str):
    """Bring a figure to life, and return it."""
    figure = page.locator(f".live[data-figure={name}]").first
    figure.scroll_into_view_if_needed()
    figure.locator("canvas[aria-label]").wait_for()
    return figure


@pytest.fixture(scope="module")
def call(address, browser):
    """Call the function ``values`` of a module with each of many lists of arguments."""
    page = browser.new_page()
    page.goto(f"{address}/_static/live/core.js")
    script = """async ([name, calls, exported]) => {
        const module = await import(`/_static/live/${name}.js`);
        return calls.map((given) => module[exported](...given));
    }"""
    yield lambda name, calls, exported="values": page.evaluate(script, [name, calls, exported])
    page.close()


def assert_close(found, expected, position):
    """Equal to 1e-12 for each radian that an angle may have."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    excess = np.abs(found - expected) / (1e-12 * np.maximum(1, np.abs(position)))
    assert excess.max() <= 1, excess.max()


@pytest.mark.parametrize("base", [2, 100, 10_000, 1_000_000])
@pytest.mark.parametrize("d_model", [4, 8, 16, 32])
def test_hands_stand_where_the_encoding_says(call, d_model, base):
    positions = np.array([*range(101), 0.5, -0.25, -3, 5000, 123_456.75, -1e6, 999_999, 1e6])
    calls = [[position, d_model, base] for position in positions.tolist()]
    expected = posenc.sinusoidal_encoding(positions, d_model, base=base)
    assert_close(call("core", calls, "encoding"), expected, positions[:, None])
    expected = posenc.angles(positions, posenc.inverse_frequencies(d_model, base=base))
    assert_close(call("clock", calls, "angles"), expected, positions[:, None])


@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_the_map_shows_the_table_at_every_base(call, layout):
    for d_model, base in itertools.product((4, 64, 512), BASES):
        options = {"base": base, "layout": layout}
        # First and last rows of the longest table, and rows far from it.
        starts = [0, 59, 508, -1_000_000, 999_996]
        calls = [[4, d_model, {"start": start, **options}] for start in starts]
        for start, found in zip(starts, call("heatmap", calls), strict=True):
            expected = posenc.sinusoidal_table(4, d_model, start=start, **options)
            assert_close(found, expected, np.arange(start, start + 4)[:, None])


@pytest.mark.parametrize("d_model", SIZES)
def test_the_map_shows_the_table_at_every_size(call, d_model):
    (found,) = call("heatmap", [[512, d_model]])
    assert_close(found, posenc.sinusoidal_table(512, d_model), np.arange(512)[:, None])


@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_a_column_is_called_by_what_it_holds(call, layout):
    columns = call("heatmap", [[column, 16, layout] for column in range(16)], "columnOf")
    row = posenc.sinusoidal_encoding(3, 16, layout=layout)
    for value, column in zip(row, columns, strict=True):
        angle = 3 * posenc.inverse_frequencies(16)[column["pair"]]
        assert value == {"sine": np.sin, "cosine": np.cos}[column["part"]](angle)


@pytest.mark.parametrize("d_model", SIZES)
def test_the_kernel_is_the_dot_product_of_two_encodings(call, d_model):
    offsets = np.array([*range(151), 0.25, -7, 999, 1000, -1e6, 999_999.5, 1e6])
    for base in BASES:
        found = call("kernel", [[offset, d_model, base] for offset in offsets.tolist()])
        assert_close(found, posenc.position_kernel(offsets, d_model, base=base), offsets)


def test_modules_are_small_and_every_one_is_used(site, pages):
    modules = {path.stem: path.stat().st_size for path in (site / "_static/live").iterdir()}
    assert sum(modules.values()) <= LIMIT, modules
    used = {stage["data-figure"] for page in pages.values() for stage in page.select(".live")}
    assert used == set(modules) - {"start", "core"}


def test_only_pages_that_have_a_figure_load_the_script(site, pages):
    assert {"02-sinusoidal.html", "03-rotation.html"} <= set(pages)
    for name in page_names(site):
        text = (site / name).read_text(encoding="utf-8")
        assert text.count("live/start.js") == (name in pages), name


def test_every_figure_has_a_picture_a_caption_and_says_what_to_try(pages):
    for name, page in pages.items():
        for stage in page.select(".live"):
            figure = stage.parent
            assert figure.name == "figure", name
            assert [child.name for child in stage.find_all(True)] == ["img"]
            assert len(stage.img["alt"]) > 40
            assert len(figure.figcaption.get_text()) > 40
        if name != "index.html":
            tries = [text.get_text(strip=True) for text in page.select(".live-try")]
            assert len(tries) == len(page.select(".live"))
            assert all(tries)


def test_a_module_is_asked_for_when_its_figure_comes_near(opened):
    page = opened("02-sinusoidal.html")
    loaded = lambda: [url for url in page.asked if "/heatmap.js" in url]  # noqa: E731
    page.wait_for_load_state("networkidle")
    assert not loaded()
    figure_of(page, "heatmap")
    assert len(loaded()) == 1


# What a look at all figures of a page finds.
LOOK = """() => [...document.querySelectorAll('.live')].map((stage) => {
    const controls = [...stage.querySelectorAll('button, select, input')];
    const canvas = stage.querySelector('canvas');
    const words = stage.querySelector('.live-says');
    return {
        name: stage.dataset.figure,
        overflow: stage.scrollHeight - stage.clientHeight,
        lost: words.scrollHeight - words.clientHeight,
        picture: canvas.clientHeight,
        sharp: canvas.width - Math.round(devicePixelRatio * canvas.getBoundingClientRect().width),
        small: controls.filter((control) => control.getBoundingClientRect().height < 24).length,
        nameless: controls.filter(({labels, innerText}) => !labels.length && !innerText).length,
        label: canvas.getAttribute('aria-label'),
    };
})"""
HEIGHTS = """() => [document.documentElement.scrollHeight,
    ...[...document.querySelectorAll('.live')].map((stage) => stage.offsetHeight)]"""


@pytest.mark.parametrize("width", [375, 1280])
def test_every_figure_comes_alive_in_its_place_and_quietly(opened, address, pages, width):
    for name in pages:
        page = opened(
            name, viewport={"width": width, "height": 800}, device_scale_factor=2, held="start.js"
        )
        # Answers are folded away until they are asked for.
        page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
        before = page.evaluate(HEIGHTS)
        page.add_script_tag(url=f"{address}/_static/live/start.js", type="module")
        for stage in page.locator(".live").all():
            stage.scroll_into_view_if_needed()
            stage.locator("canvas[aria-label]").wait_for()
        page.wait_for_timeout(150)
        assert page.evaluate(HEIGHTS) == before, f"{name}: something moved"
        found = page.evaluate(LOOK)
        assert len(found) == len(pages[name].select(".live"))
        for figure in found:
            where = (name, figure)
            assert figure["overflow"] <= 0, where
            assert figure["lost"] <= 1, where
            assert figure["picture"] >= 130, where
            assert figure["sharp"] == figure["small"] == figure["nameless"] == 0, where
            assert len(figure["label"]) > 40, where
        wide, window = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide <= window, name
        assert not page.faults, (name, page.faults)
        assert not [url for url in page.asked if not url.startswith((address, "data:"))]


@pytest.mark.slow
def test_every_picture_follows_the_theme(opened, pages):
    pixels = "() => [...document.querySelectorAll('.live canvas')].map((one) => one.toDataURL())"
    for name in pages:
        page = opened(name, color_scheme="light", reduced_motion="reduce")
        for stage in page.locator(".live:visible").all():
            stage.scroll_into_view_if_needed()
            stage.locator("canvas[aria-label]").wait_for()
        seen = []
        for theme in ("light", "dark", "light"):
            page.evaluate("(theme) => { document.documentElement.dataset.theme = theme; }", theme)
            page.wait_for_timeout(100)
            seen.append(page.evaluate(pixels))
        light, dark, again = seen
        assert light == again
        assert light
        assert all(one != other for one, other in zip(light, dark, strict=True)), name


def test_a_picture_follows_the_window_and_the_theme(opened):
    page = opened("02-sinusoidal.html", color_scheme="light")
    canvas = figure_of(page, "clock").locator("canvas")
    sizes = "(canvas) => [canvas.width, Math.round(canvas.getBoundingClientRect().width)]"
    wide, shown = canvas.evaluate(sizes)
    assert wide == shown
    page.set_viewport_size({"width": 500, "height": 800})
    page.wait_for_timeout(150)
    narrow, shown = canvas.evaluate(sizes)
    assert narrow == shown < wide
    light = canvas.evaluate("(canvas) => canvas.toDataURL()")
    page.locator(".theme-switch-button:visible").first.click()
    page.wait_for_function("document.documentElement.dataset.theme === 'dark'")
    page.wait_for_timeout(150)
    assert canvas.evaluate("(canvas) => canvas.toDataURL()") != light


def test_without_scripts_the_picture_stays_and_nothing_is_promised(opened):
    for name in ("02-sinusoidal.html", "03-rotation.html"):
        page = opened(name, java_script_enabled=False)
        for stage in page.locator(".live").all():
            image = stage.locator("img")
            if image.is_visible():  # not in a fold
                assert image.bounding_box()["height"] > 100
        assert page.locator(".live-try:visible").count() == 0
        assert page.locator(".live canvas").count() == 0


def test_the_clock_obeys_the_keyboard_and_says_what_it_shows(opened):
    page = opened("02-sinusoidal.html")
    clock = figure_of(page, "clock")
    canvas = clock.locator("canvas")
    assert canvas.get_attribute("role") == "img"

    def says(position, d_model):
        row = posenc.sinusoidal_encoding(position, d_model)
        last = f"{row[-2]:.2f}, cosine {row[-1]:.2f}".replace("-", "−")
        first = f"pair 0: sine {row[0]:.2f}, cosine {row[1]:.2f};".replace("-", "−")
        label = canvas.get_attribute("aria-label")
        return first in label and label.endswith(f"pair {d_model // 2 - 1}: sine {last}.")

    assert says(3, 8)
    clock.get_by_role("slider").focus()
    style = "(e) => getComputedStyle(e).outlineStyle"
    page.keyboard.press("ArrowRight")
    assert says(4, 8)
    assert clock.get_by_role("slider").evaluate(style) == "solid"
    page.keyboard.press("End")
    assert says(100, 8)
    assert clock.get_by_role("spinbutton").input_value() == "100"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.type("-777777.5")
    assert says(-777777.5, 8)
    clock.get_by_role("spinbutton").fill("1e9")  # more than the field admits
    assert says(-777777.5, 8)
    clock.get_by_role("combobox").select_option("32")
    assert says(-777777.5, 32)
    page.wait_for_function(
        "([canvas]) => canvas.closest('.live').querySelector('[aria-live=polite]').textContent"
        ".startsWith('Turns made at position −777,777.5')",
        arg=[canvas.element_handle()],
    )


def test_playing_is_started_and_stopped_by_hand_and_stops_out_of_view(opened):
    page = opened("02-sinusoidal.html")
    clock = figure_of(page, "clock")
    field, button = clock.get_by_role("spinbutton"), clock.get_by_role("button")
    page.wait_for_timeout(300)
    assert field.input_value() == "3", "moves before it is asked to"
    button.press("Enter")
    page.wait_for_function("(field) => field.value > 3.2", arg=field.element_handle())
    assert button.inner_text() == "Pause"
    button.press("Enter")
    assert button.inner_text() == "Play"
    assert float(field.input_value()).is_integer()
    button.click()
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.wait_for_function("(button) => button.textContent === 'Play'", arg=button.element_handle())


def test_with_reduced_motion_playing_goes_by_whole_steps(opened):
    page = opened("02-sinusoidal.html", reduced_motion="reduce")
    clock = figure_of(page, "clock")
    shown = page.evaluate_handle(
        """(stage) => {
            const shown = [];
            const words = stage.querySelector('.live-says');
            new MutationObserver(() => shown.push([words.textContent, performance.now()]))
                .observe(words, {childList: true});
            return shown;
        }""",
        clock.element_handle(),
    )
    clock.get_by_role("button").click()
    page.wait_for_function("(shown) => shown.length >= 2", arg=shown)
    (first, one), (second, two) = shown.json_value()[:2]
    assert first.startswith("Turns made at position 4:")
    assert second.startswith("Turns made at position 5:")
    assert two - one > 900  # milliseconds


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_the_small_clock_starts_by_itself_unless_that_is_unwelcome(opened, motion):
    page = opened("02-sinusoidal.html", reduced_motion=motion)
    page.evaluate(
        """async () => {
            const stage = document.createElement('div');
            stage.className = 'live';
            stage.dataset.figure = 'clock';
            document.querySelector('article').prepend(stage);
            scrollTo(0, 0);
            const {mount} = await import('/_static/live/clock.js');
            mount(stage, {small: ''});
        }"""
    )
    clock = page.locator(".live").first
    page.wait_for_timeout(1300)
    assert clock.get_by_role("button").inner_text() == ("Play" if motion == "reduce" else "Pause")
    position = float(clock.locator(".live-value").inner_text())
    assert position == 0 if motion == "reduce" else 0 < position < 5
    # Nobody who did not touch it is told about every turn.
    assert not clock.locator("[aria-live]").inner_text()


def cell(label: str) -> str:
    """What the map's label says of the cell that is chosen."""
    return label[label.index("Position") :]


def test_a_cell_of_the_map_is_read_by_keyboard_mouse_and_finger(opened):
    page = opened("02-sinusoidal.html", has_touch=True)
    heat = figure_of(page, "heatmap")
    canvas = heat.locator("canvas")
    label = lambda: cell(canvas.get_attribute("aria-label"))  # noqa: E731

    def reads(row, column, d_model=64, **options):
        value = posenc.sinusoidal_table(512, d_model, **options)[row, column]
        start = f"Position {row}, dimension {column}: {value:.4f}, ".replace("-", "−")
        assert label().startswith(start), label()

    reads(5, 2)
    picture = heat.locator(".live-picture")
    picture.focus()
    for key in ("ArrowDown", "ArrowRight", "Shift+ArrowRight", "ArrowUp"):
        page.keyboard.press(key)
    reads(5, 13)
    assert "cosine of pair 6" in label()
    for _ in range(3):
        page.keyboard.press("Shift+ArrowUp")
    reads(0, 13)
    assert picture.evaluate("(e) => getComputedStyle(e).outlineStyle") == "solid"
    box = canvas.bounding_box()
    middle = (42 + (box["width"] - 54) * 20.5 / 64, 26 + (box["height"] - 68) * 30.5 / 60)
    page.mouse.move(box["x"] + middle[0], box["y"] + middle[1])
    reads(30, 20)
    page.touchscreen.tap(box["x"] + 43, box["y"] + box["height"] - 43)
    reads(59, 0)
    heat.get_by_label("Layout").select_option("half")
    reads(59, 0, layout="half")
    base, length = heat.get_by_label("Base", exact=True), heat.get_by_label("Length", exact=True)
    base.press("Home")
    reads(59, 0, layout="half", base=BASES[0])
    base.press("End")
    assert base.get_attribute("aria-valuetext") == "1,000,000"
    length.press("Home")
    reads(3, 0, layout="half", base=BASES[-1])
    length.press("End")
    picture.focus()
    for _ in range(60):
        page.keyboard.press("Shift+ArrowDown")
        page.keyboard.press("Shift+ArrowRight")
    reads(511, 63, layout="half", base=BASES[-1])
    heat.get_by_label("d", exact=True).select_option("8")
    reads(511, 7, 8, layout="half", base=BASES[-1])
    assert not page.faults


def test_the_kernel_is_read_by_slider_and_pointer(opened):
    page = opened("03-rotation.html")
    figure = figure_of(page, "kernel")
    label = lambda: figure.locator("canvas").get_attribute("aria-label")  # noqa: E731

    def reads(offset, d_model=64, base=100):
        values = [posenc.position_kernel(offset, d_model, base=b) for b in (base, 10_000)]
        own, paper = (f"{value / (d_model / 2):.3f}".replace("-", "−") for value in values)
        end = f"At offset {offset:,} the dot product is {own} of its peak"
        end += "." if base == 10_000 else f"; with the paper’s base, {paper}."
        assert label().endswith(end), label()

    reads(6)
    offset, base = figure.get_by_label("Read at"), figure.get_by_label("Base", exact=True)
    offset.press("End")
    reads(150)
    figure.get_by_label("Offsets to").select_option("1000")
    offset.press("End")
    reads(1000)
    figure.get_by_label("Offsets to").select_option("50")
    reads(50)
    base.press("Home")
    reads(50, base=BASES[0])
    base.press("End")
    reads(50, base=BASES[-1])
    figure.get_by_label("d", exact=True).select_option("512")
    reads(50, 512, BASES[-1])
    box = figure.locator("canvas").bounding_box()
    page.mouse.move(box["x"] + 46 + (box["width"] - 60) / 2, box["y"] + box["height"] / 2)
    reads(25, 512, BASES[-1])
    assert not page.faults


@pytest.fixture
def build(build_alone, tmp_path):
    """Build one page with the directive, by any builder; return it and the warnings."""
    (tmp_path / "clock.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")

    def build(text: str, builder: str = "html") -> tuple[BeautifulSoup, str]:
        page, warnings = build_alone(
            f"# Page\n\n{text}\n\n{PICTURE}",
            builder,
            extensions=["myst_nb", "live"],
            nb_execution_mode="off",
            # Sphinx would add to its own default, which outlives this build.
            source_suffix={".md": "myst-nb"},
        )
        return BeautifulSoup(page, "html.parser"), warnings

    return build


PICTURE = "```{figure} clock.svg\n:name: fig-here\n:alt: A clock\n\nIt is noon.\n```\n"
LIVE = "```{live} clock\n:figure: fig-here\n:d-model: 16\n:small:\n\nTurn *it*.\n```"


def test_the_directive_puts_the_picture_on_a_stage(build):
    page, warnings = build(LIVE)
    assert not warnings
    stage = page.select_one("figure#fig-here > div.live")
    data = {key: value for key, value in stage.attrs.items() if key.startswith("data-")}
    assert data == {"data-figure": "clock", "data-d-model": "16", "data-small": ""}
    assert stage.img["alt"] == "A clock"
    assert stage.parent.figcaption.get_text(strip=True).startswith("It is noon.")
    assert page.select_one("div.live-try em").get_text() == "it"
    assert page.select_one("script[src*='live/start.js']")["type"] == "module"


def test_a_book_on_paper_keeps_the_picture_alone(build):
    page, warnings = build(LIVE, "epub")
    assert not warnings
    assert page.select_one("figure img, div.figure img")
    assert "Turn" not in page.get_text()
    assert not page.select("script[src*='live']")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```{live} sundial\n:figure: fig-here\n```", "ERROR: live: no figure is called 'sundial'"),
        ("```{live} clock\n:figure: fig-gone\n```", "this page has no figure 'fig-gone'"),
        ("```{live} clock\n:d-model: 8\n```", "ERROR: live: `:figure:` must name the figure"),
        ("```{live} clock\n:figure: fig-here\n:data: gone\n```", "ERROR: live: "),
        ("```{live} clock\n:figure: fig-here\n:colour: red\n```", "colour"),
        ("```{live} clock\n:figure: fig-here\n:d-model: many\n```", "many"),
    ],
)
def test_a_figure_that_cannot_come_alive_is_a_warning_with_its_line(build, text, message):
    _, warnings = build(text)
    assert message in warnings
    assert "index.md:3" in warnings
