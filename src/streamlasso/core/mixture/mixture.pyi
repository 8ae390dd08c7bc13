from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from streamlasso.core.model import Engine
from streamlasso.memories.base import Memory
from streamlasso.tuners.base import Tuner

@final
class MixtureLearner(Engine):
    @property
    def experts(self) -> list[Any]: ...
    @property
    def weights(self) -> NDArray[np.float64]: ...
    @property
    def memories(self) -> list[tuple[Memory, int] | None]: ...
    def __new__(
        cls, n_features: int, *, memory: Memory | None, tuner: Tuner, batch_size: int = 1, **settings: Any
    ) -> Self: ...
    def expert(self, m: int, k: int) -> tuple[float, float, NDArray[np.float64]]: ...
