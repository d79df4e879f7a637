"""Compare posenc with the libraries that people use, in an environment of their own.

Run by ``make oracles``. Prints a table of largest differences and ends with status 1 if one of them
exceeds its bound. Bounds follow from how a library forms its angles: in float32 an angle near
position p is off by about p times 6e-8, so the bound says at which precision a library works, never
how right posenc is; that is what the 40-digit tests say.

Where a library is known to be wrong, the row says why and must show the difference: a repaired
library would fail here, and its row becomes an ordinary one. Left out: keras-hub, which installs
TensorFlow, and whose rope_type "dynamic" divides each frequency where it should change the base;
torchtune, which can't be imported without torchao; its published values are checked below.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import numpy as np

import posenc

LAYOUTS = ("interleaved", "half")
LENGTH = 512


def float32_angles(largest_position: float, size: float = 1.0) -> float:
    """Return how far a value of this size may be off where angles are float32."""
    return size * (1.5e-7 * largest_position + 1e-6)


@dataclass(frozen=True)
class Row:
    """One comparison: the largest difference, and between which bounds it must lie."""

    library: str
    what: str
    found: float
    at_most: float = np.inf
    at_least: float = 0.0
    reason: str = ""

    @property
    def passed(self) -> bool:
        """Whether the difference is a number between the bounds."""
        return bool(self.at_least <= self.found <= self.at_most)


def difference(ours: object, theirs: object, *, relative: bool = False) -> float:
    """Return the largest difference of two arrays; shapes must be equal."""
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    if ours.shape != theirs.shape:
        raise ValueError(f"shapes differ: posenc {ours.shape}, library {theirs.shape}")
    gap = np.abs(ours - theirs)
    return float(np.max(gap / np.abs(theirs) if relative else gap))


def vectors(*shape: int, seed: int = 0) -> np.ndarray:
    """Return float32 numbers from a normal distribution."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def torch_rows() -> Iterator[Row]:
    """Softmax, attention, embedding tables, and rotation as a complex product."""
    import torch
    from torch.nn import functional

    x = vectors(2, 9, 16).astype(np.float64)
    yield Row(
        "torch",
        "softmax",
        difference(posenc.softmax(x, axis=1), torch.from_numpy(x).softmax(dim=1)),
        1e-15,
    )
    projections = [vectors(16, 16, seed=seed).astype(np.float64) for seed in (1, 2, 3)]
    queries, keys, values = (torch.from_numpy(x @ w) for w in projections)
    for causal in (False, True):
        theirs = functional.scaled_dot_product_attention(queries, keys, values, is_causal=causal)
        ours, _ = posenc.self_attention(x, *projections, causal=causal)
        what = f"attention, {'causal' if causal else 'full'}"
        yield Row("torch", what, difference(ours, theirs), 1e-13)

    table = torch.from_numpy(vectors(20, 6)).requires_grad_()
    positions = np.array([[0, 3, 3, 19], [7, 7, 7, 1]])
    upstream = vectors(2, 4, 6, seed=4)
    rows = functional.embedding(torch.from_numpy(positions), table)
    rows.backward(torch.from_numpy(upstream))
    ours = posenc.lookup(table.detach().numpy(), positions)
    yield Row("torch", "lookup", difference(ours, rows.detach()), 0.0)
    ours = posenc.lookup_gradient(positions, upstream, 20)
    yield Row("torch", "lookup_gradient", difference(ours, table.grad), 1e-6)

    x = vectors(3, LENGTH, 64).astype(np.float64)
    frequencies = 10_000.0 ** -(torch.arange(0, 64, 2, dtype=torch.float64) / 64)
    angles = torch.arange(LENGTH, dtype=torch.float64)[:, None] * frequencies
    turns = torch.polar(torch.ones_like(angles), angles)
    pairs = torch.view_as_complex(torch.from_numpy(x).reshape(3, LENGTH, 32, 2))
    theirs = torch.view_as_real(pairs * turns).reshape(3, LENGTH, 64)
    ours = posenc.rope(x, np.arange(LENGTH))
    yield Row("torch", "rope interleaved, complex128", difference(ours, theirs), 1e-12)

    x = vectors(10_000)
    for round_to, dtype in (
        (posenc.round_to_bfloat16, torch.bfloat16),
        (posenc.round_to_float16, torch.float16),
    ):
        theirs = torch.from_numpy(x).to(dtype).float()
        yield Row("torch", round_to.__name__, difference(round_to(x), theirs), 0.0)


