"""The trace of a run: an Arrow stream while it grows, which can be cut back; a Parquet file in the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow
from pyarrow import ipc, parquet

from streamlasso._files import sync_file, whole_file
from streamlasso.run.appending import open_at

#: Rows in a group of the Parquet file: few, since a group is held in memory until it is written.
GROUP_ROWS = 16_384


class TraceFile:
    """Rows of one schema, one after the other; `position` is in bytes."""

    def __init__(self, path: Path, schema: pyarrow.Schema, position: int | None = None) -> None:
        self.path, self.schema = path, schema
        self.file = open_at(path, position)
        self.position = position or 0
        if not self.position:
            self._append(schema.serialize())

    def _append(self, buffer: pyarrow.Buffer) -> None:
        self.file.write(buffer)
        self.position += len(buffer)

    def write(self, rows: pyarrow.RecordBatch) -> None:
        self._append(rows.serialize())

    def sync(self) -> None:
        sync_file(self.file)

    def close(self) -> None:
        self.file.close()

    def delete(self) -> None:
        self.close()
        self.path.unlink(missing_ok=True)

    def write_parquet(self, path: Path) -> None:
        """All rows so far as a Parquet file, which appears whole or not at all."""
        self.file.flush()
        # Numbers hardly repeat: a dictionary of them only takes memory.
        texts = [field.name for field in self.schema if field.type == pyarrow.string()]
        with (
            whole_file(path) as out,
            parquet.ParquetWriter(out, self.schema, compression="zstd", use_dictionary=texts) as writer,
        ):
            for table in _groups(self._batches(), self.schema):
                writer.write_table(table, row_group_size=GROUP_ROWS)

    def _batches(self) -> Iterator[pyarrow.RecordBatch]:
        with pyarrow.OSFile(str(self.path)) as file:
            try:
                yield from ipc.open_stream(file)
            except pyarrow.ArrowInvalid:
                # A stream that may continue has no mark at its end.
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
