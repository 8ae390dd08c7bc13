"""The ridge penalty."""

from dataclasses import dataclass

from streamlasso.penalties.base import Penalty


@dataclass(frozen=True)
class Ridge(Penalty):
    """`lam/2 sum_j v_j^2 b_j^2`: shrinks, and keeps every feature.

    >>> from streamlasso.penalties import Ridge
    >>> Ridge().l1_ratio
    0.0
    """

    name = "ridge"
    l1_ratio = 0.0
