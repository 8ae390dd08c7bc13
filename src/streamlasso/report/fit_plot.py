"""Predicted against actual: over the whole stream in windows, and the last rows one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from streamlasso._text import percent, share_of
from streamlasso.report.axes import TITLE, Entries, frame, label_of, legend_above, message, row_axis
from streamlasso.report.colours import BAND, DARK, GREY, INTERVAL
from streamlasso.report.curves import window_edges, window_means
from streamlasso.report.fit import N_RECENT
from streamlasso.report.summary import Summary

#: Windows of a panel: of numbers, and of classes, whose shares need more rows each.
MOST_WINDOWS, MOST_CLASS_WINDOWS, ROWS_OF_A_SHARE = 300, 60, 25
#: Classes with a panel of their own, the most common ones.
MOST_CLASSES = 6
#: The share of predictions, at either end, that need not be within the picture: after two or three rows they may be
#: anything.
SPIKES = 0.01
ACTUAL: dict[str, Any] = dict(color=GREY, linewidth=1.8)
PREDICTED: dict[str, Any] = dict(color=DARK, linewidth=1.2)


def fit_columns(summary: Summary) -> list[int]:
    """The columns that are drawn: the only one, the rarer of two classes, the most common of several."""
    n = summary.actual.shape[1]
    if summary.classes is None or n <= 1:
        return list(range(n))
    rows = summary.confusion.sum(axis=1)
    if len(summary.classes) == 2:
        return [int(np.argmin(rows))]
    return [int(k) for k in np.argsort(-rows, kind="stable")[:MOST_CLASSES]]


def draw_fit(axes: Axes, summary: Summary, column: int) -> None:
    """Means of windows; of numbers also the interval, or the lowest and the highest within each."""
    scored = summary.scored > 0
    with_interval = summary.coverage is not None and summary.classes is None
    axes.set_title(_title(summary, column), **TITLE)
    if not scored.any():
        message(axes, "no row has been predicted yet")
        return
    edges = window_edges(scored.sum(), *_windows(summary))
    n = summary.scored[scored]
    t, actual, predicted = (
        window_means(values[scored], n, edges)
        for values in (summary.t - (summary.rows - 1) / 2, summary.actual[:, column], summary.predicted[:, column])
    )
    entries: Entries = [("actual", Line2D([], [], **ACTUAL)), ("predicted", Line2D([], [], **PREDICTED))]
    size = round(float(summary.rows[scored].sum()) / len(t))
    if size > 1 and with_interval:
        axes.set_title(f"{_title(summary, column)}, means of {size:,} rows", **TITLE)
    elif size > 1:
        entries = [(f"{name}, mean of {size:,} rows", line) for name, line in entries]
    if summary.classes is None and size > 1 and not with_interval:
        low, high = (
            reduce.reduceat(summary.actual_range[scored, k, column], edges)
            for k, reduce in enumerate((np.minimum, np.maximum))
        )
        axes.fill_between(t, low, high, color=BAND, linewidth=0)
        entries.append(("lowest to highest", Patch(color=BAND)))
    usual = np.quantile(predicted, [SPIKES, 1 - SPIKES])
    if with_interval:
        ends = [window_means(summary.interval[scored, k, column], n, edges) for k in range(2)]
        usual = np.append(usual, _usual_ends(ends))
        entries.append(_draw_interval(axes, summary, t, *ends))
    axes.plot(t, actual, **ACTUAL)
    axes.plot(t, predicted, **PREDICTED)
    if summary.classes is None:
        _scale_of_numbers(axes, summary, summary.actual_range[scored, :, column], usual)
    else:
        _scale_of_shares(axes, min(1.0, 1.1 * max(actual.max(), predicted.max())) or 1.0)
    if summary.classes is None or len(summary.classes) == 2:
        legend_above(axes, entries)


def draw_recent(axes: Axes, summary: Summary, column: int) -> None:
    """The last rows, one by one."""
    t, values = summary.recent.t, summary.recent.values[:, :, column]
    axes.set_title(f"The last {len(t):,} rows, one by one", **TITLE)
    dots = dict(marker="o", markersize=3.2)
    style: dict[str, Any] = ACTUAL | dots | (dict(linewidth=1.0) if summary.classes is None else dict(linestyle="none"))
    entries: Entries = [("actual", Line2D([], [], **style)), ("predicted", Line2D([], [], **PREDICTED))]
    within = values[:, 1]
    if summary.coverage is not None and summary.classes is None:
        entries.append(_draw_interval(axes, summary, t, values[:, 2], values[:, 3]))
        within = np.append(within, _usual_ends([values[:, 2], values[:, 3]]))
    axes.plot(t, values[:, 0], **style)
    axes.plot(t, values[:, 1], **PREDICTED)
    if summary.classes is None:
        _scale_of_numbers(axes, summary, values[:, 0], within)
    else:
        _scale_of_shares(axes, 1.03, -0.03)
    legend_above(axes, entries)
    row_axis(axes, t[0] - 0.5, t[-1] + 0.5)


def _draw_interval(
    axes: Axes, summary: Summary, t: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[str, Artist]:
    """A band between the ends; none where they are not known."""
    assert summary.coverage is not None
    axes.fill_between(t, low, high, color=INTERVAL, linewidth=0)
    return f"{share_of(summary.coverage)} interval", Patch(color=INTERVAL)


def _usual_ends(ends: list[np.ndarray]) -> np.ndarray:
    """Where the ends mostly are: the first few intervals may be anything."""
    known = np.concatenate(ends)
    known = known[~np.isnan(known)]
    return np.quantile(known, [SPIKES, 1 - SPIKES]) if len(known) else known


def shows_recent(summary: Summary) -> bool:
    """Whether single rows cannot be seen in the panel of the whole stream."""
    one = summary.classes is None or len(summary.classes) == 2
    return one and summary.n_rows > (2 * N_RECENT if summary.classes is None else N_RECENT // 2)


def shared_key() -> Entries:
    """For the panels of several classes, which have no legend of their own."""
    return [("actual", Line2D([], [], **ACTUAL)), ("predicted", Line2D([], [], **PREDICTED))]


def _windows(summary: Summary) -> tuple[int, int]:
    """The most windows, and the fewest stretches in one."""
    if summary.classes is None:
        return MOST_WINDOWS, 1
    return MOST_CLASS_WINDOWS, -(-ROWS_OF_A_SHARE // summary.size)


def _title(summary: Summary, column: int) -> str:
    if summary.classes is None:
        return "Predicted against actual"
    share = f"Share of {label_of(summary.classes[column])}"
    return f"{share}, predicted against actual" if len(summary.classes) == 2 else share


def _scale_of_shares(axes: Axes, high: float, low: float = 0.0) -> None:
    frame(axes)
    axes.set_ylim(low, high)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=3))
    axes.yaxis.set_major_formatter(lambda value, _: percent(value))


def _scale_of_numbers(axes: Axes, summary: Summary, actual: np.ndarray, predicted: np.ndarray) -> None:
    frame(axes)
    shown = np.concatenate([actual.ravel(), predicted])
    margin = 0.06 * np.ptp(shown) or 1.0
    axes.set_ylim(shown.min() - margin, shown.max() + margin)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
    axes.set_ylabel(label_of(summary.target or "response"))
