"""A model in words and numbers: what `GET /models/{name}` and its history answer."""

from __future__ import annotations

from typing import Any

import msgspec

from streamlasso.serve.learning.history import stretch
from streamlasso.serve.served_model import ServedModel, iso

#: Points of an event.
MOST_POINTS = 50


def short(served: ServedModel) -> dict[str, Any]:
    """One line of the list of models."""
    model, recent = served.model, served.model.monitor.scores.means()
    return {
        "name": served.name,
        "created": iso(served.created),
        "target": served.settings.target,
        "family": family_of(served),
        "n_rows": model.n_rows,
        "n_features": model.n_features,
        "loss": recent["model"],
        "baseline": recent["baseline"],
        "persistence": recent["persistence"],
        "n_waiting": served.n_waiting,
        "last_learn": iso(model.last_learn),
        "alarms": sorted({kind for kind, _ in model.monitor.watch.firing}),
    }


def described(served: ServedModel) -> dict[str, Any]:
    """All that is known of a model."""
    model, learning = served.model, served.model.learning
    firing = model.monitor.watch.firing.values()
    return {
        "name": served.name,
        "created": iso(served.created),
        "settings": msgspec.to_builtins(served.settings),
        "target": served.settings.target,
        "family": family_of(served),
        "labels": model.labels,
        "classes": None if learning is None or not learning.classes else list(map(str, learning.labels)),
        "n_rows": model.n_rows,
        "n_predictions": served.n_predictions,
        "n_waiting": served.n_waiting,
        "n_expired": served.n_expired,
        "last_learn": iso(model.last_learn),
        "rows_per_second": served.rows_per_second(),
        "notes": [] if model.encoder is None else model.encoder.notes,
        "loss_name": None if learning is None else learning.family.deviance_name or learning.family.loss_name,
        "loss": model.monitor.scores.means(),
        "recent": model.monitor.scores.recent_means(),
        "features": model.features,
        "n_features": model.n_features,
        "models": model.selected(),
        "alarms": [{"kind": a.kind, "since": iso(a.time), "row": a.row, "detail": a.detail} for a in firing],
        "errors": list(served.errors),
    }


def family_of(served: ServedModel) -> str:
    encoder = served.model.encoder
    return served.settings.family if encoder is None else encoder.target.family


def history(served: ServedModel, points: int, start: int | None, stop: int | None) -> dict[str, Any]:
    """The last rows as columns of points, and the alarms as marks."""
    kept, watch = served.model.monitor.history, served.model.monitor.watch
    first = kept.first if start is None else max(start, kept.first)
    last = kept.n_rows if stop is None else min(stop, kept.n_rows)
    marks = [alarm for alarm in watch.marks if first <= alarm.row < max(last, first + 1)]
    return {
        "name": served.name,
        "first": kept.first,
        "n_rows": kept.n_rows,
        "stretch": stretch(max(last - first, 0), points),
        "columns": kept.points(first, max(last, first), points),
        "marks": [
            {"row": a.row, "time": a.time, "kind": a.kind, "detail": a.detail, "firing": a.firing} for a in marks
        ],
    }


def news(served: ServedModel, since: int) -> dict[str, Any]:
    """The rows after a number of rows, as an event."""
    kept = served.model.monitor.history
    pace = served.rows_per_second()
    return {"model": served.name, "n_rows": kept.n_rows, "rows_per_second": pace} | {
        "columns": kept.points(since, kept.n_rows, MOST_POINTS)
    }
