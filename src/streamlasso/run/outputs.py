"""Files that are written while rows come: each can say how far it is, and be cut back to where it was."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow
from pyarrow import csv, ipc, parquet

from streamlasso._files import whole_file

#: Rows, and seconds, after which a part of a Parquet folder is closed, so that readers see it.
PART_ROWS, PART_SECONDS = 10_000, 10.0
#: Rows in a group of the trace's Parquet file: few, since a group is held in memory until it is written.
GROUP_ROWS = 16_384
INCOMPLETE = ".incomplete"
FORMATS = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")


def open_predictions(path: Path | None, position: int | None = None) -> Appended | Parts:
    """By the end of the name; None is standard output. `position` continues there, None begins anew."""
    if path is None:
        return Appended(None, None, _as_csv)
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        return Parts(path, position)
    if suffix not in FORMATS:
        raise ValueError(f"--predictions {path}: an unknown format; the name may end in {', '.join(FORMATS)}")
    return Appended(path, position, {".csv": _as_csv, ".tsv": _as_tsv}.get(suffix, _as_json_lines))


class Appended:
    """Lines of text, flushed after every write."""

    def __init__(self, path: Path | None, position: int | None, form: Any) -> None:
        self.path, self.form = path, form
        self.file = cast(BinaryIO, sys.stdout.buffer) if path is None else _opened(path, position)
        self.written = position or 0

    @property
    def position(self) -> int:
        return self.written

    def write(self, rows: pyarrow.RecordBatch) -> None:
        data = self.form(rows, self.written == 0)
        self.file.write(data)
        self.file.flush()
        self.written += len(data)

    def settle(self) -> None:
        """On the disk, whatever happens next."""
        if self.path is not None:
            _sync(self.file)

    def close(self) -> None:
        if self.path is not None:
            self.file.close()

    def disown(self) -> None:
        """The run has failed: what there is does not look whole."""
        self.close()
        if self.path is not None and self.path.is_file():
            self.path.replace(incomplete(self.path))


class Parts:
    """A folder of Parquet files, read as one table by pyarrow, pandas, polars, DuckDB and the like."""

    def __init__(self, path: Path, position: int | None) -> None:
        self.path = path
        _take_back(path)
        if path.is_file():
            path.unlink()
        path.mkdir(parents=True, exist_ok=True)
        for part in path.glob("*"):
            if part.suffix == ".tmp" or (part.match("part-*.parquet") and _first_row(part) >= (position or 0)):
                part.unlink()
        self.written = position or 0
        self.waiting: list[pyarrow.RecordBatch] = []
        self.begun = time.monotonic()

    @property
    def position(self) -> int:
        return self.written

    def write(self, rows: pyarrow.RecordBatch) -> None:
        self.waiting.append(rows)
        if sum(len(batch) for batch in self.waiting) >= PART_ROWS or time.monotonic() - self.begun > PART_SECONDS:
            self.settle()

    def settle(self) -> None:
        """Close the part: it is there whole or not at all."""
        self.begun = time.monotonic()
        if not self.waiting:
            return
        table = pyarrow.Table.from_batches(self.waiting)
        with whole_file(self.path / f"part-{self.written:012d}.parquet") as file:
            parquet.write_table(table, file)
        self.written += table.num_rows
        self.waiting = []

    def close(self) -> None:
        self.settle()

    def disown(self) -> None:
        with_end = incomplete(self.path)
        shutil.rmtree(with_end, ignore_errors=True)
        self.path.replace(with_end)


class TraceFile:
    """The trace while it grows: an Arrow stream, which can be cut back; `finish` makes it a Parquet file."""

    def __init__(self, path: Path, schema: pyarrow.Schema, position: int | None = None) -> None:
        self.path, self.schema = path, schema
        self.file = _opened(path, position)
        self.written = position or 0
        if not self.written:
            self._append(schema.serialize())

    @property
    def position(self) -> int:
        return self.written

    def _append(self, buffer: pyarrow.Buffer) -> None:
        self.file.write(buffer)
        self.written += len(buffer)

    def write(self, rows: pyarrow.RecordBatch) -> None:
        self._append(rows.serialize())

    def settle(self) -> None:
        self.file.flush()
        _sync(self.file)

    def close(self) -> None:
        self.file.close()

    def disown(self) -> None:
        self.close()
        self.path.unlink(missing_ok=True)

    def finish(self, path: Path) -> None:
        """All rows so far as a Parquet file, which appears whole or not at all."""
        self.file.flush()
        # Numbers hardly repeat: a dictionary of them only takes memory.
        words = [field.name for field in self.schema if field.type == pyarrow.string()]
        with (
            whole_file(path) as out,
            parquet.ParquetWriter(out, self.schema, compression="zstd", use_dictionary=words) as writer,
        ):
            for table in _groups(self._batches(), self.schema):
                writer.write_table(table, row_group_size=GROUP_ROWS)

    def _batches(self) -> Iterator[pyarrow.RecordBatch]:
        with pyarrow.OSFile(str(self.path)) as file:
            try:
                yield from ipc.open_stream(file)
            except pyarrow.ArrowInvalid:
                # There is no mark at the end of a stream that may go on.
                return


def _groups(batches: Iterator[pyarrow.RecordBatch], schema: pyarrow.Schema) -> Iterator[pyarrow.Table]:
    """Tables of GROUP_ROWS rows, however the rows were cut before."""
    waiting, n = [], 0
    for batch in batches:
        waiting.append(batch)
        n += len(batch)
        while n >= GROUP_ROWS:
            table = pyarrow.Table.from_batches(waiting, schema).combine_chunks()
            yield table[:GROUP_ROWS]
            waiting, n = table[GROUP_ROWS:].to_batches(), n - GROUP_ROWS
    if n:
        yield pyarrow.Table.from_batches(waiting, schema).combine_chunks()


# --- files ------------------------------------------------------------------------------------------------------------


def incomplete(path: Path) -> Path:
    return path.with_name(path.name + INCOMPLETE)


def _take_back(path: Path) -> None:
    """What a run that failed left behind goes on under its name."""
    if incomplete(path).exists() and not path.exists():
        incomplete(path).replace(path)


def _opened(path: Path, position: int | None) -> BinaryIO:
    _take_back(path)
    if position is None:
        return cast(BinaryIO, open(path, "wb"))
    size = path.stat().st_size if path.exists() else -1
    if size < position:
        raise ValueError(
            f"{path}: it is not as the checkpoint left it (missing, or shorter); put it back, or start anew without "
            "the checkpoint"
        )
    file = open(path, "r+b")  # noqa: SIM115
    file.truncate(position)
    file.seek(position)
    return cast(BinaryIO, file)


def _sync(file: BinaryIO) -> None:
    file.flush()
    try:
        os.fsync(file.fileno())
    except OSError as error:
        # A device or a pipe has nothing to keep.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise


def _first_row(part: Path) -> int:
    return int(part.stem.removeprefix("part-"))


# --- rows as text -----------------------------------------------------------------------------------------------------


def _as_csv(rows: pyarrow.RecordBatch, first: bool, delimiter: str = ",") -> bytes:
    out = io.BytesIO()
    head = (delimiter.join(rows.schema.names) + "\n").encode() if first else b""
    csv.write_csv(rows, out, csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="needed"))
    return head + out.getvalue()


def _as_tsv(rows: pyarrow.RecordBatch, first: bool) -> bytes:
    return _as_csv(rows, first, "\t")


def _as_json_lines(rows: pyarrow.RecordBatch, first: bool) -> bytes:
    lines = (json.dumps(row, ensure_ascii=False, default=str) for row in rows.to_pylist())
    return "".join(line + "\n" for line in lines).encode()


def or_null(values: np.ndarray) -> pyarrow.Array:
    """NaN is no value."""
    return pyarrow.array(values, from_pandas=True)
