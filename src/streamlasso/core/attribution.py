"""What changed, when and where: an answer from the rows around an alarm (`changes.py`).

Rows from the change on are compared with the model from before it. One step of iteratively reweighted least squares
explains what that model misses by as few moved coefficients as will do: features enter one by one, each only if it
raises the log-likelihood by more than log(p + 1) + MARGIN. The rows at which the change may have begun then have
probabilities in proportion to the likelihood of all rows, those from there on under the moved coefficients, or, where
none moved, under errors that have grown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamlasso._text import count, listed, number, plain

MARGIN = 3.0
#: The most features and rows that are kept of a change.
MOST_NAMED, MOST_ROWS = 16, 24
#: Rows before and after those that are at least this likely are left out.
LEAST_CHANCE = 0.001
#: Beyond these a link, what a model misses and a gain in log-likelihood count as this far out, so that all sums are
#: finite: an answer about a wild row may be poor, but learning goes on.
MOST_ETA, MOST_MISSED, MOST_GAIN = 100.0, 1e50, 1e12
#: Columns of the notes about a row, as in `changes.pxd`.
RESPONSE, OFFSET, LOSS, SCORE, SURPRISE = range(5)
#: What a record holds as numbers: this, then the places and effects of features, then probabilities.
_HEAD = ("row", "detected", "loss", "n_named", "first")
DETECTED = _HEAD.index("detected")
_NAMED = len(_HEAD)
_CHANCES = _NAMED + 3 * MOST_NAMED
N_FIELDS = _CHANCES + MOST_ROWS
INTERCEPT = "intercept"


class DetectedChange(NamedTuple):
    """A change that was found in a stream.

    row, detected : the row with which it most likely began, and the row after which it was found
    probability : of each row with which it may have begun, 24 of them at most, how likely that is
    features : by name, the coefficients before and after, the largest moves in standard deviations of the noise first;
        none where the errors grew and no coefficient explains it
    loss : what it cost until now, or until the model had 64 rows to follow: the loss above what was usual before
    label : the class whose model it is, where there are several

    >>> import numpy as np
    >>> from streamlasso import RAPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 3))
    >>> y = np.where(np.arange(600) < 400, 2.0, -1.0) * X[:, 1] + rng.normal(size=600)
    >>> (change,) = RAPRegressor().fit(X, y).changes_
    >>> print(change)  # doctest: +ELLIPSIS
    row 399, found at row 403: x1 from 1.97 to -1.1...
    """

    row: int
    detected: int
    probability: dict[int, float]
    features: dict[Any, tuple[float, float]]
    loss: float
    label: Any = None

    def __str__(self) -> str:
        moves = [f"{name} from {number(before)} to {number(after)}" for name, (before, after) in self.features.items()]
        more = len(moves) - 3
        shown = [*moves[:3], *([count(more, "more feature")] if more > 0 else [])]
        what = listed(shown) if moves else "errors grew"
        whose = "" if self.label is None else f" (class {self.label})"
        return f"row {self.row:,}, found at row {self.detected:,}{whose}: {what}; cost {number(self.loss)}"

    def printable(self) -> DetectedChange:
        """With names that every font and terminal can show."""
        features = {_plain(name): sizes for name, sizes in self.features.items()}
        return self._replace(features=features, label=_plain(self.label))

    def named(self, names: Sequence[Any]) -> DetectedChange:
        """With the names of features in place of their places."""
        return self._replace(features={_name(j, names): sizes for j, sizes in self.features.items()})


def _plain(name: Any) -> Any:
    return plain(name) if isinstance(name, str) else name


def _name(j: int, names: Sequence[Any]) -> Any:
    return INTERCEPT if j < 0 else names[j]


def found_in(
    rows: np.ndarray,
    X: np.ndarray,
    notes: np.ndarray,
    before: Callable[[int], np.ndarray],
    family: Any,
    alarm: int,
    start: int,
    feature: int,
    mean: np.ndarray,
) -> DetectedChange:
    """The change that raised an alarm.

    rows, X, notes : the rows that are kept, the last one last
    before : the model from before a row
    start, feature : where the sum of surprises began; or the feature of the score, 0 for the intercept, or -1
    """
    design = np.column_stack([np.ones(len(rows)), X - mean])
    last = int(np.searchsorted(rows, alarm))
    begin = int(np.searchsorted(rows, start))
    if feature >= 0:
        begin = _score_start(notes[: last + 1, SCORE], design[: last + 1, feature])
    for _ in range(2):
        model = before(int(rows[begin]))
        target, weight = _missed(notes, X, model, family)
        moved, noise = _moves(design[begin:], target[begin:], weight[begin:], family)
        gains = _gains(design, target, weight, moved, noise, notes[:, SURPRISE], begin)
        chance = _chances(gains[: last + 1])
        begin = int(np.argmax(chance))
    return DetectedChange(
        int(rows[begin]),
        int(alarm),
        _likeliest(rows[: last + 1], chance),
        {j: (float(model[j + 1]), float(model[j + 1] + size)) for j, size in moved.items()},
        _cost(notes[:, LOSS], begin),
    )


def _score_start(score: np.ndarray, z: np.ndarray) -> int:
    """Where the sum of the scores is largest for its variance, counted back from the alarm."""
    sums, squares = np.cumsum((score * z)[::-1])[::-1], np.cumsum((z * z)[::-1])[::-1]
    return int(np.argmax(sums**2 / np.maximum(squares, np.finfo(float).tiny)))


def _missed(notes: np.ndarray, X: np.ndarray, model: np.ndarray, family: Any) -> tuple[np.ndarray, np.ndarray]:
    """What the model misses of each row on the scale of eta, and the weight of the row."""
    eta = notes[:, OFFSET] + model[0] + X @ model[1:]
    if family is None or family.quadratic:
        return notes[:, RESPONSE] - eta, np.ones(len(eta))
    eta = np.clip(eta, -MOST_ETA, MOST_ETA)
    pairs = list(zip(notes[:, RESPONSE].tolist(), eta.tolist(), strict=True))
    slope = np.array([family.slope(y, at) for y, at in pairs])
    curvature = np.array([family.curvature(y, at) for y, at in pairs])
    weight = np.maximum(curvature, 1e-3 * curvature.max(initial=1e-300))
    return np.clip(-slope / weight, -MOST_MISSED, MOST_MISSED), weight


def _moves(design: np.ndarray, target: np.ndarray, weight: np.ndarray, family: Any) -> tuple[dict[int, float], float]:
    """The coefficients that moved, by place (-1 is the intercept) and largest first, and the variance of the noise."""
    chosen: list[int] = []
    sizes = np.zeros(0)
    least = np.log(design.shape[1]) + MARGIN
    while True:
        missed = target - design[:, chosen] @ sizes
        noise = _noise(missed, weight, len(chosen), family)
        if len(chosen) >= min(MOST_NAMED, len(target) // 3):
            break
        squares = np.maximum(weight @ design**2, np.finfo(float).tiny)
        gain = 0.5 * ((weight * missed) @ design) ** 2 / squares / noise
        gain[chosen] = 0.0
        best = int(np.argmax(gain))
        if not gain[best] > least:
            break
        chosen.append(best)
        root = np.sqrt(weight)
        sizes = np.linalg.lstsq(root[:, None] * design[:, chosen], root * target, rcond=None)[0]
    spread = np.sqrt(np.mean(design[:, chosen] ** 2, axis=0)) if chosen else np.zeros(0)
    order = np.argsort(-np.abs(sizes) * spread, kind="stable")
    return {chosen[i] - 1: float(sizes[i]) for i in order}, noise


def _noise(missed: np.ndarray, weight: np.ndarray, n_chosen: int, family: Any) -> float:
    if family is not None and not family.has_scale:
        return 1.0
    square = float(weight @ missed**2) / max(len(missed) - n_chosen, 1)
    return max(square, np.finfo(float).tiny)


def _gains(
    design: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    moved: dict[int, float],
    noise: float,
    surprise: np.ndarray,
    begin: int,
) -> np.ndarray:
    """Of each row, the log-likelihood after the change less that before."""
    if not moved:
        ratio = max(float(np.mean(surprise[begin:])), 1.1)
        return surprise * (1.0 - 1.0 / ratio) - np.log(ratio)
    fitted = design[:, [j + 1 for j in moved]] @ np.array(list(moved.values()))
    with np.errstate(over="ignore", invalid="ignore"):
        gains = 0.5 * weight * (target**2 - (target - fitted) ** 2) / noise
    return np.clip(np.nan_to_num(gains), -MOST_GAIN, MOST_GAIN)


def _chances(gains: np.ndarray) -> np.ndarray:
    """How likely each row is the first after the change."""
    total = np.cumsum(gains[::-1])[::-1]
    chance = np.exp(total - total.max())
    return chance / chance.sum()


def _likeliest(rows: np.ndarray, chance: np.ndarray) -> dict[int, float]:
    """Of MOST_ROWS in a row those that hold the most."""
    if len(rows) > MOST_ROWS:
        held = np.convolve(chance, np.ones(MOST_ROWS), mode="valid")
        first = int(np.argmax(held))
        rows, chance = rows[first : first + MOST_ROWS], chance[first : first + MOST_ROWS]
    likely = np.flatnonzero(chance > LEAST_CHANCE)
    rows, chance = rows[likely[0] : likely[-1] + 1], chance[likely[0] : likely[-1] + 1]
    return dict(zip(rows.tolist(), (chance / chance.sum()).tolist(), strict=True))


def _cost(loss: np.ndarray, begin: int) -> float:
    return float(np.sum(loss[begin:] - loss[:begin].mean())) if begin else 0.0


# --- as numbers -------------------------------------------------------------------------------------------------------


def packed_change(change: DetectedChange) -> np.ndarray:
    """As a row of N_FIELDS numbers."""
    record = np.zeros(N_FIELDS)
    record[: len(_HEAD)] = change.row, change.detected, change.loss, len(change.features), min(change.probability)
    for i, (j, (before, after)) in enumerate(change.features.items()):
        record[_NAMED + 3 * i : _NAMED + 3 * i + 3] = j, before, after
    record[_CHANCES : _CHANCES + len(change.probability)] = list(change.probability.values())
    return record


def unpacked_change(record: np.ndarray) -> DetectedChange:
    """The change that `packed_change` was given; of a forged record, some change."""
    head = dict(zip(_HEAD, record[: len(_HEAD)].tolist(), strict=True))
    n_named = int(min(max(head["n_named"], 0), MOST_NAMED))
    named = record[_NAMED : _NAMED + 3 * n_named].reshape(-1, 3).tolist()
    n_rows = int(np.max(np.flatnonzero(record[_CHANCES:]), initial=0)) + 1
    return DetectedChange(
        int(head["row"]),
        int(head["detected"]),
        {int(head["first"]) + i: float(chance) for i, chance in enumerate(record[_CHANCES : _CHANCES + n_rows])},
        {int(j): (before, after) for j, before, after in named},
        head["loss"],
    )


def exchanged_records(found: np.ndarray) -> np.ndarray:
    """With the two classes exchanged: coefficients change their sign."""
    sign = np.ones(N_FIELDS)
    sign[[_NAMED + 3 * i + k for i in range(MOST_NAMED) for k in (1, 2)]] = -1.0
    return found * sign
