"""The paper's stationary simulation: does lam, moved row by row, end where 10-fold cross-validation puts it?

300 rows of one regime. Each rule starts at a lam from U[0, 1] and sees each row once, with a memory that never forgets.
Then the lasso is solved on all rows at its last lam and at that of cross-validation: Delta is the difference of
the l1 norms of the two fits, cross-validation's less the rule's. All that is shown comes from the saved table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow

from streamlasso._files import write_whole
from streamlasso.reproduce.learners import APPROXIMATE, NORMALISED, PAPER_STEP, RAP, online
from streamlasso.reproduce.offline import cross_validated, lam_path
from streamlasso.reproduce.parts import Job, Tables, as_csv, blocks, gathered, write_table
from streamlasso.settings import as_family
from streamlasso.simulate import SPARSE, Stream, simulate
from streamlasso.tuners import LARS, SGD, LogRMS

DIMENSIONS = (10, 25, 50, 75, 100)
FAMILIES = ("gaussian", "binomial")
N_ROWS = 300
LOG_RMS = "LogRMS"
#: Rule -> step sizes, the paper's among them.
STEPS = {
    RAP: (0.0003, 0.001, 0.003, PAPER_STEP),
    APPROXIMATE: (0.0003, 0.001, 0.003),
    NORMALISED: (0.001, 0.003, 0.01),
}
#: Said of a fit whose l1 norm is within this share of cross-validation's.
NEAR = 0.2


def draw(i: int, seed: int, p: int, family: str) -> tuple[Stream, float]:
    """The i-th stream with p features, a fifth of which matter, and the lam to start from.

    All that is random comes from `SeedSequence([seed, p, i])`.

    >>> from streamlasso.reproduce.stationary import draw
    >>> stream, lam = draw(0, 0, 10, "gaussian")
    >>> stream.X.shape, (stream.beta[0] != 0).sum(), 0 <= lam <= 1
    ((300, 10), np.int64(2), True)
    """
    rng = np.random.default_rng(np.random.SeedSequence([seed, p, i]))
    lam = float(rng.uniform())
    return simulate(rng, n_features=p, lengths=[N_ROWS], densities=[SPARSE], family=as_family(family)), lam


def rules() -> Iterator[tuple[str, float, dict[str, Any]]]:
    """Name, step size and settings of each rule that moves lam."""
    yield from ((RAP, step, dict(tuner=SGD(step))) for step in STEPS[RAP])
    yield from ((APPROXIMATE, step, dict(tuner=SGD(step), gradient="diagonal")) for step in STEPS[APPROXIMATE])
    yield from ((NORMALISED, step, dict(tuner=LARS(step))) for step in STEPS[NORMALISED])
    yield LOG_RMS, LogRMS().step_size, dict(tuner=LogRMS())


@dataclass(frozen=True)
class Distances:
    """Every rule on some draws of one dimension."""

    family: str
    p: int
    seed: int
    start: int
    stop: int

    kinds: ClassVar[tuple[str, ...]] = ("draws",)

    @property
    def stem(self) -> str:
        return f"{self.family}-{self.p:03d}-{self.start:05d}-{self.stop:05d}"

    def run(self) -> Tables:
        lines = [line for i in range(self.start, self.stop) for line in self._distances(i)]
        return {"draws": pyarrow.Table.from_pylist(lines)}

    def _distances(self, i: int) -> Iterator[dict[str, Any]]:
        stream, lam_init = draw(i, self.seed, self.p, self.family)
        lam_cv = cross_validated(stream.X, stream.y, stream.family)
        ran = [
            (rule, step, float(online(stream, memory=1.0, lambda_init=lam_init, **settings).lam[-1]))
            for rule, step, settings in rules()
        ]
        norms = l1_norms(stream, [lam_cv, *(lam for _, _, lam in ran)])
        who = dict(family=self.family, p=self.p, draw=i, lam_init=lam_init)
        for (rule, step, lam), norm in zip(ran, norms[1:], strict=True):
            yield dict(**who, rule=rule, step=step, lam=lam, lam_cv=lam_cv, norm=float(norm), norm_cv=float(norms[0]))


def l1_norms(stream: Stream, lams: Sequence[float]) -> np.ndarray:
    """Of the fit to all rows at each lam, in the order given."""
    falling = np.argsort(lams)[::-1]
    path = lam_path(stream.X, stream.y, stream.family, [lams[k] for k in falling])
    norms = np.empty(len(lams))
    norms[falling] = np.abs(path[:, 1:]).sum(axis=1)
    return norms


def planned_distances(n: int, seed: int) -> list[Job]:
    """What is to be run."""
    return [
        Distances(family, p, seed, start, stop) for start, stop in blocks(n) for family in FAMILIES for p in DIMENSIONS
    ]


# --- the summary ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """A rule in one dimension: Delta over draws, and how near the fit is to that of cross-validation.

    `best` says that no other step size of the rule has a smaller median of |Delta|: chosen on these draws. `near` is
    the share of draws in which the two norms differ by at most a fifth of cross-validation's.
    """

    family: str
    p: int
    rule: str
    step: float
    best: bool
    draws: int
    norm_cv: float
    mean: float
    mean_se: float
    low: float
    median: float
    high: float
    size: float
    near: float
    lam_ratio: float


def summarise(out: Path, planned: Sequence[Job], n: int, seed: int) -> list[Line]:
    """draws.parquet, summary.csv and summary.md from all parts."""
    draws = gathered(out, planned, "draws")
    write_table(out / "draws.parquet", draws)
    lines = summarised(draws)
    write_whole(out / "summary.csv", as_csv(lines).encode())
    write_whole(out / "summary.md", as_markdown(lines, n, seed).encode())
    return lines


def summarised(draws: pyarrow.Table) -> list[Line]:
    """A line for each family, dimension, rule and step size."""
    table: dict[tuple[str, int, str], dict[float, list[tuple[float, ...]]]] = {}
    for row in draws.to_pylist():
        steps = table.setdefault((row["family"], row["p"], row["rule"]), {})
        steps.setdefault(row["step"], []).append((row["norm_cv"], row["norm"], row["lam"] / row["lam_cv"]))
    return [line for who, steps in table.items() for line in _lines(*who, steps)]


def _lines(family: str, p: int, rule: str, steps: dict[float, list[tuple[float, ...]]]) -> Iterator[Line]:
    columns = {step: np.array(rows).T for step, rows in steps.items()}
    sizes = {step: float(np.median(np.abs(norm_cv - norm))) for step, (norm_cv, norm, _) in columns.items()}
    for step, (norm_cv, norm, ratio) in columns.items():
        delta = norm_cv - norm
        low, median, high = np.quantile(delta, [0.25, 0.5, 0.75])
        mean, error = delta.mean(), delta.std(ddof=1) / np.sqrt(len(delta))
        near = np.mean(np.abs(delta) <= NEAR * norm_cv)
        numbers = (norm_cv.mean(), mean, error, low, median, high, sizes[step], near, np.median(ratio))
        best = sizes[step] == min(sizes.values())
        yield Line(family, p, rule, step, best, len(delta), *map(float, numbers))


def as_markdown(lines: Sequence[Line], n: int, seed: int) -> str:
    """Each rule at its best step size, the paper's rule at the paper's too."""
    text = [
        f"# Stationary simulation: {N_ROWS} rows, {n} draws, seed {seed}",
        "",
        "Delta is the l1 norm of the fit at the lam of 10-fold cross-validation less that at the last lam of the rule,",
        "both fits to all rows: its quartiles, and its mean with the standard error. Near: the share of draws with",
        f"|Delta| at most {100 * NEAR:g} % of the norm at cross-validation's lam, given too (mean over draws).",
        "lam ratio: the median of the rule's last lam over that of cross-validation. Every rule starts at a lam from",
        "U[0, 1] and never forgets. Each is shown at the step size of the least median |Delta| on these draws, RAP",
        f"also at the step size that the paper states once, {PAPER_STEP}; summary.csv has all. LogRMS has its default.",
    ]
    for family in dict.fromkeys(line.family for line in lines):
        text += [
            "",
            f"## {family}",
            "",
            "| p | rule | step | norm (CV) | Delta: quartiles | mean | near | lam ratio |",
            "|---|---|---|---|---|---|---|---|",
        ]
        text += [_cells(line) for line in lines if line.family == family and _is_shown(line)]
    return "\n".join(text) + "\n"


def _is_shown(line: Line) -> bool:
    return line.best or (line.rule == RAP and line.step == PAPER_STEP)


def _cells(line: Line) -> str:
    quartiles = f"{line.low:.2f} / {line.median:.2f} / {line.high:.2f}"
    near = f"{line.near:.0%}".replace("%", " %")
    numbers = [f"{line.norm_cv:.2f}", quartiles, f"{line.mean:.2f} ({line.mean_se:.2f})", near, f"{line.lam_ratio:.2f}"]
    return f"| {' | '.join([str(line.p), line.rule, f'{line.step:g}', *numbers])} |"
