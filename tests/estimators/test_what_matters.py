"""Importance and explanations: sums that come out."""

from copy import copy, deepcopy

import numpy as np
import pytest
from river import base, conf, stats

from streamlasso import RAPClassifier, RAPRegressor, river
from streamlasso.tuners import LogRMS, Mixture


def test_importance_is_the_coefficient_times_the_deviation():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) * [1, 5, 1]
    model = RAPRegressor(memory=1.0, tuner=Mixture(carry=False)).fit(X, X @ [1, 1, 0] + rng.normal(size=300))
    np.testing.assert_allclose(model.selected_.importance, np.abs(model.coef_) * X.std(axis=0), rtol=1e-2)
    one = RAPRegressor(tuner=LogRMS(), memory=1.0).fit(X, X[:, 0] + rng.normal(size=300)).learners_[0]
    np.testing.assert_allclose(one.single().importance, np.abs(one.coef) * X.std(axis=0), rtol=1e-6)


def test_a_change_is_explained_by_the_coefficients_that_moved():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(800, 4))
    y = X[:, 0] + np.where(np.arange(800) < 400, 1, -1) * X[:, 1] + 0.1 * rng.normal(size=800)
    model = RAPRegressor().partial_fit(X[:400], y[:400])
    old = copy(model)
    model.partial_fit(X[400:], y[400:])
    x = np.array([1.0, 1.0, 1.0, 1.0])
    why = model.explain(x, before=old)
    assert why.eta == pytest.approx(float(model.predict([x])[0] - old.predict([x])[0]), abs=0.05)
    assert why.baseline + why.contributions.sum() == pytest.approx(why.eta)
    expected = (model.coef_ - old.coef_) * (x - X.mean(axis=0))
    np.testing.assert_allclose(why.contributions, expected, atol=1e-6)
    assert np.argmax(np.abs(why.contributions)) == 1 and why.contributions[1] == pytest.approx(-2, abs=0.2)
    with pytest.raises(ValueError, match="before="):
        model.explain(x, before=RAPClassifier().fit(X[:60], np.arange(60) % 3))


def test_river_explains_as_the_estimator_does():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] - X[:, 2] + 0.1 * rng.normal(size=200)
    one, other = RAPRegressor().partial_fit(X, y), river.RAPRegressor()
    for x, target in zip(X.tolist(), y.tolist(), strict=True):
        other.learn_one(dict(zip("abc", x, strict=True)), target)
    row = {"a": 1.0, "b": 0.0, "c": 2.0, "unknown": 9.0}
    mine, theirs = one.explain([1.0, 0.0, 2.0]), other.explain_one(row)
    np.testing.assert_allclose(theirs.contributions, mine.contributions, atol=1e-9)
    assert theirs.eta == pytest.approx(other.predict_one(row))
    np.testing.assert_allclose(other.selected_.importance, one.selected_.importance, atol=1e-9)
    np.testing.assert_allclose(list(other.inclusion_.values()), one.inclusion_, atol=1e-9)
    assert other.selected_.support.tolist() == one.selected_.support.tolist() == [0, 2]
    lines = other.debug_one(row).splitlines()
    assert lines[0].split() == ["Name", "Value", "Contribution"] and lines[2].split()[0] == "c"
    assert float(lines[-1].split()[-1]) == pytest.approx(theirs.eta, abs=1e-5)


def test_classes_are_explained_each():
    rng = np.random.default_rng(4)
    model = river.RAPClassifier()
    for x in rng.normal(size=(300, 2)).tolist():
        model.learn_one({"a": x[0], "b": x[1]}, ["low", "middle", "high"][int(x[0] > -0.5) + int(x[0] > 0.5)])
    found = model.explain_one({"a": 2.0, "b": 0.0})
    assert set(found) == {"low", "middle", "high"} == set(model.selected_)
    assert found["high"].contributions["a"] > 0 > found["low"].contributions["a"]
    assert all(name in model.debug_one({"a": 2.0}) for name in found)


def test_any_regressor_of_river_gets_intervals():
    rng = np.random.default_rng(5)
    model = river.IntervalRegressor(stats_mean := Last(), confidence_level=0.8)
    inside = []
    for t in range(3000):
        y = float(rng.normal() * (1 if t < 1500 else 4))
        found = model.predict_one({}, with_interval=True)
        assert isinstance(found, conf.interval.Interval) and found.lower <= found.upper
        inside.append(y in found)
        model.learn_one({}, y)
    assert stats_mean.n == 3000
    assert np.mean(inside[50:]) == pytest.approx(0.8, abs=0.015)
    assert np.mean(inside[1550:1950]) == pytest.approx(0.8, abs=0.06)
    same = deepcopy(model)
    assert same.predict_one({}, with_interval=True) == model.predict_one({}, with_interval=True)
    with pytest.raises(ValueError, match="confidence_level="):
        river.IntervalRegressor(Last(), confidence_level=1.5)


class Last(base.Regressor):
    """Predicts the mean so far."""

    def __init__(self):
        self.mean, self.n = stats.Mean(), 0

    def learn_one(self, x, y):
        self.mean.update(y)
        self.n += 1

    def predict_one(self, x):
        return self.mean.get()


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_a_response_that_jumps_by_a_million_has_finite_intervals_in_order(family):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(400, 2))
    y = rng.poisson(3, size=400) + 1e6 * (np.arange(400) >= 200)
    model = RAPRegressor(family)
    for t in range(400):
        if t > 3:
            low, high = model.predict_interval(X[t : t + 1], 0.9)[0]
            assert np.isfinite([low, high]).all() and low <= high
        model.partial_fit(X[t : t + 1], y[t : t + 1].astype(float))
