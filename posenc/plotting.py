"""The book's figures, in one style; the only module that imports matplotlib."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posenc import _validate as validate
from posenc.bias import alibi_bias, alibi_slopes, t5_bucket
from posenc.precision import distinct_positions
from posenc.rotary import rope
from posenc.rotation import position_kernel
from posenc.sinusoidal import inverse_frequencies, sinusoidal_encoding, wavelengths

try:
    from matplotlib import pyplot, style
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from matplotlib.patches import Arc, Circle, FancyArrowPatch, Rectangle
    from matplotlib.ticker import MaxNLocator
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "posenc.plotting draws with matplotlib: run `python -m pip install matplotlib`"
    ) from error

# Okabe and Ito's palette, which people with any colour vision can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
LINE_STYLES = ("-", "--", "-.", ":")
DIVERGING, SEQUENTIAL = "RdBu_r", "Blues"
# What a mask hides; no colour of a map is grey.
HIDDEN = "#d9d9d9"

# Inches; a phone shows a figure 345 pixels wide, so that 13 points are 9.7 pixels there.
WIDTH = 6.4
STYLE = {
    "axes.edgecolor": "#444444",
    "axes.facecolor": "white",
    "axes.labelsize": 13,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.dpi": 200,
    "figure.facecolor": "white",  # opaque, so that black letters stay readable on a dark page
    "font.size": 13,
    "grid.color": "#dddddd",
    "image.interpolation": "nearest",
    "legend.fontsize": 12,
    "legend.frameon": False,
    "lines.linewidth": 2,
    "savefig.facecolor": "white",
    "xtick.labelsize": 12,
    "ytick.labelsize": 12,
}


def encoding_heatmap(table: ArrayLike, *, first_position: int = 0) -> Figure:
    """Draw a position table: positions downwards, dimensions across.

    Parameters
    ----------
    table : (length, d_model) array_like
        One row for each position.
    first_position : int, default 0
        Position of the first row.

    Returns
    -------
    matplotlib.figure.Figure
        A heat map with a colour bar; white is zero.

    Raises
    ------
    ValueError
        If ``table`` does not have two axes.

    Examples
    --------
    >>> from posenc import sinusoidal_table
    >>> encoding_heatmap(sinusoidal_table(40, 32)).axes[0].get_ylabel()
    'position'
    """
    table = validate.matrix(table, "table")
    first = validate.integer(first_position, "first_position", minimum=-(2**53))
    length, d_model = table.shape
    with _canvas(3.6) as (figure, axes):
        _heat_map(
            axes,
            table,
            label="value",
            aspect="auto",
            extent=(-0.5, d_model - 0.5, first + length - 0.5, first - 0.5),
        )
        _label(axes, "dimension", "position")
    return figure


def encoding_waves(
    d_model: int, pairs: Sequence[int], length: int, *, base: float = 10_000.0
) -> Figure:
    """Draw the sine of chosen pairs against position, one row for each.

    Parameters
    ----------
    d_model : int
        Number of dimensions, even and positive.
    pairs : sequence of int
        Pairs to show, from 0 to ``d_model / 2 - 1``.
    length : int
        Number of positions.
    base : float, default 10_000.0
        Base of the frequencies.

    Returns
    -------
    matplotlib.figure.Figure
        The waves, with a dot at each whole position; each row names its pair and wavelength.

    Raises
    ------
    ValueError
        If ``d_model`` is odd, a pair does not exist, or there are fewer than two positions.

    Examples
    --------
    >>> [len(axes.lines) for axes in encoding_waves(64, [0, 8], 50).axes]
    [2, 2]
    """
    waves = wavelengths(d_model, base=base)
    pairs = validate.pair_indices(pairs, len(waves))
    length = validate.integer(length, "length", minimum=2)
    smooth = np.linspace(0, length - 1, 20 * (length - 1) + 1)
    whole = np.arange(length)
    height = 1.1 * len(pairs) + 0.7
    with _canvas(height, nrows=len(pairs), sharex=True, squeeze=False) as (figure, grid):
        for axes, pair, colour in zip(grid[:, 0], pairs, _colours(len(pairs)), strict=True):
            for positions, drawn in ((smooth, {"lw": 1.5}), (whole, {"ls": "", "marker": "."})):
                encoding = sinusoidal_encoding(positions, d_model, base=base)
                axes.plot(positions, encoding[:, 2 * pair], color=colour, **drawn)
            axes.set(ylim=(-1.15, 1.15), yticks=(-1, 0, 1))
            axes.set_ylabel("sine")
            axes.annotate(
                f"pair {pair}\nwavelength\n{_short(waves[pair])}\npositions",
                (1.02, 0.5),
                xycoords="axes fraction",
                va="center",
                fontsize=11,
            )
        _label(axes, "position", "sine")
    return figure


def wavelength_spectrum(d_models: Sequence[int], *, base: float = 10_000.0) -> Figure:
    """Draw the wavelength of every pair against the pair's place among the pairs.

    Parameters
    ----------
    d_models : sequence of int
        Sizes to compare, each even and positive.
    base : float, default 10_000.0
        Base of the frequencies.

    Returns
    -------
    matplotlib.figure.Figure
        One curve for each size on a logarithmic axis with a dot at its last pair, and the line
        ``2 pi base`` that none reaches.

    Raises
    ------
    ValueError
        If a size is odd, or there is none.

    Examples
    --------
    >>> [line.get_label() for line in wavelength_spectrum([16, 512]).axes[0].lines[:2]]
    ['d = 16', 'd = 512']
    """
    sizes = [validate.even_size(d_model, "every d_model") for d_model in d_models]
    validate.non_empty(np.array(sizes), "d_models")
    base = validate.positive(base, "base")
    with _canvas(3.8) as (figure, axes):
        for d_model, drawn in zip(sizes, _series(len(sizes)), strict=True):
            half = d_model // 2
            # All sizes share one line and differ in where it ends, so only the end is a dot.
            axes.semilogy(
                np.arange(half) / half,
                wavelengths(d_model, base=base),
                label=f"d = {d_model}",
                marker="o",
                markevery=[half - 1],
                markersize=9,
                **drawn,
            )
        axes.axhline(2 * np.pi * base, color="#444444", ls=":", lw=1.5)
        axes.annotate("2π · base", (0.0, 2 * np.pi * base), va="bottom", fontsize=12)
        axes.set_xlim(-0.03, 1.03)
        axes.grid(axis="y")
        axes.legend(loc="lower right")
        _label(axes, "pair / number of pairs,  i / (d/2)", "wavelength (positions)", whole=False)
    return figure


def attention_matrices(
    weights: Sequence[ArrayLike], tokens: Sequence[Any], titles: Sequence[str]
) -> Figure:
    """Draw attention weights side by side.

    Parameters
    ----------
    weights : sequence of (n, n) array_like
        The matrices; row i holds how much token i looks at each token.
    tokens : sequence of str, or sequence of sequences of str
        The n tokens, or for each matrix its own.
    titles : sequence of str
        What stands above each matrix.

    Returns
    -------
    matplotlib.figure.Figure
        One heat map for each matrix, on one scale; with at most six tokens, the weights are
        written into the cells.

    Raises
    ------
    ValueError
        If a matrix is not square, or numbers of matrices, titles and tokens differ.

    Examples
    --------
    >>> figure = attention_matrices([np.eye(2)], ["cat", "runs"], ["looks at itself"])
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['1.00', '0.00', '0.00', '1.00', 'looks at itself']
    """
    matrices = [validate.matrix(matrix, "each of weights", square=True) for matrix in weights]
    validate.integer(len(matrices), "number of matrices", minimum=1)
    validate.same_axis(len(titles), len(matrices), "number of titles for the given weights")
    if all(isinstance(token, str) for token in tokens):
        tokens = [tokens] * len(matrices)
    validate.same_axis(len(tokens), len(matrices), "lists of tokens for the given weights")
    for matrix, names in zip(matrices, tokens, strict=True):
        validate.same_axis(len(names), len(matrix), "number of tokens of an attention matrix")

    count, shown = len(matrices), None
    longest = max(len(name) for names in tokens for name in names)
    height = 0.9 + 0.09 * longest + min(3.2, 0.78 * WIDTH / count)
    with _canvas(height, ncols=count, squeeze=False) as (figure, grid):
        for axes, matrix, names, title in zip(grid[0], matrices, tokens, titles, strict=True):
            image = axes.imshow(matrix, cmap=SEQUENTIAL, vmin=0, vmax=max(1.0, matrix.max()))
            if len(matrix) <= 6:
                size = 13 if len(matrix) * count <= 7 else 11 if len(matrix) * count <= 10 else 9
                _write_values(axes, image, matrix, size)
            axes.set_xticks(range(len(names)), names)
            if longest > 2:
                axes.tick_params("x", labelrotation=45)
                pyplot.setp(axes.get_xticklabels(), ha="right", rotation_mode="anchor")
            # Repeating the names of the first matrix would only take room from the others.
            axes.set_yticks(range(len(names)), [""] * len(names) if names == shown else names)
            shown = names
            axes.annotate(
                title, (0.5, 1.03), xycoords="axes fraction", ha="center", va="bottom", fontsize=13
            )
            axes.set_xlabel("is looked at")
        grid[0, 0].set_ylabel("looks")
    return figure


def position_kernel_curve(
    d_models: Sequence[int], max_offset: int, *, base: float = 10_000.0
) -> Figure:
    """Draw the dot product of two encodings against their offset, as a share of its peak.

    Parameters
    ----------
    d_models : sequence of int
        Sizes to compare, each even and positive.
    max_offset : int
        Largest offset.
    base : float, default 10_000.0
        Base of the frequencies.

    Returns
    -------
    matplotlib.figure.Figure
        One curve for each size at the offsets ``0 .. max_offset``.

    Raises
    ------
    ValueError
        If a size is odd, there is none, or ``max_offset`` is below 1.

    Examples
    --------
    >>> float(position_kernel_curve([64], 10).axes[0].lines[0].get_ydata()[0])
    1.0
    """
    sizes = [validate.even_size(d_model, "every d_model") for d_model in d_models]
    validate.non_empty(np.array(sizes), "d_models")
    offsets = np.arange(validate.integer(max_offset, "max_offset", minimum=1) + 1)
    curves = {
        f"d = {d_model}": position_kernel(offsets, d_model, base=base) / (d_model / 2)
        for d_model in sizes
    }
    return _curves(offsets, curves, "offset (positions)", "dot product / (d/2)")


def similarity_matrix(matrix: ArrayLike, *, label: str = "dot product") -> Figure:
    """Draw how alike every two positions are.

    Parameters
    ----------
    matrix : (n, n) array_like
        A number for each pair of positions.
    label : str, default 'dot product'
        What the numbers are, for the colour bar.

    Returns
    -------
    matplotlib.figure.Figure
        A square heat map; white is zero.

    Raises
    ------
    ValueError
        If ``matrix`` is not square.

    Examples
    --------
    >>> from posenc import sinusoidal_table
    >>> table = sinusoidal_table(32, 64)
    >>> similarity_matrix(table @ table.T).axes[1].get_ylabel()
    'dot product'
    """
    matrix = validate.matrix(matrix, "matrix", square=True)
    with _canvas(4.8) as (figure, axes):
        _heat_map(axes, matrix, label=label)
        _label(axes, "position (column)", "position (row)")
    return figure


def matrix_blocks(matrix: ArrayLike) -> Figure:
    """Draw a (d, d) matrix with the 2 x 2 blocks on its diagonal outlined.

    Parameters
    ----------
    matrix : (d, d) array_like
        A matrix such as :func:`posenc.shift_matrix`; d is even.

    Returns
    -------
    matplotlib.figure.Figure
        A heat map; white is zero, and up to d = 8 the numbers are written into the cells.

    Raises
    ------
    ValueError
        If ``matrix`` is not square or its size is odd.

    Examples
    --------
    >>> from posenc import shift_matrix
    >>> len(matrix_blocks(shift_matrix(3, 8)).axes[0].patches)
    4
    """
    matrix = validate.matrix(matrix, "matrix", square=True)
    size = validate.even_size(len(matrix), "the size of matrix")
    with _canvas(5.0) as (figure, axes):
        image = _heat_map(axes, matrix, label="value")
        for corner in np.arange(0, size, 2) - 0.5:
            outline = Rectangle((corner, corner), 2, 2, fill=False, lw=2, clip_on=False, zorder=3)
            axes.add_patch(outline)
        if size <= 8:
            _write_values(axes, image, matrix, 11)
        _label(axes, "dimension that goes in", "dimension that comes out")
    return figure


def turning_pairs(
    position: float, offset: float, d_model: int, pairs: Sequence[int], *, base: float = 10_000.0
) -> Figure:
    """Draw pairs of an encoding as hands of clocks, before and after a shift.

    Parameters
    ----------
    position : float
        Where the hands start.
    offset : float
        How many positions they move.
    d_model : int
        Number of dimensions, even and positive.
    pairs : sequence of int
        Pairs to show, from 0 to ``d_model / 2 - 1``.
    base : float, default 10_000.0
        Base of the frequencies.

    Returns
    -------
    matplotlib.figure.Figure
        One unit circle for each pair: cosine across, sine upwards.

    Raises
    ------
    ValueError
        If ``d_model`` is odd or a pair does not exist.

    Examples
    --------
    >>> [axes.get_xlabel() for axes in turning_pairs(5, 2, 8, [0, 1]).axes]
    ['cosine of pair 0', 'cosine of pair 1']
    """
    start, offset = validate.scalar(position, "position"), validate.scalar(offset, "offset")
    frequencies = inverse_frequencies(d_model, base=base)
    pairs = validate.pair_indices(pairs, len(frequencies))
    ends = sinusoidal_encoding([start, start + offset], d_model, base=base)
    names = (f"position {start:g}", f"position {start + offset:g}")
    height = 1.9 + min(2.8, WIDTH / len(pairs) - 0.5)
    with _canvas(height, ncols=len(pairs), squeeze=False) as (figure, grid):
        for axes, pair in zip(grid[0], pairs, strict=True):
            turn = offset * frequencies[pair]
            axes.add_patch(Circle((0, 0), 1, fill=False, color="#999999"))
            for (sine, cosine), name, drawn in zip(
                ends[:, 2 * pair : 2 * pair + 2], names, _series(2), strict=True
            ):
                axes.plot([0, cosine], [0, sine], label=name, marker="o", markevery=[1], **drawn)
            _arc(axes, start * frequencies[pair], turn)
            axes.annotate(
                f"turns by\n{turn:.3g} rad",
                (0.5, 1.02),
                xycoords="axes fraction",
                ha="center",
                va="bottom",
                fontsize=12,
            )
            axes.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), aspect="equal")
            axes.set(xticks=(-1, 0, 1), yticks=(-1, 0, 1))
            axes.set_xlabel(f"cosine of pair {pair}")
        grid[0, 0].set_ylabel("sine")
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def table_gradient(gradient: ArrayLike) -> Figure:
    """Draw which rows of a learned table received a gradient.

    Parameters
    ----------
    gradient : (max_len, d_model) array_like
        Gradient of a loss with respect to the table.

    Returns
    -------
    matplotlib.figure.Figure
        One bar for each row: the norm of its gradient.

    Raises
    ------
    ValueError
        If ``gradient`` does not have two axes.

    Examples
    --------
    >>> bars = table_gradient([[3.0, 4.0], [0.0, 0.0]]).axes[0].patches
    >>> [float(bar.get_height()) for bar in bars]
    [5.0, 0.0]
    """
    gradient = validate.matrix(gradient, "gradient")
    with _canvas(3.2) as (figure, axes):
        axes.bar(range(len(gradient)), np.linalg.norm(gradient, axis=1), color=COLOURS[0])
        axes.set_xlim(-0.8, len(gradient) - 0.2)
        _label(axes, "row of the table (position)", "norm of the gradient")
    return figure


def rotated_pair(x: ArrayLike, positions: ArrayLike, *, base: float = 10_000.0) -> Figure:
    """Draw the first pairs of a vector, turned by rotary embedding at several positions.

    Parameters
    ----------
    x : (d,) array_like
        A query or key; d is even.
    positions : (n,) array_like
        The positions, of which each gets an arrow in every panel.
    base : float, default 10_000.0
        Base of the frequencies.

    Returns
    -------
    matplotlib.figure.Figure
        One panel for each of the first three pairs; the key under them names the position of
        each arrow.

    Raises
    ------
    ValueError
        If ``x`` is not a vector of even length, or there is no position.

    Examples
    --------
    >>> figure = rotated_pair([1.0, 0.5, 1.0, 0.5], [0, 1, 2])
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['0', '1', '2']
    """
    x = validate.vector(x, "x")
    positions = validate.vector(positions, "positions")
    turned = rope(np.tile(x, (len(positions), 1)), positions, base=base)
    count = min(3, x.size // 2)
    shades = pyplot.get_cmap("viridis")(np.linspace(0.0, 0.85, len(positions)))
    height = 1.5 + min(2.8, WIDTH / count - 0.7)
    with _canvas(height, ncols=count, squeeze=False) as (figure, grid):
        for pair, axes in enumerate(grid[0]):
            reach = float(np.linalg.norm(x[2 * pair : 2 * pair + 2])) or 1.0
            axes.add_patch(Circle((0, 0), reach, fill=False, color="#999999"))
            for (across, up), position, shade in zip(
                turned[:, 2 * pair : 2 * pair + 2], positions, shades, strict=True
            ):
                axes.plot(
                    [0, across],
                    [0, up],
                    color=shade,
                    label=f"{position:g}",
                    marker="o",
                    markevery=[1],
                )
            axes.set(xlim=(-1.15 * reach, 1.15 * reach), ylim=(-1.15 * reach, 1.15 * reach))
            axes.set(xticks=(-reach, 0, reach), yticks=(-reach, 0, reach), aspect="equal")
            axes.xaxis.set_major_formatter("{x:.1f}")
            axes.yaxis.set_major_formatter("{x:.1f}")
            axes.set_xlabel(f"dimension {2 * pair}")
            axes.set_ylabel(f"dimension {2 * pair + 1}", labelpad=0)
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(
            handles,
            labels,
            title="position",
            loc="outside lower center",
            ncols=min(len(labels), 8),
            handlelength=1.2,
            columnspacing=1.2,
        )
    return figure


def layout_pairs(d: int) -> Figure:
    """Draw which dimensions rotary embedding pairs in its two layouts.

    Parameters
    ----------
    d : int
        Number of dimensions, even and positive.

    Returns
    -------
    matplotlib.figure.Figure
        One row of dimensions for each layout, with an arc between the two of a pair.

    Raises
    ------
    ValueError
        If ``d`` is odd.

    Examples
    --------
    >>> len(layout_pairs(8).axes[0].patches)
    4
    """
    d = validate.even_size(d, "d")
    dimensions = np.arange(d)
    layouts = {
        "interleaved": dimensions.reshape(-1, 2),
        "half": dimensions.reshape(2, -1).T,
    }
    with _canvas(3.4, nrows=2, sharex=True) as (figure, grid):
        for axes, (layout, pairs) in zip(grid, layouts.items(), strict=True):
            for (first, second), colour in zip(pairs, _colours(len(pairs)), strict=True):
                width = second - first
                axes.add_patch(
                    Arc(((first + second) / 2, 0), width, 1.6, theta2=180, color=colour, lw=2)
                )
                axes.plot([first, second], [0, 0], "o", color=colour, ms=9, clip_on=False)
            axes.set(xlim=(-0.6, d - 0.4), ylim=(-0.05, 0.95), yticks=[])
            axes.spines["left"].set_visible(False)
            axes.set_ylabel(layout)
        _label(axes, "dimension", layout)
        if d <= 16:
            axes.set_xticks(dimensions)
    return figure


def score_curves(
    offsets: ArrayLike, curves: Mapping[str, ArrayLike], *, ylabel: str = "score"
) -> Figure:
    """Draw scores against the offset of two positions.

    Parameters
    ----------
    offsets : (n,) array_like
        The offsets.
    curves : mapping of str to (n,) array_like
        Name of each curve, and its value at each offset.
    ylabel : str, default 'score'
        What the values are.

    Returns
    -------
    matplotlib.figure.Figure
        One line for each curve, told apart by colour and stroke.

    Raises
    ------
    ValueError
        If a curve has another length than ``offsets``.

    Examples
    --------
    >>> figure = score_curves([0, 1, 2], {"RoPE": [1.0, 0.5, 0.2]})
    >>> figure.axes[0].get_xlabel()
    'offset (positions)'
    """
    offsets = validate.vector(offsets, "offsets")
    validate.integer(len(curves), "number of curves", minimum=1)
    named = {}
    for name, values in curves.items():
        named[name] = validate.real_array(values, f"curve {name!r}")
        validate.same_shape(named[name].shape, offsets.shape, f"curve {name!r}")
    return _curves(offsets, named, "offset (positions)", ylabel)


def float32_error(d_model: int, positions: ArrayLike, *, base: float = 10_000.0) -> Figure:
    """Draw how wrong a float32 encoding is when its angles are formed in float32.

    Parameters
    ----------
    d_model : int
        Number of dimensions, even and positive.
    positions : (n,) array_like
        Positions, all above zero.
    base : float, default 10_000.0
        Base of the frequencies.

    Returns
    -------
    matplotlib.figure.Figure
        The largest error over all dimensions at each position, on logarithmic axes: once with
        float32 angles, once with float64 angles whose sines are cast to float32. The truth is
        the float64 encoding.

    Raises
    ------
    ValueError
        If a position is not above zero, where a logarithmic axis begins.

    Examples
    --------
    >>> figure = float32_error(64, [10, 1000, 100_000])
    >>> [line.get_label() for line in figure.axes[0].lines]
    ['angles in float32', 'angles in float64']
    """
    positions = validate.vector(positions, "positions")
    validate.positive(positions.min(), "every position")
    frequencies = inverse_frequencies(d_model, base=base)
    truth = sinusoidal_encoding(positions, d_model, base=base, layout="half")
    angles = positions.astype(np.float32)[:, np.newaxis] * frequencies.astype(np.float32)
    encodings = {
        "angles in float32": np.concatenate([np.sin(angles), np.cos(angles)], axis=1),
        "angles in float64": truth.astype(np.float32),
    }
    with _canvas(3.8) as (figure, axes):
        for (name, encoding), drawn in zip(encodings.items(), _series(2), strict=True):
            axes.loglog(positions, np.abs(encoding - truth).max(axis=1), label=name, **drawn)
        axes.grid()
        axes.legend()
        _label(axes, "position", "largest error", whole=False)
    return figure


def alibi_maps(n_heads: int, length: int, heads: Sequence[int]) -> Figure:
    """Draw what ALiBi adds to the scores of chosen heads under a causal mask.

    Parameters
    ----------
    n_heads : int
        Number of heads.
    length : int
        Number of positions.
    heads : sequence of int
        Heads to show, from 0 to ``n_heads - 1``.

    Returns
    -------
    matplotlib.figure.Figure
        One map for each head, all on one scale, with its slope above; keys after the query,
        which the mask hides, are grey.

    Raises
    ------
    ValueError
        If a head does not exist, or there are fewer than two positions.

    Examples
    --------
    >>> figure = alibi_maps(8, 16, [0, 7])
    >>> [axes.texts[0].get_text().split()[-1] for axes in figure.axes[:2]]
    ['1/2', '1/256']
    """
    slopes = alibi_slopes(n_heads)
    positions = np.arange(validate.integer(length, "length", minimum=2))
    heads = validate.pair_indices(heads, len(slopes), "heads")
    hidden = positions > positions[:, np.newaxis]
    biases = np.ma.masked_array(
        alibi_bias(n_heads, positions, positions)[heads], np.stack([hidden] * len(heads))
    )
    titles = [f"head {head}\nslope {_fraction(slopes[head])}" for head in heads]
    return _maps(
        list(biases), titles, "key", "query", "added to the score", cmap=f"{SEQUENTIAL}_r", vmax=0
    )


def t5_staircase(
    reach: int, *, bidirectional: bool = True, num_buckets: int = 32, max_distance: int = 128
) -> Figure:
    """Draw the bucket of every relative position, as T5 assigns them.

    Parameters
    ----------
    reach : int
        Largest distance to show.
    bidirectional : bool, default True
        Whether keys after the query have buckets of their own.
    num_buckets, max_distance : int, default 32 and 128
        As in :func:`posenc.t5_bucket`.

    Returns
    -------
    matplotlib.figure.Figure
        A staircase over the relative positions ``-reach .. reach``.

    Raises
    ------
    ValueError
        If ``reach`` is below 1, or there are no such buckets.

    Examples
    --------
    >>> stairs = t5_staircase(200).axes[0].lines[0]
    >>> int(stairs.get_ydata().max())
    31
    """
    reach = validate.integer(reach, "reach", minimum=1)
    relative = np.arange(-reach, reach + 1)
    buckets = t5_bucket(
        relative,
        bidirectional=bidirectional,
        num_buckets=num_buckets,
        max_distance=max_distance,
    )
    with _canvas(3.8) as (figure, axes):
        axes.step(relative, buckets, where="mid", color=COLOURS[0])
        axes.axvline(0, color="#444444", lw=1, ls=":")
        axes.grid(axis="y")
        _label(axes, "relative position (key − query)", "bucket", whole=False)
    return figure


def frequency_ratios(
    frequencies: ArrayLike, scaled: Mapping[str, ArrayLike], *, ylabel: str = "scaled / trained"
) -> Figure:
    """Draw by how much methods of context extension slow down each pair.

    Parameters
    ----------
    frequencies : (n,) array_like
        Frequencies of training, in radians per position, all above zero.
    scaled : mapping of str to (n,) array_like
        Name of each method, and its frequencies.
    ylabel : str, default 'scaled / trained'
        What the ratio is.

    Returns
    -------
    matplotlib.figure.Figure
        One line for each method against the pair, on a logarithmic axis: 1 is left alone.

    Raises
    ------
    ValueError
        If a frequency is not above zero, or a method has another number of them.

    Examples
    --------
    >>> from posenc import inverse_frequencies, scaled_frequencies
    >>> trained = inverse_frequencies(64)
    >>> methods = {name: scaled_frequencies(64, name, factor=4) for name in ("linear", "ntk")}
    >>> [line.get_label() for line in frequency_ratios(trained, methods).axes[0].lines]
    ['linear', 'ntk']
    """
    frequencies = validate.vector(frequencies, "frequencies")
    validate.positive(frequencies.min(), "every frequency")
    validate.integer(len(scaled), "number of methods", minimum=1)
    ratios = {}
    for name, values in scaled.items():
        values = validate.vector(values, f"frequencies of {name!r}")
        validate.same_shape(values.shape, frequencies.shape, f"frequencies of {name!r}")
        validate.positive(values.min(), f"every frequency of {name!r}")
        ratios[name] = values / frequencies
    figure = _curves(np.arange(len(frequencies)), ratios, "pair", ylabel)
    axes = figure.axes[0]
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter(lambda ratio, _: _fraction(ratio))
    return figure


def length_curves(
    lengths: Sequence[int],
    accuracies: Mapping[str, ArrayLike],
    *,
    trained: int | None = None,
    chance: float | None = None,
) -> Figure:
    """Draw the accuracy of models against the length of the sequences that they are tested on.

    Parameters
    ----------
    lengths : sequence of int
        Lengths in tokens, at least 1.
    accuracies : mapping of str to (n,) array_like
        Name of each model, and its accuracy at each length, from 0 to 1.
    trained : int, optional
        Length of training, drawn as an upright line.
    chance : float, optional
        Accuracy of guessing, drawn as a level line.

    Returns
    -------
    matplotlib.figure.Figure
        One line for each model, with a dot at each length, on a logarithmic axis.

    Raises
    ------
    ValueError
        If a model has another number of accuracies than there are lengths, or a length is
        below 1.

    Examples
    --------
    >>> figure = length_curves([32, 64], {"RoPE": [1.0, 0.9]}, trained=32, chance=1 / 16)
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['trained', 'chance']
    """
    whole = validate.vector(lengths, "lengths")
    validate.at_least(whole.min(), 1, "every length")
    validate.integer(len(accuracies), "number of models", minimum=1)
    with _canvas(4.0) as (figure, axes):
        for (name, values), drawn in zip(accuracies.items(), _series(len(accuracies)), strict=True):
            values = validate.real_array(values, f"accuracies of {name!r}")
            validate.same_shape(values.shape, whole.shape, f"accuracies of {name!r}")
            axes.plot(whole, values, label=name, marker="o", **drawn)
        axes.set_xscale("log", base=2)
        axes.set_xticks(whole, [f"{length:g}" for length in whole])
        axes.minorticks_off()
        axes.set_ylim(-0.03, 1.06)
        axes.grid()
        if trained is not None:
            trained = validate.at_least(trained, 1, "trained")
            axes.axvline(trained, color="#444444", lw=1.5, ls=":")
            axes.annotate("trained", (trained, 1.06), ha="center", va="bottom", fontsize=12)
        if chance is not None:
            chance = validate.at_least(chance, 0, "chance")
            axes.axhline(chance, color="#444444", lw=1.5, ls=":")
            axes.annotate("chance", (whole.min(), chance), va="bottom", fontsize=12)
        _label(axes, "length (tokens)", "accuracy", whole=False)
        figure.legend(
            *axes.get_legend_handles_labels(), loc="outside right upper", handlelength=2.5
        )
    return figure


def surviving_positions(
    max_exponent: int, *, dtypes: Sequence[str] = ("bfloat16", "float16", "float32")
) -> Figure:
    """Draw the share of positions that stay apart when they are held in a number format.

    Parameters
    ----------
    max_exponent : int
        The last interval shown is ``2**max_exponent .. 2**(max_exponent + 1) - 1``; at most 24.
    dtypes : sequence of str, default ('bfloat16', 'float16', 'float32')
        Formats, as in :func:`posenc.distinct_positions`.

    Returns
    -------
    matplotlib.figure.Figure
        One line for each format: distinct values over positions in each interval between
        powers of two, both axes logarithmic. Beyond a format's range all positions are infinite,
        so that they count as one.

    Raises
    ------
    ValueError
        If ``max_exponent`` is not in 1..24, a format is unknown, or there is none.

    Examples
    --------
    >>> figure = surviving_positions(9)
    >>> float(figure.axes[0].lines[0].get_ydata()[8]), 129 / 256
    (0.50390625, 0.50390625)
    """
    exponents = np.arange(validate.integer(max_exponent, "max_exponent", minimum=1, maximum=24) + 1)
    validate.integer(len(dtypes), "number of dtypes", minimum=1)
    starts = 2**exponents
    with _canvas(3.8) as (figure, axes):
        for dtype, drawn in zip(dtypes, _series(len(dtypes)), strict=True):
            shares = [distinct_positions(int(n), int(2 * n), dtype) / n for n in starts]
            axes.loglog(starts, shares, label=dtype, marker="o", base=2, **drawn)
        axes.yaxis.set_major_formatter(lambda share, _: _fraction(share))
        axes.grid()
        axes.legend(loc="lower left")
        _label(axes, "n  (positions n to 2n − 1)", "share that stays distinct", whole=False)
    return figure


def score_term_maps(terms: Sequence[ArrayLike]) -> Figure:
    """Draw the four terms of additive scores side by side.

    Parameters
    ----------
    terms : sequence of four (n, n) array_like
        What :func:`posenc.additive_score_terms` returned.

    Returns
    -------
    matplotlib.figure.Figure
        Four maps on one scale; white is zero.

    Raises
    ------
    ValueError
        If there are not four square matrices of one size.

    Examples
    --------
    >>> figure = score_term_maps(np.zeros((4, 5, 5)))
    >>> [axes.texts[0].get_text() for axes in figure.axes[:4]]
    ['content–content', 'content–position', 'position–content', 'position–position']
    """
    matrices = [validate.matrix(term, "each of terms", square=True) for term in terms]
    validate.same_axis(len(matrices), 4, "number of terms")
    for matrix in matrices:
        validate.same_shape(matrix.shape, matrices[0].shape, "each of terms")
    sides = ("content", "position")
    titles = [f"{query}–{key}" for query in sides for key in sides]
    largest = max(np.abs(matrix).max() for matrix in matrices) or 1.0
    return _maps(
        matrices,
        titles,
        "key",
        "query",
        "score",
        ncols=2,
        cmap=DIVERGING,
        vmin=-largest,
        vmax=largest,
    )


@contextmanager
def _canvas(height: float, **subplots: Any) -> Iterator[tuple[Figure, Any]]:
    """Make a figure in the book's style and give up pyplot's hold, which would show it twice."""
    with style.context(["default", STYLE]):
        figure, axes = pyplot.subplots(figsize=(WIDTH, height), layout="constrained", **subplots)
        try:
            yield figure, axes
            # Notebooks crop a figure to what it shows; this keeps all of one width.
            figure.add_artist(
                Rectangle((0, 0), 1, 1, fill=False, lw=0, transform=figure.transFigure)
            )
            # Ticks are made when first drawn, and would then follow the caller's settings.
            figure.draw_without_rendering()
        finally:
            pyplot.close(figure)


def _curves(offsets: NDArray, curves: Mapping[str, NDArray], xlabel: str, ylabel: str) -> Figure:
    with _canvas(3.8) as (figure, axes):
        for (name, values), drawn in zip(curves.items(), _series(len(curves)), strict=True):
            axes.plot(offsets, values, label=name, **drawn)
        axes.grid()
        axes.legend()
        _label(axes, xlabel, ylabel, whole=False)
    return figure


def _maps(
    matrices: Sequence[NDArray],
    titles: Sequence[str],
    xlabel: str,
    ylabel: str,
    label: str,
    *,
    ncols: int | None = None,
    **options: Any,
) -> Figure:
    """Draw matrices on one scale, each with its title, beside one colour bar."""
    ncols = ncols or len(matrices)
    nrows = -(-len(matrices) // ncols)
    options = {"vmin": min(matrix.min() for matrix in matrices), **options}
    lines = 1 + titles[0].count("\n")
    height = nrows * (0.25 * lines + 0.75 * WIDTH / ncols) + 0.7
    with _canvas(height, nrows=nrows, ncols=ncols, squeeze=False) as (figure, grid):
        for axes, matrix, title in zip(grid.flat, matrices, titles, strict=True):
            image = axes.imshow(matrix, **options)
            axes.set_facecolor(HIDDEN)
            axes.annotate(
                title, (0.5, 1.03), xycoords="axes fraction", ha="center", va="bottom", fontsize=13
            )
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_locator(MaxNLocator(3, integer=True))
            axes.label_outer()
        for axes in grid[-1]:
            axes.set_xlabel(xlabel)
        for axes in grid[:, 0]:
            axes.set_ylabel(ylabel)
        figure.colorbar(image, ax=grid, label=label)
    return figure


def _heat_map(axes: Axes, matrix: NDArray, *, label: str, **options: Any) -> AxesImage:
    largest = np.abs(matrix).max() or 1.0
    image = axes.imshow(matrix, cmap=DIVERGING, vmin=-largest, vmax=largest, **options)
    axes.figure.colorbar(image, ax=axes, label=label)
    return image


def _write_values(axes: Axes, image: AxesImage, matrix: NDArray, size: float) -> None:
    for (row, column), value in np.ndenumerate(matrix):
        red, green, blue, _ = image.cmap(image.norm(value))
        dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
        axes.text(
            column,
            row,
            f"{round(value, 2) + 0.0:.2f}",
            ha="center",
            va="center",
            fontsize=size,
            color="white" if dark else "black",
        )


def _arc(axes: Axes, start: float, turn: float) -> None:
    """Draw the way of a hand from one angle to the next."""
    angles = start + turn * np.linspace(0, 1, 200)
    axes.plot(0.4 * np.cos(angles), 0.4 * np.sin(angles), color="#666666", lw=1.5)


def _label(axes: Axes, xlabel: str, ylabel: str, *, whole: bool = True) -> None:
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    if whole:
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    if axes.images:
        axes.yaxis.set_major_locator(MaxNLocator(8, integer=True))


def _colours(count: int) -> list[str]:
    return [COLOURS[index % len(COLOURS)] for index in range(count)]


def _series(count: int) -> list[dict[str, str]]:
    """Return colour and stroke of each line, so that no two differ by colour alone."""
    return [
        {"color": colour, "ls": LINE_STYLES[index % len(LINE_STYLES)]}
        for index, colour in enumerate(_colours(count))
    ]


def _short(number: float) -> str:
    return f"{number:,.1f}" if number < 100 else f"{number:,.0f}"


def _fraction(number: float) -> str:
    """Write one over a whole number as such, any other number in digits."""
    inverse = 1 / number
    return f"1/{inverse:.0f}" if inverse > 1 and inverse == round(inverse) else f"{number:.3g}"


def broadcast_product(column: ArrayLike, row: ArrayLike) -> Figure:
    """Draw how a column and a row are broadcast to the table of their products.

    Parameters
    ----------
    column : (n, 1) array_like
        One number for each row of the table.
    row : (m,) array_like
        One number for each column of the table.

    Returns
    -------
    matplotlib.figure.Figure
        The column on the left, the row on top, and the products where they cross.

    Raises
    ------
    ValueError
        If ``column`` is no column of one to six numbers, or ``row`` no list of one to six.

    Examples
    --------
    >>> broadcast_product([[1], [2], [3]], [1.0, 0.5]).axes[-1].images[0].get_array().shape
    (3, 2)
    """
    column, row = validate.short_column_and_row(column, row, 6)
    table = column * row
    largest = max(np.abs(part).max() for part in (column, row, table)) or 1.0
    parts = ((0, 1, row[np.newaxis]), (1, 0, column), (1, 1, table))
    ratios = {"width_ratios": [1, len(row)], "height_ratios": [1, len(column)]}
    height = 0.75 * (len(column) + 1) + 0.7
    with _canvas(height, nrows=2, ncols=2, gridspec_kw=ratios) as (figure, grid):
        grid[0, 0].set_axis_off()
        for down, across, part in parts:
            axes = grid[down, across]
            image = axes.imshow(part, cmap=DIVERGING, vmin=-largest, vmax=largest, aspect="auto")
            _write_values(axes, image, part, 12)
            axes.set_xticks(range(part.shape[1]), labels=None if down else [])
            axes.set_yticks(range(part.shape[0]), labels=[] if across else None)
        grid[1, 1].set_xlabel("index in the row")
        grid[1, 0].set_ylabel("index in the column")
        grid[1, 0].set_xticks([])
        grid[0, 1].tick_params(left=False, bottom=False)
        grid[1, 1].tick_params(left=False)
    return figure


def box_diagram(
    boxes: Mapping[str, tuple[float, float]], arrows: Sequence[tuple[str, str, str]]
) -> Figure:
    """Draw named boxes on a grid, and arrows with labels between them.

    Parameters
    ----------
    boxes : mapping of str to (float, float)
        Text of each box, and its place: how far to the right, and how far down.
    arrows : sequence of (str, str, str)
        Box from which an arrow starts, box where it ends, and its label, which may be empty.

    Returns
    -------
    matplotlib.figure.Figure
        The diagram. It has no axes, since its places mean nothing.

    Raises
    ------
    ValueError
        If there is no box, or an arrow names a box that is not there.

    Examples
    --------
    >>> figure = box_diagram({"cause": (0, 0), "effect": (0, 1)}, [("cause", "effect", "has")])
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['cause', 'effect', 'has']
    """
    validate.boxes_and_arrows(boxes, arrows)
    across, down = np.array(list(boxes.values()), dtype=float).T
    with _canvas(0.95 * (np.ptp(down) + 1)) as (figure, axes):
        axes.set_axis_off()
        axes.set(
            xlim=(across.min() - 0.5, across.max() + 0.5),
            ylim=(down.max() + 0.5, down.min() - 0.5),
        )
        look = {"boxstyle": "round,pad=0.4", "facecolor": "#eaf2f9", "edgecolor": COLOURS[0]}
        drawn = {
            name: axes.text(*place, name, ha="center", va="center", bbox=look, zorder=3)
            for name, place in boxes.items()
        }
        figure.draw_without_rendering()  # now the boxes have a size
        # Arrows end at copies in data coordinates: saving moves texts after arrows are drawn.
        ends = {}
        for name, text in drawn.items():
            box = text.get_bbox_patch().get_window_extent()
            box = box.transformed(axes.transData.inverted())
            ends[name] = Rectangle(box.p0, box.width, box.height, transform=axes.transData)
            ends[name].set_figure(figure)
        for start, end, label in arrows:
            axes.add_patch(
                FancyArrowPatch(
                    boxes[start],
                    boxes[end],
                    patchA=ends[start],
                    patchB=ends[end],
                    arrowstyle="-|>",
                    mutation_scale=14,
                    color="#444444",
                    lw=1.5,
                )
            )
            if label:
                middle = np.add(boxes[start], boxes[end]) / 2
                axes.text(
                    *middle,
                    label,
                    ha="center",
                    va="center",
                    fontsize=12,
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
                    zorder=2,
                )
    return figure


def encoding_columns(
    d_model: int, columns: Sequence[int], length: int, *, base: float = 10_000.0
) -> Figure:
    """Draw chosen columns of the table of encodings against position, on one pair of axes.

    Parameters
    ----------
    d_model : int
        Number of dimensions, even and positive.
    columns : sequence of int
        Columns to show, from 0 to ``d_model - 1``.
    length : int
        Number of positions.
    base : float, default 10_000.0
        Base of the frequencies.

    Returns
    -------
    matplotlib.figure.Figure
        One curve for each column; the legend says which pair it belongs to.

    Raises
    ------
    ValueError
        If ``d_model`` is odd, a column does not exist, or there are fewer than two positions.

    Examples
    --------
    >>> [line.get_label() for line in encoding_columns(16, [4, 5], 50).axes[0].lines]
    ['column 4, sine of pair 2', 'column 5, cosine of pair 2']
    """
    d_model = validate.even_size(d_model, "d_model")
    columns = validate.pair_indices(columns, d_model, "columns")
    length = validate.integer(length, "length", minimum=2)
    smooth = np.linspace(0, length - 1, 20 * (length - 1) + 1)
    encoding = sinusoidal_encoding(smooth, d_model, base=base)
    with _canvas(4.2) as (figure, axes):
        for column, drawn in zip(columns, _series(len(columns)), strict=True):
            kind = "cosine" if column % 2 else "sine"
            label = f"column {column}, {kind} of pair {column // 2}"
            axes.plot(smooth, encoding[:, column], label=label, **drawn)
        axes.grid()
        figure.legend(loc="outside upper center", ncols=2, fontsize=11)
        _label(axes, "position", "value")
    return figure
