"""A user's script, for mypy alone: `tests/test_stubs.py` checks it with --strict, and nothing runs it."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

from streamlasso import RAPClassifier, RAPRegressor, Trace, progressive, river
from streamlasso.families import Binomial, Family, Gamma, Gaussian, Poisson
from streamlasso.memories import AdaptiveForgetting, Forgetting, Window
from streamlasso.network import StreamingNetwork
from streamlasso.penalties import L1, ElasticNet, Ridge
from streamlasso.tuners import LARS, SGD, Fixed, LogRMS, Mixture, Tuner

Floats = NDArray[np.float64]


class Quartic(Family):
    def loss(self, y: float, eta: float) -> float:
        return (y - eta) ** 4 / 4

    def slope(self, y: float, eta: float) -> float:
        return -((y - eta) ** 3)

    def curvature(self, y: float, eta: float) -> float:
        return 3 * (y - eta) ** 2

    def mean(self, eta: float) -> float:
        return eta

    def sample(self, rng: np.random.Generator, eta: Floats) -> Floats:
        return rng.normal(eta)


class SignStep(Tuner):
    n_state = 1

    def update(self, lam: float, slope: float, norm: float, lam_max: float, state: Floats) -> float:
        state[0] += 1
        return lam - 0.01 * lam_max * (1 if slope > 0 else -1)


X: Floats = np.zeros((3, 2))
y: Floats = np.zeros(3)

assert_type(Gaussian().loss(1.0, 0.0), float)
assert_type(Poisson().mean(y), Floats)
assert_type(Gamma().check_target(y), str | None)
assert_type(Binomial().name, str)
assert_type(Mixture(powers=(0.0, 0.5)).powers, tuple[float, ...])
assert_type(Fixed(0.1).lam, float)
assert_type([SGD(0.1).step_size, LARS(0.1).step_size, LogRMS().step_size], list[float])

model = RAPRegressor(family=Quartic(), memory=Forgetting(0.9), penalty=ElasticNet(0.5), tuner=SignStep())
assert_type(model.partial_fit(X, y), RAPRegressor)
assert_type(model.save("model.safetensors"), None)
assert_type(RAPRegressor.load("model.safetensors"), RAPRegressor)
assert_type([model.predict(X), model.coef_], list[NDArray[Any]])
assert_type([model.intercept_, model.lambda_, model.lambda_max_, model.effective_size_], list[float])
assert_type(model.n_seen_, int)
assert_type(model.selected_.intercept, float)
RAPRegressor(family="poisson", memory=Window(500), penalty=Ridge())
classifier = RAPClassifier(memory=AdaptiveForgetting(), penalty=L1())
assert_type(classifier.predict_proba(X), NDArray[Any])
assert_type(progressive(model, X, y), Trace)
assert_type(StreamingNetwork().partial_fit(X), StreamingNetwork)
assert_type(river.RAPRegressor().predict_one({"a": 1.0}), float)
