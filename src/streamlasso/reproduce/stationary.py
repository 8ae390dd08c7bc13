"""The paper's stationary simulation: does lam, moved row by row, end where 10-fold cross-validation puts it?

300 rows of one regime. Each rule starts at a lam from U[0, 1] and sees each row once, with a memory that never forgets.
Then the lasso is solved on all rows at its last lam and at that of cross-validation: Delta is the difference of
the l1 norms of the two fits, cross-validation's minus the rule's. Summary and figure come from the saved table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from pyarrow import parquet

from streamlasso._text import markdown_table, percent
from streamlasso.report.axes import frame
from streamlasso.report.colours import DARK, LIGHT
from streamlasso.reproduce.learners import APPROXIMATE, NORMALISED, PAPER_STEP, RAP, online
from streamlasso.reproduce.offline import cross_validated_lam, lam_path
from streamlasso.reproduce.page import REGRESSIONS, Figures
from streamlasso.reproduce.parts import Job, Tables, blocks, gathered, write_summary, write_table
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
#: A fit is near cross-validation's if their l1 norms differ by at most this share.
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
class Distances(Job):
    """Every rule on some draws of one dimension."""

    family: str
    p: int

    def run(self) -> Tables:
        rows = [row for i in range(self.start, self.stop) for row in self._distances(i)]
        return {"draws": pyarrow.Table.from_pylist(rows)}

    def _distances(self, i: int) -> Iterator[dict[str, Any]]:
        stream, lam_init = draw(i, self.seed, self.p, self.family)
        lam_cv = cross_validated_lam(stream.X, stream.y, stream.family)
        ran = [
            (rule, step, float(online(stream, memory=1.0, lambda_init=lam_init, **settings).lam[-1]))
            for rule, step, settings in rules()
        ]
        norms = l1_norms(stream, [lam_cv, *(lam for _, _, lam in ran)])
        key = dict(family=self.family, p=self.p, draw=i, lam_init=lam_init)
        for (rule, step, lam), norm in zip(ran, norms[1:], strict=True):
            yield dict(**key, rule=rule, step=step, lam=lam, lam_cv=lam_cv, norm=float(norm), norm_cv=float(norms[0]))


def l1_norms(stream: Stream, lams: Sequence[float]) -> np.ndarray:
    """Of the fit to all rows at each lam, in the order given."""
    falling = np.argsort(lams)[::-1]
    path = lam_path(stream.X, stream.y, stream.family, [lams[k] for k in falling])
    norms = np.empty(len(lams))
    norms[falling] = np.abs(path[:, 1:]).sum(axis=1)
    return norms


def plan(n: int, seed: int) -> list[Job]:
    """The parts of the study."""
    return [
        Distances(seed, start, stop, family, p) for start, stop in blocks(n) for family in FAMILIES for p in DIMENSIONS
    ]


# --- the summary ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RuleSummary:
    """A rule in one dimension: Delta over draws, and how near the fit is to that of cross-validation.

    best : no other step size of the rule has a smaller median of |Delta|; chosen on these draws
    low, median, high : quartiles of Delta; size : the median of |Delta|
    near : the share of draws in which the two norms differ by at most a fifth of cross-validation's
    lam_ratio : the median of the rule's last lam over that of cross-validation
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


def summarise(folder: Path, planned: Sequence[Job], n: int, seed: int) -> list[RuleSummary]:
    """draws.parquet, summary.csv and summary.md from all parts."""
    draws = gathered(folder, planned, "draws")
    write_table(folder / "draws.parquet", draws)
    rules = summaries(draws)
    write_summary(folder, rules, as_markdown(rules, n, seed))
    return rules


def figures(folder: Path, rules: Sequence[RuleSummary]) -> Figures:
    """From draws.parquet."""
    caption = "Violins of the difference in l1 norm by number of features, for linear and logistic regression"
    return {"stationary": (draw_stationary(parquet.read_table(folder / "draws.parquet"), rules), caption)}


def summaries(draws: pyarrow.Table) -> list[RuleSummary]:
    """One record per family, dimension, rule and step size."""
    table: dict[tuple[str, int, str], dict[float, list[tuple[float, ...]]]] = {}
    for row in draws.to_pylist():
        steps = table.setdefault((row["family"], row["p"], row["rule"]), {})
        steps.setdefault(row["step"], []).append((row["norm_cv"], row["norm"], row["lam"] / row["lam_cv"]))
    return [record for key, steps in table.items() for record in _of_steps(*key, steps)]


