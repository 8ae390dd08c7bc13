from typing import final

LARGEST_X: float
LEAST_X: float

@final
class Entries: ...
