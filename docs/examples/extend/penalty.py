"""A penalty of your own. Copy this file and change the class.

This one is an elastic net whose two parts are given as a ratio.
"""

from dataclasses import dataclass

from streamlasso.penalties import Penalty


@dataclass(frozen=True)
class Parts(Penalty):
    """`l1` parts lasso to `l2` parts ridge; `Parts(1, 0)` is the lasso."""

    l1: float = 3.0
    l2: float = 1.0

    name = "parts"

    def __post_init__(self):
        if min(self.l1, self.l2) < 0 or self.l1 + self.l2 == 0:
            raise ValueError(f"{self!r} is not a ratio: use two numbers, 0 or larger, not both 0")

    @property
    def l1_ratio(self):
        """The share of the penalty that is l1, in [0, 1]."""
        return self.l1 / (self.l1 + self.l2)
