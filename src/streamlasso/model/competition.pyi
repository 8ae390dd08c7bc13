from collections.abc import Collection, Mapping
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from streamlasso.core.base.state import Stateful
from streamlasso.families.base import Family

MODEL: str

@final
class Competition(Stateful):
    competitors: list[str]
    def __new__(cls, family: Family, names: Collection[str]) -> Self: ...
    @property
    def weights(self) -> dict[str, float]: ...
    def blend(
        self, etas: Mapping[str, NDArray[np.float64]], y: NDArray[np.float64], scored: NDArray[np.bool_] | None = None
    ) -> NDArray[np.float64]: ...
