"""What kinds of experts join."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from streamlasso.core.mixture.groups.base import Experts, Group
from streamlasso.core.mixture.residuals import Carry
from streamlasso.memories import Forgetting
from streamlasso.memories.base import Memory


class Parts:
    """The experts and groups of a mixture on `n_features` columns, while they are collected.

    memories : those of the setting, or of the tuner, the longest first
    restarts : whether experts may restart: a memory that was given is obeyed
    """

    def __init__(self, n_features: int, settings: dict[str, Any]):
        memory, tuner = settings["memory"], settings["tuner"]
        self.n_features = n_features
        self.settings = {**settings, "false_alarms": 0.0}
        self.family = settings["family"]
        self.tuner = tuner
        self.restarts = memory is None
        self.memories: list[Memory] = competing(memory, tuner)
        self.views = Views(n_features, tuner.views if tuner.competes else None)
        self.experts: list[Experts] = []
        self.groups: list[Group] = []
        self.n = 0

    def add(self, experts: Experts) -> None:
        """Experts, beside those that are there."""
        self.experts.append(experts)
        self.n += experts.n

    def group(self, name: str, first: int, n: int, prior: float, carries: bool = True) -> None:
        """An average of `n` experts from `first` on."""
        self.groups.append(Group(name, first, n, prior, self.carry() if carries else None))

    def carry(self) -> Carry | None:
        """What last residuals say, where they may and an intercept can move by it."""
        return Carry(self.family) if self.tuner.carry and self.settings["fit_intercept"] else None


class Views:
    """Sets of columns that compete: those in no view, and these with those of each view."""

    def __init__(self, n_features: int, views: dict[str, list[int]] | None):
        self.n_features = n_features
        self.columns = {name: list(columns) for name, columns in (views or {}).items()}
        beyond = [j for columns in self.columns.values() for j in columns if not 0 <= j < n_features]
        if beyond:
            raise ValueError(f"views: column {beyond[0]} is not there; the {n_features} columns are counted from 0")

    def common(self) -> list[int]:
        """The columns in no view."""
        special = {j for columns in self.columns.values() for j in columns}
        return [j for j in range(self.n_features) if j not in special]

    def names(self) -> list[str]:
        """What follows the name of a group."""
        return ["", *(f" with {name}" for name in self.columns)]

    def masks(self) -> list[list[bool]]:
        """Of each set, for each column whether it is in it."""
        sets = [set(self.common()), *({*self.common(), *columns} for columns in self.columns.values())]
        return [[j in each for j in range(self.n_features)] for each in sets]


def competing(memory: Memory | None, tuner: Any) -> list[Memory]:
    """The memories of experts that stay."""
    if memory is not None:
        return list(memory.members())
    return [_forgetting(1.0), *map(_forgetting, tuner.factors)]


@lru_cache(typed=True)
def _forgetting(r: float) -> Memory:
    """One for all mixtures."""
    return Forgetting(r)
