"""Predict each row, then learn it: what a peer has to offer, the baselines, and wrappers around peers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np


class Peer(Protocol):
    """Predicts the mean of the response, then learns the row. With several classes: the probability of each."""

    def predict(self, x: np.ndarray) -> float | np.ndarray: ...

    def learn(self, x: np.ndarray, y: float) -> None: ...


class TooSlow(Exception):
    """The time limit is over; the predictions so far are kept."""

    def __init__(self, means: np.ndarray, seconds: float) -> None:
        super().__init__(f"{len(means)} rows in {seconds:.0f} s")
        self.means, self.seconds = means, seconds


def predict_then_learn(
    peer: Peer, X: np.ndarray, y: np.ndarray, limit: float = float("inf")
) -> tuple[np.ndarray, float]:
    """The mean predicted for each row before it was learnt, and the CPU seconds of all rows.

    With several classes it is the probability of the class that came.

    >>> import numpy as np
    >>> from streamlasso.bench.prequential import Persistence, predict_then_learn
    >>> means, seconds = predict_then_learn(Persistence("gaussian"), np.zeros((3, 1)), np.array([4.0, 5.0, 6.0]))
    >>> means
    array([0., 4., 5.])
    """
    means = np.empty(len(y))
    start = time.process_time()
    for i, (x, response) in enumerate(zip(X, y.tolist(), strict=True)):
        predicted = peer.predict(x)
        means[i] = predicted if isinstance(predicted, float) else predicted[int(response)]
        peer.learn(x, response)
        if (seconds := time.process_time() - start) > limit:
            raise TooSlow(means[: i + 1], seconds)
    return means, time.process_time() - start


# --- baselines --------------------------------------------------------------------------------------------------------


class RunningMean:
    """The mean of the responses so far; shares and counts start from Jeffreys' prior, so that no loss is infinite."""

    def __init__(self, family: str) -> None:
        self.family = family
        self.n, self.total = 0, 0.0

    def predict(self, x: np.ndarray) -> float:
        if self.family == "binomial":
            return (self.total + 0.5) / (self.n + 1)
        if self.n == 0:
            return 1.0 if self.family == "poisson" else 0.0
        return (self.total + (0.5 if self.family == "poisson" else 0.0)) / self.n

    def learn(self, x: np.ndarray, y: float) -> None:
        self.n, self.total = self.n + 1, self.total + y


class Persistence:
    """The last response; for classes, how often this label was followed by a 1 so far."""

    def __init__(self, family: str) -> None:
        self.family = family
        self.last = 0.0
        self.followers = {label: RunningMean("binomial") for label in (0.0, 1.0)}

    def predict(self, x: np.ndarray) -> float:
        return self.followers[self.last].predict(x) if self.family == "binomial" else self.last

    def learn(self, x: np.ndarray, y: float) -> None:
        if self.family == "binomial":
            self.followers[self.last].learn(x, y)
        self.last = y


# --- wrappers ---------------------------------------------------------------------------------------------------------


class OneVersusRest:
    """One peer per class, which predicts whether it comes; the probabilities are divided by their sum.

    >>> import numpy as np
    >>> shares = OneVersusRest(lambda: RunningMean("binomial"), 3)
    >>> for label in (0.0, 2.0, 2.0):
    ...     shares.learn(np.zeros(1), label)
    >>> shares.predict(np.zeros(1)).round(3)
    array([0.333, 0.111, 0.556])
    """

    def __init__(self, make: Callable[[], Peer], n_classes: int) -> None:
        self.peers = [make() for _ in range(n_classes)]

    def predict(self, x: np.ndarray) -> np.ndarray:
        shares = np.array([peer.predict(x) for peer in self.peers])
        total = shares.sum()
        return np.full(len(shares), 1 / len(shares)) if total == 0 else shares / total

    def learn(self, x: np.ndarray, y: float) -> None:
        for k, peer in enumerate(self.peers):
            peer.learn(x, float(k == y))


class RunningMoments:
    """Running mean and standard deviation, of a number or of each feature."""

    def __init__(self) -> None:
        self.n = 0
        self.mean: Any = 0.0
        self.scatter: Any = 0.0

    def update(self, value: Any) -> None:
        self.n += 1
        deviation = value - self.mean
        self.mean = self.mean + deviation / self.n
        self.scatter = self.scatter + deviation * (value - self.mean)

    @property
    def deviation(self) -> Any:
        return np.sqrt(self.scatter / max(self.n, 1))

    def standardised(self, value: Any) -> Any:
        """0 for what has not varied yet."""
        deviation = self.deviation
        return np.where(deviation > 0, value - self.mean, 0.0) / np.where(deviation > 0, deviation, 1.0)


class FeaturesStandardised:
    """A peer that sees standardised features."""

    def __init__(self, peer: Peer) -> None:
        self.peer, self.moments = peer, RunningMoments()

    def predict(self, x: np.ndarray) -> float | np.ndarray:
        return self.peer.predict(self.moments.standardised(x))

    def learn(self, x: np.ndarray, y: float) -> None:
        self.moments.update(x)
        self.peer.learn(self.moments.standardised(x), y)


class ResponseStandardised:
    """A peer that sees standardised responses; its predictions are put back on the scale of the response."""

    def __init__(self, peer: Peer) -> None:
        self.peer, self.moments = peer, RunningMoments()

    def predict(self, x: np.ndarray) -> float:
        return float(self.moments.mean + self.moments.deviation * self.peer.predict(x))

    def learn(self, x: np.ndarray, y: float) -> None:
        self.moments.update(y)
        self.peer.learn(x, float(self.moments.standardised(y)))
