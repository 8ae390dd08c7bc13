"""The table of results -> figures: the loss of each method, and its time per row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

from streamlasso.bench.entries import BASELINES, LAGGED, METHODS, OURS
from streamlasso.bench.summary import (
    Row,
    Standing,
    default_microseconds,
    microseconds,
    ordered_methods,
    select,
    standing,
    tasks_of,
)
from streamlasso.report.colours import DARK, GREY, LIGHT

#: Relative losses beyond this are drawn at the edge.
WORST_DRAWN = 2.0
TICKS, FINE_TICKS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2), (0.4, 0.6, 0.7, 0.8, 0.9, 1.5)
MARKERS = {
    "river": "s",
    "river-bayesian": "D",
    "sklearn-sgd": "^",
    "vowpal-wabbit": "v",
    "refit": "P",
    "ondil": "X",
    "river-forest": "h",
    "boosting": "p",
    OURS: "o",
}
Style = dict[str, Any]
PERSISTENCE: Style = dict(marker="|", mec="black", ms=12, mew=1.8, zorder=2)
PEER_DEFAULT: Style = dict(mec=GREY, mfc="none", ms=5.5, zorder=2)
PEER_BEST: Style = dict(mec="black", mfc=LIGHT, ms=6.5, mew=0.5, zorder=3)
PEER_LAGGED: Style = dict(mec="black", mfc="white", ms=5, mew=0.9, zorder=3)
OUR_DEFAULT: Style = dict(mec="white", mfc=DARK, ms=7, mew=0.6, zorder=5)
OUR_BEST: Style = dict(mec=DARK, mfc="none", ms=11, mew=1.4, zorder=4)


def draw_leaderboard(table: pyarrow.Table) -> Figure:
    """Several streams. Left, the loss of each method on each task; right, its time per row over tasks and settings.

    >>> import pyarrow
    >>> from streamlasso.bench.results import SCHEMA
    >>> values = ("elec2", "binomial", 99, 8, "river", "default", 0.5, 0.8, 90.0, 49, "ok", "0.26", "0")
    >>> table = pyarrow.Table.from_pylist([dict(zip(SCHEMA.names, values))], SCHEMA)
    >>> [axes.get_xlabel() for axes in draw_leaderboard(table).axes]
    ['loss relative to the running mean', 'microseconds per row']
    """
    rows = table.to_pylist()
    tasks = tasks_of(rows)
    timed = [method for method in METHODS if method not in BASELINES and not method.endswith(LAGGED)]
    methods = [method for method in timed if len(microseconds(rows, method))]
    figure, loss, times = _panels(max(len(tasks), 6))
    for y, task in enumerate(tasks):
        for method in METHODS:
            marker = MARKERS.get(method.removesuffix(LAGGED), "")
            _draw_standing(loss, y, method, standing(rows, task, method), marker)
    _finish_losses(loss, [f"{task} ({select(rows, task=task)[0]['family'][0]})" for task in tasks])
    for y, method in enumerate(methods):
        _draw_times(times, y, method, microseconds(rows, method), np.median(microseconds(rows, method)))
    _finish_times(times, methods, "range and median")
    _add_legend(figure, _shapes({row["method"] for row in rows}))
    return figure


def draw_stream(table: pyarrow.Table) -> Figure:
    """One stream. Left, the loss of each method; right, its time per row.

    >>> import pyarrow
    >>> from streamlasso.bench.results import SCHEMA
    >>> values = ("visits", "poisson", 99, 8, "river", "default", 0.5, 0.8, 90.0, 49, "ok", "0.26", "0")
    >>> table = pyarrow.Table.from_pylist([dict(zip(SCHEMA.names, values))], SCHEMA)
    >>> [label.get_text() for label in draw_stream(table).axes[0].get_yticklabels()]
    ['river']
    """
    rows = table.to_pylist()
    task = tasks_of(rows)[0]
    methods = [method for method in ordered_methods(rows, task) if method != "running-mean"]
    figure, loss, times = _panels(len(methods))
    for y, method in enumerate(methods):
        _draw_standing(loss, y, method, standing(rows, task, method), "o")
        spent = microseconds(rows, method)
        if len(spent) and method not in BASELINES:
            _draw_times(times, y, method, spent, default_microseconds(rows, method))
    _finish_losses(loss, methods)
    loss.set_title(task, loc="left", fontsize=10)
    _finish_times(times, [""] * len(methods), "default, and range of all settings")
    peers, ours = {"marker": "o", **PEER_BEST}, {"marker": "o", **OUR_BEST}
    marks = [("default", {"marker": "o", **PEER_DEFAULT}), ("best setting in hindsight", peers)]
    marks += [(f"{OURS}, default", {"marker": "o", **OUR_DEFAULT}), (f"{OURS}, best setting in hindsight", ours)]
    if any(method.endswith(LAGGED) for method in methods):
        marks.append(("best setting, with lagged responses", {"marker": "o", **PEER_LAGGED}))
    _add_legend(figure, marks)
    return figure


def _panels(n_lines: int) -> tuple[Figure, Axes, Axes]:
    figure = Figure(figsize=(10.5, 1.7 + 0.36 * n_lines), layout="constrained")
    loss, times = figure.subplots(1, 2, width_ratios=[3, 1.25])
    return figure, loss, times


# --- losses -----------------------------------------------------------------------------------------------------------


def _draw_standing(axes: Axes, y: int, method: str, stands: Standing, marker: str) -> None:
    """Peers: open marks for defaults, filled ones for the best in hindsight; ours are dark."""
    if method == "running-mean":
        return
    if method in BASELINES:
        _draw_mark(axes, stands.best, y, method, PERSISTENCE)
        return
    if method.endswith(LAGGED):
        _draw_mark(axes, stands.best, y, f"{method}, best in hindsight", {"marker": marker, **PEER_LAGGED})
        return
    default, best = (OUR_DEFAULT, OUR_BEST) if method == OURS else (PEER_DEFAULT, PEER_BEST)
    _draw_mark(axes, stands.default, y, f"{method}, default", {"marker": marker, **default})
    _draw_mark(axes, stands.best, y, f"{method}, best in hindsight", {"marker": marker, **best})


def _draw_mark(axes: Axes, row: Row | None, y: int, label: str, style: Style) -> None:
    if row is not None:
        axes.plot(min(row["relative"], WORST_DRAWN), y, linestyle="none", label=label, **style)


def _finish_losses(axes: Axes, labels: list[str]) -> None:
    for y in range(len(labels)):
        axes.axhline(y, color="0.92", linewidth=1, zorder=0)
    axes.axvline(1, color=GREY, linewidth=1, linestyle="--", zorder=1)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_xscale("log")
    axes.set_xlim(min(axes.get_xlim()[0], 0.5), WORST_DRAWN * 1.12)
    _plain_ticks(axes)
    axes.set_xlabel("loss relative to the running mean")


def _plain_ticks(axes: Axes) -> None:
    words = {WORST_DRAWN: f"≥ {WORST_DRAWN:g}"}
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: words.get(value, f"{value:g}")))
    axes.xaxis.set_minor_formatter(NullFormatter())
    low, high = axes.get_xlim()
    axes.set_xticks([tick for tick in (*TICKS, *(FINE_TICKS if low > 0.3 else ())) if low <= tick <= high])


def _shapes(shown: set[str]) -> list[tuple[str, Style]]:
    """Shapes tell the methods apart, fillings the settings."""
    peers = [method for method in MARKERS if method in shown - {OURS}]
    marks = [("persistence", PERSISTENCE)] if "persistence" in shown else []
    marks += [(f"{method}, best in hindsight", {"marker": MARKERS[method], **PEER_BEST}) for method in peers]
    marks += [("open: the same, default", {"marker": "s", **PEER_DEFAULT})] if peers else []
    if any(method.endswith(LAGGED) for method in shown):
        marks.append(("white: with lagged responses", {"marker": "s", **PEER_LAGGED}))
    if OURS in shown:
        ours = {"marker": MARKERS[OURS]}
        marks += [(f"{OURS}, best in hindsight", ours | OUR_BEST), (f"{OURS}, default", ours | OUR_DEFAULT)]
    return marks


def _add_legend(figure: Figure, marks: list[tuple[str, Style]]) -> None:
    handles: list[Artist] = [Line2D([], [], linestyle="none", label=label, **style) for label, style in marks]
    handles.append(Line2D([], [], color=GREY, linewidth=1, linestyle="--", label="running mean"))
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=4 if len(handles) > 5 else len(handles),
        frameon=False,
        fontsize=8.5,
    )


# --- times ------------------------------------------------------------------------------------------------------------


def _draw_times(axes: Axes, y: int, method: str, times: np.ndarray, middle: float) -> None:
    colour = DARK if method == OURS else GREY
    axes.plot([times.min(), times.max()], [y, y], color=colour, linewidth=1.2, zorder=2)
    axes.plot(middle, y, "o", color=colour, markersize=6, zorder=3)


def _finish_times(axes: Axes, labels: list[str], title: str) -> None:
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_xscale("log")
    axes.grid(axis="x", color="0.92")
    axes.set_axisbelow(True)
    axes.set_xlabel("microseconds per row")
    axes.set_title(title, fontsize=9)
