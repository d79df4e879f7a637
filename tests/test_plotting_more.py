"""Figures of biases, longer contexts, the length lab and number formats show what they name."""

import inspect

import numpy as np
import pytest
import test_plotting
from matplotlib import pyplot
from matplotlib.figure import Figure
from test_plotting import lines, png

import posenc
from posenc import plotting

RNG = np.random.default_rng(21)
TRAINED = posenc.inverse_frequencies(64)
LENGTHS = [16, 32, 64]
TERMS = posenc.additive_score_terms(
    *RNG.standard_normal((2, 6, 8)), *RNG.standard_normal((2, 8, 4))
)
METHODS = {
    "linear": {"factor": 8},
    "ntk": {"factor": 8},
    "dynamic": {"factor": 8, "original_length": 4096, "length": 16_384},
    "yarn": {"factor": 8, "original_length": 4096},
    "llama3": {"factor": 8, "original_length": 4096},
    "longrope": {
        "original_length": 4096,
        "length": 8192,
        "short_factors": np.ones(32),
        "long_factors": np.linspace(1, 8, 32),
    },
}
SCALED = {name: posenc.scaled_frequencies(64, name, **options) for name, options in METHODS.items()}

CALLS = {
    "alibi_maps": lambda: plotting.alibi_maps(8, 16, [0, 3, 7]),
    "t5_staircase": lambda: plotting.t5_staircase(150),
    "frequency_ratios": lambda: plotting.frequency_ratios(TRAINED, SCALED),
    "length_curves": lambda: plotting.length_curves(
        LENGTHS, {"RoPE": [1.0, 1.0, 0.9], "learned": [1.0, 1.0, 0.5]}, trained=32, chance=1 / 16
    ),
    "surviving_positions": lambda: plotting.surviving_positions(12),
    "score_term_maps": lambda: plotting.score_term_maps(TERMS),
    "broadcast_product": lambda: plotting.broadcast_product([[1], [2], [3]], [1.0, 0.5]),
    "encoding_columns": lambda: plotting.encoding_columns(16, [4, 5, 7], 50),
}
# Figures without axes: nothing in them is measured.
DIAGRAMS = {
    "box_diagram": lambda: plotting.box_diagram(
        {"one": (0, 0), "two": (1, 0), "three": (0.5, 1)},
        [("one", "two", "to"), ("two", "three", "")],
    ),
}


def test_every_figure_is_covered():
    public = {
        name
        for name, function in inspect.getmembers(plotting, inspect.isfunction)
        if function.__module__ == "posenc.plotting" and not name.startswith("_")
    }
    assert public == {*test_plotting.CALLS, *CALLS, *DIAGRAMS}


@pytest.mark.parametrize("name", CALLS)
def test_figure_has_labelled_axes_and_an_opaque_ground(name):
    figure = CALLS[name]()
    assert isinstance(figure, Figure)
    assert figure.get_facecolor() == (1.0, 1.0, 1.0, 1.0)
    assert all(not axes.get_title() for axes in figure.axes)
    assert any(axes.get_xlabel() for axes in figure.axes)
    assert any(axes.get_ylabel() for axes in figure.axes)


@pytest.mark.parametrize("name", [*CALLS, *DIAGRAMS])
def test_figure_is_the_same_each_time_whatever_the_callers_style(name):
    call = {**CALLS, **DIAGRAMS}[name]
    first = call()
    with pyplot.style.context(["dark_background", {"font.size": 30, "xtick.labelsize": 40}]):
        second = call()
        assert png(first) == png(second)
    assert pyplot.get_fignums() == []


def test_alibi_maps_show_the_bias_and_hide_what_the_mask_does():
    figure = CALLS["alibi_maps"]()
    biases = posenc.alibi_bias(8, range(16), range(16))
    maps = [axes.images[0] for axes in figure.axes[:3]]
    for image, head in zip(maps, (0, 3, 7), strict=True):
        shown = image.get_array()
        np.testing.assert_array_equal(shown.mask, np.triu(np.ones((16, 16)), 1))
        np.testing.assert_array_equal(shown.data, biases[head])
    assert len({(image.norm.vmin, image.norm.vmax) for image in maps}) == 1
    titles = [axes.texts[0].get_text() for axes in figure.axes[:3]]
    assert titles == ["head 0\nslope 1/2", "head 3\nslope 1/16", "head 7\nslope 1/256"]


