// Draw equations; name what the theme leaves nameless; break lines of text in tables of numbers; let what is wider
// than the page be scrolled by keyboard.
renderMathInElement(document.body, {
  delimiters: [
    { left: "\\[", right: "\\]", display: true },
    { left: "\\(", right: "\\)", display: false },
  ],
});
document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
for (const cell of document.querySelectorAll(".sortable td")) {
  if (cell.textContent.length > 30) cell.classList.add("text");
}
const reachable = () => {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap, .dataframe, .arithmatex, .md-typeset pre, .md-typeset pre > code")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }
};
addEventListener("load", reachable);
addEventListener("resize", reachable);
