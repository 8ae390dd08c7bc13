"""`streamlasso demo`: `streamlasso run` on a simulated stream, whose true coefficients are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import track
from rich.table import Table

from streamlasso import RAPRegressor, progressive
from streamlasso._files import write_whole
from streamlasso.report.plots import mark_truth
from streamlasso.report.summary import Summary
from streamlasso.run.finish import finish
from streamlasso.run.options import Options
from streamlasso.run.run import Run
from streamlasso.run.view import Terminal
from streamlasso.simulate import Stream, f_score, simulate
from streamlasso.tuners import Fixed, LogRMS

#: The stream, the forgetting factor of the methods it is compared with, and the fixed penalties among these.
SEED, MEMORY = 0, 0.95
FIXED = (0.01, 0.1, 1.0)
GRID = np.geomspace(0.005, 3, 20)
#: A fixed penalty has no start-up: with standardised features its first rows can cost more than all others.
WARM_UP = 20
OURS = "streamlasso run"


def run_demo(out: Path) -> None:
    """Write the stream as a file, run on it, and print how the model compares with others and with the truth."""
    stream = simulate(SEED)
    write_stream(stream, out / "stream.csv")
    run = Run(Options(str(out / "stream.csv"), "y", out, lags={}), Terminal())
    run.go()
    comparisons = comparison_losses(stream)

    def mark(figure: Figure) -> None:
        mark_truth(figure, stream)

    summary = finish(run, "Demo: the paper's simulated stream", comparisons, mark)
    run.view.close()
    console = Console()
    console.print(loss_table(summary, comparisons), regime_table(stream, summary))
    console.print(
        f"Open {out / 'report.html'} in a browser. For your own file: streamlasso run FILE --target COLUMN",
        soft_wrap=True,
        markup=False,
    )


def write_stream(stream: Stream, path: Path) -> None:
    """As text that reads back to the same numbers."""
    names = [*(f"x{j}" for j in range(stream.X.shape[1])), "y"]
    rows = [",".join(map(repr, row)) for row in np.column_stack([stream.X, stream.y]).tolist()]
    write_whole(path, ("\n".join([",".join(names), *rows]) + "\n").encode())


def comparison_losses(stream: Stream) -> dict[str, np.ndarray]:
    """The losses of other methods: fixed penalties that one might choose, the best of a grid (known only afterwards),
    one model that tunes its penalty, and the true coefficients."""
    losses = {}
    for lam in track([*FIXED, *GRID], description="fixed penalties", console=Console(stderr=True)):
        losses[lam] = progressive(RAPRegressor(memory=MEMORY, tuner=Fixed(lam)), stream.X, stream.y).loss
    best = min(losses, key=lambda lam: losses[lam][WARM_UP:].mean())
    moving = progressive(RAPRegressor(memory=MEMORY, tuner=LogRMS()), stream.X, stream.y).loss
    return {
        **{f"fixed lam = {lam:g}": losses[lam] for lam in FIXED},
        f"best fixed lam, in hindsight ({best:.2g})": losses[best],
        "one model that moves its lam": moving,
        "noise floor (the true coefficients)": stream.floor,
    }


def loss_table(summary: Summary, comparisons: dict[str, np.ndarray]) -> Table:
    table = Table("method", title=f"Mean {summary.loss_name} of the next row", title_justify="left")
    for title in ("all rows", f"from row {WARM_UP}"):
        table.add_column(title, justify="right")
    *others, floor = comparisons.items()
    assert summary.persistence is not None
    baselines = [("running mean", summary.baseline), ("persistence", summary.persistence)]
    for name, loss in (*baselines, *others, (OURS, summary.loss), floor):
        means = (loss[1:].mean(), loss[WARM_UP:].mean())
        table.add_row(name, *(f"{mean:.2f}" for mean in means), style="bold" if name == OURS else None)
    return table


def regime_table(stream: Stream, summary: Summary) -> Table:
    """The model in the second half of each regime, compared with the truth."""
    assert summary.coef is not None
    table = Table("rows", title="Second half of each regime", title_justify="left")
    for name in ("lam", "active", "truly active", "F score"):
        table.add_column(name, justify="right")
    for regime in np.unique(stream.regime):
        rows = np.flatnonzero(stream.regime == regime)
        settled = rows[len(rows) // 2 :]
        table.add_row(
            f"{settled[0]} to {settled[-1]}",
            f"{np.median(summary.lam[settled]):.2f}",
            f"{summary.n_active[settled].mean():.1f}",
            f"{np.count_nonzero(stream.beta[settled[0]])}",
            f"{f_score(summary.coef[settled], stream.beta[settled]).mean():.2f}",
        )
    return table
