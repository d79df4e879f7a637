"""Chapter 1, why position must be added: its exercises, and the ways they go wrong."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from posenc import attention, sinusoidal
from posenc.exercises._model import (
    Exercise,
    Misconceptions,
    case,
    holds,
    leaves_unchanged,
    named_case,
    require,
    values,
)

ASSIGNMENT = "01-attention"

_softmaxes = Misconceptions()


@_softmaxes.idea(
    "overflow",
    "exp of 1000 is infinity, exp of -1000 is 0, and their quotients are nan: subtract the largest "
    "score of each slice first",
    "attention-softmax",
)
def _(scores, axis=-1):
    weights = np.exp(scores)
    return weights / weights.sum(axis=axis, keepdims=True)


@_softmaxes.idea(
    "one maximum for all",
    "the largest score of the whole array is subtracted; in a slice that lies far below it every "
    "exponential is 0, and 0/0 is nan",
    "attention-softmax",
)
def _(scores, axis=-1):
    weights = np.exp(scores - np.max(scores))
    return weights / weights.sum(axis=axis, keepdims=True)


@_softmaxes.idea(
    "the mean subtracted",
    "the mean of each slice is subtracted instead of its largest score: one score of -inf makes "
    "the mean -inf, and a score far above the mean still overflows",
    "attention-softmax",
)
def _(scores, axis=-1):
    weights = np.exp(scores - np.mean(scores, axis=axis, keepdims=True))
    return weights / weights.sum(axis=axis, keepdims=True)


@_softmaxes.idea(
    "sums to one over all",
    "the weights are divided by the sum of the whole array, so a single slice no longer sums to 1",
    "attention-softmax",
)
def _(scores, axis=-1):
    weights = np.exp(scores - np.max(scores))
    return weights / weights.sum()


@_softmaxes.idea(
    "one sum for all",
    "each slice has its own largest score subtracted, but all are divided by the sum of the whole "
    "array",
    "attention-softmax",
)
def _(scores, axis=-1):
    weights = np.exp(scores - np.max(scores, axis=axis, keepdims=True))
    return weights / weights.sum()


@_softmaxes.idea(
    "first axis",
    "the weights sum to 1 down the first axis, whatever axis is asked for",
    "attention-softmax",
)
def _(scores, axis=-1):
    return attention.softmax(scores, 0)


@_softmaxes.idea(
    "axis ignored",
    "the weights sum to 1 along the last axis, whatever axis is asked for",
    "attention-softmax",
)
def _(scores, axis=-1):
    return attention.softmax(scores, -1)


@_softmaxes.idea(
    "keepdims missing",
    "a sum without keepdims=True loses its axis and no longer lines up with the scores; for a "
    "square matrix it even divides by the wrong sums without an error",
    "attention-softmax",
)
def _(scores, axis=-1):
    weights = np.exp(scores - np.max(scores, axis=axis, keepdims=True))
    return weights / weights.sum(axis=axis)


def _scores(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.normal(scale=1.5, size=shape).round(2)


def _quarters(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Draw quarters, which float32 holds exactly also where 1000 is added."""
    return rng.integers(-6, 7, shape) / 4


SOFTMAX = Exercise(
    reference=attention.softmax,
    assignment=ASSIGNMENT,
    section="attention-softmax",
    difficulty=1,
    importance=4,
    minutes="5-10",
    rtol=1e-5,
    criteria=(
        values(
            "one row of scores",
            0.5,
            visible=lambda: [case(np.array([1.0, 2.0, 4.0, -1.0]))],
            drawn=lambda rng: [case(_scores(rng, 5)), case(_scores(rng, 8))],
        ),
        values(
            "every row of a matrix",
            0.5,
            # In float64, exp(600) and exp(-300) are fine, and exp(-900) is 0.
            visible=lambda: [
                case(np.array([[1.0, 2.0, 4.0, -1.0], [0.5, 0.0, 0.5, 3.0]])),
                case(np.array([[600.0, 601.0, 599.0, 602.0], [-300.0, -301.0, -300.0, -302.0]])),
            ],
            drawn=lambda rng: [
                case(_scores(rng, 3, 5)),
                case(_scores(rng, 2, 3, 4)),
                case(np.array([[600.0], [-300.0], [0.0]]) + _quarters(rng, 3, 5)),
            ],
        ),
        values(
            "another axis",
            0.5,
            visible=lambda: [
                case(np.array([[1.0, 2.0, 4.0, -1.0], [0.5, 0.0, 0.5, 3.0]]), axis=0),
                case(_scores(np.random.default_rng(1), 2, 3, 4), axis=1),
            ],
            drawn=lambda rng: [
                case(_scores(rng, 3, 5), axis=0),
                case(_scores(rng, 3, 4, 5), axis=1),
                case(_scores(rng, 4, 3, 2), axis=-2),
            ],
        ),
        values(
            "scores near 1000, near -1000, and -inf",
            0.5,
            visible=lambda: [
                case(np.array([1000.0, 1001.0, 999.5, -1000.0])),
                case(np.array([-1000.0, -999.0, -1001.5])),
                case(np.array([0.5, -np.inf, 2.0])),
            ],
            drawn=lambda rng: [
                case(1000 + _quarters(rng, 5)),
                case(-1000 + _quarters(rng, 6)),
                case(np.append(_scores(rng, 4), -np.inf)),
            ],
        ),
    ),
    misconceptions=tuple(_softmaxes),
)


@SOFTMAX.variant("loop over slices")
def _(scores, axis=-1):
    def one(row):
        top = max(row)
        exponentials = [np.exp(score - top) for score in row]
        return [value / sum(exponentials) for value in exponentials]

    return np.apply_along_axis(one, axis, np.asarray(scores, dtype=float))


@SOFTMAX.variant("exp of score minus log-sum-exp")
def _(scores, axis=-1):
    return np.exp(scores - np.logaddexp.reduce(scores, axis=axis, keepdims=True))


@SOFTMAX.variant("last axis, moved there and back")
def _(scores, axis=-1):
    moved = np.moveaxis(np.asarray(scores, dtype=float), axis, -1)
    weights = np.exp(moved - moved.max(-1)[..., np.newaxis])
    return np.moveaxis(weights / weights.sum(-1)[..., np.newaxis], -1, axis)


@SOFTMAX.variant("nested lists")
def _(scores, axis=-1):
    return attention.softmax(scores, axis).tolist()


@SOFTMAX.variant("float32")
def _(scores, axis=-1):
    return attention.softmax(np.asarray(scores, dtype=np.float32), axis)


@SOFTMAX.variant("a tiny number in the denominator")
def _(scores, axis=-1):
    weights = np.exp(scores - np.max(scores, axis=axis, keepdims=True))
    return weights / (weights.sum(axis=axis, keepdims=True) + 1e-12)


_attentions = Misconceptions()


def _raw_scores(x, w_q, w_k):
    return (x @ w_q) @ np.swapaxes(x @ w_k, -1, -2)


def _masked(scores, causal):
    return np.where(np.tri(scores.shape[-1], dtype=bool) | (not causal), scores, -np.inf)


def _averaged(scores, x, w_v, causal, *, axis=-1):
    weights = attention.softmax(_masked(scores, causal), axis)
    return weights @ (x @ w_v), weights


@_attentions.idea(
    "no scale",
    "scores are not divided by sqrt(d_k), so they grow with d_k and the weights become too sharp",
    "attention-scores",
)
def _(x, w_q, w_k, w_v, *, causal=False):
    return _averaged(_raw_scores(x, w_q, w_k), x, w_v, causal)


@_attentions.idea(
    "divides by d_k",
    "scores are divided by d_k itself instead of its square root, so the weights become too even",
    "attention-scores",
)
def _(x, w_q, w_k, w_v, *, causal=False):
    return _averaged(_raw_scores(x, w_q, w_k) / w_k.shape[-1], x, w_v, causal)


@_attentions.idea(
    "scale by d_model",
    "scores are divided by sqrt(d_model); the length of queries and keys, d_k, is what counts",
    "attention-scores",
)
def _(x, w_q, w_k, w_v, *, causal=False):
    return _averaged(_raw_scores(x, w_q, w_k) / np.sqrt(x.shape[-1]), x, w_v, causal)


@_attentions.idea(
    "scale by the number of tokens",
    "scores are divided by the square root of the number of rows, which is what len(keys) counts; "
    "the length of one key, d_k, is what counts",
    "attention-scores",
)
def _(x, w_q, w_k, w_v, *, causal=False):
    return _averaged(_raw_scores(x, w_q, w_k) / np.sqrt(x.shape[-2]), x, w_v, causal)


@_attentions.idea(
    "scale applied after the softmax",
    "the weights are divided by sqrt(d_k), so that a row no longer sums to 1; the scores are, "
    "before the softmax",
    "attention-scores",
)
def _(x, w_q, w_k, w_v, *, causal=False):
    weights = attention.softmax(_masked(_raw_scores(x, w_q, w_k), causal))
    weights = weights / np.sqrt(w_k.shape[-1])
    return weights @ (x @ w_v), weights


