"""What changed, when and where: an answer from the rows around an alarm (`changes.py`).

Rows from the change on are compared with the model from before it. One step of iteratively reweighted least squares
explains what that model misses by moved coefficients: features enter one by one, and as many are taken as lower the
risk inflation criterion, -log-likelihood + log(p + 1) for each (Foster and George), if that is MARGIN or more below
that of no move. Named are those whose own part in the log-likelihood is above log(p + 1), and whose move is not small:
at least NOTABLE deviations of the noise per deviation of the feature, or half of the largest move.

The rows at which the change may have begun then have probabilities in proportion to the likelihood of all rows, those
from there on under the moved coefficients, or, where none moved, under errors that have grown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamlasso._text import count, listed, number, plain

MARGIN, NOTABLE = 3.0, 0.8
#: Features that may enter without lowering the criterion before the search ends.
PATIENCE = 4
#: A feature of which less than this share is left says nothing that those before it do not.
COLLINEAR = 1e-6
#: The least share of a sum of squares that moves leave, for noise that is not 0.
EXACT = 1e-12
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
    row 399, found at row 410: x1 from 1.97 to -1.1...
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
    feature: int,
    mean: np.ndarray,
) -> DetectedChange:
    """The change that raised an alarm.

    rows, X, notes : the rows that are kept, the last one last
    before : the model from before a row
    feature : that errors went with, 0 for the intercept; or -1 if they grew
    """
    design = np.column_stack([np.ones(len(rows)), X - mean])
    last = int(np.searchsorted(rows, alarm))
    if feature >= 0:
        begin = _score_start(notes[: last + 1, SCORE], design[: last + 1, feature])
    else:
        begin = _surprise_start(notes[: last + 1, SURPRISE])
    for _ in range(2):
        since = begin
        model = before(int(rows[since]))
        target, weight = _missed(notes, X, model, family)
        moved, noise = _moves(design[since:], target[since:], weight[since:], family)
        if not moved:
            since = _surprise_start(notes[: last + 1, SURPRISE])
        gains = _gains(design, target, weight, moved, noise, notes[:, SURPRISE], slice(since, last + 1))
        chance = _chances(gains[: last + 1])
        begin = int(np.argmax(chance))
        if begin == since:
            break
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


def _surprise_start(surprise: np.ndarray) -> int:
    """Where the likelihood of larger surprises from there on, over that of usual ones, is largest."""
    n = np.arange(len(surprise), 0, -1)
    mean = np.maximum(np.cumsum(surprise[::-1])[::-1] / n, 1.0)
    return int(np.argmax(n * (mean - 1.0 - np.log(mean))))


def _missed(notes: np.ndarray, X: np.ndarray, model: np.ndarray, family: Any) -> tuple[np.ndarray, np.ndarray]:
    """What the model misses of each row on the scale of eta, and the weight of the row."""
    eta = notes[:, OFFSET] + model[0] + X @ model[1:]
    if family is None or family.quadratic:
        return notes[:, RESPONSE] - eta, np.ones(len(eta))
    eta = np.clip(eta, -MOST_ETA, MOST_ETA)
    slope, curvature = family.derivatives(notes[:, RESPONSE], eta)
    weight = np.maximum(curvature, 1e-3 * curvature.max(initial=1e-300))
    return np.clip(-slope / weight, -MOST_MISSED, MOST_MISSED), weight


def _moves(design: np.ndarray, target: np.ndarray, weight: np.ndarray, family: Any) -> tuple[dict[int, float], float]:
    """The coefficients that moved, by place (-1 is the intercept) and largest first, and the variance of the noise."""
    with np.errstate(over="ignore", invalid="ignore"):
        weighted = weight[:, None] * design
        gram, products, total = weighted.T @ design, target @ weighted, float(weight @ target**2)
    if not (np.isfinite(gram).all() and np.isfinite(products).all() and np.isfinite(total)):
        return {}, 1.0
    places, noise = _best_places(gram, products, total, len(target), family is None or family.has_scale)
    if not places:
        return {}, noise
    inverse = np.linalg.inv(gram[np.ix_(places, places)])
    sizes = inverse @ products[places]
    moves = np.abs(sizes) * np.sqrt(gram[places, places] / (weight.sum() * noise))
    gain = 0.5 * sizes**2 / inverse.diagonal() / noise
    named = (gain > np.log(len(gram))) & (moves >= min(NOTABLE, 0.5 * moves.max()))
    named[np.argmax(gain)] = True
    order = [i for i in np.argsort(-moves, kind="stable") if named[i]][:MOST_NAMED]
    return {places[i] - 1: float(sizes[i]) for i in order}, noise


def _best_places(
    gram: np.ndarray, products: np.ndarray, total: float, n: int, has_scale: bool
) -> tuple[list[int], float]:
    """Of features that entered one by one those up to the lowest criterion, and the variance of the noise they leave.

    What enters is swept from the Gram matrix: the diagonal has what is left of each feature.
    """
    places: list[int] = []
    least_total = EXACT * total
    least = COLLINEAR * gram.diagonal() + np.finfo(float).tiny
    noise_of_none, none = _noise(total, n, has_scale)
    best, n_best, noise_best = none, 0, noise_of_none
    while len(places) < min(n // 3, len(gram)) and len(places) - n_best < PATIENCE:
        own = gram.diagonal()
        gain = np.where(own > least, products**2 / np.maximum(own, least), 0.0)
        j = int(gain.argmax())
        if not gain[j] > 0.0:
            break
        places.append(j)
        total = max(total - gain[j], least_total)
        row = gram[j] / own[j]
        products = products - products[j] * row
        gram = gram - gram[:, j, None] * row
        noise, loss = _noise(total, n, has_scale, len(places))
        if loss + len(places) * np.log(len(gram)) < best:
            best, n_best, noise_best = loss + len(places) * np.log(len(gram)), len(places), noise
    return (places[:n_best], noise_best) if best < none - MARGIN else ([], noise_of_none)


def _noise(total: float, n: int, has_scale: bool, n_moved: int = 0) -> tuple[float, float]:
    """The variance of the noise and -log-likelihood where moves leave this sum of squares."""
    if not has_scale:
        return 1.0, 0.5 * total
    noise = max(total / max(n - n_moved, 1), np.finfo(float).tiny)
    return noise, 0.5 * n * np.log(noise)


def _gains(
    design: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    moved: dict[int, float],
    noise: float,
    surprise: np.ndarray,
    changed: slice,
) -> np.ndarray:
    """Of each row, the log-likelihood after the change less that before."""
    if not moved:
        ratio = max(float(np.mean(surprise[changed])), 1.1)
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
