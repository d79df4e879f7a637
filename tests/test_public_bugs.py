"""Defects that other libraries had, each tested here for its whole family.

A docstring names public reports; the numbers are the right values, computed from the formulas.
"""

import math

import numpy as np
import pytest
import truth

import posenc

LAYOUTS = ["interleaved", "half"]
FLOATS = [np.float16, np.float32, np.float64]
ROUNDING = {np.float16: 2e-3, np.float32: 3e-7, np.float64: 1e-13}

layouts = pytest.mark.parametrize("layout", LAYOUTS)
floats = pytest.mark.parametrize("dtype", FLOATS)


def vectors(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def pairs(array, layout):
    """Return the two members of every pair."""
    if layout == "interleaved":
        return array[..., 0::2], array[..., 1::2]
    return np.split(array, 2, axis=-1)


# Frequencies


@layouts
@floats
@pytest.mark.parametrize("d_model", [4, 8, 64])
def test_sine_and_cosine_of_a_pair_turn_by_one_and_the_same_frequency(d_model, dtype, layout):
    """A loop over columns instead of pairs: SamLynnEvans/Transformer#25, YutaroOgawa/
    pytorch_advanced#79, jadore801120/attention-is-all-you-need-pytorch#32,
    Kyubyong/transformer#38, tensorflow/models#9075.
    """
    found = posenc.sinusoidal_encoding(1, d_model, layout=layout, dtype=dtype)
    sines, cosines = pairs(found.astype(float), layout)
    frequencies = 10_000.0 ** (-2 * np.arange(d_model // 2) / d_model)
    np.testing.assert_allclose(np.arctan2(sines, cosines), frequencies, atol=ROUNDING[dtype])


@pytest.mark.parametrize("base", [10, 10_000, 500_000.0])
@pytest.mark.parametrize("d_model", [4, 6, 64, 512])
def test_frequencies_fall_from_one_and_stay_above_the_inverse_base(d_model, base):
    """Exponent zero by integer division: Kyubyong/transformer#81. Sign of the exponent:
    hkproj/pytorch-transformer#2, labml#313. Base and exponent exchanged: ivanvovk/WaveGrad#12.
    """
    frequencies = posenc.inverse_frequencies(d_model, base=base)
    assert frequencies[0] == 1
    assert (np.diff(frequencies) < 0).all()
    assert frequencies[-1] > 1 / base
    ratios = frequencies[1:] / frequencies[:-1]
    np.testing.assert_allclose(ratios, base ** (-2 / d_model), rtol=1e-14)


@pytest.mark.parametrize("d_model", [64, 512, 4096])
def test_the_power_is_at_least_as_exact_as_the_exponential_of_a_logarithm(d_model):
    """The claim that exp-log is for numerical stability: OpenNMT/OpenNMT-py#896,
    pytorch/examples#555, zju3dv/LoFTR#17.
    """
    exact = truth.inverse_frequencies(d_model)
    logarithmic = np.exp(-math.log(10_000.0) * np.arange(0, d_model, 2) / d_model)
    ours = truth.largest_relative_error(posenc.inverse_frequencies(d_model), exact)
    assert ours <= 3e-16
    assert truth.largest_relative_error(logarithmic, exact) > 3 * ours


def with_base(base, layout):
    """Yield a result of every function that takes a base."""
    x, at = vectors(3, 8), [0, 1, 5]
    yield posenc.inverse_frequencies(8, base=base)
    yield posenc.wavelengths(8, base=base)
    yield posenc.sinusoidal_encoding(at, 8, base=base, layout=layout)
    yield posenc.sinusoidal_table(3, 8, base=base, layout=layout)
    yield posenc.shift_matrix(3, 8, base=base)
    yield posenc.shift_encoding(x, 3, base=base)
    yield posenc.position_kernel(at, 8, base=base)
    yield posenc.rope(x, at, base=base, layout=layout)
    yield posenc.rope_scores(x, x, at, at, base=base, layout=layout)
    yield posenc.rope_2d(x, at, at, base=base, layout=layout)
    yield posenc.timing_signal(at, 8, base=base, layout=layout)
    yield posenc.partial_frequencies(8, 4, base=base)
    yield posenc.scaled_frequencies(8, "ntk", base=base, factor=2)
    yield posenc.scaled_frequencies(8, "yarn", base=base, factor=2, original_length=64)


@layouts
@pytest.mark.parametrize("kind", [int, np.int32, np.uint32, np.int64, np.float32, np.float64])
def test_a_whole_base_of_any_type_gives_what_a_float_gives(kind, layout):
    """Powers of integers wrap or are refused: stackoverflow.com/q/43287311,
    vllm-project/vllm#18914, and theta * 1000 in uint32: 1bit-MONSTER#634.
    """
    for base in (10_000, 500_000, 4_194_304):
        for ours, expected in zip(
            with_base(kind(base), layout), with_base(float(base), layout), strict=True
        ):
            np.testing.assert_array_equal(ours, expected)


def test_tensor2tensors_spacing_has_its_own_name_and_two_dimensions_are_no_division_by_zero():
    """d / 2 - 1 in the exponent, which is 0 for two dimensions: hojonathanho/diffusion#15,
    lucidrains/denoising-diffusion-pytorch#126, M2M-100 of transformers.
    """
    at = np.arange(5)
    np.testing.assert_allclose(
        posenc.timing_signal(at, 2), np.stack([np.sin(at), np.cos(at)], axis=-1), atol=1e-16
    )
    sines, cosines = np.split(posenc.timing_signal(1, 8), 2)
    frequencies = [1, 0.046416, 0.002154, 0.0001]
    np.testing.assert_allclose(np.arctan2(sines, cosines), frequencies, atol=5e-7)
    paper = posenc.sinusoidal_encoding(1, 8, layout="half")
    np.testing.assert_allclose(np.arcsin(paper[1:4]), [0.1, 0.01, 0.001], rtol=1e-12)


def test_a_shortest_timescale_of_two_is_positions_over_two_and_a_base_that_is_the_ratio():
    """get_timing_signal_1d multiplies by min_timescale where it should divide: tensor2tensor."""
    sines, cosines = np.split(posenc.timing_signal(1 / 2, 8, base=10_000 / 2), 2)
    frequencies = [0.5, 0.02924, 0.00171, 0.0001]
    np.testing.assert_allclose(np.arctan2(sines, cosines), frequencies, atol=5e-6)


FLAXFORMER_ROWS = [
    [0, 0, 1, 1],
    [0.84147096, 1e-4, 0.54030228, 1],
    [0.90929741, 2e-4, -0.41614684, 1],
    [0.14112000, 3e-4, -0.98999250, 0.99999994],
    [-0.75680250, 4e-4, -0.65364361, 0.99999994],
    [-0.95892429, 5e-4, 0.28366220, 0.99999988],
    [-0.27941549, 6e-4, 0.96017027, 0.99999982],
]
PUBLISHED_TIMING = {
    "transformers test_modeling_fsmt, d=6": (
        lambda: posenc.timing_signal([2, 3], 6),
        [
            [0.90930, 0.019999, 0.0002, -0.41615, 0.99980, 1],
            [0.14112, 0.029995, 0.0003, -0.98999, 0.99955, 1],
        ],
        5e-6,
    ),
    "transformers test_modeling_fsmt, d=512": (
        lambda: posenc.timing_signal([1, 2], 512)[:, :5],
        [
            [0.84147096, 0.82177866, 0.80180490, 0.78165019, 0.76140374],
            [0.90929741, 0.93651021, 0.95829457, 0.97505713, 0.98720258],
        ],
        1e-6,
    ),
    # Their fifth column, a zero that pads the odd size, is left out.
    "flaxformer embedding_test, d=5": (
        lambda: posenc.timing_signal(range(7), 4),
        FLAXFORMER_ROWS,
        2e-7,
    ),
    "tensor2tensor testAddTimingSignalsGivenPositions, two axes": (
        lambda: np.hstack(
            [posenc.timing_signal([0, 1, 2, 3], 4), posenc.timing_signal([4, 5, 6, 7], 4)]
        ),
        [
            [f(at * w) for at in (p, q) for f in (math.sin, math.cos) for w in (1, 1e-4)]
            for p, q in ((0, 4), (1, 5), (2, 6), (3, 7))
        ],
        1e-15,
    ),
}


@pytest.mark.parametrize("name", PUBLISHED_TIMING)
def test_published_values_of_tensor2tensors_spacing(name):
    """A test of transformers is skipped there as "different from marian", which has the paper's
    spacing: 3.2e-4 apart.
    """
    call, expected, tolerance = PUBLISHED_TIMING[name]
    np.testing.assert_allclose(call(), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("d_model", [2, 4, 6, 64])
@floats
def test_both_sinusoidal_encodings_differ_between_layouts_by_the_order_alone(d_model, dtype):
    """Concatenated against interleaved: tensorflow/tensor2tensor#391, #1423 and #1925,
    allenai/allennlp#2993, huggingface/diffusers#3981.
    """
    at = [0, 1, -3, 0.5, 1e6]
    for encode in (posenc.sinusoidal_encoding, posenc.timing_signal):
        interleaved = encode(at, d_model, layout="interleaved", dtype=dtype)
        half = encode(at, d_model, layout="half", dtype=dtype)
        both = np.concatenate([interleaved[:, 0::2], interleaved[:, 1::2]], axis=-1)
        np.testing.assert_array_equal(half, both)
        assert half.dtype == dtype


# Odd sizes, shapes and axes


@pytest.mark.parametrize("d_model", [1, 5, 29])
def test_odd_sizes_are_refused_with_the_reason_by_every_function(d_model):
    """Rows that crash, are cut or padded: codertimo/BERT-pytorch#78, gc-os-ai/pyaptamer#526,
    Informer2020#224, tatp22/multidim-positional-encoding#3 and #42.
    """
    x = np.zeros((2, d_model))
    for call in (
        lambda: posenc.inverse_frequencies(d_model),
        lambda: posenc.wavelengths(d_model),
        lambda: posenc.sinusoidal_encoding(0, d_model),
        lambda: posenc.sinusoidal_table(2, d_model),
        lambda: posenc.shift_matrix(1, d_model),
        lambda: posenc.shift_encoding(x, 1),
        lambda: posenc.position_kernel(1, d_model),
        lambda: posenc.rope(x, [0, 1]),
        lambda: posenc.rope(x, [0, 1], layout="half"),
        lambda: posenc.rope_scores(x, x, [0, 1], [0, 1]),
        lambda: posenc.rope_2d(x, [0, 1], [0, 1]),
        lambda: posenc.timing_signal(0, d_model),
        lambda: posenc.partial_frequencies(d_model, 2),
        lambda: posenc.scaled_frequencies(d_model, "linear", factor=2),
    ):
        with pytest.raises(ValueError, match=r"must be even, because dimensions come in .* pairs"):
            call()


@pytest.mark.parametrize("size", [2, 3, 4])
@layouts
def test_positions_run_along_the_sequence_even_where_all_axes_are_equally_long(size, layout):
    """The sliced axis is another one: huggingface/transformers#25813, DiffPoseTalk#20,
    lucidrains/rotary-embedding-torch#12, EleutherAI/gpt-neox#271. One row for all of a batch:
    tatp22/multidim-positional-encoding#2.
    """
    d = 2 * size
    x = vectors(size, size, size, d)
    table = posenc.sinusoidal_table(size, d, layout=layout)
    added = posenc.add_positions(x, table)
    turned = posenc.rope(x, range(size), layout=layout)
    assert added.shape == turned.shape == x.shape
    for first, second, at in np.ndindex(x.shape[:-1]):
        row = x[first, second, at]
        np.testing.assert_array_equal(added[first, second, at], row + table[at])
        alone = posenc.rope([row], [at], layout=layout)[0]
        np.testing.assert_allclose(turned[first, second, at], alone, atol=1e-15)


def test_a_width_that_differs_from_the_table_is_refused_and_never_cut():
    """A table of 8 columns for 10 channels: tatp22/multidim-positional-encoding#42."""
    for width in (1, 4, 5, 10):
        with pytest.raises(ValueError, match="last axis of table must be d_model"):
            posenc.add_positions(np.zeros((3, width)), posenc.sinusoidal_table(3, 8))


# Layouts


def test_the_default_layout_is_the_papers():
    """A default that changed between versions: tatp22/multidim-positional-encoding#20 to #22.
    Concatenation taken for a bug: tensorflow/tensor2tensor#391, allenai/allennlp#2993.
    """
    at = np.arange(5)
    x = vectors(5, 8)
    for ours, expected in (
        (posenc.sinusoidal_encoding(at, 8), posenc.sinusoidal_encoding(at, 8, layout=LAYOUTS[0])),
        (posenc.sinusoidal_table(5, 8), posenc.sinusoidal_table(5, 8, layout=LAYOUTS[0])),
        (posenc.rope(x, at), posenc.rope(x, at, layout=LAYOUTS[0])),
    ):
        np.testing.assert_array_equal(ours, expected)
    np.testing.assert_allclose(
        posenc.sinusoidal_encoding(1, 4)[:2], [0.841471, 0.540302], atol=1e-6
    )


@pytest.mark.parametrize("d", [4, 6, 8, 64])
@floats
def test_one_layout_is_the_other_on_reordered_dimensions(d, dtype):
    """Half against interleaved on converted weights: huggingface/transformers#25199,
    EleutherAI/gpt-neox#834, Dao-AILab/flash-attention#288, NVIDIA/Megatron-LM#1547,
    keras-team/keras-hub#1416, facebookresearch/xformers#779, rasbt/LLMs-from-scratch#838.
    """
    x, at = vectors(7, d, dtype=dtype), np.arange(7)
    order = [*range(0, d, 2), *range(1, d, 2)]
    interleaved = posenc.rope(x, at)
    half = posenc.rope(x[:, order], at, layout="half")
    np.testing.assert_allclose(half, interleaved[:, order], atol=ROUNDING[dtype])
    assert np.abs(posenc.rope(x, at, layout="half") - interleaved).max() > 0.1


@pytest.mark.parametrize("n_heads", [1, 2, 4])
@pytest.mark.parametrize("to", LAYOUTS)
def test_converted_projections_give_the_same_scores_in_the_other_layout(to, n_heads):
    """Converted checkpoints: huggingface/transformers#25199, pyllama#83, EleutherAI/gpt-neox#834,
    InternLM/lmdeploy#2639.
    """
    (source,) = set(LAYOUTS) - {to}
    d, at = 8, np.arange(5)
    x = vectors(5, 12)
    projections = [vectors(n_heads * d, 12, seed=seed) for seed in (1, 2)]
    biases = [vectors(n_heads * d, seed=seed) for seed in (3, 4)]

    def scores(layout, convert):
        queries, keys = (
            posenc.rope(
                (x @ convert(w).T + convert(b)).reshape(5, n_heads, d).swapaxes(0, 1),
                at,
                layout=layout,
            )
            for w, b in zip(projections, biases, strict=True)
        )
        return queries @ keys.swapaxes(1, 2)

    expected = scores(source, lambda weight: weight)
    found = scores(to, lambda weight: posenc.convert_layout(weight, n_heads, to=to))
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert np.abs(scores(to, lambda weight: weight) - expected).max() > 0.1
    for weight in (*projections, *biases):
        there = posenc.convert_layout(weight, n_heads, to=to)
        np.testing.assert_array_equal(posenc.convert_layout(there, n_heads, to=source), weight)


@layouts
@floats
def test_dimensions_beyond_the_rotated_ones_pass_unchanged(dtype, layout):
    """Tables not cut to the rotated width: labml#215 and #227."""
    x, at = vectors(2, 6, 16, dtype=dtype), np.arange(6) + 1000
    for width in (2, 4, 14):
        found = posenc.rope(x, at, layout=layout, rotary_dim=width)
        np.testing.assert_array_equal(found[..., width:], x[..., width:])
        alone = posenc.rope(x[..., :width], at, layout=layout)
        np.testing.assert_allclose(found[..., :width], alone, atol=ROUNDING[dtype])
        assert np.abs(found[..., :width] - x[..., :width]).max() > 0.1
    whole = posenc.rope(x, at, layout=layout, rotary_dim=16)
    np.testing.assert_array_equal(whole, posenc.rope(x, at, layout=layout))


def test_both_denominators_of_partial_rotation_have_a_name():
    """Whether the exponent is divided by the rotated width or by the whole head."""
    plain = posenc.inverse_frequencies(64)
    np.testing.assert_array_equal(posenc.partial_frequencies(64, 16, denominator="d"), plain[:8])
    own = posenc.partial_frequencies(64, 16)
    np.testing.assert_array_equal(own, posenc.inverse_frequencies(16))
    x, at = vectors(3, 64), [0, 5, 9]
    padded = np.concatenate([plain[:8], np.zeros(24)])
    proportional = posenc.rope(x, at, frequencies=padded)
    found = posenc.rope(x, at, rotary_dim=16, frequencies=plain[:8])
    np.testing.assert_allclose(found, proportional, atol=1e-15)


@layouts
def test_values_are_turned_once_even_in_place(layout):
    """A value rotated twice: labml#251. A sine written over what is read again:
    huggingface/transformers#11724.
    """
    x, at = vectors(2, 700, 8), np.arange(700)
    expected = posenc.rope(x, at, layout=layout)
    twice = posenc.rope(expected, at, layout=layout)
    np.testing.assert_allclose(twice, posenc.rope(x, 2 * at, layout=layout), atol=1e-12)
    assert np.abs(twice - expected).max() > 0.1
    inside = x.copy()
    assert posenc.rope(inside, at, layout=layout, out=inside) is inside
    np.testing.assert_array_equal(inside, expected)
    with pytest.raises(ValueError, match="share no memory"):
        posenc.rope(inside[:, :-1], at[:-1], layout=layout, out=inside[:, 1:])


# Images


@layouts
def test_rows_turn_the_first_half_and_columns_the_last(layout):
    """Row and column exchanged, on pictures that are not square: facebookresearch/mae#18, #67 and
    #218, huggingface/diffusers#10877, huggingface/transformers#41380.
    """
    height, width, d = 3, 4, 8
    rows, columns = np.divmod(np.arange(height * width), width)
    x = vectors(height * width, d)
    found = posenc.rope_2d(x, rows, columns, layout=layout).reshape(height, width, d)
    for row, column in np.ndindex(height, width):
        patch = x.reshape(height, width, d)[row, column]
        first = posenc.rope([patch[:4]], [row], layout=layout)[0]
        last = posenc.rope([patch[4:]], [column], layout=layout)[0]
        np.testing.assert_allclose(found[row, column], [*first, *last], atol=1e-15)


@layouts
def test_scores_of_patches_depend_on_both_differences_alone(layout):
    """What a two-dimensional rotation is for; a picture moved by (5, -2) keeps its scores."""
    rows, columns = np.divmod(np.arange(12), 4)
    x = vectors(12, 16)

    def scores(down, right):
        turned = posenc.rope_2d(x, rows + down, columns + right, layout=layout)
        return turned @ turned.T

    np.testing.assert_allclose(scores(5, -2), scores(0, 0), atol=1e-13)
    for other in (rows, columns):
        turned = posenc.rope_2d(x, other, other, layout=layout)
        assert np.abs(turned @ turned.T - scores(0, 0)).max() > 0.1


# Decoding


@layouts
@floats
@pytest.mark.parametrize("windows", [[1] * 9, [4, 1, 1, 1, 1, 1], [4, 3, 2], [9]])
def test_decoding_in_any_windows_equals_the_whole_sequence(windows, dtype, layout):
    """Generated tokens at position 0, at the same start, or one too far: Blaizzy/mlx-vlm#1983,
    pytorch/executorch#2010, omlx#2363, fla#766,
    microsoft/onnxruntime-genai#2354.
    """
    x = vectors(2, 9, 8, dtype=dtype)
    table = posenc.sinusoidal_table(9, 8, layout=layout)
    turned, added, start = [], [], 0
    for window in windows:
        step = x[:, start : start + window]
        turned.append(posenc.rope(step, np.arange(start, start + window), layout=layout))
        added.append(posenc.add_positions(step, table, start=start))
        start += window
    whole = posenc.rope(x, range(9), layout=layout)
    np.testing.assert_allclose(np.concatenate(turned, axis=1), whole, atol=ROUNDING[dtype])
    np.testing.assert_array_equal(np.concatenate(added, axis=1), posenc.add_positions(x, table))


@layouts
@floats
@pytest.mark.parametrize("start", [0, 7, -3, 10**6])
@pytest.mark.parametrize("windows", [[1] * 9, [4, 1, 1, 1, 1, 1], [4, 3, 2], [9], [0, 5, 0, 4]])
def test_a_key_cache_continues_where_it_ended(windows, start, dtype, layout):
    """The same windows through the cache that grows: besides those above,
    huggingface/transformers#45835, TransformerLens#1457, moeut#6, tiny-llm#46.
    """
    queries, keys = vectors(2, 2, 3, 9, 8, dtype=dtype)
    cache = posenc.KeyCache(start, layout=layout)
    turned, at = [], 0
    expected = posenc.rope(keys, start + np.arange(9), layout=layout)
    for window in windows:
        step = (..., slice(at, at + window), slice(None))
        query, kept = cache.extend(queries[step], keys[step])
        turned.append(query)
        at += window
        assert cache.position == start + at
        tolerance = ROUNDING[dtype] + 4e-16 * abs(start)
        np.testing.assert_allclose(kept, expected[..., :at, :], atol=tolerance)
        assert kept.dtype == dtype
    whole = posenc.rope(queries, start + np.arange(9), layout=layout)
    np.testing.assert_allclose(np.concatenate(turned, axis=-2), whole, atol=tolerance)


@layouts
@pytest.mark.parametrize("length", [2048, 2049, 5000, 5001, 8193, 70_000])
def test_tables_have_every_length_and_do_not_depend_on_it(length, layout):
    """Tables that do not grow, or are recomputed shorter: OpenNMT/OpenNMT-py#2561,
    huggingface/transformers#31228 and #45835, facebookresearch/xformers#728.
    """
    table = posenc.sinusoidal_table(length, 4, layout=layout)
    assert table.shape == (length, 4)
    last = posenc.sinusoidal_encoding(length - 1, 4, layout=layout)
    np.testing.assert_allclose(table[-1], last, atol=2.5e-16 * length + 1e-15)
    short = posenc.sinusoidal_table(100, 4, layout=layout)
    np.testing.assert_allclose(short, table[:100], atol=1e-14)


def every_array_argument():
    """Yield calls with all the arrays that they are given."""
    x, weights = vectors(2, 5, 8), vectors(8, 8, seed=1)
    at, table = np.arange(5), vectors(9, 8, seed=2)
    yield lambda: posenc.softmax(x), (x,)
    yield lambda: posenc.self_attention(x, weights, weights, weights)[0], (x, weights)
    yield lambda: posenc.sinusoidal_encoding(at, 8), (at,)
    yield lambda: posenc.add_positions(x, table), (x, table)
    yield lambda: posenc.shift_encoding(x, 3), (x,)
    yield lambda: posenc.position_kernel(at, 8), (at,)
    yield lambda: posenc.lookup(table, at), (table, at)
    yield lambda: posenc.lookup_gradient(at, x, 9), (at, x)
    for layout in LAYOUTS:
        yield lambda layout=layout: posenc.rope(x, at, layout=layout), (x, at)
        yield lambda layout=layout: posenc.rope_2d(x, at, at, layout=layout), (x, at)
        yield lambda layout=layout: posenc.rope(x, at, layout=layout, rotary_dim=4), (x, at)
        yield lambda layout=layout: posenc.convert_layout(weights, 2, to=layout), (weights,)
    yield lambda: posenc.rope_scores(x, x, at, at), (x, at)
    yield lambda: posenc.timing_signal(at, 8), (at,)
    yield lambda: posenc.relative_positions(at, at), (at,)
    yield lambda: posenc.alibi_bias(3, at, at), (at,)
    yield lambda: posenc.t5_bucket(at), (at,)


def test_no_function_changes_or_returns_what_it_is_given():
    """`inp += pos_emb`, `positions += 1`, an offset that moves, a sine over its own argument:
    NVIDIA-NeMo/Speech#7440, sglang#26799, ml-explore/mlx-lm#1699,
    huggingface/transformers#11724.
    """
    for call, given in every_array_argument():
        before = [array.copy() for array in given]
        first = call()
        assert not any(np.shares_memory(first, array) for array in given)
        kept = first.copy()
        first[...] = 0
        np.testing.assert_array_equal(call(), kept)
        for array, copy in zip(given, before, strict=True):
            np.testing.assert_array_equal(array, copy)


@layouts
def test_kept_keys_keep_their_own_positions_after_others_are_evicted(layout):
    """The number of kept rows taken for the position: VeloxQuant-MLX#389 and #138."""
    x, kept = vectors(8, 8), np.array([0, 1, 5, 6, 7])
    whole = posenc.rope(x, range(8), layout=layout)
    np.testing.assert_allclose(posenc.rope(x[kept], kept, layout=layout), whole[kept], atol=1e-15)
    counted = posenc.rope(x[kept], range(5), layout=layout)
    assert np.abs(counted - whole[kept]).max() > 0.1
    cache = posenc.KeyCache(layout=layout)
    cache.extend(x[:5], x[:5])
    cache.drop(3)
    _, keys = cache.extend(x[5:], x[5:])
    np.testing.assert_allclose(keys, whole[3:], atol=1e-15)
    assert cache.position == 8


# Positions


@pytest.mark.parametrize("start", [0, 5])
def test_rows_past_the_table_raise_and_are_never_clamped(start):
    """Rows beyond the table are read or clamped: microsoft/onnxruntime#28205,
    vllm-project/vllm#56446, torchtune's position -1 that is the last row.
    """
    table = vectors(8, 4)
    with pytest.raises(IndexError, match=r"rows 0\.\.7"):
        posenc.add_positions(np.zeros((9 - start, 4)), table, start=start)
    for position in (-1, 8, 2**31):
        with pytest.raises(IndexError, match=rf"rows 0\.\.7, got position {position}"):
            posenc.lookup(table, [position])


def test_positions_of_padded_tokens_are_whatever_the_caller_says():
    """Numbers that start after the padding index: facebookresearch/fairseq#1187,
    huggingface/transformers#1363, #5285 and #10736.
    """
    at = [2, 3, 4, 1, 1]
    table = posenc.sinusoidal_table(514, 8)
    np.testing.assert_array_equal(posenc.lookup(table, at), table[at])
    np.testing.assert_allclose(posenc.sinusoidal_encoding(at, 8), table[at], atol=1e-14)


@layouts
def test_left_padding_moves_rotary_scores_not_at_all_and_added_encodings_it_does(layout):
    """Left padding: huggingface/transformers#22161 and #29419, PaddlePaddle/PaddleNLP#6495,
    openpi#705.
    """
    x = vectors(4, 8)
    scores, moved = (
        posenc.rope(x, at, layout=layout) @ posenc.rope(x, at, layout=layout).T
        for at in (np.arange(4), np.arange(4) + 3)
    )
    np.testing.assert_allclose(moved, scores, atol=1e-14)
    added, shifted = (posenc.sinusoidal_table(4, 8, start=start, layout=layout) for start in (0, 3))
    assert np.abs(added - shifted).max() > 1


@layouts
def test_packed_sequences_restart_in_every_encoding(layout):
    """Position numbers of packed sequences ignored: NVIDIA/Megatron-LM#453,
    axolotl#877.
    """
    at = np.array([0, 1, 2, 0, 1])
    x = vectors(5, 8)
    encoding = posenc.sinusoidal_encoding(at, 8, layout=layout)
    np.testing.assert_array_equal(encoding[3:], encoding[:2])
    turned = posenc.rope(x, at, layout=layout)
    np.testing.assert_array_equal(turned[3:], posenc.rope(x[3:], [0, 1], layout=layout))
    table = vectors(3, 8)
    np.testing.assert_array_equal(posenc.lookup(table, at)[3:], table[:2])


SMALL = [np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.uint64]


def of_positions(kind):
    """Yield a result of every function that takes positions or offsets, of one type."""
    at, x = np.array([0, 1, 100, 127]).astype(kind), vectors(4, 8)
    yield posenc.sinusoidal_encoding(at, 64)
    yield posenc.timing_signal(at, 64)
    yield posenc.position_kernel(at, 64)
    for layout in LAYOUTS:
        yield posenc.rope(x, at, layout=layout)
        yield posenc.rope_2d(x, at, at[::-1], layout=layout)
    yield posenc.rope_scores(x, x, at, at[::-1])
    yield posenc.shift_matrix(at[2], 8)
    yield posenc.shift_encoding(x, at[3])
    yield np.array(posenc.relative_errors(posenc.rope, x[0], x[1], at, at))
    yield posenc.relative_positions(at, at)
    yield posenc.alibi_bias(3, at, at)


@pytest.mark.parametrize("kind", SMALL)
def test_small_and_unsigned_integers_do_not_wrap_anywhere(kind):
    """0 - 1 = 255 in uint8, 128 = -128 in int8: position arithmetic in the caller's type."""
    for ours, expected in zip(of_positions(kind), of_positions(np.float64), strict=True):
        np.testing.assert_array_equal(ours, expected)


# Precision


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("position", [257, 2049, 2**24 + 1])
@layouts
def test_no_position_is_lost_whatever_the_dtype_of_the_input(position, dtype, layout):
    """Positions or frequencies in the input's type: sglang-jax#1472,
    huggingface/transformers#29496 and #29285, keras-team/keras-hub#1497,
    rotary-embedding-torch 0.9.1, positional-encodings 6.0.3.
    """
    ones = np.ones((1, 64), dtype)
    turned = posenc.rope(ones, [position], layout=layout)
    expected = posenc.rope(np.ones((1, 64)), [position], layout=layout)
    np.testing.assert_allclose(turned, expected, atol=ROUNDING[dtype])
    encoded = posenc.sinusoidal_encoding(position, 64, layout=layout, dtype=dtype)
    expected = posenc.sinusoidal_encoding(position, 64, layout=layout)
    np.testing.assert_array_equal(encoded, expected.astype(dtype))
    neighbour = posenc.sinusoidal_encoding(position - 1, 64, layout=layout, dtype=dtype)
    assert np.abs(encoded - neighbour).max() > 0.3


@pytest.mark.parametrize(("length", "phase"), [(256, 0.31), (512, 0.63), (2048, 2.5), (4096, 5.0)])
def test_phase_that_bfloat16_frequencies_lose(length, phase):
    """bfloat16 inverse frequencies: sglang-jax#1472, modded-nanogpt#39,
    Modalities#462.
    """
    frequencies = posenc.inverse_frequencies(128)
    lost = np.abs(posenc.round_to_bfloat16(frequencies) - frequencies).max() * length
    assert lost == pytest.approx(phase, rel=0.02)


@pytest.mark.parametrize("low", [256, 512, 1024])
def test_positions_in_bfloat16_are_lost_from_257_on(low):
    """Positions in bfloat16: rotary-embedding-torch 0.9.1 turns 257 like 256."""
    assert posenc.round_to_bfloat16([low + 1]) == low
    assert posenc.distinct_positions(0, 257, "bfloat16") == 257
    assert posenc.distinct_positions(low, 2 * low, "bfloat16") == 129
    assert posenc.distinct_positions(0, 2049, "float16") == 2049
    assert posenc.distinct_positions(0, 2050, "float16") == 2049


@pytest.mark.parametrize("kind", [np.int64, np.int8, np.uint8])
def test_integer_input_is_never_the_type_of_the_result(kind):
    """A table in the type of integer input, all zeros: positional-encodings 6.0.3."""
    x = np.ones((4, 6), kind)
    for found in (
        posenc.add_positions(x, posenc.sinusoidal_table(4, 6)),
        posenc.add_positions(posenc.sinusoidal_table(4, 6), x),
        posenc.rope(x, range(4)),
        posenc.rope(x, range(4), layout="half"),
        posenc.rope_scores(x, x, range(4), range(4)),
        posenc.shift_encoding(x, 1),
        posenc.lookup(x, [0, 1]),
        posenc.lookup_gradient([0, 1, 2, 3], x, 4),
        posenc.softmax(x),
        posenc.self_attention(x, np.eye(6, dtype=kind), *[np.eye(6, dtype=kind)] * 2)[0],
    ):
        assert found.dtype == np.float64
    for call in (posenc.sinusoidal_encoding, posenc.sinusoidal_table):
        with pytest.raises(TypeError, match="dtype must be a real floating type"):
            call(4, 6, dtype=kind)


@floats
def test_no_float64_inside_widens_the_result(dtype):
    """float32 embeddings and a float64 table make float64: NumPy's rule, and twice the memory."""
    x = vectors(4, 6, dtype=dtype)
    for found in (
        posenc.add_positions(x, posenc.sinusoidal_table(4, 6)),
        posenc.rope(x, np.arange(4.0)),
        posenc.rope(x, np.arange(4.0), layout="half"),
        posenc.rope_scores(x, x, np.arange(4.0), np.arange(4.0)),
        posenc.shift_encoding(x, 2.5),
        posenc.lookup(x, [0, 1]),
        posenc.lookup_gradient([0, 1, 2, 3], x, 4),
        posenc.softmax(x),
    ):
        assert found.dtype == dtype


# The sum with embeddings


@pytest.mark.parametrize(("d_model", "norm"), [(8, 2.0), (128, 8.0), (512, 16.0)])
def test_positions_are_added_once_and_neither_is_scaled(d_model, norm):
    """Where sqrt(d_model) belongs: SamLynnEvans/Transformer#10, pytorch/tutorials#2849,
    OpenNMT/OpenNMT-py#1722, espnet/espnet#2797. Added twice: smiles-transformer#22.
    """
    table = posenc.sinusoidal_table(3, d_model)
    np.testing.assert_array_equal(posenc.add_positions(np.zeros((3, d_model)), table), table)
    np.testing.assert_allclose(np.linalg.norm(table, axis=-1), norm, rtol=1e-14)
    x = vectors(3, d_model)
    np.testing.assert_array_equal(posenc.add_positions(x, table), x + table)


# Biases


@pytest.mark.parametrize("n_heads", [1, 2, 4, 8, 16, 32, 3, 5, 6, 7, 12, 14, 20, 33, 40])
def test_slopes_of_any_number_of_heads_are_those_of_the_authors(n_heads):
    """Heads counted from 0, whose first slope is 1: aprender#2143. Other numbers of heads:
    ofirpress/attention_with_linear_biases#17.
    """

    def power_of_two(n):
        first = truth.exact.mpf(2) ** (-(truth.exact.mpf(8) / n))
        return [first ** (h + 1) for h in range(n)]

    below = 2 ** int(math.log2(n_heads))
    expected = power_of_two(below) + power_of_two(2 * below)[::2][: n_heads - below]
    found = posenc.alibi_slopes(n_heads)
    assert found.shape == (n_heads,)
    assert truth.largest_relative_error(found, expected) <= 1e-15
    assert 0 < found.min() <= found.max() < 1


KERAS_SLOPES = [0.70710677, 0.35355338, 0.17677669, 0.08838835, 0.04419417, 0.02209709]


@pytest.mark.parametrize(
    ("n_heads", "max_exponent", "first_column"),
    [
        (14, 8, [-(2.0**-h) * 2 for h in range(1, 9)] + [-2 * s for s in KERAS_SLOPES]),
        (2, 12, [-0.03125, -0.00048828]),
        (3, 6, [-0.25, -0.03125, -0.70710677]),
    ],
)
def test_keras_hubs_published_biases(n_heads, max_exponent, first_column):
    """Values of keras-hub's alibi_bias_test for three keys, seen from the last."""
    found = posenc.alibi_bias(n_heads, [2], range(3), max_exponent=max_exponent)
    assert found.shape == (n_heads, 1, 3)
    np.testing.assert_allclose(found[:, 0, 0], first_column, rtol=2e-5)
    np.testing.assert_allclose(found[:, 0, 1], found[:, 0, 0] / 2, rtol=1e-15)
    assert (found[:, 0, 2] == 0).all()


@pytest.mark.parametrize("n_heads", [1, 3, 8])
@pytest.mark.parametrize("cached", [0, 1, 4, 100])
def test_bias_of_a_decode_step_is_the_last_row_of_the_whole(cached, n_heads):
    """A bias of zeros at a decode step, an offset that is one too far, or none at inference:
    keras-team/keras-hub#2861 and #2977, vllm-project/vllm#945,
    ofirpress/attention_with_linear_biases#20, lucidrains/x-transformers#85, #88 and #153.
    """
    keys = np.arange(cached + 1)
    step = posenc.alibi_bias(n_heads, [cached], keys)
    expected = posenc.alibi_slopes(n_heads)[:, np.newaxis] * np.arange(-cached, 1)
    np.testing.assert_allclose(step[:, 0], expected, rtol=1e-15, atol=0)
    whole = posenc.alibi_bias(n_heads, keys, keys)
    np.testing.assert_array_equal(step[:, 0], whole[:, -1])


def test_relative_position_is_key_minus_query_and_the_bias_ignores_its_sign():
    """The opposite sign: attention-gym#86."""
    relative = posenc.relative_positions(range(3), range(4))
    assert relative.tolist() == [[0, 1, 2, 3], [-1, 0, 1, 2], [-2, -1, 0, 1]]
    bias = posenc.alibi_bias(2, range(3), range(4))
    assert (bias <= 0).all()
    np.testing.assert_array_equal(bias, -np.abs(relative) * posenc.alibi_slopes(2)[:, None, None])


@pytest.mark.parametrize("n_heads", [3, 8])
def test_the_row_form_equals_the_distance_under_a_causal_mask_and_only_there(n_heads):
    """A bias that grows with the key and is the same for all queries, as in Bloom and MPT:
    mosaicml/llm-foundry#186, NVIDIA/NeMo#7105, Baichuan-13B#172, EleutherAI/gpt-neox#450.
    """
    scores, at = vectors(n_heads, 6, 6), np.arange(6)
    slopes = posenc.alibi_slopes(n_heads)[:, np.newaxis, np.newaxis]
    row, distance = scores + slopes * at, scores + posenc.alibi_bias(n_heads, at, at)
    causal = np.where(np.tri(6, dtype=bool), 0.0, -np.inf)
    np.testing.assert_allclose(
        posenc.softmax(row + causal), posenc.softmax(distance + causal), atol=1e-15
    )
    assert np.abs(posenc.softmax(row) - posenc.softmax(distance)).max() > 0.01


@pytest.mark.parametrize("shift", [3, -100, 10**6])
def test_left_padding_and_packing_change_no_bias_within_a_sequence(shift):
    """Positions of packed and padded sequences: NVIDIA/Megatron-LM#453,
    huggingface/transformers#22161.
    """
    at = np.array([0, 1, 2, 0, 1])
    bias = posenc.alibi_bias(4, at, at)
    np.testing.assert_array_equal(bias[:, 3:, 3:], posenc.alibi_bias(4, [0, 1], [0, 1]))
    np.testing.assert_array_equal(posenc.alibi_bias(4, at + shift, at + shift), bias)
    buckets = posenc.t5_bucket(posenc.relative_positions(at, at))
    moved = posenc.t5_bucket(posenc.relative_positions(at + shift, at + shift))
    np.testing.assert_array_equal(moved, buckets)


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(
    ("num_buckets", "max_distance"), [(32, 128), (12, 10), (32, 256), (64, 128), (16, 64)]
)
def test_buckets_are_exact_at_every_boundary(num_buckets, max_distance, bidirectional):
    """Logarithms in float32 that round a distance into its neighbour's bucket."""
    buckets = num_buckets // 2 if bidirectional else num_buckets
    exact = buckets // 2
    relative = np.arange(-3 * max_distance, 3 * max_distance + 1)
    expected = []
    for distance in relative:
        n = int(abs(distance) if bidirectional else max(-distance, 0))
        bucket = n
        if n >= exact:
            share = truth.exact.log(truth.exact.mpf(n) / exact) / truth.exact.log(
                truth.exact.mpf(max_distance) / exact
            )
            # A power that is hit exactly would else be decided by the 40th digit.
            step = truth.exact.floor(share * (buckets - exact) + truth.exact.mpf("1e-30"))
            bucket = min(buckets - 1, exact + int(step))
        expected.append(bucket + (buckets if bidirectional and distance > 0 else 0))
    found = posenc.t5_bucket(
        relative,
        bidirectional=bidirectional,
        num_buckets=num_buckets,
        max_distance=max_distance,
    )
    assert found.tolist() == expected
    assert found.min() == 0
    assert found.max() == num_buckets - 1


@pytest.mark.parametrize("kind", SMALL)
def test_relative_positions_of_small_types_are_right_below_zero(kind):
    """uint8 positions 0 and 1 give 255: the family of lost signs."""
    at = np.array([0, 1, 127], kind)
    relative = posenc.relative_positions(at, at)
    assert relative.tolist() == [[0, 1, 127], [-1, 0, 126], [-127, -126, 0]]
    expected = posenc.t5_bucket(relative.tolist())
    np.testing.assert_array_equal(posenc.t5_bucket(relative), expected)
    assert expected[1][0] == 1
    assert expected[0][1] == 17


# Longer contexts


def test_linear_scaling_divides_positions_and_nothing_else():
    """The factor applied to another quantity: keras-team/keras-hub#1605."""
    for d in (4, 64, 128):
        for factor in (1, 2, 5.5):
            slowed = posenc.scaled_frequencies(d, "linear", factor=factor)
            at = np.arange(20)
            expected = np.multiply.outer(at / factor, posenc.inverse_frequencies(d))
            np.testing.assert_allclose(np.multiply.outer(at, slowed), expected, rtol=1e-15)


@pytest.mark.parametrize("factor", [2, 4, 10.0])
@pytest.mark.parametrize("d", [4, 64, 128])
def test_ntk_keeps_the_fastest_pair_and_divides_the_slowest_by_the_factor(d, factor):
    """Every frequency divided by factor ** (d / (d - 2)): keras-hub 0.32, rope_type dynamic."""
    plain = posenc.inverse_frequencies(d)
    twice = {"original_length": 512, "length": 1024}
    for slowed, stretch in (
        (posenc.scaled_frequencies(d, "ntk", factor=factor), factor),
        (posenc.scaled_frequencies(d, "dynamic", factor=factor, **twice), factor + 1),
    ):
        ratios = plain / slowed
        assert ratios[0] == 1
        assert ratios[-1] == pytest.approx(stretch, rel=1e-14)
        assert (np.diff(ratios) > 0).all()
        changed = posenc.inverse_frequencies(d, base=10_000 * stretch ** (d / (d - 2)))
        np.testing.assert_allclose(slowed, changed, rtol=1e-14)


@layouts
def test_keys_cached_under_an_old_length_lose_relativity(layout):
    """Dynamic NTK with keys that were rotated before the sequence grew:
    huggingface/transformers#25104, QwenLM/Qwen#401, EleutherAI/gpt-neox#363.
    """
    query, key = vectors(2, 1, 16)
    options = {"factor": 4.0, "original_length": 64}
    old = posenc.scaled_frequencies(16, "dynamic", length=64, **options)
    new = posenc.scaled_frequencies(16, "dynamic", length=256, **options)

    def score(at, key_frequencies):
        turned_query = posenc.rope(query, [at], frequencies=new, layout=layout)
        turned_key = posenc.rope(key, [at - 7], frequencies=key_frequencies, layout=layout)
        return float((turned_query @ turned_key.T).item())

    assert score(60, new) == pytest.approx(score(200, new), abs=1e-12)
    assert abs(score(60, old) - score(200, old)) > 0.01


@pytest.mark.parametrize("length", [1, 63, 64])
def test_dynamic_scaling_changes_nothing_up_to_the_original_length(length):
    """Another formula from the first position on: InternLM/lmdeploy#536."""
    found = posenc.scaled_frequencies(16, "dynamic", factor=4, original_length=64, length=length)
    np.testing.assert_array_equal(found, posenc.inverse_frequencies(16))
    longer = posenc.scaled_frequencies(16, "dynamic", factor=4, original_length=64, length=65)
    assert (longer[1:] < found[1:]).all()


def test_a_lower_boundary_of_yarn_below_the_first_pair_is_the_first_pair():
    """A boundary of zero refused: pytorch/torchtitan#4215."""
    plain = posenc.inverse_frequencies(128)
    found = posenc.scaled_frequencies(128, "yarn", factor=40, original_length=64)
    assert found[0] == 1
    np.testing.assert_allclose(found[17:], plain[17:] / 40, rtol=1e-15)
    share = np.arange(1, 17) / 17
    np.testing.assert_allclose(found[1:17], plain[1:17] * (1 - share + share / 40), rtol=1e-14)
    real = posenc.scaled_frequencies(128, "yarn", factor=40, original_length=64, truncate=False)
    np.testing.assert_allclose(real[17:], plain[17:] / 40, rtol=1e-15)
    share = np.arange(17) / 16.1280
    np.testing.assert_allclose(real[:17], plain[:17] * (1 - share + share / 40), rtol=1e-4)


@pytest.mark.parametrize("truncate", [True, False])
@pytest.mark.parametrize("beta", [1, 8, 32])
def test_equal_boundaries_of_yarn_are_a_step_and_no_division_by_zero(truncate, beta):
    """Equal bounds divide by zero: the 0.001 of the published code."""
    plain = posenc.inverse_frequencies(128)
    found = posenc.scaled_frequencies(
        128,
        "yarn",
        factor=4,
        original_length=2048,
        beta_fast=beta,
        beta_slow=beta,
        truncate=truncate,
    )
    ratios = plain / found
    assert np.isfinite(found).all()
    assert ratios[0] == 1
    assert ratios[-1] == 4
    assert np.count_nonzero((ratios > 1 + 1e-9) & (ratios < 4 - 1e-9)) <= 1


@pytest.mark.parametrize(
    ("factor", "expected"),
    [(1, 1.0), (4, 1.138629), (10, 1.230259), (32, 1.346574), (40, 1.368888)],
)
def test_attention_factor_of_yarn(factor, expected):
    """The factor left out or applied twice: huggingface/transformers#38224 and #47435,
    NVIDIA/Megatron-LM#1418 and #1429, ggml-org/llama.cpp#17945.
    """
    assert posenc.yarn_attention_factor(factor) == pytest.approx(expected, abs=5e-7)
    both = posenc.yarn_attention_factor(factor, mscale=1.0, mscale_all_dim=1.0)
    assert both == 1
    assert posenc.yarn_attention_factor(40, mscale=1) ** 2 == pytest.approx(1.873854, abs=5e-7)


@pytest.mark.parametrize(("length", "divisor"), [(1, 2.0), (4096, 2.0), (4097, 8.0), (9999, 8.0)])
def test_longrope_is_short_up_to_the_original_length_and_long_for_all_pairs_after(length, divisor):
    """The boundary off by one, or the table mixed: ggml-org/llama.cpp#8995 and #24875,
    vllm-project/vllm#27431, apache/tvm#18422, mlc-ai/mlc-llm#3375.
    """
    found = posenc.scaled_frequencies(
        64,
        "longrope",
        original_length=4096,
        length=length,
        short_factors=np.full(32, 2.0),
        long_factors=np.full(32, 8.0),
    )
    np.testing.assert_allclose(found, posenc.inverse_frequencies(64) / divisor, rtol=1e-15)
    assert posenc.longrope_attention_factor(32, 4096) == pytest.approx(1.190238, abs=5e-7)


@pytest.mark.parametrize(("d", "factor", "kept", "divided"), [(128, 8, 29, 35), (64, 32, 15, 18)])
def test_llama3_keeps_blends_and_divides_the_right_pairs(d, factor, kept, divided):
    """A ramp over wavelengths instead of frequencies, or none: unslothai/unsloth#6197,
    ml-explore/mlx-examples#907, ggml-org/llama.cpp#8676.
    """
    plain = posenc.inverse_frequencies(d, base=500_000.0)
    found = posenc.scaled_frequencies(
        d, "llama3", base=500_000.0, factor=factor, original_length=8192
    )
    ratios = found / plain
    np.testing.assert_array_equal(ratios[:kept], 1)
    np.testing.assert_allclose(ratios[divided:], 1 / factor, rtol=1e-15)
    assert (np.diff(ratios[kept - 1 : divided + 1]) < 0).all()
    if d == 128:
        np.testing.assert_allclose(ratios[[29, 34]], [0.828168, 0.190211], atol=5e-7)


def test_llama3_of_torchtunes_published_cache_uses_base_10000():
    """Sum and mean that torchtune's llama3_1 tests state, without any random number: with the
    model's own base of 500000 the sum would be 141648.66.
    """
    frequencies = posenc.scaled_frequencies(128, "llama3", factor=8, original_length=8192)
    angles = np.multiply.outer(np.arange(4096), frequencies)
    cache = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    assert cache.sum() == pytest.approx(91_141.7656, abs=0.05)
    assert cache.mean() == pytest.approx(0.1738, abs=5e-5)
    assert cache.max() == 1
