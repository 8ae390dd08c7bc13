"""Rows in memory as a table: frames of pandas, polars and pyarrow, and arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow
from pyarrow import types


def table_of(X: Any, names: Sequence[str]) -> pyarrow.RecordBatch:
    """Rows of a frame or an array, by these names of their columns.

    >>> import numpy as np
    >>> from streamlasso.data.encoding.frames import table_of
    >>> table_of(np.array([[1, "a"], [2.5, None]], dtype=object), ["x", "word"]).to_pydict()
    {'x': [1.0, 2.5], 'word': ['a', None]}
    """
    return pyarrow.RecordBatch.from_arrays([cells_of(column) for column in _columns(X)], names=list(names))


def _columns(X: Any) -> list[Any]:
    if hasattr(X, "iloc"):
        return [X.iloc[:, j] for j in range(X.shape[1])]
    if hasattr(X, "get_columns"):
        return X.get_columns()
    if isinstance(X, pyarrow.Table | pyarrow.RecordBatch):
        return X.columns
    return list(np.asarray(X).T)


def cells_of(values: Any) -> pyarrow.Array:
    """The cells of a column. Values of several types are text; so are categories, also those that look like numbers."""
    if str(getattr(values, "dtype", "")).startswith(("period", "interval")):
        values = values.astype(str)
    if hasattr(values, "to_arrow"):
        values = values.to_arrow()
    if not isinstance(values, pyarrow.Array | pyarrow.ChunkedArray):
        try:
            values = pyarrow.array(values, from_pandas=True)
        except (pyarrow.ArrowException, TypeError, ValueError, OverflowError):
            values = pyarrow.array([None if _is_missing(value) else str(value) for value in values], pyarrow.string())
    if isinstance(values, pyarrow.ChunkedArray):
        values = values.combine_chunks()
    if types.is_dictionary(values.type):
        return values.dictionary_decode().cast(pyarrow.string()).dictionary_encode()
    return values


def _is_missing(value: Any) -> bool:
    """None, NaN and the like: what is not equal to itself, or does not know."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)
