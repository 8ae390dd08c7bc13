"""A model in words and numbers: what `GET /models/{name}` and its history answer. On the engine's thread."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from streamlasso.estimators import explanation
from streamlasso.serve.history import stretch
from streamlasso.serve.live import Live, iso
from streamlasso.serve.problems import Problem
from streamlasso.serve.rows import Row
from streamlasso.serve.selected import MOST_LISTED

#: Points of an event.
MOST_POINTS = 50


def short(live: Live) -> dict[str, Any]:
    """One line of the list of models."""
    model, recent = live.model, live.model.scores.means()
    return {
        "name": live.name,
        "created": iso(live.created),
        "target": live.settings.target,
        "family": family_of(live),
        "n_rows": model.n_rows,
        "n_features": model.n_features,
        "loss": recent["model"],
        "baseline": recent["baseline"],
        "persistence": recent["persistence"],
        "n_waiting": live.n_waiting,
        "last_learn": iso(model.last_learn),
        "alarms": sorted({kind for kind, _ in model.watch.firing}),
    }


def described(live: Live) -> dict[str, Any]:
    """All that is known of a model."""
    model, learning = live.model, live.model.learning
    firing = model.watch.firing.values()
    return {
        "name": live.name,
        "created": iso(live.created),
        "settings": msgspec.to_builtins(live.settings),
        "target": live.settings.target,
        "family": family_of(live),
        "classes": None if learning is None or not learning.classes else list(map(str, learning.labels)),
        "n_rows": model.n_rows,
        "n_predictions": live.n_predictions,
        "n_waiting": live.n_waiting,
        "n_expired": live.n_expired,
        "last_learn": iso(model.last_learn),
        "rows_per_second": live.rows_per_second(),
        "notes": [] if model.encoder is None else model.encoder.notes,
        "loss_name": None if learning is None else learning.family.deviance_name or learning.family.loss_name,
        "loss": model.scores.means(),
        "recent": model.scores.recent_means(),
        "features": model.features,
        "n_features": model.n_features,
        "models": model.selected(),
        "alarms": [{"kind": a.kind, "since": iso(a.time), "row": a.row, "detail": a.detail} for a in firing],
        "errors": list(live.errors),
    }


def family_of(live: Live) -> str:
    encoder = live.model.encoder
    return live.settings.family if encoder is None else encoder.target.family


def history(live: Live, points: int, start: int | None, stop: int | None) -> dict[str, Any]:
    """The last rows as columns of points, and the alarms as marks."""
    kept, watch = live.model.history, live.model.watch
    first = kept.first if start is None else max(start, kept.first)
    last = kept.n_rows if stop is None else min(stop, kept.n_rows)
    marks = [alarm for alarm in watch.marks if first <= alarm.row < max(last, first + 1)]
    return {
        "name": live.name,
        "first": kept.first,
        "n_rows": kept.n_rows,
        "stretch": stretch(max(last - first, 0), points),
        "columns": kept.points(first, max(last, first), points),
        "marks": [
            {"row": a.row, "time": a.time, "kind": a.kind, "detail": a.detail, "firing": a.firing} for a in marks
        ],
    }


def news(live: Live, since: int) -> dict[str, Any]:
    """The rows after a number of rows, as an event."""
    kept = live.model.history
    pace = live.rows_per_second()
    return {"model": live.name, "n_rows": kept.n_rows, "rows_per_second": pace} | {
        "columns": kept.points(since, kept.n_rows, MOST_POINTS)
    }


def explained(live: Live, id: str, row: Row, answer: dict[str, Any]) -> dict[str, Any]:
    """Why a waiting row is predicted as it would be now."""
    model = live.model
    if model.encoder is None or model.learning is None:
        raise Problem(409, "the model has learnt nothing yet: there is nothing to explain")
    X = model.encoded([row])
    learners, features = model.learning.learners, model.features
    n = learners[0].n_features
    found = [explanation.explained(learner, X[0, :n], features[:n]) for learner in learners]
    labels: list[Any] = list(map(str, model.learning.labels)) if len(found) > 1 else [None]
    parts = [
        {
            "class": label,
            "eta": why.eta,
            "baseline": why.baseline,
            "contributions": [
                {"feature": features[j], "value": float(X[0, j]), "contribution": float(why.contributions[j])}
                for j in np.argsort(-np.abs(np.asarray(why.contributions)), kind="stable").tolist()
                if why.contributions[j] != 0
            ][:MOST_LISTED],
        }
        for label, why in zip(labels, found, strict=True)
    ]
    return {"id": id, "prediction": answer["prediction"], "parts": parts}
