"""A model of the service, with its place in the log, and the rows that it is to learn."""

from __future__ import annotations

import time
from collections import deque
from datetime import UTC, datetime
from hashlib import sha256
from itertools import groupby
from typing import Any

import msgspec

from streamlasso.serve.alarms import Alarm
from streamlasso.serve.jobs import Awaited, logger
from streamlasso.serve.model import LiveModel, as_text
from streamlasso.serve.problems import Problem
from streamlasso.serve.rows import Row, Rows, joined, unpacked
from streamlasso.serve.settings import ModelSettings
from streamlasso.serve.store import Answer, Checkpoint, Registered, Store

#: Rows that are learnt in one step.
MOST_TOGETHER = 2048
#: A checkpoint is due after so many rows, or bytes of the log.
ROWS_BETWEEN, BYTES_BETWEEN = 10_000, 16_000_000
#: Added to the kind of an entry's rows where the answer is to many.
MANY = 2
#: Refusals that are kept to be shown, and seconds over which rows are counted.
MOST_ERRORS, PACE_SECONDS = 20, 10


class Entry:
    """Rows that are learnt together or not at all: one entry of the log.

    id : that of its row; or of the request, where it has several
    rows : None where only the id is given, until the row is found
    label : of an id, as JSON
    n_bytes : of the rows in the log
    answer : None until there is one; bytes, or a Problem
    same_as : an entry with the same id that came before
    """

    __slots__ = ("answer", "from_waiting", "id", "label", "many", "n_bytes", "rows", "same_as", "seq")

    def __init__(self, rows: Rows | None, id: str | None = None, label: str = "", many: bool = False) -> None:
        self.rows, self.id, self.label, self.many = rows, id, label, many
        self.seq, self.n_bytes = 0, 0
        self.from_waiting = False
        self.answer: bytes | Problem | None = None
        self.same_as: Entry | None = None

    @property
    def kind(self) -> int:
        """Of the rows, as the log has it."""
        assert self.rows is not None
        return self.rows.kind + MANY * self.many

    @property
    def is_new(self) -> bool:
        return self.answer is None and self.same_as is None

    def answered(self) -> bytes | Problem:
        found = self.answer if self.same_as is None else self.same_as.answer
        assert found is not None
        return found


class Result(msgspec.Struct, gc=False):
    """Of a row: what was predicted, and the loss of that."""

    prediction: Any
    loss: float | None


class LearnJob:
    """A request to learn; `time` is when it was written to the log."""

    __slots__ = ("entries", "live", "promise", "time")

    def __init__(self, live: Live, entries: list[Entry], promise: Awaited) -> None:
        self.live, self.entries, self.promise = live, entries, promise
        self.time = 0.0


class PredictJob:
    """A request to predict; rows that have an id wait for their label."""

    __slots__ = ("answers", "ids", "live", "promise", "rows")

    def __init__(self, live: Live, rows: list[Row], ids: list[str] | None, promise: Awaited) -> None:
        self.live, self.rows, self.ids, self.promise = live, rows, ids, promise
        self.answers: list[dict[str, Any]] = []


