"""The methods that are compared, and the grid of settings of each."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from itertools import product
from time import process_time
from typing import Any

import numpy as np

from streamlasso import RAPClassifier, RAPRegressor, __version__, memories, progressive, tuners
from streamlasso.bench import peers
from streamlasso.bench.losses import FAMILIES
from streamlasso.bench.prequential import (
    OneVersusRest,
    Peer,
    Persistence,
    ResponseStandardised,
    RunningMean,
    TooSlow,
    predict_then_learn,
)
from streamlasso.bench.task import Task

#: The settings that "best in hindsight" is over.
LEARNING_RATES, L1 = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3), (0.0, 0.001, 0.01)
#: Gradients of counts are as large as the counts.
POISSON_RATES = (1e-5, 3e-5, 1e-4, 3e-4)
SCHEDULES = ("constant", "invscaling")
FORGET = (0.0, 0.001, 0.01)
VW_RATES, VW_L1 = (0.05, 0.1, 0.5, 2.0), (0.0, 1e-5, 1e-4)
WINDOW = 1000
#: The setting without tuning; every method has one whose name starts so, and it is the first.
DEFAULT = "default"
#: Marks a setting with responses standardised by running moments.
TS = " +ts"
OURS = "streamlasso"


@dataclass(frozen=True)
class Entry:
    """A method with one setting; `run(task, limit)` gives the mean predicted for each row, and the CPU seconds.

    With more than two classes it gives the probability of the class that came (`Task.outcome`).
    """

    method: str
    setting: str
    package: str
    run: Callable[[Task, float], tuple[np.ndarray, float]]

    @property
    def missing(self) -> bool:
        return importlib.util.find_spec(self.package) is None

    @property
    def version(self) -> str:
        return __version__ if self.package == "streamlasso" else version(DISTRIBUTIONS.get(self.package, self.package))


#: Where a package is distributed under another name.
DISTRIBUTIONS = {"sklearn": "scikit-learn"}


def entries(family: str) -> Iterator[Entry]:
    """All entries for this family, in the order of `METHODS`.

    >>> from streamlasso.bench.entries import entries
    >>> [entry.setting for entry in entries("gaussian") if entry.method == "refit"]
    ['default: last 1000 rows', 'all rows']
    """
    for method, (package, families, settings) in PEERS.items():
        if family in families:
            yield from (Entry(method, setting, package, _peer_run(make)) for setting, make in settings(family))
    for setting, options in OUR_SETTINGS.items():
        yield Entry(OURS, setting, "streamlasso", _our_run(options))


def entries_by_name(family: str) -> dict[tuple[str, str], Entry]:
    """The entries for this family by method and setting."""
    return {(entry.method, entry.setting): entry for entry in entries(family)}


# --- peers ------------------------------------------------------------------------------------------------------------

Setting = tuple[str, Callable[[], Peer]]


def _peer_run(make: Callable[[], Peer]) -> Callable[[Task, float], tuple[np.ndarray, float]]:
    def run(task: Task, limit: float) -> tuple[np.ndarray, float]:
        peer = OneVersusRest(make, task.n_classes) if task.n_classes > 2 else make()
        return predict_then_learn(peer, task.X, task.y, limit)

    return run


def _scaled(family: str, setting: str, make: Callable[[], Peer]) -> Setting:
    """The same setting, for real-valued responses with these standardised."""
    if family != "gaussian":
        return setting, make
    return setting + TS, lambda: ResponseStandardised(make())


def _running_mean(family: str) -> Iterator[Setting]:
    yield DEFAULT, lambda: RunningMean(family)


def _persistence(family: str) -> Iterator[Setting]:
    yield DEFAULT, lambda: Persistence(family)


def _river(family: str) -> Iterator[Setting]:
    yield DEFAULT, lambda: peers.river_linear(family)
    rates = LEARNING_RATES + POISSON_RATES if family == "poisson" else LEARNING_RATES
    for rate, l1 in product(rates, L1):
        yield _scaled(family, f"lr={rate:g} l1={l1:g}", partial(peers.river_linear, family, rate, l1))


def _sklearn_sgd(family: str) -> Iterator[Setting]:
    yield DEFAULT, lambda: peers.sklearn_sgd(family)
    if family == "gaussian":
        yield _scaled(family, "its own steps", lambda: peers.sklearn_sgd(family))
    for schedule, eta0, l1 in product(SCHEDULES, LEARNING_RATES, L1):
        make = partial(peers.sklearn_sgd, family, eta0, l1, schedule)
        yield _scaled(family, f"{schedule} eta0={eta0:g} l1={l1:g}", make)


def _vowpal_wabbit(family: str) -> Iterator[Setting]:
    """Its default takes features as they are: VW scales, but does not centre them."""
    yield _scaled(family, DEFAULT, lambda: peers.VowpalWabbit(family))
    for rate, l1 in product(VW_RATES, VW_L1):
        make = partial(peers.vw_centred, family, f"--learning_rate {rate} --l1 {l1}")
        yield _scaled(family, f"centred lr={rate:g} l1={l1:g}", make)


def _ondil(family: str) -> Iterator[Setting]:
    for forget in FORGET:
        yield _named(f"forget={forget:g}", forget == 0), partial(peers.Ondil, forget)
    for forget in FORGET:
        yield _scaled(family, f"forget={forget:g}", partial(peers.Ondil, forget))


def _refit(family: str) -> Iterator[Setting]:
    yield _named(f"last {WINDOW} rows", True), lambda: peers.Refit(family, WINDOW)
    yield "all rows", lambda: peers.Refit(family, None)


def _river_forest(family: str) -> Iterator[Setting]:
    yield DEFAULT, lambda: peers.river_forest(family)


def _boosting(family: str) -> Iterator[Setting]:
    yield _named(f"last {WINDOW} rows", True), lambda: peers.boosting(family, WINDOW)
    yield "all rows", lambda: peers.boosting(family, None)


def _named(setting: str, default: bool) -> str:
    return f"{DEFAULT}: {setting}" if default else setting


#: Method -> the package it needs, the families it has, its settings.
PEERS: dict[str, tuple[str, tuple[str, ...], Callable[[str], Iterator[Setting]]]] = {
    "running-mean": ("streamlasso", FAMILIES, _running_mean),
    "persistence": ("streamlasso", FAMILIES, _persistence),
    "river": ("river", FAMILIES, _river),
    "sklearn-sgd": ("sklearn", ("gaussian", "binomial"), _sklearn_sgd),
    "vowpal-wabbit": ("vowpalwabbit", FAMILIES, _vowpal_wabbit),
    "refit": ("sklearn", FAMILIES, _refit),
    "ondil": ("ondil", ("gaussian",), _ondil),
    "river-forest": ("river", FAMILIES, _river_forest),
    "boosting": ("sklearn", FAMILIES, _boosting),
}
BASELINES = ("running-mean", "persistence")
#: Milliseconds per row.
SLOW = ("river-forest", "boosting")
METHODS: tuple[str, ...] = (*PEERS, OURS)
#: What is compared: the linear methods, or all.
GROUPS: dict[str, tuple[str, ...]] = {
    "quick": (*(method for method in PEERS if method not in SLOW), OURS),
    "all": METHODS,
}


def is_peer(method: str) -> bool:
    """Whether it is neither ours nor the running mean, which is the unit of all losses.

    >>> is_peer("persistence"), is_peer("streamlasso")
    (True, False)
    """
    return method != "running-mean" and not method.startswith(OURS)


# --- ours -------------------------------------------------------------------------------------------------------------

#: Setting -> the parameters of the estimator.
OUR_SETTINGS: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    "SGD(0.005) memory=0.99": dict(tuner=tuners.SGD(0.005), memory=0.99),
    "LARS(0.01) memory=0.99": dict(tuner=tuners.LARS(0.01), memory=0.99),
    "LogRMS() memory=0.95": dict(tuner=tuners.LogRMS(), memory=0.95),
    "LogRMS() memory=0.99": dict(tuner=tuners.LogRMS(), memory=0.99),
    "LogRMS() memory=1": dict(tuner=tuners.LogRMS(), memory=1.0),
    "LogRMS() memory=Window(200)": dict(tuner=tuners.LogRMS(), memory=memories.Window(200)),
    "LogRMS() memory=AdaptiveForgetting()": dict(tuner=tuners.LogRMS(), memory=memories.AdaptiveForgetting()),
}


def _our_run(options: dict[str, Any]) -> Callable[[Task, float], tuple[np.ndarray, float]]:
    """All rows in one call; whether that was too slow is known at its end."""

    def run(task: Task, limit: float) -> tuple[np.ndarray, float]:
        model = RAPClassifier(**options) if task.family == "binomial" else RAPRegressor(family=task.family, **options)
        start = process_time()
        trace = progressive(model, task.X, task.y, progress=False)
        seconds = process_time() - start
        means = _class_means(task, trace.loss) if task.family == "binomial" else trace.prediction
        if seconds > limit:
            raise TooSlow(means, seconds)
        return means, seconds

    return run


def _class_means(task: Task, loss: np.ndarray) -> np.ndarray:
    """Probabilities from log losses: exp(-loss) is the probability of the class that came."""
    right = np.exp(-loss)
    return np.where(task.outcome > 0, right, 1 - right)
