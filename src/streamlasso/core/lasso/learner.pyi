from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from streamlasso.core.model import Engine
from streamlasso.families.base import Family
from streamlasso.memories.base import Memory
from streamlasso.penalties.base import Penalty
from streamlasso.tuners.base import Tuner

def whole_rows(history: int, batch_size: int, length: int) -> int: ...

@final
class Learner(Engine):
    started: bool
    @property
    def n_tuner(self) -> int: ...
    def folded(self) -> Learner: ...
    def settle(self) -> None: ...
    def __new__(
        cls,
        n_features: int,
        *,
        family: Family,
        memory: Memory,
        penalty: Penalty,
        tuner: Tuner,
        gradient: str = "exact",
        curvature: str = "updated",
        lambda_init: float | None = None,
        penalty_factor: NDArray[np.float64] | None = None,
        fit_intercept: bool = True,
        standardize: bool = True,
        history: int = 64,
        batch_size: int = 1,
        false_alarms: float = 0.0,
    ) -> Self: ...
