"""The last rows of a model, for pictures: kept one by one, shown as stretches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

#: Of each row: when it was learnt, what came, what was predicted, the losses, and the model after it.
COLUMNS = ("time", "y", "prediction", "loss", "baseline", "persistence", "lam", "memory", "active")
#: Rows that are kept.
MOST = 131_072
#: How the rows of a stretch become one point: those not named are means.
LAST = ("time", "lam", "memory", "active")


class History:
    """Rows in order; the first that is kept has the number `first`.

    >>> import numpy as np
    >>> history = History()
    >>> history.add(np.arange(18.0).reshape(2, 9))
    >>> history.points(0, 2, 1)["loss"], history.n_rows
    ([7.5], 2)
    """

    def __init__(self, first: int = 0) -> None:
        self.first, self.n, self.n_saved = first, 0, 0
        self.rows = np.empty((256, len(COLUMNS)))

    @property
    def n_rows(self) -> int:
        """The number of the next row."""
        return self.first + self.n

    def add(self, rows: np.ndarray) -> None:
        """(row, COLUMNS)"""
        if self.n + len(rows) > len(self.rows):
            self._make_room(len(rows))
        self.rows[self.n : self.n + len(rows)] = rows
        self.n += len(rows)

    def _make_room(self, more: int) -> None:
        """Grow, until too many are kept; then drop the oldest, a quarter of MOST at a time."""
        drop = max(self.n + more - MOST, 0)
        kept = self.rows[drop : self.n]
        wanted = min(max(2 * len(self.rows), len(kept) + more), MOST + MOST // 4)
        grown = np.empty((max(wanted, len(kept) + more), len(COLUMNS)))
        grown[: len(kept)] = kept
        drop = min(drop, self.n)
        self.rows, self.n, self.first = grown, self.n - drop, self.first + drop

    def restore(self, parts: Iterable[tuple[int, np.ndarray]]) -> None:
        """Rows from checkpoints, in order, each part with the number of its first row."""
        for first, rows in parts:
            if first != self.n_rows:
                self.first, self.n = first, 0
            self.add(rows)
        self.n_saved = self.n_rows

    def unsaved(self) -> tuple[int, np.ndarray]:
        """The rows since the last checkpoint, as far as they are kept, and the number of the first of them."""
        start = max(self.n_saved, self.first)
        return start, self.rows[start - self.first : self.n].copy()

    def points(self, start: int, stop: int, most: int) -> dict[str, list[Any]]:
        """Rows from `start` to before `stop` as at most so many stretches of equal length, by column; None is NaN."""
        start, stop = max(start, self.first), min(stop, self.n_rows)
        rows = self.rows[max(start - self.first, 0) : max(stop - self.first, 0)]
        size = stretch(len(rows), most)
        at = np.arange(0, len(rows), size)
        found: dict[str, np.ndarray] = {"row": np.minimum(at + size, len(rows)) - 1 + start}
        for k, name in enumerate(COLUMNS):
            column = rows[:, k]
            if name in LAST:
                found[name] = column[found["row"] - start]
                continue
            found[name] = _means(column, at)
            if name in ("y", "prediction"):
                for end, reduce in (("low", np.fmin), ("high", np.fmax)):
                    found[f"{name[0]}_{end}"] = reduce.reduceat(column, at) if len(at) else column
        return {name: _or_none(values) for name, values in found.items()}


def stretch(n_rows: int, most: int) -> int:
    """Rows per point."""
    return max(-(-n_rows // max(most, 1)), 1)


def _means(column: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Of what is there."""
    if not len(at):
        return column
    there = ~np.isnan(column)
    n = np.add.reduceat(there.astype(float), at)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.add.reduceat(np.where(there, column, 0.0), at) / n


def _or_none(values: np.ndarray) -> list[Any]:
    if np.isfinite(values).all():
        return values.tolist()
    return [value if np.isfinite(value) else None for value in values.tolist()]
