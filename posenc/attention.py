"""Self-attention and the symmetry that makes it blind to order (chapter 1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posenc import _validate as validate


def softmax(scores: ArrayLike, axis: int = -1) -> NDArray[np.floating]:
    """Turn scores into weights that are positive and sum to one along an axis.

    The largest score of each slice is subtracted first, which changes no weight and keeps the
    exponential from overflowing.

    Parameters
    ----------
    scores : array_like
        Real scores of any shape; ``-inf`` stands for a forbidden entry.
    axis : int, default -1
        The axis along which the weights sum to one.

    Returns
    -------
    ndarray
        Weights of the same shape; floats keep their dtype, integers become float64.

    Raises
    ------
    ValueError
        If the scores have no such axis.
    TypeError
        If the scores are not real numbers, or the axis is not an integer.

    References
    ----------
    Vaswani et al. (2017), "Attention Is All You Need", section 3.2.1.

    Examples
    --------
    >>> softmax([0.0, 0.0, 1000.0]).tolist()
    [0.0, 0.0, 1.0]
    """
    scores = validate.tensor(scores, "scores")
    axis = validate.axis(axis, scores.ndim)
    weights = np.exp(scores - scores.max(axis=axis, keepdims=True, initial=-np.inf))
    return weights / weights.sum(axis=axis, keepdims=True)


def self_attention(
    x: ArrayLike, w_q: ArrayLike, w_k: ArrayLike, w_v: ArrayLike, *, causal: bool = False
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Let every row of a sequence look at every other row.

    Parameters
    ----------
    x : (..., n, d_model) array_like
        A sequence of n token vectors, or a batch of them.
    w_q, w_k : (d_model, d_k) array_like
        Projections to queries and keys.
    w_v : (d_model, d_v) array_like
        Projection to values.
    causal : bool, default False
        Whether row t may look only at rows 0..t.

    Returns
    -------
    output : (..., n, d_v) ndarray
        The values, averaged with the weights.
    weights : (..., n, n) ndarray
        Row i holds how much token i looks at each token; rows sum to one.

    Raises
    ------
    ValueError
        If ``x`` and the projections do not fit together.
    TypeError
        If ``causal`` is not a bool.

    References
    ----------
    Vaswani et al. (2017), "Attention Is All You Need", section 3.2.1, equation 1, and section 3.2.3
    for the mask.

    Examples
    --------
    >>> x = np.eye(3)
    >>> output, weights = self_attention(x, np.eye(3), np.eye(3), np.eye(3), causal=True)
    >>> weights.round(2).tolist()
    [[1.0, 0.0, 0.0], [0.36, 0.64, 0.0], [0.26, 0.26, 0.47]]
    """
    x = validate.tensor(x, "x", min_ndim=2)
    w_q, w_k, w_v = (
        validate.tensor(w, name, ndim=2) for w, name in ((w_q, "w_q"), (w_k, "w_k"), (w_v, "w_v"))
    )
    for w, name in ((w_q, "w_q"), (w_k, "w_k"), (w_v, "w_v")):
        validate.same_axis(w.shape[-2], x.shape[-1], f"first axis of {name} must be d_model")
    validate.same_axis(w_k.shape[-1], w_q.shape[-1], "last axis of w_k must be that of w_q")
    d_k = validate.integer(w_k.shape[-1], "last axis of w_k", minimum=1)
    causal = validate.flag(causal, "causal")

    queries, keys, values = x @ w_q, x @ w_k, x @ w_v
    scores = queries @ np.swapaxes(keys, -1, -2) / math.sqrt(d_k)
    if causal:
        length = x.shape[-2]
        scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
    weights = softmax(scores)
    return weights @ values, weights


def equivariance_gap(
    function: Callable[[NDArray], ArrayLike], x: ArrayLike, permutation: ArrayLike
) -> float:
    """Measure how far a function is from commuting with a permutation of rows.

    Parameters
    ----------
    function : callable
        Takes an (n, d) array and returns one (n, ...) array.
    x : (n, d) array_like
        The input, one row for each position.
    permutation : (n,) array_like of int
        Each of 0..n-1 once: row i of the permuted input is row ``permutation[i]`` of ``x``.

    Returns
    -------
    float
        Largest absolute difference of ``function(x[permutation])`` and
        ``function(x)[permutation]``: zero, up to rounding, for an equivariant function.

    Raises
    ------
    ValueError
        If ``permutation`` is none, or the function's output does not have n rows.

    References
    ----------
    Zaheer et al. (2017), "Deep Sets", section 2.1.

    Examples
    --------
    >>> x = np.arange(6.0).reshape(3, 2)
    >>> equivariance_gap(np.tanh, x, [1, 2, 0])
    0.0
    >>> equivariance_gap(lambda rows: np.cumsum(rows, axis=0), x, [1, 2, 0])
    8.0
    """
    function = validate.function(function, "function")
    x = validate.tensor(x, "x", min_ndim=2)
    x = validate.non_empty(x, "x")
    permutation = validate.permutation(permutation, len(x))

    def output(rows: NDArray) -> NDArray:
        result = validate.tensor(function(rows), "the function's output", min_ndim=1)
        validate.same_axis(len(result), len(x), "rows of the function's output")
        return result

    permuted_first, permuted_last = output(x[permutation]), output(x.copy())
    return float(np.abs(permuted_first - permuted_last[permutation]).max())


