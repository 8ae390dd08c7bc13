"""CSV, TSV and the like. Every cell stays text here: what a column holds is decided later, for all formats."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from itertools import chain
from typing import ClassVar

import numpy as np
import pyarrow
from pyarrow import csv as arrow_csv

from streamlasso._text import count
from streamlasso.data.sources.base import FIRST_ROWS, FIRST_ROWS_OF_PIPE, MISSING, BadRows, Block, distinct
from streamlasso.data.sources.lines import BYTE_ORDER_MARK, Bytes, is_text, whole_lines

DELIMITERS = ",;\t|"
#: Stands for the spaces between cells, where these separate them; nobody types it.
SPACES = "\x1f"
GAPS = re.compile(rb'"[^"\n]*"|(^[ \t]+|[ \t]+(?=\r?$))|([ \t]+)', re.MULTILINE)
#: Empty lines, and comments, before the names of the columns.
SKIPPED = re.compile(rb"\A([ \t\r]*\n|[ \t]*#[^\n]*(\n|\Z))+")
OLD_TEXT = " (not UTF-8: read as Windows-1252)"
NAMES_OF_FORMATS = {"\t": "tab-separated text", SPACES: "text separated by spaces"}


class Delimited:
    """A table as text, with the names of the columns in its first line that is not empty and no comment (#).

    If that line holds a number, and the last comment as many cells, the comment holds the names. `decimal_comma`: cells
    such as 1,234 are rather decimals, since a semicolon is used where a comma is taken.
    """

    extensions: ClassVar[tuple[str, ...]] = ()

    def __init__(self, stream: Bytes, bad_rows: BadRows, *, live: bool = False) -> None:
        self.bad_rows = bad_rows
        self.n_first = FIRST_ROWS_OF_PIPE if live else FIRST_ROWS
        blocks = whole_lines(stream, bad_rows, quoted=True, live=live)
        line, text, comment = _beginning(blocks)
        head = _head(text)
        rest = text[len(head) :]
        names, second = _recoded(head).decode(), _recoded(_head(rest.lstrip(b"\r\n"))).decode()
        self.delimiter = _delimiter(names, second)
        self.decimal_comma = self.delimiter == ";"
        self.format = NAMES_OF_FORMATS.get(self.delimiter, "CSV")
        self._as_utf8(head)
        if _names_in(comment, names, self.delimiter):
            names, second, head, rest = comment, names, b"", text
        self.columns = distinct([_bare(name) for name in self._names(names, second)])
        self._blocks = chain([(line + head.count(b"\n"), rest)], blocks)

    @staticmethod
    def recognises(start: bytes) -> bool:
        return is_text(start)

    def _names(self, head: str, second: str) -> list[str]:
        try:
            names = _cells(self._separated(head), self.delimiter)
        except csv.Error as error:
            returns = "its lines end with a carriage return only: convert it, say with tr '\\r' '\\n'"
            other = f"line 1: the names of the columns cannot be read ({error}): fix it"
            raise ValueError(returns if "\r" in head.rstrip() else other) from error
        if _n_cells(self._separated(second), self.delimiter) != len(names) + 1:
            return names
        cells = _cells(self._separated(second), self.delimiter)
        # R names the rows, but not the column of these names; some programs end all lines but the first by a delimiter.
        return ["", *names] if self.delimiter == SPACES else [*names, ""] if not cells[-1].strip() else names

    def _separated(self, line: str) -> str:
        return _with_separators(line.encode()).decode() if self.delimiter == SPACES else line

    def blocks(self) -> Iterator[Block]:
        seen = 0
        for line, text in self._blocks:
            rows, ragged = self._parsed(line, text)
            n = rows.num_rows + len(ragged)
            if rows.num_rows:
                yield Block(rows, self._where(line, text), np.delete(np.arange(seen, seen + n), ragged))
            seen += n

    def _parsed(self, line: int, text: bytes) -> tuple[pyarrow.RecordBatch, list[int]]:
        """All cells as text, and which rows have too few or too many fields: these are bad rows, and left out."""
        if not text.strip():
            return _no_rows(self.columns), []
        ragged: dict[int, int] = {}

        def note(row: arrow_csv.InvalidRow) -> str:
            ragged[row.number - 1] = row.actual_columns
            return "skip"

        text = _with_separators(text) if self.delimiter == SPACES else text
        try:
            table = self._read(self._as_utf8(text), note)
        except pyarrow.ArrowInvalid as error:
            raise ValueError(f"from line {line:,} on: {str(error).splitlines()[0]}: fix the file") from error
        if ragged:
            places = [f"line {number:,}" for number in self._lines(line, text)[1]]
            # If the two readers disagree about a line, it is still counted.
            places += [f"after line {line:,}"] * (len(ragged) - len(places))
            for place, n_cells in zip(places, ragged.values(), strict=False):
                fields = count(n_cells, "field")
                self.bad_rows.add(place, f"it has {fields}, but the first line has {len(self.columns)}")
        batches = table.combine_chunks().to_batches()
        return (batches[0] if batches else _no_rows(self.columns)), list(ragged)

    def _as_utf8(self, text: bytes) -> bytes:
        recoded = _recoded(text)
        if recoded is not text and OLD_TEXT not in self.format:
            self.format += OLD_TEXT
        return recoded

    def _read(self, text: bytes, note: object) -> pyarrow.Table:
        return arrow_csv.read_csv(
            pyarrow.BufferReader(text),
            read_options=arrow_csv.ReadOptions(
                column_names=self.columns, use_threads=False, block_size=max(len(text), 1) + 1
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=note
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(self.columns, pyarrow.string()),
                strings_can_be_null=True,
                null_values=MISSING,
            ),
        )

    def _where(self, line: int, text: bytes) -> Callable[[int], str]:
        @cache
        def lines() -> list[int]:
            return self._lines(line, text)[0]

        def where(i: int) -> str:
            return f"line {lines()[i]:,}" if i < len(lines()) else f"after line {line:,}"

        return where

    def _lines(self, line: int, text: bytes) -> tuple[list[int], list[int]]:
        """The numbers of the lines where good rows, and where ragged ones, begin; only needed for messages."""
        good: list[int] = []
        ragged: list[int] = []
        start = 0
        reader = csv.reader(io.StringIO(text.decode(errors="replace"), newline=""), delimiter=self.delimiter)
        # What this reader refuses, the other has read; only the numbers of the lines are lost then.
        with suppress(csv.Error):
            for cells in reader:
                if cells:
                    (good if len(cells) == len(self.columns) else ragged).append(line + start)
                start = reader.line_num
        return good, ragged


def _beginning(blocks: Iterator[tuple[int, bytes]]) -> tuple[int, bytes, str]:
    """The number of the first line that is not empty and no comment, the text from there (two lines or more, if there
    are), and the last comment before it."""
    line, text, comment = 1, b"", b""
    for number, more in blocks:
        text += more.removeprefix(BYTE_ORDER_MARK) if number == 1 else more
        skipped = SKIPPED.match(text)
        if skipped is not None:
            comments = [each for each in skipped.group().split(b"\n") if b"#" in each]
            comment = comments[-1].strip().lstrip(b"#").strip() if comments else comment
            line += skipped.group().count(b"\n")
            text = text[skipped.end() :]
        if text[len(_head(text)) :].strip():
            break
    if not text.strip():
        raise ValueError("it is empty: use a first line with the names of the columns")
    return line, text, _recoded(comment).decode()


def _names_in(comment: str, first: str, delimiter: str) -> bool:
    """Whether the comment before the first line holds the names: that line holds as many cells, and some number."""
    if delimiter == SPACES:
        comment, first = (_with_separators(line.encode()).decode() for line in (comment, first))
    alike = comment and 0 < _n_cells(comment, delimiter) == _n_cells(first, delimiter)
    return bool(alike and any(map(_is_number, _cells(first, delimiter))))


def _is_number(cell: str) -> bool:
    try:
        return float(cell) == float(cell)
    except ValueError:
        return False


def _bare(name: str) -> str:
    """Without spaces, and single quotes, around it."""
    name = name.strip()
    return name[1:-1] if len(name) > 2 and name[0] == name[-1] == "'" else name


def _with_separators(text: bytes) -> bytes:
    """Spaces between cells as SPACES; those around a line are dropped, those between quotes stay."""
    return GAPS.sub(lambda found: SPACES.encode() if found[2] else b"" if found[1] else found[0], text)


def _head(text: bytes) -> bytes:
    """The first line, with its end."""
    stop = text.find(b"\n") + 1
    while stop and text.count(b'"', 0, stop) % 2:
        stop = text.find(b"\n", stop) + 1
    return text[: stop or len(text)]


def _delimiter(head: str, second: str) -> str:
    """One that gives the second line as many cells as the first, if any; of several, the most frequent in the first."""
    if not any(mark in head for mark in DELIMITERS) and _are_separated_by_spaces(head, second):
        return SPACES
    by_number = sorted(DELIMITERS, key=lambda delimiter: -head.count(delimiter))
    present = [mark for mark in by_number if mark in head]
    alike = [mark for mark in present if _n_cells(head, mark) == _n_cells(second, mark)]
    return [*alike, *by_number][0]


def _are_separated_by_spaces(head: str, second: str) -> bool:
    names, cells = (_n_cells(_with_separators(line.encode()).decode(), SPACES) for line in (head, second))
    return names > 1 and cells in (names, names + 1)


def _n_cells(line: str, delimiter: str) -> int:
    try:
        return len(_cells(line, delimiter))
    except csv.Error:
        return 0  # an error that `_names` reports


def _cells(line: str, delimiter: str) -> list[str]:
    return next(csv.reader(io.StringIO(line), delimiter=delimiter), [])


def _recoded(text: bytes) -> bytes:
    """Lines that are not UTF-8 are taken to be Windows-1252, which older programs write."""
    try:
        text.decode()
        return text
    except UnicodeDecodeError:
        if b"\n" not in text[:-1]:
            return text.decode("cp1252", errors="replace").encode()
        return b"".join(_recoded(line) for line in text.splitlines(keepends=True))


def _no_rows(columns: list[str]) -> pyarrow.RecordBatch:
    return pyarrow.RecordBatch.from_pydict({name: pyarrow.array([], pyarrow.string()) for name in columns})
