"""Arguments that cannot be served raise one error that says what was got and what was expected."""

import numpy as np
import pytest

import posenc

eye, nan, inf = np.eye(4), np.nan, np.inf
x, table = np.zeros((3, 4)), np.zeros((8, 4))
heads = np.zeros((2, 2, 5, 4))
ragged = [[1.0, 2.0], [3.0]]
beyond_float = 10**400
read_only = np.zeros((3, 4))
read_only.flags.writeable = False

WITH_SIZE = {
    "inverse_frequencies": posenc.inverse_frequencies,
    "wavelengths": posenc.wavelengths,
    "sinusoidal_encoding": lambda size, **options: posenc.sinusoidal_encoding(1, size, **options),
    "sinusoidal_table": lambda size, **options: posenc.sinusoidal_table(3, size, **options),
    "shift_matrix": lambda size, **options: posenc.shift_matrix(1, size, **options),
    "position_kernel": lambda size, **options: posenc.position_kernel(1, size, **options),
}
WITH_BASE = {
    **{name: lambda base, call=call: call(4, base=base) for name, call in WITH_SIZE.items()},
    "shift_encoding": lambda base: posenc.shift_encoding(x, 1, base=base),
    "rope": lambda base: posenc.rope(x, range(3), base=base),
    "rope_scores": lambda base: posenc.rope_scores(x, x, range(3), range(3), base=base),
}
WITH_POSITIONS = {
    "sinusoidal_encoding": ("positions", lambda value: posenc.sinusoidal_encoding(value, 4)),
    "position_kernel": ("offsets", lambda value: posenc.position_kernel(value, 4)),
    "rope": ("positions", lambda value: posenc.rope(x, value)),
    "rope_scores queries": (
        "positions",
        lambda value: posenc.rope_scores(x, x, value, range(3)),
    ),
    "rope_scores keys": ("positions", lambda value: posenc.rope_scores(x, x, range(3), value)),
    "relative_errors offsets": (
        "offsets",
        lambda value: posenc.relative_errors(posenc.rope, eye[0], eye[0], value, [1]),
    ),
    "relative_errors shifts": (
        "shifts",
        lambda value: posenc.relative_errors(posenc.rope, eye[0], eye[0], [1], value),
    ),
}
WITH_OFFSET = {
    "rotation_matrix": ("angle", posenc.rotation_matrix),
    "shift_matrix": ("offset", lambda value: posenc.shift_matrix(value, 4)),
    "shift_encoding": ("offset", lambda value: posenc.shift_encoding(x, value)),
}
WITH_TENSOR = {
    "softmax": ("scores", posenc.softmax),
    "self_attention x": ("x", lambda value: posenc.self_attention(value, eye, eye, eye)),
    "self_attention w_q": ("w_q", lambda value: posenc.self_attention(x, value, eye, eye)),
    "self_attention w_k": ("w_k", lambda value: posenc.self_attention(x, eye, value, eye)),
    "self_attention w_v": ("w_v", lambda value: posenc.self_attention(x, eye, eye, value)),
    "equivariance_gap x": ("x", lambda value: posenc.equivariance_gap(np.tanh, value, [0])),
    "equivariance_gap function": (
        "the function's output",
        lambda value: posenc.equivariance_gap(lambda rows: value, x, [0, 1, 2]),
    ),
    "add_positions x": ("x", lambda value: posenc.add_positions(value, table)),
    "add_positions table": ("table", lambda value: posenc.add_positions(x, value)),
    "shift_encoding": ("encoding", lambda value: posenc.shift_encoding(value, 1)),
    "lookup": ("table", lambda value: posenc.lookup(value, [0])),
    "lookup_gradient": ("upstream", lambda value: posenc.lookup_gradient([0], value, 3)),
    "rope": ("x", lambda value: posenc.rope(value, [0])),
    "rope_scores queries": ("queries", lambda value: posenc.rope_scores(value, x, [0], [0])),
    "rope_scores keys": ("keys", lambda value: posenc.rope_scores(x, value, range(3), [0])),
    "relative_errors q": (
        "q",
        lambda value: posenc.relative_errors(posenc.rope, value, eye[0], [1], [1]),
    ),
    "relative_errors k": (
        "k",
        lambda value: posenc.relative_errors(posenc.rope, eye[0], value, [1], [1]),
    ),
}
WITH_ROWS = {
    "lookup": lambda value: posenc.lookup(table, value),
    "lookup_gradient": lambda value: posenc.lookup_gradient(value, np.zeros((1, 4)), 8),
    "LearnedPositions.lookup": lambda value: posenc.LearnedPositions(8, 4).lookup(value),
    "LearnedPositions.gradient": lambda value: posenc.LearnedPositions(8, 4).gradient(
        value, np.zeros((1, 4))
    ),
}
WITH_LAYOUT = {
    "sinusoidal_encoding": lambda layout: posenc.sinusoidal_encoding(1, 4, layout=layout),
    "sinusoidal_table": lambda layout: posenc.sinusoidal_table(1, 4, layout=layout),
    "rope": lambda layout: posenc.rope(x, range(3), layout=layout),
}
WITH_DTYPE = {
    "sinusoidal_encoding": lambda dtype: posenc.sinusoidal_encoding(1, 4, dtype=dtype),
    "sinusoidal_table": lambda dtype: posenc.sinusoidal_table(1, 4, dtype=dtype),
}

