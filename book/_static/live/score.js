// RoPE's score of one query and one key against the offset of their places.
import { axes, choice, createFigure, dial, disc, format, frequencies, line, slider, write } from "./core.js";

const FAR = 128;
const DIAL = 112; // as in live.css
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
  const solved = scoreCurve(OFFSETS, { d, base, angle: radians, ahead });
  const highest = Math.max(...solved.scores);
  // Two places, where a symmetric curve is highest on both sides.
  const peaks = OFFSETS.filter((_, i) => highest - solved.scores[i] < 1e-9);
  return { ...solved, radians, highest, peaks };
}

function describe(values) {
  const { scores, highest, peaks } = solve(values);
  const where = peaks.map((peak) => format(peak)).join(" and ");
  return (
    `Within ${FAR} places the score is highest at offset ${where}: ${format(highest, 1)}. ` +
    `At offset 0 it is ${format(scores[FAR], 1)}.`
  );
}

function draw(context, { width, height, values, colors }) {
  const { scores, reach, radians, highest, peaks } = solve(values);
  const narrow = width < 500;
  const [top, right] = narrow ? [DIAL + 20, width - 8] : [26, width - DIAL - 20];
  const most = 1.08 * Math.sqrt(values.d);
  const place = axes(context, { left: 34, top, right, bottom: height - 44 }, {
    x: { min: -FAR, max: FAR, label: "offset: places of the query after the key" },
    y: { min: -most, max: most, label: "score" },
    colors,
  });
  const points = (heights) => OFFSETS.map((offset, i) => [place.x(offset), place.y(heights[i])]);
  line(context, [...points(reach), ...points(reach.map((value) => -value)).reverse()], "transparent");
  Object.assign(context, { fillStyle: colors.series[0], globalAlpha: 0.25 });
  context.fill();
  context.globalAlpha = 1;
  line(context, points(scores.map(() => 0)), colors.text, 1);
  line(context, points(scores), colors.series[0]);
  for (const peak of peaks) disc(context, place.x(peak), place.y(highest), 5, colors.series[1]);

  const [, query, key] = colors.series;
  const [x, y] = [width - DIAL / 2, DIAL / 2];
  dial(context, x, y, DIAL / 2 - 8, [[0, key], [radians, query]], colors);
  const [left, under] = narrow ? [x - DIAL, y - 10] : [x, DIAL + 12];
  write(context, "key", left, under, key);
  write(context, "query (drag)", left, under + 20, query);
}

export function mount(stage) {
  const figure = createFigure(stage, {
    controls: [
      slider("angle", "Content angle", [-180, 180, 1], 0, (angle) => `${format(angle)}°`),
      slider("ahead", "Key turned by", [-100, 100, 1], 0, format),
      choice("d", "d", [2, 8, 32, 128], 128),
      choice("base", "Base", [100, 10_000, 500_000], 10_000),
    ],
    draw,
    describe,
  });
  const handle = document.createElement("div");
  handle.className = "live-dial";
  handle.onpointermove = ({ clientX, clientY, buttons }) => {
    if (!buttons) return;
    const { left, right, top, bottom } = handle.getBoundingClientRect();
    const angle = Math.atan2((top + bottom) / 2 - clientY, clientX - (left + right) / 2);
    figure.set("angle", Math.round((angle * 180) / Math.PI));
  };
  handle.onpointerdown = (event) => {
    handle.setPointerCapture(event.pointerId);
    handle.onpointermove(event);
  };
  figure.canvas.after(handle);
  return figure;
}
