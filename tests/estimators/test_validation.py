"""The scikit-learn face refuses: the argument, the value, what is accepted; and nothing has changed."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning

from streamlasso import RAPClassifier, RAPRegressor
from support.estimators import ANSWERS, GOOD, WEIGHTS, N, P, bits, rows


def bad(value, row=7, column=2):
    X = rows().astype(object if isinstance(value, str) else float)
    X[row, column] = value
    return X


def with_value(values, value, at=9):
    out = values.astype(object if isinstance(value, str | None) else float)
    out[at] = value
    return out


BAD_FEATURES = [
    (bad(np.nan), ["X contains NaN"]),
    (bad(np.inf), ["X contains infinity"]),
    (bad(-np.inf), ["X contains infinity"]),
    (bad(1e101), ["X[7, 2] = 1e+101", "within +-1e+60"]),
    (bad("word"), ["X: numbers are needed", "'word'"]),
    (GOOD[:, :2], ["X has 2 features", "expecting 4 features"]),
    (rows(N, 5), ["X has 5 features", "expecting 4 features"]),
    (GOOD[:0], ["0 sample"]),
    (GOOD[:, :0], ["0 feature"]),
    (GOOD[0], ["Expected 2D array, got 1D array"]),
    (GOOD[None], ["dim 3"]),
    (GOOD + 1j, ["Complex data not supported"]),
    (None, ["Expected 2D array"]),
    (pd.DataFrame(GOOD).assign(more="word").set_axis(list("abcde"), axis=1), ["X: numbers are needed", "'word'"]),
]


FRAME = pd.DataFrame(GOOD, columns=list("abcd"))
ENCODER = "StreamEncoder"
NOT_NUMBERS = [
    (FRAME.assign(d=pd.Categorical(["u", "v"] * (N // 2))), ["column 'd' holds categories", ENCODER]),
    (FRAME.assign(d=pd.Categorical([1, 2] * (N // 2))), ["column 'd' holds categories", ENCODER]),
    (pl.DataFrame({"a": [1.0] * N, "d": pl.Series(["u"] * N, dtype=pl.Categorical)}), ["column 'd'", ENCODER]),
    (pl.DataFrame({"a": [1.0] * N, "d": pl.Series(["u"] * N, dtype=pl.Enum(["u"]))}), ["column 'd'", ENCODER]),
    (FRAME.assign(d="u"), ["could not convert string to float: 'u'", ENCODER]),
    (FRAME.assign(d=pd.Timestamp("2024-01-01")), ["dates", ENCODER]),
    (FRAME.assign(d=[None, *[1.0] * (N - 1)]), ["NaN: X[0, 3] = nan", ENCODER]),
]


@pytest.mark.parametrize(("X", "words"), NOT_NUMBERS, ids=lambda value: value[0] if isinstance(value, list) else "")
@pytest.mark.parametrize("kind", [RAPRegressor, RAPClassifier])
def test_what_is_not_a_number_is_refused_with_a_way_out(kind, X, words):
    model = kind()
    for learn in (model.fit, model.partial_fit):
        with pytest.raises(ValueError) as error:
            learn(X, ANSWERS)
        assert all(word in str(error.value) for word in words), str(error.value)
        assert "row was learnt" in str(error.value)
        assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("sparse", [csr_matrix, csc_array, coo_array], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("kind", [RAPRegressor, RAPClassifier])
def test_a_sparse_matrix_is_its_dense_array(kind, sparse):
    X = np.where(np.abs(GOOD) > 0.5, GOOD, 0.0)
    dense, other = kind().fit(X, ANSWERS), kind().fit(sparse(X), ANSWERS)
    assert bits(dense) == bits(other)
    assert bits(dense.partial_fit(X, ANSWERS)) == bits(other.partial_fit(sparse(X), ANSWERS))
    np.testing.assert_array_equal(dense.predict(X), other.predict(sparse(X)))
    np.testing.assert_array_equal(dense.predict(X), other.predict(X))


@pytest.mark.parametrize(
    ("shape", "advice"),
    [
        ((10**6, 1000), "learn 50,000 rows at a time with partial_fit, or select columns"),
        ((5, 10**9), "numbers: select"),
    ],
)
def test_a_sparse_matrix_that_would_fill_the_memory_is_refused(shape, advice):
    model = RAPRegressor()
    with pytest.raises(ValueError, match=r"X is sparse.*50,000,000 numbers") as error:
        model.partial_fit(csr_array(shape), np.zeros(shape[0]))
    assert advice in str(error.value)
    assert not hasattr(model, "n_features_in_")


def refused(model, words, X, y, sample_weight=None):
    """By fit and partial_fit, of a model that has learnt something and of one that has not."""
    for learn in ("partial_fit", "fit"):
        before = bits(model)
        with pytest.raises(ValueError) as error:
            getattr(model, learn)(X, y, sample_weight=sample_weight)
        assert all(word in str(error.value) for word in words), str(error.value)
        assert bits(model) == before


def test_fresh_or_not(kinds=(RAPRegressor, RAPClassifier)):
    """The helper's own oracle: a good batch does change the bits."""
    for kind in kinds:
        model = kind().fit(GOOD, ANSWERS)
        assert bits(model) != bits(clone(model).fit(GOOD[:-1], ANSWERS[:-1]))


