"""What the living figures of scores, attention and bfloat16 compute, against posenc."""

from __future__ import annotations

import itertools
import json
import threading
from functools import partial

import numpy as np
import pytest
from conftest import ROOT, load

import posenc

FIGURES = ROOT / "book" / "_static" / "live"


@pytest.fixture(scope="module")
def call(browser):
    """Call a function of a module with plain arguments, in the browser."""
    serve = load("book/serve.py")
    handler = partial(serve.Handler, directory=FIGURES)
    with serve.Server(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = browser.new_page()
        page.goto(f"http://localhost:{server.server_port}/core.js")
        yield lambda module, expression, arguments: page.evaluate(
            f"async (given) => {{ const m = await import('/{module}.js'); return {expression}; }}",
            arguments,
        )
        page.close()
        server.shutdown()


def assert_close(found, expected, position=0):
    """Equal to 1e-12 for each radian that an angle may have."""
    difference = np.abs(np.asarray(found) - expected)
    allowed = 1e-12 * np.maximum(1, np.abs(position))
    assert difference.shape == np.shape(expected)
    assert (difference <= allowed).all(), (difference / allowed).max()


ENCODINGS = ["none", "sinusoidal", "rotary"]
# Sizes, bases, content angles, and places that the key was turned by beforehand.
CURVES = [
    (8, 10_000, 0, 0),
    (128, 10_000, 0, 50),
    (128, 10_000, np.pi, 0),
    (64, 500_000, -np.pi, -256),
    (2, 100, 1.5, 256),
    (256, 1_000_000, -0.01, 17),
]


@pytest.mark.parametrize(("d", "base", "angle", "ahead"), CURVES)
def test_scores_are_those_of_rotated_queries_and_keys(call, d, base, angle, ahead):
    offsets = np.concatenate([np.arange(-256, 257), [1e6, -1e6, 999_999.5]])
    setting = {"d": d, "base": base, "angle": angle, "ahead": ahead}
    found = call("score", "m.scoreCurve(...given)", [offsets.tolist(), setting])

    def scores(angle):
        back = posenc.rope(np.ones((1, d)), [-angle], frequencies=np.ones(d // 2))
        key = posenc.rope(back, [ahead], base=base)
        queries = np.ones((len(offsets), d))
        return posenc.rope_scores(queries, key, offsets, [0], base=base)[:, 0]

    size = np.abs(offsets) + abs(ahead)
    assert_close(found["scores"], scores(angle), size)
    # What any angle can reach is the length of two scores a quarter turn apart.
    assert_close(found["reach"], np.hypot(scores(0), scores(np.pi / 2)), size)
    mean = np.mean([scores(turn) for turn in np.linspace(0, 2 * np.pi, 8, endpoint=False)], axis=0)
    assert_close(mean, 0 * mean, size)


def attention_weights(x, w_q, w_k, positions, encoding, causal):
    """Weights by posenc, for words in the order of their rows."""
    if encoding == "rotary":
        scores = posenc.rope_scores(x @ w_q, x @ w_k, positions, positions)
        if causal:
            scores = np.where(np.tri(len(x), dtype=bool), scores, -np.inf)
        return posenc.softmax(scores)
    if encoding == "sinusoidal":
        x = x + posenc.sinusoidal_encoding(positions, x.shape[1])
    return posenc.self_attention(x, w_q, w_k, w_k, causal=causal)[1]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("positions", [[0, 1, 2], [-7.5, 1e6, 3], [-1_000_000, -999_999, 0]])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_attention_weights_are_those_of_posenc(call, encoding, positions, causal):
    rng = np.random.default_rng(1)
    x, (w_q, w_k) = rng.normal(size=(3, 4)), rng.normal(size=(2, 4, 6))
    data = {"x": x.tolist(), "wQ": w_q.tolist(), "wK": w_k.tolist()}
    setting = {"kind": encoding, "causal": causal, "positions": positions}
    found = call("attention", "m.attentionWeights(...given)", [data, setting])
    expected = attention_weights(x, w_q, w_k, positions, encoding, causal)
    assert_close(found, expected, np.abs(positions).max())


def test_bfloat16_rounds_as_posenc_does_ties_and_ends_of_the_range_too(call):
    rng = np.random.default_rng(0)
    normal = rng.normal(size=3000) * 2.0 ** rng.integers(-160, 130, 3000)
    # Exact numbers of the format, the ties between them, and the float64 neighbours of both.
    exact = posenc.round_to_bfloat16(normal[np.abs(normal) < 2.0**126]).astype(np.float64)
    ties = exact * (1 + 2.0**-8)
    special = [
        0.0,
        -0.0,
        5e-324,
        2.0**-134,
        3 * 2.0**-134,
        2.0**-126,
        255 * 2.0**120,
        255.5 * 2.0**120,
        2.0**128,
    ]
    values = np.concatenate(
        [normal, exact, ties, np.nextafter(ties, np.inf), np.nextafter(ties, -np.inf), special]
    )
    values = np.concatenate([values, -values, np.arange(-2048, 2049) / 2])
    # A list of such numbers can't hold -0 and infinity: both are told by their reciprocals.
    expression = "given.map(m.bfloat16).map((x) => [x, 1 / x].map(String))"
    found = np.array(call("bf16", expression, values.tolist()), dtype=np.float64)
    rounded = posenc.round_to_bfloat16(values).astype(np.float64)
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(found, np.stack([rounded, 1 / rounded], axis=-1))


def test_positions_that_share_a_number_are_those_that_posenc_rounds_to_it(call):
    first_places = [0, 1, 255, 256, 257, 511, 513, 65_535, 999_999, 1_000_000]
    places = [*first_places, *(-place for place in first_places)]
    for place, found in zip(places, call("bf16", "given.map(m.sharing)", places), strict=True):
        around = np.arange(place - 8192, place + 8193)
        rounded = posenc.round_to_bfloat16(around)
        stored = posenc.round_to_bfloat16(place)
        same = around[rounded == stored]
        assert found == {"stored": stored, "first": same[0], "last": same[-1]}
        assert posenc.distinct_positions(found["first"], found["last"] + 1, "bfloat16") == 1


@pytest.mark.parametrize("d", [2, 8, 128])
def test_angles_exact_and_in_bfloat16(call, d):
    frequencies = posenc.inverse_frequencies(d)
    places = [0, 1, 7, 255, 257, 1000, 65_537, 999_999, 1_000_000, -300]
    asked = [(place, pair, d) for place in places for pair in range(d // 2)]
    found = np.array(call("bf16", "given.map((one) => m.pairAngles(...one))", asked))
    exact = posenc.angles(places, frequencies).ravel()
    assert_close(found[:, 0], exact, np.repeat(places, d // 2))
    np.testing.assert_array_equal(found[:, 1], short_angles(places, d).ravel())


def short_angles(places, d=128):
    """Angles whose positions, frequencies and products are each rounded to bfloat16."""
    places, frequencies = (
        posenc.round_to_bfloat16(numbers).astype(float)
        for numbers in (places, posenc.inverse_frequencies(d))
    )
    return posenc.round_to_bfloat16(np.multiply.outer(places, frequencies)).astype(float)


@pytest.fixture
def opened(address, browser):
    """Open a page with mouse and touch, and bring its figure to life."""
    page = browser.new_page(viewport={"width": 1280, "height": 900}, has_touch=True)

    def opened(name, figure):
        page.goto(f"{address}/{name}")
        found = page.locator(f".live[data-figure={figure}]")
        found.scroll_into_view_if_needed()
        found.locator("canvas[aria-label]").wait_for()
        return found

    yield opened
    page.close()


def shown(number, digits=0):
    """A number as the figures write it."""
    return f"{number:,.{digits}f}".replace("-", "−")


def says(figure):
    return figure.locator(".live-says").text_content()


def test_the_sentence_of_the_page_in_every_order_and_setting(opened):
    figure = opened("01-attention.html", "attention")
    rng = np.random.default_rng(0)
    x, (w_q, w_k) = rng.normal(size=(3, 4)), rng.normal(size=(2, 4, 4))
    words = ["cat", "chases", "mouse"]
    data = json.loads(figure.get_attribute("data-data"))
    assert data == {"words": words, "x": x.tolist(), "wQ": w_q.tolist(), "wK": w_k.tolist()}
    assert figure.get_by_label("Causal mask").is_checked()  # as the picture that it replaces

    for causal, encoding in itertools.product([True, False], ENCODINGS):
        figure.get_by_label("Causal mask").set_checked(causal)
        figure.get_by_label("Positions").select_option(encoding)
        left = attention_weights(x, w_q, w_k, range(3), encoding, causal)
        for order in map(list, list(itertools.permutations(range(3)))[1:]):
            figure.get_by_label("Second", exact=True).select_option(
                " ".join(words[i] for i in order)
            )
            by_place = attention_weights(x[order], w_q, w_k, range(3), encoding, causal)
            right = np.empty((3, 3))
            right[np.ix_(order, order)] = by_place
            differ = (np.abs(left - right) > 1e-9).sum()
            sentence = (
                f"cat looks at mouse: {left[0, 2]:.2f} in the first sentence, {right[0, 2]:.2f}"
            )
            assert says(figure).startswith(sentence)
            assert f"{differ} of 9 pairs" in says(figure)
            # What the page says that the reader will see.
            if not causal:
                assert differ == (0 if encoding == "none" else 9)


def test_two_words_are_chosen_by_keyboard_mouse_and_finger(opened):
    figure = opened("01-attention.html", "attention")
    figure.locator(".live-picture").focus()
    keyboard, mouse, finger = (
        getattr(figure.page, name) for name in ("keyboard", "mouse", "touchscreen")
    )
    keyboard.press("ArrowDown")
    assert says(figure).startswith("chases looks at mouse")
    for key in ("ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowUp", "ArrowUp"):
        keyboard.press(key)
    assert says(figure).startswith("cat looks at cat")
    box = figure.locator("canvas").bounding_box()
    # The second sentence is on the right: mouse, chases, cat.
    right = box["x"] + 0.97 * box["width"]
    mouse.move(right, box["y"] + 60)
    assert says(figure).startswith("mouse looks at cat")
    finger.tap(right, box["y"] + box["height"] - 70)
    assert says(figure).startswith("cat looks at cat")


def scores_at(angle, ahead=0, d=128, base=10_000):
    """Scores at offsets -128 to 128, for a content angle in degrees."""
    query = posenc.rope(np.ones((1, d)), [np.deg2rad(angle)], frequencies=np.ones(d // 2))
    key = posenc.rope(np.ones((1, d)), [ahead], base=base)
    queries = np.repeat(query, 257, axis=0)
    return posenc.rope_scores(queries, key, np.arange(-128, 129), [0], base=base)[:, 0]


def test_the_content_angle_is_set_by_keyboard_mouse_and_finger(opened):
    figure = opened("04-rope.html", "score")
    slider = figure.get_by_label("Content angle")

    def check(angle, **setting):
        assert slider.input_value() == str(angle)
        scores = scores_at(angle, **setting)
        places = np.flatnonzero(scores.max() - scores < 1e-9) - 128
        highest = f"offset {' and '.join(map(shown, places))}: {shown(scores.max(), 1)}. "
        assert f"{highest}At offset 0 it is {shown(scores[128], 1)}." in says(figure)
        return scores

    assert check(0).argmax() == 128
    for _ in range(3):
        slider.press("ArrowRight")
    check(3)
    handle = figure.locator(".live-picture div").bounding_box()
    x, y = handle["x"] + handle["width"] / 2, handle["y"] + handle["height"] / 2
    mouse = figure.page.mouse
    mouse.move(x + 40, y)
    check(3)  # moving without pressing changes nothing
    mouse.down()
    check(0)
    mouse.move(x, y - 30)
    assert abs(check(90)[128]) < 1e-12
    mouse.move(x - 300, y)  # out of the dial, still held
    assert check(180).argmin() == 128
    mouse.up()
    figure.page.touchscreen.tap(x, y + 30)
    check(-90)
    figure.get_by_label("Key turned by").press("End")
    check(-90, ahead=100)
    figure.get_by_label("d", exact=True).select_option("8")
    figure.get_by_label("Base", exact=True).select_option("500000")
    check(-90, ahead=100, d=8, base=500_000)


def test_positions_and_hands_in_bfloat16(opened):
    figure = opened("numerical-checklist.html", "bf16")
    slider, field = figure.get_by_label("Position", exact=True), figure.get_by_label("exactly")
    pairs = figure.get_by_label("Pair", exact=True)

    def check(position, pair=0):
        assert field.input_value() == str(position)
        assert slider.get_attribute("aria-valuetext") == shown(position)
        around = np.arange(position - 5000, position + 5001)
        stored = posenc.round_to_bfloat16(position)
        same = around[posenc.round_to_bfloat16(around) == stored]
        alike = f", like all from {shown(same[0])} to {shown(same[-1])}" if len(same) > 1 else ""
        angles = position * posenc.inverse_frequencies(128)[pair], short_angles(position)[pair]
        exact, rounded = (shown(angle / (2 * np.pi), 2) for angle in angles)
        assert says(figure) == (
            f"{shown(position)} is stored as {shown(stored)}{alike}. "
            f"Pair {pair} should turn {exact} times, and turns {rounded}."
        )

    check(1001)
    slider.press("End")
    check(1_000_000)
    slider.press("Home")
    check(1)
    for _ in range(30):
        slider.press("ArrowRight")
    check(2)  # ten to the power of 0.3
    for position in (255, 257, 258, 1_000_000):
        field.fill(str(position))
        check(position)
    field.fill("2.5")
    before = says(figure)
    field.fill("0")
    assert says(figure) == before
    field.fill("999999")
    pairs.press("End")
    check(999_999, 63)

    # What the page says that the reader will see.
    counts = [posenc.distinct_positions(low, low + 200, "bfloat16") for low in (57, 257, 513, 1025)]
    assert counts[0] == 200
    assert counts == sorted(counts, reverse=True)
    assert len(set(counts)) == 4
    exact = 1001 * posenc.inverse_frequencies(128)
    errors = np.abs(exact - short_angles(1001))
    assert errors[:6].min() > 0.9
    assert errors[exact < 2 * np.pi].max() < 0.04
