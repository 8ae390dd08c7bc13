"""Requests that come together are worked on together; each kind of work has a thread of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

from streamlasso.serve.limits import MOST_QUEUED
from streamlasso.serve.problems import Problem

logger = logging.getLogger("streamlasso.serve")


class Request:
    """What is asked of a model, with a place for the answer: that, or a Problem."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.problem: Problem | None = None
        self.future: asyncio.Future[None]

    def finish(self) -> None:
        """Wake the tasks that wait; on the event loop."""
        if not self.future.done():
            self.future.set_result(None)


Kind = TypeVar("Kind", bound=Request)


class Batches(Generic[Kind]):
    """While a batch is worked on, the requests that come form the next one. So under load batches grow by themselves,
    and what costs as much for one request as for many, such as a sync of the disk, is shared.

    `work(requests)` may return requests that are to come first in the next batch.
    """

    def __init__(self, work: Callable[[list[Kind]], Awaitable[list[Kind] | None]]) -> None:
        self.work = work
        self.waiting: list[Kind] = []
        self.task: asyncio.Task[None] | None = None

    async def add(self, request: Kind) -> Kind:
        """The request, when it is done."""
        if len(self.waiting) >= MOST_QUEUED:
            raise Problem(503, f"{MOST_QUEUED:,} requests wait already: try again in a second", retry_after=1)
        request.future = asyncio.get_running_loop().create_future()
        self.waiting.append(request)
        if self.task is None:
            self.task = asyncio.create_task(self._work())
        await request.future
        if request.problem is not None:
            raise request.problem.again()
        return request

    async def finish(self) -> None:
        """Wait until nothing is left to do."""
        while self.task is not None:
            await asyncio.wait([self.task])

    async def _work(self) -> None:
        while self.waiting:
            requests, self.waiting = self.waiting, []
            later: list[Kind] = []
            try:
                later = await self.work(requests) or []
            except Problem as problem:
                _refuse(requests, problem)
            except Exception:
                logger.exception("a batch of requests failed")
                _refuse(requests, Problem(500, "the service failed: nothing was acknowledged; its log says why"))
            self.waiting[:0] = later
            for request in requests:
                if request not in later:
                    request.finish()
        self.task = None


def _refuse(requests: list[Any], problem: Problem) -> None:
    for request in requests:
        request.problem = request.problem or problem


class OneThread:
    """Calls functions one after the other, from the event loop: in a thread of its own, or at once where that has
    nothing to do and the call is short, since to wake a thread takes longer than to predict a row."""

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(1, f"streamlasso-{name}")
        self._n_running = 0

    async def __call__(self, function: Callable[..., Any], *arguments: Any, is_short: bool = False) -> Any:
        if is_short and not self._n_running:
            return function(*arguments)
        self._n_running += 1
        future = asyncio.get_running_loop().run_in_executor(self._executor, function, *arguments)
        future.add_done_callback(self._ended)
        # Who waits may be cancelled; the thread goes on.
        return await asyncio.shield(future)

    def _ended(self, _: asyncio.Future[Any]) -> None:
        self._n_running -= 1

    def stop(self) -> None:
        """After what was asked for."""
        self._executor.shutdown()
