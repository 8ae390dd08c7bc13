"""The lasso penalty."""

from dataclasses import dataclass


@dataclass(frozen=True)
class L1:
    """lam sum_j v_j |b_j|: sparse.

    >>> from streamlasso.penalties import L1
    >>> L1().l1_ratio
    1.0
    """

    @property
    def l1_ratio(self) -> float:
        """The share of the penalty that is l1."""
        return 1.0
