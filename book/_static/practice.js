// Quizzes that answer at once, and lines that are moved into their order. Without this script both
// are lists with letters, and the answer is behind the browser's own toggle.
//
// A wrong choice shows the idea behind it and no more, so that another try is still a try; the
// toggle holds the rest. Arrow keys only move, and Space or Enter chooses: if moving chose, as it
// does by default, the keyboard would be told about answers that nobody chose.

// Kept until the tab is closed. Where a browser refuses, practice works without memory.
function memory(id) {
  const entry = `practice ${location.pathname} ${id}`;
  const attempt = (act) => {
    try {
      return act() ?? "";
    } catch {
      return "";
    }
  };
  return {
    read: () => attempt(() => sessionStorage.getItem(entry)),
    write: (text) => attempt(() => sessionStorage.setItem(entry, text)),
  };
}

function make(html, ...children) {
  const template = document.createElement("template");
  template.innerHTML = html;
  const element = template.content.firstChild;
  element.append(...children);
  return element;
}

function button(html, act) {
  const made = make(`<button type="button" ${html}</button>`);
  made.addEventListener("click", act);
  return made;
}

// The directive gives the right letters, in order, as data-answer. The last part of the answer is
// a list of notes, one for each other letter.
function read(box, id) {
  const list = box.querySelector(":scope > ol");
  const { answer } = list.dataset;
  const items = [...list.children];
  const letters = items.map((_, place) => String.fromCharCode(65 + place));
  const wrong = letters.filter((letter) => !answer.includes(letter));
  const parts = [...box.querySelector(":scope > details > div").children];
  const notes = wrong.length ? [...parts.pop().children] : [];
  const why = (letter) => {
    const found = wrong.includes(letter) ? [...notes[wrong.indexOf(letter)].children] : parts;
    return found.map((part) => part.cloneNode(true));
  };
  list.classList.add("practice-on");
  const told = make('<div class="practice-told" role="status"></div>');
  return { list, items, letters, answer, wrong, why, kept: memory(id), told };
}

// Signs differ in shape, so that colour is never alone.
const sign = (right) => make(`<span aria-hidden="true">${right ? "✓" : "✗"} </span>`);

function verdict(right, text, parts = [make("<p></p>")]) {
  parts[0].prepend(sign(right), make(`<strong>${text}</strong>`));
  return make(`<div class="${right ? "right" : "wrong"}"></div>`, ...parts);
}

