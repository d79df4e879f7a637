// What figures share: controls, a sharp canvas that follows size and theme, and words for it.
const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
let count = 0;
const redraws = [];
new MutationObserver(() => redraws.forEach((redraw) => redraw())).observe(document.documentElement, {
  attributeFilter: ["data-theme"],
});

/** Radians per position of each pair, as in posenc.inverse_frequencies. */
export function frequencies(dModel, base) {
  return Array.from({ length: dModel / 2 }, (_, pair) => base ** ((-2 * pair) / dModel));
}

/** One row of numbers for a position, as posenc.sinusoidal_encoding; layout "interleaved" or "half". */
export function encoding(position, dModel, base = 10_000, layout = "interleaved") {
  const angles = frequencies(dModel, base).map((frequency) => position * frequency);
  return layout === "half"
    ? [...angles.map(Math.sin), ...angles.map(Math.cos)]
    : angles.flatMap((angle) => [Math.sin(angle), Math.cos(angle)]);
}

/** A number for people: a true minus sign, no negative zero, thousands set apart. */
export function format(value, digits = 0) {
  const fraction = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return value.toLocaleString("en", { ...fraction, signDisplay: "negative" }).replace("-", "−");
}

/** The colours of the current theme. */
function readColors(element) {
  const read = (name) => getComputedStyle(element).getPropertyValue(name).trim();
  const names = ["border", "hot", "cold", "zero"];
  return {
    ...Object.fromEntries(names.map((name) => [name, read(`--live-${name}`)])),
    text: read("--pst-color-text-base"),
    background: read("--pst-color-background"),
    series: [1, 2, 3, 4].map((number) => read(`--live-series-${number}`)),
  };
}

const channels = (color) => color.match(/[0-9a-f]{2}/gi).map((pair) => parseInt(pair, 16));

/** The colour of a value from -1 to 1, as [red, green, blue]. */
export function diverging(value, colors) {
  const share = Math.min(1, Math.abs(value));
  const end = channels(value < 0 ? colors.cold : colors.hot);
  return channels(colors.zero).map((from, index) => Math.round(from + share * (end[index] - from)));
}

/** Round steps for about `wanted` ticks of an axis. */
function ticks({ min, max }, wanted) {
  const [low, high] = min < max ? [min, max] : [max, min];
  const rough = (high - low) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const made = [];
  for (let tick = Math.ceil(low / step); tick * step <= high + 1e-9 * step; tick++) made.push(tick * step);
  return made.map((tick) => [tick, format(tick, digits)]);
}

/** Draw a grid with numbers and names; return the functions that place a value. */
export function axes(context, { left, top, right, bottom }, { x, y, colors }) {
  const place = {
    x: (value) => left + ((value - x.min) / (x.max - x.min)) * (right - left),
    y: (value) => bottom - ((value - y.min) / (y.max - y.min)) * (bottom - top),
  };
  for (const [tick, text] of ticks(x, Math.min(8, (right - left) / 60))) {
    line(context, [[place.x(tick), top], [place.x(tick), bottom]], colors.border, 1);
    write(context, text, place.x(tick), bottom + 12, colors.text);
  }
  for (const [tick, text] of ticks(y, Math.min(6, (bottom - top) / 36))) {
    line(context, [[left, place.y(tick)], [right, place.y(tick)]], colors.border, 1);
    write(context, text, left - 6, place.y(tick), colors.text, "right");
  }
  write(context, x.label, (left + right) / 2, bottom + 31, colors.text);
  write(context, y.label, 0, top - 14, colors.text, "left");
  return place;
}

/** An element with some attributes and content. */
function make(tag, attributes = {}, ...content) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...content);
  return element;
}

function makeControl({ type, label, options, quiet, show, log, action, ...spec }, change, figure) {
  if (type === "button") {
    const button = make("button", { type }, label);
    button.addEventListener("click", () => action(figure, button));
    return { holder: button, element: button };
  }
  const id = `live-${++count}`;
  // The name is hidden where another control beside this one shows it.
  const name = make("label", { for: id, ...(quiet && { class: "visually-hidden" }) }, label);
  const element = type === "select" ? make("select", { id }) : make("input", { id, type });
  for (const [value, text] of options ?? []) element.add(new Option(text, value));
  for (const limit of ["min", "max", "step"]) if (limit in spec) element[limit] = spec[limit];
  const shown = make("span", { class: "live-value" });
  const parts = type === "checkbox" ? [element, name] : [name, element];
  const holder = make("div", { class: `live-control live-${type}` }, ...parts, ...(show ? [shown] : []));
  const write = (value) => {
    if (type === "checkbox") element.checked = value;
    else if (type !== "number" && !log) element.value = value;
    // A field that is being typed into is left alone, and so is a slider that rounds.
    else if (element !== document.activeElement) element.value = log ? Math.log10(value) : Number(value.toFixed(2));
    if (!show) return;
    shown.textContent = show(value);
    element.setAttribute("aria-valuetext", show(value));
  };
  element.addEventListener("input", () => {
    const number = log ? Math.round(10 ** element.value) : Number(element.value);
    const value = type === "checkbox" ? element.checked : Number.isNaN(number) ? element.value : number;
    if (element.value !== "" && element.checkValidity()) change(spec.name, value);
  });
  return { holder, element, write };
}

