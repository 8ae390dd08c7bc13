"""`streamlasso demo`: a run on a simulated stream, whose true coefficients are known."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
from rich.table import Table

from streamlasso._files import write_whole
from streamlasso._terminal import console
from streamlasso.report.run.plots import mark_truth
from streamlasso.report.summary import Summary
from streamlasso.run.options import Options
from streamlasso.run.results import finish
from streamlasso.run.run import Run
from streamlasso.run.tables import summary_tables
from streamlasso.run.terminal import Terminal
from streamlasso.simulate import Stream, f_score, simulate

#: The stream of the run.
SEED = 0


def run_demo(out: Path) -> None:
    """Write the stream as a file, run on it, and print how the model compares with the truth."""
    stream = simulate(SEED)
    write_stream(stream, out / "stream.csv")
    run = Run(Options(str(out / "stream.csv"), "y", out, lags={}), Terminal())
    run.go()
    floor = {"noise floor (the true coefficients)": stream.floor}
    summary = finish(run, "Demo: the paper's simulated stream", floor, lambda figure: mark_truth(figure, stream))
    run.view.close()
    terminal = console()
    for table in (*summary_tables(summary), regime_table(stream, summary)):
        terminal.print(table)
    terminal.print(
        f"Open {out / 'report.html'} in a browser. For your own file: {program()} run FILE --target COLUMN",
        soft_wrap=True,
    )


def program() -> str:
    """What to type for `streamlasso`: its path where the shell does not find it, as after `make demo`."""
    path = Path(sys.argv[0])
    return "streamlasso" if path.stem != "streamlasso" or shutil.which("streamlasso") else str(path)


def write_stream(stream: Stream, path: Path) -> None:
    """As text that reads back to the same numbers."""
    names = [*(f"x{j}" for j in range(stream.X.shape[1])), "y"]
    rows = [",".join(map(repr, row)) for row in np.column_stack([stream.X, stream.y]).tolist()]
    write_whole(path, ("\n".join([",".join(names), *rows]) + "\n").encode())


def regime_table(stream: Stream, summary: Summary) -> Table:
    """The model in the second half of each regime, compared with the truth."""
    table = Table("rows", title="The stream of the report, second half of each regime", title_justify="left")
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
