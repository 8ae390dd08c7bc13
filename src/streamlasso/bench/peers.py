"""Other packages as peers that predict a row and then learn it.

No package is imported before its peer is built; an error about a missing one names the extra that installs it. Features
are standardised online, by the moments of the rows learnt so far, where a package does not do so itself.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from streamlasso.bench.prequential import FeaturesStandardised, Peer, RunningMean

#: The fewest rows that ondil starts from: it cannot learn the first rows one at a time.
ONDIL_START = 20
#: Refits: the first one after so many rows, then one every so many rows; folds of cross-validation.
REFIT_FIRST, REFIT_EVERY, FOLDS = 50, 100, 5
#: Penalties that the logistic refit chooses from: with less of it than these, a fit with liblinear takes a minute.
LOGISTIC_LAMS = np.geomspace(3e-4, 1, 8)
#: Ridge penalties that the Poisson refit chooses from; scikit-learn has no Poisson lasso.
POISSON_LAMS = np.geomspace(1e-4, 1e2, 7)
#: VW's loss and link for each family.
VW_LOSS = {
    "gaussian": "--loss_function squared",
    "binomial": "--loss_function logistic --link logistic",
    "poisson": "--loss_function poisson --link poisson",
}


def needed(module: str) -> ModuleType:
    """A peer's module, or an error that names the extra to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f'the comparison needs {package}: pip install "streamlasso[bench]"') from error


# --- one row at a time ------------------------------------------------------------------------------------------------


class River:
    """A model of river behind its own StandardScaler."""

    def __init__(self, model: Any, family: str) -> None:
        self.model = needed("river.preprocessing").StandardScaler() | model
        self.predict_row: Callable[[dict], Any] = self.model.predict_one
        if family == "binomial":
            self.predict_row = self._share

    def _share(self, row: dict) -> float:
        """Of the class 1; a model that has seen no class yet gives no probabilities."""
        shares = self.model.predict_proba_one(row)
        return shares.get(True, 0.0) if shares else 0.5

    def predict(self, x: np.ndarray) -> float:
        return float(self.predict_row(_as_dict(x)))

    def learn(self, x: np.ndarray, y: float) -> None:
        self.model.learn_one(_as_dict(x), y)


def _as_dict(x: np.ndarray) -> dict[int, float]:
    return dict(enumerate(x.tolist()))


def river_linear(family: str, learning_rate: float | None = None, l1: float = 0.0) -> Peer:
    """river's linear, logistic or Poisson regression; a learning rate of None keeps its defaults.

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


def river_forest(family: str) -> Peer:
    """river's adaptive random forest: ten trees, each replaced when it drifts. Counts are predicted as numbers."""
    forests = needed("river.forest")
    return River((forests.ARFClassifier if family == "binomial" else forests.ARFRegressor)(seed=0), family)


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
    """SGD with the L1 penalty and a step that is constant or scaled down from eta0; None keeps its defaults."""
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
    """Its just-in-time compiler takes seconds once per process, which are counted for no stream."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    model = needed("ondil.estimators").OnlineLasso()
    model.fit(X[:-1], y[:-1])
    model.update(X[-1:], y[-1:])


# --- refits -----------------------------------------------------------------------------------------------------------


class Refit:
    """A fit to the last `window` rows, or to all (None), every so many rows: of a lasso (for counts a ridge) whose
    penalty is chosen by cross-validation, or of what `build(family, number of rows)` gives.

    It predicts the running mean until it can be fitted.
    """

    def __init__(self, family: str, window: int | None, build: Callable[[str, int], Any] | None = None) -> None:
        self.family, self.window, self.build = family, window, build or _cross_validated
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
            self.model = self.build(self.family, len(y)).fit(X, y)


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


def boosting(family: str, window: int | None) -> Peer:
    """scikit-learn's histogram gradient boosting at its defaults, refitted to the last rows or to all."""
    return Refit(family, window, _boosted)


def _boosted(family: str, n_rows: int) -> Any:
    trees = needed("sklearn.ensemble")
    if family == "binomial":
        return trees.HistGradientBoostingClassifier(random_state=0)
    loss = "poisson" if family == "poisson" else "squared_error"
    return trees.HistGradientBoostingRegressor(loss=loss, random_state=0)
