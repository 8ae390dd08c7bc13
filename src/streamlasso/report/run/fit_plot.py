"""Predicted against actual: over the whole stream in windows, and the last rows one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
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

#: Windows of a panel: for numbers, and for classes, whose shares need more rows each.
MOST_WINDOWS, MOST_CLASS_WINDOWS, ROWS_OF_A_SHARE = 300, 60, 25
#: Classes with a panel of their own, the most common ones.
MOST_CLASSES = 6
#: The share of predictions, at either end, that may lie outside the picture: after two or three rows they may be
#: anything.
SPIKES = 0.01
ACTUAL: dict[str, Any] = dict(color=GREY, linewidth=1.8)
PREDICTED: dict[str, Any] = dict(color=DARK, linewidth=1.2)
#: For several panels of classes, which share one legend.
KEY: Entries = [("actual", Line2D([], [], **ACTUAL)), ("predicted", Line2D([], [], **PREDICTED))]


def fit_columns(summary: Summary) -> list[int]:
    """The columns that are drawn: the only one, the rarer of two classes, the most common of several."""
    n = summary.actual.shape[1]
    if summary.classes is None or n <= 1:
        return list(range(n))
    rows = summary.confusion.sum(axis=1)
    if len(summary.classes) == 2:
        return [int(np.argmin(rows))]
    return [int(k) for k in np.argsort(-rows, kind="stable")[:MOST_CLASSES]]


def shows_recent(summary: Summary) -> bool:
    """Whether single rows cannot be seen in the panel of the whole stream."""
    one = summary.classes is None or len(summary.classes) == 2
    return one and summary.n_rows > (2 * N_RECENT if summary.classes is None else N_RECENT // 2)


def draw_fit(axes: Axes, summary: Summary, column: int) -> None:
    """Means of windows; for numbers also the interval, or the lowest and the highest within each."""
    scored, numbers = summary.scored > 0, summary.classes is None
    title = _title(summary, column)
    axes.set_title(title, **TITLE)
    if not scored.any():
        message(axes, "no row has been predicted yet")
        return
    most, least = (MOST_WINDOWS, 1) if numbers else (MOST_CLASS_WINDOWS, -(-ROWS_OF_A_SHARE // summary.size))
    edges, n = window_edges(scored.sum(), most, least), summary.scored[scored]

    def means(values: np.ndarray) -> np.ndarray:
        return window_means(values[scored], n, edges)

    t, actual, predicted = map(
        means, (summary.t - (summary.rows - 1) / 2, summary.actual[:, column], summary.predicted[:, column])
    )
    entries, ends = list(KEY), None
    size = round(float(summary.rows[scored].sum()) / len(t))
    if summary.coverage is not None and numbers:
        ends = [means(summary.interval[:, k, column]) for k in range(2)]
        axes.set_title(f"{title}, means of {size:,} rows" if size > 1 else title, **TITLE)
    elif size > 1:
        entries = [(f"{name}, mean of {size:,} rows", line) for name, line in entries]
    if numbers and size > 1 and ends is None:
        low, high = (
            reduce.reduceat(summary.actual_range[scored, k, column], edges)
            for k, reduce in enumerate((np.minimum, np.maximum))
        )
        axes.fill_between(t, low, high, color=BAND, linewidth=0)
        entries.append(("lowest to highest", Patch(color=BAND)))
    _draw(axes, summary, t, actual, predicted, ends, entries)
    frame(axes)
    if numbers:
        _scale_of_numbers(axes, summary, summary.actual_range[scored, :, column], _usual(predicted), ends)
    else:
        _scale_of_shares(axes, min(1.0, 1.1 * max(actual.max(), predicted.max())) or 1.0)
    if numbers or len(summary.classes or ()) == 2:
        legend_above(axes, entries)


def draw_recent(axes: Axes, summary: Summary, column: int) -> None:
    """The last rows, one by one."""
    t, (actual, predicted, *ends) = summary.recent.t, summary.recent.values[:, :, column].T
    axes.set_title(f"The last {len(t):,} rows, one by one", **TITLE)
    numbers = summary.classes is None
    style = ACTUAL | dict(marker="o", markersize=3.2, linewidth=1.0) | ({} if numbers else dict(linestyle="none"))
    entries: Entries = [("actual", Line2D([], [], **style)), KEY[1]]
    shown = ends if summary.coverage is not None and numbers else None
    _draw(axes, summary, t, actual, predicted, shown, entries, style)
    frame(axes)
    if numbers:
        _scale_of_numbers(axes, summary, actual, predicted, shown)
    else:
        _scale_of_shares(axes, 1.03, -0.03)
    legend_above(axes, entries)
    row_axis(axes, t[0] - 0.5, t[-1] + 0.5)


def _draw(
    axes: Axes,
    summary: Summary,
    t: np.ndarray,
    actual: np.ndarray,
    predicted: np.ndarray,
    ends: list[np.ndarray] | None,
    entries: Entries,
    style: dict[str, Any] = ACTUAL,
) -> None:
    """The curves, and a band between the ends of the intervals, if there are any, which is added to the legend."""
    if ends is not None and summary.coverage is not None:
        axes.fill_between(t, ends[0], ends[1], color=INTERVAL, linewidth=0)
        entries.append((f"{share_of(summary.coverage)} interval", Patch(color=INTERVAL)))
    axes.plot(t, actual, **style)
    axes.plot(t, predicted, **PREDICTED)


def _title(summary: Summary, column: int) -> str:
    if summary.classes is None:
        return "Predicted against actual"
    share = f"Share of {label_of(summary.classes[column])}"
    return f"{share}, predicted against actual" if len(summary.classes) == 2 else share


def _scale_of_shares(axes: Axes, high: float, low: float = 0.0) -> None:
    axes.set_ylim(low, high)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=3))
    axes.yaxis.set_major_formatter(lambda value, _: percent(value))


def _scale_of_numbers(
    axes: Axes, summary: Summary, actual: np.ndarray, predicted: np.ndarray, ends: list[np.ndarray] | None
) -> None:
    """All of `actual` and `predicted`, and nearly all ends: the first few intervals may be anything."""
    shown = np.concatenate([actual.ravel(), predicted, _usual(np.concatenate(ends or [np.empty(0)]))])
    margin = 0.06 * np.ptp(shown) or 1.0
    axes.set_ylim(shown.min() - margin, shown.max() + margin)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
    axes.set_ylabel(label_of(summary.target or "response"))


def _usual(values: np.ndarray) -> np.ndarray:
    """Where nearly all of the known values are."""
    known = values[~np.isnan(values)]
    return np.quantile(known, [SPIKES, 1 - SPIKES]) if len(known) else known
