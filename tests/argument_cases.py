"""Calls that must be refused, each with the error that it must give."""

import io

import numpy as np

import posenc
from posenc import lab

eye, nan, inf = np.eye(4), np.nan, np.inf
x, table = np.zeros((3, 4)), np.zeros((8, 4))
heads = np.zeros((2, 2, 5, 4))
ragged = [[1.0, 2.0], [3.0]]
beyond_float = 10**400
read_only = np.zeros((3, 4))
read_only.flags.writeable = False


def cached(queries=x, keys=x, **options):
    return posenc.KeyCache(**options).extend(queries, keys)


def model(encoding):
    return lab.AttentionModel(encoding, np.random.default_rng(0))


def draw(task="copy-1", batch=1, length=4, **options):
    return lab.draw_task(task, batch, length, np.random.default_rng(0), **options)


def run(**changes):
    quick = {"tasks": ["copy-1"], "encodings": ["rope"], "steps": 1, "batch": 1}
    return lab.run(**{**quick, "progress": io.StringIO(), **changes})


# What each method of scaled_frequencies needs, and what belongs to one method alone.
ORIGINAL = {"factor": 8.0, "original_length": 2048}
NEEDED = {
    "linear": {"factor": 8.0},
    "ntk": {"factor": 8.0},
    "dynamic": {**ORIGINAL, "length": 8192},
    "yarn": ORIGINAL,
    "llama3": ORIGINAL,
    "longrope": {
        "original_length": 2048,
        "length": 8192,
        "short_factors": np.ones(4),
        "long_factors": np.ones(4),
    },
}
OWNERS = {
    "beta_fast": ("yarn", 16.0),
    "beta_slow": ("yarn", 2.0),
    "truncate": ("yarn", False),
    "low_frequency_factor": ("llama3", 2.0),
    "high_frequency_factor": ("llama3", 8.0),
    "short_factors": ("longrope", [1.0] * 4),
    "long_factors": ("longrope", [1.0] * 4),
}


def scaled(method, d_model=8, **changes):
    return posenc.scaled_frequencies(d_model, method, **{**NEEDED[method], **changes})


def each_method(argument, methods=tuple(NEEDED)):
    """Return one call of every method of scaled_frequencies that takes a value of an argument."""
    return [
        (
            f"scaled_frequencies {method}",
            argument,
            lambda value, method=method: scaled(method, **{argument: value}),
        )
        for method in methods
    ]


# Each family: what is called, the argument's name in the error, and the call with a wrong value.