def classify_symmetry(
    function: Callable[[NDArray], ArrayLike], x: ArrayLike, permutations: ArrayLike
) -> str:
    """Say how a function answers when the rows of its input change places.

    One permutation can mislead: a symmetric convolution commutes with reversal,
    but with few others.

    Parameters
    ----------
    function : callable
        Takes an (n, d) array and returns an array, with one row for each position or without.
    x : (n, d) array_like
        The input, one row for each position.
    permutations : (m, n) array_like of int
        One or more permutations of 0..n-1, as in :func:`equivariance_gap`.

    Returns
    -------
    str
        "invariant" if the output stays as it is for all the permutations, else "equivariant" if
        its rows move with those of ``x`` for all of them, else "neither". Outputs count as equal
        if they differ by no more than the square root of their dtype's rounding, relative to the
        largest.

    Raises
    ------
    ValueError
        If there are no permutations or one of them is none, ``x`` is empty, or the shape of the
        output changes.
    TypeError
        If ``function`` cannot be called, or an array does not hold numbers.

    References
    ----------
    Zaheer et al. (2017), "Deep Sets", section 2.1.

    Examples
    --------
    >>> x, permutations = np.arange(6.0).reshape(3, 2), [[1, 2, 0], [0, 2, 1]]
    >>> classify_symmetry(lambda rows: rows.mean(axis=0), x, permutations)
    'invariant'
    >>> classify_symmetry(np.tanh, x, permutations)
    'equivariant'
    >>> classify_symmetry(lambda rows: np.cumsum(rows, axis=0), x, permutations)
    'neither'
    """
    function = validate.function(function, "function")
    x = validate.non_empty(validate.tensor(x, "x", min_ndim=2), "x")
    permutations = validate.non_empty(
        validate.integers(permutations, "permutations"), "permutations"
    )
    validate.same_axis(permutations.ndim, 2, "number of axes of permutations")
    permutations = [validate.permutation(permutation, len(x)) for permutation in permutations]

    expected = validate.tensor(function(x.copy()), "the function's output")
    moved = []
    for permutation in permutations:
        output = validate.tensor(function(x[permutation]), "the function's output")
        validate.same_shape(output.shape, expected.shape, "the function's output")
        moved.append(output)
    tolerance = np.sqrt(np.finfo(expected.dtype).eps) * np.abs(expected).max(initial=0)

    def same(first: NDArray, second: NDArray) -> bool:
        return bool((np.abs(first - second) <= tolerance).all())

    if all(same(output, expected) for output in moved):
        return "invariant"
    if expected.ndim and len(expected) == len(x):
        pairs = zip(moved, permutations, strict=True)
        if all(same(output, expected[permutation]) for output, permutation in pairs):
            return "equivariant"
    return "neither"


def causal_mean(x: ArrayLike) -> NDArray[np.floating]:
    """Average every row with all rows before it.

    This is what causal attention computes when all its scores are equal. Over a flag that is 1 at
    the first token and 0 elsewhere it gives 1, 1/2, 1/3 ..: the mask alone tells the position.

    Parameters
    ----------
    x : (..., n, d) array_like
        A sequence of n vectors, or a batch of them.

    Returns
    -------
    (..., n, d) ndarray
        Row t is the mean of rows 0..t; floats keep their dtype, integers become float64.

    Raises
    ------
    ValueError
        If ``x`` has fewer than two axes.
    TypeError
        If ``x`` does not hold real numbers.

    References
    ----------
    Haviv et al. (2022), "Transformer Language Models without Positional Encodings Still Learn
    Positional Information", abstract: the mask lets a token count those before it.

    Examples
    --------
    >>> causal_mean([[1.0], [0.0], [0.0], [0.0]]).round(4).tolist()
    [[1.0], [0.5], [0.3333], [0.25]]
    """
    x = validate.tensor(x, "x", min_ndim=2)
    counts = np.arange(1, x.shape[-2] + 1)[:, np.newaxis]
    sums = np.cumsum(x, axis=-2, dtype=np.result_type(x, np.float64))
    return (sums / counts).astype(x.dtype)


