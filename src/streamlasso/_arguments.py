"""How commands take their arguments."""

from __future__ import annotations

from cyclopts import Parameter

#: A dash alone is standard input or output, not an option.
DASH = Parameter(allow_leading_hyphen=True)
#: Without --no-quiet, --empty-keep and the like.
ONE_WAY = Parameter(negative="")


def names_in(written: list[str] | None) -> tuple[str, ...]:
    """Names from repeated options, or separated by commas.

    >>> names_in(["a,b", "c"])
    ('a', 'b', 'c')
    """
    return tuple(name for item in written or [] for name in item.split(","))
