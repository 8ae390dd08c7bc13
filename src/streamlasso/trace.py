"""Predict, then learn, row by row; what happened comes back as a table, the `Trace`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamlasso.core.learner import Learner
from streamlasso.core.record import RECORD, STATUS
from streamlasso.estimators import RAPClassifier, RAPRegressor
from streamlasso.estimators.base import Rows
from streamlasso.estimators.multiclass import losses_of
from streamlasso.estimators.validation import as_before_if_refused
from streamlasso.families import Family
from streamlasso.memories import Forgetting
from streamlasso.penalties import L1
from streamlasso.tuners import Fixed

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from matplotlib.figure import Figure

#: Rows go to the engine in pieces of about this many multiplications, and no more rows, so that a bar can move.
PIECE_WORK, PIECE_ROWS = 20_000_000, 4096
#: Seconds before a progress bar appears that nobody asked for.
PATIENCE = 1.0
#: The shortest and the longest stretch of rows over which a feature's spread is taken, and how many there are at most.
STRETCH, N_STRETCHES = (20, 4096), 200
#: The table, in order; for several classes those of PER_CLASS are one column a class.
COLUMNS = (
    "t",
    "y",
    "prediction",
    "loss",
    "slope",
    "lam",
    "lam_max",
    "n_active",
    "effective_size",
    "status",
    "baseline",
)
PER_CLASS = ("slope", "lam", "lam_max", "n_active", "status")


def progressive(
    model: RAPRegressor | RAPClassifier,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    coef: bool = False,
    progress: bool | None = None,
) -> Trace:
    """Predict each row, then learn it, in order; the `Trace` holds what was said before and what was so after each row.

    The model is learnt in place, as by `partial_fit(X, y)`: a fresh one starts here, a fitted one goes on. A fresh
    classifier takes its classes from y; name classes that come later in a first `partial_fit`. All rows are checked
    before the first is learnt, and all are learnt or, after an error or an interruption, none.

    Parameters
    ----------
    model : RAPRegressor or RAPClassifier
    X, y, sample_weight : as for `partial_fit`; a row of weight 0 is predicted, not learnt
    coef : bool, default=False
        Keep the coefficients after each row too.
    progress : bool, default=None
        A progress bar on standard error; None is one if that is a terminal and the stream takes longer than a second.

    Examples
    --------
    >>> from streamlasso import RAPRegressor, progressive
    >>> from streamlasso.simulate import simulate
    >>> stream = simulate(0)
    >>> trace = progressive(RAPRegressor(memory=0.95), stream.X, stream.y)
    >>> trace  # doctest: +ELLIPSIS
    Trace of 300 rows and 20 features
      half squared error 2..., of the running mean 7.63: 6... % lower
      lam 0..., lam_max 3.48; active 1... of 20; effective size 20
    >>> trace["effective_size"][[0, 1, 299]].round(2)
    array([ 1.  ,  1.95, 20.  ])
    """
    if not isinstance(model, RAPRegressor | RAPClassifier):
        raise TypeError(f"model={model!r}: a RAPRegressor or RAPClassifier of streamlasso is needed")
    fresh = not hasattr(model, "learners_")
    start = 0 if fresh else model.n_seen_
    with as_before_if_refused(model):
        rows = model._ready(X, y, sample_weight, reset=fresh)
        with _all_or_none(model, rows):
            record, path = learn_rows(rows, coef, progress)
            return _trace(model._settle(rows), rows, start, record, path)


# --- learning ---------------------------------------------------------------------------------------------------------


def learn_rows(rows: Rows, coef: bool, progress: bool | None) -> tuple[np.ndarray, np.ndarray | None]:
    """What each learner notes of each row (learner, row, RECORD); on request, intercept and coefficients after it."""
    n_rows, n_features = rows.X.shape
    record = np.empty((len(rows.learners), n_rows, len(RECORD)))
    path = np.empty((len(rows.learners), n_rows, 1 + n_features)) if coef else None
    for piece in _watched(_pieces(rows), n_rows, progress):
        weights = None if rows.weights is None else rows.weights[piece]
        for k, (learner, target) in enumerate(zip(rows.learners, rows.targets, strict=True)):
            coefs = None if path is None else path[k, piece]
            learner.learn(rows.X[piece], target[piece], weights, record[k, piece], coefs)
    return record, path


@contextmanager
def _all_or_none(model: RAPRegressor | RAPClassifier, rows: Rows) -> Iterator[None]:
    """After an error or an interruption the model is as it was, a fresh one fresh."""
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


def _pieces(rows: Rows) -> Iterator[slice]:
    """Whole mini-batches: where the stream is cut must not matter."""
    n_rows, n_features = rows.X.shape
    batch_size = rows.learners[0].settings["batch_size"]
    size = min(PIECE_ROWS, PIECE_WORK // n_features**2)
    size = max(size // batch_size, 1) * batch_size
    return (slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size))


def _watched(pieces: Iterator[slice], n_rows: int, progress: bool | None) -> Iterator[slice]:
    """The pieces, while a bar shows how far they are."""
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


def _trace(model: Any, rows: Rows, start: int, record: np.ndarray, path: np.ndarray | None) -> Trace:
    family = rows.learners[0].settings["family"]
    column = {name: record[:, :, i].T for i, name in enumerate(RECORD)}
    naive = np.column_stack([RunningMean(family).etas(target) for target in rows.targets])
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
        baseline=losses_of(family, rows.targets, naive),
        coef=None if path is None else _one_or_all(path[:, :, 1:].swapaxes(0, 1)),
        intercept=None if path is None else _one_or_all(path[:, :, 0].T),
        last_coef=_one_or_all(np.array([[learner.coef for learner in rows.learners]]))[0],
        spread=_spread(rows.X, column["effective_size"][-1, 0]),
        feature_names=tuple(map(str, getattr(model, "feature_names_in_", [f"x{j}" for j in range(rows.X.shape[1])]))),
        classes=rows.classes,
        family=family,
    )


def _labels(rows: Rows) -> np.ndarray:
    """y as it came: numbers, or classes."""
    if rows.classes is None:
        return rows.targets[0].copy()
    if len(rows.targets) == 1:
        return rows.classes[rows.targets[0].astype(int)]
    return rows.classes[np.argmax(rows.targets, axis=0)]


def _spread(X: np.ndarray, reach: float) -> np.ndarray:
    """How far each feature usually strays within the memory's reach: its median standard deviation over such stretches.

    Stretches where it stands still are left out. Trends and jumps hardly count: no coefficient is about them.
    """
    length = int(min(np.clip(reach, *STRETCH), len(X)))
    starts = np.linspace(0, len(X) - length, min(len(X) // length, N_STRETCHES)).astype(int)
    found = np.array([_deviation(X[start : start + length]) for start in starts])
    return np.array([np.median(column[column > 0]) if column.any() else 0.0 for column in found.T])


def _deviation(X: np.ndarray) -> np.ndarray:
    """0, and not a rounding error, for a feature that stands still."""
    return np.where(np.ptp(X, axis=0) > 0, X.std(axis=0), 0.0)


def _one_or_all(values: np.ndarray) -> np.ndarray:
    """(row, model, ...) as (row, ...) where there is one model."""
    return np.array(values[:, 0] if values.shape[1] == 1 else values)


class RunningMean:
    """What every model has to beat: eta of the plain mean of the rows before, whatever memory and weights there are.

    The first row has none before it: eta is 0, as it is for a fresh model. The family says what its mean is
    (`Family.running_mean`); one that does not gets the engine's intercept, with nothing forgotten.

    >>> import numpy as np
    >>> from streamlasso.families import Gaussian
    >>> RunningMean(Gaussian()).etas(np.array([1.0, 2.0, 6.0, 3.0]))
    array([0. , 1. , 1.5, 3. ])
    """

    def __init__(self, family: Family) -> None:
        self.family = family
        self.n, self.total = 0, 0.0
        says = family.running_mean(np.zeros(1), np.zeros(1)) is not None
        self.intercept = None if says else _intercept_only(family)

    def etas(self, y: np.ndarray) -> np.ndarray:
        """eta before each of the next rows, which are then taken in."""
        if self.intercept is not None:
            record = np.empty((len(y), len(RECORD)))
            self.intercept.learn(np.zeros((len(y), 1)), y, None, record)
            return record[:, 0]
        n = self.n + np.arange(len(y))
        total = np.cumsum(np.concatenate([[self.total], y]))
        self.n, self.total = self.n + len(y), total[-1]
        return self.family.running_mean(n, total[:-1])


def _intercept_only(family: Family) -> Learner:
    """A feature that is always 0 stays out."""
    return Learner(1, family=family, memory=Forgetting(1.0), penalty=L1(), tuner=Fixed(0.0))


# --- the table --------------------------------------------------------------------------------------------------------


class Change(NamedTuple):
    """A feature entered the model at row t, or left it: for, or after, so many rows; its effect then; which class."""

    t: int
    feature: str
    entered: bool
    rows: int
    effect: float
    label: Any = None


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """A stream as it was predicted and learnt: one entry a row, columns by name, `trace["lam"]` or `trace.lam`.

    t, y : the row's number, counted on from the model's `n_seen_`, and its response
    prediction, loss : before the row: what `predict` said of it, and the family's loss of that (log loss for classes)
    slope : dC/dlam, the derivative of that loss
    lam, lam_max, n_active, effective_size, status : after the row: the penalty, the least one that empties the model,
        how many coefficients are not 0, the weight omega of all rows in memory, and how the step went: "ok", "waiting"
        (nothing can be fitted yet), "singular" or "unfinished"
    baseline : the loss, before the row, of the running mean of the rows of this trace before it (`RunningMean`)
    coef, intercept : after the row, if asked for: (row, feature) and (row,), else None
    last_coef, spread : the coefficients after the last row; how far each feature usually strays within the memory's
        reach (its median standard deviation): coefficients times spread can be compared
    feature_names, classes, family : what the columns of coef are called, the classes or None, whose loss it is

    For three classes or more the loss is the log loss of the normalised probabilities; slope, lam, lam_max, n_active
    and status have a column a class, and coef is (row, class, feature).

    >>> from streamlasso import RAPRegressor, progressive
    >>> from streamlasso.tuners import LogRMS
    >>> model = RAPRegressor(memory=1.0, tuner=LogRMS(), lambda_init=0.1)
    >>> trace = progressive(model, [[0.0], [1.0], [3.0]], [2.0, 4.0, 9.0], coef=True)
    >>> trace.prediction.round(3)
    array([0. , 2. , 7.5])
    >>> trace["loss"].round(3), trace["baseline"]
    (array([2.   , 2.   , 1.125]), array([ 2.,  2., 18.]))
    >>> trace.to_arrow().column_names[-3:]
    ['baseline', 'intercept', 'coef[x0]']
    """

    t: np.ndarray
    y: np.ndarray
    prediction: np.ndarray
    loss: np.ndarray
    slope: np.ndarray
    lam: np.ndarray
    lam_max: np.ndarray
    n_active: np.ndarray
    effective_size: np.ndarray
    status: np.ndarray
    baseline: np.ndarray
    coef: np.ndarray | None
    intercept: np.ndarray | None
    last_coef: np.ndarray
    spread: np.ndarray
    feature_names: tuple[str, ...]
    classes: np.ndarray | None
    family: Family

    def __len__(self) -> int:
        return len(self.t)

    def __getitem__(self, column: str) -> np.ndarray:
        """A column by its name."""
        if column not in self.columns:
            raise KeyError(f"{column!r}: the columns are {', '.join(self.columns)}")
        return getattr(self, column)

    def __repr__(self) -> str:
        return (
            f"Trace of {len(self):,} rows and {len(self.feature_names)} features\n"
            f"  {self.loss_name} {self.mean_loss:.3g}, of the running mean {self.mean_baseline:.3g}{self._verdict}\n"
            f"  lam {_numbers(self.lam[-1])}, lam_max {_numbers(self.lam_max[-1])}; "
            f"active {_numbers(self.n_active[-1])} of {len(self.feature_names)}; "
            f"effective size {self.effective_size[-1]:.3g}"
        )

    @property
    def _verdict(self) -> str:
        if not np.isfinite(self.saved):
            return ""
        return f": {abs(self.saved):.0%} {'lower' if self.saved >= 0 else 'higher'}".replace("%", " %")

    @property
    def columns(self) -> tuple[str, ...]:
        return COLUMNS if self.coef is None else (*COLUMNS, "intercept", "coef")

    @property
    def outputs(self) -> list[Any]:
        """The classes that have a model each, if there are several."""
        return [] if self.classes is None or len(self.classes) == 2 else list(self.classes)

    @property
    def loss_name(self) -> str:
        return self.family.loss_name

    @property
    def judged(self) -> slice:
        """The rows that a mean is over: not the first, of which neither model nor baseline could know anything."""
        return slice(1 if len(self) > 1 else 0, None)

    @property
    def mean_loss(self) -> float:
        return float(self.loss[self.judged].mean())

    @property
    def mean_baseline(self) -> float:
        return float(self.baseline[self.judged].mean())

    @property
    def saved(self) -> float:
        """The share of the running mean's loss that the model saves; nan for a family of your own.

        A loss counts from that of a perfect prediction (half the deviance): the family's constant is of no account.
        """
        perfect = self.least_loss[self.judged].mean()
        excess = self.mean_baseline - perfect
        return float((self.mean_baseline - self.mean_loss) / excess) if excess > 0 else float("nan")

    @property
    def least_loss(self) -> np.ndarray:
        """The least loss that each y allows."""
        return self.family.least_loss(self.y) if self.classes is None else np.zeros(len(self))

    def changes(self, least: int | None = None) -> list[Change]:
        """Which features entered and left, and when, in the order of time; needs `coef=True`.

        Only what lasted counts: in or out for `least` rows on end (None: a fiftieth of the stream, and 10 or more).
        `rows` says how long the feature stayed, or had stayed; `effect` is its mean coefficient then, times its spread.
        """
        if self.coef is None:
            raise ValueError("changes need the coefficients after each row: progressive(..., coef=True)")
        least = max(10, len(self) // 50) if least is None else least
        coef = self.coef if self.coef.ndim == 3 else self.coef[:, None]
        return lasting_changes(self.t, coef * self.spread, self.feature_names, self.outputs or [None], least)

    def to_arrow(self) -> pyarrow.Table:
        """The table, for Parquet and the like; a column for each coefficient, `coef[name]`, and class, `lam[a]`."""
        import pyarrow

        names, arrays = [], []
        for name, values in self._flat():
            names.append(name)
            arrays.append(pyarrow.array(values))
            if name.startswith("status"):
                arrays[-1] = arrays[-1].dictionary_encode()
        return pyarrow.table(arrays, names=names)

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a data frame, with the columns of `to_arrow`."""
        try:
            import pandas  # noqa: F401
        except ImportError as error:
            raise ImportError(
                "to_pandas needs pandas: pip install 'streamlasso[river]', or pandas alone; to_arrow does without"
            ) from error
        return self.to_arrow().to_pandas()

    def plot(self, figure: Figure | None = None) -> Figure:
        """Draw lam, the running loss against the baseline, and which coefficients are active when.

        `figure` is where to draw, say `plt.figure()` for a window; None makes one: `trace.plot().savefig("trace.png")`.
        """
        from streamlasso.report.plots import plot_trace

        return plot_trace(self, figure)

    def _flat(self) -> Iterator[tuple[str, np.ndarray]]:
        """Columns of one dimension each."""
        for column in COLUMNS:
            yield from self._split(column, self[column], self.outputs if column in PER_CLASS else [])
        if self.coef is not None and self.intercept is not None:
            yield from self._split("intercept", self.intercept, self.outputs)
            for j, feature in enumerate(self.feature_names):
                yield from self._split(f"coef[{feature}]", self.coef[..., j], self.outputs)

    @staticmethod
    def _split(name: str, values: np.ndarray, labels: list[Any]) -> Iterator[tuple[str, np.ndarray]]:
        if not labels:
            yield name, np.ascontiguousarray(values)
        for k, label in enumerate(labels):
            yield f"{name}[{label}]", np.ascontiguousarray(values[:, k])


