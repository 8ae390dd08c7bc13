"""Alarms to an address of the user's."""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from queue import Full, Queue
from typing import Any
from urllib.parse import urlsplit

import msgspec

from streamlasso.serve.batches import logger

#: Seconds before each attempt, and seconds that an answer may take.
PAUSES, TIMEOUT = (0.0, 1.0, 5.0, 25.0), 10.0
#: Alarms that may wait.
MOST_WAITING = 1000


class Webhook:
    """Posts every alarm as JSON; one that cannot be delivered is logged and dropped."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("--webhook must be an address like https://example.org/alarms")
        self.address, self.host = address, parts.hostname
        self.waiting: Queue[bytes] = Queue(MOST_WAITING)
        threading.Thread(target=self._deliver_all, name="streamlasso-webhook", daemon=True).start()

    def __call__(self, kind: str, data: dict[str, Any]) -> None:
        """For `Events.hooks`."""
        if kind in ("alarm", "store"):
            try:
                self.waiting.put_nowait(msgspec.json.encode({"event": kind, **data}))
            except Full:
                logger.error("an alarm was dropped: too many wait for %s", self.host)

    def _deliver_all(self) -> None:
        while True:
            self._deliver(self.waiting.get())

    def _deliver(self, body: bytes) -> None:
        headers = {"Content-Type": "application/json", "User-Agent": "streamlasso"}
        for pause in PAUSES:
            time.sleep(pause)
            try:
                request = urllib.request.Request(self.address, body, headers, method="POST")
                with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                    answer.read(1024)
                return
            except (OSError, urllib.error.HTTPError) as error:
                # The address may hold a secret: only the host is logged.
                logger.warning("an alarm could not be posted to %s: %s", self.host, type(error).__name__)
        logger.error("an alarm was dropped: %s does not take it", self.host)
