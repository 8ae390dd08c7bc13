"""What every method is compared on: a stream as arrays, with the kind of its response."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np


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
