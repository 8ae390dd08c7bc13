"""The river face: river's checks, the bits of the scikit-learn face, names and classes that come and go, refusals."""

import copy
import pickle
import random
import subprocess
import sys
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import checks, compose, datasets, evaluate, metrics, preprocessing, stats

import streamlasso
from streamlasso import families, memories
from streamlasso.families import Gaussian
from streamlasso.memories import AdaptiveForgetting, Window
from streamlasso.penalties import ElasticNet, Ridge
from streamlasso.river import RAPClassifier, RAPRegressor
from streamlasso.tuners import LARS, Fixed, LogRMS
from support.plain import FloatGaussian, Fragile

#: All but batch_size: a mini-batch is asked for, and then is not what one row at a time would give.
CHECKED = [
    RAPRegressor(),
    RAPRegressor(family="poisson", memory=Window(40), tuner=LogRMS()),
    RAPRegressor(memory=AdaptiveForgetting((0.9, 1.0)), tuner=LogRMS()),
    RAPRegressor(family="gamma", penalty=ElasticNet(0.5), tuner=LARS(0.01)),
    RAPRegressor(penalty=Ridge(), tuner=Fixed(0.1), penalty_factor={"gallup": 0.0}),
    RAPClassifier(),
    RAPClassifier(memory=Window(30), tuner=LogRMS(), history=10, gradient="diagonal", curvature="previous"),
]
NAMES = ["a", "b", "c", "d"]
#: What is no finite number, and where it stands in the error.
BAD = ["1.5", b"1", None, np.nan, np.inf, -np.inf, 1e101, 10**400, 1j, [1.0], {}, "nan"]


def bits(model):
    """All that the next row depends on."""
    states = [learner.state() for learner in model.learners_]
    state = [{name: array.tobytes() for name, array in state.items()} for state in states]
    return state, list(model.columns_.names), list(getattr(model, "classes_", []))


