"""What every method is compared on: a stream as arrays, with the kind of its response."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

#: How many rows before its own the responses are that a method "+lags" has among its features.
LAGS = (1, 2, 3)


@dataclass(frozen=True, eq=False)
class Task:
    """A stream to predict: row t of X is known before y[t] is predicted, and y[t] only afterwards.

    name : what the stream is called in tables
    family : one of `losses.FAMILIES`; for binomial, y holds the numbers of the classes, from 0
    X, y : (row, feature) and (row,), in time order
    names : of the features
    n_classes : for binomial

    >>> import numpy as np
    >>> task = Task("three rows", "binomial", np.zeros((3, 1)), np.array([0.0, 2.0, 1.0]), ["x"], n_classes=3)
    >>> task.outcome
    array([1., 1., 1.])
    """

    name: str
    family: str
    X: np.ndarray
    y: np.ndarray
    names: list[str]
    n_classes: int = 2

    @property
    def outcome(self) -> np.ndarray:
        """What a prediction is compared with: y; for more than two classes 1, the class that came being a success."""
        return np.ones(len(self.y)) if self.n_classes > 2 else self.y

    @property
    def fingerprint(self) -> str:
        """Twelve digits that differ if the rows, the features or the family do."""
        data = hashlib.sha256(f"{self.family} {self.n_classes} {self.X.shape}".encode())
        for array in (self.X, self.y):
            data.update(np.ascontiguousarray(array, dtype=float).tobytes())
        return data.hexdigest()[:12]


def with_lags(task: Task, lags: Sequence[int] = LAGS) -> Task:
    """The same task with earlier responses as features: log1p of counts, one column per class if there are several.

    They are known before the row is predicted; where the stream has not begun, they are 0.

    >>> import numpy as np
    >>> task = Task("visits", "gaussian", np.zeros((3, 1)), np.array([7.0, 8.0, 9.0]), ["x"])
    >>> with_lags(task, lags=[1]).X
    array([[0., 0.],
           [0., 7.],
           [0., 8.]])
    """
    responses, names = _responses(task)
    columns = [np.vstack([np.zeros((lag, responses.shape[1])), responses])[: len(task.y)] for lag in lags]
    added = [f"{name}, {lag} before" for lag in lags for name in names]
    return replace(task, X=np.hstack([task.X, *columns]), names=[*task.names, *added])


def _responses(task: Task) -> tuple[np.ndarray, list[str]]:
    """The responses as columns of features, and what these are called."""
    if task.n_classes > 2:
        numbers = range(task.n_classes)
        return (task.y[:, None] == np.array(numbers)).astype(float), [f"class {k}" for k in numbers]
    return (np.log1p(task.y) if task.family == "poisson" else task.y)[:, None], ["response"]
