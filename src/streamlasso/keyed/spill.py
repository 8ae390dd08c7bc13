"""Models that were not used of late, on disk."""

from __future__ import annotations

import os
import shutil
import sqlite3
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import mkdtemp

#: Rows in one question: SQLite takes no more variables than this at a time.
AT_ONCE = 500
FORKED = (
    "models of keys beyond max_keys are on disk, in a database of the process that this one was forked from, and "
    "SQLite allows no other to use it: save them before the fork, and load them after it"
)


class Spill:
    """Bytes by number, in an SQLite file that goes when this does; its loss loses nothing that was saved."""

    def __init__(self) -> None:
        self._process = os.getpid()
        folder = mkdtemp(prefix="streamlasso-")
        weakref.finalize(self, _remove, folder, self._process)
        self._opened = sqlite3.connect(Path(folder) / "models.sqlite", check_same_thread=False)
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("PRAGMA synchronous = OFF")
        self._database.execute("CREATE TABLE models (place INTEGER PRIMARY KEY, data BLOB NOT NULL)")

    @property
    def _database(self) -> sqlite3.Connection:
        if self._process != os.getpid():
            raise RuntimeError(FORKED)
        return self._opened

    def put(self, items: Iterable[tuple[int, bytes]]) -> None:
        with self._database:
            self._database.executemany("INSERT OR REPLACE INTO models VALUES (?, ?)", items)

    def get(self, places: list[int]) -> Iterator[tuple[int, bytes]]:
        for start in range(0, len(places), AT_ONCE):
            some = places[start : start + AT_ONCE]
            marks = ",".join("?" * len(some))
            yield from self._database.execute(f"SELECT place, data FROM models WHERE place IN ({marks})", some)

    def drop(self, places: list[int]) -> None:
        with self._database:
            self._database.executemany("DELETE FROM models WHERE place = ?", [(place,) for place in places])


def _remove(folder: str, process: int) -> None:
    """Not by a child: the folder is its parent's."""
    if process == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)
