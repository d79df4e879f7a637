"""The length-generalisation lab: one attention head, trained on short sequences, tested on long.

Each model is the same but for how it is told positions, so that a difference of their accuracy is
due to that. Everything is NumPy in float64, the backward pass included. ``python -m posenc.lab``
runs the long form.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from posenc import _validate as validate
from posenc.attention import softmax
from posenc.bias import alibi_slopes, relative_positions, t5_bucket
from posenc.learned import lookup, lookup_gradient
from posenc.rotary import rope
from posenc.scaling import scaled_frequencies
from posenc.sinusoidal import inverse_frequencies, sinusoidal_encoding

ENCODINGS = ("learned", "sinusoidal", "rope", "t5", "alibi", "none")
TASKS = ("copy-1", "copy-3", "index-mod-4")
EXTENSIONS = ("none", "pi", "ntk", "by-parts", "log-n")

VOCABULARY = 16
D_MODEL = 32
TRAINED_LENGTH = 32
MAX_LENGTH = 256
FACTORS = (1, 2, 4, 8)
# What is measured: how long the sequences are, where they start, and from which row on.
MEASURES = {
    "16": {"length": 16},
    "32": {"length": 32},
    "48": {"length": 48},
    "64": {"length": 64},
    "128": {"length": 128},
    "rows 64-127": {"length": 128, "first": 64},
    "32 from 64": {"length": 32, "start": 64},
}


def draw_task(
    task: str, batch: int, length: int, rng: np.random.Generator, *, start: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Draw random sequences and what a model should answer at each of their rows.

    Parameters
    ----------
    task : {'copy-1', 'copy-3', 'index-mod-4'}
        Name the token one or three places back, or the position's remainder by four.
    batch : int
        Number of sequences.
    length : int
        Tokens of each sequence.
    rng : numpy.random.Generator
        Source of the tokens.
    start : int, default 0
        Position of the first token.

    Returns
    -------
    tokens : (batch, length) ndarray
        Tokens, each of 16 kinds equally often.
    targets : (batch, length) ndarray
        The right answers.
    scored : (length,) ndarray of bool
        Rows that count: the first of a copying task have nothing to copy.

    Raises
    ------
    ValueError
        If the task is unknown, ``batch`` or ``length`` is not positive, or ``start`` is negative.

    Examples
    --------
    >>> tokens, targets, scored = draw_task("copy-1", 1, 5, np.random.default_rng(0))
    >>> tokens.tolist(), targets[:, scored].tolist()
    ([[13, 10, 8, 4, 4]], [[13, 10, 8, 4]])
    """
    task = validate.choice(task, TASKS, "task")
    batch = validate.integer(batch, "batch", minimum=1)
    length = validate.integer(length, "length", minimum=1)
    start = validate.integer(start, "start", minimum=0)
    tokens = rng.integers(0, VOCABULARY, (batch, length))
    rows = np.arange(length)
    if task == "index-mod-4":
        return tokens, np.broadcast_to((start + rows) % 4, tokens.shape), rows >= 0
    distance = int(task.removeprefix("copy-"))
    return tokens, np.roll(tokens, distance, axis=1), rows >= distance


