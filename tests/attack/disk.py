"""A disk that remembers the order of everything, to be asked what is on it after a crash between any two system calls.

`recorded` notes what a block does to files under a folder. `Disk.after` gives the files after a crash:

killed  the process is gone; what it wrote is there (`torn`: of the last write, the first half)
lost    the power is gone; there is only what was synced, under the names that were synced
empty   the power is gone; names are there that were not synced, of files whose content was not
"""

import builtins
import io
import os
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

KINDS = ("killed", "torn", "lost", "empty")


class _File(io.FileIO):
    """Notes writes and truncations."""

    def __init__(self, path, mode, log):
        super().__init__(path, mode)
        self.log, self.place = log, str(path)

    def write(self, data):
        at = 0 if "a" in self.mode and not self.seekable() else self.tell()
        self.log.append(("write", self.place, at, bytes(data)))
        return super().write(data)

    def truncate(self, size=None):
        size = self.tell() if size is None else size
        self.log.append(("truncate", self.place, size))
        return super().truncate(size)


@contextmanager
def recorded(folder):
    """All that is done to files under the folder, in order."""
    log, real = [], builtins.open
    inside = str(Path(folder).resolve()) + os.sep

    def ours(path):
        return (
            isinstance(path, str | os.PathLike)
            and os.path.realpath(path).startswith(inside)
            and ".lock" not in str(path)
        )

    def opened(path, mode="r", *arguments, **options):
        if not ours(path) or "b" not in mode or not set(mode) & set("wax+"):
            return real(path, mode, *arguments, **options)
        path = os.path.realpath(path)
        if "w" in mode or "x" in mode:
            log.append(("create", path))
        raw = _File(path, mode.replace("b", ""), log)
        return io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)

    def noting(name, function, paths):
        def called(*arguments, **options):
            found = [os.path.realpath(path) for path in arguments[:paths]] if all(map(ours, arguments[:paths])) else []
            done = function(*arguments, **options)
            if found:
                log.append((name, *found))
            return done

        return called

    def fsync(descriptor, function=os.fsync):
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if ours(path) or path + os.sep == inside:
            log.append(("sync", path))
        return function(descriptor)

    with (
        mock.patch("builtins.open", opened),
        mock.patch("os.fsync", fsync),
        mock.patch("os.replace", noting("replace", os.replace, 2)),
        mock.patch("os.unlink", noting("unlink", os.unlink, 1)),
    ):
        yield log


class Disk:
    """Files by name and by what is in them, as the processes see them and as they are on disk."""

    def __init__(self):
        self.seen, self.synced = {}, {}
        self.content, self.kept = {}, {}
        self.n = 0

    def do(self, event):
        getattr(self, event[0])(*event[1:])

    def create(self, path):
        if path in self.seen:
            self.content[self.seen[path]] = b""
        else:
            self.n += 1
            self.seen[path] = self.n
            self.content[self.n], self.kept[self.n] = b"", b""

    def write(self, path, at, data):
        old = self.content[self.seen[path]].ljust(at, b"\0")
        self.content[self.seen[path]] = old[:at] + data + old[at + len(data) :]

    def truncate(self, path, size):
        self.content[self.seen[path]] = self.content[self.seen[path]][:size].ljust(size, b"\0")

    def replace(self, old, new):
        self.seen[new] = self.seen.pop(old)

    def unlink(self, path):
        self.seen.pop(path, None)

    def sync(self, path):
        if path in self.seen:
            self.kept[self.seen[path]] = self.content[self.seen[path]]
        else:
            here = {name: file for name, file in self.seen.items() if os.path.dirname(name) == path}
            others = {name: file for name, file in self.synced.items() if os.path.dirname(name) != path}
            self.synced = {**others, **here}

    def after(self, kind):
        """The files after a crash."""
        if kind in ("killed", "torn"):
            return {path: self.content[file] for path, file in self.seen.items()}
        names = self.synced if kind == "lost" else self.seen
        return {path: self.kept[file] for path, file in names.items()}


def crashes(log):
    """What is on the disk after a crash between any two events of the log, each state once."""
    disk, known = Disk(), set()
    for i, event in enumerate([None, *log]):
        if event is not None:
            if event[0] == "write" and len(event[3]) > 1:
                name, path, at, data = event
                before = disk.content[disk.seen[path]]
                disk.do((name, path, at, data[: len(data) // 2]))
                yield from _new(disk, i, "torn", known)
                disk.content[disk.seen[path]] = before
            disk.do(event)
        for kind in ("killed", "lost", "empty"):
            yield from _new(disk, i, kind, known)


def _new(disk, i, kind, known):
    files = disk.after(kind)
    key = hash(frozenset(files.items()))
    if key not in known:
        known.add(key)
        yield f"{kind} after {i}", files
