from collections.abc import Mapping
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from streamlasso.core.wide.nursery import Nursery
from streamlasso.core.wide.rows import SparseRows
from streamlasso.core.wide.table import Table
from streamlasso.families import Family

ADMITTED_AT: dict[str, float | None]
EXPERTS: dict[int, list[dict[str, Any]]]
LARGEST_X: float
LEAST_X: float

def learn_each_named(models: list[Wide], x: Any, targets: list[float], weight: float) -> None: ...
def revive(
    settings: Mapping[str, Any], state: Mapping[str, NDArray[Any]], names: dict[int, str] | None = None
) -> Wide: ...

@final
class Wide(SparseRows):
    family: Family
    table: Table
    nursery: Nursery | None
    settings: dict[str, Any]
    names: dict[int, str] | None
    n_seen: int
    name_key: NDArray[np.uint64]
    def __new__(
        cls,
        family: Family,
        experts: int | list[dict[str, Any]] = 16,
        most: int = ...,
        memory: str = "full",
        fixed_units: bool = True,
    ) -> Self: ...
    def learn_named(self, x: Any, y: float, weight: float) -> float: ...
    def predict_named(self, x: Any) -> float: ...
    def eta_named(self, x: Any) -> float: ...
    def check_named(self, x: Any) -> None: ...
    def mirrored(self) -> Wide: ...
    def coef(self) -> tuple[NDArray[np.uint64], NDArray[np.float64]]: ...
    def spread_coef(self) -> tuple[NDArray[np.uint64], NDArray[np.float64], NDArray[np.float64]]: ...
    @property
    def intercept(self) -> float: ...
    @property
    def weights(self) -> NDArray[np.float64]: ...
    @property
    def nbytes(self) -> int: ...
    def state(self) -> dict[str, NDArray[Any]]: ...
    def restore(self, state: Mapping[str, NDArray[Any]]) -> None: ...
