"""Which features are selected: by the evidence of least squares with numpy, feature set by feature set, row by row."""

import math
from itertools import product

import numpy as np
import pytest

from streamlasso import RAPClassifier, RAPRegressor
from streamlasso.core.mixture.mixture import MixtureLearner
from streamlasso.memories import AdaptiveForgetting, Forgetting
from streamlasso.settings import checked
from streamlasso.simulate import SPARSE, f_score, simulate
from streamlasso.tuners import LogRMS, Mixture


class Memory:
    """Weighted rows about their means, and below them one more row for each feature: its prior."""

    def __init__(self, X, y, weight):
        self.n, root = weight.sum(), np.sqrt(weight)[:, None]
        self.mean, self.level = weight @ X / self.n, weight @ y / self.n
        self.X, self.y = root * (X - self.mean), root[:, 0] * (y - self.level)
        self.d = (self.X**2).sum(axis=0) / self.n

    def fit(self, chosen):
        """Coefficients, and the residual sum with that of the prior."""
        chosen = list(chosen)
        X = np.vstack([self.X[:, chosen], np.diag(np.sqrt(self.d[chosen]))])
        y = np.append(self.y, np.zeros(len(chosen)))
        b = np.linalg.lstsq(X, y, rcond=None)[0]
        return b, np.sum((y - X @ b) ** 2)

    def evidence(self, chosen):
        """All sizes are as likely, and so are all sets of one size."""
        chosen, p = list(chosen), self.X.shape[1]
        S = self.X[:, chosen].T @ self.X[:, chosen]
        volume = np.linalg.slogdet(np.eye(len(chosen)) + S / self.d[chosen])[1]
        share = self.fit(chosen)[1] / np.sum(self.y**2)
        return -0.5 * (self.n - 1) * np.log(share) - 0.5 * volume - np.log(math.comb(p, len(chosen)))

    def path(self):
        """No more features than rows, each the one that leaves least."""
        order, p = [], self.X.shape[1]
        while len(order) < min(p, self.n):
            rest = [j for j in range(p) if j not in order]
            order.append(min(rest, key=lambda j: self.fit([*order, j])[1]))
        return order

    def probabilities(self):
        """Each feature's: that of the sets on the path which hold it."""
        order = self.path()
        weight = posterior([self.evidence(order[:k]) for k in range(len(order) + 1)])
        found = np.zeros(self.X.shape[1])
        found[order] = np.cumsum(weight[::-1])[::-1][1:]
        return found

    def exhaustive(self):
        """The same over all sets, and the most likely set."""
        sets = list(product((False, True), repeat=self.X.shape[1]))
        weight = posterior([self.evidence(np.flatnonzero(chosen)) for chosen in sets])
        return weight @ np.array(sets), np.array(sets[np.argmax(weight)])


def posterior(evidence):
    weight = np.exp(np.array(evidence) - np.max(evidence))
    return weight / weight.sum()


class Rule:
    """What is shown after a look, as the documentation says it."""

    def __init__(self, p):
        self.looked = self.since = self.rows = 0
        self.probability, self.held = np.zeros(p), np.zeros(p, dtype=bool)

    def see(self, memory, t):
        if t - self.looked < min(0.2 * memory.n, self.rows) or self.held.sum() > memory.n:
            return
        self.looked, self.rows, self.probability = t, memory.n, memory.probabilities()
        best = self.probability > 0.5
        lead = memory.evidence(np.flatnonzero(best)) - memory.evidence(np.flatnonzero(self.held))
        if lead > 5 * min(1, memory.n / 150) and np.any(best != self.held):
            self.since, self.held = t, best


@pytest.mark.parametrize(("r", "p", "seed"), [(1.0, 5, 0), (0.97, 8, 1), (0.95, 12, 2), (0.8, 8, 3)])
def test_it_is_the_evidence_of_least_squares_row_by_row(r, p, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(120, p)) * np.arange(1, p + 1)
    y = X[:, 0] - X[:, p - 1] * np.where(np.arange(120) < 60, 1, 0) + 0.3 * rng.uniform(-1, 1, size=120)
    model = RAPRegressor(memory=Forgetting(r), tuner=Mixture(carry=False)).partial_fit(X[:20], y[:20])
    model.learners_[0].restore({**model.learners_[0].state(), **nothing_known(p)})
    rule = Rule(p)
    for t in range(20, 120):
        learner = model.learners_[0]
        learner.learn(X[t : t + 1], y[t : t + 1])
        memory = Memory(X[: t + 1], y[: t + 1], r ** np.arange(t + 1)[::-1])
        rule.see(memory, t + 1)
        np.testing.assert_allclose(learner.inclusion(), rule.probability, atol=1e-9)
        best = learner.selected()
        np.testing.assert_array_equal(best.support, np.flatnonzero(rule.held))
        np.testing.assert_allclose(best.coef[rule.held], memory.fit(best.support)[0], rtol=1e-8)
        np.testing.assert_allclose(best.intercept, memory.level - memory.mean @ best.coef, atol=1e-9)
        assert best.since == rule.since
        if t == 70:
            model = type(model).from_bytes(model.to_bytes())


