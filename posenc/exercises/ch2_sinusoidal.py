"""Chapter 2, the sinusoidal formula: its exercises, and the ways they go wrong."""

from __future__ import annotations

import cmath

import numpy as np

from posenc import sinusoidal
from posenc.exercises._model import (
    Exercise,
    Misconceptions,
    case,
    draw_base,
    draw_even,
    holds,
    leaves_unchanged,
    refuses,
    require,
    values,
)

ASSIGNMENT = "02-sinusoidal"


def _interleave(sines: np.ndarray, cosines: np.ndarray) -> np.ndarray:
    return np.stack([sines, cosines], axis=-1).reshape(*sines.shape[:-1], -1)


_frequencies = Misconceptions()


@_frequencies.idea(
    "exponent i/d",
    "the factor 2 of the exponent -2i/d is missing, so frequencies fall only half as fast",
    "sinusoidal-frequencies",
)
def _(d_model, *, base=10_000.0):
    return base ** (-np.arange(d_model // 2) / d_model)


@_frequencies.idea(
    "exponent 4i/d",
    "the factor 2 is there twice: an index that already counts 0, 2, 4, ... is doubled again",
    "sinusoidal-frequencies",
)
def _(d_model, *, base=10_000.0):
    return base ** (-2 * np.arange(0, d_model, 2) / d_model)


@_frequencies.idea(
    "counts from 1",
    "pairs are counted from 1 instead of 0, so the first frequency is not 1",
    "sinusoidal-frequencies",
)
def _(d_model, *, base=10_000.0):
    return base ** (-2 * np.arange(1, d_model // 2 + 1) / d_model)


@_frequencies.idea(
    "divides by h - 1",
    "the exponent is i/(d/2 - 1), as in tensor2tensor's timing signal: the last frequency is "
    "exactly 1/base, which the paper's formula never reaches",
    "sinusoidal-frequencies",
)
def _(d_model, *, base=10_000.0):
    half = d_model // 2
    return base ** (-np.arange(half) / (half - 1))


@_frequencies.idea(
    "positive exponent",
    "the exponent has the wrong sign: these are the denominators, and the frequencies are one "
    "over them",
    "sinusoidal-frequencies",
)
def _(d_model, *, base=10_000.0):
    return base ** (np.arange(0, d_model, 2) / d_model)


@_frequencies.idea(
    "log10 with exp",
    "exp undoes the natural logarithm, but the base went through log10",
    "sinusoidal-frequencies",
)
def _(d_model, *, base=10_000.0):
    return np.exp(-np.arange(0, d_model, 2) / d_model * np.log10(base))


@_frequencies.idea(
    "integer division",
    "// rounds every exponent down to a whole number: 2i // d is 0, and all frequencies are 1",
    "sinusoidal-frequencies",
)
def _(d_model, *, base=10_000.0):
    return base ** -(np.arange(0, d_model, 2) // d_model).astype(float)


@_frequencies.idea(
    "base ignored",
    "the base is fixed at 10,000, and the argument is not used",
    "sinusoidal-frequencies",
)
def _(d_model, *, base=10_000.0):
    return 10_000.0 ** (-np.arange(0, d_model, 2) / d_model)


@_frequencies.idea(
    "integer powers of an integer",
    "an integer base is raised to negative integers, which NumPy refuses; make the exponent or "
    "the base a float first",
    "sinusoidal-frequencies",
)
def _(d_model, *, base=10_000.0):
    return np.power(base, -np.arange(d_model // 2)) ** (2 / d_model)


def _falls_from_one(candidate, d_model, **kwargs):
    frequencies = candidate(d_model, **kwargs)
    require(
        np.isclose(frequencies[0], 1),
        f"the first frequency should be 1, whatever the base; got {frequencies[0]:.6g}",
    )
    rising = np.flatnonzero(np.diff(frequencies) >= 0)
    require(not rising.size, "each frequency should be smaller than the one before it")


INVERSE_FREQUENCIES = Exercise(
    reference=sinusoidal.inverse_frequencies,
    assignment=ASSIGNMENT,
    section="sinusoidal-frequencies",
    difficulty=2,
    importance=5,
    minutes="5-10",
    atol=1e-9,
    rtol=1e-5,
    criteria=(
        holds(
            "frequencies fall from 1",
            0.5,
            _falls_from_one,
            visible=lambda: [case(8), case(16)],
            drawn=lambda rng: [case(draw_even(rng)), case(draw_even(rng), base=draw_base(rng))],
        ),
        values(
            "values at base 10,000",
            2,
            visible=lambda: [case(8), case(16)],
            drawn=lambda rng: [case(draw_even(rng)) for _ in range(4)],
        ),
        values(
            "values at another base",
            1,
            visible=lambda: [case(8, base=500.0)],
            drawn=lambda rng: [case(draw_even(rng), base=draw_base(rng)) for _ in range(3)],
        ),
        values(
            "an integer base",
            0.5,
            visible=lambda: [case(8, base=100)],
            drawn=lambda rng: [case(draw_even(rng), base=int(rng.integers(50, 5000)))],
        ),
    ),
    misconceptions=tuple(_frequencies),
    variants={
        "loop": lambda d_model, *, base=10_000.0: [
            base ** (-2 * pair / d_model) for pair in range(d_model // 2)
        ],
        "exp of log": lambda d_model, *, base=10_000.0: np.exp(
            -np.arange(0, d_model, 2) / d_model * np.log(base)
        ),
        "one over power": lambda d_model, *, base=10_000.0: (
            1 / base ** (2 * np.arange(d_model // 2) / d_model)
        ),
        "running product": lambda d_model, *, base=10_000.0: np.cumprod(
            [1.0] + [base ** (-2 / d_model)] * (d_model // 2 - 1)
        ),
    },
)


_encodings = Misconceptions()


def _angles(positions, d_model, base):
    if d_model % 2:
        raise ValueError(f"d_model must be even, got {d_model}")
    frequencies = base ** (-np.arange(0, d_model, 2) / d_model)
    return np.asarray(positions, dtype=float)[..., np.newaxis] * frequencies


def _encode(positions, d_model, base):
    angles = _angles(positions, d_model, base)
    return _interleave(np.sin(angles), np.cos(angles))


@_encodings.idea(
    "halves",
    "all sines come first and all cosines after them; the paper interleaves them: sine at column "
    "2i, cosine at 2i + 1",
    "sinusoidal-interleaving",
)
def _(positions, d_model, *, base=10_000.0):
    angles = _angles(positions, d_model, base)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)


@_encodings.idea(
    "sine and cosine swapped",
    "cosine sits in the even columns and sine in the odd ones; the paper has them the other way "
    "round",
    "sinusoidal-interleaving",
)
def _(positions, d_model, *, base=10_000.0):
    angles = _angles(positions, d_model, base)
    return _interleave(np.cos(angles), np.sin(angles))


@_encodings.idea(
    "positions from 1",
    "every position is one too large: counting starts at 0, and the positions given are used as "
    "they are",
    "sinusoidal-positions",
)
def _(positions, d_model, *, base=10_000.0):
    return _encode(np.asarray(positions, dtype=float) + 1, d_model, base)


@_encodings.idea(
    "positions divided by the length",
    "positions are scaled by the sequence length, so the same position gets another code in a "
    "longer sequence",
    "sinusoidal-positions",
)
def _(positions, d_model, *, base=10_000.0):
    positions = np.asarray(positions, dtype=float)
    return _encode(positions / (positions.shape[-1] if positions.ndim else 1), d_model, base)


@_encodings.idea(
    "degrees",
    "the angle is converted as if it were in degrees; position times frequency is in radians "
    "already",
    "sinusoidal-frequencies",
)
def _(positions, d_model, *, base=10_000.0):
    return _encode(np.deg2rad(np.asarray(positions, dtype=float)), d_model, base)


@_encodings.idea(
    "rows counted by arange",
    "rows are numbered 0, 1, 2, ... and the positions given are ignored; only their number is used",
    "sinusoidal-positions",
)
def _(positions, d_model, *, base=10_000.0):
    positions = np.asarray(positions, dtype=float)
    counted = np.arange(positions.size, dtype=float).reshape(positions.shape)
    return _encode(counted, d_model, base)


@_encodings.idea(
    "fractions cut off",
    "positions are turned into integers, so 2.5 gets the code of 2",
    "sinusoidal-positions",
)
def _(positions, d_model, *, base=10_000.0):
    return _encode(np.asarray(positions).astype(int), d_model, base)


@_encodings.idea(
    "odd d_model accepted",
    "an odd d_model is not refused, although the last sine then has no cosine",
    "sinusoidal-interleaving",
)
def _(positions, d_model, *, base=10_000.0):
    angles = np.asarray(positions, dtype=float)[..., np.newaxis] * base ** (
        -np.arange(0, d_model, 2) / d_model
    )
    return _interleave(np.sin(angles), np.cos(angles))[..., :d_model]


@_encodings.idea(
    "float32 angles",
    "angles are formed in float32, which has about seven digits: at position 100,000 little is "
    "left of them. Form angles in float64 and cast last",
    "sinusoidal-precision",
)
def _(positions, d_model, *, base=10_000.0):
    _angles(positions, d_model, base)
    frequencies = (base ** (-np.arange(0, d_model, 2) / d_model)).astype(np.float32)
    angles = np.asarray(positions, dtype=np.float32)[..., np.newaxis] * frequencies
    return _interleave(np.sin(angles), np.cos(angles))


@_encodings.idea(
    "sine only",
    "the odd columns hold the sine again instead of the cosine",
    "sinusoidal-interleaving",
)
def _(positions, d_model, *, base=10_000.0):
    sines = np.sin(_angles(positions, d_model, base))
    return _interleave(sines, sines)


@_encodings.idea(
    "exponent i/d",
    "the factor 2 of the exponent -2i/d is missing, so frequencies fall only half as fast",
    "sinusoidal-frequencies",
)
def _(positions, d_model, *, base=10_000.0):
    return _encode(positions, d_model, base**0.5)


@_encodings.idea(
    "exponent 4i/d",
    "the factor 2 is there twice: an index that already counts 0, 2, 4, ... is doubled again",
    "sinusoidal-frequencies",
)
def _(positions, d_model, *, base=10_000.0):
    return _encode(positions, d_model, base**2)


@_encodings.idea(
    "base ignored",
    "the base is fixed at 10,000, and the argument is not used",
    "sinusoidal-frequencies",
)
def _(positions, d_model, *, base=10_000.0):
    return _encode(positions, d_model, 10_000.0)


@_encodings.idea(
    "each column its own frequency",
    "the cosine at column 2i + 1 uses the exponent (2i + 1)/d; both columns of a pair share the "
    "frequency of 2i/d",
    "sinusoidal-interleaving",
)
def _(positions, d_model, *, base=10_000.0):
    _angles(positions, d_model, base)
    columns = np.arange(d_model)
    angles = np.asarray(positions, dtype=float)[..., np.newaxis] * base ** (-columns / d_model)
    return np.where(columns % 2, np.cos(angles), np.sin(angles))


def _origin(candidate, position, d_model):
    row = candidate(position, d_model).reshape(-1)
    require(
        np.allclose(row[0::2], 0, atol=1e-6) and np.allclose(row[1::2], 1, atol=1e-6),
        "position 0 should be 0, 1, 0, 1, ...: sin 0 in even columns, cos 0 in odd ones; "
        f"got {np.round(row[:4], 3).tolist()} ...",
    )


def _unit_pairs(candidate, positions, d_model):
    table = candidate(positions, d_model)
    squares = table[..., 0::2] ** 2 + table[..., 1::2] ** 2
    require(
        np.allclose(squares, 1, atol=1e-5),
        "columns 2i and 2i + 1 should be sine and cosine of one angle, with squares that add up "
        f"to 1; got a sum of {squares.flat[np.abs(squares - 1).argmax()]:.3f}",
    )


def _odd(rng: np.random.Generator) -> int:
    return 2 * int(rng.integers(4, 20)) + 1


SINUSOIDAL_ENCODING = Exercise(
    reference=sinusoidal.sinusoidal_encoding,
    assignment=ASSIGNMENT,
    section="sinusoidal-interleaving",
    difficulty=3,
    importance=5,
    minutes="20-30",
    atol=2e-5,
    rtol=0.0,
    criteria=(
        holds(
            "position 0",
            0.5,
            _origin,
            visible=lambda: [case([0], 8)],
            drawn=lambda rng: [case([0], draw_even(rng))],
        ),
        holds(
            "pairs lie on the unit circle",
            0.5,
            _unit_pairs,
            visible=lambda: [case([0, 1, 2, 3], 8)],
            drawn=lambda rng: [case(rng.integers(0, 500, 6), draw_even(rng))],
        ),
        values(
            "positions 0, 1, 2, ...",
            3,
            visible=lambda: [case([0, 1, 2, 3], 8), case(np.arange(6), 16)],
            drawn=lambda rng: [
                case(np.arange(rng.integers(5, 12)), draw_even(rng)),
                case(np.arange(rng.integers(5, 12)), draw_even(rng)),
            ],
        ),
        values(
            "another base",
            1,
            visible=lambda: [case([0, 1, 2, 3], 8, base=500.0)],
            drawn=lambda rng: [
                case(np.arange(5), draw_even(rng), base=draw_base(rng)),
                case(np.arange(5), draw_even(rng), base=draw_base(rng)),
            ],
        ),
        values(
            "any positions: with gaps, negative, fractional",
            1,
            visible=lambda: [case([7, 3, -5], 8), case([2.5, -0.25, 40.75], 8)],
            drawn=lambda rng: [
                case(rng.permutation(200)[:7] - 50, draw_even(rng)),
                case(rng.uniform(-50, 300, 5), draw_even(rng)),
            ],
        ),
        values(
            "large positions",
            1,
            visible=lambda: [case([100_003, 131_071], 8)],
            drawn=lambda rng: [case(rng.integers(90_000, 200_000, 6) | 1, draw_even(rng))],
        ),
        values(
            "a single position, a grid of positions",
            0.5,
            visible=lambda: [case(3, 8), case([[0, 1], [5, 2]], 8)],
            drawn=lambda rng: [
                case(float(rng.integers(1, 99)), draw_even(rng)),
                case(rng.integers(0, 99, (2, 3)), draw_even(rng)),
            ],
        ),
        refuses(
            "an odd d_model is refused",
            0.5,
            visible=lambda: [case([0, 1, 2], 9)],
            drawn=lambda rng: [case([0, 1, 2], _odd(rng))],
        ),
    ),
    misconceptions=tuple(_encodings),
)


@SINUSOIDAL_ENCODING.variant("loop")
def _(positions, d_model, *, base=10_000.0):
    if d_model % 2:
        raise ValueError("odd")
    positions = np.asarray(positions)
    table = np.zeros((*positions.shape, d_model))
    for index in np.ndindex(positions.shape):
        for pair in range(d_model // 2):
            angle = float(positions[index]) / base ** (2 * pair / d_model)
            table[(*index, 2 * pair)] = np.sin(angle)
            table[(*index, 2 * pair + 1)] = np.cos(angle)
    return table


@SINUSOIDAL_ENCODING.variant("complex exponential")
def _(positions, d_model, *, base=10_000.0):
    turns = np.exp(1j * _angles(positions, d_model, base))
    return _interleave(turns.imag, turns.real)


@SINUSOIDAL_ENCODING.variant("float32 table from float64 angles")
def _(positions, d_model, *, base=10_000.0):
    return _encode(positions, d_model, base).astype(np.float32)


@SINUSOIDAL_ENCODING.variant("nested lists")
def _(positions, d_model, *, base=10_000.0):
    return _encode(positions, d_model, base).tolist()


@SINUSOIDAL_ENCODING.variant("columns of one matrix product")
def _(positions, d_model, *, base=10_000.0):
    _angles(positions, d_model, base)
    columns = np.arange(d_model)
    angles = np.multiply.outer(
        np.asarray(positions, float), base ** (-(columns // 2 * 2) / d_model)
    )
    return np.sin(angles + (columns % 2) * np.pi / 2)


@SINUSOIDAL_ENCODING.variant("row by row in pure Python")
def _(positions, d_model, *, base=10_000.0):
    if d_model % 2:
        raise ValueError("odd")

    def row(position):
        turns = [
            cmath.exp(1j * float(position) * base ** (-2 * pair / d_model))
            for pair in range(d_model // 2)
        ]
        return [part for turn in turns for part in (turn.imag, turn.real)]

    positions = np.asarray(positions)
    return np.array([row(position) for position in positions.flat]).reshape(
        *positions.shape, d_model
    )


_wavelengths = Misconceptions()


@_wavelengths.idea(
    "frequencies",
    "these are frequencies (radians per position), which fall; wavelengths (positions per turn) "
    "grow",
    "sinusoidal-wavelengths",
)
def _(d_model, *, base=10_000.0):
    return base ** (-np.arange(0, d_model, 2) / d_model)


@_wavelengths.idea(
    "no 2 pi",
    "one over the frequency is the number of positions per radian; a turn has 2 pi radians",
    "sinusoidal-wavelengths",
)
def _(d_model, *, base=10_000.0):
    return base ** (np.arange(0, d_model, 2) / d_model)


@_wavelengths.idea(
    "one pair too many",
    "the last value belongs to i = d/2, but pairs end at i = d/2 - 1: no pair has the wavelength "
    "2 pi times base",
    "sinusoidal-wavelengths",
)
def _(d_model, *, base=10_000.0):
    return 2 * np.pi * base ** (2 * np.arange(d_model // 2 + 1) / d_model)


@_wavelengths.idea(
    "base ignored",
    "the base is fixed at 10,000, and the argument is not used",
    "sinusoidal-wavelengths",
)
def _(d_model, *, base=10_000.0):
    return 2 * np.pi * 10_000.0 ** (np.arange(0, d_model, 2) / d_model)


def _first_turn(candidate, d_model, **kwargs):
    lengths = candidate(d_model, **kwargs)
    require(
        np.isclose(lengths[0], 2 * np.pi, rtol=1e-5),
        f"the first pair turns once in 2 pi = 6.283 positions, whatever the base; "
        f"got {lengths[0]:.4g}",
    )
    require((np.diff(lengths) > 0).all(), "each wavelength should be longer than the one before it")


WAVELENGTHS = Exercise(
    reference=sinusoidal.wavelengths,
    assignment=ASSIGNMENT,
    section="sinusoidal-wavelengths",
    difficulty=2,
    importance=3,
    minutes="5-10",
    atol=0.0,
    rtol=1e-5,
    criteria=(
        holds(
            "wavelengths grow from 2 pi",
            0.5,
            _first_turn,
            visible=lambda: [case(8)],
            drawn=lambda rng: [case(draw_even(rng)), case(draw_even(rng), base=draw_base(rng))],
        ),
        values(
            "values at base 10,000",
            1.5,
            visible=lambda: [case(8), case(16)],
            drawn=lambda rng: [case(draw_even(rng)) for _ in range(4)],
        ),
        values(
            "values at another base",
            1,
            visible=lambda: [case(8, base=500.0)],
            drawn=lambda rng: [case(draw_even(rng), base=draw_base(rng)) for _ in range(3)],
        ),
    ),
    misconceptions=tuple(_wavelengths),
    variants={
        "loop": lambda d_model, *, base=10_000.0: [
            2 * np.pi * base ** (2 * pair / d_model) for pair in range(d_model // 2)
        ],
        "exp of log": lambda d_model, *, base=10_000.0: (
            2 * np.pi * np.exp(np.arange(0, d_model, 2) / d_model * np.log(base))
        ),
        "geometric space": lambda d_model, *, base=10_000.0: (
            2 * np.pi * np.geomspace(1, base, d_model // 2, endpoint=False)
        ),
        "float32": lambda d_model, *, base=10_000.0: (
            2 * np.pi * base ** (np.arange(0, d_model, 2) / d_model)
        ).astype(np.float32),
    },
)


_additions = Misconceptions()


def _checked_rows(x, table, start):
    x, table = np.asarray(x), np.asarray(table)
    if start < 0:
        raise ValueError(f"start must not be negative, got {start}")
    if start + x.shape[-2] > len(table):
        raise IndexError("the sequence runs past the table")
    return x, table[start : start + x.shape[-2]]


@_additions.idea(
    "negative start wraps",
    "a negative start is not refused, and Python then counts rows from the table's end",
    "sinusoidal-adding",
)
def _(x, table, *, start=0):
    x, table = np.asarray(x), np.asarray(table)
    rows = start + np.arange(x.shape[-2])
    if rows.max() >= len(table):
        raise IndexError("the sequence runs past the table")
    return x + table[rows]


@_additions.idea(
    "silent cut at the table's end",
    "a slice past the table's end is shorter without an error: the rest of the sequence gets no "
    "position",
    "sinusoidal-adding",
)
def _(x, table, *, start=0):
    x, table = np.array(x, dtype=float), np.asarray(table)
    if start < 0:
        raise ValueError("negative")
    rows = table[start : start + x.shape[-2]]
    x[..., : len(rows), :] += rows
    return x


@_additions.idea(
    "silent broadcast at the table's end",
    "where only one row is left, NumPy broadcasts it to every token instead of failing",
    "sinusoidal-adding",
)
def _(x, table, *, start=0):
    if start < 0:
        raise ValueError("negative")
    x, table = np.asarray(x), np.asarray(table)
    return x + table[start : start + x.shape[-2]]


@_additions.idea(
    "changes x",
    "the sum is written into x itself, so the caller's embeddings are changed",
    "sinusoidal-adding",
)
def _(x, table, *, start=0):
    _, rows = _checked_rows(x, table, start)
    x += rows
    return x


@_additions.idea(
    "adds along the batch axis",
    "rows are counted along the first axis, the batch, instead of along the sequence",
    "sinusoidal-adding",
)
def _(x, table, *, start=0):
    x, rows = _checked_rows(x, table, start)
    if x.ndim == 2:
        return x + rows
    table = np.asarray(table)
    return x + table[start : start + len(x)].reshape(len(x), *[1] * (x.ndim - 2), x.shape[-1])


@_additions.idea(
    "ignores start",
    "the first rows of the table are added whatever start is",
    "sinusoidal-adding",
)
def _(x, table, *, start=0):
    x, _ = _checked_rows(x, table, start)
    return x + np.asarray(table)[: x.shape[-2]]


def _x(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).round(2)


def _visible_x(*shape: int) -> np.ndarray:
    return _x(np.random.default_rng(2), *shape)


def _table(rng: np.random.Generator, length: int, d_model: int) -> np.ndarray:
    return rng.standard_normal((length, d_model)).round(2)


def _visible_table() -> np.ndarray:
    return sinusoidal.sinusoidal_table(6, 8)


def _drawn_start(rng: np.random.Generator):
    length, d_model = int(rng.integers(3, 6)), draw_even(rng, 8, 16)
    start = int(rng.integers(1, 5))
    return case(_x(rng, length, d_model), _table(rng, 12, d_model), start=start)


ADD_POSITIONS = Exercise(
    reference=sinusoidal.add_positions,
    assignment=ASSIGNMENT,
    section="sinusoidal-adding",
    difficulty=2,
    importance=4,
    minutes="10-15",
    criteria=(
        values(
            "rows from 0",
            1,
            visible=lambda: [case(_visible_x(4, 8), _visible_table())],
            drawn=lambda rng: [case(_x(rng, 5, 10), _table(rng, 9, 10))],
        ),
        values(
            "rows from start",
            1,
            visible=lambda: [case(_visible_x(3, 8), _visible_table(), start=2)],
            drawn=lambda rng: [_drawn_start(rng), _drawn_start(rng)],
        ),
        values(
            "every sequence of a batch gets the same rows",
            0.5,
            visible=lambda: [case(_visible_x(4, 4, 8), _visible_table(), start=1)],
            drawn=lambda rng: [
                case(_x(rng, 3, 3, 8), _table(rng, 9, 8), start=int(rng.integers(1, 4))),
                case(_x(rng, 2, 2, 2, 8), _table(rng, 9, 8)),
            ],
        ),
        refuses(
            "a negative start is refused",
            0.5,
            visible=lambda: [case(_visible_x(2, 8), _visible_table(), start=-3)],
            drawn=lambda rng: [
                case(_x(rng, 3, 8), _table(rng, 9, 8), start=-int(rng.integers(3, 6)))
            ],
        ),
        refuses(
            "a sequence past the table's end is refused",
            0.5,
            visible=lambda: [
                case(_visible_x(4, 8), _visible_table(), start=4),
                case(_visible_x(4, 8), _visible_table(), start=5),
            ],
            drawn=lambda rng: [
                case(_x(rng, 4, 8), _table(rng, 9, 8), start=int(rng.integers(6, 8))),
                case(_x(rng, 3, 8), _table(rng, 9, 8), start=8),
            ],
        ),
        leaves_unchanged(
            "x is left unchanged",
            0.5,
            visible=lambda: [case(_visible_x(4, 8), _visible_table())],
            drawn=lambda rng: [case(_x(rng, 5, 8), _table(rng, 9, 8), start=1)],
        ),
    ),
    misconceptions=tuple(_additions),
    variants={
        "slice": lambda x, table, *, start=0: (lambda a, rows: a + rows)(
            *_checked_rows(x, table, start)
        ),
        "einsum of a selection": lambda x, table, *, start=0: (
            _checked_rows(x, table, start)[0]
            + np.eye(len(table))[start : start + np.shape(x)[-2]] @ np.asarray(table)
        ),
        "copy then add": lambda x, table, *, start=0: (lambda a, rows: np.add(a.copy(), rows))(
            *_checked_rows(x, table, start)
        ),
        "nested lists": lambda x, table, *, start=0: (lambda a, rows: (a + rows).tolist())(
            *_checked_rows(x, table, start)
        ),
    },
)

EXERCISES = (INVERSE_FREQUENCIES, SINUSOIDAL_ENCODING, WAVELENGTHS, ADD_POSITIONS)
