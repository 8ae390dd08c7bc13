"""What a column holds, detected from its first rows."""

from __future__ import annotations

import shlex

import numpy as np
import pyarrow
from pyarrow import types

from streamlasso.data.encoding import dates, reading, spacing
from streamlasso.data.encoding.columns import Column, DateColumn, NumberColumn, TextColumn


def detect_column(name: str, cells: pyarrow.Array, number_format: str | None = None) -> Column:
    """A column of the right kind. The first value that is there stands for those missing before it."""
    column = _column(name, cells, number_format)
    values, _ = column.read(cells)
    there = np.flatnonzero(~column.missing(values))
    if len(there):
        column.last = values[there[0]]
    return column


def _column(name: str, cells: pyarrow.Array, number_format: str | None) -> Column:
    if reading.is_nested(cells):
        raise ValueError(
            f"column {name!r} holds {cells.type}, not numbers, text or dates: leave it out with "
            f"--drop {shlex.quote(name)}"
        )
    if reading.is_temporal(cells):
        return _date_column(name, cells, None)
    if types.is_dictionary(cells.type):
        return TextColumn(name)
    if not reading.is_text(cells) or reading.holds_numbers(cells, number_format):
        since = dates.format_of_numbers(name, cells)
        return NumberColumn(name, format=number_format) if since is None else _date_column(name, cells, since)
    date_format = dates.format_of(cells)
    return TextColumn(name) if date_format is None else _date_column(name, cells, date_format)


def _date_column(name: str, cells: pyarrow.Array, date_format: str | None) -> DateColumn:
    values, _ = dates.parse(cells, date_format)
    values = values[~np.isnat(values)]
    of_day = types.is_time(cells.type) if date_format is None else date_format in dates.TIMES
    parts = ("hour",) if of_day else spacing.parts_of(values)
    return DateColumn(name, format=date_format, parts=parts, start=str(values[0]) if len(values) else "1970-01-01")
