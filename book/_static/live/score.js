// RoPE's score of one query and one key against the offset of their places.
import { axes, choice, createFigure, dial, disc, format, frequencies, line, slider, write } from "./core.js";

const FAR = 128;
const OFFSETS = Array.from({ length: 2 * FAR + 1 }, (_, i) => i - FAR);

/**
 * Scores of a query of ones at each offset, and how far any angle can take them there.
 * The key is the query turned back by `angle` in every pair, and on by `ahead` places.
 */
export function scoreCurve(offsets, { d, base, angle, ahead }) {
  const speeds = frequencies(d, base);
  const scale = 2 / Math.sqrt(d);
  const scores = [];
  const reach = [];
  for (const offset of offsets) {
    let [x, y] = [0, 0];
    for (const speed of speeds) {
      x += Math.cos((offset - ahead) * speed);
      y += Math.sin((offset - ahead) * speed);
    }
    scores.push(scale * (x * Math.cos(angle) - y * Math.sin(angle)));
    reach.push(scale * Math.hypot(x, y));
  }
  return { scores, reach };
}

function solve({ d, base, angle, ahead }) {
  const radians = (angle * Math.PI) / 180;
  const solved = scoreCurve(OFFSETS, { d: Number(d), base: Number(base), angle: radians, ahead });
  const highest = Math.max(...solved.scores);
  // Two places, where a symmetric curve is highest on both sides.
  const peaks = OFFSETS.filter((_, i) => highest - solved.scores[i] < 1e-9);
  return { ...solved, radians, highest, peaks };
}

function describe(values) {
  const { scores, highest, peaks } = solve(values);
  return (
    `Within ${FAR} places the score is highest at offset ${peaks.map((peak) => format(peak)).join(" and ")}: ` +
    `${format(highest, 1)}. At offset 0 it is ${format(scores[FAR], 1)}.`
  );
}

function draw(context, { width, height, values, figure, colors }) {
  const { scores, reach, radians, highest, peaks } = solve(values);
  const narrow = width < 500;
  const radius = narrow ? 42 : 52;
  const [x, y] = narrow ? [width - radius - 8, radius + 6] : [width - radius - 12, height / 2 - 24];
  const top = 1.08 * Math.sqrt(values.d);
  const place = axes(
    context,
    { left: 34, top: narrow ? 2 * radius + 30 : 26, right: narrow ? width - 8 : x - radius - 28, bottom: height - 44 },
    {
      x: { min: -FAR, max: FAR, label: "offset: places of the query after the key" },
      y: { min: -top, max: top, label: "score" },
      colors,
    },
  );
  const points = (heights) => OFFSETS.map((offset, i) => [place.x(offset), place.y(heights[i])]);
  context.beginPath();
  for (const point of points(reach)) context.lineTo(...point);
  for (const point of points(reach.map((value) => -value)).reverse()) context.lineTo(...point);
  context.globalAlpha = 0.25;
  context.fillStyle = colors.series[0];
  context.fill();
  context.globalAlpha = 1;
  line(context, [[place.x(-FAR), place.y(0)], [place.x(FAR), place.y(0)]], colors.text, 1);
  line(context, points(scores), colors.series[0]);
  for (const peak of peaks) disc(context, place.x(peak), place.y(highest), 5, colors.series[1]);

  const [, query, key] = colors.series;
  dial(context, x, y, radius, [[0, key], [radians, query]], colors);
  const [left, under] = narrow ? [x - radius - 60, y - 8] : [x, y + radius + 26];
  write(context, "key", left, under, key);
  write(context, "query (drag)", left, under + 20, query);
  const side = radius + 14;
  figure.handle.style =
    `position:absolute;cursor:grab;touch-action:none;width:${2 * side}px;height:${2 * side}px;` +
    `left:${x - side}px;top:${y - side}px`;
}

export function mount(stage, options) {
  const handle = document.createElement("div");
  const figure = createFigure(stage, {
    state: { handle },
    controls: [
      slider("angle", "Content angle", [-180, 180, 1], 0, (angle) => `${format(angle)}°`),
      slider("ahead", "Key turned by", [-100, 100, 1], 0, format),
      choice("d", "d", [2, 8, 32, 128], options.dModel ?? 128),
      choice("base", "Base", [100, 10_000, 500_000], options.base ?? 10_000),
    ],
    draw,
    describe,
  });
  const drag = ({ type, clientX, clientY, buttons, pointerId }) => {
    if (!buttons) return;
    if (type === "pointerdown") handle.setPointerCapture(pointerId);
    const { left, right, top, bottom } = handle.getBoundingClientRect();
    const angle = Math.atan2((top + bottom) / 2 - clientY, clientX - (left + right) / 2);
    figure.set("angle", Math.round((angle * 180) / Math.PI));
  };
  handle.addEventListener("pointerdown", drag);
  handle.addEventListener("pointermove", drag);
  figure.canvas.after(handle);
  return figure;
}
