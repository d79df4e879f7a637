"""Fast paths against the slow formula: tables by turning, RoPE by blocks, in place, in part."""

import gc
import tracemalloc
import weakref

import numpy as np
import pytest
import truth
from hypothesis import given, settings
from hypothesis import strategies as st
from test_rotary import exact_angles, onnx_rope

import posenc
from posenc import rotary, sinusoidal

LAYOUTS = ["interleaved", "half"]
DTYPES = [np.float16, np.float32, np.float64, np.longdouble]
# Three float32 roundings: of the two factors and of their product, whose two terms are rounded too.
SINGLE_TABLE = 1.45e-7

properties = settings(deadline=None, max_examples=60)
layouts = st.sampled_from(LAYOUTS)
seeds = st.integers(0, 2**32 - 1)


def bound(dtype, furthest):
    if dtype == np.float16:
        return 2**-11 * 0.5 + 2.5e-16 * furthest + 1e-15
    if dtype == np.float32:
        return SINGLE_TABLE + 2.5e-16 * furthest
    return 2.5e-16 * max(1, furthest) + 3e-15


@given(
    st.integers(0, 300),
    st.integers(1, 20).map(lambda pairs: 2 * pairs),
    st.integers(-(10**7), 10**7),
    st.sampled_from([10_000.0, 500_000.0, 2.5]),
    layouts,
    st.sampled_from(DTYPES),
    st.sampled_from(["new", "contiguous", "columns of a wider array", "every second", "backwards"]),
)
@properties
def test_table_equals_the_formula(length, d, start, base, layout, dtype, memory):
    out = {
        "new": None,
        "contiguous": np.empty((length, d), dtype),
        "columns of a wider array": np.empty((length, 3 * d + 1), dtype)[:, d : 2 * d],
        "every second": np.empty((2 * length, 2 * d), dtype)[::2, 1::2],
        "backwards": np.empty((length, d), dtype)[::-1, ::-1],
    }[memory]
    found = posenc.sinusoidal_table(
        length, d, start=start, base=base, layout=layout, dtype=dtype, out=out
    )
    assert found.dtype == dtype
    assert out is None or found is out
    expected = posenc.sinusoidal_encoding(
        np.arange(start, start + length), d, base=base, layout=layout
    )
    error = np.abs(found - expected).max(initial=0)
    assert error <= bound(dtype, max(abs(start), abs(start + length)))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("start", [0, -70_000])
@pytest.mark.parametrize(("length", "d"), [(131_072, 8), (20_000, 128), (257, 4096)])
def test_tables_of_many_blocks_equal_the_formula(length, d, start, layout):
    double = posenc.sinusoidal_table(length, d, start=start, layout=layout)
    single = posenc.sinusoidal_table(length, d, start=start, layout=layout, dtype=np.float32)
    assert np.abs(single - double).max() <= SINGLE_TABLE
    rows = np.arange(start, start + length)
    expected = posenc.sinusoidal_encoding(rows, d, layout=layout)
    errors = np.abs(double - expected).max(axis=1)
    assert (errors <= 2.5e-16 * np.maximum(1, np.abs(rows)) + 3e-15).all()


@pytest.mark.parametrize("base", [10_000.0, 500_000.0])
@pytest.mark.parametrize("d", [2, 64, 128, 512])
def test_float64_tables_are_right_to_3e_15_in_every_row(d, base):
    table = posenc.sinusoidal_table(131_072, d, base=base)
    for row in (0, 1, 255, 4095, 65_535, 65_536, 98_304, 131_070, 131_071):
        assert truth.largest_error(table[row], truth.encoding(row, d, base)) <= 3e-15
    norms = np.linalg.norm(table, axis=1)
    np.testing.assert_allclose(norms, np.sqrt(d / 2), rtol=5e-15)


@pytest.mark.parametrize("start", [10**6, 10**9 + 7, -(10**12), 2**53 - 100, -(2**53)])
def test_late_tables_are_as_right_as_early_ones(start):
    table = posenc.sinusoidal_table(100, 64, start=start)
    for row in (0, 1, 50, 99):
        assert truth.largest_error(table[row], truth.encoding(start + row, 64)) <= 3e-15


def test_without_wider_numbers_tables_keep_the_bound_of_the_formula(monkeypatch):
    monkeypatch.setattr(np, "longdouble", np.float64)
    table = posenc.sinusoidal_table(131_072, 64)
    for row in (1, 4095, 131_071):
        assert truth.largest_error(table[row], truth.encoding(row, 64)) <= 2.5e-16 * row + 1e-15


