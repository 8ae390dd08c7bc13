"""The table of results -> a figure: the loss of each method, and its time per row."""

from __future__ import annotations

from typing import Any

import pyarrow
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from streamlasso.bench.entries import BASELINES, OURS
from streamlasso.bench.summary import Row, default_microseconds, microseconds, ordered_methods, standing, tasks_of
from streamlasso.report.axes import NOTE, TITLE, plain_numbers
from streamlasso.report.colours import DARK, GREY, LIGHT, LINE

#: Relative losses beyond this are drawn at the edge.
WORST_DRAWN = 2.0
TICKS, FINE_TICKS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2), (0.4, 0.6, 0.7, 0.8, 0.9, 1.5)
#: Marks by their meaning: open for defaults, filled for the best setting in hindsight; ours are dark.
MARKS: dict[str, dict[str, Any]] = {
    "default": dict(mec=GREY, mfc="none", ms=5.5, zorder=2),
    "best setting in hindsight": dict(mec="black", mfc=LIGHT, ms=6.5, mew=0.5, zorder=3),
    f"{OURS}, default": dict(mec="white", mfc=DARK, ms=7, mew=0.6, zorder=5),
    f"{OURS}, best setting in hindsight": dict(mec=DARK, mfc="none", ms=11, mew=1.4, zorder=4),
}


def draw_streams(table: pyarrow.Table) -> Figure:
    """Each stream is a line of two panels: the loss of each method, and its time per row.

    >>> import pyarrow
    >>> from streamlasso.bench.results import SCHEMA
    >>> values = ("visits", "poisson", 99, 8, "river", "default", 0.5, 0.8, 90.0, 49, "ok", "0.26", "0")
    >>> table = pyarrow.Table.from_pylist([dict(zip(SCHEMA.names, values))], SCHEMA)
    >>> [label.get_text() for label in draw_streams(table).axes[0].get_yticklabels()]
    ['river']
    """
    rows = table.to_pylist()
    methods = {
        task: [method for method in ordered_methods(rows, task) if method != "running-mean"] for task in tasks_of(rows)
    }
    heights = [1.0 + 0.36 * len(names) for names in methods.values()]
    figure = Figure(figsize=(10.5, sum(heights) + 0.7), layout="constrained")
    grid = figure.subplots(len(methods), 2, width_ratios=[3, 1.25], height_ratios=heights, squeeze=False)
    for (losses, times), (task, names) in zip(grid, methods.items(), strict=True):
        _draw_losses(losses, rows, task, names)
        _draw_times(times, [row for row in rows if row["task"] == task], names)
    handles: list[Artist] = [
        Line2D([], [], linestyle="none", marker="o", label=name, **style) for name, style in MARKS.items()
    ]
    handles.append(Line2D([], [], color=GREY, linewidth=1, linestyle="--", label="running mean"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=8)
    return figure


def _draw_losses(axes: Axes, rows: list[Row], task: str, methods: list[str]) -> None:
    for y, method in enumerate(methods):
        stands, ours = standing(rows, task, method), f"{OURS}, " if method == OURS else ""
        for kind, row in (("default", stands.default), ("best setting in hindsight", stands.best)):
            if row is not None:
                place, style = min(row["relative"], WORST_DRAWN), MARKS[ours + kind]
                axes.plot(place, y, linestyle="none", marker="o", label=f"{method}, {kind}", **style)
    axes.axvline(1, color=GREY, linewidth=1, linestyle="--", zorder=1)
    axes.grid(axis="y", color=LINE)
    _finish(axes, methods)
    axes.set_xlim(min(axes.get_xlim()[0], 0.5), WORST_DRAWN * 1.12)
    plain_numbers(axes, "x", {WORST_DRAWN: f"≥ {WORST_DRAWN:g}"})
    low, high = axes.get_xlim()
    axes.set_xticks([tick for tick in (*TICKS, *(FINE_TICKS if low > 0.3 else ())) if low <= tick <= high])
    axes.set_xlabel("loss relative to the running mean")
    axes.set_title(task, **TITLE)


def _draw_times(axes: Axes, rows: list[Row], methods: list[str]) -> None:
    """The default's, and the range of all settings."""
    for y, method in enumerate(methods):
        spent = microseconds(rows, method)
        if len(spent) and method not in BASELINES:
            colour = DARK if method == OURS else GREY
            axes.plot([spent.min(), spent.max()], [y, y], color=colour, linewidth=1.2, zorder=2)
            axes.plot(default_microseconds(rows, method), y, "o", color=colour, markersize=6, zorder=3)
    axes.grid(axis="x", color=LINE)
    _finish(axes, [""] * len(methods))
    axes.set_xlabel("microseconds per row")
    axes.set_title("default, and range of all settings", **NOTE)


def _finish(axes: Axes, labels: list[str]) -> None:
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_xscale("log")
    axes.set_axisbelow(True)
