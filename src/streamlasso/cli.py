"""The command line: arguments -> calls. A new command is one more function in the list."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cyclopts import App, CycloptsError, Parameter

from streamlasso import __version__
from streamlasso._files import make_directory
from streamlasso.network.cli import network, replay
from streamlasso.reproduce.fmri_command import fmri
from streamlasso.run.cli import demo, inspect, predict, run

app = App(
    name="streamlasso",
    version=__version__,
    help="Sparse, self-tuning linear models on streams that keep changing.\n\n"
    "Start with: streamlasso demo\n\nThen: streamlasso run data.csv --target y",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Exit status: 0; 2 and one line on standard error if it cannot be done; 130 if interrupted."""
    try:
        command, bound, _ = app.parse_args(
            sys.argv[1:] if arguments is None else arguments, print_error=False, exit_on_error=False
        )
        status = command(*bound.args, **bound.kwargs)
    except CycloptsError as error:
        return _refuse(f"{error} See streamlasso --help.")
    except BrokenPipeError:
        # The reader has closed the pipe; what is left in the buffer must not be written again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        return _refuse(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (ValueError, ImportError) as error:
        return _refuse(str(error))
    except KeyboardInterrupt:
        print("streamlasso: interrupted", file=sys.stderr)
        return 130
    return status if isinstance(status, int) else 0


def _refuse(words: str) -> int:
    print("streamlasso:", " ".join(words.split()), file=sys.stderr)
    return 2


for command in (run, predict, inspect, demo, network, replay):
    app.command(command)


@app.command
def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print a script that completes commands and options in your shell.

    Example: streamlasso completion bash > ~/.local/share/bash-completion/completions/streamlasso

    Parameters
    ----------
    shell
        The shell.
    """
    print(app.generate_completion(prog_name="streamlasso", shell=shell))


# --- bench ------------------------------------------------------------------------------------------------------------


@app.command
def bench(
    data: Annotated[str, DASH],
    /,
    *,
    target: str,
    family: Literal["auto", "gaussian", "binomial", "poisson"] = "auto",
    methods: Annotated[list[str] | None, ONE_WAY] = None,
    rows: int = 5000,
    time: str | None = None,
    keep: Annotated[list[str] | None, ONE_WAY] = None,
    drop: Annotated[list[str] | None, ONE_WAY] = None,
    lags: Annotated[list[str] | None, ONE_WAY] = None,
    lagged: Annotated[bool, ONE_WAY] = False,
    on_error: Literal["stop", "skip"] = "stop",
    jobs: int = 1,
    out: Path = Path("bench"),
) -> None:
    """Compare streamlasso on your stream with river, scikit-learn, Vowpal Wabbit, ondil and cross-validated refits.

    Every method predicts each row, then learns it, with every setting of its grid. Losses are relative to the running
    mean, after the first 50 rows. The rows are read as by `run`. The other packages: pip install "streamlasso[bench]"

    5000 rows of 20 features take three minutes; a setting that takes more than 60 seconds of CPU time is too slow. An
    interrupted comparison continues when the same command is given again.

    Example: streamlasso bench data.csv --target y

    Example: streamlasso bench data.csv --target y --methods streamlasso,river,sklearn-sgd --rows 2000 --jobs 2

    Parameters
    ----------
    data
        CSV, TSV, JSON lines, Parquet or Arrow, also compressed with gzip; - is standard input.
    target
        The column to predict. Text is read as classes.
    family
        What the target is: a number (gaussian), two or more classes (binomial) or a count (poisson). auto decides from
        the first rows and prints what it chose.
    methods
        Some of running-mean, persistence, river, river-bayesian, sklearn-sgd, vowpal-wabbit, refit, ondil, streamlasso.
        Left out: all that are installed.
    rows
        The number of rows to use, from the first on.
    time
        The column with the time of each row. Left out: the first column of dates, if there is one.
    keep
        Use only these columns: --keep a,b or --keep a --keep b.
    drop
        Leave these columns out.
    lags
        Earlier values as features: --lags y:1,24 is the y of the row before and of 24 rows before.
    lagged
        The previous target as a feature; short for --lags TARGET:1.
    on_error
        What to do about a row that cannot be read: stop, or skip it.
    jobs
        Processes at a time; times per row are fair only with as many free cores.
    out
        The directory for leaderboard.csv, summary.md, comparison.png and comparison.svg; made if it is not there.
    """
    from streamlasso.bench.command import compare
    from streamlasso.bench.stream_file import StreamFile
    from streamlasso.run.options import parse_lags

    given = [*(lags or []), *([f"{target}:1"] if lagged else [])]
    file = StreamFile(data, target, family, rows, time, _names(keep), _names(drop), parse_lags(given), on_error)
    print(compare(file, out, _names(methods) or None, jobs))
    print(f"All settings are in {out / 'leaderboard.csv'}, the figure is {out / 'comparison.png'}.")


# --- reproduce --------------------------------------------------------------------------------------------------------

reproduce = App(
    name="reproduce",
    help="The paper's studies: tables (CSV, Markdown), figures (PNG, SVG), and one page with all of them."
    "\n\nThe paper has 500 draws: streamlasso reproduce all --n 500 --jobs 2. An interrupted run continues when the "
    "same command is given again, and more draws are added to those that are there.",
)
app.command(reproduce)
reproduce.command(fmri)


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
def nonstationary(*, draws: Draws = DRAWS, lengths: Literal["fixed", "random"] = "fixed") -> None:
    """Regimes that alternate: RAP and ours against cross-validation and Bayesian optimisation. The paper's table.

    Example: streamlasso reproduce nonstationary --n 20 --out reproduce

    Parameters
    ----------
    lengths
        Regimes of 100 rows, as in the paper, or of 60 to 150 at random, so that no schedule is favoured.
    """
    _reproduce(["nonstationary" if lengths == "fixed" else "nonstationary-random"], draws)


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


def _reproduce(names: list[str], draws: Draws) -> None:
    from streamlasso.reproduce.command import planned
    from streamlasso.reproduce.command import reproduce as run

    n, seed, jobs, out = draws.n, draws.seed, draws.jobs, draws.out
    planned(names, n, seed, jobs)  # refuses what is wrong before the directory is made
    make_directory(out)
    try:
        summaries = run(names, n, seed, jobs, out, progress=True)
    except KeyboardInterrupt:
        print(f"streamlasso: what is finished is kept in {out}; the same command continues from there", file=sys.stderr)
        raise
    print("\n".join(summaries.values()))
    print(f"Open {out / 'index.html'} in a browser; tables and figures are in the folders beside it.")