@pytest.mark.parametrize(("X", "words"), BAD_FEATURES, ids=lambda value: value[0] if isinstance(value, list) else "")
@pytest.mark.parametrize("kind", [RAPRegressor, RAPClassifier])
def test_bad_features_are_refused(kind, X, words):
    model = kind().fit(GOOD, ANSWERS)
    before = bits(model)
    for learn in (lambda: model.partial_fit(X, ANSWERS), lambda: model.predict(X)):
        with pytest.raises((ValueError, TypeError)) as error:
            learn()
        assert all(word in str(error.value) for word in words), str(error.value)
        assert bits(model) == before


@pytest.mark.parametrize(
    "X", [X for X, _ in BAD_FEATURES if not (np.ndim(X) == 2 and np.shape(X)[1] in (2, 5))], ids=lambda _: ""
)
@pytest.mark.parametrize("kind", [RAPRegressor, RAPClassifier])
def test_a_refused_fit_leaves_the_model_as_it_was(kind, X):
    for model in (kind(), kind().fit(GOOD, ANSWERS)):
        before = bits(model)
        with pytest.raises((ValueError, TypeError)):
            model.fit(X, ANSWERS)
        assert bits(model) == before


@pytest.mark.parametrize("kind", [RAPRegressor, RAPClassifier])
def test_a_refused_fit_of_another_width_leaves_the_model_as_it_was(kind):
    """A model as wide as the refused batch would read beyond the coefficients of the old one."""
    model = kind().fit(pd.DataFrame(GOOD, columns=list("abcd")), ANSWERS)
    refused(model, ["y"], pd.DataFrame(GOOD[:, :2], columns=["x", "y"]), None)
    assert model.feature_names_in_.tolist() == list("abcd")
    model = kind()
    refused(model, ["y"], GOOD, None)
    assert not hasattr(model, "n_features_in_")


BAD_RESPONSES = [
    ("gaussian", with_value(ANSWERS, np.nan), ["y[9] = nan", "NaN"]),
    ("gaussian", with_value(ANSWERS, np.inf), ["y[9] = inf", "infinity"]),
    ("gaussian", with_value(ANSWERS, -1e101), ["y[9] = -1e+101", "within +-1e+60"]),
    ("gaussian", with_value(ANSWERS, "word"), ["y: numbers are needed", "'word'"]),
    ("gaussian", ANSWERS[:-1], ["inconsistent numbers of samples", "[60, 59]"]),
    ("gaussian", ANSWERS[:0], ["inconsistent numbers of samples", "[60, 0]"]),
    ("gaussian", None, ["requires y to be passed"]),
    ("gaussian", np.column_stack([ANSWERS, ANSWERS]), ["y should be a 1d array"]),
    ("poisson", with_value(ANSWERS, -1.0), ["y", "a count, 0 or larger", "Poisson()"]),
    ("gamma", with_value(ANSWERS, 0.0), ["y", "larger than 0", "Gamma()"]),
    ("binomial", ANSWERS, ["y", "between 0 and 1", "Binomial()"]),
]


@pytest.mark.parametrize(
    ("family", "y", "words"), BAD_RESPONSES, ids=lambda value: value[0] if isinstance(value, list) else ""
)
def test_bad_responses_are_refused(family, y, words):
    for model in (
        RAPRegressor(family=family).fit(GOOD, ANSWERS - 1 if family == "binomial" else ANSWERS),
        RAPRegressor(family=family),
    ):
        refused(model, words, GOOD, y)


