"""Tables as CSV that a spreadsheet shows, and does not run.

A cell that begins with = + - or @ is a formula to a spreadsheet, also between quotes. Text that begins so gets an
apostrophe in front, which spreadsheets take for "this is text"; numbers stay numbers, negative ones too.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    import pyarrow

#: What a spreadsheet may run, unless it stands alone; a tab or a carriage return before it is skipped by some.
FORMULA = r"(?s)^[=+\-@\t\r]."
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


def harmless(cell: Any) -> Any:
    """A cell as a spreadsheet shows it.

    >>> [harmless(cell) for cell in ("=1+1", "-1.5", "+2e3", "-x", "a=b", -3)]
    ["'=1+1", '-1.5', '+2e3', "'-x", 'a=b', -3]
    """
    if isinstance(cell, str) and re.search(FORMULA, cell) and not re.search(NUMBER, cell):
        return f"'{cell}"
    return cell


def write_row(file: TextIO, cells: Iterable[Any]) -> None:
    """One line."""
    csv.writer(file).writerow(map(harmless, cells))


def csv_bytes(table: pyarrow.Table | pyarrow.RecordBatch, *, head: bool = True, delimiter: str = ",") -> bytes:
    """A table, with the names of its columns where asked."""
    import pyarrow
    from pyarrow import csv as arrow_csv

    arrays = [_harmless_column(table.column(i)) for i in range(table.num_columns)]
    out = io.BytesIO(_head(table.schema.names, delimiter) if head else b"")
    out.seek(0, io.SEEK_END)
    options = arrow_csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="needed")
    arrow_csv.write_csv(pyarrow.table(arrays, names=table.schema.names), out, options)
    return out.getvalue()


def _head(names: list[str], delimiter: str) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter).writerow(map(harmless, names))
    return text.getvalue().removesuffix("\r\n").encode() + b"\n"


def _harmless_column(column: Any) -> Any:
    import pyarrow
    from pyarrow import compute

    if not (pyarrow.types.is_string(column.type) or pyarrow.types.is_large_string(column.type)):
        return column
    found = compute.match_substring_regex(column, FORMULA)
    if not compute.any(found).as_py():
        return column
    found = compute.and_(found, compute.invert(compute.match_substring_regex(column, NUMBER)))
    return compute.if_else(found, compute.binary_join_element_wise("'", column, ""), column)