class AttentionModel:
    """Embedding, one causal attention head, and a linear read-out; nothing else.

    Parameters
    ----------
    encoding : {'learned', 'sinusoidal', 'rope', 't5', 'alibi', 'none'}
        How the model is told positions.
    rng : numpy.random.Generator
        Source of the initial parameters.

    Attributes
    ----------
    parameters : dict of str to ndarray
        What is trained.
    frequencies : (d_model / 2,) ndarray
        By how much 'rope' turns each pair from one position to the next; :func:`extend` changes
        them.
    sharpness : float
        Factor of all scores; 1 but for the extension 'log-n'.

    Raises
    ------
    ValueError
        If the encoding is unknown.

    Examples
    --------
    >>> model = AttentionModel("rope", np.random.default_rng(0))
    >>> model.logits([[3, 1, 2]]).shape
    (1, 3, 16)
    """

    def __init__(self, encoding: str, rng: np.random.Generator) -> None:
        self.encoding = validate.choice(encoding, ENCODINGS, "encoding")
        self.frequencies = inverse_frequencies(D_MODEL)
        self.sharpness = 1.0

        def matrix(columns: int) -> NDArray[np.float64]:
            return rng.standard_normal((D_MODEL, columns)) / math.sqrt(D_MODEL)

        self.parameters = {"embedding": rng.standard_normal((VOCABULARY, D_MODEL))}
        self.parameters |= {f"w_{name}": matrix(D_MODEL) for name in "qkvo"}
        self.parameters["readout"] = matrix(VOCABULARY)
        if encoding == "learned":
            self.parameters["positions"] = rng.standard_normal((MAX_LENGTH, D_MODEL)) / 2
        elif encoding == "t5":
            self.parameters["biases"] = np.zeros(32)

    def logits(self, tokens: NDArray[np.int64], *, start: int = 0) -> NDArray[np.float64]:
        """Return how likely the model holds each answer at each row.

        Parameters
        ----------
        tokens : (batch, length) array_like of int
            The sequences.
        start : int, default 0
            Position of their first token.

        Returns
        -------
        (batch, length, 16) ndarray
            Logarithms of probabilities, up to a constant of each row.
        """
        return self._forward(np.asarray(tokens), start)["logits"]

    def loss_and_gradients(
        self, tokens: NDArray[np.int64], targets: NDArray[np.int64], scored: NDArray[np.bool_]
    ) -> tuple[float, dict[str, NDArray[np.float64]]]:
        """Return the mean cross-entropy of the scored rows, and its gradient.

        Parameters
        ----------
        tokens, targets : (batch, length) ndarray
            Sequences and right answers, as :func:`draw_task` returns them.
        scored : (length,) ndarray of bool
            The rows that count.

        Returns
        -------
        loss : float
            Nats for each scored answer.
        gradients : dict of str to ndarray
            One of the shape of each parameter.
        """
        p, h = self.parameters, self._forward(tokens, 0)
        probabilities = softmax(h["logits"])
        answers = np.take_along_axis(probabilities, targets[..., np.newaxis], axis=-1)
        weight = scored / (len(tokens) * scored.sum())
        loss = -float((np.log(answers[..., 0]) * weight).sum())

        # Backwards, each line the derivative of a line of _forward, last to first.
        right = np.arange(VOCABULARY) == targets[..., np.newaxis]
        d_logits = (probabilities - right) * weight[:, np.newaxis]
        d_output = d_logits @ p["readout"].T
        d_mixed = d_output @ p["w_o"].T
        d_weights, d_values = (
            d_mixed @ _transposed(h["values"]),
            _transposed(h["weights"]) @ d_mixed,
        )
        mean = (d_weights * h["weights"]).sum(axis=-1, keepdims=True)
        d_scores = h["weights"] * (d_weights - mean)
        scale = self.sharpness / math.sqrt(D_MODEL)
        d_queries, d_keys = (
            d_scores @ h["keys"] * scale,
            _transposed(d_scores) @ h["queries"] * scale,
        )
        if self.encoding == "rope":
            d_queries, d_keys = (self._turn(d, -h["positions"]) for d in (d_queries, d_keys))
        d_x = d_queries @ p["w_q"].T + d_keys @ p["w_k"].T + d_values @ p["w_v"].T

        gradients = {
            "readout": _weight_gradient(h["output"], d_logits),
            "w_o": _weight_gradient(h["mixed"], d_output),
            "w_v": _weight_gradient(h["x"], d_values),
            "w_k": _weight_gradient(h["x"], d_keys),
            "w_q": _weight_gradient(h["x"], d_queries),
            "embedding": lookup_gradient(tokens, d_x, VOCABULARY),
        }
        if self.encoding == "learned":
            gradients["positions"] = lookup_gradient(h["positions"], d_x, MAX_LENGTH)
        elif self.encoding == "t5":
            gradients["biases"] = np.bincount(
                h["buckets"].ravel(), weights=d_scores.sum(axis=0).ravel(), minlength=32
            )
        return loss, gradients

    def _forward(self, tokens: NDArray[np.int64], start: int) -> dict[str, NDArray]:
        """Return every intermediate result by name; the backward pass needs most of them."""
        p = self.parameters
        positions = start + np.arange(tokens.shape[-1])
        relative = relative_positions(positions, positions)
        buckets = None

        x = lookup(p["embedding"], tokens)
        if self.encoding == "learned":
            x = x + lookup(p["positions"], positions)
        elif self.encoding == "sinusoidal":
            x = x + sinusoidal_encoding(positions, D_MODEL)
        queries, keys, values = x @ p["w_q"], x @ p["w_k"], x @ p["w_v"]
        if self.encoding == "rope":
            queries, keys = self._turn(queries, positions), self._turn(keys, positions)
        scores = queries @ _transposed(keys) * (self.sharpness / math.sqrt(D_MODEL))
        if self.encoding == "alibi":
            # One head: the steepest of eight.
            scores = scores + alibi_slopes(8)[0] * relative
        elif self.encoding == "t5":
            # The last bucket begins where training ends, so that none is left untrained.
            buckets = t5_bucket(
                relative, bidirectional=False, num_buckets=32, max_distance=TRAINED_LENGTH
            )
            scores = scores + p["biases"][buckets]
        weights = softmax(np.where(relative > 0, -np.inf, scores))
        mixed = weights @ values
        output = mixed @ p["w_o"]
        logits = output @ p["readout"]
        return {
            "positions": positions,
            "buckets": buckets,
            "x": x,
            "queries": queries,
            "keys": keys,
            "values": values,
            "weights": weights,
            "mixed": mixed,
            "output": output,
            "logits": logits,
        }

    def _turn(self, x: NDArray[np.float64], positions: NDArray[np.int64]) -> NDArray[np.float64]:
        return rope(x, positions, frequencies=self.frequencies)


