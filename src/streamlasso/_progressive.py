"""Predict, then learn, row by row; the table of what happened is a `Trace`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from streamlasso.baselines import RunningMean
from streamlasso.core.engine import Engine
from streamlasso.core.record import RECORD, STATUS
from streamlasso.core.selected import Selected
from streamlasso.estimators import RAPClassifier, RAPRegressor
from streamlasso.estimators.base import Rows
from streamlasso.estimators.multiclass import losses_of
from streamlasso.estimators.validation import as_before_if_refused
from streamlasso.report.spread import spread_of_rows
from streamlasso.report.summarise import rows_per_stretch
from streamlasso.trace import SelectedPath, Trace

#: Rows go to the engine in pieces of about this many multiplications, and no more rows, so that a bar can move.
PIECE_WORK, PIECE_ROWS = 20_000_000, 4096
#: Seconds before a progress bar appears without being asked for.
PATIENCE = 1.0


def progressive(
    model: RAPRegressor | RAPClassifier,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    coef: bool = False,
    progress: bool | None = None,
) -> Trace:
    """Predict each row, then learn it, in order; the `Trace` has the prediction before and the model after each row.

    The model learns in place, as by `partial_fit(X, y)`: a new model starts here, a fitted one continues. A new
    classifier takes its classes from y; name classes that come later in a first `partial_fit`. All rows are checked
    before the first is learnt. After an error or an interruption the model is as it was before the call.

    Parameters
    ----------
    model : RAPRegressor or RAPClassifier
    X, y, sample_weight : as for `partial_fit`; a row of weight 0 is predicted, not learnt
    coef : bool, default=False
        Keep the coefficients after each row too.
    progress : bool, default=None
        Show a progress bar on standard error. None shows one if that is a terminal and the stream takes longer than a
        second.

    Examples
    --------
    >>> from streamlasso import RAPRegressor, progressive
    >>> from streamlasso.simulate import simulate
    >>> stream = simulate(0)
    >>> trace = progressive(RAPRegressor(memory=0.95), stream.X, stream.y)
    >>> trace  # doctest: +ELLIPSIS
    Trace of 300 rows and 20 features
      half squared error 2..., of the running mean 7.63: 6... % lower
      selected model: lam 0..., lam_max 3.48; active 1... of 20; effective size 20
    >>> trace["effective_size"][[0, 1, 299]].round(2)
    array([ 1.  ,  1.95, 20.  ])
    """
    if not isinstance(model, RAPRegressor | RAPClassifier):
        raise TypeError(f"model={model!r} is no model of streamlasso: use a RAPRegressor or RAPClassifier")
    new = not hasattr(model, "learners_")
    start = 0 if new else model.n_seen_
    with as_before_if_refused(model):
        rows = model._ready(X, y, sample_weight, reset=new)
        with _all_or_none(model, rows):
            shown = ShownModels(start, len(rows.X), rows.learners[0].settings["batch_size"])
            record, path = learn_rows(rows, coef, progress, shown)
            return _trace(model._settle(rows), rows, start, record, path, shown.path())


class ShownModels:
    """The sparse models that are shown of a stream, of a mixture the selected ones: after some rows, evenly spaced.

    every : rows from one to the next, so that a summary has one for each of its stretches
    """

    def __init__(self, start: int, n_rows: int, batch_size: int) -> None:
        self.start = start
        self.every = -(-rows_per_stretch(n_rows) // batch_size) * batch_size
        self.t: list[int] = []
        self.models: list[list[Selected]] = []

    def add(self, row: int, learners: list[Engine]) -> None:
        """The models after a row."""
        self.t.append(self.start + row)
        self.models.append([learner.single() for learner in learners])

    def path(self) -> SelectedPath:
        columns = {
            name: _one_or_all(np.array([[getattr(model, name) for model in models] for models in self.models]))
            for name in ("lam", "lam_max", "since", "weight", "coef")
        }
        return SelectedPath(np.array(self.t), **columns)


def learn_rows(
    rows: Rows, coef: bool, progress: bool | None, shown: ShownModels | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """The record of each row (learner, row, RECORD); if asked for, intercept and coefficients after each row."""
    n_rows, n_features = rows.X.shape
    record = np.empty((len(rows.learners), n_rows, len(RECORD)))
    path = np.empty((len(rows.learners), n_rows, 1 + n_features)) if coef else None
    every = n_rows if shown is None else shown.every
    for piece in _with_progress(_pieces(rows, every), n_rows, progress):
        weights = None if rows.weights is None else rows.weights[piece]
        for k, (learner, target) in enumerate(zip(rows.learners, rows.targets, strict=True)):
            coefs = None if path is None else path[k, piece]
            learner.learn(rows.X[piece], target[piece], weights, record[k, piece], coefs)
        if shown is not None and (piece.stop % every == 0 or piece.stop == n_rows):
            shown.add(piece.stop - 1, rows.learners)
    return record, path


@contextmanager
def _all_or_none(model: RAPRegressor | RAPClassifier, rows: Rows) -> Iterator[None]:
    """After an error or an interruption the model is as it was: a new one has learnt nothing."""
    before = set(vars(model))
    states = [learner.state() for learner in rows.learners]
    try:
        yield
    except BaseException:
        for learner, state in zip(rows.learners, states, strict=True):
            learner.restore(state)
        for name in vars(model).keys() - before:
            delattr(model, name)
        raise


def _pieces(rows: Rows, every: int) -> Iterator[slice]:
    """Whole mini-batches, so that where the stream is cut does not matter; a piece ends after `every` rows."""
    n_rows, n_features = rows.X.shape
    batch_size = rows.learners[0].settings["batch_size"]
    size = min(PIECE_ROWS, PIECE_WORK // n_features**2)
    size = max(size // batch_size, 1) * batch_size
    start = 0
    while start < n_rows:
        stop = min(start + size, start - start % every + every, n_rows)
        yield slice(start, stop)
        start = stop


def _with_progress(pieces: Iterator[slice], n_rows: int, progress: bool | None) -> Iterator[slice]:
    """The pieces, with a bar that shows how many are done."""
    if not (sys.stderr.isatty() if progress is None else progress):
        yield from pieces
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("learning"), BarColumn(), MofNCompleteColumn(), TextColumn("rows"), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True))
    task = bar.add_task("rows", total=n_rows)
    begun = time.monotonic()
    try:
        for piece in pieces:
            if progress or time.monotonic() - begun > PATIENCE:
                bar.start()
            yield piece
            bar.update(task, completed=piece.stop)
    finally:
        if bar.live.is_started:
            bar.stop()


def _trace(
    model: Any, rows: Rows, start: int, record: np.ndarray, path: np.ndarray | None, selected: SelectedPath
) -> Trace:
    family = rows.learners[0].settings["family"]
    column = {name: record[:, :, i].T for i, name in enumerate(RECORD)}
    baseline = np.column_stack([RunningMean(family).etas(target) for target in rows.targets])
    return Trace(
        t=np.arange(start, start + len(rows.X)),
        y=_labels(rows),
        prediction=model._predictions(column["eta"]),
        loss=losses_of(family, rows.targets, column["eta"]),
        slope=_one_or_all(column["slope"]),
        lam=_one_or_all(column["lam"]),
        lam_max=_one_or_all(column["lam_max"]),
        n_active=_one_or_all(column["n_active"].astype(np.int64)),
        effective_size=column["effective_size"][:, 0].copy(),
        status=_one_or_all(np.array(STATUS)[column["status"].astype(int)]),
        baseline=losses_of(family, rows.targets, baseline),
        coef=None if path is None else _one_or_all(path[:, :, 1:].swapaxes(0, 1)),
        intercept=None if path is None else _one_or_all(path[:, :, 0].T),
        selected=selected,
        spread=spread_of_rows(rows.X, column["effective_size"][-1, 0]),
        feature_names=tuple(map(str, getattr(model, "feature_names_in_", [f"x{j}" for j in range(rows.X.shape[1])]))),
        classes=rows.classes,
        family=family,
    )


def _labels(rows: Rows) -> np.ndarray:
    """y as it was given: numbers, or classes."""
    if rows.classes is None:
        return rows.targets[0].copy()
    if len(rows.targets) == 1:
        return rows.classes[rows.targets[0].astype(int)]
    return rows.classes[np.argmax(rows.targets, axis=0)]


def _one_or_all(values: np.ndarray) -> np.ndarray:
    """(row, model, ...) as (row, ...) where there is one model."""
    return np.array(values[:, 0] if values.shape[1] == 1 else values)
