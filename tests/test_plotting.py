"""The figures show posenc's values, name their axes, and leave pyplot as they found it."""

import io
import os
import subprocess
import sys

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure

import posenc
from posenc import plotting

RNG = np.random.default_rng(20)
WEIGHTS = posenc.softmax(RNG.standard_normal((3, 3)))
TOKENS = ["cat", "chases", "mouse"]

CALLS = {
    "encoding_heatmap": lambda: plotting.encoding_heatmap(posenc.sinusoidal_table(20, 8)),
    "encoding_waves": lambda: plotting.encoding_waves(8, [0, 2], 20),
    "wavelength_spectrum": lambda: plotting.wavelength_spectrum([8, 16]),
    "attention_matrices": lambda: plotting.attention_matrices([WEIGHTS], TOKENS, ["weights"]),
    "position_kernel_curve": lambda: plotting.position_kernel_curve([8, 16], 30),
    "similarity_matrix": lambda: plotting.similarity_matrix(np.eye(5)),
    "matrix_blocks": lambda: plotting.matrix_blocks(posenc.shift_matrix(3, 8)),
    "turning_pairs": lambda: plotting.turning_pairs(2, 3, 8, [0, 1]),
    "table_gradient": lambda: plotting.table_gradient(np.ones((4, 2))),
    "rotated_pair": lambda: plotting.rotated_pair([1.0, 2.0, 3.0, 4.0], [0, 1, 2]),
    "layout_pairs": lambda: plotting.layout_pairs(8),
    "score_curves": lambda: plotting.score_curves([0, 1], {"RoPE": [1.0, 0.5]}),
    "float32_error": lambda: plotting.float32_error(8, [1, 10, 100]),
}


def lines(figure, panel=0):
    return [line.get_xydata() for line in figure.axes[panel].lines]


@pytest.mark.parametrize("name", CALLS)
def test_figure_has_labelled_axes_and_an_opaque_ground(name):
    figure = CALLS[name]()
    assert isinstance(figure, Figure)
    assert figure.get_facecolor() == (1.0, 1.0, 1.0, 1.0)
    assert all(not axes.get_title() for axes in figure.axes)
    assert any(axes.get_xlabel() for axes in figure.axes)
    assert any(axes.get_ylabel() for axes in figure.axes)


@pytest.mark.parametrize("name", CALLS)
def test_figure_is_the_same_each_time_whatever_the_callers_style(name):
    first = CALLS[name]()
    with pyplot.style.context(["dark_background", {"font.size": 30, "xtick.labelsize": 40}]):
        second = CALLS[name]()
        assert png(first) == png(second)
    assert pyplot.get_fignums() == []


def png(figure):
    file = io.BytesIO()
    figure.savefig(file, dpi=50)
    return file.getvalue()


def test_callers_settings_survive():
    before = dict(pyplot.rcParams)
    CALLS["layout_pairs"]()
    assert dict(pyplot.rcParams) == before


def test_encoding_heatmap_shows_the_table_at_its_positions():
    table = posenc.sinusoidal_table(20, 8, start=7)
    image = plotting.encoding_heatmap(table, first_position=7).axes[0].images[0]
    assert np.array_equal(image.get_array(), table)
    assert image.get_extent() == [-0.5, 7.5, 26.5, 6.5]
    assert image.norm.vmin == -image.norm.vmax


def test_encoding_waves_shows_the_sine_of_each_pair():
    figure = plotting.encoding_waves(8, [0, 2], 20, base=50.0)
    for panel, pair in enumerate((0, 2)):
        positions, sines = lines(figure, panel)[1].T
        expected = posenc.sinusoidal_encoding(np.arange(20), 8, base=50.0)[:, 2 * pair]
        np.testing.assert_array_equal(positions, np.arange(20))
        np.testing.assert_allclose(sines, expected)
        wavelength = posenc.wavelengths(8, base=50.0)[pair]
        assert f"{wavelength:.1f}" in figure.axes[panel].texts[0].get_text()


