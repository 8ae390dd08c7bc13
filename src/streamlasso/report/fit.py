"""Predicted against actual, over a stream of any length: means and ranges of stretches, and the last rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from streamlasso.report.spread import padded

#: Rows at the end that are kept one by one.
N_RECENT = 100
#: What is drawn of a response: the value, its prediction, and the ends of its interval.
LINES = ("actual", "predicted", "low", "high")
N_LINES = len(LINES)


class Fit(NamedTuple):
    """Some rows: what came, and what was predicted.

    actual, predicted : (row, column) responses and predictions; for classes one column per class, 1 or 0 and the
        predicted share of the class
    classes : (row, actual and predicted) places of the classes; None for numbers
    interval : (row, low and high) that were predicted for numbers; NaN where none was, or where it had no end

    >>> import numpy as np
    >>> Fit.of_classes(np.array([1, 0]), np.array([1, 1]), np.array([[0.1, 0.9], [0.4, 0.6]])).actual
    array([[0., 1.],
           [1., 0.]])
    """

    actual: np.ndarray
    predicted: np.ndarray
    classes: np.ndarray | None = None
    interval: np.ndarray | None = None

    @classmethod
    def of_numbers(cls, actual: np.ndarray, predicted: np.ndarray, interval: np.ndarray | None = None) -> Fit:
        return cls(actual[:, None].astype(float), predicted[:, None].astype(float), None, interval)

    @classmethod
    def of_classes(cls, actual: np.ndarray, predicted: np.ndarray, shares: np.ndarray) -> Fit:
        """From the places of the classes, and the shares (row, class) that were predicted."""
        one_hot = (actual[:, None] == np.arange(shares.shape[1])).astype(float)
        return cls(one_hot, shares, np.column_stack([actual, predicted]).astype(np.int64))

    def at(self, rows: np.ndarray) -> Fit:
        classes, interval = (None if each is None else each[rows] for each in (self.classes, self.interval))
        return Fit(self.actual[rows], self.predicted[rows], classes, interval)

    @property
    def lines(self) -> np.ndarray:
        """(row, LINES, column)"""
        nothing = np.full(self.actual.shape, np.nan)
        ends = [nothing, nothing] if self.interval is None else [finite[:, None] for finite in _finite(self.interval)]
        return np.stack([self.actual, self.predicted, *ends], axis=1)


def _finite(interval: np.ndarray) -> np.ndarray:
    """(low and high, row)"""
    return np.where(np.isfinite(interval), interval, np.nan).T


class Course(NamedTuple):
    """Consecutive rows: sums (LINES, column), and the range (low and high, column) of actual responses."""

    sums: np.ndarray
    range: np.ndarray

    @classmethod
    def empty(cls, n_columns: int = 0) -> Course:
        return cls(np.zeros((N_LINES, n_columns)), np.full((2, n_columns), np.nan))

    def widened(self, n_columns: int) -> Course:
        """With columns for classes that have not come yet."""
        return Course(padded(self.sums, (N_LINES, n_columns)), padded(self.range, (2, n_columns), np.nan))

    def added(self, fit: Fit) -> Course:
        """Row by row, so that it does not matter how the rows were cut into pieces."""
        course, rows = self.widened(fit.actual.shape[1]), fit.lines
        sums = np.add.accumulate(np.concatenate([course.sums[None], rows]))[-1]
        if not len(rows):
            return course
        return Course(sums, hull(course.range, np.array([fit.actual.min(axis=0), fit.actual.max(axis=0)])))

    def joined(self, later: Course) -> Course:
        course = self.widened(later.sums.shape[1])
        return Course(course.sums + later.sums, hull(course.range, later.range))


def hull(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The range (low and high, column) that holds both ranges; b may have more columns."""
    a = padded(a, b.shape, np.nan)
    return np.array([np.fmin(a[0], b[0]), np.fmax(a[1], b[1])])


@dataclass
class Recent:
    """The last rows: their numbers, and (row, LINES, column)."""

    t: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    values: np.ndarray = field(default_factory=lambda: np.empty((0, N_LINES, 0)))

    def add(self, t: np.ndarray, fit: Fit) -> None:
        rows = fit.lines
        before = padded(self.values, (len(self.t), N_LINES, rows.shape[2]))
        self.t = np.concatenate([self.t, t])[-N_RECENT:]
        self.values = np.concatenate([before, rows])[-N_RECENT:]


def confusion_added(confusion: np.ndarray, fit: Fit) -> np.ndarray:
    """The counts (actual, predicted) with those of more rows.

    >>> import numpy as np
    >>> fit = Fit.of_classes(np.array([1, 0, 1]), np.array([1, 1, 1]), np.zeros((3, 2)))
    >>> confusion_added(np.zeros((0, 0), dtype=int), fit)
    array([[0, 1],
           [0, 2]])
    """
    if fit.classes is None:
        return confusion
    n = max(len(confusion), fit.actual.shape[1])
    counts = padded(confusion, (n, n)).astype(np.int64)
    np.add.at(counts, tuple(fit.classes.T), 1)
    return counts
