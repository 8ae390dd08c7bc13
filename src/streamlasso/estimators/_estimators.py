"""The scikit-learn face: validation and attributes; nothing numerical happens here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from streamlasso import checkpoint
from streamlasso.core.engine import LARGEST, Engine, first_unfit
from streamlasso.families import Binomial, Family
from streamlasso.selection import Selected, selected
from streamlasso.settings import as_family, build_learner

SHARED = """
    Parameters
    ----------
    memory : float, Forgetting, Window or AdaptiveForgetting, default=None
        How the past fades; a float is a forgetting factor. None leaves it to `Mixture`, and is .99 for other tuners.
    penalty : L1, ElasticNet or Ridge, default=None
        None is `L1()`.
    tuner : Mixture, LogRMS, LARS, SGD, Fixed or a Tuner of your own, default=None
        How lam moves; None is `Mixture()`, which chooses lam and memory together.
    gradient : {"exact", "diagonal"}, default="exact"
        The derivative of the coefficients with the whole Hessian, or with its diagonal (the paper's approximation).
    curvature : {"updated", "previous"}, default="updated"
        Whether that Hessian has the new row in it; "previous" is Algorithm 1 as printed.
    lambda_init : float, default=None
        Where lam starts; None is a tenth of lam_max at the tenth row (or the first after it where that is not 0), and
        lam_max itself until then. Not with `Mixture`.
    penalty_factor : array of shape (n_features,), default=None
        Multiplies lam for each feature; 0 is never penalised.
    fit_intercept, standardize : bool, default=True
        An unpenalised intercept; a penalty in units of each feature's running standard deviation.
    history : int, default=64
        Rows kept whole before they are folded into a quadratic; of no effect for the Gaussian family and `Mixture`.
    batch_size : int, default=1
        Rows a step, within one call of `partial_fit`.

    Attributes
    ----------
    coef_, intercept_, lambda_, lambda_max_ : the model now, its penalty, and the least one that empties it
    n_seen_, effective_size_ : rows learnt, and the weight omega that the memory holds of them
    selected_ : of a mixture, the single sparse model that speaks for it: memory, since, lam, coef, support, ...
"""


#: What scikit-learn's validation writes on an estimator.
NOTED = {"n_features_in_", "feature_names_in_"}


class Rows(NamedTuple):
    """Rows that passed every check, and the learners to take them: those of a fresh model are new."""

    X: np.ndarray
    targets: list[np.ndarray]
    weights: np.ndarray | None
    learners: list[Engine]
    classes: np.ndarray | None = None


class _RAP(BaseEstimator):
    """What both estimators share."""

    learners_: list[Engine]
    classes_: np.ndarray
    n_features_in_: int

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "learners_")

    def save(self, path: Any) -> None:
        """Write the model to `path` (safetensors); the file appears whole or not at all."""
        self._fitted()
        checkpoint.save(self, path)

    @classmethod
    def load(cls, path: Any) -> Self:
        """The model that `save` wrote. Loading runs no code of the file's, and refuses a file that is not whole."""
        return checkpoint.load(cls, path)

    def _whole(self) -> bool:
        """Do the labels belong to the learners? A checkpoint asks before it hands out a model."""
        p = self._first.n_features
        named = not self._named or len(self.feature_names_in_) == p
        return named and self.n_features_in_ == p and len(self.learners_) == self._n_learners

    @property
    def _n_learners(self) -> int:
        return 1

    @property
    def n_seen_(self) -> int:
        return self._first.n_seen

    @property
    def effective_size_(self) -> float:
        return self._first.effective_size

    @property
    def _first(self) -> Engine:
        return self._fitted()[0]

    def _fitted(self) -> list[Engine]:
        if not hasattr(self, "learners_"):
            raise NotFittedError(f"This {type(self).__name__} has seen no rows yet: call fit or partial_fit first.")
        return self.learners_

    def _decide(self, X: Any) -> np.ndarray:
        """eta of every row, a column a learner."""
        learners = self._fitted()
        X = self._features(X)
        return np.column_stack([learner.decision(X) for learner in learners])

    def _features(self, X: Any, *, reset: bool = False) -> np.ndarray:
        return features_of(self, X, reset=reset)

    @property
    def _named(self) -> bool:
        return hasattr(self, "feature_names_in_")

    def _weights(self, sample_weight: Any, X: np.ndarray) -> np.ndarray | None:
        if sample_weight is None:
            return None
        with _named_if_no_number("sample_weight"):
            weights = np.asarray(sample_weight, dtype=np.float64)
        if weights.ndim > 0 and weights.shape != (len(X),):
            raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(len(X),)}: one weight a row")
        if not np.all((weights >= 0) & (weights <= LARGEST)):
            raise ValueError(f"sample_weight: weights are numbers from 0 (the row is skipped) to {LARGEST:g}")
        return np.ascontiguousarray(np.broadcast_to(weights, len(X)))

    def _learn(self, rows: Rows) -> None:
        """All learners take the rows, or none does."""
        states = [learner.state() for learner in rows.learners] if len(rows.learners) > 1 else []
        try:
            for learner, y in zip(rows.learners, rows.targets, strict=True):
                learner.learn(rows.X, y, rows.weights)
        except BaseException:
            for learner, state in zip(rows.learners, states, strict=False):
                learner.restore(state)
            raise

    def _settle(self, rows: Rows) -> Self:
        """The rows are learnt: what a fresh model made for them is now its own."""
        if rows.classes is not None:
            self.classes_ = rows.classes
        self.learners_ = rows.learners
        return self


