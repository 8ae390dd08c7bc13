"""Why a prediction is what it is."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

import numpy as np

from streamlasso.core.model import Engine
from streamlasso.estimators.coefficients import Coefficients


class Explanation(NamedTuple):
    """A prediction as a sum: `eta = baseline + contributions.sum()`.

    eta : the prediction before the link: the mean itself for numbers, the log odds for classes, the logarithm of the
        mean for counts and positive responses
    baseline : eta of a row whose features all have their mean, with what the last errors add
    contributions : of each feature, its coefficient times its distance from its mean
    """

    eta: float
    baseline: float
    contributions: Coefficients


def explained_change(
    learner: Engine, before: Engine, x: np.ndarray, names: Iterable[Hashable], places: np.ndarray
) -> Explanation:
    """How an earlier model's prediction of a row became this one's: the change of eta, and of each coefficient times
    the feature's distance from its mean now. What else changed counts to the baseline. `places`: where each feature is
    in the earlier model; -1 for one that it did not have, or that had no effect then."""
    there = places >= 0
    old, row = np.zeros(len(x)), np.zeros(before.n_features)
    old[there] = before.coef[places[there]]
    row[places[there]] = x[there]
    eta = float(learner.decision_each(x[None, :])[0]) - float(before.decision_each(row[None, :])[0])
    parts = (learner.coef - old) * (x - learner.feature_means())
    return Explanation(eta, eta - float(parts.sum()), Coefficients(parts, names))


def explained(learner: Engine, x: np.ndarray, names: Iterable[Hashable]) -> Explanation:
    """The prediction of a row as the next one. What bounds on far-out values take away counts to the baseline."""
    eta = float(learner.decision_each(x[None, :])[0])
    parts = learner.coef * (x - learner.feature_means())
    return Explanation(eta, eta - float(parts.sum()), Coefficients(parts, names))
