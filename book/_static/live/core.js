// What the live figures share: controls, a sharp canvas that follows size and theme, words for it.
let count = 0;
const redraws = new Set();
const redrawAll = () => redraws.forEach((redraw) => redraw());
new MutationObserver(redrawAll).observe(document.documentElement, { attributeFilter: ["data-theme"] });
matchMedia("(forced-colors: active)").addEventListener("change", redrawAll);

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

/** A number in words for people: a true minus sign, no negative zero, thousands set apart. */
export function format(value, digits = 0) {
  const text = Math.abs(value).toLocaleString("en", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  return value < 0 && /[1-9]/.test(text) ? `−${text}` : text;
}

/** The colours of the current theme. */
function readColors(element) {
  const style = getComputedStyle(element);
  const read = (name) => style.getPropertyValue(name).trim();
  return {
    text: read("--pst-color-text-base"),
    muted: read("--pst-color-text-muted"),
    border: read("--live-line"),
    background: read("--pst-color-background"),
    surface: read("--pst-color-surface"),
    series: [1, 2, 3, 4].map((number) => read(`--live-series-${number}`)),
    hot: read("--live-hot"),
    cold: read("--live-cold"),
    zero: read("--live-zero"),
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
function ticks(low, high, wanted) {
  if (low > high) [low, high] = [high, low];
  const rough = (high - low) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const made = [];
  for (let tick = Math.ceil(low / step); tick * step <= high + 1e-9 * step; tick++) made.push(tick * step);
  return { made, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

/** Draw a frame with ticks and names; return the functions that place a value. */
export function axes(context, box, { x, y, colors, size = 13 }) {
  const { left, top, right, bottom } = box;
  const place = {
    x: (value) => left + ((value - x.min) / (x.max - x.min)) * (right - left),
    y: (value) => bottom - ((value - y.min) / (y.max - y.min)) * (bottom - top),
  };
  context.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
  context.lineWidth = 1;
  context.fillStyle = colors.text;
  context.strokeStyle = colors.border;
  context.beginPath();
  context.textAlign = "center";
  context.textBaseline = "top";
  const across = ticks(x.min, x.max, Math.min(8, (right - left) / 60));
  for (const tick of across.made) {
    context.moveTo(place.x(tick), top);
    context.lineTo(place.x(tick), bottom);
    context.fillText(format(tick, across.digits), place.x(tick), bottom + 5);
  }
  context.fillText(x.label, (left + right) / 2, bottom + 8 + size * 1.3);
  context.textAlign = "right";
  context.textBaseline = "middle";
  const up = ticks(y.min, y.max, Math.min(6, (bottom - top) / 36));
  for (const tick of up.made) {
    context.moveTo(left, place.y(tick));
    context.lineTo(right, place.y(tick));
    context.fillText(format(tick, up.digits), left - 6, place.y(tick));
  }
  context.stroke();
  context.textAlign = "left";
  context.textBaseline = "bottom";
  context.fillText(y.label, 0, top - 6);
  return place;
}

function makeControl(spec, change, figure) {
  const id = `live-${++count}`;
  if (spec.type === "button") {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", textContent: spec.label });
    button.addEventListener("click", () => spec.action(figure, button));
    return { holder: button, element: button };
  }
  const holder = document.createElement("div");
  holder.className = `live-control live-${spec.type}`;
  const label = document.createElement("label");
  Object.assign(label, { htmlFor: id, textContent: spec.label });
  if (spec.quiet) label.className = "visually-hidden"; // another control beside it shows the name
  const element = document.createElement(spec.type === "select" ? "select" : "input");
  element.id = id;
  const output = document.createElement("output");
  if (spec.type === "select") {
    for (const [value, text] of spec.options) element.add(new Option(text, value));
    holder.append(label, element);
  } else {
    element.type = spec.type;
    for (const name of ["min", "max", "step"]) if (name in spec) element[name] = spec[name];
    if (spec.type === "checkbox") holder.append(element, label);
    else holder.append(label, element, ...(spec.show ? [output] : []));
  }
  const write = (value) => {
    if (spec.type === "checkbox") element.checked = value;
    // A field that is being typed into is left alone.
    else if (spec.type !== "number") element.value = value;
    else if (element !== document.activeElement) element.value = Number(value.toFixed(2));
    if (!spec.show) return;
    output.textContent = spec.show(value);
    element.setAttribute("aria-valuetext", spec.show(value));
  };
  element.addEventListener("input", () => {
    if (spec.type === "select") return change(spec.name, element.value);
    if (spec.type === "checkbox") return change(spec.name, element.checked);
    if (element.value !== "" && element.checkValidity()) change(spec.name, element.valueAsNumber);
  });
  return { holder, element, write };
}

/** Replace the static picture of a stage by controls, a canvas and a sentence; see any figure. */
export function createFigure(stage, spec) {
  const values = { ...spec.values };
  const elements = {};
  const writers = [];
  const canvas = document.createElement("canvas");
  canvas.setAttribute("role", "img");
  const context = canvas.getContext("2d");
  const picture = document.createElement("div");
  picture.className = "live-picture";
  picture.append(canvas);
  const controls = document.createElement("div");
  controls.className = "live-controls";
  const says = document.createElement("p");
  says.className = "live-says";
  says.ariaHidden = "true"; // the canvas has the same words as its label
  const announced = document.createElement("p");
  announced.className = "visually-hidden";
  announced.setAttribute("aria-live", "polite");

  let frame = 0;
  let timer = 0;
  const redraw = () => (frame ||= requestAnimationFrame(paint));
  function paint() {
    frame = 0;
    const { width, height } = picture.getBoundingClientRect();
    if (!width || !height) return;
    const density = devicePixelRatio;
    const [across, down] = [Math.round(width * density), Math.round(height * density)];
    if (canvas.width !== across || canvas.height !== down) Object.assign(canvas, { width: across, height: down });
    context.setTransform(density, 0, 0, density, 0, 0);
    context.clearRect(0, 0, width, height);
    spec.draw(context, { width, height, values, figure, colors: readColors(stage) });
  }
  function show() {
    const words = spec.describe(values, figure);
    canvas.setAttribute("aria-label", spec.label?.(values, figure) ?? words);
    says.textContent = words;
    redraw();
    return words;
  }
  function set(name, value) {
    values[name] = value;
    for (const [written, write] of writers) if (written === name) write(value);
    const words = show();
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (stage.contains(document.activeElement)) announced.textContent = words;
    }, 400);
  }
  const figure = { stage, canvas, values, set, redraw, element: (name) => elements[name] };
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
    writers.push([control.name, write]);
    values[control.name] ??= control.value;
    write(values[control.name]);
  }

  if (spec.pointer) {
    const send = (type) => (event) => {
      const box = canvas.getBoundingClientRect();
      spec.pointer(
        {
          type,
          x: event.clientX - box.left,
          y: event.clientY - box.top,
          pressed: event.buttons > 0,
          touch: event.pointerType === "touch",
        },
        figure,
      );
    };
    canvas.addEventListener("pointerdown", send("down"));
    canvas.addEventListener("pointermove", send("move"));
    canvas.addEventListener("pointerleave", send("leave"));
  }
  if (spec.keys) {
    picture.tabIndex = 0;
    picture.setAttribute("role", "application");
    picture.setAttribute("aria-label", spec.keysLabel);
    picture.addEventListener("keydown", (event) => {
      if (!event.ctrlKey && !event.metaKey && !event.altKey && spec.keys(event, figure)) event.preventDefault();
    });
  }

  stage.replaceChildren(controls, picture, says, announced);
  stage.classList.add("live-on");
  redraws.add(redraw);
  new ResizeObserver(redraw).observe(picture);
  show();
  return figure;
}

/**
 * A button's action that plays and pauses. `step(seconds, figure)` moves on and returns whether to
 * go on; with reduced motion it is called once a second, with one whole second. `stopped(figure)`
 * is called after a pause.
 */
export function player(step, stopped = () => {}) {
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  let playing = null;
  return function toggle(figure, button) {
    if (playing) return playing();
    let before = performance.now();
    let cancel;
    const stop = () => {
      cancel();
      seen.disconnect();
      document.removeEventListener("visibilitychange", hidden);
      button.textContent = "Play";
      playing = null;
      stopped(figure);
    };
    const hidden = () => document.hidden && stop();
    const seen = new IntersectionObserver(([entry]) => entry.isIntersecting || stop());
    const next = () => {
      const handle = calm.matches ? setTimeout(tick, 1000) : requestAnimationFrame(tick);
      cancel = () => (calm.matches ? clearTimeout : cancelAnimationFrame)(handle);
    };
    const tick = () => {
      const now = performance.now();
      const seconds = calm.matches ? 1 : Math.min(0.1, (now - before) / 1000);
      before = now;
      if (step(seconds, figure)) next();
      else stop();
    };
    playing = stop;
    button.textContent = "Pause";
    document.addEventListener("visibilitychange", hidden);
    seen.observe(figure.stage);
    next();
  };
}