WITH_SIZE_AND_BASE = {
    "inverse_frequencies": posenc.inverse_frequencies,
    "wavelengths": posenc.wavelengths,
    "sinusoidal_encoding": lambda size, **options: posenc.sinusoidal_encoding(1, size, **options),
    "sinusoidal_table": lambda size, **options: posenc.sinusoidal_table(3, size, **options),
    "timing_signal": lambda size, **options: posenc.timing_signal(1, size, **options),
    "shift_matrix": lambda size, **options: posenc.shift_matrix(1, size, **options),
    "position_kernel": lambda size, **options: posenc.position_kernel(1, size, **options),
}
WITH_SIZE = [
    *((name, "d_model", call) for name, call in WITH_SIZE_AND_BASE.items()),
    *each_method("d_model"),
    ("minimum_base", "d_model", lambda value: posenc.minimum_base(9, value)),
    ("partial_frequencies", "d", lambda value: posenc.partial_frequencies(value, 2)),
]
WITH_ROTARY_SIZE = [
    ("partial_frequencies", "rotary_dim", lambda value: posenc.partial_frequencies(8, value)),
    ("rope", "rotary_dim", lambda value: posenc.rope(x, range(3), rotary_dim=value)),
    ("KeyCache", "rotary_dim", lambda value: cached(rotary_dim=value)),
]
WITH_BASE = [
    *(
        (name, "base", lambda value, call=call: call(4, base=value))
        for name, call in WITH_SIZE_AND_BASE.items()
    ),
    *each_method("base"),
    ("shift_encoding", "base", lambda value: posenc.shift_encoding(x, 1, base=value)),
    ("partial_frequencies", "base", lambda value: posenc.partial_frequencies(8, 4, base=value)),
    ("rope", "base", lambda value: posenc.rope(x, range(3), base=value)),
    ("rope_2d", "base", lambda value: posenc.rope_2d(x, range(3), range(3), base=value)),
    ("rope_scores", "base", lambda value: posenc.rope_scores(x, x, range(3), range(3), base=value)),
    ("KeyCache", "base", lambda value: cached(base=value)),
]
# Counts of at least one.
WITH_COUNT = [
    ("alibi_slopes", "n_heads", posenc.alibi_slopes),
    ("alibi_bias", "n_heads", lambda value: posenc.alibi_bias(value, [0], [0])),
    ("convert_layout", "n_heads", lambda value: posenc.convert_layout(table, value, to="half")),
    ("minimum_base", "length", lambda value: posenc.minimum_base(value, 8)),
    ("lookup_gradient", "max_len", lambda value: posenc.lookup_gradient([0], x[:1], value)),
    ("LearnedPositions", "max_len", lambda value: posenc.LearnedPositions(value, 4)),
    ("LearnedPositions", "d_model", lambda value: posenc.LearnedPositions(8, value)),
    ("lab.draw_task", "batch", lambda value: draw(batch=value)),
    ("lab.draw_task", "length", lambda value: draw(length=value)),
    ("lab.train", "steps", lambda value: lab.train("rope", "copy-1", steps=value)),
    ("lab.train", "batch", lambda value: lab.train("rope", "copy-1", steps=1, batch=value)),
    ("lab.run", "steps", lambda value: run(steps=value)),
]
# Counts of at least one that some methods can do without.
WITH_LENGTH = [*each_method("original_length"), *each_method("length")]
# Integers whose smallest value is another.
WITH_INTEGER = [
    ("sinusoidal_table", "length", lambda value: posenc.sinusoidal_table(value, 4)),
    (
        "sinusoidal_table",
        "start",
        lambda value: posenc.sinusoidal_table(3, 4, start=value),
    ),
    ("add_positions", "start", lambda value: posenc.add_positions(x, table, start=value)),
    (
        "longrope_attention_factor",
        "original_length",
        lambda value: posenc.longrope_attention_factor(2, value),
    ),
    (
        "distinct_positions",
        "low",
        lambda value: posenc.distinct_positions(value, 9, "float16"),
    ),
    ("distinct_positions", "high", lambda value: posenc.distinct_positions(0, value, "float16")),
    ("KeyCache", "start", posenc.KeyCache),
    ("KeyCache.drop", "count", lambda value: posenc.KeyCache().drop(value)),
    ("softmax", "axis", lambda value: posenc.softmax(x, axis=value)),
    ("lab.draw_task", "start", lambda value: draw(start=value)),
    ("lab.train", "seed", lambda value: lab.train("rope", "copy-1", steps=1, seed=value)),
    ("t5_bucket", "num_buckets", lambda value: posenc.t5_bucket(-1, num_buckets=value)),
    ("t5_bucket", "max_distance", lambda value: posenc.t5_bucket(-1, max_distance=value)),
]
WITH_POSITIVE = [
    ("alibi_slopes", "max_exponent", lambda value: posenc.alibi_slopes(8, max_exponent=value)),
    (
        "alibi_bias",
        "max_exponent",
        lambda value: posenc.alibi_bias(2, [0], [0], max_exponent=value),
    ),
    ("LearnedPositions", "scale", lambda value: posenc.LearnedPositions(8, 4, scale=value)),
    *each_method("beta_slow", ["yarn"]),
]
# Factors of at least one.
WITH_FACTOR = [
    *each_method("factor"),
    ("yarn_attention_factor", "factor", posenc.yarn_attention_factor),
    (
        "longrope_attention_factor",
        "factor",
        lambda value: posenc.longrope_attention_factor(value, 4096),
    ),
    ("lab.extend", "factor", lambda value: lab.extend(model("rope"), "log-n", value)),
]
WITH_WEIGHT = [
    (
        "yarn_attention_factor",
        "mscale",
        lambda value: posenc.yarn_attention_factor(2, mscale=value),
    ),
    (
        "yarn_attention_factor",
        "mscale_all_dim",
        lambda value: posenc.yarn_attention_factor(2, mscale_all_dim=value),
    ),
]
WITH_NUMBER = [
    ("rotation_matrix", "angle", posenc.rotation_matrix),
    ("shift_matrix", "offset", lambda value: posenc.shift_matrix(value, 4)),
    ("shift_encoding", "offset", lambda value: posenc.shift_encoding(x, value)),
    *each_method("beta_fast", ["yarn"]),
    *each_method("high_frequency_factor", ["llama3"]),
    *each_method("low_frequency_factor", ["llama3"]),
]
WITH_FACTORS = [
    (
        f"scaled_frequencies longrope at {length}",
        name,
        lambda value, name=name, length=length: scaled("longrope", length=length, **{name: value}),
    )
    for name in ("short_factors", "long_factors")
    for length in (1, 4096)
]
WITH_REALS = [
    ("sinusoidal_encoding", "positions", lambda value: posenc.sinusoidal_encoding(value, 4)),
    ("timing_signal", "positions", lambda value: posenc.timing_signal(value, 4)),
    ("position_kernel", "offsets", lambda value: posenc.position_kernel(value, 4)),
    ("rope", "positions", lambda value: posenc.rope(x, value)),
    (
        "rope",
        "frequencies",
        lambda value: posenc.rope(x, range(3), frequencies=value),
    ),
    ("KeyCache", "frequencies", lambda value: cached(frequencies=value)),
    ("rope_2d", "rows", lambda value: posenc.rope_2d(x, value, range(3))),
    ("rope_2d", "columns", lambda value: posenc.rope_2d(x, range(3), value)),
    (
        "rope_scores",
        "query_positions",
        lambda value: posenc.rope_scores(x, x, value, range(3)),
    ),
    (
        "rope_scores",
        "key_positions",
        lambda value: posenc.rope_scores(x, x, range(3), value),
    ),
    (
        "relative_errors",
        "offsets",
        lambda value: posenc.relative_errors(posenc.rope, eye[0], eye[0], value, [1]),
    ),
    (
        "relative_errors",
        "shifts",
        lambda value: posenc.relative_errors(posenc.rope, eye[0], eye[0], [1], value),
    ),
    *WITH_FACTORS,
]
# Positions that are exact where they are integers of any size.
WITH_EXACT = [
    (
        "relative_positions",
        "query_positions",
        lambda value: posenc.relative_positions(value, [0]),
    ),
    (
        "relative_positions",
        "key_positions",
        lambda value: posenc.relative_positions([0], value),
    ),
    ("alibi_bias", "query_positions", lambda value: posenc.alibi_bias(2, value, [0])),
    ("alibi_bias", "key_positions", lambda value: posenc.alibi_bias(2, [0], value)),
]
# Tensors with at least, or exactly, two axes.
WITH_MATRIX = [
    ("self_attention", "x", lambda value: posenc.self_attention(value, eye, eye, eye)),
    ("self_attention", "w_q", lambda value: posenc.self_attention(x, value, eye, eye)),
    ("self_attention", "w_k", lambda value: posenc.self_attention(x, eye, value, eye)),
    ("self_attention", "w_v", lambda value: posenc.self_attention(x, eye, eye, value)),
    (
        "additive_score_terms",
        "x",
        lambda value: posenc.additive_score_terms(value, x, eye, eye),
    ),
    (
        "additive_score_terms",
        "position_vectors",
        lambda value: posenc.additive_score_terms(x, value, eye, eye),
    ),
    (
        "additive_score_terms",
        "w_q",
        lambda value: posenc.additive_score_terms(x, x, value, eye),
    ),
    (
        "additive_score_terms",
        "w_k",
        lambda value: posenc.additive_score_terms(x, x, eye, value),
    ),
    ("equivariance_gap", "x", lambda value: posenc.equivariance_gap(np.tanh, value, [0])),
    ("add_positions", "x", lambda value: posenc.add_positions(value, table)),
    ("add_positions", "table", lambda value: posenc.add_positions(x, value)),
    ("lookup", "table", lambda value: posenc.lookup(value, [0])),
    ("rope", "x", lambda value: posenc.rope(value, [0])),
    ("rope_2d", "x", lambda value: posenc.rope_2d(value, [0], [0])),
    ("rope_scores", "queries", lambda value: posenc.rope_scores(value, x, [0], [0])),
    ("rope_scores", "keys", lambda value: posenc.rope_scores(x, value, range(3), [0])),
    ("KeyCache.extend", "queries", lambda value: cached(queries=value)),
    ("KeyCache.extend", "keys", lambda value: cached(keys=value)),
]
WITH_VECTOR = [
    (
        "equivariance_gap",
        "the function's output",
        lambda value: posenc.equivariance_gap(lambda rows: value, x, [0, 1, 2]),
    ),
    ("shift_encoding", "encoding", lambda value: posenc.shift_encoding(value, 1)),
    ("lookup_gradient", "upstream", lambda value: posenc.lookup_gradient([0], value, 3)),
    (
        "relative_errors",
        "q",
        lambda value: posenc.relative_errors(posenc.rope, value, eye[0], [1], [1]),
    ),
    (
        "relative_errors",
        "k",
        lambda value: posenc.relative_errors(posenc.rope, eye[0], value, [1], [1]),
    ),
    ("convert_layout", "weight", lambda value: posenc.convert_layout(value, 1, to="half")),
]
WITH_TENSOR = [
    *WITH_MATRIX,
    *WITH_VECTOR,
    ("softmax", "scores", posenc.softmax),
    ("round_to_bfloat16", "x", posenc.round_to_bfloat16),
    ("round_to_float16", "x", posenc.round_to_float16),
]
WITH_INTEGERS = [
    ("lookup", "positions", lambda value: posenc.lookup(table, value)),
    (
        "lookup_gradient",
        "positions",
        lambda value: posenc.lookup_gradient(value, np.zeros((1, 4)), 8),
    ),
    (
        "LearnedPositions.lookup",
        "positions",
        lambda value: posenc.LearnedPositions(8, 4).lookup(value),
    ),
    (
        "LearnedPositions.gradient",
        "positions",
        lambda value: posenc.LearnedPositions(8, 4).gradient(value, np.zeros((1, 4))),
    ),
    ("t5_bucket", "relative_position", posenc.t5_bucket),
    (
        "equivariance_gap",
        "permutation",
        lambda value: posenc.equivariance_gap(np.tanh, x, value),
    ),
]
WITH_ROWS = [entry for entry in WITH_INTEGERS if entry[1] == "positions"]
WITH_DTYPE = [
    ("sinusoidal_encoding", "dtype", lambda value: posenc.sinusoidal_encoding(1, 4, dtype=value)),
    ("sinusoidal_table", "dtype", lambda value: posenc.sinusoidal_table(1, 4, dtype=value)),
    ("timing_signal", "dtype", lambda value: posenc.timing_signal(1, 4, dtype=value)),
]
WITH_OUT = [
    ("sinusoidal_table", "out", lambda value: posenc.sinusoidal_table(3, 4, out=value)),
    ("rope", "out", lambda value: posenc.rope(x, range(3), out=value)),
    ("rope_2d", "out", lambda value: posenc.rope_2d(x, range(3), range(3), out=value)),
]
WITH_FLAG = [
    (
        "self_attention",
        "causal",
        lambda value: posenc.self_attention(x, eye, eye, eye, causal=value),
    ),
    ("t5_bucket", "bidirectional", lambda value: posenc.t5_bucket(-1, bidirectional=value)),
    *each_method("truncate", ["yarn"]),
]
WITH_FUNCTION = [
    ("equivariance_gap", "function", lambda value: posenc.equivariance_gap(value, x, [0, 1, 2])),
    (
        "relative_errors",
        "rope_function",
        lambda value: posenc.relative_errors(value, eye[0], eye[0], [1], [1]),
    ),
]
LAYOUTS = "layout must be one of interleaved, half; got"
METHODS = "method must be one of linear, ntk, dynamic, yarn, llama3, longrope; got"
FORMATS = "dtype must be one of bfloat16, float16, float32, float64; got"
ENCODINGS = "encoding must be one of learned, sinusoidal, rope, t5, alibi, none; got"
TASKS = "task must be one of copy-1, copy-3, index-mod-4; got"
EXTENSIONS = "method must be one of none, pi, ntk, by-parts, log-n; got"
WITH_NAME = {
    "sinusoidal_encoding, layout": (
        LAYOUTS,
        lambda name: posenc.sinusoidal_encoding(1, 4, layout=name),
    ),
    "sinusoidal_table, layout": (LAYOUTS, lambda name: posenc.sinusoidal_table(1, 4, layout=name)),
    "timing_signal, layout": (LAYOUTS, lambda name: posenc.timing_signal(1, 4, layout=name)),
    "rope, layout": (LAYOUTS, lambda name: posenc.rope(x, range(3), layout=name)),
    "rope_2d, layout": (LAYOUTS, lambda name: posenc.rope_2d(x, range(3), range(3), layout=name)),
    "rope_scores, layout": (
        LAYOUTS,
        lambda name: posenc.rope_scores(x, x, range(3), range(3), layout=name),
    ),
    "KeyCache, layout": (LAYOUTS, lambda name: cached(layout=name)),
    "convert_layout, to": (LAYOUTS, lambda name: posenc.convert_layout(table, 2, to=name)),
    "partial_frequencies, denominator": (
        "denominator must be one of rotary_dim, d; got",
        lambda name: posenc.partial_frequencies(8, 4, denominator=name),
    ),
    "scaled_frequencies, method": (
        METHODS,
        lambda name: posenc.scaled_frequencies(8, name, **ORIGINAL),
    ),
    "distinct_positions, dtype": (
        FORMATS,
        lambda name: posenc.distinct_positions(0, 9, name),
    ),
    "lab.AttentionModel, encoding": (ENCODINGS, model),
    "lab.run, encodings": (ENCODINGS, lambda name: run(encodings=["none", name])),
    "lab.run, tasks": (TASKS, lambda name: run(tasks=["copy-1", name])),
    "lab.draw_task, task": (TASKS, draw),
    "lab.extend, method": (EXTENSIONS, lambda name: lab.extend(model("rope"), name, 2)),
}

