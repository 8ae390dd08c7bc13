"""How a digest is made: rows go in, stretches come out.

Stretches have the same number of rows, a power of 2. When there are too many of them, neighbours are joined. Where a
stretch ends depends on the numbers of the rows alone, so a run that was interrupted has the same digest as one that was
not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from streamlasso.families import Family
from streamlasso.report.summary import Digest
from streamlasso.trace import STRETCH, Trace

#: Stretches at most; at least half as many, once there are so many rows.
MOST_STRETCHES = 2000
#: Rows with the largest losses that are remembered.
N_WORST = 5
MIDNIGHT = " 00:00:00"
#: What is summed over the rows of a stretch, those only that can be judged.
SUMS = ("judged", "loss", "baseline", "persistence", "least", "right", "squared")


class Snapshot(NamedTuple):
    """The model after a row: per class lam, lam_max and coefficients; how many rows it remembers, since which row."""

    lam: np.ndarray
    lam_max: np.ndarray
    coef: np.ndarray | None
    n_active: np.ndarray
    effective_size: float
    since: int = 0


class Spread(NamedTuple):
    """Of some rows: how many, and for each feature the mean and the sum of squares about it."""

    n: int
    mean: np.ndarray
    scatter: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray) -> Spread:
        """A feature that stands still has a scatter of 0, and not of a rounding error."""
        if len(X) == 1:
            return cls(1, X[0].copy(), np.zeros(X.shape[1]))
        still = np.all(X[0] == X, axis=0)
        mean = np.where(still, X[0], X.mean(axis=0))
        return cls(len(X), mean, np.where(still, 0.0, np.sum((X - mean) ** 2, axis=0)))

    def joined(self, other: Spread) -> Spread:
        p, n = len(other.mean), self.n + other.n
        gap = other.mean - _widened(self.mean, p)
        mean = _widened(self.mean, p) + gap * (other.n / n)
        return Spread(n, mean, _widened(self.scatter, p) + other.scatter + gap**2 * (self.n * other.n / n))


@dataclass
class Digester:
    """Takes rows in, piece by piece; a piece is never longer than `room`."""

    most: int = MOST_STRETCHES
    size: int = 1
    n_rows: int = 0
    sums: list[np.ndarray] = field(default_factory=list)
    spreads: list[Spread] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)
    times: list[str] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    ranges: list[np.ndarray] = field(default_factory=list)
    open_range: np.ndarray | None = None
    open: np.ndarray = field(default_factory=lambda: np.zeros(len(SUMS)))
    open_spread: Spread | None = None
    total: np.ndarray = field(default_factory=lambda: np.zeros(len(SUMS)))
    worst: list[tuple[int, float]] = field(default_factory=list)
    status: Counter[str] = field(default_factory=Counter)

    @property
    def room(self) -> int:
        """Rows until the stretch ends."""
        return self.size - self.n_rows % self.size

    def add(
        self,
        values: np.ndarray,
        lam: np.ndarray,
        X: np.ndarray | None,
        t: int,
        snapshot: Callable[[], Snapshot],
        time: str = "",
    ) -> None:
        """The next rows, from row t on: `values` are those of SUMS, a row each. A stretch ends with a snapshot."""
        judged = values[values[:, 0] > 0]
        # One after the other, so that it does not matter how the rows were cut into pieces.
        self.open = np.add.accumulate(np.vstack([self.open, judged]))[-1]
        self.total = np.add.accumulate(np.vstack([self.total, judged]))[-1]
        self._note_worst(values, t)
        self._note_range(lam)
        if X is not None:
            spread = Spread.of(X)
            self.open_spread = spread if self.open_spread is None else self.open_spread.joined(spread)
        self.n_rows += len(values)
        if self.n_rows % self.size == 0:
            self._close(snapshot(), time, self.size)
            if len(self.sums) >= self.most:
                self._join()

    def _note_range(self, lam: np.ndarray) -> None:
        ends = np.array([np.fmin.reduce(lam), np.fmax.reduce(lam)])
        self.open_range = ends if self.open_range is None else _wider(self.open_range, ends)

    def running_means(self, family: Family) -> tuple[float, float]:
        """The mean losses so far of the model and of the running mean, as the digest will show them."""
        means = _means(self.total[0], self.total[1:])
        least = means[3] if family.deviance_name else 0.0
        return float(means[0] - least), float(means[1] - least)

    def _note_worst(self, values: np.ndarray, t: int) -> None:
        least = self.worst[-1][1] if len(self.worst) == N_WORST else -np.inf
        for i in np.flatnonzero((values[:, 0] > 0) & (values[:, 1] > least)):
            self.worst.append((t + int(i), float(values[i, 1])))
        self.worst = sorted(self.worst, key=lambda row: (-row[1], row[0]))[:N_WORST]

    def _close(self, snapshot: Snapshot, time: str, rows: int) -> None:
        self.sums.append(self.open)
        self.snapshots.append(snapshot)
        self.times.append(time)
        self.rows.append(rows)
        if self.open_spread is not None:
            self.spreads.append(self.open_spread)
        assert self.open_range is not None
        self.ranges.append(self.open_range)
        self.open, self.open_spread, self.open_range = np.zeros(len(SUMS)), None, None

    def _join(self) -> None:
        self.size *= 2
        self.sums = [a + b for a, b in zip(self.sums[::2], self.sums[1::2], strict=True)]
        self.spreads = [a.joined(b) for a, b in zip(self.spreads[::2], self.spreads[1::2], strict=True)]
        self.ranges = [_wider(a, b) for a, b in zip(self.ranges[::2], self.ranges[1::2], strict=True)]
        self.snapshots, self.times = self.snapshots[1::2], self.times[1::2]
        self.rows = [self.size] * len(self.sums)

    # --- the digest ---------------------------------------------------------------------------------------------------

    def digest(
        self,
        last: Snapshot,
        feature_names: Sequence[str],
        classes: Sequence[Any] | None,
        family: Family,
        first: int = 0,
        trace: Trace | None = None,
    ) -> Digest:
        """What there is so far, with a last stretch that may be short; of a trace, which knows more, or of rows."""
        done = Digester(**{**vars(self), **{name: list(getattr(self, name)) for name in _LISTS}})
        if self.n_rows % self.size:
            done._close(last, done.times[-1] if done.times else "", self.n_rows % self.size)
        sums = np.array(done.sums).T
        means, whole = _means(sums[0], sums[1:]), _means(self.total[0], self.total[1:])
        if family.deviance_name:
            means[:3] -= means[3]
            whole[:3] -= whole[3]
        n_models, p = len(last.lam), len(feature_names)
        coef = None if last.coef is None else np.array([_padded(s.coef, n_models, p) for s in done.snapshots])
        per_class = lambda name: _one_or_all(  # noqa: E731
            np.array([_lengthened(getattr(s, name), n_models) for s in done.snapshots])
        )
        rows = np.array(done.rows)
        last_coef = _padded(last.coef, n_models, p) if trace is None else np.atleast_2d(trace.last_coef)
        return Digest(
            t=first + np.cumsum(rows) - 1,
            rows=rows,
            judged=sums[0],
            loss=means[0],
            baseline=means[1],
            persistence=means[2] if np.any(sums[3]) else None,
            lam=per_class("lam"),
            lam_range=np.array([[_lengthened(end, n_models) for end in ends] for ends in done.ranges]),
            lam_max=per_class("lam_max"),
            n_active=per_class("n_active"),
            effective_size=np.array([s.effective_size for s in done.snapshots]),
            since=np.array([s.since for s in done.snapshots]),
            coef=None if coef is None else _one_or_all(coef),
            times=_plain_days(done.times) if any(done.times) else None,
            last_coef=_one_or_all(last_coef[None])[0],
            spread=done._spread(p, last.effective_size) if trace is None else trace.spread,
            feature_names=tuple(feature_names),
            classes=classes,
            family=family,
            n_rows=self.n_rows,
            sums=dict(zip(SUMS[1:], whole.tolist(), strict=True)),
            worst=self.worst,
            status=dict(self.status),
        )

    def _spread(self, p: int, reach: float) -> np.ndarray:
        """As `Trace.spread`: the median standard deviation over stretches about as long as the memory's reach."""
        length = int(np.clip(reach, *STRETCH))
        found, current = [], None
        for spread in self.spreads:
            current = spread if current is None else current.joined(spread)
            if current.n >= length:
                found.append(_widened(current.scatter / current.n, p))
                current = None
        if current is not None and not found:
            found.append(_widened(current.scatter / current.n, p))
        deviations = np.sqrt(np.array(found)) if found else np.zeros((1, p))
        return np.array([np.median(column[column > 0]) if column.any() else 0.0 for column in deviations.T])

    # --- for checkpoints ----------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What the next row needs, as JSON and as arrays."""
        notes = {
            "most": self.most,
            "size": self.size,
            "n_rows": self.n_rows,
            "times": self.times,
            "status": dict(self.status),
        }
        n_models = max([len(s.lam) for s in self.snapshots], default=1)
        p = max([len(s.mean) for s in [*self.spreads, *([self.open_spread] if self.open_spread else [])]], default=0)
        arrays = {
            "sums": np.array(self.sums).reshape(-1, len(SUMS)),
            "open": self.open,
            "total": self.total,
            "worst": np.array(self.worst, dtype=float).reshape(-1, 2),
            "spread_n": np.array([s.n for s in self.spreads], dtype=np.int64),
            "spread_mean": np.array([_widened(s.mean, p) for s in self.spreads]).reshape(-1, p),
            "spread_scatter": np.array([_widened(s.scatter, p) for s in self.spreads]).reshape(-1, p),
            "coef": np.array([_padded(s.coef, n_models, p) for s in self.snapshots]).reshape(-1, n_models, p),
            "size": np.array([s.effective_size for s in self.snapshots]),
            "since": np.array([s.since for s in self.snapshots], dtype=np.int64),
            "ranges": np.array(
                [[_lengthened(end, n_models) for end in ends] for ends in self.ranges], dtype=float
            ).reshape(-1, 2, n_models),
        }
        if self.open_range is not None:
            arrays["open_range"] = self.open_range
        for name in ("lam", "lam_max", "n_active"):
            values = [_lengthened(getattr(s, name), n_models) for s in self.snapshots]
            arrays[name] = np.array(values, dtype=float).reshape(-1, n_models)
        if self.open_spread is not None:
            arrays["open_spread"] = np.stack(
                [np.full(p, float(self.open_spread.n)), *(_widened(a, p) for a in self.open_spread[1:])]
            )
        return notes, arrays

    @classmethod
    def from_state(cls, notes: dict[str, Any], arrays: dict[str, np.ndarray]) -> Digester:
        snapshots = [
            Snapshot(
                arrays["lam"][i],
                arrays["lam_max"][i],
                arrays["coef"][i],
                arrays["n_active"][i],
                float(arrays["size"][i]),
                int(arrays["since"][i]),
            )
            for i in range(len(arrays["size"]))
        ]
        opened = arrays.get("open_spread")
        return cls(
            most=notes["most"],
            size=notes["size"],
            n_rows=notes["n_rows"],
            sums=list(arrays["sums"]),
            spreads=[
                Spread(int(n), mean, scatter)
                for n, mean, scatter in zip(
                    arrays["spread_n"], arrays["spread_mean"], arrays["spread_scatter"], strict=True
                )
            ],
            snapshots=snapshots,
            times=list(notes["times"]),
            rows=[notes["size"]] * len(snapshots),
            ranges=list(arrays["ranges"]),
            open_range=arrays.get("open_range"),
            open=arrays["open"],
            open_spread=None if opened is None else Spread(int(opened[0, 0]), opened[1], opened[2]),
            total=arrays["total"],
            worst=[(int(t), float(loss)) for t, loss in arrays["worst"]],
            status=Counter(notes["status"]),
        )