def rows(n=80, p=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


def dicts(X, names=NAMES):
    return [dict(zip(names, row, strict=False)) for row in X.tolist()]


def responses(family, X, seed=1):
    eta = 0.3 + X[:, 0] - 0.7 * X[:, 1]
    return np.maximum(family.sample(np.random.default_rng(seed), eta), 1e-9)


def labels(X, classes, seed=1):
    """Classes that show up one after the other, ten rows apart, each more likely where its own feature is large."""
    rng = np.random.default_rng(seed)
    noisy = X[:, : len(classes)] + rng.gumbel(size=(len(X), len(classes)))
    rows, late = np.arange(len(X))[:, None], 10 * np.arange(len(classes))
    noisy[rows < late] = -np.inf
    noisy[rows == late] = np.inf
    return np.array(classes)[noisy.argmax(axis=1)]


def taught(model, xs, ys):
    for x, y in zip(xs, ys, strict=True):
        model.learn_one(x, y)
    return model


# --- river's own checks ---------------------------------------------------------------------------------------------


def all_checks():
    for i, model in enumerate(CHECKED):
        for j, check in enumerate(checks.yield_checks(model)):
            yield pytest.param(model, check, id=f"{type(model).__name__}{i}-{check.__name__}-{j}")


@pytest.mark.parametrize(("model", "check"), list(all_checks()))
def test_rivers_checks_pass(model, check):
    random.seed(0)
    check(model.clone())


def test_nothing_is_exempt_from_rivers_checks():
    assert not any(model._unit_test_skips() for model in CHECKED)


# --- the same as the scikit-learn face, to the bit ------------------------------------------------------------------


@pytest.mark.parametrize("memory", memories.EXAMPLES, ids=str)
@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_regressor_is_the_one_of_scikit_learn(family, memory):
    X = rows()
    y = responses(family, X)
    one = taught(RAPRegressor(family=family, memory=memory, tuner=LogRMS(), history=20), dicts(X), y.tolist())
    other = streamlasso.RAPRegressor(family=family, memory=memory, tuner=LogRMS(), history=20).partial_fit(X, y)
    assert list(one.coef_.values()) == other.coef_.tolist()
    assert (one.intercept_, one.lambda_, one.lambda_max_) == (other.intercept_, other.lambda_, other.lambda_max_)
    assert (one.n_seen_, one.effective_size_) == (other.n_seen_, other.effective_size_)
    assert [one.predict_one(x) for x in dicts(X)] == other.predict(X).tolist()


@pytest.mark.parametrize("classes", [["down", "up"], [0, 1, 2], list("abcd")], ids=str)
@pytest.mark.parametrize("memory", memories.EXAMPLES, ids=str)
def test_classes_that_appear_are_as_if_known_from_the_start(memory, classes):
    X = rows(120)
    y = labels(X, classes)
    one = taught(RAPClassifier(memory=memory, tuner=LogRMS()), dicts(X), y.tolist())
    other = streamlasso.RAPClassifier(memory=memory, tuner=LogRMS()).partial_fit(X, y, classes=classes)
    assert one.classes_ == classes
    assert list(one.lambda_.values()) == np.atleast_1d(other.lambda_).tolist()
    assert [list(b.values()) for b in one.coef_.values()] == other.coef_.tolist()
    assert [one.predict_one(x) for x in dicts(X)] == other.predict(X).tolist()
    proba = np.array([list(one.predict_proba_one(x).values()) for x in dicts(X)])
    np.testing.assert_allclose(proba, other.predict_proba(X), rtol=1e-14)


def test_two_classes_are_one_model_and_several_one_each():
    X = rows(60)
    model = RAPClassifier()
    sizes = []
    for x, y in zip(dicts(X), labels(X, list("abc")), strict=True):
        model.learn_one(x, y)
        sizes.append((len(model.classes_), len(model.coef_)))
    assert sorted(set(sizes)) == [(1, 0), (2, 1), (3, 3)]
    assert list(model.coef_) == ["a", "b", "c"]
    assert len(set(model.lambda_.values())) == 3


def test_weights_are_those_of_scikit_learn():
    X = rows()
    y, w = responses(Gaussian(), X), np.random.default_rng(2).integers(0, 4, size=len(X)) / 2
    one = RAPRegressor()
    for x, value, weight in zip(dicts(X), y, w, strict=True):
        one.learn_one(x, value, w=weight)
    other = streamlasso.RAPRegressor().partial_fit(X, y, sample_weight=w)
    assert list(one.coef_.values()) == other.coef_.tolist()
    assert one.effective_size_ == other.effective_size_


def test_penalty_factors_go_by_name():
    X = rows()
    y = responses(Gaussian(), X)
    one = taught(RAPRegressor(penalty_factor={"d": 0.0, "b": 3.0}, tuner=Fixed(10.0)), dicts(X), y)
    other = streamlasso.RAPRegressor(penalty_factor=[1, 3, 1, 0], tuner=Fixed(10.0)).partial_fit(X, y)
    assert [one.coef_[name] for name in NAMES] == pytest.approx(other.coef_.tolist(), rel=1e-12)
    assert one.coef_["d"] != 0
    assert one.coef_["a"] == 0


def test_a_factor_may_wait_for_its_feature():
    X = rows()
    y = responses(Gaussian(), X)
    model = taught(RAPRegressor(penalty_factor={"a": 0.0}, tuner=Fixed(10.0)), dicts(X[:40, 1:], "bcd"), y[:40])
    taught(model, dicts(X[40:]), y[40:])
    assert {name for name, b in model.coef_.items() if b} == {"a"}


# --- batch is the loop over one -------------------------------------------------------------------------------------


def in_pieces(model, frames, ys):
    for frame, y in zip(frames, ys, strict=True):
        model.learn_many(frame, y)
    return model


@given(st.lists(st.integers(0, 30), min_size=1, max_size=6), st.sampled_from(families.EXAMPLES), st.booleans())
def test_learn_many_is_learn_one_to_the_bit(sizes, family, window):
    X = rows(sum(sizes))
    y = responses(family, X)
    cuts = np.cumsum(sizes)[:-1]
    settings = dict(family=family, memory=Window(12) if window else 0.95, tuner=LogRMS(), history=8)
    frames = [pd.DataFrame(piece, columns=NAMES) for piece in np.split(X, cuts)]
    many = in_pieces(RAPRegressor(**settings), frames, [pd.Series(piece) for piece in np.split(y, cuts)])
    one = taught(RAPRegressor(**settings), dicts(X), y.tolist())
    assert bits(many) == bits(one)
    if len(X):
        assert many.predict_many(pd.DataFrame(X, columns=NAMES)).tolist() == [one.predict_one(x) for x in dicts(X)]


@given(st.lists(st.integers(0, 40), min_size=1, max_size=4), st.integers(1, 4))
def test_a_classifiers_learn_many_is_learn_one_to_the_bit(sizes, n_classes):
    X = rows(sum(sizes))
    y = labels(X, list("xyzw")[:n_classes])
    cuts = np.cumsum(sizes)[:-1]
    frames = [pd.DataFrame(piece, columns=NAMES) for piece in np.split(X, cuts)]
    many = in_pieces(
        RAPClassifier(tuner=LogRMS(), history=8), frames, [pd.Series(piece) for piece in np.split(y, cuts)]
    )
    one = taught(RAPClassifier(tuner=LogRMS(), history=8), dicts(X), y.tolist())
    assert bits(many) == bits(one)
    X = pd.DataFrame(X, columns=NAMES)
    assert many.predict_proba_many(X).to_dict("records") == [one.predict_proba_one(x) for x in X.to_dict("records")]
    assert many.predict_many(X).tolist() == [one.predict_one(x) for x in X.to_dict("records")]


def test_names_and_classes_new_in_a_batch_are_those_of_the_loop():
    X = rows(60)
    y = labels(X, list("abc"))
    many, one = RAPClassifier(), RAPClassifier()
    for start, names in [(0, "ab"), (20, "dcab"), (40, "c")]:
        frame = pd.DataFrame(X[start : start + 20, : len(names)], columns=list(names))
        many.learn_many(frame, pd.Series(y[start : start + 20]))
        taught(one, frame.to_dict("records"), y[start : start + 20].tolist())
    assert bits(many) == bits(one)


def test_mini_batches_are_those_of_scikit_learn():
    X = rows()
    y = responses(Gaussian(), X)
    many = RAPRegressor(batch_size=7)
    many.learn_many(pd.DataFrame(X, columns=NAMES), pd.Series(y))
    other = streamlasso.RAPRegressor(batch_size=7).partial_fit(X, y)
    assert list(many.coef_.values()) == other.coef_.tolist()
    assert many.lambda_ == other.lambda_ != taught(RAPRegressor(), dicts(X), y).lambda_


def test_weights_of_a_batch():
    X = rows(30)
    y, w = responses(Gaussian(), X), np.random.default_rng(2).integers(0, 3, size=30)
    frame = pd.DataFrame(X, columns=NAMES)
    each, all_double, one, double = (RAPRegressor() for _ in range(4))
    each.learn_many(frame, pd.Series(y), w=pd.Series(w))
    all_double.learn_many(frame, pd.Series(y), w=2.0)
    for x, value, weight in zip(dicts(X), y, w, strict=True):
        one.learn_one(x, value, w=weight)
        double.learn_one(x, value, 2.0)
    assert bits(each) == bits(one)
    assert bits(all_double) == bits(double)


def test_columns_of_any_numeric_type_and_index():
    X = pd.DataFrame(
        {"a": [True, False, True], "b": np.array([1, 2, 4], dtype=np.int8), "c": np.float32([0.1, 2.5, 3])}
    )
    X["d"] = pd.Series([1, 5, 2], dtype="Int64")
    X["e"] = pd.Series([1, 2.5, Decimal(3)], dtype=object)
    X.index = [7, 5, 5]
    before = X.copy(deep=True)
    many, one = RAPRegressor(), RAPRegressor()
    many.learn_many(X, pd.Series([1.0, 2.0, 3.0]))
    taught(one, X.to_dict("records"), [1.0, 2.0, 3.0])
    assert bits(many) == bits(one)
    assert many.predict_many(X).index.tolist() == [7, 5, 5]
    pd.testing.assert_frame_equal(X, before)


# --- features that come and go --------------------------------------------------------------------------------------


def late(X, names, first_row):
    """The rows as dicts in which feature j shows up at row first_row[j], and as an array with 0 until then."""
    shown = np.arange(len(X))[:, None] >= np.array(first_row)
    return [
        {name: value for name, value, there in zip(names, row, here, strict=True) if there}
        for row, here in zip(X.tolist(), shown, strict=True)
    ], np.where(shown, X, 0.0)


@pytest.mark.parametrize("memory", memories.EXAMPLES, ids=str)
@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_a_new_feature_was_zero_until_now(family, memory):
    X = rows(90, 5)
    y = responses(family, X)
    xs, zeroed = late(X, list("abcde"), [50, 0, 10, 0, 11])
    one = taught(RAPRegressor(family=family, memory=memory, tuner=LogRMS(), history=20), xs, y.tolist())
    other = streamlasso.RAPRegressor(family=family, memory=memory, tuner=LogRMS(), history=20).partial_fit(zeroed, y)
    assert [one.coef_[name] for name in "abcde"] == pytest.approx(other.coef_.tolist(), rel=1e-7, abs=1e-9)
    assert one.lambda_ == pytest.approx(other.lambda_, rel=1e-7)


def test_hundreds_of_features_that_appear_one_by_one():
    n = 300
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n))
    y = X[:, 0] + rng.normal(size=n)
    names = [f"x{j:03}" for j in range(n)]
    xs = [
        dict(zip(names[max(0, t - 30) : t + 1], X[t, max(0, t - 30) : t + 1].tolist(), strict=True)) for t in range(n)
    ]
    one = taught(RAPRegressor(tuner=Fixed(0.1)), xs, y.tolist())
    zeroed = np.array([[x.get(name, 0.0) for name in names] for x in xs])
    other = streamlasso.RAPRegressor(tuner=Fixed(0.1)).partial_fit(zeroed, y)
    assert list(one.coef_) == names
    assert list(one.coef_.values()) == pytest.approx(other.coef_.tolist(), rel=1e-6, abs=1e-9)
    # Room is made ahead, so that the state is not copied for each name, but not much of it.
    assert len(names) <= one.columns_.width <= 1.25 * len(names)


