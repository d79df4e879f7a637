"""Chapter 2, the sinusoidal formula: its exercises, and the ways they go wrong."""

from __future__ import annotations

import cmath
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

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
    named_case,
    refuses,
    require,
    share,
    values,
)

ASSIGNMENT = "02-sinusoidal"


def _interleave(sines: np.ndarray, cosines: np.ndarray) -> np.ndarray:
    return np.stack([sines, cosines], axis=-1).reshape(*sines.shape[:-1], 2 * sines.shape[-1])


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


@_frequencies.idea(
    "base 1,000",
    "the base is fixed at 1,000 instead of the one given, which is 10,000 where none is",
    "sinusoidal-frequencies",
)
def _(d_model, *, base=10_000.0):
    return 1_000.0 ** (-np.arange(0, d_model, 2) / d_model)


@_frequencies.idea(
    "base 100",
    "the base is fixed at 100 instead of the one given, which is 10,000 where none is",
    "sinusoidal-frequencies",
)
def _(d_model, *, base=10_000.0):
    return 100.0 ** (-np.arange(0, d_model, 2) / d_model)


@_frequencies.idea(
    "one for each column",
    "every column gets a frequency; the two columns of a pair share one, so there are d/2 of them",
    "sinusoidal-frequencies",
)
def _(d_model, *, base=10_000.0):
    return base ** (-np.arange(d_model) / d_model)


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


@_encodings.idea(
    "base 1,000",
    "the base is fixed at 1,000 instead of the one given, which is 10,000 where none is",
    "sinusoidal-frequencies",
)
def _(positions, d_model, *, base=10_000.0):
    return _encode(positions, d_model, 1_000.0)


@_encodings.idea(
    "base 100",
    "the base is fixed at 100 instead of the one given, which is 10,000 where none is",
    "sinusoidal-frequencies",
)
def _(positions, d_model, *, base=10_000.0):
    return _encode(positions, d_model, 100.0)


@_encodings.idea(
    "positive exponent",
    "the exponent has the wrong sign, so that each pair turns faster than the one before it; "
    "frequencies fall",
    "sinusoidal-frequencies",
)
def _(positions, d_model, *, base=10_000.0):
    return _encode(positions, d_model, 1 / base)


@_encodings.idea(
    "log10 with exp",
    "exp undoes the natural logarithm, but the base went through log10",
    "sinusoidal-frequencies",
)
def _(positions, d_model, *, base=10_000.0):
    return _encode(positions, d_model, np.exp(np.log10(base)))


@_encodings.idea(
    "divides by h - 1",
    "the exponent is i/(d/2 - 1), as in tensor2tensor's timing signal: the last frequency is "
    "exactly 1/base, which the paper's formula never reaches",
    "sinusoidal-frequencies",
)
def _(positions, d_model, *, base=10_000.0):
    # d_model / (d_model - 2) makes 2i/d into 2i/(d - 2).
    return _encode(positions, d_model, base ** (d_model / (d_model - 2)))


@_encodings.idea(
    "integer division",
    "// rounds every exponent down to a whole number: 2i // d is 0, and all pairs turn alike",
    "sinusoidal-frequencies",
)
def _(positions, d_model, *, base=10_000.0):
    return _encode(positions, d_model, 1.0)


