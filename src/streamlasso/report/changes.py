"""Which features entered a model and left it, and when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np


class Change(NamedTuple):
    """A feature entered the model at row t, or left it.

    rows : for how many rows it stayed, or had stayed
    effect : its mean coefficient in that time, times the feature's spread
    label : the class whose model it is, if there are several
    """

    t: int
    feature: str
    entered: bool
    rows: int
    effect: float
    label: Any = None


def lasting_changes(
    t: np.ndarray,
    effects: np.ndarray,
    names: Sequence[str],
    labels: Sequence[Any],
    shortest: int,
    rows_per_step: int = 1,
) -> list[Change]:
    """The changes in `effects` (step, model, feature) that lasted `shortest` steps or more, in the order of time.

    >>> import numpy as np
    >>> effects = np.array([0.0, 0.0, 2.0, 2.0, 0.0, 0.0])[:, None, None]
    >>> [(change.t, change.entered) for change in lasting_changes(np.arange(6), effects, ["x"], [None], 2)]
    [(2, True), (4, False)]
    """
    found = []
    for k, label in enumerate(labels):
        for j, name in enumerate(names):
            for start, stop in _stays(effects[:, k, j] != 0, shortest):
                effect = float(effects[start:stop, k, j].mean())
                entered = Change(int(t[start]), name, True, int(stop - start) * rows_per_step, effect, label)
                found += [entered] if start > 0 else []
                found += [entered._replace(t=int(t[stop]), entered=False)] if stop < len(t) else []
    return sorted(found, key=lambda change: change.t)


def _stays(active: np.ndarray, shortest: int) -> Iterator[tuple[int, int]]:
    """From where to where a feature was in the model, if runs of fewer than `shortest` steps are ignored."""
    edges = np.flatnonzero(np.diff(active)) + 1
    inside, begun = active[0], 0
    for start, stop in zip([0, *edges], [*edges, len(active)], strict=True):
        if stop - start < shortest or active[start] == inside:
            continue
        if inside:
            yield begun, start
        inside, begun = active[start], start
    if inside:
        yield begun, len(active)
