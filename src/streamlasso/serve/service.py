"""The service without HTTP: models by name, for coroutines."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamlasso.serve.engine import Engine
from streamlasso.serve.events import Events
from streamlasso.serve.jobs import Awaited, Gatherer, Promise, logger
from streamlasso.serve.live import Entry, LearnJob, Live, PredictJob
from streamlasso.serve.problems import Problem
from streamlasso.serve.rows import Row
from streamlasso.serve.settings import ModelSettings, checked_name
from streamlasso.serve.store import Store
from streamlasso.serve.writer import Writer

#: Requests that wait, of each kind, at most; and models.
MOST_QUEUED, MOST_MODELS = 2000, 10_000
#: Seconds between looks at waiting rows and late labels.
TICK = 2.0


class Service:
    """Learns and predicts. `start` replays the log; `stop` leaves a checkpoint of every model.

    A request to learn goes from the loop to the writer, which puts it on disk, to the engine, which learns it, and
    back. One that predicts goes to the engine and back, and to the writer only if its row is to wait for a label.
    """

    def __init__(self, folder: Path) -> None:
        self.events = Events()
        self.store = Store(folder)
        self.writer = Writer(self.store, self._full)
        self.engine = Engine(self.writer, self.events.publish)
        self.models: dict[str, Live] = {}
        self.learns: Gatherer[LearnJob] = Gatherer(self._log, MOST_QUEUED)
        self.predicts: Gatherer[PredictJob] = Gatherer(self._predict, MOST_QUEUED)
        self.started = time.time()
        self.requests: dict[int, int] = {}
        self.registry = asyncio.Lock()
        self._ticking: asyncio.Task[None] | None = None

    # --- start and stop -----------------------------------------------------------------------------------------------

    def replay(self) -> None:
        """The models as they were, from checkpoints and the log."""
        self._replay()
        self.writer.flush()
        for live in self.models.values():
            live.n_waiting = self.store.n_waiting(live.number)

    def _replay(self) -> None:
        for registered in self.store.models():
            live, answers = Live.replayed(self.store, registered)
            self.models[live.name] = live
            self.writer.answered.extend(answers)
            for answer in answers:
                entry = Entry(None, answer.id, answer.label)
                entry.seq, entry.answer = answer.seq, answer.answer
                self.writer.inflight[answer.model, answer.id] = entry
            logger.info("%s: %d rows, %d of them replayed", live.name, live.model.n_rows, live.rows_since)

    async def start(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.events.start()
        self.writer.start()
        self.engine.start()
        self._ticking = asyncio.create_task(self._tick())

    async def stop(self) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
        self.events.stop()
        await asyncio.to_thread(self._finish)

    def _finish(self) -> None:
        self.engine.put(self.engine.save_all, list(self.models.values()))
        self.engine.finish()
        self.writer.finish()
        self.store.close()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            lives = list(self.models.values())
            self.engine.put(self.engine.look_for_labels, lives)
            self.writer.put(self.writer.expire, lives, self.engine.expired)
            self.writer.put(self.writer.tidy)

    def count(self, path: str, status: int) -> None:
        """A request that was answered."""
        self.requests[status] = self.requests.get(status, 0) + 1

    def _full(self, full: bool) -> None:
        (logger.error if full else logger.info)("the store %s", "is full" if full else "has room again")
        self.events.publish("store", {"full": full})

    # --- models -------------------------------------------------------------------------------------------------------

    def live(self, name: str) -> Live:
        """The model of this name."""
        found = self.models.get(name)
        if found is None:
            raise Problem(404, f"there is no model of this name: PUT /models/{name[:100]} makes one")
        return found

    async def create(self, name: str, settings: ModelSettings) -> bool:
        """Whether it is new."""
        checked_name(name)
        settings.check()
        async with self.registry:
            return await self._create(name, settings)

    async def _create(self, name: str, settings: ModelSettings) -> bool:
        if name in self.models:
            if self.models[name].settings != settings:
                raise Problem(409, f"the model {name!r} has other settings: delete it first, or use another name")
            return False
        if len(self.models) >= MOST_MODELS:
            raise Problem(507, f"there are {MOST_MODELS:,} models, the most that a service has: delete some")
        promise = Promise()
        self.writer.put(self.writer.create, name, settings, promise, lambda live: None)
        live = await promise.future
        self.models[name] = live
        self.events.publish("model", {"model": name, "what": "created"})
        return True

    async def delete(self, name: str) -> None:
        async with self.registry:
            live, promise = self.live(name), Promise()
            self.writer.put(self.writer.delete, live, promise)
            await promise.future
            self.models.pop(name, None)
        self.events.publish("model", {"model": name, "what": "deleted"})

    # --- rows ---------------------------------------------------------------------------------------------------------

    async def learn(self, name: str, entries: list[Entry]) -> list[bytes]:
        """The answer to each entry."""
        promise = Promise()
        self.start_learning(name, entries, promise)
        return await promise.future

    def start_learning(self, name: str, entries: list[Entry], awaited: Awaited) -> None:
        """The answer to each entry goes to `awaited`."""
        if not self.learns.add(LearnJob(self.live(name), entries, awaited)):
            raise _busy()

    async def predict(self, name: str, rows: list[Row], ids: list[str] | None = None) -> list[dict[str, Any]]:
        """The answer to each row."""
        promise = Promise()
        self.start_predicting(name, rows, ids, promise)
        return await promise.future

    def start_predicting(self, name: str, rows: list[Row], ids: list[str] | None, awaited: Awaited) -> None:
        """The answer to each row goes to `awaited`."""
        if not self.predicts.add(PredictJob(self.live(name), rows, ids, awaited)):
            raise _busy()

    def _log(self, jobs: list[LearnJob]) -> None:
        self.writer.put(self.writer.log, jobs, self._learn)

    def _learn(self, jobs: list[LearnJob]) -> None:
        """On the writer's thread."""
        self.engine.put(self.engine.learn, jobs, self.learns.done, self.loop)

    def _predict(self, jobs: list[PredictJob]) -> None:
        self.engine.predict(jobs, self.predicts.done)

    async def waiting_row(self, live: Live, id: str) -> tuple[bytes, bytes] | None:
        promise = Promise()
        self.writer.put(self.writer.row_of, live, id, promise)
        return await promise.future

    async def look(self, function: Callable[[], Any]) -> Any:
        """Call a function that looks at models, between two batches."""
        promise = Promise()
        self.engine.put(self.engine.call, function, promise)
        return await promise.future


def _busy() -> Problem:
    return Problem(503, f"{MOST_QUEUED:,} requests wait already: try again in a second", retry_after=1)
