"""Calibrated probabilities: the rule anew in Python, what it gains, and what it costs where nothing is to be gained."""

import numpy as np
import pytest
from scipy.special import expit

from oracles.calibration import calibrated
from streamlasso import RAPClassifier, RAPRegressor, progressive, river
from streamlasso.core.mixture.calibration import Calibration
from streamlasso.estimators.multiclass import sets_of
from streamlasso.families import Binomial


def stream(n, scale=1.0, shift=0.0, seed=0):
    """eta as predicted, and classes whose true eta is shift + scale eta."""
    rng = np.random.default_rng(seed)
    eta = 2 * rng.normal(size=n)
    return eta, (rng.random(n) < expit(shift + scale * eta)).astype(float)


def error_of(p, y, n_bins=10):
    """The expected calibration error."""
    bins = np.minimum((n_bins * p).astype(int), n_bins - 1)
    return sum(abs(np.sum(y[bins == k] - p[bins == k])) for k in range(n_bins)) / len(y)


def log_loss(p, y):
    return -np.mean(np.log(np.where(y > 0, p, 1 - p)))


def test_it_is_the_rule():
    eta, y = stream(400, 2.0, 0.5)
    eta[::50] *= 20
    weights = np.random.default_rng(1).uniform(0.5, 2, size=400)
    calibration, expected = Calibration(Binomial()), list(calibrated(eta, y, weights))
    found = []
    for i in range(400):
        found.append(calibration.line())
        calibration.learn(y[i], eta[i], weights[i])
    np.testing.assert_allclose([*found, calibration.line()], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("scale, shift", [(2.0, 0.0), (0.5, 0.0), (1.0, 1.0)])
def test_what_is_off_is_put_right(scale, shift):
    eta, y = stream(4000, scale, shift)
    lines = np.array(list(calibrated(eta, y)))[:-1]
    p = expit(lines[:, 0] + lines[:, 1] * eta)
    assert error_of(p[500:], y[500:]) < 0.5 * error_of(expit(eta[500:]), y[500:])
    assert log_loss(p, y) < 0.995 * log_loss(expit(eta), y)


def test_what_is_right_costs_next_to_nothing():
    losses = []
    for seed in range(5):
        eta, y = stream(3000, seed=seed)
        lines = np.array(list(calibrated(eta, y)))[:-1]
        losses.append(log_loss(expit(lines[:, 0] + lines[:, 1] * eta), y) / log_loss(expit(eta), y))
    assert np.mean(losses) < 1.001


def test_the_default_stays_one_linear_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = (rng.random(600) < expit(2 * X[:, 0])).astype(int)
    model = RAPClassifier().fit(X, y)
    eta = model.decision_function(X[:1])
    np.testing.assert_allclose(eta, model.intercept_[0] + X[:1] @ model.coef_[0], rtol=1e-8)


def test_exchanged_classes_have_exchanged_probabilities():
    """As a third class appears, the model of the first is the mirror image of that of the second."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (rng.random(300) < expit(3 * X[:, 0])).astype(float)
    learner = RAPRegressor("binomial").fit(X, y).learners_[0]
    np.testing.assert_allclose(learner.mirrored().decision_each(X), -learner.decision_each(X), rtol=1e-7, atol=1e-9)


def test_a_set_is_the_smallest_that_has_the_probability():
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(5), size=200)
    for row, found in zip(shares, sets_of(shares, 0.8), strict=True):
        assert row[found].sum() >= 0.8
        assert row[found].min() >= row[~found].max(initial=0)
        assert found.sum() == 1 or np.sort(row[found])[1:].sum() < 0.8


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sets_hold_the_class_as_often_as_asked_for(n_classes):
    """At least: the most probable class alone may have more."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1500, 3))
    edges = [0.0] if n_classes == 2 else [-0.7, 0.7]
    y = np.digitize(X[:, 0] + 0.7 * rng.normal(size=1500), edges)
    model = RAPClassifier().partial_fit(X[:500], y[:500], classes=range(n_classes))
    inside, size = [], []
    for i in range(500, 1500):
        found = model.predict_set(X[i : i + 1], 0.9)[0]
        inside.append(found[y[i]])
        size.append(found.sum())
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    assert np.mean(inside) > 0.885
    assert np.mean(size) < n_classes - 0.3


def test_river_has_sets():
    model = river.RAPClassifier()
    assert model.predict_set_one({"a": 1.0}) == set()
    model.learn_one({"a": 1.0}, "x")
    assert model.predict_set_one({"a": 1.0}) == {"x"}
    for i in range(200):
        model.learn_one({"a": float(i % 2)}, "x" if i % 2 else "y")
    assert model.predict_set_one({"a": 1.0}) == {"x"}
    assert model.predict_set_one({"a": 0.5}, 0.999) == {"x", "y"}
    with pytest.raises(ValueError, match="coverage="):
        model.predict_set_one({"a": 1.0}, 2)


def test_a_run_of_the_default_is_the_rule_on_its_own_predictions():
    """Without calibration the default is the same but for what follows eta."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 2))
    y = (rng.random(300) < expit(2 * X[:, 0])).astype(float)
    model = RAPRegressor("binomial")
    p = progressive(model, X, y)["prediction"]
    assert np.all((p > 0) & (p < 1))
    state = model.learners_[0].state()
    assert state["calibration/theta"].shape == (2, 2) and not np.allclose(state["calibration/theta"], [1.0, 0.0])