CASES = {}


def refuse(name, call, exception, *fragments):
    assert name not in CASES, name
    CASES[name] = (call, exception, fragments)


def refuse_each(calls, wrong):
    """Add one case for each function and each wrong value."""
    for name, argument, function in calls:
        for value, exception, *fragments in wrong:
            shown = repr(value).replace("\n", " ")[:30]
            refuse(
                f"{name}, {argument} {type(value).__name__} {shown}",
                lambda value=value, function=function: function(value),
                exception,
                *(fragment.format(name=argument) for fragment in fragments),
            )


def refuse_names(calls, wrong):
    """Add one case for each function and each name that it does not know."""
    for name, (message, function) in calls.items():
        for value in wrong:
            refuse(
                f"{name} {value!r}",
                lambda value=value, function=function: function(value),
                ValueError,
                message,
                repr(value),
            )


refuse_each(
    [*WITH_SIZE, *WITH_ROTARY_SIZE],
    [(5, ValueError, "{name} must be even", "(sine, cosine) pairs", "got 5")],
)
refuse_each(
    [*WITH_SIZE, *WITH_COUNT, *WITH_LENGTH, *WITH_ROTARY_SIZE],
    [
        (0, ValueError, "{name} must be at least 1, got 0"),
        (-4, ValueError, "{name} must be at least 1, got -4"),
    ],
)
refuse_each(
    [*WITH_SIZE, *WITH_COUNT, *WITH_LENGTH, *WITH_INTEGER, *WITH_ROTARY_SIZE],
    [
        (4.0, TypeError, "{name} must be an integer, got 4.0"),
        (True, TypeError, "{name} must be an integer, got True"),
        (np.True_, TypeError, "{name} must be an integer, got"),
        ("4", TypeError, "{name} must be an integer, got '4'"),
        (nan, TypeError, "{name} must be an integer, got nan"),
        (inf, TypeError, "{name} must be an integer, got inf"),
        ([4], TypeError, "{name} must be an integer, got [4]"),
    ],
)
refuse_each(WITH_SIZE, [(None, TypeError, "{name} must be an integer, got None")])
refuse_each(
    [*WITH_COUNT, *WITH_INTEGER], [(None, TypeError, "{name} must be an integer, got None")]
)
refuse_each(WITH_LENGTH, [(2**1024, ValueError, "{name} must be at most 9007199254740992")])
refuse_each(
    [*WITH_BASE, *WITH_POSITIVE],
    [
        (0, ValueError, "{name} must be positive, got 0"),
        (-10_000.0, ValueError, "{name} must be positive, got -10000"),
    ],
)
refuse_each(
    [*WITH_BASE, *WITH_POSITIVE, *WITH_FACTOR, *WITH_WEIGHT, *WITH_NUMBER],
    [
        (nan, ValueError, "{name} must be finite, got nan"),
        (inf, ValueError, "{name} must be finite, got inf"),
        (-inf, ValueError, "{name} must be finite, got -inf"),
        (beyond_float, ValueError, "{name} must be finite"),
        (True, TypeError, "{name} must be a real number, got True"),
        ("10000", TypeError, "{name} must be a real number, got '10000'"),
        (1j, TypeError, "{name} must be a real number, got 1j"),
        ([10_000.0], TypeError, "{name} must be a real number, got [10000.0]"),
        (np.array([10_000.0]), TypeError, "{name} must be a real number, got array"),
    ],
)
refuse_each(WITH_BASE, [(None, TypeError, "base must be a real number, got None")])
refuse_each(
    WITH_FACTOR,
    [
        (0.99, ValueError, "factor must be at least 1, got 0.99"),
        (0, ValueError, "factor must be at least 1, got 0"),
        (-2, ValueError, "factor must be at least 1, got -2"),
    ],
)
refuse_each(WITH_WEIGHT, [(-0.1, ValueError, "{name} must be at least 0, got -0.1")])
refuse_each(
    [*WITH_REALS, *WITH_EXACT],
    [
        ([nan], ValueError, "{name} must be finite"),
        ([0, -inf], ValueError, "{name} must be finite"),
        ([0.5, beyond_float], ValueError, "{name} must be finite"),
        ([True], TypeError, "{name} must hold real numbers, got dtype bool"),
        (["1"], TypeError, "{name} must hold real numbers, got dtype <U1"),
        ([1j], TypeError, "{name} must hold real numbers, got dtype complex128"),
        ([None], TypeError, "{name} must hold real numbers, got dtype object"),
        (np.zeros(1, "datetime64[s]"), TypeError, "{name} must hold real numbers, got dtype date"),
        (ragged, ValueError, "{name} must be a rectangular array"),
    ],
)
refuse_each(WITH_REALS, [([beyond_float], ValueError, "{name} must be finite")])
refuse_each(WITH_EXACT, [(3, ValueError, "{name} must have at least one axis, got a single")])
refuse_each(
    WITH_TENSOR,
    [
        ([[True, False]], TypeError, "{name} must hold real numbers, got dtype bool"),
        ([["a", "b"]], TypeError, "{name} must hold real numbers, got dtype <U1"),
        ("1", TypeError, "{name} must hold real numbers, got dtype <U1"),
        ([[1j, 1.0]], TypeError, "{name} must hold real numbers, got dtype complex128"),
        (None, TypeError, "{name} must hold real numbers, got dtype object"),
        (ragged, ValueError, "{name} must be a rectangular array"),
    ],
)
refuse_each([*WITH_MATRIX, *WITH_VECTOR], [(1.0, ValueError, "{name} must have", "got", "()")])
refuse_each(WITH_MATRIX, [(np.zeros(4), ValueError, "{name} must have", "2 axes", "(4,)")])
refuse_each(
    WITH_INTEGERS,
    [
        ([1.0], TypeError, "{name} must hold integers, got dtype float64"),
        ([nan], TypeError, "{name} must hold integers, got dtype float64"),
        ([True], TypeError, "{name} must hold integers, got dtype bool"),
        (["1"], TypeError, "{name} must hold integers, got dtype <U1"),
        ([None], TypeError, "{name} must hold integers, got dtype object"),
        ([[0, 1], [2]], ValueError, "{name} must be a rectangular array"),
    ],
)
refuse_each(
    WITH_ROWS,
    [
        ([8], IndexError, "rows 0..7, got position 8"),
        ([-1], IndexError, "rows 0..7, got position -1"),
        ([2**70], IndexError, f"rows 0..7, got position {2**70}"),
    ],
)
refuse_each(
    WITH_DTYPE,
    [
        (int, TypeError, "dtype must be a real floating type, got int64"),
        (bool, TypeError, "dtype must be a real floating type, got bool"),
        (np.complex64, TypeError, "dtype must be a real floating type, got complex64"),
        ("floaty", TypeError, "dtype must be a real floating type, got 'floaty'"),
        (True, TypeError, "dtype must be a real floating type, got True"),
        (nan, TypeError, "dtype must be a real floating type, got nan"),
        ([nan], TypeError, "dtype must be a real floating type, got [nan]"),
    ],
)
refuse_each(
    WITH_OUT,
    [
        (np.zeros((4, 3)), ValueError, "out must have shape (3, 4), got (4, 3)"),
        (np.zeros((3, 4), int), TypeError, "out.dtype must be a real floating type, got int64"),
        (np.zeros((3, 4), bool), TypeError, "out.dtype must be a real floating type, got bool"),
        ([[0.0] * 4] * 3, TypeError, "out must be an array, got list"),
        (read_only, ValueError, "out must be writeable"),
        (True, TypeError, "out must be an array, got bool"),
    ],
)
refuse_each(
    WITH_FLAG,
    [
        (value, TypeError, f"{{name}} must be True or False, got {value!r}")
        for value in (1, None, "no", nan, [True])
    ],
)
refuse_each(
    WITH_FUNCTION,
    [
        (value, TypeError, f"{{name}} must be a function, got {value!r}")
        for value in (None, "rope", True, nan)
    ],
)
refuse_names(WITH_NAME, ["halves", "", None, True, nan, 3, ["half"], np.array(["half", "half"])])
for name in ("YaRN", "pi"):
    refuse_names({"scaled_frequencies, method": WITH_NAME["scaled_frequencies, method"]}, [name])