BAD_LABELS = [
    (with_value(ANSWERS, 3.0), ["y holds [3.0]", "not among the classes [1.0, 2.0]"]),
    (with_value(ANSWERS, np.nan), ["y holds [nan]"]),
    (ANSWERS[:-1], ["inconsistent numbers of samples"]),
    (np.column_stack([ANSWERS, ANSWERS]), ["1d array"]),
    (None, ["y"]),
]


@pytest.mark.parametrize(("y", "words"), BAD_LABELS, ids=lambda value: value[0] if isinstance(value, list) else "")
def test_bad_labels_are_refused(y, words):
    model = RAPClassifier().fit(GOOD, ANSWERS)
    before = bits(model)
    with pytest.raises(ValueError) as error:
        model.partial_fit(GOOD, y)
    assert all(word in str(error.value) for word in words), str(error.value)
    assert bits(model) == before


def test_a_single_class_is_refused_unless_the_others_are_named():
    refused(RAPClassifier(), ["one class only", "['up']", "partial_fit(X, y, classes=[...])"], GOOD, ["up"] * N)
    RAPClassifier().partial_fit(GOOD, ["up"] * N, classes=["up", "down"])


def test_other_classes_than_on_the_first_call_are_refused():
    model = RAPClassifier().fit(GOOD, ANSWERS)
    before = bits(model)
    with pytest.raises(ValueError, match=r"classes=\[1, 2, 3\] is not the same as on the first call: \[1.0, 2.0\]"):
        model.partial_fit(GOOD, ANSWERS, classes=[1, 2, 3])
    assert bits(model) == before
    model.partial_fit(GOOD, ANSWERS, classes=[2, 1])


def test_continuous_labels_are_refused():
    refused(RAPClassifier(), ["Unknown label type"], GOOD, GOOD[:, 0])


BAD_WEIGHTS = [
    (with_value(WEIGHTS, -1.0), ["sample_weight", "from 0 (the row is skipped)"]),
    (with_value(WEIGHTS, np.nan), ["sample_weight"]),
    (with_value(WEIGHTS, np.inf), ["sample_weight"]),
    (with_value(WEIGHTS, 1e101), ["sample_weight", "1e+60"]),
    (WEIGHTS[:-1], ["sample_weight", "(59,)", "(60,)"]),
    (np.ones((N, 1)), ["sample_weight", "(60, 1)"]),
    (with_value(WEIGHTS, "word"), ["sample_weight: numbers are needed", "'word'"]),
]


@pytest.mark.parametrize(("w", "words"), BAD_WEIGHTS, ids=lambda value: value[-1] if isinstance(value, list) else "")
@pytest.mark.parametrize("kind", [RAPRegressor, RAPClassifier])
def test_bad_weights_are_refused(kind, w, words):
    for model in (kind().fit(GOOD, ANSWERS), kind()):
        refused(model, words, GOOD, ANSWERS, w)


def test_a_column_vector_is_taken_with_a_warning():
    with pytest.warns(DataConversionWarning, match="column-vector"):
        model = RAPRegressor().fit(GOOD, ANSWERS.reshape(-1, 1))
    assert bits(model) == bits(RAPRegressor().fit(GOOD, ANSWERS))


def test_a_bad_setting_is_refused_by_the_first_fit():
    for model in (RAPRegressor(memory=1.2), RAPClassifier(memory=1.2)):
        refused(model, ["memory=1.2", "(0, 1]", "1 never forgets"], GOOD, ANSWERS)


@given(st.integers(0, N - 1), st.integers(0, P - 1), st.sampled_from([np.nan, np.inf, -np.inf, 2e100]), st.booleans())
def test_one_bad_value_anywhere_refuses_the_batch(row, column, value, in_y):
    X, y = rows(), ANSWERS.copy()
    if in_y:
        y[row] = value
    else:
        X[row, column] = value
    model = RAPRegressor().fit(GOOD, ANSWERS)
    before = bits(model)
    with pytest.raises(ValueError, match=r"y\[" if in_y else rf"X contains|X\[{row}, {column}\]"):
        model.partial_fit(X, y)
    assert bits(model) == before