def torchtune_rows() -> Iterator[Row]:
    """Values that torchtune's tests state for numbers from torch's generator."""
    import torch

    torch.manual_seed(0)
    x = torch.randn(4, 2048, 32, 128).numpy()
    turned = posenc.rope(x.transpose(0, 2, 1, 3), np.arange(2048))
    name = "torchtune's tests"
    yield Row(name, "rope, mean", abs(turned.mean(dtype=float) - 6.4543e-05), 1e-8)
    yield Row(name, "rope, largest", abs(turned.max() - 5.4546), 1e-4)
    # Their sum was added up in float32, whose result depends on the order.
    yield Row(name, "rope, sum", abs(turned.sum(dtype=float) - 2165.7053), 0.5)

    torch.manual_seed(0)
    x = torch.randn(4, 60, 32, 96).numpy()
    turned = posenc.rope(x.transpose(0, 2, 1, 3), np.arange(60), layout="half")
    yield Row(name, "rope half, sum", abs(turned.sum(dtype=float) + 381.0620), 1e-2)


def transformers_rows() -> Iterator[Row]:
    """Encodings, rotations, biases and frequencies of transformers' models."""
    import torch
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor
    from transformers.models.gpt_neox import modeling_gpt_neox as neox
    from transformers.models.gptj import modeling_gptj as gptj
    from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding
    from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding
    from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor
    from transformers.models.roformer.modeling_roformer import RoFormerSelfAttention
    from transformers.models.t5.modeling_t5 import T5Attention

    name = "transformers"
    for d in (6, 64, 512):
        theirs = MarianSinusoidalPositionalEmbedding(LENGTH, d).create_weight()
        ours = posenc.sinusoidal_table(LENGTH, d, layout="half", dtype=np.float32)
        yield Row(name, f"sinusoidal_table half, d={d} (Marian)", difference(ours, theirs), 1.8e-7)
        theirs = M2M100SinusoidalPositionalEmbedding.get_embedding(LENGTH, d)
        ours = posenc.timing_signal(np.arange(LENGTH), d)
        bound = float32_angles(LENGTH)
        yield Row(name, f"timing_signal, d={d} (M2M100)", difference(ours, theirs), bound)

    x = vectors(2, 3, LENGTH, 64)
    positions = np.arange(LENGTH)
    size = float(np.abs(x).max())
    q = torch.from_numpy(x)
    angles = torch.from_numpy(np.multiply.outer(positions, posenc.inverse_frequencies(64)))
    both = torch.cat([angles, angles], dim=-1)[None]
    theirs, _ = neox.apply_rotary_pos_emb(q.double(), q.double(), both.cos(), both.sin())
    ours = posenc.rope(x.astype(float), positions, layout="half")
    yield Row(name, "rope half, float64 angles (GPT-NeoX)", difference(ours, theirs), 1e-12)
    config = neox.GPTNeoXConfig(
        hidden_size=128,
        num_attention_heads=2,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 10_000.0,
            "partial_rotary_factor": 0.25,
        },
    )
    cosines, sines = neox.GPTNeoXRotaryEmbedding(config)(q, torch.from_numpy(positions)[None])
    theirs, _ = neox.apply_rotary_pos_emb(q, q, cosines, sines)
    ours = posenc.rope(x, positions, layout="half", rotary_dim=16)
    yield Row(
        name,
        "rope half, 16 of 64 dimensions (GPT-NeoX)",
        difference(ours, theirs),
        float32_angles(LENGTH, size),
    )

    sinusoid = gptj.create_sinusoidal_positions(LENGTH, 64)[None]
    sines, cosines = sinusoid.chunk(2, dim=-1)
    theirs = gptj.apply_rotary_pos_emb(q.transpose(1, 2), sines, cosines).transpose(1, 2)
    ours = posenc.rope(x, positions)
    bound = float32_angles(LENGTH, size)
    yield Row(name, "rope interleaved (GPT-J)", difference(ours, theirs), bound)
    table = posenc.sinusoidal_table(LENGTH, 64, layout="half", dtype=np.float32)
    theirs, _ = RoFormerSelfAttention.apply_rotary_position_embeddings(
        torch.from_numpy(table)[None, None], q, q
    )
    yield Row(name, "rope interleaved (RoFormer)", difference(ours, theirs), 1e-6 * size)

    # A model of GPT-J's layout, moved to GPT-NeoX's code by reordering its projections.
    hidden = vectors(LENGTH, 24)
    weights = [vectors(2 * 64, 24, seed=seed) / 5 for seed in (1, 2)]
    queries, keys = (
        torch.from_numpy((hidden @ posenc.convert_layout(w, 2, to="half").T).reshape(1, -1, 2, 64))
        for w in weights
    )
    queries, keys = queries.transpose(1, 2).double(), keys.transpose(1, 2).double()
    queries, keys = neox.apply_rotary_pos_emb(queries, keys, both.cos(), both.sin())
    theirs = (queries @ keys.transpose(2, 3))[0] / 8
    queries, keys = ((hidden @ w.T).reshape(-1, 2, 64).swapaxes(0, 1) for w in weights)
    ours = posenc.rope_scores(queries.astype(float), keys.astype(float), positions, positions)
    what = "rope_scores after convert_layout (GPT-NeoX)"
    yield Row(name, what, difference(ours, theirs), float(np.abs(ours).max()) * 1e-6)

    for heads in (1, 8, 12, 14, 20):
        keys = torch.ones(1, 9, dtype=torch.long)
        bloom = build_alibi_tensor(keys, heads, torch.float32)[:, 0]
        # Bloom counts from the first key: the same up to a number for each row of scores.
        ours = posenc.alibi_bias(heads, [8], np.arange(9))[:, 0]
        ours = ours - ours[:, :1]
        yield Row(name, f"alibi_bias, {heads} heads (Bloom)", difference(ours, bloom), 1e-6)
        mpt = build_mpt_alibi_tensor(heads, 9)[:, 0]
        ours = posenc.alibi_bias(heads, [8], np.arange(9))[:, 0]
        yield Row(name, f"alibi_bias, {heads} heads (MPT)", difference(ours, mpt), 1e-6)

    relative = np.arange(-300, 301)
    for bidirectional in (True, False):
        for buckets, distance in ((32, 128), (12, 10), (32, 256), (64, 128), (16, 64)):
            theirs = T5Attention._relative_position_bucket(
                torch.from_numpy(relative), bidirectional, buckets, distance
            )
            ours = posenc.t5_bucket(
                relative,
                bidirectional=bidirectional,
                num_buckets=buckets,
                max_distance=distance,
            )
            ways = "both ways" if bidirectional else "backwards"
            what = f"t5_bucket, {buckets} to {distance}, {ways}"
            yield Row(name, what, difference(ours, theirs), 0.0)

    yield from transformers_frequency_rows()

    try:
        M2M100SinusoidalPositionalEmbedding.get_embedding(4, 2)
        found = 0.0
    except ZeroDivisionError:
        found = np.inf
    reason = "divides by d/2 - 1 = 0; the right frequency is 1"
    yield Row(name, "timing_signal, d=2 (M2M100)", found, at_least=1.0, reason=reason)


