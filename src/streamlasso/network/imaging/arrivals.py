"""Files that arrive in a folder: waited for until they are whole, and handed on in the order of their numbers.

Time is an argument everywhere here, so that nothing has to be waited for to be tested.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from types import TracebackType
from typing import Any

from streamlasso.network.imaging.extras import needs_fmri
from streamlasso.network.imaging.nifti import is_nifti
from streamlasso.network.imaging.series import named
from streamlasso.network.imaging.volumes import Reading, Refused, Unreadable, is_volume, number_of

#: Seconds for which a file must not have grown before it is read, where nobody says that it was closed.
SETTLED = 0.2
#: Seconds between two looks at the folder, if nothing wakes the watcher: some network drives report no changes.
INTERVAL = 0.1
#: A number further ahead than this is a mistake, not a gap.
MOST_MISSING = 1000
# What watchdog says to its own log while it stops is of no use to whoever scans.
logging.getLogger("watchdog").addHandler(logging.NullHandler())


@dataclass(frozen=True)
class Arrival:
    """A volume in its turn: its number, its file, what was read, and when its last byte was seen."""

    number: int
    path: Path
    reading: Reading
    complete: float


@dataclass(frozen=True)
class Notice:
    """Something went wrong, in words; the scan goes on. `kind` is a word for tables."""

    kind: str
    words: str


@dataclass
class _Pending:
    """A file that has not been read yet: its size and time of change, since when they are so, and what went wrong."""

    look: tuple[int, int]
    since: float
    tried: tuple[int, int] | None = None
    error: str = ""


@dataclass
class Arrivals:
    """The state of a watched folder. `look(now)` says what has come in the meantime.

    read : a file -> the volumes that are whole by it; `Unreadable` means not yet, or never: it is tried again whenever
        the file changes
    came : the number of a volume that does not come -> what came of it, in words, if anything did
    patience : seconds that a missing volume is waited for once a later one is there, and a broken file to be mended
    """

    folder: Path
    read: Callable[[Path], Sequence[Reading]]
    patience: float = 5.0
    pattern: str = "*"
    expected: int | None = None
    series: str | None = None
    came: Callable[[str | None, int], str] = lambda series, number: ""
    _pending: dict[Path, _Pending] = field(default_factory=dict)
    _known: dict[str, tuple[int, int]] = field(default_factory=dict)
    _ready: dict[int, Arrival | None] = field(default_factory=dict)
    _others: set[str] = field(default_factory=set)
    _gap: float | None = None
    _lost_folder: bool = False
    _last: int = 0

    @property
    def waiting(self) -> bool:
        """Whether something that has come is not dealt with yet."""
        return bool(self._pending or self._ready)

    def look(self, now: float, closed: frozenset[Path] = frozenset()) -> Iterator[Arrival | Notice]:
        """Volumes in the order of their numbers, and notices. `closed` are files that their writer has closed."""
        try:
            self._find(now)
        except OSError as error:
            # A network drive may come back.
            if not self._lost_folder:
                yield Notice("folder", f"{self.folder}: cannot be looked into ({error.strerror}); waiting for it")
            self._lost_folder = True
            return
        self._lost_folder = False
        for path in sorted(closed):
            yield from self._rewritten(path)
        # The first volume fixes series and grid: a later one, closed just now, must not overtake those that lie there.
        first = min(self._pending, key=_in_order, default=None)
        for path in sorted(self._pending, key=_in_order):
            yield from self._try(path, now, path in closed and (self.series is not None or path == first))
            yield from self._release(now)
        yield from self._release(now)

    def _find(self, now: float) -> None:
        """New files, and how those that are not read yet have grown."""
        there = {}
        with os.scandir(self.folder) as entries:
            for entry in entries:
                if entry.name in self._known:
                    continue
                path = Path(entry.path)
                if is_volume(path) and fnmatch(entry.name, self.pattern):
                    try:
                        status = entry.stat()
                    except FileNotFoundError:
                        continue
                    there[path] = _look_of(status)
        for gone in self._pending.keys() - there.keys():
            del self._pending[gone]
        for path, look in there.items():
            pending = self._pending.get(path)
            if pending is None or pending.look != look:
                tried = pending.tried if pending else None
                self._pending[path] = _Pending(look, now, tried, pending.error if pending else "")

    def _try(self, path: Path, now: float, closed: bool) -> Iterator[Notice]:
        pending = self._pending[path]
        settled = now - pending.since >= SETTLED
        if pending.tried != pending.look and (closed or settled):
            pending.tried = pending.look
            try:
                readings = self.read(path)
            except Unreadable as error:
                pending.error = str(error)
            except FileNotFoundError:
                del self._pending[path]
                return
            except Refused as error:
                self._done(path)
                yield from self._refuse(path, error)
                return
            else:
                self._done(path)
                for reading in readings:
                    yield from self._take(path, reading, pending.since)
                return
        if pending.tried == pending.look and now - pending.since >= self.patience:
            self._done(path)
            if is_nifti(path):
                self._lose(*number_of(path))
            yield Notice(
                "unreadable", f"{path.name}: damaged or cut short, and no longer growing ({pending.error}); left out"
            )

    def _done(self, path: Path) -> None:
        self._known[path.name] = self._pending.pop(path).look

    def _rewritten(self, path: Path) -> Iterator[Notice]:
        """A file that was dealt with, and is another now: the next scan, perhaps, under the same names."""
        try:
            look = _look_of(path.stat())
        except OSError:
            return
        if self._known.get(path.name, look) != look:
            self._known[path.name] = look
            yield Notice(
                "changed",
                f"{path.name}: written anew after it was read; not read again. Give every scan its own folder",
            )

    def _lose(self, series: str | None, number: int | None) -> None:
        """The volume of that number will not come; nobody has to wait for it."""
        if series == self.series and number is not None and self.expected is not None and number >= self.expected:
            self._ready.setdefault(number, None)

    def _refuse(self, path: Path, error: Refused) -> Iterator[Notice]:
        if None not in (error.series, self.series) and error.series != self.series:
            yield from self._pass_over(path, str(error.series))
            return
        self._lose(error.series, error.number)
        yield Notice("refused", f"{path.name}: {error}; left out")

    def _pass_over(self, path: Path, series: str) -> Iterator[Notice]:
        """Said once a series."""
        if series not in self._others:
            self._others.add(series)
            yield Notice(
                "other series",
                f"{path.name}: a second series ({series or 'without a name'}) beside {self.series or 'the first'}; "
                "only the first is followed. Choose one by the names of its files: --pattern",
            )

    def _take(self, path: Path, reading: Reading, complete: float) -> Iterator[Notice]:
        if self.series is None:
            self.series = reading.series
        if reading.series != self.series:
            yield from self._pass_over(path, reading.series)
            return
        number = self._last + 1 if reading.number is None else reading.number
        self._last = max(self._last, number)
        if self.expected is not None and number < self.expected:
            yield Notice("late", f"{path.name}: volume {number} came after it was given up, or twice; left out")
        elif self._ready.get(number) is not None:
            yield Notice("twice", f"{path.name}: volume {number} came twice; the first is kept")
        else:
            self._ready[number] = Arrival(number, path, reading, complete)

    def _release(self, now: float) -> Iterator[Arrival | Notice]:
        while self._ready:
            first = min(self._ready)
            if first != self.expected and not (self.expected is None and first <= 1):
                self._gap = now if self._gap is None else self._gap
                if now - self._gap < self.patience or self._still_growing(now):
                    return
                if self.expected is not None and first - self.expected > MOST_MISSING:
                    del self._ready[first]
                    yield Notice("stray", f"volume {first} is far ahead of volume {self.expected}; left out")
                    continue
                yield self._missing(first)
            self._gap = None
            self.expected = first + 1
            arrival = self._ready.pop(first)
            if arrival is not None:
                yield arrival

    def _still_growing(self, now: float) -> bool:
        """Whether the volume that is waited for is being written."""
        return any(
            number_of(path)[1] == self.expected and now - pending.since < self.patience
            for path, pending in self._pending.items()
        )

    def _missing(self, first: int) -> Notice:
        if self.expected is None:
            return Notice("start", f"the first volume that came is number {first}; the scan starts there")
        lost = f"volume {self.expected}" if first == self.expected + 1 else f"volumes {self.expected} to {first - 1}"
        came = [
            f"{words} of volume {k} did" for k in range(self.expected, first) if (words := self.came(self.series, k))
        ]
        some = f" ({named(came, 5)})" if came else ""
        return Notice("missing", f"{lost} did not come within {self.patience:g} s{some}; left out")


def _look_of(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


def _in_order(path: Path) -> tuple[str, int]:
    series, number = number_of(path)
    return series, -1 if number is None else number


# --- waking up --------------------------------------------------------------------------------------------------------


class FolderWatch:
    """Wakes whoever waits when something happens in a folder, and says which files were closed; by watchdog."""

    def __init__(self, folder: Path) -> None:
        observers, events = needs_fmri("watchdog.observers"), needs_fmri("watchdog.events")
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
        # Our own looks open and close the files too: those events are not news.
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
        """Until something happens, but not for longer; the files that were closed since."""
        self._changed.wait(seconds)
        self._changed.clear()
        with self._lock:
            closed, self._closed = frozenset(self._closed), set()
        return closed


def arrivals_of(arrivals: Arrivals, watch: FolderWatch) -> Iterator[Arrival | Notice | None]:
    """For ever: what comes, as it comes; None after each look, so that whoever listens can stop."""
    closed: frozenset[Path] = frozenset()
    while True:
        yield from arrivals.look(time.monotonic(), closed)
        yield None
        closed = watch.wait()