def test_alibi_maps_write_a_slope_that_is_no_power_of_two_in_digits():
    figure = plotting.alibi_maps(12, 4, [8])
    assert figure.axes[0].texts[0].get_text() == "head 8\nslope 0.707"


@pytest.mark.parametrize("bidirectional", [True, False])
def test_t5_staircase_has_the_bucket_of_each_relative_position(bidirectional):
    options = {"bidirectional": bidirectional, "num_buckets": 16, "max_distance": 40}
    stairs = lines(plotting.t5_staircase(60, **options))[0]
    np.testing.assert_array_equal(stairs[:, 0], np.arange(-60, 61))
    np.testing.assert_array_equal(stairs[:, 1], posenc.t5_bucket(np.arange(-60, 61), **options))


def test_frequency_ratios_are_scaled_over_trained():
    figure = CALLS["frequency_ratios"]()
    drawn = figure.axes[0].lines
    assert [line.get_label() for line in drawn] == list(METHODS)
    for line, scaled in zip(drawn, SCALED.values(), strict=True):
        np.testing.assert_array_equal(line.get_xdata(), np.arange(32))
        np.testing.assert_allclose(line.get_ydata(), scaled / TRAINED)
    np.testing.assert_allclose(drawn[0].get_ydata(), 1 / 8)
    strokes = {(line.get_color(), line.get_linestyle()) for line in drawn}
    assert len(strokes) == len(METHODS)
    written = {label.get_text() for label in figure.axes[0].get_yticklabels()}
    assert {"1", "1/8"} <= written


def test_length_curves_mark_training_and_chance():
    axes = CALLS["length_curves"]().axes[0]
    rope, learned, trained, chance = axes.lines
    assert (rope.get_label(), learned.get_label()) == ("RoPE", "learned")
    np.testing.assert_array_equal(rope.get_xdata(), LENGTHS)
    assert rope.get_ydata().tolist() == [1.0, 1.0, 0.9]
    assert set(trained.get_xdata()) == {32}
    assert set(chance.get_ydata()) == {1 / 16}
    assert [label.get_text() for label in axes.get_xticklabels()] == ["16", "32", "64"]


def test_length_curves_draw_no_line_that_was_not_asked_for():
    axes = plotting.length_curves(LENGTHS, {"RoPE": [1, 1, 1]}).axes[0]
    assert len(axes.lines) == 1
    assert not axes.texts


def test_surviving_positions_halve_beyond_the_significant_bits():
    bfloat16, float16, float32 = (line[:, 1] for line in lines(CALLS["surviving_positions"]()))
    np.testing.assert_array_equal(bfloat16[:8], 1)
    assert bfloat16[8] == 129 / 256
    assert bfloat16[12] == 129 / 4096
    np.testing.assert_array_equal(float16[:11], 1)
    assert float16[11] == 1025 / 2048
    np.testing.assert_array_equal(float32, 1)
    one = plotting.surviving_positions(3, dtypes=["float64"])
    assert [line.get_label() for line in one.axes[0].lines] == ["float64"]


