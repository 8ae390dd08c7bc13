"""Numbers: one model of a family."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from streamlasso.core.base.selected import Selected
from streamlasso.estimators.base import RAP
from streamlasso.estimators.intervals import interval_of, levels_of, quantiles_of
from streamlasso.estimators.parameters import ARRAY_ATTRIBUTES, FAMILY, METHOD, PARAMETERS, FamilyParameters
from streamlasso.estimators.turns import between_rows
from streamlasso.estimators.validation import numbers_of, refuse_no_target
from streamlasso.settings import as_family


class RAPRegressor(RegressorMixin, FamilyParameters, RAP[float, Selected]):
    __doc__ = f"""Sparse regression on a stream that may change: a generalised linear model that tunes itself.

    {METHOD}
    Parameters
    ----------
    {FAMILY}
    {PARAMETERS}

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The coefficients now; of a mixture, their average.
    intercept_ : float
        The intercept now.
    lambda_, lambda_max_ : float
        The penalty, and the smallest penalty at which all coefficients are 0.
    selected_ : Selected
        Of a mixture, one sparse model to read: support, intercept, coef, since, inclusion, importance
        (docs/what_matters.md). If the features have names, so has coef: `selected_.coef["wind"]`.
    {ARRAY_ATTRIBUTES}

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
    (array([1]), 500)
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with suppress(ValueError):
            tags.target_tags.positive_only = as_family(self.family).check_target(np.array([-1.0])) is not None
        return tags

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn each row once, in order. A refused batch changes nothing."""
        return self._take(X, y, sample_weight)

    def _targets(self, y: Any, n_rows: int, classes: Any, *, reset: bool) -> tuple[list[np.ndarray], None]:
        refuse_no_target(self, y)
        family = as_family(self.family) if reset else self._first.settings["family"]
        return [numbers_of(y, n_rows, family)], None

    @between_rows
    def predict(self, X: Any) -> np.ndarray:
        """The mean of the response, given rows that follow the last one learnt, in order (docs/mixture.md)."""
        return self._predictions(self._decide(X))

    @between_rows
    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Where the response will be, with this probability: (row, low and high), for rows as `predict` takes them.

        The share of responses inside is kept at `coverage` while the stream changes; see docs/intervals.md. Before the
        third row is learnt the interval has no end.

        >>> import numpy as np
        >>> from streamlasso import RAPRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(2000, 3))
        >>> y = X[:, 0] + rng.normal(size=2000)
        >>> RAPRegressor().fit(X, y).predict_interval([[1.0, 0.0, 0.0]], coverage=0.9).round(1)
        array([[-0.8,  2.9]])
        """
        return interval_of(self._first, self._decide(X)[:, 0], coverage)

    @between_rows
    def predict_quantiles(self, X: Any, levels: Any) -> np.ndarray:
        """Quantiles of the response: (row, level)."""
        return quantiles_of(self._first, self._decide(X)[:, 0], levels_of(levels))

    def _predictions(self, eta: np.ndarray) -> np.ndarray:
        """What `predict` gives for rows with this eta (row, learner)."""
        return self._first.settings["family"].means(eta[:, 0])

    @property
    @between_rows
    def coef_(self) -> np.ndarray:
        """The coefficients now; of a mixture, their average."""
        return self._first.coef
