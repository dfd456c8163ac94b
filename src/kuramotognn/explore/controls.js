// Controls, and when to draw.
const SECONDS = 9; // A whole flow.
const element = (id) => document.getElementById(id);
const panels = flows.map((flow) => new Panel(flow));
const charts = data.charts.map((chart) => new Chart(chart));
let [playing, last, waiting, telling] = [false, 0, false, 0];

function setTime(t) {
  view.t = t;
  element("t").value = Math.round((1000 * t) / end);
  redraw();
  tellSoon();
}

function redraw() {
  if (!waiting) requestAnimationFrame(draw);
  waiting = true;
}

function draw(now) {
  waiting = false;
  if (playing) {
    view.t = Math.min(end, view.t + ((now - (last || now)) / 1000 / SECONDS) * end);
    last = now;
    element("t").value = Math.round((1000 * view.t) / end);
    if (view.t >= end) play(false);
    else redraw();
  }
  const words = `t = ${view.t.toFixed(2)} of ${short(end)}`;
  element("clock").textContent = words;
  element("t").setAttribute("aria-valuetext", words);
  for (const each of [...panels, ...charts]) each.draw();
  if (view.selected >= 0) element("node").textContent = describe(flows.find(isShown), view.selected);
}

function prepare() {
  for (const each of [...panels, ...charts]) each.prepare();
  redraw();
}

function play(on) {
  playing = on;
  last = 0;
  element("play").textContent = on ? "Pause" : "Play";
  element("node").setAttribute("aria-live", on ? "off" : "polite"); // Nothing is read aloud at every frame.
  if (on && view.t >= end) view.t = 0;
  redraw();
  tellSoon();
}

// For screen readers: when the time stands still, in words.
function tellSoon() {
  clearTimeout(telling);
  telling = setTimeout(() => {
    if (playing) return;
    const sentences = flows.filter(isShown).map((flow) => {
      const values = data.charts.map(({key, label}) => `${label} ${short(flow.value(key, view.t))}`);
      return `${flow.title}: ${values.join(", ")}.`;
    });
    element("summary").textContent = `At t = ${view.t.toFixed(2)}. ${sentences.join(" ")}`;
  }, 300);
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  element("theme").textContent = name === "dark" ? "Light" : "Dark";
  readColours();
  prepare();
}

function select(node) {
  view.selected = node;
  if (node < 0) element("node").textContent = "No node shown here has this name.";
  redraw();
}

function showClasses(boxes) {
  view.hidden = new Set(boxes.filter((box) => !box.checked).map((box) => Number(box.value)));
  prepare();
}

element("play").addEventListener("click", () => play(!playing));
element("t").addEventListener("input", (event) => {
  if (playing) play(false);
  setTime((end * event.target.value) / 1000);
});
element("theme").addEventListener("click", () => {
  setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
});
element("models").addEventListener("change", (event) => {
  view.model = event.target.value === "all" ? "all" : Number(event.target.value);
  prepare();
  tellSoon();
});
for (const name of ["channel", "zoom"]) {
  element(name).addEventListener("change", (event) => { view[name] = Number(event.target.value); prepare(); });
}
element("colour").addEventListener("change", (event) => { view.colour = event.target.value; prepare(); });
element("find").addEventListener("input", (event) => {
  const name = event.target.value.trim();
  select(name ? data.ids.indexOf(name) : -1);
  if (!name) element("node").textContent = "Point at a node, or type its name.";
});
document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());

const boxes = [...document.querySelectorAll("input[name=class]")];
boxes.forEach((box) => { box.nextElementSibling.style.background = data.classColours[box.value]; });
element("classes").addEventListener("change", () => showClasses(boxes));
for (const [id, checked] of [["every", true], ["none", false]]) {
  element(id).addEventListener("click", () => {
    boxes.forEach((box) => { box.checked = checked; });
    showClasses(boxes);
  });
}

for (const panel of panels) {
  for (const picture of [panel.graph, panel.circle]) {
    picture.canvas.addEventListener("pointermove", (event) => {
      const node = picture.nearest(event);
      const tip = element("tip");
      tip.hidden = node < 0;
      if (node < 0) return;
      tip.textContent = describe(panel.flow, node);
      tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
      tip.style.top = `${Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)}px`;
    });
    picture.canvas.addEventListener("pointerleave", () => { element("tip").hidden = true; });
    picture.canvas.addEventListener("click", (event) => {
      const node = picture.nearest(event);
      if (node < 0) return;
      element("find").value = data.ids[node];
      select(node);
    });
  }
}
new ResizeObserver(prepare).observe(element("panels"));
drawLegend();
setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
setTime(0);
