from typing import Any

import numpy as np
from numpy.typing import NDArray

def number_columns(rows: list[dict[str, Any]]) -> dict[str, tuple[NDArray[np.float64], bool] | None]: ...