def test_float16_tables_are_the_float64_table_rounded_once():
    for layout in LAYOUTS:
        double = posenc.sinusoidal_table(3000, 64, start=-5, layout=layout)
        half = posenc.sinusoidal_table(3000, 64, start=-5, layout=layout, dtype=np.float16)
        np.testing.assert_array_equal(half, double.astype(np.float16))


@given(st.lists(st.integers(0, 3000), max_size=4), st.integers(-(10**9), 10**9), layouts)
@properties
def test_blocks_from_start_are_one_table(lengths, start, layout):
    out = np.empty((sum(lengths), 6))
    row = 0
    for length in lengths:
        part = out[row : row + length]
        posenc.sinusoidal_table(length, 6, start=start + row, layout=layout, out=part)
        row += length
    whole = posenc.sinusoidal_table(len(out), 6, start=start, layout=layout)
    np.testing.assert_allclose(out, whole, rtol=0, atol=3e-15)


def peak(call):
    """Return how many bytes were allocated at once at most while a call ran a second time."""
    call()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("length", "d"), [(4096, 4096), (131_072, 128)])
def test_a_table_needs_no_memory_beyond_a_few_blocks(length, d, dtype, layout):
    out = np.empty((length, d), dtype)
    needed = peak(lambda: posenc.sinusoidal_table(length, d, layout=layout, out=out))
    assert needed < 6 * sinusoidal.BLOCK_BYTES < out.nbytes / 8


def test_results_are_freed_with_their_last_reference():
    gc.disable()
    try:
        for make in (
            lambda: posenc.sinusoidal_table(5000, 64),
            lambda: posenc.rope(np.ones((5000, 64)), range(5000)),
        ):
            watched = weakref.ref(make())
            assert watched() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_rope_needs_no_memory_beyond_a_few_blocks(dtype, layout):
    x = np.ones((1, 16, 4096, 128), dtype)
    out = np.empty_like(x)
    needed = peak(lambda: posenc.rope(x, np.arange(4096), layout=layout, out=out))
    assert needed < 16 * rotary.BLOCK_PAIRS * 7


def slow_rope(x, positions, frequencies, layout):
    """Rotate in float64 by the formula, all at once."""
    x = np.asarray(x, np.float64)
    angles = np.asarray(positions, float)[..., np.newaxis] * frequencies
    width = 2 * len(frequencies)
    result = x.copy()
    first, second = sinusoidal.pair_columns(x[..., :width], layout)
    new_first, new_second = sinusoidal.pair_columns(result[..., :width], layout)
    new_first[...] = first * np.cos(angles) - second * np.sin(angles)
    new_second[...] = first * np.sin(angles) + second * np.cos(angles)
    return result


