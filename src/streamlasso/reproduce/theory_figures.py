"""The figures of the lemmas, drawn from the tables of `theory`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pyarrow import parquet

from streamlasso.report.axes import frame, plain_numbers
from streamlasso.report.colours import DARK, GREY, LIGHT
from streamlasso.reproduce.axes import Figures
from streamlasso.reproduce.lasso_pieces import DIAGONAL, EXACT, GRADIENTS, OUTCOMES, UPDATED
from streamlasso.reproduce.theory import StepSummary

STEP_STYLES: tuple[dict[str, Any], ...] = (
    dict(color=DARK, linewidth=1.8),
    dict(color=LIGHT, linewidth=1.4),
    dict(color="black", linewidth=0.9, linestyle=(0, (3, 1.5))),
)
GRADIENT_STYLES: dict[str, dict[str, Any]] = {
    EXACT: dict(color=DARK, marker="o"),
    UPDATED: dict(color=LIGHT, marker="s"),
    DIAGONAL: dict(color="black", marker="^"),
}
OUTCOME_WORDS = {
    "point": "a point",
    "under_way": "under way to one",
    "pair": "over one knot, two lams in turn",
    "one_knot": "over one knot, more lams",
    "restless": "over several knots",
}
SHADES = ("#0b3c6f", "#7fa8d1", "#f7dca3", "#e69f00", "#3c3c3c")
MOST_TICKS = 6
BESIDE: dict[str, Any] = dict(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, fontsize=8)


def figures(folder: Path, steps: Sequence[StepSummary]) -> Figures:
    """From the examples' tables, if an example was found, and from the summary."""
    caption = "Over step sizes: the share of paths on which G contracts, and where it ends"
    drawn: Figures = {"theory-steps": (draw_steps(steps), caption)}
    tables = [parquet.read_table(folder / f"example-{name}.parquet") for name in ("coefficients", "pieces", "lams")]
    if not tables[1].num_rows:
        return drawn
    caption = "Two lasso paths: coefficients, dC/dlam, the step at which each piece breaks, and the lams of G"
    return {"theory-paths": (draw_examples(*tables), caption), **drawn}


def draw_examples(coefficients: pyarrow.Table, pieces: pyarrow.Table, lams: pyarrow.Table) -> Figure:
    """Down each column one real path: its coefficients, dC/dlam, the step at which each piece breaks, and G's lams."""
    names = list(dict.fromkeys(row["example"] for row in pieces.to_pylist()))
    figure = Figure(figsize=(5.2 * len(names), 9.2))
    figure.set_layout_engine("constrained", h_pad=0.06)
    grid = figure.subplots(4, len(names), squeeze=False, height_ratios=[1.2, 1.2, 1, 1.2])
    for column, name in zip(grid.T, names, strict=True):
        path, slope, limit, way = column
        of = [[row for row in table.to_pylist() if row["example"] == name] for table in (coefficients, pieces, lams)]
        _draw_path(path, of[0])
        _draw_slope(slope, of[1])
        _draw_limits(limit, of[1], sorted({row["step"] for row in of[2]}))
        _draw_way(way, of[2], of[1])
        path.set_title(f"G {name} (draw {of[1][0]['draw']})", loc="left", fontsize=10)
        _lam_axes([path, slope, limit], of[1])
    for axes, words in zip(
        grid[:, 0], ("coefficient", r"$dC/d\lambda$", "step that breaks it", r"$\lambda$"), strict=True
    ):
        axes.set_ylabel(words)
    grid[3, -1].legend(**BESIDE, title="step", title_fontsize=8)
    figure.align_ylabels()
    return figure


def _draw_path(axes: Axes, rows: Sequence[dict[str, Any]]) -> None:
    for k, j in enumerate(sorted({row["feature"] for row in rows})):
        lam, beta = np.array([(row["lam"], row["beta"]) for row in rows if row["feature"] == j]).T
        axes.plot(lam, beta, color=(DARK, LIGHT, GREY, "black")[k % 4], linewidth=0.9)


def _draw_slope(axes: Axes, pieces: Sequence[dict[str, Any]]) -> None:
    """Each piece is a line that rises; at the knots it jumps."""
    axes.axhline(0, color="black", linewidth=0.8)
    for piece in pieces:
        axes.plot([piece["low"], piece["high"]], [piece["slope_low"], piece["slope_high"]], color=DARK, linewidth=1.8)
    for below, above in pairwise(pieces):
        turns = below["slope_high"] < 0 < above["slope_low"]
        style: dict[str, Any] = (
            dict(color=LIGHT, linewidth=1.8) if turns else dict(color=GREY, linewidth=0.7, linestyle=":")
        )
        axes.plot([above["low"]] * 2, [below["slope_high"], above["slope_low"]], **style)
    slopes = [piece[end] for piece in pieces for end in ("slope_low", "slope_high")]
    axes.set_yscale("symlog", linthresh=max(float(np.median(np.abs(slopes))), 1e-3))
    plain_numbers(axes)


def _draw_limits(axes: Axes, pieces: Sequence[dict[str, Any]], steps: Sequence[float]) -> None:
    limits = [2 / max(piece["rise"], 1e-12) for piece in pieces]
    for piece, limit in zip(pieces, limits, strict=True):
        axes.plot([piece["low"], piece["high"]], [limit, limit], color="black", linewidth=1.8, solid_capstyle="butt")
    for step, style in zip(steps, STEP_STYLES, strict=True):
        axes.axhline(step, **style)
    axes.set_yscale("log")
    axes.set_ylim(min(*limits, *steps) / 3, min(max(*limits, *steps), 1e4) * 3)


def _draw_way(axes: Axes, lams: Sequence[dict[str, Any]], pieces: Sequence[dict[str, Any]]) -> None:
    for piece in pieces:
        axes.axhline(piece["low"], color="#d8d8d8", linewidth=0.5, zorder=0)
    for step, style in zip(sorted({row["step"] for row in lams}), STEP_STYLES, strict=True):
        k, lam = np.array([(row["k"], row["lam"]) for row in lams if row["step"] == step]).T
        axes.plot(k, lam, label=f"{step:g}", **style)
    axes.set_xlabel("application of G to the same new row")
    axes.set_xlim(1, max(row["k"] for row in lams))
    axes.spines[["top", "right"]].set_visible(False)


def _lam_axes(column: Sequence[Axes], pieces: Sequence[dict[str, Any]]) -> None:
    """A root scale: knots crowd towards 0."""
    lam_max = pieces[-1]["high"]
    for axes in column:
        axes.set_xscale("function", functions=(lambda x: np.sqrt(np.maximum(x, 0)), np.square))
        axes.set_xlim(0, lam_max)
        ticks = lam_max * np.linspace(0, 1, MOST_TICKS) ** 2
        axes.set_xticks(ticks, [f"{tick:.2g}" for tick in ticks])
        frame(axes)
        for piece in pieces[1:]:
            axes.axvline(piece["low"], color="#e9e9e9", linewidth=0.5, zorder=0)
    column[-1].set_xlabel(r"$\lambda$ (root scale); grey lines: the knots of the path")


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
    right.stackplot(steps, shares, colors=SHADES, labels=[OUTCOME_WORDS[name] for name in OUTCOMES])
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
