"""The spread of a feature: its median standard deviation over stretches about as long as the model's memory.

A coefficient times the spread is an effect, which can be compared between features. Trends and jumps hardly count: they
are longer than the memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

#: The shortest and the longest stretch over which a standard deviation is taken, and the most stretches of a table.
STRETCH, N_STRETCHES = (20, 4096), 200


def spread_of_rows(X: np.ndarray, effective_size: float) -> np.ndarray:
    """The spread of each feature of a whole table.

    >>> import numpy as np
    >>> X = np.tile([[0.0, 5.0], [2.0, 5.0]], (50, 1))
    >>> spread_of_rows(X, effective_size=20.0)
    array([1., 0.])
    """
    length = int(min(np.clip(effective_size, *STRETCH), len(X)))
    starts = np.linspace(0, len(X) - length, min(len(X) // length, N_STRETCHES)).astype(int)
    return _medians(np.array([_deviation(X[start : start + length]) for start in starts]))


def spread_of_stretches(scatters: Iterable[Scatter], n_features: int, effective_size: float) -> np.ndarray:
    """The same from consecutive `Scatter`s, which are joined until they are long enough."""
    length = int(np.clip(effective_size, *STRETCH))
    variances, current = [], None
    for scatter in scatters:
        current = scatter if current is None else current.joined(scatter)
        if current.n >= length:
            variances.append(current.variance(n_features))
            current = None
    if current is not None and not variances:
        variances.append(current.variance(n_features))
    return _medians(np.sqrt(np.array(variances)) if variances else np.zeros((1, n_features)))


class Scatter(NamedTuple):
    """Of some rows: how many, and for each feature the mean and the sum of squares about it."""

    n: int
    mean: np.ndarray
    squares: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray) -> Scatter:
        """A feature that stands still has squares of exactly 0, without rounding error."""
        if len(X) == 1:
            return cls(1, X[0].copy(), np.zeros(X.shape[1]))
        still = np.all(X[0] == X, axis=0)
        mean = np.where(still, X[0], X.mean(axis=0))
        return cls(len(X), mean, np.where(still, 0.0, np.sum((X - mean) ** 2, axis=0)))

    def joined(self, later: Scatter) -> Scatter:
        """Of both. Features that the later rows have in addition were 0 before."""
        n_features, n = len(later.mean), self.n + later.n
        mean, squares = (padded(values, (n_features,)) for values in (self.mean, self.squares))
        gap = later.mean - mean
        return Scatter(n, mean + gap * (later.n / n), squares + later.squares + gap**2 * (self.n * later.n / n))

    def variance(self, n_features: int) -> np.ndarray:
        return padded(self.squares / self.n, (n_features,))


def padded(values: np.ndarray, shape: tuple[int, ...], fill: float = 0.0) -> np.ndarray:
    """The values in an array of a larger shape.

    >>> import numpy as np
    >>> padded(np.array([1.0, 2.0]), (3,))
    array([1., 2., 0.])
    """
    if values.shape == shape:
        return values
    out = np.full(shape, fill)
    out[tuple(slice(n) for n in values.shape)] = values
    return out


def _medians(deviations: np.ndarray) -> np.ndarray:
    """For each column of (stretch, feature); stretches where the feature stands still are left out."""
    return np.array([np.median(column[column > 0]) if column.any() else 0.0 for column in deviations.T])


def _deviation(X: np.ndarray) -> np.ndarray:
    """0, without rounding error, for a feature that stands still."""
    return np.where(np.ptp(X, axis=0) > 0, X.std(axis=0), 0.0)
