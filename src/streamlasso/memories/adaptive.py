"""Forgetting as fast as the data ask for."""

from collections.abc import Sequence
from dataclasses import dataclass

from streamlasso.memories.base import Memory
from streamlasso.memories.forgetting import Forgetting


@dataclass(frozen=True)
class AdaptiveForgetting(Memory):
    """The forgetting factor follows the data: one model for each of `factors`, averaged by how well they predict.

    With a tuner that moves one lam each of the models has its own; with `Mixture` each has a path of them.

    >>> from streamlasso.memories import AdaptiveForgetting
    >>> AdaptiveForgetting((0.9, 0.99, 1.0))
    AdaptiveForgetting(factors=(0.9, 0.99, 1.0))
    """

    factors: tuple[float, ...] = (0.9, 0.95, 0.98, 0.99, 0.995, 1.0)

    competes = True

    def __post_init__(self) -> None:
        try:
            factors = tuple(Forgetting(r).r for r in self.factors) if isinstance(self.factors, (tuple, list)) else ()
        except ValueError:
            factors = ()
        if not factors:
            raise ValueError(f"AdaptiveForgetting(factors={self.factors!r}): use one factor or more, each in (0, 1]")
        object.__setattr__(self, "factors", factors)

    def members(self) -> Sequence[Memory]:
        return [Forgetting(r) for r in self.factors]
