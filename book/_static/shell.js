// What scrolls becomes a stop of the Tab key. The theme asks for sizes and sets them in turn, so that
// a long page is laid out again and again while it loads; this asks first, in pauses, a few at a time.
{
  const scrollers = "pre, .cell_output > .output, .pst-scrollable-table-container";
  // To ask for the size of what is folded away makes the browser lay it out, for nothing.
  const laidOut = (element) => !element.closest("details:not([open])");
  const pause = window.requestIdleCallback ?? ((work) => setTimeout(work, 20));

  const mark = (elements) => {
    const some = elements.splice(0, 20);
    const scrolls = some.map(
      (element) =>
        element.scrollWidth > element.clientWidth || element.scrollHeight > element.clientHeight,
    );
    for (const [place, element] of some.entries()) {
      if (scrolls[place]) element.tabIndex = 0;
      else if (element.tabIndex === 0) element.removeAttribute("tabindex");
    }
    if (elements.length) pause(() => mark(elements));
  };
  const update = (root) =>
    pause(() => mark([...root.querySelectorAll(scrollers)].filter(laidOut)));

  let waiting;
  addEventListener("load", () => update(document));
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(update, 300, document);
  });
  // What was folded away was left out.
  document.addEventListener("toggle", (event) => update(event.target), true);
}