class Adam:
    """Adam: steps along the gradient's mean, each number scaled by its own root mean square.

    Parameters
    ----------
    parameters : dict of str to ndarray
        What is trained; changed in place by :meth:`step`.
    mean_decay, square_decay : float, default 0.9 and 0.98
        How much of the running mean, and of the running mean square, survives a step.

    References
    ----------
    Kingma and Ba (2015), "Adam: A Method for Stochastic Optimization", algorithm 1; Vaswani et
    al. (2017), section 5.3, for the second decay.

    Examples
    --------
    >>> parameters = {"x": np.array([1.0])}
    >>> Adam(parameters).step({"x": np.array([20.0])}, 0.1)
    >>> parameters["x"].round(6).tolist()
    [0.9]
    """

    def __init__(
        self,
        parameters: dict[str, NDArray[np.float64]],
        mean_decay: float = 0.9,
        square_decay: float = 0.98,
    ) -> None:
        self.parameters = parameters
        self.decays = mean_decay, square_decay
        self.means = {name: np.zeros_like(value) for name, value in parameters.items()}
        self.squares = {name: np.zeros_like(value) for name, value in parameters.items()}
        self.steps = 0

    def step(self, gradients: Mapping[str, NDArray[np.float64]], rate: float) -> None:
        """Change the parameters once.

        Parameters
        ----------
        gradients : mapping of str to ndarray
            Gradient of each parameter.
        rate : float
            Length of the step, in units of the parameters.
        """
        self.steps += 1
        mean_decay, square_decay = self.decays
        for name, gradient in gradients.items():
            mean, square = self.means[name], self.squares[name]
            mean += (1 - mean_decay) * (gradient - mean)
            square += (1 - square_decay) * (gradient**2 - square)
            # Both running means began at zero; the divisors undo that.
            unbiased = mean / (1 - mean_decay**self.steps)
            spread = np.sqrt(square / (1 - square_decay**self.steps))
            self.parameters[name] -= rate * unbiased / (spread + 1e-9)


