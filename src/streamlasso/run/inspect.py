"""`streamlasso inspect`: what is in a model file or a checkpoint, as tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from streamlasso._text import count, number
from streamlasso.data.encoding import Encoder
from streamlasso.model.stream_model import StreamModel
from streamlasso.model.wide import WideModels
from streamlasso.run.saved import SavedModel
from streamlasso.run.tables import summary_tables

#: Lines of a table.
MOST_COLUMNS = 30


def tables_of(path: Path) -> list[Table]:
    """The model; for a run also how good it was, what is active, and the columns."""
    saved = SavedModel(path)
    model = saved.model()
    table = Table("", "", title=str(path), title_justify="left", show_header=False)
    for name, value in _facts(saved, model).items():
        if value is not None:
            table.add_row(name, str(value))
    if model.record is None:
        return [table, _coefficient_table(saved.estimator)]
    return [table, *summary_tables(model.summary()), _column_table(model.encoder)]


def _facts(saved: SavedModel, model: StreamModel) -> dict[str, Any]:
    run, keys = saved.run, model.keys
    wide = isinstance(saved.estimator, WideModels)
    pooled = "each with a model of its own; all else here is of the pooled model"
    return {
        **(_of_many_features(saved.estimator) if wide else _of_few_features(saved.estimator)),
        "target": run["options"]["target"] if run else None,
        "keys": None if keys is None else f"{len(keys):,} of {model.encoder.key}, {pooled}",
        "rows read": f"{run['position']:,}" if run else None,
        "written by": f"streamlasso {run['streamlasso']}" if run else None,
    }


def _of_many_features(models: WideModels) -> dict[str, Any]:
    return {
        "model": f"{models.settings['experts']} experts for any number of features",
        "family": models.name,
        "rows learnt": f"{models.n_seen_:,}",
        "features": f"{models.n_live:,}",
    }


def _of_few_features(estimator: Any) -> dict[str, Any]:
    learner = estimator.learners_[0]
    best = learner.selected() if hasattr(estimator, "selected_") else None
    return {
        "model": type(estimator).__name__,
        "family": learner.settings["family"].name,
        "classes": ", ".join(map(str, estimator.classes_)) if hasattr(estimator, "classes_") else None,
        "tuner": learner.settings["tuner"],
        "memory": learner.settings["memory"] or "chosen by the mixture",
        "rows learnt": f"{estimator.n_seen_:,}",
        "rows in memory": number(estimator.effective_size_),
        "features": estimator.n_features_in_,
        "lam": ", ".join(number(each.lam) for each in estimator.learners_),
        "lam_max": ", ".join(number(each.lam_max) for each in estimator.learners_),
        "selected model": best and f"{count(len(best.support), 'feature')}, since row {best.since:,}",
    }


def _coefficient_table(estimator: Any) -> Table:
    coef = np.atleast_2d(estimator.coef_)
    names = list(map(str, getattr(estimator, "feature_names_in_", [f"x{j}" for j in range(coef.shape[1])])))
    largest = np.argsort(-np.abs(coef).max(axis=0), kind="stable")[:MOST_COLUMNS]
    table = Table("feature", title="The largest coefficients", title_justify="left")
    table.add_column("coefficient", justify="right")
    for j in largest:
        table.add_row(names[j], ", ".join(map(number, coef[:, j])))
    return table


def _column_table(encoder: Encoder) -> Table:
    table = Table("column", "read as", "last value", title="Columns", title_justify="left")
    for sparse in encoder.sparse:
        table.add_row(sparse.name, sparse.description, "")
    for column in encoder.columns[:MOST_COLUMNS]:
        table.add_row(column.name, column.description, str(column.last))
    more = len(encoder.columns) - MOST_COLUMNS
    if more > 0:
        table.add_row(f"and {more:,} more", "", "")
    return table
