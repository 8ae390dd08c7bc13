"""Columns, by what they hold: each knows its features, and the last value it saw."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow

from streamlasso.encoding import dates, reading

#: Levels of a text column with a feature of their own; all further ones share one.
MOST_LEVELS = 30
OTHER = "(other)"
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class Column(Protocol):
    """A column of the table. `read` gives its cells and which of them are unfit; `fill` writes its features into X.

    kind : its name in a checkpoint
    last : the last value that was there, carried forward where one is missing
    """

    kind: ClassVar[str]
    name: str
    last: Any

    def read(self, cells: pyarrow.Array) -> tuple[np.ndarray, np.ndarray]: ...
    def missing(self, values: np.ndarray) -> np.ndarray: ...
    def fixed(self) -> list[str]: ...
    def levels_of(self, values: np.ndarray) -> dict[str, int]: ...
    def fill(self, X: np.ndarray, values: np.ndarray, place: dict[str, int]) -> None: ...
    def state(self) -> dict[str, Any]: ...


class Number:
    """Numbers as they are; `form` says how they are written (`notation.py`)."""

    kind = "number"
    nothing = np.nan

    def __init__(self, name: str, last: float = np.nan, form: str | None = None) -> None:
        self.name, self.last, self.form = name, float("nan" if last is None else last), form

    def read(self, cells: pyarrow.Array) -> tuple[np.ndarray, np.ndarray]:
        return reading.numbers(cells, self.form)

    def missing(self, values: np.ndarray) -> np.ndarray:
        return np.isnan(values)

    def fixed(self) -> list[str]:
        return [self.name]

    def levels_of(self, values: np.ndarray) -> dict[str, int]:
        return {}

    def fill(self, X: np.ndarray, values: np.ndarray, place: dict[str, int]) -> None:
        X[:, place[self.name]] = np.where(np.isnan(values), 0.0, values)

    def state(self) -> dict[str, Any]:
        last = None if np.isnan(self.last) else float(self.last)
        return {"name": self.name, "last": last, **({"form": self.form} if self.form else {})}


class Levels:
    """Text: a feature a level, 1 where the column holds it; levels come as they appear, up to a number."""

    kind = "levels"
    nothing = None

    def __init__(self, name: str, last: str | None = None) -> None:
        self.name, self.last = name, last

    def read(self, cells: pyarrow.Array) -> tuple[np.ndarray, np.ndarray]:
        return reading.words(cells), np.zeros(len(cells), bool)

    def missing(self, values: np.ndarray) -> np.ndarray:
        return np.array([value is None for value in values], dtype=bool)

    def fixed(self) -> list[str]:
        return []

    def levels_of(self, values: np.ndarray) -> dict[str, int]:
        """The levels in the order in which they appear, with the row of each."""
        cells = values.tolist()
        return {level: cells.index(level) for level in dict.fromkeys(cells) if level is not None}

    def feature(self, level: str) -> str:
        return f"{self.name} = {level}"

    def fill(self, X: np.ndarray, values: np.ndarray, place: dict[str, int]) -> None:
        other = place.get(self.feature(OTHER))
        places = {level: place.get(self.feature(level), other) for level in dict.fromkeys(values.tolist())}
        for level, column in places.items():
            if level is not None and column is not None:
                X[np.equal(values, level), column] = 1.0

    def state(self) -> dict[str, Any]:
        return {"name": self.name, "last": self.last}


class Calendar:
    """Moments: the season as a wave, the day of the week, the hour as two waves; whichever of them the column has."""

    kind = "calendar"
    nothing = np.datetime64("NaT", "s")

    def __init__(
        self, name: str, last: str | None = None, form: str | None = None, days: bool = True, hours: bool = False
    ) -> None:
        self.name, self.form, self.days, self.hours = name, form, days, hours
        self.last = np.datetime64("NaT" if last is None else last, "s")

    def read(self, cells: pyarrow.Array) -> tuple[np.ndarray, np.ndarray]:
        return dates.moments(cells, self.form)

    def missing(self, values: np.ndarray) -> np.ndarray:
        return np.isnat(values)

    def fixed(self) -> list[str]:
        season = [f"{self.name}: season {wave}" for wave in ("sin", "cos")] + [f"{self.name}: {day}" for day in DAYS]
        hours = [f"{self.name}: hour {wave}{k}" for k in ("", " 2") for wave in ("sin", "cos")]
        return season * self.days + hours * self.hours

    def levels_of(self, values: np.ndarray) -> dict[str, int]:
        return {}

    def fill(self, X: np.ndarray, values: np.ndarray, place: dict[str, int]) -> None:
        there = ~np.isnat(values)
        seconds = np.where(there, values, np.datetime64(0, "s")).astype(np.int64)
        day, of_day = np.divmod(seconds, 86_400)
        waves = []
        if self.days:
            year = np.where(there, values, np.datetime64(0, "s")).astype("datetime64[Y]").astype("datetime64[s]")
            turn = 2 * np.pi * (seconds - year.astype(np.int64)) / (365.25 * 86_400)
            waves = [np.sin(turn), np.cos(turn), *((day + 3) % 7 == k for k in range(7))]
        if self.hours:
            turn = 2 * np.pi * of_day / 86_400
            waves += [np.sin(turn), np.cos(turn), np.sin(2 * turn), np.cos(2 * turn)]
        for feature, wave in zip(self.fixed(), waves, strict=True):
            X[:, place[feature]] = np.where(there, wave, 0.0)

    def state(self) -> dict[str, Any]:
        last = None if np.isnat(self.last) else str(self.last)
        return {"name": self.name, "last": last, "form": self.form, "days": self.days, "hours": self.hours}


KINDS: dict[str, Any] = {kind.kind: kind for kind in (Number, Levels, Calendar)}


def carried(column: Any, values: np.ndarray) -> np.ndarray:
    """Each value, or the last before it that was there; the column remembers the last of all."""
    there = np.where(column.missing(values), -1, np.arange(len(values)))
    latest = np.maximum.accumulate(there) if len(there) else there
    filled = np.where(latest >= 0, values[np.maximum(latest, 0)], column.last)
    if len(filled):
        column.last = filled[-1]
    return filled
