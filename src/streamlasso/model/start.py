"""The model that a stream needs: of few features, or of any number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow

from streamlasso import RAPClassifier, RAPRegressor
from streamlasso.data.encoding import Encoder
from streamlasso.data.encoding.sparse.encoder import SparseEncoder, with_sparse
from streamlasso.families import FAMILIES
from streamlasso.model.stream_model import StreamModel
from streamlasso.model.wide import WideModels, WideStreamModel
from streamlasso.report.summarise import Summariser
from streamlasso.settings import as_tuner

#: The most features of a mixture: it holds more than a hundred matrices of them, which then take gigabytes.
MOST_MIXED = 1000
#: The most features of one exact model; and the share of values that are not 0 up to which they are mostly 0.
MOST_EXACT, MOSTLY_ZERO = 3000, 0.1
#: Rows by which that is decided.
FEW_ROWS = 30


def started(
    encoder: Encoder, settings: dict[str, Any], *, competes: bool, coverage: float | None = None
) -> StreamModel:
    """A model of the encoder's features. One that would be too large for a mixture has a tuner without experts."""
    n_features = len(encoder.features)
    if as_tuner(settings["tuner"]).competes and n_features > MOST_MIXED:
        settings = {**settings, "tuner": as_tuner("logrms")}
        encoder.notes.append(
            f"{n_features:,} features are more than a mixture of models can hold ({MOST_MIXED:,}): one model is used, "
            "as with --tuner logrms; fewer columns (--keep, --drop) may predict better"
        )
    if encoder.target.classes is None:
        estimator = RAPRegressor(family=encoder.target.family, **settings)._start(encoder.features)
        model = StreamModel(encoder, estimator)
    else:
        model = StreamModel(encoder, RAPClassifier(**settings))
        model.estimator._start(encoder.features, model.own_labels)
    model.begin(competes=competes, coverage=coverage)
    return model


def started_wide(encoder: Encoder, key: bytes, *, competes: bool, coverage: float | None = None) -> StreamModel:
    """A model of any number of features, whose names are hashed with this key."""
    if not isinstance(encoder, SparseEncoder):
        encoder.notes.append(
            f"{len(encoder.features):,} features are more than a mixture of models can hold ({MOST_MIXED:,}): the "
            "learner for any number of features is used"
        )
        encoder = with_sparse(encoder, [])
    target = encoder.target
    model = WideStreamModel(encoder, WideModels(target.family, key, len(target.classes or [])))
    model.begin(competes=competes, coverage=coverage)
    return model


def recorded(model: StreamModel) -> StreamModel:
    """The same model, with a record of all its rows."""
    model.record = Summariser(model.most_stretches)
    return model


def is_wide(encoder: Encoder, rows: pyarrow.RecordBatch) -> bool:
    """Whether features are so many, or so often 0, that a matrix of them is no choice."""
    n_features = len(encoder.features)
    if n_features <= MOST_MIXED or not FAMILIES[encoder.target.family].goes_wide:
        return False
    tried = Encoder.from_state(encoder.state())
    X = tried.encode(tried.read(rows.slice(0, FEW_ROWS)), lambda i, reason: None, grow=False).X
    return n_features > MOST_EXACT or (X.size > 0 and int(np.count_nonzero(X)) <= MOSTLY_ZERO * X.size)
