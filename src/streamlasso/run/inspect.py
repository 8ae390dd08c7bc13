"""`streamlasso inspect`: what is in a checkpoint, as tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from streamlasso._text import number
from streamlasso.core.mixture import MixtureLearner
from streamlasso.report.state import summariser_from
from streamlasso.run.finish import active_table, change_table, loss_table
from streamlasso.run.predict import Saved

MOST_COLUMNS = 30


def tables_of(path: Path) -> list[Table]:
    """The model; of a run also how it went, what is active, and the columns."""
    saved = Saved(path)
    tables = [_model_table(saved)]
    if saved.encoder is None:
        return [*tables, _coefficient_table(saved)]
    learning = saved.learning(saved.encoder)
    summariser = summariser_from(saved.notes["summary"], saved.arrays)
    classes = learning.labels if learning.classes else None
    summary = summariser.summary(learning.snapshot(), saved.encoder.features, classes, learning.family)
    found = [loss_table(summary), active_table(summary), change_table(summary), _column_table(saved)]
    return [*tables, *(table for table in found if table is not None)]


def _model_table(saved: Saved) -> Table:
    table = Table("", "", title=str(saved.path), title_justify="left", show_header=False)
    for name, value in _facts(saved).items():
        table.add_row(name, str(value))
    return table


def _facts(saved: Saved) -> dict[str, Any]:
    estimator, run = saved.estimator, saved.notes.get("run", {})
    learner = estimator.learners_[0]
    facts = {
        "model": type(estimator).__name__,
        "family": type(learner.settings["family"]).__name__.lower(),
        "classes": ", ".join(map(str, estimator.classes_)) if hasattr(estimator, "classes_") else None,
        "tuner": learner.settings["tuner"],
        "memory": learner.settings["memory"] or "left to the mixture",
        "rows learnt": f"{estimator.n_seen_:,}",
        "rows in memory": number(estimator.effective_size_),
        "features": estimator.n_features_in_,
        "lam": ", ".join(number(each.lam) for each in estimator.learners_),
        "lam_max": ", ".join(number(each.lam_max) for each in estimator.learners_),
        "selected model": _selected(learner.selected()) if hasattr(estimator, "selected_") else None,
        "target": run.get("options", {}).get("target"),
        "rows read": f"{run['position']:,}" if run else None,
        "written by": f"streamlasso {run['streamlasso']}" if run else None,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _selected(best: Selected) -> str:
    return f"{len(best.support)} features, lam {number(best.lam)}, {best.memory}, since row {best.since:,}"


def _coefficient_table(saved: Saved) -> Table:
    coef = np.atleast_2d(saved.estimator.coef_)
    names = list(map(str, getattr(saved.estimator, "feature_names_in_", [f"x{j}" for j in range(coef.shape[1])])))
    largest = np.argsort(-np.abs(coef).max(axis=0), kind="stable")[:MOST_COLUMNS]
    table = Table("feature", title="The largest coefficients", title_justify="left")
    table.add_column("coefficient", justify="right")
    for j in largest:
        table.add_row(names[j], ", ".join(number(value) for value in coef[:, j]))
    return table


def _column_table(saved: Saved) -> Table:
    assert saved.encoder is not None
    table = Table("column", "read as", "last value", title="Columns", title_justify="left")
    for column in saved.encoder.columns[:MOST_COLUMNS]:
        table.add_row(column.name, column.description, str(column.last))
    more = len(saved.encoder.columns) - MOST_COLUMNS
    if more > 0:
        table.add_row(f"and {more:,} more", "", "")
    return table
