"""Why rows are predicted as they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamlasso.estimators import explanation
from streamlasso.model.competition import MODEL
from streamlasso.serve.learning.encode import encoded_each
from streamlasso.serve.learning.model import LiveModel
from streamlasso.serve.learning.rows import Row
from streamlasso.serve.learning.selected import MOST_LISTED


def explained(model: LiveModel, rows: list[Row]) -> list[dict[str, Any]]:
    """Of each row, for each class: eta as a baseline and contributions of features. The baseline has what the running
    baselines add, where they compete with the model, and features beyond the listed ones."""
    learning = model.learning
    if model.encoder is None or learning is None:
        return [{"parts": []} for _ in rows]
    learners = learning.learners
    X = np.ascontiguousarray(encoded_each(model.encoder, rows)[:, : learners[0].n_features])
    etas, weight = model.eta(X), 1.0 if learning.competition is None else learning.competition.weights[MODEL]
    labels: list[Any] = list(map(str, learning.labels)) if len(learners) > 1 else [None]
    named = list(zip(labels, learners, strict=True))
    return [
        {"parts": [_part(model, label, learner, x, eta[k], weight) for k, (label, learner) in enumerate(named)]}
        for x, eta in zip(X, etas.tolist(), strict=True)
    ]


def _part(model: LiveModel, label: Any, learner: Any, x: np.ndarray, eta: float, weight: float) -> dict[str, Any]:
    features = model.features
    sizes = weight * np.asarray(explanation.explained(learner, x, features[: len(x)]).contributions)
    listed = [j for j in np.argsort(-np.abs(sizes), kind="stable").tolist() if sizes[j] != 0][:MOST_LISTED]
    return {
        "class": label,
        "eta": eta,
        "baseline": eta - float(sizes[listed].sum()),
        "contributions": [
            {"feature": features[j], "value": float(x[j]), "contribution": float(sizes[j])} for j in listed
        ],
    }