for method, needed in NEEDED.items():
    for missing in needed:
        refuse(
            f"scaled_frequencies, {method} without {missing}",
            lambda method=method, missing=missing: scaled(method, **{missing: None}),
            TypeError,
            f"method '{method}' needs {missing}",
        )
    for foreign, (owner, value) in OWNERS.items():
        if owner != method:
            refuse(
                f"scaled_frequencies, {method} with {foreign}",
                lambda method=method, foreign=foreign, value=value: scaled(
                    method, **{foreign: value}
                ),
                ValueError,
                f"{foreign} belongs to method '{owner}', got it with '{method}'",
            )
for argument, method, values, fragment in [
    ("d_model", "ntk", [2], "must be at least 4, got {}"),
    ("d_model", "dynamic", [2], "must be at least 4, got {}"),
    ("base", "yarn", [1, 0.5], "must be greater than 1, so that"),
    ("beta_fast", "yarn", [0.5, -1, 0], "must be at least 1, got {}"),
    ("low_frequency_factor", "llama3", [-1], "must be at least 0, got {}"),
    ("high_frequency_factor", "llama3", [1, 0.5, 0], "must be greater than 1, the low_frequency"),
]:
    refuse_each(
        each_method(argument, [method]),
        [(value, ValueError, argument, fragment.format(value)) for value in values],
    )