def transformers_frequency_rows() -> Iterator[Row]:
    """Frequencies of every method of context extension."""
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    def theirs(method: str, length: int | None = None, base: float = 10_000.0, **parameters):
        config = LlamaConfig(
            hidden_size=256,
            num_attention_heads=2,
            max_position_embeddings=parameters.pop("window", 2048),
            rope_parameters={"rope_type": method, "rope_theta": base, **parameters},
        )
        frequencies, factor = ROPE_INIT_FUNCTIONS[method](config, seq_len=length)
        return frequencies.numpy(), factor

    def row(what: str, ours: np.ndarray, expected: np.ndarray) -> Row:
        return Row("transformers", what, difference(ours, expected, relative=True), 1e-6)

    scaled = posenc.scaled_frequencies
    expected, _ = theirs("linear", factor=4.0)
    yield row("scaled_frequencies linear", scaled(128, "linear", factor=4.0), expected)
    for length in (1024, 2049, 16_384):
        ours = scaled(128, "dynamic", factor=10.0, original_length=2048, length=length)
        expected, _ = theirs("dynamic", length, factor=10.0)
        yield row(f"scaled_frequencies dynamic, {length} positions", ours, expected)
    expected, _ = theirs("proportional", partial_rotary_factor=0.25)
    ours = np.zeros(64)
    ours[:16] = posenc.partial_frequencies(128, 32, denominator="d")
    gap = difference(ours, expected)
    yield Row("transformers", "partial_frequencies over d (proportional)", gap, 1e-7)
    expected, _ = theirs("linear", factor=1.0, partial_rotary_factor=0.25)
    yield row("partial_frequencies over rotary_dim", posenc.partial_frequencies(128, 32), expected)
    cases = [(10.0, 2048, 1e4, True), (10.0, 2048, 1e4, False), (40.0, 4096, 5e5, True)]
    for factor, original, base, truncate in cases:
        expected, attention = theirs(
            "yarn",
            base=base,
            factor=factor,
            window=int(factor * original),
            original_max_position_embeddings=original,
            truncate=truncate,
        )
        ours = scaled(
            128, "yarn", base=base, factor=factor, original_length=original, truncate=truncate
        )
        rounding = "whole" if truncate else "real"
        yield row(f"scaled_frequencies yarn x{factor:g}, {rounding} limits", ours, expected)
        ours = posenc.yarn_attention_factor(factor)
        what = f"yarn_attention_factor {factor:g}"
        yield Row("transformers", what, difference(ours, attention), 1e-12)
    for factor, original, base in ((8.0, 8192, 5e5), (32.0, 8192, 5e5), (10.0, 2048, 1e4)):
        expected, _ = theirs(
            "llama3",
            base=base,
            factor=factor,
            window=int(factor * original),
            original_max_position_embeddings=original,
            low_freq_factor=1.0,
            high_freq_factor=4.0,
        )
        ours = scaled(128, "llama3", base=base, factor=factor, original_length=original)
        yield row(f"scaled_frequencies llama3 x{factor:g}", ours, expected)
    short, long = np.linspace(1, 2, 64), np.linspace(1, 40, 64)
    for length in (4096, 4097):
        expected, attention = theirs(
            "longrope",
            length,
            factor=32.0,
            window=32 * 4096,
            original_max_position_embeddings=4096,
            short_factor=short.tolist(),
            long_factor=long.tolist(),
        )
        ours = scaled(
            128,
            "longrope",
            factor=32.0,
            original_length=4096,
            length=length,
            short_factors=short,
            long_factors=long,
        )
        yield row(f"scaled_frequencies longrope, {length} positions", ours, expected)
    ours = posenc.longrope_attention_factor(32, 4096)
    yield Row("transformers", "longrope_attention_factor", difference(ours, attention), 1e-12)
    for mscale, all_dim in ((1.0, 1.0), (0.707, 0.707), (1.0, 0.5)):
        parameters = {"mscale": mscale, "mscale_all_dim": all_dim, "factor": 40.0}
        _, attention = theirs(
            "yarn", window=163_840, original_max_position_embeddings=4096, **parameters
        )
        ours = posenc.yarn_attention_factor(40, mscale=mscale, mscale_all_dim=all_dim)
        what = f"yarn_attention_factor 40, mscale {mscale:g} over {all_dim:g}"
        yield Row("transformers", what, difference(ours, attention), 1e-12)


