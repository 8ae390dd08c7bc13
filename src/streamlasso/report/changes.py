"""Which features entered a model and left it, and when; and why its penalty is what it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamlasso._text import listed, number

#: Rows that a sentence names, and the rows before one over which lam is looked at.
MOST_ROWS, WINDOW = 3, 20
#: lam moved if it is beyond this ratio of what it was.
MOVED = 1.1


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


# --- in a sentence ----------------------------------------------------------------------------------------------------


def pushed(t: np.ndarray, lam: np.ndarray, slope: np.ndarray, i: int) -> str:
    """Why the lam of one model is what it is after the i-th row: the rows, of the last WINDOW, that moved it most.

    lam[i] is that after the row t[i], slope[i] the derivative of its loss.
    """
    first = max(i - WINDOW, 0)
    before, after = float(lam[first]), float(lam[i])
    when = f"over rows {t[first] + 1:,} to {t[i]:,}" if i > first + 1 else f"at row {t[i]:,}"
    steps = np.diff(lam[first : i + 1])
    same_way = steps * np.sign(after - before)
    most = np.argsort(-same_way, kind="stable")[:MOST_ROWS]
    most = np.sort(most[same_way[most] > 0])
    low, high = sorted((abs(before), abs(after)))
    if not len(most) or high <= MOVED * low:
        return f"lam hardly moved {when}: it is {number(after)}"
    rose = after > before
    agree = sum(slope[first + 1 + k] * (1 if rose else -1) < 0 for k in most)
    rows = listed([f"{t[first + 1 + k]:,} ({steps[k]:+.2g})" for k in most])
    better = f"a {'larger' if rose else 'smaller'} lam would have predicted"
    reason = f": {better} {'them' if agree > 1 else 'it'} better" if agree == len(most) else ""
    return (
        f"lam {'rose' if rose else 'fell'} from {number(before)} to {number(after)} {when}; "
        f"{'rows' if len(most) > 1 else 'row'} {rows} pushed it most{reason}"
    )


def selected_since(t: np.ndarray, coef: np.ndarray, names: Sequence[str], k: int) -> str:
    """Since when the features that are selected after the row t[k] are, and what changed then; coef is that after each
    row."""
    there = coef[: k + 1] != 0
    changed = np.flatnonzero(np.any(there[1:] != there[:-1], axis=1))
    what = _listed(names, there[k]) if there[k].any() else "no feature"
    if not len(changed):
        return f"{what} selected since row {t[0]:,}"
    last = int(changed[-1])
    entered, left = there[last + 1] & ~there[last], there[last] & ~there[last + 1]
    moves = [f"{_listed(names, which)} {word}" for which, word in ((entered, "entered"), (left, "left")) if which.any()]
    return f"{what} selected since row {t[last + 1]:,}, when {' and '.join(moves)}"


def _listed(names: Sequence[str], which: np.ndarray) -> str:
    return listed([name for name, there in zip(names, which.tolist(), strict=True) if there])
