"""`streamlasso run` from its options to its exit status."""

from __future__ import annotations

import errno
from contextlib import nullcontext

from streamlasso._files import alone_with
from streamlasso._terminal import console
from streamlasso._text import count
from streamlasso.data.encoding import Target
from streamlasso.data.encoding.target import CLASSES
from streamlasso.families import FAMILIES
from streamlasso.report.run.results import caveats, inside_intervals
from streamlasso.report.summary import Summary
from streamlasso.run.alarm import CHANGED
from streamlasso.run.options import Options
from streamlasso.run.results import finish, notes_of
from streamlasso.run.run import Run, Watcher
from streamlasso.run.tables import summary_tables
from streamlasso.run.terminal import Terminal

#: Classes that are named at the start.
MOST_NAMED = 6


def run_and_report(options: Options, *, quiet: bool = False, watcher: Watcher | None = None) -> int:
    """Run to the end, or to an interruption; write and print the results. The exit status: 0, 128 + signal, or 3."""
    with nullcontext() if options.checkpoint is None else alone_with(options.checkpoint):
        return _run_and_report(options, quiet, watcher or Watcher())


def _run_and_report(options: Options, quiet: bool, watcher: Watcher) -> int:
    view = Terminal(quiet=quiet)
    run = Run(options, view, watcher)
    try:
        printed = [*introduction(run), *watcher.begins(run)]
        for text in printed:
            view.message(text)
        complete = run.go()
        view.close()
        summary = finish(run)
    except BaseException as error:
        view.close()
        run.abandon()
        if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None:
            error.filename = options.out
        raise
    if not quiet:
        print_results(run, summary, complete, printed)
    if complete:
        watcher.stay()
    if run.alarm.came and not run.interruption.came:
        return CHANGED
    return 0 if complete else 128 + run.interruption.signal


def introduction(run: Run) -> list[str]:
    """How the file is read, before the first row is learnt."""
    encoder, target = run.model.encoder, run.model.target
    how = "guessed from the first rows; --family overrides it" if target.guessed else "as given"
    time = f"; time from {encoder.time}" if encoder.time else ""
    return [
        f"{run.data.format}; target {target.name}: {_described(target)} ({how})",
        f"{encoder.described}{time}",
        *([f"a model for each {encoder.key}, and one for all of them"] if encoder.key is not None else []),
        *_maybe_classes(target),
        *encoder.notes,
        *_continuation(run),
    ]


def _described(target: Target) -> str:
    if target.classes is None:
        return f"{FAMILIES[target.family].response}, family {target.family}"
    shown = ", ".join(map(str, target.classes[:MOST_NAMED])) + (", ..." if len(target.classes) > MOST_NAMED else "")
    n = len(target.classes)
    return f"{n} {'class' if n == 1 else 'classes'} ({shown}), family binomial"


def _maybe_classes(target: Target) -> list[str]:
    if not target.maybe_classes:
        return []
    values = ", ".join(map(str, target.maybe_classes))
    return [f"{target.name} is {values}: if these are classes, not amounts, use {CLASSES}"]


def _continuation(run: Run) -> list[str]:
    if not run.resumed:
        return []
    again = "; the same rows must come again, and are skipped" if run.options.data == "-" else ""
    return [f"continuing after {count(run.position, 'row')}, from {run.options.checkpoint}{again}"]


def print_results(run: Run, summary: Summary, complete: bool, printed: list[str]) -> None:
    """Short tables, and where the files are; on standard error if the predictions went to standard output."""
    terminal = console(stderr=run.options.to_standard_output)
    if not complete:
        again = "; the same command continues from here" if run.options.checkpoint is not None else ""
        what = "A change ended the run" if run.alarm.came and not run.interruption.came else "Interrupted"
        terminal.print(f"{what} after {count(run.n_rows, 'row')}{again}.", soft_wrap=True)
    for table in summary_tables(summary):
        terminal.print(table)
    for note in [inside_intervals(summary), *caveats(summary), *notes_of(run)]:
        if note and note not in printed:
            terminal.print(note, soft_wrap=True)
    out = run.options.out
    terminal.print(
        f"Open {out / 'report.html'} in a browser. The same directory has trace.parquet (every row), "
        f"coefficients.parquet, figure.png and model.safetensors; predictions are in "
        f"{run.options.predictions_topic or run.options.predictions_path or 'standard output'}.",
        soft_wrap=True,
    )
