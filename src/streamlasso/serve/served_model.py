"""A model of the service: its name, its place in the log, and what it was asked."""

from __future__ import annotations

import time
from collections import deque
from datetime import UTC, datetime
from typing import Any

import msgspec

from streamlasso.serve.batches import Request, logger
from streamlasso.serve.learning.alarms import Alarm
from streamlasso.serve.learning.explain import explained
from streamlasso.serve.learning.model import LiveModel, as_text
from streamlasso.serve.learning.rows import joined
from streamlasso.serve.limits import MOST_TOGETHER
from streamlasso.serve.problems import Problem
from streamlasso.serve.settings import ModelSettings
from streamlasso.serve.store.database import Checkpoint, Database, Registered
from streamlasso.serve.store.log import Entry, Log

#: A checkpoint is due after so many rows, or bytes of the log.
ROWS_BETWEEN, BYTES_BETWEEN = 10_000, 16_000_000
#: Refusals that are kept to be shown, and seconds over which rows are counted.
MOST_ERRORS, PACE_SECONDS = 20, 10


class LearnRequest(Request):
    """`time` is when it was written to the log."""

    def __init__(self, model: ServedModel, entries: list[Entry]) -> None:
        super().__init__(model)
        self.entries, self.time = entries, 0.0


class PredictRequest(Request):
    """Rows that have an id wait for their label."""

    def __init__(self, model: ServedModel, rows: list[dict[str, Any]], ids: list[str] | None) -> None:
        super().__init__(model)
        self.rows, self.ids = rows, ids
        self.answers: list[dict[str, Any]] = []
        self.explanations: list[dict[str, Any]] = []


