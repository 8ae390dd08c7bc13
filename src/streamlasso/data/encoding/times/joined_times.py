"""Dates and times that are spread over several columns: a day and a clock, or year, month and day."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow
from pyarrow import compute

from streamlasso.data.encoding import reading
from streamlasso.data.encoding.columns import Column, DateColumn
from streamlasso.data.encoding.times import dates

#: Numbers that are a part of a date, by the names that they have, with their least and greatest values.
NUMBERS = {
    "hour": (("hour", "hr"), 0, 23),
    "year": (("year", "yr"), dates.EARLIEST_YEAR, dates.LATEST_YEAR),
    "quarter": (("quarter", "qtr"), 1, 4),
    "week": (("week", "wk"), 1, 53),
    "month": (("month", "mnth", "mon"), 1, 12),
    "day": (("day", "dayofmonth", "day_of_month"), 1, 31),
}
#: What may be joined: parts, and what stands between them. The longest that is there is taken.
JOINS = (
    (("date", "clock"), (" ",)),
    (("date", "hour"), (" ",)),
    (("year", "month", "day", "hour"), ("-", "-", " ")),
    (("year", "month", "day"), ("-", "-")),
    (("year", "month"), ("-",)),
    (("year", "quarter"), ("Q",)),
    (("year", "week"), ("W",)),
)


class JoinedTime(NamedTuple):
    """The columns of a table that are one time together, and what stands between them when they are written as one.

    >>> import pyarrow
    >>> rows = pyarrow.RecordBatch.from_pydict({"day": ["2024-01-31", None], "at": ["13:00", "14:00"]})
    >>> JoinedTime(("day", "at"), (" ",)).added_to(rows)["day + at"].to_pylist()
    ['2024-01-31 13:00', None]
    """

    columns: tuple[str, ...]
    between: tuple[str, ...]

    @property
    def name(self) -> str:
        return " + ".join(self.columns)

    def added_to(self, rows: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        """The table with one more column; without it where a column is not there."""
        if any(name not in rows.schema.names for name in self.columns):
            return rows
        text, *others = (_as_written(rows[name]) for name in self.columns)
        for gap, other in zip(self.between, others, strict=True):
            text = compute.binary_join_element_wise(text, other, gap)
        return pyarrow.RecordBatch.from_arrays([*rows.columns, text], names=[*rows.schema.names, self.name])


def joined_time(rows: pyarrow.RecordBatch, columns: Iterable[Column]) -> JoinedTime | None:
    """The time that several columns are together, if it is one that never runs back; None if there is none."""
    parts = dict(_parts(rows, columns))
    for names, between in JOINS:
        if all(name in parts for name in names):
            found = JoinedTime(tuple(parts[name] for name in names), between)
            if found.name not in rows.schema.names and _is_time(found, rows):
                return found
    return None


def _is_time(found: JoinedTime, rows: pyarrow.RecordBatch) -> bool:
    cells = found.added_to(rows)[found.name]
    date_format = dates.format_of(cells)
    if date_format is None:
        return False
    moments, _ = dates.parse(cells, date_format)
    moments = moments[~np.isnat(moments)]
    return bool(np.all(moments[1:] >= moments[:-1])) and len(np.unique(moments)) > 1


def _parts(rows: pyarrow.RecordBatch, columns: Iterable[Column]) -> Iterator[tuple[str, str]]:
    """Parts of a date, each with its column."""
    for column in reversed(list(columns)):
        if isinstance(column, DateColumn) and column.format != dates.YEARS:
            if not column.is_time:
                yield "clock", column.name
            elif "hour" not in column.parts:
                yield "date", column.name
        else:
            yield from ((part, column.name) for part in _part_of_date(column.name, rows[column.name]))


def _part_of_date(name: str, cells: pyarrow.Array) -> Iterator[str]:
    for part, (names, least, greatest) in NUMBERS.items():
        if name.strip().lower() in names:
            values, unfit = reading.finite_numbers(cells)
            values = values[~np.isnan(values)]
            whole = not unfit.any() and len(values) and bool(np.all(values == np.round(values)))
            if whole and least <= values.min() and values.max() <= greatest:
                yield part


def _as_written(cells: pyarrow.Array) -> pyarrow.Array:
    """As text; whole numbers without .0, days without a time."""
    text = compute.utf8_trim_whitespace(reading.as_text(cells))
    text = compute.replace_substring_regex(text, r"^(\d+)\.0*$", r"\1")
    return compute.replace_substring_regex(text, r"[ T]00:00:00(\.0*)?$", "")
