"""The paper's empirical section as one call: run the studies, draw their figures, put all of it on one page.

out/stationary, out/nonstationary, out/nonstationary-random, out/theory
    parts/ (what is done already), the tables (Parquet), summary.csv, summary.md, figures (PNG and SVG), run.json
out/index.html
    the summaries and figures of all studies that are there, with their settings and versions
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from pyarrow import parquet

from streamlasso._files import write_whole
from streamlasso.report.page import versions, write_figure
from streamlasso.reproduce import nonstationary, stationary, theory
from streamlasso.reproduce.figures import draw_nonstationary, draw_stationary
from streamlasso.reproduce.page import PACKAGES, write_index
from streamlasso.reproduce.parts import Job, claim, refuse_numbers, run_jobs
from streamlasso.reproduce.theory_figures import draw_examples, draw_steps

#: Name of a file -> figure, and in words for who cannot see it.
Figures = dict[str, tuple[Figure, str]]


@dataclass(frozen=True)
class Study:
    """What to run for n draws of a seed; and, once that is done, the summary and the figures from its tables."""

    plan: Callable[[int, int], list[Job]]
    finish: Callable[[Path, Sequence[Job], int, int], Figures]
    settings: dict[str, Any] = field(default_factory=dict)


def _finish_stationary(folder: Path, jobs: Sequence[Job], n: int, seed: int) -> Figures:
    lines = stationary.summarise(folder, jobs, n, seed)
    said = "Violins of the difference in l1 norm by number of features, for linear and logistic regression"
    return {"stationary": (draw_stationary(parquet.read_table(folder / "draws.parquet"), lines), said)}


def _nonstationary(lengths: str) -> Study:
    def plan(n: int, seed: int) -> list[Job]:
        return nonstationary.planned_comparisons(n, seed, lengths)

    def finish(folder: Path, jobs: Sequence[Job], n: int, seed: int) -> Figures:
        lines = nonstationary.summarise(folder, jobs, n, seed, lengths)
        curves = parquet.read_table(folder / "curves.parquet")
        said = "lam and the loss over time, for linear and logistic regression, regimes {}"
        return {
            f"{folder.name}-{order}": (draw_nonstationary(curves, lines, order, lengths), said.format(order))
            for order in nonstationary.ORDERS
        }

    return Study(plan, finish, {"lengths": lengths})


def _finish_theory(folder: Path, jobs: Sequence[Job], n: int, seed: int) -> Figures:
    lines = theory.summarise(folder, jobs, n, seed)
    tables = [parquet.read_table(folder / f"example-{name}.parquet") for name in ("coefficients", "pieces", "lams")]
    paths = "Two lasso paths: coefficients, dC/dlam, the step at which each piece breaks, and where G goes"
    steps = "Over step sizes: the share of paths on which G contracts, and where it ends"
    drawn = {"theory-steps": (draw_steps(lines), steps)}
    return ({"theory-paths": (draw_examples(*tables), paths)} if tables[1].num_rows else {}) | drawn


STUDIES = {
    "stationary": Study(stationary.planned_distances, _finish_stationary),
    "nonstationary": _nonstationary("fixed"),
    "nonstationary-random": _nonstationary("random"),
    "theory": Study(theory.planned_paths, _finish_theory),
}


def reproduce(
    names: Sequence[str], n: int, seed: int, jobs: int, out: Path, progress: bool | None = None
) -> dict[str, str]:
    """Run some of the `STUDIES` into `out`, from where an earlier run stopped; the Markdown summary of each.

    The numbers depend on n and the seed alone. What is refused is refused before anything is run.

    Parameters
    ----------
    names : sequence of str
        Some of `STUDIES`.
    n : int
        Draws; 2 or more. Whole blocks of ten draws that are there already are not run again.
    seed : int
        Another seed needs another directory.
    jobs : int
        Processes at a time.
    out : Path
        The directory; made if it is not there.
    progress : bool, default=None
        A progress bar on standard error; None is one if that is a terminal.
    """
    plans = planned(names, n, seed, jobs)
    for name in names:
        claim(out / name, seed=seed, **STUDIES[name].settings)
        _say_if_fewer(out / name, n)
    parts = [(out / name, job) for name, plan in plans.items() for job in plan]
    # Draw by draw through all studies, so that the time that remains can be told from the time that has passed.
    run_jobs(sorted(parts, key=lambda part: part[1].start), jobs, progress, "reproduce")
    for name, plan in plans.items():
        figures = STUDIES[name].finish(out / name, plan, n, seed)
        _save(out / name, figures, dict(n=n, seed=seed, **STUDIES[name].settings))
    # The study of fMRI has a command of its own, for it needs data; its page is this one.
    write_index(out, [*STUDIES, "fmri"])
    return {name: (out / name / "summary.md").read_text() for name in names}


def planned(names: Sequence[str], n: int, seed: int, jobs: int) -> dict[str, list[Job]]:
    """The jobs of each study; an error if something makes no sense, or if a package is missing."""
    refuse_numbers(n, jobs)
    if seed < 0:
        raise ValueError(f"seed={seed}: a seed is 0 or more")
    unknown = [name for name in names if name not in STUDIES]
    if unknown:
        raise ValueError(f"{', '.join(unknown)}: the studies are {', '.join(STUDIES)}")
    return {name: STUDIES[name].plan(n, seed) for name in names}


def _say_if_fewer(folder: Path, n: int) -> None:
    path = folder / "run.json"
    before = json.loads(path.read_text())["n"] if path.exists() else 0
    if before > n:
        print(
            f"{folder} holds {before} draws; tables and figures will be of the first {n}. "
            f"--n {before} brings the others back, without running them again.",
            file=sys.stderr,
        )


def _save(folder: Path, figures: Figures, settings: dict[str, Any]) -> None:
    """The figures, and what the page needs to know; that last, so that a run with run.json is whole."""
    for name, (figure, _) in figures.items():
        write_figure(folder / name, figure)
    said = {name: words for name, (_, words) in figures.items()}
    run = dict(**settings, figures=said, versions=versions(*PACKAGES))
    write_whole(folder / "run.json", (json.dumps(run, indent=1) + "\n").encode())
