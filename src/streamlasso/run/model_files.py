"""A run's model from its file, whichever it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from streamlasso import RAPClassifier, RAPRegressor, checkpoint
from streamlasso.compact import ERRORS
from streamlasso.data.encoding import Target
from streamlasso.run.learning import Learning
from streamlasso.run.wide_learning import WideLearning
from streamlasso.run.wide_models import CLASSIFIER, REGRESSOR, WideModels


def load_model(path: Path) -> tuple[Any, dict[str, Any], dict[str, np.ndarray]]:
    """The estimator, or the models of any number of features, with notes and arrays."""
    kind, model, notes, arrays = checkpoint.read(path)
    if kind not in (CLASSIFIER, REGRESSOR):
        return checkpoint.load_with_notes([RAPRegressor, RAPClassifier], path)
    try:
        return WideModels.from_bytes(model), notes, arrays
    except ERRORS as error:
        raise ValueError(f"{str(path)!r}: {error}") from error


def learning_of(target: Target, estimator: Any, state: dict[str, Any] | None) -> Learning:
    """What learns on with it."""
    return (WideLearning if isinstance(estimator, WideModels) else Learning)(target, estimator, state)
