"""What all sources share: blocks of rows, and what becomes of rows that cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow

#: Bytes of text, and rows of a table, that are read at a time: what bounds the memory, whatever the size of the file.
BLOCK_BYTES, BLOCK_ROWS = 1 << 20, 8192
#: Complaints that are kept word by word; the others are counted.
MOST_KEPT = 5


@dataclass(frozen=True)
class Block:
    """Some rows in order.

    where : where each of them stood: "line 17" of a text file, "row 17" of a table
    place : which row of the source each is, counted from 0; rows that could not be read count, empty lines do not
    """

    rows: pyarrow.RecordBatch
    where: Callable[[int], str]
    place: np.ndarray

    def after(self, n: int) -> Block:
        """Without its first n rows."""
        return Block(self.rows.slice(n), lambda i: self.where(n + i), self.place[n:])


class Source(Protocol):
    """Rows in order, in blocks. `columns` are the names; `reach` is how many rows to look at before a guess.

    format : what was read, in words
    """

    format: str
    columns: list[str]
    reach: int

    def blocks(self) -> Iterator[Block]:
        """The rows from the first on; a block comes as soon as there is one."""
        ...


@dataclass
class Complaints:
    """Rows that cannot be read: the first one stops the run, or all are skipped and counted.

    >>> from streamlasso.sources import Complaints
    >>> complaints = Complaints("skip")
    >>> complaints.about("line 7", "it has 3 fields, where the first line has 4")
    >>> complaints.n, complaints.kept
    (1, ['line 7: it has 3 fields, where the first line has 4'])
    """

    on_error: str = "stop"
    n: int = 0
    kept: list[str] = field(default_factory=list)

    def about(self, where: str, words: str) -> None:
        if self.on_error == "stop":
            raise ValueError(f"{where}: {words}. Mend it, or leave such rows out: --on-error skip")
        self.n += 1
        if len(self.kept) < MOST_KEPT:
            self.kept.append(f"{where}: {words}")


def in_order(first: int) -> Callable[[int], str]:
    """Places in a table without lines, counted from 1."""
    return lambda i: f"row {first + i + 1:,}"
