"""Rows with their labels: what every body becomes, what the log keeps, and what a model learns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow

from streamlasso.data.sources.json_lines import array_of

#: A flag, a number, text, or None for a missing value.
Value = bool | int | float | str | None
Row = dict[str, Value]


class Rows(msgspec.Struct):
    """Rows in order; `y` has None for a row without a label.

    >>> rows = Rows([{"a": 1}, {"b": "x"}], [0.5, 2])
    >>> rows.table(["a", "b"], "y").to_pydict()
    {'a': [1, None], 'b': [None, 'x'], 'y': [0.5, 2.0]}
    >>> unpacked(rows.packed()) == rows
    True
    """

    rows: list[dict[str, Any]]
    y: list[Any]

    def __len__(self) -> int:
        return len(self.rows)

    def names(self) -> set[str]:
        return set().union(*self.rows)

    def table(self, columns: Sequence[str], target: str) -> pyarrow.RecordBatch:
        arrays = [array_of([row.get(name) for row in self.rows]) for name in columns]
        return pyarrow.RecordBatch.from_arrays([*arrays, array_of(self.y)], names=[*columns, target])

    def numbers(self, columns: Sequence[str]) -> dict[str, np.ndarray] | None:
        """These columns as floats; None if a value is missing or no number."""
        values = [[row.get(name) for name in columns] for row in self.rows]
        if not {type(value) for row in values for value in row} <= {int, float}:
            return None
        return dict(zip(columns, np.array(values, float).T, strict=True))

    def part(self, start: int, stop: int) -> Rows:
        return Rows(self.rows[start:stop], self.y[start:stop])

    def packed(self) -> bytes:
        """For the log."""
        return msgspec.json.encode(self)


#: From what `packed` gave.
unpacked = msgspec.json.Decoder(Rows).decode


def joined(pieces: Iterable[Rows]) -> Rows:
    """All of them, in order."""
    pieces = list(pieces)
    if len(pieces) == 1:
        return pieces[0]
    return Rows([row for piece in pieces for row in piece.rows], [label for piece in pieces for label in piece.y])
