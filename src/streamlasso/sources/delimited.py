"""CSV, TSV and the like. Every cell stays text here: what a column holds is decided later, for all formats alike."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from itertools import chain

import pyarrow
from pyarrow import csv as arrow_csv

from streamlasso.sources.base import Block, Complaints
from streamlasso.sources.lines import Bytes, whole_lines

DELIMITERS = ",;\t|"
#: What stands for a value that is not there.
MISSING = ["", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null", "None", "?"]
#: Rows to look at before a guess: of a file, and of a pipe, where rows may come slowly.
REACH, REACH_OF_PIPE = 10_000, 100


class Delimited:
    """A table as text, with the names in its first line. The delimiter is the one that the first line holds most of."""

    def __init__(self, stream: Bytes, complaints: Complaints, *, live: bool = False) -> None:
        self.complaints = complaints
        self.reach = REACH_OF_PIPE if live else REACH
        blocks = whole_lines(stream, complaints, quoted=True, live=live)
        line, first = next(blocks, (1, b""))
        first = _text(line, first).removeprefix("\ufeff").encode()
        if not first.strip():
            raise ValueError("there is nothing in it: a first line with the names of the columns is needed")
        head = _head(first)
        self.delimiter = max(DELIMITERS, key=lambda delimiter: head.count(delimiter.encode()))
        self.format = "tab-separated text" if self.delimiter == "\t" else "CSV"
        self.columns = distinct([name.strip() for name in self._names(_text(line, head))])
        self._blocks = chain([(line + head.count(b"\n"), first[len(head) :])], blocks)

    def _names(self, head: str) -> list[str]:
        try:
            return next(csv.reader(io.StringIO(head), delimiter=self.delimiter))
        except csv.Error as error:
            returns = "its lines end with a carriage return only; convert it, say with tr '\\r' '\\n'"
            other = f"line 1: the names of the columns cannot be read ({error}). Mend it"
            raise ValueError(returns if "\r" in head.rstrip() else other) from error

    def blocks(self) -> Iterator[Block]:
        for line, text in self._blocks:
            rows = self._parsed(line, text)
            if rows.num_rows:
                yield Block(rows, lambda i, line=line, text=text: f"line {self._lines(line, text)[0][i]:,}")  # type: ignore[misc]

    def _parsed(self, line: int, text: bytes) -> pyarrow.RecordBatch:
        """All cells as text. Ragged rows are left out, and complained about."""
        if not text.strip():
            return _no_rows(self.columns)
        ragged: list[int] = []

        def note(row: arrow_csv.InvalidRow) -> str:
            ragged.append(row.actual_columns)
            return "skip"

        try:
            table = self._read(text, note)
        except pyarrow.ArrowInvalid as error:
            _text(line, text)
            raise ValueError(f"from line {line:,} on: {str(error).splitlines()[0]}. Mend the file") from error
        if ragged:
            places = [f"line {number:,}" for number in self._lines(line, text)[1]]
            # Should the two readers disagree about a line, it is still counted.
            places += [f"after line {line:,}"] * (len(ragged) - len(places))
            for place, n_cells in zip(places, ragged, strict=False):
                self.complaints.about(place, f"it has {n_cells} fields, where the first line has {len(self.columns)}")
        batches = table.combine_chunks().to_batches()
        return batches[0] if batches else _no_rows(self.columns)

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

    def _lines(self, line: int, text: bytes) -> tuple[list[int], list[int]]:
        """The numbers of the lines where good rows, and where ragged ones, begin; looked up only to complain."""
        good: list[int] = []
        ragged: list[int] = []
        start = 0
        reader = csv.reader(io.StringIO(text.decode(errors="replace"), newline=""), delimiter=self.delimiter)
        for cells in reader:
            if cells:
                (good if len(cells) == len(self.columns) else ragged).append(line + start)
            start = reader.line_num
        return good, ragged


def distinct(names: list[str]) -> list[str]:
    """A name for each column, no name twice: "a, a, " is a, a.2, column 3."""
    out: list[str] = []
    for i, name in enumerate(names):
        fresh, k = name or f"column {i + 1}", 2
        while fresh in out:
            fresh, k = f"{name}.{k}", k + 1
        out.append(fresh)
    return out


def _head(text: bytes) -> bytes:
    """The first line, with its end."""
    stop = text.find(b"\n") + 1
    while stop and text.count(b'"', 0, stop) % 2:
        stop = text.find(b"\n", stop) + 1
    return text[: stop or len(text)]


def _text(line: int, text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        number = line + text.count(b"\n", 0, error.start)
        raise ValueError(
            f"line {number:,}: the text is not UTF-8; convert it, say with iconv -f latin1 -t utf8"
        ) from error


def _no_rows(columns: list[str]) -> pyarrow.RecordBatch:
    return pyarrow.RecordBatch.from_pydict({name: pyarrow.array([], pyarrow.string()) for name in columns})
