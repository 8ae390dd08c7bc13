from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from streamlasso.families.base import Family

FEATURES_AT: int
MOST_FEATURES: int
CHANCES_AT: int
N_FIELDS: int

@final
class Moves:
    def __new__(
        cls,
        x: NDArray[np.float64],
        notes: NDArray[np.float64],
        past: NDArray[np.float64],
        seen: int,
        family: Family | None,
        mean: NDArray[np.float64],
    ) -> Self: ...
    def find(self, now: NDArray[np.float64], alarm: int, feature: int, previous: float) -> Self: ...
    def write(self, record: NDArray[np.float64]) -> None: ...
