"""A `Summariser` as JSON and arrays, for checkpoints.

The arrays have one entry per stretch; the last entry of `sums`, `course_*`, `lam_range` and `scatter_*` is the stretch
that is not complete. Classes and features that a stretch did not have yet are NaN or 0 there, as in the summary.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from streamlasso.report.fit import Course, Recent
from streamlasso.report.spread import Scatter, padded
from streamlasso.report.summarise import Snapshot, Stretch, Summariser

#: How the names of the arrays begin, among those of a checkpoint.
PREFIX = "summary/"
PER_CLASS = ("lam", "lam_max", "n_active")


def summariser_state(summariser: Summariser) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What the next row needs."""
    complete, every = summariser.stretches, [*summariser.stretches, summariser.current]
    snapshots = [stretch.snapshot for stretch in complete if stretch.snapshot is not None]
    n_models = max(1, *(stretch.lam_range.shape[1] for stretch in every))
    widths = [len(stretch.scatter.mean) for stretch in every if stretch.scatter is not None]
    widths += [snapshot.coef.shape[1] for snapshot in snapshots]
    n_features = max(widths, default=0)
    notes = {
        "most": summariser.most,
        "size": summariser.size,
        "n_rows": summariser.n_rows,
        "times": [stretch.time for stretch in complete],
        "status": dict(summariser.status),
    }
    arrays = {
        "total": summariser.total,
        "worst": np.array(summariser.worst, dtype=float).reshape(-1, 2),
        "recent_t": summariser.recent.t,
        "recent": summariser.recent.values,
        "confusion": summariser.confusion,
        "sums": np.array([stretch.sums for stretch in every]),
        **_courses(every, summariser.recent.values.shape[2]),
        "lam_range": np.array([padded(stretch.lam_range, (2, n_models), np.nan) for stretch in every]),
        **_scatters(every, n_features),
        **_snapshots(snapshots, n_models, n_features),
    }
    return notes, {PREFIX + name: array for name, array in arrays.items()}


def summariser_from(notes: dict[str, Any], arrays: dict[str, np.ndarray]) -> Summariser:
    """The summariser whose state this is; `arrays` may hold others too."""
    arrays = {name.removeprefix(PREFIX): array for name, array in arrays.items() if name.startswith(PREFIX)}
    n_complete = len(notes["times"])
    stretches = [_stretch(notes, arrays, i) for i in range(n_complete)]
    rows = notes["n_rows"] % notes["size"]
    current = _open_stretch(arrays, n_complete, rows) if rows else Stretch()
    return Summariser(
        most=notes["most"],
        size=notes["size"],
        n_rows=notes["n_rows"],
        stretches=stretches,
        current=current,
        total=arrays["total"],
        worst=[(int(t), float(loss)) for t, loss in arrays["worst"]],
        recent=Recent(arrays["recent_t"], arrays["recent"]),
        confusion=arrays["confusion"],
        status=Counter(notes["status"]),
    )


def _courses(stretches: list[Stretch], n_columns: int) -> dict[str, np.ndarray]:
    courses = [stretch.course.widened(n_columns) for stretch in stretches]
    return {
        "course_sums": np.array([course.sums for course in courses]),
        "course_range": np.array([course.range for course in courses]),
    }


def _scatters(stretches: list[Stretch], n_features: int) -> dict[str, np.ndarray]:
    nothing = Scatter(0, np.empty(0), np.empty(0))
    scatters = [stretch.scatter or nothing for stretch in stretches]
    return {
        "scatter_n": np.array([scatter.n for scatter in scatters], dtype=np.int64),
        "scatter_mean": np.array([padded(scatter.mean, (n_features,)) for scatter in scatters]),
        "scatter_squares": np.array([padded(scatter.squares, (n_features,)) for scatter in scatters]),
    }


def _snapshots(snapshots: list[Snapshot], n_models: int, n_features: int) -> dict[str, np.ndarray]:
    models, features = (n_models,), (n_models, n_features)
    coefs = [snapshot.coef for snapshot in snapshots]
    arrays: dict[str, np.ndarray] = {
        "coef": np.array([padded(coef, features) for coef in coefs]).reshape(len(coefs), *features),
        "effective_size": np.array([snapshot.effective_size for snapshot in snapshots], dtype=float),
        "since": np.array([snapshot.since for snapshot in snapshots], dtype=np.int64),
    }
    for name in PER_CLASS:
        values = [padded(getattr(snapshot, name), models, np.nan) for snapshot in snapshots]
        arrays[name] = np.array(values, dtype=float).reshape(-1, *models)
    return arrays


def _stretch(notes: dict[str, Any], arrays: dict[str, np.ndarray], i: int) -> Stretch:
    stretch = _open_stretch(arrays, i, notes["size"])
    lam, lam_max, n_active = (arrays[name][i] for name in PER_CLASS)
    size, since = float(arrays["effective_size"][i]), int(arrays["since"][i])
    stretch.snapshot = Snapshot(lam, lam_max, arrays["coef"][i], n_active, size, since)
    stretch.time = notes["times"][i]
    return stretch


def _open_stretch(arrays: dict[str, np.ndarray], i: int, rows: int) -> Stretch:
    n, mean, squares = (arrays[f"scatter_{name}"][i] for name in ("n", "mean", "squares"))
    scatter = Scatter(int(n), mean, squares) if n else None
    course = Course(arrays["course_sums"][i], arrays["course_range"][i])
    return Stretch(rows, arrays["sums"][i], course, arrays["lam_range"][i], scatter)
