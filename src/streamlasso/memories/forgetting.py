"""Exponential forgetting."""

from dataclasses import dataclass
from numbers import Real


@dataclass(frozen=True)
class Forgetting:
    """Every row weighs `r` times as much after each new one: `w_i = a_i r^(t - i)`; r = 1 never forgets.

    >>> from streamlasso.memories import Forgetting
    >>> Forgetting(0.99)
    Forgetting(r=0.99)
    """

    r: float

    def __post_init__(self) -> None:
        if isinstance(self.r, bool) or not isinstance(self.r, Real) or not 0 < self.r <= 1:
            raise ValueError(f"memory={self.r!r}: a forgetting factor lies in (0, 1]; 1 never forgets.")

    @property
    def decay(self) -> float:
        """What every weight is multiplied by when a row arrives."""
        return float(self.r)

    @property
    def length(self) -> int:
        """How many rows are remembered at most; 0 is no limit."""
        return 0
