"""The figures of the non-stationary study, drawn from its tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator
from pyarrow import parquet

from streamlasso.report.axes import frame, plain_numbers
from streamlasso.report.colours import DARK, GREY, LIGHT
from streamlasso.reproduce.axes import REGRESSIONS, Figures
from streamlasso.reproduce.comparison import LearnerSummary
from streamlasso.reproduce.learners import (
    APPROXIMATE,
    FIXED,
    FLOOR,
    LOG_RMS,
    MIXTURE,
    RAP,
    STEPWISE,
)
from streamlasso.reproduce.nonstationary import FIXED_LENGTH, N_REGIMES, ORDERS, RANDOM_LENGTHS
from streamlasso.settings import as_family

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


def figures(folder: Path, learners: Sequence[LearnerSummary], lengths: str) -> Figures:
    """From curves.parquet, one figure per order of the regimes."""
    curves = parquet.read_table(folder / "curves.parquet")
    caption = "lam and the loss over time, for linear and logistic regression, regimes {}"
    return {
        f"{folder.name}-{order}": (draw_nonstationary(curves, learners, order, lengths), caption.format(order))
        for order in ORDERS
    }


def draw_nonstationary(curves: pyarrow.Table, learners: Sequence[LearnerSummary], order: str, lengths: str) -> Figure:
    """Two by two: linear and logistic regression; lam, and the loss of each row, as means over draws."""
    figure = Figure(figsize=(9.4, 6.2))
    figure.set_layout_engine("constrained", h_pad=0.08)
    grid = figure.subplots(2, 2, sharex=True, squeeze=False)
    rows = [row for row in curves.to_pylist() if row["order"] == order]
    families = [family for family in REGRESSIONS if any(row["family"] == family for row in rows)]
    for axes in grid[len(families) :].flat:
        axes.set_visible(False)
    for (left, right), family in zip(grid, families, strict=False):
        best = {
            record.learner: record.setting
            for record in learners
            if (record.family, record.order, record.best) == (family, order, True)
        }
        shown = [row for row in rows if row["family"] == family and best.get(row["learner"]) == row["setting"]]
        _draw_curves(left, shown, "lam", LAM_STYLES, lengths)
        _draw_curves(right, shown, "loss", LOSS_STYLES, lengths)
        left.set_ylabel(r"$\lambda$ (mean)")
        right.set_ylabel(f"{as_family(family).loss_name} (mean)")
        for axes, what in ((left, "the penalty"), (right, f"loss, mean of {SMOOTHED} rows")):
            axes.set_title(f"{REGRESSIONS[family]} regression: {what}", loc="left", fontsize=9.5)
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
    plain_numbers(axes)
    axes.set_xlim(0, N_REGIMES * length)
    ticks = range(0, N_REGIMES * length + 1, length // 2)
    of = length if lengths == "random" else N_REGIMES * length + 1
    axes.set_xticks(ticks, [str(tick % of) for tick in ticks])
    frame(axes)


def _smoothed(values: np.ndarray) -> np.ndarray:
    return np.convolve(values, np.full(SMOOTHED, 1 / SMOOTHED), mode="valid")
