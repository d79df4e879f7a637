// The theme takes the focus off these buttons when they are pressed, and whoever works by keyboard
// would start again at the top of the page.
addEventListener("DOMContentLoaded", () => {
  const buttons = ".theme-switch-button, .search-button, .primary-toggle, .secondary-toggle";
  for (const button of document.querySelectorAll(buttons)) button.blur = () => {};
});