@_attentions.idea(
    "softmax minus the mean",
    "each row of scores has its mean subtracted before the exponential, and a masked score of -inf "
    "makes that mean -inf; subtract the largest score",
    "attention-softmax",
)
def _(x, w_q, w_k, w_v, *, causal=False):
    scores = _masked(_raw_scores(x, w_q, w_k) / np.sqrt(w_k.shape[-1]), causal)
    weights = np.exp(scores - scores.mean(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ (x @ w_v), weights


@_attentions.idea(
    "softmax over queries",
    "each column of the weights sums to 1; every query shares out its own attention, so each row "
    "must",
    "attention-scores",
)
def _(x, w_q, w_k, w_v, *, causal=False):
    scores = _raw_scores(x, w_q, w_k) / np.sqrt(w_k.shape[-1])
    return _averaged(scores, x, w_v, causal, axis=-2)


@_attentions.idea(
    "queries and keys swapped",
    "row i of the scores is key i against all queries; it should be query i against all keys",
    "attention-scores",
)
def _(x, w_q, w_k, w_v, *, causal=False):
    return _averaged(_raw_scores(x, w_k, w_q) / np.sqrt(w_k.shape[-1]), x, w_v, causal)


@_attentions.idea(
    "scores returned",
    "the second value holds the scores from before the softmax; the weights are what comes after",
    "attention-scores",
)
def _(x, w_q, w_k, w_v, *, causal=False):
    scores = _raw_scores(x, w_q, w_k) / np.sqrt(w_k.shape[-1])
    return _averaged(scores, x, w_v, causal)[0], _masked(scores, causal)


@_attentions.idea(
    "weights returned first",
    "both values are there in the wrong order: the output comes first, the weights second",
    "attention-scores",
)
def _(x, w_q, w_k, w_v, *, causal=False):
    return attention.self_attention(x, w_q, w_k, w_v, causal=causal)[::-1]


@_attentions.idea(
    "values forgotten",
    "the weights average the rows of x; they are to average the values, x @ w_v",
    "attention-scores",
)
def _(x, w_q, w_k, w_v, *, causal=False):
    _, weights = attention.self_attention(x, w_q, w_k, w_v, causal=causal)
    return weights @ x, weights


@_attentions.idea(
    "batch transposed",
    ".T reverses all axes, the batch's too; only the last two axes of the keys are to be swapped",
    "attention-scores",
)
def _(x, w_q, w_k, w_v, *, causal=False):
    return _averaged((x @ w_q) @ (x @ w_k).T / np.sqrt(w_k.shape[-1]), x, w_v, causal)


@_attentions.idea(
    "mask after softmax",
    "weights are set to 0 after the softmax, whose sums still count the later rows: what is left "
    "of a row no longer sums to 1; mask the scores, or renormalise",
    "attention-causal-mask",
)
def _(x, w_q, w_k, w_v, *, causal=False):
    weights = attention.softmax(_raw_scores(x, w_q, w_k) / np.sqrt(w_k.shape[-1]))
    if causal:
        weights = np.tril(weights)
    return weights @ (x @ w_v), weights


@_attentions.idea(
    "mask upside down",
    "the mask forbids the past instead of the future: row t should look at rows 0 to t",
    "attention-causal-mask",
)
def _(x, w_q, w_k, w_v, *, causal=False):
    scores = _raw_scores(x, w_q, w_k) / np.sqrt(w_k.shape[-1])
    if causal:
        scores = np.where(np.tri(scores.shape[-1], k=-1, dtype=bool), -np.inf, scores)
    return _averaged(scores, x, w_v, False)


@_attentions.idea(
    "np.where the wrong way round",
    "-inf is put where the mask is True for what may be seen, as np.where(allowed, -inf, scores) "
    "and scores[..., allowed] = -inf do: the future is kept, and the last row, which has none, is "
    "nan; -inf belongs where the mask of allowed places is False",
    "attention-causal-mask",
)
def _(x, w_q, w_k, w_v, *, causal=False):
    scores = _raw_scores(x, w_q, w_k) / np.sqrt(w_k.shape[-1])
    if causal:
        scores = np.where(np.tri(scores.shape[-1], dtype=bool), -np.inf, scores)
    return _averaged(scores, x, w_v, False)


@_attentions.idea(
    "0 times -inf",
    "the mask is a matrix of zeros and ones times -inf, but 0 times -inf is nan, not 0; choose "
    "with np.where instead",
    "attention-causal-mask",
)
def _(x, w_q, w_k, w_v, *, causal=False):
    scores = _raw_scores(x, w_q, w_k) / np.sqrt(w_k.shape[-1])
    if causal:
        scores = scores + np.triu(np.ones(scores.shape[-2:]), k=1) * -np.inf
    return _averaged(scores, x, w_v, False)


@_attentions.idea(
    "mask hides the token itself",
    "row t is kept from looking at row t, and row 0 at anything, which gives nan; only later rows "
    "are forbidden",
    "attention-causal-mask",
)
def _(x, w_q, w_k, w_v, *, causal=False):
    scores = _raw_scores(x, w_q, w_k) / np.sqrt(w_k.shape[-1])
    if causal:
        scores = np.where(np.tri(scores.shape[-1], k=-1, dtype=bool), scores, -np.inf)
    return _averaged(scores, x, w_v, False)


@_attentions.idea(
    "masked scores set to 0",
    "a score of 0 still gets a weight, because exp(0) is 1; a forbidden score is -inf",
    "attention-causal-mask",
)
def _(x, w_q, w_k, w_v, *, causal=False):
    scores = _raw_scores(x, w_q, w_k) / np.sqrt(w_k.shape[-1])
    return _averaged(np.tril(scores) if causal else scores, x, w_v, False)


@_attentions.idea(
    "causal ignored",
    "causal=True changes nothing: every row still looks at later rows",
    "attention-causal-mask",
)
def _(x, w_q, w_k, w_v, *, causal=False):
    return _averaged(_raw_scores(x, w_q, w_k) / np.sqrt(w_k.shape[-1]), x, w_v, False)


@_attentions.idea(
    "causal mask always on",
    "later rows are hidden also where causal is False, which is the default",
    "attention-causal-mask",
)
def _(x, w_q, w_k, w_v, *, causal=False):
    return _averaged(_raw_scores(x, w_q, w_k) / np.sqrt(w_k.shape[-1]), x, w_v, True)


def _attention_case(rng: np.random.Generator, *shape: int, d_k: int, d_v: int, **options):
    """Draw weights of a size that keeps the softmax away from a single one."""
    d_model = shape[-1]
    x = rng.standard_normal(shape).round(2)
    w_q, w_k, w_v = (
        (rng.standard_normal((d_model, width)) * 1.3 / np.sqrt(d_model)).round(2)
        for width in (d_k, d_k, d_v)
    )
    return case(x, w_q, w_k, w_v, **options)


def _visible_attention(*shape: int, d_k: int, d_v: int, **options):
    return _attention_case(np.random.default_rng(1), *shape, d_k=d_k, d_v=d_v, **options)


def _drawn_attention(rng: np.random.Generator, *, d_k: int | None = None, **options):
    """Draw one sequence; without a d_k, it is d_model."""
    length, d_model = int(rng.integers(4, 8)), int(rng.integers(9, 17))
    d_v = int(rng.integers(2, 7))
    return _attention_case(rng, length, d_model, d_k=d_k or d_model, d_v=d_v, **options)


def _rows_sum_to_one(candidate, *arrays, **options):
    _, weights = candidate(*arrays, **options)
    require((weights >= 0).all(), "no weight should be negative or nan")
    sums = weights.sum(axis=-1)
    worst = int(np.abs(sums - 1).argmax())
    require(
        np.allclose(sums, 1, atol=1e-5),
        f"each row of the weights should sum to 1; row {worst} sums to {sums[worst]:.4g}",
    )


def _blind_to_later_rows(candidate, x, *arrays, **options):
    output, weights = candidate(x, *arrays, **options)
    other = x.copy()
    other[-1] += 1
    changed, _ = candidate(other, *arrays, **options)
    require(
        np.allclose(np.triu(weights, k=1), 0, atol=1e-6),
        "the weights right of the diagonal should be 0",
    )
    require(
        np.allclose(output[:-1], changed[:-1], atol=1e-5, equal_nan=True),
        "another last token should change the last row of the output alone",
    )


def _sequences_alone(candidate, batch, *arrays, **options):
    together = candidate(batch, *arrays, **options)
    for index in np.ndindex(batch.shape[:-2]):
        alone = candidate(batch[index], *arrays, **options)
        require(
            all(
                np.allclose(of_batch[index], single, atol=1e-5, equal_nan=True)
                for of_batch, single in zip(together, alone, strict=True)
            ),
            f"sequence {', '.join(map(str, index))} of the batch should get what it gets alone",
        )


SELF_ATTENTION = Exercise(
    reference=attention.self_attention,
    assignment=ASSIGNMENT,
    section="attention-scores",
    difficulty=2,
    importance=5,
    minutes="20-30",
    atol=1e-5,
    rtol=1e-5,
    criteria=(
        holds(
            "with causal=True no row sees a later one",
            0.5,
            _blind_to_later_rows,
            # With d_k = 1 here and below, a wrong scale is not counted again.
            visible=lambda: [_visible_attention(5, 10, d_k=1, d_v=4, causal=True)],
            drawn=lambda rng: [
                _drawn_attention(rng, d_k=1, causal=True),
                _drawn_attention(rng, d_k=1, causal=True),
            ],
        ),
        holds(
            "rows of the weights sum to 1",
            0.5,
            _rows_sum_to_one,
            visible=lambda: [
                _visible_attention(5, 10, d_k=1, d_v=4),
                _visible_attention(5, 10, d_k=1, d_v=4, causal=True),
                _visible_attention(5, 8, d_k=8, d_v=4),
            ],
            drawn=lambda rng: [
                _drawn_attention(rng, d_k=1),
                _drawn_attention(rng, d_k=1, causal=True),
                _drawn_attention(rng),
            ],
        ),
        holds(
            "each sequence of a batch for itself",
            0.5,
            _sequences_alone,
            # With three equal axes a wrong transposition gives wrong numbers instead of an error.
            visible=lambda: [
                _visible_attention(8, 8, 8, d_k=8, d_v=4),
                _visible_attention(3, 5, 8, d_k=8, d_v=4, causal=True),
                _visible_attention(2, 3, 5, 8, d_k=8, d_v=4),
            ],
            drawn=lambda rng: [
                _attention_case(rng, 9, 9, 9, d_k=9, d_v=int(rng.integers(2, 7))),
                _attention_case(rng, 3, 4, 8, d_k=8, d_v=5, causal=True),
                _attention_case(rng, 2, 3, 4, 8, d_k=8, d_v=5, causal=True),
            ],
        ),
        values(
            "output and weights where d_k = 1, which needs no scale",
            1,
            visible=lambda: [_visible_attention(5, 10, d_k=1, d_v=4)],
            drawn=lambda rng: [_drawn_attention(rng, d_k=1), _drawn_attention(rng, d_k=1)],
        ),
        values(
            "the scale where d_k = d_model",
            2,
            visible=lambda: [_visible_attention(5, 8, d_k=8, d_v=4)],
            drawn=lambda rng: [_drawn_attention(rng), _drawn_attention(rng)],
        ),
        values(
            "the scale where d_k differs from d_model",
            0.5,
            visible=lambda: [_visible_attention(5, 8, d_k=3, d_v=6)],
            drawn=lambda rng: [_drawn_attention(rng, d_k=int(rng.integers(2, 5)))],
        ),
        values(
            "values with causal=True",
            1,
            visible=lambda: [_visible_attention(5, 10, d_k=1, d_v=4, causal=True)],
            drawn=lambda rng: [
                _drawn_attention(rng, d_k=1, causal=True),
                _drawn_attention(rng, d_k=1, causal=True),
            ],
        ),
    ),
    misconceptions=tuple(_attentions),
)


@SELF_ATTENTION.variant("loop over rows")
def _(x, w_q, w_k, w_v, *, causal=False):
    x = np.asarray(x)
    *batch, length, _ = x.shape
    output = np.zeros((*batch, length, w_v.shape[-1]))
    weights = np.zeros((*batch, length, length))
    for index in np.ndindex(*batch):
        queries, keys, values_ = x[index] @ w_q, x[index] @ w_k, x[index] @ w_v
        for row in range(length):
            seen = row + 1 if causal else length
            scores = [queries[row] @ keys[other] / len(keys[other]) ** 0.5 for other in range(seen)]
            shares = np.exp(np.array(scores) - max(scores))
            weights[(*index, row)][:seen] = shares / shares.sum()
            output[(*index, row)] = weights[(*index, row)] @ values_
    return output, weights


@SELF_ATTENTION.variant("einsum")
def _(x, w_q, w_k, w_v, *, causal=False):
    queries, keys = (np.einsum("...nd,dk->...nk", x, w) for w in (w_q, w_k))
    scores = np.einsum("...ik,...jk->...ij", queries, keys) / np.sqrt(queries.shape[-1])
    weights = attention.softmax(_masked(scores, causal))
    return np.einsum("...ij,...jd,dv->...iv", weights, x, w_v), weights


@SELF_ATTENTION.variant("mask of -1e30")
def _(x, w_q, w_k, w_v, *, causal=False):
    scores = _raw_scores(x, w_q, w_k) / np.sqrt(w_k.shape[-1])
    if causal:
        scores = scores - 1e30 * np.triu(np.ones(scores.shape[-2:]), k=1)
    return _averaged(scores, x, w_v, False)


@SELF_ATTENTION.variant("mask after softmax, renormalised")
def _(x, w_q, w_k, w_v, *, causal=False):
    weights = attention.softmax(_raw_scores(x, w_q, w_k) / np.sqrt(w_k.shape[-1]))
    if causal:
        weights = np.tril(weights)
        weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ (x @ w_v), weights


@SELF_ATTENTION.variant("queries scaled first, plain exponentials")
def _(x, w_q, w_k, w_v, *, causal=False):
    scores = _raw_scores(x, w_q / np.sqrt(w_q.shape[-1]), w_k)
    weights = np.exp(_masked(scores, causal))
    weights /= weights.sum(axis=-1, keepdims=True)
    return (weights @ x) @ w_v, weights


@SELF_ATTENTION.variant("lists")
def _(x, w_q, w_k, w_v, *, causal=False):
    parts = attention.self_attention(x, w_q, w_k, w_v, causal=causal)
    return [part.tolist() for part in parts]


@SELF_ATTENTION.variant("float32")
def _(x, w_q, w_k, w_v, *, causal=False):
    single = (np.asarray(part, dtype=np.float32) for part in (x, w_q, w_k, w_v))
    return attention.self_attention(*single, causal=causal)


_gaps = Misconceptions()


@_gaps.idea(
    "invariance",
    "function(x[permutation]) is compared with function(x) as it stands: that asks whether the "
    "output stays the same, not whether it is permuted along",
    "attention-equivariance",
)
def _(function, x, permutation):
    return np.abs(function(x[permutation]) - function(x)).max()


@_gaps.idea(
    "inverse permutation",
    "the output is permuted in the direction opposite to the input's: the same permutation a "
    "second time does not undo the first, unless it is its own inverse",
    "attention-equivariance",
)
def _(function, x, permutation):
    return np.abs(function(x[permutation])[permutation] - function(x)).max()


@_gaps.idea(
    "inverse permutation of the input",
    "row i of x is sent to place permutation[i], while the output takes its row i from there",
    "attention-equivariance",
)
def _(function, x, permutation):
    return np.abs(function(x[np.argsort(permutation)]) - function(x)[permutation]).max()


@_gaps.idea(
    "rows sent instead of fetched",
    "input and output both have row i sent to place permutation[i], which measures the gap of the "
    "inverse; row i of the permuted input is row permutation[i] of x",
    "attention-equivariance",
)
def _(function, x, permutation):
    sent = np.argsort(permutation)
    return np.abs(function(x[sent]) - function(x)[sent]).max()


@_gaps.idea(
    "permutation matrix transposed",
    "np.eye(n)[permutation].T sends row i to place permutation[i]; without .T, row i of the "
    "product is row permutation[i] of x",
    "attention-equivariance",
)
def _(function, x, permutation):
    matrix = np.eye(len(x))[permutation].T
    return np.abs(function(matrix @ x) - matrix @ function(x)).max()


@_gaps.idea(
    "matrix product over the wrong axis",
    "@ multiplies along the second last axis, which is not that of the rows where the output has "
    "three; output[permutation] permutes the first axis, however many there are",
    "attention-equivariance",
)
def _(function, x, permutation):
    matrix = np.eye(len(x))[permutation]
    return np.abs(function(matrix @ x) - matrix @ function(x)).max()


@_gaps.idea(
    "columns permuted",
    "the permutation is applied to the columns of x; the order of tokens is the order of its rows",
    "attention-equivariance",
)
def _(function, x, permutation):
    return np.abs(function(x[:, permutation]) - function(x)[:, permutation]).max()


@_gaps.idea(
    "mean instead of the largest",
    "the differences are averaged, which hides a large one among many small ones; the gap is the "
    "largest",
    "attention-equivariance",
)
def _(function, x, permutation):
    return np.abs(function(x[permutation]) - function(x)[permutation]).mean()


@_gaps.idea(
    "norm instead of the largest",
    "the squares of all differences are added up, so the number grows with the size of x; the gap "
    "is the largest difference",
    "attention-equivariance",
)
def _(function, x, permutation):
    return np.linalg.norm(function(x[permutation]) - function(x)[permutation])


@_gaps.idea(
    "signed difference",
    "the largest difference is taken before its sign is dropped, so a large negative one is missed",
    "attention-equivariance",
)
def _(function, x, permutation):
    return np.max(function(x[permutation]) - function(x)[permutation])


def row_by_row(rows):
    """Treat each row alone."""
    return np.tanh(rows) * np.linspace(1, 2, rows.shape[-1])


def mean_of_all_rows(rows):
    """Replace every row by the mean of all."""
    return np.broadcast_to(rows.mean(axis=0), rows.shape).copy()


def attention_without_mask(rows):
    """Let every row look at every other."""
    same = np.eye(rows.shape[-1])
    return attention.self_attention(rows, same, same, same)[0]


def causal_attention(rows):
    """Let every row look at itself and at those before it."""
    same = np.eye(rows.shape[-1])
    return attention.self_attention(rows, same, same, same, causal=True)[0]


def attention_with_positions(rows):
    """Add positions, then let every row look at every other."""
    return attention_without_mask(rows + sinusoidal.sinusoidal_table(*rows.shape))


def cumulative_sum(rows):
    """Add up the rows so far."""
    return np.cumsum(rows, axis=0)


def alternating_offset(rows):
    """Add the largest entry to even rows, subtract it from odd ones."""
    signs = 1 - 2 * (np.arange(len(rows)) % 2)
    return rows + signs[:, np.newaxis] * np.abs(rows).max()


def row_lengths(rows):
    """Return one number a row, its length, (n,)."""
    return np.linalg.norm(rows, axis=-1)


def running_total(rows):
    """Return one number a row, the sum of all entries so far, (n,)."""
    return np.cumsum(rows.sum(axis=-1))


def running_outer_products(rows):
    """Return one matrix a row, the sum of outer products so far, (n, d, d)."""
    return np.cumsum(outer_products(rows), axis=0)


def outer_products(rows):
    """Return one matrix a row, its outer product with itself, (n, d, d)."""
    return rows[:, :, np.newaxis] * rows[:, np.newaxis, :]


def _rows(rng: np.random.Generator, length: int = 6) -> np.ndarray:
    return rng.standard_normal((length, 2 * int(rng.integers(4, 7)))).round(2)


def _visible_rows() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((6, 8)).round(2)


def _order(rng: np.random.Generator, length: int) -> np.ndarray:
    """Draw a permutation that is not its own inverse."""
    while True:
        order = rng.permutation(length)
        if (order[order] != np.arange(length)).any():
            return order


def _visible_order() -> np.ndarray:
    return np.array([2, 0, 3, 5, 1, 4])


def _swapped_parity(rng: np.random.Generator, length: int) -> np.ndarray:
    """Draw a cyclic order in which even and odd places change roles."""
    return np.roll(np.arange(length), int(rng.choice([-1, 1])))


def _drawn_gap(rng: np.random.Generator, function):
    length = int(rng.integers(5, 9))
    return case(function, _rows(rng, length), _order(rng, length))


def _two_signs(rng: np.random.Generator, function):
    """Draw x and -x: a linear function's largest difference is negative for one of them."""
    rows, order = _rows(rng), _order(rng, 6)
    return [case(function, rows, order), case(function, -rows, order)]


def _no_gap(candidate, function, x, permutation):
    gap = candidate(function, x, permutation)
    require(
        np.abs(gap) < 1e-5,
        f"{function.__name__} commutes with every permutation of rows, so its gap is 0; "
        f"got {gap:.4g}",
    )


EQUIVARIANCE_GAP = Exercise(
    reference=attention.equivariance_gap,
    assignment=ASSIGNMENT,
    section="attention-equivariance",
    difficulty=3,
    importance=5,
    minutes="15-20",
    atol=1e-5,
    rtol=1e-5,
    criteria=(
        holds(
            "no gap where a function is equivariant",
            0.5,
            _no_gap,
            visible=lambda: [
                case(row_by_row, _visible_rows(), _visible_order()),
                case(attention_without_mask, _visible_rows(), _visible_order()),
            ],
            drawn=lambda rng: [
                _drawn_gap(rng, function)
                for function in (row_by_row, attention_without_mask, mean_of_all_rows)
            ],
        ),
        values(
            "which two outputs are compared",
            1.5,
            # All differences of alternating_offset are of one size, which mean and maximum share.
            visible=lambda: [
                case(alternating_offset, _visible_rows(), np.array([1, 2, 3, 4, 5, 0])),
                case(attention_without_mask, _visible_rows(), _visible_order()),
            ],
            drawn=lambda rng: [
                case(alternating_offset, _rows(rng), _swapped_parity(rng, 6)),
                case(alternating_offset, _rows(rng, 8), _swapped_parity(rng, 8)),
                _drawn_gap(rng, attention_without_mask),
            ],
        ),
        values(
            "the size of the gap",
            1.5,
            visible=lambda: [
                case(causal_attention, _visible_rows(), _visible_order()),
                case(cumulative_sum, _visible_rows(), _visible_order()),
                case(cumulative_sum, -_visible_rows(), _visible_order()),
                case(mean_of_all_rows, _visible_rows(), _visible_order()),
            ],
            drawn=lambda rng: [
                _drawn_gap(rng, causal_attention),
                _drawn_gap(rng, attention_with_positions),
                *_two_signs(rng, cumulative_sum),
                _drawn_gap(rng, row_by_row),
            ],
        ),
        values(
            "outputs with one axis, and with three",
            0.5,
            visible=lambda: [
                case(row_lengths, _visible_rows(), _visible_order()),
                case(running_total, _visible_rows(), _visible_order()),
                case(running_outer_products, _visible_rows(), _visible_order()),
            ],
            drawn=lambda rng: [
                _drawn_gap(rng, row_lengths),
                *_two_signs(rng, running_total),
                _drawn_gap(rng, running_outer_products),
            ],
        ),
    ),
    misconceptions=tuple(_gaps),
)


@EQUIVARIANCE_GAP.variant("permutation undone on the output")
def _(function, x, permutation):
    return np.abs(function(x[permutation])[np.argsort(permutation)] - function(x)).max()


@EQUIVARIANCE_GAP.variant("permutation matrix")
def _(function, x, permutation):
    matrix = np.eye(len(x))[permutation]
    both = function(matrix @ x), np.tensordot(matrix, function(x), axes=1)
    return np.max(np.abs(both[0] - both[1]))


@EQUIVARIANCE_GAP.variant("loop over rows")
def _(function, x, permutation):
    before, after = function(np.array([x[row] for row in permutation])), function(x)
    return max(
        float(np.max(np.abs(before[place] - after[row]))) for place, row in enumerate(permutation)
    )


@EQUIVARIANCE_GAP.variant("larger of the two signs")
def _(function, x, permutation):
    difference = function(x[permutation]) - function(x)[permutation]
    return max(difference.max(), -difference.min())


@EQUIVARIANCE_GAP.variant("float32")
def _(function, x, permutation):
    x = np.asarray(x, dtype=np.float32)
    return np.float32(np.abs(function(x[permutation]) - function(x)[permutation]).max())


_symmetries = Misconceptions()


def _answer(invariant, equivariant):
    return "invariant" if invariant else "equivariant" if equivariant else "neither"


def _stays(function, x, permutation):
    return np.allclose(function(x[permutation]), function(x), atol=1e-7)


def _moves_along(function, x, permutation):
    output = np.asarray(function(x))
    return (
        output.ndim > 0
        and len(output) == len(x)
        and np.allclose(function(x[permutation]), output[permutation], atol=1e-7)
    )


def _classified(function, x, permutations, combine=all):
    return _answer(
        combine(_stays(function, x, permutation) for permutation in permutations),
        combine(_moves_along(function, x, permutation) for permutation in permutations),
    )


@_symmetries.idea(
    "the first permutation alone",
    "one permutation decides, and the others are not tried: a symmetric convolution commutes with "
    "reversal, but with few others",
    "attention-symmetries",
)
def _(function, x, permutations):
    return _classified(function, x, permutations[:1])


@_symmetries.idea(
    "the last permutation alone",
    "each round of the loop forgets the one before, so the last permutation decides; the answer "
    "has to hold for all of them",
    "attention-symmetries",
)
def _(function, x, permutations):
    return _classified(function, x, permutations[-1:])


@_symmetries.idea(
    "any instead of all",
    "one permutation that fits is taken for enough; a symmetry has to hold for all of them",
    "attention-symmetries",
)
def _(function, x, permutations):
    return _classified(function, x, permutations, any)


@_symmetries.idea(
    "each permutation for itself",
    "a function passes that stays as it is for some permutations and moves along for the others; "
    "one and the same answer has to hold for all of them",
    "attention-symmetries",
)
def _(function, x, permutations):
    stays = [_stays(function, x, permutation) for permutation in permutations]
    moves = [_moves_along(function, x, permutation) for permutation in permutations]
    return _answer(all(stays), all(map(any, zip(stays, moves, strict=True))))


@_symmetries.idea(
    "changes x",
    "x itself is permuted, and each permutation meets the rows that the ones before it have moved; "
    "keep x and permute a copy, as x[permutation] is",
    "attention-symmetries",
)
def _(function, x, permutations):
    output = np.asarray(function(x))
    stays, moves = True, output.shape[:1] == (len(x),)
    for order in permutations:
        x = x[order]
        stays = stays and np.allclose(function(x), output, atol=1e-7)
        moves = moves and np.allclose(function(x), output[order], atol=1e-7)
    return _answer(stays, moves)


@_symmetries.idea(
    "columns permuted",
    "x[:, permutation] reorders the columns; the rows are the positions, so x[permutation]",
    "attention-symmetries",
)
def _(function, x, permutations):
    output = np.asarray(function(x))
    pairs = [(function(x[:, order]), order) for order in permutations]
    return _answer(
        all(np.allclose(moved, output, atol=1e-7) for moved, _ in pairs),
        output.shape[:1] == (len(x),)
        and all(np.allclose(moved, output[order], atol=1e-7) for moved, order in pairs),
    )


@_symmetries.idea(
    "reversal instead of the permutations",
    "the rows are reversed, and the permutations given are not used; a symmetric convolution "
    "commutes with reversal, but with few others",
    "attention-symmetries",
)
def _(function, x, permutations):
    return _classified(function, x, [np.arange(len(x))[::-1]])


@_symmetries.idea(
    "tested in the other order",
    "equivariance is tested first; the mean of all rows, written into every row, passes both "
    "tests, and the answer for it is invariant, which is asked first",
    "attention-symmetries",
)
def _(function, x, permutations):
    if all(_moves_along(function, x, permutation) for permutation in permutations):
        return "equivariant"
    return _classified(function, x, permutations)


@_symmetries.idea(
    "the shape decides",
    "an output with one row for each position is tested for equivariance alone; it may be "
    "invariant all the same, as sorted columns are",
    "attention-symmetries",
)
def _(function, x, permutations):
    if np.shape(function(x))[:1] == (len(x),):
        moves = all(_moves_along(function, x, permutation) for permutation in permutations)
        return _answer(False, moves)
    return _classified(function, x, permutations)


@_symmetries.idea(
    "the two words swapped",
    "invariant means that the output stays as it is, equivariant that its rows move along; they "
    "have changed places",
    "attention-symmetries",
)
def _(function, x, permutations):
    answer = _classified(function, x, permutations)
    return {"invariant": "equivariant", "equivariant": "invariant"}.get(answer, answer)


@_symmetries.idea(
    "equivariant whatever is not invariant",
    "there is no second test: an output that changes may also change in a way that is no "
    "permutation of its rows, and then the function is neither",
    "attention-symmetries",
)
def _(function, x, permutations):
    stays = all(_stays(function, x, permutation) for permutation in permutations)
    return _answer(stays, True)


@_symmetries.idea(
    "invariant or neither",
    "only whether the output stays the same is asked; rows that move along with those of the input "
    "make the function equivariant",
    "attention-symmetries",
)
def _(function, x, permutations):
    stays = all(_stays(function, x, permutation) for permutation in permutations)
    return _answer(stays, False)


def _classified_if(fits, function, x, permutations):
    """Ask whether rows move along only where the output's shape fits an idea."""
    answer = _classified(function, x, permutations)
    return "neither" if answer == "equivariant" and not fits(np.shape(function(x))) else answer


@_symmetries.idea(
    "shape of the input asked for",
    "an output that has not the shape of x is never called equivariant; there need only be one row "
    "for each position, and each may be shorter, a single number or a matrix",
    "attention-symmetries",
)
def _(function, x, permutations):
    return _classified_if(lambda shape: shape == x.shape, function, x, permutations)


@_symmetries.idea(
    "as many axes as the input",
    "an output that has not two axes, as x has, is never called equivariant; with a number or a "
    "matrix for each position it may be, as only the first axis counts",
    "attention-symmetries",
)
def _(function, x, permutations):
    return _classified_if(lambda shape: len(shape) == x.ndim, function, x, permutations)


@_symmetries.idea(
    "one axis taken for pooled",
    "an output with one axis is never called equivariant; it may hold one number for each position",
    "attention-symmetries",
)
def _(function, x, permutations):
    return _classified_if(lambda shape: len(shape) > 1, function, x, permutations)


@_symmetries.idea(
    "position axis taken for granted",
    "the output is indexed with the permutation whatever its shape; a pooled one has no row for "
    "each position, and cannot be equivariant",
    "attention-symmetries",
)
def _(function, x, permutations):
    output, pairs = function(x), [(function(x[order]), order) for order in permutations]
    if all(np.allclose(moved, output, atol=1e-7) for moved, _ in pairs):
        return "invariant"
    moves = all(np.allclose(moved, output[order], atol=1e-7) for moved, order in pairs)
    return _answer(False, moves)


@_symmetries.idea(
    "inverse permutation",
    "the output is permuted in the direction opposite to the input's: the same permutation a "
    "second time does not undo the first, unless it is its own inverse",
    "attention-symmetries",
)
def _(function, x, permutations):
    answer = _classified(function, x, permutations)
    output = np.asarray(function(x))
    if answer != "equivariant":
        return answer
    twice = all(np.allclose(function(x[order])[order], output, atol=1e-7) for order in permutations)
    return _answer(False, twice)


@_symmetries.idea(
    "compared exactly",
    "outputs are compared with ==; sums in another order differ in their last digits, so compare "
    "with a tolerance, as np.allclose does",
    "attention-symmetries",
)
def _(function, x, permutations):
    output = np.asarray(function(x))
    pairs = [(function(x[order]), order) for order in permutations]
    rows = output.shape[:1] == (len(x),)
    return _answer(
        all(np.array_equal(moved, output) for moved, _ in pairs),
        rows and all(np.array_equal(moved, output[order]) for moved, order in pairs),
    )


@_symmetries.idea(
    "signed difference",
    "the largest difference is taken with its sign, so outputs that only became smaller pass for "
    "equal; take absolute values first",
    "attention-symmetries",
)
def _(function, x, permutations):
    output = np.asarray(function(x))
    pairs = [(function(x[order]), order) for order in permutations]
    rows = output.shape[:1] == (len(x),)
    return _answer(
        all(np.max(moved - output) < 1e-7 for moved, _ in pairs),
        rows and all(np.max(moved - output[order]) < 1e-7 for moved, order in pairs),
    )


@_symmetries.idea(
    "differences that cancel",
    "the differences are averaged with their signs, and where rows only change places they cancel; "
    "compare entry by entry",
    "attention-symmetries",
)
def _(function, x, permutations):
    output = function(x)
    stays = all(abs(np.mean(function(x[order]) - output)) < 1e-7 for order in permutations)
    return "invariant" if stays else _classified(function, x, permutations)


def symmetric_convolution(rows):
    """Mix each row with its two neighbours, alike on both sides."""
    # Beyond the ends there is 0.
    padded = np.pad(rows, ((1, 1), (0, 0)))
    return 0.25 * padded[:-2] + 0.5 * rows + 0.25 * padded[2:]


def sorted_columns(rows):
    """Sort each column."""
    return np.sort(rows, axis=0)


def largest_of_all_rows(rows):
    """Replace every row by the largest entries of all."""
    return np.broadcast_to(rows.max(axis=0), rows.shape).copy()


def without_the_last_column(rows):
    """Drop the last column, (n, d - 1)."""
    return rows[:, :-1].copy()


def halves_compared(rows):
    """Take the sum of the second half from that of the first, and give each row a multiple."""
    half = len(rows) // 2
    weights = np.arange(1, half + 1)
    difference = rows[:half].sum(axis=0) - rows[half:].sum(axis=0)
    return np.outer(np.append(weights, -weights), difference)


def mean_row(rows):
    """Pool to the mean of all rows, (d,)."""
    return rows.mean(axis=0)


def largest_entries(rows):
    """Pool to the largest entry of each column, (d,)."""
    return rows.max(axis=0)


def products_of_columns(rows):
    """Pool to a matrix, (d, d), which sums over positions."""
    return rows.T @ rows


def total(rows):
    """Pool to one number."""
    return rows.sum()


def last_row(rows):
    """Pool to the last row, (d,)."""
    return rows[-1].copy()


def weighted_mean(rows):
    """Pool with weights that grow with the row's number, (d,)."""
    return np.average(rows, axis=0, weights=np.arange(1, len(rows) + 1))


def weighted_total(rows):
    """Pool to one number, with weights that grow with the row's number."""
    return np.arange(1, len(rows) + 1) @ rows.sum(axis=-1)


# All three answers are right in each of these, and guesses seldom are for all.
_ROWS_OUT = (
    attention_without_mask,
    sorted_columns,
    causal_attention,
    row_by_row,
    attention_with_positions,
    running_outer_products,
    alternating_offset,
    without_the_last_column,
    outer_products,
)
_POOLED = (
    mean_row,
    weighted_mean,
    row_lengths,
    total,
    weighted_total,
    largest_entries,
    running_total,
    products_of_columns,
)
_BOTH = (
    mean_of_all_rows,
    attention_without_mask,
    cumulative_sum,
    largest_of_all_rows,
    row_by_row,
    causal_attention,
    attention_with_positions,
)
_REVERSED = (5, 4, 3, 2, 1, 0)
_LAST_KEPT = (2, 0, 3, 4, 1, 5)
_ORDERS = ((2, 0, 3, 5, 1, 4), (1, 2, 3, 4, 5, 0), (3, 0, 4, 1, 5, 2))


def _symmetry_case(function, x, orders):
    """Write a case whose label says what the function does."""
    orders = np.array(orders)
    backwards = list(range(len(x)))[::-1]
    shown = ["reversal" if order == backwards else str(order) for order in orders.tolist()]
    meaning = function.__doc__[0].lower() + function.__doc__[1:].rstrip(".")
    label = f"{function.__name__}: {meaning}; array of shape {x.shape}, [{', '.join(shown)}]"
    return named_case(label, function, x, orders)


def _seen(function, *orders, x=None):
    """Return a visible case, with three permutations unless it is given others."""
    return _symmetry_case(function, _visible_rows() if x is None else x, orders or _ORDERS)


def _in_order(rows: np.ndarray, *, falling: bool = False) -> np.ndarray:
    """Sort rows by their sums, so that every other order lessens or raises a weighted total."""
    order = np.argsort(rows.sum(axis=-1))
    return rows[order[::-1] if falling else order]


def _order_that_moves_the_last(rng: np.random.Generator, length: int) -> np.ndarray:
    while True:
        order = _order(rng, length)
        if order[-1] != length - 1:
            return order


def _drawn_orders(rng: np.random.Generator, function, **special):
    """Draw a case with a few permutations; ``special`` puts a kind of permutation at an index."""
    length = int(rng.integers(5, 8))
    orders = [_order_that_moves_the_last(rng, length) for _ in range(int(rng.integers(3, 5)))]
    if "reversal" in special:
        orders[special["reversal"]] = np.arange(length)[::-1]
    if "last_kept" in special:
        orders[special["last_kept"]] = np.append(_order(rng, length - 1), length - 1)
    return _symmetry_case(function, _rows(rng, length), orders)


def _drawn_in_order(rng: np.random.Generator, *, falling: bool):
    drawn = _drawn_orders(rng, weighted_total)
    function, x, orders = drawn.args
    return _symmetry_case(function, _in_order(x, falling=falling), orders)


def _own_inverses(rng: np.random.Generator, function):
    """Draw a case with two permutations that swap rows in pairs, so that twice undoes once."""
    orders = []
    for _ in range(2):
        order, places = np.arange(6), rng.permutation(6)
        order[places] = order[places.reshape(3, 2)[:, ::-1].ravel()]
        orders.append(order)
    return _symmetry_case(function, _rows(rng), orders)


def _drawn_halves(rng: np.random.Generator):
    """Draw a case in which some permutations change nothing and one swaps the halves."""
    half = int(rng.integers(3, 5))
    orders = [np.append(_order(rng, half), half + _order(rng, half)) for _ in range(2)]
    orders.insert(int(rng.integers(0, 3)), np.roll(np.arange(2 * half), half))
    return _symmetry_case(halves_compared, _rows(rng, 2 * half), orders)


CLASSIFY_SYMMETRY = Exercise(
    reference=attention.classify_symmetry,
    assignment=ASSIGNMENT,
    section="attention-symmetries",
    difficulty=3,
    importance=5,
    minutes="10-15",
    criteria=(
        values(
            "one row for each position",
            1,
            visible=lambda: [_seen(function) for function in _ROWS_OUT],
            drawn=lambda rng: [_drawn_orders(rng, function) for function in _ROWS_OUT],
        ),
        values(
            "pooled outputs, and one number a row",
            0.5,
            visible=lambda: [
                *(_seen(function) for function in _POOLED),
                _seen(weighted_total, x=_in_order(_visible_rows())),
                _seen(weighted_total, x=_in_order(_visible_rows(), falling=True)),
            ],
            drawn=lambda rng: [
                *(_drawn_orders(rng, function) for function in _POOLED),
                _drawn_in_order(rng, falling=False),
                _drawn_in_order(rng, falling=True),
            ],
        ),
        values(
            "what holds for all the permutations",
            1,
            # Reversal fools where it comes first, last, or at all: each wrong idea differs.
            visible=lambda: [
                _seen(symmetric_convolution, _REVERSED, *_ORDERS[:2]),
                _seen(symmetric_convolution, *_ORDERS[:2], _REVERSED),
                _seen(symmetric_convolution, _ORDERS[0], _REVERSED, _ORDERS[1]),
                _seen(symmetric_convolution),
                _seen(row_by_row, _REVERSED, *_ORDERS[:2]),
                # Two permutations that are their own inverses.
                _seen(attention_without_mask, _REVERSED, (1, 0, 3, 2, 5, 4)),
                _seen(largest_entries, *_ORDERS[:2], _REVERSED),
                _seen(last_row, _LAST_KEPT, *_ORDERS[:2]),
                _seen(last_row, *_ORDERS[:2], _LAST_KEPT),
                _seen(last_row, _ORDERS[0], _LAST_KEPT, _ORDERS[1]),
                _seen(halves_compared, (1, 2, 0, 5, 3, 4), (3, 4, 5, 0, 1, 2), (2, 0, 1, 4, 5, 3)),
                # A single one is judged rightly also where each spoils x for the next.
                _seen(row_by_row, _ORDERS[0]),
            ],
            drawn=lambda rng: [
                _drawn_orders(rng, symmetric_convolution, reversal=0),
                _drawn_orders(rng, symmetric_convolution, reversal=-1),
                _drawn_orders(rng, symmetric_convolution, reversal=1),
                _drawn_orders(rng, symmetric_convolution),
                _drawn_orders(rng, row_by_row, reversal=0),
                _own_inverses(rng, attention_without_mask),
                _drawn_orders(rng, largest_entries, reversal=-1),
                *(_drawn_orders(rng, last_row, last_kept=at) for at in (0, -1, 1)),
                _drawn_halves(rng),
                _symmetry_case(row_by_row, _rows(rng), [_order(rng, 6)]),
            ],
        ),
        values(
            "invariant where both would do",
            0.5,
            visible=lambda: [_seen(function) for function in _BOTH],
            drawn=lambda rng: [_drawn_orders(rng, function) for function in _BOTH],
        ),
    ),
    misconceptions=tuple(_symmetries),
)


@CLASSIFY_SYMMETRY.variant("all of a generator")
def _(function, x, permutations):
    return _classified(function, x, permutations)


@CLASSIFY_SYMMETRY.variant("loop with two flags")
def _(function, x, permutations):
    before = np.asarray(function(x))
    invariant = True
    equivariant = before.ndim > 0 and before.shape[0] == x.shape[0]
    for permutation in permutations:
        after = np.asarray(function(x[permutation]))
        if np.abs(after - before).max() > 1e-6:
            invariant = False
        if equivariant and np.abs(after - before[permutation]).max() > 1e-6:
            equivariant = False
    return _answer(invariant, equivariant)


@CLASSIFY_SYMMETRY.variant("permutation undone on the output")
def _(function, x, permutations):
    before = np.asarray(function(x))
    after = [np.asarray(function(x[order])) for order in permutations]
    if np.allclose(after, before):
        return "invariant"
    if before.shape[:1] != (len(x),):
        return "neither"
    undone = [moved[np.argsort(order)] for moved, order in zip(after, permutations, strict=True)]
    return "equivariant" if np.allclose(undone, before) else "neither"


@CLASSIFY_SYMMETRY.variant("list of rows, and an error for no position axis")
def _(function, x, permutations):
    def close(first, second):
        return bool(np.max(np.abs(np.asarray(first) - second)) < 1e-8)

    before, moving = function(x), True
    after = [function(np.array([x[row] for row in order])) for order in permutations]
    if all(close(output, before) for output in after):
        return "invariant"
    for output, order in zip(after, permutations, strict=True):
        try:
            moving &= len(before) == len(x) and close(output, [before[row] for row in order])
        except TypeError:
            moving = False
    return "equivariant" if moving else "neither"


@CLASSIFY_SYMMETRY.variant("float32")
def _(function, x, permutations):
    single = np.float32(x)
    before = np.asarray(function(single))
    moves = before.ndim > 0 and len(before) == len(x)
    stays = True
    for order in permutations:
        after = function(single[order])
        stays = stays and np.allclose(after, before, rtol=1e-3, atol=1e-4)
        moves = moves and np.allclose(after, before[order], rtol=1e-3, atol=1e-4)
    return _answer(stays, moves)


_means = Misconceptions()


def _counts(x, start=1):
    """Return numbers from start on as a column, one for each row."""
    return np.arange(start, start + x.shape[-2])[:, np.newaxis]


@_means.idea(
    "the row itself left out",
    "row t gets the mean of the rows before it, and row 0 the mean of nothing, which is nan; row t "
    "itself belongs to it",
    "attention-causal-mean",
)
def _(x):
    return (np.cumsum(x, axis=-2) - x) / _counts(x, 0)


@_means.idea(
    "mean over all",
    "every row gets the mean of the whole sequence; row t may only use rows 0 to t",
    "attention-causal-mean",
)
def _(x):
    return np.broadcast_to(np.mean(x, axis=-2, keepdims=True), x.shape).copy()


@_means.idea(
    "mean of the later rows",
    "row t gets the mean of the rows from t on; it may look back, not ahead",
    "attention-causal-mean",
)
def _(x):
    later = np.cumsum(x[..., ::-1, :], axis=-2)[..., ::-1, :]
    return later / _counts(x)[::-1]


@_means.idea(
    "along the features",
    "the average runs along the last axis, from feature to feature; the rows are the tokens, and "
    "their axis is the second last",
    "attention-causal-mean",
)
def _(x):
    return np.cumsum(x, axis=-1) / np.arange(1, x.shape[-1] + 1)


@_means.idea(
    "first axis",
    "axis 0 is the tokens' in a single sequence, and the batch's in a batch; counted from the end, "
    "theirs is -2 in both",
    "attention-causal-mean",
)
def _(x):
    counts = np.arange(1, len(x) + 1).reshape(-1, *[1] * (x.ndim - 1))
    return np.cumsum(x, axis=0) / counts


@_means.idea(
    "sum instead of mean",
    "the rows so far are added up and not divided by how many they are",
    "attention-causal-mean",
)
def _(x):
    return np.cumsum(x, axis=-2)


@_means.idea(
    "one count for all",
    "every sum is divided by n, as equal weights 1/n do that are masked afterwards; row t has "
    "t + 1 rows to share among",
    "attention-causal-mean",
)
def _(x):
    return np.cumsum(x, axis=-2) / x.shape[-2]


@_means.idea(
    "counts from 0",
    "the sum of rows 0 to t is divided by t, and for row 0 by 0; it has t + 1 rows",
    "attention-causal-mean",
)
def _(x):
    return np.cumsum(x, axis=-2) / _counts(x, 0)


@_means.idea(
    "counts along the features",
    "np.arange(1, n + 1) has one axis, which lines up with the features; [:, np.newaxis] makes a "
    "column of it, one count for each row",
    "attention-causal-mean",
)
def _(x):
    return np.cumsum(x, axis=-2) / np.arange(1, x.shape[-2] + 1)


@_means.idea(
    "mean of the last mean and the new row",
    "each row is averaged with the result before it, half and half, so that early rows fade; all "
    "rows so far count alike",
    "attention-causal-mean",
)
def _(x):
    means = np.array(x, dtype=float)
    for row in range(1, x.shape[-2]):
        means[..., row, :] = (means[..., row - 1, :] + x[..., row, :]) / 2
    return means


@_means.idea(
    "results cut to integers",
    "the result is stored in an array like x, which for integers drops what comes after the point; "
    "make it of floats",
    "attention-causal-mean",
)
def _(x):
    means = np.zeros_like(x)
    for row in range(x.shape[-2]):
        means[..., row, :] = x[..., : row + 1, :].mean(axis=-2)
    return means


def _knows_no_later_row(candidate, x):
    other = x.copy()
    other[..., -1, :] += 1
    before, after = candidate(x), candidate(other)
    require(
        np.allclose(before[..., :-1, :], after[..., :-1, :], atol=1e-5, equal_nan=True),
        "another last row of x should change the last row of the result alone",
    )


CAUSAL_MEAN = Exercise(
    reference=attention.causal_mean,
    assignment=ASSIGNMENT,
    section="attention-causal-mean",
    difficulty=2,
    importance=3,
    minutes="5-10",
    atol=1e-5,
    rtol=1e-5,
    criteria=(
        holds(
            "no row knows a later one",
            0.5,
            _knows_no_later_row,
            visible=lambda: [case(_visible_rows())],
            drawn=lambda rng: [case(_rows(rng)), case(_rows(rng, int(rng.integers(4, 8))))],
        ),
        values(
            "the rows of one sequence",
            0.5,
            # As many rows as features let counts along the wrong axis go on without an error.
            visible=lambda: [
                case(_visible_rows()),
                case(np.random.default_rng(2).standard_normal((8, 8)).round(2)),
            ],
            drawn=lambda rng: [
                case(_rows(rng)),
                case(rng.standard_normal((10, 10)).round(2)),
                case(np.eye(int(rng.integers(6, 9)), 12)),
            ],
        ),
        values(
            "each sequence of a batch",
            0.5,
            visible=lambda: [
                case(np.random.default_rng(3).standard_normal((2, 4, 8)).round(2)),
            ],
            drawn=lambda rng: [
                case(rng.standard_normal((*rng.integers(2, 6, 2), 8)).round(2)),
                case(rng.standard_normal((2, 3, int(rng.integers(3, 6)), 10)).round(2)),
            ],
        ),
        values(
            "rows of integers",
            0.5,
            visible=lambda: [case(np.random.default_rng(4).integers(-9, 10, (6, 8)))],
            drawn=lambda rng: [
                case(rng.integers(-9, 10, (int(rng.integers(5, 9)), 8))),
                case(rng.integers(0, 100, (5, 9)).astype(np.int32)),
            ],
        ),
    ),
    misconceptions=tuple(_means),
)


@CAUSAL_MEAN.variant("mean of each prefix")
def _(x):
    rows = range(1, x.shape[-2] + 1)
    return np.stack([x[..., :row, :].mean(axis=-2) for row in rows], axis=-2)


@CAUSAL_MEAN.variant("running sum over counts")
def _(x):
    return np.add.accumulate(x, axis=-2) / _counts(x)


@CAUSAL_MEAN.variant("softmax of masked zeros")
def _(x):
    scores = np.where(np.tri(x.shape[-2], dtype=bool), 0, -np.inf)
    return attention.softmax(scores) @ x


@CAUSAL_MEAN.variant("mean brought up to date row by row")
def _(x):
    means = np.array(x, dtype=float)
    for row in range(1, x.shape[-2]):
        old = means[..., row - 1, :]
        means[..., row, :] = old + (x[..., row, :] - old) / (row + 1)
    return means


@CAUSAL_MEAN.variant("self-attention with weights of zero")
def _(x):
    nothing = np.zeros((x.shape[-1], 1))
    return attention.self_attention(x, nothing, nothing, np.eye(x.shape[-1]), causal=True)[0]


@CAUSAL_MEAN.variant("nested lists")
def _(x):
    return (np.cumsum(x, axis=-2) / _counts(x)).tolist()


@CAUSAL_MEAN.variant("float32")
def _(x):
    return np.cumsum(x, axis=-2, dtype=np.float32) / np.float32(_counts(x))


_prefixes = Misconceptions()


def _through(x, layers, causal):
    for w_q, w_k, w_v in layers:
        x, _ = attention.self_attention(x, w_q, w_k, w_v, causal=causal)
    return x


def _reordered(x, permutation):
    return x[..., [*permutation, -1], :]


def _change(x, layers, permutation, causal, *, row=-1):
    """Return how the output of one row changes, entry by entry."""
    before = _through(x, layers, causal)
    after = _through(_reordered(x, permutation), layers, causal)
    return after[..., row, :] - before[..., row, :]


@_prefixes.idea(
    "the last token permuted too",
    "the first token is kept in its place and the last one moves; the tokens before the last are "
    "permuted, and the last one stays to be asked",
    "attention-prefix-order",
)
def _(x, layers, permutation, *, causal):
    moved = x[..., [0, *(np.asarray(permutation) + 1)], :]
    after, before = (_through(rows, layers, causal)[..., -1, :] for rows in (moved, x))
    return np.abs(after - before).max()


@_prefixes.idea(
    "the last token lost",
    "x[permutation] holds the tokens before the last one alone, so that another token is asked in "
    "its place; append the last row to them",
    "attention-prefix-order",
)
def _(x, layers, permutation, *, causal):
    moved = x[..., permutation, :]
    after, before = (_through(rows, layers, causal)[..., -1, :] for rows in (moved, x))
    return np.abs(after - before).max()


@_prefixes.idea(
    "a 0 put in front",
    "np.append(0, permutation) takes row 0 twice and the last row not at all; the number of the "
    "last row is to follow the permutation",
    "attention-prefix-order",
)
def _(x, layers, permutation, *, causal):
    moved = x[..., [0, *permutation], :]
    after, before = (_through(rows, layers, causal)[..., -1, :] for rows in (moved, x))
    return np.abs(after - before).max()


@_prefixes.idea(
    "one layer only",
    "only the first layer is applied, and one layer gives the last token a weighted mean, which "
    "has no order; all layers are to be applied",
    "attention-prefix-order",
)
def _(x, layers, permutation, *, causal):
    return np.abs(_change(x, layers[:1], permutation, causal)).max()


@_prefixes.idea(
    "every layer starts from x",
    "each layer is given x again, so that only the last one counts; a layer works on the output of "
    "the one before it",
    "attention-prefix-order",
)
def _(x, layers, permutation, *, causal):
    after, before = (
        [_through(rows, [layer], causal) for layer in layers][-1]
        for rows in (_reordered(x, permutation), x)
    )
    return np.abs(after[..., -1, :] - before[..., -1, :]).max()


@_prefixes.idea(
    "the last layer left out",
    "the loop ends one layer too early; the output of the last layer is asked for",
    "attention-prefix-order",
)
def _(x, layers, permutation, *, causal):
    return np.abs(_change(x, layers[:-1], permutation, causal)).max()


@_prefixes.idea(
    "causal ignored",
    "causal is not passed on to the layers, which then use no mask and see no order, however many "
    "they are",
    "attention-prefix-order",
)
def _(x, layers, permutation, *, causal):
    return np.abs(_change(x, layers, permutation, False)).max()


@_prefixes.idea(
    "causal mask always on",
    "the layers use the causal mask also where causal is False",
    "attention-prefix-order",
)
def _(x, layers, permutation, *, causal):
    return np.abs(_change(x, layers, permutation, True)).max()


@_prefixes.idea(
    "all tokens compared",
    "the outputs of all tokens are compared, and those that were moved differ in any case; the "
    "last token alone is asked",
    "attention-prefix-order",
)
def _(x, layers, permutation, *, causal):
    return np.abs(_change(x, layers, permutation, causal, row=slice(None))).max()


@_prefixes.idea(
    "the first token asked",
    "the output of the first token is compared, which was itself moved; the last token is asked",
    "attention-prefix-order",
)
def _(x, layers, permutation, *, causal):
    return np.abs(_change(x, layers, permutation, causal, row=0)).max()


@_prefixes.idea(
    "weights compared",
    "the attention weights of the last token are compared, which move along with the tokens; its "
    "output is the first of the two values that self_attention returns",
    "attention-prefix-order",
)
def _(x, layers, permutation, *, causal):
    after, before = (
        attention.self_attention(_through(rows, layers[:-1], causal), *layers[-1], causal=causal)[1]
        for rows in (_reordered(x, permutation), x)
    )
    return np.abs(after[..., -1, :] - before[..., -1, :]).max()


@_prefixes.idea(
    "inverse permutation",
    "row i is sent to place permutation[i]; row i of the new order is row permutation[i] of x",
    "attention-prefix-order",
)
def _(x, layers, permutation, *, causal):
    return np.abs(_change(x, layers, np.argsort(permutation), causal)).max()


@_prefixes.idea(
    "mean instead of the largest",
    "the changes are averaged; asked for is the largest of them",
    "attention-prefix-order",
)
def _(x, layers, permutation, *, causal):
    return np.abs(_change(x, layers, permutation, causal)).mean()


@_prefixes.idea(
    "norm instead of the largest",
    "the squares of the changes are added up; asked for is the largest change",
    "attention-prefix-order",
)
def _(x, layers, permutation, *, causal):
    return np.linalg.norm(_change(x, layers, permutation, causal))


@_prefixes.idea(
    "signed difference",
    "the largest change is taken before its sign is dropped, so a large negative one is missed",
    "attention-prefix-order",
)
def _(x, layers, permutation, *, causal):
    return np.max(_change(x, layers, permutation, causal))


@_prefixes.idea(
    "signed difference, before minus after",
    "the largest of the signed differences is taken, so a large negative one is missed; take "
    "absolute values first",
    "attention-prefix-order",
)
def _(x, layers, permutation, *, causal):
    return np.max(-_change(x, layers, permutation, causal))


@_prefixes.idea(
    "changes its input",
    "the tokens are permuted in x itself, which the caller still needs; permute a copy of it",
    "attention-prefix-order",
)
def _(x, layers, permutation, *, causal):
    gap = np.abs(_change(x, layers, permutation, causal)).max()
    x[..., :-1, :] = x[..., permutation, :]
    return gap


@_prefixes.idea(
    "x compared with itself",
    "y = x is a second name for the same array, so that permuting y permutes x as well, and both "
    "give the same output; permute a copy, such as x[..., order, :]",
    "attention-prefix-order",
)
def _(x, layers, permutation, *, causal):
    moved = x
    moved[..., :-1, :] = x[..., permutation, :]
    change = _through(moved, layers, causal) - _through(x, layers, causal)
    return np.abs(change[..., -1, :]).max()


@_prefixes.idea(
    "input added to the output",
    "each layer's input is added to its output, as Transformers do; the layers of this task are "
    "self_attention alone",
    "attention-prefix-order",
)
def _(x, layers, permutation, *, causal):
    def through(rows):
        for layer in layers:
            rows = rows + attention.self_attention(rows, *layer, causal=causal)[0]
        return rows[..., -1, :]

    return np.abs(through(_reordered(x, permutation)) - through(x)).max()


@_prefixes.idea(
    "first axis",
    "x[order] and rows[-1] index the first axis, which in a batch is not the tokens'; theirs is "
    "the second last",
    "attention-prefix-order",
)
def _(x, layers, permutation, *, causal):
    after, before = (_through(rows, layers, causal)[-1] for rows in (x[[*permutation, -1]], x))
    return np.abs(after - before).max()


def _layers(rng: np.random.Generator, *widths: int):
    """Draw a layer between each two widths, of a size that keeps the softmax from one token."""
    return [
        tuple(
            (rng.standard_normal((before, width)) * 1.3 / np.sqrt(before)).round(2)
            for width in (4, 4, after)
        )
        for before, after in pairwise(widths)
    ]


def _prefix_case(rng, *shape, widths, causal, sign=1, order=None):
    """Draw a case whose label says what no array of numbers would."""
    x = sign * rng.standard_normal((*shape, widths[0])).round(2)
    length = shape[-1]
    order = _order(rng, length - 1) if order is None else np.array(order)
    number = len(widths) - 1
    label = (
        f"{f'{shape[0]} sequences of ' if len(shape) > 1 else ''}{length} tokens, "
        f"{number} layer{'' if number == 1 else 's'}, {order.tolist()}, causal={causal}"
    )
    return named_case(label, x, _layers(rng, *widths), order, causal=causal)


def _seen_prefix(*shape, widths, causal, sign=1, order=(2, 0, 3, 1, 4)):
    rng = np.random.default_rng(1)
    return _prefix_case(rng, *shape, widths=widths, causal=causal, sign=sign, order=order)


def _order_is_not_seen(candidate, x, layers, permutation, *, causal):
    gap = candidate(x, layers, permutation, causal=causal)
    if np.array_equal(permutation, np.arange(len(permutation))):
        reason = "this permutation leaves every token in its place"
    elif not causal:
        reason = (
            "without a mask no layer sees an order: each gives the last token a weighted mean of "
            "the same set of tokens"
        )
    else:
        reason = (
            "one layer gives the last token a weighted mean of all tokens, the same set in any "
            "order"
        )
    require(np.abs(gap) < 1e-5, f"{reason}, so the gap is 0 up to rounding; got {gap:.4g}")


def _both_signs(rng: np.random.Generator, length: int, *, widths, causal):
    """Draw x and -x, whose outputs differ in sign: in one, the largest change is negative."""
    drawn = _prefix_case(rng, length, widths=widths, causal=causal)
    x, *rest = drawn.args
    return [drawn, named_case(drawn.label, -x, *rest, **drawn.kwargs)]


PREFIX_ORDER_GAP = Exercise(
    reference=attention.prefix_order_gap,
    assignment=ASSIGNMENT,
    section="attention-prefix-order",
    difficulty=3,
    importance=4,
    minutes="15-20",
    atol=1e-5,
    rtol=1e-4,
    criteria=(
        holds(
            "no gap where no order can be seen",
            0.5,
            _order_is_not_seen,
            visible=lambda: [
                _seen_prefix(6, widths=(8, 8), causal=True),
                _seen_prefix(6, widths=(8, 8, 8), causal=False),
                _seen_prefix(6, widths=(8, 8, 8), causal=True, order=range(5)),
            ],
            drawn=lambda rng: [
                _prefix_case(rng, 6, widths=(8, 8), causal=True),
                _prefix_case(rng, 7, widths=(10, 10, 10), causal=False),
                _prefix_case(rng, 6, widths=(8, 8, 8), causal=True, order=range(5)),
            ],
        ),
        values(
            "one causal layer, and two",
            0.5,
            visible=lambda: [
                _seen_prefix(6, widths=(8, 8), causal=True),
                _seen_prefix(6, widths=(8, 8, 8), causal=True),
                _seen_prefix(6, widths=(8, 8, 8), causal=True, sign=-1),
            ],
            drawn=lambda rng: [
                _prefix_case(rng, 6, widths=(8, 8), causal=True),
                *_both_signs(rng, int(rng.integers(5, 8)), widths=(8, 8, 8), causal=True),
            ],
        ),
        values(
            "with the mask and without",
            0.5,
            visible=lambda: [
                _seen_prefix(6, widths=(8, 8, 8), causal=True),
                _seen_prefix(6, widths=(8, 8, 8), causal=False),
            ],
            drawn=lambda rng: [
                _prefix_case(rng, int(rng.integers(5, 8)), widths=(8, 8, 8), causal=causal)
                for causal in (True, False)
            ],
        ),
        values(
            "three layers, and layers of other widths",
            0.5,
            visible=lambda: [
                _seen_prefix(6, widths=(8, 8, 8, 8), causal=True),
                _seen_prefix(6, widths=(8, 6, 5), causal=True),
            ],
            drawn=lambda rng: [
                _prefix_case(rng, int(rng.integers(5, 8)), widths=(8, 8, 8, 8), causal=True),
                _prefix_case(rng, int(rng.integers(5, 8)), widths=(8, 6, 5), causal=True),
            ],
        ),
        values(
            "a batch of sequences",
            0.5,
            visible=lambda: [_seen_prefix(2, 6, widths=(8, 8, 8), causal=True)],
            drawn=lambda rng: [
                _prefix_case(rng, 3, int(rng.integers(5, 8)), widths=(8, 8, 8), causal=True)
            ],
        ),
        leaves_unchanged(
            "x is left unchanged",
            0.5,
            visible=lambda: [_seen_prefix(6, widths=(8, 8, 8), causal=True)],
            drawn=lambda rng: [
                _prefix_case(rng, int(rng.integers(5, 8)), widths=(8, 8, 8), causal=True)
            ],
        ),
    ),
    misconceptions=tuple(_prefixes),
)


@PREFIX_ORDER_GAP.variant("last row appended")
def _(x, layers, permutation, *, causal):
    x = np.asarray(x)
    moved = np.concatenate([x[..., :-1, :][..., permutation, :], x[..., -1:, :]], axis=-2)
    changes = _through(moved, layers, causal) - _through(x, layers, causal)
    return float(np.max(np.abs(changes[..., -1, :])))


@PREFIX_ORDER_GAP.variant("index with the last row's number")
def _(x, layers, permutation, *, causal):
    order = np.append(permutation, x.shape[-2] - 1)
    return np.abs(
        _through(x, layers, causal)[..., -1, :]
        - _through(np.take(x, order, axis=-2), layers, causal)[..., -1, :]
    ).max()


@PREFIX_ORDER_GAP.variant("both sequences as one batch")
def _(x, layers, permutation, *, causal):
    both = _through(np.stack([x, _reordered(x, permutation)]), layers, causal)
    return np.abs(both[1] - both[0])[..., -1, :].max()


@PREFIX_ORDER_GAP.variant("assigned into a copy")
def _(x, layers, permutation, *, causal):
    moved = x.copy()
    moved[..., :-1, :] = x[..., np.asarray(permutation), :]
    change = _through(moved, layers, causal) - _through(x, layers, causal)
    return max(change[..., -1, :].max(), -change[..., -1, :].min())


@PREFIX_ORDER_GAP.variant("float32")
def _(x, layers, permutation, *, causal):
    single = [tuple(np.float32(w) for w in layer) for layer in layers]
    return np.float32(np.abs(_change(np.float32(x), single, permutation, causal)).max())


EXERCISES = (
    SOFTMAX,
    SELF_ATTENTION,
    EQUIVARIANCE_GAP,
    CLASSIFY_SYMMETRY,
    CAUSAL_MEAN,
    PREFIX_ORDER_GAP,
)