def features_of(estimator: Any, X: Any, *, reset: bool, least: int = 1) -> np.ndarray:
    """X as the engine takes it, `least` columns or more. A plain array of the right shape goes straight through."""
    named = hasattr(estimator, "feature_names_in_")
    if reset or named or not is_plain(X, 2) or X.shape != (X.shape[0] or None, estimator.n_features_in_):
        with _named_if_no_number("X"):
            X = validate_data(
                estimator,
                X,
                reset=reset,
                dtype=np.float64,
                order="C",
                ensure_all_finite=False,
                ensure_min_features=least,
            )
    bad = first_unfit(X)
    if bad >= 0:
        refuse_value("X", X, *divmod(bad, X.shape[1]))
    return X


@contextmanager
def as_before_if_refused(estimator: BaseEstimator) -> Iterator[None]:
    """scikit-learn notes the width and names of X before we have seen whether the rest is any good."""
    before = {name: value for name, value in vars(estimator).items() if name in NOTED}
    try:
        yield
    except BaseException:
        for name in NOTED & vars(estimator).keys():
            delattr(estimator, name)
        for name, value in before.items():
            setattr(estimator, name, value)
        raise


def refuse_value(name: str, values: np.ndarray, *where: int) -> None:
    """Say what is wrong with a value, and where it is."""
    value = values[where]
    place = f"{name}[{', '.join(map(str, where))}] = {value}"
    if np.isnan(value):
        raise ValueError(f"Input {name} contains NaN: {place}. Fill in or drop missing values; no row was learnt.")
    if np.isinf(value):
        raise ValueError(f"Input {name} contains infinity: {place}; no row was learnt.")
    raise ValueError(
        f"{place}: squares are summed in double precision, so values lie within +-{LARGEST:g}; rescale it."
    )