def test_an_absent_feature_is_zero():
    X = rows()
    model = taught(RAPRegressor(), dicts(X), responses(Gaussian(), X))
    assert model.predict_one({"a": 2.0}) == model.predict_one({"a": 2.0, "b": 0, "c": 0.0, "d": False})
    assert model.predict_one({}) == model.intercept_
    full, sparse = copy.deepcopy(model), copy.deepcopy(model)
    full.learn_one({"a": 1.0, "b": 0.0, "c": 0.0, "d": 2.0}, 1.0)
    sparse.learn_one({"d": 2.0, "a": 1.0}, 1.0)
    assert bits(full) == bits(sparse)


def test_an_unknown_feature_has_no_say_in_a_prediction_and_is_not_learnt_by_it():
    X = rows()
    model = taught(RAPRegressor(), dicts(X), responses(Gaussian(), X))
    before = bits(model)
    assert model.predict_one({"a": 2.0, "new": 1e9}) == model.predict_one({"a": 2.0})
    assert model.predict_many(pd.DataFrame({"a": [2.0], "new": [1e9]})).tolist() == [model.predict_one({"a": 2.0})]
    assert bits(model) == before


@given(st.randoms(use_true_random=False))
def test_the_order_of_names_does_not_matter_to_the_bit(shuffler):
    X = rows(40)
    X[:, 3] = X[:, 1]
    y = responses(Gaussian(), X)
    xs = dicts(X)
    shuffled = []
    for x in xs:
        names = list(x)
        shuffler.shuffle(names)
        shuffled.append({name: x[name] for name in names})
    assert bits(taught(RAPRegressor(), xs, y)) == bits(taught(RAPRegressor(), shuffled, y))


