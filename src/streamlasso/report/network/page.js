// The slider of a report: decodes the networks in the page, and draws the one at the selected time.
"use strict";
(function () {
  const data = JSON.parse(document.getElementById("network-data").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const POSITIVE = "var(--plus)", NEGATIVE = "var(--negative)";
  // How many edges the first threshold leaves: as many as regions, within limits.
  const TYPICAL = Math.min(Math.max(data.regions.length, 10), 40), STEPS = 200;
  const byId = (id) => document.getElementById(id);

  function decodeInt16(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const view = new DataView(bytes.buffer), values = new Int16Array(bytes.length / 2);
    for (let k = 0; k < values.length; k++) values[k] = view.getInt16(2 * k, true);
    return values;
  }

  // The frames of one subject: the index of each frame's first edge, and the edges.
  function decoded(subject) {
    if (!subject.starts) {
      const counts = decodeInt16(subject.counts);
      subject.starts = [0];
      for (const n of counts) subject.starts.push(subject.starts[subject.starts.length - 1] + n);
      subject.i = decodeInt16(subject.source);
      subject.j = decodeInt16(subject.target);
      subject.strengths = decodeInt16(subject.strength);
    }
    return subject;
  }

  function make(kind, attributes, parent) {
    const element = document.createElementNS(SVG, kind);
    for (const name in attributes) element.setAttribute(name, attributes[name]);
    if (parent) parent.appendChild(element);
    return element;
  }

  // --- positions of the regions ----------------------------------------------------------------------------------

  const stage = byId("network"), edgeLayer = make("g", { fill: "none" });
  let views;

  function prepare() {
    if (data.brain) {
      stage.setAttribute("viewBox", `0 0 ${data.brain.width} ${data.brain.height}`);
      make("image", { href: data.brain.image, width: data.brain.width, height: data.brain.height }, stage);
      views = data.brain.places;
    } else {
      stage.setAttribute("viewBox", "-330 -285 660 570");
      views = [data.regions.map((_, k) => {
        const angle = -Math.PI / 2 + 2 * Math.PI * (k + 0.5) / data.regions.length;
        return [190 * Math.cos(angle), 190 * Math.sin(angle)];
      })];
    }
    stage.appendChild(edgeLayer);
    const radius = data.brain ? 2.5 : Math.max(1.5, Math.min(5, 200 / data.regions.length));
    for (const places of views)
      places.forEach(([x, y], k) => {
        const node = make("circle", { cx: x, cy: y, r: radius, fill: "currentColor" }, stage);
        make("title", {}, node).textContent = data.regions[k];
      });
    if (!data.brain && data.regions.length <= 70) views[0].forEach(label);
  }

  function label([x, y], k) {
    const left = x < 0, degrees = Math.atan2(y, x) * 180 / Math.PI + (left ? 180 : 0);
    const text = make("text", {
      transform: `translate(${x * 1.045} ${y * 1.045}) rotate(${degrees})`,
      "text-anchor": left ? "end" : "start", "dominant-baseline": "central",
      fill: "currentColor", "font-size": data.regions.length <= 40 ? 11 : 7,
    }, stage);
    const name = data.regions[k];
    text.textContent = name.length <= 18 ? name : name.slice(0, 17) + "…";
  }

  // --- the selected time -----------------------------------------------------------------------------------------

  function edgesAt(frame) {
    const subject = decoded(data.subjects[byId("subject").value]);
    const edges = [];
    for (let k = subject.starts[frame]; k < subject.starts[frame + 1]; k++)
      edges.push([subject.i[k], subject.j[k], subject.strengths[k] / 32767 * data.scale]);
    return edges;
  }

  // The slider goes in steps up to the largest strength of the subject.
  function threshold() {
    return Number(byId("least").value) / STEPS * data.subjects[byId("subject").value].largest;
  }

  function chooseThreshold() {
    const subject = decoded(data.subjects[byId("subject").value]);
    const sizes = Array.from(subject.strengths.slice(subject.starts[data.settled]), (s) => Math.abs(s));
    sizes.sort((a, b) => b - a);
    const frames = Math.max(1, data.moments.length - data.settled);
    const least = sizes[Math.min(sizes.length - 1, TYPICAL * frames)] || 0;
    byId("least").max = STEPS;
    byId("least").value = Math.floor(STEPS * least / 32767 * data.scale / subject.largest);
  }

  function path(a, b) {
    if (data.brain) return `M${a[0]} ${a[1]}L${b[0]} ${b[1]}`;
    return `M${a[0]} ${a[1]}Q${(a[0] + b[0]) / 4} ${(a[1] + b[1]) / 4} ${b[0]} ${b[1]}`;
  }

  function draw() {
    const frame = Number(byId("moment").value), edges = edgesAt(frame);
    const least = threshold(), shown = edges.filter((edge) => Math.abs(edge[2]) >= least);
    const subject = data.subjects[byId("subject").value];
    edgeLayer.replaceChildren();
    for (const [i, j, strength] of shown.slice().reverse())
      for (const places of views) {
        const share = Math.min(1, Math.abs(strength) / subject.largest);
        const line = make("path", {
          d: path(places[i], places[j]), stroke: strength > 0 ? POSITIVE : NEGATIVE,
          "stroke-width": 0.7 + 4 * share, "stroke-opacity": 0.3 + 0.7 * share,
        }, edgeLayer);
        if (strength < 0) line.setAttribute("stroke-dasharray", "5 3");
        make("title", {}, line).textContent = `${data.regions[i]} – ${data.regions[j]}: ${strength.toFixed(3)}`;
      }
    const condition = subject.conditions[frame];
    const total = subject.total[frame];
    byId("when").textContent = data.moments[frame] + (condition ? `: ${condition}` : "");
    byId("count").textContent =
      `${total} edges` + (shown.length < total ? `, the ${shown.length} strongest are drawn` : "");
    byId("at-least").textContent = least.toFixed(2);
    byId("moment").setAttribute("aria-valuetext", byId("when").textContent);
    list(shown.slice(0, 12));
    moveCursor(frame);
  }

  function list(edges) {
    const body = byId("strongest");
    body.replaceChildren();
    for (const [i, j, strength] of edges) {
      const row = body.insertRow();
      row.insertCell().textContent = data.regions[i];
      row.insertCell().textContent = data.regions[j];
      row.insertCell().textContent = (strength > 0 ? "+" : "−") + Math.abs(strength).toFixed(2);
      row.style.color = strength > 0 ? POSITIVE : NEGATIVE;
    }
  }

  // --- lam above the slider --------------------------------------------------------------------------------------

  const chart = byId("chart"), W = 1000, H = 120;
  let cursor, curve, blocks;

  function prepareChart() {
    chart.setAttribute("viewBox", `0 0 ${W} ${H}`);
    chart.setAttribute("preserveAspectRatio", "none");
    const [from, to] = data.span;
    blocks = make("g", {}, chart);
    curve = make("path", { fill: "none", stroke: "currentColor", "stroke-width": 1.6,
      "vector-effect": "non-scaling-stroke" }, chart);
    cursor = make("line", { y1: 0, y2: H, stroke: "var(--minus)", "stroke-width": 2.5,
      "vector-effect": "non-scaling-stroke" }, chart);
    chart.addEventListener("click", (event) => {
      const box = chart.getBoundingClientRect();
      const clicked = from + (to - from) * (event.clientX - box.left) / box.width;
      let best = 0;
      data.clock.forEach((s, k) => { if (Math.abs(s - clicked) < Math.abs(data.clock[best] - clicked)) best = k; });
      byId("moment").value = best;
      draw();
    });
  }

  function drawCurve() {
    const [from, to] = data.span, subject = data.subjects[byId("subject").value], lam = subject.lam;
    const x = (s) => W * (Math.min(Math.max(s, from), to) - from) / (to - from);
    blocks.replaceChildren();
    for (const [start, stop, color, name] of subject.blocks)
      make("title", {}, make("rect", {
        x: x(start), y: 0, width: x(stop) - x(start), height: H, fill: color,
      }, blocks)).textContent = name;
    const known = lam.filter((value, k) => value !== null && k >= data.settled);
    const high = Math.max(0, ...known) * 1.15 || 1;
    let pen = "M", d = "", first = 0;
    lam.forEach((value, k) => { if (k < data.settled && value > high) first = k + 1; });
    byId("settling").textContent = first === 0 ? "" :
      `Not drawn: lam before ${data.moments[first]}, while it settles, up to ` +
      `${Math.max(...lam.slice(0, first)).toPrecision(2)}.`;
    lam.forEach((value, k) => {
      if (value === null || k < first) { pen = "M"; return; }
      d += `${pen}${x(data.clock[k]).toFixed(1)} ${(H - H * value / high).toFixed(1)}`;
      pen = "L";
    });
    curve.setAttribute("d", d);
    byId("lam-top").textContent = high.toPrecision(2);
  }

  function moveCursor(frame) {
    const [from, to] = data.span, x = W * (data.clock[frame] - from) / (to - from);
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
  }

  // --- playing ---------------------------------------------------------------------------------------------------

  let timer = null;
  function play() {
    const slider = byId("moment");
    if (timer !== null) {
      clearInterval(timer);
      timer = null;
    } else {
      if (Number(slider.value) >= data.moments.length - 1) slider.value = 0;
      timer = setInterval(() => {
        if (Number(slider.value) >= data.moments.length - 1) return play();
        slider.value = Number(slider.value) + 1;
        draw();
      }, 120);
    }
    byId("play").textContent = timer === null ? "Play" : "Stop";
  }

  data.subjects.forEach((subject, k) => {
    const option = document.createElement("option");
    option.value = k;
    option.textContent = subject.name;
    byId("subject").appendChild(option);
  });
  byId("moment").max = data.moments.length - 1;
  byId("moment").value = Math.floor(data.moments.length / 2);
  prepare();
  prepareChart();
  byId("moment").addEventListener("input", draw);
  byId("least").addEventListener("input", draw);
  byId("subject").addEventListener("change", () => { chooseThreshold(); drawCurve(); draw(); });
  byId("play").addEventListener("click", play);
  chooseThreshold();
  drawCurve();
  draw();
})();
