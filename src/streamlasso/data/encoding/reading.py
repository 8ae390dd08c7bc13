"""Cells of a table as numbers and as text; cells that cannot be read so are marked.

Numbers are read as people write them: 1,5 and 1.234,50 and 1,234.50 and 12 % and $5 and 5 kg; (12.50) is -12.50. The
format of a column is its decimal mark, followed by the sign or unit that all cells have, if any: "," or ".%" or ".kg".
None is the format that every program reads. `detect_formats.py` finds it.
"""

from __future__ import annotations

import numpy as np
import pyarrow
from pyarrow import compute, types

from streamlasso.data.sources.base import MISSING

FLAGS = {"true": 1.0, "false": 0.0}
#: A column with more than MANY different numbers, and at most this share of other cells, holds numbers.
MOST_UNFIT, MANY = 0.05, 30


def joined(batches: list[pyarrow.RecordBatch], most: int) -> pyarrow.RecordBatch:
    """The first rows of several batches as one. A column whose type differs between them becomes text."""
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


def is_temporal(array: pyarrow.Array) -> bool:
    return types.is_temporal(array.type) and not types.is_duration(array.type)


def as_text(array: pyarrow.Array) -> pyarrow.Array:
    """As strings, whatever the type."""
    return array.cast(pyarrow.string())


def finite_numbers(array: pyarrow.Array, number_format: str | None = None) -> tuple[np.ndarray, np.ndarray]:
    """As `numbers`, with NaN for what is beyond all numbers: for looking at the first rows."""
    values, unfit = numbers(array, number_format)
    return np.where(np.isfinite(values), values, np.nan), unfit


def numbers(array: pyarrow.Array, number_format: str | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The cells as floats, NaN where missing, infinite where they are beyond all numbers (inf, 1e400, 400 digits); and
    which cells hold something else (`reading.py`)."""
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if types.is_null(array.type):
        return np.full(len(array), np.nan), np.zeros(len(array), bool)
    if is_text(array):
        return _parsed(as_text(array), number_format)
    if is_temporal(array) or is_nested(array):
        return np.full(len(array), np.nan), np.asarray(array.is_valid())
    if types.is_decimal(array.type) or types.is_boolean(array.type) or types.is_duration(array.type):
        array = array.cast(pyarrow.int64()) if types.is_duration(array.type) else array
        array = array.cast(pyarrow.float64())
    values = array.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
    return values, np.zeros(len(values), bool)


def holds_numbers(array: pyarrow.Array, number_format: str | None = None) -> bool:
    """Whether all cells are numbers; or nearly all, and many different: then the others are errors, not levels."""
    values, unfit = finite_numbers(array, number_format)
    if not unfit.any():
        return True
    there = values[~np.isnan(values)]
    return unfit.sum() <= MOST_UNFIT * len(there) and len(np.unique(there)) > MANY


def _parsed(array: pyarrow.Array, number_format: str | None) -> tuple[np.ndarray, np.ndarray]:
    if number_format is not None:
        array = in_plain_format(array, number_format)
    try:
        values = array.cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
        return values, np.zeros(len(values), bool)
    except pyarrow.ArrowInvalid:
        cells = [_number(cell) for cell in array.to_pylist()]
    values = np.array([np.nan if cell is None else cell for cell in cells], dtype=float)
    bad = np.array([cell is None for cell in cells])
    return values, bad


def _number(cell: str | None) -> float | None:
    """NaN for a missing cell, None for one that is not a number."""
    if cell is None or is_blank(cell):
        return np.nan
    try:
        return None if "_" in cell else float(cell.replace("−", "-"))
    except (ValueError, OverflowError):
        return FLAGS.get(cell.strip().lower())


def keys(array: pyarrow.Array) -> np.ndarray:
    """The cells as text, whatever they are; None where missing."""
    if types.is_floating(array.type):
        array = compute.if_else(compute.is_nan(array), None, array)
    return texts(array)


def texts(array: pyarrow.Array) -> np.ndarray:
    """The cells as strings, without spaces around them; None where missing."""
    text = array if types.is_string(array.type) else as_text(array)
    trimmed = compute.utf8_trim_whitespace(text)
    if not trimmed.equals(text):
        trimmed = compute.if_else(compute.is_in(trimmed, value_set=pyarrow.array(MISSING)), None, trimmed)
    return np.array(trimmed.to_pylist(), dtype=object)


SIGNS = "%$€£¥"
#: What may stand between groups of digits, besides the mark that is not the decimal one.
GAPS = " \u00a0\u202f'’"
#: What stands for a missing value among numbers: a mark, a word, or the error of a spreadsheet.
BLANKS = {"-", "--", "---", ".", "..", "...", "–", "—", "*", "missing", "(null)"}
BLANKS |= {"#div/0!", "#value!", "#ref!", "#num!", "#name?", *(word.lower() for word in MISSING)}


def is_blank(cell: str) -> bool:
    """Whether the cell stands for a missing value among numbers."""
    return cell.strip().lower() in BLANKS


def in_plain_format(text: pyarrow.Array, number_format: str) -> pyarrow.Array:
    """The cells in the format that every program reads; those in another format become "no number".

    >>> import pyarrow
    >>> from streamlasso.data.encoding.reading import in_plain_format
    >>> in_plain_format(pyarrow.array(["1.234,5", "-", "1.5", "-7"]), ",").to_pylist()
    ['1234.5', None, 'no number', '-7']
    >>> in_plain_format(pyarrow.array(["5 kg", "(1,250 kg)", "7 lb"]), ".kg").to_pylist()
    ['5', '-1250', 'no number']
    """
    mark, sign = number_format[0], number_format[1:]
    text = compute.replace_substring(compute.utf8_trim_whitespace(text), "−", "-")
    text = compute.replace_substring_regex(text, r"^\(\s*([^-+()]*\d[^()]*)\)$", r"-\1")
    blank = compute.is_in(compute.utf8_lower(text), value_set=pyarrow.array(sorted(BLANKS)))
    digits = text
    if sign:
        has_sign = compute.match_substring(text, sign)
        digits = compute.if_else(has_sign, compute.replace_substring(text, sign, "", max_replacements=1), "")
        digits = compute.replace_substring_regex(compute.utf8_trim_whitespace(digits), r"^([+-])\s+", r"\1")
        if sign not in SIGNS:
            digits = compute.if_else(compute.ends_with(text, sign), digits, "")
    between = GAPS + {".": ",", ",": "."}[mark]
    fits = compute.match_substring_regex(digits, _pattern(mark, between))
    digits = compute.replace_substring_regex(digits, f"[{between}]", "")
    digits = compute.replace_substring(digits, ",", ".")
    return compute.if_else(blank, None, compute.if_else(fits, digits, "no number"))


def example(number_format: str) -> str:
    """A number in this format."""
    return {".": "1,234.5", ",": "1.234,5"}[number_format[0]] + number_format[1:]


def _pattern(mark: str, between: str) -> str:
    grouped = rf"[1-9]\d{{0,2}}([{between}]\d{{2,3}})*[{between}]\d{{3}}"
    return rf"^[+-]?((\d+|{grouped})([{mark}]\d*)?|[{mark}]\d+)([eE][+-]?\d+)?$"
