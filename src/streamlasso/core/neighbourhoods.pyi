from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from streamlasso.core.learner import Learner
from streamlasso.core.state import Stateful

@final
class Neighbourhoods(Stateful):
    @property
    def learners(self) -> list[Learner]: ...
    @property
    def first(self) -> int: ...
    @property
    def n_seen(self) -> int: ...
    def __new__(cls, p: int, first: int, last: int, **settings: Any) -> Self: ...
    def learn(
        self,
        X: NDArray[np.float64],
        record: NDArray[np.float64],
        coef: NDArray[np.float64] | None,
        variance: NDArray[np.float64] | None,
    ) -> None: ...
    def constant(self) -> NDArray[np.bool_]: ...
    def now(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
