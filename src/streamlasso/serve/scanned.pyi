from typing import final

import numpy as np
from numpy.typing import NDArray

@final
class Scanner:
    def __new__(cls, *args: object, **kwargs: object) -> Scanner: ...
    def read(self) -> object: ...

def columns_in(
    body: bytes,
) -> tuple[dict[str, tuple[NDArray[np.float64], bool]], tuple[NDArray[np.float64], bool]] | None: ...
