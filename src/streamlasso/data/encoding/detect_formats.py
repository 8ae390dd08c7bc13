"""The number format of each column, detected from the first rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow
from pyarrow import compute

from streamlasso._text import listed_things
from streamlasso.data.encoding import reading
from streamlasso.data.encoding.reading import SIGNS

#: Text that may be a number.
LIKE_A_NUMBER = r"^\W*\d[^a-zA-Z/:]*$"
#: A number and its unit: 5 kg, 12.5km/h, (3 m).
WITH_UNIT = re.compile(r"\s*\(?\s*[-+−]?\d[\d.,' ]*?\s*(?P<unit>[a-zA-Zµ°Ω²³][a-zA-Z°/²³]{0,5})\)?\s*$")
#: Columns that a note names.
MOST_NAMED = 5


def detect_formats(rows: pyarrow.RecordBatch, decimal_comma: bool = False) -> dict[str, str]:
    """The format of every column of numbers in text that is not plain.

    A cell such as 1,234 fits both marks: it is a thousand, unless another column needs a decimal comma, or the file is
    of a kind that has them (`decimal_comma`).

    >>> import pyarrow
    >>> from streamlasso.data.encoding.detect_formats import detect_formats
    >>> detect_formats(pyarrow.RecordBatch.from_pydict({"a": ["1,234", "2,000"], "b": ["5 %", "6 %"], "c": ["1", "x"]}))
    {'a': '.', 'b': '.%'}
    >>> detect_formats(pyarrow.RecordBatch.from_pydict({"a": ["1,234", "2,000"], "b": ["0,5", "7"]}))
    {'a': ',', 'b': ','}
    """
    texts = {name: rows[name] for name in rows.schema.names if reading.is_text(rows[name])}
    plain = [name for name, cells in texts.items() if reading.holds_numbers(cells)]
    odd = {name: formats for name, cells in texts.items() if name not in plain and (formats := _fitting(cells))}
    if not _decimal_commas(odd) and not (decimal_comma and _could_be_commas(odd)):
        return {name: formats[0] for name, formats in odd.items() if formats[0].startswith(".")}
    whole = {name: [","] for name in plain if _whole(texts[name])}
    return {name: formats[-1] for name, formats in {**odd, **whole}.items()}


def _whole(cells: pyarrow.Array) -> bool:
    """Whole numbers, where other columns have decimal commas: one may come later, and 1.234 with 987 is a thousand."""
    dots = compute.match_substring(reading.as_text(cells), ".").drop_null()
    return not (len(dots) and all(dots.to_pylist())) and _n_unfit(cells, ",") <= _n_unfit(cells, None)


def _fitting(cells: pyarrow.Array) -> list[str]:
    """The formats in which most cells are numbers: with a decimal point, with a decimal comma, both or none."""
    text = reading.as_text(cells)
    some = text.drop_null().slice(0, 100)
    if not any(compute.match_substring_regex(some, LIKE_A_NUMBER).to_pylist()) and not _unit(some):
        return []
    sign = next((sign for sign in SIGNS if _occurs(text, sign)), "") or _unit(some)
    formats = [mark + sign for mark in ".," if reading.holds_numbers(cells, mark + sign)]
    unfit = {number_format: _n_unfit(cells, number_format) for number_format in formats}
    formats = [number_format for number_format in formats if unfit[number_format] == min(unfit.values())]
    # Without a comma there is no decimal comma: 192.168.100.101 is not a number.
    return [] if formats == [f",{sign}"] and not _occurs(text, ",") else formats


def _decimal_commas(odd: Mapping[str, list[str]]) -> bool:
    """Some column can only be read with a decimal comma, and none only with a comma between thousands."""
    marks = [{number_format[0] for number_format in formats} for formats in odd.values()]
    return {","} in marks and {"."} not in marks


def _could_be_commas(odd: Mapping[str, list[str]]) -> bool:
    """All columns can be read with a decimal comma, and some cells have one."""
    return bool(odd) and all(any(each.startswith(",") for each in formats) for formats in odd.values())


def _unit(cells: pyarrow.Array) -> str:
    """The unit behind all numbers, if they have the same; empty if not."""
    found = {match["unit"] if match else "" for match in map(WITH_UNIT.match, cells.to_pylist())}
    return found.pop() if len(found) == 1 else ""


def _n_unfit(cells: pyarrow.Array, number_format: str | None) -> int:
    return int(reading.finite_numbers(cells, number_format)[1].sum())


def _occurs(text: pyarrow.Array, mark: str) -> bool:
    return bool(compute.any(compute.match_substring(text, mark)).as_py())


def format_notes(rows: pyarrow.RecordBatch, formats: Mapping[str, str], names: Iterable[str]) -> list[str]:
    """How cells that are not plain are read, with an example for each format."""
    examples: dict[str, str] = {}
    columns: dict[str, list[str]] = {}
    for name in names:
        cell = _telling_cell(rows[name], formats[name]) if name in formats else None
        if cell is not None:
            examples.setdefault(formats[name], cell)
            columns.setdefault(formats[name], []).append(name)
    return [_note(examples[number_format], number_format, of) for number_format, of in columns.items()]


def _telling_cell(cells: pyarrow.Array, number_format: str) -> str | None:
    """One that would be read differently in the plain format; if possible not 0, which tells little."""
    plain, _ = reading.finite_numbers(cells)
    values, _ = reading.finite_numbers(cells, number_format)
    different = np.flatnonzero(~np.isnan(values) & (plain != values))
    telling = [*different[values[different] != 0][:1], *different[:1]]
    return cells[int(telling[0])].as_py() if telling else None


def _note(cell: str, number_format: str, columns: list[str]) -> str:
    (value,), _ = reading.finite_numbers(pyarrow.array([cell]), number_format)
    return f"{cell!r} is read as {value:.15g} ({listed_things('column', columns, MOST_NAMED)})"
