"""What a run leaves: its tables, a figure, a report and the model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from matplotlib.figure import Figure
from pyarrow import parquet
from rich.table import Table

from streamlasso._files import write_whole
from streamlasso._text import number, percent
from streamlasso.report.page import drawn
from streamlasso.report.plots import plot_summary
from streamlasso.report.run_report import write_report
from streamlasso.report.summary import Summary
from streamlasso.run.options import MODEL
from streamlasso.run.run import Run

#: Lines of the tables in the terminal.
MOST_ACTIVE, MOST_CHANGES = 8, 8


def finish(
    run: Run,
    title: str | None = None,
    comparisons: dict[str, np.ndarray] | None = None,
    mark: Callable[[Figure], None] | None = None,
) -> Summary:
    """Write everything down. The checkpoint comes first: whatever happens then, the run itself is safe."""
    _refuse_constant(run)
    out, path = run.options.out, run.options.checkpoint
    if path is not None:
        run.save(path)
    run.predictions.settle()
    summary = run.summary()
    run.trace.finish(out / "trace.parquet")
    write_whole(out / "coefficients.parquet", _as_parquet(coefficients(summary)))
    figure = plot_summary(summary)
    if mark is not None:
        mark(figure)
    drawings = {form: drawn(figure, form) for form in ("png", "svg")}
    for form, drawing in drawings.items():
        write_whole(out / f"figure.{form}", drawing)
    title = (
        title or f"{'Standard input' if run.options.data == '-' else Path(run.options.data).name}: {run.options.target}"
    )
    write_report(summary, out / "report.html", title, settings_of(run), comparisons, notes_of(run), drawings["svg"])
    if not run.options.is_checkpoint(out / MODEL):
        run.save(out / MODEL, to_continue=False)
    run.predictions.close()
    run.close_trace()
    return summary


def _refuse_constant(run: Run) -> None:
    if run.n_rows == 1:
        raise ValueError(f"{run.options.data}: there is one row in it, which nothing could predict; more are needed")
    if not run.learning.baselines.varied:
        raise ValueError(
            f"the target {run.options.target!r} has the same value in all {run.n_rows:,} rows: there is nothing to "
            "predict; name another --target"
        )


def coefficients(summary: Summary) -> pyarrow.Table:
    """The model over time, at the end of each stretch of the summary; of a mixture, the model that speaks for it."""
    columns: dict[str, Any] = {"t": summary.t, "rows": summary.rows}
    if summary.times is not None:
        columns["time"] = summary.times
    columns |= {"loss": summary.loss, "baseline": summary.baseline, "persistence": summary.persistence}
    columns |= {"effective_size": summary.effective_size, "since": summary.since}
    labels = summary.model_labels
    for name in ("lam", "lam_max", "n_active"):
        columns |= _split(name, getattr(summary, name), labels)
    assert summary.coef is not None
    for j, feature in enumerate(summary.feature_names):
        columns |= _split(f"coef[{feature}]", summary.coef[..., j], labels)
    return pyarrow.table({name: values for name, values in columns.items() if values is not None})


def _split(name: str, values: np.ndarray, labels: list[Any]) -> dict[str, np.ndarray]:
    if not labels:
        return {name: values}
    return {f"{name}[{label}]": values[:, k] for k, label in enumerate(labels)}


def _as_parquet(table: pyarrow.Table) -> bytes:
    sink = pyarrow.BufferOutputStream()
    parquet.write_table(table, sink, compression="zstd")
    return sink.getvalue().to_pybytes()


def settings_of(run: Run) -> dict[str, Any]:
    """What was asked for, and what was made of it."""
    options = run.options
    family = run.learning.target.family + (" (guessed)" if run.learning.target.guessed else "")
    found = {
        "data": f"{options.data} ({run.source.format})",
        "target": options.target,
        "family": family,
        "classes": ", ".join(map(str, run.learning.labels)) if run.learning.classes else None,
        "memory": options.memory or "left to the mixture",
        "tuner": options.tuner,
        "time": run.encoder.time,
        "lags": "; ".join(f"{name}: {', '.join(map(str, lags))}" for name, lags in options.lags.items()),
        "keep": ", ".join(options.keep),
        "drop": ", ".join(options.drop),
        "on-error": options.on_error,
    }
    return {name: value for name, value in found.items() if value}


def notes_of(run: Run) -> list[str]:
    """What a reader should know of the data."""
    notes = list(run.encoder.notes)
    n, kept = run.skipped
    if n:
        first = "; ".join(kept[:3])
        notes.append(f"{n:,} {'row was' if n == 1 else 'rows were'} left out as unreadable, first: {first}")
    return notes


# --- in the terminal --------------------------------------------------------------------------------------------------


def loss_table(summary: Summary) -> Table:
    """The loss, with those of the baselines."""
    table = Table("", title=f"{summary.n_rows:,} rows, each predicted before it was learnt", title_justify="left")
    table.add_column(f"mean {summary.loss_name}", justify="right")
    table.add_column("the model's is lower by", justify="right")
    table.add_row("model", number(summary.mean_loss), "", style="bold")
    for name, mean in (("running mean", summary.mean_baseline), ("persistence", summary.mean_persistence)):
        if mean is not None:
            table.add_row(name, number(mean), percent(summary.saved_against(mean)))
    return table


def active_table(summary: Summary) -> Table:
    """What is in the model now, the largest effects first."""
    effects, coefs = summary.effects, np.atleast_2d(summary.last_coef)
    n_active = int(np.any(coefs != 0, axis=0).sum())
    title = f"Active now: {n_active} of {len(summary.feature_names)} features"
    table = Table("feature", title=title, title_justify="left")
    if summary.model_labels:
        table.add_column("class")
    for name in ("coefficient", "effect"):
        table.add_column(name, justify="right")
    for k, j in summary.active[:MOST_ACTIVE]:
        label = [str(summary.model_labels[k])] if summary.model_labels else []
        table.add_row(summary.feature_names[j], *label, number(float(coefs[k, j])), number(float(effects[k, j])))
    return table


def change_table(summary: Summary) -> Table | None:
    """What entered and left for long, with the largest effects; None if nothing did."""
    changes = sorted(summary.changes(), key=lambda change: -abs(change.effect))[:MOST_CHANGES]
    if not changes:
        return None
    table = Table("when", title="What entered and left", title_justify="left")
    table.add_column("feature")
    table.add_column("", justify="left")
    table.add_column("effect", justify="right")
    for change in sorted(changes, key=lambda change: change.t):
        whose = f" ({change.label})" if summary.model_labels else ""
        word = "entered" if change.entered else "left"
        table.add_row(summary.at(change.t), change.feature + whose, word, number(change.effect))
    return table