def train(
    encoding: str,
    task: str,
    *,
    seed: int = 0,
    steps: int = 300,
    batch: int = 16,
    report: Callable[[int], None] | None = None,
) -> tuple[AttentionModel, NDArray[np.float64]]:
    """Train one model on sequences of 32 tokens.

    Parameters
    ----------
    encoding : {'learned', 'sinusoidal', 'rope', 't5', 'alibi', 'none'}
        How the model is told positions.
    task : {'copy-1', 'copy-3', 'index-mod-4'}
        What it learns, as in :func:`draw_task`.
    seed : int, default 0
        Seed of the initial parameters and of the sequences.
    steps, batch : int, default 300 and 16
        Number of steps and of sequences in each: the short form. The long form takes 800 and 32.
    report : callable, optional
        Called with the number of steps done, after each.

    Returns
    -------
    model : AttentionModel
        The trained model.
    losses : (steps,) ndarray
        Loss at each step, in nats.

    Raises
    ------
    ValueError
        If the encoding or the task is unknown, or ``steps`` or ``batch`` is not positive.

    Examples
    --------
    >>> model, losses = train("rope", "copy-1", steps=5)
    >>> len(losses)
    5
    """
    steps = validate.integer(steps, "steps", minimum=1)
    seed = validate.integer(seed, "seed", minimum=0)
    initial, sequences = (np.random.default_rng(source) for source in ([seed, 0], [seed, 1]))
    model = AttentionModel(encoding, initial)
    adam = Adam(model.parameters)
    losses = np.empty(steps)
    for step in range(steps):
        losses[step], gradients = model.loss_and_gradients(
            *draw_task(task, batch, TRAINED_LENGTH, sequences)
        )
        # Up in 50 steps, then down along half a cosine to a twentieth.
        falling = 0.05 + 0.95 * (1 + math.cos(math.pi * step / steps)) / 2
        adam.step(gradients, 1e-2 * min(1, (step + 1) / 50) * falling)
        if report:
            report(step + 1)
    return model, losses


