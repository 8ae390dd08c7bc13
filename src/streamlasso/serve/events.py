"""Server-sent events: what happens, for whoever listens."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import msgspec

from streamlasso.serve import describe
from streamlasso.serve.limits import MOST_EVENTS, MOST_LISTENERS
from streamlasso.serve.problems import Problem

if TYPE_CHECKING:
    from streamlasso.serve.served_model import ServedModel
    from streamlasso.serve.service import Service

#: Refusals that are told in a second.
REFUSALS_A_SECOND = 5
#: Kinds that a listener who was away gets.
KEPT = ("alarm", "model", "expired", "store")
#: Seconds between two pictures of new rows, and between signs of life.
PACE, ALIVE = 0.05, 10.0

#: Encoded events of a listener; None ends it.
Queue = asyncio.Queue[bytes | None]


class Events:
    """Publishes events from any thread to the listeners of a loop.

    >>> Events().encoded("alarm", {"model": "a"}, 7)
    b'id: 7\\nevent: alarm\\ndata: {"model":"a"}\\n\\n'
    """

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.kept: deque[tuple[int, str | None, bytes]] = deque(maxlen=MOST_EVENTS)
        self.listeners: dict[Queue, frozenset[str]] = {}
        self.hooks: list[Any] = []
        # Later than any number of an earlier service.
        self.n = int(time.time() * 1000)
        self._refusals = deque([0.0] * REFUSALS_A_SECOND, maxlen=REFUSALS_A_SECOND)

    def start(self) -> None:
        self.loop = asyncio.get_running_loop()

    def stop(self) -> None:
        """Ends all listeners."""
        for queue in self.listeners:
            _put(queue, None)

    def publish(self, kind: str, data: dict[str, Any]) -> None:
        """From any thread."""
        if kind == "refused":
            now = time.monotonic()
            if now - self._refusals[0] < 1.0:
                return
            self._refusals.append(now)
        for hook in self.hooks:
            hook(kind, data)
        if self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._send, kind, data)

    def _send(self, kind: str, data: dict[str, Any]) -> None:
        number, model = None, data.get("model")
        if kind in KEPT:
            self.n = number = self.n + 1
        text = self.encoded(kind, data, number)
        if number is not None:
            self.kept.append((number, model, text))
        for queue, models in self.listeners.items():
            if not models or model is None or model in models:
                _put(queue, text)

    @staticmethod
    def encoded(kind: str, data: dict[str, Any], number: int | None) -> bytes:
        id = b"" if number is None else b"id: %d\n" % number
        return id + b"event: " + kind.encode() + b"\ndata: " + msgspec.json.encode(data) + b"\n\n"

    def listen(self, models: frozenset[str], after: int | None) -> Queue:
        """A queue of the events of these models, or of all; first those after a number."""
        if len(self.listeners) >= MOST_LISTENERS:
            raise Problem(503, "too many listen already: try again later", retry_after=10)
        queue: Queue = asyncio.Queue(MOST_EVENTS)
        for number, model, text in self.kept:
            if after is not None and number > after and (not models or model is None or model in models):
                _put(queue, text)
        self.listeners[queue] = models
        return queue


def _put(queue: Queue, text: bytes | None) -> None:
    """A listener who is too far behind is cut off, and comes again."""
    if queue.full():
        while not queue.empty():
            queue.get_nowait()
        text = None
    queue.put_nowait(text)


def followed(service: Service, models: frozenset[str], after: int | None) -> AsyncIterator[bytes]:
    """Encoded events, and new rows at a steady pace, until the service stops or the listener is too slow."""
    return _followed(service, models, service.events.listen(models, after))


async def _followed(service: Service, models: frozenset[str], queue: Queue) -> AsyncIterator[bytes]:
    shown = {model: model.model.monitor.history.n_rows for model in _of(service, models)}
    last = time.monotonic()
    try:
        yield b"retry: 1000\n\n"
        while True:
            begun = time.monotonic()
            text = await _new_rows(service, models, shown)
            while not queue.empty():
                event = queue.get_nowait()
                if event is None:
                    return
                text += event
            if not text and begun - last > ALIVE:
                text = b": alive\n\n"
            if text:
                last = begun
                yield text
            await asyncio.sleep(max(PACE - (time.monotonic() - begun), 0.01))
    finally:
        service.events.listeners.pop(queue, None)


def _of(service: Service, models: frozenset[str]) -> list[ServedModel]:
    return [model for name, model in service.models.items() if not models or name in models]


async def _new_rows(service: Service, models: frozenset[str], shown: dict[ServedModel, int]) -> bytes:
    """The rows since those that were shown."""
    new = [model for model in _of(service, models) if model.model.monitor.history.n_rows > shown.setdefault(model, 0)]

    def look() -> bytes:
        text = b""
        for model in new:
            event = describe.news(model, shown[model])
            shown[model] = event["n_rows"]
            text += Events.encoded("rows", event, None)
        return text

    return await service.look(look) if new else b""