ROUNDING = {np.float16: 2**-11, np.float32: 3e-7, np.float64: 1e-13, np.longdouble: 1e-13}
STEPS = {
    "from 0": lambda n: np.arange(n),
    "late, by 3": lambda n: 5000 + 3 * np.arange(n),
    "backwards": lambda n: 100 - np.arange(n),
    "by a half": lambda n: 0.5 * np.arange(n) - 7,
    "all the same": lambda n: np.full(n, 9.0),
    "irregular": lambda n: np.arange(n) % 7 * 1.25,
    "one astray": lambda n: np.where(np.arange(n) == n - 1, 0, np.arange(n)),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("steps", STEPS)
def test_rope_in_blocks_equals_the_formula(steps, layout, dtype, monkeypatch):
    monkeypatch.setattr(rotary, "BLOCK_PAIRS", 64)
    for shape in ((50, 6), (2, 3, 37, 8), (1, 1, 130, 4), (3, 1, 2), (2, 0, 4)):
        x = np.random.default_rng(1).standard_normal(shape).astype(dtype)
        positions = STEPS[steps](shape[-2])
        expected = slow_rope(x, positions, posenc.inverse_frequencies(shape[-1]), layout)
        found = posenc.rope(x, positions, layout=layout)
        assert found.dtype == dtype
        largest = np.abs(x).max(initial=1)
        np.testing.assert_allclose(found, expected, rtol=0, atol=2 * largest * ROUNDING[dtype])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rope_of_real_size_equals_the_formula(layout):
    x = np.random.default_rng(2).standard_normal((1, 3, 4099, 128), dtype=np.float32)
    found = posenc.rope(x, np.arange(4099), layout=layout)
    expected = slow_rope(x, np.arange(4099), posenc.inverse_frequencies(128), layout)
    np.testing.assert_allclose(found, expected, rtol=0, atol=3e-7 * np.abs(x).max())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_positions_of_each_sequence_in_blocks(layout, monkeypatch):
    monkeypatch.setattr(rotary, "BLOCK_PAIRS", 32)
    rng = np.random.default_rng(3)
    x = rng.standard_normal((2, 3, 20, 8))
    for shape in ((2, 1, 20), (1, 3, 20), (2, 3, 20), (1, 1, 20)):
        positions = rng.uniform(-50, 50, shape)
        expected = slow_rope(x, positions, posenc.inverse_frequencies(8), layout)
        found = posenc.rope(x, positions, layout=layout)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


def test_float16_rope_is_the_float64_result_rounded_once():
    x = np.random.default_rng(4).standard_normal((50, 16)).astype(np.float16)
    for layout in LAYOUTS:
        expected = slow_rope(x, range(50), posenc.inverse_frequencies(16), layout)
        found = posenc.rope(x, range(50), layout=layout)
        # The two float64 results differ in their last bits, which matters at a tie alone.
        assert (found != expected.astype(np.float16)).mean() < 0.01
        np.testing.assert_allclose(found, expected, rtol=2**-11, atol=2**-25)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rotary_dim", [None, 4])
def test_out_may_be_new_strided_or_x_itself(rotary_dim, layout, dtype, monkeypatch):
    monkeypatch.setattr(rotary, "BLOCK_PAIRS", 64)
    x = np.random.default_rng(5).standard_normal((2, 33, 8)).astype(dtype)
    before = x.copy()
    options = {"layout": layout, "rotary_dim": rotary_dim}
    expected = posenc.rope(x, range(33), **options)
    for out in (
        np.full_like(x, np.nan),
        np.full((2, 33, 16), np.nan, dtype)[..., ::2],
        np.full((33, 2, 8), np.nan, dtype).swapaxes(0, 1),
        np.full(x.shape, np.nan, np.float64),
    ):
        assert posenc.rope(x, range(33), **options, out=out) is out
        np.testing.assert_allclose(out, expected, rtol=0, atol=4 * np.finfo(dtype).eps)
        np.testing.assert_array_equal(x, before)
    assert posenc.rope(x, range(33), **options, out=x) is x
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("part", [np.s_[:, ::-1], np.s_[:, :, ::-1]])
def test_out_that_overlaps_x_in_part_is_refused(part):
    x = np.ones((2, 3, 4))
    with pytest.raises(ValueError, match="out must be x itself or share no memory with it"):
        posenc.rope(x, range(3), out=x[part])
    np.testing.assert_array_equal(x, 1)


def test_queries_and_keys_of_one_array_can_be_turned_into_each_other():
    both = np.random.default_rng(6).standard_normal((5, 16))
    queries, keys = both[:, :8], both[:, 8:]
    expected = posenc.rope(queries, range(5))
    np.testing.assert_array_equal(posenc.rope(queries, range(5), out=keys), expected)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rotary_dim", [2, 4, 16])
def test_onnx_rotates_a_part_in_the_same_way(rotary_dim, layout):
    x = np.random.default_rng(7).standard_normal((2, 3, 7, 16))
    ids = np.array([[0, 1, 2, 3, 4, 5, 6], [40, 3, 3, 0, 11, 2, 39]])
    cosines, sines = exact_angles(range(41), rotary_dim)
    expected = onnx_rope(x, cosines, sines, layout, ids, rotary_dim)
    found = posenc.rope(x, ids[:, np.newaxis], layout=layout, rotary_dim=rotary_dim)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(found[..., rotary_dim:], x[..., rotary_dim:])


def test_both_denominators_of_partial_rotation():
    over_part = posenc.partial_frequencies(16, 8)
    np.testing.assert_array_equal(over_part, posenc.inverse_frequencies(8))
    over_whole = posenc.partial_frequencies(16, 8, denominator="d", base=100)
    np.testing.assert_array_equal(over_whole, posenc.inverse_frequencies(16, base=100)[:4])

    x = np.random.default_rng(8).standard_normal((5, 16))
    for layout in LAYOUTS:
        default = posenc.rope(x, range(5), rotary_dim=8, layout=layout)
        named = posenc.rope(x, range(5), rotary_dim=8, layout=layout, frequencies=over_part)
        np.testing.assert_array_equal(default, named)
    # Pairs that do not turn are the same as dimensions that are not rotated, where pairs are
    # neighbours; where they are halves, other dimensions turn.
    over_whole = posenc.partial_frequencies(16, 8, denominator="d")
    padded = np.pad(over_whole, (0, 4))
    full = posenc.rope(x, range(5), frequencies=padded)
    part = posenc.rope(x, range(5), rotary_dim=8, frequencies=over_whole)
    np.testing.assert_allclose(full, part, rtol=0, atol=1e-15)
    full = posenc.rope(x, range(5), frequencies=padded, layout="half")
    np.testing.assert_array_equal(
        full[:, [*range(4, 8), *range(12, 16)]], x[:, [*range(4, 8), *range(12, 16)]]
    )
    assert np.abs(full[1, 8:12] - x[1, 8:12]).min() > 0


def test_rope_2d_turns_one_half_by_row_and_one_by_column():
    rows, columns = np.divmod(np.arange(6), 3)
    x = np.random.default_rng(9).standard_normal((2, 6, 16))
    for layout in LAYOUTS:
        found = posenc.rope_2d(x, rows, columns, base=100.0, layout=layout)
        for patch, (row, column) in enumerate(zip(rows, columns, strict=True)):
            for b in range(2):
                first = truth.rope(x[b, patch, :8], int(row), 100.0, layout)
                last = truth.rope(x[b, patch, 8:], int(column), 100.0, layout)
                assert truth.largest_error(found[b, patch], [*first, *last]) <= 1e-14
        inside = x.copy()
        assert (
            posenc.rope_2d(inside, rows, columns, base=100.0, layout=layout, out=inside) is inside
        )
        np.testing.assert_array_equal(inside, found)


def test_rope_2d_scores_depend_on_differences_of_rows_and_of_columns():
    rng = np.random.default_rng(10)
    query, key = rng.standard_normal((2, 1, 8))

    def score(at, against):
        turned = (
            posenc.rope_2d(query, [at[0]], [at[1]]),
            posenc.rope_2d(key, [against[0]], [against[1]]),
        )
        return (turned[0] @ turned[1].T).item()

    assert score((3, 5), (1, 4)) == pytest.approx(score((13, 2), (11, 1)), abs=1e-12)
    assert abs(score((3, 5), (1, 4)) - score((5, 3), (4, 1))) > 1e-3


@pytest.mark.parametrize("n_heads", [1, 3])
@pytest.mark.parametrize("d", [2, 6, 8])
def test_convert_layout_there_and_back(d, n_heads):
    weight = np.random.default_rng(11).standard_normal((n_heads * d, 5))
    before = weight.copy()
    half = posenc.convert_layout(weight, n_heads, to="half")
    np.testing.assert_array_equal(posenc.convert_layout(half, n_heads, to="interleaved"), weight)
    np.testing.assert_array_equal(weight, before)
    assert not np.shares_memory(half, weight)

    x = np.random.default_rng(12).standard_normal((4, 5))
    for h in range(n_heads):
        head = slice(h * d, (h + 1) * d)
        scores = posenc.rope_scores(x @ weight[head].T, x @ weight[head].T, range(4), range(4))
        rows = x @ half[head].T
        converted = posenc.rope_scores(rows, rows, range(4), range(4), layout="half")
        np.testing.assert_allclose(converted, scores, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32])
