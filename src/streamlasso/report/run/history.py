"""Sections of a report: what happened when, and which features matter."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import pyarrow

from streamlasso._text import count, number
from streamlasso.core.base.record import ADVICE
from streamlasso.report.changes import Change
from streamlasso.report.page import bar, drawn, image, paragraph, section, table
from streamlasso.report.run.model_plot import plot_coefficients
from streamlasso.report.summary import STRONGEST, Summary

#: Lines of a table, and features of a detected change that are named.
MOST_LINES, MOST_NAMED = 20, 5
#: In place of features, where none moved.
NOTHING: dict[Any, Any] = {None: (None, None)}
PICTURE = (
    "Over the rows: what was predicted, with an interval where one was asked for, and what came; the loss of the model "
    "and of the baselines; which features were active; how many rows the memory holds; the penalty lam and the value "
    "lam_max that empties the model"
)


def over_time(summary: Summary, drawing: bytes) -> str:
    picture = PICTURE if not summary.only_strongest else PICTURE.split("; how")[0].replace("active", "the strongest")
    what = "Predicted against actual" if summary.classes is None else "Predicted and actual classes"
    return section(f"{what}, and the model over time", image(drawing, picture), _inexact(summary))


def _inexact(summary: Summary) -> str:
    """Steps that were not exact; to wait until there is something to fit is no trouble."""
    found = [(word, n) for word, n in sorted(summary.status.items()) if word not in ("ok", "waiting")]
    return "".join(paragraph(f"Steps that were not exact: {word} ({n:,}). {ADVICE[word]}", "note") for word, n in found)


def active_now(summary: Summary) -> str:
    """For several classes there is a table of its own."""
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
    if summary.coef.ndim != 2 or not np.any(summary.coef):
        return ""
    picture = image(drawn(plot_coefficients(summary), "svg"), "The effects of the largest coefficients over the rows")
    return section("The largest coefficients over time", picture)


# --- changes ----------------------------------------------------------------------------------------------------------


def detected_table(summary: Summary) -> pyarrow.Table:
    """One line for each moved coefficient, or one for a change that no coefficient explains: changes.csv."""
    lines: list[tuple[Any, ...]] = [
        (change, name, *sizes) for change in summary.detected for name, sizes in (change.features or NOTHING).items()
    ]
    columns: dict[str, Any] = {
        "row": [line[0].row for line in lines],
        "found": [line[0].detected for line in lines],
        "probability": [line[0].probability.get(line[0].row) for line in lines],
        "class": [None if line[0].label is None else str(line[0].label) for line in lines],
        "feature": [None if line[1] is None else str(line[1]) for line in lines],
        "before": [line[2] for line in lines],
        "after": [line[3] for line in lines],
        "cost": [line[0].loss for line in lines],
    }
    types = [pyarrow.int64()] * 2 + [pyarrow.float64()] + [pyarrow.string()] * 2 + [pyarrow.float64()] * 3
    return pyarrow.table(list(columns.values()), schema=pyarrow.schema(list(zip(columns, types, strict=True))))


def detected(summary: Summary) -> str:
    """The changes that were found in the stream: what changed, when, and what it cost."""
    if not summary.detected:
        return ""
    lines = [
        [
            _when(summary, change.row),
            count(change.detected - change.row + 1, "row"),
            _moves(change.features) + ("" if change.label is None else f" (class {change.label})"),
            number(change.loss),
        ]
        for change in summary.detected[-MOST_LINES:]
    ]
    head = ["since" if summary.times is None else "when", "found after", "what moved, from and to", "cost"]
    more = len(summary.detected) - len(lines)
    note = (
        "A change is where the errors grew, or became correlated with a feature, by more than chance explains. The "
        "cost is the loss above what was usual before, over at most 128 rows."
    ) + (f" And {more:,} earlier ones: changes.csv has them." if more > 0 else "")
    if summary.changes_are_cut:
        note += " Only the last changes are kept, so those at the beginning of the stream are not among them."
    return section("Changes found in the stream", table(head, lines, text=2), paragraph(note, "note"))


def _moves(features: dict[Any, tuple[float, float]]) -> str:
    if not features:
        return "errors grew"
    moves = [f"{name}: {number(before)} to {number(after)}" for name, (before, after) in features.items()]
    more = len(moves) - MOST_NAMED
    return "; ".join(moves[:MOST_NAMED]) + (f"; {more} more" if more > 0 else "")


def selection_changes(summary: Summary) -> str:
    """Which features entered the model or left it, for long."""
    found = summary.changes()
    largest = sorted(found, key=lambda change: -abs(change.effect))[:MOST_LINES]
    if not largest:
        return section("What entered and left?", paragraph("No feature entered or left for long."))
    kept = f"the {len(largest)} with the largest effects of {len(found):,}" if len(largest) < len(found) else "all"
    where = f"among the {STRONGEST} strongest" if summary.only_strongest else "in the model"
    note = f"Lasting changes only, {kept}. The effect is the mean over the time {where}."
    lines = [_change(summary, change) for change in sorted(largest, key=lambda change: change.t)]
    head = ["row" if summary.times is None else "when", "what", "how long", "effect"]
    return section("What entered and left?", table(head, lines, text=2), paragraph(note, "note"))


def _change(summary: Summary, change: Change) -> list[str]:
    of_class = f" (class {change.label})" if summary.model_labels else ""
    where = " the strongest" if summary.only_strongest else ""
    what = f"{change.feature} {'entered' if change.entered else 'left'}{where}{of_class}"
    how_long = f"{'stayed' if change.entered else 'after'} {count(change.rows, 'row')}"
    return [_when(summary, change.t), what, how_long, number(change.effect)]


def _when(summary: Summary, t: int) -> str:
    return f"{t:,}" if summary.times is None else summary.at(t)
