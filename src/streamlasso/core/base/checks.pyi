import numpy as np
from numpy.typing import NDArray

LARGEST: float

def first_unfit(X: NDArray[np.float64]) -> int: ...
