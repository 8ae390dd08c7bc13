"""What the engine asks of a penalty."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlasso.core.base.part import Part

if TYPE_CHECKING:
    import numpy as np

#: What a penalty without an `l1_ratio` gives.
REQUIRED = ("value", "prox", "dual_norm")


class Penalty(Part):
    """`lam sum_j [l1_ratio v_j |b_j| + (1 - l1_ratio)/2 v_j^2 b_j^2]`, with v_j the units of docs/method.md.

    Write your own as a frozen dataclass that gives `l1_ratio` (docs/extending.md).

    >>> from dataclasses import dataclass
    >>> from streamlasso import RAPRegressor
    >>> from streamlasso.penalties import Penalty
    >>> @dataclass(frozen=True)
    ... class MostlyL1(Penalty):
    ...     l1_ratio = 0.9
    >>> RAPRegressor(penalty=MostlyL1()).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0]).n_seen_
    3

    Any other convex penalty `lam P(u)`, with u_j = v_j b_j, gives three methods instead, and needs a tuner of one lam.
    """

    #: The word for the penalty in settings.
    name: str | None = None
    #: The share of the penalty that is l1, in [0, 1]; None for one that gives the methods.
    l1_ratio: float | None = None

    def value(self, u: np.ndarray) -> float:
        """P(u)"""
        raise NotImplementedError

    def prox(self, u: np.ndarray, step: float) -> np.ndarray:
        """The z with the least `|z - u|^2 / 2 + step P(z)`."""
        raise NotImplementedError

    def dual_norm(self, g: np.ndarray) -> float:
        """The smallest lam at which u = 0 is best where the loss falls as g does."""
        raise NotImplementedError

    def check(self) -> None:
        """Refuse a penalty that is none."""
        if self.l1_ratio is None:
            missing = [name for name in REQUIRED if getattr(type(self), name) is getattr(Penalty, name)]
            if missing:
                raise TypeError(
                    f"{type(self).__name__}: a penalty gives l1_ratio, or {', '.join(REQUIRED)}; missing: "
                    f"{', '.join(missing)}"
                )
        elif not 0 <= self.l1_ratio <= 1:
            raise ValueError(f"penalty={self!r} has l1_ratio {self.l1_ratio}: it must lie in [0, 1]")
