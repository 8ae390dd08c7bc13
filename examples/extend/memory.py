"""A memory of your own. Copy this file and change the class.

This one is a forgetting factor that is given as a half-life.
"""

from dataclasses import dataclass

from streamlasso.memories import Memory


@dataclass(frozen=True)
class HalfLife(Memory):
    """A row weighs half as much after `rows` more rows."""

    rows: float

    def __post_init__(self):
        if not self.rows > 0:
            raise ValueError(f"{self!r} is not a half-life: use a positive number of rows")

    @property
    def decay(self):
        """What every weight is multiplied by when a row arrives."""
        return 0.5 ** (1 / self.rows)

    # Also possible: `length`, how many rows are remembered at most (0, the default, is no limit).