CASES = {}


def refuse(name, call, exception, *fragments):
    assert name not in CASES, name
    CASES[name] = (call, exception, fragments)


def refuse_each(calls, wrong, prefix=None):
    """Add one case for each function and each wrong value."""
    for name, call in calls.items():
        argument, function = call if isinstance(call, tuple) else (prefix, call)
        for value, exception, *fragments in wrong:
            shown = repr(value).replace("\n", " ")[:30]
            refuse(
                f"{name}, {argument} {type(value).__name__} {shown}",
                lambda value=value, function=function: function(value),
                exception,
                *(fragment.format(name=argument) for fragment in fragments),
            )


refuse_each(
    WITH_SIZE,
    [
        (5, ValueError, "d_model must be even", "(sine, cosine) pairs", "got 5"),
        (0, ValueError, "d_model must be at least 1, got 0"),
        (-4, ValueError, "d_model must be at least 1, got -4"),
        (4.0, TypeError, "d_model must be an integer, got 4.0"),
        (True, TypeError, "d_model must be an integer, got True"),
        (np.True_, TypeError, "d_model must be an integer, got"),
        ("4", TypeError, "d_model must be an integer, got '4'"),
        (None, TypeError, "d_model must be an integer, got None"),
        (nan, TypeError, "d_model must be an integer, got nan"),
    ],
    "d_model",
)
refuse_each(
    WITH_BASE,
    [
        (0, ValueError, "base must be positive, got 0"),
        (-10_000.0, ValueError, "base must be positive, got -10000"),
        (nan, ValueError, "base must be finite, got nan"),
        (inf, ValueError, "base must be finite, got inf"),
        (beyond_float, ValueError, "base must be finite"),
        (True, TypeError, "base must be a real number, got True"),
        ("10000", TypeError, "base must be a real number, got '10000'"),
        (1j, TypeError, "base must be a real number, got 1j"),
        ([10_000.0], TypeError, "base must be a real number, got [10000.0]"),
        (np.array([10_000.0]), TypeError, "base must be a real number, got array"),
        (None, TypeError, "base must be a real number, got None"),
    ],
    "base",
)
refuse_each(
    WITH_POSITIONS,
    [
        ([nan], ValueError, "{name} must be finite"),
        ([-inf], ValueError, "{name} must be finite"),
        ([beyond_float], ValueError, "{name} must be finite"),
        ([True], TypeError, "{name} must hold real numbers, got dtype bool"),
        (["1"], TypeError, "{name} must hold real numbers, got dtype <U1"),
        ([1j], TypeError, "{name} must hold real numbers, got dtype complex128"),
        ([None], TypeError, "{name} must hold real numbers, got dtype object"),
        (np.zeros(1, "datetime64[s]"), TypeError, "{name} must hold real numbers, got dtype date"),
        (ragged, ValueError, "{name} must be a rectangular array"),
    ],
)
refuse_each(
    WITH_OFFSET,
    [
        (nan, ValueError, "{name} must be finite, got nan"),
        (-inf, ValueError, "{name} must be finite, got -inf"),
        (beyond_float, ValueError, "{name} must be finite"),
        (True, TypeError, "{name} must be a real number, got True"),
        ("1", TypeError, "{name} must be a real number, got '1'"),
        ([1.0], TypeError, "{name} must be a real number, got [1.0]"),
        (1j, TypeError, "{name} must be a real number, got 1j"),
    ],
)
refuse_each(
    WITH_TENSOR,
    [
        ([[True, False]], TypeError, "{name} must hold real numbers, got dtype bool"),
        ([["a", "b"]], TypeError, "{name} must hold real numbers, got dtype <U1"),
        ([[1j, 1.0]], TypeError, "{name} must hold real numbers, got dtype complex128"),
        (None, TypeError, "{name} must hold real numbers, got dtype object"),
        (ragged, ValueError, "{name} must be a rectangular array"),
    ],
)
refuse_each(
    {name: call for name, call in WITH_TENSOR.items() if name not in ("softmax",)},
    [(1.0, ValueError, "{name} must have", "got", "()")],
)
refuse_each(
    WITH_ROWS,
    [
        ([8], IndexError, "rows 0..7, got position 8"),
        ([-1], IndexError, "rows 0..7, got position -1"),
        ([2**70], IndexError, f"rows 0..7, got position {2**70}"),
        ([1.0], TypeError, "positions must hold integers, got dtype float64"),
        ([nan], TypeError, "positions must hold integers, got dtype float64"),
        ([True], TypeError, "positions must hold integers, got dtype bool"),
        (["1"], TypeError, "positions must hold integers, got dtype <U1"),
        ([None], TypeError, "positions must hold integers, got dtype object"),
        ([[0, 1], [2]], ValueError, "positions must be a rectangular array"),
    ],
    "positions",
)
refuse_each(
    WITH_LAYOUT,
    [
        (wrong, ValueError, "layout must be one of interleaved, half; got")
        for wrong in ("halves", "", None, True, ["half"], np.array(["half", "half"]))
    ],
    "layout",
)
refuse_each(
    WITH_DTYPE,
    [
        (int, TypeError, "dtype must be a real floating type, got int64"),
        (bool, TypeError, "dtype must be a real floating type, got bool"),
        (np.complex64, TypeError, "dtype must be a real floating type, got complex64"),
        ("floaty", TypeError, "floaty"),
    ],
    "dtype",
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
        f"{shape}",
        fragment,
    )

