"""Numbers that stand for a missing value, such as -999: they are read as numbers, with a note."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from streamlasso._text import listed_things

#: How often a placeholder occurs at least, and how many other values the column has at least.
OFTEN, MANY = 3, 30
#: Columns that a note names.
MOST_NAMED = 5


def placeholder_in(values: np.ndarray) -> float | None:
    """A number far below all others, or one of nines far above them, that occurs repeatedly; None if there is none.

    >>> import numpy as np
    >>> from streamlasso.data.encoding.placeholders import placeholder_in
    >>> placeholder_in(np.array([*np.linspace(5, 30, 100), -200, -200, -200]))
    -200.0
    >>> placeholder_in(np.linspace(-200, 30, 100))
    """
    different, counts = np.unique(values[np.isfinite(values)], return_counts=True)
    if len(different) <= MANY:
        return None
    (low, next_low), (next_high, high) = different[:2], different[-2:]
    if counts[0] >= OFTEN and low <= -9 and low == round(low) and next_low - low >= -low / 2:
        return float(low)
    if counts[-1] >= OFTEN and high >= 99 and set(f"{high:.10g}") == {"9"} and high - next_high >= high / 2:
        return float(high)
    return None


def placeholder_notes(columns: Mapping[str, np.ndarray]) -> list[str]:
    """A note for each placeholder, with the columns that have it."""
    found: dict[float, list[str]] = {}
    for name, values in columns.items():
        placeholder = placeholder_in(values)
        if placeholder is not None:
            found.setdefault(placeholder, []).append(name)
    return [
        f"{placeholder:.10g} may stand for a missing value ({listed_things('column', names, MOST_NAMED)}), but is read "
        "as a number: if so, leave such cells empty"
        for placeholder, names in found.items()
    ]
