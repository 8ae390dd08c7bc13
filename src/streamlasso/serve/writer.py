"""The thread that writes to the store: many requests, one transaction."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from streamlasso.serve.jobs import Awaited, Promise, Worker, keep_all, logger
from streamlasso.serve.live import Entry, LearnJob, Live, PredictJob
from streamlasso.serve.problems import Full, Problem
from streamlasso.serve.rows import JsonRows, Row, Value
from streamlasso.serve.settings import ModelSettings
from streamlasso.serve.store import Answer, Checkpoint, Refused, Registered, Store

#: Entries of the log that are looked at, to be removed, for each that is added, and every two seconds.
LOOKS, TIDIED = 4, 500
#: The upper ends of the histogram of commits, in seconds.
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)

FULL = Problem(507, "the disk of the store is full: nothing was learnt, predictions go on; try again when it has room")


class Trimmer:
    """Goes through the log from its beginning, once after each checkpoint, as the log grows: to remove all that a
    checkpoint has at once would hold up requests for tens of milliseconds.

    place : the last entry that was looked at; None when there is nothing to do
    again : whether there was a checkpoint since it began
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.place: int | None = None
        self.again = False

    def begin(self) -> None:
        """After a checkpoint."""
        self.again = self.place is not None
        self.place = self.place or 0

    def trim(self, most: int) -> int:
        """Look at so many entries, within a transaction: how many were removed."""
        if self.place is None or most <= 0:
            return 0
        self.place, removed = self.store.trim(self.place, most)
        if self.place is None and self.again:
            self.begin()
        return removed

    def trim_all(self) -> None:
        """At the start."""
        self.store.trim(0, -1)