def nothing_known(p):
    """The state of a selection before any row."""
    zeros = {f"selection/{name}": np.zeros(p) for name in ("probability", "held")}
    return {**zeros, "selection/memory": np.zeros(1), "selection/selected": np.zeros(2, dtype=np.int64)}


def test_of_all_sets_it_shows_the_most_likely_one():
    """60 streams with correlated features, of which each matters or not: the probability of a feature is near that over
    all sets, and the set that is shown is the most likely one, or one that the lead does not tell from it."""
    errors = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        p, n = rng.integers(2, 7), 100
        X = rng.normal(size=(n, p)) + 0.7 * rng.normal(size=(n, 1))
        y = X @ np.where(rng.random(p) < 0.5, rng.normal(size=p), 0.0) + rng.normal(size=n)
        model = RAPRegressor(memory=Forgetting(1.0), tuner=Mixture(carry=False)).partial_fit(X, y)
        memory = Memory(X[: looked(model)], y[: looked(model)], np.ones(looked(model)))
        exact, best = memory.exhaustive()
        errors.append(model.inclusion_ - exact)
        assert memory.evidence(np.flatnonzero(best)) - memory.evidence(model.selected_.support) < 5
    assert np.sqrt(np.mean(np.concatenate(errors) ** 2)) < 0.1


def looked(model):
    """The rows that had been learnt at the last look."""
    return int(model.learners_[0].state()["selection/selected"][1])


@pytest.mark.parametrize(("fit_intercept", "standardize"), [(True, True), (False, False)])
def test_a_memory_that_restarts_holds_its_rows_and_no_prior(fit_intercept, standardize):
    """The refit of the rows since a ridge began, where it leads: with the prior of one row for each coefficient."""
    rng = np.random.default_rng(10)
    X = rng.normal(size=(300, 4))
    y = np.where(np.arange(300) < 200, 1, -1) * 8 * X[:, 1] + rng.normal(size=300)
    model = RAPRegressor(fit_intercept=fit_intercept, standardize=standardize).partial_fit(X[:240], y[:240])
    learner = model.learners_[0]
    at = [since for _, since in filter(None, learner.memories)]
    weights = learner.weights.sum(axis=1)
    began = at[int(np.argmax(weights * (240 - np.array(at + [240] * (len(weights) - len(at))))))]
    assert 190 < began < 210
    memory = Memory(X[began:240], y[began:240], np.ones(240 - began))
    best = learner.selected()
    np.testing.assert_allclose(best.coef[best.support], memory.fit(best.support)[0], rtol=0.02)


def followed(model, X, y, **options):
    """After each row but the first: the coefficients of the selected model, and the probabilities."""
    learner = model.partial_fit(X[:1], y[:1], **options).learners_[0]
    coef, probability = [], []
    for t in range(1, len(y)):
        learner.learn(X[t : t + 1], y[t : t + 1])
        coef.append(learner.selected().coef)
        probability.append(learner.inclusion())
    return np.array(coef), np.array(probability)


