"""The clock and the file system of a watched folder: `Arrivals` is polled when something happens there."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from streamlasso.network.imaging.arrivals import Arrival, Arrivals, Notice
from streamlasso.network.imaging.extras import import_fmri

#: Seconds between two polls without an event: some network drives report no changes.
INTERVAL = 0.1
# What watchdog logs while it stops is of no use here.
logging.getLogger("watchdog").addHandler(logging.NullHandler())


class FolderWatch:
    """Waits for events in a folder, by watchdog, and returns the files that were closed."""

    def __init__(self, folder: Path) -> None:
        observers, events = import_fmri("watchdog.observers"), import_fmri("watchdog.events")
        self._changed = threading.Event()
        self._closed: set[Path] = set()
        self._lock = threading.Lock()
        watch = self

        class Handler(events.FileSystemEventHandler):  # type: ignore[name-defined]
            def on_any_event(self, event: Any) -> None:
                watch._note(event)

        self._observer = observers.Observer()
        self._observer.schedule(Handler(), str(folder))

    def _note(self, event: Any) -> None:
        # Reading the files ourselves causes these.
        if event.event_type in ("opened", "closed_no_write"):
            return
        with self._lock:
            if event.event_type == "closed":
                self._closed.add(Path(os.fsdecode(event.src_path)))
            elif event.event_type == "moved":
                self._closed.add(Path(os.fsdecode(event.dest_path)))
        self._changed.set()

    def __enter__(self) -> FolderWatch:
        self._observer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._observer.stop()
        self._observer.join()

    def wait(self, seconds: float = INTERVAL) -> frozenset[Path]:
        """Wait for an event, at most this long; the files closed since the last call."""
        self._changed.wait(seconds)
        self._changed.clear()
        with self._lock:
            closed, self._closed = frozenset(self._closed), set()
        return closed


def watch_arrivals(arrivals: Arrivals, watch: FolderWatch) -> Iterator[Arrival | Notice | None]:
    """Forever: what arrives, as it arrives; None after each poll, so that the caller can stop."""
    closed: frozenset[Path] = frozenset()
    while True:
        yield from arrivals.poll(time.monotonic(), closed)
        yield None
        closed = watch.wait()
