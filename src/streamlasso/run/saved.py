"""A model from a file: one that `streamlasso run` wrote, with its encoder, or one that Python saved."""

from __future__ import annotations

from pathlib import Path

from streamlasso.data.encoding import Encoder, Target
from streamlasso.data.encoding.columns import NumberColumn
from streamlasso.data.encoding.sparse_encoder import encoder_from
from streamlasso.report.state import summariser_from
from streamlasso.run.learning import Learning
from streamlasso.run.model_files import learning_of, load_model
from streamlasso.run.state import RunState


class SavedModel:
    """The estimator, and the encoder if it was saved with one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.estimator, self.notes, self.arrays = load_model(path)
        self.encoder = encoder_from(self.notes["encoder"]) if "encoder" in self.notes else None

    def encoder_for(self, columns: list[str]) -> Encoder:
        """The encoder of the run; a model that Python saved takes numbers, by name if it has names."""
        if self.encoder is not None:
            return self.encoder
        names = list(map(str, getattr(self.estimator, "feature_names_in_", columns)))
        if len(names) != self.estimator.n_features_in_:
            raise ValueError(
                f"{self.path} has {self.estimator.n_features_in_} features without names, and the data have "
                f"{len(names)} columns: use data with the columns of the features only"
            )
        classes = self.estimator.classes_.tolist() if hasattr(self.estimator, "classes_") else None
        target = Target("", "gaussian" if classes is None else "binomial", classes)
        return Encoder(target, [NumberColumn(name) for name in names], names)

    def learning(self, encoder: Encoder) -> Learning:
        learning = learning_of(encoder.target, self.estimator, self.notes.get("learning"))
        if encoder.key is not None:
            learning.add_keys(None, self.arrays)
        return learning

    def run_state(self) -> RunState | None:
        """The run that the model comes from, if it comes from one."""
        if self.encoder is None:
            return None
        summariser = summariser_from(self.notes["summary"], self.arrays)
        return RunState(self.encoder, self.learning(self.encoder), summariser)
