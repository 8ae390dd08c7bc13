"""Parquet and Arrow: tables that know the types of their columns."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import BinaryIO, ClassVar, cast

import numpy as np
import pyarrow
from pyarrow import ipc, parquet

from streamlasso.data.sources.base import BLOCK_ROWS, FIRST_ROWS, BadRows, Block, distinct, row_places


class Table:
    """What the formats with types share: each is recognised by how it starts, and read batch by batch."""

    format = ""
    extensions: ClassVar[tuple[str, ...]] = ()
    signature: ClassVar[bytes]
    n_first = FIRST_ROWS

    def __init__(self, stream: io.BufferedReader, bad_rows: BadRows, *, live: bool) -> None:
        with self._or_damaged():
            schema, self._batches = self._opened(stream)
        self.columns = distinct(schema.names)

    @classmethod
    def recognises(cls, start: bytes) -> bool:
        return start.startswith(cls.signature)

    def _opened(self, stream: io.BufferedReader) -> tuple[pyarrow.Schema, Iterable[pyarrow.RecordBatch]]:
        raise NotImplementedError

    def blocks(self) -> Iterator[Block]:
        seen, batches = 0, iter(self._batches)
        while True:
            with self._or_damaged(f"after row {seen:,}: "):
                batch = next(batches, None)
            if batch is None:
                return
            for start in range(0, batch.num_rows, BLOCK_ROWS):
                rows = batch.slice(start, BLOCK_ROWS)
                yield Block(rows.rename_columns(self.columns), row_places(seen), seen + np.arange(len(rows)))
                seen += rows.num_rows

    @contextmanager
    def _or_damaged(self, where: str = "") -> Iterator[None]:
        try:
            yield
        except (pyarrow.ArrowException, OSError) as error:
            raise ValueError(f"{where}the {self.format} file is damaged or cut short ({error})") from error


class Parquet(Table):
    """A Parquet file, read a few thousand rows at a time."""

    format = "Parquet"
    extensions: ClassVar[tuple[str, ...]] = (".parquet", ".pq")
    signature = b"PAR1"

    def _opened(self, stream: io.BufferedReader) -> tuple[pyarrow.Schema, Iterable[pyarrow.RecordBatch]]:
        table = parquet.ParquetFile(seekable(stream), pre_buffer=False)
        return table.schema_arrow, table.iter_batches(batch_size=BLOCK_ROWS, use_threads=False)


class ArrowFile(Table):
    """An Arrow (Feather) file."""

    format = "Arrow"
    extensions: ClassVar[tuple[str, ...]] = (".feather",)
    signature = b"ARROW1"

    def _opened(self, stream: io.BufferedReader) -> tuple[pyarrow.Schema, Iterable[pyarrow.RecordBatch]]:
        table = ipc.open_file(seekable(stream))
        return table.schema, (table.get_batch(i) for i in range(table.num_record_batches))


class ArrowStream(Table):
    """An Arrow stream, batch by batch as it comes."""

    format = "Arrow"
    signature = b"\xff\xff\xff\xff"

    def _opened(self, stream: io.BufferedReader) -> tuple[pyarrow.Schema, Iterable[pyarrow.RecordBatch]]:
        reader = ipc.open_stream(stream)
        return reader.schema, reader


def seekable(stream: io.BufferedReader) -> BinaryIO:
    """A file that is read from its end first: a pipe, or what was compressed, is copied to the disk."""
    if isinstance(stream, io.BufferedReader) and stream.seekable():
        return stream
    copy = cast(BinaryIO, TemporaryFile())  # noqa: SIM115 (it lives as long as the source)
    shutil.copyfileobj(stream, copy, 1 << 20)
    copy.seek(0)
    return copy
