"""Columns, by what they hold: each knows its features, and the last value it saw."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow

from streamlasso.core.base.checks import LARGEST
from streamlasso.data.encoding import reading
from streamlasso.data.encoding.reading import example
from streamlasso.data.encoding.times import dates

#: Levels of a text column with a feature of their own; all further ones share the feature OTHER.
MOST_LEVELS = 30
OTHER = "(other)"
#: Text of which more than this share of so many first rows, or more, are different has no levels.
MOSTLY_DIFFERENT, ENOUGH = 0.5, 10
#: The features of each part of a date, and seconds.
DATE_FEATURES = {
    "season": ("season sin", "season cos"),
    "weekday": ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"),
    "hour": ("hour sin", "hour cos", "hour sin 2", "hour cos 2"),
    "trend": ("trend",),
    "elapsed": ("elapsed",),
}
DAY, YEAR = 86_400, 31_556_952


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
        missing = self.missing(values)
        if missing.any():
            latest = np.maximum.accumulate(np.where(missing, -1, np.arange(len(values))))
            values = np.where(latest >= 0, values[np.maximum(latest, 0)], self.last)
        if len(values):
            self.last = values[-1]
        return values

    def filled_each(self, values: np.ndarray) -> np.ndarray:
        """Each value, or the last one: whichever row comes next. The column keeps nothing."""
        return np.where(self.missing(values), self.last, values)

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
    """Numbers, one feature; `format` is how they are written (`reading.py`)."""

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
    """Dates and times, by their `parts` (`spacing.parts_of`): the season and the hour as waves, the weekday, the trend
    (years since `start`), and the days that have elapsed since the row before."""

    kind = "date"
    description = "dates, as calendar features"
    missing_value = np.datetime64("NaT", "s")
    arrow_type = pyarrow.timestamp("s")
    can_lag = False

    def __init__(
        self,
        name: str,
        last: str | None = None,
        format: str | None = None,
        parts: Iterable[str] = ("season", "weekday", "trend"),
        start: str = "1970-01-01",
    ) -> None:
        if format is not None and format not in dates.KNOWN:
            raise ValueError(f"{format!r} is no format of dates")
        super().__init__(name, None if last is None else np.datetime64(last, "s"), format)
        self.parts, self.start = tuple(parts), np.datetime64(start, "s")
        #: What came before the rows that were filled last: a moment, or one for each of them.
        self._before: Any = self.last

    def read(self, cells: pyarrow.Array) -> tuple[np.ndarray, np.ndarray]:
        return dates.parse(cells, self.format)

    def missing(self, values: np.ndarray) -> np.ndarray:
        return np.isnat(values)

    @property
    def content(self) -> str:
        return "dates"

    @property
    def is_time(self) -> bool:
        return self.parts != ("hour",)

    def fixed_features(self) -> list[str]:
        return [f"{self.name}: {feature}" for part in self.parts for feature in DATE_FEATURES[part]]

    def filled(self, values: np.ndarray) -> np.ndarray:
        self._before = self.last
        return super().filled(values)

    def filled_each(self, values: np.ndarray) -> np.ndarray:
        self._before = np.full(len(values), self.last)
        return super().filled_each(values)

    def fill(self, X: np.ndarray, values: np.ndarray, place: dict[str, int]) -> None:
        there = ~np.isnat(values)
        moments = np.where(there, values, np.datetime64(0, "s"))
        features = [feature for part in self.parts for feature in self._part(part, moments)]
        for name, feature in zip(self.fixed_features(), features, strict=True):
            X[:, place[name]] = np.where(there, feature, 0.0)

    def _part(self, part: str, moments: np.ndarray) -> list[np.ndarray]:
        if part == "trend":
            return [(moments - self.start).astype(np.int64) / YEAR]
        if part == "elapsed":
            before = self._before if np.ndim(self._before) else np.concatenate([[self._before], moments[:-1]])
            return [np.maximum((moments - before).astype(np.int64), 0) / DAY]
        return {"season": _season, "weekday": _weekday, "hour": _hour}[part](moments)

    def state(self) -> dict[str, Any]:
        return {**super().state(), "parts": list(self.parts), "start": str(self.start)}

    def _plain_last(self) -> str:
        return str(self.last)


def _season(moments: np.ndarray) -> list[np.ndarray]:
    year = moments.astype("datetime64[Y]").astype("datetime64[s]")
    return _waves(2 * np.pi * (moments - year).astype(np.int64) / (365.25 * DAY))


def _weekday(moments: np.ndarray) -> list[np.ndarray]:
    weekday = (moments.astype(np.int64) // DAY + 3) % 7
    return [weekday == k for k in range(7)]


def _hour(moments: np.ndarray) -> list[np.ndarray]:
    angle = 2 * np.pi * (moments.astype(np.int64) % DAY) / DAY
    return [*_waves(angle), *_waves(2 * angle)]


def _waves(angle: np.ndarray) -> list[np.ndarray]:
    """Rounded: where rows come every six hours, sin 2 angle is 0, and not a rounding error that would be scaled up."""
    return [np.round(wave, 12) for wave in (np.sin(angle), np.cos(angle))]


KINDS: dict[str, type[Column]] = {column.kind: column for column in (NumberColumn, TextColumn, DateColumn)}


def column_from(state: dict[str, Any]) -> Column:
    """The column whose state this is."""
    state = dict(state)
    return KINDS[state.pop("kind")](**state)
