"""The words of `streamlasso network`: what was found, and where it is."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from streamlasso.network.live import Scan, View, Watching, watch
from streamlasso.network.options import Design, Images, Model
from streamlasso.network.recorded import Outcome, run_network
from streamlasso.network.report.group import Group

#: Conditions whose lams are printed at most.
MOST_COLUMNS = 4


def follow_and_report(data: Sequence[Path], out: Path, images: Images, design: Design, model: Model, jobs: int) -> None:
    """Recorded subjects. Those that cannot be read are an error, after the others are done."""
    outcome = run_network(data, out, images, design, model, jobs, progress=True)
    for words in outcome.group.notes:
        print(words, file=sys.stderr)
    console = Console()
    console.print(_table(outcome.group))
    console.print(f"Open {out / 'report.html'} in a browser; tables and figures are beside it.", soft_wrap=True)
    _complain(outcome, out)


def _complain(outcome: Outcome, out: Path) -> None:
    if outcome.failures:
        n = len(outcome.failures)
        raise ValueError(
            f"{n} of {n + len(outcome.group.subjects)} subjects left out: {'; '.join(outcome.failures.values())}. "
            f"The others are in {out}"
        )


def _table(group: Group) -> Table:
    table = Table("subject", title="Networks followed", title_justify="left")
    # More columns would be too narrow for their numbers.
    conditions = [name for name in group.shown if any((group.conditions(one) == name).any() for one in group.subjects)]
    conditions = conditions if len(conditions) <= MOST_COLUMNS else []
    for name in ("time points", "regions", "edges (mean)", "lam (mean)", *(f"lam, {name}" for name in conditions)):
        table.add_column(name, justify="right")
    for subject in group.subjects:
        lam, shown = subject.mean_lam, group.conditions(subject)
        means = [_mean(lam[shown == name]) for name in conditions]
        table.add_row(
            subject.subject,
            f"{len(subject.t):,}",
            str(len(subject.regions)),
            f"{subject.edges.counts().mean():.0f}",
            *(f"{value:.3g}" for value in (_mean(lam), *means)),
        )
    return table


def _mean(lam: np.ndarray) -> float:
    lam = lam[np.isfinite(lam)]
    return float(lam.mean()) if len(lam) else float("nan")


def watch_and_report(folder: Path, out: Path, images: Images, design: Design, model: Model, watching: Watching) -> None:
    """A scanner's folder."""
    scan = watch(folder, out, images, design, model, watching, View(sys.stderr))
    print(_verdict(scan, design.tr))
    print(f"Open {out / 'report.html'} in a browser; tables and figures are beside it.")


def _verdict(scan: Scan, tr: float | None) -> str:
    latency = 1000 * np.array(scan.latencies)
    learnt = "1 volume" if len(scan.numbers) == 1 else f"{len(scan.numbers)} volumes"
    words = (
        f"{learnt} learnt, {len(scan.regions)} regions. From a whole file to the network on the "
        f"disk: median {np.median(latency):.0f} ms, 99 % within {np.quantile(latency, 0.99):.0f} ms"
    )
    if tr is not None:
        late = int(np.sum(latency > 1000 * tr))
        words += f"; {late} of {len(latency)} took longer than the {tr:g} s between volumes"
    return words + "."
