"""Cells of a table as numbers, words and moments; what cannot be read so is marked, not guessed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow
from pyarrow import compute, types

FLAGS = {"true": 1.0, "false": 0.0}
#: A column of more different numbers than MANY, with at most this share of other cells, is one of numbers.
MOST_UNFIT, MANY = 0.05, 30
#: Ways to write a moment: days, days with a time, times. Of two that fit, the one by which time never runs back.
DAYS = ("%Y-%m-%d", "%Y/%m/%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y")
DAY_LENGTH = 8
TIMES = ("%H:%M:%S", "%H:%M", "%H.%M.%S")
FORMATS = (
    *DAYS,
    *(f"{day}{gap}{time}" for day in DAYS for gap in " T" for time in TIMES),
    *TIMES,
)
#: Fractions of seconds, and zones, are left out: features are of hours and days, on the clock as it was written.
TAIL = r"(\.\d+)?(Z|[+-]\d\d:?\d\d)?$"


def joined(batches: list[pyarrow.RecordBatch], most: int) -> pyarrow.RecordBatch:
    """The first rows of several batches as one. A column that is of one type here and of another there is text."""
    tables = [pyarrow.Table.from_batches([batch]) for batch in batches]
    try:
        table = pyarrow.concat_tables(tables, promote_options="permissive")
    except pyarrow.ArrowException:
        mixed = [name for name in tables[0].column_names if any(is_text(table[name]) for table in tables)]
        table = pyarrow.concat_tables([_with_text(table, mixed) for table in tables], promote_options="permissive")
    return table.slice(0, most).combine_chunks().to_batches()[0]


def _with_text(table: pyarrow.Table, columns: list[str]) -> pyarrow.Table:
    for name in columns:
        table = table.set_column(table.column_names.index(name), name, table[name].cast(pyarrow.string()))
    return table


def is_text(array: pyarrow.Array) -> bool:
    kind = array.type.value_type if types.is_dictionary(array.type) else array.type
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def is_nested(array: pyarrow.Array) -> bool:
    return types.is_nested(array.type) or types.is_binary(array.type) or types.is_large_binary(array.type)


def is_moment(array: pyarrow.Array) -> bool:
    return types.is_temporal(array.type) and not types.is_duration(array.type)


def as_text(array: pyarrow.Array) -> pyarrow.Array:
    """Dictionaries unfolded, everything as strings."""
    return array.cast(pyarrow.string())


def numbers(array: pyarrow.Array) -> tuple[np.ndarray, np.ndarray]:
    """The cells as floats, NaN where there is none; and which cells hold something else."""
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if types.is_null(array.type):
        return np.full(len(array), np.nan), np.zeros(len(array), bool)
    if is_text(array):
        return _parsed(as_text(array))
    if is_moment(array) or is_nested(array):
        return np.full(len(array), np.nan), np.asarray(array.is_valid())
    if types.is_decimal(array.type) or types.is_boolean(array.type) or types.is_duration(array.type):
        array = array.cast(pyarrow.int64()) if types.is_duration(array.type) else array
        array = array.cast(pyarrow.float64())
    values = array.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.where(np.isfinite(values), values, np.nan), np.zeros(len(values), bool)


def holds_numbers(array: pyarrow.Array) -> bool:
    """All cells are numbers; or nearly all, and many different: then the others are errors, not categories."""
    values, unfit = numbers(array)
    if not unfit.any():
        return True
    there = values[~np.isnan(values)]
    return unfit.sum() <= MOST_UNFIT * len(there) and len(np.unique(there)) > MANY


def _parsed(array: pyarrow.Array) -> tuple[np.ndarray, np.ndarray]:
    try:
        values = array.cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
        return np.where(np.isfinite(values), values, np.nan), np.zeros(len(values), bool)
    except pyarrow.ArrowInvalid:
        cells = [_number(cell) for cell in array.to_pylist()]
    values = np.array([np.nan if cell is None else cell for cell in cells], dtype=float)
    bad = np.array([cell is None for cell in cells])
    return np.where(np.isfinite(values), values, np.nan), bad


def _number(cell: str | None) -> float | None:
    """NaN for a missing cell, None for one that is no number."""
    if cell is None or not cell.strip():
        return np.nan
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return FLAGS.get(cell.strip().lower())


def words(array: pyarrow.Array) -> np.ndarray:
    """The cells as strings, None where there is none."""
    text = array if types.is_string(array.type) else as_text(array)
    return np.array(text.to_pylist(), dtype=object)


def moments(array: pyarrow.Array, form: str | None) -> tuple[np.ndarray, np.ndarray]:
    """The cells as datetime64 in seconds, NaT where there is none; and which cells hold something else."""
    nothing = ~np.asarray(array.is_valid())
    if is_text(array):
        if form is None:
            return np.full(len(array), np.datetime64("NaT", "s")), ~nothing
        array = _leniently(as_text(array), form)
    elif is_moment(array):
        array = _on_the_clock(array)
    else:
        return np.full(len(array), np.datetime64("NaT", "s")), ~nothing
    values = array.to_numpy(zero_copy_only=False).astype("datetime64[s]")
    return values, np.isnat(values) & ~nothing


def _leniently(text: pyarrow.Array, form: str) -> pyarrow.Array:
    """In this format or, cell by cell, with another time behind the same kind of day: midnight is often left out."""
    found = _strptime(text, form)
    if found.null_count > text.null_count:
        for other in FORMATS:
            if other[:DAY_LENGTH] == form[:DAY_LENGTH]:
                found = compute.coalesce(found, _strptime(text, other))
    return found


def _strptime(text: pyarrow.Array, form: str) -> pyarrow.Array:
    plain = compute.utf8_trim_whitespace(text)
    if form.endswith((":%S", ":%M")):
        plain = compute.replace_substring_regex(plain, TAIL, "")
    return compute.strptime(plain, format=form, unit="s", error_is_null=True)


def _on_the_clock(array: pyarrow.Array) -> pyarrow.Array:
    if types.is_time(array.type):
        unit = "s" if array.type == pyarrow.time32("s") else array.type.unit if hasattr(array.type, "unit") else "us"
        width = pyarrow.int32() if types.is_time32(array.type) else pyarrow.int64()
        return (
            array.cast(width)
            .cast(pyarrow.int64())
            .cast(pyarrow.timestamp(unit))
            .cast(pyarrow.timestamp("s"), safe=False)
        )
    if types.is_timestamp(array.type) and array.type.tz is not None:
        array = compute.local_timestamp(array)
    return array.cast(pyarrow.timestamp("s"), safe=False)


def format_of(array: pyarrow.Array) -> str | None:
    """The way in which all cells are written as moments; None if there is none."""
    text = as_text(array).drop_null()
    if not len(text) or not text[0].as_py()[:1].isdigit():
        return None
    fitting = [form for form in FORMATS if not _leniently(text[:50], form).null_count]
    fitting = [form for form in fitting if not _leniently(text, form).null_count]
    if len(fitting) > 1:
        fitting = [form for form in fitting if _runs_on(_leniently(text, form))] or fitting
    return fitting[0] if fitting else None


def _runs_on(moments: Any) -> bool:
    values = moments.to_numpy(zero_copy_only=False).astype("datetime64[s]")
    return bool(np.all(values[1:] >= values[:-1]))
