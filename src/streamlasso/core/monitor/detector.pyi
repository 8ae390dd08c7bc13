from collections.abc import Sequence
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from streamlasso.core.base.state import Stateful
from streamlasso.core.monitor.attribution import DetectedChange
from streamlasso.families.base import Family

@final
class Changes(Stateful):
    n: int
    def __new__(cls, p: int, family: Family | None, false_alarms: float) -> Self: ...
    @property
    def n_alarms(self) -> int: ...
    def list(self) -> list[DetectedChange]: ...
    limit: float
    def watch(
        self,
        X: NDArray[np.float64],
        y: NDArray[np.float64],
        eta: NDArray[np.float64],
        loss: NDArray[np.float64],
        models: NDArray[np.float64],
    ) -> Sequence[int]: ...
    def update(self, x: float) -> bool: ...
