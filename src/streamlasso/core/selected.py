"""One sparse model, as the users of a mixture see it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamlasso._html import selected_html


class Selected(NamedTuple):
    """One expert of a mixture: sparse, where the averaged model need not be.

    memory, since : how its past fades, and how many rows had gone by when it began
    lam, lam_max : its penalty, and the least one that would empty it
    weight : its share of the mixture
    intercept, coef : the model
    kind : "lasso", or "ridge" where one predicts far better: it has all features
    """

    memory: Any
    since: int
    lam: float
    lam_max: float
    weight: float
    intercept: float
    coef: np.ndarray
    kind: str = "lasso"

    @property
    def support(self) -> np.ndarray:
        """The features that are in the model."""
        return np.flatnonzero(self.coef)

    def _repr_html_(self) -> str:
        return selected_html(self)
