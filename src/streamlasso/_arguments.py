"""How commands take their arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cyclopts import Parameter

#: A dash alone is standard input or output, not an option.
DASH = Parameter(allow_leading_hyphen=True)


def names_in(written: list[str] | None) -> tuple[str, ...]:
    """Names from repeated options, or separated by commas.

    >>> names_in(["a,b", "c"])
    ('a', 'b', 'c')
    """
    return tuple(name for item in written or [] for name in item.split(","))


def parse_lags(written: list[str]) -> dict[str, list[int]]:
    """Columns, each with how many rows back.

    >>> parse_lags(["y:1,24"]), parse_lags(["none"])
    ({'y': [1, 24]}, {})
    """
    lags: dict[str, list[int]] = {}
    if written == ["none"]:
        return lags
    for item in written:
        name, _, numbers = item.rpartition(":")
        try:
            found = sorted({int(number) for number in numbers.split(",")})
            if not name or found[0] < 1 or found[-1] > 100_000:
                raise ValueError
        except ValueError:
            raise ValueError(f"--lags {item} is invalid: use a column and how many rows back, say y:1,24") from None
        lags[name] = sorted({*lags.get(name, []), *found})
    return lags


@Parameter(name="*")
@dataclass(frozen=True)
class Columns:
    """Which columns are used, and how.

    Parameters
    ----------
    time
        The column with the time of each row. Left out: the first column of dates, if there is one.
    keep
        Use only these columns: --keep a,b or --keep a --keep b.
    drop
        Leave these columns out.
    lags
        Earlier values as features: --lags y:1,24 is the y of the row before and of 24 rows before; none adds none. Left
        out: run adds those of the target where rows are in the order of time, bench adds none.
    """

    time: str | None = None
    keep: list[str] | None = None
    drop: list[str] | None = None
    lags: list[str] | None = None

    def chosen(self) -> dict[str, Any]:
        """For the encoder."""
        lags = parse_lags(self.lags or [])
        return {"time": self.time, "keep": names_in(self.keep), "drop": names_in(self.drop), "lags": lags}


ALL_COLUMNS = Columns()
