"""The peers of the leaderboard: each predicts the mean of a row's response, then learns the row.

No peer is imported before it is asked for; a missing one is named together with the extra that brings it. Features
are standardised online, by the moments of the rows learnt so far, where a peer does not do so itself.
"""

from __future__ import annotations

import importlib
import time
import warnings
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any, Protocol

import numpy as np

#: Rows that ondil is given to start from, at least: it cannot learn the first rows one at a time.
ONDIL_START = 20
#: The practitioner's refit: the first one after so many rows, then one every so many rows; folds of cross-validation.
REFIT_FIRST, REFIT_EVERY, FOLDS = 50, 100, 5
#: Penalties that the logistic refit chooses from: with less of it than these, liblinear takes a minute a fit.
LOGISTIC_LAMS = np.geomspace(3e-4, 1, 8)
#: Ridge penalties that the Poisson refit chooses from; scikit-learn has no Poisson lasso.
POISSON_LAMS = np.geomspace(1e-4, 1e2, 7)
#: VW's loss and link for each family.
VW_LOSS = {
    "gaussian": "--loss_function squared",
    "binomial": "--loss_function logistic --link logistic",
    "poisson": "--loss_function poisson --link poisson",
}


class Peer(Protocol):
    """Predicts the mean of the response, then is told it."""

    def predict(self, x: np.ndarray) -> float: ...

    def learn(self, x: np.ndarray, y: float) -> None: ...


class TooSlow(Exception):
    """The time limit is over; the predictions so far are kept."""

    def __init__(self, means: np.ndarray, seconds: float) -> None:
        super().__init__(f"{len(means)} rows in {seconds:.0f} s")
        self.means, self.seconds = means, seconds


def predict_then_learn(
    peer: Peer, X: np.ndarray, y: np.ndarray, limit: float = float("inf")
) -> tuple[np.ndarray, float]:
    """The mean predicted for each row before it was learnt, and the seconds of CPU time it all took.

    >>> import numpy as np
    >>> from streamlasso.bench.peers import Persistence, predict_then_learn
    >>> means, seconds = predict_then_learn(Persistence("gaussian"), np.zeros((3, 1)), np.array([4.0, 5.0, 6.0]))
    >>> means
    array([0., 4., 5.])
    """
    means = np.empty(len(y))
    start = time.process_time()
    for i, (x, response) in enumerate(zip(X, y.tolist(), strict=True)):
        means[i] = peer.predict(x)
        peer.learn(x, response)
        if (seconds := time.process_time() - start) > limit:
            raise TooSlow(means[: i + 1], seconds)
    return means, time.process_time() - start


def needed(module: str) -> ModuleType:
    """A peer's module, or one line that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f'the leaderboard needs {package}: pip install "streamlasso[bench]"') from error


# --- what needs no package --------------------------------------------------------------------------------------------


class RunningMean:
    """The mean of the responses so far; shares and counts start from Jeffreys' prior, so that no loss is infinite."""

    def __init__(self, family: str) -> None:
        self.family = family
        self.n, self.total = 0, 0.0

    def predict(self, x: np.ndarray) -> float:
        if self.family == "binomial":
            return (self.total + 0.5) / (self.n + 1)
        if self.n == 0:
            return 1.0 if self.family == "poisson" else 0.0
        return (self.total + (0.5 if self.family == "poisson" else 0.0)) / self.n

    def learn(self, x: np.ndarray, y: float) -> None:
        self.n, self.total = self.n + 1, self.total + y


class Persistence:
    """The last response; for classes, how often this label was followed by a 1 so far."""

    def __init__(self, family: str) -> None:
        self.family = family
        self.last = 0.0
        self.followers = {label: RunningMean("binomial") for label in (0.0, 1.0)}

    def predict(self, x: np.ndarray) -> float:
        return self.followers[self.last].predict(x) if self.family == "binomial" else self.last

    def learn(self, x: np.ndarray, y: float) -> None:
        if self.family == "binomial":
            self.followers[self.last].learn(x, y)
        self.last = y


# --- standardising online ---------------------------------------------------------------------------------------------


class Moments:
    """Running mean and standard deviation, of a number or of each feature."""

    def __init__(self) -> None:
        self.n = 0
        self.mean: Any = 0.0
        self.scatter: Any = 0.0

    def update(self, value: Any) -> None:
        self.n += 1
        deviation = value - self.mean
        self.mean = self.mean + deviation / self.n
        self.scatter = self.scatter + deviation * (value - self.mean)

    @property
    def deviation(self) -> Any:
        return np.sqrt(self.scatter / max(self.n, 1))

    def standardised(self, value: Any) -> Any:
        """0 for what has not varied yet."""
        deviation = self.deviation
        return np.where(deviation > 0, value - self.mean, 0.0) / np.where(deviation > 0, deviation, 1.0)


