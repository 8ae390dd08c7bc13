"""The paper's non-stationary simulation: online learners against offline cross-validation.

Summary and figures come from the saved tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow

from streamlasso.reproduce.comparison import LearnerSummary, as_markdown, summaries
from streamlasso.reproduce.learners import BEST_FIXED, GROUPS, WARM_UP
from streamlasso.reproduce.offline import Run, regimes
from streamlasso.reproduce.parts import Job, Tables, blocks, gathered, write_summary, write_table
from streamlasso.reproduce.smbo import refuse_without_package
from streamlasso.settings import as_family
from streamlasso.simulate import DENSE, SPARSE, Stream, f_score, simulate

ORDERS = {"dense-sparse-dense": (DENSE, SPARSE, DENSE), "sparse-dense-sparse": (SPARSE, DENSE, SPARSE)}
FAMILIES = ("gaussian", "binomial")
N_REGIMES = 3
FIXED_LENGTH, RANDOM_LENGTHS = 100, (60, 150)


def draw(i: int, seed: int, order: str, lengths: str, family: str) -> Stream:
    """The i-th stream of a study: all that is random in it comes from `SeedSequence([seed, i])`.

    `lengths` is "fixed" (three regimes of 100 rows) or "random" (each uniform in 60..150, drawn before all else).

    >>> from streamlasso.reproduce.nonstationary import draw
    >>> draw(0, 0, "dense-sparse-dense", "fixed", "gaussian").changes
    array([100, 200])
    >>> draw(0, 0, "dense-sparse-dense", "random", "gaussian").changes
    array([137, 254])
    """
    rng = np.random.default_rng(np.random.SeedSequence([seed, i]))
    low, high = RANDOM_LENGTHS
    sizes = [FIXED_LENGTH] * N_REGIMES if lengths == "fixed" else rng.integers(low, high + 1, N_REGIMES).tolist()
    return simulate(rng, lengths=sizes, densities=ORDERS[order], family=as_family(family))


# --- parts ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """One group of learners on some draws: one part."""

    family: str
    order: str
    group: str
    lengths: str
    seed: int
    start: int
    stop: int

    kinds: ClassVar[tuple[str, ...]] = ("draws", "curves")

    @property
    def stem(self) -> str:
        return f"{self.family}-{self.order}-{self.group}-{self.start:05d}-{self.stop:05d}"

    def run(self) -> Tables:
        scores: list[dict[str, Any]] = []
        curves: dict[tuple[str, str], Curve] = {}
        panel = dict(family=self.family, order=self.order)
        for i in range(self.start, self.stop):
            stream = draw(i, self.seed, self.order, self.lengths, self.family)
            for learner, setting, run in GROUPS[self.group](stream):
                f = f_score(run.coef, stream.beta)
                score = dict(loss=float(run.loss[WARM_UP:].mean()), f=float(f[WARM_UP:].mean()))
                scores.append(dict(**panel, draw=i, learner=learner, setting=setting, **score))
                if learner != BEST_FIXED:
                    curves.setdefault((learner, setting), Curve()).add(stream, run, f)
        points = [
            dict(**panel, learner=learner, setting=setting, **point)
            for (learner, setting), curve in curves.items()
            for point in curve.points
        ]
        return {"draws": pyarrow.Table.from_pylist(scores), "curves": pyarrow.Table.from_pylist(points)}


def plan(
    n: int, seed: int, lengths: str, families: Sequence[str] = FAMILIES, groups: Sequence[str] | None = None
) -> list[Job]:
    """The parts of the study, draw by draw; an error if a name is unknown, or a package is missing.

    lengths : "fixed" or "random"; see `draw`
    groups : some of `GROUPS`; None is all. Cross-validation is always among them: differences are from it
    """
    _refuse(lengths, families, groups)
    chosen = [group for group in GROUPS if groups is None or group in groups or group == "cross-validation"]
    if "smbo" in chosen:
        refuse_without_package()
    return [
        Comparison(family, order, group, lengths, seed, start, stop)
        for start, stop in blocks(n)
        for family in families
        for order in ORDERS
        for group in chosen
    ]


def _refuse(lengths: str, families: Sequence[str], groups: Sequence[str] | None) -> None:
    if lengths not in ("fixed", "random"):
        raise ValueError(f"lengths={lengths!r} is unknown: use 'fixed' or 'random'")
    for what, asked, known in (("families", families, FAMILIES), ("groups", groups or (), tuple(GROUPS))):
        unknown = [name for name in asked if name not in known]
        if unknown:
            raise ValueError(f"{', '.join(unknown)}: unknown; the {what} are {', '.join(known)}")


def summarise(folder: Path, planned: Sequence[Job], n: int, seed: int, lengths: str) -> list[LearnerSummary]:
    """draws.parquet, curves.parquet, summary.csv and summary.md from all parts."""
    draws = gathered(folder, planned, "draws")
    write_table(folder / "draws.parquet", draws)
    write_table(folder / "curves.parquet", summed(gathered(folder, planned, "curves")))
    learners = summaries(draws)
    sizes = f"{FIXED_LENGTH} rows" if lengths == "fixed" else "{} to {} rows at random".format(*RANDOM_LENGTHS)
    heading = f"Non-stationary simulation: three regimes of {sizes}, {n} draws, seed {seed}"
    write_summary(folder, learners, as_markdown(learners, heading))
    return learners


# --- curves -----------------------------------------------------------------------------------------------------------


class Curve:
    """Sums over draws by regime and row of the regime: regimes of random length line up at their starts."""

    names = ("loss", "lam", "f")

    def __init__(self) -> None:
        longest = max(FIXED_LENGTH, *RANDOM_LENGTHS)
        self.draws = np.zeros((N_REGIMES, longest), dtype=int)
        self.sums = np.zeros((len(self.names), N_REGIMES, longest))

    def add(self, stream: Stream, run: Run, f: np.ndarray) -> None:
        for k, rows in enumerate(regimes(stream)):
            self.draws[k, : rows.stop - rows.start] += 1
            for total, values in zip(self.sums, (run.loss, run.lam, f), strict=True):
                total[k, : rows.stop - rows.start] += values[rows]

    @property
    def points(self) -> Iterator[dict[str, Any]]:
        for k, age in np.argwhere(self.draws):
            sums = dict(zip(self.names, self.sums[:, k, age].tolist(), strict=True))
            yield dict(regime=int(k), age=int(age), draws=int(self.draws[k, age]), **sums)


def summed(curves: pyarrow.Table) -> pyarrow.Table:
    """The sums over all parts, in their order."""
    keys = ["family", "order", "learner", "setting", "regime", "age"]
    values = ["draws", *Curve.names]
    table = curves.group_by(keys, use_threads=False).aggregate([(name, "sum") for name in values])
    return table.select([*keys, *(f"{name}_sum" for name in values)]).rename_columns([*keys, *values])
