"""Every entry predicts before it learns, and does what its name says."""

import importlib.util
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LassoCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lags import entries_and_lagged, with_lags
from streamlasso import RAPClassifier
from streamlasso.bench import peers
from streamlasso.bench.entries import DEFAULT, METHODS, OURS, PEERS, entries, entries_by_name
from streamlasso.bench.losses import FAMILIES
from streamlasso.bench.prequential import (
    OneVersusRest,
    Persistence,
    ResponseStandardised,
    RunningMean,
    RunningMoments,
    TooSlow,
    predict_then_learn,
)
from streamlasso.bench.task import Task
from streamlasso.families import Binomial, Gaussian, Poisson

NAMED = {"gaussian": Gaussian(), "binomial": Binomial(), "poisson": Poisson()}
#: One setting of each method that a linear stream suits; the default of some is not among them.
SUITED = {
    "river": "lr=0.03 l1=0.001",
    "sklearn-sgd": "constant eta0=0.03 l1=0.001",
    "vowpal-wabbit": "centred lr=0.5 l1=0",
    "refit": "default: last 1000 rows",
    "river-forest": "default",
    "boosting": "default: last 1000 rows",
    OURS: "default",
}


def installed(entry):
    if entry.missing:
        pytest.skip(f"{entry.package} is not installed: it comes with the extra [bench]")
    return entry


def some_entries():
    """Of each method and family the default, and the setting that suits; not ondil, which is compiled for a minute."""
    for family in FAMILIES:
        for entry in (entry for entry in entries(family) if not entry.method.startswith("ondil")):
            if entry.setting.startswith(DEFAULT) or entry.setting.removesuffix(" +ts") == SUITED.get(entry.method):
                yield pytest.param(family, entry, id=f"{family}-{entry.method}-{entry.setting}")


def stream(make_stream, family, n=130, gain=0.6):
    made = make_stream(NAMED[family], n=n, gain=gain)
    return Task("made up", family, made.X, made.y, ["a", "b", "c", "d"])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family, entry", list(some_entries()))
def test_a_row_is_predicted_before_it_is_learnt(family, entry, make_stream):
    task = stream(make_stream, family)
    means = outcome(installed(entry), task)
    for row in (7, 99):
        y = task.y.copy()
        y[row] = 1 - y[row] if family == "binomial" else y[row] + 3
        told = outcome(entry, Task(task.name, family, task.X, y, task.names))
        np.testing.assert_allclose(means[: row + 1], told[: row + 1], rtol=1e-12)
        assert means is FAILED or not np.array_equal(means[row + 1 :], told[row + 1 :])


FAILED = np.empty(0)


def outcome(entry, task):
    """river's Poisson regression overflows as it comes: then there is nothing to compare."""
    try:
        return entry.run(task, float("inf"))[0]
    except OverflowError:
        return FAILED


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", SUITED)
@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_a_linear_stream_is_learnt(family, method, make_stream):
    task = stream(make_stream, family, n=400, gain=2.0)
    found = [e for e in entries(family) if e.method == method and e.setting.removesuffix(" +ts") == _plain(method)]
    if not found:
        pytest.skip(f"{method} is for other responses")
    means, _ = installed(found[-1]).run(task, float("inf"))
    rows = slice(150, None)
    assert np.mean((task.y - means)[rows] ** 2) < 0.7 * np.var(task.y[rows])


def _plain(method):
    return SUITED[method].removesuffix(" +ts")


@pytest.mark.parametrize("family", FAMILIES)
def test_every_method_has_one_default_and_settings_of_different_names(family):
    listed = [(entry.method, entry.setting) for entry in entries(family)]
    assert len(set(listed)) == len(listed)
    defaults = [method for method, setting in listed if setting.startswith(DEFAULT)]
    assert defaults == [method for method in METHODS if method == OURS or family in PEERS[method][1]]


def test_moments_are_those_of_the_rows_so_far():
    rows = np.random.default_rng(0).normal(3, 2, size=(40, 3))
    rows[:, 2] = 5
    moments = RunningMoments()
    for row in rows:
        moments.update(row)
    np.testing.assert_allclose(moments.mean, rows.mean(axis=0))
    np.testing.assert_allclose(moments.deviation, rows.std(axis=0), atol=1e-12)
    np.testing.assert_allclose(moments.standardised(rows[0] + [0, 0, 1])[2], 0)


