"""Why a prediction is what it is."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

import numpy as np

from streamlasso.core.engine import Engine
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


def explained(learner: Engine, x: np.ndarray, names: Iterable[Hashable]) -> Explanation:
    """The prediction of a row as the next one. What bounds on far-out values take away counts to the baseline."""
    eta = float(learner.decision_each(x[None, :])[0])
    parts = learner.coef * (x - learner.feature_means())
    return Explanation(eta, eta - float(parts.sum()), Coefficients(parts, names))
