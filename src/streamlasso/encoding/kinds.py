"""What a column holds, judged by its first rows."""

from __future__ import annotations

import shlex
from typing import Any

import numpy as np
import pyarrow
from pyarrow import types

from streamlasso.encoding import dates, reading
from streamlasso.encoding.columns import Calendar, Levels, Number

#: Text of which more than this share of so many first rows are different is no category.
MOSTLY_DIFFERENT, ENOUGH = 0.5, 100


def column_of(name: str, cells: pyarrow.Array, form: str | None = None) -> Any:
    """A column of the right kind; the first value that is there stands for those missing before it.

    form : how its numbers are written (`notation.py`)
    """
    column = _column(name, cells, form)
    values, _ = column.read(cells)
    there = np.flatnonzero(~column.missing(values))
    if len(there):
        column.last = values[there[0]]
    return column


def _column(name: str, cells: pyarrow.Array, form: str | None) -> Any:
    if reading.is_nested(cells):
        drop = f"--drop {shlex.quote(name)}"
        raise ValueError(f"column {name!r} holds {cells.type}: numbers, text or dates are needed; leave it out: {drop}")
    if reading.is_moment(cells):
        return _calendar(name, cells, None)
    if types.is_dictionary(cells.type):
        return Levels(name)
    if not reading.is_text(cells) or reading.holds_numbers(cells, form):
        when = dates.format_of_numbers(name, cells)
        return Number(name, form=form) if when is None else _calendar(name, cells, when)
    days = dates.format_of(cells)
    return Levels(name) if days is None else _calendar(name, cells, days)


def _calendar(name: str, cells: pyarrow.Array, form: str | None) -> Calendar:
    values, _ = dates.moments(cells, form)
    values = values[~np.isnat(values)]
    hours = bool(np.any(values.astype(np.int64) % 86_400 != 0))
    days = not types.is_time(cells.type) if form is None else form not in dates.TIMES
    return Calendar(name, form=form, days=days, hours=hours or not days)


def is_category(cells: pyarrow.Array) -> bool:
    """Not what is different in nearly every row: names, identifiers, sentences."""
    text = reading.as_text(cells).drop_null()
    return len(text) < ENOUGH or len(text.unique()) <= MOSTLY_DIFFERENT * len(text)