def accuracy(
    model: AttentionModel,
    task: str,
    length: int,
    *,
    start: int = 0,
    first: int = 0,
    sequences: int = 64,
    seed: int = 1000,
) -> float:
    """Return how often a model's likeliest answer is right.

    Parameters
    ----------
    model : AttentionModel
        A trained model.
    task : {'copy-1', 'copy-3', 'index-mod-4'}
        What it was trained for.
    length : int
        Tokens of each sequence; a learned table ends at position 255.
    start : int, default 0
        Position of the first token.
    first : int, default 0
        First row that counts.
    sequences : int, default 64
        Number of sequences.
    seed : int, default 1000
        Seed of the sequences; training draws others.

    Returns
    -------
    float
        Share of right answers; guessing reaches 1/16 in copying and 1/4 in the remainder.

    Raises
    ------
    ValueError
        If the task is unknown, or no row counts.
    IndexError
        If a learned table has no row for a position.

    Examples
    --------
    >>> untrained = AttentionModel("none", np.random.default_rng(0))
    >>> accuracy(untrained, "copy-1", 32) < 0.2
    True
    """
    tokens, targets, scored = draw_task(
        task, sequences, length, np.random.default_rng(seed), start=start
    )
    scored = scored & (np.arange(length) >= first)
    validate.integer(int(scored.sum()), "number of rows that count", minimum=1)
    blocks = -(-len(tokens) // 8)
    # A few at a time: scores of many long sequences would not stay in cache.
    answers = [
        model.logits(few, start=start).argmax(axis=-1) for few in np.array_split(tokens, blocks)
    ]
    return float((np.concatenate(answers) == targets)[:, scored].mean())


def extend(model: AttentionModel, method: str, factor: float) -> AttentionModel:
    """Return a copy of a RoPE model, changed for longer sequences without any training.

    Parameters
    ----------
    model : AttentionModel
        A trained model whose encoding is 'rope'.
    method : {'none', 'pi', 'ntk', 'by-parts', 'log-n'}
        Leave it; divide all frequencies by the factor (position interpolation); change the base
        (NTK-aware); divide slow pairs alone (NTK-by-parts); or sharpen all scores by
        ``log(length) / log(32)``.
    factor : float
        How many times as long as in training the sequences are, at least 1.

    Returns
    -------
    AttentionModel
        The changed copy; parameters are shared with ``model``.

    Raises
    ------
    ValueError
        If the model is no RoPE model, the method is unknown or the factor is below 1.

    References
    ----------
    Chen et al. (2023), "Extending Context Window of Large Language Models via Positional
    Interpolation", section 2.3; Peng et al. (2024), "YaRN", sections 3.1 and 3.2.

    Examples
    --------
    >>> model = AttentionModel("rope", np.random.default_rng(0))
    >>> (extend(model, "pi", 4).frequencies / model.frequencies)[:3].round(6).tolist()
    [0.25, 0.25, 0.25]
    """
    validate.choice(model.encoding, ("rope",), "encoding of the model")
    method = validate.choice(method, EXTENSIONS, "method")
    factor = validate.at_least(factor, 1, "factor")
    extended = copy.copy(model)
    if method == "log-n":
        extended.sharpness = math.log(factor * TRAINED_LENGTH) / math.log(TRAINED_LENGTH)
    elif method != "none":
        # The ramp of YaRN's section 3.2 is Llama 3's. At 32 tokens no pair turns 32 times, so its
        # ends are here a quarter of a turn and two turns within the trained length.
        ramp = {
            "original_length": TRAINED_LENGTH,
            "low_frequency_factor": 0.25,
            "high_frequency_factor": 2.0,
        }
        name, options = {
            "pi": ("linear", {}),
            "ntk": ("ntk", {}),
            "by-parts": ("llama3", ramp),
        }[method]
        extended.frequencies = scaled_frequencies(D_MODEL, name, factor=factor, **options)
    return extended


def run(
    *,
    tasks: Sequence[str] = TASKS,
    encodings: Sequence[str] = ENCODINGS,
    seeds: Sequence[int] = (0,),
    steps: int = 300,
    batch: int = 16,
    progress: TextIO | None = None,
) -> dict[str, Any]:
    """Train every encoding on every task from every seed, and measure them.

    Parameters
    ----------
    tasks : sequence of str, default all
        Tasks, as in :func:`draw_task`.
    encodings : sequence of str, default all
        Encodings, as in :class:`AttentionModel`.
    seeds : sequence of int, default (0,)
        Seeds, as in :func:`train`.
    steps, batch : int, default 300 and 16
        The short form of :func:`train`, about a second for each model.
    progress : text file, optional
        Where to say how far the training is, such as ``sys.stderr``.

    Returns
    -------
    dict
        What JSON can hold. ``["length"][task][encoding][measure]`` lists the accuracy of each
        seed, for the keys of ``MEASURES``; ``["loss"][task][encoding]`` the mean loss of the
        last 20 steps; and ``["extension"][task][method][factor]`` the accuracy of the RoPE
        models on the copying tasks at ``factor * 32`` tokens, factor being '1', '2', '4' or '8'.

    Raises
    ------
    ValueError
        If a task or an encoding is unknown, or ``steps`` or ``batch`` is not positive.

    Examples
    --------
    >>> results = run(tasks=["copy-1"], encodings=["none"], steps=5)
    >>> list(results["length"]["copy-1"]["none"])
    ['16', '32', '48', '64', '128', 'rows 64-127', '32 from 64']
    """
    results: dict[str, Any] = {
        "settings": {"steps": steps, "batch": batch, "seeds": list(seeds)},
        "loss": {},
        "length": {},
        "extension": {},
    }
    for task in tasks:
        validate.choice(task, TASKS, "task")
    for encoding in encodings:
        validate.choice(encoding, ENCODINGS, "encoding")
    steps = validate.integer(steps, "steps", minimum=1)
    models = len(tasks) * len(encodings) * len(seeds)
    line = _Progress(models * steps, progress)
    for task in tasks:
        for encoding in encodings:
            for seed in seeds:
                line.start(f"{task}, {encoding}, seed {seed}")
                model, losses = train(
                    encoding, task, seed=seed, steps=steps, batch=batch, report=line.step
                )
                _append(results["loss"], losses[-20:].mean(), task, encoding)
                for measure, options in MEASURES.items():
                    share = accuracy(model, task, **options)
                    _append(results["length"], share, task, encoding, measure)
                if encoding != "rope" or not task.startswith("copy"):
                    continue
                for method in EXTENSIONS:
                    for factor in FACTORS:
                        longer = extend(model, method, factor)
                        share = accuracy(longer, task, factor * TRAINED_LENGTH)
                        _append(results["extension"], share, task, method, str(factor))
    line.end()
    return results


def table(results: Mapping[str, Any]) -> str:
    """Lay out the results of :func:`run` as text: means over seeds.

    Parameters
    ----------
    results : dict
        What :func:`run` returned.

    Returns
    -------
    str
        For each task a table of encodings against measures, and one of extensions against
        factors.

    Examples
    --------
    >>> results = run(tasks=["copy-1"], encodings=["none"], steps=5)
    >>> print(table(results).splitlines()[1])
    encoding       loss      16      32      48      64     128  rows 64-127  32 from 64
    """
    parts = []
    for task, encodings in results["length"].items():
        rows = [["encoding", "loss", *MEASURES]]
        for encoding, measured in encodings.items():
            columns = [results["loss"][task][encoding], *measured.values()]
            rows.append([encoding, *(f"{np.mean(column):.3f}" for column in columns)])
        parts.append(_aligned(f"{task}: accuracy of models trained on 32 tokens", rows))
    for task, methods in results["extension"].items():
        rows = [["method", *(f"{factor}x" for factor in FACTORS)]]
        for method, factors in methods.items():
            rows.append([method, *(f"{np.mean(column):.3f}" for column in factors.values())])
        parts.append(_aligned(f"{task}: RoPE, extended without training", rows))
    return "\n\n".join(parts)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the long form: print the tables, write the numbers to a JSON file.

    Parameters
    ----------
    arguments : sequence of str, optional
        Words of the command line; those of the process where it is left out.
    """
    parser = argparse.ArgumentParser(
        prog="python -m posenc.lab",
        description="Run the long form: print the tables, write the numbers to a JSON file.",
    )
    parser.add_argument("--seeds", type=_count, default=3, help="models of each kind (default 3)")
    parser.add_argument("--steps", type=_count, default=800, help="training steps (default 800)")
    parser.add_argument("--batch", type=_count, default=32, help="sequences a step (default 32)")
    parser.add_argument("--out", type=Path, default=Path("_build/lab.json"), help="JSON file")
    chosen = parser.parse_args(arguments)
    # First, because a folder that can't be made should not cost the minutes of training.
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    try:
        results = run(
            seeds=range(chosen.seeds), steps=chosen.steps, batch=chosen.batch, progress=sys.stderr
        )
    except KeyboardInterrupt:
        raise SystemExit("\nStopped before the end; nothing was written.") from None
    chosen.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(table(results))
    print(f"\n{time.perf_counter() - began:.0f} s; every seed's numbers are in {chosen.out}")


class _Progress:
    """How far the training is: a bar that is drawn over, or in a file one line a model."""

    def __init__(self, total: int, stream: TextIO | None) -> None:
        self.total, self.stream = total, stream
        self.done = 0
        self.terminal = stream is not None and stream.isatty()
        self.began = self.shown = time.monotonic()

    def start(self, name: str) -> None:
        self.name = name
        self._show("" if self.terminal else "\n")

    def step(self, _: int) -> None:
        self.done += 1
        if self.terminal and time.monotonic() - self.shown > 0.2:
            self._show("")

    def end(self) -> None:
        if self.terminal:
            self.stream.write("\r\x1b[K")

    def _show(self, end: str) -> None:
        if self.stream is None:
            return
        self.shown = time.monotonic()
        share = self.done / self.total
        left = f", {(self.shown - self.began) * (1 / share - 1):.0f} s left" if share else ""
        bar = f"\r\x1b[K[{'#' * round(20 * share):<20}]" if self.terminal else ""
        self.stream.write(f"{bar}{share:4.0%}{left}: {self.name}{end}")
        self.stream.flush()


def _count(word: str) -> int:
    try:
        return validate.integer(int(word), "the number", minimum=1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number above 0, got {word!r}") from None


def _transposed(array: NDArray) -> NDArray:
    return np.swapaxes(array, -1, -2)


def _weight_gradient(entered: NDArray, upstream: NDArray) -> NDArray[np.float64]:
    """Return the gradient of ``w`` in ``entered @ w``, summed over all rows of all sequences."""
    return entered.reshape(-1, entered.shape[-1]).T @ upstream.reshape(-1, upstream.shape[-1])


def _append(nest: dict, value: float, *keys: str) -> None:
    for key in keys[:-1]:
        nest = nest.setdefault(key, {})
    nest.setdefault(keys[-1], []).append(float(value))


def _aligned(title: str, rows: Sequence[Sequence[str]]) -> str:
    widths = [max(6, *map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if index else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join([title, *lines])


if __name__ == "__main__":
    main()
