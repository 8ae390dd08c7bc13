"""A model for every key of a run, beside the one of all rows, with what each key has lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from streamlasso.baselines import ClassBaselines, Compared, NumberBaselines
from streamlasso.core.model import Engine
from streamlasso.estimators.base import Rows
from streamlasso.keyed.files import filled, names_of, numbers_of, sizes_of
from streamlasso.keyed.groups import Groups, groups_of
from streamlasso.keyed.models import Models
from streamlasso.report.key_sums import KeyLosses, KeySums

#: How the names of the arrays begin, among those of a checkpoint.
PREFIX = "keys/"


class KeyModels:
    """The models of all keys, the sums of their losses, and the baselines of each key.

    make_baselines : new ones, or those of a state
    """

    def __init__(self, models: Models, make_baselines: Callable[..., Any]) -> None:
        self.models, self.make_baselines = models, make_baselines
        self.sums = KeySums()
        self.baselines: dict[Any, Any] = {}

    def __len__(self) -> int:
        return len(self.models.places)

    # --- rows ---------------------------------------------------------------------------------------------------------

    def learn(self, groups: Groups, rows: Rows, pooled: np.ndarray) -> np.ndarray:
        """eta (row, learner) before each row, given that of the pooled model."""
        return self.models.learn(groups, rows, _columns(pooled))

    def predict(self, keys: np.ndarray, X: np.ndarray, pooled: np.ndarray) -> np.ndarray:
        """eta (row, learner), each row as the next one of its key; of a key that is not known the pooled model's."""
        return self.models.predict(groups_of(keys, len(keys)), X, _columns(pooled))

    def add(self, groups: Groups, scored: np.ndarray, *losses: np.ndarray) -> None:
        """The losses of rows that were learnt: the own, those of the pooled model and of the running mean."""
        places = np.array([self.models.places[key] for key in groups.keys])
        numbers = np.empty(len(scored), dtype=np.intp)
        numbers[groups.order] = np.repeat(places, np.diff(groups.first))
        self.sums.add(numbers, scored, *losses)

    # --- baselines ----------------------------------------------------------------------------------------------------

    def etas(self, groups: Groups, values: np.ndarray, of_all: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Those of the baselines of each key; before the first value of a key those of all rows."""
        etas = {name: eta.copy() for name, eta in of_all.items()}
        for baselines, rows in self._of_each(groups, values, NumberBaselines):
            n_before = baselines.n
            own = baselines.etas(values[rows])
            known = n_before + np.cumsum(~np.isnan(values[rows])) - ~np.isnan(values[rows]) > 0
            for name, eta in own.items():
                etas[name][rows[known]] = eta[known]
        return etas

    def compared(self, groups: Groups, places: np.ndarray, n_classes: int, of_all: Compared) -> Compared:
        """The same for classes, of rows with a target."""
        compared = Compared(*(column.copy() for column in of_all))
        for baselines, rows in self._of_each(groups, places, ClassBaselines):
            own_rows = rows[places[rows] >= 0]
            first = sum(baselines.counts) == 0
            own = baselines.compared(places[own_rows], n_classes)
            for column, values in zip(compared, own, strict=True):
                column[own_rows[first:]] = values[first:]
        return compared

    def _of_each(self, groups: Groups, values: np.ndarray, kind: type) -> Any:
        """The baselines of each key, and its rows in order."""
        for g, key in enumerate(groups.keys):
            if key not in self.baselines:
                self.baselines[key] = self.make_baselines()
            assert isinstance(self.baselines[key], kind)
            yield self.baselines[key], groups.order[groups.first[g] : groups.first[g + 1]]

    # --- features and classes that appear -----------------------------------------------------------------------------

    def grow(self, learners: list[Engine]) -> None:
        """As many features and classes as the pooled model has."""
        if learners[0].n_features > self.models.n_features:
            self.models.widen(learners[0])
        if len(learners) > len(self.models.stores):
            self.models = self.models.with_classes(len(learners))

    # --- what comes out -----------------------------------------------------------------------------------------------

    def losses(self, *, weighed: bool = True) -> KeyLosses:
        """Of all keys; the weights of their own models have to be fetched, some from disk."""
        keys = list(map(str, self.models.places))
        return self.sums.losses(keys, np.array([self.models.weight(key) if weighed else np.nan for key in keys]))

    def arrays(self) -> dict[str, np.ndarray]:
        """For a checkpoint."""
        models, baselines = self.models, [self.baselines[key].state() for key in self.models.places]
        numbers = b"".join(numbers_of(models, sizes_of(models)))
        found = {"names": names_of(models), "models": numbers, "baselines": json.dumps(baselines).encode()}
        arrays = {PREFIX + name: np.frombuffer(data, dtype=np.uint8) for name, data in found.items()}
        return {**arrays, PREFIX + "sums": self.sums.table[: len(self)]}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """What `arrays` gave; there may be others too."""
        names, numbers, baselines = (arrays[PREFIX + name].tobytes() for name in ("names", "models", "baselines"))
        filled(self.models, names, numbers)
        states = json.loads(baselines)
        self.baselines = {key: self.make_baselines(**own) for key, own in zip(self.models.places, states, strict=True)}
        self.sums = KeySums(arrays[PREFIX + "sums"].copy())


def _columns(etas: np.ndarray) -> list[np.ndarray | None]:
    return [np.ascontiguousarray(column) for column in etas.T]
