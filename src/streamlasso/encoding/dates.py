"""Cells of a table as dates and times, in the many formats in which they are written."""

from __future__ import annotations

import datetime
import re

import numpy as np
import pyarrow
from pyarrow import compute, types

from streamlasso.encoding.reading import as_text, is_temporal, is_text, numbers

#: Formats of days, of days with a time, of times. Of two that fit, one in which time never runs back is taken.
DAYS = (
    *("%Y-%m-%d", "%Y/%m/%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y"),
    *("%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%d-%m-%y", "%m-%d-%y", "%Y-%m"),
    *("%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%b %d, %Y", "%b %d %Y"),
)
TIMES = ("%H:%M:%S", "%H:%M", "%H.%M.%S", "%I:%M:%S %p", "%I:%M %p")
WITH_TIMES = {day: [day, *(f"{day}{gap}{time}" for gap in " T" for time in TIMES)] for day in DAYS}
FORMATS = (*DAYS, *(form for forms in WITH_TIMES.values() for form in forms[1:]), *TIMES)
#: Fractions of seconds, and zones, are left out: features are of hours and days, by the clock as it was written.
TAIL = r"([.,]\d+)?\s?(Z|UTC|GMT|[+-]\d\d(:?\d\d)?)?$"
#: How text that may be a date begins: 2024-..., Mar 1...
BEGINS = re.compile(r"\s*(\d|[A-Z][a-z]{2,8}\.? \d)")
#: Formats of numbers, where the name of the column says that they are times: since 1970, and as 20240131.
SINCE_1970 = {"seconds": 1.0, "milliseconds": 1e-3, "microseconds": 1e-6, "nanoseconds": 1e-9}
DIGITS = "%Y%m%d"
CALLED_TIME = re.compile(r"time|date|epoch|unix|(^|_)ts$", re.IGNORECASE)
EARLIEST, LATEST = np.datetime64("1980-01-01", "s"), np.datetime64("2100-01-01", "s")


def parse(cells: pyarrow.Array, date_format: str | None) -> tuple[np.ndarray, np.ndarray]:
    """The cells as datetime64 in seconds, NaT where missing; and which cells hold something else."""
    missing = ~np.asarray(cells.is_valid())
    if date_format in SINCE_1970:
        return _since_1970(cells, SINCE_1970[date_format])
    if date_format is not None and (is_text(cells) or date_format == DIGITS):
        array = _parse_leniently(as_text(cells), date_format)
    elif is_temporal(cells):
        array = _local_time(cells)
    else:
        return np.full(len(cells), np.datetime64("NaT", "s")), ~missing
    values = _as_numpy(array)
    return values, np.isnat(values) & ~missing


def _as_numpy(array: pyarrow.Array) -> np.ndarray:
    return array.to_numpy(zero_copy_only=False).astype("datetime64[s]")


def _since_1970(cells: pyarrow.Array, unit: float) -> tuple[np.ndarray, np.ndarray]:
    values, unfit = numbers(cells)
    seconds = np.floor(np.where(np.isnan(values), 0.0, values) * unit).astype(np.int64)
    return np.where(np.isnan(values), np.datetime64("NaT", "s"), seconds.astype("datetime64[s]")), unfit


def _parse_leniently(text: pyarrow.Array, date_format: str) -> pyarrow.Array:
    """In this format or, cell by cell, with another time after the same format of day: midnight is often left out."""
    found = _strptime(text, date_format)
    if found.null_count > text.null_count:
        for other in next((formats for formats in WITH_TIMES.values() if date_format in formats), []):
            found = compute.coalesce(found, _strptime(text, other))
    return found


def _strptime(text: pyarrow.Array, date_format: str) -> pyarrow.Array:
    plain = compute.utf8_trim_whitespace(text)
    if date_format.endswith((":%S", ":%M")):
        plain = compute.replace_substring_regex(plain, TAIL, "")
    found = compute.strptime(plain, format=date_format, unit="s", error_is_null=True)
    if "%Y" not in date_format:
        return found
    # The year 24 is 2024, which %y reads.
    return compute.if_else(compute.less(found, datetime.datetime(1000, 1, 1)), None, found)


def _local_time(array: pyarrow.Array) -> pyarrow.Array:
    if types.is_time(array.type):
        unit = "s" if array.type == pyarrow.time32("s") else array.type.unit if hasattr(array.type, "unit") else "us"
        width = pyarrow.int32() if types.is_time32(array.type) else pyarrow.int64()
        array = array.cast(width).cast(pyarrow.int64()).cast(pyarrow.timestamp(unit))
    elif types.is_timestamp(array.type) and array.type.tz is not None:
        array = compute.local_timestamp(array)
    return array.cast(pyarrow.timestamp("s"), safe=False)


def format_of(cells: pyarrow.Array) -> str | None:
    """The format in which all cells of text are dates or times; None if there is none."""
    text = as_text(cells).drop_null()
    if not len(text) or not BEGINS.match(text[0].as_py()):
        return None
    fitting = [form for form in FORMATS if not _parse_leniently(text[:50], form).null_count]
    fitting = [form for form in fitting if not _parse_leniently(text, form).null_count]
    if len(fitting) > 1:
        fitting = [form for form in fitting if _never_runs_back(_parse_leniently(text, form))] or fitting
    return fitting[0] if fitting else None


def format_of_numbers(name: str, cells: pyarrow.Array) -> str | None:
    """The format in which numbers are times, if the column is called a time; None if there is none."""
    if not CALLED_TIME.search(name):
        return None
    values, unfit = numbers(cells)
    there = values[~np.isnan(values)]
    if unfit.any() or not len(there):
        return None
    first, last = (moment.astype(np.int64) for moment in (EARLIEST, LATEST))
    for form, unit in SINCE_1970.items():
        if first <= there.min() * unit and there.max() * unit <= last:
            return form
    eight_digits = (is_text(cells) or types.is_integer(cells.type)) and there.min() >= 1e7 and there.max() < 1e8
    return DIGITS if eight_digits and not parse(cells, DIGITS)[1].any() else None


def _never_runs_back(times: pyarrow.Array) -> bool:
    values = _as_numpy(times)
    return bool(np.all(values[1:] >= values[:-1]))
