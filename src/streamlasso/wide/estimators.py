"""The scikit-learn face of the sparse engine: classification and regression."""

from __future__ import annotations

from typing import Any, Self, cast

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from streamlasso.estimators.multiclass import best_class, probabilities, targets_of
from streamlasso.estimators.turns import between_rows
from streamlasso.estimators.validation import classes_of, named_classes, numbers_of, places_of
from streamlasso.families import Binomial, Family
from streamlasso.wide.base import WideEstimator
from streamlasso.wide.parameters import ATTRIBUTES, FAMILIES, METHOD, PARAMETERS, FamilyParameters, family_of


class WideClassifier(ClassifierMixin, WideEstimator):
    __doc__ = f"""Classification by millions of sparse features, row by row: logistic regression without settings.

    {METHOD} Two classes are one model; several are one model per class against the rest.

    Parameters
    ----------
    {PARAMETERS}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    coef_ : sparse array of shape (1, n_features) or (n_classes, n_features)
        The coefficients now: those of the experts in the proportions in which these are combined.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The intercepts now.
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

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn each row once, in order. A refused batch changes nothing.

        The first call names all `classes`, unless its rows show them.
        """
        self._take(X, y, sample_weight, classes)
        return self

    def progressive(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Predict, then learn, each row: the probabilities (row, class) as they were before the row was learnt."""
        eta = self._take(X, y, sample_weight, classes)
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

    @between_rows
    def predict(self, X: Any) -> np.ndarray:
        """The most probable class."""
        best = best_class(self._decide(X))
        return cast(np.ndarray, self.classes_[best])


class WideRegressor(FamilyParameters, RegressorMixin, WideEstimator):
    __doc__ = f"""Regression or counts from millions of sparse features, learnt row by row, without settings.

    {METHOD} The units of y and of the features do not matter.

    Parameters
    ----------
    family : {{"gaussian", "poisson"}}, default="gaussian"
        Squared error; or counts, with the log link.
    {PARAMETERS}

    Attributes
    ----------
    coef_ : sparse array of shape (1, n_features)
        The coefficients now: those of the experts in the proportions in which these are combined.
    intercept_ : float
        The intercept now.
    {ATTRIBUTES}

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from streamlasso import WideRegressor
    >>> X = sparse.random_array((2000, 100_000), density=1e-4, random_state=0, format="csr")
    >>> y = 3.0 + 2.0 * X[:, [7]].toarray().ravel()
    >>> model = WideRegressor().partial_fit(X, y)
    >>> model.coef_.shape, model.n_live_ < 20_000
    ((1, 100000), True)
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.family in FAMILIES and self._family().lowest == 0.0
        return tags

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn each row once, in order. A refused batch changes nothing."""
        self._take(X, y, sample_weight)
        return self

    def progressive(self, X: Any, y: Any, sample_weight: Any = None) -> np.ndarray:
        """Predict, then learn, each row: the means as they were predicted before the row was learnt."""
        eta = self._take(X, y, sample_weight)
        return self.learners_[0].family.means(eta[:, 0])

    def _family(self) -> Family:
        return family_of(self.family)

    def _targets(self, y: Any, n_rows: int, classes: Any, *, reset: bool) -> tuple[list[np.ndarray], None]:
        return [numbers_of(y, n_rows, self._family())], None

    @between_rows
    def predict(self, X: Any) -> np.ndarray:
        """The mean of the response."""
        eta = self._decide(X)
        return self.learners_[0].family.means(eta[:, 0])
