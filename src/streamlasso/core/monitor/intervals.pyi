from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from streamlasso.core.base.state import Stateful
from streamlasso.families.base import Family

LEVELS: NDArray[np.float64]

@final
class Quantiles(Stateful):
    n: int
    whole: bool
    lowest: float
    def __new__(cls, family: Family) -> Self: ...
    def around(self, etas: NDArray[np.float64], levels: Any) -> NDArray[np.float64]: ...
    def errors(self, levels: Any) -> NDArray[np.float64]: ...
    def walk(self, y: NDArray[np.float64], etas: NDArray[np.float64], levels: Any) -> NDArray[np.float64]: ...

def widths(n: int, levels: Any) -> NDArray[np.float64]: ...
def revived(family: Family, data: bytes) -> Quantiles: ...
