"""What a listener is sent: events as they come, and new rows at a steady pace."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

from streamlasso.serve import telling
from streamlasso.serve.events import Events
from streamlasso.serve.live import Live
from streamlasso.serve.service import Service

#: Seconds between two pictures of new rows, and between signs of life.
PACE, ALIVE = 0.05, 10.0


async def followed(
    service: Service, queue: asyncio.Queue[bytes | None], models: frozenset[str]
) -> AsyncIterator[bytes]:
    """Encoded events, until the service stops or the listener is too slow."""
    shown = {live: live.model.history.n_rows for live in _followed(service, models)}
    told = time.monotonic()
    try:
        yield b"retry: 1000\n\n"
        while True:
            begun = time.monotonic()
            text = await _news(service, models, shown)
            while not queue.empty():
                event = queue.get_nowait()
                if event is None:
                    return
                text += event
            if not text and begun - told > ALIVE:
                text = b": alive\n\n"
            if text:
                told = begun
                yield text
            await asyncio.sleep(max(PACE - (time.monotonic() - begun), 0.01))
    finally:
        service.events.leave(queue)


def _followed(service: Service, models: frozenset[str]) -> list[Live]:
    return [live for name, live in service.models.items() if not models or name in models]


async def _news(service: Service, models: frozenset[str], shown: dict[Live, int]) -> bytes:
    """The rows since those that were shown."""
    lives = _followed(service, models)
    new = [live for live in lives if live.model.history.n_rows > shown.setdefault(live, 0)]
    if not new:
        return b""

    def look() -> bytes:
        text = b""
        for live in new:
            event = telling.news(live, shown[live])
            shown[live] = event["n_rows"]
            text += Events.encoded("rows", event, None)
        return text

    return await service.look(look)