def rotary_embedding_torch_rows() -> Iterator[Row]:
    """Interleaved rotation, interpolation, a changed base, and two axes."""
    import torch
    from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb

    name = "rotary-embedding-torch"
    x = vectors(2, 3, LENGTH, 32)
    q = torch.from_numpy(x)
    bound = float32_angles(LENGTH + 7, float(np.abs(x).max()))
    positions = np.arange(LENGTH)
    with torch.no_grad():
        theirs = RotaryEmbedding(32).rotate_queries_or_keys(q, offset=7)
        ours = posenc.rope(x, positions + 7)
        yield Row(name, "rope interleaved, from 7", difference(ours, theirs), bound)
        theirs = RotaryEmbedding(24).rotate_queries_or_keys(q)
        ours = posenc.rope(x, positions, rotary_dim=24)
        yield Row(name, "rope, 24 of 32 dimensions", difference(ours, theirs), bound)
        theirs = RotaryEmbedding(32, interpolate_factor=4.0).rotate_queries_or_keys(q)
        ours = posenc.rope(
            x, positions, frequencies=posenc.scaled_frequencies(32, "linear", factor=4.0)
        )
        yield Row(name, "rope with linear frequencies", difference(ours, theirs), bound)
        theirs = RotaryEmbedding(32, theta_rescale_factor=4.0).rotate_queries_or_keys(q)
        ours = posenc.rope(
            x, positions, frequencies=posenc.scaled_frequencies(32, "ntk", factor=4.0)
        )
        yield Row(name, "rope with ntk frequencies", difference(ours, theirs), bound)

        image = vectors(2, 12, 20, 32)
        axes = RotaryEmbedding(16).get_axial_freqs(12, 20)
        theirs = apply_rotary_emb(axes, torch.from_numpy(image)).reshape(2, 240, 32)
        rows, columns = np.divmod(np.arange(240), 20)
        ours = posenc.rope_2d(image.reshape(2, 240, 32), rows, columns)
        bound = float32_angles(20, float(np.abs(image).max()))
        yield Row(name, "rope_2d, 12 x 20 patches", difference(ours, theirs), bound)

        ones = torch.ones(1, 1, 600, 8, dtype=torch.bfloat16)
        theirs = RotaryEmbedding(8).rotate_queries_or_keys(ones).float()
        ours = posenc.rope(np.ones((1, 1, 600, 8)), np.arange(600))
        early = difference(ours[..., :257, :], theirs[..., :257, :])
        yield Row(name, "rope, bfloat16, positions to 256", early, 0.02)
        yield Row(
            name,
            "rope, bfloat16, positions to 599",
            difference(ours, theirs),
            at_least=1.0,
            reason="makes positions in the input's bfloat16, which has no 257",
        )


