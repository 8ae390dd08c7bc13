"""What a model has selected, with numbers for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamlasso.core.model import Engine

if TYPE_CHECKING:
    from streamlasso.serve.learning.model import LiveModel

#: Coefficients that are listed, and the inclusion from which on those are that are 0.
MOST_LISTED, LEAST_INCLUSION = 200, 0.05


def selected(model: LiveModel) -> list[dict[str, Any]]:
    """The selected model, or one for each class."""
    learning = model.learning
    assert learning is not None
    labels: list[Any] = list(map(str, learning.labels)) if len(learning.learners) > 1 else [None]
    return [_model(model, label, learner) for label, learner in zip(labels, learning.learners, strict=True)]


def _model(model: LiveModel, label: Any, learner: Engine) -> dict[str, Any]:
    assert model.encoder is not None
    one = learner.single()
    coef, inclusion = np.asarray(one.coef), learner.inclusion()
    n = min(len(coef), len(inclusion), len(model.monitor.spread.mean))
    size = np.abs(coef[:n]) * model.monitor.spread.deviations[:n]
    shares = shares_of(size)
    shown = [j for j in np.lexsort((-inclusion[:n], -shares)) if coef[j] != 0 or inclusion[j] >= LEAST_INCLUSION]
    return {
        "class": label,
        "lam": learner.lam,
        "lam_max": learner.lam_max,
        "memory": learner.effective_size,
        "since": one.since,
        "n_active": int(np.count_nonzero(coef)),
        "intercept": one.intercept,
        "coefficients": [
            {
                "feature": model.encoder.features[j],
                "coef": float(coef[j]),
                "inclusion": float(inclusion[j]),
                "importance": float(shares[j]),
            }
            for j in shown[:MOST_LISTED]
        ],
    }


def shares_of(size: np.ndarray) -> np.ndarray:
    """Of effects, in all of them."""
    return size / size.sum() if size.sum() > 0 else size
