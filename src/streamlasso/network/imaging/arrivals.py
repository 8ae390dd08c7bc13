"""Files that arrive in a folder: read once they are complete, and handed on in the order of their numbers.

The time is an argument of everything here, so that tests need not wait.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from streamlasso.network.imaging.nifti import is_nifti
from streamlasso.network.imaging.volumes import Reading, Refused, Unreadable, is_volume, number_of

#: Seconds without growth after which a file is read, unless it is known to be closed.
SETTLED = 0.2
#: A number further ahead than this is an error, not a gap.
MAX_GAP = 1000

#: Size and time of change of a file.
Signature = tuple[int, int]


@dataclass(frozen=True)
class Arrival:
    """A volume in order: its number, its file, its region means, and when its file was complete."""

    number: int
    path: Path
    reading: Reading
    complete: float


@dataclass(frozen=True)
class Notice:
    """A problem that does not stop the scan. `kind` is a short word for tables."""

    kind: str
    text: str


@dataclass
class _Pending:
    """A file that has not been read yet.

    since : when it last changed
    tried : its signature when reading it was last tried, and the error
    """

    signature: Signature
    since: float
    tried: Signature | None = None
    error: str = ""


@dataclass
class Arrivals:
    """The state of a watched folder. `poll(now)` yields what has arrived since the last call.

    read : file -> its volume; after `Unreadable` it is tried again whenever the file changes
    patience : seconds to wait for a missing volume once a later one is there, or for a broken file to change
    """

    folder: Path
    read: Callable[[Path], Reading]
    patience: float = 5.0
    pattern: str = "*"
    expected: int | None = None
    series: str | None = None
    _pending: dict[Path, _Pending] = field(default_factory=dict)
    _done: set[str] = field(default_factory=set)
    _ready: dict[int, Arrival | None] = field(default_factory=dict)
    _other_series: set[str] = field(default_factory=set)
    _gap_since: float | None = None
    _folder_lost: bool = False
    _last: int = 0

    def poll(self, now: float, closed: frozenset[Path] = frozenset()) -> Iterator[Arrival | Notice]:
        """Volumes in the order of their numbers, and notices. `closed` are files that their writer has closed."""
        try:
            self._find(now)
        except OSError as error:
            # A network drive may come back.
            if not self._folder_lost:
                yield Notice("folder", f"{self.folder} cannot be read ({error.strerror}); waiting for it")
            self._folder_lost = True
            return
        self._folder_lost = False
        # The first volume fixes the series and the grid: a later one, closed just now, must not overtake it.
        first = min(self._pending, key=_order, default=None)
        for path in sorted(self._pending, key=_order):
            yield from self._try(path, now, path in closed and (self.series is not None or path == first))
            yield from self._release(now)
        yield from self._release(now)

    # --- files ------------------------------------------------------------------------------------------------------

    def _find(self, now: float) -> None:
        """Note new files, and those that have changed since the last call."""
        found = self._unread_files()
        for gone in self._pending.keys() - found.keys():
            del self._pending[gone]
        for path, signature in found.items():
            pending = self._pending.get(path)
            if pending is None:
                self._pending[path] = _Pending(signature, now)
            elif pending.signature != signature:
                pending.signature, pending.since = signature, now

    def _unread_files(self) -> dict[Path, Signature]:
        found = {}
        with os.scandir(self.folder) as entries:
            for entry in entries:
                # First, and by name: a folder holds thousands of files that were read.
                if entry.name in self._done or not fnmatch(entry.name, self.pattern):
                    continue
                path = Path(entry.path)
                if is_volume(path):
                    with suppress(FileNotFoundError):
                        found[path] = _signature(entry.stat())
        return found

    def _try(self, path: Path, now: float, closed: bool) -> Iterator[Notice]:
        """Read a file that is complete; give up one that is broken and no longer changes."""
        pending = self._pending[path]
        if pending.tried != pending.signature and (closed or now - pending.since >= SETTLED):
            pending.tried = pending.signature
            yield from self._read(path, pending)
        if path in self._pending and pending.tried == pending.signature and now - pending.since >= self.patience:
            self._finish(path)
            if is_nifti(path):
                self._skip(*number_of(path))
            yield Notice(
                "unreadable", f"{path.name}: damaged or truncated, and no longer growing ({pending.error}); left out"
            )

    def _read(self, path: Path, pending: _Pending) -> Iterator[Notice]:
        try:
            reading = self.read(path)
        except Unreadable as error:
            pending.error = str(error)
        except FileNotFoundError:
            del self._pending[path]
        except Refused as error:
            self._finish(path)
            yield from self._refuse(path, error)
        else:
            self._finish(path)
            yield from self._accept(path, reading, pending.since)

    def _finish(self, path: Path) -> None:
        self._done.add(path.name)
        del self._pending[path]

    # --- volumes ----------------------------------------------------------------------------------------------------

    def _accept(self, path: Path, reading: Reading, complete: float) -> Iterator[Notice]:
        if self.series is None:
            self.series = reading.series
        if reading.series != self.series:
            yield from self._ignore_series(path, reading.series)
            return
        number = self._last + 1 if reading.number is None else reading.number
        self._last = max(self._last, number)
        if self.expected is not None and number < self.expected:
            yield Notice("late", f"{path.name}: volume {number} is a duplicate, or came too late; left out")
        elif self._ready.get(number) is not None:
            yield Notice("twice", f"{path.name}: volume {number} came twice; the first is used")
        else:
            self._ready[number] = Arrival(number, path, reading, complete)

    def _refuse(self, path: Path, error: Refused) -> Iterator[Notice]:
        if None not in (error.series, self.series) and error.series != self.series:
            yield from self._ignore_series(path, str(error.series))
            return
        self._skip(error.series, error.number)
        yield Notice("refused", f"{path.name}: {error}; left out")

    def _ignore_series(self, path: Path, series: str) -> Iterator[Notice]:
        """One notice per series."""
        if series not in self._other_series:
            self._other_series.add(series)
            yield Notice(
                "other series",
                f"{path.name}: a second series ({series or 'without a name'}) beside {self.series or 'the first'}; "
                "only the first is used. Select a series by its file names: --pattern",
            )

    def _skip(self, series: str | None, number: int | None) -> None:
        """Do not wait for the volume of this number."""
        if series == self.series and number is not None and self.expected is not None and number >= self.expected:
            self._ready.setdefault(number, None)

    def _release(self, now: float) -> Iterator[Arrival | Notice]:
        """The volumes that are next in order; after a gap once patience is over."""
        while self._ready:
            first = min(self._ready)
            if first != self.expected and not (self.expected is None and first <= 1):
                self._gap_since = now if self._gap_since is None else self._gap_since
                if now - self._gap_since < self.patience or self._still_growing(now):
                    return
                if self.expected is not None and first - self.expected > MAX_GAP:
                    del self._ready[first]
                    yield Notice("stray", f"volume {first} is far ahead of volume {self.expected}; left out")
                    continue
                yield self._missing(first)
            self._gap_since = None
            self.expected = first + 1
            arrival = self._ready.pop(first)
            if arrival is not None:
                yield arrival

    def _still_growing(self, now: float) -> bool:
        """Whether the expected volume is being written."""
        return any(
            number_of(path)[1] == self.expected and now - pending.since < self.patience
            for path, pending in self._pending.items()
        )

    def _missing(self, first: int) -> Notice:
        if self.expected is None:
            return Notice("start", f"the first volume is number {first}; the scan starts there")
        missing = range(self.expected, first)
        numbers = f"volume {self.expected}" if len(missing) == 1 else f"volumes {self.expected} to {first - 1}"
        return Notice("missing", f"{numbers} did not arrive within {self.patience:g} s; left out")


def _signature(status: os.stat_result) -> Signature:
    return status.st_size, status.st_mtime_ns


def _order(path: Path) -> tuple[str, int]:
    series, number = number_of(path)
    return series, -1 if number is None else number
