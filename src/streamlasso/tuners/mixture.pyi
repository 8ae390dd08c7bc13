from streamlasso.tuners.base import BuiltIn

POWERS: tuple[float, ...]
FACTORS: tuple[float, ...]
LEAST_RUNS: int

class Mixture(BuiltIn):
    @property
    def powers(self) -> tuple[float, ...]: ...
    @property
    def factors(self) -> tuple[float, ...]: ...
    @property
    def runs(self) -> int: ...
    @property
    def views(self) -> dict[str, list[int]] | None: ...
    def __init__(
        self,
        powers: tuple[float, ...] | list[float] = ...,
        factors: tuple[float, ...] | list[float] = ...,
        runs: int = 8,
        views: dict[str, list[int]] | None = None,
        carry: bool = True,
    ) -> None: ...
