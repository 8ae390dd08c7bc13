"""The figure of the stationary study, drawn from its table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from streamlasso.report.axes import frame
from streamlasso.report.colours import DARK, LIGHT
from streamlasso.reproduce.learners import RAP
from streamlasso.reproduce.page import REGRESSIONS

if TYPE_CHECKING:
    from streamlasso.reproduce.stationary import RuleSummary

LOG_RMS = "LogRMS"
#: How far beyond its quartiles, in units of their distance, a difference is drawn.
WHISKER = 3.0
#: Rule -> colour and where it stands beside the tick of its dimension.
VIOLINS = {RAP: (DARK, -0.2), LOG_RMS: (LIGHT, 0.2)}


def draw_stationary(draws: pyarrow.Table, rules: Sequence[RuleSummary]) -> Figure:
    """The difference of l1 norms by dimension, for RAP at its best step size and for LogRMS."""
    figure = Figure(figsize=(9, 3.9))
    figure.set_layout_engine("constrained")
    rows = draws.to_pylist()
    for axes, (family, name) in zip(figure.subplots(1, 2), REGRESSIONS.items(), strict=True):
        best = [rule for rule in rules if rule.family == family and rule.best and rule.rule in VIOLINS]
        chosen = {
            (rule.rule, rule.p): np.array([row["norm_cv"] - row["norm"] for row in rows if _is_of(row, rule)])
            for rule in best
        }
        _draw_violins(axes, chosen)
        axes.set_title(f"{name} regression", loc="left", fontsize=10)
    handles: list[Artist] = [Patch(color=colour, alpha=0.6) for colour, _ in VIOLINS.values()]
    handles.append(Line2D([], [], color="black", marker="o", markersize=3.5, linewidth=1.6))
    labels = [f"{RAP}, its best step in hindsight", f"{LOG_RMS}, its default step", "median and quartiles"]
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8.5)
    return figure


def _is_of(row: dict[str, Any], rule: RuleSummary) -> bool:
    return (row["family"], row["p"], row["rule"], row["step"]) == (rule.family, rule.p, rule.rule, rule.step)


def _draw_violins(axes: Axes, chosen: dict[tuple[str, int], np.ndarray]) -> None:
    dimensions = sorted({p for _, p in chosen})
    low, high = _drawn_range(list(chosen.values()))
    outside = total = 0
    axes.axhline(0, color="black", linewidth=0.8)
    for (rule, p), values in chosen.items():
        colour, aside = VIOLINS[rule]
        at = dimensions.index(p) + aside
        inside = values[(values >= low) & (values <= high)]
        total, outside = total + len(values), outside + len(values) - len(inside)
        parts: Any = axes.violinplot(inside, [at], widths=0.38, showextrema=False)
        for body in parts["bodies"]:
            body.set(facecolor=colour, edgecolor="none", alpha=0.6)
        quartile = np.quantile(values, [0.25, 0.5, 0.75])
        axes.plot([at, at], quartile[[0, 2]], color="black", linewidth=1.6)
        axes.plot(at, quartile[1], "o", color="black", markersize=3.5)
    axes.set_ylim(low, high)
    axes.set_xticks(range(len(dimensions)), [str(p) for p in dimensions])
    axes.set_xlabel("number of features p" + (f"; {outside} of {total:,} beyond the edge" if outside else ""))
    axes.set_ylabel(r"difference in $\ell_1$ norm, CV $-$ rule")
    frame(axes)


def _drawn_range(groups: Sequence[np.ndarray]) -> tuple[float, float]:
    """Nearly all of every group: a lam near 0 that separates the classes has an unbounded norm."""
    lows, highs = [], []
    for values in groups:
        first, third = np.quantile(values, [0.25, 0.75])
        reach = WHISKER * (third - first)
        lows.append(values[values >= first - reach].min())
        highs.append(values[values <= third + reach].max())
    margin = 0.05 * (max(highs) - min(lows))
    return min(lows) - margin, max(highs) + margin
