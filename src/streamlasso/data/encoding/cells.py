"""Rows of a table on their way to numbers: as they were read, and as the engine takes them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow


class Cells(NamedTuple):
    """Rows as they were read: for each column the values and which of them are unfit; the target; the time, or None;
    the keys, or None."""

    rows: pyarrow.RecordBatch
    columns: dict[str, tuple[np.ndarray, np.ndarray]]
    target: np.ndarray
    time: np.ndarray | None
    keys: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.target)

    def part(self, rows: slice) -> Cells:
        columns = {name: (values[rows], unfit[rows]) for name, (values, unfit) in self.columns.items()}
        table = self.rows.slice(rows.start, rows.stop - rows.start)
        time, keys = (None if values is None else values[rows] for values in (self.time, self.keys))
        return Cells(table, columns, self.target[rows], time, keys)


class Encoded(NamedTuple):
    """Rows as the engine takes them.

    X : (row, feature), as wide as after the last row
    width : the number of features when each row came; the others were 0 until then
    target : numbers, or places among the classes; NaN, or -1, where missing
    time : the values of the time column, or None
    place : the number of each row among the rows given; those that cannot be read are left out
    keys : the key of each row, or None
    weights : the weight of each row, or None
    """

    X: np.ndarray
    width: np.ndarray
    target: np.ndarray
    time: np.ndarray | None
    place: np.ndarray
    keys: np.ndarray | None = None
    weights: np.ndarray | None = None

    def part(self, rows: slice) -> np.ndarray:
        """The features of some rows, as wide as at the first of them; rows of dicts have no width."""
        return self.X[rows] if self.X.ndim == 1 else self.X[rows, : self.width[rows.start]]

    def when(self, i: int) -> str:
        """The time of a row, or nothing if it is missing."""
        if self.time is None or self.time[i] is None or self.time[i] != self.time[i]:
            return ""
        return str(self.time[i]).replace("T", " ")
