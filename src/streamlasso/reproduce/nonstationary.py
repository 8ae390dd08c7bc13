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
from pyarrow import parquet

from streamlasso.reproduce import nonstationary_figures
from streamlasso.reproduce.comparison import LearnerSummary, as_markdown, summaries
from streamlasso.reproduce.learners import GROUPS, WARM_UP
from streamlasso.reproduce.nonstationary_figures import LENGTH, ORDERS
from streamlasso.reproduce.page import Figures
from streamlasso.reproduce.parts import Job, Tables, blocks, gathered, write_summary, write_table
from streamlasso.reproduce.smbo import refuse_without_package
from streamlasso.settings import as_family
from streamlasso.simulate import Stream, f_score, simulate

FAMILIES = ("gaussian", "binomial")
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


def figures(folder: Path, learners: Sequence[LearnerSummary]) -> Figures:
    """From curves.parquet, one figure per order of the regimes."""
    return nonstationary_figures.figures(parquet.read_table(folder / "curves.parquet"), learners)
