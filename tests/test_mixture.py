"""The default of both faces: what it selects, what it makes of odd streams, wild rows and changes."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from oracles.mixtures import COMPETITIONS
from streamlasso import RAPClassifier, RAPRegressor, families, progressive, river
from streamlasso.families import Binomial, Gaussian, Poisson
from streamlasso.memories import AdaptiveForgetting, Window
from streamlasso.penalties import ElasticNet, Ridge
from streamlasso.simulate import simulate
from streamlasso.tuners import LogRMS, Mixture, Tuner
from support.plain import PlainGaussian

every_family = pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
every_competition = pytest.mark.parametrize("memory,tuner", COMPETITIONS.values(), ids=COMPETITIONS)


def rows(n=80, p=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


def responses(family, X, seed=1):
    return family.sample(np.random.default_rng(seed), 0.3 + 0.8 * X[:, 0] - 0.6 * X[:, 1])


def labels(X, classes, seed=1):
    noisy = X[:, : len(classes)] + np.random.default_rng(seed).gumbel(size=(len(X), len(classes)))
    return np.array(classes)[noisy.argmax(axis=1)]


def bits(model):
    states = [learner.state() for learner in model.learners_]
    return [{name: array.tobytes() for name, array in state.items()} for state in states]


# --- what is selected -------------------------------------------------------------------------------------------------


@every_family
@every_competition
def test_the_selected_model(family, memory, tuner):
    X = rows()
    model = RAPRegressor(family, memory, tuner=tuner).fit(X, responses(family, X))
    chosen = model.selected_
    assert chosen.support.tolist() == np.flatnonzero(chosen.coef).tolist()
    assert chosen.coef.shape == (4,) and isinstance(chosen.intercept, float)
    assert 0 <= chosen.since <= model.n_seen_
    assert np.array_equal(chosen.inclusion, model.inclusion_) and chosen.importance.shape == (4,)


def test_one_model_selects_nothing():
    X = rows()
    model = RAPRegressor(tuner=LogRMS()).fit(X, X[:, 0])
    with pytest.raises(AttributeError, match=r"one model only; tuner=Mixture\(\) or memory=AdaptiveForgetting\(\)"):
        _ = model.selected_
    assert not hasattr(model, "selected_")


def test_several_classes_select_one_model_each():
    X = rows(200)
    assert RAPClassifier().fit(X, X[:, 0] > 0).selected_.coef.shape == (4,)
    several = RAPClassifier().fit(X, labels(X, list("abc"))).selected_
    assert [chosen.coef.shape for chosen in several] == [(4,)] * 3


def test_river_selects_by_name():
    X = rows(200)
    regressor, classifier = river.RAPRegressor(), river.RAPClassifier()
    for x, label in zip(X.tolist(), labels(X, list("abc")), strict=True):
        row = dict(zip("wxyz", x, strict=True))
        regressor.learn_one(row, x[1])
        classifier.learn_one(row, label)
    assert regressor.selected_.support.tolist() == [list(regressor.coef_).index("x")]
    assert sorted(classifier.selected_) == ["a", "b", "c"]


def test_sparse_truth_is_found_and_noise_is_left_out():
    """Two of thirty features matter; where none does the mean of the response wins."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 30))
    y = 2 * X[:, 3] - X[:, 17] + rng.normal(size=400)
    assert {3, 17} <= set(RAPRegressor().fit(X, y).selected_.support)
    assert len(RAPRegressor().fit(X, y).selected_.support) <= 10
    noise = RAPRegressor().fit(X, rng.normal(size=400))
    assert noise.predict(X) == pytest.approx(np.full(400, noise.predict(X).mean()), abs=0.2)


# --- changes ----------------------------------------------------------------------------------------------------------


