"""The ridge penalty."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Ridge:
    """lam/2 sum_j v_j^2 b_j^2: shrinks, and keeps every feature.

    >>> from streamlasso.penalties import Ridge
    >>> Ridge().l1_ratio
    0.0
    """

    @property
    def l1_ratio(self) -> float:
        """The share of the penalty that is l1."""
        return 0.0
