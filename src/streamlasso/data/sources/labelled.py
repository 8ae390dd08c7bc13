"""What formats with a label and many features per line share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

import numpy as np
import pyarrow

from streamlasso.data.sources.base import FIRST_ROWS, FIRST_ROWS_OF_PIPE, BadRows, Block
from streamlasso.data.sources.lines import BYTE_ORDER_MARK, Bytes, whole_lines


class Labelled:
    """One row per line: its label and, as text, the features (`data/encoding/sparse/columns.py`).

    target, sparse : the column that is predicted if none is named; columns of many features, and how they are written
    """

    names: ClassVar[tuple[str, ...]]
    target: ClassVar[str] = "label"
    sparse: ClassVar[dict[str, str]]

    def __init__(self, stream: Bytes, bad_rows: BadRows, *, live: bool = False) -> None:
        self.columns = list(self.names)
        self.n_first = FIRST_ROWS_OF_PIPE if live else FIRST_ROWS
        self._lines = whole_lines(stream, bad_rows, quoted=False, live=live)

    def blocks(self) -> Iterator[Block]:
        return _blocks_of(self._lines, self.columns, self._cells)

    @staticmethod
    def _cells(line: str) -> list[str | None] | None:
        """Those of a line that is not empty; None is no row."""
        raise NotImplementedError


def first_lines(start: bytes) -> Iterator[bytes]:
    """The lines at the start of a file that are not empty; the last may be cut."""
    lines = start.removeprefix(BYTE_ORDER_MARK).split(b"\n")
    return (line.strip() for line in lines if line.strip())


def _blocks_of(
    texts: Iterator[tuple[int, bytes]], columns: list[str], cells_of: Callable[[str], list[str | None] | None]
) -> Iterator[Block]:
    """Rows of text cells."""
    seen = 0
    for first, text in texts:
        lines: list[int] = []
        cells: list[list[str | None]] = []
        decoded = text.removeprefix(BYTE_ORDER_MARK if first == 1 else b"").decode(errors="replace")
        for number, line in enumerate(decoded.split("\n"), first):
            row = cells_of(line.replace("\t", " ").strip()) if line.strip() else None
            if row is not None:
                lines.append(number)
                cells.append(row)
        if cells:
            arrays = [pyarrow.array(column, pyarrow.string()) for column in zip(*cells, strict=True)]
            batch = pyarrow.RecordBatch.from_arrays(arrays, names=columns)
            yield Block(batch, _where(lines), np.arange(seen, seen + len(cells)))
            seen += len(cells)


def _where(lines: list[int]) -> Callable[[int], str]:
    return lambda i: f"line {lines[i]:,}"