def _of_steps(family: str, p: int, rule: str, steps: dict[float, list[tuple[float, ...]]]) -> Iterator[RuleSummary]:
    columns = {step: np.array(rows).T for step, rows in steps.items()}
    sizes = {step: float(np.median(np.abs(norm_cv - norm))) for step, (norm_cv, norm, _) in columns.items()}
    for step, (norm_cv, norm, ratio) in columns.items():
        delta = norm_cv - norm
        low, median, high = np.quantile(delta, [0.25, 0.5, 0.75])
        mean, error = delta.mean(), delta.std(ddof=1) / np.sqrt(len(delta))
        near = np.mean(np.abs(delta) <= NEAR * norm_cv)
        numbers = (norm_cv.mean(), mean, error, low, median, high, sizes[step], near, np.median(ratio))
        best = sizes[step] == min(sizes.values())
        yield RuleSummary(family, p, rule, step, best, len(delta), *map(float, numbers))


def as_markdown(rules: Sequence[RuleSummary], n: int, seed: int) -> str:
    """Each rule at its best step size, the paper's rule at the paper's too."""
    text = (
        f"# Stationary simulation: {N_ROWS} rows, {n} draws, seed {seed}\n\n"
        "Delta is the l1 norm of the fit at the lam of 10-fold cross-validation minus that at the last lam of the\n"
        "rule, both fits to all rows: its quartiles, and its mean with the standard error. Near: the share of draws\n"
        f"with |Delta| at most {100 * NEAR:g} % of the norm at cross-validation's lam, given too (mean over draws).\n"
        "lam ratio: the median of the rule's last lam over that of cross-validation. Every rule starts at a lam from\n"
        "U[0, 1] and never forgets. Each is shown at the step size of the smallest median |Delta| on these draws, RAP\n"
        f"also at the step size that the paper states, {PAPER_STEP}; summary.csv has all. LogRMS has its default.\n"
    )
    head = ("p", "rule", "step", "norm (CV)", "Delta: quartiles", "mean", "near", "lam ratio")
    for family in dict.fromkeys(rule.family for rule in rules):
        cells = [_cells(rule) for rule in rules if rule.family == family and _is_shown(rule)]
        text += f"\n## {family}\n\n{markdown_table(head, cells)}"
    return text


def _is_shown(rule: RuleSummary) -> bool:
    return rule.best or (rule.rule == RAP and rule.step == PAPER_STEP)


def _cells(rule: RuleSummary) -> list[str]:
    quartiles = f"{rule.low:.2f} / {rule.median:.2f} / {rule.high:.2f}"
    mean = f"{rule.mean:.2f} ({rule.mean_se:.2f})"
    numbers = [f"{rule.norm_cv:.2f}", quartiles, mean, percent(rule.near), f"{rule.lam_ratio:.2f}"]
    return [str(rule.p), rule.rule, f"{rule.step:g}", *numbers]


# --- the figure -------------------------------------------------------------------------------------------------------

#: How far beyond its quartiles, in units of their distance, a difference is drawn.
WHISKER = 3.0
#: Rule -> colour and where it stands beside the tick of its dimension.
VIOLINS = {RAP: (DARK, -0.2), LOG_RMS: (LIGHT, 0.2)}


def draw_stationary(draws: pyarrow.Table, rules: Sequence[RuleSummary]) -> Figure:
    """The difference of l1 norms by dimension, for RAP at its best step size and for LogRMS."""
    figure = Figure(figsize=(9, 3.9))
    figure.set_layout_engine("constrained")
    rows = draws.to_pylist()
    for axes, (family, name) in zip(figure.subplots(1, 2), REGRESSIONS.items(), strict=True):
        best = [rule for rule in rules if rule.family == family and rule.best and rule.rule in VIOLINS]
        chosen = {
            (rule.rule, rule.p): np.array([row["norm_cv"] - row["norm"] for row in rows if _is_of(row, rule)])
            for rule in best
        }
        _draw_violins(axes, chosen)
        axes.set_title(f"{name} regression", loc="left", fontsize=10)
    handles: list[Artist] = [Patch(color=colour, alpha=0.6) for colour, _ in VIOLINS.values()]
    handles.append(Line2D([], [], color="black", marker="o", markersize=3.5, linewidth=1.6))
    labels = [f"{RAP}, its best step in hindsight", f"{LOG_RMS}, its default step", "median and quartiles"]
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8.5)
    return figure


def _is_of(row: dict[str, Any], rule: RuleSummary) -> bool:
    return (row["family"], row["p"], row["rule"], row["step"]) == (rule.family, rule.p, rule.rule, rule.step)


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
    """Nearly all of every group: a lam near 0 that separates the classes has an unbounded norm."""
    lows, highs = [], []
    for values in groups:
        first, third = np.quantile(values, [0.25, 0.75])
        reach = WHISKER * (third - first)
        lows.append(values[values >= first - reach].min())
        highs.append(values[values <= third + reach].max())
    margin = 0.05 * (max(highs) - min(lows))
    return min(lows) - margin, max(highs) + margin
