"""A run in a file: its model, what was seen last, how far everything is, and which runs may continue from it.

All of it is of the same moment: outputs are on disk before the checkpoint is, and are cut back to it when a run
continues. So after a kill at any moment every row is there once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamlasso import RAPClassifier, RAPRegressor, __version__, checkpoint
from streamlasso._files import write_whole
from streamlasso.compact import ERRORS
from streamlasso.data.encoding import Encoder, Target
from streamlasso.data.encoding.columns import NumberColumn
from streamlasso.data.encoding.sparse.encoder import encoder_from
from streamlasso.model.stream_model import StreamModel
from streamlasso.model.wide import CLASSIFIER, REGRESSOR, WideModels, WideStreamModel
from streamlasso.report.state import summariser_from, summariser_state
from streamlasso.run.data import Data, RowsRead
from streamlasso.run.options import Options

#: Of the notes about a run.
VERSION = 4


def save_run(
    path: Path, model: StreamModel, position: int, options: Options, data: Data, outputs: dict[str, Any] | None
) -> None:
    """`position` is the number of rows read. Without `outputs` no run can continue from it."""
    assert model.record is not None
    summary, arrays = summariser_state(model.record)
    notes = {
        "run": {
            "version": VERSION,
            "streamlasso": __version__,
            "options": options.learning(),
            "columns": data.columns,
            "first_row": data.fingerprint,
            "place": data.place(),
            "position": position,
            "bad_cells": [data.bad_cells.n, data.bad_cells.examples],
            "outputs": outputs,
            "read": data.read.state(),
        },
        "encoder": model.encoder.state(),
        "learning": model.state(),
        "summary": summary,
    }
    if model.keys is not None:
        arrays |= model.keys.arrays()
    if isinstance(model, WideStreamModel):
        labels = list(model.target.classes or [])[: model.n_classes]
        write_whole(path, model.estimator.as_file(labels, notes, arrays))
    else:
        checkpoint.save(model.estimator, path, notes, arrays)


class SavedModel:
    """What a file holds: an estimator, and the encoder and the run if it was saved with them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        kind, packed, self.notes, self.arrays = checkpoint.read(path)
        self.estimator: Any
        if kind in (CLASSIFIER, REGRESSOR):
            try:
                self.estimator = WideModels.from_bytes(packed)
            except ERRORS as error:
                raise ValueError(f"{str(path)!r}: {error}") from error
        else:
            self.estimator, self.notes, self.arrays = checkpoint.load_with_notes([RAPRegressor, RAPClassifier], path)
        self.run = self.notes.get("run", {})

    def model(self, columns: list[str] | None = None, max_keys: int | None = None) -> StreamModel:
        """The model of the run; one that Python saved takes numbers, by name if it has names."""
        if "encoder" not in self.notes:
            return StreamModel(self._encoder_of_numbers(columns or []), self.estimator)
        if self.run["version"] != VERSION:
            raise ValueError(f"{self.path} is of a run by another version of streamlasso: run it again")
        encoder = encoder_from(self.notes["encoder"])
        record = summariser_from(self.notes["summary"], self.arrays)
        kind = WideStreamModel if isinstance(self.estimator, WideModels) else StreamModel
        model = kind(encoder, self.estimator, self.notes["learning"], record)
        if encoder.key is not None:
            model.add_keys(max_keys, self.arrays)
        return model

    def _encoder_of_numbers(self, columns: list[str]) -> Encoder:
        names = list(map(str, getattr(self.estimator, "feature_names_in_", columns)))
        if columns and len(names) != self.estimator.n_features_in_:
            raise ValueError(
                f"{self.path} has {self.estimator.n_features_in_} features without names, and the data have "
                f"{len(names)} columns: use data with the columns of the features only"
            )
        classes = self.estimator.classes_.tolist() if hasattr(self.estimator, "classes_") else None
        target = Target("", "gaussian" if classes is None else "binomial", classes)
        return Encoder(target, [NumberColumn(name) for name in names], names)

    # --- a run that continues -----------------------------------------------------------------------------------------

    def place(self) -> dict[str, Any] | None:
        """Where the data of the run are to be opened again; None if at their first row."""
        if not self.run or self.run["outputs"] is None:
            raise ValueError(f"{self.path} holds a model, but no run to continue: use another --checkpoint")
        return self.run["place"]

    def continued(self, options: Options, data: Data) -> tuple[StreamModel, int, dict[str, Any]]:
        """The model, the number of rows read, and the positions of the outputs."""
        self._refuse_other_run(options, data)
        data.read = RowsRead(self.run["read"])
        data.bad_cells.n, data.bad_cells.examples = self.run["bad_cells"]
        return self.model(max_keys=options.max_keys), self.run["position"], self.run["outputs"]

    def _refuse_other_run(self, options: Options, data: Data) -> None:
        run = self.run
        if run["version"] != VERSION:
            raise ValueError(f"{self.path} is of another version of streamlasso: start again with another --checkpoint")
        other = f"{self.path}: the run that it continues had"
        if run["columns"] != data.columns:
            changed = sorted(set(run["columns"]) ^ set(data.columns)) or ["the order"]
            raise ValueError(
                f"{other} other columns ({', '.join(changed[:5])}): use the same data, or another --checkpoint"
            )
        for name, value in options.learning().items():
            if run["options"].get(name) != value:
                raise ValueError(
                    f"{other} --{name} {run['options'].get(name)}, not {value}: use the same options, or another "
                    "--checkpoint"
                )
        if run["place"] is None and run["first_row"] != data.fingerprint:
            raise ValueError(f"{other} another first row: use the same data, or another --checkpoint")
