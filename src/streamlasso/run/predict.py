"""`streamlasso predict`: what a saved model says of new rows; nothing is learnt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow

from streamlasso import RAPClassifier, RAPRegressor, checkpoint
from streamlasso.encoding import Encoder, Target
from streamlasso.encoding.columns import NumberColumn
from streamlasso.encoding.encoder import Encoded
from streamlasso.estimators.multiclass import losses_of
from streamlasso.run.learning import Learning
from streamlasso.run.options import refuse_same_file
from streamlasso.run.outputs import open_predictions, or_null
from streamlasso.run.run import CHUNK, complainer, named
from streamlasso.sources import BadRows, open_source


class Saved:
    """A model from a file, with what it takes to read rows for it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.estimator, self.notes, self.arrays = checkpoint.load_with_notes([RAPRegressor, RAPClassifier], path)
        self.encoder = Encoder.from_state(self.notes["encoder"]) if "encoder" in self.notes else None

    def encoder_for(self, columns: list[str]) -> Encoder:
        """Of a run, its own; a model that was saved from Python takes numbers, by name if it has names."""
        if self.encoder is not None:
            return self.encoder
        names = list(map(str, getattr(self.estimator, "feature_names_in_", columns)))
        if len(names) != self.estimator.n_features_in_:
            raise ValueError(
                f"{self.path}: the model has {self.estimator.n_features_in_} features without names, and the data "
                f"{len(names)} columns; give data with these columns only"
            )
        return Encoder(self._target(), [NumberColumn(name) for name in names], names)

    def _target(self) -> Target:
        classes = self.estimator.classes_.tolist() if hasattr(self.estimator, "classes_") else None
        return Target("", "gaussian" if classes is None else "binomial", classes)

    def learning(self, encoder: Encoder) -> Learning:
        return Learning(encoder.target, self.estimator, self.notes.get("learning"))


def predict_file(model: Path, data: str, out: Path | None, on_error: str = "stop") -> dict[str, float]:
    """Write predictions of all rows of `data`; rows, and where the target is there, judged rows and their mean loss."""
    refuse_same_file("the data", data, out)
    refuse_same_file("the model", str(model), out)
    saved = Saved(model)
    bad_rows = BadRows(on_error)
    source = open_source(data, bad_rows)
    encoder = saved.encoder_for(source.columns)
    learning = saved.learning(encoder)
    file = open_predictions(out)
    counts = {"rows": 0.0, "judged": 0.0, "loss": 0.0}
    try:
        for block in named(data, source.blocks()):
            cells = encoder.read(block.rows, needs_target=False)
            for start in range(0, len(cells), CHUNK):
                part = cells.part(slice(start, min(start + CHUNK, len(cells))))
                rows = encoder.encode(part, complainer(bad_rows, data, block, start), grow=False)
                if len(rows.target):
                    file.write(_answers(learning, rows, block.place[start + rows.place], counts))
                    counts["rows"] += len(rows.target)
        file.close()
    except BaseException:
        file.disown()
        raise
    counts["loss"] /= max(counts["judged"], 1)
    return {**counts, "skipped": bad_rows.n}


def _judgeable(learning: Learning, target: np.ndarray) -> np.ndarray:
    """Rows with a target; not of a class that the model has never met, since nothing speaks for it."""
    return (target >= 0) & (target < learning.n_classes) if learning.classes else ~np.isnan(target)


def _answers(learning: Learning, rows: Encoded, place: np.ndarray, counts: dict[str, float]) -> pyarrow.RecordBatch:
    eta = np.column_stack([learner.decision(rows.X) for learner in learning.learners])
    prediction, probability = learning.predictions(eta)
    columns: dict[str, Any] = {"row": pyarrow.array(place)}
    if rows.time is not None:
        columns["time"] = or_null(rows.time)
    labels = np.array([*map(str, learning.target.classes or []), None], dtype=object)
    y = pyarrow.array(labels[rows.target], pyarrow.string()) if learning.classes else or_null(rows.target)
    columns["y"] = y
    columns["prediction"] = pyarrow.array(list(map(str, prediction))) if learning.classes else or_null(prediction)
    if probability is not None:
        columns["probability"] = or_null(probability)
    there = _judgeable(learning, rows.target)
    if there.any():
        targets = [target[there] for target in learning.targets(rows.target, there)]
        counts["loss"] += float(losses_of(learning.family, targets, eta[there]).sum())
        counts["judged"] += int(there.sum())
    return pyarrow.RecordBatch.from_pydict(columns)