@pytest.mark.parametrize("names", [[0, 1, 2, 3], [("w", 1), ("w", 2), 3, "x"], [None, True, "", 2.5]], ids=str)
def test_names_may_be_anything_hashable(names):
    X = rows()
    y = responses(Gaussian(), X)
    model = taught(RAPRegressor(tuner=Fixed(0.1)), dicts(X, names), y)
    assert set(model.coef_) == set(names)
    reference = taught(RAPRegressor(tuner=Fixed(0.1)), dicts(X), y)
    assert [model.coef_[name] for name in names] == pytest.approx(list(reference.coef_.values()), rel=1e-9)


def test_rows_without_features():
    model = taught(RAPRegressor(), [{}, {}, {}], [1.0, 2.0, 3.0])
    assert model.predict_one({}) == pytest.approx(2.0, abs=0.02)
    model.learn_one({"a": 1.0}, 1.0)
    assert list(model.coef_) == ["a"]


# --- values ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [int, np.float32, np.float64, np.int8, np.int64, Fraction, Decimal, bool, np.bool_],
    ids=lambda kind: kind.__name__,
)
def test_numbers_of_all_kinds_are_numbers(kind):
    values = np.random.default_rng(0).integers(0, 2, size=(30, 2)).tolist()
    given, plain = RAPRegressor(), RAPRegressor()
    for a, b in values:
        given.learn_one({"a": kind(a), "b": kind(b)}, kind(a), w=kind(1))
        plain.learn_one({"a": float(a), "b": float(b)}, float(a))
    assert bits(given) == bits(plain)
    assert given.predict_one({"a": kind(1)}) == plain.predict_one({"a": 1.0})


