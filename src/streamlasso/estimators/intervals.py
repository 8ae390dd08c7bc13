"""Intervals and quantiles: what may be asked for, and what a model says."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamlasso.core.base.part import is_number
from streamlasso.core.model import Engine
from streamlasso.core.monitor.intervals import Quantiles


def refuse_coverage(coverage: Any, name: str = "coverage=") -> float:
    """A share of the responses, or of the rows."""
    if not is_number(coverage) or not 0.0 < coverage < 1.0:
        raise ValueError(f"{name}{coverage!r} must be a number between 0 and 1, such as 0.9")
    return float(coverage)


#: Levels below the median at which the share of the lowest count is looked for, and the level of the upper end where
#: the lower end leaves that count: between those that each side's coverage asks for, 1 - 2 tail and 1 - tail, and not
#: below the median, which always lies inside.
TAILS = np.arange(0.01, 0.5, 0.01)
UPPER = np.maximum(1.0 - 1.5 * TAILS, 0.5)


class Ends:
    """The ends of a central interval: which levels they are, and where they lie.

    Counts near 0 have no tail below. With t the largest of TAILS whose quantile is the lowest count, an interval that
    leaves out less than t on either side begins there, and its upper end is the quantile at its coverage. So that it
    holds the narrower ones, which leave the lowest count out, its upper end is at UPPER or above, and theirs at UPPER
    or below.
    """

    def __init__(self, quantiles: Quantiles, coverage: Any) -> None:
        self.whole, self.lowest = quantiles.whole, quantiles.lowest
        self.coverage = refuse_coverage(coverage)
        self.low = (1.0 - self.coverage) / 2.0
        self.high = 1.0 - self.low
        more = {self.coverage, *TAILS.tolist(), *UPPER.tolist()} if self.whole else set()
        self.levels = sorted({self.low, self.high} | more)

    def of(self, quantiles: np.ndarray) -> np.ndarray:
        """(row, low and high), from the quantiles at `levels`."""
        low, high = self._at(quantiles, self.low), self._at(quantiles, self.high)
        if self.whole:
            n = np.count_nonzero(self._at(quantiles, TAILS) <= self.lowest, axis=1)
            tail = np.append(0.0, TAILS)[n]
            upper = self._at(quantiles, UPPER)[np.arange(len(n)), np.maximum(n - 1, 0)]
            central = np.where(n > 0, np.minimum(high, upper), high)
            high = np.where(self.low <= tail, np.maximum(self._at(quantiles, self.coverage), upper), central)
        return np.column_stack([low, high])

    def _at(self, quantiles: np.ndarray, level: Any) -> np.ndarray:
        found: np.ndarray = quantiles[:, np.searchsorted(self.levels, level)]
        return found


def levels_of(levels: Any) -> np.ndarray:
    """Levels of quantiles, in ascending order."""
    found = np.atleast_1d(np.asarray(levels, dtype=float))
    if found.ndim != 1 or not len(found) or not np.all((found > 0.0) & (found < 1.0)) or np.any(np.diff(found) <= 0.0):
        raise ValueError(f"levels={levels!r} must ascend, between 0 and 1, such as [0.1, 0.5, 0.9]")
    return found


def errors_of(learner: Engine) -> Quantiles:
    """What a model knows of its errors."""
    if learner.quantiles is None:
        raise ValueError(f"family={learner.settings['family']!r} has no intervals: use predict, or predict_proba")
    return learner.quantiles


def quantiles_of(learner: Engine, eta: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """(row, level), never out of order."""
    return errors_of(learner).around(np.ascontiguousarray(eta), levels)


def interval_of(learner: Engine, eta: np.ndarray, coverage: Any) -> np.ndarray:
    """(row, low and high)"""
    ends = Ends(errors_of(learner), coverage)
    return ends.of(quantiles_of(learner, eta, np.array(ends.levels)))
