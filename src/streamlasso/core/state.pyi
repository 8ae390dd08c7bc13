from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from numpy.typing import NDArray

FIXED: str

class Array(NamedTuple):
    name: str
    axes: tuple[str, ...]
    columns: tuple[Any, ...]
    dtype: type
    new: float

def array(
    name: str, *axes: str, attribute: str | None = None, dtype: type = ..., new: float = 0.0, **column: Any
) -> Array: ...
def under(prefix: str, state: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]: ...

class Stateful:
    STATE: ClassVar[tuple[Array, ...]]
    def parts(self) -> dict[str, Stateful]: ...
    def names(self) -> list[str]: ...
    def pack(self) -> bytes: ...
    def unpack(self, data: bytes) -> None: ...
    def state(self) -> dict[str, NDArray[Any]]: ...
    def restore(self, state: Mapping[str, NDArray[Any]]) -> None: ...
