// One model, live: numbers, charts, what matters now, alarms and errors.

import { Chart, short } from "./charts.js";
import { Points } from "./points.js";
import { Events, get } from "./service.js";

const MOST_POINTS = 800, MOST_LISTED = 30, MOST_FEATURES = 20;
const RANGES = [["All rows", 0], ["Last 10,000", 10000], ["Last 1,000", 1000], ["Last 200", 200]];
//: Rows over which losses are averaged at least.
const FEWEST = 20;
//: Milliseconds between two looks at the coefficients, and between two pictures of what is read.
const PACE = 1000, SLOW = 250;
const element = (id) => document.getElementById(id);
const percent = (share) => `${(100 * share).toFixed(share < 0.0995 && share > 0 ? 1 : 0)} %`;

const CHARTS = {
  fit: [[
    { label: "predicted", colour: "predicted", width: 3 },
    { label: "actual", colour: "actual", width: 1, dots: true },
    { label: "highest", hidden: true, width: 0, band: ["highest", "lowest"] },
    { label: "lowest", hidden: true, width: 0 },
  ], {}],
  loss: [[
    { label: "model", colour: "accent", width: 2 },
    { label: "running mean", colour: "mean", dash: [6, 3] },
    { label: "persistence", colour: "last", dash: [2, 3] },
  ], { from0: true }],
  lam: [[{ label: "lam", colour: "accent" }], { small: true, log: true }],
  memory: [[{ label: "memory", colour: "accent" }], { small: true, from0: true }],
  active: [[{ label: "active", colour: "accent" }], { small: true, from0: true, whole: true }],
};

