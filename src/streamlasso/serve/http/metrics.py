"""Numbers for Prometheus, in its text format."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import Any

from streamlasso.serve.learning.alarms import KINDS
from streamlasso.serve.served_model import ServedModel
from streamlasso.serve.service import Service
from streamlasso.serve.store.database import BUCKETS

#: Of each model: name, type, help and value.
OF_MODELS = (
    ("learnt_rows_total", "counter", "Rows learnt since the start of the service.", lambda x: x.n_learnt),
    ("predictions_total", "counter", "Rows predicted since the start.", lambda x: x.n_predictions),
    ("waiting_rows", "gauge", "Rows that wait for their label.", lambda x: x.n_waiting),
    ("expired_rows_total", "counter", "Waiting rows that were dropped.", lambda x: x.n_expired),
    ("recent_loss", "gauge", "Mean loss over about the last 200 rows.", lambda x: _recent(x, "model")),
    ("recent_baseline_loss", "gauge", "The same of the running mean.", lambda x: _recent(x, "baseline")),
    ("recent_persistence_loss", "gauge", "The same of the last value.", lambda x: _recent(x, "persistence")),
    ("last_learn_timestamp_seconds", "gauge", "When a row was learnt last.", lambda x: x.model.last_learn),
    ("last_predict_timestamp_seconds", "gauge", "When a row was predicted last.", lambda x: x.last_predict),
    ("changes_total", "counter", "Changes found in the stream.", lambda x: x.model.monitor.watch.n_changes),
    ("active_features", "gauge", "Features in the model.", lambda x: _last(x, "active")),
    ("memory_rows", "gauge", "Rows that the model remembers.", lambda x: _last(x, "memory")),
    ("checkpoint_timestamp_seconds", "gauge", "When the model was saved last.", lambda x: x.saved),
)
#: Of the service.
OF_SERVICE = (
    ("models", "gauge", "Models.", lambda x: len(x.models)),
    ("broken_models", "gauge", "Models that could not be restored.", lambda x: len(x.broken)),
    ("store_full", "gauge", "1 while the store takes nothing.", lambda x: int(x.database.trouble is not None)),
    ("log_rows", "gauge", "Entries of the log; checkpoints remove them as others come.", lambda x: x.log.n_entries),
    ("start_timestamp_seconds", "gauge", "When the service was started.", lambda x: x.started),
    ("listeners", "gauge", "Listeners of /events.", lambda x: len(x.events.listeners)),
)


def metrics_text(service: Service) -> str:
    """All of them."""
    models = list(service.models.values())
    lines: list[str] = []
    for name, kind, help, value in OF_MODELS:
        found = [(f'{{model="{model.name}"}}', value(model)) for model in models]
        lines += _lines(name, kind, help, ((labels, number) for labels, number in found if number is not None))
    for name, kind, help, value in OF_SERVICE:
        lines += _lines(name, kind, help, [("", value(service))])
    by_status = [(f'{{model="{x.name}",status="{status}"}}', n) for x in models for status, n in x.refused.items()]
    lines += _lines("refused_total", "counter", "Refused requests.", by_status)
    requests = [(f'{{status="{status}"}}', n) for status, n in sorted(service.requests.items())]
    lines += _lines("requests_total", "counter", "Requests by status.", requests)
    alarms = [(x, kind, f'{{model="{x.name}",kind="{kind}"}}') for x in models for kind in KINDS]
    firing = [(at, int(any(of == kind for of, _ in x.model.monitor.watch.firing))) for x, kind, at in alarms]
    lines += _lines("alarm", "gauge", "1 while an alarm is on.", firing)
    counted = [(at, x.alarms_counted.get(kind, 0)) for x, kind, at in alarms]
    lines += _lines("alarms_total", "counter", "Alarms since the start.", counted)
    return "\n".join([*lines, *_commits(service), ""])


def _lines(name: str, kind: str, help: str, samples: Iterable[tuple[str, Any]]) -> list[str]:
    """Names of models need no escapes (`limits.NAME`)."""
    values = [f"streamlasso_{name}{labels} {value!r}" for labels, value in samples]
    return [f"# HELP streamlasso_{name} {help}", f"# TYPE streamlasso_{name} {kind}", *values]


def _recent(model: ServedModel, name: str) -> float | None:
    return model.model.monitor.scores.recent_means()[name]


def _last(model: ServedModel, column: str) -> float | None:
    kept = model.model.monitor.history
    return kept.points(kept.n_rows - 1, kept.n_rows, 1)[column][0] if kept.n else None


def _commits(service: Service) -> list[str]:
    """The histogram of transactions."""
    database, name = service.database, "streamlasso_commit_seconds"
    counts = list(accumulate(database.commits))
    lines = [f"# HELP {name} Seconds of a transaction, with its sync.", f"# TYPE {name} histogram"]
    lines += [f'{name}_bucket{{le="{end}"}} {n}' for end, n in zip([*BUCKETS, "+Inf"], counts, strict=True)]
    return [*lines, f"{name}_sum {database.commit_seconds!r}", f"{name}_count {counts[-1]}"]
