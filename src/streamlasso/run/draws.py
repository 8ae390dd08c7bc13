"""What the default is for: streams that change never, sometimes and often, with no memory that is right for all.

Ten draws of each stream; every method predicts the same rows, and sees no more of them than the default does. Only the
best fixed setting is chosen afterwards, draw by draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow
from matplotlib.figure import Figure
from pyarrow import csv
from rich.table import Table

from streamlasso import RAPRegressor, progressive
from streamlasso._files import whole_file
from streamlasso.report.axes import TITLE, frame
from streamlasso.report.colours import DARK, GREY
from streamlasso.simulate import DENSE, SPARSE, Stream, simulate
from streamlasso.tuners import Fixed, LogRMS

N_DRAWS, N_ROWS = 10, 600
#: Rows between two changes, by how often a stream changes.
STREAMS = {"never": N_ROWS, "every 200 rows": 200, "every 50 rows": 50}
#: Forgetting factors, by how many rows they amount to.
MEMORIES = {"10 rows": 0.9, "20 rows": 0.95, "50 rows": 0.98, "100 rows": 0.99, "all rows": 1.0}
LAMS = np.geomspace(0.005, 1, 6)
OURS, BEST, FLOOR = "default", "best fixed, in hindsight", "true coefficients"
METHODS = (*(f"one model, memory {rows}" for rows in MEMORIES), BEST, OURS, FLOOR)
#: A fixed penalty has no start-up: with standardised features its first rows can cost more than all others.
WARM_UP = 20


def draw_losses(shown: Callable[[Iterable[tuple[str, int]]], Iterable[tuple[str, int]]]) -> pyarrow.Table:
    """The mean loss of every method in every draw: changes, draw, method, loss. `shown` wraps the draws in a bar."""
    rows: list[tuple[str, int, str, float]] = []
    for name, draw in shown([(name, draw) for name in STREAMS for draw in range(N_DRAWS)]):
        rows += [(name, draw, method, loss) for method, loss in _losses(_stream(name, draw))]
    return pyarrow.table(dict(zip(("changes", "draw", "method", "loss"), zip(*rows, strict=True), strict=True)))


def _stream(name: str, draw: int) -> Stream:
    n_regimes = N_ROWS // STREAMS[name]
    densities = [SPARSE if k % 2 else DENSE for k in range(n_regimes)]
    return simulate(draw, lengths=[STREAMS[name]] * n_regimes, densities=densities)


def _losses(stream: Stream) -> Iterator[tuple[str, float]]:
    for rows, memory in MEMORIES.items():
        yield f"one model, memory {rows}", _loss(RAPRegressor(memory=memory, tuner=LogRMS()), stream)
    fixed = [RAPRegressor(memory=memory, tuner=Fixed(lam)) for memory in MEMORIES.values() for lam in LAMS]
    yield BEST, min(_loss(model, stream) for model in fixed)
    yield OURS, _loss(RAPRegressor(), stream)
    yield FLOOR, float(stream.floor[WARM_UP:].mean())


def _loss(model: RAPRegressor, stream: Stream) -> float:
    return float(progressive(model, stream.X, stream.y).loss[WARM_UP:].mean())


def write_draws(draws: pyarrow.Table, path: Path) -> None:
    with whole_file(path) as file:
        csv.write_csv(draws, file)


def means_and_errors(draws: pyarrow.Table) -> dict[tuple[str, str], tuple[float, float]]:
    """By stream and method: the mean over the draws, and its standard error."""
    losses: dict[tuple[str, str], list[float]] = {}
    for row in draws.to_pylist():
        losses.setdefault((row["changes"], row["method"]), []).append(row["loss"])
    return {
        place: (float(np.mean(each)), float(np.std(each, ddof=1) / np.sqrt(len(each))))
        for place, each in losses.items()
    }


def draws_table(draws: pyarrow.Table) -> Table:
    """For the terminal."""
    found = means_and_errors(draws)
    title = f"Mean half squared error of the next row, and its standard error over {N_DRAWS} draws"
    table = Table("the stream changes", title=title, title_justify="left")
    for name in STREAMS:
        table.add_column(name, justify="right")
    for method in METHODS:
        cells = ["{:.2f} ± {:.2f}".format(*found[name, method]) for name in STREAMS]
        table.add_row(method, *cells, style="bold" if method == OURS else None)
    return table


def plot_draws(draws: pyarrow.Table) -> Figure:
    """A panel per stream: means with bars of two standard errors."""
    found = means_and_errors(draws)
    figure = Figure(figsize=(9, 2.9))
    figure.subplots_adjust(left=0.22, right=0.98, top=0.88, bottom=0.16, wspace=0.12)
    places = np.arange(len(METHODS))[::-1]
    for k, (axes, name) in enumerate(zip(figure.subplots(1, len(STREAMS)), STREAMS, strict=True)):
        for place, method in zip(places, METHODS, strict=True):
            mean, error = found[name, method]
            color = DARK if method == OURS else GREY
            axes.errorbar(mean, place, xerr=2 * error, color=color, marker="o", markersize=4.5, capsize=2.5)
        axes.axvline(found[name, OURS][0], color=DARK, linewidth=0.7, linestyle=":")
        axes.set_yticks(places, METHODS if k == 0 else [""] * len(METHODS), fontsize=8.5)
        axes.set_title(f"changes {name}", **TITLE)
        axes.set_xlim(left=0)
        frame(axes)
        axes.tick_params(axis="y", length=0)
    figure.axes[1].set_xlabel("mean half squared error of the next row, ± two standard errors")
    return figure
