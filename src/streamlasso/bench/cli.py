"""The command `bench`: options -> calls. Heavy modules are imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from streamlasso._arguments import ALL_COLUMNS, DASH, Columns, names_in


def bench(
    data: Annotated[str, DASH],
    /,
    *,
    target: str,
    family: str = "auto",
    methods: list[str] | None = None,
    peers: Literal["quick", "all"] = "quick",
    defaults_only: bool = False,
    rows: int = 5000,
    columns: Columns = ALL_COLUMNS,
    on_error: Literal["stop", "skip"] = "stop",
    jobs: int = 1,
    out: Path = Path("bench"),
) -> None:
    """Compare streamlasso on your stream with river, scikit-learn, Vowpal Wabbit, ondil and cross-validated refits.

    Every method predicts each row, then learns it, with every setting of its grid. Losses are relative to the running
    mean, after the first 50 rows; differences to ours have standard errors. The rows are read as by `run`. The other
    packages: pip install "streamlasso[bench]"

    5000 rows of 20 features take three minutes, and ten with --peers all; a setting that takes more than 60 seconds of
    CPU time per 5000 rows is too slow. An interrupted comparison continues when the same command is given again.

    Example: streamlasso bench data.csv --target y

    Example: streamlasso bench data.csv --target y --methods streamlasso,river,sklearn-sgd --rows 2000 --jobs 2

    Example: streamlasso bench data.csv --target y --peers all --defaults-only --rows 100000

    Parameters
    ----------
    data
        CSV, TSV, JSON lines, Excel, Parquet or Arrow, also compressed with gzip; - is standard input.
    target
        The column to predict. Text is read as classes.
    family
        What the target is: a number (gaussian), two or more classes (binomial) or a count (poisson). auto decides from
        the first rows and prints what it chose.
    methods
        Some of running-mean, persistence, river, sklearn-sgd, vowpal-wabbit, refit, ondil, river-forest, boosting,
        streamlasso. Left out: those of --peers that are installed.
    peers
        quick: the linear methods. all: also an adaptive random forest, and boosted trees that are refitted every 100
        rows.
    defaults_only
        Each method with its default instead of every setting of its grid: ten times faster.
    rows
        The number of rows to use, from the first on.
    on_error
        What to do about a row that cannot be read: stop, or skip it.
    jobs
        Processes at a time; times per row are fair only with as many free cores.
    out
        The directory for leaderboard.csv, summary.md, comparison.png and comparison.svg; made if it is not there.
    """
    from streamlasso._terminal import say
    from streamlasso.bench.command import compare
    from streamlasso.bench.stream_file import StreamFile

    file = StreamFile(data, target, family, rows, on_error=on_error, **columns.chosen())
    say(compare(file, out, names_in(methods) or None, jobs, peers, defaults_only))
    say(f"All settings are in {out / 'leaderboard.csv'}, the figure is {out / 'comparison.png'}.")