def test_wavelength_spectrum_stays_below_its_line():
    figure = plotting.wavelength_spectrum([8, 16], base=100.0)
    eight, sixteen, limit = lines(figure)
    np.testing.assert_allclose(eight[:, 1], posenc.wavelengths(8, base=100.0))
    np.testing.assert_allclose(sixteen[:, 1], posenc.wavelengths(16, base=100.0))
    np.testing.assert_allclose(limit[:, 1], 2 * np.pi * 100.0)


def test_attention_matrices_writes_each_weight_and_each_token():
    figure = plotting.attention_matrices(
        [WEIGHTS, WEIGHTS[::-1, ::-1]], [TOKENS, TOKENS[::-1]], ["first", "second"]
    )
    first, second = figure.axes
    np.testing.assert_array_equal(first.images[0].get_array(), WEIGHTS)
    written = [float(text.get_text()) for text in first.texts[:9]]
    np.testing.assert_allclose(written, WEIGHTS.ravel(), atol=0.005001)
    assert first.texts[9].get_text() == "first"
    assert [label.get_text() for label in second.get_xticklabels()] == TOKENS[::-1]
    assert [label.get_text() for label in second.get_yticklabels()] == TOKENS[::-1]


def test_attention_matrices_writes_no_number_where_there_is_no_room():
    figure = plotting.attention_matrices([np.eye(7)], list("abcdefg"), ["many"])
    assert [text.get_text() for text in figure.axes[0].texts] == ["many"]


def test_position_kernel_curve_is_the_kernel_over_its_peak():
    curve = lines(plotting.position_kernel_curve([16], 30, base=100.0))[0]
    np.testing.assert_array_equal(curve[:, 0], np.arange(31))
    np.testing.assert_allclose(
        curve[:, 1], posenc.position_kernel(np.arange(31), 16, base=100.0) / 8
    )


def test_similarity_matrix_shows_the_matrix_and_names_it():
    matrix = RNG.standard_normal((5, 5))
    figure = plotting.similarity_matrix(matrix, label="score")
    assert np.array_equal(figure.axes[0].images[0].get_array(), matrix)
    assert figure.axes[1].get_ylabel() == "score"


def test_matrix_blocks_outlines_every_pair():
    matrix = posenc.shift_matrix(3, 8)
    axes = plotting.matrix_blocks(matrix).axes[0]
    assert np.array_equal(axes.images[0].get_array(), matrix)
    assert [patch.get_xy() for patch in axes.patches] == [(i - 0.5, i - 0.5) for i in (0, 2, 4, 6)]
    written = [float(text.get_text()) for text in axes.texts]
    np.testing.assert_allclose(written, matrix.ravel(), atol=0.005001)


def test_turning_pairs_ends_at_both_encodings():
    figure = plotting.turning_pairs(2, 3.5, 8, [1], base=50.0)
    before, after, arc = lines(figure)
    for hand, position in ((before, 2), (after, 5.5)):
        sine, cosine = posenc.sinusoidal_encoding(position, 8, base=50.0)[2:4]
        np.testing.assert_allclose(hand[1], (cosine, sine))
    np.testing.assert_allclose(arc[0] / 0.4, before[1])
    np.testing.assert_allclose(arc[-1] / 0.4, after[1])


def test_table_gradient_draws_the_norm_of_each_row():
    gradient = posenc.lookup_gradient([0, 2, 2], np.ones((3, 4)), 5)
    bars = plotting.table_gradient(gradient).axes[0].patches
    np.testing.assert_allclose([bar.get_height() for bar in bars], [2.0, 0.0, 4.0, 0.0, 0.0])


def test_rotated_pair_ends_where_rope_turns_to():
    x, positions = RNG.standard_normal(8), [0, 1, 2.5]
    figure = plotting.rotated_pair(x, positions, base=50.0)
    expected = posenc.rope(np.tile(x, (3, 1)), positions, base=50.0)
    assert len(figure.axes) == 3
    for pair in range(3):
        tips = [line[1] for line in lines(figure, pair)]
        np.testing.assert_allclose(tips, expected[:, 2 * pair : 2 * pair + 2])