@pytest.mark.xfail(reason="0.6 of the memory, not 0.5: open in issue 26", strict=True)
def test_after_a_change_the_memory_is_short_and_began_near_it():
    """Or forgets by a factor; without those, one that restarted has the largest weight. Before, most rows count."""
    sizes = []
    for seed in range(1, 9):
        stream = simulate(seed, lengths=(300, 80), densities=(0.2, 0.2))
        model = RAPRegressor().partial_fit(stream.X[:300], stream.y[:300])
        sizes.append(model.effective_size_)
        model.partial_fit(stream.X[300:], stream.y[300:])
        assert model.effective_size_ < 0.5 * sizes[-1]
    assert np.mean(sizes) > 200


@pytest.mark.parametrize("seed", range(3))
def test_after_a_change_it_beats_every_fixed_memory(seed):
    stream = simulate(seed, lengths=(150, 150, 150), densities=(0.2, 0.8, 0.2))
    default = progressive(RAPRegressor(), stream.X, stream.y)
    for r in (0.95, 0.98, 1.0):
        alone = progressive(RAPRegressor(memory=r, tuner=LogRMS()), stream.X, stream.y)
        assert default.loss[20:].mean() < alone.loss[20:].mean()


def test_where_nothing_changes_it_remembers_nearly_everything():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 5))
    model = RAPRegressor().fit(X, X[:, 0] + rng.normal(size=600))
    assert model.effective_size_ > 200


# --- wild rows --------------------------------------------------------------------------------------------------------


def clean_loss(family, X, y, X_seen, y_seen, rows):
    """The mean loss of the default on clean rows, having seen the others."""
    model = RAPRegressor(family)
    model.partial_fit(X_seen[: rows.start], y_seen[: rows.start])
    trace = progressive(model, X[rows], y[rows])
    return trace.loss.mean()


@pytest.mark.parametrize("family", [Gaussian(), Poisson(), Binomial()], ids=str)
@pytest.mark.parametrize("where", ["response", "feature"])
def test_one_wild_row_hardly_matters(family, where):
    """A response of 50 standard deviations, a feature of 1,000: what the next 100 rows cost, over three draws."""
    if where == "response" and type(family) is Binomial:
        pytest.skip("a class is never wild")
    calm = wild = 0.0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(301, 8))
        y = family.sample(rng, 0.5 * X[:, 0] - 0.5 * X[:, 1])
        X_wild, y_wild = X.copy(), y.copy()
        if where == "response":
            y_wild[200] = np.ceil(y.mean() + 50 * y.std())
        else:
            X_wild[200, 0] = 1000.0
        after = slice(201, 301)
        calm += clean_loss(family, X, y, X, y, after)
        wild += clean_loss(family, X, y, X_wild, y_wild, after)
    assert wild <= calm + 0.03 * abs(calm)


@pytest.mark.parametrize("wild,until", [(50.0, 150), (1000.0, 300)])
def test_a_wild_start_is_forgotten(wild, until):
    """In the first rows everything is trusted; memories that began after them have not seen it. (Eight streams: of one
    stream, rows 150 on, the loss after 1,000 was 1.08 of the clean one's, of eight it was twice that.)"""
    calm = after_it = 0.0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(500, 4))
        y = X[:, 0] + 0.3 * rng.normal(size=500)
        y_wild = y.copy()
        y_wild[3] = wild
        calm += progressive(RAPRegressor(), X, y).loss[until:].mean()
        after_it += progressive(RAPRegressor(), X, y_wild).loss[until:].mean()
    assert after_it <= 1.1 * calm


# --- odd streams ------------------------------------------------------------------------------------------------------


@every_competition
def test_a_constant_response_is_predicted(memory, tuner):
    X = rows()
    model = RAPRegressor(memory=memory, tuner=tuner).fit(X, np.full(80, 3.5))
    assert model.predict(X) == pytest.approx(np.full(80, 3.5), rel=1e-9)
    assert np.all(model.coef_ == 0)


