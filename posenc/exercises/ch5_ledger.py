"""Chapter 5, the claims ledger: its exercises, and the ways they go wrong."""

from __future__ import annotations

import numpy as np

from posenc import sinusoidal
from posenc.exercises._model import (
    Exercise,
    Keyed,
    Misconceptions,
    case,
    draw_base,
    draw_even,
    holds,
    require,
    values,
)

ASSIGNMENT = "05-ledger"

VERDICTS = Keyed(
    name="verdicts",
    summary="Return your verdict on each of the six sentences.",
    labels=tuple("abcdef"),
    words=("true", "imprecise", "false"),
    points_each=0.5,
    assignment=ASSIGNMENT,
    section="ledger-verdicts",
    difficulty=3,
    importance=3,
    minutes="15-20",
)

_repeats = Misconceptions()


def _turned(d_model, base, length):
    """Return by how far each pair has turned, for each offset from 1 to length."""
    frequencies = float(base) ** (-np.arange(0, d_model, 2) / d_model)
    return np.arange(1, length + 1)[:, np.newaxis] * frequencies


def _squares(angles):
    """Return the squared distance that each pair contributes."""
    return np.square(np.sin(angles)) + np.square(np.cos(angles) - 1)


def _nearest(distances):
    at = int(np.argmin(distances))
    return at + 1, float(distances[at])


@_repeats.idea(
    "offset 0 counts",
    "position 0 is compared with itself, and nothing is nearer; offsets start at 1",
    "ledger-repeat",
)
def _(d_model, base, length):
    return 0, 0.0


@_repeats.idea(
    "index instead of offset",
    "argmin counts from 0 and the offsets from 1, so the offset is one more than the index",
    "ledger-repeat",
)
def _(d_model, base, length):
    offset, distance = _nearest(np.sqrt(_squares(_turned(d_model, base, length)).sum(axis=1)))
    return offset - 1, distance


@_repeats.idea(
    "last offset left out",
    "the range ends before length; offsets run from 1 to length, and length is one of them",
    "ledger-repeat",
)
def _(d_model, base, length):
    return _nearest(np.sqrt(_squares(_turned(d_model, base, length - 1)).sum(axis=1)))


@_repeats.idea(
    "one offset too many",
    "the offset length + 1 is compared too; offsets run from 1 to length",
    "ledger-repeat",
)
def _(d_model, base, length):
    return _nearest(np.sqrt(_squares(_turned(d_model, base, length + 1)).sum(axis=1)))


@_repeats.idea(
    "offset 1 left out",
    "the first distance is skipped, as if it were that of position 0 from itself; offsets run from "
    "1 to length",
    "ledger-repeat",
)
def _(d_model, base, length):
    distances = np.sqrt(_squares(_turned(d_model, base, length)).sum(axis=1))
    offset, distance = _nearest(distances[1:])
    return offset + 1, distance


@_repeats.idea(
    "first minimum",
    "the search stops as soon as the distance grows again; a later offset may lie nearer",
    "ledger-repeat",
)
def _(d_model, base, length):
    distances = np.sqrt(_squares(_turned(d_model, base, length)).sum(axis=1))
    grows = np.flatnonzero(np.diff(distances) > 0)
    at = int(grows[0]) if grows.size else length - 1
    return at + 1, float(distances[at])


@_repeats.idea(
    "angles instead of points",
    "angles are compared, wrapped to the shorter way round; the distance is the straight one "
    "between sines and cosines",
    "ledger-repeat",
)
def _(d_model, base, length):
    angles = _turned(d_model, base, length)
    return _nearest(np.linalg.norm(np.angle(np.exp(1j * angles)), axis=1))


