"""The thread that has the models: it predicts and learns, one batch after the other."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from streamlasso.serve.alarms import Alarm
from streamlasso.serve.jobs import Promise, Worker, keep_all, logger
from streamlasso.serve.live import LearnJob, Live, PredictJob, iso
from streamlasso.serve.problems import Problem
from streamlasso.serve.store import Checkpoint, Refused
from streamlasso.serve.writer import Writer

#: From the kind of an event and what it says.
Publish = Callable[[str, dict[str, Any]], None]


class Engine(Worker):
    """Has the models to itself. Predictions go first: also between two models that learn."""

    def __init__(self, writer: Writer, publish: Publish) -> None:
        super().__init__("engine")
        self.writer, self.publish = writer, publish
        self._predicts: deque[tuple[list[PredictJob], Callable[[], None]]] = deque()

    # --- predicting ---------------------------------------------------------------------------------------------------

    def predict(self, jobs: list[PredictJob], done: Callable[[], None]) -> None:
        """From any thread."""
        self._predicts.append((jobs, done))
        self.put(self._predict_all)

    def _predict_all(self) -> None:
        while self._predicts:
            jobs, done = self._predicts.popleft()
            by_model: dict[Live, list[PredictJob]] = {}
            for job in jobs:
                by_model.setdefault(job.live, []).append(job)
            for live, of_model in by_model.items():
                self._predict(live, of_model)
            kept = [job for job in jobs if job.ids is not None and not isinstance(job.promise.result, Problem)]
            keep_all([job.promise for job in jobs if job not in kept] if kept else [job.promise for job in jobs])
            if kept:
                self.writer.put(self.writer.keep_waiting, kept, self.expired)
            jobs[0].promise.loop.call_soon_threadsafe(done)

    def _predict(self, live: Live, jobs: list[PredictJob]) -> None:
        try:
            answers = live.model.predict([row for job in jobs for row in job.rows])
        except Problem as problem:
            if len(jobs) > 1:
                for job in jobs:
                    self._predict(live, [job])
                return
            jobs[0].promise.result = problem
            self.publish("refused", live.note_refusal(problem))
            return
        except Exception as error:
            logger.exception("a prediction of %s failed", live.name)
            for job in jobs:
                job.promise.result = _failure(error)
            return
        start = 0
        for job in jobs:
            job.answers = answers[start : start + len(job.rows)]
            start += len(job.rows)
            for k, answer in enumerate(job.answers):
                answer["id"], answer["n_rows"] = None if job.ids is None else job.ids[k], live.model.n_rows
            job.promise.result = job.answers
        live.n_predictions += start
        live.last_predict = time.time()

    # --- learning -----------------------------------------------------------------------------------------------------

    def learn(self, jobs: list[LearnJob], done: Callable[[], None], loop: asyncio.AbstractEventLoop) -> None:
        """Entries that are in the log, in its order."""
        by_model: dict[Live, list[LearnJob]] = {}
        for job in jobs:
            by_model.setdefault(job.live, []).append(job)
        try:
            for live, of_model in by_model.items():
                self._predict_all()
                self._learn(live, of_model)
        finally:
            for job in jobs:
                job.promise.result = job.promise.result or _failure(RuntimeError())
            keep_all([job.promise for job in jobs])
            loop.call_soon_threadsafe(done)
        for live in by_model:
            self.save_if(live, live.is_due)

    def _learn(self, live: Live, jobs: list[LearnJob]) -> None:
        entries = [entry for job in jobs for entry in job.entries if entry.is_new]
        n_before = live.n_learnt
        if entries:
            self.tell(live, live.apply(entries, jobs[0].time))
            self.writer.answered.extend(live.answers_to(entries))
        for entry in entries:
            if isinstance(entry.answer, Problem):
                self.publish("refused", live.note_refusal(entry.answer))
                if entry.id is not None:
                    self.writer.answered.append(Refused(live.number, entry.id))
                    live.n_waiting += entry.from_waiting
        for job in jobs:
            answers = [entry.answered() for entry in job.entries]
            problem = next((answer for answer in answers if isinstance(answer, Problem)), None)
            job.promise.result = problem or answers
        live.note_pace(live.n_learnt - n_before)

    # --- checkpoints --------------------------------------------------------------------------------------------------

    def save_if(self, live: Live, due: bool) -> None:
        if due and live.is_there:
            live.is_saving = True
            self.writer.put(self.writer.save, live, live.checkpoint(), self._saved)

    def _saved(self, live: Live, checkpoint: Checkpoint, on_disk: bool) -> None:
        self.put(self._note_saved, live, checkpoint, on_disk)

    def _note_saved(self, live: Live, checkpoint: Checkpoint, on_disk: bool) -> None:
        live.is_saving = False
        if on_disk:
            live.saved = checkpoint.time
        else:
            live.model.history.n_saved = checkpoint.first

    def save_all(self, lives: Iterable[Live]) -> None:
        """Those that have learnt something since."""
        for live in lives:
            self.save_if(live, live.bytes_since > 0 and not live.is_saving)

    # --- events -------------------------------------------------------------------------------------------------------

    def call(self, function: Callable[[], Any], promise: Promise) -> None:
        """Whatever wants to look at a model."""
        try:
            promise.result = function()
        except Problem as problem:
            promise.result = problem
        except Exception as error:
            logger.exception("a request failed")
            promise.result = _failure(error)
        keep_all([promise])

    def tell(self, live: Live, alarms: list[Alarm]) -> None:
        for alarm in alarms:
            if alarm.firing:
                live.alarms_counted[alarm.kind] = live.alarms_counted.get(alarm.kind, 0) + 1
            about = {"kind": alarm.kind, "firing": alarm.firing, "row": alarm.row, "time": iso(alarm.time)}
            self.publish("alarm", {"model": live.name, **about, "detail": alarm.detail})

    def look_for_labels(self, lives: list[Live]) -> None:
        """An alarm where there are predictions, and no labels for long."""
        now = time.time()
        for live in lives:
            model, most = live.model, live.settings.label_timeout
            since = max(model.last_learn, live.created)
            late = live.last_predict > since and now - since > most
            self.tell(live, model.watch.labels(late, most, model.n_rows, now))

    def expired(self, live: Live, n: int) -> None:
        live.n_expired += n
        logger.warning("%s: %d waiting rows expired without a label", live.name, n)
        self.publish("expired", {"model": live.name, "n": n})


def _failure(error: Exception) -> Problem:
    return Problem(500, f"the service failed ({type(error).__name__}): nothing was acknowledged")