def test_convert_layout_keeps_the_dtype_and_takes_a_bias(dtype):
    bias = np.arange(8).astype(dtype)
    found = posenc.convert_layout(bias, 1, to="interleaved")
    assert found.dtype == dtype
    assert found.tolist() == [0, 4, 1, 5, 2, 6, 3, 7]


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=6),
    st.integers(-50, 50),
    layouts,
    st.sampled_from([(), (2,), (2, 3)]),
    seeds,
)
@properties
def test_prefill_equals_decoding_step_by_step(chunks, start, layout, axes, seed):
    rng = np.random.default_rng(seed)
    queries, keys = rng.standard_normal((2, *axes, sum(chunks), 8))
    options = {"layout": layout, "rotary_dim": 4, "base": 500.0}
    cache, turned, begin = posenc.KeyCache(start, **options), [], 0
    for count in chunks:
        part = np.s_[..., begin : begin + count, :]
        query, kept = cache.extend(queries[part], keys[part])
        turned.append(query)
        begin += count
    positions = start + np.arange(begin)
    np.testing.assert_allclose(kept, posenc.rope(keys, positions, **options), atol=1e-13)
    expected = posenc.rope(queries, positions, **options)
    np.testing.assert_allclose(np.concatenate(turned, axis=-2), expected, atol=1e-13)
    assert cache.position == start + begin
    assert not kept.flags.writeable


