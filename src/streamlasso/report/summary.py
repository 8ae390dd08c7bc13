"""A stream of any length in a bounded number of stretches: all that figures and reports are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamlasso._text import plain
from streamlasso.core.monitor.attribution import DetectedChange
from streamlasso.families import Family
from streamlasso.report.changes import Change, lasting_changes
from streamlasso.report.fit import Recent

#: Features that are shown at a time where there is any number of them, by the size of their effects.
STRONGEST = 20
#: A model keeps about as many changes (`core/monitor/detector.pxd`): if there are more, these are the last ones.
KEPT = 32


@dataclass(frozen=True, eq=False)
class Summary:
    """A stream in stretches: one entry per stretch, in the order of time.

    t, rows : the last row of the stretch, and its number of rows
    scored : the number of rows with a loss: not the first, which nothing could predict, nor rows without a target
    loss, baseline, persistence : mean losses of the model, of the running mean and of persistence (or None)
    actual, predicted : (stretch, column) means of the scored rows: one column, or one per class (shares of the rows)
    actual_range : (stretch, low and high, column)
    interval : (stretch, low and high, column) mean ends of the predicted intervals; NaN without any
    recent, confusion : the last rows one by one; counts of (actual, predicted) classes
    lam, lam_max, n_active, effective_size, since, coef, times : after the last row; with several classes, one column
        per class
    lam_range : (stretch, low and high, class) of lam within the stretch
    last_coef, spread, feature_names, classes, family : as in `Trace`
    n_rows, means : of the whole stream: its rows, and means by name (`summarise.SUMS`)
    worst, status : the rows with the largest losses, with their losses; the number of rows with each status
    target : the name of the response, if it has one
    detected : the changes that were found in the stream
    n_features : the number of all features, where those that are named are only the strongest at some time; the others,
        and all that is not among the strongest at the time, have coefficients of 0 here
    coverage : the share of responses that the intervals should hold, if there are any; `means["covered"]` is what they
        hold
    """

    t: np.ndarray
    rows: np.ndarray
    scored: np.ndarray
    loss: np.ndarray
    baseline: np.ndarray
    persistence: np.ndarray | None
    actual: np.ndarray
    predicted: np.ndarray
    interval: np.ndarray
    actual_range: np.ndarray
    recent: Recent
    confusion: np.ndarray
    lam: np.ndarray
    lam_range: np.ndarray
    lam_max: np.ndarray
    n_active: np.ndarray
    effective_size: np.ndarray
    since: np.ndarray
    coef: np.ndarray
    times: list[str] | None
    last_coef: np.ndarray
    spread: np.ndarray
    feature_names: tuple[str, ...]
    classes: Sequence[Any] | None
    family: Family
    n_rows: int
    means: dict[str, float]
    worst: list[tuple[int, float]]
    status: dict[str, int]
    target: str | None = None
    detected: tuple[DetectedChange, ...] = ()
    n_features: int | None = None
    coverage: float | None = None

    def printable(self) -> Summary:
        """With names that every font and terminal can show."""
        classes = self.classes and [plain(each) if isinstance(each, str) else each for each in self.classes]
        target = self.target and plain(self.target)
        detected = tuple(change.printable() for change in self.detected)
        return replace(
            self, feature_names=tuple(map(plain, self.feature_names)), classes=classes, target=target, detected=detected
        )

    @property
    def only_strongest(self) -> bool:
        """Whether only the strongest features are named."""
        return self.n_features is not None

    @property
    def changes_are_cut(self) -> bool:
        """Whether earlier changes may be missing in `detected`."""
        return len(self.detected) >= KEPT

    @property
    def n_active_now(self) -> int:
        """Features with a coefficient that is not 0; of several classes, of the model that has most."""
        if self.only_strongest:
            return int(np.max(self.n_active[-1]))
        return int(np.sum(np.any(np.atleast_2d(self.last_coef) != 0, axis=0)))

    @property
    def size(self) -> int:
        """Rows in a stretch; the last may have fewer."""
        return int(self.rows[0])

    @property
    def model_labels(self) -> list[Any]:
        """The class of each model, where there are several."""
        return [] if self.classes is None or len(self.classes) <= 2 else list(self.classes)

    @property
    def loss_name(self) -> str:
        return self.family.deviance_name or self.family.loss_name

    @property
    def mean_loss(self) -> float:
        return self.means["loss"]

    @property
    def mean_baseline(self) -> float:
        return self.means["baseline"]

    @property
    def mean_persistence(self) -> float | None:
        return None if self.persistence is None else self.means["persistence"]

    @property
    def saved(self) -> float:
        """As `Trace.saved`."""
        return self.saved_against(self.mean_baseline)

    def saved_against(self, other: float) -> float:
        """The share of another mean loss that the model saves; a loss counts from that of a perfect prediction."""
        excess = other - (0.0 if self.family.deviance_name else self.means["least_loss"])
        return (other - self.mean_loss) / excess if excess > 0 else float("nan")

    @property
    def accuracy(self) -> float:
        """The share of rows whose class was predicted correctly."""
        return 1 - self.means["error"]

    @property
    def base_rate(self) -> tuple[Any, float]:
        """The most common class, and its share of the rows: the accuracy of always predicting it."""
        assert self.classes is not None
        rows = self.confusion.sum(axis=1)
        most = int(np.argmax(rows)) if len(rows) else 0
        return self.classes[most], float(rows[most] / rows.sum()) if rows.any() else float("nan")

    @property
    def typical_error(self) -> float:
        """The mean absolute error, in units of the response."""
        return self.means["error"]

    def mean_over(self, losses: np.ndarray, part: slice | np.ndarray = slice(None)) -> float:
        """The mean loss of the scored rows in some of the stretches; NaN if there are none."""
        losses, scored = losses[part], self.scored[part]
        there = scored > 0
        return float(np.sum(losses[there] * scored[there]) / scored[there].sum()) if there.any() else float("nan")

    @property
    def effects(self) -> np.ndarray:
        """(model, feature): coefficients now, times the spread of the feature."""
        return np.atleast_2d(self.last_coef) * self.spread

    @property
    def active(self) -> list[tuple[int, int]]:
        """Model and feature of each coefficient that is not 0 now, the largest effects first."""
        order = np.argsort(-np.abs(self.effects), axis=None, kind="stable")
        places = [divmod(int(place), len(self.feature_names)) for place in order]
        return [place for place in places if np.atleast_2d(self.last_coef)[place] != 0]

    def changes(self) -> list[Change]:
        """The features that entered or left for a fiftieth of the stream, and 10 rows, or more."""
        shortest = max(10, self.n_rows // 50) // self.size
        coef = self.coef if self.coef.ndim == 3 else self.coef[:, None]
        labels = self.model_labels or [None]
        return lasting_changes(self.t, coef * self.spread, self.feature_names, labels, max(shortest, 2), self.size)

    def at(self, t: int) -> str:
        """When a row was: its time if there is one, and its number."""
        if self.times is None:
            return f"row {t:,}"
        return f"{self.times[min(int(np.searchsorted(self.t, t)), len(self.times) - 1)]} (row {t:,})"
