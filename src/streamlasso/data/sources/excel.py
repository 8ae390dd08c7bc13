"""Excel workbooks (.xlsx): the first sheet, with the names of the columns in its first row that is not empty."""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import pyarrow

from streamlasso.data.sources.base import BLOCK_ROWS, FIRST_ROWS, MISSING, BadRows, Block, distinct
from streamlasso.data.sources.tables import seekable

ZIP = b"PK\x03\x04"


class Excel:
    """Cells keep their types; a column that holds several becomes text."""

    format = "Excel"
    extensions: ClassVar[tuple[str, ...]] = (".xlsx", ".xlsm")
    n_first = FIRST_ROWS

    def __init__(self, stream: io.BufferedReader, bad_rows: BadRows, *, live: bool) -> None:
        sheet = _first_sheet(stream)
        self._rows = enumerate(sheet.iter_rows(values_only=True), 1)
        head = next((row for _, row in self._rows if not _is_empty(row)), None)
        if head is None:
            raise ValueError("its first sheet is empty: use a first row with the names of the columns")
        width = max(i for i, cell in enumerate(head) if cell is not None) + 1
        self.columns = distinct(["" if cell is None else str(cell).strip() for cell in head[:width]])
        self.format = f"Excel (sheet {sheet.title})"

    @staticmethod
    def recognises(start: bytes) -> bool:
        return start.startswith(ZIP)

    def blocks(self) -> Iterator[Block]:
        seen, width = 0, len(self.columns)
        filled = ((number, row) for number, row in self._rows if not _is_empty(row))
        while rows := list(islice(filled, BLOCK_ROWS)):
            numbers = [number for number, _ in rows]
            cells = zip(*((*row, *[None] * width)[:width] for _, row in rows), strict=True)
            batch = pyarrow.RecordBatch.from_arrays([_array(list(column)) for column in cells], names=self.columns)
            yield Block(batch, _places(numbers), seen + np.arange(len(rows)))
            seen += len(rows)


def _places(numbers: list[int]) -> Any:
    return lambda i: f"row {numbers[i]:,}"


def _is_empty(row: tuple[Any, ...]) -> bool:
    return all(cell is None or cell == "" for cell in row)


def _array(cells: list[Any]) -> pyarrow.Array:
    cells = [None if isinstance(cell, str) and cell in MISSING else cell for cell in cells]
    try:
        return pyarrow.array(cells)
    except (pyarrow.ArrowException, OverflowError):
        return pyarrow.array([None if cell is None else str(cell) for cell in cells])


def _first_sheet(stream: io.BufferedReader) -> Any:
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise ImportError('Excel files need openpyxl: pip install "streamlasso[excel]"') from error
    try:
        return load_workbook(seekable(stream), read_only=True, data_only=True).worksheets[0]
    except Exception as error:  # a damaged workbook fails in many ways
        raise ValueError(f"it is a zip archive, but no Excel workbook that can be read ({error}): unpack it") from error
