"""JSON lines: one object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import pyarrow

from streamlasso.sources.base import Block, Complaints
from streamlasso.sources.delimited import MISSING, REACH, REACH_OF_PIPE
from streamlasso.sources.lines import Bytes, whole_lines


class JsonLines:
    """The columns are the keys of the first rows; a key that a row lacks is missing there."""

    format = "JSON lines"

    def __init__(self, stream: Bytes, complaints: Complaints, *, live: bool = False) -> None:
        self.complaints = complaints
        self.reach = REACH_OF_PIPE if live else REACH
        blocks = self._objects(whole_lines(stream, complaints, quoted=False, live=live))
        first: list[tuple[list[int], list[dict[str, Any]]]] = []
        while sum(len(rows) for _, rows in first) < self.reach and (block := next(blocks, None)) is not None:
            first.append(block)
        seen = (row for _, rows in first for row in rows)
        self.columns = list(dict.fromkeys(key for row in islice(seen, self.reach) for key in row))
        self._blocks = chain(first, blocks)

    def blocks(self) -> Iterator[Block]:
        for lines, rows in self._blocks:
            if rows:
                arrays = [_array([row.get(name) for row in rows]) for name in self.columns]
                batch = pyarrow.RecordBatch.from_arrays(arrays, names=self.columns)
                yield Block(batch, lambda i, lines=lines: f"line {lines[i]:,}")  # type: ignore[misc]

    def _objects(self, blocks: Iterator[tuple[int, bytes]]) -> Iterator[tuple[list[int], list[dict[str, Any]]]]:
        for line, text in blocks:
            lines, rows = [], []
            for number, written in enumerate(text.split(b"\n"), line):
                row = self._object(number, written) if written.strip() else None
                if row is not None:
                    lines.append(number)
                    rows.append(row)
            yield lines, rows

    def _object(self, line: int, text: bytes) -> dict[str, Any] | None:
        try:
            row = json.loads(text)
        except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
            self.complaints.about(f"line {line:,}", f"it is no JSON ({error})")
            return None
        if isinstance(row, dict):
            return row
        self.complaints.about(f"line {line:,}", "it is no JSON object, like {...}")
        return None


def _array(values: list[Any]) -> pyarrow.Array:
    """Numbers, flags or text; what is mixed becomes text, to be looked at like that of a CSV file."""
    values = [None if isinstance(value, str) and value in MISSING else value for value in values]
    try:
        return pyarrow.array(values)
    except (pyarrow.ArrowException, OverflowError):
        return pyarrow.array(
            [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
        )
