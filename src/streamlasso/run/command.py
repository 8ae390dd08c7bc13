"""`streamlasso run` from its options to its exit status."""

from __future__ import annotations

import errno

from rich.console import Console

from streamlasso._text import count
from streamlasso.encoding import Target
from streamlasso.encoding.target import CLASSES
from streamlasso.families import FAMILIES
from streamlasso.report.results import caveats
from streamlasso.report.summary import Summary
from streamlasso.run.finish import active_table, change_table, finish, loss_table, notes_of
from streamlasso.run.live import Silence, Terminal, View
from streamlasso.run.options import Options
from streamlasso.run.run import Run

#: Classes that are named at the start.
MOST_NAMED = 6


def run_and_report(options: Options, *, quiet: bool = False) -> int:
    """Run to the end, or to an interruption; write and print what came of it. The exit status: 0, or 128 + signal."""
    view: View = Silence() if quiet else Terminal()
    run = Run(options, view)
    said = introduction(run)
    try:
        for words in said:
            view.say(words)
        ended = run.go()
        view.close()
        summary = finish(run)
    except BaseException as error:
        view.close()
        run.disown()
        if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None:
            error.filename = options.out
        raise
    if not quiet:
        print_results(run, summary, ended, said)
    return 0 if ended else 128 + run.interruption.signal


def introduction(run: Run) -> list[str]:
    """What was made of the file, said aloud before the first row is learnt."""
    target, encoder = run.learning.target, run.encoder
    how = "guessed from the first rows; --family says otherwise" if target.guessed else "as asked"
    time = f"; time from {encoder.time}" if encoder.time else ""
    words = [
        f"{run.source.format}; target {target.name}: {_in_words(target)} ({how})",
        f"{count(len(encoder.features), 'feature')} from {count(len(encoder.columns), 'column')}{time}",
        *_perhaps_classes(target),
        *encoder.notes,
    ]
    if run.resumed:
        again = "; the same rows have to come again, and are passed over" if run.options.data == "-" else ""
        words.append(f"going on after {run.position:,} rows, from {run.options.checkpoint}{again}")
    return words


def _perhaps_classes(target: Target) -> list[str]:
    values = ", ".join(map(str, target.maybe_classes))
    return (
        [f"{target.name} is {values}: if these are classes and not amounts, {CLASSES}"] if target.maybe_classes else []
    )


def _in_words(target: Target) -> str:
    if target.classes is None:
        return f"{FAMILIES[target.family].response}, family {target.family}"
    shown = ", ".join(map(str, target.classes[:MOST_NAMED])) + (", ..." if len(target.classes) > MOST_NAMED else "")
    return f"{len(target.classes)} {'class' if len(target.classes) == 1 else 'classes'} ({shown}), family binomial"


def print_results(run: Run, summary: Summary, ended: bool, said: list[str]) -> None:
    """The short tables, and where the files are; on standard error if the predictions went to standard output."""
    console = Console(stderr=run.options.to_standard_output, highlight=False)
    if not ended:
        again = "; the same command goes on from here" if run.options.checkpoint is not None else ""
        console.print(f"Interrupted after {run.n_rows:,} rows{again}.", soft_wrap=True)
    for table in (loss_table(summary), active_table(summary), change_table(summary)):
        if table is not None:
            console.print(table)
    for note in [*caveats(summary), *notes_of(run)]:
        if note not in said:
            console.print(note, soft_wrap=True, markup=False)
    out = run.options.out
    console.print(
        f"Open {out / 'report.html'} in a browser. Beside it: trace.parquet (every row), coefficients.parquet, "
        f"figure.png, model.safetensors; predictions in {run.options.predictions_path or 'standard output'}.",
        soft_wrap=True,
        markup=False,
    )
