"""The baselines of the paper's study: cross-validation on the whole stream, with the change points known.

They use the library's own solver and memory, so that only lam differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from streamlasso.core.base.record import RECORD
from streamlasso.core.lasso.learner import Learner
from streamlasso.families import Family
from streamlasso.memories import Forgetting
from streamlasso.penalties import L1
from streamlasso.simulate import Stream
from streamlasso.tuners import Fixed, Tuner

N_FOLDS = 10
#: The grid of cross-validation: how many lams, and the share of lam_max at which it ends. A grid of 40 that went on to
#: 1e-3 chose worse lams for the online learner (1.65 against 1.69, half squared error, r=.93): noise finds tiny ones.
N_LAMS, LEAST_SHARE = 20, 1e-2
#: A lam beyond any lam_max: the model is empty.
EMPTY = 1e12
#: The weight of a row that makes the model solve again and changes nothing.
WEIGHTLESS = 1e-30
#: A row whose weight in the memory has fallen to this is left out of cross-validation.
FADED = 1e-4


class Run(NamedTuple):
    """One learner over a stream: the loss of each row before it was learnt, and lam and the coefficients after it."""

    loss: np.ndarray
    lam: np.ndarray
    coef: np.ndarray


class Scheduled(Tuner):
    """lam takes the values of a list, one per row once there is something to fit, and stays at the last.

    >>> from streamlasso.reproduce.offline import Scheduled
    >>> state = [0.0]
    >>> [Scheduled([0.3, 0.2]).update(1.0, 0.0, 1.0, 1.0, state) for _ in range(3)]
    [0.3, 0.2, 0.2]
    """

    n_state = 1

    def __init__(self, lams: Sequence[float]) -> None:
        self.lams = lams

    @property
    def lambda_init(self) -> float:
        return EMPTY

    def update(self, lam: float, slope: float, norm: float, lam_max: float, state: Any) -> float:
        k = int(state[0])
        state[0] = min(k + 1, len(self.lams) - 1)
        return self.lams[k]


# --- cross-validation -------------------------------------------------------------------------------------------------


def cross_validated_lam(
    X: np.ndarray,
    y: np.ndarray,
    family: Family,
    *,
    r: float = 1.0,
    looks: int = 1,
) -> float:
    """The lam of the least 10-fold cross-validated loss.

    With `r=1` all rows have the same weight. Otherwise they have, in the fits and in the loss, the weight that a memory
    with forgetting factor r gives them at each of `looks` evenly spaced times, the last row's among them, and the
    losses are summed: a memory of 20 rows needs a larger lam than the 100 rows of its regime. Fold k is every tenth row
    from the k-th.

    >>> import numpy as np
    >>> from streamlasso.reproduce.offline import cross_validated_lam
    >>> from streamlasso.families import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 20))
    >>> y = X[:, 0] + rng.normal(size=100)
    >>> cross_validated_lam(X, y, Gaussian()) < cross_validated_lam(X, y, Gaussian(), r=0.95, looks=4)
    True
    """
    lam_max, losses = criterion(X, y, family, r=r, looks=looks)
    lams = np.geomspace(1.0, LEAST_SHARE, N_LAMS) * lam_max
    return float(lams[np.argmin(losses(lams))])


def criterion(
    X: np.ndarray, y: np.ndarray, family: Family, *, r: float = 1.0, looks: int = 1
) -> tuple[float, Callable[[np.ndarray], np.ndarray]]:
    """lam_max, and what `cross_validated_lam` minimises below it: the loss at each of falling lams."""
    looked = list(_looks(len(y), r, looks))
    lam_max = max(_empty_model(X[rows], y[rows], family, weight).lam_max for rows, weight in looked)

    def losses(lams: np.ndarray) -> np.ndarray:
        return np.sum([_losses(X[rows], y[rows], family, lams, weight) for rows, weight in looked], axis=0)

    return float(lam_max), losses


def _looks(n_rows: int, r: float, looks: int) -> Iterator[tuple[slice, np.ndarray]]:
    """The rows that the memory holds at each look, and their weights, which sum to one."""
    for stop in np.linspace(0, n_rows, looks + 1)[1:].astype(int):
        weight = r ** np.arange(stop - 1.0, -1.0, -1.0)
        start = int(np.searchsorted(weight, FADED))
        yield slice(start, stop), weight[start:] / weight[start:].sum()


def _losses(X: np.ndarray, y: np.ndarray, family: Family, lams: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The cross-validated loss at each lam."""
    fold = np.arange(len(y)) % N_FOLDS
    total = np.zeros(len(lams))
    for k in range(N_FOLDS):
        out = fold == k
        path = lam_path(X[~out], y[~out], family, lams, weight[~out])
        eta = path[:, :1] + path[:, 1:] @ X[out].T
        total += family.loss(np.tile(y[out], (len(lams), 1)), eta) @ weight[out]
    return total


