"""The settings of a model, as `PUT /models/{name}` takes them."""

from __future__ import annotations

import re

import msgspec

from streamlasso.families import FAMILIES
from streamlasso.serve.limits import (
    LONGEST_LAG,
    LONGEST_NAME,
    LONGEST_WINDOW,
    MOST_LAGS,
    MOST_SECONDS,
    MOST_WAITING,
    NAME,
)
from streamlasso.serve.problems import Problem
from streamlasso.settings import as_memory, as_tuner, memory_of

#: Leaves the family to the first rows.
AUTO = "auto"


class ModelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a model predicts, from what, and how long rows may wait for their label.

    The first eight are the options of `streamlasso run`. With the family "auto" the first label settles whether labels
    are numbers or text, and the first 128 rows the family.

    label_timeout : seconds without a label, while predictions are asked for, until an alarm
    waiting_most, waiting_age : rows that wait for their label, at most, and seconds that they may wait

    >>> ModelSettings(target="load", memory=500).check().family
    'auto'
    """

    target: str = "y"
    family: str = AUTO
    memory: float | str | None = None
    tuner: str = "mixture"
    time: str | None = None
    keep: list[str] = []
    drop: list[str] = []
    lags: dict[str, list[int]] | None = None
    label_timeout: float = 3600.0
    waiting_most: int = 100_000
    waiting_age: float = 86_400.0

    @property
    def declares_kind(self) -> bool:
        """Whether the family is given, and with it what labels may be."""
        return self.family != AUTO

    def check(self) -> ModelSettings:
        """Itself, or a Problem that says which setting is wrong."""
        if self.family not in (AUTO, *FAMILIES):
            known = ", ".join((AUTO, *FAMILIES))
            raise Problem(422, f"family={self.family[:100]!r} is unknown: use one of {known}")
        try:
            memory = as_memory(memory_of(self.memory, f"memory={self.memory!r}"), as_tuner(self.tuner))
        except ValueError as error:
            raise Problem(422, str(error)[:500]) from None
        if memory is not None and any(member.length > LONGEST_WINDOW for member in memory.members()):
            raise Problem(422, f"memory={self.memory!r}: the service keeps windows of at most {LONGEST_WINDOW:,} rows")
        if not 0 < len(self.target) <= LONGEST_NAME:
            raise Problem(422, f"target must be the name of what is predicted, of 1 to {LONGEST_NAME:,} characters")
        for name, value, most in (
            ("label_timeout", self.label_timeout, MOST_SECONDS),
            ("waiting_most", self.waiting_most, MOST_WAITING),
            ("waiting_age", self.waiting_age, MOST_SECONDS),
        ):
            if not 0 < value <= most:
                raise Problem(422, f"{name}={value!r} must be above 0, and at most {most:,.0f}")
        for name, steps in (self.lags or {}).items():
            if len(steps) > MOST_LAGS or not all(1 <= step <= LONGEST_LAG for step in steps):
                raise Problem(
                    422, f"lags: {name[:100]!r} needs at most {MOST_LAGS} numbers of rows from 1 to {LONGEST_LAG:,}"
                )
        return self


def checked_name(name: str) -> str:
    """The name, if a model may have it."""
    if not re.fullmatch(NAME, name):
        raise Problem(
            422, "a model's name has 1 to 100 letters, digits, points, dashes and underscores, a letter or digit first"
        )
    return name
