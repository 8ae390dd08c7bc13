"""Rows that are dictionaries, encoded one at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow

from streamlasso.data.encoding.encoder import Encoder
from streamlasso.data.encoding.first_rows import detect_column, without_target
from streamlasso.data.encoding.frames import cells_of

#: What the columns hold is detected again after 1, 2, 4, ... rows, for the last time after so many.
FIRST = 128


class RowEncoder:
    """Learns rows and gives their features. A value's type says what it is: text stays text, also where it has digits.

    >>> encoder = RowEncoder()
    >>> encoder.learn({"city": "Rome", "heat": 31})
    >>> encoder.learn({"city": "Oslo", "heat": None})
    >>> encoder.features({"city": "Rome", "wind": 3})
    {'city = Rome': 1.0, 'city = Oslo': 0.0, 'heat': 31.0, 'heat missing': 1.0}
    """

    def __init__(self) -> None:
        self.n_seen = 0
        self.first: list[dict[str, Any]] = []
        self.names: frozenset[str] = frozenset()
        self.encoder: Encoder | None = None
        #: Of the last row: which it was, what it held (it may be changed since), and its features.
        self._learnt: tuple[int, dict[Any, Any], dict[str, float]] = (0, {}, {})

    def learn(self, row: Mapping[Any, Any]) -> None:
        """The next row; a row that is refused changes nothing."""
        named = {str(name): value for name, value in row.items()}
        first = [*self.first, named] if self.n_seen < FIRST else []
        n_seen = self.n_seen + 1
        if len(first) == n_seen and n_seen & (n_seen - 1) == 0:
            encoder = _detected(first)
        else:
            encoder = None if self.encoder is None else self._with_new(named)
        features = {} if encoder is None else _encoded(encoder, named, grow=True)
        self.n_seen, self.encoder = n_seen, encoder
        self.names |= {name for name, value in named.items() if value is not None}
        self.first = first if n_seen < FIRST else []
        self._learnt = (id(row), dict(row), features)

    def features(self, row: Mapping[Any, Any]) -> dict[str, float]:
        """Those of a row that follows the last one learnt; or of that one, if it is given again."""
        last, values, features = self._learnt
        if id(row) == last and row == values:
            return dict(features)
        if self.encoder is None:
            return {}
        return _encoded(self.encoder.ahead(), {str(name): value for name, value in row.items()}, grow=False)

    def _with_new(self, row: dict[str, Any]) -> Encoder:
        """A copy of the encoder, with columns for names that it has not met."""
        assert self.encoder is not None
        encoder = self.encoder.ahead()
        for name, value in row.items():
            if name not in self.names and value is not None:
                encoder.add_column(detect_column(name, _cells([value])))
        return encoder


def _detected(rows: list[dict[str, Any]]) -> Encoder | None:
    """The encoder by all rows so far, as it was before the last of them; None as long as they hold nothing."""
    names = dict.fromkeys(name for row in rows for name, value in row.items() if value is not None)
    if not names:
        return None
    cells = [_cells([row.get(name) for row in rows]) for name in names]
    encoder = without_target(pyarrow.RecordBatch.from_arrays(cells, names=list(names)))
    for row in rows[:-1]:
        _encoded(encoder, row, grow=True)
    return encoder


def _encoded(encoder: Encoder, row: dict[str, Any], *, grow: bool) -> dict[str, float]:
    cells = [_cells([row.get(column.name)]) for column in encoder.columns]
    table = pyarrow.RecordBatch.from_arrays(cells, names=[column.name for column in encoder.columns])
    found = encoder.encode(encoder.read(table, needs_target=False), grow=grow).X[0]
    return dict(zip(encoder.features, found.tolist(), strict=True))


def _cells(values: list[Any]) -> pyarrow.Array:
    """Text as categories, so that it is not read as numbers or dates."""
    cells = cells_of(values)
    return cells.dictionary_encode() if pyarrow.types.is_string(cells.type) else cells
