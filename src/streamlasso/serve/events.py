"""Server-sent events: what happens, for whoever listens."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Any

import msgspec

#: Events that are kept for listeners that were away, events that a slow listener may be behind, and listeners.
MOST_KEPT, MOST_BEHIND, MOST_LISTENERS = 1000, 1000, 100
#: Refusals that are told in a second.
REFUSALS_A_SECOND = 5
#: Kinds that a listener who was away is told.
KEPT = ("alarm", "model", "expired", "store")


class Events:
    """Publishes events from any thread to the listeners of a loop.

    >>> Events().encoded("alarm", {"model": "a"}, 7)
    b'id: 7\\nevent: alarm\\ndata: {"model":"a"}\\n\\n'
    """

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.kept: deque[tuple[int, str | None, bytes]] = deque(maxlen=MOST_KEPT)
        self.listeners: dict[asyncio.Queue[bytes | None], frozenset[str]] = {}
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

    def listen(self, models: frozenset[str], after: int | None) -> asyncio.Queue[bytes | None] | None:
        """A queue of encoded events of these models, or of all; first those missed. None if too many listen."""
        if len(self.listeners) >= MOST_LISTENERS:
            return None
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(MOST_BEHIND)
        for number, model, text in self.kept:
            if after is not None and number > after and (not models or model is None or model in models):
                _put(queue, text)
        self.listeners[queue] = models
        return queue

    def leave(self, queue: asyncio.Queue[bytes | None]) -> None:
        self.listeners.pop(queue, None)


def _put(queue: asyncio.Queue[bytes | None], text: bytes | None) -> None:
    """One who is too far behind is cut off, and comes again."""
    if queue.full():
        while not queue.empty():
            queue.get_nowait()
        queue.put_nowait(None)
        return
    queue.put_nowait(text)
