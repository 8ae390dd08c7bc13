"""Models of keys: each is the model that its rows alone would make, wherever it is kept, and a new key has a start."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlasso import RAPClassifier, RAPRegressor, families, memories, progressive
from streamlasso.families import Gaussian
from streamlasso.keyed import KeyedClassifier, KeyedRegressor
from streamlasso.keyed.groups import groups_of
from streamlasso.simulate import simulate
from streamlasso.tuners import Fixed, LogRMS, Mixture, Tuner

N, P, KEYS = 240, 4, 7
SMALL = Mixture(powers=(0.5, 1.0), factors=(0.9,), runs=4)


def table(family=None, seed=0, n=N):
    """Rows, responses and keys; the effect of the second feature is a key's own."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, P))
    keys = rng.integers(KEYS, size=n)
    eta = 0.5 * X[:, 0] + 0.3 * (keys - 3) * X[:, 1] / KEYS
    return X, (family or Gaussian()).sample(rng, eta), keys


def pack(model):
    return [learner.pack() for learner in model.learners_]


every_kind = pytest.mark.parametrize("tuner", [LogRMS(), SMALL], ids=["one model", "mixture"])


# --- the same models ----------------------------------------------------------------------------------------------


@every_kind
@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
@pytest.mark.parametrize("cuts", [(N,), (1, 5, 60, N)], ids=["at once", "in pieces"])
def test_a_key_has_the_model_of_its_rows(family, tuner, cuts):
    X, y, keys = table(family)
    keyed = KeyedRegressor(RAPRegressor(family, tuner=tuner), pooled=False)
    predicted = np.concatenate(
        [keyed.progressive(X[a:b], y[a:b], keys[a:b]) for a, b in zip((0, *cuts), cuts, strict=False)]
    )
    assert sorted(keyed.keys()) == list(range(KEYS))
    for key in range(KEYS):
        own = keys == key
        alone = RAPRegressor(family, tuner=tuner, false_alarms=0.0)
        trace = progressive(alone, X[own], y[own])
        np.testing.assert_array_equal(predicted[own], trace["prediction"])
        assert pack(keyed.model(key)) == pack(alone)
        np.testing.assert_array_equal(keyed.model(key).coef_, alone.coef_)


@pytest.mark.parametrize("memory", memories.EXAMPLES, ids=str)
def test_all_memories_and_weights(memory):
    X, y, keys = table()
    weight = np.random.default_rng(1).uniform(size=N) * (np.arange(N) % 5 > 0)
    keyed = KeyedRegressor(RAPRegressor(memory=memory, tuner=Fixed(0.05)), pooled=False)
    keyed.partial_fit(X, y, keys, weight)
    for key in range(KEYS):
        own = keys == key
        alone = RAPRegressor(memory=memory, tuner=Fixed(0.05), false_alarms=0.0).partial_fit(
            X[own], y[own], weight[own]
        )
        assert pack(keyed.model(key)) == pack(alone)


@pytest.mark.parametrize("classes", [["a", "b"], ["a", "b", "c"]])
def test_classes(classes):
    X, eta, keys = table()
    y = np.array(classes)[np.digitize(eta, np.quantile(eta, np.linspace(0, 1, len(classes) + 1)[1:-1]))]
    keyed = KeyedClassifier(RAPClassifier(tuner=LogRMS()), pooled=False)
    predicted = keyed.progressive(X, y, keys, classes=classes)
    for key in range(KEYS):
        own = keys == key
        alone = RAPClassifier(tuner=LogRMS(), false_alarms=0.0).partial_fit(X[own], y[own], classes=classes)
        assert pack(keyed.model(key)) == pack(alone)
        np.testing.assert_allclose(keyed.predict_proba(X[:3], [key] * 3), alone.predict_proba(X[:3]), atol=1e-12)
        assert (keyed.predict(X[:3], [key] * 3) == alone.predict(X[:3])).all()
    assert predicted.shape == (N, len(classes))
    np.testing.assert_allclose(predicted.sum(axis=1), 1.0)


