"""What all figures share: frames, axes of time, plain numbers, and legends that cover no data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

from streamlasso.report.colours import BAND, DARK, GREY, LINE, NOTE_INK
from streamlasso.report.curves import thinned
from streamlasso.report.summary import Summary

#: The title of a panel, and small print beside it.
TITLE: dict[str, Any] = {"loc": "left", "fontsize": 10.5}
NOTE: dict[str, Any] = {"fontsize": 9, "color": NOTE_INK}
LABEL_LENGTH = 24

Entries = list[tuple[str, Artist]]


def label_of(name: Any) -> str:
    """A name as matplotlib shows it: no mathematics, no line breaks, not too long."""
    short = " ".join(str(name).split())
    if len(short) > LABEL_LENGTH:
        short = short[: LABEL_LENGTH // 2] + "…" + short[-(LABEL_LENGTH // 2 - 1) :]
    return short.replace("$", r"\$")


def frame(axes: Axes) -> None:
    """Two spines, and faint lines to read heights by."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=LINE, linewidth=0.6)
    axes.set_axisbelow(True)


def message(axes: Axes, text: str) -> None:
    """In place of curves."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=GREY)
    axes.set_yticks([])


def draw_range(axes: Axes, t: np.ndarray, values: np.ndarray, label: str) -> None:
    """Several curves (time, curve) as their median, and a band from the lowest to the highest."""
    known = ~np.all(np.isnan(values), axis=1)
    t, values = t[known], values[known]
    axes.fill_between(t, np.nanmin(values, axis=1), np.nanmax(values, axis=1), color=BAND, linewidth=0)
    axes.plot(*thinned(t, np.nanmedian(values, axis=1)), color=DARK, linewidth=1.4, label=label)


# --- time and scales --------------------------------------------------------------------------------------------------


def extent_of(summary: Summary) -> tuple[float, float]:
    """The time axis: half a row before the first row to half a row after the last."""
    return _first_row(summary) - 0.5, summary.t[-1] + 0.5


def row_axis(axes: Axes, start: float, stop: float, n_ticks: int = 8) -> None:
    """Numbers of rows."""
    axes.set_xlim(start, stop)
    axes.set_xlabel("row")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=n_ticks, steps=[1, 2, 5, 10], integer=True))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def time_axis(axes: Axes, summary: Summary, n_ticks: int = 8, labelled: bool = True) -> None:
    """The rows of the whole stream, or their times."""
    row_axis(axes, *extent_of(summary), n_ticks)
    if not labelled:
        axes.set_xlabel("")
        axes.tick_params(axis="x", labelbottom=False)
        return
    if summary.times is None:
        return
    axes.set_xlabel("time; rows are evenly spaced")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=max(n_ticks - 2, 2), integer=True))
    # The day, or the whole time if the rows span only a few days.
    length = 10 if len({time[:10] for time in summary.times}) > 2 else None
    axes.xaxis.set_major_formatter(FuncFormatter(lambda row, _: _time_at(summary, row)[:length]))


def _first_row(summary: Summary) -> int:
    return int(summary.t[0] - summary.rows[0] + 1)


def _time_at(summary: Summary, row: float) -> str:
    assert summary.times is not None
    if not _first_row(summary) <= row <= summary.t[-1]:
        return ""
    return label_of(summary.times[min(int(np.searchsorted(summary.t, row)), len(summary.times) - 1)])


def log_scale(axes: Axes, ratio: float) -> None:
    """Ticks at 0.1, 1, 10 in digits, with 2 and 5 between them if the values range over a small ratio."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0,) if ratio > 300 else (1.0, 2.0, 5.0)))
    plain_numbers(axes)


def plain_numbers(axes: Axes, which: str = "y", words: Mapping[float, str] | None = None) -> None:
    """0.01 instead of 10^-2 at the ticks of a log axis; `words` replace some of the numbers."""
    axis = axes.yaxis if which == "y" else axes.xaxis
    axis.set_major_formatter(FuncFormatter(lambda value, _: (words or {}).get(value, f"{value:g}")))
    axis.set_minor_formatter(NullFormatter())


# --- legends ----------------------------------------------------------------------------------------------------------


def legend_above(axes: Axes, entries: Entries | None = None, below: float | None = None) -> None:
    """Outside the axes, so that it covers no data; or `below` them, by a share of their height."""
    handles, labels = axes.get_legend_handles_labels()
    if entries is not None:
        handles, labels = [handle for _, handle in entries], [label for label, _ in entries]
    axes.legend(
        handles,
        labels,
        loc="lower right" if below is None else "upper right",
        bbox_to_anchor=(1, 1 if below is None else -below),
        ncols=len(labels),
        frameon=False,
        fontsize=8,
        borderaxespad=0.1,
    )
