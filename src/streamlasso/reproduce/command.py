"""The paper's empirical section: run the studies, draw their figures, write one page.

out/stationary, out/nonstationary, out/theory
    parts/ (what is computed so far), tables (Parquet), summary.csv, summary.md, figures (PNG and SVG), run.json
out/index.html
    the summaries and figures of all complete studies, with their settings and versions
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamlasso._terminal import warn
from streamlasso.reproduce import nonstationary, stationary, theory
from streamlasso.reproduce.page import write_index, write_study
from streamlasso.reproduce.parts import Job, claim, refuse_numbers, run_jobs

#: A study is a module with `plan(n, seed)` (its parts), `summarise(folder, parts, n, seed)` (writes the tables and the
#: summary; returns the records of the summary) and `figures(folder, records)` (drawn from the tables).
STUDIES: dict[str, Any] = {"stationary": stationary, "nonstationary": nonstationary, "theory": theory}


def reproduce(
    names: Sequence[str], n: int, seed: int, jobs: int, out: Path, progress: bool | None = None
) -> dict[str, str]:
    """Run some of the `STUDIES`, or continue them, in `out`; the Markdown summary of each.

    The numbers depend only on n, the draws, and the seed, which needs a directory of its own; not on the number of
    processes, `jobs`. Complete blocks of ten draws are not computed again.
    """
    plans = planned(names, n, seed, jobs)
    for name in names:
        claim(out / name, seed=seed)
        _warn_if_fewer(out / name, n)
    parts = [(out / name, job) for name, plan in plans.items() for job in plan]
    # Draw by draw through all studies, so that the remaining time can be estimated from the time so far.
    run_jobs(sorted(parts, key=lambda part: part[1].start), jobs, progress, "reproduce")
    for name, plan in plans.items():
        records = STUDIES[name].summarise(out / name, plan, n, seed)
        write_study(out / name, STUDIES[name].figures(out / name, records), dict(n=n, seed=seed))
    write_index(out)
    return {name: (out / name / "summary.md").read_text(encoding="utf-8") for name in names}


def planned(names: Sequence[str], n: int, seed: int, jobs: int) -> dict[str, list[Job]]:
    """The parts of each study; an error if a number is wrong, or a package is missing."""
    refuse_numbers(n, jobs)
    if seed < 0:
        raise ValueError(f"seed={seed} is negative: use 0 or more")
    return {name: STUDIES[name].plan(n, seed) for name in names}


def _warn_if_fewer(folder: Path, n: int) -> None:
    path = folder / "run.json"
    before = json.loads(path.read_text(encoding="utf-8"))["n"] if path.exists() else 0
    if before > n:
        warn(
            f"{folder} holds {before} draws; tables and figures will be of the first {n}. "
            f"--n {before} restores the others without computing them again."
        )
