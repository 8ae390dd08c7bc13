"""Parquet and Arrow: tables that know the types of their columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

import numpy as np
import pyarrow
from pyarrow import ipc, parquet

from streamlasso.sources.base import BLOCK_ROWS, Block, in_order
from streamlasso.sources.delimited import REACH, distinct


class Typed:
    """What the formats with types share: their batches, with the rows counted."""

    format = ""
    reach = REACH

    def __init__(self, schema: pyarrow.Schema, batches: Iterable[pyarrow.RecordBatch]) -> None:
        self.columns = distinct(schema.names)
        self._batches = batches

    def blocks(self) -> Iterator[Block]:
        seen = 0
        try:
            for batch in self._batches:
                for start in range(0, batch.num_rows, BLOCK_ROWS):
                    rows = batch.slice(start, BLOCK_ROWS)
                    yield Block(rows.rename_columns(self.columns), in_order(seen), seen + np.arange(len(rows)))
                    seen += rows.num_rows
        except (pyarrow.ArrowException, OSError) as error:
            raise ValueError(f"after row {seen:,}: the {self.format} file is damaged or cut short ({error})") from error


class Parquet(Typed):
    """A Parquet file, read a few thousand rows at a time."""

    format = "Parquet"

    def __init__(self, file: BinaryIO) -> None:
        try:
            table = parquet.ParquetFile(file, pre_buffer=False)
        except (pyarrow.ArrowException, OSError) as error:
            raise ValueError(f"the Parquet file is damaged or cut short ({error})") from error
        super().__init__(table.schema_arrow, table.iter_batches(batch_size=BLOCK_ROWS, use_threads=False))


class ArrowFile(Typed):
    """An Arrow (Feather) file."""

    format = "Arrow"

    def __init__(self, file: BinaryIO) -> None:
        try:
            table = ipc.open_file(file)
        except (pyarrow.ArrowException, OSError) as error:
            raise ValueError(f"the Arrow file is damaged or cut short ({error})") from error
        super().__init__(table.schema, (table.get_batch(i) for i in range(table.num_record_batches)))


class ArrowStream(Typed):
    """An Arrow stream, as it comes."""

    format = "Arrow"

    def __init__(self, stream: BinaryIO) -> None:
        try:
            reader = ipc.open_stream(stream)
        except (pyarrow.ArrowException, OSError) as error:
            raise ValueError(f"the Arrow stream is damaged or cut short ({error})") from error
        super().__init__(reader.schema, reader)
