// What becomes of positions and angles in bfloat16, which keeps 8 significant bits.
import { createFigure, dial, disc, format, frequencies, line, logSlider, slider, write } from "./core.js";

const SIZE = 128;
const NEAR = 4;
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
  const frequency = frequencies(d, 10_000)[pair];
  return [position * frequency, bfloat16(bfloat16(position) * bfloat16(frequency))];
}

function drawNeighbours(context, right, bottom, position, colors) {
  const top = 46;
  const first = Math.max(1, position - NEAR);
  const last = first + 2 * NEAR;
  const step = right / (2 * NEAR + 1);
  const x = (place) => (place - first + 0.5) * step;
  const roomy = 8 * format(last).length < step;
  write(context, "position", 0, top - 30, colors.text, "left");
  write(context, "in bfloat16", 0, bottom + 32, colors.text, "left");
  for (let place = first; place <= last; place++) {
    const group = sharing(place);
    const under = x((Math.max(first, group.first) + Math.min(last, group.last)) / 2);
    const [color, width] = place === position ? [colors.series[1], 4] : [colors.series[0], 2];
    line(context, [[x(place), top], [under, bottom]], color, width);
    disc(context, x(place), top, width + 2, color);
    if (roomy || place === position) write(context, format(place), x(place), top - 13, colors.text);
    if (place !== first && place !== group.first) continue;
    disc(context, under, bottom, 5, colors.text);
    write(context, format(group.stored), under, bottom + 15, colors.text);
  }
}

function describe({ position, pair }) {
  const { stored, first, last } = sharing(position);
  const [exact, rounded] = pairAngles(position, pair, SIZE).map((angle) => format(angle / 2 / Math.PI, 2));
  const alike = first < last ? `, like all from ${format(first)} to ${format(last)}` : "";
  return (
    `${format(position)} is stored as ${format(stored)}${alike}. ` +
    `Pair ${pair} should turn ${exact} times, and turns ${rounded}.`
  );
}

function draw(context, { width, height, values, colors }) {
  const narrow = width < 560;
  const radius = narrow ? 60 : Math.min(85, height / 2 - 40);
  const [x, y] = [narrow ? width / 2 : width - radius - 10, height - radius - 46];
  const [right, bottom] = narrow ? [width, y - radius - 60] : [x - radius - 24, height - 50];
  drawNeighbours(context, right, bottom, values.position, colors);
  const [exact, rounded] = pairAngles(values.position, values.pair, SIZE);
  const [blue, orange] = colors.series;
  dial(context, x, y, radius, [[exact, blue], [rounded, orange, [6, 4]]], colors);
  write(context, "exact angle", x, y + radius + 16, blue);
  write(context, "in bfloat16", x, y + radius + 34, orange);
}

export function mount(stage, options) {
  return createFigure(stage, {
    controls: [
      logSlider("position", "Position", [0, 6, 0.01], options.position ?? 1),
      { type: "number", name: "position", label: "exactly", min: 1, max: 1e6 },
      slider("pair", "Pair", [0, SIZE / 2 - 1, 1], 0, String),
    ],
    draw,
    describe,
  });
}