def test_other_mappings_are_rows_too():
    model = taught(RAPRegressor(), [Counter("aab"), Counter("abb"), Counter("b")], [1, 2, 3])
    assert bits(model) == bits(taught(RAPRegressor(), [{"a": 2, "b": 1}, {"a": 1, "b": 2}, {"b": 1}], [1, 2, 3]))


def refused(model, action, *words):
    before = bits(model)
    with pytest.raises(ValueError) as error:
        action()
    assert all(word in str(error.value) for word in words), str(error.value)
    assert bits(model) == before


MODELS = [
    pytest.param(RAPRegressor, [0.5, 1.5], id="regressor"),
    pytest.param(RAPClassifier, ["no", "yes"], id="classifier"),
]


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("bad", BAD, ids=repr)
@pytest.mark.parametrize(("kind", "answers"), MODELS)
def test_a_bad_value_is_refused_by_name(kind, answers, bad, fresh):
    model = kind()
    if not fresh:
        taught(model, dicts(rows(20)), answers * 10)
    x = {"a": 1.0, "new": 2.0, "b": bad}
    refused(model, lambda: model.learn_one(x, answers[0]), f"x['b']={bad!r}", "number")
    refused(model, lambda: model.predict_one(x), f"x['b']={bad!r}", "number")
    refused(model, lambda: model.learn_one({**x, "b": 1.0}, answers[0], w=bad), f"w={bad!r}", "number")
    frame = pd.DataFrame({"a": [1.0, 2.0], "new": [3.0, 4.0], "b": pd.Series([1.0, bad], dtype=object)})
    refused(model, lambda: model.learn_many(frame, pd.Series(answers)), "X['b'].iloc[1]", "number")
    refused(model, lambda: model.predict_many(frame), "X['b'].iloc[1]", "number")


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e101])
def test_a_bad_value_in_a_column_of_floats_is_refused_by_name(bad):
    model = taught(RAPRegressor(), dicts(rows(20)), range(20))
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [bad, 1.0]})
    refused(model, lambda: model.learn_many(frame, pd.Series([1.0, 2.0])), f"X['b'].iloc[0]={frame['b'][0]!r}")


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_a_bad_response_is_refused(bad):
    model = taught(RAPRegressor(), dicts(rows(20)), range(20))
    refused(model, lambda: model.learn_one({"new": 1.0}, bad), f"y={bad!r}", "number")
    frame = pd.DataFrame({"new": [1.0, 2.0]})
    refused(model, lambda: model.learn_many(frame, pd.Series([1.0, bad], dtype=object)), "y.iloc[1]", "number")