def lam_path(
    X: np.ndarray, y: np.ndarray, family: Family, lams: Sequence[float] | np.ndarray, weight: np.ndarray | None = None
) -> np.ndarray:
    """Intercept and coefficients at each of the falling `lams`, one row per lam, from one learner that never forgets.

    >>> import numpy as np
    >>> from streamlasso.reproduce.offline import lam_path
    >>> from streamlasso.families import Gaussian
    >>> X, y = np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0])
    >>> lam_path(X, y, Gaussian(), [0.75, 0.5, 0.0])[:, 1]
    array([0.25, 0.5 , 1.  ])
    """
    n_lams, n_features = len(lams), X.shape[1]
    model = _learner(family, n_features, Scheduled(list(lams)), history=len(y) + n_lams)
    model.restore(_empty_model(X, y, family, weight, history=len(y) + n_lams).state())
    path = np.zeros((n_lams, 1 + n_features))
    model.learn(np.repeat(X[-1:], n_lams, axis=0), np.repeat(y[-1:], n_lams), np.full(n_lams, WEIGHTLESS), coef=path)
    return path


def _empty_model(
    X: np.ndarray, y: np.ndarray, family: Family, weight: np.ndarray | None = None, history: int = 1
) -> Learner:
    """All rows learnt in one step at a lam beyond lam_max."""
    model = _learner(family, X.shape[1], Fixed(EMPTY), history=history, batch_size=len(y))
    model.learn(np.ascontiguousarray(X), y, weight)
    return model


def _learner(family: Family, n_features: int, tuner: Tuner, r: float = 1.0, **settings: Any) -> Learner:
    return Learner(n_features, family=family, memory=Forgetting(r), penalty=L1(), tuner=tuner, **settings)


# --- online, at the chosen lams ---------------------------------------------------------------------------------------


def regimes(stream: Stream) -> list[slice]:
    """The rows of each regime."""
    edges = [0, *stream.changes, len(stream.y)]
    return [slice(int(start), int(stop)) for start, stop in pairwise(edges)]


def stepwise(stream: Stream, lams: Sequence[float], r: float) -> Run:
    """One lam per regime, and one memory for all of them: the state is passed from each learner to the next.

    >>> from streamlasso.reproduce.offline import stepwise
    >>> from streamlasso.simulate import simulate
    >>> stepwise(simulate(0), [0.1, 0.2, 0.3], r=0.95).lam[[0, 99, 100, 200]]
    array([0.1, 0.1, 0.2, 0.3])
    """
    n_rows, n_features = stream.X.shape
    record, path = np.empty((n_rows, len(RECORD))), np.empty((n_rows, 1 + n_features))
    state: dict[str, np.ndarray] | None = None
    for rows, lam in zip(regimes(stream), lams, strict=True):
        learner = _learner(stream.family, n_features, Fixed(lam), r)
        if state is not None:
            learner.restore(state)
        learner.learn(stream.X[rows], stream.y[rows], None, record[rows], path[rows])
        state = learner.state()
    return Run(record[:, RECORD.index("loss")], record[:, RECORD.index("lam")], path[:, 1:])


def fixed(stream: Stream, lam: float, r: float) -> Run:
    """One lam for the whole stream."""
    return stepwise(stream, [lam] * len(regimes(stream)), r)
