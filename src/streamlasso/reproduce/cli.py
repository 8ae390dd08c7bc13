"""The commands `reproduce ...`: options -> calls. Heavy modules are imported when one runs."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from cyclopts import App, Parameter

from streamlasso._files import make_directory
from streamlasso._terminal import say

reproduce = App(
    name="reproduce",
    help="The paper's studies: tables (CSV, Markdown), figures (PNG, SVG), and one page with all of them."
    "\n\nThe paper has 500 draws: streamlasso reproduce all --n 500 --jobs 2. An interrupted run continues when the "
    "same command is given again, and more draws are added to those that are there.",
)


@Parameter(name="*")
@dataclass(frozen=True)
class Draws:
    """The options of all studies.

    Parameters
    ----------
    n
        Draws of each kind; 20 of all studies take about two minutes on two cores, the paper's 500 about 45 minutes.
    seed
        Of the draws; one directory holds one seed.
    jobs
        Processes at a time; the numbers do not depend on it.
    out
        The directory for index.html and one folder per study; made if it is not there.
    """

    n: int = 20
    seed: int = 1
    jobs: int = 1
    out: Path = Path("reproduce")


DRAWS = Draws()


@reproduce.command
def stationary(*, draws: Draws = DRAWS) -> None:
    """Does lam, updated row by row, end near that of cross-validation? The paper's violins.

    Example: streamlasso reproduce stationary --n 20 --out reproduce
    """
    _reproduce(["stationary"], draws)


@reproduce.command
def nonstationary(*, draws: Draws = DRAWS) -> None:
    """Regimes that alternate: RAP and ours against cross-validation and Bayesian optimisation. The paper's table.

    Example: streamlasso reproduce nonstationary --n 20 --out reproduce
    """
    _reproduce(["nonstationary"], draws)


@reproduce.command
def theory(*, draws: Draws = DRAWS) -> None:
    """The lemmas on real lasso paths: where the update contracts, where it cycles, and which steps break it.

    Example: streamlasso reproduce theory --n 20 --out reproduce
    """
    _reproduce(["theory"], draws)


@reproduce.command(name="all")
def all_studies(*, draws: Draws = DRAWS) -> None:
    """All three studies of the paper.

    Example: streamlasso reproduce all --n 500 --seed 1 --jobs 2 --out reproduce
    """
    _reproduce(["stationary", "nonstationary", "theory"], draws)


@reproduce.command
def fmri(
    *,
    data: Path,
    tr: float = 0.72,
    start: float = 0.72,
    emotion: str = "fear",
    neutral: str = "neutral",
    delay: float = 5.0,
    out: Path = Path("reproduce"),
) -> None:
    """Is lam lower while emotional faces are shown? The paper's application, with a test for each subject.

    Example: streamlasso reproduce fmri --data hcp_emotion --out reproduce

    Parameters
    ----------
    data
        A folder with region series, one file per subject, and a BIDS events.tsv.
    tr
        Seconds between time points.
    start
        Time of the first time point on the clock of the events, in seconds; the default is one dropped volume.
    emotion
        The condition with emotional faces, as named in events.tsv.
    neutral
        The condition that it is compared with.
    delay
        Haemodynamic delay in seconds.
    out
        The directory for the folder fmri and for index.html; created if needed.
    """
    from streamlasso.reproduce.fmri import Task, run_fmri

    make_directory(out)
    say(run_fmri(data, out, tr, start, Task(emotion, neutral, delay)))
    say(f"Open {out / 'index.html'} in a browser; tables and figures are in {out / 'fmri'}.")


def _reproduce(names: list[str], draws: Draws) -> None:
    from streamlasso.reproduce.command import planned
    from streamlasso.reproduce.command import reproduce as run

    n, seed, jobs, out = draws.n, draws.seed, draws.jobs, draws.out
    planned(names, n, seed, jobs)  # refuses what is wrong before the directory is made
    make_directory(out)
    try:
        summaries = run(names, n, seed, jobs, out, progress=True)
    except KeyboardInterrupt:
        say(f"streamlasso: what is finished is kept in {out}; the same command continues from there", file=sys.stderr)
        raise
    say("\n".join(summaries.values()))
    say(f"Open {out / 'index.html'} in a browser; tables and figures are in the folders beside it.")
