// The course of a model: points in the order of rows, each a stretch of them. Long courses are merged to stay light.

export const COLUMNS = ["row", "time", "y", "y_low", "y_high", "prediction", "p_low", "p_high",
  "loss", "baseline", "persistence", "lam", "memory", "active"];
const MEANS = ["y", "prediction", "loss", "baseline", "persistence"];
const LOWS = ["y_low", "p_low"], HIGHS = ["y_high", "p_high"];
const LASTS = ["row", "time", "lam", "memory", "active"];

export class Points {
  // most : points that are drawn; as many again are taken before they are merged
  constructor(most) {
    this.most = most;
    this.clear();
  }

  clear() {
    for (const name of COLUMNS) this[name] = [];
    this.span = [];
  }

  get length() { return this.row.length; }
  get last() { return this.length ? this.row[this.length - 1] : -1; }

  // Points after the last one; those that are there already are left out. stretch : rows of the first one
  append(columns, stretch = 1) {
    const rows = columns.row ?? [];
    for (let i = 0; i < rows.length; i++) {
      const before = this.last;
      if (rows[i] <= before) continue;
      const from = i > 0 ? rows[i - 1] : before >= 0 ? before : rows[i] - stretch;
      this.span.push(Math.max(rows[i] - Math.max(from, before), 1));
      for (const name of COLUMNS) this[name].push(columns[name]?.[i] ?? null);
    }
    if (this.length > 2 * this.most) this.merge();
  }

  // Forget rows before this one.
  trim(row) {
    let n = 0;
    while (n < this.length && this.row[n] < row) n++;
    if (n) for (const name of [...COLUMNS, "span"]) this[name].splice(0, n);
  }

  // Neighbours become one point until each has its share of the rows.
  merge() {
    const old = { span: this.span };
    for (const name of COLUMNS) old[name] = this[name];
    const share = old.span.reduce((sum, rows) => sum + rows, 0) / this.most;
    this.clear();
    for (let i = 0; i < old.row.length;) {
      let stop = i + 1, rows = old.span[i];
      while (stop < old.row.length && rows + old.span[stop] <= share) rows += old.span[stop++];
      this.span.push(rows);
      for (const name of LASTS) this[name].push(old[name][stop - 1]);
      for (const name of MEANS) this[name].push(mean(old[name], old.span, i, stop));
      for (const name of LOWS) this[name].push(extreme(old[name], i, stop, Math.min));
      for (const name of HIGHS) this[name].push(extreme(old[name], i, stop, Math.max));
      i = stop;
    }
  }

  // The mean of a column over the last `rows` rows, at each point.
  rolling(name, rows) {
    const values = this[name], spans = this.span, found = new Array(values.length).fill(null);
    let sum = 0, n = 0, seen = 0, first = 0;
    for (let i = 0; i < values.length; i++) {
      if (values[i] !== null) { sum += values[i] * spans[i]; n += spans[i]; }
      seen += spans[i];
      while (seen - spans[first] >= rows && first < i) {
        if (values[first] !== null) { sum -= values[first] * spans[first]; n -= spans[first]; }
        seen -= spans[first++];
      }
      if (n > 0) found[i] = Math.max(sum / n, 0);
    }
    return found;
  }
}

function mean(values, spans, start, stop) {
  let sum = 0, n = 0;
  for (let i = start; i < stop; i++) if (values[i] !== null) { sum += values[i] * spans[i]; n += spans[i]; }
  return n ? sum / n : null;
}

function extreme(values, start, stop, choose) {
  const there = values.slice(start, stop).filter((value) => value !== null);
  return there.length ? choose(...there) : null;
}