for width in (0, 3):
    odd = np.zeros((3, width))
    fragment = "at least 1, got 0" if width == 0 else "must be even"
    refuse(
        f"rope, width {width}", lambda odd=odd: posenc.rope(odd, [0, 1, 2]), ValueError, fragment
    )
    refuse(
        f"rope_scores, width {width}",
        lambda odd=odd: posenc.rope_scores(odd, odd, [0, 1, 2], [0, 1, 2]),
        ValueError,
        fragment,
    )
    refuse(
        f"rope_2d, width {width}",
        lambda odd=odd: posenc.rope_2d(odd, [0, 1, 2], [0, 1, 2]),
        ValueError,
        fragment,
    )
    refuse(
        f"KeyCache.extend, width {width}", lambda odd=odd: cached(odd, odd), ValueError, fragment
    )
    refuse(
        f"shift_encoding, width {width}",
        lambda odd=odd: posenc.shift_encoding(odd, 1),
        ValueError,
        fragment,
    )

for name, positions in {
    "too few": range(2),
    "too many": range(4),
    "one for all": [0],
    "none": [],
    "a number": 3,
    "a column": [[0], [1], [2]],
    "a batch that x lacks": np.zeros((2, 3)),
}.items():
    refuse(
        f"rope, positions {name}",
        lambda positions=positions: posenc.rope(x, positions),
        ValueError,
        "positions",
        f"{np.shape(positions)}",
        "(3, 4)",
    )
    refuse(
        f"rope_2d, rows {name}",
        lambda positions=positions: posenc.rope_2d(x, positions, range(3)),
        ValueError,
        "rows",
        f"{np.shape(positions)}",
        "(3, 4)",
    )
    refuse(
        f"rope_2d, columns {name}",
        lambda positions=positions: posenc.rope_2d(x, range(3), positions),
        ValueError,
        "columns",
        f"{np.shape(positions)}",
        "(3, 4)",
    )
for name, shape, fragment in [
    ("(batch, seq) where batch equals heads", (2, 5), "pass positions as (batch, 1, seq)"),
    ("of another batch", (3, 1, 5), "expected (5,) or something that broadcasts to (2, 2, 5)"),
    ("of another number of heads", (2, 3, 5), "broadcasts to (2, 2, 5)"),
    ("one for a whole sequence", (2, 1, 1), "broadcasts to (2, 2, 5)"),
    ("with the axes of x", (2, 2, 5, 4), "pass positions as (batch, 1, seq)"),
]:
    refuse(
        f"rope of heads, positions {name}",
        lambda shape=shape: posenc.rope(heads, np.zeros(shape)),
        ValueError,
        f"{shape}",
        "(2, 2, 5, 4)",
        fragment,
    )
    refuse(
        f"rope_scores of heads, positions {name}",
        lambda shape=shape: posenc.rope_scores(heads, heads, np.arange(5), np.zeros(shape)),
        ValueError,
        "key_positions",
        f"{shape}",
        fragment,
    )

refuse(
    "self_attention, width of w_q",
    lambda: posenc.self_attention(x, np.eye(3), eye, eye),
    ValueError,
    "first axis of w_q must be d_model: expected 4, got 3",
)
refuse(
    "self_attention, width of w_v",
    lambda: posenc.self_attention(x, eye, eye, np.eye(3)),
    ValueError,
    "first axis of w_v must be d_model: expected 4, got 3",
)
refuse(
    "self_attention, w_q and w_k",
    lambda: posenc.self_attention(x, eye, eye[:, :3], eye),
    ValueError,
    "last axis of w_k must be that of w_q: expected 4, got 3",
)
refuse(
    "self_attention, no columns",
    lambda: posenc.self_attention(x, eye[:, :0], eye[:, :0], eye),
    ValueError,
    "last axis of w_k must be at least 1, got 0",
)
refuse(
    "self_attention, a stack of projections",
    lambda: posenc.self_attention(x, np.zeros((2, 4, 4)), eye, eye),
    ValueError,
    "w_q must have 2 axes, got shape (2, 4, 4)",
)
for name, permutation in {
    "repeated": [0, 0, 2],
    "too short": [1, 0],
    "from one": [1, 2, 3],
    "negative": [0, 1, -1],
    "huge": [0, 1, 2**70],
}.items():
    refuse(
        f"equivariance_gap, permutation {name}",
        lambda permutation=permutation: posenc.equivariance_gap(np.tanh, x, permutation),
        ValueError,
        f"permutation must hold each of 0..2 once, got {permutation}",
    )
refuse(
    "equivariance_gap, no rows",
    lambda: posenc.equivariance_gap(np.tanh, x[:0], []),
    ValueError,
    "x must hold at least one number",
)
refuse(
    "equivariance_gap, rows lost",
    lambda: posenc.equivariance_gap(lambda rows: rows[1:], x, [2, 0, 1]),
    ValueError,
    "rows of the function's output: expected 3, got 2",
)
refuse(
    "sinusoidal_table, negative length",
    lambda: posenc.sinusoidal_table(-1, 4),
    ValueError,
    "length must be at least 0, got -1",
)
for start in (2**53, 2**70):
    refuse(
        f"sinusoidal_table, start {start}",
        lambda start=start: posenc.sinusoidal_table(3, 4, start=start),
        ValueError,
        f"start must be at most {2**53 - 3}, got {start}",
    )
refuse(
    "sinusoidal_table, start below float64's integers",
    lambda: posenc.sinusoidal_table(3, 4, start=-(2**53) - 1),
    ValueError,
    f"start must be at least {-(2**53)}",
)
for name, start, exception, fragment in [
    ("past the end", 6, IndexError, "table has rows 0..7, got position 8"),
    ("far past the end", 2**63, IndexError, "table has rows 0..7, got position 9"),
    ("negative", -1, ValueError, "start must be at least 0, got -1"),
]:
    refuse(
        f"add_positions, start {name}",
        lambda start=start: posenc.add_positions(x, table, start=start),
        exception,
        fragment,
    )
