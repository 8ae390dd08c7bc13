"""The data of a command: a file, a pipe or a topic, read block by block; messages name the file and the place."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any, cast

import pyarrow
from pyarrow import compute

from streamlasso.data.encoding import Encoder
from streamlasso.data.encoding.cells import Encoded
from streamlasso.data.encoding.reading import joined
from streamlasso.data.sources import BadRows, open_source
from streamlasso.data.sources.base import Address, Block
from streamlasso.data.sources.opening import address_of, name_of, undamaged

#: Rows that are encoded, learnt and written at a time: what a reader of the predictions waits for at most.
CHUNK = 256
#: Between cells and rows, and for a missing cell: no text has them but a hostile one.
CELL, ROW, MISSING = "\x1f", "\x1e", "\x00"


class Data:
    """Rows in order. `data` is a path, an address, or "-" for standard input.

    `place` is where a run that continues has come in a source that can go on there; others start at their first row.

    seeks : whether it is such a source
    fingerprint : of the first row, once it has been read: a file that starts differently is another file
    read : the hash of the rows that a run has learnt, or skipped since it had learnt them before
    bad_lines, bad_cells : rows that cannot be split into cells, and rows with a cell that cannot be read. A run that
        continues meets the former again, and not the latter.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "data.csv")
    ...     _ = path.write_text("x,y\\n1,2\\n3,4\\n")
    ...     data = Data(str(path))
    ...     data.columns, data.first_rows().to_pydict(), sum(len(block.rows) for block in data.blocks())
    (['x', 'y'], {'x': ['1', '3'], 'y': ['2', '4']}, 2)
    """

    def __init__(self, data: str, on_error: str = "stop", place: dict[str, Any] | None = None) -> None:
        self.name = name_of(data)
        self.bad_lines, self.bad_cells = BadRows(on_error), BadRows(on_error)
        self.source = open_source(data, self.bad_lines, place)
        self.seeks = address_of(data) is not None
        self.columns = self.source.columns
        self.fingerprint = ""
        self.read = RowsRead()
        self._first: list[Block] = []
        self._remaining = self._with_name(self.source.blocks())

    @property
    def format(self) -> str:
        return self.source.format

    @property
    def decimal_comma(self) -> bool:
        """Whether a comma in a number is rather a decimal mark; few formats can tell."""
        return bool(getattr(self.source, "decimal_comma", False))

    @property
    def n_bad(self) -> int:
        return self.bad_lines.n + self.bad_cells.n

    @property
    def bad_examples(self) -> list[str]:
        return [*self.bad_lines.examples, *self.bad_cells.examples]

    def _with_name(self, blocks: Iterator[Block]) -> Iterator[Block]:
        try:
            with undamaged():
                yield from blocks
        except ValueError as error:
            raise ValueError(f"{self.name}: {error}") from error

    # --- the first rows -----------------------------------------------------------------------------------------------

    def first_rows(self) -> pyarrow.RecordBatch:
        """Enough rows to recognise the columns by, or all there are; `blocks` still gives them."""
        self.read_first()
        return joined([block.rows for block in self._first], self.source.n_first)

    def read_first(self) -> None:
        """Read as many rows as `first_rows` needs."""
        while sum(len(block.rows) for block in self._first) < self.source.n_first:
            block = next(self._remaining, None)
            if block is None:
                break
            self._first.append(block)
        if not self._first:
            raise ValueError(f"{self.name} has no rows")
        first = self._first[0].rows.slice(0, 1)
        self.fingerprint = hashlib.sha256(repr(first.to_pylist()).encode()).hexdigest()

    # --- all rows -----------------------------------------------------------------------------------------------------

    def blocks(self) -> Iterator[Block]:
        """All rows, once."""
        while self._first:
            yield self._first.pop(0)
        yield from self._remaining

    # --- how far it is ------------------------------------------------------------------------------------------------

    def learnt(self, block: Block, first: int, n: int) -> None:
        """So many rows of a block have been learnt, or left out; for a checkpoint."""
        if block.origin is not None:
            self._address.passed(block.origin.slice(first, n))
        else:
            self.read.add(block.rows.slice(first, n))

    def place(self) -> dict[str, Any] | None:
        """Where a run that continues may go on; None if it has to start at the first row."""
        return self._address.place() if self.seeks else None

    def saved(self) -> None:
        """A checkpoint holds the place."""
        if self.seeks:
            self._address.saved()

    @property
    def _address(self) -> Address:
        return cast(Address, self.source)

    # --- rows as numbers ----------------------------------------------------------------------------------------------

    def encoded(
        self, encoder: Encoder, *, needs_target: bool = True, grow: bool = True
    ) -> Iterator[tuple[Encoded, dict[str, pyarrow.Array]]]:
        """All rows, CHUNK at a time, with the columns that identify each row in the data."""
        for block in self.blocks():
            cells = encoder.read(block.rows, needs_target=needs_target)
            for start in range(0, len(cells), CHUNK):
                part = cells.part(slice(start, min(start + CHUNK, len(cells))))
                rows = encoder.encode(part, self.on_bad_row(block, start), grow=grow)
                yield rows, block.origins(start + rows.place)

    def on_bad_row(self, block: Block, start: int) -> Callable[[int, str], None]:
        """For `Encoder.encode`, of rows from row `start` of a block on."""
        return lambda i, reason: self.bad_cells.add(f"{self.name}: {block.where(start + i)}", reason)


class RowsRead:
    """A hash of all rows read so far, however they were cut into batches.

    expected : what `state` gave of an earlier run; as many rows that are others are refused

    >>> import pyarrow
    >>> rows = pyarrow.RecordBatch.from_pydict({"x": ["1", None, "3"]})
    >>> whole, parts = RowsRead(), RowsRead()
    >>> whole.add(rows)
    >>> parts.add(rows[:1]), parts.add(rows[1:])
    (None, None)
    >>> whole.state() == parts.state()
    True
    """

    def __init__(self, expected: dict[str, Any] | None = None) -> None:
        self.n, self.expected = 0, expected
        self._hash = hashlib.sha256()

    def state(self) -> dict[str, Any]:
        return {"n": self.n, "hash": self._hash.hexdigest()}

    def add(self, rows: pyarrow.RecordBatch) -> None:
        if len(rows):
            self._hash.update(_as_bytes(rows))
            self.n += len(rows)
        if self.expected is not None and self.n == self.expected["n"] and self.state() != self.expected:
            raise ValueError(f"one of the first {self.n:,} rows is not what it was when the run learnt it")


def _as_bytes(rows: pyarrow.RecordBatch) -> bytes:
    cells = [compute.fill_null(_as_text(column), MISSING) for column in rows.columns]
    lines = compute.binary_join_element_wise(*cells, CELL)
    all_lines = pyarrow.ListArray.from_arrays(pyarrow.array([0, len(rows)], pyarrow.int32()), lines)
    return compute.binary_join(all_lines, ROW)[0].as_buffer().to_pybytes() + ROW.encode()


def _as_text(column: pyarrow.Array) -> pyarrow.Array:
    if pyarrow.types.is_string(column.type):
        return column
    try:
        return column.cast(pyarrow.string())
    except pyarrow.ArrowException:
        return pyarrow.array([None if cell is None else repr(cell) for cell in column.to_pylist()], pyarrow.string())
