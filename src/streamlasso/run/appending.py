"""Files that are written while rows come, and that can be cut back to where they were."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO, cast

from streamlasso._files import sync_directory

INCOMPLETE = ".incomplete"


def open_at(path: Path, position: int | None) -> BinaryIO:
    """A file to append to: a new one, or the old one without what comes after `position`."""
    restore_name(path)
    if position is None:
        file = cast(BinaryIO, open(path, "wb"))  # noqa: SIM115
        sync_directory(path.parent)
        return file
    size = path.stat().st_size if path.exists() else -1
    if size < position:
        raise ValueError(
            f"{path} is not as the checkpoint left it (missing, or shorter): restore it, or start again without the "
            "checkpoint"
        )
    file = open(path, "r+b")  # noqa: SIM115
    file.truncate(position)
    file.seek(position)
    return cast(BinaryIO, file)


def incomplete(path: Path) -> Path:
    """The name of the file after a run that failed."""
    return path.with_name(path.name + INCOMPLETE)


def restore_name(path: Path) -> None:
    """What a failed run left is continued under its own name."""
    if incomplete(path).exists() and not path.exists():
        incomplete(path).replace(path)
