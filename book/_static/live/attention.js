// Attention weights of one sentence in two orders, with and without positions and mask.
import { choice, createFigure, diverging, encoding, format, write } from "./core.js";

const ORDERS = ["2,1,0", "1,2,0", "2,0,1", "1,0,2", "0,2,1"];
const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
const times = (row, matrix) => matrix[0].map((_, j) => dot(row, matrix.map((line) => line[j])));

/** Turn pairs of neighbours counter-clockwise, by angles whose sines and cosines a code holds. */
const rotate = (row, code) =>
  row.map((value, j) => value * code[j | 1] + (j % 2 || -1) * row[j ^ 1] * code[j & ~1]);

/**
 * Weights of one attention head: row i holds how much word i looks at each word.
 * The kind of positions is "none", "sinusoidal" (added to words) or "rotary" (turns queries and keys).
 */
export function attentionWeights({ x, wQ, wK }, { kind, causal, positions }) {
  const [queries, keys] = [wQ, wK].map((matrix) =>
    x.map((row, i) => {
      const code = encoding(positions[i], kind === "rotary" ? matrix[0].length : row.length);
      if (kind === "sinusoidal") return times(row.map((value, j) => value + code[j]), matrix);
      return kind === "rotary" ? rotate(times(row, matrix), code) : times(row, matrix);
    }),
  );
  return queries.map((query, i) => {
    const scores = keys.map((key, j) =>
      causal && j > i ? -Infinity : dot(query, key) / Math.sqrt(query.length),
    );
    const powers = scores.map((score) => Math.exp(score - Math.max(...scores)));
    const total = powers.reduce((sum, power) => sum + power);
    return powers.map((power) => power / total);
  });
}

export function mount(stage, { data }) {
  const { words } = data;
  const places = [0, 1, 2];
  const pairs = places.flatMap((from) => places.map((to) => [from, to]));
  const sentence = (order) => order.map((word) => words[word]).join(" ");

  /** Both sentences, and in each how much one word looks at another, wherever they stand. */
  function solve({ kind, causal, order }) {
    const [first, second] = [places, order.split(",").map(Number)].map((order) => {
      const x = order.map((word) => data.x[word]);
      const weights = attentionWeights({ ...data, x }, { kind, causal, positions: places });
      return { order, weight: (from, to) => weights[order.indexOf(from)][order.indexOf(to)] };
    });
    const differs = (pair) => Math.abs(first.weight(...pair) - second.weight(...pair)) > 1e-9;
    return { sentences: [first, second], differs };
  }

  function draw(context, { width, height, values, figure, colors }) {
    const { sentences, differs } = solve(values);
    const stacked = width < 480;
    const [wide, high] = stacked ? [width, height / 2] : [width / 2, height];
    const names = 56; // room for the longest word
    const across = Math.min((wide - names - 6) / 3, 90);
    const down = Math.min((high - 66) / 3, 90);
    const say = (text, x, y, color = colors.text, align) => write(context, text, x, y, color, align, 14);
    figure.grids = sentences.map(({ order, weight }, index) => {
      const left = (stacked ? 0 : wide * index) + (wide + names - 3 * across) / 2;
      const top = (stacked ? high * index : 0) + 26;
      const [middle, bottom] = [left + 1.5 * across, top + 3 * down];
      say(sentence(order), middle, top - 14);
      say("is looked at", middle, bottom + 30);
      order.forEach((word, i) => {
        say(words[word], left - 8, top + (i + 0.5) * down, colors.text, "right");
        say(words[word], left + (i + 0.5) * across, bottom + 13);
      });
      for (const [i, j] of pairs) {
        const pair = [order[i], order[j]];
        const [x, y] = [left + j * across, top + i * down];
        const rgb = diverging(-weight(...pair), colors);
        const ink = rgb[1] > 120 ? "#000" : "#fff";
        context.fillStyle = `rgb(${rgb})`;
        context.fillRect(x, y, across, down);
        say(format(weight(...pair), 2), x + across / 2, y + down / 2, ink);
        if (index && differs(pair)) say("≠", x + across - 9, y + 11, ink);
        if (`${pair}` !== `${figure.pair}`) continue;
        Object.assign(context, { strokeStyle: colors.series[1], lineWidth: 4 });
        context.strokeRect(x + 2, y + 2, across - 4, down - 4);
      }
      return ({ x, y }) => [order[Math.floor((y - top) / down)], order[Math.floor((x - left) / across)]];
    });
  }

  function describe(values, { pair }) {
    const { sentences, differs } = solve(values);
    const [first, second] = sentences.map(({ weight }) => format(weight(...pair), 2));
    return (
      `${words[pair[0]]} looks at ${words[pair[1]]}: ${first} in the first sentence, ${second} in the second. ` +
      `${pairs.filter(differs).length} of 9 pairs of words differ (≠).`
    );
  }

  const choose = (pair, figure) => {
    if (!pair.includes(undefined)) figure.pair = pair;
  };

  return createFigure(stage, {
    state: { pair: [0, 2] }, // the word that looks, and the one that is looked at
    controls: [
      choice("kind", "Positions", ["none", "sinusoidal", "rotary"], "none"),
      { type: "checkbox", name: "causal", label: "Causal mask", value: true },
      choice("order", "Second", ORDERS.map((order) => [order, sentence(order.split(","))]), ORDERS[0]),
    ],
    draw,
    describe,
    moveLabel: "Weights: arrow keys choose two words",
    pointer(event, figure) {
      for (const pairAt of figure.grids) choose(pairAt(event), figure);
      figure.update();
    },
    move: (steps, figure) => choose(figure.pair.map((word, k) => places[word + steps[k]]), figure),
  });
}