function question(box, id, changed) {
  const { list, items, letters, answer, why, kept, told } = read(box, id);
  let tries = [];

  const radios = items.map((item, place) => {
    const letter = make(`<span class="letter">${letters[place]}. </span>`);
    const radio = make(`<input type="radio" name="${id}" autocomplete="off">`);
    const words = [...item.children].flatMap(({ childNodes }) => [...childNodes]);
    const text = make("<span></span>", ...words);
    const tried = make('<span class="tried"></span>');
    item.replaceChildren(make("<label></label>", letter, radio, text, tried));
    item.setAttribute("role", "none");
    radio.addEventListener("change", () => {
      show([...tries, letters[place]]);
      changed();
    });
    return radio;
  });
  box.firstElementChild.id ||= `${id}-text`;
  list.setAttribute("role", "radiogroup");
  list.setAttribute("aria-labelledby", box.firstElementChild.id);
  list.setAttribute("aria-describedby", `${id}-keys`);
  list.addEventListener("keydown", (event) => {
    const place = radios.indexOf(event.target);
    if (place < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (step) radios.at((place + step) % radios.length).focus();
    else if (event.key === "Enter") radios[place].click();
    else return;
    event.preventDefault();
  });

  function show(chosen) {
    tries = chosen;
    kept.write(tries.join(""));
    const last = tries.at(-1);
    radios.forEach((radio, place) => {
      const right = letters[place] === answer;
      const words = make(`<span class="visually-hidden">, ${right ? "right" : "not right"}</span>`);
      radio.checked = letters[place] === last;
      radio.parentElement.lastChild.replaceChildren(
        ...(tries.includes(letters[place]) ? [sign(right), words] : []),
      );
    });
    told.replaceChildren();
    if (last === answer) told.append(verdict(true, "", why(last)));
    else if (last) told.append(verdict(false, "Not right. ", why(last)));
  }

  show([...kept.read()].filter((letter) => letters.includes(letter)));
  const keys = "Arrow keys move, Space chooses.";
  list.after(make(`<p class="practice-keys" id="${id}-keys">${keys}</p>`), told);
  return {
    first: () => tries[0],
    right: () => tries[0] === answer,
    again: () => show([]),
    focus: () => radios[0].focus(),
  };
}

function quiz(box, id) {
  const questions = [...box.querySelectorAll(":scope > .question")].map((each, number) =>
    question(each, `${id}-${number + 1}`, count),
  );
  const score = make("<span></span>");
  const again = button(">Start again", () => {
    for (const each of questions) each.again();
    count();
    questions[0].focus();
  });

  function count() {
    const all = questions.length;
    const tried = questions.filter((each) => each.first()).length;
    const right = questions.filter((each) => each.right()).length;
    score.textContent = `${tried} of ${all} answered, ${right} right at the first try.`;
    score.hidden = again.hidden = !tried;
  }

  count();
  box.append(make('<div class="practice-controls"></div>', score, again));
}

function parsons(box, id) {
  const { list, items, letters, answer, wrong, why, kept, told } = read(box, id);
  const moved = make('<div class="visually-hidden" role="status"></div>');
  const uses = items.map((item, place) => {
    const line = `line ${letters[place]}`;
    const grip = make(`<span class="letter grip">${letters[place]}.</span>`);
    const use = make(`<input type="checkbox" autocomplete="off" aria-label="Use ${line}" checked>`);
    use.addEventListener("change", () => save());
    item.prepend(grip, ...(wrong.length ? [use] : []));
    item.append(
      button(`aria-label="Move ${line} up">↑`, () => press(item, -1)),
      button(`aria-label="Move ${line} down">↓`, () => press(item, 1)),
    );
    grip.addEventListener("pointerdown", (event) => grip.setPointerCapture(event.pointerId));
    grip.addEventListener("pointermove", (event) => {
      if (grip.hasPointerCapture(event.pointerId)) follow(item, event.clientY);
    });
    return use;
  });

  // The order as letters; a small one is left out.
  const order = () =>
    [...list.children].map((item) => {
      const place = items.indexOf(item);
      return uses[place].checked ? letters[place] : letters[place].toLowerCase();
    });

  function save(checked = "") {
    kept.write(order().join("") + checked);
    items.forEach((item, place) => {
      item.classList.toggle("unused", !uses[place].checked);
      item.classList.remove("fault");
    });
  }

  // The neighbour changes its place, so that this line keeps the focus and the pointer.
  function move(item, step) {
    const other = step < 0 ? item.previousElementSibling : item.nextElementSibling;
    if (step < 0 && other) item.after(other);
    else if (other) item.before(other);
    save();
  }

  function press(item, step) {
    move(item, step);
    item.scrollIntoView({ block: "nearest" });
    const letter = letters[items.indexOf(item)];
    const place = [...list.children].indexOf(item) + 1;
    moved.textContent = `Line ${letter} is number ${place} of ${items.length}.`;
  }

  // Two lines change places where the pointer would still be on its own afterwards.
  function follow(item, y) {
    const { height } = item.getBoundingClientRect();
    const next = item.nextElementSibling?.getBoundingClientRect();
    const last = item.previousElementSibling?.getBoundingClientRect();
    if (next && y > Math.max(next.top, next.bottom - height)) move(item, 1);
    if (last && y < Math.min(last.bottom, last.top + height)) move(item, -1);
  }

  function check() {
    save("!");
    const used = order();
    const extra = wrong.find((letter) => used.includes(letter));
    const lines = used.filter((letter) => answer.includes(letter));
    const ordered = [...answer].filter((letter) => lines.includes(letter));
    const fault = lines.find((letter, place) => letter !== ordered[place]);
    const missing = lines.length < answer.length;
    const say = (...what) => told.append(verdict(...what));
    told.replaceChildren();
    if (extra) say(false, "Does not belong. ", why(extra));
    if (fault) say(false, `Line ${fault} is the first that is out of place.`);
    if (missing) say(false, "A line that belongs is left out.");
    if (!extra && !fault && !missing) say(true, "All lines are in order.");
    for (const letter of [extra, fault]) items[letters.indexOf(letter)]?.classList.add("fault");
  }

  function arrange(saved) {
    for (const letter of saved) {
      const place = letters.indexOf(letter.toUpperCase());
      uses[place].checked = letter === letters[place];
      list.append(items[place]);
    }
    told.replaceChildren();
    save();
  }

  const [saved, checked] = kept.read().split(/(?=!)/);
  if ([...saved.toUpperCase()].sort().join("") === letters.join("")) {
    arrange(saved);
    if (checked) check();
  }
  const again = button(">Start again", () => arrange(letters));
  const controls = make('<div class="practice-controls"></div>', button(">Check", check), again);
  list.after(controls, told, moved);
}

document.querySelectorAll(".quiz").forEach((box, number) => quiz(box, `quiz-${number + 1}`));
document.querySelectorAll(".parsons").forEach((box, number) => parsons(box, `lines-${number + 1}`));
