"""A stream of any length in a bounded number of stretches: what figures and reports are made of (`digester.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamlasso.families import Family
from streamlasso.trace import Change, lasting_changes


@dataclass(frozen=True, eq=False)
class Digest:
    """A stream in stretches: one entry each, in the order of time.

    t, rows : the last row of the stretch, and how many rows it has
    judged, loss, baseline, persistence : rows that could be judged, and their mean losses (of persistence: or None)
    lam, lam_max, n_active, effective_size, since, coef, times : after the last row; with a column a class for several
    lam_range : (stretch, low and high, class) of lam within the stretch
    last_coef, spread, feature_names, classes, family : as in `Trace`
    n_rows, sums, right : of the whole stream: rows, means of the losses by name, the share of classes named right
    worst, status : the rows with the largest losses, with these; how often each status occurred
    """

    t: np.ndarray
    rows: np.ndarray
    judged: np.ndarray
    loss: np.ndarray
    baseline: np.ndarray
    persistence: np.ndarray | None
    lam: np.ndarray
    lam_range: np.ndarray
    lam_max: np.ndarray
    n_active: np.ndarray
    effective_size: np.ndarray
    since: np.ndarray
    coef: np.ndarray | None
    times: list[str] | None
    last_coef: np.ndarray
    spread: np.ndarray
    feature_names: tuple[str, ...]
    classes: Sequence[Any] | None
    family: Family
    n_rows: int
    sums: dict[str, float]
    worst: list[tuple[int, float]]
    status: dict[str, int]

    @property
    def size(self) -> int:
        """Rows in a stretch; the last may have fewer."""
        return int(self.rows[0])

    @property
    def outputs(self) -> list[Any]:
        """The classes that have a model each, if there are several."""
        return [] if self.classes is None or len(self.classes) <= 2 else list(self.classes)

    @property
    def loss_name(self) -> str:
        return self.family.deviance_name or self.family.loss_name

    @property
    def mean_loss(self) -> float:
        return self.sums["loss"]

    @property
    def mean_baseline(self) -> float:
        return self.sums["baseline"]

    @property
    def mean_persistence(self) -> float | None:
        return None if self.persistence is None else self.sums["persistence"]

    @property
    def saved(self) -> float:
        """As `Trace.saved`."""
        return self.saved_against(self.mean_baseline)

    def saved_against(self, rival: float) -> float:
        """The share of a rival's mean loss, counted from that of a perfect prediction, that the model saves."""
        excess = rival - (0.0 if self.family.deviance_name else self.sums["least"])
        return (rival - self.mean_loss) / excess if excess > 0 else float("nan")

    @property
    def typical_error(self) -> float:
        """The root of the mean squared error, in units of the response."""
        return float(np.sqrt(self.sums["squared"]))

    @property
    def effects(self) -> np.ndarray:
        """(model, feature): coefficients now, times the spread of the feature."""
        return np.atleast_2d(self.last_coef) * self.spread

    def changes(self) -> list[Change]:
        """Which features entered and left for long: a fiftieth of the stream, and 10 rows or more."""
        assert self.coef is not None
        least = max(10, self.n_rows // 50) // self.size
        coef = self.coef if self.coef.ndim == 3 else self.coef[:, None]
        labels = self.outputs or [None]
        return lasting_changes(self.t, coef * self.spread, self.feature_names, labels, max(least, 2), self.size)

    def fresh_starts(self) -> list[tuple[int, int]]:
        """When the model let go of its past for long: the row, and since when all that it uses has come."""
        least = max(2, len(self.t) // 50)
        found: list[tuple[int, int]] = []
        for i in range(1, len(self.t) - least + 1):
            before = found[-1][1] if found else 0
            ahead = self.since[i : i + least]
            if self.since[i] > before and self.since[i] > self.since[i - 1] and ahead.min() >= self.since[i]:
                found.append((int(self.t[i]), int(self.since[i])))
        return found

    def at(self, t: int) -> str:
        """When a row was, as its time if there is one."""
        if self.times is None:
            return f"row {t:,}"
        return f"{self.times[min(int(np.searchsorted(self.t, t)), len(self.times) - 1)]} (row {t:,})"
