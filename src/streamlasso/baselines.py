"""What every model is compared with: the running mean, and persistence, for which the next row is like the last, or
like that of the last season."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from streamlasso.core.base.record import RECORD
from streamlasso.core.lasso.learner import Learner
from streamlasso.families import Family
from streamlasso.memories import Forgetting
from streamlasso.penalties import L1
from streamlasso.tuners import Fixed

#: The baselines of numbers.
MEAN, LAST, SEASON = "the mean", "the last value", "the last season's value"


class RunningMean:
    """eta of the plain mean of the rows before each row, whatever memory and weights the model has.

    No row comes before the first: its eta is 0, as for a model that has learnt nothing. A family gives the eta of its
    mean with `Family.running_mean`; for one that does not, it is the intercept of a model that forgets nothing.

    >>> import numpy as np
    >>> from streamlasso.families import Gaussian
    >>> RunningMean(Gaussian()).etas(np.array([1.0, 2.0, 6.0, 3.0]))
    array([0. , 1. , 1.5, 3. ])
    """

    def __init__(self, family: Family) -> None:
        self.family = family
        self.n, self.total = 0, 0.0
        known = family.running_mean(np.zeros(1), np.zeros(1)) is not None
        self.intercept = None if known else _intercept_only(family)

    def etas(self, y: np.ndarray) -> np.ndarray:
        """eta before each of the next rows, which then count."""
        if self.intercept is not None:
            record = np.empty((len(y), len(RECORD)))
            self.intercept.learn(np.zeros((len(y), 1)), y, None, record)
            return record[:, 0]
        n = self.n + np.arange(len(y))
        total = np.cumsum(np.concatenate([[self.total], y]))
        self.n, self.total = self.n + len(y), total[-1]
        return self.family.running_mean(n, total[:-1])


def _intercept_only(family: Family) -> Learner:
    """Its one feature is always 0 and stays out."""
    return Learner(1, family=family, memory=Forgetting(1.0), penalty=L1(), tuner=Fixed(0.0))


class Compared(NamedTuple):
    """The losses of running mean and persistence, one per row, and their errors.

    An error is the distance of the prediction from the response; for classes 1 if the likeliest class is wrong, else 0.
    """

    baseline: np.ndarray
    persistence: np.ndarray
    baseline_error: np.ndarray
    persistence_error: np.ndarray


class NumberBaselines:
    """For numbers: the mean of the rows so far, the last value, and that of the last season.

    season : the number of rows in a season, or None
    n, total, last, varied : of the values so far
    past : the last values, as many as a season has; where one was missing, that of the season before

    >>> import numpy as np
    >>> from streamlasso.families import Gaussian
    >>> etas = NumberBaselines(Gaussian(), season=3).etas(np.array([1.0, 2.0, 6.0, 1.5]))
    >>> for name, eta in etas.items():
    ...     print(name, eta.round(2))
    the mean [0.  1.  1.5 3. ]
    the last value [0. 1. 2. 6.]
    the last season's value [0. 1. 2. 1.]
    """

    def __init__(
        self,
        family: Family,
        season: int | None = None,
        n: int = 0,
        total: float = 0.0,
        last: float = math.nan,
        past: Iterable[float] = (),
        varied: bool = False,
    ) -> None:
        self.family, self.season = family, season
        self.n, self.total, self.last, self.varied = n, total, last, varied
        self.past = deque(past, season)
        self.mean = RunningMean(family)

    def etas(self, y: np.ndarray) -> dict[str, np.ndarray]:
        """eta of each baseline before each of the next rows, which then count; y is NaN where missing.

        Before the first value all are 0. A family without `running_mean` has no mean in rows without a value.
        """
        there = ~np.isnan(y)
        n = self.n + np.concatenate([[0.0], np.cumsum(there)])
        total = np.cumsum(np.concatenate([[self.total], np.where(there, y, 0.0)]))
        values = np.concatenate([[self.last], y])
        last = values[np.maximum.accumulate(np.where(np.concatenate([[True], there]), np.arange(len(values)), 0))]
        seasonal = None if self.season is None else self._season_before(y, n, last)
        known = y[there]
        if len(known):
            self.varied = self.varied or bool(np.any(known != (self.last if self.n else known[0])))
        self.n, self.total, self.last = int(n[-1]), float(total[-1]), float(last[-1])
        found = {MEAN: self._mean(y, n[:-1], total[:-1]), LAST: self._eta(last[:-1])}
        return found if seasonal is None else {**found, SEASON: self._eta(seasonal)}

    def _season_before(self, y: np.ndarray, n: np.ndarray, last: np.ndarray) -> np.ndarray:
        """The value a season before each row; the last one where there is none."""
        found = []
        for value, n_before, latest in zip(y.tolist(), n[:-1].tolist(), last[:-1].tolist(), strict=True):
            past = self.past[0] if len(self.past) == self.season else latest
            found.append(past)
            if n_before or value == value:
                self.past.append(value if value == value else past)
        return np.array(found)

    def _eta(self, values: np.ndarray) -> np.ndarray:
        known = ~np.isnan(values)
        return np.where(known, self.family.persistence(np.where(known, values, 1.0)), 0.0)

    def _mean(self, y: np.ndarray, n: np.ndarray, total: np.ndarray) -> np.ndarray:
        if self.mean.intercept is None:
            return self.family.running_mean(n, total)
        there, means = ~np.isnan(y), np.full(len(y), np.nan)
        means[there] = self.mean.etas(y[there])
        return means

    def state(self) -> dict[str, Any]:
        numbers = {"n": self.n, "total": self.total, "varied": self.varied}
        last = {"last": self.last} if self.n else {}
        return {"season": self.season, **numbers, **last, "past": list(self.past)}


class ClassBaselines:
    """For classes: how often each has come so far, and how often each has followed the last; with Jeffreys' prior."""

    def __init__(self, counts: list[int] | None = None, follow: list[list[int]] | None = None, last: int = -1) -> None:
        self.counts, self.follow, self.last = list(counts or []), [list(row) for row in follow or []], last

    def compared(self, y: np.ndarray, n_classes: int) -> Compared:
        """Running mean and persistence, with log losses, in the next rows, which then count."""
        self._make_room(max(n_classes, 2))
        compared = Compared(*(np.empty(len(y)) for _ in Compared._fields))
        for i, label in enumerate(y.tolist()):
            follow = self.follow[self.last] if self.last >= 0 else self.counts
            compared.baseline[i], compared.baseline_error[i] = _log_loss(self.counts, label), _wrong(self.counts, label)
            compared.persistence[i], compared.persistence_error[i] = _log_loss(follow, label), _wrong(follow, label)
            self.counts[label] += 1
            if self.last >= 0:
                self.follow[self.last][label] += 1
            self.last = label
        return compared

    @property
    def varied(self) -> bool:
        return sum(count > 0 for count in self.counts) > 1

    def _make_room(self, n: int) -> None:
        self.counts += [0] * (n - len(self.counts))
        self.follow = [row + [0] * (n - len(row)) for row in self.follow]
        self.follow += [[0] * n for _ in range(n - len(self.follow))]

    def state(self) -> dict[str, Any]:
        return {"counts": self.counts, "follow": self.follow, "last": self.last}


def _wrong(counts: list[int], label: int) -> bool:
    """Whether the most common class is another."""
    return counts.index(max(counts)) != label


def _log_loss(counts: list[int], label: int) -> float:
    return float(np.log(sum(counts) + len(counts) / 2) - np.log(counts[label] + 0.5))
