"""Chapter 1, why position must be added: its exercises, and the ways they go wrong."""

from __future__ import annotations

import numpy as np

from posenc import attention, sinusoidal
from posenc.exercises._model import Exercise, Misconceptions, case, holds, require, values

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
    "np.where(allowed, -inf, scores) forbids what may be seen and keeps the future, and the last "
    "row, which has none, is nan; the scores stand second and -inf third",
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
            # With d_k = 1 here and below, a wrong scale is not counted again.
            visible=lambda: [_visible_attention(5, 10, d_k=1, d_v=4, causal=True)],
            drawn=lambda rng: [
                _drawn_attention(rng, d_k=1, causal=True),
                _drawn_attention(rng, d_k=1, causal=True),
            ],
        ),
        holds(
            "with causal=True no row sees a later one",
            0.5,
            _blind_to_later_rows,
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
    """Replace every row by the mean of all: equivariant and invariant at once."""
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
    """Return one number a row, (n,)."""
    return np.linalg.norm(rows, axis=-1)


def running_total(rows):
    """Return one number a row, (n,): the sum of all entries so far."""
    return np.cumsum(rows.sum(axis=-1))


def running_outer_products(rows):
    """Return one matrix a row, (n, d, d): the sum of outer products so far."""
    return np.cumsum(rows[:, :, np.newaxis] * rows[:, np.newaxis, :], axis=0)


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


EXERCISES = (SOFTMAX, SELF_ATTENTION, EQUIVARIANCE_GAP)
