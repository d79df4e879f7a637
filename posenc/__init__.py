"""Positional encoding for Transformers, from the formula to rotary embeddings.

Every function follows the same conventions: arrays are ``(..., seq_len, d_model)``, positions are
real numbers of any shape, angles are formed in float64, and inputs are never changed.
"""

from posenc.attention import (
    additive_score_terms,
    causal_mean,
    classify_symmetry,
    equivariance_gap,
    prefix_order_gap,
    self_attention,
    softmax,
)
from posenc.bias import alibi_bias, alibi_slopes, relative_positions, t5_bucket
from posenc.learned import LearnedPositions, lookup, lookup_gradient
from posenc.precision import distinct_positions, round_to_bfloat16, round_to_float16
from posenc.rotary import (
    KeyCache,
    convert_layout,
    partial_frequencies,
    relative_errors,
    rope,
    rope_2d,
    rope_scores,
)
from posenc.rotation import (
    position_kernel,
    rotation_matrix,
    shift_encoding,
    shift_linearity,
    shift_matrix,
    toeplitz_r2,
)
from posenc.scaling import (
    longrope_attention_factor,
    minimum_base,
    scaled_frequencies,
    yarn_attention_factor,
)
from posenc.sinusoidal import (
    add_positions,
    angles,
    impossible_pairs,
    inverse_frequencies,
    nearest_repeat,
    sinusoidal_encoding,
    sinusoidal_table,
    split_pairs,
    timing_signal,
    wavelengths,
)

__version__ = "0.1.0"

__all__ = [
    "KeyCache",
    "LearnedPositions",
    "add_positions",
    "additive_score_terms",
    "alibi_bias",
    "alibi_slopes",
    "angles",
    "causal_mean",
    "classify_symmetry",
    "convert_layout",
    "distinct_positions",
    "equivariance_gap",
    "impossible_pairs",
    "inverse_frequencies",
    "longrope_attention_factor",
    "lookup",
    "lookup_gradient",
    "minimum_base",
    "nearest_repeat",
    "partial_frequencies",
    "position_kernel",
    "prefix_order_gap",
    "relative_errors",
    "relative_positions",
    "rope",
    "rope_2d",
    "rope_scores",
    "rotation_matrix",
    "round_to_bfloat16",
    "round_to_float16",
    "scaled_frequencies",
    "self_attention",
    "shift_encoding",
    "shift_linearity",
    "shift_matrix",
    "sinusoidal_encoding",
    "sinusoidal_table",
    "softmax",
    "split_pairs",
    "t5_bucket",
    "timing_signal",
    "toeplitz_r2",
    "wavelengths",
    "yarn_attention_factor",
]
