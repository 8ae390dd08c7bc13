import numpy as np
from numpy.typing import NDArray

def values_before(y: NDArray[np.float64], n: float, total: float, last: float, ahead: float) -> NDArray[np.float64]: ...
def faded_before(
    losses: NDArray[np.float64],
    counts: NDArray[np.uint8],
    sums: NDArray[np.float64],
    n: float,
    decay: float,
    most: NDArray[np.float64],
    few: float,
) -> NDArray[np.float64]: ...
