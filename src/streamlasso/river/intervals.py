"""Intervals for any regressor of river."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from river import base
from river.conf.interval import Interval

from streamlasso.core.monitor.intervals import Quantiles
from streamlasso.estimators.intervals import Ends, refuse_coverage
from streamlasso.families import Gaussian
from streamlasso.river.regressor import RAPRegressor


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