def test_predicting_learns_nothing_and_each_row_is_the_next():
    X, y, keys = table()
    keyed = KeyedRegressor(RAPRegressor(tuner=SMALL)).partial_fit(X[:-1], y[:-1], keys[:-1])
    before = keyed.to_bytes()
    predicted = keyed.predict(X[-1:], keys[-1:])
    assert keyed.predict(np.repeat(X[-1:], 3, axis=0), [keys[-1]] * 3) == pytest.approx(np.repeat(predicted, 3))
    assert keyed.to_bytes() == before
    assert keyed.progressive(X[-1:], y[-1:], keys[-1:]) == pytest.approx(predicted, rel=1e-12)


# --- the pooled model ---------------------------------------------------------------------------------------------


def mean_squared_errors(X, y, keys):
    model = RAPRegressor(tuner=LogRMS())
    keyed = KeyedRegressor(model)
    predicted = {
        "keyed": keyed.progressive(X, y, keys),
        "own": KeyedRegressor(model, pooled=False).progressive(X, y, keys),
        "pooled": progressive(RAPRegressor(tuner=LogRMS()), X, y)["prediction"],
    }
    return keyed, {name: np.mean((y - found)[50:] ** 2) for name, found in predicted.items()}


@pytest.mark.parametrize("slope", [1.0, -1.0], ids=["alike", "opposite"])
def test_a_key_predicts_as_well_as_the_better_of_own_and_pooled(slope):
    rng = np.random.default_rng(1)
    X, keys = rng.normal(size=(3000, 6)), rng.integers(2, size=3000)
    y = np.where(keys == 0, 1.0, slope) * X.sum(axis=1) + rng.normal(size=3000)
    keyed, loss = mean_squared_errors(X, y, keys)
    assert loss["keyed"] <= 1.02 * min(loss["own"], loss["pooled"])
    assert (keyed.weight(0) > 0.9) == (slope < 0)


def test_the_pooled_model_is_shifted_to_the_level_of_a_key():
    """Few rows of each of many keys that differ by their level alone, which neither model knows."""
    rng = np.random.default_rng(2)
    X, keys = rng.normal(size=(1500, 6)), rng.integers(60, size=1500)
    y = 3 * rng.normal(size=60)[keys] + X.sum(axis=1) + rng.normal(size=1500)
    _, loss = mean_squared_errors(X, y, keys)
    assert loss["keyed"] < 0.8 * min(loss["own"], loss["pooled"])


def test_a_new_key_predicts_with_the_pooled_model():
    X, y, keys = table()
    keyed = KeyedRegressor(RAPRegressor(tuner=LogRMS())).partial_fit(X, y, keys)
    pooled = RAPRegressor(tuner=LogRMS()).partial_fit(X, y)
    np.testing.assert_array_equal(keyed.predict(X[:5], ["new"] * 5), pooled.predict(X[:5]))
    assert "new" not in keyed
    assert pack(keyed.pooled) == pack(pooled)


def test_the_pooled_model_learns_a_sample_of_many_keys(tmp_path, monkeypatch):
    """The same rows however they come, and after a file; where there are few keys, all of them."""
    X, y, keys = table()
    few = KeyedRegressor(RAPRegressor(tuner="logrms")).partial_fit(X, y, keys)
    assert few.pooled.n_seen_ == N
    monkeypatch.setattr("streamlasso.keyed.estimators.FEW_KEYS", 2)
    at_once, in_pieces = (KeyedRegressor(RAPRegressor(tuner="logrms")) for _ in range(2))
    expected = at_once.progressive(X, y, keys)
    got = [in_pieces.progressive(X[:100], y[:100], keys[:100])]
    in_pieces.save(tmp_path / "models")
    in_pieces = KeyedRegressor.load(tmp_path / "models")
    got += [in_pieces.progressive(X[i : i + 1], y[i : i + 1], keys[i : i + 1]) for i in range(100, N)]
    np.testing.assert_array_equal(np.concatenate(got), expected)
    assert pack(in_pieces.pooled) == pack(at_once.pooled)
    # Two of the seven keys' worth, and the first rows, when there were fewer.
    assert 2 / KEYS * N < at_once.pooled.n_seen_ < 2 / KEYS * N + 10


