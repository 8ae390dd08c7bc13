"""Several classes, for all faces: each class against the rest, and one rule for classes that appear late.

Two classes are one model, of the second against the first. Three or more are one model per class against the rest, each
with its own lam; their probabilities are divided by their sum.

A stream that shows its classes as it goes starts with that one model, to which the second class is new as well. When
the third appears, the model is the second class's against the rest, and its mirror image the first's. The model of the
third class and of each later one is new, and learns the last N_RECENT rows, none of which was of its class: while the
stream is shorter, the model is as if its class had been known from the start.

Here eta is always (row, model), and a class is its place in the list of classes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import log_expit, logsumexp

from streamlasso.core.base.checks import first_unfit
from streamlasso.core.model import Engine
from streamlasso.families import Family

#: Rows that the model of a late class learns first. A model that had learnt all earlier rows predicts no better (12
#: streams, three settings each), and would have to learn along with the others whether or not a class ever comes.
N_RECENT = 256


# --- models and classes -----------------------------------------------------------------------------------------------


def n_models(n_classes: int) -> int:
    """How many models the classes need.

    >>> [n_models(k) for k in (0, 1, 2, 3, 4)]
    [1, 1, 1, 3, 4]
    """
    return n_classes if n_classes > 2 else 1


def modelled(classes: Sequence[Any]) -> Sequence[Any]:
    """The classes that have a model: the second of two, each of several.

    >>> modelled(["a"]), modelled(["a", "b"]), modelled(["a", "b", "c"])
    ([], ['b'], ['a', 'b', 'c'])
    """
    return classes if len(classes) > 2 else classes[1:]


def targets_of(places: np.ndarray, n_classes: int) -> list[np.ndarray]:
    """What each model learns: 1 for rows of its class, 0 for the others."""
    return [(places == k).astype(np.float64) for k in (range(n_classes) if n_classes > 2 else [1])]


# --- predictions ------------------------------------------------------------------------------------------------------


def best_class(eta: np.ndarray) -> np.ndarray:
    """The place of the most probable class, for each row."""
    return (eta[:, 0] > 0).astype(int) if eta.shape[1] == 1 else eta.argmax(axis=1)


def probabilities(mean: np.ndarray) -> np.ndarray:
    """The probability of each class (row, class), given what each model gives its own (row, model).

    All are alike where every model gives 0.

    >>> import numpy as np
    >>> probabilities(np.array([[0.2]])), probabilities(np.array([[0.2, 0.2, 0.1]]))
    (array([[0.8, 0.2]]), array([[0.4, 0.4, 0.2]]))
    """
    if mean.shape[1] == 1:
        return np.concatenate([1 - mean, mean], axis=1)
    total = mean.sum(axis=1, keepdims=True)
    if not total.all():
        mean, total = mean + (total == 0), total + mean.shape[1] * (total == 0)
    return mean / total


def sets_of(shares: np.ndarray, coverage: float) -> np.ndarray:
    """(row, class): is it in the smallest set of classes that has this probability?

    >>> import numpy as np
    >>> from streamlasso.estimators.multiclass import sets_of
    >>> sets_of(np.array([[0.7, 0.1, 0.2], [0.0, 0.05, 0.95]]), 0.85)
    array([[ True, False,  True],
           [False, False,  True]])
    """
    order = np.argsort(-shares, axis=1, kind="stable")
    sorted_shares = np.take_along_axis(shares, order, axis=1)
    before = np.cumsum(sorted_shares, axis=1) - sorted_shares
    found = np.empty(shares.shape, dtype=bool)
    np.put_along_axis(found, order, before < coverage, axis=1)
    return found


def losses_of(family: Family, targets: list[np.ndarray], eta: np.ndarray) -> np.ndarray:
    """The family's loss of each row; for several classes the log loss of `probabilities`."""
    if len(targets) == 1:
        return family.losses(targets[0], eta[:, 0])
    log_mean = log_expit(eta)
    return logsumexp(log_mean, axis=1) - np.sum(np.where(np.transpose(targets) > 0, log_mean, 0), axis=1)


# --- classes that appear late -----------------------------------------------------------------------------------------


class Recent:
    """The last N_RECENT rows that were learnt and their weights, for the model of a class that is new.

    >>> import numpy as np
    >>> recent = Recent(2)
    >>> recent.add(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 0.5]))
    >>> recent.rows
    array([[1. , 2. , 1. ],
           [3. , 4. , 0.5]])
    """

    def __init__(self, n_features: int) -> None:
        self.n_features = n_features
        self._rows: deque[tuple[np.ndarray, float]] = deque(maxlen=N_RECENT)

    @classmethod
    def from_rows(cls, rows: np.ndarray) -> Recent:
        """Those of `rows`, which may come from a file."""
        if rows.ndim != 2 or not rows.shape[1] or rows.dtype != np.float64:
            raise ValueError(f"the rows kept for new classes are of shape {rows.shape} and type {rows.dtype}")
        if first_unfit(np.ascontiguousarray(rows)) >= 0 or np.any(rows[:, -1] < 0):
            raise ValueError("the rows kept for new classes hold a value that is out of range")
        recent = cls(rows.shape[1] - 1)
        recent.add(rows[:, :-1], rows[:, -1])
        return recent

    @property
    def rows(self) -> np.ndarray:
        """Oldest first, with the weight as the last column."""
        rows = np.empty((len(self._rows), self.n_features + 1))
        for row, (x, weight) in zip(rows, self._rows, strict=True):
            row[:-1], row[-1] = x, weight
        return rows

    def add(self, X: np.ndarray, weights: np.ndarray) -> None:
        """Keep these rows; those of weight 0 were not learnt."""
        self._rows.extend((x.copy(), weight) for x, weight in zip(X, weights.tolist(), strict=True) if weight > 0)

    def add_one(self, x: np.ndarray, weight: float) -> None:
        """Keep a row that was learnt."""
        self._rows.append((x.copy(), weight))

    def followed_by(self, X: np.ndarray, weights: np.ndarray) -> Recent:
        """Those that would be kept if these rows came next."""
        recent = Recent(self.n_features)
        recent._rows = self._rows.copy()
        recent.add(X, weights)
        return recent

    def __copy__(self) -> Recent:
        return self.followed_by(np.empty((0, self.n_features)), np.empty(0))

    def grown(self, n_features: int) -> Recent:
        """The same rows with more features, which were 0."""
        zeros = np.zeros((len(self._rows), n_features - self.n_features))
        return Recent.from_rows(np.insert(self.rows, [self.n_features], zeros, axis=1))


class KeepsRecent:
    """An estimator whose stream may show new classes; a checkpoint saves and restores the rows."""

    _recent: Recent

    @property
    def _recent_rows(self) -> np.ndarray:
        return self._recent.rows

    @_recent_rows.setter
    def _recent_rows(self, rows: np.ndarray) -> None:
        self._recent = Recent.from_rows(rows)


def with_new_class(learners: list[Engine], n_classes: int, recent: Recent) -> list[Engine]:
    """The models of `n_classes`, given those of one class less."""
    if n_classes < 3:
        return learners
    if n_classes == 3:
        learners = [learners[0].mirrored(), learners[0]]
    new = type(learners[0])(learners[0].n_features, **learners[0].settings)
    X, weights = np.split(recent.rows, [recent.n_features], axis=1)
    new.learn(np.ascontiguousarray(X), np.zeros(len(X)), np.ascontiguousarray(weights[:, 0]))
    return [*learners, new]
