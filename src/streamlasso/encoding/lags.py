"""Earlier values of columns, and of the target, as features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamlasso.encoding.columns import Column
from streamlasso.encoding.target import Target


class Lags:
    """For each name the lags in rows, as columns of the same kind, and as many past values as the longest lag needs.

    steps : name -> lags, where the name is that of a column or of the target
    columns : (name, lag, the column of these values)
    past : name -> the last values, the latest last
    """

    def __init__(
        self,
        steps: Mapping[str, list[int]],
        target: Target,
        columns: list[Column],
        past: Mapping[str, list[Any]] | None = None,
        last_target: Any = None,
    ) -> None:
        self.target, self.target_column = target, target.column(target.name, last_target)
        self.steps = {name: list(lags) for name, lags in steps.items()}
        self.past = {name: list(values) for name, values in (past or {}).items()}
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

    def shifted(self, filled: Mapping[str, np.ndarray], target: np.ndarray) -> list[tuple[Column, np.ndarray]]:
        """Each column of lags with its values for the next rows, which then are past.

        Where the stream is shorter than the lag, its oldest value stands for it. In the first row that is its own:
        nothing has been learnt then, so this tells the prediction nothing.
        """
        if not self.steps:
            return []
        series = {name: self._series(name, self._known(name, filled, target)) for name in self.steps}
        out = []
        for name, lag, column in self.columns:
            values, n_past = series[name]
            at = np.arange(n_past, len(values))
            out.append((column, values[np.maximum(at - lag, 0)]))
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
        past = {name: [None if value != value else value for value in values] for name, values in self.past.items()}
        return {"steps": self.steps, "past": past, "last_target": self.target_column.state()["last"]}
