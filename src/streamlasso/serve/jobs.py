"""What the threads of the service hand to each other, and how answers come back to the event loop."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

logger = logging.getLogger("streamlasso.serve")

Item = TypeVar("Item")


class Awaited:
    """An answer that another thread will give to someone on a loop."""

    loop: asyncio.AbstractEventLoop
    result: Any = None

    def keep(self) -> None:
        """Give the result, which may be an exception; on the loop. Does not raise."""
        raise NotImplementedError


class Promise(Awaited):
    """To a coroutine."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()

    def keep(self) -> None:
        if self.future.done():
            return
        if isinstance(self.result, BaseException):
            self.future.set_exception(self.result)
        else:
            self.future.set_result(self.result)


def keep_all(promises: Sequence[Awaited]) -> None:
    """From another thread: one call into the loop for all of them."""
    if promises:
        promises[0].loop.call_soon_threadsafe(_keep_all, promises)


def _keep_all(promises: Sequence[Awaited]) -> None:
    for promise in promises:
        promise.keep()


class Gatherer(Generic[Item]):
    """Gathers items while those before are worked on, and hands over all of them at once: one batch at a time.

    `work(items)` starts the work; `done`, on the loop, says that it has ended. Under load batches grow by themselves,
    so that what costs as much for one as for many, such as a sync of the disk, is shared.
    """

    def __init__(self, work: Callable[[list[Item]], None], most: int) -> None:
        self.work, self.most = work, most
        self.items: list[Item] = []
        self.busy = self.scheduled = False

    def add(self, item: Item) -> bool:
        """On the loop; False if too many wait already."""
        if len(self.items) >= self.most:
            return False
        self.items.append(item)
        if not self.busy and not self.scheduled:
            self.scheduled = True
            asyncio.get_running_loop().call_soon(self._start)
        return True

    def done(self) -> None:
        self.busy = False
        if self.items and not self.scheduled:
            self._start()

    def _start(self) -> None:
        self.scheduled = False
        if self.items and not self.busy:
            items, self.items = self.items, []
            self.busy = True
            self.work(items)


class Worker(threading.Thread):
    """A thread that does one thing after the other, in order."""

    def __init__(self, name: str) -> None:
        super().__init__(name=f"streamlasso-{name}", daemon=True)
        self._queue: SimpleQueue[tuple[Callable[..., None], tuple[Any, ...]] | None] = SimpleQueue()

    def put(self, work: Callable[..., None], *arguments: Any) -> None:
        self._queue.put((work, arguments))

    def run(self) -> None:
        while (job := self._queue.get()) is not None:
            work, arguments = job
            try:
                work(*arguments)
            except Exception:
                logger.exception("%s failed in %s", getattr(work, "__name__", work), self.name)

    def finish(self) -> None:
        """Do what is queued, then end."""
        self._queue.put(None)
        self.join()
