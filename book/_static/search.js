// What a result shows is text of the page: no TeX beside formulas, no buttons, no list of sections.
/* global Search */
const pageText = Search.htmlToText;
const noText = "annotation, button, footer, nav, noscript, #jb-print-docs-body, .bd-header-article";

Search.htmlToText = (html, anchor) => {
  const page = new DOMParser().parseFromString(html, "text/html");
  for (const element of page.querySelectorAll(noText)) element.remove();
  return pageText(page.documentElement.outerHTML, anchor);
};
