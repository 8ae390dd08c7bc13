"""The paper's figures, drawn from the tables of its studies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from streamlasso.report.plots import DARK, GREY, LIGHT
from streamlasso.reproduce.comparison import Line
from streamlasso.reproduce.learners import (
    APPROXIMATE,
    FIXED,
    FLOOR,
    LOG_RMS,
    MIXTURE,
    RAP,
    STEPWISE,
)
from streamlasso.reproduce.nonstationary import FIXED_LENGTH, N_REGIMES, RANDOM_LENGTHS
from streamlasso.reproduce.stationary import LOG_RMS as LOG_RMS_RULE
from streamlasso.reproduce.stationary import Line as RuleLine

FAMILIES = {"gaussian": "linear", "binomial": "logistic"}
LOSSES = {"gaussian": "half squared error", "binomial": "log loss"}
#: Learner -> how it is drawn; dark and light differ in grey, dashes tell the rest apart.
LAM_STYLES: dict[str, dict[str, Any]] = {
    STEPWISE: dict(color=LIGHT, linewidth=2.0),
    FIXED: dict(color=GREY, linewidth=1.3, linestyle="--"),
    RAP: dict(color=DARK, linewidth=1.7),
    APPROXIMATE: dict(color=DARK, linewidth=1.2, linestyle=(0, (4, 2))),
    LOG_RMS: dict(color="black", linewidth=1.1, linestyle=":"),
}
LOSS_STYLES: dict[str, dict[str, Any]] = {
    STEPWISE: LAM_STYLES[STEPWISE],
    FIXED: LAM_STYLES[FIXED],
    RAP: LAM_STYLES[RAP],
    APPROXIMATE: LAM_STYLES[APPROXIMATE],
    MIXTURE: dict(color="black", linewidth=1.5, linestyle="-."),
    FLOOR: dict(color="black", linewidth=0.8),
}
#: Rows that a drawn loss is averaged over, and those at the start that are not drawn: nothing has been learnt yet.
SMOOTHED, NOT_DRAWN = 5, 10
#: How far beyond its quartiles, in units of their distance, a difference is drawn.
WHISKER = 3.0


def frame(axes: Axes) -> None:
    """Two spines, and faint lines to read heights by."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)


# --- stationary: violins ----------------------------------------------------------------------------------------------

#: Rule -> colour and where it stands beside the tick of its dimension.
VIOLINS = {RAP: (DARK, -0.2), LOG_RMS_RULE: (LIGHT, 0.2)}


def draw_stationary(draws: pyarrow.Table, lines: Sequence[RuleLine]) -> Figure:
    """The difference of l1 norms by dimension, for RAP at its best step size and for LogRMS."""
    figure = Figure(figsize=(9, 3.9))
    figure.set_layout_engine("constrained")
    rows = draws.to_pylist()
    for axes, (family, name) in zip(figure.subplots(1, 2), FAMILIES.items(), strict=True):
        best = [line for line in lines if line.family == family and line.best and line.rule in VIOLINS]
        chosen = {
            (line.rule, line.p): np.array([row["norm_cv"] - row["norm"] for row in rows if _is_of(row, line)])
            for line in best
        }
        _draw_violins(axes, chosen)
        axes.set_title(f"{name} regression", loc="left", fontsize=10)
    handles: list[Artist] = [Patch(color=colour, alpha=0.6) for colour, _ in VIOLINS.values()]
    handles.append(Line2D([], [], color="black", marker="o", markersize=3.5, linewidth=1.6))
    labels = [f"{RAP}, its best step in hindsight", f"{LOG_RMS_RULE}, its default step", "median and quartiles"]
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8.5)
    return figure


def _is_of(row: dict[str, Any], line: RuleLine) -> bool:
    return (row["family"], row["p"], row["rule"], row["step"]) == (line.family, line.p, line.rule, line.step)


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
    """All of nearly every group: a lam near 0 that separates the classes has a norm without bound."""
    lows, highs = [], []
    for values in groups:
        first, third = np.quantile(values, [0.25, 0.75])
        reach = WHISKER * (third - first)
        lows.append(values[values >= first - reach].min())
        highs.append(values[values <= third + reach].max())
    margin = 0.05 * (max(highs) - min(lows))
    return min(lows) - margin, max(highs) + margin


# --- non-stationary: lam and loss over time ---------------------------------------------------------------------------


def draw_nonstationary(curves: pyarrow.Table, lines: Sequence[Line], order: str, lengths: str) -> Figure:
    """Two by two: linear and logistic regression; lam, and the loss of each row, as means over draws."""
    figure = Figure(figsize=(9.4, 6.2))
    figure.set_layout_engine("constrained", h_pad=0.08)
    grid = figure.subplots(2, 2, sharex=True, squeeze=False)
    rows = [row for row in curves.to_pylist() if row["order"] == order]
    families = [family for family in FAMILIES if any(row["family"] == family for row in rows)]
    for axes in grid[len(families) :].flat:
        axes.set_visible(False)
    for (left, right), family in zip(grid, families, strict=False):
        best = {
            line.learner: line.setting
            for line in lines
            if (line.family, line.order, line.best) == (family, order, True)
        }
        shown = [row for row in rows if row["family"] == family and best.get(row["learner"]) == row["setting"]]
        _draw_curves(left, shown, "lam", LAM_STYLES, lengths)
        _draw_curves(right, shown, "loss", LOSS_STYLES, lengths)
        left.set_ylabel(r"$\lambda$ (mean)")
        right.set_ylabel(f"{LOSSES[family]} (mean)")
        for axes, what in ((left, "the penalty"), (right, f"loss, mean of {SMOOTHED} rows")):
            axes.set_title(f"{FAMILIES[family]} regression: {what}", loc="left", fontsize=9.5)
    for axes in grid[len(families) - 1]:
        axes.set_xlabel("row" if lengths == "fixed" else "row of the regime; regimes have 60 to 150 rows")
        axes.tick_params(labelbottom=True)
    styles = LAM_STYLES | LOSS_STYLES
    handles = [Line2D([], [], label=name, **style) for name, style in styles.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=8.5)
    return figure


def _draw_curves(
    axes: Axes, rows: Sequence[dict[str, Any]], what: str, styles: dict[str, dict[str, Any]], lengths: str
) -> None:
    """Regimes of random length are set side by side, aligned at their starts, as far as every draw goes."""
    length = FIXED_LENGTH if lengths == "fixed" else min(RANDOM_LENGTHS)
    for learner, style in styles.items():
        for regime in range(N_REGIMES):
            points = sorted(
                (row["age"], row[what] / row["draws"])
                for row in rows
                if row["learner"] == learner and row["regime"] == regime and row["age"] < length
            )
            if points:
                age, value = np.array(points).T
                if what == "loss":
                    age, value = _smoothed(age), _smoothed(value)
                skipped = NOT_DRAWN if regime == 0 else 0
                axes.plot(regime * length + age[skipped:], value[skipped:], **style)
    for regime in range(1, N_REGIMES):
        axes.axvline(regime * length - 0.5, color=GREY, linewidth=0.7, linestyle=":")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlim(0, N_REGIMES * length)
    ticks = range(0, N_REGIMES * length + 1, length // 2)
    of = length if lengths == "random" else N_REGIMES * length + 1
    axes.set_xticks(ticks, [str(tick % of) for tick in ticks])
    frame(axes)


def _smoothed(values: np.ndarray) -> np.ndarray:
    return np.convolve(values, np.full(SMOOTHED, 1 / SMOOTHED), mode="valid")
