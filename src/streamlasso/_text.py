"""Numbers, counts and lists as people read them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def number(value: float) -> str:
    """Three digits, or all before the point of a large number.

    >>> number(0.12345), number(12345.6), number(float("nan"))
    ('0.123', '12,346', 'n/a')
    """
    if math.isnan(value):
        return "n/a"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.3g}"


def number_range(values: Iterable[float]) -> str:
    """The lowest and the highest number, or the only one.

    >>> number_range([2.0, 2.0]), number_range([0.5, 2.0, 1.0, float("nan")])
    ('2', '0.5 to 2')
    """
    known = [value for value in values if not math.isnan(value)] or [math.nan]
    low, high = number(min(known)), number(max(known))
    return low if low == high else f"{low} to {high}"


def percent(share: float) -> str:
    """A share as a percentage.

    >>> percent(0.123), percent(float("inf"))
    ('12 %', 'n/a')
    """
    return f"{share:.0%}".replace("%", " %") if math.isfinite(share) else "n/a"


def count(n: int, thing: str) -> str:
    """So many things.

    >>> count(1, "row"), count(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{n:,} {thing}" + ("" if n == 1 else "s")


def listed(words: Sequence[str], most: int | None = None) -> str:
    """Words as a list in a sentence, `most` of them.

    >>> listed(["a"]), listed(["a", "b", "c"]), listed(["a", "b", "c", "d"], most=2)
    ('a', 'a, b and c', 'a, b and 2 more')
    """
    if most is not None and len(words) > most:
        return f"{', '.join(words[:most])} and {len(words) - most} more"
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def listed_things(thing: str, names: Sequence[str], most: int | None = None) -> str:
    """Things by their names, `most` of them.

    >>> listed_things("column", ["a"]), listed_things("column", ["a", "b"])
    ('column a', 'columns a and b')
    """
    return f"{thing}{'' if len(names) == 1 else 's'} {listed(names, most)}"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells as a table in Markdown.

    >>> print(markdown_table(["x", "y"], [["1", "2"]]), end="")
    | x | y |
    |---|---|
    | 1 | 2 |
    """
    rule = f"|{'---|' * len(head)}\n"
    first, *others = (f"| {' | '.join(row)} |\n" for row in [head, *rows])
    return "".join([first, rule, *others])
