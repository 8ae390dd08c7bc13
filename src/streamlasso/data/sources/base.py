"""What all sources share: blocks of rows, and what happens to rows that cannot be read."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import pyarrow

#: Bytes of text, and rows of a table, that are read at a time: they bound the memory, whatever the size of the file.
BLOCK_BYTES, BLOCK_ROWS = 1 << 20, 8192
#: The first rows, by which columns are recognised: of a file, and of a pipe, where rows may come slowly.
FIRST_ROWS, FIRST_ROWS_OF_PIPE = 10_000, 100
#: Text that stands for a missing value.
MISSING = ["", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None", "\\N", "?"]
#: Bad rows that are kept as examples; the others are counted.
MOST_EXAMPLES = 5


@dataclass(frozen=True)
class Block:
    """Consecutive rows.

    where : the place of a row in words: "line 17" of a text file, "row 17" of a table
    place : the number of each row in the source, from 0; unreadable rows count, empty lines do not
    origin : what identifies each row in a source that has no first row, say partition and offset; predictions have it
        instead of `place`
    """

    rows: pyarrow.RecordBatch
    where: Callable[[int], str]
    place: np.ndarray
    origin: pyarrow.RecordBatch | None = None

    def after(self, n: int) -> Block:
        """Without its first n rows."""
        origin = None if self.origin is None else self.origin.slice(n)
        return Block(self.rows.slice(n), lambda i: self.where(n + i), self.place[n:], origin)

    def origins(self, places: np.ndarray) -> dict[str, pyarrow.Array]:
        """The columns that identify some of its rows."""
        if self.origin is None:
            return {"row": pyarrow.array(self.place[places])}
        return {name: self.origin[name].take(pyarrow.array(places)) for name in self.origin.schema.names}


class Rows(Protocol):
    """What is read from: rows in order, in blocks.

    format : its name, for people
    columns : their names
    n_first : the number of rows by which columns are recognised
    """

    format: str
    columns: list[str]
    n_first: int

    def blocks(self) -> Iterator[Block]:
        """All rows; a block comes as soon as it is there."""
        ...


class Source(Rows, Protocol):
    """A format of files and pipes.

    extensions : file names that end so must be of this format
    """

    extensions: ClassVar[tuple[str, ...]]

    def __init__(self, stream: io.BufferedReader, bad_rows: BadRows, *, live: bool) -> None:
        """Read what is needed to know the columns; `live`: rows may come slowly, so do not wait for many."""
        ...

    @staticmethod
    def recognises(start: bytes) -> bool:
        """Whether a file that starts so is of this format."""
        ...


class Address(Rows, Protocol):
    """What is not a file, and can continue at any row.

    scheme : how its addresses begin, say "kafka://"
    """

    scheme: ClassVar[str]

    @classmethod
    def at(cls, address: str, bad_rows: BadRows, place: dict[str, Any] | None) -> Self:
        """From its first row, or from where a run has come (`place`)."""
        ...

    def passed(self, origin: pyarrow.RecordBatch) -> None:
        """These rows have been learnt, or left out."""
        ...

    def place(self) -> dict[str, Any]:
        """Where a run that continues has to go on: after the rows that were passed. For a checkpoint, as JSON."""
        ...

    def saved(self) -> None:
        """The place has been saved in a checkpoint."""
        ...


@dataclass
class BadRows:
    """Rows that cannot be read: the first one stops the run (on_error="stop"), or all are left out and counted.

    >>> from streamlasso.data.sources import BadRows
    >>> bad_rows = BadRows("skip")
    >>> bad_rows.add("line 7", "it has 3 fields, but the first line has 4")
    >>> bad_rows.n, bad_rows.examples
    (1, ['line 7: it has 3 fields, but the first line has 4'])
    """

    on_error: str = "stop"
    n: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, where: str, reason: str) -> None:
        if self.on_error == "stop":
            raise ValueError(f"{where}: {reason}. Fix it, or leave such rows out: --on-error skip")
        self.n += 1
        if len(self.examples) < MOST_EXAMPLES:
            self.examples.append(f"{where}: {reason}")


def row_places(first: int) -> Callable[[int], str]:
    """The places of rows in a table that has no lines, from 1."""
    return lambda i: f"row {first + i + 1:,}"


def distinct(names: list[str]) -> list[str]:
    """A name for each column, no name twice: "a, a, " is a, a.2, column 3."""
    taken: dict[str, None] = {}
    following: dict[str, int] = {}
    for i, name in enumerate(names):
        free, k = name or f"column {i + 1}", following.get(name, 2)
        while free in taken:
            free, k = f"{name}.{k}", k + 1
        taken[free], following[name] = None, k
    return list(taken)