def test_standardised_responses_are_put_back_on_their_scale():
    """The last standardised response, put back on its scale, is the last response."""

    class LastSeen:
        def predict(self, x):
            return self.seen if hasattr(self, "seen") else 0.0

        def learn(self, x, y):
            self.seen = y

    y = np.random.default_rng(0).normal(50, 9, size=30)
    means, _ = predict_then_learn(ResponseStandardised(LastSeen()), np.zeros((30, 1)), y)
    np.testing.assert_allclose(means[2:], y[1:-1])


def test_persistence_of_classes_is_the_share_of_ones_after_the_last_label():
    y = np.array([1.0, 1, 0, 1, 1, 1, 0, 0, 1])
    means, _ = predict_then_learn(Persistence("binomial"), np.zeros((9, 1)), y)
    # After a 1 came 1, 0, 1, 1, 0 before row 8, whose last label is a 0; after a 0 (or nothing) came 1, 1, 0.
    assert means[8] == pytest.approx((2 + 0.5) / (3 + 1))


def test_the_refit_is_scikit_learns_on_the_window(make_stream):
    made = make_stream(Gaussian(), n=330)
    refit = peers.Refit("gaussian", 120)
    for x, y in zip(made.X, made.y, strict=True):
        refit.learn(x, y)
    theirs = make_pipeline(StandardScaler(), LassoCV(cv=5)).fit(made.X[180:300], made.y[180:300])
    assert refit.predict(made.X[0]) == pytest.approx(theirs.predict(made.X[:1])[0])


def test_boosting_is_scikit_learns_on_the_window(make_stream):
    made = make_stream(Poisson(), n=330)
    refit = peers.boosting("poisson", 120)
    for x, y in zip(made.X, made.y, strict=True):
        refit.learn(x, y)
    theirs = HistGradientBoostingRegressor(loss="poisson", random_state=0).fit(made.X[180:300], made.y[180:300])
    assert refit.predict(made.X[0]) == pytest.approx(theirs.predict(made.X[:1])[0])


def test_the_forest_is_rivers_behind_its_scaler(make_stream):
    forest, scaling = pytest.importorskip("river.forest"), pytest.importorskip("river.preprocessing")
    made = make_stream(Binomial(), n=120)
    means, _ = predict_then_learn(peers.river_forest("binomial"), made.X, made.y)
    theirs = scaling.StandardScaler() | forest.ARFClassifier(seed=0)
    for i, (x, y) in enumerate(zip(made.X, made.y, strict=True)):
        row = dict(enumerate(x))
        assert means[i] == pytest.approx(theirs.predict_proba_one(row).get(1.0, 0.0 if i else 0.5))
        theirs.learn_one(row, y)


@pytest.mark.parametrize(("family", "n_classes"), [("gaussian", 2), ("poisson", 2), ("binomial", 2), ("binomial", 3)])
def test_lagged_responses_are_those_of_the_rows_before(family, n_classes):
    rng = np.random.default_rng(0)
    y = (
        rng.integers(0, 3 if n_classes == 3 else 2, 9).astype(float)
        if family == "binomial"
        else rng.poisson(4, 9) + 0.0
    )
    task = Task("lags", family, rng.normal(size=(9, 2)), y, ["a", "b"], n_classes)
    lagged = with_lags(task, [1, 3])
    for t in range(9):
        expected = list(task.X[t])
        for lag in (1, 3):
            there = t >= lag
            if n_classes == 3:
                expected += [float(there and y[t - lag] == k) for k in range(3)]
            else:
                expected.append(0.0 if not there else np.log(1 + y[t - lag]) if family == "poisson" else y[t - lag])
        np.testing.assert_allclose(lagged.X[t], expected)
    assert len(lagged.names) == lagged.X.shape[1] == len(set(lagged.names))
    assert lagged.n_classes == n_classes and lagged.y is task.y


def test_a_method_with_lags_is_the_method_on_the_task_with_lags(make_stream):
    task = stream(make_stream, "gaussian")
    lagged = next(entry for entry in entries_and_lagged("gaussian") if entry.method == "river+lags")
    means, _ = lagged.run(task, float("inf"))
    plain = entries_by_name("gaussian")["river", DEFAULT]
    np.testing.assert_array_equal(means, plain.run(with_lags(task), float("inf"))[0])


