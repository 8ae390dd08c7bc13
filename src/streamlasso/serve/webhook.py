"""Alarms to an address of the user's."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

import msgspec

from streamlasso.serve.jobs import Worker, logger

#: Attempts, seconds before each further one, and seconds that an answer may take.
PAUSES, PATIENCE = (0.0, 1.0, 5.0, 25.0), 10.0
#: Alarms that may wait.
MOST_WAITING = 1000


class Webhook(Worker):
    """Posts every alarm as JSON; one that cannot be delivered is logged and dropped."""

    def __init__(self, address: str) -> None:
        super().__init__("webhook")
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("--webhook must be an address like https://example.org/alarms")
        self.address, self.host = address, parts.hostname
        self.n_waiting = 0

    def __call__(self, kind: str, data: dict[str, Any]) -> None:
        """For `Events.hooks`."""
        if kind in ("alarm", "store") and self.n_waiting < MOST_WAITING:
            self.n_waiting += 1
            self.put(self._deliver, msgspec.json.encode({"event": kind, **data}))

    def _deliver(self, body: bytes) -> None:
        self.n_waiting -= 1
        headers = {"Content-Type": "application/json", "User-Agent": "streamlasso"}
        for pause in PAUSES:
            time.sleep(pause)
            try:
                request = urllib.request.Request(self.address, body, headers, method="POST")
                with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                    answer.read(1024)
                return
            except (OSError, urllib.error.HTTPError) as error:
                # The address may hold a secret: only the host is told.
                logger.warning("an alarm could not be posted to %s: %s", self.host, type(error).__name__)
        logger.error("an alarm was dropped: %s does not take it", self.host)
