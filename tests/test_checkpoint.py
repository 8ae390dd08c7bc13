"""Checkpoints: a stream goes on to the bit, and settings, names and classes come back."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlasso import RAPClassifier, RAPRegressor, families, memories, penalties, river, tuners
from streamlasso.families import Gaussian
from streamlasso.memories import Window
from streamlasso.penalties import ElasticNet, Ridge
from streamlasso.tuners import SGD, Fixed, LogRMS
from support.checkpoints import N, bits, labels, responses, rows, through

CUTS = (1, 2, 9, 30, 47)


def goes_on(path, model, learn, n=N):
    """Learnt in one go, and with a detour through a file at every cut."""
    whole, interrupted = model, pickle.loads(pickle.dumps(model))
    for start, stop in zip((0, *CUTS), (*CUTS, n), strict=True):
        learn(whole, start, stop)
        learn(interrupted, start, stop)
        interrupted = through(path, interrupted)
        assert bits(interrupted) == bits(whole)
    return interrupted


@pytest.mark.parametrize("memory", memories.EXAMPLES, ids=str)
@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_a_regressor_goes_on_to_the_bit(path, family, memory):
    X = rows()
    y = responses(family, X)
    model = RAPRegressor(family=family, memory=memory, tuner=LogRMS(), history=10)
    loaded = goes_on(path, model, lambda m, i, j: m.partial_fit(X[i:j], y[i:j]))
    assert loaded.predict(X).tobytes() == model.predict(X).tobytes()


SETTINGS = [
    *({"penalty": penalty} for penalty in penalties.EXAMPLES),
    *({"tuner": tuner} for tuner in tuners.EXAMPLES),
    {"penalty_factor": [0.0, 1.0, 2.5, 1.0]},
    {"gradient": "diagonal", "curvature": "previous", "batch_size": 7},
    {"fit_intercept": False, "standardize": False, "lambda_init": 0.1},
]


@pytest.mark.parametrize("given_settings", SETTINGS, ids=str)
@pytest.mark.parametrize("family", ["gaussian", "binomial"])
@pytest.mark.parametrize("memory", [0.9, Window(12)], ids=str)
def test_every_setting_goes_on_to_the_bit(path, family, memory, given_settings):
    X = rows()
    y = responses(families.Binomial(), X)
    model = RAPRegressor(family=family, memory=memory, history=10, **{"tuner": LogRMS(), **given_settings})
    goes_on(path, model, lambda m, i, j: m.partial_fit(X[i:j], y[i:j]))


@pytest.mark.parametrize("memory", memories.EXAMPLES, ids=str)
@pytest.mark.parametrize("classes", [["no", "yes"], [1, 2, 5], [False, True], [1.0, 2.0, 3.0, 4.0]], ids=str)
def test_a_classifier_goes_on_to_the_bit(path, classes, memory):
    X = rows()
    y = labels(X, classes)
    model = RAPClassifier(memory=memory, tuner=LogRMS(), history=10)
    loaded = goes_on(path, model, lambda m, i, j: m.partial_fit(X[i:j], y[i:j], classes=classes))
    assert loaded.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("memory", memories.EXAMPLES, ids=str)
def test_a_river_regressor_goes_on_to_the_bit(path, memory):
    X = rows()
    y = responses(Gaussian(), X)
    names = ["a", ("b", 1), 3, "d"]

    def learn(model, start, stop):
        for t in range(start, stop):
            model.learn_one(dict(zip(names[: 2 + t // 10], X[t].tolist(), strict=False)), y[t])

    model = river.RAPRegressor(memory=memory, tuner=LogRMS(), penalty_factor={3: 0.5})
    loaded = goes_on(path, model, learn)
    assert loaded.coef_ == model.coef_
    assert loaded.columns_.names == model.columns_.names
    assert loaded._get_params() == model._get_params()


@pytest.mark.parametrize("classes", [["x"], ["x", "y"], ["x", 2, ("z", False)]], ids=str)
def test_a_river_classifier_goes_on_to_the_bit(path, classes):
    X = rows()

    def learn(model, start, stop):
        for t in range(start, stop):
            model.learn_one(
                dict(zip("abcd", X[t].tolist(), strict=True)), classes[min(t // 15 + t % 2, len(classes) - 1)]
            )

    model = river.RAPClassifier(tuner=LogRMS(), history=10)
    loaded = goes_on(path, model, learn)
    assert loaded.classes_ == model.classes_ == classes
    assert loaded.predict_proba_one({"a": 1.0}) == model.predict_proba_one({"a": 1.0})


def test_a_river_model_that_has_seen_nothing(path):
    assert through(path, river.RAPRegressor(family="poisson")).predict_one({"a": 1}) == 1.0
    assert through(path, river.RAPClassifier()).predict_proba_one({"a": 1}) == {}


def test_before_there_is_anything_to_fit(path):
    model = RAPRegressor().partial_fit([[1.0, 2.0]], [3.0])
    np.testing.assert_equal(through(path, model).lambda_, model.lambda_)


@given(
    st.floats(1e-6, 1.0),
    st.floats(0.0, 1e9),
    st.lists(st.floats(0.0, 1e9), min_size=2, max_size=2).filter(any),
)
def test_settings_come_back_exactly(tmp_path_factory, r, lam, factor):
    path = tmp_path_factory.mktemp("exact") / "model"
    model = RAPRegressor(memory=r, tuner=Fixed(lam), penalty_factor=factor).partial_fit(rows()[:3, :2], [1, 2, 3])
    assert through(path, model).get_params() == model.get_params()


@pytest.mark.parametrize(
    "given_settings",
    [
        {},
        {"family": families.Poisson(), "memory": memories.Forgetting(0.1 + 0.2), "penalty": ElasticNet(1 / 3)},
        {"memory": np.float32(0.9), "history": np.int64(5), "fit_intercept": np.bool_(False)},
        {"memory": Window(7), "penalty": Ridge(), "tuner": SGD(1e-300), "penalty_factor": (0, 1, 2, 3)},
    ],
    ids=str,
)
def test_settings_come_back_as_they_were(path, given_settings):
    X = rows()
    model = RAPRegressor(**given_settings).fit(X, responses(families.Poisson(), X))
    assert through(path, model).get_params() == model.get_params()


@pytest.mark.parametrize(
    "factor", [np.array([0.0, 1, 2, 3]), pd.Series([0.5, 1, 2, 3])], ids=lambda x: type(x).__name__
)
def test_penalty_factors_of_any_kind_come_back_as_numbers(path, factor):
    X = rows()
    loaded = through(path, RAPRegressor(penalty_factor=factor).fit(X, responses(Gaussian(), X)))
    assert np.asarray(loaded.penalty_factor).tolist() == factor.tolist()
    loaded.fit(X, responses(Gaussian(), X))


def test_feature_names_come_back(path):
    X = pd.DataFrame(rows(), columns=["a", "b", "ü", "𝟛"])
    loaded = through(path, RAPRegressor().fit(X, responses(Gaussian(), X.to_numpy())))
    assert loaded.feature_names_in_.tolist() == ["a", "b", "ü", "𝟛"]
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(X[["b", "a", "ü", "𝟛"]])


@pytest.mark.parametrize(
    "classes",
    [np.array(["n", "yes"], dtype="<U9"), np.array(["n", "y"], dtype=object), np.array([3, 7], dtype=np.uint8)],
)
def test_classes_come_back_with_their_type(path, classes):
    X = rows()
    y = classes[(X[:, 0] > 0).astype(int)]
    loaded = through(path, RAPClassifier().fit(X, y))
    assert loaded.classes_.dtype == classes.dtype
    assert loaded.predict(X).dtype == classes.dtype


def test_settings_changed_after_the_fit_do_not_change_the_learners(path):
    X = rows()
    y = responses(Gaussian(), X)
    model = RAPRegressor(memory=0.9).fit(X[:30], y[:30]).set_params(memory=0.5)
    loaded = through(path, model)
    assert loaded.memory == 0.5
    assert bits(loaded.partial_fit(X[30:], y[30:])) == bits(model.partial_fit(X[30:], y[30:]))


@pytest.mark.parametrize("penalty", [None, ElasticNet(0.5)], ids=str)
def test_a_diagonal_derivative_with_free_features_resumes_to_the_bit(penalty):
    """The factor that a first feature joins is not in the file; it is made anew, not read from unused memory."""
    settings = dict(family="poisson", penalty=penalty, tuner=LogRMS(), memory=0.97, gradient="diagonal")
    settings |= dict(lambda_init=1e3, penalty_factor=[0, 0, 1, 1, 1, 1, 1, 1])
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 8))
        y = rng.poisson(np.exp(X[:, :3] @ [0.4, -0.4, 0.25]))
        model, resumed = RAPRegressor(**settings), RAPRegressor(**settings)
        for t in range(60):
            model.partial_fit(X[t : t + 1], y[t : t + 1])
            resumed = pickle.loads(pickle.dumps(resumed)).partial_fit(X[t : t + 1], y[t : t + 1])
            assert resumed.lambda_ == model.lambda_, f"seed {seed}, row {t}"