def x_transformers_rows() -> Iterator[Row]:
    """Sinusoids, rotation, ALiBi and T5 buckets."""
    import torch
    from x_transformers.x_transformers import (
        AlibiPositionalBias,
        RelativePositionBias,
        RotaryEmbedding,
        ScaledSinusoidalEmbedding,
        apply_rotary_pos_emb,
    )

    name = "x-transformers"
    positions = np.arange(LENGTH)
    at = torch.from_numpy(positions)
    bound = float32_angles(LENGTH)
    with torch.no_grad():
        # Their table is multiplied by a trainable number that starts at d ** -0.5.
        theirs = ScaledSinusoidalEmbedding(64)(torch.zeros(1, LENGTH, 64)) * 8
        ours = posenc.sinusoidal_table(LENGTH, 64, layout="half")
        yield Row(name, "sinusoidal_table half", difference(ours, theirs), bound)

        x = vectors(2, 3, LENGTH, 64)
        size = float(np.abs(x).max())
        settings = {
            "interleaved": ({}, None),
            "with linear frequencies": ({"interpolation_factor": 4.0}, "linear"),
            "with ntk frequencies": ({"base_rescale_factor": 4.0}, "ntk"),
        }
        for what, (options, method) in settings.items():
            angles, _ = RotaryEmbedding(64, **options)(at)
            theirs = apply_rotary_pos_emb(torch.from_numpy(x), angles)
            frequencies = method and posenc.scaled_frequencies(64, method, factor=4.0)
            ours = posenc.rope(x, positions, frequencies=frequencies)
            yield Row(name, f"rope {what}", difference(ours, theirs), bound * size)

        for heads in (1, 3, 8, 12):
            theirs = AlibiPositionalBias(heads)(5, 9)
            ours = posenc.alibi_bias(heads, np.arange(4, 9), np.arange(9))
            yield Row(name, f"alibi_bias, {heads} heads, both ways", difference(ours, theirs), 1e-6)

        relative = np.arange(-300, 301)
        for bidirectional in (True, False):
            theirs = RelativePositionBias._relative_position_bucket(
                torch.from_numpy(relative), causal=not bidirectional
            )
            ours = posenc.t5_bucket(relative, bidirectional=bidirectional)
            ways = "both ways" if bidirectional else "backwards"
            yield Row(name, f"t5_bucket, 32 to 128, {ways}", difference(ours, theirs), 0.0)


def positional_encodings_rows() -> Iterator[Row]:
    """The paper's table, interleaved."""
    import torch
    from positional_encodings.torch_encodings import PositionalEncoding1D

    name = "positional-encodings"
    for d in (6, 64):
        theirs = PositionalEncoding1D(d)(torch.zeros(1, LENGTH, d))[0]
        ours = posenc.sinusoidal_table(LENGTH, d)
        bound = float32_angles(LENGTH)
        yield Row(name, f"sinusoidal_table, d={d}", difference(ours, theirs), bound)
    theirs = PositionalEncoding1D(6)(torch.zeros(1, 8, 6, dtype=torch.int64))[0]
    yield Row(
        name,
        "sinusoidal_table, integer input",
        difference(posenc.sinusoidal_table(8, 6), theirs),
        at_least=0.9,
        reason="casts the table to the input's dtype: 0.99 becomes 0",
    )
    theirs = PositionalEncoding1D(6).bfloat16()(torch.zeros(1, 600, 6)).float()[0]
    yield Row(
        name,
        "sinusoidal_table, module in bfloat16",
        difference(posenc.sinusoidal_table(600, 6), theirs),
        at_least=0.5,
        reason="rounds frequencies and positions to bfloat16",
    )