/** Replace the picture of a stage by controls, a canvas and a sentence. */
export function createFigure(stage, spec) {
  const values = { ...spec.values };
  const elements = {};
  const writers = {};
  const keys = spec.move && { tabindex: 0, role: "application", "aria-label": spec.moveLabel };
  const canvas = make("canvas", { role: "img" });
  const context = canvas.getContext("2d");
  const picture = make("div", { class: "live-picture", ...keys }, canvas);
  const controls = make("div", { class: "live-controls" });
  // Shown alone, since the canvas has the same words as its label.
  const says = make("p", { class: "live-says", "aria-hidden": true });
  const announced = make("p", { class: "visually-hidden", "aria-live": "polite" });

  let frame = 0;
  let timer = 0;
  const redraw = () => (frame ||= requestAnimationFrame(paint));
  function paint() {
    frame = 0;
    const { width, height } = picture.getBoundingClientRect();
    if (!width || !height) return;
    const density = devicePixelRatio;
    const [across, down] = [width, height].map((side) => Math.round(side * density));
    if (canvas.width !== across) canvas.width = across;
    if (canvas.height !== down) canvas.height = down;
    context.setTransform(density, 0, 0, density, 0, 0);
    context.clearRect(0, 0, width, height);
    spec.draw(context, { width, height, values, figure, colors: readColors(stage) });
  }
  function update() {
    const words = spec.describe(values, figure);
    canvas.setAttribute("aria-label", spec.label?.(values, figure) ?? words);
    says.textContent = words;
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (stage.contains(document.activeElement)) announced.textContent = words;
    }, 400);
    redraw();
  }
  function set(name, value) {
    values[name] = value;
    for (const write of writers[name] ?? []) write(value);
    update();
  }
  const figure = { ...spec.state, stage, canvas, values, elements, set, update };
  const change = (name, value) => {
    values[name] = value;
    spec.changed?.(name, figure);
    set(name, values[name]);
  };
  for (const control of spec.controls) {
    const { holder, element, write } = makeControl(control, change, figure);
    controls.append(holder);
    elements[control.name ?? control.label] ??= element;
    if (!write) continue;
    (writers[control.name] ??= []).push(write);
    values[control.name] ??= control.value;
    write(values[control.name]);
  }

  for (const type of spec.pointer ? ["down", "move", "leave"] : []) {
    canvas.addEventListener(`pointer${type}`, ({ clientX, clientY }) => {
      const { left, top } = canvas.getBoundingClientRect();
      spec.pointer({ type, x: clientX - left, y: clientY - top }, figure);
    });
  }
  picture.addEventListener("keydown", (event) => {
    const step = spec.move && ARROWS[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    spec.move(step.map((places) => (event.shiftKey ? 10 : 1) * places), figure);
    update();
  });

  stage.replaceChildren(controls, picture, says, announced);
  redraws.push(redraw);
  new ResizeObserver(redraw).observe(picture);
  update();
  return figure;
}

/**
 * A button's action that plays and pauses. `step(seconds, figure)` moves on and returns whether to
 * go on; with reduced motion it is called once a second. `stopped(figure)` is called after a pause.
 */
export function player(step, stopped) {
  let stop = null;
  return (figure, button) => {
    if (stop) return stop();
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const seen = new IntersectionObserver(([entry]) => entry.isIntersecting || end());
    let before = performance.now();
    const next = () => (calm ? setTimeout(tick, 1000) : requestAnimationFrame(tick));
    const tick = () => {
      if (stop !== end) return;
      const seconds = (performance.now() - before) / 1000;
      before += 1000 * seconds;
      if (step(calm ? 1 : Math.min(0.1, seconds), figure)) next();
      else end();
    };
    const end = () => {
      stop = null;
      seen.disconnect();
      button.textContent = "Play";
      stopped(figure);
    };
    stop = end;
    button.textContent = "Pause";
    seen.observe(figure.stage);
    next();
  };
}

/** Draw a line through points. */
export function line(context, points, color, width = 2, dash = []) {
  Object.assign(context, { strokeStyle: color, lineWidth: width });
  context.setLineDash(dash);
  context.beginPath();
  for (const point of points) context.lineTo(...point);
  context.stroke();
  context.setLineDash([]);
}

/** Draw a filled disc. */
export function disc(context, x, y, radius, color) {
  context.fillStyle = color;
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fill();
}

/** Draw a circle with hands, each an angle, a colour and perhaps a dash. */
export function dial(context, x, y, radius, hands, colors) {
  disc(context, x, y, radius + 1.5, colors.border);
  disc(context, x, y, radius, colors.background);
  for (const [angle, color, dash] of hands) {
    const tip = [x + radius * Math.cos(angle), y - radius * Math.sin(angle)];
    line(context, [[x, y], tip], color, Math.max(2, radius / 16), dash);
    disc(context, ...tip, Math.max(3, radius / 10), color);
  }
}

/** Write words with their middle, or another side, at a point. */
export function write(context, text, x, y, color, align = "center", size = 13) {
  const font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
  Object.assign(context, { font, fillStyle: color, textAlign: align, textBaseline: "middle" });
  context.fillText(text, x, y);
}

/** A slider, and a choice of values with or without names of their own, for createFigure. */
export const slider = (name, label, [min, max, step], value, show) => {
  return { type: "range", name, label, min, max, step, value: Number(value), show };
};
export const choice = (name, label, values, value) => {
  const options = values.map((one) => (one.map ? one : [one, one > 0 ? format(one) : one]));
  return { type: "select", name, label, options, value: value > 0 ? Number(value) : String(value) };
};

/** A slider by powers of ten; a choice of d; and a slider of the base. */
export const logSlider = (...slid) => ({ ...slider(...slid, format), log: true });
export const size = (value = 64) => choice("dModel", "d", [4, 8, 16, 32, 64, 128, 256, 512], value);
export const baseSlider = (value = 10_000) => logSlider("base", "Base", [0.25, 6, 0.25], value);