@pytest.mark.parametrize("n_first", [12, 40])
def test_a_response_that_was_constant_at_first_is_learnt(n_first):
    X = rows(400)
    y = 2 * X[:, 0] + 0.5 * np.random.default_rng(1).normal(size=400)
    clean = progressive(RAPRegressor(), X, y)
    y[:n_first] = 0.0
    assert progressive(RAPRegressor(), X, y).loss[100:].mean() <= 1.05 * clean.loss[100:].mean()


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_one_class_only_is_never_certain(label):
    """After n rows of one class the other has about 1/(2n)."""
    X = rows(100)
    model = RAPRegressor("binomial").fit(X, np.full(100, label))
    other = np.abs(1 - label - model.predict(X))
    assert (other > 0.98).all() and (other < 1.0).all()


def test_a_class_never_seen_is_improbable():
    X = rows(200)
    model = RAPClassifier().partial_fit(X, labels(X, ["a", "b"]), classes=["a", "b", "never"])
    assert model.predict_proba(X)[:, 2].max() < 0.05
    assert np.isfinite(model.predict_proba(X)).all()


def rare(seed, n=600):
    """Flags that are up in one row of twenty, and events in one of fifty that have nothing to do with them."""
    rng = np.random.default_rng(seed)
    return (rng.random((n, 15)) < 0.05).astype(float), (rng.random(n) < 0.02).astype(float)


@pytest.mark.parametrize("exchanged", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_a_flag_that_met_one_rare_event_does_not_announce_the_next(seed, exchanged):
    """Of so few events none is certain: at most the square of the odds after k of them and nothing else, 2k + 1."""
    X, event = rare(seed)
    model = RAPRegressor(family="binomial", tuner=Mixture(carry=False))
    trace = progressive(model, X, 1 - event if exchanged else event)
    predicted = 1 - trace.prediction if exchanged else trace.prediction
    before = np.cumsum(event) - event
    odds = (2 * before + 1) ** 2
    assert np.all(predicted[10:] <= (odds / (1 + odds))[10:] + 1e-9)


def test_rare_events_without_a_cause_cost_little():
    """About one per cent of the running mean's loss, with 40 events in 2,000 rows."""
    traces = [progressive(RAPRegressor(family="binomial"), *rare(seed, n=2000)) for seed in range(6)]
    assert np.mean([trace.loss[50:].mean() / trace.baseline[50:].mean() for trace in traces]) < 1.015


MISSED = pytest.mark.xfail(reason="1.005 and 1.010 where 1.003 is asked: open in issue 26", strict=True)


@pytest.mark.parametrize(
    "family", [pytest.param(Gaussian(), marks=MISSED), pytest.param(Poisson(), marks=MISSED), Binomial()], ids=str
)
def test_where_nothing_can_be_learnt_it_costs_next_to_nothing(family):
    ratios = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1000, 15))
        trace = progressive(RAPRegressor(family=family), X, family.sample(rng, np.zeros(1000)))
        ratios.append((trace.loss - trace.least_loss)[50:].mean() / (trace.baseline - trace.least_loss)[50:].mean())
    assert np.mean(ratios) < 1.003


@every_family
def test_duplicate_and_constant_columns(family, request):
    if family.quadratic:
        reason = "the prior of ridges counts columns: open in issue 26"
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    X = rows(100)
    y = responses(family, X)
    wide = np.column_stack([X, X[:, 0], np.full(100, 7.0), np.zeros(100)])
    model = RAPRegressor(family).fit(wide, y)
    assert np.isfinite(model.coef_).all() and (model.coef_[5:] == 0).all()
    plain = RAPRegressor(family).fit(X, y)
    assert model.predict(wide) == pytest.approx(plain.predict(X), rel=0.05, abs=0.05)


@every_family
@pytest.mark.parametrize(
    "given_settings",
    [
        {"penalty": ElasticNet(0.5)},
        {"penalty": Ridge()},
        {"penalty_factor": [0.0, 1.0, 0.0, 2.0]},
        {"fit_intercept": False},
        {"standardize": False},
        {"batch_size": 7},
        {"memory": 0.95},
        {"memory": Window(30)},
        {"memory": AdaptiveForgetting()},
        {"tuner": Mixture(powers=(0.5,), factors=(), runs=0)},
        {"memory": AdaptiveForgetting((0.9, 1.0)), "tuner": LogRMS(), "history": 5},
    ],
    ids=str,
)
def test_every_setting_beats_the_mean(family, given_settings):
    X = rows(300)
    y = responses(family, X)
    trace = progressive(RAPRegressor(family, **given_settings), X, y)
    assert np.isfinite(trace.loss).all()
    assert trace.loss[50:].mean() < trace.baseline[50:].mean()


