"""The figure of the lemmas: over step sizes, how often G contracts, and where it ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from streamlasso.report.axes import frame, plain_numbers
from streamlasso.report.colours import DARK, GREY, INTERVAL, LIGHT
from streamlasso.reproduce.lasso_pieces import DIAGONAL, EXACT, GRADIENTS, OUTCOMES, UPDATED

if TYPE_CHECKING:
    from streamlasso.reproduce.theory import StepSummary

GRADIENT_STYLES: dict[str, dict[str, Any]] = {
    EXACT: dict(color=DARK, marker="o"),
    UPDATED: dict(color=LIGHT, marker="s"),
    DIAGONAL: dict(color="black", marker="^"),
}
ENDS = ("a point", "to and fro over one knot", "over several knots")


def draw_steps(summaries: Sequence[StepSummary]) -> Figure:
    """Left, on what share of paths and in what share of pieces G contracts; right, where it ends: over step sizes."""
    figure = Figure(figsize=(10.5, 4.0))
    figure.set_layout_engine("constrained")
    left, right = figure.subplots(1, 2)
    steps = sorted({summary.step for summary in summaries})
    for gradient in GRADIENTS:
        of = [_at(summaries, gradient, step) for step in steps]
        style = dict(GRADIENT_STYLES[gradient], linewidth=1.4, markersize=4)
        left.plot(steps, [_mean(group, "contracts") for group in of], label=gradient, **style)
        left.plot(steps, [_mean(group, "of_pieces") for group in of], **(style | dict(linestyle=":", markersize=2.5)))
    left.plot([], color=GREY, linestyle=":", label="the same, share of pieces")
    left.set_ylabel("share of paths on which G contracts\nin every piece")
    left.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2, frameon=False, fontsize=8)
    exact = [_at(summaries, EXACT, step) for step in steps]
    shares = np.array([[_mean(group, name) for group in exact] for name in OUTCOMES])
    right.stackplot(steps, shares, colors=(DARK, INTERVAL, LIGHT), labels=ENDS)
    right.set_ylabel("share of paths on which G ends at ...\n(exact gradient)")
    right.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2, frameon=False, fontsize=8)
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xlim(steps[0], steps[-1])
        axes.set_ylim(0, 1.005)
        plain_numbers(axes, "x")
        axes.set_xlabel(r"step size (units of $\lambda^2$ / loss)")
        frame(axes)
    return figure


def _at(summaries: Sequence[StepSummary], gradient: str, step: float) -> list[StepSummary]:
    """One per regime."""
    return [summary for summary in summaries if (summary.gradient, summary.step) == (gradient, step)]


def _mean(group: Sequence[StepSummary], name: str) -> float:
    """Over regimes."""
    return float(np.mean([getattr(summary, name) for summary in group]))