@pytest.mark.parametrize(
    ("family", "bad", "accepted"),
    [("poisson", -1, "0 or larger"), ("gamma", 0, "larger than 0"), ("binomial", 2, "between 0 and 1")],
)
def test_a_response_that_the_family_does_not_know_is_refused(family, bad, accepted):
    model = taught(RAPRegressor(family=family), dicts(rows(20)), [0.5] * 20)
    refused(model, lambda: model.learn_one({"new": 1.0}, bad), f"y={bad}", accepted)
    refused(model, lambda: model.learn_many(pd.DataFrame({"new": [1.0, 2.0]}), pd.Series([1, bad])), "y", accepted)


@pytest.mark.parametrize("bad", [None, np.nan, pd.NA, pd.NaT, [1], {}], ids=repr)
def test_a_bad_label_is_refused(bad):
    model = taught(RAPClassifier(), dicts(rows(20)), ["no", "yes"] * 10)
    refused(model, lambda: model.learn_one({"new": 1.0}, bad), f"y={bad!r}", "label")
    frame = pd.DataFrame({"new": [1.0, 2.0]})
    refused(model, lambda: model.learn_many(frame, pd.Series(["maybe", bad], dtype=object)), "label")


@pytest.mark.parametrize(("kind", "answers"), MODELS)
def test_frames_that_do_not_fit_are_refused(kind, answers):
    model = taught(kind(), dicts(rows(20)), answers * 10)
    frame = pd.DataFrame({"a": [1.0, 2.0], "new": [3.0, 4.0]})
    twice = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=["new", "new"])
    refused(model, lambda: model.learn_many(frame, pd.Series(answers * 2)), "y has 4 values for 2 rows")
    refused(model, lambda: model.learn_many(frame, pd.Series(answers), w=pd.Series([1.0])), "w has 1 values for 2 rows")
    refused(
        model, lambda: model.learn_many(frame, pd.Series(answers), w=-1.0), "w=-1.0", "0 (the row is skipped) or larger"
    )
    refused(
        model, lambda: model.learn_one({"new": 1.0}, answers[0], w=-1.0), "w=-1.0", "0 (the row is skipped) or larger"
    )
    refused(model, lambda: model.learn_many(twice, pd.Series(answers)), "two columns 'new'")
    with pytest.raises(TypeError, match="a pandas DataFrame is needed, not ndarray"):
        model.learn_many(np.ones((2, 2)), pd.Series(answers))


@pytest.mark.parametrize(("kind", "answers"), MODELS)
def test_a_row_of_weight_zero_is_skipped(kind, answers):
    model = taught(kind(), dicts(rows(20)), answers * 10)
    before = bits(model)
    model.learn_one({"a": 1.0, "new": 2.0}, answers[0], w=0)
    model.learn_many(pd.DataFrame({"new": [1.0, 2.0]}), pd.Series(answers), w=0.0)
    model.learn_many(pd.DataFrame({"new": []}), pd.Series([], dtype=float))
    assert bits(model) == before


def test_a_class_of_weight_zero_does_not_appear():
    model = RAPClassifier()
    model.learn_one({"a": 1.0}, "never", w=0)
    model.learn_many(pd.DataFrame({"a": [1.0, 2.0, 3.0]}), pd.Series(["x", "never", "y"]), w=pd.Series([1, 0, 1]))
    assert model.classes_ == ["x", "y"]