def test_without_a_signal_it_has_no_features_and_with_one_it_has():
    """The last rows of each half: noise first, then one feature that matters."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 8))
    y = np.where(np.arange(400) < 200, 0.0, 3.0) * X[:, 3] + rng.normal(size=400)
    coef, _ = followed(RAPRegressor(), X, y)
    assert np.mean(np.any(coef[100:199], axis=1)) < 0.1
    assert np.all(coef[240:, 3] != 0)
    assert coef[240:, 3].mean() == pytest.approx(3, abs=0.3)


def test_few_features_of_many_are_found_and_stay():
    """2 of 20 matter, 500 rows: over 240 draws F is 0.79, and after 50 rows 3 features enter or leave per 1,000 rows.
    The standard errors over 40 draws are 0.04 and 1, and the lines lie three of them off."""
    f, moves = [], []
    for seed in range(40):
        stream = simulate(seed, lengths=[500], densities=[0.1])
        coef, _ = followed(RAPRegressor(), stream.X, stream.y)
        f.append(f_score(coef, stream.beta[1:])[20:].mean())
        moves.append(1000 * np.mean(np.sum((coef[51:] != 0) != (coef[50:-1] != 0), axis=1)))
    assert np.mean(f) > 0.66
    assert np.mean(moves) < 6


def test_the_probability_is_one():
    """Of features that are said to matter with a probability of p, a share of about p does; nested models know less
    than they say, so half of the distance from 1/2 is asked for."""
    said, true = [], []
    for seed in range(20):
        stream = simulate(seed, lengths=[120], densities=[(SPARSE, 0.8)[seed % 2]])
        _, probability = followed(RAPRegressor(), stream.X, stream.y)
        said.append(probability[40:])
        true.append(stream.beta[41:] != 0)
    said, true = np.concatenate(said), np.concatenate(true)
    assert true[said > 0.9].mean() > 0.7
    assert true[said < 0.1].mean() < 0.5
    assert np.mean((said - true) ** 2) < 0.25


def test_a_change_of_the_world_is_shown():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 10))
    y = np.where(np.arange(400) < 200, X[:, 2], X[:, 7]) * 2 + rng.normal(size=400)
    model = RAPRegressor().partial_fit(X[:200], y[:200])
    assert model.selected_.support.tolist() == [2]
    model.partial_fit(X[200:260], y[200:260])
    assert 7 in model.selected_.support
    assert 200 < model.selected_.since <= 260
    model.partial_fit(X[260:], y[260:])
    assert model.selected_.support.tolist() == [7]


def test_of_two_features_that_are_the_same_one_is_shown():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 12))
    X[:, 5] = X[:, 0]
    best = RAPRegressor().fit(X, X[:, 0] - 2 * X[:, 2] + rng.normal(size=300)).selected_
    assert 2 in best.support and len({0, 5} & set(best.support)) == 1


def test_a_feature_without_a_penalty_is_always_there():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(100, 4))
    model = RAPRegressor(penalty_factor=[1.0, 0.0, 1.0, 1.0]).fit(X, 3 * X[:, 0] + rng.normal(size=100))
    assert 1 in model.selected_.support
    assert model.inclusion_[1] == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("family", ["gaussian", "binomial", "poisson", "gamma"])
@pytest.mark.parametrize("memory", [None, 0.98, AdaptiveForgetting((0.9, 1.0))], ids=str)
@pytest.mark.parametrize("tuner", [Mixture(), LogRMS()], ids=["mixture", "log rms"])
def test_every_mixture_selects(family, memory, tuner):
    """Where no memory keeps sums, the features that the average uses."""
    if tuner == LogRMS() and not isinstance(memory, AdaptiveForgetting):
        pytest.skip("one model")
    rng = np.random.default_rng(6)
    X = rng.normal(size=(200, 3))
    mean = np.exp(1.5 * X[:, 1])
    draws = {
        "gaussian": 1.5 * X[:, 1] + rng.normal(size=200),
        "binomial": rng.random(200) < mean / (1 + mean),
        "poisson": rng.poisson(mean),
        "gamma": rng.gamma(5, mean / 5),
    }
    best = RAPRegressor(family, memory, tuner=tuner).fit(X, draws[family].astype(float)).selected_
    assert 1 in best.support and best.coef[1] > 0
    assert np.isfinite(best.coef).all() and np.isfinite(best.intercept)
    assert ((best.inclusion >= 0) & (best.inclusion <= 1)).all()
    assert (best.importance >= 0).all() and np.argmax(best.importance) == 1


def test_the_classes_exchanged_the_signs_change():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(200, 4))
    y = (rng.random(200) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(float)
    learner = RAPClassifier().fit(X, y).learners_[0]
    one, other = learner.selected(), learner.mirrored().selected()
    np.testing.assert_allclose(other.coef, -one.coef, rtol=1e-9)
    np.testing.assert_allclose(other.intercept, -one.intercept, rtol=1e-9)
    assert other.since == one.since


def test_what_overflows_or_never_moves_selects_nothing():
    X = np.random.default_rng(8).normal(size=(60, 3))
    for y in (np.ones(60), np.where(np.arange(60) % 2, 1e59, -1e59)):
        best = RAPRegressor().fit(X, y).selected_
        assert np.isfinite(best.inclusion).all()
    still = RAPRegressor().fit(np.ones((60, 3)), X[:, 0]).selected_
    assert not still.support.size


def test_a_feature_that_may_not_enter_is_not_shown():
    """As the own signal of a node in a network."""
    X = np.random.default_rng(11).normal(size=(100, 3))
    barred = {**checked(3, RAPRegressor().get_params()), "penalty_factor": np.array([1.0, np.inf, 1.0])}
    learner = MixtureLearner(3, **barred)
    learner.learn(X, X[:, 0] + X[:, 1])
    assert learner.selected().support.tolist() == [0]
    assert learner.inclusion()[1] == 0.0


@pytest.mark.parametrize("moment", [[61, 61], [40, 61], [50, 40]])
def test_a_support_that_holds_since_a_row_to_come_is_refused(moment):
    X = np.random.default_rng(9).normal(size=(60, 3))
    learner = RAPRegressor().fit(X, X[:, 0]).learners_[0]
    with pytest.raises(ValueError, match="a row that is to come"):
        learner.restore({**learner.state(), "selection/selected": np.array(moment)})
