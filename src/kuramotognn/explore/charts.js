// Measures against time, one line for each model; a click chooses the time.
const area = {left: 52, right: 292, top: 8, bottom: 96, width: 300, height: 116};
const svg = (name, attributes, parent) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  parent?.append(element);
  return element;
};

class Chart {
  constructor({key, label, log}) {
    Object.assign(this, {key, label, log});
    const box = document.createElement("div");
    box.className = "chart";
    const head = document.createElement("h3");
    head.textContent = label;
    this.words = document.createElement("p");
    this.root = svg("svg", {viewBox: `0 0 ${area.width} ${area.height}`, role: "img"});
    box.append(head, this.words, this.root);
    document.getElementById("charts").append(box);
    this.range();
    this.axes();
    this.lines = flows.map((flow) => this.line(flow));
    this.cursor = svg("line", {class: "cursor", y1: area.top, y2: area.bottom}, this.root);
    this.root.addEventListener("click", (event) => {
      const frame = this.root.getBoundingClientRect();
      const x = ((event.clientX - frame.left) / frame.width) * area.width;
      setTime(end * Math.max(0, Math.min(1, (x - area.left) / (area.right - area.left))));
    });
  }

  range() {
    const all = flows.flatMap((flow) => flow.measures[this.key]);
    const positive = all.filter((value) => value > 0);
    this.log = this.log && positive.length > 0;
    const shown = this.log ? positive : all;
    const [low, high] = this.key === "accuracy" ? [0, 1] : [Math.min(...shown), Math.max(...shown)];
    this.low = this.scaled(low);
    this.high = Math.max(this.scaled(high), this.low + 1e-9);
    this.ends = [low, high];
  }

  scaled(value) {
    return this.log ? Math.log10(value) : value;
  }

  x(t) {
    return area.left + (t / end) * (area.right - area.left);
  }

  y(value) {
    const share = (this.scaled(Math.max(value, this.ends[0])) - this.low) / (this.high - this.low);
    return area.bottom - share * (area.bottom - area.top);
  }

  axes() {
    svg("path", {class: "axis", fill: "none", d: `M${area.left} ${area.top}V${area.bottom}H${area.right}`}, this.root);
    const write = (text, x, y, anchor) => {
      svg("text", {x, y, "text-anchor": anchor}, this.root).textContent = text;
    };
    write(short(this.ends[1]), area.left - 5, area.top + 7, "end");
    write(short(this.ends[0]), area.left - 5, area.bottom + 1, "end");
    write("0", area.left, area.height - 5, "start");
    write(`t = ${short(end)}`, area.right, area.height - 5, "end");
    if (this.log) write("log scale", (area.left + area.right) / 2, area.height - 5, "middle");
  }

  line(flow) {
    const points = flow.times.map((t, k) => `${this.x(t).toFixed(1)},${this.y(flow.measures[this.key][k]).toFixed(1)}`);
    return svg("polyline", {points: points.join(" "), stroke: flow.colour, "stroke-dasharray": flow.dashes}, this.root);
  }

  draw() {
    const x = this.x(view.t).toFixed(1);
    this.cursor.setAttribute("x1", x);
    this.cursor.setAttribute("x2", x);
    const shown = flows.filter(isShown);
    const values = shown.map((flow) => short(flow.value(this.key, view.t)));
    this.words.textContent = `at t: ${values.join(" and ")}`;
  }

  prepare() {
    flows.forEach((flow, place) => this.lines[place].classList.toggle("other", !isShown(flow)));
    const changes = flows.map((flow) => {
      const values = flow.measures[this.key];
      return `${flow.title} from ${short(values[0])} to ${short(values.at(-1))}`;
    });
    this.root.setAttribute("aria-label", `${this.label} against time: ${changes.join("; ")}`);
  }
}

function drawLegend() {
  for (const flow of flows) {
    const entry = document.createElement("li");
    const sample = svg("svg", {viewBox: "0 0 36 10"}, entry);
    svg("line", {x1: 0, x2: 36, y1: 5, y2: 5, stroke: flow.colour, "stroke-dasharray": flow.dashes}, sample);
    entry.append(flow.title);
    document.getElementById("legend").append(entry);
  }
}