SETTINGS = [
    ("memory", 1.2, r"memory=1.2 is not a forgetting factor: use a number in \(0, 1\]"),
    ("penalty", "l2", "penalty='l2'"),
    ("tuner", 0.1, "tuner=0.1"),
    ("gradient", "fast", "gradient='fast' is unknown: use one of 'exact', 'diagonal'"),
    ("penalty_factor", [1.0], r"penalty_factor=\[1.0\]: a dict from names to numbers"),
    ("penalty_factor", {"a": -1}, r"penalty_factor\['a'\]=-1: a number, 0 \(never penalised\) or larger"),
    ("penalty_factor", {"a": "1"}, r"penalty_factor\['a'\]='1'"),
    ("history", 0, "history=0: use a whole number of rows from 1 to"),
]


@pytest.mark.parametrize(("name", "value", "message"), SETTINGS)
@pytest.mark.parametrize("kind", [RAPRegressor, RAPClassifier])
def test_a_bad_setting_is_refused_at_once(kind, name, value, message):
    with pytest.raises(ValueError, match=message):
        kind(**{name: value})


# --- before there is anything to go by ------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "mean"), [("gaussian", 0.0), ("binomial", 0.5), ("poisson", 1.0), ("gamma", 1.0)])
def test_before_the_first_row_a_regressor_says_the_mean_at_zero(family, mean):
    assert RAPRegressor(family=family).predict_one({"a": 3.0}) == mean
    assert RAPRegressor(family=family).predict_many(pd.DataFrame({"a": [3.0, 4.0]})).tolist() == [mean, mean]


def test_before_the_first_row_a_classifier_says_nothing():
    model, X = RAPClassifier(), pd.DataFrame({"a": [3.0, 4.0]}, index=[5, 6])
    assert model.predict_one({"a": 3.0}) is None
    assert model.predict_proba_one({"a": 3.0}) == {}
    assert model.predict_many(X).tolist() == [None, None]
    assert model.predict_proba_many(X).shape == (2, 0)
    assert (model.coef_, model.lambda_, model.classes_) == ({}, {}, [])


def test_one_class_is_certain():
    model = taught(RAPClassifier(), dicts(rows(5)), ["only"] * 5)
    assert model.predict_one({"a": 1.0}) == "only"
    assert model.predict_proba_one({"a": 1.0}) == {"only": 1.0}
    assert model.predict_proba_many(pd.DataFrame({"a": [1.0]})).to_dict("list") == {"only": [1.0]}


def test_a_class_that_appears_late_does_not_take_over():
    model = taught(RAPClassifier(), dicts(rows(100)), ["a", "b"] * 50)
    model.learn_one({"a": 0.1}, "new")
    assert model.predict_proba_one({"a": 0.1})["new"] < 0.1


def test_labels_of_numpy_are_plain_labels():
    model = taught(RAPClassifier(), dicts(rows(4)), [np.str_("x"), np.int64(1), np.bool_(True), 1.0])
    assert model.classes_ == ["x", 1]
    assert [type(label) for label in model.classes_] == [str, int]


# --- at home in river -----------------------------------------------------------------------------------------------


def test_in_a_pipeline_it_beats_the_running_mean():
    # One model: what a scaler says of a row before and after it has learnt it differs, and the default's young memories
    # take such differences seriously (docs/mixture.md).
    model = preprocessing.StandardScaler() | RAPRegressor(tuner=LogRMS())
    score = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE()).get()
    mean, baseline = stats.Mean(), metrics.MAE()
    for _, y in datasets.TrumpApproval():
        baseline.update(y, mean.get())
        mean.update(y)
    assert score < 0.5 * baseline.get()


def test_classes_are_told_apart_in_a_pipeline():
    model = preprocessing.StandardScaler() | RAPClassifier(memory=1.0)
    accuracy = evaluate.progressive_val_score(datasets.ImageSegments().take(600), model, metrics.Accuracy()).get()
    assert accuracy > 0.7


