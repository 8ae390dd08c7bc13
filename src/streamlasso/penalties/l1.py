"""The lasso penalty."""

from dataclasses import dataclass

from streamlasso.penalties.base import Penalty


@dataclass(frozen=True)
class L1(Penalty):
    """`lam sum_j v_j |b_j|`: sparse.

    >>> from streamlasso.penalties import L1
    >>> L1().l1_ratio
    1.0
    """

    name = "l1"
    l1_ratio = 1.0
