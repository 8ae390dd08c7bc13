from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from streamlasso.core.state import Stateful

@final
class Relevance(Stateful):
    def __new__(cls, p: int) -> Self: ...
    def deviations(self) -> NDArray[np.float64]: ...
