from streamlasso.families.base import Family
from streamlasso.tuners.base import BuiltIn

POWERS: tuple[float, ...]
POWERS_OF_CLASSES: tuple[float, ...]
FACTORS: tuple[float, ...]
LEAST_RUNS: int

class Mixture(BuiltIn):
    @property
    def powers(self) -> tuple[float, ...] | None: ...
    @property
    def factors(self) -> tuple[float, ...]: ...
    @property
    def runs(self) -> int: ...
    @property
    def views(self) -> dict[str, list[int]] | None: ...
    def __init__(
        self,
        powers: tuple[float, ...] | list[float] | None = None,
        factors: tuple[float, ...] | list[float] = ...,
        runs: int = 8,
        views: dict[str, list[int]] | None = None,
        carry: bool = True,
    ) -> None: ...
    def powers_for(self, family: Family) -> tuple[float, ...]: ...
