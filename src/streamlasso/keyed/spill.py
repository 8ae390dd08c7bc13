"""Models that were not used of late, on disk.

Bytes are only ever added to a file, and where they are is known in memory. So the child of a fork can read what its
parent wrote before the fork, whatever that writes later; it adds to a file of its own. There is no lock: one that
another thread holds at the fork, as those inside SQLite, would never open in the child.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from tempfile import TemporaryFile
from typing import IO

import numpy as np

#: Bytes that nobody needs any more, beyond as many as are needed, before the file is written anew.
MOST_UNUSED = 2**26
#: What is known of each number; the size is -1 where there are no bytes.
FILE, START, SIZE = range(3)


class Spill:
    """Bytes by number, in files without a name that go when this does; their loss loses nothing that was saved.

    >>> from streamlasso.keyed.spill import Spill
    >>> spill = Spill()
    >>> spill.put([(0, b"old"), (7, b"seven")])
    >>> spill.put([(0, b"new")])
    >>> dict(spill.get([0, 3, 7]))
    {0: b'new', 7: b'seven'}
    """

    def __init__(self) -> None:
        self._where = np.zeros((0, 3), dtype=np.int64)
        self._begin([])

    def _begin(self, files: list[IO[bytes]]) -> None:
        """A new file after these, of this process alone."""
        self._files = [*files, TemporaryFile(prefix="streamlasso-", buffering=0)]  # noqa: SIM115
        self._end = 0
        self._process = os.getpid()

    def put(self, items: Iterable[tuple[int, bytes]]) -> None:
        """All of them, or, where the disk is full, none."""
        if self._process != os.getpid():
            self._begin(self._files)
        if self._end > 2 * self._needed() + MOST_UNUSED:
            self._write_anew()
        self._add(items)

    def get(self, numbers: list[int]) -> Iterator[tuple[int, bytes]]:
        known = [number for number in numbers if number < len(self._where)]
        for number, (file, start, size) in zip(known, self._where[known].tolist(), strict=True):
            if size >= 0:
                yield number, _read(self._files[file], start, size)

    def drop(self, numbers: list[int]) -> None:
        self._where[[number for number in numbers if number < len(self._where)], SIZE] = -1

    def _needed(self) -> int:
        return int(np.maximum(self._where[:, SIZE], 0).sum())

    def _add(self, items: Iterable[tuple[int, bytes]]) -> None:
        file, end, added = len(self._files) - 1, self._end, []
        for number, data in items:
            _write(self._files[file], end, data)
            added.append((number, file, end, len(data)))
            end += len(data)
        if not added:
            return
        found = np.array(added, dtype=np.int64)
        more = int(found[:, 0].max()) + 1 - len(self._where)
        if more > 0:
            self._where = np.append(self._where, np.full((max(more, len(self._where)), 3), -1, dtype=np.int64), axis=0)
        self._where[found[:, 0]] = found[:, 1:]
        self._end = end

    def _write_anew(self) -> None:
        """What is needed, into a new file; the others are closed when nobody reads them."""
        new = Spill()
        new._add(self.get(np.flatnonzero(self._where[:, SIZE] >= 0).tolist()))
        self._where, self._files, self._end = new._where, new._files, new._end


def _read(file: IO[bytes], start: int, size: int) -> bytes:
    """A parent and its children share the place where a file is read, so it is not moved where there are forks."""
    if hasattr(os, "pread"):
        data = os.pread(file.fileno(), size, start)
    else:
        file.seek(start)
        data = file.read(size)
    if len(data) != size:
        raise OSError(f"{len(data)} of {size} bytes of a model could be read from the disk")
    return data


def _write(file: IO[bytes], start: int, data: bytes) -> None:
    file.seek(start)
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]
