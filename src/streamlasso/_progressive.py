"""Predict, then learn, row by row; the table of what happened is a `Trace`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from streamlasso.baselines import RunningMean
from streamlasso.core.base.record import RECORD, STATUS
from streamlasso.core.base.selected import Selected
from streamlasso.core.model import Engine, learn_together
from streamlasso.core.monitor.attribution import DetectedChange
from streamlasso.estimators import RAPClassifier, RAPRegressor
from streamlasso.estimators.base import Rows
from streamlasso.estimators.changes import News
from streamlasso.estimators.multiclass import losses_of
from streamlasso.estimators.turns import counting, learning
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
    on_change: Callable[[DetectedChange], Any] | None = None,
) -> Trace:
    """Predict each row, then learn it, in order; the `Trace` has the prediction before and the model after each row.

    The model learns in place, as by `partial_fit(X, y)`: a new model starts here, a fitted one continues. A new
    classifier takes its classes from y; name classes that come later in a first `partial_fit`. All rows are checked
    before the first is learnt. After an error the model is as it was before the call. Ctrl-C stops between two rows:
    the model has learnt those before, and the `KeyboardInterrupt` has their number, `rows_learnt`, and their `trace`.

    Parameters
    ----------
    model : RAPRegressor or RAPClassifier
    X, y, sample_weight : as for `partial_fit`; a row of weight 0 is predicted, not learnt
    coef : bool, default=False
        Keep the coefficients after each row too.
    progress : bool, default=None
        Show a progress bar on standard error. None shows one if that is a terminal and the stream takes longer than a
        second.
    on_change : callable, default=None
        Called with each `DetectedChange` that is found (`changes_`), soon after its row: when the rows that the engine
        takes at a time, at most 4,096, are learnt. None: the model's own `on_change`, if it has one.

    Examples
    --------
    >>> from streamlasso import RAPRegressor, progressive
    >>> from streamlasso.simulate import simulate
    >>> stream = simulate(0)
    >>> trace = progressive(RAPRegressor(memory=0.95), stream.X, stream.y)
    >>> trace  # doctest: +ELLIPSIS
    Trace of 300 rows and 20 features
      half squared error 2..., of the running mean 7.63: 6... % lower
      lam 0..., lam_max 3.48; active 20 of 20; effective size 20
    >>> trace["effective_size"][[0, 1, 299]].round(2)
    array([ 1.  ,  1.95, 20.  ])
    """
    if not isinstance(model, RAPRegressor | RAPClassifier):
        raise TypeError(f"model={model!r} is no model of streamlasso: use a RAPRegressor or RAPClassifier")
    with learning(model):
        new = not hasattr(model, "learners_")
        start = 0 if new else model.n_seen_
        rows = model._ready(X, y, sample_weight, reset=new)
        shown = ShownModels(start, len(rows.X), rows.learners[0].settings["batch_size"])
        record, path = room_for(rows, coef)
        news = News(model, model.on_change if on_change is None else on_change)
        with counting(len(rows.X)) as learnt:
            try:
                with model._settled(rows, learnt):
                    _learn_all(rows, record, path, progress, shown, learnt, news)
            except BaseException as error:
                if learnt[0]:
                    error.trace = _partial(model, rows, start, record, path, shown, int(learnt[0]))  # type: ignore
                raise
            news.tell()
            return _trace(model, rows, start, record, path, shown.path())


class ShownModels:
    """The sparse models that are shown of a stream, of a mixture the selected ones: after some rows, evenly spaced.

    every : rows from one to the next, so that a summary has one for each of its stretches
    """

    def __init__(self, start: int, n_rows: int, batch_size: int) -> None:
        self.start = start
        self.every = -(-rows_per_stretch(n_rows) // batch_size) * batch_size
        self.t: list[int] = []
        self.models: list[list[Selected]] = []
        self.selects = False

    def add(self, row: int, learners: list[Engine]) -> None:
        """The models after a row."""
        self.t.append(self.start + row)
        self.models.append([learner.single() for learner in learners])
        self.selects = learners[0].selects

    def path(self) -> SelectedPath:
        columns = {
            name: _one_or_all(np.array([[getattr(model, name) for model in models] for models in self.models]))
            for name in ("since", "coef")
        }
        return SelectedPath(np.array(self.t), is_one_model=not self.selects, **columns)


def learn_rows(rows: Rows) -> np.ndarray:
    """The record of each row (learner, row, RECORD)."""
    record, _ = room_for(rows, False)
    _learn_pieces(rows, record, None, False, None, np.zeros(1, dtype=np.int64), None)
    return record


def room_for(rows: Rows, coef: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """For the record of each row (learner, row, RECORD) and, if asked for, intercept and coefficients after it."""
    shape = len(rows.learners), len(rows.X)
    return np.empty((*shape, len(RECORD))), np.empty((*shape, 1 + rows.X.shape[1])) if coef else None


def _learn_pieces(
    rows: Rows,
    record: np.ndarray,
    path: np.ndarray | None,
    progress: bool | None,
    shown: ShownModels | None,
    learnt: np.ndarray,
    news: News | None,
) -> None:
    n_rows = len(rows.X)
    every = n_rows if shown is None else shown.every
    for piece in _with_progress(_pieces(rows, every), n_rows, progress):
        weights = None if rows.weights is None else rows.weights[piece]
        targets = [target[piece] for target in rows.targets]
        coefs = None if path is None else path[:, piece]
        learn_together(rows.learners, rows.X[piece], targets, weights, record[:, piece], coefs, learnt)
        if shown is not None and (piece.stop % every == 0 or piece.stop == n_rows):
            shown.add(piece.stop - 1, rows.learners)
        if news is not None:
            news.tell()


def _learn_all(
    rows: Rows,
    record: np.ndarray,
    path: np.ndarray | None,
    progress: bool | None,
    shown: ShownModels,
    learnt: np.ndarray,
    news: News,
) -> None:
    """A family or tuner written in Python may raise: then the learners are as before the first piece."""
    compiled = all(learner.compiled for learner in rows.learners)
    before = [] if compiled else [learner.pack() for learner in rows.learners]
    try:
        _learn_pieces(rows, record, path, progress, shown, learnt, news)
    except BaseException:
        if before:
            learnt[0] = 0
            for learner, state in zip(rows.learners, before, strict=True):
                learner.unpack(state)
        raise


def _partial(
    model: Any, rows: Rows, start: int, record: np.ndarray, path: np.ndarray | None, shown: ShownModels, n: int
) -> Trace:
    """The trace of the first n rows, which were learnt."""
    if start + n - 1 not in shown.t:
        shown.add(n - 1, rows.learners)
    return _trace(model, rows.first(n), start, record[:, :n], None if path is None else path[:, :n], shown.path())


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
        detected=tuple(each for each in getattr(model, "changes_", ()) if 0 <= each.detected - start < len(rows.X)),
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
