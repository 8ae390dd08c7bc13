"""`streamlasso demo`: a run on a simulated stream, whose true coefficients are known, and what the default is for."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import track
from rich.table import Table

from streamlasso._files import write_whole
from streamlasso._terminal import console
from streamlasso.report.page import drawn, image, paragraph, section
from streamlasso.report.run.plots import mark_truth
from streamlasso.report.summary import Summary
from streamlasso.run.draws import N_DRAWS, draw_losses, draws_table, plot_draws, write_draws
from streamlasso.run.finish import finish
from streamlasso.run.options import Options
from streamlasso.run.run import Run
from streamlasso.run.view import Terminal
from streamlasso.simulate import Stream, f_score, simulate

#: The stream of the run.
SEED = 0
WHY = (
    f"Three kinds of streams, {N_DRAWS} draws of each. One model must be told how much to remember, and each memory is "
    "wrong somewhere: a short one wastes rows where nothing changes, a long one holds on to what no longer holds. The "
    "default is told nothing. The numbers are in draws.csv."
)


def run_demo(out: Path) -> None:
    """Write the stream as a file, run on it, and print how the default compares with others and with the truth."""
    stream = simulate(SEED)
    write_stream(stream, out / "stream.csv")
    run = Run(Options(str(out / "stream.csv"), "y", out, lags={}), Terminal())
    run.go()
    draws = draw_losses(_with_bar)
    write_draws(draws, out / "draws.csv")
    picture = image(drawn(plot_draws(draws), "svg"), "Mean losses with error bars, by kind of stream and method")
    why = section("Why not one model?", paragraph(WHY), picture)

    def mark(figure: Figure) -> None:
        mark_truth(figure, stream)

    floor = {"noise floor (the true coefficients)": stream.floor}
    summary = finish(run, "Demo: the paper's simulated stream", floor, mark, [why])
    run.view.close()
    terminal = console()
    terminal.print(draws_table(draws), regime_table(stream, summary))
    terminal.print(
        f"Open {out / 'report.html'} in a browser. For your own file: {program()} run FILE --target COLUMN",
        soft_wrap=True,
    )


def program() -> str:
    """What to type for `streamlasso`: its path where the shell does not find it, as after `make demo`."""
    path = Path(sys.argv[0])
    return "streamlasso" if path.stem != "streamlasso" or shutil.which("streamlasso") else str(path)


def _with_bar(draws: Iterable[tuple[str, int]]) -> Iterable[tuple[str, int]]:
    return track(list(draws), description="comparing", console=Console(stderr=True))


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