refuse(
    "add_positions, widths",
    lambda: posenc.add_positions(x, np.zeros((8, 1))),
    ValueError,
    "last axis of table must be d_model: expected 4, got 1",
)
refuse(
    "add_positions, a stack of tables",
    lambda: posenc.add_positions(x, np.zeros((8, 3, 4))),
    ValueError,
    "table must have 2 axes, got shape (8, 3, 4)",
)
refuse(
    "lookup, a stack of tables",
    lambda: posenc.lookup(np.zeros((8, 3, 4)), [0]),
    ValueError,
    "table must have 2 axes, got shape (8, 3, 4)",
)
refuse(
    "lookup_gradient, positions that do not fit",
    lambda: posenc.lookup_gradient([0, 1], np.zeros((3, 4)), 8),
    ValueError,
    "positions of shape (2,) do not broadcast to (3,)",
)
refuse(
    "lookup_gradient, more positions than upstream",
    lambda: posenc.lookup_gradient([[0], [1]], np.zeros((1, 4)), 8),
    ValueError,
    "positions of shape (2, 1) do not broadcast to (1,)",
)
refuse(
    "rope_scores, widths",
    lambda: posenc.rope_scores(x, x[:, :2], range(3), range(3)),
    ValueError,
    "last axis of keys must be that of queries: expected 4, got 2",
)
refuse(
    "rope_scores, batches",
    lambda: posenc.rope_scores(np.zeros((2, 3, 4)), np.zeros((3, 3, 4)), range(3), range(3)),
    ValueError,
    "leading axes of queries and keys do not broadcast: got shapes (2, 3, 4) and (3, 3, 4)",
)
refuse(
    "relative_errors, lengths",
    lambda: posenc.relative_errors(posenc.rope, eye[0], eye[0, :2], [1], [1]),
    ValueError,
    "k must have shape (4,), got (2,)",
)
refuse(
    "relative_errors, matrices",
    lambda: posenc.relative_errors(posenc.rope, eye[:1], eye[:1], [1], [1]),
    ValueError,
    "must have shape (4,), got (1, 4)",
)
refuse(
    "relative_errors, no offsets",
    lambda: posenc.relative_errors(posenc.rope, eye[0], eye[0], [], [1]),
    ValueError,
    "offsets must hold at least one number",
)
refuse(
    "relative_errors, no shifts",
    lambda: posenc.relative_errors(posenc.rope, eye[0], eye[0], [1], []),
    ValueError,
    "shifts must hold at least one number",
)
for name, function, got in [
    ("a number", lambda rows, positions: 1.0, "()"),
    ("one row", lambda rows, positions: rows[:1], "(1, 4)"),
]:
    refuse(
        f"relative_errors, function returns {name}",
        lambda function=function: posenc.relative_errors(function, eye[0], eye[0], [1, 2], [1]),
        ValueError,
        f"the function's output must have shape (2, 4), got {got}",
    )

for name, value, fragment in [
    ("too short", [1.0] * 3, "must have shape (4,), got (3,)"),
    ("a matrix", [[1.0] * 4], "must have shape (4,), got (1, 4)"),
    ("a number", 2.0, "must have shape (4,), got ()"),
    ("zero", [1.0, 1.0, 0.0, 1.0], "must be positive, got 0.0"),
    ("negative", [1.0, 1.0, -2.0, 1.0], "must be positive, got -2.0"),
]:
    for function, argument, call in WITH_FACTORS:
        refuse(
            f"{function}, {argument} {name}",
            lambda value=value, call=call: call(value),
            ValueError,
            f"{argument} {fragment}",
        )
for name, call in {
    "rope": lambda **options: posenc.rope(np.ones((1, 8)), [0], **options),
    "KeyCache": lambda **options: cached(np.ones((1, 8)), np.ones((1, 8)), **options),
}.items():
    refuse(
        f"{name}, rotary_dim beyond the width",
        lambda call=call: call(rotary_dim=10),
        ValueError,
        "rotary_dim must be at most the 8 dimensions there are, got 10",
    )
    refuse(
        f"{name}, frequencies of another size",
        lambda call=call: call(frequencies=[1.0]),
        ValueError,
        "frequencies must have shape (4,), got (1,)",
    )
    refuse(
        f"{name}, frequencies of the whole width",
        lambda call=call: call(frequencies=[1.0] * 4, rotary_dim=4),
        ValueError,
        "frequencies must have shape (2,), got (4,)",
    )
refuse(
    "partial_frequencies, rotary_dim beyond the width",
    lambda: posenc.partial_frequencies(8, 10),
    ValueError,
    "rotary_dim must be at most the 8 dimensions there are, got 10",
)
for width in (2, 6):
    refuse(
        f"rope_2d, width {width}",
        lambda width=width: posenc.rope_2d(np.ones((1, width)), [0], [0]),
        ValueError,
        f"the last axis of x must be a multiple of 4, pairs for rows and for columns; got {width}",
    )
for rows, n_heads in [(8, 3), (8, 8), (6, 2), (7, 1)]:
    refuse(
        f"convert_layout, {rows} rows of weight, n_heads {n_heads}",
        lambda rows=rows, n_heads=n_heads: posenc.convert_layout(
            np.ones((rows, 4)), n_heads, to="half"
        ),
        ValueError,
        f"the first axis of weight must be a multiple of {2 * n_heads}, pairs of dimensions",
    )
refuse(
    "convert_layout, no rows of weight",
    lambda: posenc.convert_layout(x[:0], 1, to="half"),
    ValueError,
    "the first axis of weight must be at least 1, got 0",
)
for start in (2**53 + 1, -(2**53) - 1, 2**70):
    refuse(
        f"KeyCache, start {start}",
        lambda start=start: posenc.KeyCache(start),
        ValueError,
        f"start must be at {'least -' if start < 0 else 'most '}{2**53}, got {start}",
    )
refuse(
    "KeyCache.extend, number of queries",
    lambda: cached(np.ones((2, 4)), np.ones((1, 4))),
    ValueError,
    "number of queries must be that of keys: expected 1, got 2",
)
for count, fragment in [(1, "at most 0, got 1"), (-1, "at least 0, got -1")]:
    refuse(
        f"KeyCache.drop, count {count}",
        lambda count=count: posenc.KeyCache().drop(count),
        ValueError,
        f"count must be {fragment}",
    )
for scores, axis, fragment in [
    ([1.0], 1, "at most 0, got 1"),
    ([1.0], -2, "at least -1, got -2"),
    (x, 2, "at most 1, got 2"),
    (x, 2**70, f"at most 1, got {2**70}"),
    (1.0, 1, "at most 0, got 1"),
]:
    refuse(
        f"softmax, axis {axis} of shape {np.shape(scores)}",
        lambda scores=scores, axis=axis: posenc.softmax(scores, axis=axis),
        ValueError,
        f"axis must be {fragment}",
    )
