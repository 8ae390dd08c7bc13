"""A hash of all rows read so far: a run continues only if they are still the rows that it has learnt."""

from __future__ import annotations

import hashlib
from typing import Any

import pyarrow
from pyarrow import compute

#: Hashes that are kept on the way, to tell where rows differ: evenly spaced, and twice as far apart if there are more.
MOST_MARKS = 256
#: Between cells and rows, and for a missing cell: no text has them but a hostile one.
CELL, ROW, MISSING = "\x1f", "\x1e", "\x00"


class RowsRead:
    """The hash of the rows so far, however they were cut into batches.

    expected : what `state` gave of an earlier run; rows that differ from its rows are refused

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
        self.n, self.every = 0, 1
        self.marks: dict[int, str] = {}
        self._hash = hashlib.sha256()
        self._expected = {} if expected is None else dict(expected["marks"])
        self._places = sorted(self._expected)

    def state(self) -> dict[str, Any]:
        """For a checkpoint, as JSON: the hashes on the way, and that of all rows."""
        return {"marks": [*map(list, self.marks.items()), [self.n, self._hash.hexdigest()]]}

    def add(self, rows: pyarrow.RecordBatch) -> None:
        """The next rows; a ValueError that names the place where they differ from those of the earlier run."""
        start = 0
        while start < len(rows):
            stop = min(self._next_stop() - self.n + start, len(rows))
            self._hash.update(_as_bytes(rows.slice(start, stop - start)))
            self.n += stop - start
            start = stop
            self._mark()
            self._compare()

    def _next_stop(self) -> int:
        mark = self.n - self.n % self.every + self.every
        return min(mark, self._places[0]) if self._places else mark

    def _mark(self) -> None:
        if self.n % self.every == 0:
            self.marks[self.n] = self._hash.hexdigest()
        if len(self.marks) > MOST_MARKS:
            self.every *= 2
            self.marks = {n: digest for n, digest in self.marks.items() if n % self.every == 0}

    def _compare(self) -> None:
        if not self._places or self.n < self._places[0]:
            return
        place = self._places.pop(0)
        if self._expected[place] != self._hash.hexdigest():
            earlier = [n for n in self._expected if n < place]
            first = max(earlier, default=0) + 1
            rows = f"row {place:,} is" if first == place else f"one of the rows {first:,} to {place:,} is"
            raise ValueError(f"{rows} not what it was when the run learnt it")


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
