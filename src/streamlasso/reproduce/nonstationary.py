"""The paper's non-stationary simulation: online learners against offline cross-validation.

Summary and figures come from the saved tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from pyarrow import parquet

from streamlasso.report.axes import TITLE, frame, log_scale
from streamlasso.report.colours import DARK, GREY, LIGHT
from streamlasso.reproduce.comparison import LearnerSummary, as_markdown, summaries
from streamlasso.reproduce.learners import APPROXIMATE, FIXED, FLOOR, GROUPS, LOG_RMS, MIXTURE, RAP, STEPWISE, WARM_UP
from streamlasso.reproduce.page import REGRESSIONS, Figures
from streamlasso.reproduce.parts import Job, Tables, blocks, gathered, write_summary, write_table
from streamlasso.reproduce.smbo import refuse_without_package
from streamlasso.settings import as_family
from streamlasso.simulate import DENSE, SPARSE, Stream, f_score, simulate

FAMILIES = ("gaussian", "binomial")
ORDERS = {"dense-sparse-dense": (DENSE, SPARSE, DENSE), "sparse-dense-sparse": (SPARSE, DENSE, SPARSE)}
#: Rows of a regime.
LENGTH = 100
#: What is averaged over draws, row by row.
CURVES = ("loss", "lam", "f")


def draw(i: int, seed: int, order: str, family: str) -> Stream:
    """The i-th stream of a study: all that is random in it comes from `SeedSequence([seed, i])`.

    >>> from streamlasso.reproduce.nonstationary import draw
    >>> draw(0, 0, "dense-sparse-dense", "gaussian").changes
    array([100, 200])
    """
    rng = np.random.default_rng(np.random.SeedSequence([seed, i]))
    densities = ORDERS[order]
    return simulate(rng, lengths=[LENGTH] * len(densities), densities=densities, family=as_family(family))


@dataclass(frozen=True)
class Comparison(Job):
    """One group of learners on some draws."""

    family: str
    order: str
    group: str

    kinds: ClassVar[tuple[str, ...]] = ("draws", "curves")

    def run(self) -> Tables:
        scores: list[dict[str, Any]] = []
        sums: dict[tuple[str, str], np.ndarray] = {}
        panel = dict(family=self.family, order=self.order)
        for i in range(self.start, self.stop):
            stream = draw(i, self.seed, self.order, self.family)
            for learner, setting, run in GROUPS[self.group](stream):
                f = f_score(run.coef, stream.beta)
                score = dict(loss=float(run.loss[WARM_UP:].mean()), f=float(f[WARM_UP:].mean()))
                scores.append(dict(**panel, draw=i, learner=learner, setting=setting, **score))
                curves = np.array([run.loss, run.lam, f])
                sums[learner, setting] = sums.get((learner, setting), 0.0) + curves
        points = [
            dict(**panel, learner=learner, setting=setting, row=t, draws=self.stop - self.start)
            | dict(zip(CURVES, column, strict=True))
            for (learner, setting), curves in sums.items()
            for t, column in enumerate(curves.T.tolist())
        ]
        return {"draws": pyarrow.Table.from_pylist(scores), "curves": pyarrow.Table.from_pylist(points)}


def plan(n: int, seed: int) -> list[Job]:
    """The parts of the study, draw by draw; an error if a package is missing."""
    if "smbo" in GROUPS:
        refuse_without_package()
    return [
        Comparison(seed, start, stop, family, order, group)
        for start, stop in blocks(n)
        for family in FAMILIES
        for order in ORDERS
        for group in GROUPS
    ]


def summarise(folder: Path, planned: Sequence[Job], n: int, seed: int) -> list[LearnerSummary]:
    """draws.parquet, curves.parquet, summary.csv and summary.md from all parts."""
    draws = gathered(folder, planned, "draws")
    write_table(folder / "draws.parquet", draws)
    keys, values = ["family", "order", "learner", "setting", "row"], ["draws", *CURVES]
    curves = gathered(folder, planned, "curves").group_by(keys, use_threads=False)
    table = curves.aggregate([(name, "sum") for name in values])
    write_table(folder / "curves.parquet", table.rename_columns({f"{name}_sum": name for name in values}))
    learners = summaries(draws)
    heading = f"Non-stationary simulation: three regimes of {LENGTH} rows, {n} draws, seed {seed}"
    write_summary(folder, learners, as_markdown(learners, heading))
    return learners


# --- the figures ------------------------------------------------------------------------------------------------------

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


def figures(folder: Path, learners: Sequence[LearnerSummary]) -> Figures:
    """From curves.parquet, one figure per order of the regimes."""
    curves = parquet.read_table(folder / "curves.parquet")
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
