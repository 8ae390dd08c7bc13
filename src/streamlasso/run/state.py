"""All that changes during a run: what the encoder, the model and the summary have seen so far."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import pyarrow

from streamlasso.encoding import Encoder, detect_encoder
from streamlasso.encoding.encoder import Encoded
from streamlasso.encoding.reading import is_nested
from streamlasso.encoding.reading import keys as keys_in
from streamlasso.encoding.suggestions import refuse_unknown
from streamlasso.report.summarise import Summariser
from streamlasso.report.summary import Summary
from streamlasso.run.data import Data
from streamlasso.run.learning import Learning, Outcomes
from streamlasso.run.options import Options
from streamlasso.settings import as_tuner

#: The most features of a mixture: it holds more than a hundred matrices of them, which then take gigabytes.
MOST_MIXED = 1000
#: Of so many first rows, or more, keys that are more than this share of them are noted.
ENOUGH_ROWS, MOSTLY_DIFFERENT = 30, 0.5


@dataclass
class RunState:
    """A run at some row of its stream.

    position, n_rows : rows of the data that were read, and rows that were predicted
    """

    encoder: Encoder
    learning: Learning
    summariser: Summariser = field(default_factory=lambda: Summariser())
    position: int = 0
    n_rows: int = 0

    @classmethod
    def start(cls, data: Data, options: Options) -> Self:
        """Before the first row."""
        refuse_unknown("--target", options.target, data.columns)
        if options.key is not None:
            refuse_unknown("--key", options.key, data.columns)
            _refuse_nested(options.key, data.first_rows())
        encoder = detect_encoder(
            data.first_rows(),
            options.target,
            options.family,
            decimal_comma=data.decimal_comma,
            **options.columns(),
        )
        settings, n_features = options.settings(), len(encoder.features)
        if options.tuner == "mixture" and n_features > MOST_MIXED:
            settings["tuner"] = as_tuner("logrms")
            encoder.notes.append(
                f"{n_features:,} features are more than a mixture of models can hold ({MOST_MIXED:,}): one model "
                "is used, as with --tuner logrms; fewer columns (--keep, --drop) may predict better"
            )
        learning = Learning.start(
            encoder.target,
            settings,
            encoder.features,
            season=encoder.season,
            competes=options.lags is None and options.key is None,
            in_time=encoder.in_time,
        )
        if options.key is not None:
            learning.add_keys(options.max_keys)
            encoder.notes += _rare_keys(options.key, data.first_rows())
        return cls(encoder, learning)

    def learn(self, rows: Encoded) -> list[Outcomes]:
        """Predict, then learn; in pieces, since features and classes appear, and stretches end, between two rows."""
        pieces = self.learning.pieces(rows, self.encoder.features, lambda: self.summariser.room)
        return [self._learn_piece(rows, piece) for piece in pieces]

    def _learn_piece(self, rows: Encoded, piece: slice) -> Outcomes:
        X = rows.X[piece, : rows.width[piece.start]]
        keys = None if rows.keys is None else rows.keys[piece]
        outcomes = self.learning.learn(X, rows.target[piece], keys)
        time = _as_text(rows.time, piece.stop - 1)
        self.summariser.add(outcomes.sums, outcomes.fit, outcomes.lam, X, self.n_rows, self.learning.snapshot, time)
        self.summariser.status.update(outcomes.after["status"].tolist())
        self.n_rows += len(X)
        return outcomes

    def summary(self) -> Summary:
        """The run so far, for tables, figures and reports."""
        learning = self.learning
        classes = learning.labels if learning.classes else None
        found = self.summariser.summary(learning.snapshot(), self.encoder.features, classes, learning.family)
        return replace(found, target=self.encoder.target.name)


def _refuse_nested(key: str, rows: pyarrow.RecordBatch) -> None:
    if is_nested(rows[key]):
        raise ValueError(f"--key {key} holds {rows[key].type}, not text or numbers: use another column")


def _rare_keys(key: str, rows: pyarrow.RecordBatch) -> list[str]:
    """A note where most keys have one row only."""
    n_keys, n_rows = len(set(keys_in(rows[key]))), rows.num_rows
    if n_rows < ENOUGH_ROWS or n_keys <= MOSTLY_DIFFERENT * n_rows:
        return []
    return [f"--key {key} has {n_keys:,} keys in the first {n_rows:,} rows: a model of so few rows has little to learn"]


def _as_text(times: np.ndarray | None, i: int) -> str:
    """The time of a row, or nothing if it is missing."""
    if times is None or times[i] is None or times[i] != times[i]:
        return ""
    return str(times[i]).replace("T", " ")
