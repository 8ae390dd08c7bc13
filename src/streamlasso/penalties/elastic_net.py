"""The elastic net penalty."""

from dataclasses import dataclass
from numbers import Real

from streamlasso.penalties.base import Penalty


@dataclass(frozen=True)
class ElasticNet(Penalty):
    """`lam sum_j [l1_ratio v_j |b_j| + (1 - l1_ratio)/2 v_j^2 b_j^2]`: sparse, and correlated features share.

    >>> from streamlasso.penalties import ElasticNet
    >>> ElasticNet(l1_ratio=0.5)
    ElasticNet(l1_ratio=0.5)
    """

    l1_ratio: float = 0.5

    name = "elasticnet"

    def __post_init__(self) -> None:
        if isinstance(self.l1_ratio, bool) or not isinstance(self.l1_ratio, Real) or not 0 < self.l1_ratio <= 1:
            raise ValueError(f"ElasticNet(l1_ratio={self.l1_ratio!r}): use a share in (0, 1]; for 0 use Ridge()")