def mlx_rows() -> Iterator[Row]:
    """Rotation in both layouts, ALiBi, and tensor2tensor's sinusoids."""
    import mlx.core as mx
    from mlx import nn

    name = "mlx"
    x = vectors(2, 3, LENGTH, 64)
    positions = np.arange(LENGTH)
    bound = float32_angles(LENGTH + 7, float(np.abs(x).max()))
    for layout in LAYOUTS:
        for width in (64, 32):
            layer = nn.RoPE(width, traditional=layout == "interleaved")
            theirs = np.array(layer(mx.array(x), offset=7))
            ours = posenc.rope(x, positions + 7, layout=layout, rotary_dim=width)
            what = f"rope {layout}, {width} of 64 dimensions, from 7"
            yield Row(name, what, difference(ours, theirs), bound)
        layer = nn.RoPE(64, traditional=layout == "interleaved", scale=0.25)
        theirs = np.array(layer(mx.array(x)))
        frequencies = posenc.scaled_frequencies(64, "linear", factor=4.0)
        ours = posenc.rope(x, positions, layout=layout, frequencies=frequencies)
        what = f"rope {layout} with linear frequencies"
        yield Row(name, what, difference(ours, theirs), bound)
    for d in (2, 6, 64):
        theirs = np.array(nn.SinusoidalPositionalEncoding(d, scale=1.0)(mx.array(positions)))
        ours = posenc.timing_signal(positions, d)
        yield Row(name, f"timing_signal, d={d}", difference(ours, theirs), float32_angles(LENGTH))
    for heads in (1, 3, 8, 12):
        theirs = np.array(nn.ALiBi.create_alibi_matrix(9, 9, heads, offset=4))[0]
        ours = posenc.alibi_bias(heads, np.arange(4, 9), np.arange(9))
        yield Row(name, f"alibi_bias, {heads} heads, both ways", difference(ours, theirs), 1e-6)
    layer = nn.RoPE(64, traditional=True)
    theirs = np.array(layer(mx.array(x[:, :, :1]), offset=1_000_000))
    ours = posenc.rope(x[:, :, :1], [1_000_000])
    yield Row(
        name,
        "rope interleaved at position 1000000",
        difference(ours, theirs),
        at_least=0.01,
        reason="forms angles in float32",
    )


SOURCES = (
    ("torch", torch_rows),
    ("torch", torchtune_rows),
    ("transformers", transformers_rows),
    ("rotary-embedding-torch", rotary_embedding_torch_rows),
    ("x-transformers", x_transformers_rows),
    ("positional-encodings", positional_encodings_rows),
    ("mlx", mlx_rows),
)


def rows() -> Iterator[Row]:
    """Return all comparisons; a library that fails is a row that fails."""
    for library, compare in SOURCES:
        if library == "mlx" and sys.platform != "linux":
            continue  # the extra installs it where its wheel for the CPU exists
        try:
            yield from compare()
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            yield Row(library, compare.__name__, np.nan, 0.0, reason=reason.splitlines()[0])


def report(comparisons: Iterable[Row]) -> int:
    """Print the table; return 1 if a difference lies outside its bounds, or none was made."""
    failed = made = 0
    print(f"{'library':22}  {'what is compared':50}  {'difference':>10}  {'bound':>9}")
    for row in comparisons:
        made += 1
        failed += not row.passed
        bound = f"> {row.at_least:.1g}" if row.at_least else f"{row.at_most:.1e}"
        verdict = "" if row.passed else "FAILED "
        verdict += f"known: {row.reason}" if row.passed and row.reason else row.reason
        print(
            f"{row.library:22}  {row.what:50}  {row.found:10.1e}  {bound:>9}  {verdict}".rstrip(),
            flush=True,
        )
    print(f"{made} comparisons, {failed} outside their bounds")
    return int(failed > 0 or made == 0)


def main() -> int:
    """Compare with every library."""
    warnings.simplefilter("ignore")  # of the libraries about each other
    installed = {library: None for library, _ in SOURCES} | {"numpy": None}
    for library in installed:
        with suppress(PackageNotFoundError):
            installed[library] = version(library)
    print(f"posenc {posenc.__version__} against", end=" ")
    print(", ".join(f"{library} {found or 'MISSING'}" for library, found in installed.items()))
    return report(rows())


if __name__ == "__main__":
    sys.exit(main())
