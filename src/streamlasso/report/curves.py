"""Curves made ready to draw: smoothed, and no finer than a screen shows."""

from __future__ import annotations

import numpy as np

#: Points along the time axis that are drawn at most.
DRAWN = 1000


def thinned(t: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest point of each stretch of time, so that no spike is lost.

    >>> import numpy as np
    >>> t, values = thinned(np.arange(100_000), np.where(np.arange(100_000) == 777, 9.0, 1.0))
    >>> len(t) < 2500, values.max()
    (True, np.float64(9.0))
    """
    if len(t) <= 2 * DRAWN:
        return t, values
    size = -(-len(t) // DRAWN)
    stretches = range(0, len(t), size)
    lows, highs = (np.where(np.isnan(values), end, values) for end in (np.inf, -np.inf))
    low = [start + int(np.argmin(lows[start : start + size])) for start in stretches]
    high = [start + int(np.argmax(highs[start : start + size])) for start in stretches]
    kept = np.unique([0, *low, *high, len(t) - 1])
    return t[kept], values[kept]


def window_edges(n: int, most: int, least: int = 1) -> np.ndarray:
    """Where each of at most `most` windows of n values begins; each has `least` values or more, if there are so many.

    >>> window_edges(10, 3), window_edges(10, 20, 4)
    (array([0, 3, 6]), array([0, 5]))
    """
    n_windows = max(min(most, n // least), 1)
    return np.linspace(0, n, n_windows + 1).astype(int)[:-1]


def window_means(values: np.ndarray, weights: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The weighted mean of each window.

    >>> import numpy as np
    >>> window_means(np.array([1.0, 4.0, 5.0]), np.array([2, 1, 1]), np.array([0, 2]))
    array([2., 5.])
    """
    return np.add.reduceat(values * weights, edges) / np.add.reduceat(weights, edges)


def trailing_mean(values: np.ndarray, window: int) -> np.ndarray:
    """The mean of the last `window` values, or of as many as there are.

    >>> import numpy as np
    >>> trailing_mean(np.array([1.0, 3.0, 5.0, 7.0]), 2)
    array([1., 2., 4., 6.])
    """
    total = np.cumsum(np.concatenate([[0.0], values]))
    stop = np.arange(1, len(total))
    start = np.maximum(stop - window, 0)
    return (total[stop] - total[start]) / (stop - start)


def trailing_median(values: np.ndarray, window: int) -> np.ndarray:
    """The median of the last `window` rows of (time, curve), or of as many as there are."""
    if window == 1:
        return values
    padding = np.full((window - 1, values.shape[1]), np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(np.vstack([padding, values]), window, axis=0)
    return np.nanmedian(windows, axis=-1)
