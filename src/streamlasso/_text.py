"""Numbers, counts, lists and other people's text as people read them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

#: What a terminal may obey, or that hides what is printed: control characters, changes of direction, half characters.
UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str) -> str:
    """Text that a terminal only shows: anything it could obey is spelt out.

    >>> print(plain("\x1b[2Jload [kW]"))
    \\x1b[2Jload [kW]
    """
    return UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode(), text)


def shortened(value: object, most: int = 60) -> str:
    """A cell for a message, which may be a book.

    >>> shortened("9" * 400, most=10)
    '9999999999... (400 characters)'
    """
    text = str(value)
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"


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


def share_of(share: float) -> str:
    """A share as a percentage, with the digits that it has.

    >>> share_of(0.9), share_of(0.975), share_of(0.8987)
    ('90 %', '97.5 %', '89.87 %')
    """
    return f"{100 * share:.4g} %"


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
