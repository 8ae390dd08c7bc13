"""Sections of a report: what happened when, and which features matter."""

from __future__ import annotations

from html import escape
from itertools import pairwise
from typing import Any

import numpy as np

from streamlasso._text import count, number, number_range
from streamlasso.core.base.record import ADVICE
from streamlasso.report.changes import Change
from streamlasso.report.coefficient_plot import plot_coefficients
from streamlasso.report.page import bar, drawn, image, paragraph, section, table
from streamlasso.report.summary import STRONGEST, Summary
from streamlasso.report.why import large_moves

#: Lines of a table, and parts of the stream that are compared.
MOST_LINES, N_PARTS = 20, 5
PICTURE = (
    "Over the rows: what was predicted, with an interval where one was asked for, and what came; the loss of the model "
    "and of the baselines; which features were active; how many rows the memory holds; the penalty lam and the value "
    "lam_max that empties the model"
)


def over_time(summary: Summary, drawing: bytes) -> str:
    picture = PICTURE if not summary.only_strongest else PICTURE.split("; how")[0].replace("active", "the strongest")
    what = "Predicted against actual" if summary.classes is None else "Predicted and actual classes"
    return section(f"{what}, and the model over time", image(drawing, picture))


def parts_of_the_stream(summary: Summary) -> str:
    head = ["rows", "loss", "running mean", "lam (median)", "active (mean)", "memory (mean, rows)"]
    if summary.only_strongest:
        head = [*head[:3], "active (mean)"]
    edges = np.linspace(0, len(summary.t), min(N_PARTS, len(summary.t)) + 1).astype(int)
    lines = [_part_of_the_stream(summary, slice(start, stop)) for start, stop in pairwise(edges)]
    return section("The stream in parts", table(head, lines), _trouble(summary))


def _part_of_the_stream(summary: Summary, part: slice) -> list[str]:
    first, last = summary.t[part][0] - summary.rows[part][0] + 1, summary.t[part][-1]
    cells = [
        f"{first:,} to {last:,}",
        number(summary.mean_over(summary.loss, part)),
        number(summary.mean_over(summary.baseline, part)),
    ]
    active = number_range(_without_nan(np.mean, summary.n_active[part], 0.0))
    if summary.only_strongest:
        return [*cells, active]
    lam = number_range(_without_nan(np.median, summary.lam[part], np.nan))
    return [*cells, lam, active, number(float(np.mean(summary.effective_size[part])))]


def _trouble(summary: Summary) -> str:
    """Steps that were not exact; to wait for something to fit is no trouble."""
    found = [(word, n) for word, n in sorted(summary.status.items()) if word not in ("ok", "waiting")]
    return "".join(paragraph(f"Steps that were not exact: {word} ({n:,}). {ADVICE[word]}", "note") for word, n in found)


def active_now(summary: Summary) -> str:
    """Of several classes there is a table of its own."""
    heading, active = "Which features matter now?", summary.active
    if summary.model_labels and active:
        return ""
    if not active:
        return section(heading, paragraph("None: the model predicts the same for every row."))
    effects, coefs = summary.effects, np.atleast_2d(summary.last_coef)
    largest = max(abs(effects[active[0]]), np.finfo(float).tiny)
    lines = [
        [escape(summary.feature_names[j]), number(coefs[k, j]), number(effects[k, j]), bar(effects[k, j] / largest)]
        for k, j in active[:MOST_LINES]
    ]
    more = (summary.n_active_now if summary.only_strongest else len(active)) - len(lines)
    note = f"And {more:,} smaller ones." if more else ""
    head = ["feature", "coefficient", "effect", ""]
    return section(heading, table(head, lines, escaped=True), paragraph(note, "note"))


def coefficients(summary: Summary) -> str:
    if summary.coef is None or summary.coef.ndim != 2 or not np.any(summary.coef):
        return ""
    picture = image(drawn(plot_coefficients(summary), "svg"), "The effects of the largest coefficients over the rows")
    return section("The largest coefficients over time", picture)


def changes(summary: Summary) -> str:
    if summary.coef is None:
        return ""
    found = summary.changes()
    largest = sorted(found, key=lambda change: -abs(change.effect))[:MOST_LINES]
    lines = [(change.t, _change(summary, change)) for change in largest]
    if not lines:
        return section("What changed?", paragraph("No feature entered or left for long."))
    kept = f"the {len(largest)} with the largest effects of {len(found):,}" if len(largest) < len(found) else "all"
    where = f"among the {STRONGEST} strongest" if summary.only_strongest else "in the model"
    note = f"Lasting changes only, {kept}. The effect is the mean over the time {where}."
    when = "row" if summary.times is None else "when"
    rows = [[_when(summary, t), *line] for t, line in sorted(lines, key=lambda line: line[0])]
    return section("What changed?", table([when, "what", "how long", "effect"], rows, text=2), paragraph(note, "note"))


def penalty_moves(summary: Summary) -> str:
    """Why lam moved, at each of its largest moves."""
    moves = large_moves(summary)
    items = "".join(f"<li>{escape(move)}</li>" for move in moves)
    return section("Why did lam move?", f"<ul>{items}</ul>") if moves else ""


def _change(summary: Summary, change: Change) -> list[str]:
    of_class = f" (class {change.label})" if summary.model_labels else ""
    where = " the strongest" if summary.only_strongest else ""
    what = f"{change.feature} {'entered' if change.entered else 'left'}{where}{of_class}"
    return [what, f"{'stayed' if change.entered else 'after'} {count(change.rows, 'row')}", number(change.effect)]


def _when(summary: Summary, t: int) -> str:
    return f"{t:,}" if summary.times is None else summary.at(t)


def _without_nan(statistic: Any, values: np.ndarray, if_none: float) -> np.ndarray:
    """Of each class: lam is NaN until there is something to fit, and both are NaN until the class appears."""
    columns = [column[~np.isnan(column)] for column in np.atleast_2d(values.T)]
    return np.array([statistic(column) if len(column) else if_none for column in columns])
