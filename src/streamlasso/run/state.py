"""All that changes during a run: what the encoder, the model and the summary have seen so far."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pyarrow

from streamlasso.data.encoding import Encoder, detect_encoder
from streamlasso.data.encoding.encoder import Encoded
from streamlasso.data.encoding.reading import is_nested
from streamlasso.data.encoding.reading import keys as keys_in
from streamlasso.data.encoding.sparse_encoder import SparseEncoder, detect_sparse_encoder, with_sparse
from streamlasso.data.encoding.suggestions import refuse_unknown
from streamlasso.report.summarise import Summariser
from streamlasso.report.summary import Summary
from streamlasso.run.data import Data
from streamlasso.run.learning import Learning, Outcomes
from streamlasso.run.options import Options
from streamlasso.run.wide_learning import WideLearning
from streamlasso.settings import as_tuner

#: The most features of a mixture: it holds more than a hundred matrices of them, which then take gigabytes.
MOST_MIXED = 1000
#: The most features of one exact model; and the share of values that are not 0 up to which they are mostly 0.
MOST_EXACT, MOSTLY_ZERO = 3000, 0.1
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
        encoder, settings = _detected(data, options), options.settings()
        n_features = len(encoder.features)
        how: dict[str, Any] = {
            "season": encoder.season,
            "competes": options.lags is None and options.key is None,
            "coverage": options.coverage,
        }
        if options.sparse or (n_features > MOST_MIXED and options.may_be_wide and _is_wide(encoder, data)):
            return cls._start_wide(encoder, data, how)
        if options.tuner == "mixture" and n_features > MOST_MIXED:
            settings["tuner"] = as_tuner("logrms")
            encoder.notes.append(
                f"{n_features:,} features are more than a mixture of models can hold ({MOST_MIXED:,}): one model "
                "is used, as with --tuner logrms; fewer columns (--keep, --drop) may predict better"
            )
        learning = Learning.start(encoder.target, settings, encoder.features, **how)
        if options.key is not None:
            learning.add_keys(options.max_keys)
            encoder.notes += _rare_keys(options.key, data.first_rows())
        return cls(encoder, learning)

    @classmethod
    def _start_wide(cls, encoder: Encoder, data: Data, how: dict[str, Any]) -> Self:
        """With any number of features."""
        if not isinstance(encoder, SparseEncoder):
            encoder.notes.append(
                f"{len(encoder.features):,} features are more than a mixture of models can hold ({MOST_MIXED:,}): the "
                "learner for any number of features is used"
            )
            encoder = with_sparse(encoder, [])
        # Names that somebody chose before the first row was there do not collide.
        learning = WideLearning.start_wide(encoder.target, bytes.fromhex(data.fingerprint)[:16], **how)
        return cls(encoder, learning, Summariser(learning.most_stretches))

    def learn(self, rows: Encoded) -> list[Outcomes]:
        """Predict, then learn; in pieces, since features and classes appear, and stretches end, between two rows."""
        pieces = self.learning.pieces(rows, self.encoder.features, lambda: self.summariser.room)
        return [self._learn_piece(rows, piece) for piece in pieces]

    def _learn_piece(self, rows: Encoded, piece: slice) -> Outcomes:
        X = rows.part(piece)
        keys, weights = (None if each is None else each[piece] for each in (rows.keys, rows.weights))
        outcomes = self.learning.learn(X, rows.target[piece], keys, weights)
        time = _as_text(rows.time, piece.stop - 1)
        last, dense = self.summariser.last_snapshot, X if X.ndim == 2 else None
        self.summariser.add(
            outcomes.sums,
            outcomes.fit,
            outcomes.lam,
            dense,
            self.n_rows,
            lambda: self.learning.snapshot_after(last),
            time,
        )
        self.summariser.status.update(outcomes.after["status"].tolist())
        self.n_rows += len(X)
        return outcomes

    def summary(self) -> Summary:
        """The run so far, for tables, figures and reports."""
        learning = self.learning
        classes = learning.labels if learning.classes else None
        last = learning.snapshot()
        features = self.encoder.features if learning.features is None else learning.features
        found = self.summariser.summary(last, features, classes, learning.family)
        detected = tuple(getattr(learning.estimator, "changes_", ()))
        return replace(found, target=self.encoder.target.name, coverage=learning.coverage, detected=detected)


def _detected(data: Data, options: Options) -> Encoder:
    """The encoder by the first rows."""
    rows, how = data.first_rows(), {"decimal_comma": data.decimal_comma, **options.columns()}
    if not options.sparse:
        return detect_encoder(rows, options.target, options.family, **how)
    for name in options.text:
        refuse_unknown("--text", name, data.columns)
    weight = getattr(data.source, "weight", None)
    return detect_sparse_encoder(rows, options.target, options.family, options.sparse_columns(), weight, **how)


def _is_wide(encoder: Encoder, data: Data) -> bool:
    """Whether features are so many, or so often 0, that one exact model is no choice."""
    rows = data.first_rows().slice(0, ENOUGH_ROWS)
    tried = Encoder.from_state(encoder.state())
    X = tried.encode(tried.read(rows), lambda i, reason: None, grow=False).X
    return len(encoder.features) > MOST_EXACT or (X.size > 0 and int(np.count_nonzero(X)) <= MOSTLY_ZERO * X.size)


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
