"""Cells of a table as dates and times, in the many formats in which they are written."""

from __future__ import annotations

import datetime
import re

import numpy as np
import pyarrow
from pyarrow import compute, types

from streamlasso.data.encoding.reading import as_text, finite_numbers, is_temporal, is_text, numbers

#: Formats of days, of days with a time, of times. Of two that fit, one in which time never runs back is taken.
DAYS = (
    *("%Y-%m-%d", "%Y/%m/%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y"),
    *("%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%d-%m-%y", "%m-%d-%y", "%Y-%m", "%Y/%m", "%m/%Y"),
    *("%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%b %d, %Y", "%b %d %Y", "%b-%d-%Y", "%b %Y", "%b-%Y"),
)
TIMES = ("%H:%M:%S", "%H:%M", "%H.%M.%S", "%I:%M:%S %p", "%I:%M %p", "%H")
#: Quarters and weeks, such as 1974Q1 and 1974-W52, are not known to strptime: they are days after the year began.
QUARTERS, WEEKS = "quarters", "weeks"
OF_YEAR = {
    QUARTERS: (r"^(?P<year>\d{4})[ -]?[Qq](?P<number>[1-4])$", 91.3),
    WEEKS: (r"^(?P<year>\d{4})[ -]?[Ww](?P<number>\d{1,2})$", 7.0),
}
WITH_TIMES = {day: [day, *(f"{day}{gap}{time}" for gap in " T" for time in TIMES)] for day in DAYS}
DAY_OF = {form: day for day, forms in WITH_TIMES.items() for form in forms}
FORMATS = (*DAYS, *(form for forms in WITH_TIMES.values() for form in forms[1:]), *TIMES[:-1], *OF_YEAR)
#: Fractions of seconds, and zones, are left out: features are of hours and days, by the clock as it was written.
TAIL = r"([.,]\d+)?\s?(Z|UTC|GMT|[+-]\d\d(:?\d\d)?)?$"
#: How text that may be a date begins: 2024-..., Mar 1...
BEGINS = re.compile(r"\s*(\d|[A-Z][a-z]{2,8}\.?[ -]\d)")
#: Seconds from 1970 to the year 10000, beyond which a number is no time.
FURTHEST = 253_402_300_800
#: Formats of numbers, where the name of the column says that they are times: since 1970, as 20240131, as a year, and in
#: days since the year 1, as Python counts them.
SINCE_1970 = {"seconds": 1.0, "milliseconds": 1e-3, "microseconds": 1e-6, "nanoseconds": 1e-9}
DIGITS = "%Y%m%d"
YEARS, ORDINALS = "%Y", "days since the year 1"
IN_DIGITS = (DIGITS, YEARS)
KNOWN = {*FORMATS, *SINCE_1970, *IN_DIGITS, ORDINALS}
CALLED_TIME = re.compile(r"time|date|epoch|unix|(^|_)ts$", re.IGNORECASE)
CALLED_YEAR = re.compile(r"\s*(year|yr)\s*", re.IGNORECASE)
EARLIEST_YEAR, LATEST_YEAR = 1000, 2500
EARLIEST, LATEST = np.datetime64("1980-01-01", "s"), np.datetime64("2100-01-01", "s")


def parse(cells: pyarrow.Array, date_format: str | None) -> tuple[np.ndarray, np.ndarray]:
    """The cells as datetime64 in seconds, NaT where missing; and which cells hold something else."""
    missing = ~np.asarray(cells.is_valid())
    if date_format in SINCE_1970:
        return _since_1970(cells, SINCE_1970[date_format])
    if date_format == ORDINALS:
        return _since_1970(cells, 86_400, datetime.date(1970, 1, 1).toordinal())
    if date_format is not None and (is_text(cells) or date_format in IN_DIGITS):
        array = _parse_leniently(_whole(cells) if date_format in IN_DIGITS else as_text(cells), date_format)
    elif is_temporal(cells):
        array = _local_time(cells)
    else:
        return np.full(len(cells), np.datetime64("NaT", "s")), ~missing
    values = _as_numpy(array)
    return values, np.isnat(values) & ~missing


def _as_numpy(array: pyarrow.Array) -> np.ndarray:
    return array.to_numpy(zero_copy_only=False).astype("datetime64[s]")


