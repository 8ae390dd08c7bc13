"""What the figures of the studies share."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

#: File name -> figure and caption.
Figures = dict[str, tuple[Figure, str]]
#: Family -> its name in titles.
REGRESSIONS = {"gaussian": "linear", "binomial": "logistic"}


def frame(axes: Axes) -> None:
    """Two spines, and faint lines to read heights by."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)


def plain_numbers(axes: Axes, which: str = "y") -> None:
    """0.01 instead of 10^-2 at the ticks of a log axis."""
    axis = axes.yaxis if which == "y" else axes.xaxis
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
