"""Rows of the river face: names that come and go, values that are refused, and what there is before the first row."""

import copy
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamlasso
from streamlasso import families, memories
from streamlasso.families import Gaussian
from streamlasso.river import RAPClassifier, RAPRegressor
from streamlasso.tuners import Fixed, LogRMS
from support.river import bits, dicts, responses, rows, taught

#: What is no finite number, and where it stands in the error.
BAD = ["1.5", b"1", None, np.nan, np.inf, -np.inf, 1e101, 10**400, 1j, [1.0], {}, "nan"]


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
    assert model.predict_one({}) == pytest.approx(model.intercept_, rel=1e-13)
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
    if not (fresh and bad != bad):  # a scaler in front has no value before the first row
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
    ("penalty_factor", [1.0], r"penalty_factor=\[1.0\] is not a dict: use a dict from names to numbers"),
    ("penalty_factor", {"a": -1}, r"penalty_factor\['a'\]=-1: use a number, 0 \(never penalised\) or larger"),
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
