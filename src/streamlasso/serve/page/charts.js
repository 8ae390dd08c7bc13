// Charts over rows, drawn by uPlot: one cursor for all of them, alarms as vertical lines.
/* global uPlot */

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
export const short = (value) => value === null || value === undefined ? "–"
  : Number.isInteger(value) && Math.abs(value) < 1e15 ? value.toLocaleString("en")
  : Number(value.toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 3, notation: size(value) });
const size = (value) => value !== 0 && (Math.abs(value) < 1e-4 || Math.abs(value) >= 1e7) ? "scientific" : "standard";

const SYNC = "rows";
//: So many points can be told from one another.
const MOST_DOTS = 250;

export class Chart {
  // lines : [{label, colour, width, dash, dots, band: [high, low]}]; data comes as columns in that order, after the rows
  constructor(holder, lines, { log = false, small = false, from0 = false, whole = false } = {}) {
    this.holder = holder;
    this.lines = lines;
    this.log = log;
    this.small = small;
    this.from0 = from0;
    this.whole = whole;
    this.marks = [];
    this.data = [[], ...lines.map(() => [])];
    holder.tabIndex = 0;
    holder.setAttribute("role", "img");
    holder.addEventListener("keydown", (event) => this.step(event));
    new ResizeObserver(() => this.resize()).observe(holder);
    this.build();
  }

  // Anew, say when the colours of the screen have changed.
  build() {
    this.plot?.destroy();
    const axis = { stroke: colour("faint"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 } };
    const values = (plot, ticks) => ticks.map((tick) => tick === null ? "" : short(tick));
    this.plot = new uPlot({
      width: this.holder.clientWidth || 300,
      height: this.small ? 160 : 230,
      padding: [8, 24, 0, 0],
      legend: { show: !this.small, live: true },
      cursor: { sync: { key: SYNC, setSeries: false }, drag: { x: false, y: false } },
      scales: { x: { time: false }, y: this.log ? { distr: 3 } : { range: (plot, low, high) => this.range(low, high) } },
      axes: [{ ...axis, values, size: 34 }, { ...axis, values, size: 58, ...this.upright() }],
      series: [{ label: "row", value: (plot, value) => short(value) }, ...this.lines.map((line) => this.series(line))],
      bands: this.bands(),
      hooks: { draw: [(plot) => this.drawMarks(plot)] },
    }, this.data, this.holder);
  }

  // A logarithm has marks between those with numbers, and a count has none.
  upright() {
    if (this.log) return { grid: { show: false }, ticks: { show: false } };
    return this.whole ? { incrs: [1, 2, 5].flatMap((n) => [...Array(9).keys()].map((k) => n * 10 ** k)).sort((a, b) => a - b) } : {};
  }

  series(line) {
    return {
      label: line.label, stroke: line.hidden ? undefined : colour(line.colour), width: line.width ?? 1.5, dash: line.dash,
      points: { show: line.dots ? (plot) => plot.data[0].length <= MOST_DOTS : false, size: 4, fill: colour(line.colour ?? "ink") },
      value: (plot, value) => short(value), spanGaps: false, class: line.hidden ? "unseen" : undefined,
    };
  }

  bands() {
    const of = (label) => this.lines.findIndex((line) => line.label === label) + 1;
    return this.lines.filter((line) => line.band)
      .map((line) => ({ series: line.band.map(of), fill: colour("band") }));
  }

  range(low, high) {
    if (low === null) return [0, 1];
    if (this.from0) low = Math.min(low, 0);
    const room = (high - low || Math.abs(high) || 1) * 0.05;
    return [this.from0 && low === 0 ? 0 : low - room, high + room];
  }

  resize() {
    const width = this.holder.clientWidth;
    if (width && width !== this.plot.width) this.plot.setSize({ width, height: this.plot.height });
  }

  draw(data, marks) {
    this.marks = marks;
    // A logarithm has no place for 0.
    this.data = this.log ? [data[0], ...data.slice(1).map((column) => column.map((value) => value > 0 ? value : null))] : data;
    this.plot.setData(this.data);
    // Without a cursor the legend has the last values.
    if (this.plot.cursor.idx === null && data[0].length) this.plot.setLegend({ idx: data[0].length - 1 }, false);
  }

  drawMarks(plot) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = colour("alarm");
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.beginPath();
    // Where an alarm begins; the list says where it ends.
    for (const mark of this.marks.filter((each) => each.firing)) {
      if (mark.row < plot.scales.x.min || mark.row > plot.scales.x.max) continue;
      const x = Math.round(plot.valToPos(mark.row, "x", true));
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
    }
    ctx.stroke();
    ctx.restore();
  }

  // The arrow keys move the cursor from point to point.
  step(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key], rows = this.data[0];
    if (!by || !rows.length) return;
    event.preventDefault();
    const now = this.plot.cursor.idx ?? rows.length;
    const next = Math.min(Math.max(now + by, 0), rows.length - 1);
    this.plot.setCursor({ left: this.plot.valToPos(rows[next], "x"), top: this.plot.over.clientHeight / 2 });
  }

  describe(text) { this.holder.setAttribute("aria-label", text); }
}
