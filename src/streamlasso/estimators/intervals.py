"""Intervals and quantiles: what may be asked for, and what a model says."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamlasso.core.engine import Engine
from streamlasso.core.part import is_number


def ends_of(coverage: Any) -> list[float]:
    """The levels of the ends of a central interval."""
    if not is_number(coverage) or not 0.0 < coverage < 1.0:
        raise ValueError(f"coverage={coverage!r} must be a number between 0 and 1, such as 0.9")
    outside = (1.0 - float(coverage)) / 2.0
    return [outside, 1.0 - outside]


def levels_of(levels: Any) -> np.ndarray:
    """Levels of quantiles, in ascending order."""
    found = np.atleast_1d(np.asarray(levels, dtype=float))
    if found.ndim != 1 or not len(found) or not np.all((found > 0.0) & (found < 1.0)) or np.any(np.diff(found) <= 0.0):
        raise ValueError(f"levels={levels!r} must ascend, between 0 and 1, such as [0.1, 0.5, 0.9]")
    return found


def quantiles_of(learner: Engine, eta: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """(row, level), never out of order."""
    if learner.quantiles is None:
        raise ValueError(f"family={learner.settings['family']!r} has no intervals: use predict, or predict_proba")
    return learner.quantiles.around(np.ascontiguousarray(eta), levels)
