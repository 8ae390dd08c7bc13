"""JSON lines: one object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow

from streamlasso.sources.base import Block, Complaints
from streamlasso.sources.delimited import MISSING, REACH, REACH_OF_PIPE
from streamlasso.sources.lines import Bytes, whole_lines


class Read(NamedTuple):
    """Rows, with the line of each, and which row of the source it is."""

    lines: list[int]
    places: list[int]
    rows: list[dict[str, Any]]

    def where(self, i: int) -> str:
        return f"line {self.lines[i]:,}"


class JsonLines:
    """The columns are the keys of the first rows, also of objects within; a key that a row lacks is missing there."""

    format = "JSON lines"

    def __init__(self, stream: Bytes, complaints: Complaints, *, live: bool = False) -> None:
        self.complaints = complaints
        self.reach = REACH_OF_PIPE if live else REACH
        blocks = self._objects(whole_lines(stream, complaints, quoted=False, live=live))
        first: list[Read] = []
        while sum(len(read.rows) for read in first) < self.reach and (block := next(blocks, None)) is not None:
            first.append(block)
        seen = (row for read in first for row in read.rows)
        self.columns = list(dict.fromkeys(key for row in islice(seen, self.reach) for key in row))
        self._blocks = chain(first, blocks)

    def blocks(self) -> Iterator[Block]:
        for read in self._blocks:
            if read.rows:
                arrays = [_array([row.get(name) for row in read.rows]) for name in self.columns]
                batch = pyarrow.RecordBatch.from_arrays(arrays, names=self.columns)
                yield Block(batch, read.where, np.array(read.places))

    def _objects(self, blocks: Iterator[tuple[int, bytes]]) -> Iterator[Read]:
        seen = 0
        for line, text in blocks:
            read = Read([], [], [])
            for number, written in enumerate(text.split(b"\n"), line):
                if not written.strip():
                    continue
                row = self._object(number, written)
                if row is not None:
                    read.lines.append(number)
                    read.places.append(seen)
                    read.rows.append(row)
                seen += 1
            yield read

    def _object(self, line: int, text: bytes) -> dict[str, Any] | None:
        try:
            row = json.loads(text)
        except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
            self.complaints.about(f"line {line:,}", f"it is no JSON ({error})")
            return None
        if isinstance(row, dict):
            return _flat(row)
        self.complaints.about(f"line {line:,}", "it is no JSON object, like {...}")
        return None


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """An object within the object is columns of its own: "place.city"."""
    while any(isinstance(value, dict) for value in row.values()):
        parts = [_parts(key, value) for key, value in row.items()]
        row = {key: value for part in parts for key, value in part.items()}
    return row


def _parts(key: str, value: Any) -> dict[str, Any]:
    return {f"{key}.{within}": part for within, part in value.items()} if isinstance(value, dict) else {key: value}


def _array(values: list[Any]) -> pyarrow.Array:
    """Numbers, flags or text; what is mixed becomes text, to be looked at like that of a CSV file."""
    values = [None if isinstance(value, str) and value in MISSING else value for value in values]
    try:
        return pyarrow.array(values)
    except (pyarrow.ArrowException, OverflowError):
        return pyarrow.array(
            [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
        )