class Live:
    """A model by its name and number. Only the engine's thread touches `model`.

    seq : the last entry of the log that was applied
    rows_since, bytes_since : rows and bytes of the log since the last checkpoint
    is_there : False once it was deleted
    """

    def __init__(self, registered: Registered, settings: ModelSettings) -> None:
        self.number, self.name, self.created = registered.id, registered.name, registered.created
        self.settings, self.n_expired = settings, registered.n_expired
        self.model = LiveModel(settings)
        self.seq = self.rows_since = self.bytes_since = 0
        self.is_there, self.is_saving = True, False
        self.n_waiting = self.n_predictions = 0
        self.n_learnt = 0
        self.last_predict = self.saved = 0.0
        self.errors: deque[dict[str, Any]] = deque(maxlen=MOST_ERRORS)
        self.refused: dict[int, int] = {}
        self.alarms_counted: dict[str, int] = {}
        self.pace: deque[tuple[float, int]] = deque()

    # --- the log ------------------------------------------------------------------------------------------------------

    @classmethod
    def replayed(cls, store: Store, registered: Registered) -> tuple[Live, list[Answer]]:
        """The model as it was when the log ended, and the answers since the last checkpoint."""
        live = cls(registered, msgspec.json.decode(registered.settings, type=ModelSettings))
        saved = store.checkpoint(live.number)
        if saved is not None:
            live.seq, live.saved, notes, data = saved
            live.model = LiveModel.restored(live.settings, msgspec.json.decode(notes), data)
            live._restore_history(store)
        answers = []
        for _, group in groupby(store.logged(live.number, live.seq), lambda logged: logged.part):
            entries, at = [], 0.0
            for logged in group:
                many = logged.kind >= MANY
                rows = unpacked(logged.kind % MANY, logged.rows)
                entry = Entry(rows, logged.id, as_label(rows, many), many)
                entry.seq, entry.n_bytes, at = logged.seq, len(logged.rows), logged.time
                entries.append(entry)
            live.apply(entries, at)
            answers += live.answers_to(entries)
        return live, answers

    def _restore_history(self, store: Store) -> None:
        history = self.model.history
        for first, rows in store.history(self.number):
            if first != history.n_rows:
                history.first, history.n = first, 0
            history.add(rows)
        history.n_saved = history.n_rows

    def apply(self, entries: list[Entry], at: float) -> list[Alarm]:
        """Learn entries of the log, in order; each then has its answer. What is learnt in one step depends on the
        entries alone, so that a replay does the same to the bit."""
        alarms: list[Alarm] = []
        together: list[Entry] = []
        n_rows = 0
        for entry in entries:
            assert entry.rows is not None
            if together and n_rows + len(entry.rows) > MOST_TOGETHER:
                alarms += self._apply(together, at)
                together, n_rows = [], 0
            together.append(entry)
            n_rows += len(entry.rows)
        return alarms + self._apply(together, at)

    def _apply(self, entries: list[Entry], at: float) -> list[Alarm]:
        pieces = [entry.rows for entry in entries if entry.rows is not None]
        before = self.model.n_rows
        try:
            learnt = self.model.learn(joined(pieces), at)
        except Problem as problem:
            if len(entries) > 1:
                return [alarm for entry in entries for alarm in self._apply([entry], at)]
            return self._refused(entries, problem)
        except Exception:
            # Not foreseen; the same rows do the same in a replay.
            logger.exception("%s: rows could not be learnt", self.name)
            return self._refused(entries, Problem(500, "the service failed to learn these rows: its log says why"))
        start = 0
        for entry, rows in zip(entries, pieces, strict=True):
            part = slice(start, start + len(rows))
            start = part.stop
            results = list(zip(learnt.predictions[part], learnt.losses[part], strict=True))
            entry.answer = _answer(entry, results, before + start)
        self._applied(entries)
        return learnt.alarms

    def _refused(self, entries: list[Entry], problem: Problem) -> list[Alarm]:
        for entry in entries:
            entry.answer = problem
        self._applied(entries)
        return []

    def _applied(self, entries: list[Entry]) -> None:
        self.seq = entries[-1].seq
        for entry in entries:
            if not isinstance(entry.answer, Problem) and entry.rows is not None:
                self.n_learnt += len(entry.rows)
                self.rows_since += len(entry.rows)
            self.bytes_since += entry.n_bytes

    def answers_to(self, entries: list[Entry]) -> list[Answer]:
        """Those to ids, which are kept."""
        return [
            Answer(self.number, entry.id, entry.seq, entry.label, entry.answer)
            for entry in entries
            if entry.id is not None and isinstance(entry.answer, bytes)
        ]

    # --- checkpoints --------------------------------------------------------------------------------------------------

    @property
    def is_due(self) -> bool:
        return not self.is_saving and (self.rows_since >= ROWS_BETWEEN or self.bytes_since >= BYTES_BETWEEN)

    def checkpoint(self) -> Checkpoint:
        notes, data = self.model.state()
        first, rows = self.model.history.unsaved()
        self.rows_since = self.bytes_since = 0
        return Checkpoint(self.number, self.seq, time.time(), as_text(notes), data, first, rows)

    # --- what is told -------------------------------------------------------------------------------------------------

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
        recent = [n for at, n in self.pace if at >= now - PACE_SECONDS]
        return round(sum(recent) / PACE_SECONDS, 1)


def as_label(rows: Rows, many: bool) -> str:
    """What tells a retry from another label under the same id."""
    text = msgspec.json.encode(list(rows.labels()))
    return sha256(text).hexdigest() if many else text.decode()


def _answer(entry: Entry, results: list[tuple[Any, float | None]], n_rows: int) -> bytes:
    if entry.many:
        return msgspec.json.encode({"results": [Result(*result) for result in results], "n_rows": n_rows})
    prediction, loss = results[0]
    return msgspec.json.encode({"id": entry.id, "prediction": prediction, "loss": loss, "n_rows": n_rows})


def iso(at: float) -> str | None:
    """A moment as text; None for one that has not been."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds") if at else None
