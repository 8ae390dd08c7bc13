"""The settings of a model, as `PUT /models/{name}` takes them."""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec

from streamlasso.serve.problems import Problem
from streamlasso.settings import as_tuner, memory_of

#: The names that a model may have: they are part of addresses.
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
#: The most lags of a column, and the longest.
MOST_LAGS, LONGEST_LAG = 100, 10_000


class ModelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a model predicts, from what, and how long rows may wait for their label.

    The first eight are the options of `streamlasso run`.

    label_timeout : seconds without a label, while predictions are asked for, until an alarm
    waiting_most, waiting_age : rows that wait for their label, at most, and seconds that they may wait

    >>> ModelSettings(target="load", memory=500).for_learning()["memory"]
    500
    """

    target: str = "y"
    family: Literal["auto", "gaussian", "binomial", "poisson", "gamma"] = "auto"
    memory: float | str | None = None
    tuner: Literal["mixture", "logrms"] = "mixture"
    time: str | None = None
    keep: list[str] = []
    drop: list[str] = []
    lags: dict[str, list[int]] | None = None
    label_timeout: float = 3600.0
    waiting_most: int = 100_000
    waiting_age: float = 86_400.0

    def check(self) -> ModelSettings:
        """Itself, or a Problem that says which setting is wrong."""
        try:
            memory_of(self.memory, f"memory={self.memory!r}")
        except ValueError as error:
            raise Problem(422, str(error)) from None
        if not 0 < len(self.target) <= 1000:
            raise Problem(422, "target must be the name of what is predicted, of 1 to 1,000 characters")
        for name, value, most in (
            ("label_timeout", self.label_timeout, 1e9),
            ("waiting_most", self.waiting_most, 10_000_000),
            ("waiting_age", self.waiting_age, 1e9),
        ):
            if not 0 < value <= most:
                raise Problem(422, f"{name}={value!r} must be above 0, and at most {most:,.0f}")
        for name, steps in (self.lags or {}).items():
            if len(steps) > MOST_LAGS or not all(1 <= step <= LONGEST_LAG for step in steps):
                raise Problem(
                    422, f"lags: {name!r} needs at most {MOST_LAGS} numbers of rows from 1 to {LONGEST_LAG:,}"
                )
        return self

    def for_learning(self) -> dict[str, Any]:
        """For the estimator."""
        return {"memory": self.memory, "tuner": as_tuner(self.tuner)}

    def for_encoding(self) -> dict[str, Any]:
        """For `detect_encoder`."""
        lags = "auto" if self.lags is None else self.lags
        return {"keep": self.keep, "drop": self.drop, "lags": lags, "time": self.time}


def checked_name(name: str) -> str:
    """The name, if a model may have it."""
    if not re.fullmatch(NAME, name):
        raise Problem(
            422, "a model's name has 1 to 100 letters, digits, points, dashes and underscores, a letter or digit first"
        )
    return name
