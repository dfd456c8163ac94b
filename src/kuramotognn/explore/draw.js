// The pictures of a model: its graph and its phases on the circle.
const turn = 2 * Math.PI;
const colours = {};
const RIGHT = 0;
const WRONG = 1;

function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ink", "line", "edge"]) colours[name] = style.getPropertyValue(`--${name}`).trim();
}

function phaseColour(angle) {
  const size = data.phaseColours.length;
  const place = Math.round((angle / turn) * size) % size;
  return place < 0 ? place + size : place;
}

// The colours in use, and the place in them of each node's colour.
function painter(flow, phase, kind = view.colour) {
  const byClass = [...data.classColours, data.noClass];
  const ofClass = (number) => (number < 0 ? data.classColours.length : number);
  switch (kind) {
    case "class": return [byClass, (node) => ofClass(graph.label[node])];
    case "prediction": return [byClass, (node) => flow.prediction(node, view.t)];
    case "correct": return [
      [data.lines[0], data.lines[1], data.noClass],
      (node) => (graph.label[node] < 0 ? 2 : flow.prediction(node, view.t) === graph.label[node] ? RIGHT : WRONG),
    ];
    default: return [data.phaseColours, (node) => phaseColour(phase[node])];
  }
}

class Picture {
  constructor(panel, kind) {
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("role", "img");
    this.pen = this.canvas.getContext("2d");
    this.x = new Float32Array(graph.count);
    this.y = new Float32Array(graph.count);
    const box = document.createElement("div");
    box.className = kind;
    box.append(this.canvas);
    panel.append(box);
  }

  // Returns whether the size has changed.
  fit() {
    const scale = devicePixelRatio || 1;
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight].map((size) => Math.round(size * scale));
    if (width === this.canvas.width && height === this.canvas.height) return false;
    Object.assign(this.canvas, {width, height});
    this.scale = scale;
    return true;
  }

  // One path for each colour. A dot is the round cap of a line without length: faster than arcs or copied images.
  dots(palette, place, radius) {
    const {pen, x, y} = this;
    const groups = palette.map(() => []);
    for (let node = 0; node < graph.count; node += 1) if (!isHidden(node)) groups[place(node)].push(node);
    pen.lineCap = "round";
    pen.lineWidth = 2 * radius;
    groups.forEach((nodes, colour) => {
      pen.strokeStyle = palette[colour];
      pen.beginPath();
      for (const node of nodes) {
        pen.moveTo(x[node], y[node]);
        pen.lineTo(x[node], y[node]);
      }
      pen.stroke();
    });
    pen.lineCap = "butt";
    if (view.selected >= 0) {
      pen.lineWidth = 2 * this.scale;
      pen.strokeStyle = colours.ink;
      pen.beginPath();
      pen.arc(x[view.selected], y[view.selected], radius + 4 * this.scale, 0, turn);
      pen.stroke();
    }
  }

  // The node under the pointer, or -1.
  nearest(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [(event.clientX - box.left) * this.scale, (event.clientY - box.top) * this.scale];
    let [found, best] = [-1, (10 * this.scale) ** 2];
    for (let node = 0; node < graph.count; node += 1) {
      const distance = (this.x[node] - x) ** 2 + (this.y[node] - y) ** 2;
      if (distance < best && !isHidden(node)) [found, best] = [node, distance];
    }
    return found;
  }
}

class GraphPicture extends Picture {
  constructor(panel) {
    super(panel, "graph");
    this.edges = document.createElement("canvas"); // Drawn once, for edges do not move.
  }

  prepare() {
    this.fit();
    const {width, height} = this.canvas;
    const margin = 8 * this.scale;
    const size = Math.min(width, height) - 2 * margin;
    // The layout is square; it is stretched to the shape of the canvas.
    for (let node = 0; node < graph.count; node += 1) {
      this.x[node] = margin + graph.x[node] * (width - 2 * margin);
      this.y[node] = margin + graph.y[node] * (height - 2 * margin);
    }
    this.radius = Math.max(1.1 * this.scale, Math.min(6 * this.scale, 0.22 * size / Math.sqrt(graph.count)));
    Object.assign(this.edges, {width, height});
    const pen = this.edges.getContext("2d");
    pen.strokeStyle = colours.edge;
    pen.lineWidth = 0.7 * this.scale;
    pen.beginPath();
    for (let edge = 0; edge < graph.edges.length; edge += 2) {
      const [from, to] = [graph.edges[edge], graph.edges[edge + 1]];
      if (isHidden(from) || isHidden(to)) continue;
      pen.moveTo(this.x[from], this.y[from]);
      pen.lineTo(this.x[to], this.y[to]);
    }
    pen.stroke();
  }