refuse("softmax, axis", lambda: posenc.softmax([1.0], axis=1), ValueError, "axis 1", "dimension 1")
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
    "equivariance_gap, permutation of floats",
    lambda: posenc.equivariance_gap(np.tanh, x, [0.0, 1.0, 2.0]),
    TypeError,
    "permutation must hold integers, got dtype float64",
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
refuse(
    "sinusoidal_table, length 3.0",
    lambda: posenc.sinusoidal_table(3.0, 4),
    TypeError,
    "length must be an integer, got 3.0",
)
refuse(
    "sinusoidal_table, start 0.5",
    lambda: posenc.sinusoidal_table(3, 4, start=0.5),
    TypeError,
    "start must be an integer, got 0.5",
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
for name, out, exception, fragment in [
    ("shape", np.zeros((4, 3)), ValueError, "out must have shape (3, 4), got (4, 3)"),
    ("integers", np.zeros((3, 4), int), TypeError, "out.dtype must be a real floating type"),
    ("a list", [[0.0] * 4] * 3, TypeError, "out must be an array, got list"),
    ("read-only", read_only, ValueError, "out must be writeable"),
]:
    refuse(
        f"sinusoidal_table, out {name}",
        lambda out=out: posenc.sinusoidal_table(3, 4, out=out),
        exception,
        fragment,
    )
for name, start, exception, fragment in [
    ("past the end", 6, IndexError, "table has rows 0..7, got position 8"),
    ("far past the end", 2**63, IndexError, "table has rows 0..7, got position 9"),
    ("negative", -1, ValueError, "start must be at least 0, got -1"),
    ("fraction", 1.0, TypeError, "start must be an integer, got 1.0"),
    ("bool", True, TypeError, "start must be an integer, got True"),
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
for name, call in {
    "lookup_gradient, max_len": lambda size: posenc.lookup_gradient([0], x[:1], size),
    "LearnedPositions, max_len": lambda size: posenc.LearnedPositions(size, 4),
    "LearnedPositions, d_model": lambda size: posenc.LearnedPositions(8, size),
}.items():
    argument = name.split()[-1]
    for size, exception, fragment in [
        (0, ValueError, "must be at least 1, got 0"),
        (-8, ValueError, "must be at least 1, got -8"),
        (8.0, TypeError, "must be an integer, got 8.0"),
        (True, TypeError, "must be an integer, got True"),
        ("8", TypeError, "must be an integer, got '8'"),
    ]:
        refuse(
            f"{name} {size!r}",
            lambda size=size, call=call: call(size),
            exception,
            f"{argument} {fragment}",
        )
for scale, exception, fragment in [
    (0, ValueError, "scale must be positive"),
    (-0.02, ValueError, "scale must be positive, got -0.02"),
    (nan, ValueError, "scale must be finite, got nan"),
    ("0.02", TypeError, "scale must be a real number, got '0.02'"),
]:
    refuse(
        f"LearnedPositions, scale {scale!r}",
        lambda scale=scale: posenc.LearnedPositions(8, 4, scale=scale),
        exception,
        fragment,
    )
refuse(
    "LearnedPositions, rng",
    lambda: posenc.LearnedPositions(8, 4, "x"),
    TypeError,
    "SeedSequence expects int",
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


@pytest.mark.parametrize("name", CASES)
def test_refused(name):
    call, exception, fragments = CASES[name]
    with pytest.raises((ValueError, TypeError, IndexError)) as caught:
        call()
    message = str(caught.value)
    assert isinstance(caught.value, exception)
    for fragment in fragments:
        assert fragment in message
