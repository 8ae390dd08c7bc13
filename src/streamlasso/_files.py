"""Files that appear whole or not at all, and directories that can be written to."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast


@contextmanager
def whole_file(path: str | os.PathLike[str], *, sync: bool = True) -> Iterator[BinaryIO]:
    """A file to write to that gets its name when it is complete and on disk; until then an older one stays.

    A link is followed, and the mode of an older file is kept. sync : False for a file that is soon replaced again,
    which need not outlive a crash of the machine.
    """
    final = Path(os.path.realpath(path))
    temporary = final.with_name(f".streamlasso-{os.urandom(8).hex()}.tmp")
    try:
        with open(temporary, "xb") as file:
            if final.exists():
                os.chmod(temporary, stat.S_IMODE(final.stat().st_mode))
            yield cast(BinaryIO, file)
            if sync:
                sync_file(cast(BinaryIO, file))
        os.replace(temporary, final)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename == str(temporary):
            error.filename = os.fspath(path)
        raise
    if sync:
        sync_directory(final.parent)


def write_whole(path: str | os.PathLike[str], data: bytes, *, sync: bool = True) -> Path:
    """The file appears with all of `data` in it, or not at all.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_whole(Path(folder) / "note.txt", b"all of it").read_bytes()
    b'all of it'
    """
    with whole_file(path, sync=sync) as file:
        file.write(data)
    return Path(path)


def sync_file(file: BinaryIO) -> None:
    """Put what was written on disk; a device or a pipe has nothing to keep."""
    file.flush()
    _sync(file.fileno())


def sync_directory(folder: str | os.PathLike[str]) -> None:
    """A renamed file is on disk when its directory is; Windows and some network drives have no such step."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        _sync(descriptor)
    finally:
        os.close(descriptor)


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise


def make_directory(out: Path) -> None:
    """A directory that can be written to, or an error before any work is done."""
    from tempfile import TemporaryFile

    try:
        out.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise ValueError(f"--out {out} cannot be written to ({error.strerror}): name another directory") from error
