"""The single sparse model that speaks for a mixture."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamlasso._html import selected_html
from streamlasso.core.engine import Engine
from streamlasso.core.mixture import MixtureLearner


class Selected(NamedTuple):
    """One expert of a mixture: sparse, where the averaged model need not be.

    memory, since : how its past fades, and how many rows had gone by when it began
    lam, lam_max : its penalty, and the least one that would empty it
    weight : its share of the mixture
    intercept, coef : the model
    """

    memory: Any
    since: int
    lam: float
    lam_max: float
    weight: float
    intercept: float
    coef: np.ndarray

    @property
    def support(self) -> np.ndarray:
        """The features that are in the model."""
        return np.flatnonzero(self.coef)

    def _repr_html_(self) -> str:
        return selected_html(self)


def selected(learner: Engine) -> Selected:
    """The sparsest of the experts that are believed about most; an AttributeError where there is one model only."""
    if not isinstance(learner, MixtureLearner):
        raise AttributeError(
            "selected_: there is one model only; tuner=Mixture() or memory=AdaptiveForgetting() select"
        )
    m, k, weight = learner.selected()
    memory, since = learner.memories[m]
    lam, lam_max, model = learner.expert(m, k)
    return Selected(memory, since, lam, lam_max, weight, float(model[0]), model[1:])


def single(learner: Engine) -> Selected:
    """One sparse model to show: this one, or of several the selected one."""
    if isinstance(learner, MixtureLearner):
        return selected(learner)
    settings = learner.settings
    return Selected(settings["memory"], 0, learner.lam, learner.lam_max, 1.0, learner.intercept, learner.coef)