class RAPRegressor(RegressorMixin, _RAP):
    __doc__ = f"""Regression on a stream: an l1-penalised GLM with fading memory whose penalty tunes itself (RAP).

    Rows are learnt one by one, in order. After each, the coefficients minimise the objective (docs/method.md) exactly,
    at a lam that has moved down the derivative of the row's look-ahead loss.
    {SHARED}
    family : {{"gaussian", "binomial", "poisson", "gamma"}} or a Family of your own, default="gaussian"

    Examples
    --------
    >>> import numpy as np
    >>> from streamlasso import RAPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 5))
    >>> y = 2 * X[:, 1] + rng.normal(size=500)
    >>> model = RAPRegressor().partial_fit(X, y)
    >>> model.predict([[0.0, 1.0, 0.0, 0.0, 0.0]]).round(1)
    array([2.])
    >>> model.selected_.support, model.n_seen_
    (array([1, 2]), 500)
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
        penalty_factor: Any = None,
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with suppress(ValueError):
            tags.target_tags.positive_only = as_family(self.family).check_target(np.array([-1.0])) is not None
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything, then learn the rows in order."""
        _refuse_no_weight(sample_weight)
        return self._take(X, y, sample_weight, reset=True)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn each row once, in order. A refused batch changes nothing."""
        return self._take(X, y, sample_weight, reset=not hasattr(self, "learners_"))

    def _take(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Self:
        with as_before_if_refused(self):
            rows = self._ready(X, y, sample_weight, reset=reset)
            self._learn(rows)
        return self._settle(rows)

    def _ready(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Rows:
        X, target, weights = self._rows(X, y, sample_weight, reset=reset)
        learners = [build_learner(X.shape[1], self.get_params(deep=False))] if reset else self.learners_
        return Rows(X, [target], weights, learners)

    def _rows(
        self, X: Any, y: Any, sample_weight: Any = None, *, reset: bool = False
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """The rows as the engine takes them."""
        X = self._features(X, reset=reset)
        target = self._target(y, len(X), reset=reset)
        return X, target, self._weights(sample_weight, X)

    def _target(self, y: Any, n_rows: int, *, reset: bool) -> np.ndarray:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        target = y if is_plain(y, 1) else self._as_target(y)
        if len(target) != n_rows:
            raise ValueError(f"Found input variables with inconsistent numbers of samples: {[n_rows, len(target)]}")
        bad = first_unfit(target.reshape(-1, 1))
        if bad >= 0:
            refuse_value("y", target, bad)
        family = as_family(self.family) if reset else self._first.settings["family"]
        complaint = family.check_target(target)
        if complaint:
            raise ValueError(f"y: {complaint}; family={family!r}. No row was learnt.")
        return target

    def _as_target(self, y: Any) -> np.ndarray:
        with _named_if_no_number("y"):
            return np.ascontiguousarray(column_or_1d(y, warn=True, dtype=np.float64))

    def predict(self, X: Any) -> np.ndarray:
        """The mean of the response, given each row."""
        return self._answer(self._decide(X))

    def _answer(self, eta: np.ndarray) -> np.ndarray:
        """What `predict` says of rows with this eta, a column a learner."""
        return Family.mean(self._first.settings["family"], eta[:, 0])

    @property
    def coef_(self) -> np.ndarray:
        return self._first.coef

    @property
    def intercept_(self) -> float:
        return self._first.intercept

    @property
    def lambda_(self) -> float:
        return self._first.lam

    @property
    def lambda_max_(self) -> float:
        return self._first.lam_max

    @property
    def selected_(self) -> Selected:
        return selected(self._first)


class RAPClassifier(ClassifierMixin, _RAP):
    __doc__ = f"""Classification on a stream: a logistic regression with fading memory whose penalty tunes itself (RAP).

    Two classes are one model. Several are one model a class, against the rest, each with its own lam; probabilities are
    then those of the models, made to sum to one.
    {SHARED}
    classes_ : the classes; with several, `lambda_`, `lambda_max_` and the rows of `coef_` follow their order

    Examples
    --------
    >>> import numpy as np
    >>> from streamlasso import RAPClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 5))
    >>> y = np.where(X[:, 1] + rng.normal(size=500) > 0, "up", "down")
    >>> model = RAPClassifier().fit(X, y)
    >>> model.predict([[0.0, 3.0, 0.0, 0.0, 0.0]])
    array(['up'], dtype='<U4')
    """

    def __init__(
        self,
        memory: Any = None,
        penalty: Any = None,
        tuner: Any = None,
        gradient: str = "exact",
        curvature: str = "updated",
        lambda_init: float | None = None,
        penalty_factor: Any = None,
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything, then learn the rows in order."""
        _refuse_no_weight(sample_weight)
        return self._take(X, y, sample_weight, None, reset=True)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn each row once, in order. A refused batch changes nothing.

        The first call names all `classes`, unless its rows show them.
        """
        return self._take(X, y, sample_weight, classes, reset=not hasattr(self, "learners_"))

    def _take(self, X: Any, y: Any, sample_weight: Any, classes: Any, *, reset: bool) -> Self:
        with as_before_if_refused(self):
            rows = self._ready(X, y, sample_weight, classes, reset=reset)
            self._learn(rows)
        return self._settle(rows)

    def _ready(self, X: Any, y: Any, sample_weight: Any, classes: Any = None, *, reset: bool) -> Rows:
        X = self._features(X, reset=reset)
        classes = self._classes(y, classes) if reset else self._same_classes(classes)
        targets = self._targets(y, len(X), classes)
        weights = self._weights(sample_weight, X)
        settings = {**self.get_params(deep=False), "family": Binomial()}
        learners = [build_learner(X.shape[1], settings) for _ in targets] if reset else self.learners_
        return Rows(X, targets, weights, learners, classes)

    def _classes(self, y: Any, classes: Any) -> np.ndarray:
        """The classes of a fresh model: as named, or as the rows show them."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        with _named_if_mixed("y"):
            check_classification_targets(y)
            found = np.unique(column_or_1d(y, warn=True)) if classes is None else self._named_classes(classes)
        if len(found) < 2:
            name = "y" if classes is None else "classes"
            raise ValueError(
                f"{name} holds one class only, {found.tolist()}: two or more are needed; name them all with "
                "partial_fit(X, y, classes=[...]) if the others come later"
            )
        return found

    def _named_classes(self, classes: Any) -> np.ndarray:
        if isinstance(classes, str) or np.ndim(classes) != 1:
            raise ValueError(f"classes={classes!r}: a list of all classes is needed")
        with _named_if_mixed("classes"):
            return np.unique(classes)

    def _same_classes(self, classes: Any) -> np.ndarray:
        if classes is not None and not np.array_equal(self._named_classes(classes), self.classes_):
            raise ValueError(f"classes={classes!r} is not the same as on the first call: {self.classes_.tolist()}")
        return self.classes_

    def _targets(self, y: Any, n_rows: int, classes: np.ndarray) -> list[np.ndarray]:
        """0 and 1 for each learner."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        labels = column_or_1d(y, warn=True)
        if len(labels) != n_rows:
            raise ValueError(f"Found input variables with inconsistent numbers of samples: {[n_rows, len(labels)]}")
        with _named_if_mixed("y"):
            unknown = np.setdiff1d(labels, classes)
        if len(unknown):
            raise ValueError(
                f"y holds {unknown.tolist()}, not among the classes {classes.tolist()}; no row was learnt."
            )
        positive = classes[1:] if len(classes) == 2 else classes
        return [(labels == label).astype(np.float64) for label in positive]

    @property
    def _n_learners(self) -> int:
        return 1 if len(self.classes_) == 2 else len(np.unique(self.classes_))

    def decision_function(self, X: Any) -> np.ndarray:
        """eta = b0 + x'b: one number a row for two classes, one a class for several."""
        eta = self._decide(X)
        return eta[:, 0] if eta.shape[1] == 1 else eta

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class, given each row."""
        share = Binomial().mean(self._decide(X))
        if share.shape[1] == 1:
            return np.column_stack([1 - share, share])
        total = share.sum(axis=1, keepdims=True)
        return np.where(total > 0, share / np.where(total > 0, total, 1), 1 / share.shape[1])

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class, given each row."""
        return self._answer(self._decide(X))

    def _answer(self, eta: np.ndarray) -> np.ndarray:
        """What `predict` says of rows with this eta, a column a learner."""
        best = (eta[:, 0] > 0).astype(int) if eta.shape[1] == 1 else eta.argmax(axis=1)
        return self.classes_[best]

    @property
    def coef_(self) -> np.ndarray:
        return np.vstack([learner.coef for learner in self._fitted()])

    @property
    def intercept_(self) -> np.ndarray:
        return np.array([learner.intercept for learner in self._fitted()])

    @property
    def lambda_(self) -> float | np.ndarray:
        return _one_or_all([learner.lam for learner in self._fitted()])

    @property
    def lambda_max_(self) -> float | np.ndarray:
        return _one_or_all([learner.lam_max for learner in self._fitted()])

    @property
    def selected_(self) -> Selected | list[Selected]:
        return _one_or_all([selected(learner) for learner in self._fitted()])