def test_a_shop_that_opens_late_does_not_start_from_nothing():
    """Shared and own effects: the first rows of a late shop cost less than with a model of its own."""
    rng = np.random.default_rng(3)
    shared, ratio = rng.normal(size=8), []
    own = shared + 0.3 * rng.normal(size=(40, 8))
    X = rng.normal(size=(6000, 8))
    shop = np.where(np.arange(6000) < 3000, rng.integers(20, size=6000), rng.integers(40, size=6000))
    y = (X * own[shop]).sum(axis=1) + 0.5 * rng.normal(size=6000)
    keyed = KeyedRegressor(RAPRegressor(tuner=LogRMS())).progressive(X, y, shop)
    alone = KeyedRegressor(RAPRegressor(tuner=LogRMS()), pooled=False).progressive(X, y, shop)
    for late in range(20, 40):
        first = np.flatnonzero(shop == late)[:50]
        ratio.append(((y - keyed)[first] ** 2).sum() / ((y - alone)[first] ** 2).sum())
    assert np.mean(ratio) < 0.7


# --- copies -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [0, 100])
@pytest.mark.parametrize("change", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_goes_on_to_the_bit(rows, change):
    X, y, keys = table()
    whole = KeyedRegressor(RAPRegressor(tuner=LogRMS()), max_keys=3)
    whole = whole.partial_fit(X[:rows], y[:rows], keys[:rows]) if rows else whole
    other = change(whole)
    part = slice(rows, rows + 50)
    expected = whole.progressive(X[part], y[part], keys[part])
    np.testing.assert_array_equal(other.progressive(X[part], y[part], keys[part]), expected)
    assert other.to_bytes() == whole.to_bytes() and (other.max_keys, len(other)) == (3, len(whole))


# --- kept elsewhere -----------------------------------------------------------------------------------------------


@every_kind
@pytest.mark.parametrize("max_keys", [1, 3, 6])
def test_spilled_models_come_back_to_the_bit(tuner, max_keys):
    X, y, keys = table()
    keys = np.array([f"key {key}" for key in keys])
    whole, few = KeyedRegressor(RAPRegressor(tuner=tuner)), KeyedRegressor(RAPRegressor(tuner=tuner), max_keys)
    for a in range(0, N, 30):
        part = slice(a, a + 30)
        np.testing.assert_array_equal(
            whole.progressive(X[part], y[part], keys[part]), few.progressive(X[part], y[part], keys[part])
        )
        np.testing.assert_array_equal(whole.predict(X[:9], keys[:9]), few.predict(X[:9], keys[:9]))
        assert few._models._resident.sum() <= max_keys
    assert whole.keys() == few.keys()
    for key in whole:
        assert pack(whole.model(key)) == pack(few.model(key))


@pytest.mark.parametrize("max_keys", [None, 2])
def test_saved_and_continued_equals_never_interrupted(tmp_path, max_keys):
    X, y, keys = table()
    keys = [("shop", int(key)) for key in keys]
    model = KeyedRegressor(RAPRegressor(tuner=SMALL), max_keys).partial_fit(X[:100], y[:100], keys[:100])
    model.save(tmp_path / "models")
    assert model.to_bytes() == (tmp_path / "models").read_bytes()
    for again in (KeyedRegressor.load(tmp_path / "models"), KeyedRegressor.from_bytes(model.to_bytes())):
        assert again.keys() == model.keys() and repr(again) == repr(model)
        assert again.to_bytes() == model.to_bytes()
    np.testing.assert_array_equal(
        again.progressive(X[100:], y[100:], keys[100:]), model.progressive(X[100:], y[100:], keys[100:])
    )
    assert again.to_bytes() == model.to_bytes()


def test_classes_and_names_are_saved(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y, keys = table()
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = KeyedClassifier(RAPClassifier(tuner=LogRMS())).partial_fit(frame, y > 0, keys)
    model.save(tmp_path / "models")
    again = KeyedClassifier.load(tmp_path / "models")
    assert again.classes_.tolist() == [False, True]
    np.testing.assert_array_equal(again.predict_proba(frame, keys), model.predict_proba(frame, keys))
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame[["b", "a", "c", "d"]], keys)
    with pytest.raises(ValueError, match=r"holds a streamlasso\.keyed"):
        KeyedRegressor.load(tmp_path / "models")


@settings(max_examples=200)
@given(st.data())
def test_damaged_bytes_are_refused(data):
    X, y, keys = table(n=30)
    good = KeyedRegressor(RAPRegressor(tuner=LogRMS())).partial_fit(X, y, keys).to_bytes()
    at = data.draw(st.integers(0, len(good) - 1))
    bad = data.draw(st.sampled_from([good[:at], good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :], good + b"\0"]))
    with pytest.raises(ValueError, match=r"cut short or altered|Upgrade|again"):
        KeyedRegressor.from_bytes(bad)


