"""What a person wants to be told: a change, a loss above the baseline's, features gone or far out, no labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from streamlasso._text import number
from streamlasso.data.encoding import Encoder
from streamlasso.serve.learning.scores import Scores, Spread

KINDS = ("change", "loss", "missing", "range", "labels")
#: The recent loss is too high from this multiple of the running mean's on, after so many rows.
TOO_HIGH, ENOUGH = 1.05, 100
#: A feature that was there in most rows is gone when it is missing in so many in a row.
GONE = 50
#: Deviations from the mean from which on a value is far out; and rows without one until that is over.
FAR_OUT, CALM = 10.0, 100
#: Alarms that are kept as marks.
MOST_MARKS = 500


class Alarm(NamedTuple):
    """An alarm that begins (`firing`) or ends; a change only begins.

    about : the feature, or nothing
    """

    kind: str
    about: str
    firing: bool
    row: int
    time: float
    detail: str


class Watch:
    """Looks at the rows of a model, and keeps which alarms there are.

    firing : by kind and feature, the alarm
    gone : by feature, in how many rows it was missing at the end, and in how many in all
    far : by feature, the last row with a value far out
    """

    def __init__(self, state: dict[str, Any] | None = None) -> None:
        state = state or {}
        self.marks = [Alarm(*mark) for mark in state.get("marks", [])]
        self.firing = {(alarm.kind, alarm.about): alarm for alarm in (Alarm(*each) for each in state.get("firing", []))}
        self.gone: dict[str, list[int]] = {name: list(counts) for name, counts in state.get("gone", {}).items()}
        self.far: dict[str, int] = dict(state.get("far", {}))
        self.n_changes: int = state.get("n_changes", 0)

    def state(self) -> dict[str, Any]:
        return {"marks": self.marks, "firing": list(self.firing.values()), "gone": self.gone, "far": self.far} | {
            "n_changes": self.n_changes
        }

    def look(
        self, encoder: Encoder, X: np.ndarray, spread: Spread, scores: Scores, n_rows: int, time: float
    ) -> list[Alarm]:
        """The alarms that begin or end with these rows, of which the last is number n_rows - 1; `spread` is that of the
        rows before."""
        found = [*self._missing(encoder, X, n_rows), *self._range(encoder, X, spread, n_rows), *self._loss(scores)]
        return self._noted(found, n_rows - 1, time)

    def losses(self, scores: Scores, n_rows: int, time: float) -> list[Alarm]:
        """As `look`, of the losses alone."""
        return self._noted(list(self._loss(scores)), n_rows - 1, time)

    def labels(self, late: bool, seconds: float, n_rows: int, time: float) -> list[Alarm]:
        """Whether labels are late."""
        detail = f"there were predictions, and no labels for {number(seconds)} seconds" if late else "labels come again"
        return self._noted([("labels", "", late, detail)], n_rows - 1, time)

    def changes(self, n_changes: int, detail: str, n_rows: int, time: float) -> list[Alarm]:
        """The model has found a change."""
        if n_changes <= self.n_changes:
            return []
        self.n_changes = n_changes
        alarm = Alarm("change", "", True, n_rows - 1, time, detail)
        self._mark([alarm])
        return [alarm]

    def _noted(self, found: list[tuple[str, str, bool, str]], row: int, time: float) -> list[Alarm]:
        """Those that are news."""
        news = []
        for kind, about, firing, detail in found:
            if firing == ((kind, about) in self.firing):
                continue
            alarm = Alarm(kind, about, firing, max(row, 0), time, detail)
            if firing:
                self.firing[kind, about] = alarm
            else:
                del self.firing[kind, about]
            news.append(alarm)
        self._mark(news)
        return news

    def _mark(self, news: list[Alarm]) -> None:
        self.marks = [*self.marks, *news][-MOST_MARKS:]

    def _loss(self, scores: Scores) -> Iterator[tuple[str, str, bool, str]]:
        if scores.recent_n < ENOUGH:
            return
        model, baseline, _ = scores.recent / scores.recent_n
        if model > TOO_HIGH * baseline:
            yield "loss", "", True, f"the recent loss is {number(model)}, that of the running mean {number(baseline)}"
        elif model <= baseline:
            yield "loss", "", False, f"the recent loss is {number(model)}, below that of the running mean"

    def _missing(self, encoder: Encoder, X: np.ndarray, n_rows: int) -> Iterator[tuple[str, str, bool, str]]:
        for column in encoder.columns:
            place = encoder.place.get(column.missing_feature, X.shape[1])
            if place >= X.shape[1]:
                continue
            holes = X[:, place] > 0
            counts = self.gone.setdefault(column.name, [0, 0])
            last_there = np.flatnonzero(~holes)
            counts[0] = counts[0] + len(X) if not len(last_there) else len(X) - 1 - int(last_there[-1])
            counts[1] += int(holes.sum())
            if counts[0] >= GONE and 2 * (counts[1] - counts[0]) < n_rows - counts[0]:
                yield "missing", column.name, True, f"{column.name!r} is missing since {counts[0]} rows"
            elif counts[0] == 0:
                yield "missing", column.name, False, f"{column.name!r} is there again"

    def _range(
        self, encoder: Encoder, X: np.ndarray, spread: Spread, n_rows: int
    ) -> Iterator[tuple[str, str, bool, str]]:
        if spread.n < ENOUGH:
            return
        columns = [column.name for column in encoder.columns if column.is_numeric]
        places = np.array([encoder.place[name] for name in columns], dtype=int)
        known = places < len(spread.mean)
        columns = [name for name, is_known in zip(columns, known.tolist(), strict=True) if is_known]
        places = places[known]
        sd = spread.deviations[places]
        far = np.abs(X[:, places] - spread.mean[places]) > FAR_OUT * sd
        far &= sd > 0
        for j in np.flatnonzero(far.any(axis=0)).tolist():
            value = X[np.argmax(far[:, j]), places[j]]
            self.far[columns[j]] = n_rows
            usual = f"{number(spread.mean[places[j]])} +- {number(sd[j])}"
            yield "range", columns[j], True, f"{columns[j]!r} is {number(value)}, where it was {usual}"
        for name, row in list(self.far.items()):
            if n_rows - row >= CALM:
                del self.far[name]
                yield "range", name, False, f"{name!r} is where it was"
