"""`streamlasso inspect`: what is in a model file or a checkpoint, as tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from streamlasso._text import count, number
from streamlasso.core.base.selected import Selected
from streamlasso.data.encoding import Encoder
from streamlasso.run.keys import PREFIX
from streamlasso.run.saved import SavedModel
from streamlasso.run.tables import summary_tables
from streamlasso.run.wide_models import WideModels

#: Lines of a table.
MOST_COLUMNS = 30


def tables_of(path: Path) -> list[Table]:
    """The model; for a run also how good it was, what is active, and the columns."""
    saved = SavedModel(path)
    state = saved.run_state()
    if state is None:
        return [_model_table(saved), _coefficient_table(saved)]
    return [_model_table(saved), *summary_tables(state.summary()), _column_table(state.encoder)]


def _model_table(saved: SavedModel) -> Table:
    table = Table("", "", title=str(saved.path), title_justify="left", show_header=False)
    for name, value in _facts(saved).items():
        table.add_row(name, str(value))
    return table


def _facts(saved: SavedModel) -> dict[str, Any]:
    estimator, run = saved.estimator, saved.notes.get("run", {})
    about = _of_many_features(estimator) if isinstance(estimator, WideModels) else _of_few_features(estimator)
    facts = {
        **about,
        "target": run.get("options", {}).get("target"),
        "keys": _keys(saved),
        "rows read": f"{run['position']:,}" if run else None,
        "written by": f"streamlasso {run['streamlasso']}" if run else None,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _of_many_features(models: WideModels) -> dict[str, Any]:
    return {
        "model": f"{models.settings['experts']} experts for any number of features",
        "family": models.name,
        "rows learnt": f"{models.n_seen_:,}",
        "features": f"{models.n_live:,}, {models.nbytes / 1e6:,.1f} MB",
    }


def _of_few_features(estimator: Any) -> dict[str, Any]:
    learner = estimator.learners_[0]
    return {
        "model": type(estimator).__name__,
        "family": type(learner.settings["family"]).__name__.lower(),
        "classes": ", ".join(map(str, estimator.classes_)) if hasattr(estimator, "classes_") else None,
        "tuner": learner.settings["tuner"],
        "memory": learner.settings["memory"] or "chosen by the mixture",
        "rows learnt": f"{estimator.n_seen_:,}",
        "rows in memory": number(estimator.effective_size_),
        "features": estimator.n_features_in_,
        "lam": ", ".join(number(each.lam) for each in estimator.learners_),
        "lam_max": ", ".join(number(each.lam_max) for each in estimator.learners_),
        "selected model": _selected(learner.selected()) if hasattr(estimator, "selected_") else None,
    }


def _keys(saved: SavedModel) -> str | None:
    """How many, and of which column; the model is then the pooled one."""
    if saved.encoder is None or saved.encoder.key is None:
        return None
    n = saved.arrays[f"{PREFIX}sums"].shape[0]
    return f"{n:,} of {saved.encoder.key}, each with a model of its own; all else here is of the pooled model"


def _selected(best: Selected) -> str:
    return f"{count(len(best.support), 'feature')}, since row {best.since:,}"


def _coefficient_table(saved: SavedModel) -> Table:
    coef = np.atleast_2d(saved.estimator.coef_)
    names = list(map(str, getattr(saved.estimator, "feature_names_in_", [f"x{j}" for j in range(coef.shape[1])])))
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
