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


class Ends:
    """The ends of a central interval: which levels they are, and where they lie.

    Counts near 0 have no tail below: where the lower end is the lowest count there is, all that the interval leaves out
    is above it, and the upper end is the quantile at `coverage`.
    """

    def __init__(self, quantiles: Quantiles, coverage: Any) -> None:
        self.whole, self.lowest = quantiles.whole, quantiles.lowest
        self.one_sided = refuse_coverage(coverage)
        self.low = (1.0 - self.one_sided) / 2.0
        self.high = 1.0 - self.low
        self.levels = sorted({self.low, self.one_sided, self.high})

    def of(self, quantiles: np.ndarray) -> np.ndarray:
        """(row, low and high), from the quantiles at `levels`."""
        low, high, one_sided = (
            quantiles[:, self.levels.index(level)] for level in (self.low, self.high, self.one_sided)
        )
        if self.whole:
            high = np.where(low <= self.lowest, np.maximum(one_sided, low), high)
        return np.column_stack([low, high])


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
