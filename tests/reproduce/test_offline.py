"""The offline baselines choose and run as documented: against scikit-learn, and against single learners."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from streamlasso import RAPRegressor, progressive
from streamlasso.families import Binomial, Gaussian
from streamlasso.reproduce import offline
from streamlasso.reproduce.offline import cross_validated_lam, fixed, lam_path, regimes, stepwise
from streamlasso.simulate import simulate
from streamlasso.tuners import Fixed
from support.peers import sparse_logistic


def rows_of(family, n=80, seed=0):
    stream = simulate(seed, lengths=(n,), densities=(0.2,), family=family)
    return stream.X, stream.y


def scaled(X, weight):
    mean = np.average(X, axis=0, weights=weight)
    sd = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    return (X - mean) / sd, sd


def peer_coef(X, y, family, lam, weight):
    """scikit-learn on standardised columns, back in the columns' own units."""
    Z, sd = scaled(X, weight)
    if isinstance(family, Gaussian):
        model = Lasso(lam, tol=1e-12, max_iter=1_000_000).fit(Z, y, sample_weight=weight)
    else:
        model = sparse_logistic(solver="saga", C=1 / (lam * weight.sum()), tol=1e-9, max_iter=200_000)
        model.fit(Z, y, sample_weight=weight)
    return model.coef_.ravel() / sd


@pytest.mark.parametrize("family", [Gaussian(), Binomial()])
@pytest.mark.parametrize("r", [1.0, 0.97])
def test_path_is_that_of_scikit_learn(family, r):
    X, y = rows_of(family)
    weight = r ** np.arange(len(y) - 1.0, -1.0, -1.0)
    lams = [0.15, 0.08, 0.04]
    for lam, row in zip(lams, lam_path(X, y, family, lams, weight), strict=True):
        np.testing.assert_allclose(row[1:], peer_coef(X, y, family, lam, weight), atol=1e-5)


def test_cross_validation_is_the_obvious_loop_over_folds():
    X, y = rows_of(Gaussian())
    Z, _ = scaled(X, np.ones(len(y)))
    lams = np.max(np.abs(Z.T @ (y - y.mean()))) / len(y) * np.geomspace(1, offline.LEAST_SHARE, offline.N_LAMS)
    losses = []
    for lam in lams:
        total = 0.0
        for k in range(10):
            out = np.arange(len(y)) % 10 == k
            coef = peer_coef(X[~out], y[~out], Gaussian(), lam, np.ones((~out).sum()))
            total += np.sum((y[out] - y[~out].mean() - (X[out] - X[~out].mean(axis=0)) @ coef) ** 2)
        losses.append(total)
    assert cross_validated_lam(X, y, Gaussian()) == pytest.approx(lams[np.argmin(losses)])


def test_rows_long_faded_do_not_count():
    X, y = rows_of(Gaussian(), n=200)
    other = np.where(np.arange(200) < 100, -5 * y, y)
    assert cross_validated_lam(X, y, Gaussian(), r=0.9) == cross_validated_lam(X, other, Gaussian(), r=0.9)
    assert cross_validated_lam(X, y, Gaussian()) != cross_validated_lam(X, other, Gaussian())


@pytest.mark.parametrize("family", [Gaussian(), Binomial()])
def test_one_lam_throughout_is_the_estimator_with_a_fixed_lam(family):
    stream = simulate(1, lengths=(40, 30, 50), family=family)
    trace = progressive(RAPRegressor(family=family, memory=0.95, tuner=Fixed(0.1)), stream.X, stream.y, coef=True)
    run = fixed(stream, 0.1, 0.95)
    np.testing.assert_array_equal(run.loss, trace.loss)
    np.testing.assert_array_equal(run.coef, trace.coef)


def test_steps_of_lam_leave_the_memory_alone():
    stream = simulate(1, lengths=(40, 30, 50))
    run = stepwise(stream, [0.3, 0.1, 0.2], 0.95)
    for lam, rows in zip([0.3, 0.1, 0.2], regimes(stream), strict=True):
        # A Gaussian model is a function of the weighted rows and lam: how lam came to its value does not matter.
        same = fixed(stream, lam, 0.95)
        np.testing.assert_allclose(run.coef[rows], same.coef[rows], atol=1e-9)
        np.testing.assert_allclose(run.loss[rows][1:], same.loss[rows][1:], atol=1e-9)