def is_plain(values: Any, ndim: int) -> bool:
    """Is it an array as the engine takes it? To convert what need not be takes longer than to learn a row."""
    return (
        type(values) is np.ndarray and values.dtype == np.float64 and values.ndim == ndim and values.flags.c_contiguous
    )


def _refuse_no_weight(sample_weight: Any) -> None:
    if sample_weight is not None and not np.any(np.asarray(sample_weight)):
        raise ValueError("sample_weight: all weights are zero, so there is nothing to fit")


@contextmanager
def _named_if_no_number(name: str) -> Iterator[None]:
    """numpy says which string is no number, but not where it was."""
    try:
        yield
    except np.exceptions.DTypePromotionError:
        raise ValueError(
            f"{name}: numbers are needed, but there are dates among them; turn these into numbers first. No row was "
            "learnt."
        ) from None
    except ValueError as error:
        if "could not convert" not in str(error):
            raise
        raise ValueError(f"{name}: numbers are needed, but {error}; no row was learnt.") from None


@contextmanager
def _named_if_mixed(name: str) -> Iterator[None]:
    """Labels have an order, and those of different types have none."""
    try:
        yield
    except TypeError as error:
        if "not supported between" not in str(error):
            raise
        raise ValueError(
            f"{name}: labels of one type are needed, all text or all numbers; no row was learnt."
        ) from None


def _one_or_all(values: list[Any]) -> Any:
    if len(values) == 1:
        return values[0]
    return values if isinstance(values[0], Selected) else np.array(values)
