"""Forgetting as fast as the data ask for."""

from dataclasses import dataclass
from numbers import Real


@dataclass(frozen=True)
class AdaptiveForgetting:
    """The forgetting factor follows the data: one model for each of `factors`, averaged by how well they predict.

    With a tuner that moves one lam each of the models has its own; with `Mixture` each has a path of them.

    >>> from streamlasso.memories import AdaptiveForgetting
    >>> AdaptiveForgetting((0.9, 0.99, 1.0))
    AdaptiveForgetting(factors=(0.9, 0.99, 1.0))
    """

    factors: tuple[float, ...] = (0.9, 0.95, 0.98, 0.99, 0.995, 1.0)

    def __post_init__(self) -> None:
        factors = tuple(self.factors) if isinstance(self.factors, (tuple, list)) else ()
        if not factors or not all(_is_factor(r) for r in factors):
            raise ValueError(f"AdaptiveForgetting(factors={self.factors!r}): one factor or more, each in (0, 1]")
        object.__setattr__(self, "factors", factors)


def _is_factor(r: object) -> bool:
    return isinstance(r, Real) and not isinstance(r, bool) and 0 < float(r) <= 1
