"""`streamlasso predict`: predictions of new rows by a saved model; nothing is learnt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from streamlasso._text import count, listed
from streamlasso.data.encoding import Encoder
from streamlasso.data.encoding.encoder import Encoded
from streamlasso.estimators.intervals import refuse_coverage
from streamlasso.estimators.multiclass import losses_of
from streamlasso.run.data import Data
from streamlasso.run.learning import Learning, covered
from streamlasso.run.options import refuse_same_file
from streamlasso.run.prediction_files import open_predictions
from streamlasso.run.rows import prediction_columns, prediction_rows
from streamlasso.run.saved import SavedModel

#: Levels that a note names.
MOST_NAMED = 5


@dataclass
class Predicted:
    """How many rows were predicted, how many of them have a loss, the sum of these losses, how many of these lie in
    their intervals, rows left out, rows by keys that the run has not seen, and what a user should know."""

    rows: int = 0
    scored: int = 0
    total_loss: float = 0.0
    covered: int = 0
    skipped: int = 0
    new_keys: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    @property
    def mean_loss(self) -> float:
        return self.total_loss / self.scored if self.scored else float("nan")

    def add(self, losses: np.ndarray, n_rows: int) -> None:
        self.rows += n_rows
        self.scored += len(losses)
        self.total_loss += float(losses.sum())


def predict_file(
    model: Path, data: str, out: Path | None, on_error: str = "stop", coverage: float | None = None
) -> Predicted:
    """Write predictions of all rows of `data`; with a coverage, intervals too."""
    if coverage is not None:
        refuse_coverage(coverage, "--coverage ")
    refuse_same_file("the data", data, out)
    refuse_same_file("the model", str(model), out)
    saved, source = SavedModel(model), Data(data, on_error)
    encoder = saved.encoder_for(source.columns)
    learning = saved.learning(encoder)
    learning.coverage = coverage
    file = open_predictions(out)
    done = Predicted()
    eta_of = learning.predictor() if learning.keys is None else _rows_of_keys(learning, done)
    try:
        for rows, origins in source.encoded(encoder, needs_target=False, grow=False):
            if len(rows.target):
                eta = learning.blended(eta_of(rows), rows.target)
                interval = learning.interval(eta)
                columns = prediction_columns(encoder, rows, learning.predictions(eta, learning.n_classes, interval))
                file.write(prediction_rows(origins, columns))
                done.add(_losses(learning, rows, eta), len(rows.target))
                done.covered += int(np.nansum(covered(interval, rows.target)))
        file.close()
    except BaseException:
        file.abandon()
        raise
    done.skipped, done.notes = source.n_bad, [*unseen_notes(encoder), *new_key_notes(done)]
    return done


def _rows_of_keys(learning: Learning, done: Predicted) -> Callable[[Encoded], np.ndarray]:
    """eta (row, learner), each row as the next one of its key; keys that are not known are counted."""
    keys = learning.keys
    assert keys is not None

    def eta_of(rows: Encoded) -> np.ndarray:
        assert rows.keys is not None
        done.new_keys.update(key for key in rows.keys.tolist() if key not in keys.models.places)
        pooled = np.column_stack([learner.decision_each(rows.X) for learner in learning.learners])
        return keys.predict(rows.keys, rows.X, pooled)

    return eta_of


def new_key_notes(done: Predicted) -> list[str]:
    """Keys that the run has not seen."""
    if not done.new_keys:
        return []
    named = listed([f"{key!r} ({count(n, 'row')})" for key, n in done.new_keys.items()], MOST_NAMED)
    return [f"the run has not seen the key{'' if len(done.new_keys) == 1 else 's'} {named}: the pooled model is used"]


def unseen_notes(encoder: Encoder) -> list[str]:
    """Levels that the run has not seen, by column."""
    notes = []
    for column, levels in encoder.unseen.items():
        named = listed([f"{level!r} ({count(n, 'row')})" for level, n in levels.items()], MOST_NAMED)
        notes.append(f"column {column!r} holds {named}, which the run has not seen: that has no effect")
    return notes


def _losses(learning: Learning, rows: Encoded, eta: np.ndarray) -> np.ndarray:
    """Of the rows with a target; not of a class that the model has never seen, for which it has no probability."""
    target = rows.target
    there = (target >= 0) & (target < learning.n_classes) if learning.classes else ~np.isnan(target)
    if not there.any():
        return np.empty(0)
    targets = [values[there] for values in learning.targets(target, there)]
    return losses_of(learning.family, targets, eta[there])