@_encodings.idea(
    "position and pair exchanged",
    "the number of the pair is multiplied, and the position sits in the exponent; it is the other "
    "way round",
    "sinusoidal-interleaving",
)
def _(positions, d_model, *, base=10_000.0):
    _angles(positions, d_model, base)
    speeds = base ** (-2 * np.asarray(positions, dtype=float) / d_model)
    angles = np.multiply.outer(speeds, np.arange(d_model // 2))
    return _interleave(np.sin(angles), np.cos(angles))


@_encodings.idea(
    "constant rows",
    "every row is that of the first position; each position has a row of its own",
    "sinusoidal-positions",
)
def _(positions, d_model, *, base=10_000.0):
    positions = np.asarray(positions, dtype=float)
    return _encode(np.full(positions.shape, positions.flat[0]), d_model, base)


@_encodings.idea(
    "counts on from the first position",
    "only the first position is used, and each further row is taken to be one later; the positions "
    "given may have gaps and any order",
    "sinusoidal-positions",
)
def _(positions, d_model, *, base=10_000.0):
    positions = np.asarray(positions, dtype=float)
    counted = positions.flat[0] + np.arange(positions.size).reshape(positions.shape)
    return _encode(counted, d_model, base)


@_encodings.idea(
    "sign lost",
    "negative positions get the code of positive ones; their sines have the opposite sign",
    "sinusoidal-positions",
)
def _(positions, d_model, *, base=10_000.0):
    return _encode(np.abs(positions), d_model, base)


@_encodings.idea(
    "table in float16",
    "the table is stored in float16, which keeps three digits; float32 keeps seven",
    "sinusoidal-precision",
)
def _(positions, d_model, *, base=10_000.0):
    return _encode(positions, d_model, base).astype(np.float16)


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


def _whole(rng: np.random.Generator, low: int, high: int) -> int:
    return int(rng.integers(low, high))


def _odd(rng: np.random.Generator) -> int:
    return 2 * _whole(rng, 4, 20) + 1


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
                case([*rng.permutation(200)[:6].tolist(), -_whole(rng, 1, 50)], draw_even(rng)),
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


@_wavelengths.idea(
    "turns per position",
    "the frequency is divided by 2 pi, which gives turns per position; a wavelength is positions "
    "per turn, one over it",
    "sinusoidal-wavelengths",
)
def _(d_model, *, base=10_000.0):
    return base ** (-np.arange(0, d_model, 2) / d_model) / (2 * np.pi)


@_wavelengths.idea(
    "exponent i/d",
    "the factor 2 of the exponent 2i/d is missing, so wavelengths grow only half as fast",
    "sinusoidal-frequencies",
)
def _(d_model, *, base=10_000.0):
    return 2 * np.pi * base ** (np.arange(d_model // 2) / d_model)


@_wavelengths.idea(
    "exponent 4i/d",
    "the factor 2 is there twice: an index that already counts 0, 2, 4, ... is doubled again",
    "sinusoidal-frequencies",
)
def _(d_model, *, base=10_000.0):
    return 2 * np.pi * base ** (2 * np.arange(0, d_model, 2) / d_model)


@_wavelengths.idea(
    "counts from 1",
    "pairs are counted from 1 instead of 0, so the first wavelength is not 2 pi",
    "sinusoidal-wavelengths",
)
def _(d_model, *, base=10_000.0):
    return 2 * np.pi * base ** (2 * np.arange(1, d_model // 2 + 1) / d_model)


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
    "number of sequences taken for their length",
    "as many rows are taken as there are sequences, from the first axis; tokens lie along the "
    "second last one",
    "sinusoidal-adding",
)
def _(x, table, *, start=0):
    x, _ = _checked_rows(x, table, start)
    return x + np.asarray(table)[start : start + len(x)]


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
    start = _whole(rng, 1, 5)
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
            visible=lambda: [
                case(_visible_x(4, 4, 8), _visible_table(), start=1),
                case(_visible_x(1, 3, 8), _visible_table(), start=2),
            ],
            drawn=lambda rng: [
                case(_x(rng, 3, 3, 8), _table(rng, 9, 8), start=_whole(rng, 1, 4)),
                case(_x(rng, 1, 5, 8), _table(rng, 9, 8), start=_whole(rng, 1, 4)),
                case(_x(rng, 2, 3, 4, 8), _table(rng, 9, 8)),
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


_impossible = Misconceptions()


def _pairs_where(found):
    return {(int(row), int(pair)) for row, pair in np.argwhere(found)}


def _square_sums(table):
    return np.square(table)[:, 0::2] + np.square(table)[:, 1::2]


@_impossible.idea(
    "the twelve of one table",
    "these are the pairs of the table that the chapter shows, whatever table is passed; other "
    "tables have others",
    "sinusoidal-impossible",
)
def _(table, *, tolerance):
    return {(row, pair) for row in (4, 9, 14, 19) for pair in (1, 2, 3)}


@_impossible.idea(
    "cells instead of pairs",
    "both columns of a pair are listed; pair i stands for columns 2i and 2i + 1 together",
    "sinusoidal-impossible",
)
def _(table, *, tolerance):
    wrong = np.abs(_square_sums(table) - 1) > tolerance
    return _pairs_where(np.repeat(wrong, 2, axis=1))


@_impossible.idea(
    "first column instead of the pair",
    "a pair is named by its first column, 2i, instead of its number i",
    "sinusoidal-impossible",
)
def _(table, *, tolerance):
    return {(r, 2 * i) for r, i in _pairs_where(np.abs(_square_sums(table) - 1) > tolerance)}


@_impossible.idea(
    "second column instead of the pair",
    "a pair is named by its second column, 2i + 1, instead of its number i",
    "sinusoidal-impossible",
)
def _(table, *, tolerance):
    return {(r, 2 * i + 1) for r, i in _pairs_where(np.abs(_square_sums(table) - 1) > tolerance)}


@_impossible.idea(
    "sum without squares",
    "sine and cosine are added up as they are; it is their squares that add up to 1",
    "sinusoidal-impossible",
)
def _(table, *, tolerance):
    sums = np.add(np.asarray(table)[:, 0::2], np.asarray(table)[:, 1::2])
    return _pairs_where(np.abs(sums - 1) > tolerance)


@_impossible.idea(
    "values beyond 1 alone",
    "only pairs with a number above 1 or below -1 are found; two possible numbers can still make "
    "an impossible pair, as 0 and 0 do",
    "sinusoidal-impossible",
)
def _(table, *, tolerance):
    beyond = np.abs(table) > 1
    return _pairs_where(beyond[:, 0::2] | beyond[:, 1::2])


@_impossible.idea(
    "norm of the row",
    "the squares of a whole row are added up: that finds rows, all their pairs at once, and misses "
    "errors that cancel",
    "sinusoidal-impossible",
)
def _(table, *, tolerance):
    sums = _square_sums(table)
    wrong = np.abs(sums.sum(axis=1) - sums.shape[1]) > tolerance
    return _pairs_where(np.broadcast_to(wrong[:, np.newaxis], sums.shape))


@_impossible.idea(
    "halves",
    "column i is paired with column d/2 + i; in an interleaved table neighbours are pairs",
    "sinusoidal-interleaving",
)
def _(table, *, tolerance):
    sines, cosines = np.split(np.square(table), 2, axis=1)
    return _pairs_where(np.abs(sines + cosines - 1) > tolerance)


@_impossible.idea(
    "every two neighbours",
    "columns 1 and 2 are taken for a pair as well; pairs do not overlap",
    "sinusoidal-interleaving",
)
def _(table, *, tolerance):
    squares = np.square(table)
    return _pairs_where(np.abs(squares[:, :-1] + squares[:, 1:] - 1) > tolerance)


@_impossible.idea(
    "too long alone",
    "without the absolute value a sum below 1 is never found; a pair may be too short as well as "
    "too long",
    "sinusoidal-impossible",
)
def _(table, *, tolerance):
    return _pairs_where(_square_sums(table) - 1 > tolerance)


@_impossible.idea(
    "too short alone",
    "only sums below 1 are found; a pair may be too long as well as too short",
    "sinusoidal-impossible",
)
def _(table, *, tolerance):
    return _pairs_where(1 - _square_sums(table) > tolerance)


@_impossible.idea(
    "zeros alone",
    "only pairs of two zeros are found; any other pair whose squares do not add up to 1 is "
    "impossible, too",
    "sinusoidal-impossible",
)
def _(table, *, tolerance):
    return _pairs_where(_square_sums(table) == 0)


@_impossible.idea(
    "square root of the sum",
    "the tolerance is compared with the error of the length; it is meant for the sum of squares, "
    "whose error is about twice as large",
    "sinusoidal-impossible",
)
def _(table, *, tolerance):
    return _pairs_where(np.abs(np.sqrt(_square_sums(table)) - 1) > tolerance)


@_impossible.idea(
    "error squared",
    "the error is squared before it is compared, which makes small errors much smaller",
    "sinusoidal-impossible",
)
def _(table, *, tolerance):
    return _pairs_where((_square_sums(table) - 1) ** 2 > tolerance)


@_impossible.idea(
    "tolerance squared",
    "the tolerance is squared before it is compared, so that rounding alone exceeds it",
    "sinusoidal-impossible",
)
def _(table, *, tolerance):
    return _pairs_where(np.abs(_square_sums(table) - 1) > tolerance**2)


@_impossible.idea(
    "tolerance fixed",
    "errors are compared with 2e-3, and the argument is not used",
    "sinusoidal-impossible",
)
def _(table, *, tolerance):
    return _pairs_where(np.abs(_square_sums(table) - 1) > 2e-3)


@_impossible.idea(
    "tolerance unused",
    "sums are compared with 1 as closely as np.isclose does by itself; how far they may be from it "
    "is what the argument says",
    "sinusoidal-impossible",
)
def _(table, *, tolerance):
    return _pairs_where(~np.isclose(_square_sums(table), 1))


@_impossible.idea(
    "compared exactly",
    "every sum that is not exactly 1 counts, and rounding alone makes most of them so; the "
    "tolerance is for that",
    "sinusoidal-impossible",
)
def _(table, *, tolerance):
    return _pairs_where(_square_sums(table) != 1)


@_impossible.idea(
    "(pair, row)",
    "the row comes first, then the pair",
    "sinusoidal-impossible",
)
def _(table, *, tolerance):
    return {(i, r) for r, i in _pairs_where(np.abs(_square_sums(table) - 1) > tolerance)}


@_impossible.idea(
    "counts from 1",
    "rows and pairs are counted from 1; both start at 0",
    "sinusoidal-impossible",
)
def _(table, *, tolerance):
    return {(r + 1, i + 1) for r, i in _pairs_where(np.abs(_square_sums(table) - 1) > tolerance)}


@_impossible.idea(
    "(pair, row), counted from 1",
    "the row comes first, then the pair, and both start at 0",
    "sinusoidal-impossible",
)
def _(table, *, tolerance):
    return {(i + 1, r + 1) for r, i in _pairs_where(np.abs(_square_sums(table) - 1) > tolerance)}


@_impossible.idea(
    "compared with the formula",
    "the table is compared with the encoding of 0, 1, 2, ...; its rows may be of any positions and "
    "base, and a pair is impossible only if no angle fits",
    "sinusoidal-impossible",
)
def _(table, *, tolerance):
    rows, d_model = np.shape(table)
    gaps = np.abs(np.subtract(table, _encode(np.arange(rows), d_model, 10_000.0)))
    return _pairs_where(np.maximum(gaps[:, 0::2], gaps[:, 1::2]) > tolerance)


# Errors of spoiled pairs, in tolerances: four are too small to count, two of them by far, as where
# the tolerance is squared or not used. The others tell signs, and sums from lengths.
_ERRORS = (-3.0, -1.5, -1.4, -0.6, -0.02, 0.02, 0.6, 1.4, 1.5, 3.0)


def _drawn_rows(rng: np.random.Generator) -> np.ndarray:
    """Draw a right table: rows of any positions, at any base."""
    positions = rng.permutation(500)[: _whole(rng, 6, 14)]
    return _encode(positions, draw_even(rng, 8, 24), draw_base(rng))


def _spoiled(rng: np.random.Generator, tolerance: float) -> np.ndarray:
    """Draw a table in which some pairs are longer or shorter by known errors."""
    table = _drawn_rows(rng)
    places = rng.permutation(table.size // 2)
    pairs = table.reshape(-1, 2)
    pairs[places[: len(_ERRORS)]] *= np.sqrt(1 + np.array(_ERRORS) * tolerance)[:, np.newaxis]
    blank, turned = places[len(_ERRORS) : len(_ERRORS) + 2]
    pairs[blank] = 0
    # Still the sine and the cosine of an angle.
    pairs[turned] = pairs[turned][::-1]
    return table


def _rounded(rng: np.random.Generator) -> np.ndarray:
    """Draw a table of three decimals in which some pairs are far from the circle."""
    table = _drawn_rows(rng)
    places = rng.permutation(table.size // 2)[:8]
    table.reshape(-1, 2)[places] *= np.array([0, 0, 0, 0.7, 0.9, 0.95, 1.05, 1.2])[:, np.newaxis]
    return table.round(3)


def _printed() -> np.ndarray:
    """Make the table of 20 rows that one of the sources prints, as far as it shows columns."""
    table = sinusoidal.sinusoidal_table(20, 64)[:, :8].round(3)
    table[[4, 9, 14, 19], 2:] = 0
    return table


def _float32_table(rng: np.random.Generator, tolerance: float) -> np.ndarray:
    return _spoiled(rng, tolerance).astype(np.float32)


def _tolerance(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _spoiled_case(rng: np.random.Generator, tolerance: float, spoil=_spoiled):
    table = spoil(rng, tolerance)
    label = f"{len(table)} rows with pairs too long and too short, tolerance={tolerance:g}"
    return named_case(label, table, tolerance=tolerance)


def _rounded_case(rng: np.random.Generator, form: Callable = np.asarray):
    table = _rounded(rng)
    label = f"{len(table)} rows of three decimals, some pairs spoiled, tolerance=0.002"
    return named_case(label, form(table), tolerance=2e-3)


IMPOSSIBLE_PAIRS = Exercise(
    reference=sinusoidal.impossible_pairs,
    assignment=ASSIGNMENT,
    section="sinusoidal-impossible",
    difficulty=2,
    importance=3,
    minutes="10-15",
    criteria=(
        values(
            "tables rounded to three decimals",
            1,
            visible=lambda: [
                case([[0, 1, 0, 1], [0.841, 0.54, 0, 0]], tolerance=2e-3),
                named_case(
                    "the printed table of 20 rows, tolerance=0.002", _printed(), tolerance=2e-3
                ),
                _rounded_case(np.random.default_rng(3)),
                named_case(
                    "a right table, tolerance=0.002",
                    _encode([7, 3], 8, 500.0).round(3),
                    tolerance=2e-3,
                ),
            ],
            drawn=lambda rng: [
                _rounded_case(rng),
                _rounded_case(rng, np.ndarray.tolist),
                case(_drawn_rows(rng).round(3), tolerance=2e-3),
            ],
        ),
        values(
            "pairs too long and pairs too short",
            0.5,
            visible=lambda: [_spoiled_case(np.random.default_rng(4), 2e-3)],
            drawn=lambda rng: [
                _spoiled_case(rng, 2e-3),
                _spoiled_case(rng, 2e-3, _float32_table),
            ],
        ),
        values(
            "other tolerances",
            0.5,
            visible=lambda: [
                _spoiled_case(np.random.default_rng(5), 0.05),
                _spoiled_case(np.random.default_rng(6), 1e-4),
            ],
            drawn=lambda rng: [
                _spoiled_case(rng, _tolerance(rng, 0.01, 0.1)),
                _spoiled_case(rng, _tolerance(rng, 2e-5, 5e-4)),
                _spoiled_case(rng, _tolerance(rng, 0.01, 0.1), _float32_table),
            ],
        ),
    ),
    misconceptions=tuple(_impossible),
    variants={
        "array of pairs": lambda table, *, tolerance: np.argwhere(
            np.abs(_square_sums(table) - 1) > tolerance
        ),
        "complex numbers": lambda table, *, tolerance: _pairs_where(
            np.abs(
                np.abs(np.array(table, float).view(complex)) ** 2 - 1,
            )
            > tolerance
        ),
        "isclose": lambda table, *, tolerance: _pairs_where(
            ~np.isclose(_square_sums(table), 1, atol=tolerance, rtol=0)
        ),
        "reshaped": lambda table, *, tolerance: list(
            zip(
                *np.nonzero(
                    np.abs(
                        np.einsum("rip,rip->ri", *[np.reshape(table, (len(table), -1, 2))] * 2) - 1
                    )
                    > tolerance
                ),
                strict=True,
            )
        ),
    },
)


@IMPOSSIBLE_PAIRS.variant("loop")
def _(table, *, tolerance):
    found = []
    for row, numbers in enumerate(table):
        for pair in range(len(numbers) // 2):
            total = float(numbers[2 * pair]) ** 2 + float(numbers[2 * pair + 1]) ** 2
            if total > 1 + tolerance or total < 1 - tolerance:
                found.append([row, pair])
    return found


class _Probe(NamedTuple):
    """One call of a candidate; without a base, it is left out."""

    positions: tuple[float, ...]
    d_model: int
    base: float | None = None


# Between them negative, fractional, large and out of order; two bases; 12 is no power of two.
_PROBES = (
    _Probe((0, 1, 2, 3, 4), 8),
    _Probe((31, -7, 2.5, 0, 123_457), 12, 500.0),
    _Probe((300_007, 5, -0.75, 12), 12),
)

Test = Callable[[np.ndarray, _Probe], bool]


def _wanted(probe: _Probe) -> np.ndarray:
    return _encode(probe.positions, probe.d_model, probe.base or 10_000.0)


def _called(candidate: Callable, probe: _Probe) -> Any:
    options = {} if probe.base is None else {"base": probe.base}
    return candidate(np.array(probe.positions), probe.d_model, **options)


def _near(got: np.ndarray, probe: _Probe, tolerance: float = 1e-6) -> bool:
    return np.allclose(got, _wanted(probe), rtol=0, atol=tolerance)


def _survives(candidate: Callable, probes=_PROBES, test: Test = _near) -> bool:
    """Say whether what a candidate returns has the right shape and passes a test, at each probe."""

    def passes(probe: _Probe) -> bool:
        got = np.asarray(_called(candidate, probe))
        return got.shape == (len(probe.positions), probe.d_model) and test(got, probe)

    try:
        return all(map(passes, probes))
    except Exception:
        return False


def accepts(candidate: Callable) -> bool:
    """Say whether a function is the sinusoidal encoding.

    A test that only right encodings pass: it compares rows with the formula, at positions, widths
    and bases at which wrong ideas differ from it. Properties of the rows, such as their norm, are
    not enough: they prove a family, not the member.

    Parameters
    ----------
    candidate : callable
        Called as ``candidate(positions, d_model, *, base=10_000.0)``. It is right if its numbers
        are, within 1e-6 at positions up to a million, in an array or in nested lists; wrong also
        if it raises an error or returns another shape.

    Returns
    -------
    bool
        True if nothing is found wrong.

    References
    ----------
    Vaswani et al. (2017), "Attention Is All You Need", section 3.5.

    Examples
    --------
    >>> def zeros(positions, d_model, *, base=10_000.0):
    ...     return np.zeros((len(positions), d_model))
    >>> accepts(zeros)
    False
    """
    return _survives(candidate)


class _Wrong(NamedTuple):
    """A wrong encoding with a parameter: how it is made, the visible one, and how one is drawn."""

    make: Callable[[Any], Callable]
    shown: Any
    draw: Callable[[np.random.Generator], Any]

    def visible(self) -> Callable:
        return self.make(self.shown)

    def drawn(self, rng: np.random.Generator) -> Callable:
        return self.make(self.draw(rng))


def _log_uniform(low: float, high: float) -> Callable[[np.random.Generator], float]:
    return lambda rng: round(_tolerance(rng, low, high), 1)


def _pick(*choices: Any) -> Callable[[np.random.Generator], Any]:
    return lambda rng: choices[rng.integers(len(choices))]


def _at(change: Callable[[np.ndarray], np.ndarray]) -> Callable:
    """Make an encoding that changes its positions first."""

    def encoding(positions, d_model, *, base=10_000.0):
        return _encode(change(np.asarray(positions, dtype=float)), d_model, base)

    return encoding


def _fixed_base(fixed: float) -> Callable:
    def encoding(positions, d_model, *, base=10_000.0):
        return _encode(positions, d_model, fixed)

    return encoding


def _default_base(default: float) -> Callable:
    def encoding(positions, d_model, *, base=default):
        return _encode(positions, d_model, base)

    return encoding


def _phases(step: float) -> Callable:
    def encoding(positions, d_model, *, base=10_000.0):
        angles = _angles(positions, d_model, base) + step * np.arange(1, d_model // 2 + 1)
        return _interleave(np.sin(angles), np.cos(angles))

    return encoding


def _decimals(count: int) -> Callable:
    def encoding(positions, d_model, *, base=10_000.0):
        return _encode(positions, d_model, base).round(count)

    return encoding


def _table_of(length: int) -> Callable:
    def encoding(positions, d_model, *, base=10_000.0):
        positions = np.asarray(positions)
        if not np.array_equal(positions, positions.astype(int)):
            raise IndexError("rows are counted in whole numbers")
        return _encode(np.arange(length), d_model, base)[positions.astype(int)]

    return encoding


def _padded_width(positions, d_model, *, base=10_000.0):
    wide = 2 ** int(d_model - 1).bit_length()
    return _encode(positions, wide, base)[..., :d_model]


def _angles_by_logarithms(positions, d_model, *, base=10_000.0):
    logarithms = np.log(np.asarray(positions, dtype=float))[..., np.newaxis]
    angles = np.exp(logarithms - np.arange(0, d_model, 2) / d_model * np.log(base))
    return _interleave(np.sin(angles), np.cos(angles))


def _one_column(function: Callable) -> Callable:
    return lambda positions, d_model, *, base=10_000.0: function(_angles(positions, d_model, base))


def _same(function: Callable) -> _Wrong:
    return _Wrong(lambda made: made, function, lambda _: function)


# All wrong ideas about values of sinusoidal_encoding, and some that are wrong at few calls only.
_WRONG = {
    idea.name: _same(idea.function)
    for idea in SINUSOIDAL_ENCODING.misconceptions
    if idea.name != "odd d_model accepted"
} | {
    "positions from 1": _Wrong(lambda by: _at(lambda at: at + by), 1, _pick(1, 2, -1)),
    "base 1,000": _Wrong(_fixed_base, 1_000.0, _log_uniform(500, 5_000)),
    "base 100": _Wrong(_fixed_base, 100.0, _log_uniform(20, 400)),
    "another default base": _Wrong(_default_base, 1_000.0, _log_uniform(100, 5_000)),
    "fractions cut off": _Wrong(_at, np.trunc, _pick(np.trunc, np.floor, np.ceil)),
    "positions divided by the length": _Wrong(
        lambda times: _at(lambda at: at * times / len(at) if at.ndim else at), 1, _pick(1, 10, 100)
    ),
    "constant rows": _Wrong(
        lambda row: _at(lambda at: np.full(at.shape, at.flat[row])), 0, _pick(0, -1)
    ),
    "positions sorted": _same(_at(lambda at: np.sort(at, axis=None).reshape(at.shape))),
    "starts again after a length": _Wrong(
        lambda length: _at(lambda at: np.fmod(at, length)),
        10_000,
        lambda rng: _whole(rng, 2_000, 50_000),
    ),
    "rows of a stored table": _Wrong(_table_of, 512, lambda rng: _whole(rng, 300, 2_000)),
    "phases": _Wrong(_phases, 0.1, lambda rng: rng.uniform(0.05, 1)),
    "few decimals": _Wrong(_decimals, 3, _pick(3, 4)),
    "width of the next power of two": _same(_padded_width),
    "angles by logarithms": _same(_angles_by_logarithms),
    "one column for each pair": _Wrong(_one_column, np.sin, _pick(np.sin, np.cos)),
}


def _pair_by_pair(positions, d_model, *, base=10_000.0):
    positions = np.asarray(positions, dtype=float)
    columns = []
    for pair in range(d_model // 2):
        angle = positions / base ** (2 * pair / d_model)
        columns += [np.sin(angle), np.cos(angle)]
    return np.stack(columns, axis=-1)


def _exp_of_log(positions, d_model, *, base=10_000.0):
    frequencies = np.exp(-np.arange(0, d_model, 2) / d_model * np.log(base))
    angles = np.multiply.outer(np.asarray(positions, dtype=float), frequencies)
    return _interleave(np.sin(angles), np.cos(angles))


def _kept_rows() -> Callable:
    rows: dict[tuple[float, int, float], np.ndarray] = {}

    def encoding(positions, d_model, *, base=10_000.0):
        positions = np.asarray(positions, dtype=float)
        for position in positions.flat:
            rows.setdefault((position, d_model, base), _encode(position, d_model, base))
        kept = [rows[position, d_model, base] for position in positions.flat]
        return np.array(kept).reshape(*positions.shape, d_model)

    return encoding


def _right_encodings() -> dict[str, Callable]:
    variants = (
        "complex exponential",
        "float32 table from float64 angles",
        "nested lists",
        "columns of one matrix product",
    )
    functions = {name: SINUSOIDAL_ENCODING.variants[name] for name in variants} | {
        "sines and cosines filled in": sinusoidal.sinusoidal_encoding,
        "pair by pair": _pair_by_pair,
        "exp of log": _exp_of_log,
        "rows kept from earlier calls": _kept_rows(),
    }
    return {f"right: {name}": function for name, function in functions.items()}


@dataclass(frozen=True)
class _Candidate:
    """An encoding that looks like all others, and keeps warnings of NumPy from the reader."""

    function: Callable = field(repr=False)

    def __call__(self, positions, d_model, **base):
        with np.errstate(all="ignore"):
            return self.function(positions, d_model, **base)


def _candidates(functions: dict[str, Callable], rng: np.random.Generator | None = None):
    labels = list(functions)
    if rng is not None:
        rng.shuffle(labels)
    return [named_case(label, _Candidate(functions[label])) for label in labels]


_checkers = Misconceptions()


@_checkers.idea(
    "rejects everything",
    "it returns False for every right encoding there is, as a test does whose own numbers are "
    "wrong; each of them has to be accepted",
    "sinusoidal-testing",
)
def _(candidate):
    return False


def _accepts_alone(name: str) -> Callable[[Callable], bool]:
    """Make a test whose own numbers are those of a wrong idea."""
    functions = {idea.name: idea.function for idea in SINUSOIDAL_ENCODING.misconceptions}

    def accepts_wrong(candidate):
        def near(got, probe):
            wanted = functions[name](probe.positions, probe.d_model, base=probe.base or 10_000.0)
            return np.allclose(got, wanted, rtol=0, atol=1e-6)

        return _survives(candidate, test=near)

    return accepts_wrong


_checkers.idea(
    "expects halves",
    "the numbers that it compares with have all sines first and all cosines after them, so every "
    "right encoding is rejected; sine and cosine alternate",
    "sinusoidal-interleaving",
)(_accepts_alone("halves"))

_checkers.idea(
    "expects cosine first",
    "the numbers that it compares with have cosine in the even columns, so every right encoding is "
    "rejected; sine stands there, and cosine in the odd ones",
    "sinusoidal-interleaving",
)(_accepts_alone("sine and cosine swapped"))

_checkers.idea(
    "expects the exponent i/d",
    "the numbers that it compares with have the exponent i/d for pair i, so every right encoding "
    "is rejected; it is 2i/d",
    "sinusoidal-testing",
)(_accepts_alone("exponent i/d"))


@_checkers.idea(
    "accepts everything",
    "it returns True whatever is passed; a test that can't fail says nothing",
    "sinusoidal-testing",
)
def _(candidate):
    return True


@_checkers.idea(
    "shape alone",
    "only the shape is looked at, and wrong numbers have the right shape as well",
    "sinusoidal-testing",
)
def _(candidate):
    return _survives(candidate, test=lambda got, probe: True)


@_checkers.idea(
    "norm of the rows alone",
    "every row of sines and cosines has the norm sqrt(d/2), whatever its angles are; compare "
    "numbers with the formula",
    "sinusoidal-testing",
)
def _(candidate):
    return _survives(
        candidate,
        test=lambda got, probe: np.allclose((got**2).sum(axis=1), probe.d_model / 2, atol=1e-5),
    )


@_checkers.idea(
    "circle of the pairs alone",
    "the squares of a pair add up to 1 whatever its angle is; compare numbers with the formula",
    "sinusoidal-testing",
)
def _(candidate):
    return _survives(
        candidate,
        test=lambda got, _: np.allclose(got[:, 0::2] ** 2 + got[:, 1::2] ** 2, 1, atol=1e-5),
    )


def _toeplitz(got, probe):
    gram = got @ got.T
    return np.allclose(gram[1:, 1:], gram[:-1, :-1], atol=1e-5)


@_checkers.idea(
    "dot products alone",
    "dot products of rows depend on the offset alone at any frequencies, and in any order of "
    "columns; compare numbers with the formula",
    "sinusoidal-testing",
)
def _(candidate):
    neighbours = [_Probe(tuple(range(-3, 6)), probe.d_model, probe.base) for probe in _PROBES]
    return _survives(candidate, neighbours, _toeplitz)


def _turns(got, probe):
    offsets = np.subtract(probe.positions, probe.positions[0])
    turn = np.exp(-1j * _angles(offsets, probe.d_model, probe.base or 10_000.0))
    pairs = got[:, 0::2] + 1j * got[:, 1::2]
    return np.allclose(pairs, pairs[0] * turn, atol=1e-6)


@_checkers.idea(
    "rotation between rows alone",
    "a row turned by the offset gives the other row also where both start from a wrong angle; look "
    "at one row's numbers as well",
    "sinusoidal-testing",
)
def _(candidate):
    return _survives(candidate, test=_turns)


@_checkers.idea(
    "position 0 alone",
    "row 0 is 0, 1, 0, 1, ... at any frequencies; call the candidate at other positions, too",
    "sinusoidal-testing",
)
def _(candidate):
    return _survives(candidate, [probe._replace(positions=(0,)) for probe in _PROBES])


@_checkers.idea(
    "one call alone",
    "one call at the positions 0, 1, 2, ... shows one width, one base and easy positions",
    "sinusoidal-testing",
)
def _(candidate):
    return _survives(candidate, _PROBES[:1])


def _instead(**fields):
    return [probe._replace(**fields) for probe in _PROBES]


def _moved(move):
    return [probe._replace(positions=tuple(map(move, probe.positions))) for probe in _PROBES]


@_checkers.idea(
    "the default base alone",
    "the candidate is never called with another base, so one that ignores the base is accepted",
    "sinusoidal-testing",
)
def _(candidate):
    return _survives(candidate, _instead(base=None))


@_checkers.idea(
    "the base always given",
    "the base is never left out, so one with a wrong default is accepted",
    "sinusoidal-testing",
)
def _(candidate):
    return _survives(candidate, [*_instead(base=500.0), *_instead(base=10_000.0)])


@_checkers.idea(
    "one width alone",
    "all calls use one d_model, and a width that is a power of two hides mistakes; use another",
    "sinusoidal-testing",
)
def _(candidate):
    return _survives(candidate, _instead(d_model=8))


@_checkers.idea(
    "consecutive positions alone",
    "all calls use 0, 1, 2, ..., so that code that counts rows instead of reading positions is "
    "accepted",
    "sinusoidal-positions",
)
def _(candidate):
    return _survives(candidate, _instead(positions=(0, 1, 2, 3, 4)))


@_checkers.idea(
    "whole positions alone",
    "all positions are whole numbers, so one that cuts fractions off is accepted",
    "sinusoidal-positions",
)
def _(candidate):
    return _survives(candidate, _moved(int))


@_checkers.idea(
    "no negative positions",
    "no position is negative, so one that loses the sign is accepted",
    "sinusoidal-positions",
)
def _(candidate):
    return _survives(candidate, _moved(abs))


@_checkers.idea(
    "no large positions",
    "no position is large, so one that starts again after a length is accepted",
    "sinusoidal-positions",
)
def _(candidate):
    return _survives(candidate, _moved(lambda position: min(position, 99)))


@_checkers.idea(
    "positions in order alone",
    "positions only ever grow, so one that sorts them is accepted",
    "sinusoidal-positions",
)
def _(candidate):
    ordered = [probe._replace(positions=tuple(sorted(probe.positions))) for probe in _PROBES]
    return _survives(candidate, ordered)


@_checkers.idea(
    "one position a call",
    "each call passes one position, so that mistakes between rows do not show; pass several",
    "sinusoidal-positions",
)
def _(candidate):
    singles = [
        probe._replace(positions=(position,)) for probe in _PROBES for position in probe.positions
    ]
    return _survives(candidate, singles)


@_checkers.idea(
    "equal to the last bit",
    "numbers are compared without a tolerance, but two right computations differ in their last "
    "bits",
    "sinusoidal-precision",
)
def _(candidate):
    return _survives(candidate, test=lambda got, probe: np.array_equal(got, _wanted(probe)))


@_checkers.idea(
    "too strict for float32",
    "the tolerance is far below 1e-7, so a right table that is stored in float32 is rejected",
    "sinusoidal-precision",
)
def _(candidate):
    return _survives(candidate, test=partial(_near, tolerance=1e-9))


@_checkers.idea(
    "too loose",
    "the tolerance is so large that a table in float16, or of three decimals, is accepted",
    "sinusoidal-precision",
)
def _(candidate):
    return _survives(candidate, test=partial(_near, tolerance=2e-3))


@_checkers.idea(
    "nan is no difference",
    "nan > tolerance is False, so nan passes for a right number; ask for a difference that is "
    "small, as np.allclose does",
    "sinusoidal-testing",
)
def _(candidate):
    return _survives(
        candidate, test=lambda got, probe: not (np.abs(got - _wanted(probe)) > 1e-6).any()
    )


@_checkers.idea(
    "stops where a candidate raises",
    "an error of the candidate ends the test as well; catch it, and answer False",
    "sinusoidal-testing",
)
def _(candidate):
    return all(
        np.shape(got := _called(candidate, probe)) == (len(probe.positions), probe.d_model)
        and _near(got, probe)
        for probe in _PROBES
    )


@_checkers.idea(
    "takes arrays alone",
    "nested lists have no shape, and the test stops; make an array of what comes back",
    "sinusoidal-testing",
)
def _(candidate):
    for probe in _PROBES:
        try:
            got = _called(candidate, probe)
        except Exception:
            return False
        if got.shape != (len(probe.positions), probe.d_model) or not _near(got, probe):
            return False
    return True


ACCEPTS = Exercise(
    reference=accepts,
    assignment=ASSIGNMENT,
    section="sinusoidal-testing",
    difficulty=4,
    importance=5,
    minutes="25-35",
    criteria=(
        values(
            "every right encoding is accepted",
            0,
            visible=lambda: _candidates(_right_encodings()),
            drawn=lambda rng: _candidates(_right_encodings(), rng),
            gate=True,
        ),
        share(
            "wrong encodings are rejected",
            4,
            visible=lambda: _candidates({name: wrong.visible() for name, wrong in _WRONG.items()}),
            drawn=lambda rng: _candidates(
                {name: wrong.drawn(rng) for name, wrong in _WRONG.items()}, rng
            ),
        ),
    ),
    misconceptions=tuple(_checkers),
    off_limits=("sinusoidal_encoding",),
)


@ACCEPTS.variant("loop over single numbers")
def _(candidate):
    def right(positions, d_model, base, options):
        rows = candidate(positions, d_model, **options)
        if len(rows) != len(positions) or any(len(row) != d_model for row in rows):
            return False
        for position, row in zip(positions, rows, strict=True):
            for column, number in enumerate(row):
                angle = position / base ** (column // 2 * 2 / d_model)
                wanted = np.cos(angle) if column % 2 else np.sin(angle)
                if not abs(number - wanted) < 1e-5:
                    return False
        return True

    try:
        return right([0, 1, 2, 3], 16, 10_000, {}) and right(
            [1, -3, 999_999, -0.5, 7], 10, 77, {"base": 77}
        )
    except Exception:
        return False


@ACCEPTS.variant("one long list of positions at several widths and bases")
def _(candidate):
    positions = np.concatenate([np.linspace(-200, 200, 40)[::-1], [250_001, 0, 999_983]])
    return all(
        _survives(candidate, [_Probe(tuple(positions), d_model, base)])
        for d_model in (8, 20, 64)
        for base in (None, 30.0, 1e6)
    )


@ACCEPTS.variant("rotation between rows, and one row")
def _(candidate):
    return np.bool_(
        _survives(candidate, test=_turns)
        and _survives(candidate, [probe._replace(positions=(1, 2)) for probe in _PROBES])
    )


@ACCEPTS.variant("largest error")
def _(candidate):
    try:
        errors = [np.max(np.abs(np.subtract(_called(candidate, p), _wanted(p)))) for p in _PROBES]
    except Exception:
        return False
    return bool(max(errors) < 1e-6) if not np.isnan(errors).any() else False


@ACCEPTS.variant("complex numbers")
def _(candidate):
    def right(got, probe):
        turns = np.exp(1j * _angles(probe.positions, probe.d_model, probe.base or 10_000.0))
        return np.allclose(got[:, 1::2] + 1j * got[:, 0::2], turns, rtol=0, atol=1e-5)

    return _survives(candidate, test=right)


EXERCISES = (
    INVERSE_FREQUENCIES,
    SINUSOIDAL_ENCODING,
    WAVELENGTHS,
    ADD_POSITIONS,
    IMPOSSIBLE_PAIRS,
    ACCEPTS,
)
