// Tables of class "sortable", or inside an element of this class: a click on the head of a column sorts by it.
// Numbers go from large to small first, words from A to Z.
for (const table of document.querySelectorAll("table.sortable, .sortable table")) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const key = (row, column) => {
    const { dataset, textContent } = row.cells[column];
    const text = dataset.value ?? textContent.trim().replace("\u2212", "-");
    const number = parseFloat(text);
    return text === "" || text === "\u2013" ? null : Number.isNaN(number) ? text : number;
  };
  heads.forEach((head, column) => {
    if (!head.querySelector("button")) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
    }
    head.firstElementChild.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "descending" || (column === 0 && !head.hasAttribute("aria-sort"));
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "ascending" : "descending");
      const sign = down ? 1 : -1;
      [...body.rows].sort((first, second) => {
        const a = key(first, column), b = key(second, column);
        if (a === null || b === null) return (a === null) - (b === null);
        return sign * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
      }).forEach((row) => body.append(row));
    });
  });
}
