"""The model and the baselines compete: each prediction is their mean, weighted by how well they predicted of late."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from streamlasso.baselines import DRIFT, LAST, MEAN, SEASON
from streamlasso.running import faded_before

MODEL = "the model"
#: The weights before the first row, where rows are in the order of time, and where they are not.
IN_TIME = {MODEL: 0.06, LAST: 0.55, DRIFT: 0.25, SEASON: 0.1, MEAN: 0.04}
IN_NO_ORDER = {MODEL: 0.5, LAST: 0.1, MEAN: 0.4}
#: How fast losses are forgotten, from row to row.
DECAY = 0.99
#: After FEW rows a loss of the last value counts at most so many times the mean of its losses: where a series jumps,
#: say to a new one in the same file, the last value fails in one row only.
LARGEST_JUMP, FEW = 50.0, 10
#: Beyond this a loss is as bad as can be.
LARGEST_LOSS = 1e300


class Competition:
    """Weights of the model and its baselines.

    With S_k the sum of the losses of k, of which a row's is worth DECAY of the next row's, and n the sum of these
    weights, the weight of k is in proportion to

        prior_k (S_k + min S / n)^(-n / 2)

    which is the likelihood of errors whose variance is estimated by their mean square. It has no unit, so that losses
    may have any.

    >>> import numpy as np
    >>> competition = Competition({"the model": 0.5, "the mean": 0.5})
    >>> weights = competition.weights(np.array([[1.0, 4.0]] * 20), np.ones(20, bool))
    >>> weights[[0, 1, 2, 19], 0].round(3)
    array([0.5  , 0.613, 0.749, 1.   ])
    """

    def __init__(self, prior: Mapping[str, float], sums: Iterable[float] | None = None, n: float = 0.0) -> None:
        self.prior = dict(prior)
        self.sums = [0.0] * len(self.prior) if sums is None else list(sums)
        self.n = n

    @classmethod
    def start(cls, names: Iterable[str], in_time: bool) -> Competition:
        """Before the first row; `names` are those of the baselines."""
        prior = IN_TIME if in_time else IN_NO_ORDER
        return cls({name: prior[name] for name in (MODEL, *names) if name in prior})

    def blended(self, etas: Mapping[str, np.ndarray], weights: np.ndarray) -> np.ndarray:
        """The mean of the etas."""
        total = np.zeros(len(weights))
        for name, weight in zip(self.prior, weights.T, strict=True):
            total = total + weight * etas[name]
        return total

    def weights(self, losses: np.ndarray, scored: np.ndarray) -> np.ndarray:
        """(row, competitor) before each of the next rows, of which those that are scored then count."""
        most = np.array([LARGEST_JUMP if name in (LAST, DRIFT) else np.inf for name in self.prior])
        counted, sums = np.ascontiguousarray(np.minimum(losses, LARGEST_LOSS)), np.array(self.sums)
        before = faded_before(counted, scored.view(np.uint8), sums, self.n, DECAY, most, FEW)
        *self.sums, self.n = before[-1].tolist()
        return self._weights(before[:-1])

    def now(self) -> dict[str, float]:
        """The weights before the next row."""
        return dict(zip(self.prior, self._weights(np.array([[*self.sums, self.n]]))[0].tolist(), strict=True))

    def _weights(self, before: np.ndarray) -> np.ndarray:
        sums, n = before[:, :-1], before[:, -1:]
        floor = sums.min(axis=1, keepdims=True) / np.maximum(n, 1.0) + np.finfo(float).tiny
        logs = np.log(list(self.prior.values())) - n / 2 * np.log(sums + floor)
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)

    def state(self) -> dict[str, Any]:
        return {"prior": self.prior, "sums": self.sums, "n": self.n}
