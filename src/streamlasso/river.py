"""The river face: names become columns and labels become classes; nothing numerical happens here."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from copy import copy
from html import escape
from numbers import Real
from typing import Any, Self

import numpy as np

try:
    import pandas as pd
    from river import base
    from river.conf.interval import Interval
except ImportError as error:
    raise ImportError('streamlasso.river needs river and pandas: pip install "streamlasso[river]"') from error

from streamlasso import checkpoint, compact
from streamlasso._html import learnt_html
from streamlasso.core.changes import Changes
from streamlasso.core.dict_rows import DictRows, number
from streamlasso.core.engine import Engine, learn_together
from streamlasso.core.quantiles import Quantiles
from streamlasso.core.selected import Selected
from streamlasso.core.values import first_unfit
from streamlasso.estimators.changes import FindsChanges
from streamlasso.estimators.coefficients import Coefficients, SelectedByClass, with_names
from streamlasso.estimators.explanation import Explanation, explained
from streamlasso.estimators.intervals import Ends, interval_of, levels_of, quantiles_of, refuse_coverage
from streamlasso.estimators.multiclass import (
    KeepsRecent,
    Recent,
    best_class,
    modelled,
    n_models,
    probabilities,
    sets_of,
    targets_of,
    with_new_class,
)
from streamlasso.estimators.parameters import ATTRIBUTES, FAMILY, METHOD, NAMED_PARAMETERS, Parameters
from streamlasso.estimators.turns import (
    CopiedWhole,
    behind_the_gate_of,
    between_rows,
    claimed,
    counting,
    gate_of,
    publish,
)
from streamlasso.families import Binomial, Gaussian
from streamlasso.settings import build_learner, positive_false_alarms
from streamlasso.wide.named import WideClassifier, WideRegressor

__all__ = [
    "ChangeDetector",
    "IntervalRegressor",
    "RAPClassifier",
    "RAPRegressor",
    "StreamEncoder",
    "WideClassifier",
    "WideRegressor",
]

#: What features are, for both estimators.
NAMES = """Features have names. A new name is a feature that was 0 until now; a name absent from a row is 0 there. A row
    with a value that is not a finite number is refused, and changes nothing."""


class _RAP(CopiedWhole, FindsChanges, Parameters):
    """What both estimators share: learners as wide as the columns that the names have."""

    columns_: DictRows
    learners_: list[Engine]

    def _start(self, settings: dict[str, Any]) -> None:
        """A learner that has seen no row: the features with a factor of their own, and one column without a name."""
        factors = _penalty_factor(settings["penalty_factor"])
        self.columns_ = DictRows(factors, len(factors) + 1)
        settings = {**settings, "penalty_factor": [*factors.values(), 1.0]}
        self.learners_ = [build_learner(self.columns_.width, settings)]

    def save(self, path: Any) -> None:
        """Write the model to `path` (safetensors); the file appears whole or not at all.

        While another thread learns, it is the model between two rows.
        """
        checkpoint.save(copy(self), path)

    @classmethod
    def load(cls, path: Any) -> Self:
        """The model that `save` wrote. Loading runs no code of the file's, and refuses a file that is not whole."""
        return checkpoint.load(cls, path)

    @between_rows
    def to_bytes(self) -> bytes:
        """The model as bytes, for a database or a message; `save` writes the same."""
        return compact.to_bytes(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The model that `to_bytes` gave. No code of theirs is run, and bytes that are not whole are refused."""
        return checkpoint.from_bytes(cls, data)

    @property
    @between_rows
    def n_seen_(self) -> int:
        """Rows learnt."""
        return self.learners_[0].n_seen

    @property
    @between_rows
    def effective_size_(self) -> float:
        """The weight omega of the rows in memory."""
        return self.learners_[0].effective_size

    def _whole(self) -> bool:
        """Do the labels belong to the learners? A checkpoint asks before it hands out a model."""
        return self.columns_.width == self.learners_[0].n_features and len(self.learners_) == 1

    def _room_for(self, names: Iterable[Hashable]) -> tuple[DictRows, list[Engine]]:
        """Columns and learners that have these names too. Nothing is theirs until the rows are learnt."""
        # Where features tie, the first column wins: so it must not matter in which order a row names them.
        new = sorted((name for name in names if name not in self.columns_), key=str)
        if not new:
            return self.columns_, self.learners_
        n = len(self.columns_.names) + len(new)
        columns = DictRows([*self.columns_.names, *new], max(n, self.columns_.width))
        if n <= self.columns_.width:
            return columns, self.learners_
        if self.n_seen_ > 0:
            # Growing copies p^2 numbers. Names that come one by one find columns ready, all 0 until then.
            columns = DictRows(columns.names, n + n // 4)
        return columns, behind_the_gate_of(self, [learner.grown(columns.width) for learner in self.learners_])

    @between_rows
    def _repr_html_(self) -> str:
        """In a notebook: what it has learnt, and below it the parameters."""
        parameters = f"<pre>{escape(repr(self))}</pre>"
        if not self.n_seen_:
            return parameters
        return learnt_html(type(self).__name__, self.learners_, self._sparse_models(), self._names) + parameters

    @between_rows
    def _sparse_models(self) -> dict[Any, Selected]:
        """One model per class, or one by the name None; of a mixture the selected one."""
        return {None: self.learners_[0].single()}

    @property
    def _names(self) -> list[str]:
        """Of the features."""
        return list(map(str, self.columns_.names))

    def _named(self, coefficients: np.ndarray) -> dict[Hashable, float]:
        return dict(zip(self.columns_.names, coefficients.tolist(), strict=False))

    def _each(self, of: Callable[[Engine], Any]) -> Any:
        """What is asked of the model; of several, by class."""
        return of(self.learners_[0])

    @property
    @between_rows
    def inclusion_(self) -> Any:
        """Of each feature, the weight of all models in which it has a coefficient, 0 to 1; for classes by class."""
        return self._each(lambda learner: self._named(learner.inclusion()))

    @property
    @between_rows
    def importance_(self) -> Any:
        """Of each feature, how far eta moves when it rises by its standard deviation of late; for classes by class."""
        return self._each(lambda learner: self._named(np.abs(learner.coef) * learner.feature_deviations()))

    @property
    @between_rows
    def relevant_(self) -> Any:
        """The names of the features that matter, a list that is steady; for classes by class."""
        return self._each(lambda learner: [name for name, there in self._named(learner.relevant()).items() if there])

    @between_rows
    def explain_one(self, x: dict[Any, Any]) -> Any:
        """Why a row is predicted as it is: an `Explanation`, whose sum is the prediction; for classes by class."""
        row = np.zeros(self.columns_.width)
        for name, value in x.items():
            if name in self.columns_:
                row[self.columns_.place(name)] = number(repr(name), value)
        names = self.columns_.names

        def of(learner: Engine) -> Explanation:
            found = explained(learner, row, range(self.columns_.width))
            return found._replace(contributions=Coefficients(np.array(found.contributions)[: len(names)], names))

        return self._each(of)

    def debug_one(self, x: dict[Any, Any], decimals: int = 5) -> str:
        """A table of what each feature adds to the prediction of a row, the largest first, as river's models print."""
        found = self.explain_one(x)
        if not isinstance(found, dict):
            return _table_of(found, x, decimals)
        return "\n\n".join(f"{label}\n{_table_of(each, x, decimals)}" for label, each in found.items())


class RAPRegressor(_RAP, base.MiniBatchRegressor):
    __doc__ = f"""Sparse regression on a stream that may change: a generalised linear model that tunes itself.

    {METHOD}
    {NAMES}

    Parameters
    ----------
    {FAMILY}
    {NAMED_PARAMETERS}

    Attributes
    ----------
    coef_ : dict
        The coefficients now, by name; of a mixture, their average.
    intercept_, lambda_, lambda_max_ : float
        The intercept, the penalty, and the smallest penalty at which all coefficients are 0.
    selected_ : Selected
        Of a mixture, its selected model; its `coef` has the names and the order of `coef_`.
    {ATTRIBUTES}

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamlasso.river import RAPRegressor
    >>> model = RAPRegressor()
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    MAE: 0.201804
    >>> best = model.selected_
    >>> [best.coef.names[j] for j in best.support]
    ['gallup', 'ipsos', 'ordinal_date', 'rasmussen', 'you_gov']
    """

    def __init__(
        self,
        family: Any = "gaussian",
        memory: Any = None,
        penalty: Any = None,
        tuner: Any = None,
        gradient: str = "exact",
        curvature: str = "updated",
        lambda_init: float | None = None,
        penalty_factor: Mapping[Hashable, float] | None = None,
        fit_intercept: bool = True,
        standardize: bool = True,
        history: int = 64,
        batch_size: int = 1,
        false_alarms: float | None = None,
    ) -> None:
        super().__init__(
            memory, penalty, tuner, gradient, curvature, lambda_init, penalty_factor, fit_intercept, standardize,
            history, batch_size, false_alarms,
        )  # fmt: skip
        self.family = family
        self._start(self._get_params())

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn a row of weight `w`."""
        if self.on_change is not None:
            with self._telling():
                self._learn_one(x, y, w)
            return
        self._learn_one(x, y, w)

    def _learn_one(self, x: dict[Any, Any], y: Any, w: float) -> None:
        if not self.columns_.learn(self.learners_[0], x, y, w) and w != 0:
            with claimed(gate_of(self)):
                columns, learners = self._room_for(x)
                columns.learn(learners[0], x, y, w)
                publish(self, learners, {"columns_": columns})

    def predict_one(self, x: dict[Any, Any]) -> float:
        """The mean of the response, given a row."""
        with gate_of(self):
            return self.columns_.predict(self.learners_[0], x)

    @between_rows
    def predict_interval_one(self, x: dict[Any, Any], coverage: float = 0.9) -> tuple[float, float]:
        """Where the response will be, with this probability: low and high."""
        (learner,) = self.learners_
        low, high = interval_of(learner, np.array([self.columns_.eta(learner, x)]), coverage)[0].tolist()
        return low, high

    @between_rows
    def predict_quantiles_one(self, x: dict[Any, Any], levels: Any) -> list[float]:
        """Quantiles of the response."""
        (learner,) = self.learners_
        eta = np.array([self.columns_.eta(learner, x)])
        return quantiles_of(learner, eta, levels_of(levels))[0].tolist()

    def learn_many(self, X: pd.DataFrame, y: pd.Series, w: Any = 1.0) -> None:
        """Learn the rows in order, as `learn_one` would, with a weight for all or one each.

        A refused batch changes nothing.
        """
        with self._telling(), claimed(gate_of(self)):
            columns, learners = self._room_for(_names(X))
            rows, weights = _rows(columns, X), _weights(w, X)
            target = _numbers("y", _as_long(y, X))
            complaint = learners[0].settings["family"].check_target(target)
            if complaint:
                raise ValueError(f"y: {complaint}; family={self.family!r}. Nothing was learnt.")
            if not weights.any():
                return
            with counting(len(rows)) as learnt:
                try:
                    learn_together(learners, rows, [target], weights, learnt=learnt)
                finally:
                    if learnt[0]:
                        publish(self, learners, {"columns_": columns})

    @between_rows
    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """The mean of the response, given each row."""
        _names(X)
        family = self.learners_[0].settings["family"]
        eta = self.learners_[0].decision_each(_rows(self.columns_, X))
        mean = family.means(eta)
        return pd.Series(mean, index=X.index, dtype=float)

    @property
    @between_rows
    def coef_(self) -> dict[Hashable, float]:
        """The coefficients now, by name."""
        return self._named(self.learners_[0].coef)

    @property
    @between_rows
    def intercept_(self) -> float:
        return self.learners_[0].intercept

    @property
    @between_rows
    def lambda_(self) -> float:
        return self.learners_[0].lam

    @property
    @between_rows
    def lambda_max_(self) -> float:
        """The smallest lam at which all coefficients are 0."""
        return self.learners_[0].lam_max

    @property
    @between_rows
    def selected_(self) -> Selected:
        """Of a mixture, its selected model; its `coef` has the names and the order of `coef_`."""
        return with_names(self.learners_[0].selected(), self.columns_.names)


class RAPClassifier(KeepsRecent, _RAP, base.MiniBatchClassifier):
    __doc__ = f"""Sparse classification on a stream that may change: a logistic regression that tunes itself.

    {METHOD}
    Classes appear as the stream shows them, and may be any hashable labels. Two are one model; several are one model
    per class against the rest, each with its own lam; their probabilities are divided by their sum. The model of a
    class that appears late first learns the last 256 rows, as rows of other classes.

    {NAMES}

    Parameters
    ----------
    {NAMED_PARAMETERS}

    Attributes
    ----------
    classes_ : list
        The labels, in order of appearance.
    coef_, intercept_, lambda_, lambda_max_, selected_ : dict
        One entry per model, by its class: the second of two, each of several.
    {ATTRIBUTES}

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamlasso.river import RAPClassifier
    >>> model = RAPClassifier()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 89.27%
    """

    def __init__(
        self,
        memory: Any = None,
        penalty: Any = None,
        tuner: Any = None,
        gradient: str = "exact",
        curvature: str = "updated",
        lambda_init: float | None = None,
        penalty_factor: Mapping[Hashable, float] | None = None,
        fit_intercept: bool = True,
        standardize: bool = True,
        history: int = 64,
        batch_size: int = 1,
        false_alarms: float | None = None,
    ) -> None:
        super().__init__(
            memory, penalty, tuner, gradient, curvature, lambda_init, penalty_factor, fit_intercept, standardize,
            history, batch_size, false_alarms,
        )  # fmt: skip
        self.classes_: list[Hashable] = []
        self._start({**self._get_params(), "family": Binomial()})
        self._recent = Recent(self.columns_.width)

    @property
    def _multiclass(self) -> bool:
        return True

    def _each(self, of: Callable[[Engine], Any]) -> dict[Hashable, Any]:
        return {label: of(learner) for label, learner in self._models.items()}

    # --- learning ---------------------------------------------------------------------------------------------------

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn a row of weight `w`."""
        if self.on_change is not None:
            with self._telling():
                self._learn_one(x, y, w)
            return
        self._learn_one(x, y, w)

    def _learn_one(self, x: dict[Any, Any], y: Any, w: float) -> None:
        label = _label(y)
        gate = gate_of(self)
        # The gate is for the row, which all who use these columns write into.
        with claimed(gate), gate:
            known = self.columns_.fill(x)
            if known and len(self.classes_) > 1 and label in self.classes_ and self.learners_[0].compiled:
                self._learn_known(label, w)
                return
            columns, learners = (self.columns_, self.learners_) if known else self._room_for(x)
            columns.fill(x)
            columns.weigh(w)
            self._learn(columns, learners, columns.row, [label], columns.weight)

    def learn_many(self, X: pd.DataFrame, y: pd.Series, w: Any = 1.0) -> None:
        """Learn the rows in order, as `learn_one` would, with a weight for all or one each.

        A mini-batch ends where a class appears for the first time. A refused batch changes nothing.
        """
        with self._telling(), claimed(gate_of(self)):
            columns, learners = self._room_for(_names(X))
            rows, weights = _rows(columns, X), _weights(w, X)
            labels = [_label(label) for label in _as_long(y, X)]
            self._learn(columns, learners, rows, labels, weights)

    def _learn_known(self, label: Hashable, w: float) -> None:
        """The row at hand, whose names and class are known: what most rows are, without any arrays made for them."""
        weight = self.columns_.weigh(w)
        if weight > 0:
            self.columns_.take(self.learners_, [float(label == own) for own in modelled(self.classes_)])
            self._recent.add_one(self.columns_.row[0], weight)

    def _learn(
        self, columns: DictRows, learners: list[Engine], rows: np.ndarray, labels: list[Hashable], weights: np.ndarray
    ) -> None:
        """Piece by piece, each without new classes."""
        if not weights.any():
            return
        # A tuner or family written in Python may raise half-way: then nothing must have changed. Compiled ones cannot,
        # and may be interrupted: then the model is that after the rows so far. Copying it costs more than a row does.
        compiled = all(learner.compiled for learner in learners)
        learners = learners if compiled else [copy(learner) for learner in learners]
        recent = self._recent if self._recent.n_features == columns.width else self._recent.grown(columns.width)
        recent = recent if compiled else copy(recent)
        places = {label: k for k, label in enumerate(self.classes_)}
        with counting(len(rows)) as learnt:
            for piece, label in _pieces(labels, weights, places):
                if label is not None:
                    places[label] = len(places)
                    learners = behind_the_gate_of(self, with_new_class(learners, len(places), recent))
                if compiled:
                    self._become(columns, learners, places, recent)
                _learn_piece(learners, places, rows[piece], labels[piece], weights[piece], learnt)
                with gate_of(self):
                    recent.add(rows[piece], weights[piece])
            self._become(columns, learners, places, recent)

    def _become(self, columns: DictRows, learners: list[Engine], places: dict[Hashable, int], recent: Recent) -> None:
        publish(self, learners, {"columns_": columns, "classes_": list(places), "_recent": recent})

    # --- predicting -------------------------------------------------------------------------------------------------

    def predict_one(self, x: dict[Any, Any], **_: Any) -> Any:
        """The most probable class, given a row; None before the first one."""
        with gate_of(self):
            eta = [[self.columns_.eta(learner, x) for learner in self.learners_]]
            return self._labels(np.array(eta))[0]

    def predict_proba_one(self, x: dict[Any, Any], **_: Any) -> dict[Any, float]:
        """The probability of each class seen so far, given a row."""
        with gate_of(self):
            mean = [self.columns_.predict(learner, x) for learner in self.learners_]
            if len(self.classes_) == 2:
                return {self.classes_[0]: 1 - mean[0], self.classes_[1]: mean[0]}
            return dict(zip(self.classes_, self._probabilities(np.array([mean]))[0].tolist(), strict=True))

    def predict_set_one(self, x: dict[Any, Any], coverage: float = 0.9) -> set[Any]:
        """The most probable classes that have this probability together, given a row; none before the first one."""
        refuse_coverage(coverage)
        shares = self.predict_proba_one(x)
        inside = sets_of(np.array([[*shares.values()]]), coverage)[0] if shares else []
        return {label for label, there in zip(shares, inside, strict=True) if there}

    @between_rows
    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """The most probable class, given each row."""
        return pd.Series(self._labels(self._decide(X)), index=X.index, dtype=None if self.classes_ else object)

    @between_rows
    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """The probability of each class seen so far, given each row."""
        table = self._probabilities(Binomial().mean(self._decide(X)))
        return pd.DataFrame(table, index=X.index, columns=pd.Index(self.classes_, tupleize_cols=False))

    def _decide(self, X: pd.DataFrame) -> np.ndarray:
        """eta (row, model)."""
        _names(X)
        rows = _rows(self.columns_, X)
        return np.column_stack([learner.decision_each(rows) for learner in self.learners_])

    def _labels(self, eta: np.ndarray) -> list[Any]:
        if len(self.classes_) < 2:
            return (self.classes_ or [None]) * len(eta)
        return [self.classes_[k] for k in best_class(eta).tolist()]

    def _probabilities(self, mean: np.ndarray) -> np.ndarray:
        n = len(self.classes_)
        return probabilities(mean) if n > 1 else np.ones((len(mean), n))

    # --- what it is -------------------------------------------------------------------------------------------------

    def _whole(self) -> bool:
        width, k = self.columns_.width, len(self.classes_)
        fits = width == self.learners_[0].n_features == self._recent.n_features
        return fits and len(set(self.classes_)) == k and len(self.learners_) == n_models(k)

    @between_rows
    def _sparse_models(self) -> dict[Any, Selected]:
        return {label: learner.single() for label, learner in self._models.items()}

    @property
    def _models(self) -> dict[Hashable, Engine]:
        return dict(zip(modelled(self.classes_), self.learners_, strict=False))

    @property
    @between_rows
    def coef_(self) -> dict[Hashable, dict[Hashable, float]]:
        return {label: self._named(learner.coef) for label, learner in self._models.items()}

    @property
    @between_rows
    def intercept_(self) -> dict[Hashable, float]:
        return {label: learner.intercept for label, learner in self._models.items()}

    @property
    @between_rows
    def lambda_(self) -> dict[Hashable, float]:
        return {label: learner.lam for label, learner in self._models.items()}

    @property
    @between_rows
    def lambda_max_(self) -> dict[Hashable, float]:
        return {label: learner.lam_max for label, learner in self._models.items()}

    @property
    @between_rows
    def selected_(self) -> dict[Hashable, Selected]:
        names = self.columns_.names
        return SelectedByClass({label: with_names(each.selected(), names) for label, each in self._models.items()})


class ChangeDetector(base.DriftDetector):
    """Finds changes of the mean or of the spread in a sequence of numbers, of any scale and with any tails.

    It fits wherever river takes a drift detector, such as `drift.ADWIN`: on losses, errors, or a measurement. It is
    what finds `changes_` in a model, without features (docs/changes.md).

    Parameters
    ----------
    false_alarms : float, default=1.0
        How readily a change is found: alarms per 10,000 numbers where nothing changes.

    Attributes
    ----------
    drift_detected : bool
        Whether the last number raised an alarm.
    change : int or None
        The number with which the last change most likely began, counted from 0.

    Examples
    --------
    >>> import random
    >>> from streamlasso.river import ChangeDetector
    >>> rng = random.Random(1)
    >>> detector = ChangeDetector()
    >>> for t in range(2000):
    ...     detector.update(rng.gauss(0, 1) if t < 1000 else rng.gauss(1, 1))
    ...     if detector.drift_detected:
    ...         print(f"found at {t}, began at {detector.change}")
    found at 1018, began at 999
    """

    def __init__(self, false_alarms: float = 1.0) -> None:
        super().__init__()
        self.false_alarms = false_alarms
        self._changes = Changes(0, None, positive_false_alarms(false_alarms))

    def _reset(self) -> None:
        super()._reset()
        self._changes = Changes(0, None, positive_false_alarms(self.false_alarms))

    def update(self, x: float) -> None:
        """The next number."""
        self._drift_detected = self._changes.update(number("x", x))

    @property
    def change(self) -> int | None:
        found = self._changes.list()
        return found[-1].row if found else None


class StreamEncoder(base.Transformer):
    """Numbers, text, dates and missing values as features, as `streamlasso run` encodes them.

    A number is a feature; text is one feature per level, up to 30; a date is calendar features. A value that is missing
    (None, NaN, or the name is absent) is replaced by the last one before it, and a feature marks it. The type of a
    value says what it is: text stays text, also where it has digits. What dates give depends on how far they are apart,
    so their features settle within the first 128 rows, and text that differs in nearly every row is then left out.

    A level, or a name, has features from the first row that is learnt with it. A row with text where there were
    numbers is refused, and changes nothing. A row takes a third of a millisecond, most of it for its conversion.

    Examples
    --------
    >>> from streamlasso.river import RAPRegressor, StreamEncoder
    >>> encoder = StreamEncoder()
    >>> encoder.learn_one({"city": "Rome", "heat": 31.0})
    >>> encoder.transform_one({"city": "Oslo", "heat": None})
    {'city = Rome': 0.0, 'heat': 31.0}
    >>> encoder.learn_one({"city": "Oslo", "heat": None})
    >>> encoder.transform_one({"city": "Oslo", "heat": 4.0})
    {'city = Rome': 0.0, 'city = Oslo': 1.0, 'heat': 4.0, 'heat missing': 0.0}
    >>> model = StreamEncoder() | RAPRegressor()
    >>> model.learn_one({"city": "Rome", "heat": 31.0}, 2.0)
    """

    def __init__(self) -> None:
        from streamlasso.encoding.row_encoder import RowEncoder

        self._rows = RowEncoder()

    def learn_one(self, x: dict[Any, Any]) -> None:
        """Learn a row: its levels, and the last value of each name."""
        self._rows.learn(x)

    def transform_one(self, x: dict[Any, Any]) -> dict[Hashable, Any]:
        """The features of a row that follows the last one learnt; or of that one, if it is given again."""
        features: dict[Hashable, Any] = dict(self._rows.features(x).items())
        return features


# --- classes --------------------------------------------------------------------------------------------------------


def _pieces(
    labels: list[Hashable], weights: np.ndarray, places: dict[Hashable, int]
) -> Iterator[tuple[slice, Hashable | None]]:
    """Stretches of rows without new classes, each with the class that is new in its first row, or None."""
    known, start, new = set(places), 0, None
    for t, label in enumerate(labels):
        if weights[t] > 0 and label not in known:
            known.add(label)
            if t > start:
                yield slice(start, t), new
            start, new = t, label
    yield slice(start, len(labels)), new


def _learn_piece(
    learners: list[Engine],
    places: dict[Hashable, int],
    rows: np.ndarray,
    labels: list[Hashable],
    weights: np.ndarray,
    learnt: np.ndarray,
) -> None:
    """Learn rows of known classes. A label of weight 0 may be unknown, and is not learnt."""
    found = np.array([places.get(label, -1) for label in labels])
    learn_together(learners, rows, targets_of(found, len(places)), weights, learnt=learnt)


def _label(y: Any) -> Hashable:
    label = y.item() if isinstance(y, np.generic) else y
    if not isinstance(label, Hashable) or label is None or label is pd.NA or label != label:
        raise ValueError(f"y={y!r} is not a class label: use a string, a number or a bool; nothing was learnt.")
    return label


def _table_of(why: Explanation, x: Mapping[Any, Any], decimals: int) -> str:
    """One line per feature, and the sum."""
    parts = dict(zip(why.contributions.names or [], why.contributions.tolist(), strict=False))
    shown = sorted((name for name in parts if parts[name] != 0), key=lambda name: -abs(parts[name]))
    lines = [("Name", "Value", "Contribution"), ("(baseline)", "", f"{why.baseline:,.{decimals}f}")]
    lines += [(str(name), f"{float(x.get(name, 0.0)):,.{decimals}f}", f"{parts[name]:,.{decimals}f}") for name in shown]
    lines.append(("(sum)", "", f"{why.eta:,.{decimals}f}"))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("   ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


# --- intervals for any regressor --------------------------------------------------------------------------------------


class IntervalRegressor(base.Wrapper, base.Regressor):
    """Intervals around any regressor's predictions, which hold the share that is asked for while the stream changes.

    The quantiles of its errors are followed row by row at four rates that compete (docs/intervals.md); where
    `conf.RegressionJackknife` stands, this one fits. `streamlasso.river.RAPRegressor` has intervals of its own.

    Parameters
    ----------
    regressor
        Any regressor of river.
    confidence_level
        The share of responses inside.

    Examples
    --------
    >>> from river import datasets, linear_model, preprocessing, stats
    >>> from streamlasso.river import IntervalRegressor
    >>> model = IntervalRegressor(preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1))
    >>> inside = stats.Mean()
    >>> for i, (x, y) in enumerate(datasets.TrumpApproval()):
    ...     interval = model.predict_one(x, with_interval=True)
    ...     if i > 50:
    ...         inside.update(y in interval)
    ...     model.learn_one(x, y)
    >>> round(inside.get(), 2)
    0.91
    """

    def __init__(self, regressor: Any, confidence_level: float = 0.9) -> None:
        self.regressor = regressor
        self.confidence_level = confidence_level
        self._errors = Quantiles(Gaussian())
        self._ends = Ends(self._errors, refuse_coverage(confidence_level, "confidence_level="))
        self._seen = False

    @property
    def _wrapped_model(self) -> Any:
        return self.regressor

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"regressor": RAPRegressor(tuner="logrms", memory=0.99)}

    def learn_one(self, x: dict[Any, Any], y: Any, **kwargs: Any) -> None:
        """Note the error of the prediction, then learn."""
        error = float(y) - self.regressor.predict_one(x) if self._seen else np.nan
        self.regressor.learn_one(x, y, **kwargs)
        self._errors.walk(np.array([error]), np.zeros(1), [])
        self._seen = True

    def predict_one(self, x: dict[Any, Any], *, with_interval: bool = False, **kwargs: Any) -> Any:
        """The prediction; with `with_interval=True` river's `Interval` around it."""
        mean = self.regressor.predict_one(x, **kwargs)
        if not with_interval:
            return mean
        low, high = self._ends.of(self._errors.around(np.zeros(1), self._ends.levels))[0].tolist()
        return Interval(mean + low, mean + high)


# --- checks ---------------------------------------------------------------------------------------------------------


def _penalty_factor(factors: Any) -> dict[Hashable, float]:
    if factors is None:
        return {}
    if not isinstance(factors, Mapping):
        raise ValueError(f"penalty_factor={factors!r} is not a dict: use a dict from names to numbers (absent: 1)")
    for name, factor in factors.items():
        if isinstance(factor, bool) or not isinstance(factor, Real) or not 0 <= float(factor) < np.inf:
            raise ValueError(f"penalty_factor[{name!r}]={factor!r}: use a number, 0 (never penalised) or larger")
    return {name: float(factors[name]) for name in sorted(factors, key=str)}


def _names(X: Any) -> list[Hashable]:
    if not isinstance(X, pd.DataFrame):
        raise TypeError(f"X: a pandas DataFrame is needed, not {type(X).__name__}; nothing was learnt.")
    if not X.columns.is_unique:
        raise ValueError(f"X has two columns {X.columns[X.columns.duplicated()][0]!r}; nothing was learnt.")
    return list(X.columns)


def _rows(columns: DictRows, X: pd.DataFrame) -> np.ndarray:
    """The frame as the engine takes it. Values of names without a column are looked at, then left out."""
    rows = np.zeros((len(X), columns.width))
    for name, values in X.items():
        numbers = _numbers(f"X[{name!r}]", values)
        if name in columns:
            rows[:, columns.place(name)] = numbers
    return rows


def _numbers(name: str, values: pd.Series) -> np.ndarray:
    if values.dtype.kind in "biuf":
        # In pandas 2 a column of a frame of one array is a part of its rows.
        numbers = np.ascontiguousarray(values.to_numpy(dtype=float, na_value=np.nan))
    else:
        numbers = np.array([number(f"{name}.iloc[{i}]", value) for i, value in enumerate(values)])
    bad = first_unfit(numbers.reshape(-1, 1))
    if bad >= 0:
        number(f"{name}.iloc[{bad}]", values.iloc[bad])
    return numbers


def _weights(w: Any, X: pd.DataFrame) -> np.ndarray:
    weights = np.full(len(X), number("w", w)) if np.ndim(w) == 0 else _numbers("w", _as_long(w, X, "w"))
    if np.any(weights < 0):
        raise ValueError(f"w={w!r} is negative: use weights of 0 (the row is skipped) or larger; nothing was learnt.")
    return weights


def _as_long(values: Any, X: pd.DataFrame, name: str = "y") -> pd.Series:
    series = values if isinstance(values, pd.Series) else pd.Series(values)
    if len(series) != len(X):
        raise ValueError(f"{name} has {len(series)} values for {len(X)} rows of X; nothing was learnt.")
    return series
