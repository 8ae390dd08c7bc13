"""The service without HTTP: models by name, and what happens between a request and its answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from streamlasso.serve.batches import Batches, OneThread, logger
from streamlasso.serve.events import Events
from streamlasso.serve.learning.alarms import Alarm
from streamlasso.serve.limits import MOST_MODELS
from streamlasso.serve.problems import Problem
from streamlasso.serve.served_model import LearnRequest, PredictRequest, ServedModel, iso
from streamlasso.serve.settings import ModelSettings, checked_name
from streamlasso.serve.store.database import Checkpoint, Database
from streamlasso.serve.store.log import Entry, Log
from streamlasso.serve.store.waiting import Waiting

#: Seconds between looks at waiting rows and late labels.
TICK = 2.0
#: Rows that are learnt or predicted on the event loop: they take some milliseconds.
FEW = 128


class Service:
    """Learns and predicts. `restore` reads the store; `stop` leaves a checkpoint of every model.

    disk, compute : the thread that has the store to itself, and the one that has the models
    broken : models that could not be restored, with the reason; the others are served
    """

    def __init__(self, folder: Path) -> None:
        self.database = Database(folder)
        self.database.on_trouble = self._trouble
        self.log, self.waiting = Log(self.database), Waiting(self.database)
        self.disk, self.compute = OneThread("disk"), OneThread("compute")
        self.models: dict[str, ServedModel] = {}
        self.broken: dict[str, tuple[int, str]] = {}
        self.events = Events()
        self.learns, self.predicts, self.waits = Batches(self._learn), Batches(self._predict), Batches(self._wait)
        self.started = time.time()
        self.requests: dict[int, int] = {}
        self.registry = asyncio.Lock()
        self._ticking: asyncio.Task[None] | None = None

    # --- learning: from `POST /learn` to the disk and back ------------------------------------------------------------

    async def learn(self, name: str, entries: list[Entry]) -> list[bytes]:
        """The answer to each entry; what is answered is on disk."""
        await self.learns.add(LearnRequest(self.model(name), entries))
        answers = [entry.answer for entry in entries]
        problem = next((answer for answer in answers if isinstance(answer, Problem)), None)
        if problem is not None:
            raise problem.again()
        return answers  # type: ignore[return-value]

    async def _learn(self, requests: list[LearnRequest]) -> list[LearnRequest]:
        """A batch of requests: all go to the log in one transaction, then each model learns its entries."""
        later = await self.disk(self.log.append, requests, time.time())
        for model, of_model in _by_model(request for request in requests if request not in later):
            entries = [entry for request in of_model for entry in request.entries if entry.answer is None]
            if entries:
                await self._learn_entries(model, entries, of_model[0].time)
                if model.is_due:
                    await self.save(model)
        return later

    async def _learn_entries(self, model: ServedModel, entries: list[Entry], at: float) -> None:
        n_before = model.n_learnt
        try:
            is_short = sum(len(entry.rows or ()) for entry in entries) <= FEW
            alarms = await self.compute(model.learn, entries, at, is_short=is_short)
        except Exception:
            # Not foreseen: the model may have learnt a part.
            logger.exception("%s: rows could not be learnt", model.name)
            alarms = await self._learn_one_by_one(model, entries, at)
        self.log.answered(model, entries)
        self.publish(model, alarms)
        for entry in entries:
            if isinstance(entry.answer, Problem):
                self.events.publish("refused", model.note_refusal(entry.answer))
            else:
                model.n_waiting -= entry.was_waiting
        model.note_pace(model.n_learnt - n_before)

    async def _learn_one_by_one(self, model: ServedModel, entries: list[Entry], at: float) -> list[Alarm]:
        """Take the model back to what it was, then learn each entry alone; one that cannot be learnt leaves the log."""
        alarms = []
        await self._restore_before(model, entries[0])
        for entry in entries:
            try:
                alarms += await self.compute(model.learn, [entry], at)
            except Exception:
                entry.answer = Problem(500, "the service failed to learn these rows: its log says why")
                await self.disk(self.log.forget, entry.seq)
                await self._restore_before(model, entry)
        return alarms

    async def _restore_before(self, model: ServedModel, entry: Entry) -> None:
        restored = ServedModel(model.registered, model.settings)
        await self.disk(restored.restore, self.database, self.log, entry.seq)
        model.take_over(restored)

    async def save(self, model: ServedModel) -> None:
        """A checkpoint; if the store does not take it, the next one has all of it."""
        try:
            checkpoint = await self.compute(model.checkpoint)
            await self.disk(self._save, model, checkpoint)
        except Exception as error:
            logger.error("%s could not be saved: %s", model.name, error)
            return
        model.note_saved(checkpoint)

    def _save(self, model: ServedModel, checkpoint: Checkpoint) -> None:
        if model.is_there:
            self.database.save(checkpoint)
            self.log.in_checkpoints[model.number] = checkpoint.seq

    # --- predicting ---------------------------------------------------------------------------------------------------

    async def predict(
        self, name: str, rows: list[dict[str, Any]], ids: list[str] | None = None
    ) -> list[dict[str, Any]]:
        """The answer to each row; rows with ids are on disk, where they wait for their labels."""
        request = PredictRequest(self.model(name), rows, ids)
        try:
            await self.predicts.add(request)
        except Problem as problem:
            if problem.status == 422:
                self.events.publish("refused", request.model.note_refusal(problem))
            raise
        if ids is not None:
            await self.waits.add(request)
        return request.answers

    async def explain(self, name: str, id: str) -> bytes:
        """Why a row that waits was predicted as it was, as JSON."""
        found = await self.disk(self.waiting.explanation, self.model(name).number, id)
        if found is None:
            raise Problem(404, "no row with this id waits for its label")
        return found

    async def _predict(self, requests: list[PredictRequest]) -> None:
        for model, of_model in _by_model(requests):
            is_short = sum(len(request.rows) for request in of_model) <= FEW
            await self.compute(model.predict, of_model, is_short=is_short)

    async def _wait(self, requests: list[PredictRequest]) -> None:
        for model, n in await self.disk(self.waiting.keep, requests):
            self._expired(model, n)

    def _expired(self, model: ServedModel, n: int) -> None:
        model.n_expired += n
        logger.warning("%s: %d waiting rows expired without a label", model.name, n)
        self.events.publish("expired", {"model": model.name, "n": n})

    # --- models -------------------------------------------------------------------------------------------------------

    def model(self, name: str) -> ServedModel:
        found = self.models.get(name)
        if found is not None:
            return found
        if name in self.broken:
            raise Problem(503, f"the model {name!r} could not be restored: {self.broken[name][1]}; it can be deleted")
        raise Problem(404, f"there is no model of this name: PUT /models/{name[:100]} makes one")

    async def create(self, name: str, settings: ModelSettings) -> bool:
        """Whether it is new."""
        checked_name(name)
        settings.check()
        async with self.registry:
            if name in self.models or name in self.broken:
                if self.model(name).settings != settings:
                    raise Problem(409, f"the model {name!r} has other settings: delete it first, or use another name")
                return False
            if len(self.models) >= MOST_MODELS:
                raise Problem(507, f"there are {MOST_MODELS:,} models, the most that a service has: delete some")
            registered = await self.disk(self.database.add_model, name, msgspec.json.encode(settings).decode())
            self.models[name] = ServedModel(registered, settings)
        self.events.publish("model", {"model": name, "what": "created"})
        return True

    async def delete(self, name: str) -> None:
        async with self.registry:
            number = self.broken[name][0] if name in self.broken else self.model(name).number
            await self.disk(self._remove, number, self.models.get(name))
            self.broken.pop(name, None)
            self.models.pop(name, None)
        self.events.publish("model", {"model": name, "what": "deleted"})

    def _remove(self, number: int, model: ServedModel | None) -> None:
        self.database.remove_model(number)
        if model is not None:
            model.is_there = False

    async def look(self, function: Callable[[], Any]) -> Any:
        """Call a function that looks at models, while none learns."""
        return await self.compute(function)

    def publish(self, model: ServedModel, alarms: list[Alarm]) -> None:
        for alarm in alarms:
            if alarm.firing:
                model.alarms_counted[alarm.kind] = model.alarms_counted.get(alarm.kind, 0) + 1
            about = {"kind": alarm.kind, "firing": alarm.firing, "row": alarm.row, "time": iso(alarm.time)}
            self.events.publish("alarm", {"model": model.name, **about, "detail": alarm.detail})

    def count(self, path: str, status: int) -> None:
        """A request that was answered."""
        self.requests[status] = self.requests.get(status, 0) + 1

    # --- start and stop -----------------------------------------------------------------------------------------------

    def restore(self) -> None:
        """The models as they were, from checkpoints and the log."""
        for registered in self.database.models():
            try:
                settings = msgspec.json.decode(registered.settings, type=ModelSettings)
                model = ServedModel(registered, settings)
                entries = model.restore(self.database, self.log)
            except Exception as error:
                logger.exception("%s is set aside: it cannot be restored", registered.name)
                self.broken[registered.name] = registered.id, f"{type(error).__name__}: {error}"[:200]
                continue
            self.log.answered(model, entries)
            model.n_learnt = 0
            self.models[model.name] = model
            logger.info("%s: %d rows, %d of them replayed", model.name, model.model.n_rows, model.rows_since)
        try:
            self.log.tidy()
        except Problem as problem:
            logger.error("%s", problem.detail)
        for model in self.models.values():
            model.n_waiting = self.waiting.count(model.number)

    async def start(self) -> None:
        self.events.start()
        self._ticking = asyncio.create_task(self._tick())

    async def stop(self) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
        self.events.stop()
        for batches in (self.predicts, self.waits, self.learns):
            await batches.finish()
        for model in self.models.values():
            if model.bytes_since:
                await self.save(model)
        self.compute.stop()
        self.disk.stop()
        self.database.close()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            try:
                for model, alarms in await self.compute(_late_labels, list(self.models.values())):
                    self.publish(model, alarms)
                for model, n in await self.disk(self.waiting.expire, list(self.models.values())):
                    self._expired(model, n)
                await self.disk(self.log.tidy, 500)
            except Problem:
                # The store has said so already.
                continue
            except Exception:
                logger.exception("looking at waiting rows failed")

    def _trouble(self, trouble: str | None) -> None:
        if trouble is None:
            logger.info("the store is well again")
        else:
            logger.error("the store is %s", trouble)
        self.events.publish("store", {"full": trouble is not None})


def _by_model(requests: Iterable[Any]) -> list[tuple[ServedModel, list[Any]]]:
    """Those that are not refused."""
    found: dict[ServedModel, list[Any]] = {}
    for request in requests:
        if request.problem is None:
            found.setdefault(request.model, []).append(request)
    return list(found.items())


def _late_labels(models: list[ServedModel]) -> list[tuple[ServedModel, list[Alarm]]]:
    return [(model, model.late_labels()) for model in models]
