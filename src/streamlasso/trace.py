"""The table of a stream as it was predicted and learnt: one entry per row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlasso._html import facts_html
from streamlasso._text import count, number, percent
from streamlasso.baselines import ClassBaselines, RunningMean
from streamlasso.core.monitor.attribution import DetectedChange
from streamlasso.families import Family
from streamlasso.report.changes import Change, lasting_changes, pushed, selected_since
from streamlasso.report.fit import Fit
from streamlasso.report.page import drawn, image
from streamlasso.report.summarise import Snapshot, Summariser
from streamlasso.report.summary import Summary

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from matplotlib.figure import Figure

#: The table, in order; with several classes, those of PER_CLASS have one column per class.
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


@dataclass(frozen=True, eq=False)
class SelectedPath:
    """The sparse model over time: of a mixture its selected model (`selected_`), which is what figures show.

    It is kept after each row, or evenly spaced after at most 2,000 rows of a longer stream.

    Attributes
    ----------
    t : ndarray of shape (n_kept,)
        The numbers of the rows after which it is kept; the last row is one of them.
    since : ndarray of shape (n_kept,)
        As in `selected_`. With several classes, one column per class.
    coef : ndarray of shape (n_kept, n_features)
        Its coefficients. With several classes (n_kept, n_classes, n_features).
    is_one_model : bool
        Whether there was nothing to select from.
    """

    t: np.ndarray
    since: np.ndarray
    coef: np.ndarray
    is_one_model: bool

    @property
    def n_active(self) -> np.ndarray:
        """How many coefficients are not 0."""
        return np.count_nonzero(self.coef, axis=-1)

    @property
    def size(self) -> int:
        """Rows from one to the next."""
        return int(self.t[1] - self.t[0]) if len(self.t) > 1 else 1

    def places(self, t: np.ndarray | int) -> np.ndarray:
        """Where the model after each of the rows t is, or after the next row for which it is kept."""
        return np.minimum(np.searchsorted(self.t, t), len(self.t) - 1)


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """A stream as it was predicted and learnt: one entry per row, columns by name, `trace["lam"]` or `trace.lam`.

    With three classes or more the loss is the log loss of the normalised probabilities; slope, lam, lam_max, n_active
    and status have one column per class, and coef is (row, class, feature).

    Attributes
    ----------
    t, y : ndarray of shape (n_rows,)
        The number of the row, counted from the model's `n_seen_`, and its response.
    prediction, loss : ndarray of shape (n_rows,)
        The prediction made before the row was learnt, and its loss (log loss for classes).
    slope : ndarray of shape (n_rows,)
        dC/dlam, the derivative of that loss.
    lam, lam_max, n_active, effective_size, status : ndarray of shape (n_rows,)
        After the row: the penalty, the least one that empties the model, how many coefficients are not 0, the weight
        omega of all rows in memory, and how the step went: "ok", "waiting" (nothing can be fitted yet), "singular" or
        "unfinished". Of a mixture these are averages, and an average of sparse models is not sparse: see `selected`.
    baseline : ndarray of shape (n_rows,)
        The loss of the running mean of the earlier rows of this trace.
    coef, intercept : ndarray of shape (n_rows, n_features) and (n_rows,), or None
        After the row, if asked for; of a mixture the average, `coef_`.
    selected : SelectedPath
        The sparse model over time, of a mixture the selected one: what the figure, `changes` and `print` show.
    last_coef, spread : ndarray of shape (n_features,)
        The coefficients of the selected model after the last row, and the median standard deviation of each feature
        over stretches as long as the memory: coefficients times spread can be compared.
    feature_names, classes, family
        The names of the columns of coef, the classes or None, the family of the loss.
    detected : tuple of DetectedChange
        The changes that were found in these rows (`changes_`).

    Examples
    --------
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
    selected: SelectedPath
    spread: np.ndarray
    feature_names: tuple[str, ...]
    classes: np.ndarray | None
    family: Family
    detected: tuple[DetectedChange, ...] = ()

    def __len__(self) -> int:
        return len(self.t)

    def __getitem__(self, column: str) -> np.ndarray:
        """A column by its name."""
        if column not in self.columns:
            raise KeyError(f"{column!r}: the columns are {', '.join(self.columns)}")
        return getattr(self, column)

    def __repr__(self) -> str:
        facts, saved = self._facts(), f": {self._saved_in_words}" if self._saved_in_words else ""
        return (
            f"Trace of {count(len(self), 'row')} and {count(len(self.feature_names), 'feature')}\n"
            f"  {self.loss_name} {number(self.mean_loss)}, of the running mean {number(self.mean_baseline)}{saved}\n"
            f"  lam {facts['lam']}, lam_max {facts['lam_max']}; active {facts['active']}; "
            f"effective size {facts['effective size']}"
        )

    def _repr_html_(self) -> str:
        """For notebooks: how good the predictions were, the model after the last row, and the figure."""
        saved = f" ({self._saved_in_words})" if self._saved_in_words else ""
        facts = {
            "rows": f"{len(self):,}",
            "features": f"{len(self.feature_names):,}",
            self.loss_name: number(self.mean_loss) + saved,
            "loss of the running mean": number(self.mean_baseline),
            **self._facts(),
        }
        picture = image(drawn(self.plot(), "png"), "lam, loss, memory and active features over the rows", "png")
        return facts_html("Trace", facts, picture)

    def _facts(self) -> dict[str, str]:
        """The model after the last row, per class."""
        lam, lam_max, n_active = (
            ", ".join(map(number, np.atleast_1d(column[-1])))
            for column in (self.lam, self.lam_max, self.selected.n_active)
        )
        return {
            "lam": lam,
            "lam_max": lam_max,
            "active": f"{n_active} of {len(self.feature_names)}",
            "effective size": number(self.effective_size[-1]),
        }

    @property
    def _saved_in_words(self) -> str:
        """How much lower the loss is than that of the running mean; empty if the family does not say."""
        if not np.isfinite(self.saved):
            return ""
        return f"{percent(abs(self.saved))} {'lower' if self.saved >= 0 else 'higher'}"

    @property
    def last_coef(self) -> np.ndarray:
        return self.selected.coef[-1]

    @property
    def columns(self) -> tuple[str, ...]:
        return COLUMNS if self.coef is None else (*COLUMNS, "intercept", "coef")

    @property
    def model_labels(self) -> list[Any]:
        """The class of each model, where there are several."""
        return [] if self.classes is None or len(self.classes) == 2 else list(self.classes)

    @property
    def loss_name(self) -> str:
        return self.family.loss_name

    @property
    def _scored(self) -> slice:
        """The rows that means are taken over: not the first, which neither model nor baseline could predict."""
        return slice(1 if len(self) > 1 else 0, None)

    @property
    def mean_loss(self) -> float:
        return float(self.loss[self._scored].mean())

    @property
    def mean_baseline(self) -> float:
        return float(self.baseline[self._scored].mean())

    @property
    def saved(self) -> float:
        """The share of the running mean's loss that the model saves; nan for a family of your own.

        A loss counts from that of a perfect prediction (half the deviance), so constants of the family cancel.
        """
        perfect = self.least_loss[self._scored].mean()
        excess = self.mean_baseline - perfect
        return float((self.mean_baseline - self.mean_loss) / excess) if excess > 0 else float("nan")

    @property
    def least_loss(self) -> np.ndarray:
        """The least loss that each y allows."""
        return self.family.least_loss(self.y) if self.classes is None else np.zeros(len(self))

    def changes(self, least: int | None = None) -> list[Change]:
        """Which features entered the selected model and left it, and when, in the order of time.

        Only lasting changes count: in or out for `least` rows or more (None: a fiftieth of the stream, at least 10).
        """
        least, size = max(10, len(self) // 50) if least is None else least, self.selected.size
        coef = self.selected.coef if self.selected.coef.ndim == 3 else self.selected.coef[:, None]
        labels = self.model_labels or [None]
        shortest = max(least // size, 1)
        return lasting_changes(self.selected.t, coef * self.spread, self.feature_names, labels, shortest, size)

    def why(self, t: int) -> str:
        """Why the model is what it is after row t, in a sentence; one for each class where there are several.

        Of one model: the rows, of the last 20, that pushed lam most. Of a mixture: since when the same features are
        selected, and what changed then.

        >>> from streamlasso import RAPRegressor, progressive
        >>> from streamlasso.simulate import simulate
        >>> from streamlasso.tuners import LogRMS
        >>> stream = simulate(0)
        >>> progressive(RAPRegressor(tuner=LogRMS()), stream.X, stream.y).why(120)  # doctest: +ELLIPSIS
        'lam ... over rows 101 to 120; rows ... pushed it most...'
        """
        if isinstance(t, bool) or not isinstance(t, Integral) or not len(self) or not self.t[0] <= t <= self.t[-1]:
            ends = f"from {self.t[0]} to {self.t[-1]}" if len(self) else "of a trace that has rows"
            raise ValueError(f"t={t!r} is no row of this trace: use one {ends}")
        if not self.selected.is_one_model:
            return self._why_selected(int(self.selected.places(t)))
        i = int(t - self.t[0])
        return self._each_class(lambda *columns: pushed(self.t, *columns, i), self.lam, self.slope)

    def _why_selected(self, k: int) -> str:
        path, labels = self.selected, self.model_labels or [None]
        coef = path.coef if path.coef.ndim == 3 else path.coef[:, None]
        words = [selected_since(path.t, coef[:, i], self.feature_names, k) for i in range(len(labels))]
        return "; ".join(words if labels == [None] else [f"class {a}: {b}" for a, b in zip(labels, words, strict=True)])

    def _each_class(self, words: Callable[..., str], *columns: np.ndarray) -> str:
        """The words for these columns."""
        if columns[0].ndim == 1:
            return words(*columns)
        labels = self.model_labels
        return "; ".join(f"class {label}: {words(*(each[:, k] for each in columns))}" for k, label in enumerate(labels))

    def to_arrow(self) -> pyarrow.Table:
        """The table, say for Parquet, with one column per coefficient, `coef[name]`, and per class, `lam[a]`."""
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
                "to_pandas needs pandas: use pip install 'streamlasso[river]', or to_arrow, which needs none"
            ) from error
        return self.to_arrow().to_pandas()

    def summary(self) -> Summary:
        """The stream in a bounded number of stretches, for figures and reports (`streamlasso.report`)."""
        summariser = Summariser()
        values, fit, lam = self._sums(), self._fit(), self.lam.reshape(len(self), -1)
        start = 0
        while start < len(self):
            stop = min(start + summariser.room, len(self))
            snapshot = partial(self._snapshot, stop - 1)
            rows = np.arange(start, stop)
            summariser.add(values[rows], fit.at(rows), lam[rows], None, int(self.t[start]), snapshot)
            start = stop
        summariser.status.update(np.ravel(self.status).tolist())
        classes = None if self.classes is None else list(self.classes)
        first = int(self.t[0]) if len(self) else 0
        found = summariser.summary(self._snapshot(len(self) - 1), self.feature_names, classes, self.family, first)
        return replace(found, spread=self.spread, detected=self.detected)

    def _sums(self) -> np.ndarray:
        """(row, `summarise.SUMS`)"""
        scored, nothing = np.zeros(len(self), bool), np.zeros(len(self))
        scored[self._scored] = True
        error, baseline_error = self._errors()
        losses = (self.loss, self.baseline, nothing, self.least_loss)
        return np.column_stack([scored, *losses, error, baseline_error, nothing, np.full(len(self), np.nan)])

    def _errors(self) -> tuple[np.ndarray, np.ndarray]:
        """Of the model and of the running mean: distances, or for classes 1 where they are wrong."""
        if self.classes is None:
            means = self.family.means(RunningMean(self.family).etas(self.y))
            return np.abs(self.y - self.prediction), np.abs(self.y - means)
        places = np.searchsorted(self.classes, self.y)
        return self.prediction != self.y, ClassBaselines().compared(places, len(self.classes)).baseline_error

    def _fit(self) -> Fit:
        if self.classes is None:
            return Fit.of_numbers(self.y, self.prediction)
        actual, predicted = (np.searchsorted(self.classes, labels) for labels in (self.y, self.prediction))
        return Fit.of_classes(actual, predicted, (predicted[:, None] == np.arange(len(self.classes))).astype(float))

    def _snapshot(self, i: int) -> Snapshot:
        k = self.selected.places(self.t[i])
        lam, lam_max, n_active = map(np.atleast_1d, (self.lam[i], self.lam_max[i], self.selected.n_active[k]))
        since = int(np.atleast_1d(self.selected.since[k])[0])
        return Snapshot(
            lam, lam_max, np.atleast_2d(self.selected.coef[k]), n_active, float(self.effective_size[i]), since
        )

    def plot(self, figure: Figure | None = None) -> Figure:
        """Draw lam, the running loss with that of the baseline, the memory in use, and the active features over time.

        Of a mixture, lam is the average, and the active features are the selected ones. In a notebook the figure is
        shown when this is the last line of a cell. `figure` is where to draw, say `plt.figure()` for a window; None
        makes one: `trace.plot().savefig("trace.png")`.
        """
        from streamlasso.report.run.plots import plot_summary

        return plot_summary(self.summary(), figure)

    def _flat(self) -> Iterator[tuple[str, np.ndarray]]:
        """Columns of one dimension each."""
        for column in COLUMNS:
            yield from self._split(column, self[column], self.model_labels if column in PER_CLASS else [])
        if self.coef is not None and self.intercept is not None:
            yield from self._split("intercept", self.intercept, self.model_labels)
            for j, feature in enumerate(self.feature_names):
                yield from self._split(f"coef[{feature}]", self.coef[..., j], self.model_labels)

    @staticmethod
    def _split(name: str, values: np.ndarray, labels: list[Any]) -> Iterator[tuple[str, np.ndarray]]:
        if not labels:
            yield name, np.ascontiguousarray(values)
        for k, label in enumerate(labels):
            yield f"{name}[{label}]", np.ascontiguousarray(values[:, k])