@pytest.mark.parametrize("varies_from, start", [(1, 20), (21, 22)])
def test_ondil_starts_from_twenty_rows_that_vary_and_then_takes_them_one_by_one(varies_from, start, monkeypatch):
    calls = []

    class OnlineLasso:
        def __init__(self, forget=0):
            self.total, self.n = 0.0, 0

        def fit(self, X, y):
            calls.append(("fit", X.shape, y.shape))
            self.total, self.n = y.sum(), len(y)

        def update(self, X, y):
            calls.append(("update", X.shape, y.shape))
            self.total, self.n = self.total + y.sum(), self.n + len(y)

        def predict(self, X):
            return np.full(len(X), self.total / self.n)

    monkeypatch.setattr(peers, "_compile_ondil", lambda: None)
    monkeypatch.setattr(peers, "needed", lambda module: SimpleNamespace(OnlineLasso=OnlineLasso))
    X, y = np.column_stack([np.arange(23) >= varies_from, np.arange(23)]).astype(float), np.arange(23.0)
    means, _ = predict_then_learn(peers.Ondil(0.0), X, y)
    assert calls == [("fit", (start, 2), (start,))] + (23 - start) * [("update", (1, 2), (1,))]
    np.testing.assert_allclose(means, [0, *(np.cumsum(y) / np.arange(1, 24))[:-1]])


def test_our_probabilities_are_those_of_the_classifier_row_by_row(make_stream):
    task = stream(make_stream, "binomial", n=60)
    means, _ = entries_by_name("binomial")[OURS, DEFAULT].run(task, float("inf"))
    model = RAPClassifier().partial_fit(task.X[:20], task.y[:20], classes=[0, 1])
    for i in range(20, 60):
        assert means[i] == pytest.approx(model.predict_proba(task.X[i : i + 1])[0, 1], abs=1e-9)
        model.partial_fit(task.X[i : i + 1], task.y[i : i + 1])


def three_classes(make_stream, n=120):
    made = make_stream(NAMED["gaussian"], n=n)
    y = np.digitize(made.y, np.quantile(made.y, [0.3, 0.7])).astype(float)
    return Task("three", "binomial", made.X, y, ["a", "b", "c", "d"], n_classes=3)


def test_one_versus_rest_is_a_peer_per_class_with_probabilities_that_sum_to_one(make_stream):
    task = three_classes(make_stream)
    both = OneVersusRest(lambda: peers.sklearn_sgd("binomial", 0.03), 3)
    alone = [peers.sklearn_sgd("binomial", 0.03) for _ in range(3)]
    for x, y in zip(task.X[:60], task.y[:60], strict=True):
        shares = np.array([peer.predict(x) for peer in alone])
        np.testing.assert_allclose(both.predict(x), shares / shares.sum())
        both.learn(x, y)
        for k, peer in enumerate(alone):
            peer.learn(x, float(y == k))


def test_of_several_classes_the_running_mean_is_the_share_of_each_with_jeffreys_prior(make_stream):
    task = three_classes(make_stream)
    means, _ = entries_by_name("binomial")["running-mean", DEFAULT].run(task, float("inf"))
    for i in (0, 7, 119):
        before = np.count_nonzero(task.y[:i] == task.y[i])
        assert means[i] == pytest.approx((before + 0.5) / (i + 1.5))


def test_our_probability_of_the_class_that_came_is_that_of_the_classifier(make_stream):
    task = three_classes(make_stream)
    means, _ = entries_by_name("binomial")[OURS, DEFAULT].run(task, float("inf"))
    model = RAPClassifier().partial_fit(task.X[:60], task.y[:60], classes=[0, 1, 2])
    for i in range(60, 70):
        assert means[i] == pytest.approx(model.predict_proba(task.X[i : i + 1])[0, int(task.y[i])], abs=1e-9)
        model.partial_fit(task.X[i : i + 1], task.y[i : i + 1])


def test_ours_beyond_the_limit_is_too_slow_like_everyone(make_stream):
    with pytest.raises(TooSlow) as stopped:
        entries_by_name("gaussian")[OURS, DEFAULT].run(stream(make_stream, "gaussian"), -1.0)
    assert len(stopped.value.means) == 130


def test_over_the_limit_is_too_slow_and_keeps_what_there_is():
    with pytest.raises(TooSlow) as stopped:
        predict_then_learn(RunningMean("gaussian"), np.zeros((99, 1)), np.ones(99), limit=-1)
    assert len(stopped.value.means) == 1


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "vowpalwabbit", None)
    with pytest.raises(ImportError, match=r'vowpalwabbit: pip install "streamlasso\[bench\]"'):
        peers.VowpalWabbit("gaussian")


def test_an_entry_knows_whether_its_package_is_there(monkeypatch):
    entry = next(entry for entry in entries("gaussian") if entry.method == "river")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert entry.missing
