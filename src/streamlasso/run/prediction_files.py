"""Predictions, written as they are made: lines of text, or a folder of Parquet files.

Each file knows its position, for a checkpoint, and can be opened at a position again.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

import pyarrow
from pyarrow import parquet

from streamlasso._csv import csv_bytes
from streamlasso._files import sync_directory, sync_file, whole_file
from streamlasso.run.appending import incomplete, open_at, restore_name

#: Rows, and seconds, after which a part of a Parquet folder is closed, so that readers see it.
PART_ROWS, PART_SECONDS = 10_000, 10.0
FORMATS = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")


class PredictionFile(Protocol):
    """Where predictions go."""

    @property
    def position(self) -> Any:
        """How far the file is, as JSON: bytes, or rows."""
        ...

    def write(self, rows: pyarrow.RecordBatch) -> None: ...
    def sync(self) -> None:
        """Put all rows on disk."""
        ...

    def close(self) -> None: ...
    def abandon(self) -> None:
        """The run has failed: rename what there is, so that it does not look complete."""
        ...


def open_predictions(path: Path | None, position: int | None = None) -> PredictionFile:
    """By the end of the name; None is standard output. `position` continues there, None starts a new file."""
    if path is None:
        return TextFile(None, None, _as_csv)
    extension = path.suffix.lower()
    if extension == ".parquet":
        return ParquetFolder(path, position)
    if extension not in FORMATS:
        raise ValueError(f"--predictions {path} has an unknown format: use a name that ends in {', '.join(FORMATS)}")
    return TextFile(path, position, {".csv": _as_csv, ".tsv": _as_tsv}.get(extension, _as_json_lines))


class TextFile:
    """Lines of text, flushed after every write."""

    def __init__(
        self, path: Path | None, position: int | None, as_text: Callable[[pyarrow.RecordBatch, bool], bytes]
    ) -> None:
        self.path, self.as_text = path, as_text
        self.file = cast(BinaryIO, sys.stdout.buffer) if path is None else open_at(path, position)
        self.position = position or 0

    def write(self, rows: pyarrow.RecordBatch) -> None:
        data = self.as_text(rows, self.position == 0)
        self.file.write(data)
        self.file.flush()
        self.position += len(data)

    def sync(self) -> None:
        if self.path is not None:
            sync_file(self.file)

    def close(self) -> None:
        if self.path is not None:
            self.file.close()

    def abandon(self) -> None:
        self.close()
        if self.path is not None and self.path.is_file():
            self.path.replace(incomplete(self.path))


class ParquetFolder:
    """A folder of Parquet files, read as one table by pyarrow, pandas, polars, DuckDB and the like."""

    def __init__(self, path: Path, position: int | None) -> None:
        self.path = path
        restore_name(path)
        if path.is_file():
            path.unlink()
        path.mkdir(parents=True, exist_ok=True)
        sync_directory(path.parent)
        if position is not None:
            _refuse_lost_parts(path, position)
        for part in path.glob("*"):
            if part.suffix == ".tmp" or (part.match("part-*.parquet") and _first_row(part) >= (position or 0)):
                part.unlink()
        sync_directory(path)
        self.position = position or 0
        self.waiting: list[pyarrow.RecordBatch] = []
        self.last_sync = time.monotonic()

    def write(self, rows: pyarrow.RecordBatch) -> None:
        self.waiting.append(rows)
        n_waiting = sum(len(batch) for batch in self.waiting)
        if n_waiting >= PART_ROWS or time.monotonic() - self.last_sync > PART_SECONDS:
            self.sync()

    def sync(self) -> None:
        self.last_sync = time.monotonic()
        if not self.waiting:
            return
        table = pyarrow.Table.from_batches(self.waiting)
        with whole_file(self.path / f"part-{self.position:012d}.parquet") as file:
            parquet.write_table(table, file)
        self.position += table.num_rows
        self.waiting = []

    def close(self) -> None:
        self.sync()

    def abandon(self) -> None:
        renamed = incomplete(self.path)
        shutil.rmtree(renamed, ignore_errors=True)
        self.path.replace(renamed)


def _refuse_lost_parts(folder: Path, position: int) -> None:
    """The parts must hold all rows before `position`, each once."""
    row = 0
    while row < position:
        part = folder / f"part-{row:012d}.parquet"
        n = _rows_in(part)
        if n is None:
            raise ValueError(
                f"{part} is not as the checkpoint left it (missing, or damaged): restore it, or start again without "
                "the checkpoint"
            )
        row += n
    if row != position:
        raise ValueError(f"{folder} has {row:,} rows, where the checkpoint left {position:,}: restore its parts")


def _rows_in(part: Path) -> int | None:
    """None, also of an empty part, where there is nothing to read."""
    try:
        return parquet.read_metadata(part).num_rows or None
    except (OSError, pyarrow.ArrowException):
        return None


def _first_row(part: Path) -> int:
    return int(part.stem.removeprefix("part-"))


# --- rows as text -----------------------------------------------------------------------------------------------------


def as_csv(table: pyarrow.Table) -> bytes:
    """A whole table, with the names of its columns."""
    return b"".join(_as_csv(rows, i == 0) for i, rows in enumerate(table.to_batches()))


def _as_csv(rows: pyarrow.RecordBatch, first: bool, delimiter: str = ",") -> bytes:
    return csv_bytes(rows, head=first, delimiter=delimiter)


def _as_tsv(rows: pyarrow.RecordBatch, first: bool) -> bytes:
    return _as_csv(rows, first, "\t")


def _as_json_lines(rows: pyarrow.RecordBatch, first: bool) -> bytes:
    lines = (json.dumps(row, ensure_ascii=False, default=str) for row in rows.to_pylist())
    return "".join(line + "\n" for line in lines).encode()
