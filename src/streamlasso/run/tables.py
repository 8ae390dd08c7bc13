"""Tables in the terminal: how good a run was, what is active, what changed."""

from __future__ import annotations

import numpy as np
from rich.table import Table

from streamlasso._text import count, number, percent
from streamlasso.report.summary import Summary

#: Lines of a table.
MOST_ACTIVE, MOST_CHANGES = 8, 8


def summary_tables(summary: Summary) -> list[Table]:
    """All of them, for a run."""
    tables = (loss_table(summary), active_table(summary), change_table(summary))
    return [table for table in tables if table is not None]


def loss_table(summary: Summary) -> Table:
    """The typical error and the loss, with those of the baselines."""
    title = f"{count(summary.n_rows, 'row')}, each predicted before it was learnt"
    table = Table("", title=title, title_justify="left")
    table.add_column("typical error" if summary.classes is None else "correct", justify="right")
    table.add_column(f"mean {summary.loss_name}", justify="right")
    table.add_column("model's is lower by", justify="right")
    table.add_row("model", _error(summary, "error"), number(summary.mean_loss), "", style="bold")
    others = [("running mean", "baseline_error", summary.mean_baseline)]
    if summary.mean_persistence is not None:
        others.append(("persistence", "persistence_error", summary.mean_persistence))
    for name, error, mean in others:
        table.add_row(name, _error(summary, error), number(mean), percent(summary.saved_against(mean)))
    return table


def _error(summary: Summary, name: str) -> str:
    """The mean absolute error, or the share of correct classes."""
    error = summary.means[name]
    return number(error) if summary.classes is None else percent(1 - error)


def active_table(summary: Summary) -> Table:
    """The features in the model now, the largest effects first."""
    effects, coefs, labels = summary.effects, np.atleast_2d(summary.last_coef), summary.model_labels
    n_features = summary.n_features or len(summary.feature_names)
    title = f"Active now: {summary.n_active_now:,} of {count(n_features, 'feature')}"
    table = Table("feature", title=title, title_justify="left")
    if labels:
        table.add_column("class")
    for name in ("coefficient", "effect"):
        table.add_column(name, justify="right")
    for k, j in summary.active[:MOST_ACTIVE]:
        names = [summary.feature_names[j], *([str(labels[k])] if labels else [])]
        table.add_row(*names, number(float(coefs[k, j])), number(float(effects[k, j])))
    return table


def change_table(summary: Summary) -> Table | None:
    """The features that entered or left for long, with the largest effects; None if none did."""
    changes = sorted(summary.changes(), key=lambda change: -abs(change.effect))[:MOST_CHANGES]
    if not changes:
        return None
    where = " the strongest features" if summary.only_strongest else ""
    table = Table("when", title=f"What entered and left{where}", title_justify="left")
    table.add_column("feature")
    table.add_column("", justify="left")
    table.add_column("effect", justify="right")
    for change in sorted(changes, key=lambda change: change.t):
        of_class = f" ({change.label})" if summary.model_labels else ""
        word = "entered" if change.entered else "left"
        table.add_row(summary.at(change.t), change.feature + of_class, word, number(change.effect))
    return table