@_repeats.idea(
    "factor 2 missing in the exponent",
    "pair i turns with base**(-i/d); its frequency is base**(-2i/d)",
    "ledger-repeat",
)
def _(d_model, base, length):
    frequencies = float(base) ** (-np.arange(d_model // 2) / d_model)
    return _nearest(np.sqrt(_squares(np.outer(np.arange(1, length + 1), frequencies)).sum(axis=1)))


@_repeats.idea(
    "factor 2 twice in the exponent",
    "pair i turns with base**(-4i/d); its frequency is base**(-2i/d)",
    "ledger-repeat",
)
def _(d_model, base, length):
    frequencies = float(base) ** (-2 * np.arange(0, d_model, 2) / d_model)
    return _nearest(np.sqrt(_squares(np.outer(np.arange(1, length + 1), frequencies)).sum(axis=1)))


@_repeats.idea(
    "a frequency for every column",
    "d_model frequencies are made, and a sine and a cosine of each, twice as many numbers as there "
    "are; a pair of columns shares one",
    "ledger-repeat",
)
def _(d_model, base, length):
    return _nearest(np.sqrt(_squares(_turned(2 * d_model, base, length)).sum(axis=1)))


@_repeats.idea(
    "first pair only",
    "the fastest pair alone is compared; an encoding repeats only where all its pairs do",
    "ledger-repeat",
)
def _(d_model, base, length):
    return _nearest(np.sqrt(_squares(_turned(d_model, base, length))[:, 0]))


@_repeats.idea(
    "first half of the columns",
    "only the faster half of the pairs is compared; all d_model columns belong to the encoding",
    "ledger-repeat",
)
def _(d_model, base, length):
    pairs = _squares(_turned(d_model, base, length))
    return _nearest(np.sqrt(pairs[:, : d_model // 4].sum(axis=1)))


@_repeats.idea(
    "sines only",
    "the cosines are left out, and a sine comes back to 0 after half a turn already",
    "ledger-repeat",
)
def _(d_model, base, length):
    return _nearest(np.linalg.norm(np.sin(_turned(d_model, base, length)), axis=1))


@_repeats.idea(
    "normalised",
    "the distance is divided by the norm of an encoding, sqrt(d/2); the distance itself is asked "
    "for",
    "ledger-repeat",
)
def _(d_model, base, length):
    pairs = _squares(_turned(d_model, base, length))
    return _nearest(np.sqrt(pairs.sum(axis=1) / (d_model / 2)))


@_repeats.idea(
    "mean instead of sum",
    "squares are averaged over the columns; the Euclidean distance adds them up",
    "ledger-repeat",
)
def _(d_model, base, length):
    return _nearest(np.sqrt(_squares(_turned(d_model, base, length)).sum(axis=1) / d_model))


@_repeats.idea(
    "no root",
    "this is the square of the distance; its root is asked for",
    "ledger-repeat",
)
def _(d_model, base, length):
    return _nearest(_squares(_turned(d_model, base, length)).sum(axis=1))


@_repeats.idea(
    "sum of absolute differences",
    "differences are added up without their squares; the Euclidean distance is the root of the sum "
    "of squares",
    "ledger-repeat",
)
def _(d_model, base, length):
    angles = _turned(d_model, base, length)
    return _nearest((np.abs(np.sin(angles)) + np.abs(np.cos(angles) - 1)).sum(axis=1))


@_repeats.idea(
    "distances of pairs added up",
    "a root is taken for every pair before they are summed; squares are summed over all pairs, and "
    "the root is taken last",
    "ledger-repeat",
)
def _(d_model, base, length):
    return _nearest(np.sqrt(_squares(_turned(d_model, base, length))).sum(axis=1))


@_repeats.idea(
    "similarity instead of distance",
    "the dot product is returned, which is largest where the distance is smallest; the distance is "
    "asked for",
    "ledger-repeat",
)
def _(d_model, base, length):
    kernel = np.cos(_turned(d_model, base, length)).sum(axis=1)
    return int(kernel.argmax()) + 1, float(kernel.max())


@_repeats.idea(
    "farthest instead of nearest",
    "the largest distance is looked for; the nearest repeat has the smallest",
    "ledger-repeat",
)
def _(d_model, base, length):
    distances = np.sqrt(_squares(_turned(d_model, base, length)).sum(axis=1))
    return int(distances.argmax()) + 1, float(distances.max())


@_repeats.idea(
    "base ignored",
    "the base is fixed at 10,000, and the argument is not used",
    "ledger-repeat",
)
def _(d_model, base, length):
    return _nearest(np.sqrt(_squares(_turned(d_model, 10_000.0, length)).sum(axis=1)))


def _belongs(candidate, d_model, base, length):
    offset, distance = candidate(d_model, base, length)
    require(
        offset == np.rint(offset) and 1 <= offset <= length,
        f"the offset should be a whole number from 1 to {length}; got {offset:g}",
    )
    origin, moved = sinusoidal.sinusoidal_encoding([0, offset], d_model, base=base)
    expected = np.linalg.norm(moved - origin)
    require(
        np.isclose(distance, expected, atol=1e-5),
        f"the encodings of 0 and {offset:g} are {expected:.6g} apart; got the distance "
        f"{distance:.6g}",
    )


def _clear(d_model: int, base: float, length: int) -> int | None:
    """Return the nearest offset, unless rounding could decide which one it is."""
    distances = np.sqrt(_squares(_turned(d_model, base, length)).sum(axis=1))
    first, second = np.partition(distances, 1)[:2]
    return int(distances.argmin()) + 1 if second - first > 1e-3 else None


def _short_cases(rng: np.random.Generator):
    """Draw ranges in which an encoding comes back: just in time, just too late, and before."""
    cases = []
    while len(cases) < 3:
        d_model, base, length = draw_even(rng, high=12), draw_base(rng), int(rng.integers(10, 60))
        offset = _clear(d_model, base, length)
        if offset and offset > 2 and _clear(d_model, base, offset - 1):
            cases.append(case(d_model, base, (offset, offset - 1, length)[len(cases)]))
    return cases


def _long_cases(rng: np.random.Generator):
    cases = []
    while len(cases) < 2:
        d_model, base = draw_even(rng, high=10), round(rng.uniform(3, 20), 1)
        length = int(rng.integers(1000, 8000))
        offset = _clear(d_model, base, length)
        if offset and offset > 1:
            cases.append(case(d_model, base, length))
    return cases


def _wide_case(rng: np.random.Generator):
    base = float(rng.choice([10, 100, 500])) if rng.random() < 0.5 else draw_base(rng)
    return case(draw_even(rng, low=32), base, int(rng.integers(100, 600)))


NEAREST_REPEAT = Exercise(
    reference=sinusoidal.nearest_repeat,
    assignment=ASSIGNMENT,
    section="ledger-repeat",
    difficulty=3,
    importance=3,
    minutes="10-15",
    atol=1e-5,
    rtol=1e-5,
    criteria=(
        holds(
            "the distance is that of the offset returned",
            0.5,
            _belongs,
            visible=lambda: [case(8, 10_000.0, 20)],
            drawn=lambda rng: _short_cases(rng)[:2],
        ),
        values(
            "a short range",
            0.5,
            visible=lambda: [case(8, 10_000.0, 20), case(8, 10_000.0, 6), case(8, 10_000.0, 5)],
            drawn=_short_cases,
        ),
        values(
            "a long range",
            0.5,
            visible=lambda: [case(8, 10.0, 8192), case(10, 4.0, 3000)],
            drawn=_long_cases,
        ),
        values(
            "many dimensions",
            0.5,
            visible=lambda: [case(64, 10.0, 512), case(64, 10_000.0, 512)],
            drawn=lambda rng: [_wide_case(rng) for _ in range(2)],
        ),
    ),
    misconceptions=tuple(_repeats),
)


@NEAREST_REPEAT.variant("vectorised")
def _(d_model, base, length):
    return _nearest(np.sqrt(_squares(_turned(d_model, base, length)).sum(axis=1)))


@NEAREST_REPEAT.variant("norms of a table's rows")
def _(d_model, base, length):
    table = sinusoidal.sinusoidal_encoding(np.arange(length + 1), d_model, base=base)
    distances = np.linalg.norm(table - table[0], axis=1)
    distances[0] = np.inf
    return np.argmin(distances), distances.min()


@NEAREST_REPEAT.variant("from the dot product")
def _(d_model, base, length):
    kernel = np.cos(_turned(d_model, base, length)).sum(axis=1)
    offset = kernel.argmax() + 1
    return [int(offset), float(np.sqrt(d_model - 2 * kernel.max()))]


@NEAREST_REPEAT.variant("loop over offsets")
def _(d_model, base, length):
    best = (0, np.inf)
    frequencies = np.array([1 / base ** (2 * pair / d_model) for pair in range(d_model // 2)])
    for offset in range(1, length + 1):
        difference = np.exp(1j * offset * frequencies) - 1
        distance = float(np.sqrt(np.vdot(difference, difference).real))
        if distance < best[1]:
            best = (offset, distance)
    return best


@NEAREST_REPEAT.variant("half angles, float32 distance")
def _(d_model, base, length):
    distances = 2 * np.linalg.norm(np.sin(_turned(d_model, base, length) / 2), axis=1)
    return np.array([distances.argmin() + 1, distances.min()], dtype=np.float32)


EXERCISES = (NEAREST_REPEAT,)
