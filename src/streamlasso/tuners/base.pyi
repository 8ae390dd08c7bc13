from typing import ClassVar, type_check_only

import numpy as np
from numpy.typing import NDArray

from streamlasso.core.base.part import Part

class Tuner(Part):
    compiled: ClassVar[bool]
    name: ClassVar[str | None]
    competes: ClassVar[bool]
    carry: bool
    n_state: ClassVar[int]
    clamped: ClassVar[bool]

    @property
    def lambda_init(self) -> float | None: ...
    def check(self) -> None: ...
    def update(self, lam: float, slope: float, norm: float, lam_max: float, state: NDArray[np.float64]) -> float: ...

@type_check_only
class BuiltIn(Tuner):
    """What the compiled tuners have in common; there is no such class when the program runs."""

    name: ClassVar[str]
