"""The ridge whose coefficients drift: a Kalman filter, row by row, and what it is for."""

import numpy as np
import pytest

from oracles.mixtures import mixture
from oracles.replay import Stream, run
from streamlasso import RAPRegressor, progressive
from streamlasso.families import Gaussian
from streamlasso.tuners import Mixture

#: In the first rows it is the mean response. Then the coefficients lose a part of what is known per row, and the level.
FIRST_ROWS, LOST, OF_LEVEL = 16, 0.02, 0.1


def drifting(model):
    """The mean and covariance of its coefficients, the level first, and the means of the features that it takes."""
    state, n = model.state(), model.n_features + 1
    m = len(model.experts) - 1
    P = np.zeros((n, n))
    P[np.tril_indices(n)] = state[f"experts{m}/P"]
    return state[f"experts{m}/b"], P + np.tril(P, -1).T, state[f"experts{m}/centre"][1:]


@pytest.mark.parametrize("factor", [np.ones(3), np.array([1.0, 0.5, 2.0])], ids=str)
def test_each_row_is_a_step_of_a_kalman_filter(factor):
    """With unit noise, and random steps of the covariance that the prior has more than the posterior, times a part."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(120, 3)) * [1.0, 10.0, 0.1]
    y = 5 + X @ [1.0, 0.1, -10.0] + rng.uniform(-1, 1, size=120)
    X[:2], y[:2] = np.array([[1, 10, 0.1], [-1, -10, -0.1]]), (9, 1)
    model = mixture(Stream(X, y), family=Gaussian(), penalty_factor=factor, tuner=Mixture(powers=(0.5,), factors=()))
    for t in range(120):
        run(model, Stream(X[t : t + 1], y[t : t + 1]))
        if t + 1 == FIRST_ROWS:
            b, P, centre = drifting(model)
            assert b == pytest.approx([y[:16].mean(), 0, 0, 0])
            assert centre == pytest.approx(X[:16].mean(axis=0))
            level, kappa = P[0, 0], 1 / P[1, 1] / X[:16].var(axis=0)[0] / factor[0] ** 2
        elif t + 1 > FIRST_ROWS:
            z = np.append(1.0, X[t] - centre)
            gain = P @ z / (1 + z @ P @ z)
            b = b + gain * (y[t] - z @ b)
            P = P - np.outer(gain, P @ z)
            prior = 1 / (kappa * factor**2 * X[: t + 1].var(axis=0))
            P = (1 - LOST) * P + np.diag([OF_LEVEL * level, *(LOST * prior)])
            found, covariance, _ = drifting(model)
            unit = 1 / np.sqrt(np.diag(P))
            assert found * unit == pytest.approx(b * unit, rel=1e-8, abs=1e-8)
            assert covariance * np.outer(unit, unit) == pytest.approx(P * np.outer(unit, unit), rel=1e-8, abs=1e-8)
            b, P = found, covariance


def test_it_helps_where_coefficients_drift():
    """Ten streams of ten features whose coefficients are sums of random steps: by three standard errors."""
    gains = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(400, 10))
        y = np.sum(X * np.cumsum(0.1 * rng.normal(size=(400, 10)), axis=0), axis=1) + rng.normal(size=400)
        with_it, without = (
            progressive(RAPRegressor(tuner=Mixture(runs=runs)), X, y, progress=False).loss[50:].mean()
            for runs in (8, 0)
        )
        gains.append(np.log(without / with_it))
    error = np.std(gains, ddof=1) / np.sqrt(10)
    assert np.mean(gains) > 3 * error, f"{np.mean(gains):.3f} ({error:.3f})"