def test_a_feature_that_is_never_penalised_is_in_every_expert():
    X = rows(100)
    model = RAPRegressor(penalty_factor=[0.0, 1.0, 1.0, 1.0]).fit(X, X[:, 1] + 0.1 * X[:, 0])
    assert model.coef_[0] != 0 and 0 in model.selected_.support


def test_without_an_intercept_there_is_none():
    X = rows(100)
    model = RAPRegressor(fit_intercept=False).fit(X, 5 + X[:, 0])
    assert model.intercept_ == 0.0
    assert model.selected_.intercept == 0.0


# --- refusals, copies, parts of one's own ---------------------------------------------------------------------------


@every_competition
def test_a_refused_row_changes_nothing(memory, tuner):
    X = rows()
    model = RAPRegressor(memory=memory, tuner=tuner).fit(X, X[:, 0])
    before = bits(model)
    for bad in (np.nan, np.inf, 2e100):
        spoilt = X.copy()
        spoilt[5, 1] = bad
        with pytest.raises(ValueError):
            model.partial_fit(spoilt, X[:, 0])
        with pytest.raises(ValueError):
            model.partial_fit(X, spoilt[:, 1])
        assert bits(model) == before


@every_family
@every_competition
def test_any_chunks_and_copies_go_on_to_the_bit(family, memory, tuner):
    X = rows()
    y = np.maximum(responses(family, X), 1e-9)
    w = np.random.default_rng(3).integers(0, 3, size=80).astype(float)
    whole = RAPRegressor(family, memory, tuner=tuner).partial_fit(X, y, w)
    pieces = RAPRegressor(family, memory, tuner=tuner)
    for start, stop in [(0, 1), (1, 13), (13, 50), (50, 80)]:
        pieces.partial_fit(X[start:stop], y[start:stop], w[start:stop])
        pieces = copy.deepcopy(pickle.loads(pickle.dumps(pieces)))
    assert bits(pieces) == bits(whole)
    assert not hasattr(clone(pieces), "learners_")


@every_family
def test_river_is_the_same_to_the_bit(family):
    X = rows()
    y = np.maximum(responses(family, X), 1e-9)
    one, many = river.RAPRegressor(family), river.RAPRegressor(family)
    for x, value in zip(X.tolist(), y.tolist(), strict=True):
        one.learn_one(dict(zip("abcd", x, strict=True)), value)
    many.learn_many(pd.DataFrame(X, columns=list("abcd")), pd.Series(y))
    other = RAPRegressor(family).fit(X, y)
    assert list(one.coef_.values()) == list(many.coef_.values()) == other.coef_.tolist()
    assert one.effective_size_ == other.effective_size_
    assert bits(one) == bits(many)


class Tenth(Tuner):
    def update(self, lam, slope, norm, lam_max, state):
        return 0.1 * lam_max


@pytest.mark.xfail(reason="a family of ones own is not known to be quadratic: open in issue 26", strict=True)
def test_parts_of_ones_own():
    X = rows(100)
    y = responses(Gaussian(), X)
    one_power = Mixture(powers=(0.5,), runs=0)
    ours = RAPRegressor(PlainGaussian(), tuner=one_power).fit(X, y)
    theirs = RAPRegressor(tuner=one_power).fit(X, y)
    assert ours.predict(X) == pytest.approx(theirs.predict(X), rel=1e-6, abs=1e-8)
    both = RAPRegressor(PlainGaussian(), AdaptiveForgetting((0.9, 1.0)), tuner=Tenth()).fit(X, y)
    assert both.lambda_ == pytest.approx(0.1 * both.lambda_max_, rel=0.2)
    assert bits(pickle.loads(pickle.dumps(both))) == bits(both)
