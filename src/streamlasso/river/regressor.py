"""The regressor of river."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd
from river import base

from streamlasso.core.base.selected import Selected
from streamlasso.core.model import learn_together
from streamlasso.estimators.intervals import interval_of, levels_of, quantiles_of
from streamlasso.estimators.parameters import ATTRIBUTES, FAMILY, METHOD, NAMED_PARAMETERS, FamilyParameters
from streamlasso.estimators.turns import (
    between_rows,
    claimed,
    counting,
    gate_of,
    publish,
)
from streamlasso.river.base import NAMES, RAP
from streamlasso.river.frames import as_long, names_of, numbers_of, rows_of, weights_of


class RAPRegressor(FamilyParameters, RAP[float, dict[Hashable, float], Selected], base.MiniBatchRegressor):
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
    MAE: 0.201059
    >>> best = model.selected_
    >>> [best.coef.names[j] for j in best.support]
    ['gallup', 'ipsos', 'morning_consult', 'ordinal_date', 'rasmussen', 'you_gov']
    """

    def __post_init__(self) -> None:
        self._start(self._get_params())

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
            columns, learners = self._room_for(names_of(X))
            rows, weights = rows_of(columns, X), weights_of(w, X)
            target = numbers_of("y", as_long(y, X))
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
        names_of(X)
        family = self.learners_[0].settings["family"]
        eta = self.learners_[0].decision_each(rows_of(self.columns_, X))
        mean = family.means(eta)
        return pd.Series(mean, index=X.index, dtype=float)
