"""The paper's lemmas on real lasso paths: where G (see `lasso_pieces`) contracts, and where it ends.

Summary and figures come from the saved tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow
from matplotlib.figure import Figure

from streamlasso._text import markdown_table
from streamlasso.report.axes import frame, plain_numbers
from streamlasso.report.colours import DARK, GREY, INTERVAL, LIGHT
from streamlasso.reproduce.lasso_pieces import (
    DIAGONAL,
    EXACT,
    GRADIENTS,
    MEMORY,
    N_ITERATIONS,
    N_ROWS,
    ONE_KNOT,
    OUTCOMES,
    REGIMES,
    UPDATED,
    Pieces,
    draw,
    iterated,
    outcome,
    pieces,
)
from streamlasso.reproduce.page import Figures
from streamlasso.reproduce.parts import Job, Tables, blocks, gathered, write_summary, write_table

STEPS = (0.0001, 0.0003, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)


@dataclass(frozen=True)
class Paths(Job):
    """Some draws of both regimes under every gradient."""

    kinds: ClassVar[tuple[str, ...]] = ("pieces", "ends")

    def run(self) -> Tables:
        rows: list[dict[str, Any]] = []
        ends: list[dict[str, Any]] = []
        for i in range(self.start, self.stop):
            for regime in REGIMES:
                problem = draw(i, self.seed, regime)
                for gradient in GRADIENTS:
                    found, key = pieces(problem, gradient), dict(regime=regime, draw=i, gradient=gradient)
                    rows += [dict(**key, **row) for row in _piece_rows(found)]
                    ends += [dict(**key, **end) for end in _ends(found)]
        return {"pieces": pyarrow.Table.from_pylist(rows), "ends": pyarrow.Table.from_pylist(ends)}


def _piece_rows(found: Pieces) -> Iterator[dict[str, Any]]:
    for k, (rise, low, high) in enumerate(zip(found.rise, found.at_low, found.at_high, strict=True)):
        numbers = dict(low=found.knots[k], high=found.knots[k + 1], rise=rise, slope_low=low, slope_high=high)
        yield dict(piece=k, **{name: float(number) for name, number in numbers.items()})


def _ends(found: Pieces) -> Iterator[dict[str, Any]]:
    """From the middle of the path: where G ends for each step size, and how far its last lams are apart."""
    last = iterated(found, np.array(STEPS), found.lam_max / 2)
    for step, lams in zip(STEPS, last.T, strict=True):
        yield dict(step=step, outcome=outcome(found, lams), width=float(np.ptp(lams) / found.lam_max))


def plan(n: int, seed: int) -> list[Job]:
    """The parts of the study."""
    return [Paths(seed, start, stop) for start, stop in blocks(n)]


# --- the summary ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StepSummary:
    """One gradient in one regime at one step size, over paths.

    contracts, of_pieces : shares of paths on which G contracts in every piece, and of pieces in which it does
    expands : the share of pieces in which no step size contracts, since dC/dlam falls there
    limit, limit_low : the step size at which it breaks on a path (2 / the largest rise): median and 5 % quantile
    turns : the share of paths with a knot at which dC/dlam jumps from below zero to above it
    point, one_knot, several : shares of paths by where G ends
    width : where that is over one knot, the distance of its lams as a share of lam_max, median; nan if there is none
    """

    regime: str
    gradient: str
    step: float
    paths: int
    pieces: float
    contracts: float
    of_pieces: float
    expands: float
    limit: float
    limit_low: float
    turns: float
    point: float
    one_knot: float
    several: float
    width: float


def summarise(folder: Path, planned: Sequence[Job], n: int, seed: int) -> list[StepSummary]:
    """pieces.parquet, ends.parquet, summary.csv and summary.md from all parts."""
    tables = {kind: gathered(folder, planned, kind) for kind in Paths.kinds}
    for name, table in tables.items():
        write_table(folder / f"{name}.parquet", table)
    steps = summaries(tables["pieces"], tables["ends"])
    write_summary(folder, steps, as_markdown(steps, n, seed))
    return steps


def figures(folder: Path, steps: Sequence[StepSummary]) -> Figures:
    """From the summary."""
    caption = "Over step sizes: the share of paths on which G contracts, and where it ends"
    return {"theory-steps": (draw_steps(steps), caption)}


def summaries(rows: pyarrow.Table, ends: pyarrow.Table) -> list[StepSummary]:
    """One record per regime, gradient and step size."""
    paths: dict[tuple[str, str], dict[int, list[tuple[float, ...]]]] = {}
    for row in rows.to_pylist():
        path = paths.setdefault((row["regime"], row["gradient"]), {}).setdefault(row["draw"], [])
        path.append((row["rise"], row["slope_low"], row["slope_high"]))
    found: dict[tuple[str, str, float], list[tuple[str, float]]] = {}
    for end in ends.to_pylist():
        found.setdefault((end["regime"], end["gradient"], end["step"]), []).append((end["outcome"], end["width"]))
    arrays = {key: [np.array(path).T for path in by_draw.values()] for key, by_draw in paths.items()}
    return [_of_step(*key, arrays[key[:2]], ended) for key, ended in found.items()]


def _of_step(
    regime: str, gradient: str, step: float, paths: Sequence[np.ndarray], ended: Sequence[tuple[str, float]]
) -> StepSummary:
    whole = np.concatenate([rise for rise, _, _ in paths])
    limits = np.array([breaking_step(rise) for rise, _, _ in paths])
    turns = [np.any((at_high[:-1] < 0) & (at_low[1:] > 0)) for _, at_low, at_high in paths]
    shares = [np.mean([outcome == name for outcome, _ in ended]) for name in OUTCOMES]
    widths = [width for outcome, width in ended if outcome == ONE_KNOT]
    numbers = (
        len(whole) / len(paths),
        np.mean(step < limits),
        np.mean((whole > 0) & (step * whole < 2)),
        np.mean(whole < 0),
        np.median(limits),
        np.quantile(limits, 0.05, method="lower"),
        np.mean(turns),
        *shares,
        np.median(widths) if widths else np.nan,
    )
    return StepSummary(regime, gradient, step, len(paths), *map(float, numbers))


def breaking_step(rise: np.ndarray) -> float:
    """The least step size at which G no longer contracts in every piece; 0 if there is a piece where none does.

    >>> breaking_step(np.array([4.0, 0.5])), breaking_step(np.array([4.0, -1.0]))
    (0.5, 0.0)
    """
    return 0.0 if np.min(rise) < 0 else float(2 / np.max(rise))


def as_markdown(steps: Sequence[StepSummary], n: int, seed: int) -> str:
    """What breaks at which step size, one table per regime and gradient."""
    text = (
        f"# The lemmas on real paths: {N_ROWS} rows, r = {MEMORY}, p = 20, {n} draws, seed {seed}\n\n"
        "G(lam) = lam - step dC/dlam for one fixed new row. Contracts: on how many paths G brings any two lams of one\n"
        "piece nearer, in every piece (Lemma 1), and in what share of all pieces. Then where\n"
        f"{N_ITERATIONS:,} applications of G end, from lam_max / 2 on: at a point, or on the way there; across one\n"
        "knot, to and fro between two neighbouring pieces (as in Lemma 2), with the median width as a share of\n"
        "lam_max; or over several knots.\n"
    )
    for regime, gradient in dict.fromkeys((step.regime, step.gradient) for step in steps):
        text += _section([step for step in steps if (step.regime, step.gradient) == (regime, gradient)])
    return text


def _section(steps: Sequence[StepSummary]) -> str:
    first = steps[0]
    text = (
        f"\n## {first.regime}: {first.gradient}\n\n"
        f"{first.pieces:.1f} pieces per path; dC/dlam falls, so that no step contracts, in {_percent(first.expands)}\n"
        f"of them. The step at which a path breaks: median {first.limit:.2g}, 5 % quantile {first.limit_low:.2g}.\n"
        f"{_percent(first.turns)} of paths have a knot at which dC/dlam jumps from below zero to above it.\n\n"
    )
    head = ("step", "contracts: paths", "pieces", "ends: a point", "one knot", "width", "several")
    return text + markdown_table(head, map(_cells, steps))


def _cells(step: StepSummary) -> list[str]:
    before = (step.contracts, step.of_pieces, step.point, step.one_knot)
    width = "" if np.isnan(step.width) else f"{step.width:.1g}"
    return [f"{step.step:g}", *map(_percent, before), width, _percent(step.several)]


def _percent(share: float) -> str:
    """Three digits: 0.1 % of paths is not 0 %."""
    return f"{100 * share:.3g} %"


# --- the figure -------------------------------------------------------------------------------------------------------

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