def test_score_term_maps_show_each_term_on_one_scale():
    figure = CALLS["score_term_maps"]()
    maps = [axes.images[0] for axes in figure.axes[:4]]
    for image, term in zip(maps, TERMS, strict=True):
        np.testing.assert_array_equal(image.get_array(), term)
    largest = max(np.abs(term).max() for term in TERMS)
    assert {(image.norm.vmin, image.norm.vmax) for image in maps} == {(-largest, largest)}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plotting.alibi_maps(0, 4, [0]), "n_heads must be at least 1"),
        (lambda: plotting.alibi_maps(8, 1, [0]), "length must be at least 2"),
        (lambda: plotting.alibi_maps(8, 4, [8]), r"heads must be a list from 0..7, got \[8\]"),
        (lambda: plotting.alibi_maps(8, 4, []), "heads must hold at least one"),
        (lambda: plotting.t5_staircase(0), "reach must be at least 1"),
        (lambda: plotting.t5_staircase(9, num_buckets=1), "num_buckets"),
        (lambda: plotting.frequency_ratios(TRAINED, {}), "number of methods"),
        (lambda: plotting.frequency_ratios([1, 0], {"a": [1, 1]}), "every frequency must be posi"),
        (lambda: plotting.frequency_ratios([1, 2], {"a": [1]}), "frequencies of 'a' must have sha"),
        (
            lambda: plotting.frequency_ratios([1, 2], {"a": [1, -1]}),
            "every frequency of 'a' must be positive",
        ),
        (lambda: plotting.length_curves([0, 1], {"a": [1, 1]}), "every length must be at least 1"),
        (lambda: plotting.length_curves([1, 2], {}), "number of models"),
        (lambda: plotting.length_curves([1, 2], {"a": [1]}), "accuracies of 'a' must have shape"),
        (lambda: plotting.length_curves([1], {"a": [1]}, trained=0), "trained must be at least 1"),
        (lambda: plotting.length_curves([1], {"a": [1]}, chance=-1), "chance must be at least 0"),
        (lambda: plotting.surviving_positions(25), "max_exponent must be at most 24"),
        (lambda: plotting.surviving_positions(0), "max_exponent must be at least 1"),
        (lambda: plotting.surviving_positions(4, dtypes=[]), "number of dtypes"),
        (lambda: plotting.surviving_positions(4, dtypes=["fp8"]), "dtype must be one of"),
        (lambda: plotting.score_term_maps(TERMS[:3]), "number of terms: expected 4, got 3"),
        (lambda: plotting.score_term_maps([np.ones((2, 3))] * 4), "each of terms must be square"),
        (lambda: plotting.score_term_maps([np.eye(2), *[np.eye(3)] * 3]), "each of terms must ha"),
        (lambda: plotting.broadcast_product([[1, 2]], [1]), r"column must have shape \(n, 1\)"),
        (lambda: plotting.broadcast_product([[1]] * 7, [1]), r"n from 1 to 6, got \(7, 1\)"),
        (lambda: plotting.broadcast_product([[1]], [1] * 7), r"m from 1 to 6, got \(7,\)"),
        (lambda: plotting.broadcast_product([[1]], [[1]]), "row must have one axis"),
        (lambda: plotting.box_diagram({}, []), "boxes must hold at least one box"),
        (lambda: plotting.box_diagram({"a": (0, 0)}, [("a", "b", "")]), "names the box 'b'"),
    ],
)
def test_what_can_not_be_drawn_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
    assert pyplot.get_fignums() == []


def test_broadcast_product_shows_the_factors_and_every_product():
    shown = [
        axes.images[0].get_array() for axes in CALLS["broadcast_product"]().axes if axes.images
    ]
    np.testing.assert_array_equal(shown[0], [[1.0, 0.5]])
    np.testing.assert_array_equal(shown[1], [[1], [2], [3]])
    np.testing.assert_array_equal(shown[2], [[1, 0.5], [2, 1], [3, 1.5]])


def test_box_diagram_draws_every_box_at_its_place_and_every_arrow():
    axes = DIAGRAMS["box_diagram"]().axes[0]
    places = {text.get_text(): text.get_position() for text in axes.texts}
    assert places == {"one": (0, 0), "two": (1, 0), "three": (0.5, 1), "to": (0.5, 0)}
    assert len(axes.patches) == 2
    assert not axes.axison


def test_encoding_columns_draw_the_columns_of_the_table_and_name_their_pairs():
    sine, cosine, other = CALLS["encoding_columns"]().axes[0].lines
    assert sine.get_label() == "column 4, sine of pair 2"
    assert other.get_label() == "column 7, cosine of pair 3"
    np.testing.assert_allclose(
        cosine.get_ydata(), posenc.sinusoidal_encoding(cosine.get_xdata(), 16)[:, 5]
    )


def test_encoding_columns_refuse_a_column_that_is_not_there():
    with pytest.raises(ValueError, match=r"columns must be a list from 0\.\.15"):
        plotting.encoding_columns(16, [16], 50)