def digest_of(trace: Trace) -> Digest:
    """The digest of a trace."""
    digester = Digester()
    right = trace.prediction == trace.y if trace.classes is not None else np.zeros(len(trace), bool)
    judged = np.zeros(len(trace), bool)
    judged[trace.judged] = True
    nothing = np.zeros(len(trace))
    squared = nothing if trace.classes is not None else (trace.y - trace.prediction) ** 2
    values = np.column_stack([judged, trace.loss, trace.baseline, nothing, trace.least_loss, right, squared])
    lam = trace.lam.reshape(len(trace), -1)
    start = 0
    while start < len(trace):
        stop = min(start + digester.room, len(trace))
        digester.add(
            values[start:stop], lam[start:stop], None, int(trace.t[start]), partial(_snapshot, trace, stop - 1)
        )
        start = stop
    digester.status.update(np.ravel(trace.status).tolist())
    first = int(trace.t[0]) if len(trace) else 0
    classes = None if trace.classes is None else list(trace.classes)
    return digester.digest(_snapshot(trace, len(trace) - 1), trace.feature_names, classes, trace.family, first, trace)


_LISTS = ("sums", "spreads", "snapshots", "times", "rows", "ranges")


def _snapshot(trace: Trace, i: int) -> Snapshot:
    lam, lam_max, n_active = (np.atleast_1d(column[i]) for column in (trace.lam, trace.lam_max, trace.n_active))
    coef = None if trace.coef is None else np.atleast_2d(trace.coef[i])
    return Snapshot(lam, lam_max, coef, n_active, float(trace.effective_size[i]))