export class ModelView {
  // state : called with "on", "off" or a sentence
  constructor(state) {
    this.state = state;
    this.points = new Points(MOST_POINTS);
    this.charts = Object.fromEntries(Object.entries(CHARTS)
      .map(([name, [lines, options]]) => [name, new Chart(element(name), lines, options)]));
    this.rows = 1000;
    this.buttons();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      for (const chart of Object.values(this.charts)) chart.build();
      this.redraw();
    });
  }

  buttons() {
    for (const [label, rows] of RANGES) {
      const button = document.createElement("button");
      button.textContent = label;
      button.addEventListener("click", () => { this.rows = rows; this.press(); this.reload(); });
      button.dataset.rows = rows;
      element("ranges").append(button);
    }
    this.press();
  }

  press() {
    for (const button of element("ranges").children) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.rows) === this.rows));
    }
  }

  // --- which model ----------------------------------------------------------------------------------------------------

  show(name) {
    if (name === this.name) return;
    this.hide();
    this.name = name;
    this.points.clear();
    this.marks = [];
    this.errors = [];
    this.facts = null;
    element("name").textContent = name;
    this.events = new Events(`/events?model=${encodeURIComponent(name)}`, {
      up: () => { this.state("on"); this.reload(); },
      down: () => this.state("off"),
      rows: (event) => this.take(event),
      alarm: (event) => this.alarm(event),
      refused: (event) => { this.errors.unshift(event); this.errors.length = Math.min(this.errors.length, MOST_LISTED); this.listErrors(); },
      model: () => this.look(),
      store: (event) => this.state(event.full ? "the disk is full: nothing is learnt" : "on"),
    });
  }

  hide() {
    this.events?.close();
    clearTimeout(this.waiting);
    this.waiting = this.name = undefined;
  }

  // --- what comes -----------------------------------------------------------------------------------------------------

  // All of it again, at the start and after a restart of the service.
  async reload() {
    const name = this.name, rows = this.rows;
    try {
      const model = await get(`/models/${encodeURIComponent(name)}`);
      const from = rows && model.n_rows > rows ? `&from=${model.n_rows - rows}` : "";
      const history = await get(`/models/${encodeURIComponent(name)}/history?points=${MOST_POINTS}${from}`);
      if (name !== this.name || rows !== this.rows) return;
      this.points.clear();
      this.points.append(history.columns, history.stretch);
      this.marks = history.marks;
      this.errors = [...model.errors].reverse();
      this.pace = model.rows_per_second;
      this.tell(model);
      this.listAlarms();
      this.listErrors();
      this.redraw();
    } catch (error) {
      if (name === this.name && error.status === 404) this.state("the model is gone");
    }
  }

  take(event) {
    this.points.append(event.columns);
    if (this.rows) this.points.trim(event.n_rows - this.rows);
    this.pace = event.rows_per_second;
    if (this.facts) this.facts.n_rows = event.n_rows;
    this.redraw();
    this.look();
  }

  // The coefficients, at most once a second.
  look() {
    if (this.waiting) return;
    const name = this.name;
    this.waiting = setTimeout(async () => {
      this.waiting = undefined;
      try {
        const model = await get(`/models/${encodeURIComponent(name)}`);
        if (name === this.name) this.tell(model);
      } catch { /* the next event looks again */ }
    }, PACE);
  }

  alarm(event) {
    this.marks.push({ ...event, time: Date.parse(event.time) / 1000 });
    this.listAlarms();
    this.redraw();
    this.look();
  }

  // --- charts ---------------------------------------------------------------------------------------------------------

  // Once per picture of the screen at most; not at all while the page is hidden.
  redraw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = undefined;
      this.draw();
    });
  }

  draw() {
    const points = this.points, row = points.row, marks = this.marks ?? [];
    const span = points.span.reduce((sum, rows) => sum + rows, 0);
    const over = Math.max(Math.round(span / 40), Math.min(span, FEWEST));
    const losses = ["loss", "baseline", "persistence"].map((name) => points.rolling(name, over));
    this.charts.fit.draw([row, ...this.fit(over)], marks);
    this.charts.loss.draw([row, ...losses], marks);
    element("model").dataset.drawn = points.last;
    this.slowly(() => this.drawRest(over, losses));
  }

  // What is read rather than watched: four times a second, and once more after the last time.
  slowly(act) {
    this.latest = act;
    this.resting ??= setTimeout(() => {
      this.resting = undefined;
      this.latest();
    }, SLOW);
  }

  drawRest(over, losses) {
    const points = this.points, last = (values) => short(values.at(-1) ?? null);
    for (const name of isWide(this.facts) ? [] : ["lam", "memory", "active"]) {
      this.charts[name].draw([points.row, points[name]], this.marks ?? []);
      this.charts[name].describe(`${name} ${last(points[name])}`);
    }
    element("loss-title").textContent = this.facts?.loss_name
      ? `${this.facts.loss_name[0].toUpperCase()}${this.facts.loss_name.slice(1)}, mean of ${short(over)} rows` : "Loss";
    this.charts.fit.describe(`Predicted and actual up to row ${short(points.last)}: ${last(points.prediction)}, ${last(points.y)}`);
    this.charts.loss.describe(`Loss of the model ${last(losses[0])}, of the running mean ${last(losses[1])}, of persistence ${last(losses[2])}`);
    this.numbers();
  }

  // Of two classes the share that came and the mean probability: 0 and 1, row by row, cannot be read.
  fit(over) {
    const points = this.points;
    if (this.facts?.classes?.length !== 2) return [points.prediction, points.y, points.y_high, points.y_low];
    const nothing = points.row.map(() => null);
    return [points.rolling("prediction", over), points.rolling("y", over), nothing, nothing];
  }

  // --- numbers and tables ---------------------------------------------------------------------------------------------

  tell(model) {
    this.facts = model;
    const two = model.classes?.length === 2;
    element("fit-title").textContent = two ? `Share of ${model.target} = ${model.classes[1]}: predicted (mean probability) and actual`
      : model.classes ? `Predicted and actual class of ${model.target}: ${model.classes.map((label, k) => `${k} ${label}`).join(", ")}`
      : `Predicted and actual ${model.target}`;
    element("tuning").hidden = isWide(model);
    this.numbers();
    this.features(model);
    const notes = element("notes");
    notes.replaceChildren(...model.notes.map((note) => line(note)));
    element("notes-section").hidden = !model.notes.length;
  }

  numbers() {
    const model = this.facts;
    if (!model) return;
    const first = model.models[0], recent = model.recent ?? {};
    const against = (other) => recent.model !== null && recent.model !== undefined && other > 0
      ? lower(1 - recent.model / other) : "";
    const found = [
      ["rows learnt", short(model.n_rows), `${short(this.pace ?? 0)} a second`],
      ["recent loss", short(recent.model), model.family],
      ["running mean", short(recent.baseline), against(recent.baseline)],
      ["persistence", short(recent.persistence), against(recent.persistence)],
      ...isWide(model) ? [] : [
        ["lam", short(first?.lam ?? null), first ? `of at most ${short(first.lam_max)}` : ""],
        ["memory", first ? `${short(Math.round(first.memory))} rows` : "–", ""],
      ],
      ["active", first ? `${short(first.n_active)} of ${short(model.n_features)}` : "–", first?.since ? `since row ${short(first.since)}` : ""],
      ["waiting for labels", short(model.n_waiting), model.n_expired ? `${short(model.n_expired)} expired` : ""],
    ];
    element("numbers").replaceChildren(...found.map(([name, value, more]) => {
      const box = document.createElement("div"), term = make("dt", name), text = make("dd", value);
      if (more) text.append(make("small", more));
      box.append(term, text);
      return box;
    }));
  }

  features(model) {
    const several = model.models.length > 1;
    element("features").className = `${several ? "" : "plain"} ${isWide(model) ? "wide" : ""}`;
    const all = model.models.flatMap((each) => each.coefficients.map((found) => ({ ...found, of: each.class })));
    all.sort((a, b) => b.importance - a.importance || b.inclusion - a.inclusion);
    element("features").tBodies[0].replaceChildren(...all.slice(0, MOST_FEATURES).map((found) => {
      const row = document.createElement("tr"), own = make("td", several ? String(found.of) : "");
      own.className = "class";
      row.append(make("td", found.feature), own, make("td", short(found.coef)), gauge(found.importance), gauge(found.inclusion, "inclusion"));
      return row;
    }));
    const left = all.length - MOST_FEATURES;
    element("more").textContent = !all.length ? "Nothing yet: no feature is in the model."
      : left > 0 ? `and ${left} more: GET /models/${model.name}` : "";
  }

  listAlarms() {
    const shown = [...this.marks].sort((a, b) => b.time - a.time).slice(0, MOST_LISTED);
    fill(element("alarms"), shown.map((mark) => {
      const item = entry(mark.time * 1000, `row ${short(mark.row)}, ${mark.kind}${mark.firing ? "" : " (over)"}: ${mark.detail}`);
      item.className = mark.firing ? "firing" : "";
      return item;
    }), "None.");
  }

  listErrors() {
    fill(element("errors"), this.errors.map((error) => entry(Date.parse(error.time), `${error.status}: ${error.detail}`)), "None.");
  }
}

// Any number of features: there is no penalty, memory or inclusion.
const isWide = (model) => Boolean(model?.models.length) && model.models[0].lam === null;
const lower = (share) => share >= 0 ? `model ${percent(share)} lower` : `model ${percent(-share)} higher`;

function make(kind, text) {
  const made = document.createElement(kind);
  made.textContent = text;
  return made;
}

const line = (text) => make("li", text);

function entry(milliseconds, text) {
  const item = document.createElement("li"), when = new Date(milliseconds), time = make("time", when.toLocaleTimeString());
  time.dateTime = when.toISOString();
  time.title = when.toLocaleString();
  item.append(time, text);
  return item;
}

function gauge(share, kind = "") {
  const cell = document.createElement("td"), meter = document.createElement("meter");
  cell.className = kind;
  meter.max = 1;
  meter.value = share ?? 0;
  meter.textContent = percent(share ?? 0);
  cell.append(meter, ` ${percent(share ?? 0)}`);
  return cell;
}

function fill(list, items, otherwise) {
  const nothing = make("li", otherwise);
  nothing.className = "nothing";
  list.replaceChildren(...(items.length ? items : [nothing]));
}