for value, exception, fragment in [
    ("x", TypeError, "rng must be a numpy.random.Generator or an integer, got 'x'"),
    (nan, TypeError, "rng must be a numpy.random.Generator or an integer, got nan"),
    (True, TypeError, "rng must be a numpy.random.Generator or an integer, got True"),
    (-1, ValueError, "rng must be at least 0, got -1"),
]:
    refuse(
        f"LearnedPositions, rng {value!r}",
        lambda value=value: posenc.LearnedPositions(8, 4, value),
        exception,
        fragment,
    )
for shapes, fragment in [
    (((5, 4), (1, 4), (4, 3), (4, 3)), "rows of position_vectors must be x's: expected 5, got 1"),
    (((5, 4), (6, 4), (4, 3), (4, 3)), "rows of position_vectors must be x's: expected 5, got 6"),
    (((5, 4), (5, 2), (4, 3), (4, 3)), "axis of position_vectors must be x's: expected 4, got 2"),
    (((2, 5, 4), (3, 5, 4), (4, 3), (4, 3)), "leading axes of x and position_vectors do not"),
    (((5, 4), (5, 4), (2, 3), (4, 3)), "first axis of w_q must be d_model: expected 4, got 2"),
    (((5, 4), (5, 4), (4, 3), (2, 3)), "first axis of w_k must be d_model: expected 4, got 2"),
    (((5, 4), (5, 4), (4, 3), (4, 2)), "last axis of w_k must be that of w_q: expected 3, got 2"),
    (((5, 4), (5, 4), (4, 0), (4, 0)), "last axis of w_k must be at least 1, got 0"),
]:
    refuse(
        f"additive_score_terms, shapes {shapes}",
        lambda shapes=shapes: posenc.additive_score_terms(*[np.ones(shape) for shape in shapes]),
        ValueError,
        fragment,
    )
for name, call in {
    "relative_positions": posenc.relative_positions,
    "alibi_bias": lambda queries, keys: posenc.alibi_bias(2, queries, keys),
}.items():
    refuse(
        f"{name}, leading axes",
        lambda call=call: call(np.zeros((2, 3)), np.zeros((4, 3))),
        ValueError,
        "leading axes of query_positions and key_positions do not broadcast",
    )
    refuse(
        f"{name}, a difference beyond float64",
        lambda call=call: call([-1e308], [1e308]),
        ValueError,
        "key_positions - query_positions must be finite",
    )
for options, fragment in [
    ({"num_buckets": 2}, "num_buckets must be at least 4, got 2"),
    ({"num_buckets": 0}, "num_buckets must be at least 4, got 0"),
    ({"num_buckets": -4}, "num_buckets must be at least 4, got -4"),
    ({"num_buckets": 33}, "num_buckets must be a multiple of 2, one half for each direction"),
    ({"max_distance": 8}, "max_distance must be at least 9, got 8"),
    ({"max_distance": -1}, "max_distance must be at least 9, got -1"),
    ({"max_distance": 2**63}, "max_distance must be at most"),
    ({"bidirectional": False, "num_buckets": 1}, "num_buckets must be at least 2, got 1"),
    ({"bidirectional": False, "max_distance": 16}, "max_distance must be at least 17, got 16"),
]:
    refuse(
        f"t5_bucket, {options}",
        lambda options=options: posenc.t5_bucket(-1, **options),
        ValueError,
        fragment,
    )
for low, high, fragment in [
    (2, 1, "high must be at least 2, got 1"),
    (0, 2**60, f"high must be at most {2**53}, got {2**60}"),
    (-(2**53) - 1, 0, f"low must be at least {-(2**53)}, got"),
]:
    refuse(
        f"distinct_positions, low {low}, high {high}",
        lambda low=low, high=high: posenc.distinct_positions(low, high, "float16"),
        ValueError,
        fragment,
    )
for value in ("bf16", np.int8, np.dtype(complex)):
    shown = value if isinstance(value, str) else np.dtype(value).name
    refuse(
        f"distinct_positions, dtype {shown}",
        lambda value=value: posenc.distinct_positions(0, 9, value),
        ValueError,
        FORMATS,
        repr(shown),
    )
refuse(
    "longrope_attention_factor, original_length 1",
    lambda: posenc.longrope_attention_factor(2, 1),
    ValueError,
    "original_length must be at least 2, got 1",
)
refuse(
    "minimum_base, d_model 2",
    lambda: posenc.minimum_base(8, 2),
    ValueError,
    "d_model must be at least 4, got 2",
)
refuse(
    "scaled_frequencies, low_frequency_factor of the high one",
    lambda: scaled("llama3", low_frequency_factor=4),
    ValueError,
    "high_frequency_factor must be greater than 4, the low_frequency_factor; got 4",
)
for name, call, exception, fragment in [
    ("lab.draw_task, start", lambda: draw(start=-1), ValueError, "start must be at least 0"),
    (
        "lab.train, seed",
        lambda: lab.train("rope", "copy-1", steps=1, seed=-1),
        ValueError,
        "seed must be at least 0",
    ),
    (
        "lab.AttentionModel.logits, an unknown token",
        lambda: model("none").logits([[16]]),
        IndexError,
        "rows 0..15, got position 16",
    ),
    (
        "lab.accuracy, no rows that count",
        lambda: lab.accuracy(model("none"), "copy-1", 4, first=4),
        ValueError,
        "number of rows that count must be at least 1",
    ),
    (
        "lab.accuracy, longer than a learned table",
        lambda: lab.accuracy(model("learned"), "copy-1", 300),
        IndexError,
        "rows 0..255, got position 256",
    ),
    (
        "lab.extend, another encoding",
        lambda: lab.extend(model("alibi"), "pi", 2),
        ValueError,
        "encoding of the model must be one of rope; got 'alibi'",
    ),
]:
    refuse(name, call, exception, fragment)

triples = [(np.eye(4), np.eye(4), np.eye(4))]


def classify(function=np.tanh, x=x, permutations=((1, 2, 0),)):
    return posenc.classify_symmetry(function, x, permutations)


def gap(x=x, layers=triples, permutation=(1, 0), causal=True):
    return posenc.prefix_order_gap(x, layers, permutation, causal=causal)


def impossible(table=x, tolerance=0.1):
    return posenc.impossible_pairs(table, tolerance=tolerance)


def nearest(d_model=4, base=10.0, length=5):
    return posenc.nearest_repeat(d_model, base, length)


def linearity(table=x, offset=1, n_train=1):
    return posenc.shift_linearity(table, offset, n_train)


