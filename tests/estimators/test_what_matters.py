"""Importance, relevance and explanations: sums that come out, and a list that is steady."""

from copy import copy, deepcopy

import numpy as np
import pytest
from river import base, conf, stats

from streamlasso import RAPClassifier, RAPRegressor, river
from streamlasso.simulate import SPARSE, simulate
from streamlasso.tuners import LogRMS


def fading(X, decay=0.99):
    """Mean and deviation of the rows, whose weights fade."""
    weight = decay ** np.arange(len(X))[::-1]
    mean = weight @ X / weight.sum()
    return mean, np.sqrt(weight @ (X - mean) ** 2 / weight.sum())


def test_importance_is_the_coefficient_times_the_deviation_of_late():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) * np.where(np.arange(300) < 150, 1, 5)[:, None]
    model = RAPRegressor().fit(X, X[:, 0] + rng.normal(size=300))
    # The first rows are not bounded yet, so that the rows learnt are those given.
    np.testing.assert_allclose(model.importance_, np.abs(model.coef_) * fading(X)[1], rtol=0.05)
    one = RAPRegressor(tuner=LogRMS(), memory=1.0).fit(X, X[:, 0] + rng.normal(size=300))
    np.testing.assert_allclose(one.importance_, np.abs(one.coef_) * X.std(axis=0), rtol=1e-6)
    assert one.relevant_ == [f"x{j}" for j in np.flatnonzero(one.coef_)]


def test_the_rule_of_relevance():
    """Strengths fade by .8; a feature enters above .07 log(p / k) of the largest, and leaves below a third of that.

    They are of the model of all experts with a thousandth or more of the largest weight.
    """
    rng = np.random.default_rng(1)
    stream = simulate(rng, lengths=[60, 60], densities=[0.5, 0.2])
    model = RAPRegressor().partial_fit(stream.X[:1], stream.y[:1])
    learner = model.learners_[0]
    shown, strength = learner.relevant(), learner.state()["relevance/strength"]
    for t in range(1, 120):
        learner.learn(stream.X[t : t + 1], stream.y[t : t + 1])
        state, weights = learner.state(), learner.weights
        weights = np.where(weights >= 1e-3 * weights.max(), weights, 0.0)
        model = sum(weights[m, k] * learner.expert(m, k)[2] for m, k in np.argwhere(weights)) / weights.sum()
        effect = np.abs(model[1:]) * np.sqrt(state["relevance/variance"])
        strength = 0.8 * strength + 0.2 * effect
        k = strength.sum() ** 2 / max(np.sum(strength**2), 1e-300)
        shown = strength > np.where(shown, 0.07 / 3, 0.07) * np.log(20 / max(k, 1.0)) * strength.max()
        np.testing.assert_allclose(state["relevance/strength"], strength)
        np.testing.assert_array_equal(learner.relevant(), shown)


def test_what_is_shown_is_steady_and_right():
    """A fifth of the moves of the model with the largest weight, and a larger F; the selected one has that too."""
    moves, scores = np.zeros(3), np.zeros(3)
    for seed in range(24):
        stream = simulate(np.random.default_rng(seed), lengths=[250, 250], densities=[SPARSE] * 2)
        learner = RAPRegressor().partial_fit(stream.X[:1], stream.y[:1]).learners_[0]
        sets = []
        for t in range(1, 500):
            learner.learn(stream.X[t : t + 1], stream.y[t : t + 1])
            lassos = np.where([[group.sparse] for group in learner.experts], learner.weights, 0.0)
            lead = learner.expert(*np.unravel_index(np.argmax(lassos), lassos.shape))[2][1:]
            sets.append([lead != 0, learner.selected().coef != 0, learner.relevant()])
        sets, truth = np.array(sets), stream.beta[1:] != 0
        moves += np.sum(sets[1:] != sets[:-1], axis=(0, 2))
        for k in range(3):
            scores[k] += 2 * np.sum(sets[:, k] & truth) / (sets[:, k].sum() + truth.sum()) / 24
    assert moves[2] < 0.2 * moves[0]
    assert moves[2] < moves[1] < moves[0]
    assert min(scores[1:]) > scores[0]


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
    np.testing.assert_allclose(list(other.importance_.values()), one.importance_, atol=1e-9)
    np.testing.assert_allclose(list(other.inclusion_.values()), one.inclusion_, atol=1e-9)
    assert other.relevant_ == ["a", "c"] and one.relevant_ == ["x0", "x2"]
    lines = other.debug_one(row).splitlines()
    assert lines[0].split() == ["Name", "Value", "Contribution"] and lines[2].split()[0] == "c"
    assert float(lines[-1].split()[-1]) == pytest.approx(theirs.eta, abs=1e-5)


def test_classes_are_explained_each():
    rng = np.random.default_rng(4)
    model = river.RAPClassifier()
    for x in rng.normal(size=(300, 2)).tolist():
        model.learn_one({"a": x[0], "b": x[1]}, ["low", "middle", "high"][int(x[0] > -0.5) + int(x[0] > 0.5)])
    found = model.explain_one({"a": 2.0, "b": 0.0})
    assert set(found) == {"low", "middle", "high"} == set(model.relevant_)
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
        if t > 2:
            low, high = model.predict_interval(X[t : t + 1], 0.9)[0]
            assert np.isfinite([low, high]).all() and low <= high
        model.partial_fit(X[t : t + 1], y[t : t + 1].astype(float))
