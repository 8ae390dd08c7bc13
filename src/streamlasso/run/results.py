"""The files that a complete run leaves: tables, a figure, a report and the model; and what they say in words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from matplotlib.figure import Figure
from pyarrow import parquet

from streamlasso._files import write_whole
from streamlasso._text import count, listed, percent
from streamlasso.model.competition import MODEL as COMPETING_MODEL
from streamlasso.report.page import drawn
from streamlasso.report.run.history import detected_table
from streamlasso.report.run.keys import key_section, key_sentence
from streamlasso.report.run.plots import plot_summary
from streamlasso.report.run.report import write_report
from streamlasso.report.summary import Summary
from streamlasso.run.options import CHANGES, KEYS, MODEL
from streamlasso.run.outputs.files import as_csv
from streamlasso.run.run import Run

#: Bad rows that a note shows, and the least weight of a competitor that one names.
MOST_SHOWN, LEAST_WEIGHT = 3, 0.005


def finish(
    run: Run,
    title: str | None = None,
    comparisons: dict[str, np.ndarray] | None = None,
    mark: Callable[[Figure], None] | None = None,
) -> Summary:
    """Write all files. The checkpoint comes first: whatever happens then, the run can be continued.

    `comparisons` are other losses of the same rows, by name; `mark` adds to the figure.
    """
    _refuse_constant(run)
    out, path = run.options.out, run.options.checkpoint
    if path is not None:
        run.save(path)
    run.predictions.sync()
    summary = run.summary()
    write_whole(out / "coefficients.parquet", _as_parquet(coefficients(summary)))
    summary = summary.printable()
    svg = _write_figure(out, summary, mark)
    write_whole(out / CHANGES, as_csv(detected_table(summary)))
    keys, sections = run.model.keys, []
    if keys is not None:
        losses = keys.losses()
        write_whole(out / KEYS, as_csv(losses.table()))
        sections.append(key_section(losses, run.options.key or ""))
    write_report(
        summary,
        out / "report.html",
        title or _title(run),
        settings_of(run),
        comparisons,
        notes_of(run),
        svg,
        sections,
    )
    if not run.options.is_checkpoint(out / MODEL):
        run.save(out / MODEL, to_continue=False)
    run.predictions.close()
    run.trace.close()
    return summary


def _refuse_constant(run: Run) -> None:
    n_rows = run.n_rows
    if n_rows == 0:
        raise ValueError(f"{run.data.name}: no row has come, so there is nothing to report")
    if n_rows == 1:
        raise ValueError(f"{run.data.name} has one row, which nothing could predict: use more rows")
    if not run.model.baselines.varied:
        raise ValueError(
            f"the target {run.options.target!r} has the same value in all {n_rows:,} rows, so there is nothing to "
            "predict: use another --target"
        )


def _write_figure(out: Path, summary: Summary, mark: Callable[[Figure], None] | None) -> bytes:
    """figure.png and figure.svg; the latter is returned."""
    figure = plot_summary(summary)
    if mark is not None:
        mark(figure)
    drawings = {form: drawn(figure, form) for form in ("png", "svg")}
    for form, drawing in drawings.items():
        write_whole(out / f"figure.{form}", drawing)
    return drawings["svg"]


def _title(run: Run) -> str:
    data = "Standard input" if run.options.data == "-" else Path(run.options.data).name
    if run.data.seeks:
        data = data.partition("?")[0]
    return f"{data}: {run.options.target}"


# --- coefficients.parquet ---------------------------------------------------------------------------------------------


def coefficients(summary: Summary) -> pyarrow.Table:
    """The model at the end of each stretch of the summary; of a mixture, the selected model."""
    columns: dict[str, Any] = {"t": summary.t, "rows": summary.rows}
    if summary.times is not None:
        columns["time"] = summary.times
    columns |= {"loss": summary.loss, "baseline": summary.baseline, "persistence": summary.persistence}
    columns |= {"effective_size": summary.effective_size, "since": summary.since}
    labels = summary.model_labels
    for name in ("lam", "lam_max", "n_active"):
        columns |= _per_class(name, getattr(summary, name), labels)
    for j, feature in enumerate(summary.feature_names):
        columns |= _per_class(f"coef[{feature}]", summary.coef[..., j], labels)
    return pyarrow.table({name: values for name, values in columns.items() if values is not None})


def _per_class(name: str, values: np.ndarray, labels: list[Any]) -> dict[str, np.ndarray]:
    if not labels:
        return {name: values}
    return {f"{name}[{label}]": values[:, k] for k, label in enumerate(labels)}


def _as_parquet(table: pyarrow.Table) -> bytes:
    sink = pyarrow.BufferOutputStream()
    parquet.write_table(table, sink, compression="zstd")
    return sink.getvalue().to_pybytes()


# --- words ------------------------------------------------------------------------------------------------------------


def settings_of(run: Run) -> dict[str, Any]:
    """The options, and what was guessed where they were left out."""
    options, target = run.options, run.model.encoder.target
    found = {
        "data": f"{options.data} ({run.data.format})",
        "target": options.target,
        "family": target.family + (" (guessed)" if target.guessed else ""),
        "classes": ", ".join(map(str, run.model.labels)) if run.model.classes else None,
        "tuner": options.tuner,
        **run.model.described(),
        **({"memory": options.memory} if options.memory else {}),
        "text": ", ".join(options.text),
        "time": run.model.encoder.time,
        "key": options.key,
        "lags": "; ".join(
            f"{name}: {', '.join(map(str, lags))}" for name, lags in run.model.encoder.lags.steps.items()
        ),
        "keep": ", ".join(options.keep),
        "drop": ", ".join(options.drop),
        "coverage": options.coverage,
        "on-error": options.on_error,
    }
    return {name: value for name, value in found.items() if value}


def notes_of(run: Run) -> list[str]:
    """What a reader should know about the data."""
    notes, n = list(run.model.encoder.notes), run.data.n_bad
    if n:
        examples = "; ".join(run.data.bad_examples[:MOST_SHOWN])
        notes.append(f"{count(n, 'unreadable row')} left out, first: {examples}")
    return [*notes, *_without_target(run), *_competition(run), *_keys(run)]


def _keys(run: Run) -> list[str]:
    """How much the models of keys gain, and where the rankings are."""
    keys = run.model.keys
    if keys is None:
        return []
    return [f"{key_sentence(keys.losses(weighed=False))} ({KEYS} has them all)"]


def _without_target(run: Run) -> list[str]:
    n_rows, n_known = run.n_rows, run.model.n_known
    if n_known == n_rows:
        return []
    they = "it was" if n_rows - n_known == 1 else "they were"
    return [f"{count(n_rows - n_known, 'row')} of {n_rows:,} had no {run.options.target}: {they} predicted, not learnt"]


def _competition(run: Run) -> list[str]:
    """What the next prediction is made of."""
    competition = run.model.competition
    weights = {} if competition is None else competition.weights
    some = sorted(((weight, name) for name, weight in weights.items() if weight >= LEAST_WEIGHT), reverse=True)
    if not some or (len(some) == 1 and some[0][1] == COMPETING_MODEL):
        return []
    parts = [f"{percent(weight)} {name}" for weight, name in some]
    return [f"the next prediction is {listed(parts)}; --lags none leaves it to the model"]