for name, (call, exception, fragments) in {
    "split_pairs: x odd": (lambda: posenc.split_pairs([1, 2, 3]), ValueError, ["even", "3"]),
    "split_pairs: x number": (lambda: posenc.split_pairs(3.0), ValueError, ["x", "1 axes"]),
    "split_pairs: x empty": (lambda: posenc.split_pairs([]), ValueError, ["at least 1", "0"]),
    "split_pairs: x text": (lambda: posenc.split_pairs("ab"), TypeError, ["x", "real"]),
    "angles: positions nan": (lambda: posenc.angles(nan, [1]), ValueError, ["positions", "nan"]),
    "angles: positions complex": (lambda: posenc.angles(1j, [1]), TypeError, ["positions"]),
    "angles: frequencies number": (
        lambda: posenc.angles(1, 2.0),
        ValueError,
        ["frequencies", "()"],
    ),
    "angles: frequencies empty": (lambda: posenc.angles(1, []), ValueError, ["frequencies"]),
    "angles: frequencies table": (lambda: posenc.angles(1, x), ValueError, ["one axis", "(3, 4)"]),
    "impossible_pairs: table odd": (
        lambda: impossible(np.zeros((2, 3))),
        ValueError,
        ["last axis of table", "3"],
    ),
    "impossible_pairs: table row": (lambda: impossible([0, 1]), ValueError, ["two axes", "(2,)"]),
    "impossible_pairs: table nan": (
        lambda: impossible([[nan, 1]]),
        ValueError,
        ["table", "finite"],
    ),
    "impossible_pairs: tolerance below 0": (
        lambda: impossible(tolerance=-1e-3),
        ValueError,
        ["tolerance", "-0.001"],
    ),
    "impossible_pairs: tolerance text": (
        lambda: impossible(tolerance="1"),
        TypeError,
        ["tolerance"],
    ),
    "nearest_repeat: d_model odd": (lambda: nearest(3), ValueError, ["d_model", "even", "3"]),
    "nearest_repeat: base zero": (lambda: nearest(base=0), ValueError, ["base", "positive"]),
    "nearest_repeat: length zero": (lambda: nearest(length=0), ValueError, ["length", "1", "0"]),
    "nearest_repeat: length 2.0": (lambda: nearest(length=2.0), TypeError, ["length", "2.0"]),
    "classify_symmetry: function": (lambda: classify("tanh"), TypeError, ["function", "tanh"]),
    "classify_symmetry: function's text": (lambda: classify(str), TypeError, ["output", "real"]),
    "classify_symmetry: function's shape": (
        lambda: classify(lambda rows: rows[: int(rows[0, 0])], np.arange(12).reshape(3, 4)),
        ValueError,
        ["function's output", "shape"],
    ),
    "classify_symmetry: x row": (lambda: classify(x=[1.0, 2.0]), ValueError, ["x", "2 axes"]),
    "classify_symmetry: x empty": (lambda: classify(x=np.zeros((0, 4))), ValueError, ["empty"]),
    "classify_symmetry: permutations none": (
        lambda: classify(permutations=[]),
        ValueError,
        ["permutations", "at least one"],
    ),
    "classify_symmetry: permutations flat": (
        lambda: classify(permutations=[1, 2, 0]),
        ValueError,
        ["permutations", "expected 2, got 1"],
    ),
    "classify_symmetry: permutations twice 0": (
        lambda: classify(permutations=[[0, 0, 1]]),
        ValueError,
        ["0..2", "[0, 0, 1]"],
    ),
    "causal_mean: x row": (lambda: posenc.causal_mean([1.0]), ValueError, ["x", "2 axes", "(1,)"]),
    "causal_mean: x text": (lambda: posenc.causal_mean([["a"]]), TypeError, ["x", "real"]),
    "prefix_order_gap: x row": (lambda: gap([1.0]), ValueError, ["x", "2 axes"]),
    "prefix_order_gap: x empty": (lambda: gap(np.zeros((0, 4))), ValueError, ["x", "empty"]),
    "prefix_order_gap: layers none": (lambda: gap(layers=[]), ValueError, ["layers", "at least"]),
    "prefix_order_gap: layers number": (lambda: gap(layers=1), TypeError, ["layers", "1"]),
    "prefix_order_gap: layers one triple": (
        lambda: gap(layers=triples[0]),
        ValueError,
        ["layers", "expected 3, got 4"],
    ),
    "prefix_order_gap: layers too small": (
        lambda: gap(layers=[(np.eye(3),) * 3]),
        ValueError,
        ["w_q", "expected 4, got 3"],
    ),
    "prefix_order_gap: permutation of all": (
        lambda: gap(permutation=[1, 2, 0]),
        ValueError,
        ["permutation", "0..1", "[1, 2, 0]"],
    ),
    "prefix_order_gap: causal 1": (lambda: gap(causal=1), TypeError, ["causal", "1"]),
    "shift_linearity: table row": (
        lambda: linearity([1.0, 2.0]),
        ValueError,
        ["table", "two axes"],
    ),
    "shift_linearity: offset zero": (lambda: linearity(offset=0), ValueError, ["offset", "0"]),
    "shift_linearity: offset long": (lambda: linearity(offset=2), ValueError, ["offset", "most 1"]),
    "shift_linearity: offset 1.0": (lambda: linearity(offset=1.0), TypeError, ["offset", "1.0"]),
    "shift_linearity: n_train zero": (lambda: linearity(n_train=0), ValueError, ["n_train", "0"]),
    "shift_linearity: n_train all": (
        lambda: linearity(n_train=2),
        ValueError,
        ["n_train", "most 1"],
    ),
    "toeplitz_r2: matrix row": (lambda: posenc.toeplitz_r2([1, 2]), ValueError, ["matrix", "two"]),
    "toeplitz_r2: matrix empty": (
        lambda: posenc.toeplitz_r2([[]]),
        ValueError,
        ["matrix", "empty"],
    ),
    "toeplitz_r2: matrix inf": (lambda: posenc.toeplitz_r2([[np.inf]]), ValueError, ["finite"]),
    "shift_matrix: layout": (
        lambda: posenc.shift_matrix(3, 8, layout="halves"),
        ValueError,
        ["layout must be one of interleaved, half; got 'halves'"],
    ),
    "shift_encoding: layout": (
        lambda: posenc.shift_encoding(np.zeros(8), 3, layout="halves"),
        ValueError,
        ["layout must be one of interleaved, half; got 'halves'"],
    ),
}.items():
    refuse(name, call, exception, *fragments)

refuse(
    "KeyCache, an option that rope has not",
    lambda: posenc.KeyCache(bas=3.0),
    ValueError,
    "an option must be one of base, layout, rotary_dim, frequencies; got 'bas'",
)
refuse(
    "KeyCache, out",
    lambda: posenc.KeyCache(out=np.zeros((1, 4))),
    ValueError,
    "an option must be one of",
)
refuse(
    "KeyCache.extend, past what float64 tells apart",
    lambda: posenc.KeyCache(2**53).extend(np.zeros((2, 4)), np.zeros((2, 4))),
    ValueError,
    "position after these tokens must be at most",
)