  draw(palette, place) {
    this.pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    if (this.edges.width) this.pen.drawImage(this.edges, 0, 0);
    this.dots(palette, place, this.radius);
  }
}

class CirclePicture extends Picture {
  constructor(panel) {
    super(panel, "circle");
    // Nodes of a class lie on a ring with some width, so that crowds are visible.
    const rings = data.classes.length + 1;
    this.ring = Float32Array.from(graph.label, (label, node) => {
      const spread = ((node * 0.618034) % 1) - 0.5;
      return 0.36 + 0.56 * ((label + 1.5 + 0.75 * spread) / rings);
    });
  }

  prepare() {
    this.fit();
    const fitting = 0.16 * this.canvas.width / Math.sqrt(graph.count);
    this.radius = Math.max(1.3 * this.scale, Math.min(4 * this.scale, fitting));
  }

  draw(palette, place, phase, [r, angle]) {
    const {pen, scale} = this;
    const {width, height} = this.canvas;
    const [cx, cy, size] = [width / 2, height / 2, Math.min(width, height) / 2 - 2 * scale];
    pen.clearRect(0, 0, width, height);
    // The rim shows the colour of each angle.
    pen.lineWidth = 0.035 * size;
    data.phaseColours.forEach((colour, k) => {
      const middle = (k / data.phaseColours.length) * turn;
      pen.strokeStyle = colour;
      pen.beginPath();
      pen.arc(cx, cy, 0.975 * size, -middle - 0.055, -middle + 0.055);
      pen.stroke();
    });
    for (let node = 0; node < graph.count; node += 1) {
      const radius = this.ring[node] * size;
      this.x[node] = cx + radius * Math.cos(phase[node]);
      this.y[node] = cy - radius * Math.sin(phase[node]);
    }
    this.dots(palette, place, this.radius);
    this.arrow(cx, cy, 0.33 * size, r, angle);
  }

  // The order parameter, in a circle of radius 1.
  arrow(cx, cy, size, r, angle) {
    const {pen, scale} = this;
    const [x, y] = [cx + r * size * Math.cos(angle), cy - r * size * Math.sin(angle)];
    pen.strokeStyle = colours.line;
    pen.lineWidth = scale;
    pen.beginPath();
    pen.arc(cx, cy, size, 0, turn);
    pen.stroke();
    pen.strokeStyle = pen.fillStyle = colours.ink;
    pen.lineWidth = 2 * scale;
    pen.beginPath();
    pen.moveTo(cx, cy);
    pen.lineTo(x, y);
    pen.stroke();
    pen.beginPath();
    for (const side of [0, 2.6, -2.6]) {
      pen.lineTo(x + 6 * scale * Math.cos(angle + side), y - 6 * scale * Math.sin(angle + side));
    }
    pen.fill();
  }
}

class Panel {
  constructor(flow) {
    this.flow = flow;
    this.box = document.createElement("section");
    this.box.className = "panel";
    this.box.dataset.model = flow.place;
    const head = document.createElement("h2");
    head.textContent = flow.title;
    this.words = document.createElement("p");
    const views = document.createElement("div");
    views.className = "views";
    this.graph = new GraphPicture(views);
    this.circle = new CirclePicture(views);
    this.box.append(head, this.words, views);
    document.getElementById("panels").append(this.box);
  }

  prepare() {
    this.box.hidden = !isShown(this.flow);
    if (this.box.hidden) return;
    this.graph.prepare();
    this.circle.prepare();
    const which = `${this.flow.title}, channel ${this.flow.channels[view.channel]}`;
    this.graph.canvas.setAttribute("aria-label", `Graph, nodes coloured by ${view.colour}: ${which}`);
    this.circle.canvas.setAttribute("aria-label", `Angles of the nodes on the circle: ${which}`);
  }

  draw() {
    if (this.box.hidden) return;
    const {flow} = this;
    const order = flow.orderOf(view.channel, view.t);
    const phase = flow.angles(view.channel, view.t, view.zoom);
    const [palette, place] = painter(flow, phase);
    this.graph.draw(palette, place);
    // On the circle the place shows the phase already.
    const [inks, ink] = view.colour === "phase" ? painter(flow, phase, "class") : [palette, place];
    this.circle.draw(inks, ink, phase, [order[0], order[1] * view.zoom]);
    const accuracy = (100 * flow.value("accuracy", view.t)).toFixed(1);
    const channel = flow.channels[view.channel];
    this.words.textContent = `Channel ${channel}: r = ${order[0].toFixed(3)} · test accuracy ${accuracy} %`
      + (view.t > flow.end ? ` · ended at t = ${short(flow.end)}` : "");
  }
}
