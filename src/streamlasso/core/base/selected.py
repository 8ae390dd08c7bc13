"""One sparse model, as users see it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamlasso._html import selected_html


class Selected(NamedTuple):
    """One sparse model that a person can read: the features that matter, refitted without the others.

    intercept, coef : the model; coefficients of features that do not matter are 0
    since : the number of rows that had been learnt when these features were selected
    inclusion : of each feature, the probability that it matters
    importance : of each feature, how far the averaged model's prediction (of classes and counts, eta) moves when it
        rises by its standard deviation

    >>> import numpy as np
    >>> from streamlasso import RAPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 8)) * [1, 1, 10, 1, 1, 1, 1, 1]
    >>> best = RAPRegressor().fit(X, X[:, 2] - 4 * X[:, 5] + rng.normal(size=500)).selected_
    >>> best.support, best.coef[best.support].round(1)
    (array([2, 5]), array([ 1., -4.]))
    >>> best.importance[best.support].round(0), best.inclusion[best.support].round(2)
    (array([10.,  4.]), array([1., 1.]))
    """

    intercept: float
    coef: np.ndarray
    since: int
    inclusion: np.ndarray
    importance: np.ndarray

    @property
    def support(self) -> np.ndarray:
        """The features that are in the model."""
        return np.flatnonzero(self.coef)

    def _repr_html_(self) -> str:
        return selected_html(self)
