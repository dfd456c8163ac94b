// What the page shows: the graph, and the flow of each model at a time t.
const data = JSON.parse(document.getElementById("data").textContent);
const arrays = {Int16Array, Uint16Array, Uint8Array};
const unpack = ({type, data: text}) =>
  new arrays[type](Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);

const positions = unpack(data.positions);
const graph = {
  count: data.ids.length,
  label: unpack(data.label),
  edges: unpack(data.edges),
  x: Float32Array.from(data.ids, (_, node) => positions[2 * node] / 65535),
  y: Float32Array.from(data.ids, (_, node) => positions[2 * node + 1] / 65535),
};

class Flow {
  constructor(record, place) {
    Object.assign(this, record, {place});
    this.stored = unpack(record.phases);
    this.predicted = unpack(record.predictions);
    this.part = unpack(record.parts);
    this.end = this.times.at(-1);
    this.colour = data.lines[place % data.lines.length];
    this.dashes = ["", "7 4", "2 3", "9 3 2 3"][place % 4];
    this.phase = new Float32Array(graph.count);
  }

  // The stored time before t, and how far t is on the way from it to the next one.
  at(t) {
    const {times} = this;
    let k = 0;
    while (k < times.length - 2 && times[k + 1] <= t) k += 1;
    return [k, Math.min(1, (t - times[k]) / (times[k + 1] - times[k]))];
  }

  // Angles of all nodes relative to their median, enlarged by zoom.
  angles(channel, t, zoom) {
    const [k, share] = this.at(t);
    const {count} = graph;
    const before = (channel * this.times.length + k) * count;
    const unit = this.unit * zoom;
    for (let node = 0; node < count; node += 1) {
      const first = this.stored[before + node];
      this.phase[node] = unit * (first + share * (this.stored[before + count + node] - first));
    }
    return this.phase;
  }

  prediction(node, t) {
    const [k, share] = this.at(t);
    return this.predicted[(share < 1 ? k : k + 1) * graph.count + node];
  }

  value(name, t) {
    const [k, share] = this.at(t);
    const values = this.measures[name];
    return values[k] + share * (values[k + 1] - values[k]);
  }

  // The order parameter of a channel: its absolute value and its angle.
  orderOf(channel, t) {
    const [k, share] = this.at(t);
    const [from, to] = [this.order[channel][k], this.order[channel][k + 1]];
    const [re, im] = [0, 1].map((part) => from[part] + share * (to[part] - from[part]));
    return [Math.hypot(re, im), Math.atan2(im, re)];
  }
}

const flows = data.models.map((record, place) => new Flow(record, place));
const end = Math.max(...flows.map((flow) => flow.end));
const view = {
  t: 0,
  model: flows.length > 1 ? "all" : 0,
  channel: 0,
  colour: "phase",
  zoom: 1,
  hidden: new Set(), // Classes that are left out.
  selected: -1, // A node that is marked.
};
const isShown = (flow) => view.model === "all" || view.model === flow.place;
const isHidden = (node) => view.hidden.has(graph.label[node]);
const className = (number) => data.classes[number] ?? "no class";
const digits = new Intl.NumberFormat("en", {maximumSignificantDigits: 4});
const short = (value) => (value !== 0 && Math.abs(value) < 0.01 ? value.toExponential(1) : digits.format(value));

function describe(flow, node) {
  const lines = [
    `Node ${data.ids[node]} (${data.parts[flow.part[node]]})`,
    `class: ${className(graph.label[node])}`,
    `prediction at t: ${className(flow.prediction(node, view.t))}`,
    `prediction at T: ${className(flow.prediction(node, flow.end))}`,
    `angle: ${flow.angles(view.channel, view.t, 1)[node].toFixed(2)} rad`,
  ];
  return lines.join("\n");
}
