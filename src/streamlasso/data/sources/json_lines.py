"""JSON lines: one object per line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, islice
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow
from pyarrow import types

from streamlasso._text import shortened
from streamlasso.data.sources.base import FIRST_ROWS, FIRST_ROWS_OF_PIPE, MISSING, BadRows, Block
from streamlasso.data.sources.lines import BYTE_ORDER_MARK, Bytes, is_text, whole_lines


class Read(NamedTuple):
    """Rows, with the line of each and its number in the source."""

    lines: list[int]
    places: list[int]
    rows: list[dict[str, Any]]

    def where(self, i: int) -> str:
        return f"line {self.lines[i]:,}"


class JsonLines:
    """The columns are the keys of the first rows, and of the objects within them; a missing key is a missing value."""

    format = "JSON lines"
    extensions: ClassVar[tuple[str, ...]] = ()

    def __init__(self, stream: Bytes, bad_rows: BadRows, *, live: bool = False) -> None:
        self.bad_rows = bad_rows
        self.n_first = FIRST_ROWS_OF_PIPE if live else FIRST_ROWS
        blocks = self._objects(whole_lines(stream, bad_rows, quoted=False, live=live))
        first: list[Read] = []
        while sum(len(read.rows) for read in first) < self.n_first and (block := next(blocks, None)) is not None:
            first.append(block)
        seen = (row for read in first for row in read.rows)
        self.columns = list(dict.fromkeys(key for row in islice(seen, self.n_first) for key in row))
        self._blocks = chain(first, blocks)

    @staticmethod
    def recognises(start: bytes) -> bool:
        return is_text(start) and start.removeprefix(BYTE_ORDER_MARK).lstrip().startswith(b"{")

    def blocks(self) -> Iterator[Block]:
        for read in self._blocks:
            if read.rows:
                yield Block(batch_of(read.rows, self.columns), read.where, np.array(read.places))

    def _objects(self, blocks: Iterator[tuple[int, bytes]]) -> Iterator[Read]:
        seen = 0
        for line, text in blocks:
            read = Read([], [], [])
            for number, written in enumerate(text.split(b"\n"), line):
                if not written.strip():
                    continue
                row = object_in(written, f"line {number:,}", self.bad_rows)
                if row is not None:
                    read.lines.append(number)
                    read.places.append(seen)
                    read.rows.append(row)
                seen += 1
            yield read


def object_in(text: bytes, where: str, bad_rows: BadRows) -> dict[str, Any] | None:
    """The row that JSON holds; None if it is a bad row, which is added to `bad_rows`."""
    try:
        row = json.loads(text)
        if b"\\u" in text:
            # Half of a character, which JSON allows and no file can hold.
            json.dumps(row, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        bad_rows.add(where, f"it is not valid JSON ({shortened(error, 200)})")
        return None
    if isinstance(row, dict):
        return _flat(row)
    bad_rows.add(where, "it is not a JSON object like {...}")
    return None


def batch_of(rows: list[dict[str, Any]], columns: list[str]) -> pyarrow.RecordBatch:
    """Rows with these columns; a missing key is a missing value."""
    arrays = [array_of([row.get(name) for row in rows]) for name in columns]
    return pyarrow.RecordBatch.from_arrays(arrays, names=columns)


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """An object within the object has columns of its own, "place.city"."""
    while any(isinstance(value, dict) for value in row.values()):
        parts = [_parts(key, value) for key, value in row.items()]
        row = {key: value for part in parts for key, value in part.items()}
    return row


def _parts(key: str, value: Any) -> dict[str, Any]:
    return {f"{key}.{within}": part for within, part in value.items()} if isinstance(value, dict) else {key: value}


def array_of(values: list[Any]) -> pyarrow.Array:
    """Numbers, flags or text; a mixed column becomes text, as in a CSV file."""
    with suppress(pyarrow.ArrowException, OverflowError):
        found = pyarrow.array(values)
        if not types.is_string(found.type):
            return found
    values = [None if isinstance(value, str) and value in MISSING else value for value in values]
    try:
        return pyarrow.array(values)
    except (pyarrow.ArrowException, OverflowError):
        return pyarrow.array(
            [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
        )
