"""The scikit-learn face of the sparse engine: checks, classes, bytes; nothing numerical."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, cast

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import validate_data

from streamlasso.core.wide.model import LARGEST_X, Wide
from streamlasso.core.wide.single import Single
from streamlasso.estimators.multiclass import best_class, n_models, probabilities, targets_of
from streamlasso.estimators.validation import (
    classes_of,
    named_classes,
    noted_on,
    numbers_of,
    places_of,
    refuse_no_target,
    refuse_no_weight,
    stand_in,
    weights_of,
)
from streamlasso.families import Binomial, Family
from streamlasso.wide.packed import Saved, pack, restored, states_of
from streamlasso.wide.parameters import (
    ATTRIBUTES,
    METHOD,
    PARAMETERS,
    TUNED,
    TUNER,
    engine_settings,
    family_of,
    settings_as_json,
    settings_of_json,
)

#: Columns have 31 bits.
MOST_COLUMNS = 2**31 - 1


class _Wide(Saved, BaseEstimator):
    """What both estimators share: one engine, or one per class."""

    #: Whether y are classes, which have no units.
    _classes = False
    models_: list[Wide | Single]
    n_features_in_: int
    classes_: np.ndarray

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "models_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _family(self) -> Family:
        raise NotImplementedError

    def _new_models(self, n: int) -> list[Wide | Single]:
        settings = engine_settings(self.get_params(deep=False))
        family = self._family()
        tuner = settings.pop("tuner", None)
        if tuner is not None:
            return [Single(family, tuner, fixed_units=self._classes, **settings) for _ in range(n)]
        return [Wide(family, fixed_units=self._classes, **settings) for _ in range(n)]

    # --- learning -----------------------------------------------------------------------------------------------------

    def _take(self, X: Any, y: Any, sample_weight: Any, classes: Any = None, *, reset: bool) -> np.ndarray:
        """Check everything, learn each row; the etas as they were predicted before (row, model)."""
        refuse_no_target(self, y)
        scout = stand_in(self)
        rows = _rows(scout, X, reset=reset)
        targets, known = self._targets(y, rows[3], classes, reset=reset)
        weights = weights_of(sample_weight, rows[3])
        for name, value in noted_on(scout).items():
            setattr(self, name, value)
        models = self._new_models(len(targets)) if reset else self.models_
        eta = np.empty((len(targets), rows[3]))
        for model, target, before in zip(models, targets, eta, strict=True):
            model.learn(*rows[:3], target, weights, before)
        if known is not None:
            self.classes_ = known
        self.models_ = models
        return eta.T

    def _targets(self, y: Any, n_rows: int, classes: Any, *, reset: bool) -> tuple[list[np.ndarray], np.ndarray | None]:
        raise NotImplementedError

    def _decide(self, X: Any) -> np.ndarray:
        models = self._fitted()
        rows = _rows(self, X, reset=False)
        return np.column_stack([model.decide(*rows[:3]) for model in models])

    def _fitted(self) -> list[Wide | Single]:
        if not hasattr(self, "models_"):
            raise NotFittedError(f"This {type(self).__name__} has seen no rows yet: call fit or partial_fit first.")
        return self.models_

    # --- what it is ---------------------------------------------------------------------------------------------------

    @property
    def coef_(self) -> sparse.csr_array:
        """The coefficients now, sparse: (1, n_features), or one row per class."""
        return self._as_rows([model.coef() for model in self._fitted()])

    @property
    def coef_slope_(self) -> sparse.csr_array:
        """The derivative of `coef_` with respect to lam; of a model with a tuner."""
        return self._as_rows([model.coef_slope() for model in self._tuned()])

    @property
    def lambda_(self) -> float | np.ndarray:
        """The threshold on the evidence, in standard errors; of a model with a tuner."""
        lams = [model.lam for model in self._tuned()]
        return lams[0] if len(lams) == 1 else np.array(lams)

    def _tuned(self) -> list[Single]:
        models = [model for model in self._fitted() if isinstance(model, Single)]
        if not models:
            raise AttributeError(
                "experts with different penalties compete: give a tuner, such as LogRMS(), for one lam"
            )
        return models

    def _as_rows(self, rows: list[tuple[np.ndarray, np.ndarray]]) -> sparse.csr_array:
        starts = np.cumsum([0, *(np.count_nonzero(values) for _, values in rows)])
        columns = np.concatenate([keys[values != 0].astype(np.int64) for keys, values in rows])
        values = np.concatenate([values[values != 0] for _, values in rows])
        coef = sparse.csr_array((values, columns, starts), shape=(len(rows), self.n_features_in_))
        coef.sort_indices()
        return coef

    @property
    def n_seen_(self) -> int:
        return self._fitted()[0].n_seen

    @property
    def n_live_(self) -> int:
        return sum(len(model.table) for model in self._fitted())

    @property
    def nbytes_(self) -> int:
        return sum(model.nbytes for model in self._fitted())

    # --- bytes --------------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """The model as bytes, its live features only. `from_bytes` continues it to the bit."""
        labels = {"n_features_in_": self.n_features_in_} if hasattr(self, "n_features_in_") else {}
        names = getattr(self, "feature_names_in_", None)
        header = {
            "class": self._kind(),
            "settings": settings_as_json(self.get_params(deep=False)),
            "labels": labels,
            "names": None if names is None else names.tolist(),
            "classes": _classes_as_json(getattr(self, "classes_", None)),
            "models": len(self._fitted()),
        }
        return pack(header, states_of(self.models_))

    @classmethod
    def _from(cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        model = cls(**settings_of_json(header["settings"]))
        model.models_ = restored(model._new_models(int(header["models"])), arrays)
        for name, value in header["labels"].items():
            if name != "n_features_in_" or not isinstance(value, int):
                raise KeyError(name)
            model.n_features_in_ = value
        if header["names"] is not None:
            model.feature_names_in_ = np.array(header["names"], dtype=object)
        if header["classes"] is not None:
            kind, labels = header["classes"]
            model.classes_ = np.array(labels, dtype=kind)
            if n_models(len(labels)) != len(model.models_):
                raise KeyError("classes")
        return model


class WideClassifier(ClassifierMixin, _Wide):
    __doc__ = f"""Classes from millions of sparse features, learnt row by row: a logistic regression without settings.

    {METHOD} Two classes are one model; several are one model per class against the rest.

    Parameters
    ----------
    {PARAMETERS}
    {TUNER}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    coef_ : sparse array of shape (1, n_features) or (n_classes, n_features)
        The coefficients now: those of the experts in the proportions in which these are combined.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The intercepts now.
    {TUNED}
    {ATTRIBUTES}

    Examples
    --------
    >>> from sklearn.feature_extraction.text import HashingVectorizer
    >>> from streamlasso import WideClassifier
    >>> words = HashingVectorizer(n_features=2**20, alternate_sign=False)
    >>> texts = ["cheap pills now", "see you at lunch", "cheap watches now", "lunch at noon?"] * 10
    >>> model = WideClassifier().partial_fit(words.transform(texts), ["spam", "ham"] * 20)
    >>> model.predict(words.transform(["cheap lunch now", "you at noon"]))
    array(['spam', 'ham'], dtype='<U4')
    """

    _classes = True

    def __init__(
        self, experts: int = 16, memory: str = "full", max_features: int | None = None, tuner: Any = None
    ) -> None:
        self.experts = experts
        self.memory = memory
        self.max_features = max_features
        self.tuner = tuner

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything, then learn the rows in order, each once."""
        refuse_no_weight(sample_weight)
        self._take(X, y, sample_weight, reset=True)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn each row once, in order. A refused batch changes nothing.

        The first call names all `classes`, unless its rows show them.
        """
        self._take(X, y, sample_weight, classes, reset=not hasattr(self, "models_"))
        return self

    def progressive(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Predict, then learn, each row: the probabilities (row, class) as they were before the row was learnt."""
        eta = self._take(X, y, sample_weight, classes, reset=not hasattr(self, "models_"))
        return probabilities(Binomial().mean(eta))

    def _family(self) -> Family:
        return Binomial()

    def _targets(self, y: Any, n_rows: int, classes: Any, *, reset: bool) -> tuple[list[np.ndarray], np.ndarray]:
        if not reset and classes is not None and not np.array_equal(named_classes(classes), self.classes_):
            raise ValueError(f"classes={classes!r} is not the same as on the first call: {self.classes_.tolist()}")
        known = classes_of(y, classes) if reset else self.classes_
        return targets_of(places_of(y, n_rows, known), len(known)), known

    def decision_function(self, X: Any) -> np.ndarray:
        """The log odds: one number per row for two classes, one per row and class for several."""
        eta = self._decide(X)
        return eta[:, 0] if eta.shape[1] == 1 else eta

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class."""
        return probabilities(Binomial().mean(self._decide(X)))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class."""
        best = best_class(self._decide(X))
        return cast(np.ndarray, self.classes_[best])

    @property
    def intercept_(self) -> np.ndarray:
        return np.array([model.intercept for model in self._fitted()])


