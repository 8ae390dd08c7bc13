"""The leaderboard's table -> a summary to read, and a figure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

from streamlasso.bench.entries import BASELINES, DEFAULT, METHODS, OURS
from streamlasso.report.plots import DARK, GREY, LIGHT

Line = dict[str, Any]
#: Relative losses beyond this are drawn at the edge.
WORST_DRAWN = 2.0
MARKERS = {
    "river": "s",
    "river-bayesian": "D",
    "sklearn-sgd": "^",
    "vowpal-wabbit": "v",
    "refit": "P",
    "ondil": "X",
    OURS: "o",
}
Style = dict[str, Any]
PERSISTENCE: Style = dict(marker="|", mec="black", ms=12, mew=1.8, zorder=2)
PEER_DEFAULT: Style = dict(mec=GREY, mfc="none", ms=5.5, zorder=2)
PEER_BEST: Style = dict(mec="black", mfc=LIGHT, ms=6.5, mew=0.5, zorder=3)
OUR_DEFAULT: Style = dict(mec="white", mfc=DARK, ms=7, mew=0.6, zorder=5)
OUR_BEST: Style = dict(mec=DARK, mfc="none", ms=11, mew=1.4, zorder=4)


@dataclass(frozen=True)
class Standing:
    """A method on a task: its line as it comes, and its best in hindsight; None where it did not get through."""

    default: Line | None
    best: Line | None
    trouble: str

    @property
    def cell(self) -> str:
        """Default / best in hindsight."""
        if self.default is None and self.best is None:
            return self.trouble
        return f"{_number(self.default, self.trouble)} / {_number(self.best, self.trouble)}"


def summary(table: pyarrow.Table) -> str:
    """The table as Markdown: what peers and ours lose on each task, and how long they take.

    >>> import pyarrow
    >>> from streamlasso.bench.leaderboard import Result, SCHEMA
    >>> line = Result("elec2", "binomial", 99, 8, "river", "default", 0.5, 0.8, 90.0, 49, "ok", "0.26").__dict__
    >>> print(summary(pyarrow.Table.from_pylist([line], SCHEMA)).splitlines()[7])
    | elec2 (b, 99 x 8) | 0.800 / 0.800 | river, default | 0.800 |
    """
    lines = table.to_pylist()
    shown = [method for method in METHODS if method != "running-mean" and _of(lines, method=method)]
    parts = [_losses(lines, shown), _times(lines, shown)]
    if _of(lines, method=OURS):
        parts.insert(1, _ours(lines))
    return "\n".join(parts)


def standing(lines: Iterable[Line], task: str, method: str) -> Standing:
    """How a method did on a task."""
    mine = _of(lines, task=task, method=method)
    through = [line for line in mine if line["status"] == "ok"]
    default = next((line for line in through if line["setting"].startswith(DEFAULT)), None)
    best = min(through, key=lambda line: line["relative"], default=None)
    slow = any(line["status"] == "too slow" for line in mine)
    return Standing(default, best, "too slow" if slow else "fails" if mine else "-")


def best_peer(lines: Iterable[Line], task: str) -> Line | None:
    """The best of all peers with all settings, persistence included, on a task."""
    peers = [standing(lines, task, method).best for method in METHODS if method not in (OURS, "running-mean")]
    return min((line for line in peers if line), key=lambda line: line["relative"], default=None)


def _of(lines: Iterable[Line], **wanted: str) -> list[Line]:
    return [line for line in lines if all(line[name] == value for name, value in wanted.items())]


def _tasks(lines: Iterable[Line]) -> list[str]:
    return list(dict.fromkeys(line["task"] for line in lines))


def _number(line: Line | None, otherwise: str = "-") -> str:
    if line is None:
        return otherwise
    return f"{line['relative']:.3f}" if line["relative"] < 10 else f"{line['relative']:.0f}"


# --- Markdown ---------------------------------------------------------------------------------------------------------


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, ["---"] * len(head), *rows])


def _losses(lines: list[Line], shown: list[str]) -> str:
    text = (
        "## Loss relative to the running mean\n\n"
        "Half squared error, log loss or Poisson deviance over the rows after the 50th; as it comes / best setting in "
        'hindsight.\n"fails": it overflowed or predicted no number. "too slow": over the time limit.\n\n'
    )
    rows = []
    for task in _tasks(lines):
        first, peer = _of(lines, task=task)[0], best_peer(lines, task)
        named = "-" if peer is None else f"{peer['method']}, {peer['setting']}"
        cells = [standing(lines, task, method).cell for method in shown]
        title = f"{task} ({first['family'][0]}, {first['rows']} x {first['features']})"
        rows.append([title, *cells, named, _number(peer)])
    return text + _markdown(["stream", *shown, "best peer", "its loss"], rows)


def _ours(lines: list[Line]) -> str:
    """Each of our settings on each task, and how far it is from the best peer in hindsight."""
    text = (
        "## Ours, setting by setting\n\nThe last column is the geometric mean, over the streams, of the loss divided "
        "by that of the best peer in hindsight.\n\n"
    )
    tasks = _tasks(lines)
    rows = []
    for setting in dict.fromkeys(line["setting"] for line in _of(lines, method=OURS)):
        mine = {line["task"]: line for line in _of(lines, method=OURS, setting=setting)}
        through = {task: line for task, line in mine.items() if line["status"] == "ok"}
        cells = [_number(through.get(task), "fails" if task in mine else "-") for task in tasks]
        rows.append([setting, *cells, _against_peers(lines, through)])
    return text + _markdown(["setting", *tasks, "against the best peer"], rows)


def _against_peers(lines: list[Line], mine: dict[str, Line]) -> str:
    peers = {task: best_peer(lines, task) for task in mine}
    ratios = [line["relative"] / peer["relative"] for task, line in mine.items() if (peer := peers[task])]
    return f"{math.exp(np.mean(np.log(ratios))):.3f}" if ratios else "-"


def _times(lines: list[Line], shown: list[str]) -> str:
    text = "## Time a row\n\nMicroseconds of CPU time, Python loop included; over the streams and settings.\n\n"
    rows = []
    for method in shown:
        times = _microseconds(lines, method)
        if len(times):
            rows.append([method, *(f"{value:,.0f}" for value in (np.median(times), times.min(), times.max()))])
    return text + _markdown(["method", "median", "least", "most"], rows)


def _microseconds(lines: list[Line], method: str) -> np.ndarray:
    times = np.array([line["microseconds"] for line in _of(lines, method=method)])
    return times[np.isfinite(times)]


# --- the figure -------------------------------------------------------------------------------------------------------


def draw_leaderboard(table: pyarrow.Table) -> Figure:
    """Left, what each method loses on each task; right, how long it takes a row, over tasks and settings.

    >>> import pyarrow
    >>> from streamlasso.bench.leaderboard import Result, SCHEMA
    >>> line = Result("elec2", "binomial", 99, 8, "river", "default", 0.5, 0.8, 90.0, 49, "ok", "0.26").__dict__
    >>> [axes.get_xlabel() for axes in draw_leaderboard(pyarrow.Table.from_pylist([line], SCHEMA)).axes]
    ['loss relative to the running mean', 'microseconds a row']
    """
    lines = table.to_pylist()
    figure = Figure(figsize=(10.5, 1.7 + 0.36 * max(len(_tasks(lines)), 6)), layout="constrained")
    loss, times = figure.subplots(1, 2, width_ratios=[3, 1.25])
    _draw_losses(loss, lines)
    _draw_times(times, lines)
    shown = {line["method"] for line in lines}
    figure.legend(handles=_legend(shown), loc="outside lower center", ncols=4, frameon=False, fontsize=8.5)
    return figure


def _draw_losses(axes: Axes, lines: list[Line]) -> None:
    tasks = _tasks(lines)
    for row, task in enumerate(tasks):
        axes.axhline(row, color="0.92", linewidth=1, zorder=0)
        for method in METHODS:
            _draw_standing(axes, row, method, standing(lines, task, method))
    axes.axvline(1, color=GREY, linewidth=1, linestyle="--", zorder=1)
    axes.set_yticks(range(len(tasks)), [f"{task} ({_of(lines, task=task)[0]['family'][0]})" for task in tasks])
    axes.set_ylim(len(tasks) - 0.4, -0.6)
    axes.set_xscale("log")
    axes.set_xlim(min(axes.get_xlim()[0], 0.5), WORST_DRAWN * 1.12)
    _plain_ticks(axes)
    axes.set_xlabel("loss relative to the running mean")


def _draw_standing(axes: Axes, row: int, method: str, stood: Standing) -> None:
    """Peers as they come are empty marks, at their best in hindsight full ones; ours are the dark ones."""
    if method == "running-mean":
        return
    if method in BASELINES:
        _draw_mark(axes, stood.best, row, method, PERSISTENCE)
        return
    as_it_comes, best = (OUR_DEFAULT, OUR_BEST) if method == OURS else (PEER_DEFAULT, PEER_BEST)
    shape = dict(marker=MARKERS[method])
    _draw_mark(axes, stood.default, row, f"{method}, as it comes", shape | as_it_comes)
    _draw_mark(axes, stood.best, row, f"{method}, best in hindsight", shape | best)


def _draw_mark(axes: Axes, line: Line | None, row: int, label: str, style: Style) -> None:
    if line is not None:
        axes.plot(min(line["relative"], WORST_DRAWN), row, linestyle="none", label=label, **style)


def _legend(shown: set[str]) -> list[Artist]:
    """Shapes say who, fillings say which setting."""
    peers = [method for method in MARKERS if method in shown - {OURS}]
    marks = [("persistence", PERSISTENCE)] if "persistence" in shown else []
    marks += [(f"{method}, best in hindsight", {"marker": MARKERS[method], **PEER_BEST}) for method in peers]
    marks += [("the same, empty: as it comes", {"marker": "s", **PEER_DEFAULT})] if peers else []
    if OURS in shown:
        ours = {"marker": MARKERS[OURS]}
        marks += [("ours, best in hindsight", ours | OUR_BEST), ("ours as it comes", ours | OUR_DEFAULT)]
    handles: list[Artist] = [Line2D([], [], linestyle="none", label=label, **style) for label, style in marks]
    return [*handles, Line2D([], [], color=GREY, linewidth=1, linestyle="--", label="running mean")]


def _draw_times(axes: Axes, lines: list[Line]) -> None:
    timed = {m: times for m in METHODS if m not in BASELINES and len(times := _microseconds(lines, m))}
    for row, (method, times) in enumerate(timed.items()):
        colour = DARK if method == OURS else GREY
        axes.plot([times.min(), times.max()], [row, row], color=colour, linewidth=1.2, zorder=2)
        axes.plot(np.median(times), row, "o", color=colour, markersize=6, zorder=3)
    axes.set_yticks(range(len(timed)), list(timed))
    axes.set_ylim(len(timed) - 0.4, -0.6)
    axes.set_xscale("log")
    axes.grid(axis="x", color="0.92")
    axes.set_axisbelow(True)
    axes.set_xlabel("microseconds a row")
    axes.set_title("range and median", fontsize=9)


def _plain_ticks(axes: Axes) -> None:
    words = {WORST_DRAWN: f"≥ {WORST_DRAWN:g}"}
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: words.get(value, f"{value:g}")))
    axes.xaxis.set_minor_formatter(NullFormatter())
    low, high = axes.get_xlim()
    ticks = [tick for tick in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2) if low <= tick <= high]
    axes.set_xticks(ticks)
