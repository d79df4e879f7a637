// Attention weights of one sentence in two orders, with and without positions and mask.
import { choice, createFigure, diverging, encoding as encode, format, frequencies, write } from "./core.js";

const BASE = 10_000;
const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
const times = (row, matrix) => matrix[0].map((_, j) => dot(row, matrix.map((line) => line[j])));

/** Turn each pair of neighbours counter-clockwise by the angle of the position, as posenc.rope. */
function rotate(row, position) {
  const angles = frequencies(row.length, BASE).map((frequency) => position * frequency);
  return row.map((value, j) => {
    const angle = angles[j >> 1];
    return value * Math.cos(angle) + (j % 2 ? 1 : -1) * row[j ^ 1] * Math.sin(angle);
  });
}

/**
 * Weights of one attention head: row i holds how much word i looks at each word.
 * Positions are "none", "sinusoidal" (added to the words) or "rotary" (queries and keys turned).
 */
export function attentionWeights({ x, wQ, wK }, { encoding, causal, positions }) {
  const [queries, keys] = [wQ, wK].map((matrix) =>
    x.map((row, i) => {
      const code = encode(positions[i], row.length, BASE);
      const seen = encoding === "sinusoidal" ? row.map((value, j) => value + code[j]) : row;
      const projected = times(seen, matrix);
      return encoding === "rotary" ? rotate(projected, positions[i]) : projected;
    }),
  );
  return queries.map((query, i) => {
    const scores = keys.map((key, j) =>
      causal && j > i ? -Infinity : dot(query, key) / Math.sqrt(query.length),
    );
    const largest = Math.max(...scores);
    const powers = scores.map((score) => Math.exp(score - largest));
    const total = powers.reduce((sum, power) => sum + power);
    return powers.map((power) => power / total);
  });
}

/** All orders of some things. */
const orders = (left) =>
  left.length
    ? left.flatMap((one) => orders(left.filter((other) => other !== one)).map((rest) => [one, ...rest]))
    : [[]];

export function mount(stage, { data }) {
  const { words } = data;
  const places = words.map((_, i) => i);
  const count = words.length;
  const sentence = (order) => order.map((word) => words[word]).join(" ");
  const state = { pair: [0, count - 1], grids: [] }; // the word that looks, and the one looked at

  /** Both sentences, and in each how much one word looks at another, wherever they stand. */
  function solve({ encoding, causal, order }) {
    const [first, second] = [places, order.split(",").map(Number)].map((order) => {
      const x = order.map((word) => data.x[word]);
      const weights = attentionWeights({ ...data, x }, { encoding, causal, positions: places });
      return { order, weight: (from, to) => weights[order.indexOf(from)][order.indexOf(to)] };
    });
    const differs = (from, to) => Math.abs(first.weight(from, to) - second.weight(from, to)) > 1e-9;
    return { sentences: [first, second], differs };
  }

  function draw(context, { width, height, values, figure, colors }) {
    const { sentences, differs } = solve(values);
    const stacked = width < 480;
    const [wide, high] = stacked ? [width, height / 2] : [width / 2, height];
    const names = 8 * Math.max(...words.map((word) => word.length)) + 8;
    const [across, down] = [(wide - names - 6) / count, (high - 66) / count].map((side) => Math.min(side, 90));
    const say = (text, x, y, color = colors.text, align) => write(context, text, x, y, color, align, 14);
    figure.grids = sentences.map(({ order, weight }, index) => {
      const middle = (stacked ? 0.5 : index + 0.5) * wide + names / 2;
      const left = middle - (across * count) / 2;
      const top = (stacked ? high * index : 0) + 26;
      const bottom = top + down * count;
      say(sentence(order), middle, top - 14);
      say("is looked at", middle, bottom + 30);
      order.forEach((from, i) => {
        say(words[from], left - 8, top + (i + 0.5) * down, colors.text, "right");
        say(words[from], left + (i + 0.5) * across, bottom + 13);
        order.forEach((to, j) => {
          const [x, y] = [left + j * across, top + i * down];
          const [red, green, blue] = diverging(-weight(from, to), colors);
          context.fillStyle = `rgb(${red} ${green} ${blue})`;
          context.fillRect(x, y, across, down);
          const ink = green > 128 ? "#000" : "#fff";
          say(format(weight(from, to), 2), x + across / 2, y + down / 2, ink);
          if (index && differs(from, to)) say("≠", x + across - 9, y + 11, ink);
          if (`${[from, to]}` === `${figure.pair}`) {
            Object.assign(context, { strokeStyle: colors.series[1], lineWidth: 4 });
            context.strokeRect(x + 2, y + 2, across - 4, down - 4);
          }
        });
      });
      return { left, top, across, down, order };
    });
  }

  function describe(values, { pair: [from, to] }) {
    const { sentences, differs } = solve(values);
    const [first, second] = sentences.map(({ weight }) => format(weight(from, to), 2));
    const changed = places.flatMap((i) => places.filter((j) => differs(i, j))).length;
    const mark = changed ? " (≠)" : "";
    return (
      `${words[from]} looks at ${words[to]}: ${first} in the first sentence, ${second} in the second. ` +
      `${changed} of ${count ** 2} pairs of words differ${mark}.`
    );
  }

  function label(values, figure) {
    const rows = solve(values).sentences.map(({ order, weight }) => {
      const row = (from) => `${words[from]} ${order.map((to) => format(weight(from, to), 2)).join(" ")}`;
      return `Weights in ${sentence(order)}: ${order.map(row).join(", ")}.`;
    });
    return [describe(values, figure), ...rows].join(" ");
  }

  function choose(pair, figure) {
    if (pair.some((word) => word === undefined) || `${pair}` === `${figure.pair}`) return;
    figure.pair = pair;
    figure.update();
  }

  return createFigure(stage, {
    state,
    controls: [
      choice("encoding", "Positions", ["none", "sinusoidal", "rotary"], "none"),
      { type: "checkbox", name: "causal", label: "Causal mask", value: true },
      choice("order", "Second", orders(places).map((order) => [`${order}`, sentence(order)]), [...places].reverse()),
    ],
    draw,
    describe,
    label,
    keysLabel: "Weights: arrow keys choose two words",
    pointer({ x, y, type }, figure) {
      if (type === "leave") return;
      for (const { left, top, across, down, order } of figure.grids) {
        choose([order[Math.floor((y - top) / down)], order[Math.floor((x - left) / across)]], figure);
      }
    },
    keys({ key }, figure) {
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[key];
      if (step) choose(figure.pair.map((word, k) => places[word + step[k]]), figure);
      return Boolean(step);
    },
  });
}
