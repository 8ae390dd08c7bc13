"""Why a model is what it is, in a sentence: the rows that pushed lam; the features that were selected last."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamlasso._text import count, listed, number
from streamlasso.report.summary import Summary

#: Rows that a sentence names, and the rows before one over which lam is looked at.
MOST_ROWS, WINDOW = 3, 20
#: lam moved where it is beyond this ratio of what it was; a large move is beyond twice it.
MOVED, LARGE = 1.1, 2.0
#: Large moves that a report explains.
MOST_MOVES = 5


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
    if not len(most) or not _moved(before, after):
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


def _moved(before: float, after: float, ratio: float = MOVED) -> bool:
    low, high = sorted((abs(before), abs(after)))
    return high > ratio * low


def large_moves(summary: Summary) -> list[str]:
    """A sentence for each of the largest moves of lam, in the order of time."""
    if summary.lam.ndim != 1:
        return []
    known = np.flatnonzero((summary.lam > 0) & (summary.t >= summary.t[0] + WINDOW))
    t, lam = summary.t[known], summary.lam[known]
    if len(t) < 2:
        return []
    size = np.abs(np.diff(np.log(lam)))
    found = [int(k) + 1 for k in np.argsort(-size, kind="stable")[:MOST_MOVES] if size[k] > np.log(LARGE)]
    return [
        f"lam went from {number(lam[k - 1])} to {number(lam[k])} within {count(int(t[k] - t[k - 1]), 'row')}, at "
        f"row {t[k]:,}"
        for k in sorted(found)
    ]
