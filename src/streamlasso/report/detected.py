"""The changes that were found in a stream: as a table, marks in a figure, and a section of the report."""

from __future__ import annotations

from typing import Any

import pyarrow
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from streamlasso._text import count, number
from streamlasso.report.axes import Entries
from streamlasso.report.colours import LIGHT
from streamlasso.report.page import paragraph, section, table
from streamlasso.report.summary import Summary

STYLE: dict[str, Any] = {"color": LIGHT, "linewidth": 0.9}
#: A model keeps about as many changes (`core/monitor/detector.pxd`): where there are more, these are the last ones.
KEPT = 32
#: More marks than this are short ones at the top: lines would hide what they mark.
MOST_LONG, SHORT = 10, 0.08
#: In place of features, where none moved.
NOTHING: dict[Any, Any] = {None: (None, None)}
#: Changes and features that the report lists.
MOST_LINES, MOST_NAMED = 20, 5


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


def mark_changes(axes: Axes, summary: Summary) -> None:
    """Where each most likely began."""
    bottom = 0.0 if len(summary.detected) <= MOST_LONG else 1.0 - SHORT
    for change in summary.detected:
        axes.axvline(change.row - 0.5, ymin=bottom, **STYLE)


def change_key(summary: Summary) -> Entries:
    """For a legend."""
    n = len(summary.detected)
    return [(f"the last {n} changes found" if n >= KEPT else "change found", Line2D([], [], **STYLE))]


def detected_section(summary: Summary) -> str:
    """What changed, when, and what it cost."""
    if not summary.detected:
        return ""
    lines = [
        [
            summary.at(change.row) if summary.times is not None else f"{change.row:,}",
            count(change.detected - change.row + 1, "row"),
            _moves(change.features) + ("" if change.label is None else f" (class {change.label})"),
            number(change.loss),
        ]
        for change in summary.detected[-MOST_LINES:]
    ]
    head = ["since" if summary.times is None else "when", "found after", "what moved, from and to", "cost"]
    more = len(summary.detected) - len(lines)
    note = (
        "A change is where the errors grew, or went with a feature, by more than chance explains. The cost is the "
        "loss above what was usual before, over at most 128 rows."
    ) + (f" And {more:,} earlier ones: changes.csv has them." if more > 0 else "")
    if len(summary.detected) >= KEPT:
        note += " Only the last changes are kept, so those at the beginning of the stream are not among them."
    return section("Changes found in the stream", table(head, lines, text=2), paragraph(note, "note"))


def _moves(features: dict[Any, tuple[float, float]]) -> str:
    if not features:
        return "errors grew"
    moves = [f"{name}: {number(before)} to {number(after)}" for name, (before, after) in features.items()]
    more = len(moves) - MOST_NAMED
    return "; ".join(moves[:MOST_NAMED]) + (f"; {more} more" if more > 0 else "")
