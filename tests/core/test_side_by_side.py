"""Models side by side share their settings and nothing else: none of them may notice the others, or when it rests."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from streamlasso import RAPRegressor
from streamlasso.tuners import Tuner

SETTINGS = {
    "logrms": {"memory": 0.99, "tuner": "logrms"},
    "window": {"memory": 30, "tuner": "logrms"},
    "free feature": {"memory": 0.99, "tuner": "logrms", "penalty_factor": [0.0, 1.0, 1.0, 1.0, 1.0]},
    "ridge": {"memory": 0.99, "tuner": "logrms", "penalty": "ridge"},
    "default": {},
}


def rows(seed, n=120, p=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, X[:, seed % p] + 0.3 * rng.normal(size=n)


def alone(settings, seed):
    X, y = rows(seed)
    return RAPRegressor(**settings).partial_fit(X, y).to_bytes()


@pytest.mark.parametrize("kind", SETTINGS)
def test_models_in_turn_learn_what_each_learns_alone(kind):
    expected = [alone(SETTINGS[kind], seed) for seed in range(4)]
    others = [RAPRegressor(**settings) for settings in SETTINGS.values()]
    models = [RAPRegressor(**SETTINGS[kind]) for _ in range(4)]
    for start, end in [(0, 1), (1, 40), (40, 42), (42, 80), (80, 81), (81, 120)]:
        for seed, model in enumerate(models):
            X, y = rows(seed)
            model.partial_fit(X[start:end], y[start:end])
        for other in others:
            other.partial_fit(*rows(9, 33))
    assert [model.to_bytes() for model in models] == expected


def test_models_in_threads_learn_what_each_learns_alone():
    tasks = [(settings, seed) for seed in range(6) for settings in SETTINGS.values()]
    expected = [alone(*task) for task in tasks]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda task: alone(*task), tasks)) == expected


class LearnsAnother(Tuner):
    """Another model learns while this one is in the middle of a row."""

    other = None

    def update(self, lam, slope, norm, lam_max, state):
        if self.other is not None:
            self.other.partial_fit(*rows(3, 40))
        return 0.1 * lam_max


def test_a_model_that_learns_inside_a_row_of_another_disturbs_nothing():
    X, y = rows(1)
    plain, nested = LearnsAnother(), LearnsAnother()
    expected = RAPRegressor(memory=0.99, tuner=plain).partial_fit(X, y)
    nested.other = RAPRegressor(memory=0.99, tuner="logrms")
    found = RAPRegressor(memory=0.99, tuner=nested).partial_fit(X, y)
    assert nested.other.n_seen_ > 100
    np.testing.assert_array_equal(found.coef_, expected.coef_)


def test_what_is_equal_to_a_setting_but_of_another_type_is_refused_as_ever():
    X, y = rows(0)
    RAPRegressor(batch_size=1).partial_fit(X, y)
    with pytest.raises(ValueError, match="batch_size=True"):
        RAPRegressor(batch_size=True).partial_fit(X, y)


def test_rows_that_wait_are_refused_where_their_signs_are_damaged():
    learner = RAPRegressor(memory=0.99, tuner="logrms").partial_fit(*rows(0)).learners_[0]
    state = learner.state()
    assert len(state["moments.signed"]) > 0
    state["moments.signed"][0, 0] += 1.0
    with pytest.raises(ValueError, match=r"moments\.signed"):
        learner.restore(state)


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_what_is_asked_of_a_model_that_rests_is_what_it_was_before(family):
    settings = {"family": family, "penalty_factor": [0.0, 1.0, 1.0, 1.0, 1.0]}
    X, y = rows(1, 300)
    y = abs(y).round()
    rests, never = RAPRegressor(**settings), RAPRegressor(**settings)
    for start in range(0, 300, 33):
        rests.partial_fit(X[start : start + 33], y[start : start + 33])
        for i in range(start, min(start + 33, 300)):
            never.partial_fit(X[i : i + 1], y[i : i + 1])
        found, expected = rests.learners_[0], never.learners_[0]
        assert (found.lam, found.lam_max) == (expected.lam, expected.lam_max)
        for m in range(len(found.experts)):
            assert found.expert(m, 0)[:2] == expected.expert(m, 0)[:2]
    assert rests.to_bytes() == never.to_bytes()


@pytest.mark.parametrize("p", [64, 65, 100])
def test_a_model_that_rests_takes_another_state(p):
    X, y = rows(0, 60, p)
    learner = RAPRegressor(memory=0.99, tuner="logrms").partial_fit(X, y + X[:, 1]).learners_[0]
    state = learner.state()
    assert len(state["active.members"]) > 1
    learner.restore(state)
    state["active.members"][:2] = 0
    with pytest.raises(ValueError, match="active"):
        learner.restore(state)


def test_asking_for_lam_in_the_first_rows_changes_nothing():
    """Features without penalty entered in another order, and the last digits of all that followed were others."""
    X, y = rows(0, 200)
    X[:6, 0] = X[:3, 1] = 1.0
    asked, saved, never = (RAPRegressor(penalty_factor=[0.0, 0.0, 0.0, 1.0, 1.0]) for _ in range(3))
    for i in range(len(X)):
        for model in (asked, saved, never):
            model.partial_fit(X[i : i + 1], y[i : i + 1])
        assert asked.learners_[0].lam_max >= 0.0
        saved = RAPRegressor.from_bytes(saved.to_bytes())
    assert asked.to_bytes() == saved.to_bytes() == never.to_bytes()
