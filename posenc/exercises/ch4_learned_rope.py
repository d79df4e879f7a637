"""Chapter 4, learned positions and RoPE: its exercises, and the ways they go wrong."""

from __future__ import annotations

import cmath
from functools import partial

import numpy as np

from posenc import learned, rotary, sinusoidal
from posenc.exercises._model import (
    Exercise,
    Failure,
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

ASSIGNMENT = "04-learned-rope"

_size = partial(draw_even, high=32)


def _x(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).round(2)


def _any_x(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return _x(rng, *shape).astype(str(rng.choice(["float32", "float64"])))


def _visible_x(*shape: int, seed: int = 4) -> np.ndarray:
    return _x(np.random.default_rng(seed), *shape)


_lookups = Misconceptions()


def _checked(table, positions):
    table, positions = np.asarray(table), np.asarray(positions)
    if positions.min() < 0 or positions.max() >= len(table):
        raise IndexError("outside the table")
    return table, positions


@_lookups.idea(
    "negative positions wrap",
    "a negative position gets some row without an error: NumPy, for one, counts -1 from the end; a "
    "learned table has no row for it",
    "learned-lookup",
)
def _(table, positions):
    return np.asarray(table)[np.asarray(positions)]


@_lookups.idea(
    "no position refused",
    "a position outside the table gets some row without an error: clipped to an end, wrapped "
    "round, or zeros. A learned table has no row for it",
    "learned-lookup",
)
def _(table, positions):
    return np.asarray(table)[np.clip(positions, 0, len(table) - 1)]


@_lookups.idea(
    "far positions accepted",
    "a position past the table's end gets some row, such as the last one, without an error",
    "learned-lookup",
)
def _(table, positions):
    if np.min(positions) < 0:
        raise IndexError("negative")
    return np.asarray(table)[np.minimum(positions, len(table) - 1)]


@_lookups.idea(
    "rows counted from 1",
    "position 1 gets the table's first row; rows are counted from 0",
    "learned-lookup",
)
def _(table, positions):
    table, positions = _checked(table, positions)
    return table[positions - 1]


@_lookups.idea(
    "first rows, whatever the positions",
    "only the number of positions is used: the first rows of the table come back",
    "learned-lookup",
)
def _(table, positions):
    table, positions = _checked(table, positions)
    return table[np.arange(positions.size) % len(table)].reshape(*positions.shape, -1)


@_lookups.idea(
    "positions flattened",
    "the rows come back as one long list; the result has the shape of positions and one axis more",
    "learned-lookup",
)
def _(table, positions):
    table, positions = _checked(table, positions)
    return table[positions.ravel()]


@_lookups.idea(
    "lists indexed as they are",
    "a list takes one integer, not a list of positions; np.asarray makes arrays of both first",
    "learned-lookup",
)
def _(table, positions):
    _checked(table, positions)
    return table[positions]


def _drawn_lookup(rng: np.random.Generator, *shape: int):
    length = int(rng.integers(7, 12))
    table = _any_x(rng, length, draw_even(rng, 8, 16))
    return case(table, rng.integers(0, length, shape, dtype=rng.choice([np.int32, np.int64])))


def _with(rng: np.random.Generator, outside: int, length: int):
    positions = rng.integers(0, length, 4)
    positions[rng.integers(1, 4)] = outside
    return case(_x(rng, length, 8), positions)


LOOKUP = Exercise(
    reference=learned.lookup,
    assignment=ASSIGNMENT,
    section="learned-lookup",
    difficulty=1,
    importance=4,
    minutes="5-10",
    criteria=(
        values(
            "rows of the table",
            0.5,
            visible=lambda: [case(_visible_x(6, 8), np.array([4, 0, 5, 5]))],
            drawn=lambda rng: [_drawn_lookup(rng, 5), _drawn_lookup(rng, 9)],
        ),
        values(
            "a single position, a batch of positions, lists",
            0.5,
            visible=lambda: [
                case(_visible_x(6, 8), 3),
                case(_visible_x(6, 8), np.array([[4, 0, 2], [5, 5, 1]])),
                case([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [2, 2, 0]),
            ],
            drawn=lambda rng: [
                case(_x(rng, 9, 8), int(rng.integers(2, 9))),
                _drawn_lookup(rng, 2, 3),
                case(_x(rng, 5, 8).tolist(), rng.integers(1, 5, 3).tolist()),
            ],
        ),
        refuses(
            "a negative position is refused",
            0.5,
            visible=lambda: [
                case(_visible_x(6, 8), np.array([0, -1])),
                case(_visible_x(6, 8), np.array([2, -7])),
            ],
            drawn=lambda rng: [_with(rng, -1, 6), _with(rng, -int(rng.integers(2, 7)), 7)],
        ),
        refuses(
            "a position past the table's end is refused",
            0.5,
            visible=lambda: [
                case(_visible_x(6, 8), np.array([2, 6])),
                case(_visible_x(6, 8), np.array([2, 20])),
            ],
            drawn=lambda rng: [_with(rng, 6, 6), _with(rng, int(rng.integers(8, 50)), 7)],
        ),
    ),
    misconceptions=tuple(_lookups),
)


@LOOKUP.variant("index after a check")
def _(table, positions):
    table, positions = _checked(table, positions)
    return table[positions]


@LOOKUP.variant("np.take")
def _(table, positions):
    if np.any(np.less(positions, 0)):
        raise ValueError("negative")
    return np.take(table, positions, axis=0)


@LOOKUP.variant("loop")
def _(table, positions):
    positions = np.asarray(positions)
    rows = np.empty((*positions.shape, np.shape(table)[1]))
    for index in np.ndindex(positions.shape):
        if positions[index] not in range(len(table)):
            raise IndexError("outside")
        rows[index] = table[positions[index]]
    return rows


@LOOKUP.variant("one-hot product")
def _(table, positions):
    table, positions = _checked(table, positions)
    return (positions[..., np.newaxis] == np.arange(len(table))) @ table


@LOOKUP.variant("nested lists, float32")
def _(table, positions):
    table, positions = _checked(table, positions)
    return table.astype(np.float32)[positions].tolist()


_gradients = Misconceptions()


def _inside(positions, max_len):
    positions = np.asarray(positions)
    if np.any(positions < 0) or np.any(positions >= max_len):
        raise IndexError("outside the table")
    return positions


def _spread(positions, upstream):
    """Return one position and one row for each place of a sequence, in one long list."""
    upstream = np.asarray(upstream, dtype=float)
    positions = np.broadcast_to(positions, upstream.shape[:-1])
    return positions.ravel(), upstream.reshape(-1, upstream.shape[-1])


def _sums(positions, upstream, max_len):
    positions, upstream = _spread(positions, upstream)
    gradient = np.zeros((max_len, upstream.shape[-1]))
    np.add.at(gradient, positions, upstream)
    return gradient


def _by_sequence(positions, upstream, max_len):
    """Return one gradient for each sequence, with the axes of the batch in front."""
    upstream = np.asarray(upstream, dtype=float)
    positions = np.broadcast_to(_inside(positions, max_len), upstream.shape[:-1])
    gradients = np.zeros((*upstream.shape[:-2], max_len, upstream.shape[-1]))
    for index in np.ndindex(upstream.shape[:-2]):
        gradients[index] = _sums(positions[index], upstream[index], max_len)
    return gradients


def _times_looked_up(positions, upstream, max_len):
    positions, _ = _spread(positions, upstream)
    return np.bincount(positions, minlength=max_len)[:, np.newaxis]


@_gradients.idea(
    "last write wins",
    "a row that was looked up several times keeps the last of its gradients: NumPy's "
    "gradient[positions] += upstream writes once to each row, as plain = does",
    "learned-gradient",
)
def _(positions, upstream, max_len):
    positions, upstream = _spread(_inside(positions, max_len), upstream)
    gradient = np.zeros((max_len, upstream.shape[-1]))
    gradient[positions] += upstream
    return gradient


@_gradients.idea(
    "a loop over the first axis",
    "with a batch, each step of the loop is a whole sequence, in which a repeated position counts "
    "once: NumPy's += with an array of indices writes once to each row",
    "learned-gradient",
)
def _(positions, upstream, max_len):
    upstream = np.atleast_2d(np.asarray(upstream, dtype=float))
    positions = np.broadcast_to(_inside(positions, max_len), upstream.shape[:-1])
    gradient = np.zeros((max_len, upstream.shape[-1]))
    for index, rows in zip(positions, upstream, strict=True):
        gradient[index] += rows
    return gradient


@_gradients.idea(
    "first of repeated positions",
    "a row that was looked up several times keeps the first of its gradients; they add up",
    "learned-gradient",
)
def _(positions, upstream, max_len):
    positions, upstream = _spread(_inside(positions, max_len), upstream)
    gradient = np.zeros((max_len, upstream.shape[-1]))
    rows, first = np.unique(positions, return_index=True)
    gradient[rows] = upstream[first]
    return gradient


@_gradients.idea(
    "mean instead of sum",
    "the gradients of a repeated position are averaged; they add up, so a row that is looked up "
    "often gets more",
    "learned-gradient",
)
def _(positions, upstream, max_len):
    positions = _inside(positions, max_len)
    times = _times_looked_up(positions, upstream, max_len)
    return _sums(positions, upstream, max_len) / np.maximum(times, 1)


@_gradients.idea(
    "mean over the batch",
    "the gradients of the sequences are averaged; those of a batch add up too, because a mean "
    "would be part of the loss and so of upstream already",
    "learned-gradient",
)
def _(positions, upstream, max_len):
    gradients = _by_sequence(positions, upstream, max_len)
    return gradients.mean(axis=tuple(range(gradients.ndim - 2)))


@_gradients.idea(
    "mean where positions are shared",
    "where a batch shares its positions, upstream is averaged over the sequences; their gradients "
    "add up, as they do where each has positions of its own",
    "learned-gradient",
)
def _(positions, upstream, max_len):
    positions, upstream = _inside(positions, max_len), np.asarray(upstream, dtype=float)
    lacking = upstream.ndim - 1 - positions.ndim
    return _sums(positions, upstream.mean(axis=tuple(range(lacking))), max_len)


@_gradients.idea(
    "batch summed first",
    "upstream is summed over the sequences before it meets the positions; that is right only where "
    "all sequences share them",
    "learned-gradient",
)
def _(positions, upstream, max_len):
    positions, upstream = _inside(positions, max_len), np.asarray(upstream, dtype=float)
    summed = upstream.sum(axis=tuple(range(upstream.ndim - 2)))
    return _sums(positions, np.broadcast_to(summed, (*positions.shape, summed.shape[-1])), max_len)


@_gradients.idea(
    "np.repeat instead of np.tile",
    "where a batch shares its positions, np.repeat lists each of them several times in a row; the "
    "rows of upstream go sequence by sequence, so the whole list comes again, as np.tile makes it",
    "learned-gradient",
)
def _(positions, upstream, max_len):
    positions, upstream = _inside(positions, max_len), np.asarray(upstream, dtype=float)
    rows = upstream.reshape(-1, upstream.shape[-1])
    return _sums(np.repeat(positions.ravel(), len(rows) // positions.size), rows, max_len)


@_gradients.idea(
    "each sequence overwrites the one before",
    "the gradients of one sequence add up, but they replace those of the sequences before it "
    "instead of adding to them",
    "learned-gradient",
)
def _(positions, upstream, max_len):
    upstream = np.asarray(upstream, dtype=float)
    gradients = _by_sequence(positions, upstream, max_len)
    positions = np.broadcast_to(positions, upstream.shape[:-1])
    gradient = np.zeros(gradients.shape[-2:])
    for index in np.ndindex(gradients.shape[:-2]):
        gradient[positions[index]] = gradients[index][positions[index]]
    return gradient


@_gradients.idea(
    "integer result",
    "the gradient is stored as integers, which cut off the fractions of upstream; np.zeros makes "
    "floats unless told otherwise",
    "learned-gradient",
)
def _(positions, upstream, max_len):
    return _sums(_inside(positions, max_len), upstream, max_len).astype(int)


@_gradients.idea(
    "divided by the number of positions",
    "the sums are divided by how many positions there are; nothing is divided here, because a mean "
    "would be part of the loss and so of upstream already",
    "learned-gradient",
)
def _(positions, upstream, max_len):
    positions, upstream = _spread(_inside(positions, max_len), upstream)
    return _sums(positions, upstream, max_len) / len(positions)


@_gradients.idea(
    "counts instead of gradients",
    "each row holds how often it was looked up; what adds up are the rows of upstream",
    "learned-gradient",
)
def _(positions, upstream, max_len):
    positions = _inside(positions, max_len)
    return _sums(positions, np.ones(np.shape(upstream)), max_len)


@_gradients.idea(
    "one gradient for each sequence",
    "the axes of the batch are still there; all sequences look up one table, so their gradients "
    "add up to one of its shape",
    "learned-gradient",
)
def _(positions, upstream, max_len):
    return _by_sequence(positions, upstream, max_len)


@_gradients.idea(
    "one batch axis summed",
    "the gradients of the first axis add up, further axes of the batch are still there; the sum "
    "goes over all axes but the last",
    "learned-gradient",
)
def _(positions, upstream, max_len):
    gradients = _by_sequence(positions, upstream, max_len)
    return gradients if gradients.ndim == 2 else gradients.sum(axis=0)


@_gradients.idea(
    "only the last sequence",
    "the gradient starts from zero again at each sequence, so only the last of a batch is left",
    "learned-gradient",
)
def _(positions, upstream, max_len):
    gradients = _by_sequence(positions, upstream, max_len)
    return gradients.reshape(-1, *gradients.shape[-2:])[-1]


@_gradients.idea(
    "the first sequence's positions for all",
    "every sequence is counted at the positions of the first one; each has positions of its own",
    "learned-gradient",
)
def _(positions, upstream, max_len):
    positions = _inside(positions, max_len)
    while positions.ndim > 1:
        positions = positions[0]
    return _sums(positions, upstream, max_len)


@_gradients.idea(
    "zip stops at the shorter",
    "where a batch shares its positions, they are one sequence long and upstream is several; zip "
    "stops after the first sequence and the others are lost",
    "learned-gradient",
)
def _(positions, upstream, max_len):
    positions, upstream = _inside(positions, max_len), np.asarray(upstream, dtype=float)
    rows = upstream.reshape(-1, upstream.shape[-1])
    return _sums(positions.ravel(), rows[: positions.size], max_len)


@_gradients.idea(
    "shared positions do not fit",
    "where a batch shares its positions, they have fewer axes than upstream; np.broadcast_to gives "
    "them to each sequence",
    "learned-gradient",
)
def _(positions, upstream, max_len):
    positions, upstream = _inside(positions, max_len), np.asarray(upstream, dtype=float)
    gradient = np.zeros((max_len, upstream.shape[-1]))
    np.add.at(gradient, positions, upstream)
    return gradient


@_gradients.idea(
    "a single position has no length",
    "len or a loop fails on a single position, which has no axis; np.reshape(positions, -1) makes "
    "one long list of positions of any shape",
    "learned-gradient",
)
def _(positions, upstream, max_len):
    _inside(positions, max_len)
    len(positions)
    return _sums(positions, upstream, max_len)


@_gradients.idea(
    "lists have no shape",
    "the shape of a list is asked for; np.asarray makes arrays of positions and upstream first",
    "learned-gradient",
)
def _(positions, upstream, max_len):
    positions = _inside(positions, max_len)
    return _sums(positions, upstream, max_len).reshape(max_len, upstream.shape[-1])


@_gradients.idea(
    "only rows that were looked up",
    "there is one row for each different position; the gradient has a row for each row of the "
    "table, and those that were not looked up are zero",
    "learned-gradient",
)
def _(positions, upstream, max_len):
    return _sums(_inside(positions, max_len), upstream, max_len)[np.unique(positions)]


@_gradients.idea(
    "ends at the largest position",
    "the rows end at the largest position that was looked up; the gradient has max_len rows, and "
    "the last of them are zero",
    "learned-gradient",
)
def _(positions, upstream, max_len):
    return _sums(_inside(positions, max_len), upstream, int(np.max(positions)) + 1)


@_gradients.idea(
    "dimensions as rows",
    "the gradient lies on its side, (d_model, max_len); it has the shape of the table, one row for "
    "each position",
    "learned-gradient",
)
def _(positions, upstream, max_len):
    return _sums(_inside(positions, max_len), upstream, max_len).T


@_gradients.idea(
    "rows counted from 1",
    "position 1 adds to the table's first row; rows are counted from 0",
    "learned-gradient",
)
def _(positions, upstream, max_len):
    return _sums(_inside(positions, max_len) - 1, upstream, max_len)


@_gradients.idea(
    "negative positions wrap",
    "a negative position adds to a row at the end, because NumPy counts negative indices from "
    "there; a learned table has no row for it",
    "learned-lookup",
)
def _(positions, upstream, max_len):
    return _sums(positions, upstream, max_len)


@_gradients.idea(
    "far positions accepted",
    "a position past the table's end is dropped, or adds to some other row, without an error; a "
    "learned table has no row for it",
    "learned-lookup",
)
def _(positions, upstream, max_len):
    if np.min(positions) < 0:
        raise IndexError("negative")
    return _sums(positions, upstream, max(max_len, int(np.max(positions)) + 1))[:max_len]


@_gradients.idea(
    "no position refused",
    "a position outside the table is dropped, or adds to some other row, without an error; a "
    "learned table has no row for it",
    "learned-lookup",
)
def _(positions, upstream, max_len):
    positions, upstream = _spread(positions, upstream)
    return (np.arange(max_len)[:, np.newaxis] == positions) @ upstream


def _repeating(rng: np.random.Generator, *shape: int, length: int) -> np.ndarray:
    """Draw positions that repeat within each sequence and between sequences, which differ."""
    while True:
        # Fewer rows than places; the last rows of the table are never looked up.
        rows = rng.permutation(length - 2)[: shape[-1] - 1]
        positions = rng.choice(rows, shape)
        sequences = positions.reshape(-1, shape[-1])
        sets = [set(sequence.tolist()) for sequence in sequences]
        if len(sets) == 1:
            return positions
        differ = (sequences[0] != sequences[1]).all() and not set.union(*sets) <= sets[-1]
        if differ and set.intersection(*sets):
            return positions


def _drawn_gradient(rng: np.random.Generator, *shape: int):
    length = int(rng.integers(12, 20))
    upstream = _any_x(rng, *shape, draw_even(rng, 8, 16))
    return case(_repeating(rng, *shape, length=length), upstream, length)


def _without_repetition(rng: np.random.Generator, count: int, *batch: int):
    length = int(rng.integers(12, 20))
    upstream = _any_x(rng, *batch, count, draw_even(rng, 8, 10))
    return case(rng.permutation(length - 2)[:count], upstream, length)


def _repeating_shared(rng: np.random.Generator, count: int, batch: int):
    length = int(rng.integers(12, 20))
    upstream = _any_x(rng, batch, count, draw_even(rng, 8, 10))
    return case(_repeating(rng, count, length=length), upstream, length)


def _first_and_last(rng: np.random.Generator):
    length = int(rng.integers(8, 14))
    positions = np.array([length - 1, 0, rng.integers(1, length - 1)])
    return case(positions, _any_x(rng, 3, 8), length)


def _outside(rng: np.random.Generator, outside: int, length: int):
    positions = rng.integers(0, length, 4)
    positions[rng.integers(0, 4)] = outside
    return case(positions, _x(rng, 4, 8), length)


def _nothing_lost(candidate, positions, upstream, max_len):
    gradient = candidate(positions, upstream, max_len)
    arrived = gradient.sum(axis=0)
    sent = np.asarray(upstream, dtype=float).reshape(-1, np.shape(upstream)[-1]).sum(axis=0)
    wrong = np.flatnonzero(~np.isclose(arrived, sent, atol=1e-4))
    if wrong.size:
        at = wrong[0]
        raise Failure(
            "the rows of the gradient should add up to the same as all rows of upstream; "
            f"column {at} of upstream adds up to {sent[at]:.4g}, of the gradient to "
            f"{arrived[at]:.4g}"
        )
    untouched = np.setdiff1d(np.arange(max_len), positions)
    filled = untouched[gradient[untouched].any(axis=1)]
    require(
        not filled.size,
        f"row {filled[:1].sum()} was not looked up, so it should be zero",
    )


LOOKUP_GRADIENT = Exercise(
    reference=learned.lookup_gradient,
    assignment=ASSIGNMENT,
    section="learned-gradient",
    difficulty=3,
    importance=4,
    minutes="15-20",
    atol=1e-5,
    rtol=1e-5,
    criteria=(
        holds(
            "nothing is lost, and rows that were not looked up are zero",
            0.5,
            _nothing_lost,
            visible=lambda: [
                case(np.array([4, 0, 2]), _visible_x(3, 8), 6),
                case(np.array([1, 4, 1, 1]), _visible_x(4, 8), 6),
            ],
            drawn=lambda rng: [_without_repetition(rng, 4), _drawn_gradient(rng, 5)],
        ),
        values(
            "each position once",
            0.5,
            visible=lambda: [
                case(np.array([4, 0, 2]), _visible_x(3, 8), 6),
                case(np.array([5, 0, 3]), _visible_x(3, 8), 6),
            ],
            drawn=lambda rng: [_without_repetition(rng, 5), _first_and_last(rng)],
        ),
        values(
            "repeated positions",
            1,
            visible=lambda: [case(np.array([1, 4, 1, 1]), _visible_x(4, 8), 6)],
            drawn=lambda rng: [_drawn_gradient(rng, 5), _drawn_gradient(rng, 7)],
        ),
        values(
            "batches with positions of their own",
            0.5,
            visible=lambda: [
                # Row 4 three times, row 1 twice, and the batch is of two.
                case(np.array([[4, 1, 4, 0], [1, 4, 2, 2]]), _visible_x(2, 4, 8), 6),
                case(
                    np.array([[[4, 1, 4], [1, 2, 2]], [[0, 0, 1], [1, 3, 3]]]),
                    _visible_x(2, 2, 3, 8),
                    6,
                ),
            ],
            drawn=lambda rng: [_drawn_gradient(rng, 3, 5), _drawn_gradient(rng, 2, 2, 4)],
        ),
        values(
            "a batch that shares its positions",
            0.5,
            visible=lambda: [
                case(np.array([0, 3, 1]), _visible_x(2, 3, 8), 6),
                case(np.array([3, 1, 3, 0]), _visible_x(3, 4, 8), 6),
            ],
            drawn=lambda rng: [
                _without_repetition(rng, 4, int(rng.integers(2, 5))),
                _repeating_shared(rng, 5, int(rng.integers(2, 5))),
            ],
        ),
        values(
            "a single position, lists",
            0.5,
            visible=lambda: [
                case(3, _visible_x(8), 5),
                case([2, 0, 2], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], 4),
            ],
            drawn=lambda rng: [
                case(int(rng.integers(2, 8)), _x(rng, 8), 10),
                case(_repeating(rng, 4, length=9).tolist(), _x(rng, 4, 8).tolist(), 9),
            ],
        ),
        refuses(
            "positions outside the table are refused",
            0.5,
            visible=lambda: [
                case(np.array([0, -1]), _visible_x(2, 8), 6),
                case(np.array([2, 6]), _visible_x(2, 8), 6),
            ],
            drawn=lambda rng: [
                _outside(rng, -1, 6),
                _outside(rng, -int(rng.integers(2, 7)), 7),
                _outside(rng, 6, 6),
                _outside(rng, int(rng.integers(8, 50)), 7),
            ],
        ),
    ),
    misconceptions=tuple(_gradients),
)


@LOOKUP_GRADIENT.variant("np.add.at")
def _(positions, upstream, max_len):
    return _sums(_inside(positions, max_len), upstream, max_len)


@LOOKUP_GRADIENT.variant("loop over places")
def _(positions, upstream, max_len):
    upstream = np.asarray(upstream)
    positions = np.broadcast_to(positions, upstream.shape[:-1])
    gradient = np.zeros((max_len, upstream.shape[-1]))
    for index in np.ndindex(positions.shape):
        if not 0 <= positions[index] < max_len:
            raise ValueError("outside")
        gradient[positions[index]] += upstream[index]
    return gradient


@LOOKUP_GRADIENT.variant("one-hot product")
def _(positions, upstream, max_len):
    positions, upstream = _spread(_inside(positions, max_len), upstream)
    return np.eye(max_len)[positions].T @ upstream


@LOOKUP_GRADIENT.variant("einsum over all axes of a batch")
def _(positions, upstream, max_len):
    upstream = np.asarray(upstream)
    positions = np.broadcast_to(_inside(positions, max_len), upstream.shape[:-1])
    chosen = (positions[..., np.newaxis] == np.arange(max_len)).astype(float)
    each = np.einsum("...r,...d->...rd", chosen, upstream)
    return each.reshape(-1, max_len, upstream.shape[-1]).sum(axis=0)


@LOOKUP_GRADIENT.variant("a mask for each row")
def _(positions, upstream, max_len):
    positions, upstream = _spread(_inside(positions, max_len), upstream)
    return np.array([upstream[positions == row].sum(axis=0) for row in range(max_len)])


@LOOKUP_GRADIENT.variant("bincount, column by column")
def _(positions, upstream, max_len):
    positions, upstream = _spread(_inside(positions, max_len), upstream)
    columns = [np.bincount(positions, column, minlength=max_len) for column in upstream.T]
    return np.stack(columns, axis=1)


@LOOKUP_GRADIENT.variant("sorted and summed in runs")
def _(positions, upstream, max_len):
    positions, upstream = _spread(_inside(positions, max_len), upstream)
    order = np.argsort(positions, kind="stable")
    rows, starts = np.unique(positions[order], return_index=True)
    gradient = np.zeros((max_len, upstream.shape[-1]))
    gradient[rows] = np.add.reduceat(upstream[order], starts, axis=0)
    return gradient


@LOOKUP_GRADIENT.variant("nested lists in pure Python, float32")
def _(positions, upstream, max_len):
    positions, upstream = _spread(_inside(positions, max_len), upstream)
    rows = [[0.0] * upstream.shape[-1] for _ in range(max_len)]
    for position, row in zip(positions.tolist(), upstream.astype(np.float32), strict=True):
        rows[position] = [had + new for had, new in zip(rows[position], row, strict=True)]
    return rows


_ropes = Misconceptions()

_OTHER = {"interleaved": "half", "half": "interleaved"}


def _frequencies(d, base):
    return base ** (-np.arange(0, d, 2) / d)


def _angles(x, positions, base):
    positions = np.asarray(positions, dtype=float)
    return positions[..., np.newaxis] * _frequencies(np.shape(x)[-1], base)


def _split(x, layout):
    x = np.asarray(x)
    if x.shape[-1] % 2:
        raise ValueError(f"the last axis of x must be even, got {x.shape[-1]}")
    if layout not in _OTHER:
        raise ValueError(f"unknown layout {layout!r}")
    if layout == "half":
        return np.split(x, 2, axis=-1)
    return x[..., 0::2], x[..., 1::2]


def _join(first, second, layout):
    if layout == "half":
        return np.concatenate([first, second], axis=-1)
    return np.stack([first, second], axis=-1).reshape(*first.shape[:-1], -1)


def _turn(x, angles, layout):
    first, second = _split(x, layout)
    cosines, sines = np.cos(angles), np.sin(angles)
    return _join(first * cosines - second * sines, first * sines + second * cosines, layout)


def _rotate(x, positions, *, base=10_000.0, layout="interleaved"):
    return _turn(x, _angles(x, positions, base), layout)


@_ropes.idea(
    "x returned as it is",
    "no pair is turned: what comes back is x, whatever the positions",
    "rope-pairs",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    _split(x, layout)
    return np.asarray(x)


@_ropes.idea(
    "turns the wrong way",
    "each pair turns clockwise, by minus the angle; the minus sign belongs to the first of a pair",
    "rope-pairs",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    return _turn(x, -_angles(x, positions, base), layout)


@_ropes.idea(
    "reflection",
    "each pair is mirrored instead of turned: one of the two sines needs a minus sign, and both "
    "cosines are positive",
    "rope-pairs",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    first, second = _split(_rotate(x, positions, base=base, layout=layout), layout)
    return _join(first, -second, layout)


@_ropes.idea(
    "no minus sign",
    "sines are added in both places; a rotation adds one and subtracts the other",
    "rope-pairs",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    first, second = _split(x, layout)
    angles = _angles(x, positions, base)
    cosines, sines = np.cos(angles), np.sin(angles)
    return _join(first * cosines + second * sines, first * sines + second * cosines, layout)


@_ropes.idea(
    "sine and cosine exchanged",
    "cosines stand where sines belong and sines where cosines do; at position 0 the cosine is 1, "
    "and the vector stays as it is",
    "rope-pairs",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    return _turn(x, np.pi / 2 - _angles(x, positions, base), layout)


@_ropes.idea(
    "adds an encoding",
    "sines and cosines are added to x, as in chapter 2; RoPE multiplies: it turns the pairs of x",
    "rope-pairs",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    return x + sinusoidal.sinusoidal_encoding(positions, np.shape(x)[-1], base=base)


def _in_one_sequence(wrong):
    """Make a wrong idea right for batches and integers.

    A first attempt may crash there or cut the result besides; its idea is recognised all the same.
    """

    def function(x, positions, *, base=10_000.0, layout="interleaved"):
        sequence = np.ndim(x) == 2 and np.asarray(x).dtype.kind == "f"
        return (wrong if sequence else _rotate)(x, positions, base=base, layout=layout)

    return function


def _new_first(x, positions, base, layout, pairs):
    """Overwrite the first of each pair, then compute the second from it."""
    _split(x, layout)
    angles = _angles(x, positions, base)
    first, second = _split(x, pairs)
    first[...] = first * np.cos(angles) - second * np.sin(angles)
    second[...] = first * np.sin(angles) + second * np.cos(angles)
    return x


@_ropes.idea(
    "uses the new first",
    "the first of a pair is overwritten, and the second is then computed from the new value "
    "instead of the old one",
    "rope-traps",
)
@_in_one_sequence
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    return _new_first(np.array(x), positions, base, layout, layout)


@_ropes.idea(
    "uses the new first, interleaved whatever the layout",
    "the first of a pair is overwritten, and the second is then computed from the new value "
    "instead of the old one; pairs are always (2i, 2i + 1), also where (i, i + d/2) is asked for",
    "rope-traps",
)
@_in_one_sequence
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    return _new_first(np.array(x), positions, base, layout, "interleaved")


@_ropes.idea(
    "one frequency for all pairs",
    "every pair turns by the position itself; pair i turns by the position times its own frequency",
    "rope-pairs",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    return _turn(x, np.asarray(positions, dtype=float)[..., np.newaxis], layout)


@_ropes.idea(
    "exponent i/d",
    "the factor 2 of the exponent -2i/d is missing, so frequencies fall only half as fast",
    "sinusoidal-frequencies",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    return _rotate(x, positions, base=base**0.5, layout=layout)


@_ropes.idea(
    "exponent 4i/d",
    "the factor 2 is there twice: an index that already counts 0, 2, 4, ... is doubled again, or "
    "d/2 stands for d",
    "sinusoidal-frequencies",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    return _rotate(x, positions, base=base**2, layout=layout)


@_ropes.idea(
    "exponent i/(d/2 - 1)",
    "frequencies are spread evenly from 1 to 1/base with both ends, as linspace does; the exponent "
    "-2i/d never reaches -1",
    "sinusoidal-frequencies",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    d = np.shape(x)[-1]
    return _rotate(x, positions, base=base ** (d / (d - 2)), layout=layout)


@_ropes.idea(
    "positive exponent",
    "the exponent lacks its minus sign, so pairs turn faster and faster; the base is raised to "
    "-2i/d, or stands below the line",
    "sinusoidal-frequencies",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    return _rotate(x, positions, base=1 / base, layout=layout)


@_ropes.idea(
    "pairs counted from 1",
    "the first pair already turns by the second frequency; pairs are counted from 0, so pair 0 "
    "turns by the position itself",
    "sinusoidal-frequencies",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    frequencies = _frequencies(np.shape(x)[-1], base)
    angles = _angles(x, positions, base) * frequencies[1]
    return _turn(x, angles, layout)


@_ropes.idea(
    "width of all heads together",
    "the exponent divides by heads times d; d is the width of one head, the last axis of x",
    "rope-pairs",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    heads = np.shape(x)[-3] if np.ndim(x) > 2 else 1
    return _rotate(x, positions, base=base ** (1 / heads), layout=layout)


@_ropes.idea(
    "heads and sequence swapped",
    "positions run along the third axis from the end, the heads; the sequence is the axis before "
    "the last",
    "rope-pairs",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    if np.ndim(x) < 3:
        return _rotate(x, positions, base=base, layout=layout)
    return _rotate(np.swapaxes(x, -3, -2), positions, base=base, layout=layout).swapaxes(-3, -2)


@_ropes.idea(
    "positions flattened",
    "np.outer makes one row of all positions; positions may have axes for batch and heads, which "
    "must be kept",
    "rope-traps",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    return _rotate(x, np.ravel(positions), base=base, layout=layout)


@_ropes.idea(
    "new axis after the first",
    "positions[:, None] puts the new axis after the first one; where positions have axes for batch "
    "and heads, it belongs after the last: positions[..., None]",
    "rope-traps",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    angles = np.asarray(positions, dtype=float)[:, np.newaxis] * _frequencies(np.shape(x)[-1], base)
    return _turn(x, angles, layout)


@_ropes.idea(
    "rows counted by arange",
    "rows are numbered 0, 1, 2, ... and the positions given are ignored",
    "rope-pairs",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    return _rotate(x, np.arange(np.shape(x)[-2]), base=base, layout=layout)


@_ropes.idea(
    "positions from 1",
    "every position is one too large: position 0 should leave its row as it is",
    "rope-pairs",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    return _rotate(x, np.asarray(positions, dtype=float) + 1, base=base, layout=layout)


@_ropes.idea(
    "fractions cut off",
    "positions are turned into integers, so 2.5 gets the angle of 2",
    "rope-pairs",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    return _rotate(x, np.asarray(positions).astype(int), base=base, layout=layout)


@_ropes.idea(
    "sign of positions lost",
    "a negative position turns as if it were positive; its sign must reach the sines",
    "rope-pairs",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    return _rotate(x, np.abs(positions), base=base, layout=layout)


@_ropes.idea(
    "positions start over at 4096",
    "angles come from a table of limited length that is read modulo its length, so far positions "
    "get the angles of near ones",
    "rope-pairs",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    positions = np.asarray(positions, dtype=float)
    return _rotate(x, np.fmod(positions, 4096), base=base, layout=layout)


@_ropes.idea(
    "positions stop at 4095",
    "angles come from a table of limited length, and every position past its end gets the angles "
    "of its last row",
    "rope-pairs",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    return _rotate(x, np.minimum(positions, 4095), base=base, layout=layout)


@_ropes.idea(
    "float32 angles",
    "angles are formed in float32, which has about seven digits: at position 100,000 little is "
    "left of them. Form angles in float64 and cast last",
    "sinusoidal-precision",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    frequencies = _frequencies(np.shape(x)[-1], base).astype(np.float32)
    positions = np.asarray(positions, dtype=np.float32)
    return _turn(x, positions[..., np.newaxis] * frequencies, layout)


@_ropes.idea(
    "base ignored",
    "the base is fixed at 10,000, and the argument is not used",
    "rope-pairs",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    return _rotate(x, positions, layout=layout)


@_ropes.idea(
    "interleaved whatever the layout",
    "the layout is not used: pairs are always (2i, 2i + 1), also where (i, i + d/2) is asked for",
    "rope-layouts",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    _split(x, layout)
    return _rotate(x, positions, base=base)


@_ropes.idea(
    "halves whatever the layout",
    "the layout is not used: pairs are always (i, i + d/2), also where (2i, 2i + 1) is asked for",
    "rope-layouts",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    _split(x, layout)
    return _rotate(x, positions, base=base, layout="half")


@_ropes.idea(
    "turned pairs stored as halves",
    "all firsts are stored before all seconds; where pairs are (2i, 2i + 1), both must go back to "
    "the columns that they came from",
    "rope-layouts",
)
@_in_one_sequence
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    angles = _angles(x, positions, base)
    first, second = _split(x, layout)
    return np.concatenate(
        [
            first * np.cos(angles) - second * np.sin(angles),
            first * np.sin(angles) + second * np.cos(angles),
        ],
        axis=-1,
    )


@_ropes.idea(
    "layouts exchanged",
    "each layout does what the other should: interleaved pairs are (2i, 2i + 1), half pairs are "
    "(i, i + d/2)",
    "rope-layouts",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    _split(x, layout)
    return _rotate(x, positions, base=base, layout=_OTHER[layout])


def _mixed(x, positions, base, layout, *, pairs, angles):
    """Pair columns as one layout does, and give them the angles that the other would."""
    _split(x, layout)
    turns = _angles(x, positions, base)
    of_first, of_second = _split(_join(turns, turns, angles), pairs)
    first, second = _split(x, pairs)
    return _join(
        first * np.cos(of_first) - second * np.sin(of_first),
        first * np.sin(of_second) + second * np.cos(of_second),
        pairs,
    )


@_ropes.idea(
    "pairs of one layout, angles of the other",
    "the two layouts are mixed: the columns that are paired do not have the same angle, so this "
    "is no rotation",
    "rope-layouts",
)
@_in_one_sequence
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    _split(x, layout)
    return _mixed(x, positions, base, layout, pairs=layout, angles=_OTHER[layout])


@_ropes.idea(
    "half pairs with interleaved angles",
    "in both layouts columns i and i + d/2 are paired, while angles lie as the pairs (2i, 2i + 1) "
    "need them: the columns that are paired do not have the same angle, so this is no rotation",
    "rope-layouts",
)
@_in_one_sequence
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    return _mixed(x, positions, base, layout, pairs="half", angles="interleaved")


@_ropes.idea(
    "interleaved pairs with half angles",
    "in both layouts columns 2i and 2i + 1 are paired, while angles lie as the pairs (i, i + d/2) "
    "need them: the columns that are paired do not have the same angle, so this is no rotation",
    "rope-layouts",
)
@_in_one_sequence
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    return _mixed(x, positions, base, layout, pairs="interleaved", angles="half")


@_ropes.idea(
    "integer result",
    "where x holds integers, the result does too, so every value is cut to a whole number: an "
    "array made like x keeps its integer dtype",
    "rope-traps",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    result = np.empty_like(x)
    result[...] = _rotate(x, positions, base=base, layout=layout)
    return result


@_ropes.idea(
    "changes x",
    "the result is written into x itself, so the caller's vectors are changed; np.asarray does "
    "not copy",
    "rope-traps",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    x = np.asarray(x, dtype=float)
    x[...] = _rotate(x, positions, base=base, layout=layout)
    return x


@_ropes.idea(
    "overwrites x while it reads it",
    "the turned first of each pair is written into x, where the second still needs the old one; "
    "the caller's vectors are changed too",
    "rope-traps",
)
@_in_one_sequence
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    return _new_first(x, positions, base, layout, layout)


@_ropes.idea(
    "overwrites x while it reads it, interleaved whatever the layout",
    "the turned first of each pair is written into x, where the second still needs the old one, "
    "and the caller's vectors are changed too; pairs are always (2i, 2i + 1), also where "
    "(i, i + d/2) is asked for",
    "rope-traps",
)
@_in_one_sequence
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    return _new_first(x, positions, base, layout, "interleaved")


def _rotate_even_part(x, positions, base, layout):
    x = np.asarray(x)
    even = x.shape[-1] // 2 * 2
    turned = _rotate(x[..., :even], positions, base=base, layout=layout)
    return np.concatenate([turned, x[..., even:]], axis=-1)


@_ropes.idea(
    "odd d accepted",
    "an odd d is not refused, although the last column then has no partner to turn with",
    "rope-traps",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    return _rotate_even_part(x, positions, base, layout)


@_ropes.idea(
    "unknown layout accepted",
    "a layout that is neither 'interleaved' nor 'half' is not refused, so a typing error gives "
    "wrong numbers instead of a message",
    "rope-traps",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    return _rotate(x, positions, base=base, layout=layout if layout in _OTHER else "interleaved")


@_ropes.idea(
    "nothing refused",
    "neither an odd d, whose last column has no partner to turn with, nor an unknown layout is "
    "refused",
    "rope-traps",
)
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    layout = layout if layout in _OTHER else "interleaved"
    return _rotate_even_part(x, positions, base, layout)


def _odd(rng: np.random.Generator) -> int:
    return 2 * int(rng.integers(4, 12)) + 1


def _shuffled(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.permutation(np.arange(2, 60))[:count]


def _drawn_rope(rng: np.random.Generator, draw_x=_any_x, **kwargs):
    length = int(rng.integers(3, 7))
    return case(draw_x(rng, length, _size(rng)), np.arange(length), **kwargs)


def _drawn_batches(rng: np.random.Generator, **kwargs):
    batch, length = int(rng.integers(2, 4)), int(rng.integers(4, 7))
    # As many heads and pairs as positions: a mix-up of these axes gives numbers and no error.
    x = _x(rng, batch, length, length, 2 * length)
    return [
        case(x, _shuffled(rng, length), **kwargs),
        case(x, _shuffled(rng, batch * length).reshape(batch, 1, length), **kwargs),
    ]


def _one_row(rng: np.random.Generator):
    return case(_any_x(rng, 1, _size(rng)), np.array([0]))


def _four_rows(rng: np.random.Generator):
    return case(_any_x(rng, 4, _size(rng)), _shuffled(rng, 4))


def _turns_nothing(candidate, x, positions):
    change = np.abs(candidate(x, positions) - x)
    require(
        change.max() < 1e-4,
        "position 0 turns nothing, so the row should come back as it is; "
        f"largest change {change.max():.3g}",
    )


def _turns_by_distance(candidate, x, positions):
    def turned(of_queries, of_keys):
        return candidate(x, positions + np.repeat([of_queries, of_keys], 2))

    def scores(rows):
        return rows[:2] @ rows[2:].T

    here, there = turned(0, 0), turned(11, 11)
    before, after = np.linalg.norm(x, axis=-1), np.linalg.norm(here, axis=-1)
    worst = np.abs(after - before).argmax()
    require(
        np.allclose(before, after, atol=1e-4),
        f"a vector that is turned keeps its length; {before[worst]:.4g} became {after[worst]:.4g}",
    )
    require(
        np.allclose(scores(here), scores(there), atol=1e-4),
        "with all positions plus 11, dot products of two rows should stay the same; largest change "
        f"{np.abs(scores(here) - scores(there)).max():.3g}",
    )
    require(
        not np.allclose(scores(here), scores(turned(11, 0)), atol=1e-4),
        "with 11 added to some positions alone, their dot products with the other rows should "
        "change; nothing changed",
    )


ROPE = Exercise(
    reference=rotary.rope,
    assignment=ASSIGNMENT,
    section="rope-pairs",
    difficulty=4,
    importance=5,
    minutes="25-35",
    atol=1e-5,
    rtol=1e-5,
    criteria=(
        holds(
            "position 0 turns nothing",
            0.5,
            _turns_nothing,
            visible=lambda: [case(_visible_x(1, 8), np.array([0]))],
            drawn=lambda rng: [_one_row(rng)],
        ),
        holds(
            "lengths are kept, and dot products depend on the distance alone",
            0.5,
            _turns_by_distance,
            visible=lambda: [case(_visible_x(4, 8), np.array([7, 2, 0, 5]))],
            drawn=lambda rng: [_four_rows(rng)],
        ),
        values(
            "positions 0, 1, 2, ...",
            1,
            visible=lambda: [
                case(_visible_x(3, 8), np.arange(3)),
                case(_visible_x(5, 12), np.arange(5)),
            ],
            drawn=lambda rng: [_drawn_rope(rng) for _ in range(3)],
        ),
        values(
            "the half layout",
            1,
            visible=lambda: [
                case(_visible_x(3, 8), np.arange(3), layout="half"),
                case(_visible_x(5, 12), np.arange(5), layout="half"),
            ],
            drawn=lambda rng: [_drawn_rope(rng, layout="half") for _ in range(3)],
        ),
        values(
            "positions with gaps, in any order",
            1,
            visible=lambda: [case(_visible_x(3, 8), np.array([7, 2, 30]))],
            drawn=lambda rng: [case(_x(rng, 5, _size(rng)), _shuffled(rng, 5)) for _ in range(2)],
        ),
        values(
            "negative and fractional positions",
            1,
            visible=lambda: [
                case(_visible_x(2, 8), np.array([-3, -8])),
                case(_visible_x(3, 8), np.array([2.5, 0.25, 9.75])),
            ],
            drawn=lambda rng: [
                case(_x(rng, 4, _size(rng)), -_shuffled(rng, 4)),
                case(
                    _x(rng, 4, _size(rng)),
                    _shuffled(rng, 4) + rng.choice([0.25, 0.5, 0.75], 4),
                ),
            ],
        ),
        values(
            "another base",
            1,
            visible=lambda: [
                case(_visible_x(3, 8), np.arange(3), base=500.0),
                case(_visible_x(3, 8), np.arange(3), base=500.0, layout="half"),
            ],
            drawn=lambda rng: [
                _drawn_rope(rng, base=draw_base(rng)),
                _drawn_rope(rng, base=draw_base(rng), layout="half"),
            ],
        ),
        values(
            "batches and heads",
            0.5,
            visible=lambda: [
                case(_visible_x(2, 4, 4, 8), np.array([3, 0, 1, 9])),
                case(_visible_x(2, 4, 4, 8), np.array([[[3, 0, 1, 9]], [[5, 6, 2, 4]]])),
            ],
            drawn=_drawn_batches,
        ),
        values(
            "batches and heads in the half layout",
            0.5,
            visible=lambda: [
                case(_visible_x(2, 4, 4, 8), np.array([3, 0, 1, 9]), layout="half"),
                case(
                    _visible_x(2, 4, 4, 8),
                    np.array([[[3, 0, 1, 9]], [[5, 6, 2, 4]]]),
                    layout="half",
                ),
            ],
            drawn=lambda rng: _drawn_batches(rng, layout="half"),
        ),
        values(
            "large positions",
            0.5,
            visible=lambda: [case(_visible_x(2, 8), np.array([100_003, 131_071]))],
            drawn=lambda rng: [case(_x(rng, 6, _size(rng)), rng.integers(90_000, 200_000, 6) | 1)],
        ),
        values(
            "integers, given as lists",
            0.5,
            visible=lambda: [case([[1, 2, 3, 4, 5, 6, 7, 8]], [3])],
            drawn=lambda rng: [
                case(rng.integers(-9, 10, (4, 8)).tolist(), _shuffled(rng, 4).tolist())
            ],
        ),
        leaves_unchanged(
            "x is left unchanged",
            0.5,
            visible=lambda: [
                case(_visible_x(3, 8), np.arange(3)),
                case(_visible_x(3, 8), np.arange(3), layout="half"),
            ],
            # float64, which np.asarray(x, dtype=float) does not copy.
            drawn=lambda rng: [_drawn_rope(rng, _x), _drawn_rope(rng, _x, layout="half")],
        ),
        refuses(
            "an odd d is refused, and an unknown layout",
            0.5,
            visible=lambda: [
                case(_visible_x(3, 9), np.arange(3)),
                case(_visible_x(3, 8), np.arange(3), layout="halves"),
            ],
            drawn=lambda rng: [
                case(_x(rng, 3, _odd(rng)), np.arange(3)),
                case(_x(rng, 3, _odd(rng)), np.arange(3), layout="half"),
                _drawn_rope(rng, layout=str(rng.choice(["halves", "pairs", "neox"]))),
            ],
        ),
    ),
    misconceptions=tuple(_ropes),
)


ROPE.variant("vectorised")(_rotate)


@ROPE.variant("loop over entries")
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    x = np.asarray(x, dtype=float)
    d = x.shape[-1]
    if d % 2 or layout not in _OTHER:
        raise ValueError("odd or unknown")
    positions = np.broadcast_to(positions, x.shape[:-1])
    result = np.zeros(x.shape)
    for index in np.ndindex(x.shape[:-1]):
        for pair in range(d // 2):
            angle = positions[index] * base ** (-2 * pair / d)
            one, two = (pair, pair + d // 2) if layout == "half" else (2 * pair, 2 * pair + 1)
            cosine, sine = np.cos(angle), np.sin(angle)
            result[(*index, one)] = x[index][one] * cosine - x[index][two] * sine
            result[(*index, two)] = x[index][one] * sine + x[index][two] * cosine
    return result


@ROPE.variant("complex numbers")
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    first, second = _split(x, layout)
    turned = (first + 1j * second) * np.exp(1j * _angles(x, positions, base))
    return _join(turned.real, turned.imag, layout)


@ROPE.variant("block matrices")
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    angles = _angles(x, positions, base)
    cosines, sines = np.cos(angles), np.sin(angles)
    blocks = np.stack([cosines, -sines, sines, cosines], axis=-1).reshape(*angles.shape, 2, 2)
    turned = blocks @ np.stack(_split(x, layout), axis=-1)[..., np.newaxis]
    return _join(turned[..., 0, 0], turned[..., 1, 0], layout)


@ROPE.variant("rotate half, repeated angles")
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    angles = _angles(x, positions, base)
    angles = _join(angles, angles, layout)
    first, second = _split(x, layout)
    return x * np.cos(angles) + _join(-second, first, layout) * np.sin(angles)


@ROPE.variant("half by permuting columns")
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    x = np.asarray(x)
    if layout != "half":
        return _rotate(x, positions, base=base, layout=layout)
    order = np.arange(x.shape[-1]).reshape(2, -1).T.ravel()
    turned = _rotate(x[..., order], positions, base=base)
    return turned[..., np.argsort(order)]


@ROPE.variant("float32 tables from float64 angles")
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    angles = _angles(x, positions, base)
    cosines, sines = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    first, second = _split(np.asarray(x, dtype=np.float32), layout)
    return _join(first * cosines - second * sines, first * sines + second * cosines, layout)


@ROPE.variant("nested lists in pure Python")
def _(x, positions, *, base=10_000.0, layout="interleaved"):
    def row(vector, position):
        first, second = _split(vector, layout)
        turned = [
            complex(one, two) * cmath.exp(1j * position * frequency)
            for one, two, frequency in zip(
                first, second, _frequencies(len(vector), base), strict=True
            )
        ]
        parts = np.array([[turn.real, turn.imag] for turn in turned])
        return _join(parts[:, 0], parts[:, 1], layout)

    x = np.asarray(x)
    places = np.broadcast_to(positions, x.shape[:-1])
    rows = [row(x[index], float(places[index])) for index in np.ndindex(x.shape[:-1])]
    return np.reshape(rows, x.shape).tolist()


_scores = Misconceptions()


def _scored(queries, keys):
    return queries @ np.swapaxes(keys, -1, -2) / np.sqrt(np.shape(queries)[-1])


@_scores.idea(
    "not scaled",
    "the dot products are right, but they are not divided by sqrt(d)",
    "rope-scores",
)
def _(queries, keys, query_positions, key_positions, *, base=10_000.0):
    rotated = _rotate(queries, query_positions, base=base)
    return rotated @ np.swapaxes(_rotate(keys, key_positions, base=base), -1, -2)


@_scores.idea(
    "divided by d",
    "scores are divided by d; the scale is its square root",
    "rope-scores",
)
def _(queries, keys, query_positions, key_positions, *, base=10_000.0):
    scores = _scored(
        _rotate(queries, query_positions, base=base), _rotate(keys, key_positions, base=base)
    )
    return scores / np.sqrt(np.shape(queries)[-1])


@_scores.idea(
    "rotated after the product",
    "the scores are rotated; queries and keys must be, each before the product",
    "rope-scores",
)
def _(queries, keys, query_positions, key_positions, *, base=10_000.0):
    return _rotate(_scored(np.asarray(queries), keys), query_positions, base=base)


@_scores.idea(
    "the queries' positions for both",
    "keys are rotated by the positions of the queries; each side has positions of its own",
    "rope-scores",
)
def _(queries, keys, query_positions, key_positions, *, base=10_000.0):
    return _scored(
        _rotate(queries, query_positions, base=base), _rotate(keys, query_positions, base=base)
    )


@_scores.idea(
    "positions exchanged",
    "queries are rotated by the keys' positions and keys by the queries', which turns every "
    "distance round",
    "rope-scores",
)
def _(queries, keys, query_positions, key_positions, *, base=10_000.0):
    return _scored(
        _rotate(queries, key_positions, base=base), _rotate(keys, query_positions, base=base)
    )


@_scores.idea(
    "only queries rotated",
    "keys are left as they are, so scores depend on the query's position and not on the distance",
    "rope-scores",
)
def _(queries, keys, query_positions, key_positions, *, base=10_000.0):
    return _scored(_rotate(queries, query_positions, base=base), np.asarray(keys))


@_scores.idea(
    "nothing rotated",
    "these are plain attention scores: no position enters",
    "rope-scores",
)
def _(queries, keys, query_positions, key_positions, *, base=10_000.0):
    return _scored(np.asarray(queries), keys)


@_scores.idea(
    "keys against queries",
    "rows are keys and columns are queries; one row for each query is asked for",
    "rope-scores",
)
def _(queries, keys, query_positions, key_positions, *, base=10_000.0):
    return _scored(
        _rotate(keys, key_positions, base=base), _rotate(queries, query_positions, base=base)
    )


@_scores.idea(
    "softmax applied",
    "these are attention weights, of which each row adds up to 1; the scores before the softmax "
    "are asked for",
    "rope-scores",
)
def _(queries, keys, query_positions, key_positions, *, base=10_000.0):
    powers = np.exp(
        _scored(
            _rotate(queries, query_positions, base=base), _rotate(keys, key_positions, base=base)
        )
    )
    return powers / powers.sum(axis=-1, keepdims=True)


@_scores.idea(
    "transposes every axis",
    "the attribute .T turns round all axes, those of the batch too; only the last two of the keys "
    "change places",
    "rope-scores",
)
def _(queries, keys, query_positions, key_positions, *, base=10_000.0):
    rotated = _rotate(queries, query_positions, base=base)
    scores = rotated @ _rotate(keys, key_positions, base=base).T
    return scores / np.sqrt(np.shape(queries)[-1])


@_scores.idea(
    "base ignored",
    "the base is not passed on to the rotation, which then uses 10,000",
    "rope-scores",
)
def _(queries, keys, query_positions, key_positions, *, base=10_000.0):
    return _scored(_rotate(queries, query_positions), _rotate(keys, key_positions))


def _square(rng: np.random.Generator, **kwargs):
    """As many keys as queries, so that mixed-up positions give numbers and no error."""
    length, d = 2 * int(rng.integers(2, 4)), _size(rng)
    places = _shuffled(rng, 2 * length)
    return case(_x(rng, length, d), _x(rng, length, d), places[:length], places[length:], **kwargs)


def _wide(rng: np.random.Generator, **kwargs):
    queries, keys, d = 3, 2 * int(rng.integers(2, 5)), _size(rng)
    return case(
        _x(rng, queries, d), _x(rng, keys, d), _shuffled(rng, queries), np.arange(keys), **kwargs
    )


def _batch(rng: np.random.Generator):
    # With as many sequences and keys as columns, .T of the keys gives numbers and no error.
    d = draw_even(rng, 8, 12)
    return case(_x(rng, d, 3, d), _x(rng, d, d, d), _shuffled(rng, 3), _shuffled(rng, d))


def _visible(make, **kwargs):
    return make(np.random.default_rng(3), **kwargs)


def _sees_distance_alone(candidate, queries, keys, query_positions, key_positions, **kwargs):
    here = candidate(queries, keys, query_positions, key_positions, **kwargs)
    there = candidate(queries, keys, query_positions + 11, key_positions + 11, **kwargs)
    require(
        np.allclose(here, there, atol=1e-4),
        "all positions plus 11 should give the same scores; largest change "
        f"{np.abs(here - there).max():.3g}",
    )
    moved = candidate(queries, keys, query_positions + 11, key_positions, **kwargs)
    require(
        not np.allclose(here, moved, atol=1e-4),
        "query positions plus 11 should give other scores; nothing changed",
    )


ROPE_SCORES = Exercise(
    reference=rotary.rope_scores,
    assignment=ASSIGNMENT,
    section="rope-scores",
    difficulty=2,
    importance=4,
    minutes="10-15",
    atol=1e-5,
    rtol=1e-5,
    criteria=(
        holds(
            "scores depend on the distance alone",
            0.5,
            _sees_distance_alone,
            visible=lambda: [_visible(_square)],
            drawn=lambda rng: [_square(rng)],
        ),
        values(
            "queries and keys at places of their own",
            1,
            visible=lambda: [_visible(_square), _visible(_wide)],
            drawn=lambda rng: [_square(rng), _wide(rng)],
        ),
        values(
            "another base",
            0.5,
            visible=lambda: [_visible(_square, base=500.0)],
            drawn=lambda rng: [
                _square(rng, base=draw_base(rng)),
                _square(rng, base=draw_base(rng)),
            ],
        ),
        values(
            "batches",
            1,
            visible=lambda: [_visible(_batch)],
            drawn=lambda rng: [_batch(rng)],
        ),
    ),
    misconceptions=tuple(_scores),
)


@ROPE_SCORES.variant("vectorised")
def _(queries, keys, query_positions, key_positions, *, base=10_000.0):
    return _scored(
        _rotate(queries, query_positions, base=base), _rotate(keys, key_positions, base=base)
    )


@ROPE_SCORES.variant("the half layout on both sides of permuted columns")
def _(queries, keys, query_positions, key_positions, *, base=10_000.0):
    order = np.arange(np.shape(queries)[-1]).reshape(-1, 2).T.ravel()
    return _scored(
        _rotate(np.asarray(queries)[..., order], query_positions, base=base, layout="half"),
        _rotate(np.asarray(keys)[..., order], key_positions, base=base, layout="half"),
    )


@ROPE_SCORES.variant("einsum, scaled before")
def _(queries, keys, query_positions, key_positions, *, base=10_000.0):
    queries = np.asarray(queries) / np.sqrt(np.shape(queries)[-1])
    return np.einsum(
        "...nd,...md->...nm",
        _rotate(queries, query_positions, base=base),
        _rotate(keys, key_positions, base=base),
    )


@ROPE_SCORES.variant("complex numbers")
def _(queries, keys, query_positions, key_positions, *, base=10_000.0):
    def turned(x, positions):
        first, second = _split(x, "interleaved")
        return (first + 1j * second) * np.exp(1j * _angles(x, positions, base))

    of_keys = turned(keys, key_positions).conj().swapaxes(-1, -2)
    return (turned(queries, query_positions) @ of_keys).real / np.sqrt(np.shape(queries)[-1])


@ROPE_SCORES.variant("rotated by the distance")
def _(queries, keys, query_positions, key_positions, *, base=10_000.0):
    queries, keys = np.asarray(queries), np.asarray(keys)
    columns = [
        (_rotate(queries, query_positions - position, base=base) @ keys[..., index, :, np.newaxis])
        for index, position in enumerate(key_positions)
    ]
    return np.concatenate(columns, axis=-1) / np.sqrt(queries.shape[-1])


@ROPE_SCORES.variant("nested lists, float32")
def _(queries, keys, query_positions, key_positions, *, base=10_000.0):
    scores = _scored(
        _rotate(queries, query_positions, base=base), _rotate(keys, key_positions, base=base)
    )
    return scores.astype(np.float32).tolist()


def interleaved_rope(x, positions):
    """Rotate pairs (2i, 2i + 1)."""
    return rotary.rope(x, positions)


def half_rope(x, positions):
    """Rotate pairs (i, i + d/2)."""
    return rotary.rope(x, positions, layout="half")


def ignores_positions(x, positions):
    """Return x as it is."""
    return np.array(x, dtype=float)


def adds_encoding(x, positions):
    """Add the sinusoidal encoding instead of rotating."""
    return x + sinusoidal.sinusoidal_encoding(positions, np.shape(x)[-1])


def mixes_signs(x, positions):
    """Subtract the sines in both places, which is no rotation."""
    first, second = _split(x, "interleaved")
    angles = _angles(x, positions, 10_000.0)
    cosines, sines = np.cos(angles), np.sin(angles)
    return _join(first * cosines - second * sines, second * cosines - first * sines, "interleaved")


_relative = Misconceptions()


def _scores_at(rope_function, q, k, query_positions, key_position):
    queries = rope_function(np.tile(q, (len(query_positions), 1)), np.asarray(query_positions))
    key = rope_function(np.array([k], dtype=float), np.array([key_position]))
    return np.asarray(queries) @ np.asarray(key)[0]


def _unshifted(rope_function, q, k, offsets):
    return _scores_at(rope_function, q, k, offsets, 0)


def _changes(rope_function, q, k, offsets, shifts):
    """Return score changes: one row for each shift, one column for each offset."""
    here = _unshifted(rope_function, q, k, offsets)
    return np.array(
        [_scores_at(rope_function, q, k, offsets + shift, shift) - here for shift in shifts]
    )


def _error(*args):
    return float(np.abs(_changes(*args)).max())


def _effect(*args):
    return float(np.ptp(_unshifted(*args)))


@_relative.idea(
    "scores scaled",
    "scores are divided by sqrt(d), as in attention; here a score is the plain dot product",
    "rope-testing",
)
def _(rope_function, q, k, offsets, shifts):
    return (
        _error(rope_function, q, k, offsets, shifts) / np.sqrt(len(q)),
        _effect(rope_function, q, k, offsets) / np.sqrt(len(q)),
    )


@_relative.idea(
    "other content at each place",
    "every place gets vectors of its own, so the score changes with the content and says nothing "
    "about positions; use the same q and k everywhere",
    "rope-testing",
)
def _(rope_function, q, k, offsets, shifts):
    rng = np.random.default_rng(0)

    def scores(shift):
        return [
            _scores_at(rope_function, *rng.standard_normal((2, len(q))), [offset + shift], shift)[0]
            for offset in offsets
        ]

    here = np.array(scores(0))
    there = np.array([scores(shift) for shift in shifts])
    return float(np.abs(there - here).max()), float(np.ptp(here))


@_relative.idea(
    "one shift only",
    "only the first shift is tried; a wrong function can pass there and fail at another",
    "rope-testing",
)
def _(rope_function, q, k, offsets, shifts):
    return (
        _error(rope_function, q, k, offsets, shifts[:1]),
        _effect(rope_function, q, k, offsets),
    )


@_relative.idea(
    "last shift only",
    "the largest error is overwritten at each shift, so only that of the last one is returned",
    "rope-testing",
)
def _(rope_function, q, k, offsets, shifts):
    return (
        _error(rope_function, q, k, offsets, shifts[-1:]),
        _effect(rope_function, q, k, offsets),
    )


@_relative.idea(
    "one offset only",
    "shifts are tried at the first offset alone; the error can be larger at another",
    "rope-testing",
)
def _(rope_function, q, k, offsets, shifts):
    return (
        _error(rope_function, q, k, offsets[:1], shifts),
        _effect(rope_function, q, k, offsets),
    )


@_relative.idea(
    "distance is not tested",
    "the distance effect does not come from scores, so a function that ignores positions passes "
    "as relative; compare the unshifted scores of different offsets",
    "rope-testing",
)
def _(rope_function, q, k, offsets, shifts):
    return _error(rope_function, q, k, offsets, shifts), 1.0


@_relative.idea(
    "the shift error twice",
    "both values are the change under a shift; the distance effect compares different offsets, "
    "with no shift",
    "rope-testing",
)
def _(rope_function, q, k, offsets, shifts):
    error = _error(rope_function, q, k, offsets, shifts)
    return error, error


@_relative.idea(
    "values exchanged",
    "the distance effect is returned first; the shift error comes first",
    "rope-testing",
)
def _(rope_function, q, k, offsets, shifts):
    return _effect(rope_function, q, k, offsets), _error(rope_function, q, k, offsets, shifts)


@_relative.idea(
    "first against last offset",
    "only the scores of the first and the last offset are compared; the largest difference can "
    "lie between two others",
    "rope-testing",
)
def _(rope_function, q, k, offsets, shifts):
    here = _unshifted(rope_function, q, k, offsets)
    return _error(rope_function, q, k, offsets, shifts), float(abs(here[-1] - here[0]))


@_relative.idea(
    "neighbouring offsets only",
    "only scores of neighbouring offsets are compared; the largest difference can lie between two "
    "others",
    "rope-testing",
)
def _(rope_function, q, k, offsets, shifts):
    here = _unshifted(rope_function, q, k, offsets)
    steps = np.abs(np.diff(here)).max(initial=0.0)
    return _error(rope_function, q, k, offsets, shifts), float(steps)


@_relative.idea(
    "shifted scores in the distance effect",
    "scores after a shift are compared too, so a function that fails under shifts seems to see "
    "distance; only unshifted scores count",
    "rope-testing",
)
def _(rope_function, q, k, offsets, shifts):
    changes = _changes(rope_function, q, k, offsets, shifts)
    scores = np.vstack([np.zeros_like(changes[:1]), changes])
    scores = scores + _unshifted(rope_function, q, k, offsets)
    return float(np.abs(changes).max()), float(np.ptp(scores))


@_relative.idea(
    "signed difference",
    "the largest difference is taken without the absolute value, so a score that falls counts as "
    "no change",
    "rope-testing",
)
def _(rope_function, q, k, offsets, shifts):
    changes = _changes(rope_function, q, k, offsets, shifts)
    return float(changes.max()), _effect(rope_function, q, k, offsets)


@_relative.idea(
    "mean instead of largest",
    "the shift error is the mean change; one bad place then hides among many good ones",
    "rope-testing",
)
def _(rope_function, q, k, offsets, shifts):
    changes = _changes(rope_function, q, k, offsets, shifts)
    return float(np.abs(changes).mean()), _effect(rope_function, q, k, offsets)


@_relative.idea(
    "mean over shifts",
    "the largest change at each shift is right, but their mean is returned; the largest of them "
    "all counts",
    "rope-testing",
)
def _(rope_function, q, k, offsets, shifts):
    changes = np.abs(_changes(rope_function, q, k, offsets, shifts))
    return float(changes.max(axis=1).mean()), _effect(rope_function, q, k, offsets)


@_relative.idea(
    "shifts compared with each other",
    "scores of one shift are compared with those of another; each is to be compared with the "
    "score without a shift",
    "rope-testing",
)
def _(rope_function, q, k, offsets, shifts):
    changes = _changes(rope_function, q, k, offsets, shifts)
    return float(np.ptp(changes, axis=0).max()), _effect(rope_function, q, k, offsets)


@_relative.idea(
    "only the query is moved",
    "the query moves by the shift and the key stays, which changes the distance; both must move",
    "rope-testing",
)
def _(rope_function, q, k, offsets, shifts):
    here = _unshifted(rope_function, q, k, offsets)
    there = np.array([_unshifted(rope_function, q, k, offsets + shift) for shift in shifts])
    return float(np.abs(there - here).max()), float(np.ptp(here))


@_relative.idea(
    "the key at the offset",
    "the key stands at the offset and the query at 0, which is the distance the other way round",
    "rope-testing",
)
def _(rope_function, q, k, offsets, shifts):
    # A dot product does not mind which side is called the query.
    return _error(rope_function, k, q, offsets, shifts), _effect(rope_function, k, q, offsets)


def _tested(rng: np.random.Generator, function, *, d: int | None = None):
    """Draw a test that catches who looks at first or last, at neighbours, or at rises alone."""
    while True:
        width = d or draw_even(rng, 8, 16)
        q, k = _x(rng, width), _x(rng, width)
        offsets, shifts = rng.permutation(np.r_[-9:0, 1:30])[:5], _shuffled(rng, 4)
        scores = _unshifted(function, q, k, offsets)
        if abs(int(scores.argmax() - scores.argmin())) not in (2, 3):
            continue
        changes = _changes(function, q, k, offsets, shifts)
        shift, offset = np.unravel_index(np.abs(changes).argmax(), changes.shape)
        inside = shift in (1, 2) and offset > 0 and changes[shift, offset] < 0
        if inside or np.abs(changes).max() < 1e-9:
            return case(function, q, k, offsets, shifts)


def _at_one_offset(rng: np.random.Generator, function, **kwargs):
    _, q, k, offsets, shifts = _tested(rng, function, **kwargs).args
    worst = np.abs(_changes(function, q, k, offsets, shifts)).max(axis=0).argmax()
    return case(function, q, k, offsets[[worst]], shifts)


def _without_positions(rng: np.random.Generator, d: int):
    return case(ignores_positions, _x(rng, d), _x(rng, d), _shuffled(rng, 4), _shuffled(rng, 3))


def _no_effect(candidate, rope_function, q, k, offsets, shifts):
    shift_error, distance_effect = candidate(rope_function, q, k, offsets, shifts)
    require(
        max(abs(shift_error), abs(distance_effect)) < 1e-9,
        "this function ignores positions, so no score changes and both values should be 0; "
        f"got {float(shift_error):.4g} and {float(distance_effect):.4g}",
    )


RELATIVE_ERRORS = Exercise(
    reference=rotary.relative_errors,
    assignment=ASSIGNMENT,
    section="rope-testing",
    difficulty=4,
    importance=5,
    minutes="20-30",
    criteria=(
        holds(
            "no distance effect where positions are ignored",
            0.5,
            _no_effect,
            visible=lambda: [_visible(_without_positions, d=8)],
            drawn=lambda rng: [
                _without_positions(rng, 8),
                _without_positions(rng, _size(rng)),
            ],
        ),
        values(
            "relative functions",
            1,
            visible=lambda: [
                _visible(_tested, function=interleaved_rope, d=8),
                _visible(_tested, function=half_rope, d=8),
            ],
            drawn=lambda rng: [_tested(rng, interleaved_rope), _tested(rng, half_rope)],
        ),
        values(
            "functions that are not relative, one offset",
            1,
            visible=lambda: [
                _visible(_at_one_offset, function=adds_encoding, d=8),
                _visible(_at_one_offset, function=mixes_signs, d=8),
            ],
            drawn=lambda rng: [
                _at_one_offset(rng, adds_encoding),
                _at_one_offset(rng, mixes_signs),
            ],
        ),
        values(
            "functions that are not relative, several offsets",
            1.5,
            visible=lambda: [
                _visible(_tested, function=adds_encoding, d=8),
                _visible(_tested, function=mixes_signs, d=8),
            ],
            drawn=lambda rng: [_tested(rng, adds_encoding), _tested(rng, mixes_signs)],
        ),
    ),
    misconceptions=tuple(_relative),
)


@RELATIVE_ERRORS.variant("loop, one row a call")
def _(rope_function, q, k, offsets, shifts):
    def score(query_position, key_position):
        query = rope_function(q[np.newaxis], np.array([query_position]))
        key = rope_function(k[np.newaxis], np.array([key_position]))
        return query[0] @ key[0]

    error, scores = 0.0, []
    for offset in offsets:
        here = score(offset, 0)
        scores.append(here)
        for shift in shifts:
            error = max(error, abs(score(offset + shift, shift) - here))
    return error, max(scores) - min(scores)


@RELATIVE_ERRORS.variant("all offsets in one call")
def _(rope_function, q, k, offsets, shifts):
    def scores(shift):
        queries = rope_function(np.tile(q, (len(offsets), 1)), offsets + shift)
        return queries @ rope_function(k[np.newaxis], np.array([shift]))[0]

    here = scores(0)
    return max(np.abs(scores(shift) - here).max() for shift in shifts), np.ptp(here)


@RELATIVE_ERRORS.variant("one call for all places")
def _(rope_function, q, k, offsets, shifts):
    shifts = np.concatenate([[0], shifts])
    places = np.add.outer(shifts, offsets)
    queries = np.asarray(rope_function(np.tile(q, (places.size, 1)), places.ravel()))
    keys = np.asarray(rope_function(np.tile(k, (len(shifts), 1)), shifts))
    scores = np.einsum("snd,sd->sn", queries.reshape(*places.shape, -1), keys)
    return [np.abs(scores[1:] - scores[0]).max(), scores[0].max() - scores[0].min()]


@RELATIVE_ERRORS.variant("lists as arguments, every pair compared")
def _(rope_function, q, k, offsets, shifts):
    def score(query_position, key_position):
        query = rope_function([list(q)], [float(query_position)])
        return float(np.dot(query[0], rope_function([list(k)], [float(key_position)])[0]))

    here = [score(offset, 0) for offset in offsets]
    error = max(
        abs(score(offset + shift, shift) - unshifted)
        for offset, unshifted in zip(offsets, here, strict=True)
        for shift in shifts
    )
    return error, max(abs(one - two) for one in here for two in here)


@RELATIVE_ERRORS.variant("float32 numbers")
def _(rope_function, q, k, offsets, shifts):
    return (
        np.float32(_error(rope_function, q, k, offsets, shifts)),
        np.float32(_effect(rope_function, q, k, offsets)),
    )


_conversions = Misconceptions()


def _order(d, to):
    """Return which row of a head stands where in the other layout."""
    rows = np.arange(d)
    return np.r_[rows[0::2], rows[1::2]] if to == "half" else rows.reshape(2, -1).T.ravel()


def _head_width(weight, n_heads, to):
    rows = len(weight)
    if rows % (2 * n_heads):
        raise ValueError(f"{rows} rows do not make {n_heads} heads of an even width")
    if to not in _OTHER:
        raise ValueError(f"unknown layout {to!r}")
    return rows // n_heads


def _reorder(weight, n_heads, order):
    """Reorder the rows of each head."""
    weight = np.asarray(weight)
    heads = weight.reshape(n_heads, -1, *weight.shape[1:])
    return heads[:, order].reshape(weight.shape)


def _convert(weight, n_heads, *, to):
    return _reorder(weight, n_heads, _order(_head_width(weight, n_heads, to), to))


@_conversions.idea(
    "weight returned as it is",
    "no row moves: a reshape alone reorders nothing, the axes of pairs and partners must change "
    "places in between",
    "rope-convert",
)
def _(weight, n_heads, *, to):
    _head_width(weight, n_heads, to)
    return np.array(weight)


@_conversions.idea(
    "across heads",
    "rows are reordered as if all of them were one head; the pairs of a head lie within it, so "
    "each head is reordered by itself",
    "rope-convert",
)
def _(weight, n_heads, *, to):
    _head_width(weight, n_heads, to)
    return _convert(weight, 1, to=to)


@_conversions.idea(
    "inverse permutation",
    "each direction does what the other should: rows of half pairs are spread where rows of "
    "interleaved ones should be gathered, or the order is put on the wrong side of =",
    "rope-convert",
)
def _(weight, n_heads, *, to):
    return _convert(weight, n_heads, to=_OTHER.get(to, to))


@_conversions.idea(
    "always to the half layout",
    "the argument to is not used: rows are reordered for the half layout, also where the "
    "interleaved one is asked for",
    "rope-convert",
)
def _(weight, n_heads, *, to):
    _head_width(weight, n_heads, to)
    return _convert(weight, n_heads, to="half")


@_conversions.idea(
    "always to the interleaved layout",
    "the argument to is not used: rows are reordered for the interleaved layout, also where the "
    "half one is asked for",
    "rope-convert",
)
def _(weight, n_heads, *, to):
    _head_width(weight, n_heads, to)
    return _convert(weight, n_heads, to="interleaved")


@_conversions.idea(
    "columns instead of rows",
    "the columns are reordered; the weight is (outputs, inputs), so the dimensions of queries and "
    "keys are its rows",
    "rope-convert",
)
def _(weight, n_heads, *, to):
    _head_width(weight, n_heads, to)
    return _convert(np.transpose(weight), n_heads, to=to).T


@_conversions.idea(
    "rows dealt out to heads",
    "rows are taken to go round the heads like cards, head 0, head 1, ...; all rows of head 0 come "
    "first, then those of head 1",
    "rope-convert",
)
def _(weight, n_heads, *, to):
    weight = np.asarray(weight)
    order = _order(_head_width(weight, n_heads, to), to)
    return weight.reshape(-1, n_heads, *weight.shape[1:])[order].reshape(weight.shape)


@_conversions.idea(
    "heads take turns in the result",
    "the result has row 0 of every head, then row 1 of every head, and so on; all rows of one head "
    "stay together",
    "rope-convert",
)
def _(weight, n_heads, *, to):
    converted = _convert(weight, n_heads, to=to)
    heads = converted.reshape(n_heads, -1, *converted.shape[1:])
    return np.swapaxes(heads, 0, 1).reshape(converted.shape)


def _rows_of_heads(weight, n_heads, to):
    """Return the row numbers of the result, one line for each head."""
    d = _head_width(weight, n_heads, to)
    return np.add.outer(d * np.arange(n_heads), _order(d, to))


def _with_pairs(rows, to):
    """Give the row numbers of each head an axis for the pairs and one for the partners."""
    return rows.reshape(len(rows), *((2, -1) if to == "half" else (-1, 2)))


_AXES_LEFT = (
    "the rows are in the right order, but the result has an axis for the heads, or for the pairs, "
    "too many; flatten the row numbers by .ravel(), or reshape to the shape of the weight"
)


@_conversions.idea("an axis for heads left", _AXES_LEFT, "rope-convert")
def _(weight, n_heads, *, to):
    return np.asarray(weight)[_rows_of_heads(weight, n_heads, to)]


@_conversions.idea("axes for heads and pairs left", _AXES_LEFT, "rope-convert")
def _(weight, n_heads, *, to):
    return np.asarray(weight)[_with_pairs(_rows_of_heads(weight, n_heads, to), to)]


@_conversions.idea("axes left after np.stack", _AXES_LEFT, "rope-convert")
def _(weight, n_heads, *, to):
    rows = _rows_of_heads(weight, n_heads, to)
    return np.asarray(weight)[rows if to == "half" else _with_pairs(rows, to)]


@_conversions.idea(
    "takes arrays alone",
    "a list can't be indexed with an array of row numbers; make an array of the weight first, by "
    "np.asarray",
    "rope-convert",
)
def _(weight, n_heads, *, to):
    return weight[_rows_of_heads(weight, n_heads, to).ravel()]


@_conversions.idea(
    "whole heads reordered",
    "the heads change places and their rows stay as they are; heads stay where they are, and the "
    "rows of each are reordered",
    "rope-convert",
)
def _(weight, n_heads, *, to):
    if n_heads < 2:
        return _convert(weight, n_heads, to=to)
    weight = np.asarray(weight)
    d = _head_width(weight, n_heads, to)
    return weight.reshape(n_heads, d, *weight.shape[1:])[_order(n_heads, to)].reshape(weight.shape)


@_conversions.idea(
    "only the first head",
    "the rows of the first head are reordered and the others left; every head has its pairs",
    "rope-convert",
)
def _(weight, n_heads, *, to):
    d = _head_width(weight, n_heads, to)
    return np.concatenate([_convert(weight[:d], 1, to=to), weight[d:]])


@_conversions.idea(
    "every head gets the first one's rows",
    "the order of one head is used for all without stepping on to their rows, so all heads become "
    "the first; head h starts at row h * d",
    "rope-convert",
)
def _(weight, n_heads, *, to):
    order = _order(_head_width(weight, n_heads, to), to)
    return np.asarray(weight)[np.tile(order, n_heads)]


@_conversions.idea(
    "seconds first",
    "the second rows of all pairs come before the first ones, so each pair turns the other way "
    "round; the first row of a pair stays the first",
    "rope-convert",
)
def _(weight, n_heads, *, to):
    order = _order(_head_width(weight, n_heads, to), to)
    swapped = np.roll(order, len(order) // 2) if to == "half" else order.reshape(-1, 2)[:, ::-1]
    return _reorder(weight, n_heads, swapped.ravel())


@_conversions.idea(
    "halves exchanged",
    "the two halves of each head change places, as in the rotation of half pairs; the layouts "
    "differ by gathering and spreading pairs",
    "rope-convert",
)
def _(weight, n_heads, *, to):
    d = _head_width(weight, n_heads, to)
    return _reorder(weight, n_heads, np.roll(np.arange(d), d // 2))


@_conversions.idea(
    "a minus sign put in",
    "the second rows of all pairs get a minus sign, which belongs to the rotation; converting "
    "reorders rows and leaves their numbers",
    "rope-convert",
)
def _(weight, n_heads, *, to):
    d = _head_width(weight, n_heads, to)
    rows = np.arange(d)
    second = rows >= d // 2 if to == "half" else rows % 2 == 1
    converted = _convert(weight, n_heads, to=to)
    signs = np.tile(np.where(second, -1, 1), n_heads)
    return converted * signs.reshape(-1, *[1] * (converted.ndim - 1))


@_conversions.idea(
    "a bias has no columns",
    "two axes are taken for granted, and a bias has one; it is reordered like the rows of its "
    "weight",
    "rope-convert",
)
def _(weight, n_heads, *, to):
    rows, columns = np.shape(weight)
    return _convert(weight, n_heads, to=to).reshape(rows, columns)


@_conversions.idea(
    "changes its input",
    "the rows are reordered in the caller's weight, which a second call would reorder again; "
    "return a new array",
    "rope-convert",
)
def _(weight, n_heads, *, to):
    weight = np.asarray(weight)
    weight[...] = _convert(weight, n_heads, to=to)
    return weight


def _convert_what_fits(weight, n_heads, to):
    """Reorder the rows that make heads of an even width, and leave the rest at the end."""
    d = len(weight) // (2 * n_heads) * 2
    heads = _convert(weight[: n_heads * d], n_heads, to=to) if d else weight[:0]
    return np.concatenate([heads, weight[n_heads * d :]])


@_conversions.idea(
    "unknown layout accepted",
    "a layout that is neither 'interleaved' nor 'half' is not refused, so a typing error gives "
    "wrong rows instead of a message",
    "rope-convert",
)
def _(weight, n_heads, *, to):
    return _convert(weight, n_heads, to=to if to in _OTHER else "interleaved")


@_conversions.idea(
    "odd head width accepted",
    "an odd width of the heads is not refused, although one row of each then has no partner",
    "rope-convert",
)
def _(weight, n_heads, *, to):
    if to not in _OTHER or len(weight) % n_heads:
        raise ValueError("unknown layout, or rows that do not divide")
    return _convert_what_fits(weight, n_heads, to)


@_conversions.idea(
    "rows that make no heads accepted",
    "rows that do not divide into heads of an even width are not refused, although some row then "
    "has no head or no partner",
    "rope-convert",
)
def _(weight, n_heads, *, to):
    if to not in _OTHER:
        raise ValueError("unknown layout")
    return _convert_what_fits(weight, n_heads, to)


@_conversions.idea(
    "unknown layout and odd head width accepted",
    "an unknown layout is not refused, and heads of an odd width are not either, although one row "
    "of each has no partner",
    "rope-convert",
)
def _(weight, n_heads, *, to):
    if len(weight) % n_heads:
        raise ValueError("rows that do not divide")
    return _convert_what_fits(weight, n_heads, to if to in _OTHER else "interleaved")


@_conversions.idea(
    "nothing refused",
    "neither an unknown layout nor rows that do not divide into heads of an even width are refused",
    "rope-convert",
)
def _(weight, n_heads, *, to):
    return _convert_what_fits(weight, n_heads, to if to in _OTHER else "interleaved")


def _numbered(rows: int, columns: int) -> np.ndarray:
    """Make a weight whose entries tell their row and column, as 203 for row 2, column 3."""
    return np.add.outer(100.0 * np.arange(rows), np.arange(columns))


def _weight(rng: np.random.Generator, n_heads: int, draw_x=_any_x, **kwargs):
    rows = n_heads * draw_even(rng, 8, 16)
    # As many columns as rows, or twice as many: reordering columns gives numbers and no error.
    return case(draw_x(rng, rows, rows * int(rng.integers(1, 3))), n_heads, **kwargs)


def _bias(rng: np.random.Generator, **kwargs):
    n_heads = int(rng.integers(2, 5))
    return case(rng.permutation(n_heads * draw_even(rng, 8, 16)).tolist(), n_heads, **kwargs)


def _heads(rng: np.random.Generator) -> int:
    return int(rng.integers(2, 4))


def _same_scores(candidate, weight, n_heads, *, to):
    tokens = np.cos(np.arange(2 * weight.shape[1])).reshape(2, -1)

    def score(projection, layout):
        query, key = _rotate(tokens @ projection.T, np.array([7, 2]), layout=layout)
        return query @ key

    before, after = score(weight, _OTHER[to]), score(candidate(weight, n_heads, to=to), to)
    require(
        np.isclose(before, after, rtol=1e-4, atol=1e-4),
        f"in code of the layout {to!r}, two tokens should have the same score with the converted "
        "weight as with the old one in code of the other layout; "
        f"expected {before:.4g}, got {after:.4g}",
    )


CONVERT_LAYOUT = Exercise(
    reference=rotary.convert_layout,
    assignment=ASSIGNMENT,
    section="rope-convert",
    difficulty=4,
    importance=4,
    minutes="15-20",
    criteria=(
        holds(
            "scores are the same in the other layout",
            0.5,
            _same_scores,
            visible=lambda: [
                case(_visible_x(8, 8), 1, to="half"),
                case(_visible_x(8, 8), 1, to="interleaved"),
            ],
            drawn=lambda rng: [
                _weight(rng, 1, to="half"),
                _weight(rng, 1, to="interleaved"),
            ],
        ),
        values(
            "one head, to the half layout",
            0.5,
            visible=lambda: [case(_numbered(8, 8), 1, to="half")],
            drawn=lambda rng: [_weight(rng, 1, to="half"), _weight(rng, 1, to="half")],
        ),
        values(
            "one head, to the interleaved layout",
            0.5,
            visible=lambda: [case(_numbered(8, 8), 1, to="interleaved")],
            drawn=lambda rng: [
                _weight(rng, 1, to="interleaved"),
                _weight(rng, 1, to="interleaved"),
            ],
        ),
        values(
            "several heads, of a weight and of a bias",
            0.5,
            visible=lambda: [
                case(_numbered(16, 16), 2, to="half"),
                case(_numbered(24, 24), 3, to="interleaved"),
                case(np.arange(16), 2, to="half"),
                case(_numbered(16, 16).tolist(), 2, to="half"),
            ],
            drawn=lambda rng: [
                _weight(rng, _heads(rng), to="half"),
                _weight(rng, _heads(rng), to="interleaved"),
                _bias(rng, to=str(rng.choice(["half", "interleaved"]))),
                case(_x(rng, 16, 8).tolist(), 2, to=str(rng.choice(["half", "interleaved"]))),
            ],
        ),
        leaves_unchanged(
            "the weight passed in is left unchanged",
            0.5,
            visible=lambda: [
                case(_numbered(16, 16), 2, to="half"),
                case(_numbered(16, 16), 2, to="interleaved"),
            ],
            drawn=lambda rng: [
                _weight(rng, _heads(rng), _x, to="half"),
                _weight(rng, _heads(rng), _x, to="interleaved"),
            ],
        ),
        refuses(
            "an unknown layout is refused, and rows that make no heads",
            0.5,
            visible=lambda: [
                case(_numbered(16, 16), 2, to="halves"),
                case(_numbered(9, 9), 1, to="half"),
                case(_numbered(20, 20), 3, to="interleaved"),
            ],
            drawn=lambda rng: [
                _weight(rng, 2, to=str(rng.choice(["halves", "pairs", "neox"]))),
                case(_x(rng, _odd(rng), 8), 1, to="half"),
                case(_x(rng, 3 * _odd(rng), 8), 3, to="interleaved"),
                case(_x(rng, 3 * _odd(rng) + 1, 8), 3, to="half"),
            ],
        ),
    ),
    misconceptions=tuple(_conversions),
)


CONVERT_LAYOUT.variant("order within each head")(_convert)


@CONVERT_LAYOUT.variant("reshape and swap")
def _(weight, n_heads, *, to):
    weight = np.asarray(weight)
    pairs = _head_width(weight, n_heads, to) // 2
    inner = (pairs, 2) if to == "half" else (2, pairs)
    split = weight.reshape(n_heads, *inner, *weight.shape[1:])
    return np.swapaxes(split, 1, 2).reshape(weight.shape)


@CONVERT_LAYOUT.variant("one index for all rows")
def _(weight, n_heads, *, to):
    d = _head_width(weight, n_heads, to)
    starts = d * np.arange(n_heads)
    return np.take(weight, np.add.outer(starts, _order(d, to)).ravel(), axis=0)


@CONVERT_LAYOUT.variant("loop over rows, lists")
def _(weight, n_heads, *, to):
    d = _head_width(weight, n_heads, to)
    converted = [None] * len(weight)
    for old in range(len(weight)):
        head, row = divmod(old, d)
        if to == "half":
            new = row // 2 + (row % 2) * (d // 2)
        else:
            new = 2 * (row % (d // 2)) + row // (d // 2)
        converted[head * d + new] = np.asarray(weight[old]).tolist()
    return converted


@CONVERT_LAYOUT.variant("slices of each head")
def _(weight, n_heads, *, to):
    weight = np.asarray(weight)
    _head_width(weight, n_heads, to)
    converted = np.empty_like(weight)
    for old, new in zip(np.split(weight, n_heads), np.split(converted, n_heads), strict=True):
        half = len(old) // 2
        if to == "half":
            new[:half], new[half:] = old[0::2], old[1::2]
        else:
            new[0::2], new[1::2] = old[:half], old[half:]
    return converted


@CONVERT_LAYOUT.variant("permutation matrix, float32")
def _(weight, n_heads, *, to):
    order = _order(_head_width(weight, n_heads, to), to)
    matrix = np.kron(np.eye(n_heads), np.eye(len(order))[order])
    return (matrix @ np.asarray(weight)).astype(np.float32)


EXERCISES = (LOOKUP, LOOKUP_GRADIENT, ROPE, ROPE_SCORES, RELATIVE_ERRORS, CONVERT_LAYOUT)
