// Bring the figures of a page to life as they come near the screen; each loads its module then.
async function start(stage) {
  const options = { ...stage.dataset };
  if (options.data) options.data = JSON.parse(options.data);
  const { mount } = await import(`./${options.figure}.js`);
  mount(stage, options);
}

const near = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      start(target);
    }
  },
  { rootMargin: "100% 0%" },
);
for (const stage of document.querySelectorAll(".live")) near.observe(stage);
