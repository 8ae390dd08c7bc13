"""What all figures share: frames, axes of time, legends that cover no data."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

from streamlasso.report.colours import GREY
from streamlasso.report.summary import Summary

#: Of small print beside a title.
NOTE: dict[str, Any] = {"fontsize": 9, "color": "#555555"}
LABEL_LENGTH = 24

Entries = list[tuple[str, Artist]]


def rgb(color: str) -> np.ndarray:
    return np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255


def tint(color: str, share: float) -> str:
    """The colour, mixed with white."""
    return "#" + "".join(f"{round(255 * level):02x}" for level in 1 - share * (1 - rgb(color)))


def label_of(name: Any) -> str:
    """A name as matplotlib shows it: no mathematics, no line breaks, not too long."""
    short = " ".join(str(name).split())
    if len(short) > LABEL_LENGTH:
        short = short[: LABEL_LENGTH // 2] + "…" + short[-(LABEL_LENGTH // 2 - 1) :]
    return short.replace("$", r"\$")


def frame(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)


def message(axes: Axes, text: str) -> None:
    """In place of curves."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=GREY)
    axes.set_yticks([])


# --- time and scales --------------------------------------------------------------------------------------------------


def extent_of(summary: Summary) -> tuple[float, float]:
    """The time axis: half a row before the first row to half a row after the last."""
    return _first_row(summary) - 0.5, summary.t[-1] + 0.5


def time_axis(axes: Axes, summary: Summary) -> None:
    axes.set_xlim(*extent_of(summary))
    if summary.times is None:
        axes.set_xlabel("row")
        axes.xaxis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 5, 10], integer=True))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        return
    axes.set_xlabel("time; rows are evenly spaced")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    # The day, or the whole time where all rows are of a few days.
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
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


# --- legends ----------------------------------------------------------------------------------------------------------


def legend(axes: Axes, summary: Summary, entries: Entries | None = None) -> None:
    """Outside the axes, so that it covers no data: above them, or beside them where each class has an entry."""
    if summary.model_labels:
        handles, labels = _handles(axes, entries)
        axes.legend(handles, labels, loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=8)
    else:
        legend_above(axes, entries)


def legend_above(axes: Axes, entries: Entries | None = None) -> None:
    handles, labels = _handles(axes, entries)
    axes.legend(
        handles,
        labels,
        loc="lower right",
        bbox_to_anchor=(1, 1),
        ncols=len(labels),
        frameon=False,
        fontsize=8,
        borderaxespad=0.1,
    )


def _handles(axes: Axes, entries: Entries | None) -> tuple[list[Artist], list[str]]:
    if entries is None:
        return axes.get_legend_handles_labels()
    return [handle for _, handle in entries], [label for label, _ in entries]