def _means(n: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """NaN where there is nothing to judge."""
    return np.where(n > 0, sums / np.maximum(n, 1), np.nan)


def _plain_days(times: list[str]) -> list[str]:
    """Without the hours, where there are none."""
    whole = all(time.endswith(MIDNIGHT) for time in times if time)
    return [time.removesuffix(MIDNIGHT) for time in times] if whole else times


def _wider(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The least and the largest of two ranges (low and high, class); of a class that is new, its own."""
    a, b = (np.pad(c, [(0, 0), (0, max(a.shape[1], b.shape[1]) - c.shape[1])], constant_values=np.nan) for c in (a, b))
    return np.array([np.fmin(a[0], b[0]), np.fmax(a[1], b[1])])


def _widened(values: np.ndarray, p: int) -> np.ndarray:
    return values if len(values) == p else np.append(values, np.zeros(p - len(values)))


def _lengthened(values: np.ndarray, n: int) -> np.ndarray:
    return values if len(values) == n else np.append(np.asarray(values, float), np.full(n - len(values), np.nan))


def _padded(coef: np.ndarray | None, n_models: int, p: int) -> np.ndarray:
    """(class, feature) with zeros for what was not there yet."""
    out = np.zeros((n_models, p))
    if coef is not None:
        out[: coef.shape[0], : coef.shape[1]] = coef
    return out


def _one_or_all(values: np.ndarray) -> np.ndarray:
    """(stretch, model, ...) as (stretch, ...) where there is one model."""
    return values[:, 0] if values.shape[1] == 1 else values
