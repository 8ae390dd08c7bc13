"""Columns, by what they hold: each knows its features, and the last value it saw."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import pyarrow

from streamlasso.core.values import LARGEST
from streamlasso.encoding import dates, reading
from streamlasso.encoding.number_formats import example

#: Levels of a text column with a feature of their own; all further ones share the feature OTHER.
MOST_LEVELS = 30
OTHER = "(other)"
#: Text of which more than this share of so many first rows are different has no levels.
MOSTLY_DIFFERENT, ENOUGH = 0.5, 100
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class Column:
    """A column of the table, and its features.

    kind, description : its name in a checkpoint, and for people
    missing_value, arrow_type : how it is written
    is_numeric, can_lag : whether its cells are numbers; whether earlier values can be features
    last : the last value that was there, which stands for missing ones
    format : how its cells are written, where that is not plain
    """

    kind: ClassVar[str]
    description: ClassVar[str]
    missing_value: ClassVar[Any]
    arrow_type: ClassVar[pyarrow.DataType] = pyarrow.string()
    is_numeric: ClassVar[bool] = False
    can_lag: ClassVar[bool] = True

    def __init__(self, name: str, last: Any = None, format: str | None = None) -> None:
        self.name, self.format = name, format
        self.last = self.missing_value if last is None else last

    def read(self, cells: pyarrow.Array) -> tuple[np.ndarray, np.ndarray]:
        """The values of the cells, and which cells do not belong in this column."""
        raise NotImplementedError

    def missing(self, values: np.ndarray) -> np.ndarray:
        """Which values are missing."""
        raise NotImplementedError

    def too_large(self, values: np.ndarray) -> np.ndarray:
        """Which values the engine cannot take."""
        return np.zeros(len(values), bool)

    def fill(self, X: np.ndarray, values: np.ndarray, place: dict[str, int]) -> None:
        """Write the features into X; `place` is the column of X of each feature."""
        raise NotImplementedError

    def fixed_features(self) -> list[str]:
        """The features that the column always has."""
        return []

    def levels_of(self, values: np.ndarray) -> dict[str, int]:
        """The levels in the order in which they appear, with the first row of each."""
        return {}

    def level_feature(self, level: str) -> str:
        return f"{self.name} = {level}"

    @property
    def missing_feature(self) -> str:
        return f"{self.name} missing"

    @property
    def content(self) -> str:
        """What the cells hold, in words."""
        return self.description

    @property
    def is_time(self) -> bool:
        """Whether it may be the time of the rows."""
        return False

    def is_useful(self, cells: pyarrow.Array) -> bool:
        """Whether its features can be learnt, by the first rows."""
        return True

    def filled(self, values: np.ndarray) -> np.ndarray:
        """Each value, or the last before it that was there; the column keeps the last of all."""
        there = np.where(self.missing(values), -1, np.arange(len(values)))
        latest = np.maximum.accumulate(there) if len(there) else there
        filled = np.where(latest >= 0, values[np.maximum(latest, 0)], self.last)
        if len(filled):
            self.last = filled[-1]
        return filled

    def lagged(self, name: str) -> Self:
        """A column of the same kind for its earlier values."""
        return type(self)(name)

    @property
    def is_empty(self) -> bool:
        """Whether no value has been seen."""
        return bool(self.missing(np.array([self.last]))[0])

    def state(self) -> dict[str, Any]:
        """For a checkpoint, as JSON."""
        last = None if self.is_empty else self._plain_last()
        return {"kind": self.kind, "name": self.name, "last": last, **({"format": self.format} if self.format else {})}

    def _plain_last(self) -> Any:
        return self.last


class NumberColumn(Column):
    """Numbers, one feature; `format` is how they are written (`number_formats.py`)."""

    kind = "number"
    description = "numbers"
    missing_value = np.nan
    arrow_type = pyarrow.float64()
    is_numeric = True

    def read(self, cells: pyarrow.Array) -> tuple[np.ndarray, np.ndarray]:
        return reading.numbers(cells, self.format)

    def missing(self, values: np.ndarray) -> np.ndarray:
        return np.isnan(values)

    def too_large(self, values: np.ndarray) -> np.ndarray:
        return np.abs(values) > LARGEST

    def fixed_features(self) -> list[str]:
        return [self.name]

    def fill(self, X: np.ndarray, values: np.ndarray, place: dict[str, int]) -> None:
        X[:, place[self.name]] = np.where(np.isnan(values), 0.0, values)

    @property
    def content(self) -> str:
        return f"numbers like {example(self.format)}" if self.format else "numbers"

    def _plain_last(self) -> float:
        return float(self.last)


class TextColumn(Column):
    """Text: one feature per level, 1 where the column holds it; levels are added as they appear, up to a number."""

    kind = "text"
    description = "text, one feature per level"
    missing_value = None

    def read(self, cells: pyarrow.Array) -> tuple[np.ndarray, np.ndarray]:
        return reading.texts(cells), np.zeros(len(cells), bool)

    def missing(self, values: np.ndarray) -> np.ndarray:
        return np.array([value is None for value in values], dtype=bool)

    def levels_of(self, values: np.ndarray) -> dict[str, int]:
        cells = values.tolist()
        return {level: cells.index(level) for level in dict.fromkeys(cells) if level is not None}

    def is_useful(self, cells: pyarrow.Array) -> bool:
        """Not what is different in nearly every row: names, identifiers, sentences."""
        text = reading.as_text(cells).drop_null()
        return len(text) < ENOUGH or len(text.unique()) <= MOSTLY_DIFFERENT * len(text)

    def fill(self, X: np.ndarray, values: np.ndarray, place: dict[str, int]) -> None:
        other = place.get(self.level_feature(OTHER))
        places = {level: place.get(self.level_feature(level), other) for level in dict.fromkeys(values.tolist())}
        for level, column in places.items():
            if level is not None and column is not None:
                X[np.equal(values, level), column] = 1.0


class DateColumn(Column):
    """Dates and times: the season as a wave and the day of the week (`days`), the hour as two waves (`hours`)."""

    kind = "date"
    description = "dates, as calendar features"
    missing_value = np.datetime64("NaT", "s")
    arrow_type = pyarrow.timestamp("s")
    can_lag = False

    def __init__(
        self, name: str, last: str | None = None, format: str | None = None, days: bool = True, hours: bool = False
    ) -> None:
        super().__init__(name, None if last is None else np.datetime64(last, "s"), format)
        self.days, self.hours = days, hours

    def read(self, cells: pyarrow.Array) -> tuple[np.ndarray, np.ndarray]:
        return dates.parse(cells, self.format)

    def missing(self, values: np.ndarray) -> np.ndarray:
        return np.isnat(values)

    @property
    def content(self) -> str:
        return "dates"

    @property
    def is_time(self) -> bool:
        return self.days

    def fixed_features(self) -> list[str]:
        season = [f"season {wave}" for wave in ("sin", "cos")]
        hours = [f"hour {wave}{k}" for k in ("", " 2") for wave in ("sin", "cos")]
        return [f"{self.name}: {name}" for name in [*season, *WEEKDAYS] * self.days + hours * self.hours]

    def fill(self, X: np.ndarray, values: np.ndarray, place: dict[str, int]) -> None:
        there = ~np.isnat(values)
        moments = np.where(there, values, np.datetime64(0, "s"))
        waves = [*(_season_and_weekday(moments) if self.days else []), *(_hour(moments) if self.hours else [])]
        for feature, wave in zip(self.fixed_features(), waves, strict=True):
            X[:, place[feature]] = np.where(there, wave, 0.0)

    def state(self) -> dict[str, Any]:
        return {**super().state(), "days": self.days, "hours": self.hours}

    def _plain_last(self) -> str:
        return str(self.last)


def _season_and_weekday(moments: np.ndarray) -> list[np.ndarray]:
    seconds = moments.astype(np.int64)
    year = moments.astype("datetime64[Y]").astype("datetime64[s]").astype(np.int64)
    angle = 2 * np.pi * (seconds - year) / (365.25 * 86_400)
    weekday = (seconds // 86_400 + 3) % 7
    return [*_waves(angle), *(weekday == k for k in range(7))]


def _hour(moments: np.ndarray) -> list[np.ndarray]:
    angle = 2 * np.pi * (moments.astype(np.int64) % 86_400) / 86_400
    return [*_waves(angle), *_waves(2 * angle)]


def _waves(angle: np.ndarray) -> list[np.ndarray]:
    """Rounded: where rows come every six hours, sin 2 angle is 0, and not a rounding error that would be scaled up."""
    return [np.round(wave, 12) for wave in (np.sin(angle), np.cos(angle))]


KINDS: dict[str, type[Column]] = {column.kind: column for column in (NumberColumn, TextColumn, DateColumn)}


def column_from(state: dict[str, Any]) -> Column:
    """The column whose state this is."""
    state = dict(state)
    return KINDS[state.pop("kind")](**state)
