// The position kernel: the dot product of two encodings against their offset.
import { axes, baseSlider, choice, createFigure, disc, format, frequencies, line, size, slider, write } from "./core.js";

const PAPER = 10_000;

/** The dot product of two encodings that lie `offset` apart, as posenc.position_kernel. */
export function values(offset, dModel, base = PAPER) {
  return frequencies(dModel, base).reduce((sum, frequency) => sum + Math.cos(offset * frequency), 0);
}

function curve(place, box, { dModel, base, reach }) {
  // The shortest wave is six offsets long.
  const points = Math.ceil(Math.max(box.right - box.left, 2 * reach));
  return Array.from({ length: points + 1 }, (_, point) => {
    const offset = (reach * point) / points;
    return [place.x(offset), place.y(values(offset, dModel, base) / (dModel / 2))];
  });
}

function draw(context, { width, height, values: chosen, figure, colors }) {
  const { dModel, base, reach, offset } = chosen;
  const box = { left: 46, top: 26, right: width - 14, bottom: height - 42 };
  const place = axes(context, box, {
    x: { min: 0, max: reach, label: "offset (positions)" },
    y: { min: -1, max: 1, label: "dot product / (d/2)" },
    colors,
  });
  const [own, paper] = colors.series;
  const dash = [6, 4];
  line(context, curve(place, box, { ...chosen, base: PAPER }), paper, 1.75, dash);
  line(context, curve(place, box, chosen), own, 2.25);
  const [x, y] = [place.x(offset), place.y(values(offset, dModel, base) / (dModel / 2))];
  disc(context, x, y, 6, own);
  disc(context, x, y, 4, colors.background);

  // Names of the curves, each behind a piece of its line.
  const names = [[`base ${format(base)}`, own], [`base ${format(PAPER)}, the paper’s`, paper, dash]];
  names.forEach(([name, color, dashes], index) => {
    const level = box.bottom - 30 + 18 * index;
    write(context, name, box.right - 6, level, colors.text, "right");
    const end = box.right - 14 - context.measureText(name).width;
    line(context, [[end - 28, level], [end, level]], color, 2, dashes);
  });
  figure.box = box;
}

function describe({ dModel, base, offset }) {
  const share = (some) => format(values(offset, dModel, some) / (dModel / 2), 3);
  const paper = base === PAPER ? "" : `; with the paper’s base, ${share(PAPER)}`;
  return `At offset ${format(offset)} the dot product is ${share(base)} of its peak${paper}.`;
}

export function mount(stage, options) {
  const reach = Number(options.length ?? 150);
  return createFigure(stage, {
    controls: [
      size(options.dModel),
      choice("reach", "Offsets to", [50, 150, 1000], reach),
      baseSlider(options.base),
      slider("offset", "Read at", [0, reach, 1], options.position ?? 0, format),
    ],
    draw,
    describe,
    label: (current) =>
      `Curve of the dot product over d/2 against offsets from 0 to ${format(current.reach)}, ` +
      `at d = ${current.dModel} and base ${format(current.base)}, beside that of the paper’s base. ` +
      describe(current),
    changed(name, { elements, values, set }) {
      elements.offset.max = values.reach;
      if (values.offset > values.reach) set("offset", values.reach);
    },
    pointer: ({ x, type }, figure) => {
      if (type === "leave") return;
      const { left, right } = figure.box;
      const share = Math.min(1, Math.max(0, (x - left) / (right - left)));
      figure.set("offset", Math.round(share * figure.values.reach));
    },
  });
}