class WideRegressor(RegressorMixin, _Wide):
    __doc__ = f"""Numbers or counts from millions of sparse features, learnt row by row, without settings.

    {METHOD} The units of y and of the features do not matter.

    Parameters
    ----------
    family : {{"gaussian", "poisson"}}, default="gaussian"
        Squared error; or counts, with the log link.
    {PARAMETERS}
    {TUNER}

    Attributes
    ----------
    coef_ : sparse array of shape (1, n_features)
        The coefficients now: those of the experts in the proportions in which these are combined.
    intercept_ : float
        The intercept now.
    {TUNED}
    {ATTRIBUTES}

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from streamlasso import WideRegressor
    >>> X = sparse.random_array((2000, 100_000), density=1e-4, rng=np.random.default_rng(0), format="csr")
    >>> y = 3.0 + 2.0 * X[:, [7]].toarray().ravel()
    >>> model = WideRegressor().partial_fit(X, y)
    >>> model.coef_.shape, model.n_live_ < 20_000
    ((1, 100000), True)
    """

    def __init__(
        self,
        family: str = "gaussian",
        experts: int = 16,
        memory: str = "full",
        max_features: int | None = None,
        tuner: Any = None,
    ) -> None:
        self.family = family
        self.experts = experts
        self.memory = memory
        self.max_features = max_features
        self.tuner = tuner

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.family == "poisson"
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything, then learn the rows in order, each once."""
        refuse_no_weight(sample_weight)
        self._take(X, y, sample_weight, reset=True)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn each row once, in order. A refused batch changes nothing."""
        self._take(X, y, sample_weight, reset=not hasattr(self, "models_"))
        return self

    def progressive(self, X: Any, y: Any, sample_weight: Any = None) -> np.ndarray:
        """Predict, then learn, each row: the means as they were predicted before the row was learnt."""
        eta = self._take(X, y, sample_weight, reset=not hasattr(self, "models_"))
        return self.models_[0].family.means(eta[:, 0])

    def _family(self) -> Family:
        return family_of(self.family)

    def _targets(self, y: Any, n_rows: int, classes: Any, *, reset: bool) -> tuple[list[np.ndarray], None]:
        return [numbers_of(y, n_rows, self._family())], None

    def predict(self, X: Any) -> np.ndarray:
        """The mean of the response."""
        eta = self._decide(X)
        return self.models_[0].family.means(eta[:, 0])

    @property
    def intercept_(self) -> float:
        return self._fitted()[0].intercept