class Writer(Worker):
    """Has the store to itself.

    inflight : by model and id, entries that are in the log, and whose answers are not in the store yet
    answered : answers, and ids that were refused, which the engine adds and the next transaction takes
    on_full : is told whether the disk is full
    trimmer : removes entries that are in checkpoints from the log
    """

    def __init__(self, store: Store, on_full: Callable[[bool], None]) -> None:
        super().__init__("writer")
        self.store, self.on_full = store, on_full
        self.inflight: dict[tuple[int, str], Entry] = {}
        self.answered: deque[Answer | Refused] = deque()
        self.part = store.last_part()
        self.trimmer = Trimmer(store)
        self.is_full = False
        self.n_logged = store.n_logged()
        self.commits = [0] * (len(BUCKETS) + 1)
        self.commit_seconds = 0.0

    # --- rows to learn ------------------------------------------------------------------------------------------------

    def log(self, jobs: list[LearnJob], then: Callable[[list[LearnJob]], None]) -> None:
        """Put the jobs into the log; those that are not refused go on."""
        ready: list[LearnJob] = []
        refused: list[Awaited] = []
        added: list[tuple[int, str]] = []
        self.part += 1
        n_before = self.n_logged

        def write() -> None:
            now = time.time()
            for job in jobs:
                try:
                    for entry in job.entries:
                        self._find(job.live, entry)
                except Problem as problem:
                    job.promise.result = problem
                    refused.append(job.promise)
                    continue
                job.time = now
                added.extend(self._log(job, now))
                ready.append(job)
            self.n_logged -= self.trimmer.trim(LOOKS * (self.n_logged - n_before))

        try:
            self._commit(write)
        except BaseException as error:
            for key in added:
                self.inflight.pop(key, None)
            self.n_logged = n_before
            for job in jobs:
                job.promise.result = _as_problem(error)
            keep_all([job.promise for job in jobs])
            then([])
            return
        for job in ready:
            job.live.n_waiting -= sum(entry.from_waiting for entry in job.entries)
        keep_all(refused)
        then(ready)

    def _find(self, live: Live, entry: Entry) -> None:
        """Look up the id: it may be one that was learnt, or one whose row waits."""
        if not live.is_there:
            raise Problem(404, f"the model {live.name!r} was deleted")
        if entry.id is None:
            return
        before = self.inflight.get((live.number, entry.id))
        learnt = self.store.answer(live.number, entry.id) if before is None else (before.label, b"")
        if learnt is not None:
            if learnt[0] != entry.label:
                raise Problem(409, f"the id {entry.id!r} was learnt with another label: use another id")
            entry.same_as, entry.answer = before, learnt[1] if before is None else None
            return
        waiting = self.store.waiting(live.number, entry.id)
        if waiting is not None:
            row = msgspec.json.decode(waiting[0], type=Row)
            if entry.rows is not None and entry.rows.dicts() != [row]:
                raise Problem(409, f"the id {entry.id!r} was predicted with another row: leave the row out")
            entry.rows = JsonRows([row], msgspec.json.decode(entry.label, type=list[Value]))
            entry.from_waiting = True
        elif entry.rows is None and self.store.has_expired(live.number, entry.id):
            raise Problem(410, f"the row with the id {entry.id!r} waited too long for its label: send the row again")
        elif entry.rows is None:
            raise Problem(404, f"no row with the id {entry.id!r} waits for its label: send the row with it")

    def _log(self, job: LearnJob, now: float) -> list[tuple[int, str]]:
        """The ids that are in the log now."""
        added, number = [], job.live.number
        for entry in job.entries:
            if not entry.is_new:
                continue
            assert entry.rows is not None
            rows = entry.rows.packed()
            entry.n_bytes = len(rows)
            entry.seq = self.store.log(self.part, number, entry.id, now, entry.kind, rows)
            self.n_logged += 1
            if entry.id is not None:
                self.inflight[number, entry.id] = entry
                added.append((number, entry.id))
        return added

    # --- rows that wait -----------------------------------------------------------------------------------------------

    def keep_waiting(self, jobs: list[PredictJob], expired: Callable[[Live, int], None]) -> None:
        """Rows that were predicted, and wait for their labels."""
        added: Counter[Live] = Counter()
        dropped: Counter[Live] = Counter()

        def write() -> None:
            now = time.time()
            for job in jobs:
                try:
                    job.promise.result, n = self._wait(job, now)
                    added[job.live] += n
                except Problem as problem:
                    job.promise.result = problem
            for live, n in added.items():
                excess = live.n_waiting + n - live.settings.waiting_most
                if excess > 0:
                    dropped[live] = self.store.expire(live.number, 0.0, excess)

        try:
            self._commit(write)
        except BaseException as error:
            for job in jobs:
                job.promise.result = _as_problem(error)
            added.clear()
            dropped.clear()
        for live, n in added.items():
            live.n_waiting += n - dropped[live]
        keep_all([job.promise for job in jobs])
        for live, n in dropped.items():
            expired(live, n)

    def _wait(self, job: PredictJob, now: float) -> tuple[list[dict[str, Any]], int]:
        """The answer to each row, the first one if it was given before; and how many rows are new."""
        assert job.ids is not None
        if not job.live.is_there:
            raise Problem(404, f"the model {job.live.name!r} was deleted")
        before = [self._before(job.live, id, row) for id, row in zip(job.ids, job.rows, strict=True)]
        for id, row, answer, known in zip(job.ids, job.rows, job.answers, before, strict=True):
            if known is None:
                texts = msgspec.json.encode(row), msgspec.json.encode(answer)
                self.store.wait(job.live.number, id, now, *texts)
        answers = [known or answer for known, answer in zip(before, job.answers, strict=True)]
        return answers, before.count(None)

    def _before(self, live: Live, id: str, row: Row) -> dict[str, Any] | None:
        """What was answered to this id; None if it is new."""
        if (live.number, id) in self.inflight or self.store.answer(live.number, id) is not None:
            raise Problem(409, f"the id {id!r} was learnt already: use another id")
        waiting = self.store.waiting(live.number, id)
        if waiting is None:
            return None
        if msgspec.json.decode(waiting[0]) != row:
            raise Problem(409, f"the id {id!r} was given to another row, which waits for its label")
        return msgspec.json.decode(waiting[1])

    def expire(self, lives: list[Live], expired: Callable[[Live, int], None]) -> None:
        """Drop rows that waited too long."""
        for live in lives:
            if live.is_there and live.n_waiting:
                self._expire(live, expired)

    def _expire(self, live: Live, expired: Callable[[Live, int], None]) -> None:
        found: list[int] = []

        def write() -> None:
            found.append(self.store.expire(live.number, time.time() - live.settings.waiting_age, 0))

        try:
            self._commit(write)
        except Full:
            return
        if found[0]:
            live.n_waiting -= found[0]
            expired(live, found[0])

    # --- models -------------------------------------------------------------------------------------------------------

    def create(self, name: str, settings: ModelSettings, promise: Promise, then: Callable[[Live], None]) -> None:
        text = msgspec.json.encode(settings).decode()
        made: list[int] = []
        now = time.time()
        try:
            self._commit(lambda: made.append(self.store.add_model(name, text, now)))
        except BaseException as error:
            promise.result = _as_problem(error)
        else:
            live = Live(Registered(made[0], name, text, now, 0), settings)
            then(live)
            promise.result = live
        keep_all([promise])

    def delete(self, live: Live, promise: Promise) -> None:
        try:
            self._commit(lambda: self.store.remove_model(live.number))
        except BaseException as error:
            promise.result = _as_problem(error)
        else:
            live.is_there = False
            self.n_logged = self.store.n_logged()
        keep_all([promise])

    def save(self, live: Live, checkpoint: Checkpoint, then: Callable[[Live, Checkpoint, bool], None]) -> None:
        """A checkpoint; `then` is told whether it is on disk."""
        try:
            if live.is_there:
                self._commit(lambda: self.store.save(checkpoint))
                self.trimmer.begin()
        except Full:
            then(live, checkpoint, False)
            return
        then(live, checkpoint, True)

    def tidy(self) -> None:
        """Remove what checkpoints have from the log, also when nothing is added to it."""
        removed: list[int] = []
        if self.trimmer.place is not None:
            with suppress(Full):
                self._commit(lambda: removed.append(self.trimmer.trim(TIDIED)))
                self.n_logged -= sum(removed)

    def row_of(self, live: Live, id: str, promise: Promise) -> None:
        """The waiting row with this id."""
        promise.result = self.store.waiting(live.number, id)
        keep_all([promise])

    def flush(self) -> None:
        """Put the answers of a replay into the store, if it has room for them."""
        with suppress(Full):
            self._commit(self.trimmer.trim_all)
            self.n_logged = self.store.n_logged()

    # --- transactions -------------------------------------------------------------------------------------------------

    def _commit(self, write: Callable[[], None]) -> None:
        """One transaction, which takes with it the answers since the last one."""
        answers = [self.answered.popleft() for _ in range(len(self.answered))]
        for answer in answers:
            if isinstance(answer, Refused):
                self.inflight.pop((answer.model, answer.id), None)
        begun = time.perf_counter()
        try:
            with self.store.transaction():
                self.store.add_answers([answer for answer in answers if isinstance(answer, Answer)])
                write()
        except BaseException as error:
            self.answered.extendleft(reversed(answers))
            if isinstance(error, Full):
                self._tell(True)
            raise
        seconds = time.perf_counter() - begun
        self.commits[bisect_left(BUCKETS, seconds)] += 1
        self.commit_seconds += seconds
        for answer in answers:
            self.inflight.pop((answer.model, answer.id), None)
        self._tell(False)

    def _tell(self, full: bool) -> None:
        if full != self.is_full:
            self.is_full = full
            self.on_full(full)


def _as_problem(error: BaseException) -> Problem:
    if isinstance(error, Full):
        return FULL
    logger.error("a transaction failed: %s: %s", type(error).__name__, error)
    return Problem(500, "the store refused the transaction: nothing was changed by it; the log of the service says why")
