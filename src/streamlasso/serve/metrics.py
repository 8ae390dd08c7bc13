"""Numbers for Prometheus, in its text format."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from streamlasso.serve.alarms import KINDS
from streamlasso.serve.live import Live
from streamlasso.serve.service import Service
from streamlasso.serve.writer import BUCKETS

Labels = dict[str, Any]


def metrics_text(service: Service) -> str:
    """All of them. On the engine's thread."""
    lives = list(service.models.values())
    lines: list[str] = []
    for name, kind, help, samples in [*_of_models(lives), *_of_service(service)]:
        lines += [f"# HELP streamlasso_{name} {help}", f"# TYPE streamlasso_{name} {kind}"]
        lines += [f"streamlasso_{name}{_labels(labels)} {value!r}" for labels, value in samples]
    return "\n".join([*lines, *_commits(service), ""])


def _of_models(lives: list[Live]) -> Iterable[tuple[str, str, str, list[tuple[Labels, float]]]]:
    def each(value: Any) -> list[tuple[Labels, float]]:
        found = [({"model": live.name}, value(live)) for live in lives]
        return [(labels, number) for labels, number in found if number is not None]

    yield "learnt_rows_total", "counter", "Rows learnt since the start of the service.", each(lambda x: x.n_learnt)
    yield "predictions_total", "counter", "Rows predicted since the start.", each(lambda x: x.n_predictions)
    yield (
        "refused_total",
        "counter",
        "Refused requests.",
        [({"model": live.name, "status": status}, n) for live in lives for status, n in sorted(live.refused.items())],
    )
    yield "waiting_rows", "gauge", "Rows that wait for their label.", each(lambda x: x.n_waiting)
    yield "expired_rows_total", "counter", "Waiting rows that were dropped.", each(lambda x: x.n_expired)
    for name, key in (("loss", "model"), ("baseline_loss", "baseline"), ("persistence_loss", "persistence")):
        yield (
            f"recent_{name}",
            "gauge",
            f"Mean over about the last 200 rows: {key}.",
            each(lambda x, key=key: x.model.scores.recent_means()[key]),
        )
    yield "last_learn_timestamp_seconds", "gauge", "When a row was learnt last.", each(lambda x: x.model.last_learn)
    yield "last_predict_timestamp_seconds", "gauge", "When a row was predicted last.", each(lambda x: x.last_predict)
    yield (
        "alarm",
        "gauge",
        "1 while an alarm is on.",
        [
            ({"model": live.name, "kind": kind}, int(any(of == kind for of, _ in live.model.watch.firing)))
            for live in lives
            for kind in KINDS
            if kind != "change"
        ],
    )
    yield (
        "alarms_total",
        "counter",
        "Alarms since the start.",
        [({"model": live.name, "kind": kind}, live.alarms_counted.get(kind, 0)) for live in lives for kind in KINDS],
    )
    yield "changes_total", "counter", "Changes found in the stream.", each(lambda x: x.model.watch.n_changes)
    yield "active_features", "gauge", "Features in the model.", each(lambda x: _last(x, "active"))
    yield "memory_rows", "gauge", "Rows that the model remembers.", each(lambda x: _last(x, "memory"))
    yield "checkpoint_timestamp_seconds", "gauge", "When the model was saved last.", each(lambda x: x.saved)


def _last(live: Live, column: str) -> float | None:
    kept = live.model.history
    return kept.points(kept.n_rows - 1, kept.n_rows, 1)[column][0] if kept.n else None


def _of_service(service: Service) -> Iterable[tuple[str, str, str, list[tuple[Labels, float]]]]:
    yield "models", "gauge", "Models.", [({}, len(service.models))]
    yield "store_full", "gauge", "1 while the disk takes nothing more.", [({}, int(service.writer.is_full))]
    yield (
        "log_rows",
        "gauge",
        "Entries of the log; those before a checkpoint are removed as others come.",
        [({}, service.writer.n_logged)],
    )
    yield "start_timestamp_seconds", "gauge", "When the service was started.", [({}, service.started)]
    yield "listeners", "gauge", "Listeners of /events.", [({}, len(service.events.listeners))]
    yield (
        "requests_total",
        "counter",
        "Requests by status.",
        [({"status": status}, n) for status, n in sorted(service.requests.items())],
    )


def _commits(service: Service) -> list[str]:
    """The histogram of transactions."""
    name, total = "streamlasso_commit_seconds", 0
    lines = [f"# HELP {name} Seconds of a transaction, with its sync.", f"# TYPE {name} histogram"]
    for end, n in zip([*map(repr, BUCKETS), "+Inf"], service.writer.commits, strict=True):
        total += n
        lines.append(f'{name}_bucket{{le="{end}"}} {total}')
    return [*lines, f"{name}_sum {service.writer.commit_seconds!r}", f"{name}_count {total}"]


def _labels(labels: Labels) -> str:
    """Names of models need no escapes (`settings.NAME`)."""
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}" if labels else ""
