"""Why lam moved, in a sentence: the rows that pushed that of one model; the model that took over in a mixture."""

from __future__ import annotations

import numpy as np

from streamlasso._text import count, listed, number
from streamlasso.report.summary import Summary

#: Rows that a sentence names, and the rows before one over which lam is looked at.
MOST_ROWS, WINDOW = 3, 20
#: lam moved where it is beyond this ratio of what it was; a large move is beyond twice it.
MOVED, LARGE = 1.1, 2.0
#: Another penalty is selected where lam/lam_max is beyond this ratio: those of neighbouring penalties differ by more,
#: and that of one penalty drifts by less, as the rows of a memory grow.
SWITCHED = 1.3
#: The rows of a young memory grow faster, and its lam is as old as its last solution. There it is the power of the
#: number of rows that tells: powers are .2 apart, or more.
OTHER_POWER = 0.19
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


def took_over(t: np.ndarray, lam: np.ndarray, lam_max: np.ndarray, since: np.ndarray, i: int) -> str:
    """Why the lam of the selected model is what it is: since which row another one is selected, and when that began."""
    share = np.divide(lam, lam_max, out=np.zeros(len(lam)), where=lam_max > 0)
    switched = [
        k
        for k in range(1, i + 1)
        if since[k] != since[k - 1] or _other_penalty(share[k - 1 : k + 1], since[k], t[k - 1 : k + 1])
    ]
    k = switched[-1] if switched else 0
    now = f" and is {number(lam[i])} now{_followed(lam_max[k], lam_max[i])}" if _moved(lam[k], lam[i]) else ""
    if not switched:
        return f"lam is {number(lam[k])} at row {t[k]:,}{now}: the same model is selected since then"
    rows = f"since row {t[k]:,}" if t[i] > t[k] else f"from row {t[k]:,} on"
    change = f"lam went from {number(lam[k - 1])} to {number(lam[k])} at row {t[k]:,}{now}"
    if since[k] == since[k - 1]:
        size = "larger" if share[k] > share[k - 1] else "smaller"
        return f"{change}: of the models that {_began(since[k])}, one with a {size} penalty is selected {rows}"
    return f"{change}: a model that {_began(since[k])} is selected {rows}; before, one that {_began(since[k - 1])}"


def _other_penalty(share: np.ndarray, since: int, t: np.ndarray) -> bool:
    """Whether two rows one after the other have another penalty; `share`: lam / lam_max."""
    if not share[0] > 0:
        return False
    if since == 0 or not share[1] > 0:
        return _moved(share[0], share[1], SWITCHED)
    before, after = -np.log(share) / np.log(np.maximum(t + 1 - since, 2))
    return bool(abs(after - before) > OTHER_POWER)


def _followed(before: float, after: float) -> str:
    """What lam, a share of lam_max, follows."""
    way = "rose" if after > before else "fell"
    return f", as lam_max {way} from {number(before)} to {number(after)}" if _moved(before, after) else ""


def _began(since: int) -> str:
    return "began with the first row" if since == 0 else f"began at row {since:,}"


def _moved(before: float, after: float, ratio: float = MOVED) -> bool:
    low, high = sorted((abs(before), abs(after)))
    return high > ratio * low


def large_moves(summary: Summary) -> list[str]:
    """A sentence for each of the largest moves of lam, in the order of time; of one model's stretches, from and to."""
    if summary.lam.ndim != 1:
        return []
    known = np.flatnonzero((summary.lam > 0) & (summary.t >= summary.t[0] + WINDOW))
    t, lam, lam_max, since = (each[known] for each in (summary.t, summary.lam, summary.lam_max, summary.since))
    if len(t) < 2:
        return []
    size = np.abs(np.diff(np.log(lam)))
    found = [int(k) + 1 for k in np.argsort(-size, kind="stable")[:MOST_MOVES] if size[k] > np.log(LARGE)]
    if not np.any(since):
        return [
            f"lam went from {number(lam[k - 1])} to {number(lam[k])} within {count(int(t[k] - t[k - 1]), 'row')}, at "
            f"row {t[k]:,}"
            for k in sorted(found)
        ]
    return [took_over(t, lam, lam_max, since, k) for k in sorted(found)]
