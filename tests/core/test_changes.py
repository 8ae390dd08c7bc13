"""Changes: the statistics against their definitions, what is found and named, states to the bit, and quiet streams."""

import numpy as np
import pytest

from oracles.changes import faded_sums, page_sums, surprise
from streamlasso import RAPClassifier, RAPRegressor, families
from streamlasso.core.attribution import OFFSET, RESPONSE, found_in
from streamlasso.core.changes import Changes, limits
from streamlasso.families import Gaussian
from streamlasso.simulate import simulate
from streamlasso.tuners import LogRMS

LOSS, SCORE, SURPRISE = 2, 3, 4


def watched(n, p=2, seed=0, alarms=False):
    """A detector that has seen rows of noise, with the true model; and the rows."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, p)), rng.normal(size=n)
    changes = Changes(p, Gaussian(), 1.0)
    if not alarms:
        changes.score_limit = changes.surprise_limit = np.inf
    changes.watch(X, y, np.zeros(n), 0.5 * y**2, np.zeros((n, p + 1)))
    return changes, X, y


def changing(n=700, at=500, p=6, seed=1, size=2.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    moved = np.where(np.arange(n) < at, 0.0, size)
    return X, X[:, 0] + moved * X[:, 3] + rng.normal(size=n)


def test_sums_of_surprises_are_the_largest_sums_of_log_likelihood_ratios():
    changes, _, _ = watched(120)
    pause = 120 - changes.age
    np.testing.assert_allclose(changes.sums, page_sums(np.asarray(changes.notes)[pause:120, SURPRISE]), atol=1e-9)


def test_scores_are_faded_sums_of_errors_times_features():
    changes, X, _ = watched(120)
    score = np.asarray(changes.notes)[:120, SCORE]
    before = np.array([X[: max(t, 1)].mean(axis=0) * (t > 0) for t in range(120)])
    for j in range(2):
        np.testing.assert_allclose(np.asarray(changes.S)[:, j + 1], faded_sums(score * (X - before)[:, j]), atol=1e-9)
    np.testing.assert_allclose(np.asarray(changes.S)[:, 0], faded_sums(score), atol=1e-9)


@pytest.mark.parametrize("error", [0.1, 1.0, 3.0, 40.0])
def test_a_surprise_is_the_probability_of_an_error_as_large(error):
    changes, _, _ = watched(100)
    expected = surprise(error, np.array(changes.square), np.array(changes.evidence)) / max(changes.usual, 1.0)
    changes.watch(np.zeros((1, 2)), np.array([error]), np.zeros(1), np.zeros(1), np.zeros((1, 3)))
    assert changes.notes[100, SURPRISE] == pytest.approx(expected, rel=2e-3)


def test_fewer_false_alarms_need_larger_limits():
    assert all(np.diff([limits(rate, 20) for rate in (10.0, 1.0, 0.1)], axis=0).ravel() > 0)
    assert limits(1.0, 100)[0] > limits(1.0, 10)[0]


# --- what is found ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"tuner": LogRMS()}, {"memory": 200, "tuner": LogRMS()}])
def test_a_coefficient_that_moves_is_found_and_named(settings):
    X, y = changing()
    (change,) = RAPRegressor(**settings, false_alarms=1.0).fit(X, y).changes_
    assert abs(change.row - 500) <= 5 and change.detected < 540
    assert list(change.features) == ["x3"]
    before, after = change.features["x3"]
    assert abs(before) < 0.3 and after == pytest.approx(2.0, abs=0.4)
    assert sum(change.probability.values()) == pytest.approx(1.0) and change.loss > 0
    assert max(change.probability, key=change.probability.get) == change.row


@pytest.mark.parametrize("family", ["poisson", "gamma"])
def test_so_it_is_in_other_families(family):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(900, 4))
    eta = 0.5 + 0.3 * X[:, 0] + np.where(np.arange(900) < 600, -0.4, 0.4) * X[:, 2]
    y = rng.poisson(np.exp(eta)) if family == "poisson" else rng.gamma(4.0, np.exp(eta) / 4.0) + 1e-9
    changes = [change for change in RAPRegressor(family).fit(X, y).changes_ if change.detected >= 600]
    assert changes and "x2" in changes[0].features and changes[0].detected < 680


def test_classes_that_change_are_found_and_mirrored_models_say_the_opposite():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(900, 3))
    y = (np.where(np.arange(900) < 600, 2.0, -2.0) * X[:, 1] + rng.logistic(size=900) > 0).astype(int)
    model = RAPClassifier().fit(X, y)
    (change,) = [change for change in model.changes_ if change.detected >= 600]
    before, after = change.features["x1"]
    assert before > 0 > after and change.detected < 640
    other = model.learners_[0].mirrored().changes.list()[-1].features[1]
    assert other == (-before, -after)


def test_noise_that_doubles_is_found_and_blamed_on_no_feature():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(900, 5))
    y = X[:, 0] + np.where(np.arange(900) < 600, 1.0, 2.0) * rng.normal(size=900)
    (change,) = RAPRegressor().fit(X, y).changes_
    assert 600 <= change.detected < 640 and not change.features


def test_a_stream_that_does_not_change_is_quiet_also_with_outliers():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(3000, 5))
    y = X[:, 0] + rng.standard_t(3, size=3000)
    y[[700, 1500, 2500]] += 1e6
    assert RAPRegressor().fit(X, y).changes_ == []
    assert not hasattr(RAPRegressor(false_alarms=0.0).fit(X, y), "changes_")


@pytest.mark.parametrize("y", [np.ones(300), np.zeros(300), np.where(np.arange(300) < 200, 1.0, 1e6)])
def test_responses_without_noise_give_finite_numbers(y):
    model = RAPRegressor().fit(np.random.default_rng(0).normal(size=(300, 2)), y)
    assert all(np.isfinite(value).all() for value in model.learners_[0].changes.state().values())
    assert all(np.isfinite(change.loss) for change in model.changes_)


def test_a_step_without_noise_is_a_change():
    X = np.random.default_rng(0).normal(size=(400, 2))
    y = np.where(np.arange(400) < 300, 1.0, 3.0) + 0.1 * X[:, 0] + 0.01 * np.random.default_rng(1).normal(size=400)
    change = RAPRegressor().fit(X, y).changes_[0]
    assert change.row == 300 and "intercept" in change.features


# --- states -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [250, 505, 560, 650])
def test_a_copy_continues_to_the_bit(cut):
    X, y = changing()
    whole = RAPRegressor().fit(X, y)
    part = RAPRegressor.from_bytes(RAPRegressor().fit(X[:cut], y[:cut]).to_bytes()).partial_fit(X[cut:], y[cut:])
    assert part.to_bytes() == whole.to_bytes() and part.changes_ == whole.changes_


def test_features_that_come_later_were_zero():
    X, y = changing(300)
    learner = RAPRegressor().fit(X[:, :4], y).learners_[0]
    grown = learner.grown(6).changes.state()
    wide = RAPRegressor().fit(np.column_stack([X[:, :4], np.zeros((300, 2))]), y).learners_[0].changes.state()
    assert grown["S"].shape == wide["S"].shape and np.all(grown["S"][:, 5:] == 0)
    assert np.array_equal(grown["x"], wide["x"])


def test_the_last_32_changes_are_kept():
    rng = np.random.default_rng(7)
    changes = Changes(0, None, 1.0)
    for t in range(8000):
        changes.update(rng.normal() + 20.0 * (t // 200 % 2))
    found = changes.list()
    assert len(found) in (32, 33) and [change.detected for change in found] == sorted(c.detected for c in found)
    assert all(change.row % 200 in (199, 0, 1) for change in found)


@pytest.mark.parametrize("far", [10.0, 400.0, 1e4, 1e30])
@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_rows_that_a_model_misses_by_far_still_have_an_answer(family, far):
    """It is found while rows are learnt, so that an error here would end the learning."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    notes = np.zeros((40, 5))
    notes[:, RESPONSE] = np.maximum(family.sample(rng, X[:, 0]), 1e-9)
    notes[:, OFFSET] = far * np.where(np.arange(40) < 20, 1.0, -1.0)
    for feature in (-1, 1):
        change = found_in(np.arange(40), X, notes, lambda row: np.zeros(4), family, 30, 20, feature, np.zeros(3))
        numbers = [change.loss, *change.probability.values(), *sum(change.features.values(), ())]
        assert np.all(np.isfinite(numbers)) and sum(change.probability.values()) == pytest.approx(1.0)


def test_classes_that_are_nearly_certain_are_learnt_through_a_change():
    stream = simulate(0, n_features=12, lengths=(150, 150), densities=(0.8, 0.2))
    eta = np.einsum("ij,ij->i", stream.X, stream.beta) / 3
    y = np.maximum(families.Binomial().sample(np.random.default_rng(1), eta), 1e-9)
    assert RAPRegressor("binomial").fit(stream.X, y).n_seen_ == 300
