// The position clock: each pair of dimensions is a hand that turns by its frequency.
import { createFigure, encoding, format, frequencies, player } from "./core.js";

const BASE = 10_000;

/** The angle of each hand, in radians. */
export function angles(position, dModel, base = BASE) {
  return frequencies(dModel, base).map((frequency) => position * frequency);
}

/** The sine and the cosine of each hand, in the order of posenc.sinusoidal_encoding. */
export function values(position, dModel, base = BASE) {
  return encoding(position, dModel, base);
}

/** As many columns as make the dials largest, with room for the numbers below each, if there is. */
function arrange(dials, width, height) {
  const layouts = [];
  for (const [below, narrowest] of [[54, 68], [18, 0]]) {
    for (let columns = 1; columns <= dials && width / columns >= narrowest; columns++) {
      const rows = Math.ceil(dials / columns);
      const radius = Math.min(width / columns, height / rows - below) / 2 - 6;
      layouts.push({ columns, rows, radius, below });
    }
  }
  const largest = (some) => some.reduce((best, next) => (next.radius > best.radius ? next : best));
  const full = layouts.filter(({ below, radius }) => below > 18 && radius >= 18);
  return largest(full.length ? full : layouts);
}

function drawDial(context, { x, y, radius, sine, cosine, colors }) {
  const tip = [x + radius * cosine, y - radius * sine];
  const line = (color, width, dash, from, to) => {
    context.strokeStyle = color;
    context.lineWidth = width;
    context.setLineDash(dash);
    context.beginPath();
    context.moveTo(...from);
    context.lineTo(...to);
    context.stroke();
    context.setLineDash([]);
  };
  context.strokeStyle = colors.border;
  context.lineWidth = 1.5;
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.stroke();
  line(colors.border, 1, [], [x - radius, y], [x + radius, y]);
  line(colors.border, 1, [], [x, y - radius], [x, y + radius]);
  line(colors.series[1], 2.5, [], [tip[0], y], tip);
  line(colors.series[2], 2.5, [4, 3], [x, y], [tip[0], y]);
  line(colors.series[0], Math.max(2, radius / 14), [], [x, y], tip);
  context.fillStyle = colors.series[0];
  context.beginPath();
  context.arc(...tip, Math.max(3, radius / 11), 0, 2 * Math.PI);
  context.fill();
}

function draw(context, { width, height, values: { position, dModel }, colors }) {
  const code = values(position, Number(dModel));
  const { columns, rows, radius, below } = arrange(code.length / 2, width, height);
  const [across, down] = [width / columns, height / rows];
  const spare = (down - below - 2 * radius - 12) / 2;
  context.textAlign = "center";
  context.textBaseline = "top";
  const family = getComputedStyle(document.body).fontFamily;
  for (let pair = 0; pair < code.length / 2; pair++) {
    const [sine, cosine] = code.slice(2 * pair, 2 * pair + 2);
    const x = across * ((pair % columns) + 0.5);
    const top = spare + down * Math.floor(pair / columns);
    drawDial(context, { x, y: top + radius + 6, radius, sine, cosine, colors });
    const under = top + 2 * radius + 14;
    const write = (text, line, color) => {
      context.fillStyle = color;
      context.fillText(text, x, under + 14 * line);
    };
    context.font = `600 12px ${family}`;
    write(below > 18 ? `pair ${pair}` : pair, 0, colors.text);
    if (below === 18) continue;
    context.font = `12px ${family}`;
    write(`sin ${format(sine, 2)}`, 1, colors.series[1]);
    write(`cos ${format(cosine, 2)}`, 2, colors.series[2]);
  }
}

function describe({ position, dModel }) {
  const turns = angles(position, Number(dModel)).map((angle) => angle / (2 * Math.PI));
  const last = turns.length - 1;
  return (
    `Turns made at position ${format(position, position % 1 ? 1 : 0)}: ` +
    `${format(turns[0], 2)} by pair 0, ${format(turns[last], 4)} by pair ${last}.`
  );
}

function label(current) {
  const code = values(current.position, Number(current.dModel));
  const pairs = Array.from({ length: code.length / 2 }, (_, pair) => {
    const [sine, cosine] = code.slice(2 * pair, 2 * pair + 2);
    return `pair ${pair}: sine ${format(sine, 2)}, cosine ${format(cosine, 2)}`;
  });
  return `Clock with ${pairs.length} hands. ${describe(current)} ${pairs.join("; ")}.`;
}

export function mount(stage, options) {
  const small = "small" in options;
  const speed = 1.5; // positions a second
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  let end = Infinity;
  const play = player(
    (seconds, figure) => {
      figure.set("position", figure.values.position + (calm.matches ? 1 : speed * seconds));
      return figure.values.position < end;
    },
    (figure) => {
      end = Infinity;
      figure.set("position", Math.round(figure.values.position));
    },
  );
  const position = { name: "position", value: Number(options.position ?? 0) };
  const dModel = options.dModel ?? "8";
  const range = { type: "range", label: "Position", min: 0, max: 100, step: 1, ...position };
  const show = (value) => format(value, value % 1 ? 1 : 0);
  const button = { type: "button", label: "Play", action: play };
  const controls = small
    ? [button, { ...range, show }]
    : [
        button,
        {
          type: "select",
          name: "dModel",
          label: "d",
          options: ["4", "8", "16", "32"].map((size) => [size, size]),
          value: dModel,
        },
        { type: "number", label: "Position", min: -1e6, max: 1e6, step: "any", ...position },
        { ...range, label: "Position, by slider", quiet: true },
      ];
  const figure = createFigure(stage, { controls, values: { dModel }, draw, describe, label });
  if (small && !calm.matches) {
    end = position.value + 20; // a start that ends by itself
    play(figure, figure.element("Play"));
  }
  return figure;
}
