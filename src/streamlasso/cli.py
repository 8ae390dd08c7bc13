"""The command line: arguments -> calls. A new command is one more decorated function."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import numpy as np
from cyclopts import App, CycloptsError
from rich.console import Console
from rich.progress import track
from rich.table import Table

from streamlasso import RAPRegressor, Trace, __version__, progressive
from streamlasso.simulate import Stream, simulate
from streamlasso.tuners import Fixed, LogRMS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

app = App(
    name="streamlasso",
    version=__version__,
    help="Sparse linear models on streams that never stop changing, tuned by nobody.\n\nStart with: streamlasso demo",
)

#: The stream of the demo, its forgetting factor, and the fixed penalties it is compared with.
SEED, MEMORY = 0, 0.95
FIXED = (0.01, 0.1, 1.0)
GRID = np.geomspace(0.005, 3, 20)
#: A fixed penalty has no start-up of its own: with standardised features its first rows can cost more than all others.
WARM_UP = 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Exit status: 0; 2 and one line on standard error if it cannot be done; 130 if interrupted."""
    try:
        command, bound, _ = app.parse_args(
            sys.argv[1:] if arguments is None else arguments, print_error=False, exit_on_error=False
        )
        command(*bound.args, **bound.kwargs)
    except CycloptsError as error:
        return _refuse(f"{error} See streamlasso --help.")
    except OSError as error:
        return _refuse(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (ValueError, ImportError) as error:
        return _refuse(str(error))
    except KeyboardInterrupt:
        print("streamlasso: interrupted", file=sys.stderr)
        return 130
    return 0


def _make_directory(out: Path) -> None:
    """A directory that can be written to, or an error before any work is done."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise ValueError(
            f"--out {out}: nothing can be written there ({error.strerror}); name another directory"
        ) from error


def _refuse(words: str) -> int:
    print("streamlasso:", " ".join(words.split()), file=sys.stderr)
    return 2


# --- demo -------------------------------------------------------------------------------------------------------------


@app.command
def demo(*, out: Path = Path("demo")) -> None:
    """Learn a simulated stream whose truth is known; print how it went, and write a report.

    The stream is the paper's: 300 rows of 20 correlated features, of which 16, then 4, then again 16 matter. One
    model tunes its own penalty, row by row, and is drawn; it is compared with fixed penalties, with the best of them in
    hindsight, and with the default, a mixture that chooses its memory too.

    Example: streamlasso demo --out demo

    Parameters
    ----------
    out
        The directory for report.html, figure.png, figure.svg and trace.parquet; made if it is not there.
    """
    _make_directory(out)
    stream = simulate(SEED)
    model = RAPRegressor(memory=MEMORY, tuner=LogRMS())
    trace = progressive(model, stream.X, stream.y, coef=True)
    mixture = progressive(RAPRegressor(), stream.X, stream.y)
    losses = {
        **_fixed_losses(stream),
        "the default, RAPRegressor(): a mixture": mixture.loss,
        "noise floor (the true coefficients)": stream.floor,
    }
    _write_demo(out, stream, trace, _settings(model), losses)
    console = Console()
    console.print(_loss_table(trace, losses), _regime_table(stream, trace))
    console.print(
        f"Open {out / 'report.html'} in a browser; the figure and the whole table are beside it.", soft_wrap=True
    )


def _fixed_losses(stream: Stream) -> dict[str, np.ndarray]:
    """What fixed penalties lose: some that one might have guessed, and the best of a grid, known only afterwards."""
    losses = {}
    for lam in track([*FIXED, *GRID], description="fixed penalties", console=Console(stderr=True)):
        losses[lam] = progressive(RAPRegressor(memory=MEMORY, tuner=Fixed(lam)), stream.X, stream.y).loss
    best = min(losses, key=lambda lam: losses[lam][WARM_UP:].mean())
    named = {f"fixed lam = {lam:g}": losses[lam] for lam in FIXED}
    return {**named, f"best fixed lam, in hindsight ({best:.2g})": losses[best]}


def _settings(model: RAPRegressor) -> dict[str, Any]:
    """The settings as the engine has them: what None stood for is filled in."""
    settings = dict(model.learners_[0].settings)
    return {name: value for name, value in settings.items() if name != "penalty_factor"}


def _write_demo(
    out: Path, stream: Stream, trace: Trace, settings: dict[str, Any], losses: dict[str, np.ndarray]
) -> None:
    import pyarrow
    from pyarrow import parquet

    from streamlasso.plots import mark_truth, plot_trace
    from streamlasso.report import write_report, write_whole

    table = pyarrow.BufferOutputStream()
    parquet.write_table(trace.to_arrow(), table)
    write_whole(out / "trace.parquet", table.getvalue().to_pybytes())
    figure = plot_trace(trace)
    mark_truth(figure, stream)
    for extension in ("png", "svg"):
        write_whole(out / f"figure.{extension}", _drawn(figure, extension))
    write_report(trace, out / "report.html", "Demo: the paper's simulated stream", settings, losses)


def _drawn(figure: Figure, extension: str) -> bytes:
    drawing = BytesIO()
    figure.savefig(drawing, format=extension, dpi=150)
    return drawing.getvalue()


def _loss_table(trace: Trace, losses: dict[str, np.ndarray]) -> Table:
    table = Table("learner", title=f"Mean {trace.loss_name} of one look ahead", title_justify="left")
    for title in ("all rows", f"from row {WARM_UP}"):
        table.add_column(title, justify="right")
    *rivals, floor = losses.items()
    ours = ("one model that tunes its lam", trace.loss)
    for name, loss in (("running mean", trace.baseline), *rivals, ours, floor):
        means = (loss[trace.judged].mean(), loss[WARM_UP:].mean())
        table.add_row(name, *(f"{mean:.2f}" for mean in means), style="bold" if name == ours[0] else None)
    return table


def _regime_table(stream: Stream, trace: Trace) -> Table:
    """What the model had settled on in the second half of each regime, against the truth."""
    table = Table("rows", title="Second half of each regime", title_justify="left")
    for name in ("lam", "active", "truly active", "F score"):
        table.add_column(name, justify="right")
    for regime in np.unique(stream.regime):
        rows = np.flatnonzero(stream.regime == regime)
        settled = rows[len(rows) // 2 :]
        table.add_row(
            f"{settled[0]} to {settled[-1]}",
            f"{np.median(trace.lam[settled]):.2f}",
            f"{trace.n_active[settled].mean():.1f}",
            f"{np.count_nonzero(stream.beta[settled[0]])}",
            f"{_f_score(trace, stream, settled):.2f}",
        )
    return table


def _f_score(trace: Trace, stream: Stream, rows: np.ndarray) -> float:
    """The harmonic mean of precision and recall of the active features, averaged over rows."""
    assert trace.coef is not None
    active, truth = trace.coef[rows] != 0, stream.beta[rows] != 0
    both = np.sum(active & truth, axis=1)
    return float(np.mean(2 * both / (active.sum(axis=1) + truth.sum(axis=1))))


# --- bench ------------------------------------------------------------------------------------------------------------

bench = App(name="bench", help="Measure streamlasso against its peers.")
app.command(bench)


@bench.command
def streams(
    *,
    data: Path = Path("../shared/data"),
    out: Path = Path("bench"),
    tasks: list[str] | None = None,
    methods: list[str] | None = None,
    rows: int = 5000,
    lagged: bool = False,
    jobs: int = 1,
    redo: list[str] | None = None,
) -> None:
    """A leaderboard on real streams: everyone predicts each row, then learns it.

    Losses are relative to the running mean, after the first 50 rows. A run that was stopped goes on where it stood.

    Example: streamlasso bench streams --data ../shared/data --methods streamlasso --tasks usenet1

    Parameters
    ----------
    data
        The directory with the streams' folders.
    out
        The directory for leaderboard.csv, summary.md, leaderboard.png and leaderboard.svg; made if it is not there.
    tasks, methods
        Some of them, by name; all if left out. Peers need: pip install "streamlasso[bench]"
    rows
        The first rows of each stream.
    lagged
        Give everyone the previous response as one more feature.
    jobs
        Processes at a time.
    redo
        Methods to run again, although the table has them.
    """
    from streamlasso.experiments.leaderboard import run_leaderboard

    _make_directory(out)
    run_leaderboard(
        data, out, tasks=tasks, methods=methods, rows=rows, lagged=lagged, jobs=jobs, redo=redo or (), progress=True
    )
    print((out / "summary.md").read_text())
    print(f"The whole table is in {out / 'leaderboard.csv'}, the figure beside it.")