def test_after_other_transformers():
    model = compose.Select("a", "b") + (compose.Select("c") | preprocessing.OneHotEncoder()) | RAPRegressor()
    rng = random.Random(0)
    for _ in range(60):
        x = {"a": rng.random(), "b": rng.random(), "c": rng.choice(["u", "v"])}
        model.predict_one(x)
        model.learn_one(x, x["a"] + (x["c"] == "u"))
    assert set(model["RAPRegressor"].coef_) == {"a", "b", "c_u", "c_v"}


def test_mini_batches_go_through_a_pipeline():
    X = pd.DataFrame(rows(), columns=NAMES)
    y = pd.Series(responses(Gaussian(), X.to_numpy()), name="target")
    model = preprocessing.StandardScaler() | RAPRegressor()
    for start in range(0, 80, 20):
        model.learn_many(X[start : start + 20], y[start : start + 20])
    assert np.corrcoef(model.predict_many(X), y)[0, 1] > 0.5


@pytest.mark.parametrize("model", CHECKED, ids=str)
def test_a_copy_goes_on_as_the_model_would_have(model):
    X = rows()
    y = responses(Gaussian(), X) if isinstance(model, RAPRegressor) else labels(X, ["u", "v", "w"]).tolist()
    model = taught(model.clone(), dicts(X[:50]), y[:50])
    pickled, deep = pickle.loads(pickle.dumps(model)), copy.deepcopy(model)
    for other in (model, pickled, deep):
        taught(other, dicts(X[50:, :3], "bxa"), y[50:])
    assert bits(pickled) == bits(deep) == bits(model)


def test_a_clone_has_the_settings_and_nothing_else():
    model = taught(RAPRegressor(memory=Window(20), tuner=Fixed(0.3), penalty_factor={"a": 2}), dicts(rows()), range(80))
    clone = model.clone()
    assert clone._get_params() == model._get_params()
    assert bits(clone) == bits(RAPRegressor(**model._get_params()))
    assert model.clone({"memory": 0.5}).memory == 0.5
    assert "memory=Window(n=20)" in repr(model)


# --- parts written in Python ----------------------------------------------------------------------------------------


def test_a_family_written_in_python():
    X = rows(40)
    y = responses(Gaussian(), X)
    model = taught(RAPRegressor(family=FloatGaussian(), tuner=Fixed(0.1)), dicts(X), y)
    reference = taught(RAPRegressor(tuner=Fixed(0.1)), dicts(X), y)
    frame = pd.DataFrame(X, columns=NAMES)
    np.testing.assert_allclose(model.predict_many(frame), reference.predict_many(frame), rtol=1e-6)
    assert model.predict_one(dicts(X)[0]) == model.predict_many(frame)[0]


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize(("kind", "answers"), [(RAPRegressor, [0.1, 0.7, 0.4]), (RAPClassifier, ["u", "v", "w"])])
def test_a_tuner_that_raises_half_way_leaves_the_model_as_it_was(kind, answers, many):
    X = rows(30)
    budget = [-1]
    model = taught(kind(tuner=Fragile(budget)), dicts(X), answers[:2] * 15)
    before = bits(model)
    for budget[0] in range(3):
        with pytest.raises(RuntimeError, match="broken"):
            if many:
                model.learn_many(pd.DataFrame(rows(9, 5), columns=list("abcde")), pd.Series(answers * 3))
            else:
                for x, y in zip(dicts(rows(9, 5), "abcde"), answers * 3, strict=True):
                    before = bits(model)
                    model.learn_one(x, y)
        assert bits(model) == before


# --- without river --------------------------------------------------------------------------------------------------


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)


def test_the_package_does_not_import_river():
    assert python("import streamlasso, sys; print('river' in sys.modules)").stdout == "False\n"


@pytest.mark.parametrize("missing", ["river", "pandas"])
def test_without_river_the_error_names_the_extra(missing):
    failed = python(f"import sys; sys.modules[{missing!r}] = None; import streamlasso.river")
    assert 'pip install "streamlasso[river]"' in failed.stderr.splitlines()[-1]
