"""What `streamlasso network` prints: a table of subjects, or the latency of a scan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.table import Table

from streamlasso._terminal import console, say, warn
from streamlasso._text import count, number
from streamlasso.network.blocks import conclusion
from streamlasso.network.group import Group
from streamlasso.network.live import watch
from streamlasso.network.options import Design, Images, Model, Watching
from streamlasso.network.recorded import Outcome, run_network
from streamlasso.network.scan import Scan


def run_recorded(data: Sequence[Path], out: Path, images: Images, design: Design, model: Model) -> None:
    """Recorded subjects. Those that cannot be used are an error, after the others are done."""
    outcome = run_network(data, out, images, design, model, progress=True)
    for note in outcome.group.notes:
        warn(note)
    terminal = console()
    terminal.print(_table(outcome.group))
    terminal.print(*conclusion(outcome.group), sep="\n")
    terminal.print(_where(out), soft_wrap=True)
    _raise_failures(outcome, out)


def run_live(folder: Path, out: Path, images: Images, design: Design, model: Model, watching: Watching) -> None:
    """A scanner's folder."""
    scan = watch(folder, out, images, design, model, watching, warn)
    say(_latency(scan, design.tr), _where(out))


def _where(out: Path) -> str:
    return f"Open {out / 'report.html'} in a browser; tables and figures are beside it."


def _raise_failures(outcome: Outcome, out: Path) -> None:
    if outcome.failures:
        n = len(outcome.failures)
        raise ValueError(
            f"{n} of {n + len(outcome.group.subjects)} subjects left out: {'; '.join(outcome.failures.values())}. "
            f"The others are in {out}"
        )


def _table(group: Group) -> Table:
    table = Table("subject", title="Networks learnt", title_justify="left")
    for name in ("time points", "regions", "edges (mean)", "lam (mean)"):
        table.add_column(name, justify="right")
    for subject in group.subjects:
        n_edges, lam = subject.edges.counts().mean(), subject.mean_lam
        mean = float(lam[np.isfinite(lam)].mean()) if np.isfinite(lam).any() else float("nan")
        counts = (f"{len(subject.t):,}", str(len(subject.regions)), f"{n_edges:.0f}")
        table.add_row(subject.subject, *counts, number(mean))
    return table


def _latency(scan: Scan, tr: float | None) -> str:
    latency = 1000 * np.array(scan.latencies)
    text = (
        f"{count(len(scan.numbers), 'volume')} learnt, {len(scan.regions)} regions. From a complete file to the "
        f"network on disk: median {np.median(latency):.0f} ms, 99 % within {np.quantile(latency, 0.99):.0f} ms"
    )
    if tr is not None:
        late = int(np.sum(latency > 1000 * tr))
        text += f"; {late} of {len(latency)} took longer than the {tr:g} s between volumes"
    return text + "."
