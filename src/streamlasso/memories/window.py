"""A sliding window."""

from dataclasses import dataclass
from numbers import Integral


@dataclass(frozen=True)
class Window:
    """The last `n` rows weigh what they weigh, older ones nothing. Rows leave exactly: sums are rebuilt from the rows
    now and then.

    >>> from streamlasso.memories import Window
    >>> Window(200)
    Window(n=200)
    """

    n: int

    def __post_init__(self) -> None:
        if isinstance(self.n, bool) or not isinstance(self.n, Integral) or not 1 <= self.n <= 10**9:
            raise ValueError(f"Window(n={self.n!r}): a window holds a whole number of rows, from 1 to 10**9.")

    @property
    def decay(self) -> float:
        """What every weight is multiplied by when a row arrives."""
        return 1.0

    @property
    def length(self) -> int:
        """How many rows are remembered at most; 0 is no limit."""
        return int(self.n)
