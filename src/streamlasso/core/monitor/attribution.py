"""A change that was found, for people and as numbers; `diagnosis.py` finds what it says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from streamlasso._text import count, listed, number, plain

INTERCEPT = "intercept"
#: Features that a record names at most, and rows with a probability. It holds five numbers, three of each feature (its
#: place, its coefficients before and after), and the probabilities.
MOST_FEATURES, MOST_PROBABLE = 16, 24
FEATURES_AT = 5
CHANCES_AT = FEATURES_AT + 3 * MOST_FEATURES
N_FIELDS = CHANCES_AT + MOST_PROBABLE


class DetectedChange(NamedTuple):
    """A change that was found in a stream.

    row, detected : the row with which it most likely began, and the row after which it was found
    probability : of each row with which it may have begun, 24 of them at most, how likely that is
    features : by name, the coefficients before and after, the largest moves in standard deviations of the noise first;
        none where the errors grew and no coefficient explains it
    loss : what it cost until now, or until the model had 64 rows to follow: the loss above what was usual before
    label : the class whose model it is, where there are several

    >>> import numpy as np
    >>> from streamlasso import RAPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 3))
    >>> y = np.where(np.arange(600) < 400, 2.0, -1.0) * X[:, 1] + rng.normal(size=600)
    >>> (change,) = RAPRegressor().fit(X, y).changes_
    >>> print(change)  # doctest: +ELLIPSIS
    row 400, found at row 410: x1 from 1.9... to -1.0...
    """

    row: int
    detected: int
    probability: dict[int, float]
    features: dict[Any, tuple[float, float]]
    loss: float
    label: Any = None

    def __str__(self) -> str:
        moves = [f"{name} from {number(before)} to {number(after)}" for name, (before, after) in self.features.items()]
        more = len(moves) - 3
        shown = [*moves[:3], *([count(more, "more feature")] if more > 0 else [])]
        what = listed(shown) if moves else "errors grew"
        whose = "" if self.label is None else f" (class {self.label})"
        return f"row {self.row:,}, found at row {self.detected:,}{whose}: {what}; cost {number(self.loss)}"

    def printable(self) -> DetectedChange:
        """With names that every font and terminal can show."""
        features = {_plain(name): sizes for name, sizes in self.features.items()}
        return self._replace(features=features, label=_plain(self.label))

    def named(self, names: Sequence[Any]) -> DetectedChange:
        """With the names of features in place of their places."""
        return self._replace(features={_name(j, names): sizes for j, sizes in self.features.items()})


def _plain(name: Any) -> Any:
    return plain(name) if isinstance(name, str) else name


def _name(j: int, names: Sequence[Any]) -> Any:
    return INTERCEPT if j < 0 else names[j]


def packed_change(
    row: int, detected: int, loss: float, features: np.ndarray, first: int, chances: np.ndarray
) -> np.ndarray:
    """A change as N_FIELDS numbers; `first` is the row of the first of the probabilities."""
    record = np.zeros(N_FIELDS)
    record[:FEATURES_AT] = row, detected, loss, len(features), first
    record[FEATURES_AT : FEATURES_AT + features.size] = features.ravel()
    record[CHANCES_AT : CHANCES_AT + len(chances)] = chances
    return record


def unpacked_change(record: np.ndarray) -> DetectedChange:
    """The change that a record holds; of a forged record, some change."""
    row, detected, loss, n_named, first = record[:FEATURES_AT].tolist()
    stop = FEATURES_AT + 3 * int(min(max(n_named, 0), MOST_FEATURES))
    named = record[FEATURES_AT:stop].reshape(-1, 3).tolist()
    chances = record[CHANCES_AT:].tolist()
    n_rows = max((i for i, chance in enumerate(chances) if chance), default=0) + 1
    return DetectedChange(
        int(row),
        int(detected),
        {int(first) + i: chance for i, chance in enumerate(chances[:n_rows])},
        {int(j): (before, after) for j, before, after in named},
        loss,
    )


def exchanged_records(found: np.ndarray) -> np.ndarray:
    """With the two classes exchanged: coefficients change their sign."""
    sign = np.ones(N_FIELDS)
    sign[[FEATURES_AT + 3 * i + k for i in range(MOST_FEATURES) for k in (1, 2)]] = -1.0
    return found * sign