# --- checks -----------------------------------------------------------------------------------------------------------


def _rows(estimator: Any, X: Any, *, reset: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """X as the engine takes it: where rows start, columns, values; and the number of rows."""
    X = validate_data(
        estimator, X, reset=reset, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False, order="C"
    )
    if X.shape[1] > MOST_COLUMNS:
        raise ValueError(
            f"X has {X.shape[1]:,} columns, and an index of a column has 31 bits: hash names into at most 2^31 - 1 "
            "columns; no row was learnt."
        )
    if sparse.issparse(X):
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    else:
        X = sparse.csr_array(X)
    _refuse_values(X)
    return X.indptr.astype(np.int64), X.indices.astype(np.int64), np.ascontiguousarray(X.data), X.shape[0]


def _refuse_values(X: Any) -> None:
    """Name the first value that is not finite, or too large."""
    bad = np.flatnonzero(~(np.abs(X.data) <= LARGEST_X))
    if not len(bad):
        return
    k = int(bad[0])
    row = int(np.searchsorted(X.indptr, k, side="right")) - 1
    place = f"X[{row}, {X.indices[k]}] = {X.data[k]}"
    if np.isnan(X.data[k]):
        raise ValueError(f"Input X contains NaN: {place}. Fill in or drop missing values; no row was learnt.")
    if np.isinf(X.data[k]):
        raise ValueError(f"Input X contains infinity: {place}; no row was learnt.")
    raise ValueError(f"{place}: values lie within +-{LARGEST_X:g}, rescale it; no row was learnt.")


# --- labels as JSON ---------------------------------------------------------------------------------------------------


def _classes_as_json(classes: np.ndarray | None) -> tuple[str, list[Any]] | None:
    if classes is None:
        return None
    labels = classes.tolist()
    if not all(isinstance(label, bool | int | float | str) for label in labels):
        raise ValueError(f"classes {labels!r}: text, numbers and bools can be saved")
    return ("object" if classes.dtype.kind == "O" else classes.dtype.str), labels
