"""How a summary is made: rows go in, stretches come out.

Stretches have the same number of rows, a power of 2. When there are too many of them, neighbours are joined. Where a
stretch ends depends on the numbers of the rows alone, so a run that was interrupted has the same summary as one that
was not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from streamlasso.families import Family
from streamlasso.report.fit import Course, Fit, Recent, confusion_added, hull
from streamlasso.report.spread import Scatter, padded, spread_of_stretches
from streamlasso.report.summary import Summary

#: Stretches at most; at least half as many, once there are so many rows.
MOST_STRETCHES = 2000
#: Rows with the largest losses that are kept.
N_WORST = 5
MIDNIGHT = " 00:00:00"
#: What is summed over the rows of a stretch that have a loss: `scored` counts them. An error is the distance of a
#: prediction from the response; for classes 1 if it is wrong, else 0. NaN where no intervals were predicted.
SUMS = (
    "scored",
    "loss",
    "baseline",
    "persistence",
    "least_loss",
    "error",
    "baseline_error",
    "persistence_error",
    "covered",
)


def rows_per_stretch(n_rows: int) -> int:
    """The rows in a complete stretch of a stream of this length.

    >>> rows_per_stretch(1999), rows_per_stretch(2000)
    (1, 2)
    """
    size = 1
    while n_rows // size >= MOST_STRETCHES:
        size *= 2
    return size


class Snapshot(NamedTuple):
    """The model after a row: lam, lam_max and coefficients per class; how many rows it remembers, and since which.

    spread, n_features : where the coefficients are those of the strongest features only, their spread, and the number
        of all features
    """

    lam: np.ndarray
    lam_max: np.ndarray
    coef: np.ndarray
    n_active: np.ndarray
    effective_size: float
    since: int = 0
    spread: np.ndarray | None = None
    n_features: int | None = None


@dataclass
class Stretch:
    """Consecutive rows.

    sums : those of SUMS
    course : predicted against actual
    lam_range : (low and high, class)
    scatter : of the features; None where they are not given
    snapshot, time : after the last row
    """

    rows: int = 0
    sums: np.ndarray = field(default_factory=lambda: np.zeros(len(SUMS)))
    course: Course = field(default_factory=Course.empty)
    lam_range: np.ndarray = field(default_factory=lambda: np.empty((2, 0)))
    scatter: Scatter | None = None
    snapshot: Snapshot | None = None
    time: str = ""

    def add(self, scored: np.ndarray, fit: Fit, lam: np.ndarray, X: np.ndarray | None) -> None:
        self.sums = _added(self.sums, scored)
        self.course = self.course.added(fit)
        self.lam_range = hull(self.lam_range, np.array([np.fmin.reduce(lam), np.fmax.reduce(lam)]))
        if X is not None:
            scatter = Scatter.of(X)
            self.scatter = scatter if self.scatter is None else self.scatter.joined(scatter)
        self.rows += len(lam)

    def joined(self, later: Stretch) -> Stretch:
        scatter = None
        if self.scatter is not None and later.scatter is not None:
            scatter = self.scatter.joined(later.scatter)
        return Stretch(
            rows=self.rows + later.rows,
            sums=self.sums + later.sums,
            course=self.course.joined(later.course),
            lam_range=hull(self.lam_range, later.lam_range),
            scatter=scatter,
            snapshot=later.snapshot,
            time=later.time,
        )


@dataclass
class Summariser:
    """Builds a summary while rows come, in pieces no longer than `room`.

    stretches, current : those that are complete, and the one that is not
    size : rows in a complete stretch
    total : the sums over all rows
    recent, confusion : the last rows, and counts of (actual, predicted) classes
    """

    most: int = MOST_STRETCHES
    size: int = 1
    n_rows: int = 0
    stretches: list[Stretch] = field(default_factory=list)
    current: Stretch = field(default_factory=Stretch)
    total: np.ndarray = field(default_factory=lambda: np.zeros(len(SUMS)))
    worst: list[tuple[int, float]] = field(default_factory=list)
    recent: Recent = field(default_factory=Recent)
    confusion: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    status: Counter[str] = field(default_factory=Counter)

    @property
    def room(self) -> int:
        """Rows until the stretch ends."""
        return self.size - self.n_rows % self.size

    @property
    def last_snapshot(self) -> Snapshot | None:
        return self.stretches[-1].snapshot if self.stretches else None

    def add(
        self,
        values: np.ndarray,
        fit: Fit,
        lam: np.ndarray,
        X: np.ndarray | None,
        t: int,
        snapshot: Callable[[], Snapshot],
        time: str = "",
    ) -> None:
        """The next rows, from row t on: `values` are (row, SUMS). A stretch that ends takes a snapshot."""
        counts = values[:, 0] > 0
        scored, fit = values[counts], fit.at(counts)
        self.current.add(scored, fit, lam, X)
        self.recent.add(t + np.flatnonzero(counts), fit)
        self.confusion = confusion_added(self.confusion, fit)
        self.total = _added(self.total, scored)
        self._note_worst(values, t)
        self.n_rows += len(values)
        if self.n_rows % self.size == 0:
            self.stretches.append(replace(self.current, snapshot=snapshot(), time=time))
            self.current = Stretch()
            if len(self.stretches) >= self.most:
                self.size *= 2
                pairs = zip(self.stretches[::2], self.stretches[1::2], strict=True)
                self.stretches = [earlier.joined(later) for earlier, later in pairs]

    def _note_worst(self, values: np.ndarray, t: int) -> None:
        least = self.worst[-1][1] if len(self.worst) == N_WORST else -np.inf
        for i in np.flatnonzero((values[:, 0] > 0) & (values[:, 1] > least)):
            self.worst.append((t + int(i), float(values[i, 1])))
        self.worst = sorted(self.worst, key=lambda row: (-row[1], row[0]))[:N_WORST]

    def running_means(self, family: Family) -> tuple[float, float]:
        """The mean losses so far of the model and of the running mean, as the summary will show them."""
        loss, baseline, *_ = _shown_means(self.total[:, None], family)[:, 0]
        return float(loss), float(baseline)

    # --- the summary --------------------------------------------------------------------------------------------------

    def summary(
        self,
        last: Snapshot,
        feature_names: Sequence[str],
        classes: Sequence[Any] | None,
        family: Family,
        first: int = 0,
    ) -> Summary:
        """The stream from row `first` on; the last stretch may be short, and ends with the snapshot `last`."""
        stretches = self._with_current(last)
        sums = np.array([stretch.sums for stretch in stretches]).T
        means, total = _shown_means(sums, family), _shown_means(self.total[:, None], family)[:, 0]
        models, features = (len(last.lam),), (len(last.lam), len(feature_names))
        rows = np.array([stretch.rows for stretch in stretches])
        times = [stretch.time for stretch in stretches]
        last_coef = padded(last.coef, features)
        scatters = [stretch.scatter for stretch in stretches if stretch.scatter is not None]
        n_columns = self.recent.values.shape[2]
        courses = [stretch.course.widened(n_columns) for stretch in stretches]
        n_scored = np.where(sums[0] > 0, sums[0], np.nan)[:, None]
        return Summary(
            t=first + np.cumsum(rows) - 1,
            rows=rows,
            scored=sums[0],
            loss=means[0],
            baseline=means[1],
            persistence=means[2] if np.any(sums[3]) else None,
            actual=np.array([course.sums[0] for course in courses]) / n_scored,
            predicted=np.array([course.sums[1] for course in courses]) / n_scored,
            interval=np.array([course.sums[2:] for course in courses]) / n_scored[:, None],
            actual_range=np.array([course.range for course in courses]),
            recent=self.recent,
            confusion=self.confusion,
            lam=_one_or_all(_column(stretches, "lam", models)),
            lam_range=np.array([padded(stretch.lam_range, (2, *models), np.nan) for stretch in stretches]),
            lam_max=_one_or_all(_column(stretches, "lam_max", models)),
            n_active=_one_or_all(_column(stretches, "n_active", models)),
            effective_size=_column(stretches, "effective_size"),
            since=_column(stretches, "since"),
            coef=_one_or_all(_column(stretches, "coef", features, 0.0)),
            times=_without_midnights(times) if any(times) else None,
            last_coef=_one_or_all(last_coef[None])[0],
            spread=last.spread
            if last.spread is not None
            else spread_of_stretches(scatters, len(feature_names), last.effective_size),
            n_features=last.n_features,
            feature_names=tuple(feature_names),
            classes=classes,
            family=family,
            n_rows=self.n_rows,
            means=dict(zip(SUMS[1:], total.tolist(), strict=True)),
            worst=self.worst,
            status=dict(self.status),
        )

    def _with_current(self, last: Snapshot) -> list[Stretch]:
        if not self.current.rows:
            return self.stretches
        time = self.stretches[-1].time if self.stretches else ""
        return [*self.stretches, replace(self.current, snapshot=last, time=time)]


def _added(sums: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Row by row, so that it does not matter how the rows were cut into pieces."""
    return np.add.accumulate(np.vstack([sums, rows]))[-1]


def _shown_means(sums: np.ndarray, family: Family) -> np.ndarray:
    """(SUMS without the first, stretch): means over the scored rows, NaN if there are none; losses as deviances, where
    the family has one."""
    n = sums[0]
    means = np.where(n > 0, sums[1:] / np.maximum(n, 1), np.nan)
    if family.deviance_name:
        means[:3] -= means[3]
    return means


def _column(
    stretches: list[Stretch], name: str, shape: tuple[int, ...] | None = None, fill: float = np.nan
) -> np.ndarray:
    """A field of the snapshots; of classes and features that were not there yet, `fill`."""
    values = [getattr(stretch.snapshot, name) for stretch in stretches]
    return np.array(values if shape is None else [padded(value, shape, fill) for value in values])


def _without_midnights(times: list[str]) -> list[str]:
    """Days only, where all times are midnights."""
    days = all(time.endswith(MIDNIGHT) for time in times if time)
    return [time.removesuffix(MIDNIGHT) for time in times] if days else times


def _one_or_all(values: np.ndarray) -> np.ndarray:
    """(stretch, model, ...) as (stretch, ...) where there is one model."""
    return values[:, 0] if values.shape[1] == 1 else values
