"""The river face: names become columns and labels become classes; nothing numerical happens here."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from copy import copy
from numbers import Real
from typing import Any, Self

import numpy as np

try:
    import pandas as pd
    from river import base
except ImportError as error:
    raise ImportError('streamlasso.river needs river and pandas: pip install "streamlasso[river]"') from error

from streamlasso import checkpoint
from streamlasso.core.columns import Columns, number
from streamlasso.core.engine import Engine, first_unfit
from streamlasso.families import Binomial, Family
from streamlasso.selection import Selected, selected
from streamlasso.settings import build_learner

__all__ = ["RAPClassifier", "RAPRegressor"]

SHARED = """
    Features are named. A name never seen before is a new feature that was 0 until now; a name that is absent from a row
    is 0 there. A row with a value that is no finite number is refused, and changes nothing.

    Parameters
    ----------
    memory, penalty, tuner, gradient, curvature, lambda_init, fit_intercept, standardize, history
        As in `streamlasso.RAPRegressor`.
    penalty_factor : dict, default=None
        Multiplies lam, by the name of the feature; 0 is never penalised, and a name that is absent counts as 1.
    batch_size : int, default=1
        Rows a step, within one call of `learn_many`.
"""


class _RAP:
    """What both estimators share: learners as wide as the columns that the names have."""

    columns_: Columns
    learners_: list[Engine]

    def _start(self, settings: dict[str, Any]) -> None:
        """A learner that has seen no row: the features with a factor of their own, and one column without a name."""
        factors = _penalty_factor(settings["penalty_factor"])
        self.columns_ = Columns(factors, len(factors) + 1)
        settings = {**settings, "penalty_factor": [*factors.values(), 1.0]}
        self.learners_ = [build_learner(self.columns_.width, settings)]

    def save(self, path: Any) -> None:
        """Write the model to `path` (safetensors); the file appears whole or not at all."""
        checkpoint.save(self, path)

    @classmethod
    def load(cls, path: Any) -> Self:
        """The model that `save` wrote. Loading runs no code of the file's, and refuses a file that is not whole."""
        return checkpoint.load(cls, path)

    @property
    def n_seen_(self) -> int:
        """Rows learnt."""
        return self.learners_[0].n_seen

    @property
    def effective_size_(self) -> float:
        """The weight omega that the memory holds of them."""
        return self.learners_[0].effective_size

    def _whole(self) -> bool:
        """Do the labels belong to the learners? A checkpoint asks before it hands out a model."""
        return self.columns_.width == self.learners_[0].n_features and len(self.learners_) == self._n_learners

    @property
    def _n_learners(self) -> int:
        return 1

    def _room_for(self, names: Iterable[Hashable]) -> tuple[Columns, list[Engine]]:
        """Columns and learners that have these names too. Nothing is theirs until the rows are learnt."""
        # Where features tie, the first column wins: so it must not matter in which order a row names them.
        new = sorted((name for name in names if name not in self.columns_), key=str)
        if not new:
            return self.columns_, self.learners_
        n = len(self.columns_.names) + len(new)
        columns = Columns([*self.columns_.names, *new], max(n, self.columns_.width))
        if n <= self.columns_.width:
            return columns, self.learners_
        if self.n_seen_ > 0:
            # Growing copies p^2 numbers. Names that come one by one find columns ready, all 0 until then.
            columns = Columns(columns.names, n + n // 4)
        return columns, [learner.grown(columns.width) for learner in self.learners_]

    def _named(self, coefficients: np.ndarray) -> dict[Hashable, float]:
        return dict(zip(self.columns_.names, coefficients.tolist(), strict=False))


class RAPRegressor(_RAP, base.MiniBatchRegressor):
    __doc__ = f"""Regression on a stream: an l1-penalised GLM with fading memory whose penalty tunes itself (RAP).
    {SHARED}
    family : {{"gaussian", "binomial", "poisson", "gamma"}} or a Family of your own, default="gaussian"

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamlasso.river import RAPRegressor
    >>> model = RAPRegressor()
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    MAE: 0.251617
    >>> [list(model.coef_)[j] for j in model.selected_.support]
    ['gallup', 'ipsos', 'morning_consult', 'rasmussen', 'you_gov']
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
    ) -> None:
        self.family = family
        self.memory = memory
        self.penalty = penalty
        self.tuner = tuner
        self.gradient = gradient
        self.curvature = curvature
        self.lambda_init = lambda_init
        self.penalty_factor = penalty_factor
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.history = history
        self.batch_size = batch_size
        self._start(self._get_params())

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn a row of weight `w`."""
        if not self.columns_.learn(self.learners_[0], x, y, w) and w != 0:
            columns, learners = self._room_for(x)
            columns.learn(learners[0], x, y, w)
            self.columns_, self.learners_ = columns, learners

    def predict_one(self, x: dict[Any, Any]) -> float:
        """The mean of the response, given a row."""
        return self.columns_.predict(self.learners_[0], x)

    def learn_many(self, X: pd.DataFrame, y: pd.Series, w: Any = 1.0) -> None:
        """Learn the rows in order, as `learn_one` would, with a weight for all or one each.

        A refused batch changes nothing.
        """
        columns, learners = self._room_for(_names(X))
        rows, weights = _rows(columns, X), _weights(w, X)
        target = _numbers("y", _as_long(y, X))
        complaint = learners[0].settings["family"].check_target(target)
        if complaint:
            raise ValueError(f"y: {complaint}; family={self.family!r}. Nothing was learnt.")
        if weights.any():
            learners[0].learn(rows, target, weights)
            self.columns_, self.learners_ = columns, learners

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """The mean of the response, given each row."""
        _names(X)
        family = self.learners_[0].settings["family"]
        eta = self.learners_[0].decision(_rows(self.columns_, X))
        mean = Family.mean(family, eta)
        return pd.Series(mean, index=X.index, dtype=float)

    @property
    def coef_(self) -> dict[Hashable, float]:
        """The coefficients now, by name."""
        return self._named(self.learners_[0].coef)

    @property
    def intercept_(self) -> float:
        return self.learners_[0].intercept

    @property
    def lambda_(self) -> float:
        return self.learners_[0].lam

    @property
    def lambda_max_(self) -> float:
        """The least lam that empties the model."""
        return self.learners_[0].lam_max

    @property
    def selected_(self) -> Selected:
        """Of a mixture, the single sparse model that speaks for it; its `coef` follows the order of `coef_`."""
        return selected(self.learners_[0])


class RAPClassifier(_RAP, base.MiniBatchClassifier):
    __doc__ = f"""Classification on a stream: logistic regression with fading memory whose l1 penalty tunes itself.

    Classes appear as the stream shows them, and may be any hashable labels. Two are one model; several are one model a
    class, against the rest, each with its own lam; probabilities are then those of the models, made to sum to one.

    A class that appears late has all earlier rows against it, as if it had been known from the start: a learner to
    which every row so far was "another class" is kept ready, and a copy of it becomes the new class's. When a third
    class appears, the one model of the first two is the second's against the rest, and its mirror image the first's.
    {SHARED}
    Attributes
    ----------
    classes_ : the labels, in order of appearance
    coef_, intercept_, lambda_, lambda_max_ : one entry a model, by the label that it speaks for

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamlasso.river import RAPClassifier
    >>> model = RAPClassifier()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 89.43%
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
    ) -> None:
        self.memory = memory
        self.penalty = penalty
        self.tuner = tuner
        self.gradient = gradient
        self.curvature = curvature
        self.lambda_init = lambda_init
        self.penalty_factor = penalty_factor
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.history = history
        self.batch_size = batch_size
        self.classes_: list[Hashable] = []
        self._start({**self._get_params(), "family": Binomial()})

    @property
    def _multiclass(self) -> bool:
        return True

    # --- learning: learners_ holds the one kept ready for a new class, then one a model ------------------------------

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn a row of weight `w`."""
        labels = [_label(y)]
        columns, learners = (self.columns_, self.learners_) if self.columns_.fill(x) else self._room_for(x)
        columns.fill(x)
        columns.weigh(w)
        self._learn(columns, learners, columns.row, labels, columns.weight)

    def learn_many(self, X: pd.DataFrame, y: pd.Series, w: Any = 1.0) -> None:
        """Learn the rows in order, as `learn_one` would, with a weight for all or one each.

        A mini-batch ends where a class appears for the first time. A refused batch changes nothing.
        """
        columns, learners = self._room_for(_names(X))
        rows, weights = _rows(columns, X), _weights(w, X)
        labels = [_label(label) for label in _as_long(y, X)]
        self._learn(columns, learners, rows, labels, weights)

    def _learn(
        self, columns: Columns, learners: list[Engine], rows: np.ndarray, labels: list[Hashable], weights: np.ndarray
    ) -> None:
        """Piece by piece, each without new classes; the model changes only when all pieces are learnt."""
        if not weights.any():
            return
        if not all(learner.compiled for learner in learners):
            # A tuner or family written in Python may raise half-way. To copy a mixture costs more than to teach it.
            learners = [copy(learner) for learner in learners]
        classes = list(self.classes_)
        start = 0
        for t, label in enumerate(labels):
            if weights[t] > 0 and label not in classes:
                _teach(learners, classes, rows[start:t], labels[start:t], weights[start:t])
                classes.append(label)
                learners = _with_one_more(learners, len(classes))
                start = t
        _teach(learners, classes, rows[start:], labels[start:], weights[start:])
        self.columns_, self.learners_, self.classes_ = columns, learners, classes

    # --- predicting -------------------------------------------------------------------------------------------------

    def predict_one(self, x: dict[Any, Any], **_: Any) -> Any:
        """The most probable class, given a row; None before the first one."""
        return self._winner([self.columns_.eta(learner, x) for learner in self.learners_][1:])

    def predict_proba_one(self, x: dict[Any, Any], **_: Any) -> dict[Any, float]:
        """The probability of each class seen so far, given a row."""
        shares = [self.columns_.predict(learner, x) for learner in self.learners_][1:]
        return dict(zip(self.classes_, _probabilities(shares, len(self.classes_)), strict=True))

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """The most probable class, given each row."""
        answers = [self._winner(etas) for etas in self._decide(X).tolist()]
        return pd.Series(answers, index=X.index, dtype=None if self.classes_ else object)

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """The probability of each class seen so far, given each row."""
        shares = Binomial().mean(self._decide(X)).tolist()
        rows = [_probabilities(row, len(self.classes_)) for row in shares]
        table = np.array(rows, dtype=float).reshape(len(X), len(self.classes_))
        return pd.DataFrame(table, index=X.index, columns=pd.Index(self.classes_, tupleize_cols=False))

    def _decide(self, X: pd.DataFrame) -> np.ndarray:
        """eta of every row, a column a model."""
        _names(X)
        rows = _rows(self.columns_, X)
        etas = [learner.decision(rows) for learner in self.learners_[1:]]
        return np.column_stack(etas) if etas else np.empty((len(X), 0))

    def _winner(self, etas: list[float]) -> Any:
        if not self.classes_:
            return None
        if len(etas) == 1:
            return self.classes_[etas[0] > 0]
        return self.classes_[etas.index(max(etas))] if etas else self.classes_[0]

    # --- what a person wants to see ---------------------------------------------------------------------------------

    @property
    def _n_learners(self) -> int:
        return 1 + len(_speakers(list(set(self.classes_))))

    @property
    def _models(self) -> dict[Hashable, Engine]:
        return dict(zip(_speakers(self.classes_), self.learners_[1:], strict=True))

    @property
    def coef_(self) -> dict[Hashable, dict[Hashable, float]]:
        return {label: self._named(learner.coef) for label, learner in self._models.items()}

    @property
    def intercept_(self) -> dict[Hashable, float]:
        return {label: learner.intercept for label, learner in self._models.items()}

    @property
    def lambda_(self) -> dict[Hashable, float]:
        return {label: learner.lam for label, learner in self._models.items()}

    @property
    def lambda_max_(self) -> dict[Hashable, float]:
        return {label: learner.lam_max for label, learner in self._models.items()}

    @property
    def selected_(self) -> dict[Hashable, Selected]:
        return {label: selected(learner) for label, learner in self._models.items()}


# --- classes --------------------------------------------------------------------------------------------------------


def _speakers(classes: list[Hashable]) -> list[Hashable]:
    """The classes with a model of their own: the second of two, each of several."""
    return classes if len(classes) > 2 else classes[1:]


def _teach(
    learners: list[Engine], classes: list[Hashable], rows: np.ndarray, labels: list[Hashable], weights: np.ndarray
) -> None:
    if not labels:
        return
    learners[0].learn(rows, np.zeros(len(labels)), weights)
    for learner, speaker in zip(learners[1:], _speakers(classes), strict=True):
        learner.learn(rows, np.array([float(label == speaker) for label in labels]), weights)


def _with_one_more(learners: list[Engine], n_classes: int) -> list[Engine]:
    """The learners when the n-th class has just appeared."""
    if n_classes == 1:
        return learners
    if n_classes == 3:
        learners = [learners[0], learners[1].mirrored(), learners[1]]
    return [*learners, copy(learners[0])]


def _probabilities(shares: list[float], n_classes: int) -> list[float]:
    if n_classes < 2:
        return [1.0] * n_classes
    if n_classes == 2:
        return [1.0 - shares[0], shares[0]]
    total = sum(shares)
    return [share / total for share in shares] if total > 0 else [1.0 / n_classes] * n_classes


def _label(y: Any) -> Hashable:
    label = y.item() if isinstance(y, np.generic) else y
    if not isinstance(label, Hashable) or label is None or label is pd.NA or label != label:
        raise ValueError(f"y={y!r}: a class label is needed, such as a string, a number or a bool; nothing was learnt.")
    return label


# --- checks ---------------------------------------------------------------------------------------------------------


def _penalty_factor(factors: Any) -> dict[Hashable, float]:
    if factors is None:
        return {}
    if not isinstance(factors, Mapping):
        raise ValueError(f"penalty_factor={factors!r}: a dict from names to numbers; names that are absent count as 1")
    for name, factor in factors.items():
        if isinstance(factor, bool) or not isinstance(factor, Real) or not 0 <= float(factor) < np.inf:
            raise ValueError(f"penalty_factor[{name!r}]={factor!r}: a number, 0 (never penalised) or larger")
    return {name: float(factors[name]) for name in sorted(factors, key=str)}


def _names(X: Any) -> list[Hashable]:
    if not isinstance(X, pd.DataFrame):
        raise TypeError(f"X: a pandas DataFrame is needed, not {type(X).__name__}; nothing was learnt.")
    if not X.columns.is_unique:
        raise ValueError(f"X has two columns {X.columns[X.columns.duplicated()][0]!r}; nothing was learnt.")
    return list(X.columns)


def _rows(columns: Columns, X: pd.DataFrame) -> np.ndarray:
    """The frame as the engine takes it. Values of names without a column are looked at, then left out."""
    rows = np.zeros((len(X), columns.width))
    for name, values in X.items():
        numbers = _numbers(f"X[{name!r}]", values)
        if name in columns:
            rows[:, columns.place(name)] = numbers
    return rows


def _numbers(name: str, values: pd.Series) -> np.ndarray:
    if values.dtype.kind in "biuf":
        numbers = values.to_numpy(dtype=float, na_value=np.nan)
    else:
        numbers = np.array([number(f"{name}.iloc[{i}]", value) for i, value in enumerate(values)])
    bad = first_unfit(numbers.reshape(-1, 1))
    if bad >= 0:
        number(f"{name}.iloc[{bad}]", values.iloc[bad])
    return numbers


def _weights(w: Any, X: pd.DataFrame) -> np.ndarray:
    weights = np.full(len(X), number("w", w)) if np.ndim(w) == 0 else _numbers("w", _as_long(w, X, "w"))
    if np.any(weights < 0):
        raise ValueError(f"w={w!r}: weights are numbers, 0 (the row is skipped) or larger; nothing was learnt.")
    return weights


def _as_long(values: Any, X: pd.DataFrame, name: str = "y") -> pd.Series:
    series = values if isinstance(values, pd.Series) else pd.Series(values)
    if len(series) != len(X):
        raise ValueError(f"{name} has {len(series)} values for {len(X)} rows of X; nothing was learnt.")
    return series
