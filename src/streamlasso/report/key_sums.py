"""What each key of a run has lost so far, in a few numbers per key, and which keys stand out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow

#: The sums of a key: rows, rows whose loss counts, their losses, those of the pooled model and of the running mean, and
#: losses of which a row's is worth DECAY of the next one's, with the sum of these weights.
SUMS = ("rows", "scored", "loss", "pooled", "baseline", "late", "late_weight")
ROWS, SCORED, LOSS, POOLED, BASELINE, LATE, LATE_WEIGHT = range(len(SUMS))
DECAY = 0.98
#: Keys with fewer losses are not ranked by loss or change: the first predictions of a key say little.
LEAST_ROWS = 10


class KeyLosses(NamedTuple):
    """By key, in the order in which they came: mean losses, and what follows from them.

    gain : loss of the pooled model less the own, summed over the rows of the key
    change : the recent loss over the loss of all rows, less 1
    weight : of the own model, in the next prediction of the key
    """

    keys: Sequence[str]
    rows: np.ndarray
    scored: np.ndarray
    loss: np.ndarray
    pooled: np.ndarray
    baseline: np.ndarray
    gain: np.ndarray
    late: np.ndarray
    change: np.ndarray
    weight: np.ndarray

    def most(self, name: str, n: int) -> np.ndarray:
        """The n keys with the largest values, the largest first."""
        values = getattr(self, name)
        least = 1 if name == "gain" else min(LEAST_ROWS, self.scored.max(initial=0))
        fit = np.flatnonzero((self.scored >= max(least, 1)) & np.isfinite(values))
        return fit[np.argsort(-values[fit], kind="stable")[:n]]

    def table(self) -> pyarrow.Table:
        """All keys, the largest gain first; a key without a loss has none."""
        order = np.argsort(-np.where(np.isnan(self.gain), -np.inf, self.gain), kind="stable")
        columns: dict[str, Any] = {"key": pyarrow.array([self.keys[i] for i in order], pyarrow.string())}
        for name in ("rows", "loss", "pooled", "baseline", "gain", "late", "change", "weight"):
            columns[name] = pyarrow.array(getattr(self, name)[order], from_pandas=True)
        return pyarrow.table(columns)


class KeySums:
    """Sums by the number of a key; `table` is (key, SUMS).

    >>> import numpy as np
    >>> sums = KeySums()
    >>> losses = np.array([4.0, 1.0, 2.0])
    >>> sums.add(np.array([0, 1, 0]), np.ones(3, bool), losses, losses + 1, losses + 2)
    >>> found = sums.losses(["north", "south"], np.zeros(2))
    >>> found.loss, found.gain, found.late.round(2)
    (array([3., 1.]), array([2., 1.]), array([2.99, 1.  ]))
    """

    def __init__(self, table: np.ndarray | None = None) -> None:
        self.table = np.zeros((0, len(SUMS))) if table is None else table

    def add(
        self, numbers: np.ndarray, scored: np.ndarray, loss: np.ndarray, pooled: np.ndarray, baseline: np.ndarray
    ) -> None:
        """Rows of the keys of these numbers, in order."""
        self._make_room(int(numbers.max(initial=-1)) + 1)
        np.add.at(self.table[:, ROWS], numbers, 1)
        numbers = numbers[scored]
        np.add.at(self.table[:, SCORED], numbers, 1)
        for column, values in ((LOSS, loss), (POOLED, pooled), (BASELINE, baseline)):
            np.add.at(self.table[:, column], numbers, values[scored])
        for number, value in zip(numbers.tolist(), loss[scored].tolist(), strict=True):
            key = self.table[number]
            key[LATE], key[LATE_WEIGHT] = DECAY * key[LATE] + value, DECAY * key[LATE_WEIGHT] + 1.0

    def _make_room(self, n: int) -> None:
        if n > len(self.table):
            more = np.zeros((max(n, 2 * len(self.table)) - len(self.table), len(SUMS)))
            self.table = np.concatenate([self.table, more])

    def losses(self, keys: Sequence[str], weight: np.ndarray) -> KeyLosses:
        """Of the first keys, by their names."""
        self._make_room(len(keys))
        rows, scored, *sums, late, late_weight = self.table[: len(keys)].T
        with np.errstate(invalid="ignore", divide="ignore"):
            loss, pooled, baseline = (total / scored for total in sums)
            late = late / late_weight
            gain = np.where(scored > 0, sums[1] - sums[0], np.nan)
            change = np.where(loss > 0, late / loss - 1.0, np.nan)
        counts = rows.astype(np.int64), scored.astype(np.int64)
        return KeyLosses(keys, *counts, loss, pooled, baseline, gain, late, change, weight)
