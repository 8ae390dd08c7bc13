"""The rows of what a run writes: predictions, and the trace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow

from streamlasso.data.encoding import Encoder
from streamlasso.data.encoding.cells import Encoded
from streamlasso.model.outcomes import Outcomes

#: Columns of the trace that are numbers, after those of the predictions.
NUMBERS = ("loss", "baseline", "persistence", "slope", "lam", "lam_max", "n_active", "effective_size")


def trace_schema(encoder: Encoder, names: Iterable[str]) -> pyarrow.Schema:
    """`names` are those of further numbers that are predicted."""
    has_classes = encoder.target.classes is not None
    value = pyarrow.string() if has_classes else pyarrow.float64()
    fields = [("t", pyarrow.int64()), ("y", value), ("prediction", value)]
    if encoder.time_column is not None:
        fields.insert(1, ("time", encoder.time_column.arrow_type))
    if encoder.key is not None:
        fields.insert(-2, ("key", pyarrow.string()))
    fields += [(name, pyarrow.float64()) for name in names]
    fields += [(name, pyarrow.float64()) for name in NUMBERS]
    return pyarrow.schema([*fields, ("status", pyarrow.string())])


def prediction_columns(encoder: Encoder, rows: Encoded, predictions: dict[str, np.ndarray]) -> dict[str, pyarrow.Array]:
    """The time of each row, its key, its target, and its prediction with, for classes, the probabilities."""
    columns = {}
    if rows.time is not None and encoder.time_column is not None:
        columns["time"] = pyarrow.array(rows.time, encoder.time_column.arrow_type, from_pandas=True)
    if rows.keys is not None:
        columns["key"] = pyarrow.array(rows.keys, pyarrow.string())
    labels = encoder.target.labels(rows.target)
    named = {name: _or_null(values) for name, values in predictions.items() if name != "prediction"}
    if encoder.target.classes is None:
        return {**columns, "y": _or_null(labels), "prediction": _or_null(predictions["prediction"]), **named}
    columns["y"] = pyarrow.array(labels, pyarrow.string())
    columns["prediction"] = pyarrow.array(list(map(str, predictions["prediction"])), pyarrow.string())
    return {**columns, **named}


def prediction_rows(origins: dict[str, pyarrow.Array], columns: dict[str, pyarrow.Array]) -> pyarrow.RecordBatch:
    """With the columns that identify each row in the data: its number, or what the source has instead."""
    return pyarrow.RecordBatch.from_pydict({**origins, **columns})


def trace_rows(
    schema: pyarrow.Schema, first: int, columns: dict[str, pyarrow.Array], outcomes: list[Outcomes]
) -> pyarrow.RecordBatch:
    """The same columns, numbered from `first`, with the losses and the model after each row."""
    values: dict[str, Any] = {"t": pyarrow.array(first + np.arange(len(columns["y"]))), **columns}
    for name in ("loss", "baseline", "persistence"):
        values[name] = _or_null(np.concatenate([getattr(piece, name) for piece in outcomes]))
    for name in outcomes[0].after:
        values[name] = _or_null(np.concatenate([piece.after[name] for piece in outcomes]))
    arrays = [values[field.name].cast(field.type) for field in schema]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)


def _or_null(values: np.ndarray | None) -> pyarrow.Array:
    """NaN as a missing value."""
    return pyarrow.array(values, from_pandas=True)
