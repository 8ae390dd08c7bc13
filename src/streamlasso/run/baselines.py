"""What every model has to beat: the running mean, and that the next row is like the last."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamlasso.families import Family
from streamlasso.trace import RunningMean


class NumberRivals:
    """Of numbers: the mean of the rows so far, and the last value."""

    def __init__(
        self, family: Family, n: int = 0, total: float = 0.0, last: float | None = None, varied: bool = False
    ) -> None:
        self.family, self.last, self.varied = family, last, varied
        self.mean = RunningMean(family)
        self.mean.n, self.mean.total = n, total

    def losses(self, y: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
        """Of the next rows, which are then taken in."""
        before = np.concatenate([[y[0] if self.last is None else self.last], y[:-1]])
        baseline = Family.loss(self.family, y, self.mean.etas(y))
        persistence = Family.loss(self.family, y, self.family.persistence(before))
        if self.last is None:
            # Nothing went before the first row, so all are alike there.
            persistence[0] = baseline[0]
        self.varied = self.varied or bool(np.any(y != (y[0] if self.last is None else self.last)))
        self.last = float(y[-1])
        return baseline, persistence

    def state(self) -> dict[str, Any]:
        return {"n": self.mean.n, "total": float(self.mean.total), "last": self.last, "varied": self.varied}


class ClassRivals:
    """Of classes: how often each has come so far, and how often each has followed the last; from Jeffreys' prior."""

    def __init__(self, counts: list[int] | None = None, follow: list[list[int]] | None = None, last: int = -1) -> None:
        self.counts, self.follow, self.last = list(counts or []), [list(row) for row in follow or []], last

    def losses(self, y: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
        """The log losses of the next rows, which are then taken in."""
        self._make_room(max(n_classes, 2))
        baseline, persistence = np.empty(len(y)), np.empty(len(y))
        for i, label in enumerate(y.tolist()):
            baseline[i] = _log_loss(self.counts, label)
            persistence[i] = _log_loss(self.follow[self.last], label) if self.last >= 0 else baseline[i]
            self.counts[label] += 1
            if self.last >= 0:
                self.follow[self.last][label] += 1
            self.last = label
        return baseline, persistence

    @property
    def varied(self) -> bool:
        return sum(count > 0 for count in self.counts) > 1

    def _make_room(self, n: int) -> None:
        self.counts += [0] * (n - len(self.counts))
        self.follow = [row + [0] * (n - len(row)) for row in self.follow]
        self.follow += [[0] * n for _ in range(n - len(self.follow))]

    def state(self) -> dict[str, Any]:
        return {"counts": self.counts, "follow": self.follow, "last": self.last}


def _log_loss(counts: list[int], label: int) -> float:
    return float(np.log(sum(counts) + len(counts) / 2) - np.log(counts[label] + 0.5))
