"""Exponential forgetting."""

from dataclasses import dataclass
from numbers import Real

from streamlasso.memories.base import Memory


@dataclass(frozen=True)
class Forgetting(Memory):
    """Every row weighs `r` times as much after each new one: `w_i = a_i r^(t - i)`; r = 1 never forgets.

    >>> from streamlasso.memories import Forgetting
    >>> Forgetting(0.99)
    Forgetting(r=0.99)
    """

    r: float

    def __post_init__(self) -> None:
        if isinstance(self.r, bool) or not isinstance(self.r, Real) or not 0 < self.r <= 1:
            raise ValueError(f"Forgetting(r={self.r!r}) is not a forgetting factor: use a number in (0, 1]")

    @property
    def decay(self) -> float:  # type: ignore[override]
        return float(self.r)
