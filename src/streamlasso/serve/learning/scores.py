"""How well a model predicts, against its baselines; and how its features spread."""

from __future__ import annotations

from typing import Any

import numpy as np

#: What is compared.
NAMES = ("model", "baseline", "persistence")
#: How fast the recent losses are forgotten, from row to row: 200 rows count.
DECAY = 0.995
#: Rows that the spread of a feature remembers, about.
MEMORY = 2000.0


class Scores:
    """Sums of losses (model, running mean, persistence), over all rows and over the recent ones.

    >>> import numpy as np
    >>> scores = Scores()
    >>> scores.add(np.array([[1.0, 2.0, 4.0], [2.0, 2.0, 2.0]]))
    >>> scores.means()
    {'model': 1.5, 'baseline': 2.0, 'persistence': 3.0, 'n': 2}
    """

    def __init__(self, n: int = 0, sums: Any = (0.0,) * 3, recent_n: float = 0.0, recent: Any = (0.0,) * 3) -> None:
        self.n, self.sums = n, np.array(sums, float)
        self.recent_n, self.recent = recent_n, np.array(recent, float)

    def add(self, losses: np.ndarray) -> None:
        """(row, NAMES) of rows that have a loss."""
        k = len(losses)
        if not k:
            return
        weights = DECAY ** np.arange(k - 1, -1, -1.0)
        self.n, self.sums = self.n + k, self.sums + losses.sum(axis=0)
        self.recent_n = DECAY**k * self.recent_n + weights.sum()
        self.recent = DECAY**k * self.recent + weights @ losses

    def means(self) -> dict[str, Any]:
        return self._means(self.sums, self.n) | {"n": self.n}

    def recent_means(self) -> dict[str, Any]:
        return self._means(self.recent, self.recent_n) | {"n": round(self.recent_n)}

    @staticmethod
    def _means(sums: np.ndarray, n: float) -> dict[str, Any]:
        found = sums / n if n else np.full(len(NAMES), np.nan)
        return {name: float(value) if np.isfinite(value) else None for name, value in zip(NAMES, found, strict=True)}

    def state(self) -> dict[str, Any]:
        return {"n": self.n, "sums": self.sums.tolist(), "recent_n": self.recent_n, "recent": self.recent.tolist()}


class Spread:
    """The mean and deviation of each feature, of about the last 2,000 rows.

    >>> import numpy as np
    >>> spread = Spread()
    >>> spread.add(np.array([[1.0], [3.0]]))
    >>> spread.mean, spread.deviations
    (array([2.]), array([1.]))
    """

    def __init__(self, n: float = 0.0, mean: Any = (), square: Any = ()) -> None:
        self.n, self.mean, self.square = n, np.array(mean, float), np.array(square, float)

    def add(self, X: np.ndarray) -> None:
        """Rows that may have more features than those before, which were 0 until now."""
        more = X.shape[1] - len(self.mean)
        if more > 0:
            self.mean, self.square = (np.append(values, np.zeros(more)) for values in (self.mean, self.square))
        k, mean = len(X), X.mean(axis=0)
        n, delta = self.n + k, mean - self.mean
        self.square = self.square + ((X - mean) ** 2).sum(axis=0) + delta**2 * (self.n * k / n)
        self.mean = self.mean + delta * (k / n)
        fade = min(MEMORY / n, 1.0)
        self.n, self.square = n * fade, self.square * fade

    @property
    def deviations(self) -> np.ndarray:
        return np.sqrt(self.square / max(self.n, 1.0))

    def state(self) -> dict[str, Any]:
        return {"n": self.n, "mean": self.mean.tolist(), "square": self.square.tolist()}
