"""The commands `run`, `predict`, `inspect` and `demo`: options -> calls. Heavy modules are imported when one runs."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from streamlasso._arguments import ALL_COLUMNS, DASH, Columns, names_in
from streamlasso._files import make_directory
from streamlasso._text import count, number, percent

if TYPE_CHECKING:
    from streamlasso.run.options import Options
    from streamlasso.run.run import Watcher


def run(
    data: Annotated[str, DASH],
    /,
    *,
    target: str | None = None,
    key: str | None = None,
    family: str = "auto",
    memory: str | None = None,
    tuner: str = "mixture",
    text: list[str] | None = None,
    ngrams: str = "1-2",
    out: Path = Path("run"),
    predictions: Annotated[str | None, DASH] = None,
    columns: Columns = ALL_COLUMNS,
    checkpoint: Path | None = None,
    every: int = 10_000,
    on_error: Literal["stop", "skip"] = "stop",
    max_keys: int | None = None,
    coverage: float | None = None,
    live: bool = False,
    port: int = 8000,
    alarm: str | None = None,
    false_alarms: float = 1.0,
    quiet: bool = False,
) -> int:
    """Learn a file, a pipe or a Kafka topic row by row; write predictions, a report, and the model.

    Each row is predicted before it is learnt. A column of numbers is a feature; text becomes one feature per level;
    dates become a trend, the season, the day of the week and the hour, as their spacing suggests. A missing value is
    replaced by the last one, and a feature marks it. Earlier targets are features where the rows are in the order of
    time, and the model competes with the last value, that of the last season, and the mean: --lags none turns both off.
    Nothing has to be tuned.

    Example: streamlasso run data.csv --target y

    Example: streamlasso run data.csv --target y --lags y:1,24 --checkpoint run.safetensors

    Example: streamlasso run sales.csv --target sold --key shop --coverage 0.9

    Example: streamlasso run mails.csv --target spam --text subject,body

    Example: streamlasso run kafka://broker/rows --target y --predictions kafka://broker/predicted --checkpoint run.ckpt

    Example: streamlasso run data.csv --target y --live

    Example: tail -n +1 -f data.csv | streamlasso run - --target y --predictions - --quiet

    Parameters
    ----------
    data
        CSV, TSV, JSON lines, Excel, Parquet, Arrow, svmlight (libsvm) or Vowpal Wabbit text, also compressed with gzip.
        A dash is standard input. kafka://broker/topic is a topic of JSON objects, which is read until the run is
        interrupted (?until=end: to its end, ?from=latest: only what comes).
    target
        The column to predict. Text is read as classes. svmlight and Vowpal Wabbit files have one, the label.
    key
        The column that says whose row it is (a shop, a meter, a patient). Each key has a model of its own, which
        competes with one for all rows; keys.csv and the report rank the keys by gain, loss and recent change.
    family
        What the target is: a number (gaussian), two or more classes (binomial), a count (poisson) or a positive number
        (gamma). auto decides from the first rows and prints what it chose.
    memory
        How the past is forgotten: a forgetting factor, say 0.99, a number of rows, say 500, or all, which forgets
        nothing. Left out: learnt from the data.
    tuner
        mixture, or logrms: one model with one penalty, which takes half the time and usually predicts less well.
    text
        Columns of text whose words are features: --text title,body. The model is then one for any number of features,
        as it is for svmlight and Vowpal Wabbit files, and for more than 1,000 columns that are mostly 0.
    ngrams
        1-2 are words and pairs of words, char3-5 runs of three to five letters.
    out
        The directory for report.html, trace.parquet, coefficients.parquet, figure.png, figure.svg and
        model.safetensors; made if it is not there.
    predictions
        The file for predictions, written as they are made: .csv, .tsv, .jsonl, .parquet (written at the end), - for
        standard output, or kafka://broker/topic. Left out: predictions.csv in --out.
    checkpoint
        A file to continue from. After an interruption, even a kill, the same command continues where it stopped.
    every
        The number of rows between two checkpoints.
    on_error
        What to do about a row that cannot be read: stop, or skip it.
    max_keys
        The models of keys in memory at a time; the least recently used wait on disk. Left out: all.
    coverage
        Predict intervals too, which hold this share of the targets, say 0.9: the columns low and high. For classes the
        column set: the most probable classes that have this probability together.
    live
        Show the run on a page while it learns, and after its end until Ctrl-C. Needs the extra serve.
    port
        The port of that page, on this machine only; 0 is any that is free.
    alarm
        What to do when a change is found: print a line; exit, which ends the run with its report and exit status 3; or
        a command for the shell, which finds the change as JSON in its standard input and its row in STREAMLASSO_ROW.
        Left out: changes are in the report and in changes.csv only.
    false_alarms
        How readily a change is found: alarms per 10,000 rows of a stream that does not change. 0 looks for none.
    quiet
        Print only errors.
    """
    from streamlasso.run.command import run_and_report
    from streamlasso.run.options import Options

    chosen = columns.chosen()
    if columns.lags is None:
        chosen["lags"] = None
    options = Options(
        data,
        target or "",
        out,
        family=family,
        memory=memory,
        tuner=tuner,
        predictions=predictions,
        checkpoint=checkpoint,
        every=every,
        on_error=on_error,
        key=key,
        max_keys=max_keys,
        alarm=alarm,
        false_alarms=false_alarms,
        text=names_in(text),
        ngrams=ngrams,
        coverage=coverage,
        **chosen,
    )
    make_directory(out)
    with open_page(options, port) if live else nullcontext() as watcher:
        return run_and_report(options, quiet=quiet, watcher=watcher)


def open_page(options: Options, port: int) -> AbstractContextManager[Watcher]:
    """The page of `--live`; the service is above this room, so `streamlasso.cli` puts it here."""
    raise NotImplementedError


def predict(
    model: Path,
    data: Annotated[str, DASH],
    /,
    *,
    out: Path | None = None,
    coverage: float | None = None,
    on_error: Literal["stop", "skip"] = "stop",
    quiet: bool = False,
) -> None:
    """Predict new rows with a model that `run` or Python saved; nothing is learnt.

    The rows are read as by the run, as if they followed its last row: lags and missing values continue from there. If
    the data have the target, the mean loss is printed.

    Example: streamlasso predict run/model.safetensors new.csv --out predictions.csv

    Parameters
    ----------
    model
        run/model.safetensors, a checkpoint, or a file written by `save` in Python.
    data
        As for run; - is standard input.
    out
        A file that ends in .csv, .tsv, .jsonl or .parquet. Left out: CSV on standard output.
    coverage
        As for run. Right for the next row; on streams that wander too narrow for rows far ahead.
    on_error
        What to do about a row that cannot be read: stop, or skip it.
    quiet
        Print only predictions and errors.
    """
    from streamlasso._terminal import warn
    from streamlasso.run.predict import predict_file

    done = predict_file(model, data, out, on_error, coverage)
    if not quiet:
        loss = f"; mean loss {number(done.mean_loss)} on {done.scored:,} of them" if done.scored else ""
        inside = f"; {percent(done.covered / done.scored)} inside their interval" if coverage and done.scored else ""
        skipped = f"; {count(done.skipped, 'unreadable row')} left out" if done.skipped else ""
        warn(f"{count(done.rows, 'row')}{loss}{inside}{skipped}", *done.notes)


def inspect(model: Path, /) -> None:
    """Show what is in a model file or a checkpoint: settings, rows learnt, penalty, active features, columns.

    Example: streamlasso inspect run/model.safetensors

    Parameters
    ----------
    model
        run/model.safetensors, a checkpoint, or a file written by `save` in Python.
    """
    from streamlasso._terminal import console
    from streamlasso.run.inspect import tables_of

    console().print(*tables_of(model))


def demo(*, out: Path = Path("demo")) -> None:
    """Run on a simulated stream with known coefficients; print how the model compares, and write a report.

    The stream is the paper's: 300 rows of 20 correlated features, of which 16, then 4, then 16 again matter. It is
    written as a CSV file and learnt by `streamlasso run`.

    Example: streamlasso demo --out demo

    Parameters
    ----------
    out
        The directory for stream.csv and the files of `streamlasso run`; made if it is not there.
    """
    from streamlasso.run.demo import run_demo

    make_directory(out)
    run_demo(out)