def _whole(cells: pyarrow.Array) -> pyarrow.Array:
    """Numbers as text, without the .0 of whole ones."""
    return compute.replace_substring_regex(compute.utf8_trim_whitespace(as_text(cells)), r"\.0*$", "")


def _since_1970(cells: pyarrow.Array, unit: float, start: int = 0) -> tuple[np.ndarray, np.ndarray]:
    values, unfit = numbers(cells)
    unfit = unfit | (np.abs(values * unit) > FURTHEST)
    missing = np.isnan(values) | unfit
    seconds = np.floor(np.where(missing, 0.0, values - start) * unit).astype(np.int64)
    return np.where(missing, np.datetime64("NaT", "s"), seconds.astype("datetime64[s]")), unfit


def _parse_leniently(text: pyarrow.Array, date_format: str) -> pyarrow.Array:
    """In this format or, cell by cell, with another time after the same format of day: midnight is often left out."""
    found = _strptime(text, date_format)
    for other in WITH_TIMES.get(DAY_OF.get(date_format, ""), ()):
        if found.null_count == text.null_count:
            break
        found = compute.coalesce(found, _strptime(text, other))
    return found


def _strptime(text: pyarrow.Array, date_format: str) -> pyarrow.Array:
    plain = compute.utf8_trim_whitespace(text)
    if date_format in OF_YEAR:
        return _within_year(plain, *OF_YEAR[date_format])
    if date_format.endswith((":%S", ":%M")):
        plain = compute.replace_substring_regex(plain, TAIL, "")
    found = compute.strptime(plain, format=date_format, unit="s", error_is_null=True)
    if "%Y" not in date_format:
        return found
    # The year 24 is 2024, which %y reads.
    return compute.if_else(compute.less(found, datetime.datetime(1000, 1, 1)), None, found)


def _within_year(text: pyarrow.Array, pattern: str, days: float) -> pyarrow.Array:
    """The day on which the numbered part of a year begins, where each part has so many days."""
    parts = compute.extract_regex(text, pattern)
    year = compute.strptime(compute.struct_field(parts, "year"), format="%Y", unit="s", error_is_null=True)
    before = compute.subtract(compute.struct_field(parts, "number").cast(pyarrow.float64()), 1.0)
    seconds = compute.multiply(compute.floor(compute.multiply(before, days)), 86_400.0)
    return compute.add(year, seconds.cast(pyarrow.int64()).cast(pyarrow.duration("s")))


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
    fitting = list(FORMATS)
    for rows in (text[:1], text[:50], text):
        fitting = _fitting(rows, fitting)
    forward = (form for form in fitting if _never_runs_back(_parse_leniently(text, form)))
    return next(forward, fitting[0]) if fitting else None


def _fitting(text: pyarrow.Array, formats: list[str]) -> list[str]:
    """The formats in which all cells can be read: those with the same day read the same cells."""
    days = dict.fromkeys(DAY_OF.get(form, form) for form in formats)
    read = {day for day in days if not _parse_leniently(text, day).null_count}
    return [form for form in formats if DAY_OF.get(form, form) in read]


def format_of_numbers(name: str, cells: pyarrow.Array) -> str | None:
    """The format in which numbers are times, if the column is called a time; None if there is none."""
    called_year = CALLED_YEAR.fullmatch(name) is not None
    if not called_year and not CALLED_TIME.search(name):
        return None
    values, unfit = finite_numbers(cells)
    there = values[~np.isnan(values)]
    if unfit.any() or not len(there):
        return None
    if called_year:
        whole = bool(np.all(there == np.round(there)))
        return YEARS if whole and there.min() >= EARLIEST_YEAR and there.max() <= LATEST_YEAR else None
    first, last = (moment.astype(np.int64) for moment in (EARLIEST, LATEST))
    for form, unit in SINCE_1970.items():
        if first <= there.min() * unit and there.max() * unit <= last:
            return form
    ordinals = (moment.astype(object).toordinal() for moment in (EARLIEST, LATEST))
    if next(ordinals) <= there.min() and there.max() <= next(ordinals):
        return ORDINALS
    eight_digits = (is_text(cells) or types.is_integer(cells.type)) and there.min() >= 1e7 and there.max() < 1e8
    return DIGITS if eight_digits and not parse(cells, DIGITS)[1].any() else None


def _never_runs_back(times: pyarrow.Array) -> bool:
    values = _as_numpy(times)
    return bool(np.all(values[1:] >= values[:-1]))