def prefix_order_gap(
    x: ArrayLike,
    layers: Sequence[tuple[ArrayLike, ArrayLike, ArrayLike]],
    permutation: ArrayLike,
    *,
    causal: bool,
) -> float:
    """Measure how much the last token notices of the order of the tokens before it.

    One layer of attention without positions gives the last token a weighted mean, which has no
    order. After a causal layer every token has met other ones, and the next layer can tell.

    Parameters
    ----------
    x : (..., n, d) array_like
        A sequence of n token vectors, or a batch of them.
    layers : sequence of (w_q, w_k, w_v)
        Weights of one or more layers of :func:`self_attention`; each works on the output of the
        one before it.
    permutation : (n - 1,) array_like of int
        Each of 0..n-2 once: a new order of the tokens before the last.
    causal : bool
        Whether token t may look only at tokens 0..t.

    Returns
    -------
    float
        Largest absolute change of the last token's output.

    Raises
    ------
    ValueError
        If there is no token or no layer, a layer is no triple or does not fit, or ``permutation``
        is none of n - 1 tokens.
    TypeError
        If ``layers`` is not a sequence, or ``causal`` is not a bool.

    References
    ----------
    Haviv et al. (2022), "Transformer Language Models without Positional Encodings Still Learn
    Positional Information", abstract.

    Examples
    --------
    >>> x = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]
    >>> layer = (np.eye(2), np.eye(2), np.eye(2))
    >>> prefix_order_gap(x, [layer], [1, 2, 0], causal=True) < 1e-12
    True
    >>> round(prefix_order_gap(x, [layer, layer], [1, 2, 0], causal=True), 3)
    0.158
    >>> prefix_order_gap(x, [layer, layer], [1, 2, 0], causal=False) < 1e-12
    True
    """
    x = validate.non_empty(validate.tensor(x, "x", min_ndim=2), "x")
    layers = validate.tuples(layers, 3, "layers", "w_q, w_k and w_v")
    permutation = validate.permutation(permutation, x.shape[-2] - 1)
    causal = validate.flag(causal, "causal")

    def last_output(rows: NDArray) -> NDArray:
        for layer in layers:
            rows, _ = self_attention(rows, *layer, causal=causal)
        return rows[..., -1, :]

    reordered = x[..., [*permutation, -1], :]
    return float(np.abs(last_output(reordered) - last_output(x)).max())


def additive_score_terms(
    x: ArrayLike, position_vectors: ArrayLike, w_q: ArrayLike, w_k: ArrayLike
) -> tuple[NDArray[np.floating], NDArray[np.floating], NDArray[np.floating], NDArray[np.floating]]:
    """Split the scores of embeddings to which positions were added into their four terms.

    A query is ``(x_i + p_i) w_q`` and a key ``(x_j + p_j) w_k``, so that their product is a sum
    of four: what meets what, what meets where, where meets what, and where meets where.

    Parameters
    ----------
    x : (..., n, d_model) array_like
        Token vectors before positions are added: the content.
    position_vectors : (n, d_model) array_like
        What is added to them, one row for each position; or a batch of such tables.
    w_q, w_k : (d_model, d_k) array_like
        Projections to queries and keys.

    Returns
    -------
    content_content : (..., n, n) ndarray
        Token i against token j, whatever their places.
    content_position : (..., n, n) ndarray
        Token i, as the query, against place j.
    position_content : (..., n, n) ndarray
        Place i, as the query, against token j.
    position_position : (n, n) ndarray
        Place i against place j, whatever the tokens; one for each table of a batch. Each term is
        divided by ``sqrt(d_k)``, and the four add up to the scores of :func:`self_attention` on
        ``x + position_vectors``.

    Raises
    ------
    ValueError
        If ``x``, the position vectors and the projections do not fit together.

    References
    ----------
    Dai et al. (2019), "Transformer-XL", section 3.3, terms (a) to (d); Ke et al. (2021),
    "Rethinking Positional Encoding in Language Pre-training" (TUPE), section 3.1.

    Examples
    --------
    >>> x, places = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.0, 2.0], [0.0, 3.0]])
    >>> terms = additive_score_terms(x, places, np.eye(2), np.eye(2))
    >>> [(term * np.sqrt(2)).round(6).tolist() for term in terms[:2]]
    [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [2.0, 3.0]]]
    >>> bool(np.allclose(np.sqrt(2) * sum(terms), (x + places) @ (x + places).T))
    True
    """
    x = validate.tensor(x, "x", min_ndim=2)
    position_vectors = validate.tensor(position_vectors, "position_vectors", min_ndim=2)
    w_q, w_k = validate.tensor(w_q, "w_q", ndim=2), validate.tensor(w_k, "w_k", ndim=2)
    for axis, what in ((-1, "last axis"), (-2, "number of rows")):
        validate.same_axis(
            position_vectors.shape[axis], x.shape[axis], f"{what} of position_vectors must be x's"
        )
    validate.leading_axes(x.shape, position_vectors.shape, "x and position_vectors")
    for w, name in ((w_q, "w_q"), (w_k, "w_k")):
        validate.same_axis(w.shape[-2], x.shape[-1], f"first axis of {name} must be d_model")
    validate.same_axis(w_k.shape[-1], w_q.shape[-1], "last axis of w_k must be that of w_q")
    scale = 1 / math.sqrt(validate.integer(w_k.shape[-1], "last axis of w_k", minimum=1))

    def term(query_side: NDArray, key_side: NDArray) -> NDArray:
        return (query_side @ w_q) @ np.swapaxes(key_side @ w_k, -1, -2) * scale

    return (
        term(x, x),
        term(x, position_vectors),
        term(position_vectors, x),
        term(position_vectors, position_vectors),
    )
