from collections.abc import Mapping
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from streamlasso.core.sparse.rows import SparseRows
from streamlasso.core.sparse.table import Table
from streamlasso.families import Family
from streamlasso.tuners import Tuner

def revive_single(settings: Mapping[str, Any], state: Mapping[str, NDArray[Any]]) -> Single: ...

@final
class Single(SparseRows):
    family: Family
    table: Table
    tuner: Tuner
    settings: dict[str, Any]
    lam: float
    lam_max: float
    n_seen: int
    def __new__(
        cls,
        family: Family,
        tuner: Tuner,
        most: int = ...,
        fixed_units: bool = True,
        alpha: float = 0.5,
        beta: float = 1.0,
    ) -> Self: ...
    def coef(self) -> tuple[NDArray[np.uint64], NDArray[np.float64]]: ...
    def coef_slope(self) -> tuple[NDArray[np.uint64], NDArray[np.float64]]: ...
    @property
    def intercept(self) -> float: ...
    @property
    def nbytes(self) -> int: ...
    def state(self) -> dict[str, NDArray[Any]]: ...
    def restore(self, state: Mapping[str, NDArray[Any]]) -> None: ...
