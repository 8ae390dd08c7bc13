"""Earlier values of columns, and of the target, as features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamlasso.data.encoding.columns import Column
from streamlasso.data.encoding.target import Target


class Lags:
    """For each name the lags in rows, as columns of the same kind, and as many past values as the longest lag needs.

    steps : name -> lags, where the name is that of a column or of the target
    columns : (name, lag, the column of these values)
    past : name -> the last values, the latest last
    by_key : where rows have keys, the same of each key, and its last target
    """

    def __init__(
        self,
        steps: Mapping[str, list[int]],
        target: Target,
        columns: list[Column],
        past: Mapping[str, list[Any]] | None = None,
        last_target: Any = None,
        by_key: Mapping[str, Any] | None = None,
    ) -> None:
        self.target, self.target_column = target, target.column(target.name, last_target)
        self.steps = {name: list(lags) for name, lags in steps.items()}
        self.past = {name: list(values) for name, values in (past or {}).items()}
        self.by_key = {key: (past, last) for key, (past, last) in (by_key or {}).items()}
        by_name = {**{column.name: column for column in columns if column.can_lag}, target.name: self.target_column}
        for name in self.steps:
            if name not in by_name:
                raise ValueError(f"--lags {name} is not a column of numbers or text: use such a column, or the target")
        shown = {target.name: target.lagged_name}
        self.columns = [
            (name, lag, by_name[name].lagged(f"{shown.get(name, name)} lag {lag}"))
            for name, lags in self.steps.items()
            for lag in lags
        ]

    def shifted(
        self, filled: Mapping[str, np.ndarray], target: np.ndarray, keys: np.ndarray | None = None
    ) -> list[tuple[Column, np.ndarray]]:
        """Each column of lags with its values for the next rows, which then are past. With keys, the rows of a key
        have a past of their own."""
        columns = [column for _, _, column in self.columns]
        if keys is None or not self.steps:
            return list(zip(columns, self._shifted(filled, target), strict=True))
        before = self._labels_before(target)
        rows_of: dict[str, list[int]] = {}
        for i, key in enumerate(keys):
            rows_of.setdefault(key, []).append(i)
        pieces = []
        for key, rows in rows_of.items():
            own = {name: filled[name][rows] for name in self.steps if name in filled}
            pieces.append(self._shifted_of(key, own, target[rows], before[rows[0]]))
        self.past, self.target_column.last = {}, before[-1]
        back = np.argsort(np.concatenate(list(rows_of.values()) or [[]]), kind="stable")
        joined = [np.concatenate(values)[back] for values in zip(*pieces, strict=True)]
        return list(zip(columns, joined, strict=False))

    def next(self, filled: Mapping[str, np.ndarray], target: np.ndarray) -> list[tuple[Column, np.ndarray]]:
        """As `shifted`, of rows without a key, each of which may be the next one; nothing is kept of them."""
        out = []
        for name, lag, column in self.columns:
            own = filled[name] if name != self.target.name else self._known_each(target)
            series, n_past = self._series(name, own[:1])
            known = n_past and not column.missing(series[:n_past]).all()
            out.append((column, np.full(len(own), series[max(n_past - lag, 0)], own.dtype) if known else own))
        return out

    def _known_each(self, target: np.ndarray) -> np.ndarray:
        return self.target.lagged(self.target_column.filled_each(self.target.labels(target)))

    def _labels_before(self, target: np.ndarray) -> np.ndarray:
        """The last label before each of the next rows, of whatever key, and after them."""
        labels = self.target.labels(target)
        known = np.array([self.target_column.last], dtype=labels.dtype)
        return np.concatenate([known, self.target_column.filled(labels)])

    def _shifted_of(
        self, key: str, filled: Mapping[str, np.ndarray], target: np.ndarray, before: Any
    ) -> list[np.ndarray]:
        """For rows of one key. In its first row, which has no past, the last label of any key stands for its own: the
        other models have learnt by then, and its own label would tell them the answer."""
        is_new = key not in self.by_key
        self.past, last = self.by_key.get(key, ({}, before))
        self.target_column.last = self.target_column.missing_value if last is None else last
        out = self._shifted(filled, target)
        self.by_key[key] = self.past, self.target_column.state()["last"]
        if is_new and not self.target_column.missing(np.array([before]))[0]:
            for (name, _, _), values in zip(self.columns, out, strict=True):
                if name == self.target.name:
                    values[:1] = self.target.lagged(np.array([before], dtype=values.dtype))
        return out

    def _shifted(self, filled: Mapping[str, np.ndarray], target: np.ndarray) -> list[np.ndarray]:
        """The values of each column of lags, for rows that follow one another.

        Where the stream is shorter than the lag, its oldest value stands for it. In the first row that is its own:
        nothing has been learnt then, so this tells the prediction nothing.
        """
        if not self.steps:
            return []
        series = {name: self._series(name, self._known(name, filled, target)) for name in self.steps}
        out = []
        for name, lag, _ in self.columns:
            values, n_past = series[name]
            at = np.arange(n_past, len(values))
            out.append(values[np.maximum(at - lag, 0)])
        for name, lags in self.steps.items():
            values, _ = series[name]
            self.past[name] = values[max(len(values) - max(lags), 0) :].tolist()
        return out

    def _known(self, name: str, filled: Mapping[str, np.ndarray], target: np.ndarray) -> np.ndarray:
        """The values of a column; of the target, the last label where one is missing."""
        if name != self.target.name:
            return filled[name]
        return self.target.lagged(self.target_column.filled(self.target.labels(target)))

    def _series(self, name: str, values: np.ndarray) -> tuple[np.ndarray, int]:
        """Past values and new ones, and how many are past; the first value stands for missing ones before it."""
        past = self.past.get(name, [])
        series = np.empty(len(past) + len(values), dtype=values.dtype)
        series[: len(past)] = [np.nan if value is None and values.dtype != object else value for value in past]
        series[len(past) :] = values
        missing = next(column for of, _, column in self.columns if of == name).missing(series)
        first = int(np.argmin(missing)) if len(series) else 0
        series[:first] = series[first : first + 1]
        return series, len(past)

    def state(self) -> dict[str, Any]:
        """For a checkpoint, as JSON."""
        found = {"steps": self.steps, "past": _plain(self.past), "last_target": self.target_column.state()["last"]}
        if not self.by_key:
            return found
        return {**found, "by_key": {key: (_plain(past), last) for key, (past, last) in self.by_key.items()}}


def _plain(past: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """As JSON."""
    return {name: [None if value != value else value for value in values] for name, values in past.items()}