class ServedModel:
    """A model by its name and number. Only one thread at a time touches `model`.

    seq : the last entry of the log that was learnt or refused
    rows_since, bytes_since : rows and bytes of the log since the last checkpoint
    is_there : False once it was deleted
    """

    def __init__(self, registered: Registered, settings: ModelSettings) -> None:
        self.registered, self.number, self.name, self.created = registered, *registered[:2], registered.created
        self.settings, self.n_expired = settings, registered.n_expired
        self.model = LiveModel(settings)
        self.seq = self.rows_since = self.bytes_since = 0
        self.is_there = True
        self.n_waiting = self.n_predictions = self.n_learnt = 0
        self.last_predict = self.saved = 0.0
        self.errors: deque[dict[str, Any]] = deque(maxlen=MOST_ERRORS)
        self.refused: dict[int, int] = {}
        self.alarms_counted: dict[str, int] = {}
        self.pace: deque[tuple[float, int]] = deque()

    # --- from the disk ------------------------------------------------------------------------------------------------

    def restore(self, database: Database, log: Log, before: int = 2**62) -> list[Entry]:
        """The model as it was before an entry of the log, from its checkpoint and the log; the entries since then."""
        self.model, self.seq, self.rows_since, self.bytes_since = LiveModel(self.settings), 0, 0, 0
        saved = database.checkpoint(self.number)
        if saved is not None:
            self.seq, self.saved, notes, data = saved
            self.model = LiveModel.restored(self.settings, msgspec.json.decode(notes), data)
            self.model.monitor.history.restore(database.history(self.number))
        found: list[Entry] = []
        for at, entries in log.parts(self.number, self.seq, before):
            self.learn(entries, at)
            found += entries
        return found

    def take_over(self, restored: ServedModel) -> None:
        """Be the model that was restored."""
        self.model, self.seq = restored.model, restored.seq
        self.rows_since, self.bytes_since = restored.rows_since, restored.bytes_since

    def checkpoint(self) -> Checkpoint:
        notes, data = self.model.state()
        first, rows = self.model.monitor.history.unsaved()
        return Checkpoint(self.number, self.seq, time.time(), as_text(notes), data, first, rows)

    def note_saved(self, checkpoint: Checkpoint) -> None:
        self.rows_since = self.bytes_since = 0
        self.saved, self.model.monitor.history.n_saved = checkpoint.time, checkpoint.first + len(checkpoint.history)

    @property
    def is_due(self) -> bool:
        return self.rows_since >= ROWS_BETWEEN or self.bytes_since >= BYTES_BETWEEN

    # --- learning -----------------------------------------------------------------------------------------------------

    def learn(self, entries: list[Entry], at: float) -> list[Alarm]:
        """Learn entries of the log, in order; each then has its answer. What is learnt in one step depends on the
        entries alone, so that a replay does the same to the bit."""
        alarms: list[Alarm] = []
        together: list[Entry] = []
        n_rows = 0
        for entry in entries:
            assert entry.rows is not None
            if together and n_rows + len(entry.rows) > MOST_TOGETHER:
                alarms += self._learn(together, at)
                together, n_rows = [], 0
            together.append(entry)
            n_rows += len(entry.rows)
        return alarms + self._learn(together, at)

    def _learn(self, entries: list[Entry], at: float) -> list[Alarm]:
        pieces = [entry.rows for entry in entries if entry.rows is not None]
        before = self.model.n_rows
        try:
            learnt = self.model.learn(joined(pieces), at)
        except Problem as problem:
            if len(entries) > 1:
                return [alarm for entry in entries for alarm in self._learn([entry], at)]
            entries[0].answer = problem.again()
            self._passed(entries)
            return []
        start = 0
        for entry, rows in zip(entries, pieces, strict=True):
            part = slice(start, start + len(rows))
            start = part.stop
            entry.answer = _answer(entry, learnt.predictions[part], learnt.losses[part], before + start)
        self.n_learnt += start
        self.rows_since += start
        self._passed(entries)
        return learnt.alarms

    def _passed(self, entries: list[Entry]) -> None:
        self.seq = entries[-1].seq
        self.bytes_since += sum(entry.n_bytes for entry in entries)

    # --- predicting ---------------------------------------------------------------------------------------------------

    def predict(self, requests: list[PredictRequest]) -> None:
        """Each request gets its answers, or a Problem."""
        together: list[PredictRequest] = []
        for request in requests:
            if together and sum(len(each.rows) for each in together) + len(request.rows) > MOST_TOGETHER:
                self._predict(together)
                together = []
            together.append(request)
        self._predict(together)

    def _predict(self, requests: list[PredictRequest]) -> None:
        try:
            answers = self.model.predict([row for request in requests for row in request.rows])
        except Exception as error:
            if len(requests) > 1:
                for request in requests:
                    self._predict([request])
                return
            if not isinstance(error, Problem):
                logger.exception("a prediction of %s failed", self.name)
                error = Problem(500, "the service failed to predict these rows: its log says why")
            requests[0].problem = error.again()
            return
        start = 0
        for request in requests:
            request.answers = answers[start : start + len(request.rows)]
            start += len(request.rows)
            for k, answer in enumerate(request.answers):
                answer["id"], answer["n_rows"] = None if request.ids is None else request.ids[k], self.model.n_rows
            if request.ids is not None:
                request.explanations = explained(self.model, request.rows)
        self.n_predictions += start
        self.last_predict = time.time()

    def late_labels(self) -> list[Alarm]:
        """An alarm where there are predictions, and no labels for long."""
        now, most, model = time.time(), self.settings.label_timeout, self.model
        since = max(model.last_learn, self.created)
        late = self.last_predict > since and now - since > most
        return model.monitor.watch.labels(late, most, model.n_rows, now)

    # --- what people see ----------------------------------------------------------------------------------------------

    def note_refusal(self, problem: Problem) -> dict[str, Any]:
        error = {"time": iso(time.time()), "status": problem.status, "detail": problem.detail}
        self.errors.append(error)
        self.refused[problem.status] = self.refused.get(problem.status, 0) + 1
        return {"model": self.name, **error}

    def note_pace(self, n_rows: int) -> None:
        now = time.monotonic()
        self.pace.append((now, n_rows))
        while self.pace and self.pace[0][0] < now - PACE_SECONDS:
            self.pace.popleft()

    def rows_per_second(self) -> float:
        now = time.monotonic()
        return round(sum(n for at, n in self.pace if at >= now - PACE_SECONDS) / PACE_SECONDS, 1)


def _answer(entry: Entry, predictions: list[Any], losses: list[float | None], n_rows: int) -> bytes:
    if entry.is_batch:
        results = [{"prediction": value, "loss": loss} for value, loss in zip(predictions, losses, strict=True)]
        return msgspec.json.encode({"results": results, "n_rows": n_rows})
    return msgspec.json.encode({"id": entry.id, "prediction": predictions[0], "loss": losses[0], "n_rows": n_rows})


def iso(at: float) -> str | None:
    """A moment as text; None for one that has not been."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds") if at else None
