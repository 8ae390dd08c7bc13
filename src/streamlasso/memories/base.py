"""What the engine asks of a memory."""

from __future__ import annotations

from collections.abc import Sequence

from streamlasso.core.base.part import Part


class Memory(Part):
    """How the past fades: every weight is multiplied by `decay` when a row arrives, and the last `length` rows count.

    Write your own as a frozen dataclass that gives `decay`, `length` or both (docs/extending.md).

    >>> from dataclasses import dataclass
    >>> from streamlasso import RAPRegressor
    >>> from streamlasso.memories import Memory
    >>> @dataclass(frozen=True)
    ... class HalfLife(Memory):
    ...     rows: float
    ...     @property
    ...     def decay(self):
    ...         return 0.5 ** (1 / self.rows)
    >>> model = RAPRegressor(memory=HalfLife(10)).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> round(model.effective_size_, 2)
    2.8
    """

    #: Whether several memories compete in its place.
    competes = False

    #: What every weight is multiplied by when a row arrives; 1 never forgets.
    decay: float = 1.0
    #: How many rows are remembered at most; 0 is no limit.
    length: int = 0

    def members(self) -> Sequence[Memory]:
        """The memories that compete: itself, or several."""
        return [self]
