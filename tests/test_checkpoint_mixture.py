"""Checkpoints of mixtures: the stream goes on to the bit, and a forged file is refused or harmless."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.mixtures import COMPETITIONS
from streamlasso import RAPClassifier, RAPRegressor, checkpoint, compact, families, river
from streamlasso.families import Binomial, Gaussian, Poisson
from streamlasso.memories import AdaptiveForgetting, Window
from streamlasso.penalties import ElasticNet
from streamlasso.simulate import simulate
from streamlasso.tuners import LogRMS, Mixture
from support.checkpoints import N, P, bits, responses, rows, through
from support.forgery import forged, loaded, numbers, reshape, set_at, words

CUTS = (1, 9, 30, 47)
SMALL = Mixture(powers=(0.0, 0.5, 1.0), factors=(0.9,), runs=4)

every_family = pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
every_competition = pytest.mark.parametrize("memory,tuner", COMPETITIONS.values(), ids=COMPETITIONS)


# --- the stream goes on -----------------------------------------------------------------------------------------------


@every_family
@every_competition
def test_a_regressor_goes_on_to_the_bit(path, family, memory, tuner):
    X = rows()
    y = responses(family, X)
    whole, interrupted = (RAPRegressor(family, memory, tuner=tuner, history=10) for _ in range(2))
    for start, stop in zip((0, *CUTS), (*CUTS, N), strict=True):
        for model in (whole, interrupted):
            model.partial_fit(X[start:stop], y[start:stop])
        interrupted = through(path, interrupted)
        assert bits(interrupted) == bits(whole)
    assert interrupted.predict(X).tobytes() == whole.predict(X).tobytes()
    assert interrupted.get_params() == whole.get_params()
    for mine, theirs in zip(interrupted.selected_, whole.selected_, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(
    "given_settings",
    [
        {"penalty": ElasticNet(0.5), "batch_size": 7},
        {"penalty_factor": [0.0, 1.0, 2.5, 1.0]},
        {"fit_intercept": False, "standardize": False},
    ],
    ids=str,
)
def test_every_setting_goes_on_to_the_bit(path, given_settings):
    X = rows()
    y = responses(Gaussian(), X)
    model = RAPRegressor(**given_settings).partial_fit(X[:42], y[:42])
    loaded = through(path, model)
    assert bits(loaded.partial_fit(X[42:], y[42:])) == bits(model.partial_fit(X[42:], y[42:]))


@pytest.mark.parametrize("classes", [["no", "yes"], [1, 2, 5]], ids=str)
def test_a_classifier_goes_on_to_the_bit(path, classes):
    X = rows()
    y = np.array(classes)[np.arange(N) % len(classes)]
    model = RAPClassifier().partial_fit(X[:40], y[:40], classes=classes)
    loaded = through(path, model)
    assert bits(loaded.partial_fit(X[40:], y[40:])) == bits(model.partial_fit(X[40:], y[40:]))
    assert loaded.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()


@pytest.mark.parametrize("face", [river.RAPRegressor, river.RAPClassifier])
def test_a_river_model_goes_on_to_the_bit(path, face):
    X = rows()

    def learn(model, start, stop):
        for t in range(start, stop):
            names = "abcd"[: 2 + t // 10]
            model.learn_one(
                dict(zip(names, X[t].tolist(), strict=False)), t % 3 if "Classifier" in str(face) else X[t, 0]
            )

    model = face()
    learn(model, 0, 35)
    loaded = through(path, model)
    assert bits(loaded) == bits(model)
    learn(model, 35, N)
    learn(loaded, 35, N)
    assert bits(loaded) == bits(model)


def test_the_same_model_is_the_same_file(path, tmp_path):
    X = rows()
    RAPRegressor().fit(X, X[:, 0]).save(path)
    RAPRegressor.load(path).save(tmp_path / "again")
    assert path.read_bytes() == (tmp_path / "again").read_bytes()


# --- forged files ----------------------------------------------------------------------------------------------------


def tuner(**settings):
    def edit(record, tensors):
        record["engine"]["tuner"].update(settings)

    return edit


def listed(*values):
    return {"type": "tuple", "items": list(values)}


FORGERIES = {
    "one model": lambda record, tensors: record["engine"].update(tuner={"type": "LogRMS", "step_size": 0.05}),
    "another memory": lambda record, tensors: record["engine"].update(memory={"type": "Forgetting", "r": 0.9}),
    "more runs": tuner(runs=5),
    "no runs": tuner(runs=0),
    "endless runs": tuner(runs=10**9),
    "more powers": tuner(powers=listed(0.0, 0.5, 1.0, 1.5)),
    "no powers": tuner(powers=listed()),
    "words for powers": tuner(powers="many"),
    "powers out of order": tuner(powers=listed(1.0, 0.5, 0.0)),
    "another factor": tuner(factors=listed(2.0)),
    "more factors": tuner(factors=listed(0.9, 0.8)),
    "no such memory": reshape("0/experts9/unit", 1),
    "a leader beyond the last": set_at("0/experts0/place", 3),
    "a leader before the first": set_at("0/experts0/place", -1),
    "a status beyond the last": set_at("0/experts0/codes", 4, 1),
    "a status before the first": set_at("0/experts0/codes", -1, 1),
    "a memory from the future": set_at("0/restarting/began", 10**6, 2),
    "a first memory that is not there": set_at("0/restarting/began", -1, 0),
    "a memory that began before it all": set_at("0/restarting/began", -2, 2),
    "a weight that is no number": set_at("0/steady/hedge/w", np.nan, 0),
    "an infinite weight": set_at("0/steady/hedge/w", np.inf, 2),
    "a negative weight": set_at("0/steady/hedge/w", -0.5, 2),
    "a group's weight that is no number": set_at("0/hedge/w", np.nan, 0),
    "a group's negative weight": set_at("0/hedge/w", -1.0, 0),
    "a noise that is no number": set_at("0/dispersion", np.nan, 0),
    "a negative noise": set_at("0/dispersion", -1.0, 0),
    "weights of another shape": reshape("0/steady/hedge/w", 7),
    "groups of another number": reshape("0/hedge/w", 3),
    "bounds of another width": reshape("0/bounds/features", (2, P + 1)),
    "fewer than no rows in bounds": set_at("0/bounds/rows", -1),
    "a model of another width": reshape("0/model", P),
    "solutions of another number": reshape("0/experts1/solutions", (2, 2)),
    "sums that are no number": set_at("0/experts1/moments.S", np.nan, 0, 0),
    "a member that is not there": set_at("0/experts0/active2.members", P, 0),
    "a member before the first": set_at("0/experts0/active2.members", -1, 0),
    "a sign other than 1 and -1": set_at("0/experts0/active2.solution", 0.5, 0, 1),
    "a unit that never comes back": set_at("0/experts1/unit", 1e300),
    "rows that are whole": set_at("0/experts0/counts", 1, 1),
    "rows kept of none": lambda record, tensors: tensors.update(
        {"0/experts0/ring.x": np.zeros((3, P)), "0/experts0/ring.rest": np.zeros((3, 4))}
    ),
}


@pytest.fixture(scope="module")
def small_file():
    X = rows()
    return compact.to_bytes(RAPRegressor(tuner=SMALL).fit(X, responses(Gaussian(), X)))


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_file_is_refused(path, small_file, name):
    path.write_bytes(checkpoint.as_file(forged(small_file, FORGERIES[name]), "streamlasso.RAPRegressor"))
    with pytest.raises(ValueError, match="its contents do not"):
        RAPRegressor.load(path)


def test_a_small_file_cannot_ask_for_much_room(path):
    """A thousand memories with many powers, each p^2 numbers, are not made before the file has shown that many."""
    import tracemalloc

    X = np.random.default_rng(0).normal(size=(30, 60))
    data = compact.to_bytes(RAPRegressor(tuner=SMALL).fit(X, X[:, 0]))
    path.write_bytes(checkpoint.as_file(forged(data, tuner(runs=1000)), "streamlasso.RAPRegressor"))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="its contents do not"):
            RAPRegressor.load(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20 * len(data)


def fuzzed():
    """Mixtures of all kinds, as bytes."""
    X = rows()
    kinds = [
        (None, SMALL, None),
        (Window(10), Mixture(powers=(0.3, 0.9)), [0, 1, 1, 1]),
        (AdaptiveForgetting((0.9, 1.0)), LogRMS(), None),
        (AdaptiveForgetting((0.9, 1.0)), Mixture(powers=(0.5,)), [0, 1, 1, 1]),
    ]
    for family in families.EXAMPLES:
        y = responses(family, X)
        for memory, tuner, factor in kinds:
            model = RAPRegressor(family, memory, ElasticNet(0.9), tuner, penalty_factor=factor, history=6)
            yield compact.to_bytes(model.fit(X, y))


FUZZED = list(fuzzed())


@settings(max_examples=400)
@given(st.data())
def test_no_number_in_a_file_can_crash_the_process(data):
    """A ValueError, or a model that learns and predicts something, with weights that are weights."""
    model = loaded(data, FUZZED, numbers(data))
    if model is None:
        return
    X = rows(25)
    with np.errstate(all="ignore"):
        assert model.partial_fit(X, np.ones(25)).predict(X).shape == (25,)
        assert model.selected_.coef.shape == (P,)


@settings(max_examples=200)
@given(st.data())
def test_no_word_in_a_file_can_crash_the_process(data):
    keys = ["type", "items", "r", "n", "powers", "runs", "factors"]
    model = loaded(
        data, FUZZED, words(data, keys, start=lambda record: record["engine"] if data.draw(st.booleans()) else record)
    )
    assert model is None or model.predict(rows(5)).shape == (5,)


@pytest.mark.parametrize("family", [Gaussian(), Binomial(), Poisson()], ids=str)
def test_the_file_of_an_interrupted_run_is_that_of_a_whole_one(tmp_path, family):
    """To the byte: what a solution that is out of date left behind is not written."""
    stream = simulate(0, n_features=8, lengths=(150,), densities=(0.5,), family=family)
    RAPRegressor(family).fit(stream.X[:70], stream.y[:70]).save(tmp_path / "half")
    RAPRegressor.load(tmp_path / "half").partial_fit(stream.X[70:], stream.y[70:]).save(tmp_path / "resumed")
    RAPRegressor(family).fit(stream.X, stream.y).save(tmp_path / "whole")
    assert (tmp_path / "resumed").read_bytes() == (tmp_path / "whole").read_bytes()
