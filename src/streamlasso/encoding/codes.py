"""Numbers that stand for no value, such as -999: they are read as they are, but not in silence."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from streamlasso.encoding.forms import listed

#: A code is met so often at least, and the other values are so many different ones.
OFTEN, MANY = 3, 30


def code_in(values: np.ndarray) -> float | None:
    """A number far below all others, or one of nines far above them, that comes again and again; None if none does.

    >>> import numpy as np
    >>> from streamlasso.encoding.codes import code_in
    >>> code_in(np.array([*np.linspace(5, 30, 100), -200, -200, -200]))
    -200.0
    >>> code_in(np.linspace(-200, 30, 100))
    """
    different, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    if len(different) <= MANY:
        return None
    (low, next_low), (next_high, high) = different[:2], different[-2:]
    if counts[0] >= OFTEN and low <= -9 and low == round(low) and next_low - low >= -low / 2:
        return float(low)
    if counts[-1] >= OFTEN and high >= 99 and set(f"{high:.10g}") == {"9"} and high - next_high >= high / 2:
        return float(high)
    return None


def said(columns: Mapping[str, np.ndarray]) -> list[str]:
    """A sentence for each code, with the columns that have it."""
    found: dict[float, list[str]] = {}
    for name, values in columns.items():
        code = code_in(values)
        if code is not None:
            found.setdefault(code, []).append(name)
    return [
        f"{code:.10g} looks like no value ({listed(names)}), but is read as a number: leave such cells empty"
        for code, names in found.items()
    ]
