// The sinusoidal table as a map of colours, whose cells can be read.
import { axes, baseSlider, choice, createFigure, diverging, encoding, format, frequencies, size, slider, write } from "./core.js";

/** Rows of numbers, as posenc.sinusoidal_table. */
export function values(length, dModel, { start = 0, base = 10_000, layout = "interleaved" } = {}) {
  return Array.from({ length }, (_, row) => encoding(start + row, dModel, base, layout));
}

/** The pair of a column, and whether it holds the sine or the cosine. */
export function columnOf(column, dModel, layout) {
  const half = dModel / 2;
  return layout === "half"
    ? { pair: column % half, part: column < half ? "sine" : "cosine" }
    : { pair: column >> 1, part: column % 2 ? "cosine" : "sine" };
}

function describe({ dModel, base, layout }, { cell }) {
  const { pair, part } = columnOf(cell.column, dModel, layout);
  const value = encoding(cell.row, dModel, base, layout)[cell.column];
  const frequency = frequencies(dModel, base)[pair];
  return (
    `Position ${cell.row}, dimension ${cell.column}: ${format(value, 4)}, the ${part} of pair ${pair}, ` +
    `which has turned by ${cell.row} × ${frequency.toPrecision(3)} rad.`
  );
}

/** The table at one pixel a number, to be stretched. */
function paint(rows, colors) {
  const map = new OffscreenCanvas(rows[0].length, rows.length);
  const context = map.getContext("2d");
  const image = context.createImageData(map.width, map.height);
  const pixels = new Uint32Array(image.data.buffer);
  const shades = Array.from({ length: 255 }, (_, step) => {
    const [red, green, blue] = diverging((step - 127) / 127, colors);
    return (255 << 24) | (blue << 16) | (green << 8) | red;
  });
  rows.flat().forEach((value, index) => (pixels[index] = shades[Math.round(value * 127) + 127]));
  context.putImageData(image, 0, 0);
  return map;
}

function draw(context, { width, height, values: { dModel, base, length, layout }, figure, colors }) {
  const box = { left: 42, top: 26, right: width - 12, bottom: height - 42 };
  const place = axes(context, box, {
    x: { min: -0.5, max: dModel - 0.5, label: "dimension" },
    y: { min: length - 0.5, max: -0.5, label: "position" },
    colors,
  });
  const map = paint(values(length, dModel, { base, layout }), colors);
  const [wide, high] = [box.right - box.left, box.bottom - box.top];
  // Blocks stay sharp unless there are more numbers than points on the screen.
  context.imageSmoothingEnabled = wide * devicePixelRatio < dModel;
  context.drawImage(map, box.left, box.top, wide, high);

  const bar = context.createLinearGradient(box.right - 110, 0, box.right - 20, 0);
  for (const value of [-1, 0, 1]) bar.addColorStop((value + 1) / 2, `rgb(${diverging(value, colors)})`);
  context.fillStyle = bar;
  context.fillRect(box.right - 110, 6, 90, 11);
  write(context, "−1", box.right - 124, 12, colors.text);
  write(context, "1", box.right - 11, 12, colors.text);

  // Two outlines, one of which stands out from any colour.
  const { row, column } = figure.cell;
  const [left, top] = [place.x(column - 0.5), place.y(row - 0.5)];
  for (const [color, grow] of [[colors.background, 2.5], [colors.text, 1]]) {
    Object.assign(context, { strokeStyle: color, lineWidth: 1.75 });
    const sides = [wide / dModel, high / length].map((side) => Math.max(4, side) + 2 * grow);
    context.strokeRect(left - grow, top - grow, ...sides);
  }
  figure.box = box;
}

/** Choose a cell, the nearest that the table has. */
function choose(figure, row, column) {
  const { length, dModel } = figure.values;
  figure.cell = {
    row: Math.min(Math.max(row, 0), length - 1),
    column: Math.min(Math.max(column, 0), dModel - 1),
  };
}

export function mount(stage, options) {
  const cell = { row: 5, column: 2 };
  return createFigure(stage, {
    state: { cell },
    controls: [
      size(options.dModel),
      choice("layout", "Layout", [["interleaved", "interleaved"], ["half", "halves"]], options.layout ?? "interleaved"),
      baseSlider(options.base),
      slider("length", "Length", [4, 512, 4], options.length ?? 60, format),
    ],
    draw,
    describe,
    changed: (name, figure) => choose(figure, figure.cell.row, figure.cell.column),
    label: (current, figure) =>
      `Map of ${current.length} positions by ${current.dModel} dimensions, base ${format(current.base)}, ` +
      `${current.layout === "half" ? "all sines first" : "sines and cosines in turn"}. ` +
      describe(current, figure),
    moveLabel: "Cells of the table. The arrow keys choose one.",
    move: ([down, across], figure) => choose(figure, figure.cell.row + down, figure.cell.column + across),
    pointer({ x, y }, figure) {
      const { left, top, right, bottom } = figure.box;
      if (x < left || x >= right || y < top || y >= bottom) return;
      const { dModel, length } = figure.values;
      const row = Math.floor(((y - top) / (bottom - top)) * length);
      choose(figure, row, Math.floor(((x - left) / (right - left)) * dModel));
      figure.update();
    },
  });
}