class FeaturesStandardised:
    """A peer that sees standardised features."""

    def __init__(self, peer: Peer) -> None:
        self.peer, self.moments = peer, Moments()

    def predict(self, x: np.ndarray) -> float:
        return self.peer.predict(self.moments.standardised(x))

    def learn(self, x: np.ndarray, y: float) -> None:
        self.moments.update(x)
        self.peer.learn(self.moments.standardised(x), y)


class ResponseStandardised:
    """A peer that sees standardised responses; its predictions are put back on their scale."""

    def __init__(self, peer: Peer) -> None:
        self.peer, self.moments = peer, Moments()

    def predict(self, x: np.ndarray) -> float:
        return float(self.moments.mean + self.moments.deviation * self.peer.predict(x))

    def learn(self, x: np.ndarray, y: float) -> None:
        self.moments.update(y)
        self.peer.learn(x, float(self.moments.standardised(y)))


# --- one row at a time ------------------------------------------------------------------------------------------------


class River:
    """A model of river behind its own StandardScaler."""

    def __init__(self, model: Any, family: str) -> None:
        self.model = needed("river.preprocessing").StandardScaler() | model
        self.predict_row: Callable[[dict], Any] = self.model.predict_one
        if family == "binomial":
            self.predict_row = lambda row: self.model.predict_proba_one(row)[True]

    def predict(self, x: np.ndarray) -> float:
        return float(self.predict_row(_as_dict(x)))

    def learn(self, x: np.ndarray, y: float) -> None:
        self.model.learn_one(_as_dict(x), y)


def _as_dict(x: np.ndarray) -> dict[int, float]:
    return dict(enumerate(x.tolist()))


def river_linear(family: str, learning_rate: float | None = None, l1: float = 0.0) -> Peer:
    """river's linear, logistic or Poisson regression; a learning rate of None leaves it all at its defaults.

    Counts are not scaled, so there the intercept takes steps of the same size: at its default it always overflows.
    """
    models, optim = needed("river.linear_model"), needed("river.optim")
    options: dict[str, Any] = {} if learning_rate is None else dict(optimizer=optim.SGD(learning_rate), l1=l1)
    if family == "binomial":
        return River(models.LogisticRegression(**options), family)
    if family == "poisson":
        options["loss"] = optim.losses.Poisson()
        options |= {} if learning_rate is None else dict(intercept_lr=learning_rate)
    return River(models.LinearRegression(**options), family)


def river_bayesian(smoothing: float) -> Peer:
    """river's Bayesian linear regression; 1 never forgets. It has no intercept, so responses are standardised."""
    model = needed("river.linear_model").BayesianLinearRegression(smoothing=None if smoothing == 1 else smoothing)
    return ResponseStandardised(River(model, "gaussian"))


class SklearnSGD:
    """scikit-learn's SGDRegressor or SGDClassifier, by partial_fit."""

    def __init__(self, model: Any, family: str) -> None:
        self.model = model
        self.started = False
        self.binomial = family == "binomial"
        self.labels = {"classes": [0.0, 1.0]} if self.binomial else {}

    def predict(self, x: np.ndarray) -> float:
        if not self.started:
            return 0.5 if self.binomial else 0.0
        return float(self.model.predict_proba(x[None])[0, 1] if self.binomial else self.model.predict(x[None])[0])

    def learn(self, x: np.ndarray, y: float) -> None:
        self.model.partial_fit(x[None], [y], **self.labels)
        self.started = True


def sklearn_sgd(family: str, eta0: float | None = None, l1: float = 0.0, schedule: str = "constant") -> Peer:
    """SGD with the L1 penalty and a step that is constant or scaled down from eta0; None leaves all at its defaults."""
    models = needed("sklearn.linear_model")
    options: dict[str, Any] = {}
    if eta0 is not None:
        options = dict(learning_rate=schedule, eta0=eta0, penalty="l1", alpha=l1)
    if family == "binomial":
        return FeaturesStandardised(SklearnSGD(models.SGDClassifier(loss="log_loss", **options), family))
    return FeaturesStandardised(SklearnSGD(models.SGDRegressor(**options), family))