def lasting_changes(
    t: np.ndarray, effects: np.ndarray, names: Sequence[str], labels: Sequence[Any], least: int, each: int = 1
) -> list[Change]:
    """Which of the effects (time, class, feature) came and went, for `least` times on end; `each` is rows a time."""
    found = []
    for k, label in enumerate(labels):
        for j, name in enumerate(names):
            for start, stop in _stays(effects[:, k, j] != 0, least):
                effect = float(effects[start:stop, k, j].mean())
                entered = Change(int(t[start]), name, True, int(stop - start) * each, effect, label)
                found += [entered] if start > 0 else []
                found += [entered._replace(t=int(t[stop]), entered=False)] if stop < len(t) else []
    return sorted(found, key=lambda change: change.t)


def _stays(active: np.ndarray, least: int) -> Iterator[tuple[int, int]]:
    """From where to where a feature was in the model, when only `least` rows on end in or out count."""
    edges = np.flatnonzero(np.diff(active)) + 1
    inside, begun = active[0], 0
    for start, stop in zip([0, *edges], [*edges, len(active)], strict=True):
        if stop - start < least or active[start] == inside:
            continue
        if inside:
            yield begun, start
        inside, begun = active[start], start
    if inside:
        yield begun, len(active)


def _numbers(values: Any) -> str:
    return ", ".join(f"{value:.3g}" for value in np.atleast_1d(values))
