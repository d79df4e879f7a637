// What becomes of positions and angles in bfloat16, which keeps 8 significant bits.
import { createFigure, dial, disc, format, frequencies, line, slider, write } from "./core.js";

const BASE = 10_000;
const SHOWN = 9;
const view = new DataView(new ArrayBuffer(8));

/** Round once to the nearest number that bfloat16 holds; a tie goes to the even neighbour. */
export function bfloat16(x) {
  if (!Number.isFinite(x)) return x;
  view.setFloat64(0, x);
  const exponent = Math.max(((view.getUint16(0) >> 4) & 0x7ff) - 1023, -126);
  const unit = 2 ** (exponent - 7);
  let units = Math.round(x / unit);
  if (units - x / unit === 0.5 && units % 2) units -= 1;
  // Numbers beyond float32's range are beyond bfloat16's.
  return Math.fround(units * unit);
}

/** First and last whole position that is stored as the same number as this one. */
export function sharing(position) {
  const stored = bfloat16(position);
  let [first, last] = [position, position];
  while (bfloat16(first - 1) === stored) first -= 1;
  while (bfloat16(last + 1) === stored) last += 1;
  return { stored, first, last };
}

/** Angle of a pair in float64, and with position, frequency and product each in bfloat16. */
export function pairAngles(position, pair, d) {
  const frequency = frequencies(d, BASE)[pair];
  return {
    exact: position * frequency,
    rounded: bfloat16(bfloat16(position) * bfloat16(frequency)),
  };
}

function drawNeighbours(context, { right, top, bottom }, position, colors) {
  const first = Math.max(1, position - (SHOWN - 1) / 2);
  const step = right / SHOWN;
  const x = (place) => (place - first + 0.5) * step;
  // Where there is no room for every number, three must do, and these stay inside.
  const long = 8 * format(first + SHOWN).length;
  const each = long + 4 < step ? 1 : (SHOWN - 1) / 2;
  const inside = (across) => Math.min(Math.max(across, long / 2), right - long / 2);
  write(context, "position", 0, top - 30, colors.text, "left");
  write(context, "in bfloat16", 0, bottom + 32, colors.text, "left");
  for (let place = first; place < first + SHOWN; place++) {
    const group = sharing(place);
    const under = x((Math.max(first, group.first) + Math.min(first + SHOWN - 1, group.last)) / 2);
    const [color, width] = place === position ? [colors.series[1], 4] : [colors.series[0], 2];
    line(context, [[x(place), top], [under, bottom]], color, width);
    disc(context, x(place), top, width + 2, color);
    if ((place - first) % each === 0) write(context, format(place), inside(x(place)), top - 13, colors.text);
    if (place !== first && place !== group.first) continue;
    disc(context, under, bottom, 5, colors.text);
    write(context, format(group.stored), under, bottom + 15, colors.text);
  }
}

function describe({ position, pair }, { d }) {
  const { stored, first, last } = sharing(position);
  const turns = Object.values(pairAngles(position, pair, d)).map((angle) => format(angle / 2 / Math.PI, 2));
  const alike = first === last ? "" : `, like all from ${format(first)} to ${format(last)}`;
  return (
    `${format(position)} is stored as ${format(stored)}${alike}. ` +
    `Pair ${pair} should turn ${turns[0]} times, and turns ${turns[1]}.`
  );
}

function draw(context, { width, height, values, figure, colors }) {
  const narrow = width < 560;
  const radius = narrow ? 60 : Math.min(85, height / 2 - 40);
  const [x, y] = [narrow ? width / 2 : width - radius - 10, height - radius - 46];
  drawNeighbours(
    context,
    narrow
      ? { right: width, top: 46, bottom: y - radius - 60 }
      : { right: x - radius - 24, top: 46, bottom: height - 50 },
    values.position,
    colors,
  );
  const { exact, rounded } = pairAngles(values.position, values.pair, figure.d);
  const [blue, orange] = colors.series;
  dial(context, x, y, radius, [[exact, blue], [rounded, orange, [6, 4]]], colors);
  write(context, "exact angle", x, y + radius + 16, blue);
  write(context, "in bfloat16", x, y + radius + 34, orange);
}

export function mount(stage, options) {
  const d = Number(options.dModel ?? 128);
  const position = Number(options.position ?? 1);
  // The slider counts hundredths of a power of ten.
  const slide = (place) => 100 * Math.log10(place);
  const place = (slid) => Math.round(10 ** (slid / 100));
  const show = (slid) => format(place(slid));
  return createFigure(stage, {
    state: { d },
    values: { position, slide: slide(position) },
    controls: [
      slider("slide", "Position", [0, 600, 1], 0, show),
      { type: "number", name: "position", label: "exactly", min: 1, max: 1e6, step: 1 },
      slider("pair", "Pair", [0, d / 2 - 1, 1], 0, String),
    ],
    changed(name, figure) {
      if (name === "slide") figure.set("position", place(figure.values.slide));
      if (name === "position") figure.set("slide", slide(figure.values.position));
    },
    draw,
    describe,
  });
}
