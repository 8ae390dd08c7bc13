"""Files that appear whole or not at all, and directories that can be written to."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast


@contextmanager
def whole_file(path: str | os.PathLike[str], *, sync: bool = True) -> Iterator[BinaryIO]:
    """A file to write to that gets its name when it is complete and on disk; until then an older one stays.

    A link is followed, and the mode of an older file is kept. sync : False for a file that is soon replaced again,
    which need not outlive a crash of the machine.
    """
    final = Path(os.path.realpath(path))
    temporary = final.with_name(f"{_temporary_name(final)}{os.urandom(8).hex()}.tmp")
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


def _temporary_name(final: Path) -> str:
    """What the names of unfinished files of this one begin with."""
    return f".streamlasso-{final.name[:100]}-"


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Unfinished files of this one that a killed process has left; nobody may be writing it."""
    final = Path(os.path.realpath(path))
    for leftover in final.parent.glob("*.tmp") if final.parent.is_dir() else ():
        if leftover.name.startswith(_temporary_name(final)):
            leftover.unlink(missing_ok=True)


def remove_leftovers_in(folder: str | os.PathLike[str]) -> None:
    """The same of all files in a folder."""
    for leftover in Path(folder).glob(".streamlasso-*.tmp"):
        leftover.unlink(missing_ok=True)


@contextmanager
def alone_with(path: str | os.PathLike[str]) -> Iterator[None]:
    """The file for this block alone; an error if another process has it. The lock ends with the process at the latest.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, alone_with(Path(folder, "run")):
    ...     try:
    ...         with alone_with(Path(folder, "run")):
    ...             pass
    ...     except ValueError as refusal:
    ...         print(str(refusal).removeprefix(folder))
    /run is in use by another streamlasso: wait for its end, or use another file
    """
    final = Path(os.path.realpath(path))
    lock = final.with_name(f".{final.name[:200]}.lock")
    file = _locked(lock, path)
    try:
        yield
    finally:
        # Windows does not remove an open file: there it stays.
        with suppress(PermissionError):
            lock.unlink(missing_ok=True)
        file.close()


def _locked(lock: Path, path: str | os.PathLike[str]) -> BinaryIO:
    while True:
        file = open(lock, "ab")  # noqa: SIM115
        try:
            _lock(file.fileno())
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
                file.close()
                raise ValueError(
                    f"{os.fspath(path)} is in use by another streamlasso: wait for its end, or use another file"
                ) from error
            # A file system without locks.
            return cast(BinaryIO, file)
        # Whoever had it before may have removed the file since it was opened here.
        if lock.exists() and os.path.samestat(os.fstat(file.fileno()), lock.stat()):
            return cast(BinaryIO, file)
        file.close()


def _lock(descriptor: int) -> None:
    """For this process alone, or an OSError."""
    try:
        import fcntl
    except ImportError:
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


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
