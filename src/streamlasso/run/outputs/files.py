"""Files that grow while rows come, and can be cut back to a position: lines of text, and tables that become Parquet."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

import pyarrow
from pyarrow import ipc, parquet

from streamlasso._csv import csv_bytes
from streamlasso._files import sync_directory, sync_file, whole_file

INCOMPLETE = ".incomplete"
#: Rows in a group of a Parquet file: few, since a group is held in memory until it is written.
GROUP_ROWS = 16_384


class PredictionFile(Protocol):
    """Where predictions go."""

    @property
    def position(self) -> Any:
        """How far the file is, as JSON."""
        ...

    def write(self, rows: pyarrow.RecordBatch) -> None: ...
    def sync(self) -> None:
        """Put all rows on disk."""
        ...

    def close(self) -> None:
        """The file is complete."""
        ...

    def abandon(self) -> None:
        """The run has failed: what there is must not look complete."""
        ...


def open_predictions(path: Path | None, position: int | None = None, keep: bool = False) -> PredictionFile:
    """By the end of the name; None is standard output. `position` continues there, None starts a new file; `keep` if a
    later run may continue."""
    if path is None:
        if sys.stdout is None:
            raise ValueError("--predictions -: standard output is closed: name a file")
        return TextFile(None, None, _as_csv)
    if path.suffix.lower() == ".parquet":
        return ParquetFile(path, position, keep)
    if path.suffix.lower() not in TEXTS:
        known = ", ".join([*TEXTS, ".parquet"])
        raise ValueError(f"--predictions {path} has an unknown format: use a name that ends in {known}")
    return TextFile(path, position, TEXTS[path.suffix.lower()])


def _open_at(path: Path, position: int | None) -> BinaryIO:
    """A file to append to: a new one, or the old one without what comes after `position`."""
    if _incomplete(path).exists() and not path.exists():
        _incomplete(path).replace(path)
    if position is None:
        file = cast(BinaryIO, open(path, "wb"))  # noqa: SIM115
        sync_directory(path.parent)
        return file
    if not path.exists() or path.stat().st_size < position:
        raise ValueError(
            f"{path} is not as the checkpoint left it (missing, or shorter): restore it, or start again without the "
            "checkpoint"
        )
    file = cast(BinaryIO, open(path, "r+b"))  # noqa: SIM115
    file.truncate(position)
    file.seek(position)
    return file


def _incomplete(path: Path) -> Path:
    """The name of the file after a run that failed; a run that continues gives it its own name back."""
    return path.with_name(path.name + INCOMPLETE)


class TextFile:
    """Lines of text, flushed after every write; `position` is in bytes."""

    def __init__(
        self, path: Path | None, position: int | None, as_text: Callable[[pyarrow.RecordBatch, bool], bytes]
    ) -> None:
        self.path, self.as_text = path, as_text
        self.file = cast(BinaryIO, sys.stdout.buffer) if path is None else _open_at(path, position)
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
            self.path.replace(_incomplete(self.path))


class ParquetFile:
    """A hidden Arrow stream while it grows, and a Parquet file in the end; `position` is in bytes of the stream.

    keep : whether the stream stays, for a run that continues
    """

    def __init__(self, path: Path, position: int | None, keep: bool) -> None:
        self.path, self.keep = path, keep
        self.stream = growing(path)
        self.file = _open_at(self.stream, position)
        self.position = position or 0

    def write(self, rows: pyarrow.RecordBatch) -> None:
        parts = [rows.serialize()] if self.position else [rows.schema.serialize(), rows.serialize()]
        for part in parts:
            self.file.write(part)
            self.position += len(part)

    def sync(self) -> None:
        sync_file(self.file)

    def close(self) -> None:
        self.write_parquet()
        self.abandon()

    def write_parquet(self) -> None:
        """All rows so far, in a file that appears whole or not at all."""
        self.file.flush()
        if self.position:
            with pyarrow.OSFile(str(self.stream)) as file, whole_file(self.path) as out:
                batches = ipc.open_stream(file)
                # Numbers hardly repeat: a dictionary of them only takes memory.
                texts = [field.name for field in batches.schema if field.type == pyarrow.string()]
                with parquet.ParquetWriter(out, batches.schema, compression="zstd", use_dictionary=texts) as writer:
                    for table in _groups(batches):
                        writer.write_table(table, row_group_size=GROUP_ROWS)

    def abandon(self) -> None:
        self.file.close()
        if not self.keep:
            self.stream.unlink(missing_ok=True)


def growing(path: Path) -> Path:
    """Where the rows of a Parquet file are until it is complete."""
    return path.with_name(f".{path.name}.arrows")


def _groups(batches: ipc.RecordBatchStreamReader) -> Iterator[pyarrow.Table]:
    """Tables of GROUP_ROWS rows, however the rows were cut before."""
    waiting: list[pyarrow.RecordBatch] = []
    for batch in _all(batches):
        waiting.append(batch)
        while sum(map(len, waiting)) >= GROUP_ROWS:
            table = pyarrow.Table.from_batches(waiting).combine_chunks()
            yield table[:GROUP_ROWS]
            waiting = table[GROUP_ROWS:].to_batches()
    if waiting:
        yield pyarrow.Table.from_batches(waiting).combine_chunks()


def _all(batches: ipc.RecordBatchStreamReader) -> Iterator[pyarrow.RecordBatch]:
    try:
        yield from batches
    except pyarrow.ArrowInvalid:
        # A stream that may continue has no mark at its end.
        return


# --- rows as text -----------------------------------------------------------------------------------------------------


def as_csv(table: pyarrow.Table) -> bytes:
    """A whole table, with the names of its columns."""
    return b"".join(_as_csv(rows, i == 0) for i, rows in enumerate(table.to_batches()))


def _as_csv(rows: pyarrow.RecordBatch, first: bool) -> bytes:
    return csv_bytes(rows, head=first)


def _as_tsv(rows: pyarrow.RecordBatch, first: bool) -> bytes:
    return csv_bytes(rows, head=first, delimiter="\t")


def _as_json_lines(rows: pyarrow.RecordBatch, first: bool) -> bytes:
    lines = (json.dumps(row, ensure_ascii=False, default=str) for row in rows.to_pylist())
    return "".join(line + "\n" for line in lines).encode()


#: By the end of the name.
TEXTS = {".csv": _as_csv, ".tsv": _as_tsv, ".jsonl": _as_json_lines, ".ndjson": _as_json_lines}
