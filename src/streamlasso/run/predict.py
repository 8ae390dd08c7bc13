"""`streamlasso predict`: predictions of new rows by a saved model; nothing is learnt."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from streamlasso._text import count, listed
from streamlasso.encoding import Encoder
from streamlasso.encoding.encoder import Encoded
from streamlasso.estimators.multiclass import losses_of
from streamlasso.run.data import Data
from streamlasso.run.learning import Learning
from streamlasso.run.options import refuse_same_file
from streamlasso.run.prediction_files import open_predictions
from streamlasso.run.rows import prediction_columns, prediction_rows
from streamlasso.run.saved import SavedModel

#: Levels that a note names.
MOST_NAMED = 5


@dataclass
class Predicted:
    """How many rows were predicted, how many of them have a loss, the sum of these losses, rows left out, and what a
    user should know."""

    rows: int = 0
    scored: int = 0
    total_loss: float = 0.0
    skipped: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def mean_loss(self) -> float:
        return self.total_loss / self.scored if self.scored else float("nan")

    def add(self, losses: np.ndarray, n_rows: int) -> None:
        self.rows += n_rows
        self.scored += len(losses)
        self.total_loss += float(losses.sum())


def predict_file(model: Path, data: str, out: Path | None, on_error: str = "stop") -> Predicted:
    """Write predictions of all rows of `data`."""
    refuse_same_file("the data", data, out)
    refuse_same_file("the model", str(model), out)
    saved, source = SavedModel(model), Data(data, on_error)
    encoder = saved.encoder_for(source.columns)
    learning = saved.learning(encoder)
    file = open_predictions(out)
    done = Predicted()
    residuals = [learner.residuals() for learner in learning.learners]
    try:
        for rows, place in source.encoded(encoder, needs_target=False, grow=False):
            if len(place):
                each = zip(learning.learners, residuals, strict=True)
                eta = np.column_stack([learner.decision(rows.X, last) for learner, last in each])
                eta = learning.blended(eta, rows.target)
                columns = prediction_columns(encoder, rows, learning.predictions(eta, learning.n_classes))
                file.write(prediction_rows(place, columns))
                done.add(_losses(learning, rows, eta), len(place))
        file.close()
    except BaseException:
        file.abandon()
        raise
    done.skipped, done.notes = source.n_bad, unseen_notes(encoder)
    return done


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
