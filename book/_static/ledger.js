// Search and sort the claims ledger. Without this script the whole table is there, unsorted.
const table = document.querySelector("table.ledger");
const body = table.tBodies[0];
const rows = [...body.rows];
const collator = new Intl.Collator("en", { numeric: true });
const plain = (text) => text.normalize("NFKC").toLowerCase();
let texts; // of all rows, from the first search on

const form = document.createElement("form");
form.className = "ledger-search";
form.setAttribute("role", "search");
form.innerHTML =
  '<label for="ledger-query">Search the ledger, in English or Chinese</label>' +
  '<input id="ledger-query" type="search" autocomplete="off"><output for="ledger-query"></output>';
const [field, count] = [form.querySelector("input"), form.querySelector("output")];

function search() {
  texts ??= new Map(rows.map((row) => [row, plain(row.textContent)]));
  const words = plain(field.value).split(/\s+/).filter(Boolean);
  for (const row of rows) row.hidden = !words.every((word) => texts.get(row).includes(word));
  tell();
}

function tell() {
  count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} claims`;
}

function sort(cell) {
  const ascending = cell.getAttribute("aria-sort") !== "ascending";
  const key = (row) => row.cells[cell.cellIndex].textContent.trim();
  const sorted = [...rows].sort((a, b) => collator.compare(key(a), key(b)));
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  cell.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  body.append(...(ascending ? sorted : sorted.reverse()));
}

// A link to a row that the search hides would lead nowhere.
function reveal() {
  const row = document.getElementById(location.hash.slice(1));
  if (row && row.hidden) {
    field.value = "";
    search();
    row.scrollIntoView();
  }
}

for (const cell of [...table.tHead.rows[0].cells].slice(0, 3)) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = cell.textContent.trim();
  button.addEventListener("click", () => sort(cell));
  cell.replaceChildren(button);
}
form.addEventListener("submit", (event) => event.preventDefault());
field.addEventListener("input", search);
addEventListener("hashchange", reveal);
tell();
document.querySelector(".ledger-place").append(form);

// The link "dispute this" of a row leads to a section that does not know which row.
const disputed = document.getElementById(`ledger-${new URLSearchParams(location.search).get("row")}`);
const section = document.getElementById("ledger-dispute")?.closest("section");
if (disputed && section) {
  const note = document.createElement("p");
  note.className = "ledger-disputed";
  const link = document.createElement("a");
  link.href = `#${disputed.id}`;
  link.textContent = disputed.id.replace("ledger-", "");
  note.append("You came from row ", link, ".");
  section.querySelector("h2, h3").after(note);
}
