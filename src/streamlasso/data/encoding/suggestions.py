"""What to say of a column that does not exist."""

from __future__ import annotations

from difflib import get_close_matches

import numpy as np
import pyarrow

from streamlasso.data.encoding import reading

#: Columns that a message lists.
MOST_LISTED = 12


def refuse_unknown(what: str, name: str, columns: list[str]) -> None:
    """Raise an error with a suggestion if `name`, given as `what`, is not a column.

    >>> from streamlasso.data.encoding.suggestions import refuse_unknown
    >>> refuse_unknown("--target", "Citi", ["city", "y"])
    Traceback (most recent call last):
    ...
    ValueError: --target Citi is not a column: did you mean 'city'?
    """
    if name not in columns:
        raise ValueError(f"{what} {name} is not a column: {suggestion(name, columns)}")


def suggestion(name: str, columns: list[str]) -> str:
    """The column that may have been meant, or all columns."""
    if len(columns) == 1:
        return f"the only column is {columns[0]!r}; columns are separated by a comma, a semicolon, a tab, | or spaces"
    lower = {column.lower(): column for column in reversed(columns)}
    close = get_close_matches(name.lower(), lower, n=1)
    if close:
        return f"did you mean {lower[close[0]]!r}?"
    shown = ", ".join(columns[:MOST_LISTED]) + (", ..." if len(columns) > MOST_LISTED else "")
    return f"the columns are {shown}" + ("; the first line must hold their names" if _are_values(columns) else "")


def _are_values(names: list[str]) -> bool:
    """Whether the first line is a row rather than a line of names."""
    values, unfit = reading.finite_numbers(pyarrow.array(names))
    return bool(np.mean(unfit) < 0.5 and np.any(np.mod(values[~unfit], 1) != 0))
