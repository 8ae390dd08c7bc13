"""A sliding window."""

from dataclasses import dataclass
from numbers import Integral

from streamlasso.memories.base import Memory


@dataclass(frozen=True)
class Window(Memory):
    """The last `n` rows weigh what they weigh, older ones nothing. Rows leave exactly: sums are rebuilt from the rows
    now and then.

    >>> from streamlasso.memories import Window
    >>> Window(200)
    Window(n=200)
    """

    n: int

    def __post_init__(self) -> None:
        if isinstance(self.n, bool) or not isinstance(self.n, Integral) or not 1 <= self.n <= 10**9:
            raise ValueError(f"Window(n={self.n!r}) is not a number of rows: use a whole number from 1 to 10**9")

    @property
    def length(self) -> int:  # type: ignore[override]
        return int(self.n)