class VowpalWabbit:
    """VW's linear learner; it works in single precision."""

    def __init__(self, family: str, options: str = "") -> None:
        self.model = needed("vowpalwabbit").Workspace(f"--quiet {VW_LOSS[family]} {options}")
        self.binomial = family == "binomial"

    def predict(self, x: np.ndarray) -> float:
        return float(self.model.predict(_as_text(x)))

    def learn(self, x: np.ndarray, y: float) -> None:
        self.model.learn(f"{2 * y - 1 if self.binomial else y} {_as_text(x)}")


def vw_centred(family: str, options: str) -> Peer:
    """VW behind a scaler that also centres."""
    return FeaturesStandardised(VowpalWabbit(family, options))


def _as_text(x: np.ndarray) -> str:
    return "| " + " ".join([f"{j}:{value:.7g}" for j, value in enumerate(x.tolist()) if value])


class Ondil:
    """ondil's OnlineLasso: a path of penalties, one of which is picked by BIC; it standardises features itself.

    It starts from the first rows in which every feature varies, 20 or more: one that does not makes it all NaN.
    """

    def __init__(self, forget: float) -> None:
        _compile_ondil()
        self.model = needed("ondil.estimators").OnlineLasso(forget=forget)
        self.first: list[tuple[np.ndarray, float]] = []
        self.started = False

    def predict(self, x: np.ndarray) -> float:
        if not self.started:
            return float(np.mean([y for _, y in self.first])) if self.first else 0.0
        return float(self.model.predict(x[None])[0])

    def learn(self, x: np.ndarray, y: float) -> None:
        if self.started:
            self.model.update(x[None], np.array([y]))
            return
        self.first.append((x, y))
        rows = np.array([row for row, _ in self.first])
        if len(rows) >= ONDIL_START and np.all(np.ptp(rows, axis=0) > 0):
            self.model.fit(rows, np.array([response for _, response in self.first]))
            self.started = True


@cache
def _compile_ondil() -> None:
    """Its just-in-time compiler takes seconds once a process; no stream is charged with them."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    model = needed("ondil.estimators").OnlineLasso()
    model.fit(X[:-1], y[:-1])
    model.update(X[-1:], y[-1:])


# --- the practitioner's refit -----------------------------------------------------------------------------------------


class Refit:
    """A cross-validated fit to the last `window` rows, or to all (None), every so many rows.

    Until it can be fitted it says the running mean.
    """

    def __init__(self, family: str, window: int | None) -> None:
        self.family, self.window = family, window
        self.rows: list[np.ndarray] = []
        self.responses: list[float] = []
        self.mean = RunningMean(family)
        self.model: Any = None

    def predict(self, x: np.ndarray) -> float:
        if self.model is None:
            return self.mean.predict(x)
        if self.family == "binomial":
            return float(self.model.predict_proba(x[None])[0, 1])
        return float(self.model.predict(x[None])[0])

    def learn(self, x: np.ndarray, y: float) -> None:
        self.mean.learn(x, y)
        self.rows.append(x)
        self.responses.append(y)
        n = len(self.rows)
        if n == REFIT_FIRST or n % REFIT_EVERY == 0:
            self._fit()

    def _fit(self) -> None:
        kept = slice(0 if self.window is None else -self.window, None)
        X, y = np.array(self.rows[kept]), np.array(self.responses[kept])
        if self.family == "binomial" and min(y.sum(), len(y) - y.sum()) < FOLDS:
            return
        if np.ptp(y) == 0:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model = _cross_validated(self.family, len(y)).fit(X, y)


def _cross_validated(family: str, n_rows: int) -> Any:
    linear, pipeline = needed("sklearn.linear_model"), needed("sklearn.pipeline")
    scaler = needed("sklearn.preprocessing").StandardScaler()
    if family == "gaussian":
        return pipeline.make_pipeline(scaler, linear.LassoCV(cv=FOLDS))
    if family == "binomial":
        weights = 1 / (n_rows * LOGISTIC_LAMS)
        model = linear.LogisticRegressionCV(
            Cs=weights, cv=FOLDS, solver="liblinear", l1_ratios=(1.0,), scoring="neg_log_loss", random_state=0
        )
        return pipeline.make_pipeline(scaler, model)
    search = needed("sklearn.model_selection").GridSearchCV
    poisson = linear.PoissonRegressor(solver="newton-cholesky")
    model = search(poisson, {"alpha": POISSON_LAMS}, cv=FOLDS, scoring="neg_mean_poisson_deviance")
    return pipeline.make_pipeline(scaler, model)
