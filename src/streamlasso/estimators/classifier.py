"""Classes: one model of the binomial family, or one per class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin

from streamlasso.core.base.selected import Selected
from streamlasso.estimators.base import RAP, Rows
from streamlasso.estimators.coefficients import SelectedOfClasses
from streamlasso.estimators.intervals import refuse_coverage
from streamlasso.estimators.multiclass import (
    KeepsRecent,
    Recent,
    best_class,
    n_models,
    probabilities,
    sets_of,
    targets_of,
    with_new_class,
)
from streamlasso.estimators.parameters import ARRAY_ATTRIBUTES, METHOD, PARAMETERS
from streamlasso.estimators.turns import behind_the_gate_of, between_rows, publish
from streamlasso.estimators.validation import classes_of, named_classes, places_of, refuse_no_target
from streamlasso.families import Binomial


class RAPClassifier(KeepsRecent, ClassifierMixin, RAP[float | np.ndarray, Selected | list[Selected]]):
    __doc__ = f"""Sparse classification on a stream that may change: a logistic regression that tunes itself.

    {METHOD}
    Two classes are one model. Several are one model per class against the rest, each with its own lam; their
    probabilities are divided by their sum.

    Parameters
    ----------
    {PARAMETERS}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes. With three or more, all that follows has one entry per class, in this order.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        The coefficients now; of a mixture, their average.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The intercepts now.
    lambda_, lambda_max_ : float, or ndarray of shape (n_classes,)
        The penalty, and the smallest penalty at which all coefficients are 0.
    selected_ : Selected, or list of Selected
        Of a mixture, one sparse model to read: support, intercept, coef, since, inclusion, importance
        (docs/what_matters.md). If the features have names, so has coef: `selected_.coef["wind"]`.
    {ARRAY_ATTRIBUTES}

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

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn each row once, in order. A refused batch changes nothing.

        The first call names all `classes`, unless its rows show them.
        """
        return self._take(X, y, sample_weight, classes)

    def _settings(self) -> dict[str, Any]:
        return {**super()._settings(), "family": Binomial()}

    def _targets(self, y: Any, n_rows: int, classes: Any, *, reset: bool) -> tuple[list[np.ndarray], np.ndarray]:
        refuse_no_target(self, y)
        known = classes_of(y, classes) if reset else self._same_classes(classes)
        return targets_of(places_of(y, n_rows, known), len(known)), known

    def _same_classes(self, classes: Any) -> np.ndarray:
        if classes is not None and not np.array_equal(named_classes(classes), self.classes_):
            raise ValueError(f"classes={classes!r} is not the same as on the first call: {self.classes_.tolist()}")
        return self.classes_

    def _settle(self, rows: Rows) -> Self:
        if rows.labels is not None and hasattr(self, "_recent") and self._recent.n_features < rows.X.shape[1]:
            rows = rows._replace(labels={**rows.labels, "_recent": self._recent.grown(rows.X.shape[1])})
        return super()._settle(rows)

    # --- for a stream that shows its classes as it goes ---------------------------------------------------------------

    def _start(self, names: Sequence[str], classes: Sequence[Any] = ()) -> Self:
        super()._start(names)
        learners = self._new_learners(len(names), n_models(len(classes)))
        publish(self, learners, {"classes_": np.array(classes), "_recent": Recent(len(names))})
        return self

    def _add_features(self, names: Sequence[str]) -> None:
        super()._add_features(names)
        self._recent = self._recent.grown(len(names))

    def _add_classes(self, classes: Sequence[Any]) -> None:
        """Make room for classes that were not there until now; `classes` are all of them."""
        learners = self.learners_
        for n in range(len(self.classes_) + 1, len(classes) + 1):
            learners = with_new_class(learners, n, self._recent)
        publish(self, behind_the_gate_of(self, learners), {"classes_": np.array(classes)})

    def _remember(self, X: np.ndarray, weights: np.ndarray) -> None:
        """Keep rows that were learnt, for the model of a class that may appear."""
        self._recent.add(X, weights)

    # --- predicting ---------------------------------------------------------------------------------------------------

    @between_rows
    def decision_function(self, X: Any) -> np.ndarray:
        """eta = b0 + x'b: one number per row for two classes, one per row and class for several."""
        eta = self._decide(X)
        return eta[:, 0] if eta.shape[1] == 1 else eta

    @between_rows
    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class, given rows that follow the last one learnt, in order."""
        return probabilities(Binomial().mean(self._decide(X)))

    @between_rows
    def predict_set(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """The most probable classes that have this probability together: (row, class), True if it is one of them.

        At least this share of rows has its class in the set, if the probabilities are right: the default calibrates
        them (docs/intervals.md). The most probable class is always in the set.

        >>> import numpy as np
        >>> from streamlasso import RAPClassifier
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(1000, 2))
        >>> y = np.array(["low", "middle", "top"])[np.digitize(X[:, 0] + 0.3 * rng.normal(size=1000), [-1, 1])]
        >>> model = RAPClassifier().fit(X, y)
        >>> model.classes_[model.predict_set([[2.0, 0.0]], coverage=0.9)[0]]
        array(['middle', 'top'], dtype='<U6')
        >>> model.classes_[model.predict_set([[1.0, 0.0]], coverage=0.9)[0]]
        array(['middle', 'top'], dtype='<U6')
        """
        return sets_of(probabilities(Binomial().mean(self._decide(X))), refuse_coverage(coverage))

    @between_rows
    def predict(self, X: Any) -> np.ndarray:
        """The most probable class, given rows that follow the last one learnt, in order."""
        return self._predictions(self._decide(X))

    def _predictions(self, eta: np.ndarray) -> np.ndarray:
        """What `predict` gives for rows with this eta (row, learner)."""
        return self.classes_[best_class(eta)]

    # --- what it is ---------------------------------------------------------------------------------------------------

    @property
    @between_rows
    def coef_(self) -> np.ndarray:
        """The coefficients now, a row per model; of mixtures, their averages."""
        return np.vstack([learner.coef for learner in self._fitted()])

    @property
    @between_rows
    def intercept_(self) -> np.ndarray:
        """The intercepts now, one per model."""
        return np.array([learner.intercept for learner in self._fitted()])

    def _by_model(self, values: list[Any]) -> Any:
        if len(values) == 1:
            return values[0]
        if isinstance(values[0], Selected):
            return SelectedOfClasses(values, self._labels())
        return np.array(values) if np.isscalar(values[0]) else values

    def _labels(self) -> list[Any]:
        return self.classes_.tolist()

    def _whole(self) -> bool:
        return super()._whole() and len(self.classes_) >= 2
