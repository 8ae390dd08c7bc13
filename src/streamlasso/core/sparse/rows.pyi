from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlasso.core.base.lock import Gate

def learn_each(
    models: Sequence[SparseRows],
    rows: tuple[Any, ...],
    targets: list[NDArray[np.float64]],
    weight: NDArray[np.float64] | None,
    etas: NDArray[np.float64],
) -> None: ...

class SparseRows:
    gate: Gate
    def learn(
        self,
        starts: NDArray[np.int64],
        columns: NDArray[np.int64],
        values: NDArray[np.float64],
        y: NDArray[np.float64],
        weight: NDArray[np.float64] | None = None,
        before: NDArray[np.float64] | None = None,
    ) -> None: ...
    def decide(
        self, starts: NDArray[np.int64], columns: NDArray[np.int64], values: NDArray[np.float64]
    ) -> NDArray[np.float64]: ...
