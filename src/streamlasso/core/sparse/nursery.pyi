from typing import Any, Self, final

@final
class Nursery:
    state: Any
    def __new__(cls, lam: float, most: int = ...) -> Self: ...
    @property
    def nbytes(self) -> int: ...
