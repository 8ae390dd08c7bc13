"""The first time points, at which lam still depends on its initial value and can be many times larger than later."""

from __future__ import annotations

import numpy as np


def warm_up(n: int) -> int:
    """How many of n time points these are at most."""
    return min(max(15, n // 20), n // 2)


def first_shown(low: np.ndarray, high: np.ndarray, limits: tuple[float, float]) -> int:
    """The first time point from which on a band stays within the limits of its axis, at most the end of the warm-up.

    >>> import numpy as np
    >>> first_shown(np.zeros(60), np.array([9.0, 0.5, 8.0] + [1.0] * 57), (0.0, 2.0))
    3
    """
    early = slice(warm_up(len(low)))
    with np.errstate(invalid="ignore"):
        outside = np.flatnonzero((low[early] < limits[0]) | (high[early] > limits[1]))
    return int(outside[-1]) + 1 if len(outside) else 0
