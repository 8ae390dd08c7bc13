"""`streamlasso predict`: predictions of new rows by a saved model; nothing is learnt."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from streamlasso._text import count, listed
from streamlasso.data.encoding import Encoder
from streamlasso.estimators.intervals import refuse_coverage
from streamlasso.model.outcomes import covered
from streamlasso.run.data import Data
from streamlasso.run.options import refuse_same_file
from streamlasso.run.outputs.files import open_predictions
from streamlasso.run.outputs.rows import prediction_columns, prediction_rows
from streamlasso.run.saved import SavedModel

#: Levels and keys that a note names.
MOST_NAMED = 5


@dataclass
class Predicted:
    """Rows that were predicted, those of them that have a loss, the sum of these losses, how many of these lie in their
    intervals, rows left out, and what a user should know."""

    rows: int = 0
    scored: int = 0
    total_loss: float = 0.0
    covered: int = 0
    skipped: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def mean_loss(self) -> float:
        return self.total_loss / self.scored if self.scored else float("nan")


def predict_file(
    model: Path, data: str, out: Path | None, on_error: str = "stop", coverage: float | None = None
) -> Predicted:
    """Write predictions of all rows of `data`; with a coverage, intervals too."""
    if coverage is not None:
        refuse_coverage(coverage, "--coverage ")
    refuse_same_file("the data", data, out)
    refuse_same_file("the model", str(model), out)
    source = Data(data, on_error)
    found = SavedModel(model).model(source.columns)
    found.coverage = coverage
    encoder, keys, eta_of = found.encoder, found.keys, found.predictor()
    file, done, new_keys = open_predictions(out), Predicted(), Counter[str]()
    try:
        for rows, origins in source.encoded(encoder, needs_target=False, grow=False):
            if not len(rows.target):
                continue
            eta = eta_of(rows)
            interval = found.interval(eta)
            columns = prediction_columns(encoder, rows, found.predictions(eta, found.n_classes, interval))
            file.write(prediction_rows(origins, columns))
            losses = found.losses(eta, rows.target)
            done.rows += len(rows.target)
            done.scored += int(np.sum(~np.isnan(losses)))
            done.total_loss += float(np.nansum(losses))
            done.covered += int(np.nansum(covered(interval, rows.target)))
            if keys is not None and rows.keys is not None:
                new_keys.update(key for key in rows.keys.tolist() if key not in keys.models.places)
        file.close()
    except BaseException:
        file.abandon()
        raise
    done.skipped, done.notes = source.n_bad, [*_unseen_notes(encoder), *_new_key_notes(new_keys)]
    return done


def _new_key_notes(new_keys: Counter[str]) -> list[str]:
    """Keys that the run has not seen."""
    if not new_keys:
        return []
    named = listed([f"{key!r} ({count(n, 'row')})" for key, n in new_keys.items()], MOST_NAMED)
    return [f"the run has not seen the key{'' if len(new_keys) == 1 else 's'} {named}: the pooled model is used"]


def _unseen_notes(encoder: Encoder) -> list[str]:
    """Levels that the run has not seen, by column."""
    notes = []
    for column, levels in encoder.unseen.items():
        named = listed([f"{level!r} ({count(n, 'row')})" for level, n in levels.items()], MOST_NAMED)
        notes.append(f"column {column!r} holds {named}, which the run has not seen: that has no effect")
    return notes