def test_dropped_keys_leave_the_positions_of_later_ones():
    keys = np.random.default_rng(13).standard_normal((30, 4))
    cache = posenc.KeyCache()
    for t in range(30):
        _, kept = cache.extend(keys[t : t + 1], keys[t : t + 1])
        if len(kept) == 4:
            cache.drop(1)
        np.testing.assert_allclose(kept[-1], posenc.rope(keys, range(30))[t], atol=1e-13)
    assert cache.position == 30
    with pytest.raises(ValueError, match="count must be at most 3, got 4"):
        cache.drop(4)


def test_cache_refuses_keys_of_another_shape():
    cache = posenc.KeyCache()
    cache.extend(np.ones((2, 3, 4)), np.ones((2, 3, 4)))
    with pytest.raises(ValueError, match="keys must have shape"):
        cache.extend(np.ones((1, 1, 4)), np.ones((1, 1, 4)))
    with pytest.raises(ValueError, match="number of queries must be that of keys"):
        cache.extend(np.ones((2, 2, 4)), np.ones((2, 1, 4)))
    assert cache.position == 3


@given(
    st.lists(st.integers(-(2**20), 2**20), max_size=5),
    st.integers(1, 10).map(lambda pairs: 2 * pairs),
    st.sampled_from([10_000.0, 50.0]),
)
@properties
def test_timing_signal_equals_its_formula(positions, d, base):
    found = posenc.timing_signal(positions, d, base=base)
    assert found.shape == (len(positions), d)
    pairs = d // 2
    for row, position in zip(found, positions, strict=True):
        frequencies = [
            truth.exact.mpf(base) ** (-truth.exact.mpf(i) / max(1, pairs - 1)) for i in range(pairs)
        ]
        sines = [truth.exact.sin(position * w) for w in frequencies]
        cosines = [truth.exact.cos(position * w) for w in frequencies]
        error = truth.largest_error(row, [*sines, *cosines])
        assert error <= 2.5e-16 * max(1, abs(position)) + 1e-15


def test_timing_signal_published_values():
    # transformers test_modeling_fsmt and flaxformer embedding_test without its zero column
    found = posenc.timing_signal([2, 3], 6)
    expected = [
        [0.90930, 0.019999, 0.0002, -0.41615, 0.99980, 1],
        [0.14112, 0.029995, 0.0003, -0.98999, 0.99955, 1],
    ]
    np.testing.assert_allclose(found, expected, atol=5e-6)
    wide = posenc.timing_signal([1, 2], 512)[:, :5]
    expected = [
        [0.84147096, 0.82177866, 0.80180490, 0.78165019, 0.76140374],
        [0.90929741, 0.93651021, 0.95829457, 0.97505713, 0.98720258],
    ]
    np.testing.assert_allclose(wide, expected, atol=1e-6)
    four = posenc.timing_signal([1, 6], 4)
    expected = [
        [0.84147096, 1e-4, 0.54030228, 1],
        [-0.27941549, 6e-4, 0.96017027, 0.99999982],
    ]
    np.testing.assert_allclose(four, expected, atol=2e-7)
    assert posenc.timing_signal(3, 2).tolist() == [np.sin(3.0), np.cos(3.0)]


def test_timing_signal_layouts_differ_by_the_order_of_columns_alone():
    half = posenc.timing_signal([0.5, -3], 8)
    interleaved = posenc.timing_signal([0.5, -3], 8, layout="interleaved")
    np.testing.assert_array_equal(half, interleaved[:, [0, 2, 4, 6, 1, 3, 5, 7]])


def test_a_refused_first_call_leaves_a_key_cache_as_it_was():
    cache = posenc.KeyCache()
    with pytest.raises(ValueError, match="even"):
        cache.extend(np.zeros((1, 5)), np.zeros((1, 5)))
    _, keys = cache.extend(np.ones((2, 8)), np.ones((2, 8)))
    assert (keys.shape, cache.position) == ((2, 8), 2)