def test_an_evicted_key_starts_again():
    X, y, keys = table()
    for max_keys in (None, 2):
        model = KeyedRegressor(RAPRegressor(tuner=LogRMS()), max_keys, pooled=False).partial_fit(X, y, keys)
        for key in (3, 4):
            model.evict(key)
            assert key not in model and len(model) == KEYS - 1
            own = keys == key
            model.partial_fit(X[own], y[own], keys[own])
            alone = RAPRegressor(tuner=LogRMS(), false_alarms=0.0).partial_fit(X[own], y[own])
            assert pack(model.model(key)) == pack(alone)


def test_the_order_of_keys_in_a_batch_does_not_matter():
    X, y, keys = table()
    order = np.argsort(keys, kind="stable")
    one = KeyedRegressor(RAPRegressor(tuner=LogRMS()), pooled=False).partial_fit(X, y, keys)
    other = KeyedRegressor(RAPRegressor(tuner=LogRMS()), pooled=False).partial_fit(X[order], y[order], keys[order])
    assert all(pack(one.model(key)) == pack(other.model(key)) for key in range(KEYS))


def test_keys_of_all_kinds():
    X, y, _ = table(n=6)
    for keys in (["a", "b", "a", "c", "b", "a"], np.array([3, 1, 3, 2, 1, 3]), [1, "1", (1, 2), 1, True, "1"]):
        model = KeyedRegressor(RAPRegressor(tuner=LogRMS())).partial_fit(X, y, keys)
        assert model.keys() == list(dict.fromkeys(np.asarray(keys).tolist() if isinstance(keys, np.ndarray) else keys))


# --- refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change,complaint",
    [
        (lambda X, y, keys: (X, y, keys[:-1]), "239 of them for 240 rows"),
        (lambda X, y, keys: (X, y, "shop"), "is not a list"),
        (lambda X, y, keys: (X, y, [None, *keys[1:]]), r"keys\[0\] is missing"),
        (lambda X, y, keys: (X, y, [*keys[:-1], float("nan")]), r"keys\[239\] is missing"),
        (lambda X, y, keys: (X, y, [[1], *keys[1:]]), "cannot be a key"),
        (lambda X, y, keys: (X, np.where(np.arange(N) == 7, np.nan, y), keys), "y contains NaN"),
        (lambda X, y, keys: (X[:, :3], y, keys), "features"),
        (lambda X, y, keys: (X * 1e70, y, keys), "rescale"),
    ],
)
@pytest.mark.parametrize("new", [True, False])
def test_a_refused_batch_changes_nothing(change, complaint, new):
    X, y, keys = table()
    model = KeyedRegressor(RAPRegressor(tuner=LogRMS()))
    other = KeyedRegressor(RAPRegressor(tuner=LogRMS()))
    if new and complaint == "features":
        return
    if not new:
        model.partial_fit(X, y, keys)
        other.partial_fit(X, y, keys)
    with pytest.raises(ValueError, match=complaint):
        model.partial_fit(*change(X, y, keys))
    assert len(model) == len(other)
    model.partial_fit(X[:, :], y, keys)
    other.partial_fit(X, y, keys)
    assert model.to_bytes() == other.to_bytes()


class Steady(Tuner):
    def update(self, lam, slope, norm, lam_max, state):
        return 0.1 * lam_max


