"""What the engine asks of a penalty."""

from streamlasso import _parts
from streamlasso.core.base.part import Part


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
    """

    #: The word for the penalty in settings.
    name: str | None = None

    get_params, set_params, __sklearn_clone__ = _parts.get_params, _parts.set_params, _parts.clone

    #: The share of the penalty that is l1, in [0, 1].
    l1_ratio: float
