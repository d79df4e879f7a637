// The position clock: each pair of dimensions is a hand that turns by its frequency.
import { choice, createFigure, dial, disc, format, frequencies, line, player, slider, write } from "./core.js";

const BASE = 10_000;
const NARROW = 18; // below a dial that has no room for more than its number

/** The angle of each hand, in radians. */
export function angles(position, dModel, base = BASE) {
  return frequencies(dModel, base).map((frequency) => position * frequency);
}

const place = (position) => format(position, position % 1 ? 1 : 0);

/** As many columns as make the dials largest, with room for the numbers below each, if there is. */
function arrange(dials, width, height, below = 54) {
  let best = { radius: 0 };
  for (let columns = 1; columns <= dials; columns++) {
    const rows = Math.ceil(dials / columns);
    const radius = Math.min(width / columns, height / rows - below) / 2 - 9;
    const fits = below === NARROW || width / columns >= 68;
    if (fits && radius > best.radius) best = { columns, rows, radius, below };
  }
  return best.radius >= 18 || below === NARROW ? best : arrange(dials, width, height, NARROW);
}

/** A hand with its cosine across and its sine upwards. */
function drawHand(context, { x, y, radius, angle, colors }) {
  const [hand, sine, cosine] = colors.series;
  const [across, up] = [x + radius * Math.cos(angle), y - radius * Math.sin(angle)];
  dial(context, x, y, radius, [], colors);
  line(context, [[x - radius, y], [x + radius, y]], colors.border, 1);
  line(context, [[x, y - radius], [x, y + radius]], colors.border, 1);
  line(context, [[across, y], [across, up]], sine, 2.5);
  line(context, [[x, y], [across, y]], cosine, 2.5, [4, 3]);
  line(context, [[x, y], [across, up]], hand, Math.max(2, radius / 14));
  disc(context, across, up, Math.max(3, radius / 11), hand);
}

function draw(context, { width, height, values: { position, dModel }, colors }) {
  const turned = angles(position, dModel);
  const { columns, rows, radius, below } = arrange(turned.length, width, height);
  const [across, down] = [width / columns, height / rows];
  const spare = (down - below - 2 * radius - 18) / 2;
  const [, sine, cosine] = colors.series;
  turned.forEach((angle, pair) => {
    const x = across * ((pair % columns) + 0.5);
    const y = spare + down * Math.floor(pair / columns) + radius + 9;
    drawHand(context, { x, y, radius, angle, colors });
    const say = (text, under, color) => write(context, text, x, y + radius + under + 3, color, "center", 12);
    say(below > NARROW ? `pair ${pair}` : pair, 14, colors.text);
    if (below === NARROW) return;
    say(`sin ${format(Math.sin(angle), 2)}`, 28, sine);
    say(`cos ${format(Math.cos(angle), 2)}`, 42, cosine);
  });
}

function describe({ position, dModel }) {
  const turns = angles(position, dModel).map((angle) => angle / (2 * Math.PI));
  return (
    `Turns made at position ${place(position)}: ` +
    `${format(turns[0], 2)} by pair 0, ${format(turns.at(-1), 4)} by pair ${turns.length - 1}.`
  );
}

function label(values) {
  const hands = angles(values.position, values.dModel).map(
    (angle, pair) => `pair ${pair}: sine ${format(Math.sin(angle), 2)}, cosine ${format(Math.cos(angle), 2)}`,
  );
  return `Clock with ${hands.length} hands. ${describe(values)} ${hands.join("; ")}.`;
}

export function mount(stage, options) {
  const small = "small" in options;
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let end = Infinity;
  const play = player(
    (seconds, figure) => {
      const speed = calm ? 1 : 1.5; // positions a second
      figure.set("position", figure.values.position + speed * seconds);
      return figure.values.position < end;
    },
    (figure) => {
      end = Infinity;
      figure.set("position", Math.round(figure.values.position));
    },
  );
  const position = Number(options.position ?? 0);
  const dModel = Number(options.dModel ?? 8);
  const range = slider("position", "Position", [0, 100, 1], position, small && place);
  const controls = [{ type: "button", label: "Play", action: play }, range];
  if (!small) {
    const box = { type: "number", name: "position", label: "Position", min: -1e6, max: 1e6, step: "any", value: position };
    Object.assign(range, { label: "Position, by slider", quiet: true });
    controls.splice(1, 0, choice("dModel", "d", [4, 8, 16, 32], dModel), box);
  }
  const figure = createFigure(stage, { controls, values: { dModel }, draw, describe, label });
  if (small && !calm) {
    end = position + 20; // a start that ends by itself
    play(figure, figure.elements.Play);
  }
  return figure;
}