def test_settings_are_checked():
    with pytest.raises(TypeError, match="is not a RAPRegressor"):
        KeyedRegressor(RAPClassifier())
    with pytest.raises(ValueError, match="max_keys=0"):
        KeyedRegressor(max_keys=0)
    with pytest.raises(ValueError, match="batch_size=1"):
        KeyedRegressor(RAPRegressor(batch_size=4))
    X, y, keys = table()
    with pytest.raises(ValueError, match="written in Python"):
        KeyedRegressor(RAPRegressor(tuner=Steady())).partial_fit(X, y, keys)
    with pytest.raises(KeyError, match="no row of 'x'"):
        KeyedRegressor().model("x")
    model = KeyedRegressor(RAPRegressor(tuner=LogRMS())).partial_fit(X, y, keys)
    with pytest.raises(KeyError, match="no row of 'x'"):
        model.evict("x")
    pd = pytest.importorskip("pandas")
    named = KeyedRegressor(RAPRegressor(tuner=LogRMS())).partial_fit(pd.DataFrame(X, columns=list("abcd")), y, keys)
    with pytest.raises(ValueError, match="new columns"):
        named.partial_fit(pd.DataFrame(np.c_[X, X[:, 0]], columns=list("abcde")), y, keys)


def test_many_keys_on_all_cores():
    stream = simulate(0)
    X, y = np.tile(stream.X, (10, 1)), np.tile(stream.y, 10)
    keys = np.random.default_rng(0).permutation(np.arange(len(X)) % 500)
    model = KeyedRegressor(RAPRegressor(memory=50, tuner=LogRMS()), pooled=False).partial_fit(X, y, keys)
    for key in range(0, 500, 50):
        own = keys == key
        alone = RAPRegressor(memory=50, tuner=LogRMS(), false_alarms=0.0).partial_fit(X[own], y[own])
        assert pack(model.model(key)) == pack(alone)


# --- features and classes that appear -----------------------------------------------------------------------------


@every_kind
@pytest.mark.parametrize("max_keys", [None, 2])
def test_a_third_class_leaves_the_other_two_as_they_were(tuner, max_keys):
    """The first class predicts the opposite of the second, as before; of the third there is the pooled model alone."""
    X, eta, keys = table()
    keyed = KeyedClassifier(RAPClassifier(tuner=tuner), max_keys).partial_fit(X, eta > 0, keys)
    pooled = keyed.pooled.learners_[0].decision_each(X)
    groups = groups_of(keys, N)
    before = keyed._models.predict(groups, X, [pooled])[:, 0]
    third = np.linspace(-1, 1, N)
    models = keyed._models.with_classes(3)
    after = models.predict(groups, X, [-pooled, pooled, third])
    np.testing.assert_array_equal(after[:, 1], before)
    np.testing.assert_allclose(after[:, 0], -before, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(after[:, 2], third)
    assert models.with_classes(4).packed(keys[0])[:3] == models.packed(keys[0])


@every_kind
@pytest.mark.parametrize("max_keys", [None, 2])
def test_features_that_appear_were_zero(tuner, max_keys):
    """Twice, and keys that are not used in between too; saving brings all of them up to date."""
    X, y, keys = table()
    X[:120, 3] = X[:60, 2] = 0.0
    whole = KeyedRegressor(RAPRegressor(tuner=tuner))
    expected = whole.progressive(X, y, keys)
    grown = KeyedRegressor(RAPRegressor(tuner=tuner), max_keys)
    predicted = [grown.progressive(X[:60, :2], y[:60], keys[:60])]
    for a, b, p in ((60, 120, 3), (120, N, 4)):
        grown.pooled._add_features([f"x{j}" for j in range(p)])
        del grown.pooled.feature_names_in_
        grown._models.widen(grown.pooled.learners_[0])
        predicted.append(grown.progressive(X[a:b, :p], y[a:b], keys[a:b]))
        loaded = KeyedRegressor.from_bytes(grown.to_bytes())
        np.testing.assert_array_equal(loaded.predict(X[:, :p], keys), grown.predict(X[:, :p], keys))
    np.testing.assert_allclose(np.concatenate(predicted), expected, rtol=1e-8, atol=1e-8)
