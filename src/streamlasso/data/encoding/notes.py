"""What a user should know about the first rows before anything is learnt."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow

from streamlasso._text import listed_things
from streamlasso.data.encoding import reading
from streamlasso.data.encoding.detect_formats import format_notes
from streamlasso.data.encoding.encoder import Encoder
from streamlasso.data.encoding.leakage import leakage_notes, leaking_columns
from streamlasso.data.encoding.target import Target
from streamlasso.data.encoding.times.dates import SINCE_1970

#: Rows with a target that are needed to see that they are sorted, and the share of them that may be out of order.
ENOUGH, MOST_BACK = 20, 0.01


def first_row_notes(rows: pyarrow.RecordBatch, encoder: Encoder, formats: Mapping[str, str]) -> list[str]:
    """Unusual number formats, placeholders for missing values, times that are numbers, columns that give the target,
    and rows that are sorted by it."""
    target, columns = encoder.target, encoder.columns
    numbers = {column.name: column.read(rows[column.name])[0] for column in columns if column.is_numeric}
    if target.classes is None:
        numbers[target.name] = reading.finite_numbers(rows[target.name], target.format)[0]
    return [
        *format_notes(rows, formats, numbers),
        *placeholder_notes(numbers),
        *(f"{column.name} is read as {column.format} since 1970" for column in columns if column.format in SINCE_1970),
        *leakage_notes(target.name, leaking_columns(rows, target, columns)),
        *([] if encoder.in_time else sorted_notes(target, target.read(rows[target.name]))),
    ]


def sorted_notes(target: Target, cells: np.ndarray) -> list[str]:
    """A note if the rows are sorted by the target.

    >>> import numpy as np
    >>> from streamlasso.data.encoding import Target
    >>> sorted_notes(Target("y", "gaussian"), np.linspace(0, 1, 50))[0].split(":")[0]
    'the rows seem to be sorted by y'
    >>> sorted_notes(Target("y", "gaussian"), np.linspace(0, 1, 50) % 0.5)
    []
    """
    are_classes = target.classes is not None
    known = [cell for cell in cells.tolist() if cell is not None and cell == cell]
    known = [cell for cell in known if are_classes or not isinstance(cell, str)]
    if len(known) < ENOUGH or not _are_sorted(known, are_classes):
        return []
    return [
        f"the rows seem to be sorted by {target.name}: each is predicted from rows in which {target.name} was lower, "
        "or higher, so the losses say little; shuffle the file, or sort it by time"
    ]


def _are_sorted(values: list[Any], are_classes: bool) -> bool:
    """Classes, or few values, in one block each; numbers that hardly ever turn back."""
    steps = list(pairwise(values))
    changes = sum(before != after for before, after in steps)
    if are_classes:
        return 0 < changes < len(set(values))
    most = MOST_BACK * len(steps)
    back, forward = (sum(sign * (after - before) < 0 for before, after in steps) for sign in (1, -1))
    return changes > 0 and min(back, forward) <= most


#: How often a placeholder occurs at least, and how many other values the column has at least.
OFTEN, MANY = 3, 30
#: Columns that a note names.
MOST_NAMED = 5


def placeholder_in(values: np.ndarray) -> float | None:
    """A number far below all others, or one of nines far above them, that occurs repeatedly; None if there is none.

    >>> import numpy as np
    >>> from streamlasso.data.encoding.notes import placeholder_in
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
