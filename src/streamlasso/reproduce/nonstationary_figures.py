"""The figures of the non-stationary study, drawn from its tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from streamlasso.report.axes import TITLE, frame, log_scale
from streamlasso.report.colours import DARK, GREY, LIGHT
from streamlasso.reproduce.comparison import LearnerSummary
from streamlasso.reproduce.learners import APPROXIMATE, FIXED, FLOOR, LOG_RMS, MIXTURE, RAP, STEPWISE
from streamlasso.reproduce.page import REGRESSIONS, Figures
from streamlasso.settings import as_family
from streamlasso.simulate import DENSE, SPARSE

ORDERS = {"dense-sparse-dense": (DENSE, SPARSE, DENSE), "sparse-dense-sparse": (SPARSE, DENSE, SPARSE)}
#: Rows of a regime.
LENGTH = 100
#: Learner -> how it is drawn; dark and light differ in grey, dashes tell the rest apart.
LAM_STYLES: dict[str, dict[str, Any]] = {
    STEPWISE: dict(color=LIGHT, linewidth=2.0),
    FIXED: dict(color=GREY, linewidth=1.3, linestyle="--"),
    RAP: dict(color=DARK, linewidth=1.7),
    APPROXIMATE: dict(color=DARK, linewidth=1.2, linestyle=(0, (4, 2))),
    LOG_RMS: dict(color="black", linewidth=1.1, linestyle=":"),
}
LOSS_STYLES: dict[str, dict[str, Any]] = {
    **{learner: LAM_STYLES[learner] for learner in (STEPWISE, FIXED, RAP, APPROXIMATE)},
    MIXTURE: dict(color="black", linewidth=1.5, linestyle="-."),
    FLOOR: dict(color="black", linewidth=0.8),
}
#: Rows that a drawn loss is averaged over, and those at the start that are not drawn: nothing has been learnt yet.
SMOOTHED, NOT_DRAWN = 5, 10


def figures(curves: pyarrow.Table, learners: Sequence[LearnerSummary]) -> Figures:
    """One figure per order of the regimes."""
    caption = "lam and the loss over time, for linear and logistic regression, regimes {}"
    return {
        f"nonstationary-{order}": (draw_nonstationary(curves, learners, order), caption.format(order))
        for order in ORDERS
    }


def draw_nonstationary(curves: pyarrow.Table, learners: Sequence[LearnerSummary], order: str) -> Figure:
    """Two by two: linear and logistic regression; lam, and the loss of each row, as means over draws."""
    figure = Figure(figsize=(9.4, 6.2))
    figure.set_layout_engine("constrained", h_pad=0.08)
    rows = [row for row in curves.to_pylist() if row["order"] == order]
    for (left, right), (family, name) in zip(figure.subplots(2, 2, sharex=True), REGRESSIONS.items(), strict=True):
        best = {
            record.learner: record.setting
            for record in learners
            if (record.family, record.order, record.best) == (family, order, True)
        }
        shown = [row for row in rows if row["family"] == family and best.get(row["learner"]) == row["setting"]]
        for axes, what, styles in ((left, "lam", LAM_STYLES), (right, "loss", LOSS_STYLES)):
            _draw_curves(axes, shown, what, styles)
            axes.tick_params(labelbottom=True)
        left.set_ylabel(r"$\lambda$ (mean)")
        right.set_ylabel(f"{as_family(family).loss_name} (mean)")
        left.set_title(f"{name} regression: the penalty", **TITLE)
        right.set_title(f"{name} regression: loss, mean of {SMOOTHED} rows", **TITLE)
    for axes in figure.axes[2:]:
        axes.set_xlabel("row")
    handles = [Line2D([], [], label=name, **style) for name, style in (LAM_STYLES | LOSS_STYLES).items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=8.5)
    return figure


def _draw_curves(axes: Axes, rows: Sequence[dict[str, Any]], what: str, styles: dict[str, dict[str, Any]]) -> None:
    stop = LENGTH * 3
    for learner, style in styles.items():
        points = sorted((row["row"], row[what] / row["draws"]) for row in rows if row["learner"] == learner)
        if points:
            values = np.array([value for _, value in points])
            for first in range(0, stop, LENGTH):
                t, part = np.arange(first, first + LENGTH), values[first : first + LENGTH]
                if what == "loss":
                    t, part = _smoothed(t), _smoothed(part)
                skipped = NOT_DRAWN if first == 0 else 0
                axes.plot(t[skipped:], part[skipped:], **style)
    for change in range(LENGTH, stop, LENGTH):
        axes.axvline(change - 0.5, color=GREY, linewidth=0.7, linestyle=":")
    log_scale(axes, 1.0)
    axes.set_xlim(0, stop)
    axes.set_xticks(range(0, stop + 1, LENGTH // 2))
    frame(axes)


def _smoothed(values: np.ndarray) -> np.ndarray:
    return np.convolve(values, np.full(SMOOTHED, 1 / SMOOTHED), mode="valid")