def test_layout_pairs_joins_what_rope_mixes():
    for panel, layout in enumerate(("interleaved", "half")):
        joined = [
            line[:, 0].astype(int).tolist() for line in lines(plotting.layout_pairs(8), panel)
        ]
        for first, second in joined:
            turned = posenc.rope(np.eye(8)[[first]], [1], layout=layout)[0]
            assert set(np.flatnonzero(turned)) == {first, second}


def test_score_curves_draws_each_curve_by_its_own_stroke():
    figure = plotting.score_curves([0, 1, 2], {"a": [3, 2, 1], "b": [1, 2, 3]}, ylabel="logit")
    first, second = figure.axes[0].lines
    assert first.get_ydata().tolist() == [3, 2, 1]
    assert first.get_linestyle() != second.get_linestyle()
    assert figure.axes[0].get_ylabel() == "logit"


def test_float32_error_grows_only_where_angles_are_float32():
    positions = np.arange(60_000, 60_200)
    single, double = lines(plotting.float32_error(64, positions))
    truth = posenc.sinusoidal_encoding(positions, 64)
    cast = posenc.sinusoidal_encoding(positions, 64, dtype=np.float32)
    np.testing.assert_allclose(double[:, 1], np.abs(cast - truth).max(axis=1))
    assert double[:, 1].max() < 1e-7
    assert single[:, 1].max() > 1e-4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plotting.encoding_heatmap([1.0, 2.0]), "table must have two axes"),
        (lambda: plotting.encoding_heatmap(np.empty((0, 4))), "at least one number"),
        (lambda: plotting.encoding_waves(7, [0], 9), "even"),
        (lambda: plotting.encoding_waves(8, [4], 9), r"pairs must be a list from 0..3, got \[4\]"),
        (lambda: plotting.encoding_waves(8, [0], 1), "length must be at least 2"),
        (lambda: plotting.wavelength_spectrum([8, 7]), "every d_model must be even"),
        (lambda: plotting.wavelength_spectrum([]), "d_models must hold at least one"),
        (lambda: plotting.wavelength_spectrum([8], base=0), "base must be positive"),
        (lambda: plotting.attention_matrices([], [], []), "number of matrices"),
        (lambda: plotting.attention_matrices([np.ones((2, 3))], ["a"], ["t"]), "be square"),
        (lambda: plotting.attention_matrices([np.eye(3)], ["a"], ["t"]), "number of tokens"),
        (lambda: plotting.attention_matrices([np.eye(1)], ["a"], []), "number of titles"),
        (lambda: plotting.attention_matrices([np.eye(1)], [["a"]] * 2, ["t"]), "lists of tokens"),
        (lambda: plotting.position_kernel_curve([8], 0), "max_offset must be at least 1"),
        (lambda: plotting.similarity_matrix(np.ones((2, 3))), "matrix must be square"),
        (lambda: plotting.matrix_blocks(np.eye(3)), "even"),
        (lambda: plotting.turning_pairs(np.nan, 1, 8, [0]), "position must be finite"),
        (lambda: plotting.turning_pairs(0, 1, 8, []), "pairs must hold at least one"),
        (lambda: plotting.table_gradient(np.ones(3)), "gradient must have two axes"),
        (lambda: plotting.rotated_pair([1.0, 2.0, 3.0], [0]), "even"),
        (lambda: plotting.rotated_pair([1.0, 2.0], []), "positions must hold at least one"),
        (lambda: plotting.layout_pairs(5), "even"),
        (lambda: plotting.score_curves([0, 1], {}), "number of curves"),
        (lambda: plotting.score_curves([0, 1], {"a": [1.0]}), "curve 'a' must have shape"),
        (lambda: plotting.float32_error(8, [0, 1]), "every position must be positive"),
    ],
)
def test_what_can_not_be_drawn_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
    assert pyplot.get_fignums() == []


def test_without_matplotlib_one_sentence_says_what_to_install():
    program = "import sys; sys.modules['matplotlib'] = None; import posenc.plotting"
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert result.returncode
    assert "pip install matplotlib" in result.stderr.splitlines()[-1]
