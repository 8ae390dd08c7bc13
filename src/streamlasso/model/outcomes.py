"""What is known of rows that a model has predicted and then learnt."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamlasso.report.fit import Fit
from streamlasso.report.summarise import SUMS


class Outcomes(NamedTuple):
    """The predictions of some rows, and the model after each of them: one entry per row.

    eta, lam : (row, learner) eta before the row, and lam after it
    scored : whether its loss counts: not that of the first row, which nothing could predict, nor without a target
    interval, covered : (row, low and high) before the row, and whether its target lies inside; NaN where not asked for
    """

    eta: np.ndarray
    scored: np.ndarray
    loss: np.ndarray
    baseline: np.ndarray
    persistence: np.ndarray
    least_loss: np.ndarray
    error: np.ndarray
    baseline_error: np.ndarray
    persistence_error: np.ndarray
    covered: np.ndarray
    interval: np.ndarray
    fit: Fit
    lam: np.ndarray
    after: dict[str, np.ndarray]

    @property
    def sums(self) -> np.ndarray:
        """(row, column), with the columns SUMS of the summary."""
        return np.column_stack([getattr(self, name) for name in SUMS])


def covered(interval: np.ndarray, values: np.ndarray) -> np.ndarray:
    """1 where the value lies in its interval, else 0; NaN where there is no interval."""
    low, high = interval.T
    return np.where(np.isnan(low), np.nan, (low <= values) & (values <= high))
