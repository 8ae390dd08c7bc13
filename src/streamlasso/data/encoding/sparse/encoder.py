"""An encoder of rows with any number of features: each row is a dict of names and values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

import numpy as np
import pyarrow

from streamlasso._text import count, listed, shortened
from streamlasso.core.sparse.model import LARGEST_X
from streamlasso.data.encoding import reading
from streamlasso.data.encoding.cells import Cells, Encoded
from streamlasso.data.encoding.columns import TextColumn
from streamlasso.data.encoding.encoder import Encoder
from streamlasso.data.encoding.first_rows import detect_encoder
from streamlasso.data.encoding.sparse.columns import Features, Levels, SparseColumn, Words, as_value, column_of


class SparseEncoder(Encoder):
    """As `Encoder`, with columns of many features beside the others; X is an array of dicts.

    sparse : columns of many features
    weight : the column with the weight of each row, if there is one
    """

    weight: str | None = None

    def read(self, rows: pyarrow.RecordBatch, *, needs_target: bool = True) -> Cells:
        cells = super().read(rows, needs_target=needs_target)
        for column in self.sparse:
            self._refuse_absent(column.name, rows.schema.names)
        return cells

    def encode(
        self, cells: Cells, on_bad_row: Callable[[int, str], None] | None = None, *, grow: bool = True
    ) -> Encoded:
        self._read = [column.read(reading.texts(cells.rows[column.name]).tolist()) for column in self.sparse]
        self._weights = self._read_weights(cells)
        encoded = super().encode(cells, on_bad_row, grow=grow)
        rows = np.empty(len(encoded.place), dtype=object)
        for i, (place, row) in enumerate(zip(encoded.place.tolist(), encoded.X, strict=True)):
            rows[i] = self._joined(place, row)
        weights = None
        if self.weight is not None and any(weight != 1.0 for weight in self._weights):
            weights = np.array([self._weights[place] for place in encoded.place.tolist()], dtype=float)
        return encoded._replace(X=rows, width=np.zeros(len(rows), dtype=int), weights=weights)

    def _joined(self, place: int, row: np.ndarray) -> Features:
        found = {self.features[j]: float(row[j]) for j in np.flatnonzero(row)}
        for parsed in self._read:
            found.update(parsed[place])  # type: ignore[arg-type]
        return found

    def _read_weights(self, cells: Cells) -> list[float | str]:
        """Text says why there is none."""
        if self.weight is None or self.weight not in cells.rows.schema.names:
            return []
        return [_weight(self.weight, cell) for cell in reading.texts(cells.rows[self.weight]).tolist()]

    def _unfit(self, cells: Cells) -> Iterator[tuple[int, str]]:
        yield from super()._unfit(cells)
        for column in self.columns:
            values, unfit = cells.columns[column.name]
            if column.is_numeric:
                for i in np.flatnonzero(~unfit & (np.abs(values) > LARGEST_X)).tolist():
                    yield i, f"column {column.name!r} holds {values[i]}, which is beyond +-{LARGEST_X:g}"
        for sparse, parsed in zip(self.sparse, self._read, strict=True):
            for i, found in enumerate(parsed):
                if isinstance(found, str):
                    yield i, f"column {sparse.name!r}: {found}"
        for i, weight in enumerate(self._weights):
            if isinstance(weight, str):
                yield i, weight

    @property
    def described(self) -> str:
        texts = [f"{column.name} ({column.description})" for column in self.sparse[:3]]
        others = len(self.sparse) - len(texts) + len(self.columns)
        return "any number of features from " + listed([*texts, *([count(others, "other column")] if others else [])])

    def state(self) -> dict[str, Any]:
        return {**super().state(), "sparse": [column.state() for column in self.sparse], "weight": self.weight}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        encoder = super().from_state(state)
        encoder.sparse, encoder.weight = [column_of(each) for each in state["sparse"]], state["weight"]
        return encoder


def encoder_from(state: dict[str, Any]) -> Encoder:
    """The encoder whose state this is."""
    return (SparseEncoder if "sparse" in state else Encoder).from_state(state)


def detect_sparse_encoder(
    rows: pyarrow.RecordBatch,
    target: str,
    family: str,
    sparse: Iterable[SparseColumn],
    weight: str | None = None,
    **options: Any,
) -> SparseEncoder:
    """As `detect_encoder`, where `sparse` are columns of many features.

    >>> import pyarrow
    >>> from streamlasso.data.encoding.sparse.columns import Words
    >>> rows = pyarrow.RecordBatch.from_pydict({"title": ["Cheap pills", "See you"], "y": ["1", "0"]})
    >>> encoder = detect_sparse_encoder(rows, "y", "auto", [Words("title")])
    >>> encoder.encode(encoder.read(rows)).X[0]
    {'cheap': 1.0, 'pills': 1.0, 'cheap pills': 1.0}
    """
    sparse = list(sparse)
    left_out = [*(column.name for column in sparse), *([] if weight is None else [weight])]
    options["drop"] = [*options.get("drop", ()), *left_out]
    encoder = detect_encoder(rows, target, family, needs_features=not sparse, **options)
    return with_sparse(encoder, sparse, weight)


def with_sparse(encoder: Encoder, sparse: Iterable[SparseColumn], weight: str | None = None) -> SparseEncoder:
    """The encoder, for any number of features: columns of text have as many levels as there are."""
    texts = [column.name for column in encoder.columns if isinstance(column, TextColumn)]
    lagged = {name for name, _, _ in encoder.lags.columns}
    texts = [name for name in texts if name not in lagged]
    columns = [*sparse, *(Levels(name) for name in texts)]
    state = encoder.state()
    state["columns"] = [each for each in state["columns"] if each["name"] not in texts]
    gone = [column for column in encoder.columns if column.name in texts]
    levels = tuple(column.level_feature("") for column in gone)
    missing = {column.missing_feature for column in gone}
    state["features"] = [name for name in encoder.features if name not in missing and not name.startswith(levels)]
    if len(columns) > 1 or state["columns"]:
        for column in columns:
            column.prefix = "" if isinstance(column, Levels) else f"{column.name}: "
    return SparseEncoder.from_state({**state, "sparse": [column.state() for column in columns], "weight": weight})


def words_of(names: Iterable[str], ngrams: str) -> list[SparseColumn]:
    """Columns of text."""
    return [Words(name, ngrams=ngrams) for name in names]


def _weight(name: str, cell: str | None) -> float | str:
    value = 1.0 if cell is None else as_value(cell)
    if value is None or value < 0:
        return f"column {name!r} holds {shortened(repr(cell))}, which is not one number of 0 or more"
    return value
