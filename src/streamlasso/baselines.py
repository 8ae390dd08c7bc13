"""What every model is compared with: the running mean, and persistence, for which the next row is like the last."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamlasso.core.learner import Learner
from streamlasso.core.record import RECORD
from streamlasso.families import Family
from streamlasso.memories import Forgetting
from streamlasso.penalties import L1
from streamlasso.tuners import Fixed


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
    """For numbers: the mean of the rows so far, and the last value."""

    def __init__(
        self, family: Family, n: int = 0, total: float = 0.0, last: float | None = None, varied: bool = False
    ) -> None:
        self.family, self.last, self.varied = family, last, varied
        self.mean = RunningMean(family)
        self.mean.n, self.mean.total = n, total

    def compared(self, y: np.ndarray, n_classes: int = 0) -> Compared:
        """Running mean and persistence in the next rows, which then count.

        >>> import numpy as np
        >>> from streamlasso.families import Gaussian
        >>> NumberBaselines(Gaussian()).compared(np.array([1.0, 2.0, 6.0])).baseline_error
        array([1. , 1. , 4.5])
        """
        before = np.concatenate([[y[0] if self.last is None else self.last], y[:-1]])
        means = self._means_before(y)
        baseline = self.family.losses(y, self.mean.etas(y))
        persistence = self.family.losses(y, self.family.persistence(before))
        errors = np.abs(y - means), np.abs(y - before)
        if self.last is None:
            # Nothing came before the first row, so both predict the same.
            persistence[0], errors[1][0] = baseline[0], errors[0][0]
        self.varied = self.varied or bool(np.any(y != (y[0] if self.last is None else self.last)))
        self.last = float(y[-1])
        return Compared(baseline, persistence, *errors)

    def _means_before(self, y: np.ndarray) -> np.ndarray:
        """In units of the response; 0 before the first row."""
        total = np.cumsum(np.concatenate([[self.mean.total], y[:-1]]))
        return total / np.maximum(self.mean.n + np.arange(len(y)), 1)

    def state(self) -> dict[str, Any]:
        return {"n": self.mean.n, "total": float(self.mean.total), "last": self.last, "varied": self.varied}


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
