"""The scikit-learn face: its own checks, frames, chunks, weights, classes, copies, parts written in Python."""

import copy
import pickle
import threading

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris, load_linnerud, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LassoCV, LogisticRegression
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from streamlasso import RAPClassifier, RAPRegressor, families, memories
from streamlasso.families import Gaussian
from streamlasso.memories import AdaptiveForgetting, Forgetting, Window
from streamlasso.penalties import ElasticNet, Ridge
from streamlasso.tuners import LARS, SGD, Fixed, LogRMS, Mixture, Tuner
from support.estimators import ANSWERS, GOOD, N, P, bits, labels, responses, rows
from support.plain import FloatGaussian, Fragile

# --- scikit-learn's own checks --------------------------------------------------------------------------------------

CHECKED = [
    RAPRegressor(),
    RAPRegressor(memory=Window(40), tuner=LogRMS()),
    RAPRegressor(memory=AdaptiveForgetting((0.9, 0.99, 1.0)), tuner=LogRMS()),
    RAPRegressor(memory=1.0, penalty=Ridge()),
    RAPRegressor(penalty=ElasticNet(0.5), tuner=LARS(0.01)),
    RAPRegressor(family="poisson"),
    RAPRegressor(family="gamma", memory=Window(30), tuner=LogRMS(), history=10),
    RAPRegressor(tuner=Fixed(0.1)),
    RAPRegressor(tuner=SGD(0.01), curvature="previous", gradient="diagonal"),
    RAPRegressor(tuner=LogRMS(), batch_size=7),
    RAPRegressor(tuner=LogRMS(), fit_intercept=False, standardize=False, lambda_init=0.1),
    RAPClassifier(),
    RAPClassifier(memory=Window(30), tuner=LogRMS(), history=10, batch_size=7),
    RAPClassifier(penalty=ElasticNet(0.5), tuner=LogRMS(), curvature="previous", gradient="diagonal"),
]

ORDER = "rows are learnt in order, and older ones fade: a weight of 2 is not the row twice, nor are rows exchangeable"


def expected_failures(estimator):
    """The check that supposes that the order of rows does not matter."""
    return {f"check_sample_weight_equivalence_on_{kind}_data": ORDER for kind in ("dense", "sparse")}


@parametrize_with_checks(CHECKED, expected_failed_checks=expected_failures)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


# --- each row once, in order ----------------------------------------------------------------------------------------


def chunks(draw, n):
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=6)))
    return [(i, j) for i, j in zip([0, *cuts], [*cuts, n], strict=True) if i < j]


@given(st.data(), st.sampled_from(families.EXAMPLES), st.sampled_from(memories.EXAMPLES), st.booleans())
def test_any_chunks_give_the_same_bits(data, family, memory, weighted):
    X = rows()
    y = responses(family, X)
    w = np.random.default_rng(3).integers(0, 3, size=N).astype(float) if weighted else None
    whole = RAPRegressor(family=family, memory=memory, tuner=LogRMS(), history=15).partial_fit(X, y, w)
    pieces = RAPRegressor(family=family, memory=memory, tuner=LogRMS(), history=15)
    for i, j in chunks(data.draw, N):
        pieces.partial_fit(X[i:j], y[i:j], None if w is None else w[i:j])
    assert bits(pieces) == bits(whole)


@given(st.data(), st.integers(2, 4))
def test_any_chunks_give_the_same_classifier(data, n_classes):
    X = rows()
    y = labels(X, list("abcd")[:n_classes])
    whole = RAPClassifier(tuner=LogRMS()).partial_fit(X, y)
    pieces = RAPClassifier(tuner=LogRMS())
    for i, j in chunks(data.draw, N):
        pieces.partial_fit(X[i:j], y[i:j], classes=list("abcd")[:n_classes])
    assert bits(pieces) == bits(whole)


@pytest.mark.parametrize("kind", [RAPRegressor, RAPClassifier])
def test_fit_forgets_and_then_learns(kind):
    X = rows()
    y = (X[:, 0] > 0).astype(int)
    model = kind().fit(X[::-1, :3], y).fit(X, y)
    assert bits(model) == bits(kind().partial_fit(X, y))
    assert model.n_seen_ == N
    assert model.partial_fit(X, y).n_seen_ == 2 * N


@pytest.mark.parametrize("kind", [RAPRegressor, RAPClassifier])
def test_a_fit_may_change_width_and_classes(kind):
    X = rows()
    model = kind().fit(X, X[:, 0] > 0).fit(X[:, :2], labels(X, [1, 2, 3]))
    assert model.n_features_in_ == 2
    assert model.coef_.shape[-1] == 2


def test_attributes_before_the_first_row():
    for model in (RAPRegressor(), RAPClassifier()):
        for name in ("coef_", "intercept_", "lambda_", "lambda_max_", "n_seen_", "effective_size_"):
            with pytest.raises(NotFittedError, match="call fit or partial_fit first"):
                getattr(model, name)
        with pytest.raises(NotFittedError):
            model.predict(rows())


def test_effective_size_is_the_weight_remembered():
    X = rows()
    y = X[:, 0]
    assert RAPRegressor(memory=0.9).fit(X, y).effective_size_ == pytest.approx((1 - 0.9**N) / 0.1)
    assert RAPRegressor(memory=Window(20)).fit(X, y).effective_size_ == pytest.approx(20)
    assert RAPRegressor(memory=1.0).fit(X, y, np.full(N, 0.5)).effective_size_ == pytest.approx(N / 2)


# --- what comes out -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_predict_is_the_mean_at_eta(family):
    """On rows that were seen; what the last residuals add is that of the next row."""
    X = rows(120)
    for tuner in (Mixture(carry=False, factors=(), runs=0), Mixture(carry=False)):
        model = RAPRegressor(family=family, tuner=tuner).fit(X, responses(family, X))
        eta = model.intercept_ + X @ model.coef_
        mean = {"Gaussian": eta, "Binomial": 1 / (1 + np.exp(-eta))}.get(type(family).__name__, np.exp(eta))
        np.testing.assert_allclose(model.predict(X), mean, rtol=1e-12)


def tables():
    """Small tables, some of them sorted by what is to be predicted."""
    X, y = load_diabetes(return_X_y=True)
    yield pytest.param(X, y, id="diabetes")
    yield pytest.param(X[np.argsort(y)], np.sort(y), id="diabetes, sorted")
    X = load_iris().data
    yield pytest.param(X[:, :3], X[:, 3], id="iris, by species")
    X = load_wine().data
    yield pytest.param(X[:, 1:], X[:, 0], id="wine, by grower")
    X, y = load_linnerud(return_X_y=True)
    yield pytest.param(X, y[:, 0], id="linnerud, 20 rows")


@pytest.mark.parametrize(("X", "y"), list(tables()))
def test_a_fixed_table_is_fitted_about_as_well_as_by_a_lasso_with_cross_validation(X, y):
    model = RAPRegressor(memory="all").fit(X, y)
    assert model.score(X, y) > LassoCV().fit(X, y).score(X, y) - 0.02
    order = np.random.default_rng(0).permutation(len(y))
    np.testing.assert_allclose(model.predict(X)[order], model.predict(X[order]), rtol=1e-12)


def test_classes_of_a_fixed_table_need_no_order():
    X, y = load_iris(return_X_y=True)
    model = RAPClassifier(memory="all").fit(X, y, sample_weight=np.ones(len(y)))
    assert model.score(X, y) > LogisticRegression(max_iter=1000).fit(X, y).score(X, y) - 0.03
    order = np.random.default_rng(0).permutation(len(y))
    streamed = RAPClassifier(memory="all").partial_fit(X[order], y[order])
    np.testing.assert_array_equal(model.coef_, streamed.coef_)


def test_score_is_r_squared_and_accuracy():
    X = rows()
    y = X[:, 0] + 0.1 * X[:, 1]
    model = RAPRegressor().fit(X, y)
    assert model.score(X, y) == r2_score(y, model.predict(X)) > 0.5
    y = labels(X, list("abc"))
    model = RAPClassifier().fit(X, y)
    assert model.score(X, y) == accuracy_score(y, model.predict(X)) > 1 / 3


# --- frames ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize("kind", [RAPRegressor, RAPClassifier])
def test_frames_are_arrays_with_names(kind, frame):
    X, names = rows(), ["b", "a", "d", "c"]
    y = (X[:, 0] > 0).astype(int)
    framed = frame(dict(zip(names, X.T, strict=True)))
    model = kind().partial_fit(framed[:20], y[:20]).partial_fit(framed[20:], y[20:])
    assert model.feature_names_in_.tolist() == names
    assert bits(model)[0] == bits(kind().fit(X, y))[0]
    assert model.predict(framed).tolist() == kind().fit(X, y).predict(X).tolist()
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(framed[["a", "b", "c", "d"]])
    before = bits(model)
    with pytest.raises(ValueError, match="feature names should match"):
        model.partial_fit(framed[["a", "b", "c", "d"]], y)
    assert bits(model) == before


@pytest.mark.parametrize("series", [pd.Series, pl.Series, list, tuple], ids=["pandas", "polars", "list", "tuple"])
def test_responses_and_weights_of_all_kinds(series):
    X = rows()
    y, w = X[:, 0], np.random.default_rng(0).uniform(size=N)
    assert bits(RAPRegressor().fit(X, series(y), series(w))) == bits(RAPRegressor().fit(X, y, w))
    labelled = np.where(y > 0, "u", "v")
    assert bits(RAPClassifier().fit(X, series(labelled.tolist())))[0] == bits(RAPClassifier().fit(X, labelled))[0]


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, bool, object])
def test_numbers_of_all_kinds_are_numbers(dtype):
    X = np.random.default_rng(0).integers(0, 2, size=(N, P))
    y = X[:, 0] + X[:, 1]
    assert bits(RAPRegressor().fit(X.astype(dtype), y)) == bits(RAPRegressor().fit(X.astype(float), y.astype(float)))


def test_memory_layout_does_not_matter():
    X = rows()
    y = X[:, 0]
    wide = np.zeros((N, 2 * P))
    wide[:, ::2] = X
    for other in (np.asfortranarray(X), wide[:, ::2], X[::-1][::-1]):
        assert bits(RAPRegressor().fit(other, y)) == bits(RAPRegressor().fit(X, y))


@pytest.mark.parametrize("kind", [RAPRegressor, RAPClassifier])
def test_input_is_left_alone(kind):
    X = rows()
    y, w = (X[:, 0] > 0).astype(float), np.ones(N)
    copies = X.copy(), y.copy(), w.copy()
    model = kind().fit(X, y, w)
    before = model.predict(X).tobytes()
    assert all(np.array_equal(a, b) for a, b in zip((X, y, w), copies, strict=True))
    X *= 2
    y += 5
    assert model.predict(copies[0]).tobytes() == before


# --- weights --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", memories.EXAMPLES, ids=str)
@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_rows_of_weight_zero_are_not_there(family, memory):
    X = rows()
    y = responses(family, X)
    w = np.random.default_rng(3).uniform(0.1, 2.0, size=N)
    w[::3] = 0.0
    seen = w > 0
    model = RAPRegressor(family=family, memory=memory, tuner=LogRMS(), history=10)
    assert bits(clone(model).fit(X, y, w)) == bits(clone(model).fit(X[seen], y[seen], w[seen]))


def test_a_batch_of_weight_zero_changes_nothing():
    X = rows()
    model = RAPRegressor().fit(X, X[:, 0])
    before = bits(model)
    assert bits(model.partial_fit(X, X[:, 1], np.zeros(N))) == before


def test_weights_of_one_are_no_weights():
    X = rows()
    assert bits(RAPRegressor().fit(X, X[:, 0], np.ones(N))) == bits(RAPRegressor().fit(X, X[:, 0]))
    assert bits(RAPRegressor().fit(X, X[:, 0], 1.0)) == bits(RAPRegressor().fit(X, X[:, 0]))


def test_where_nothing_fades_a_weight_of_two_is_the_row_twice():
    """The half of scikit-learn's equivalence that holds: order still decides how lam moves, so lam is fixed."""
    X = rows()
    y = X[:, 0] + 0.1 * X[:, 2]
    times = np.random.default_rng(0).integers(0, 4, size=N)
    model = RAPRegressor(memory=1.0, tuner=Fixed(0.05))
    weighted = clone(model).fit(X, y, times)
    repeated = clone(model).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-9)
    assert weighted.effective_size_ == pytest.approx(repeated.effective_size_)


# --- copies ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", CHECKED, ids=str)
def test_a_copy_goes_on_as_the_model_would_have(model):
    X = rows()
    y = responses(families.Poisson(), X) + 0.5 if isinstance(model, RAPRegressor) else labels(X, list("abc"))
    model = clone(model).fit(X[:40], y[:40])
    pickled, deep = pickle.loads(pickle.dumps(model)), copy.deepcopy(model)
    for other in (model, pickled, deep):
        other.partial_fit(X[40:], y[40:])
    assert bits(pickled)[0] == bits(deep)[0] == bits(model)[0]


@pytest.mark.parametrize("model", CHECKED, ids=str)
def test_a_clone_has_the_settings_and_nothing_else(model):
    X = rows()
    fitted = clone(model).fit(X, np.arange(N) % 3 + 1)
    again = clone(fitted)
    assert again.get_params() == model.get_params()
    assert not hasattr(again, "learners_")
    assert repr(again) == repr(model)


def test_at_home_in_scikit_learn():
    X = rows(120)
    y = X[:, 0] - X[:, 1]
    search = GridSearchCV(
        make_pipeline(StandardScaler(), RAPRegressor()),
        {"rapregressor__memory": [0.5, 0.99, Window(30)], "rapregressor__tuner": [None, Fixed(0.3)]},
        cv=TimeSeriesSplit(3),
    ).fit(X, y)
    assert search.best_score_ > 0.9
    assert search.best_params_["rapregressor__memory"] != 0.5


def test_settings_are_not_touched_by_a_fit():
    memory, factor = Forgetting(0.9), np.array([0.0, 1.0, 1.0, 2.0])
    model = RAPRegressor(memory=memory, penalty_factor=factor).fit(rows(), rows()[:, 0])
    assert model.memory is memory
    assert model.penalty_factor is factor
    assert factor.tolist() == [0.0, 1.0, 1.0, 2.0]


# --- parts written in Python ----------------------------------------------------------------------------------------


def test_a_family_written_in_python():
    y = GOOD[:, 0]
    model = RAPRegressor(family=FloatGaussian(), tuner=Fixed(0.1)).fit(GOOD, y)
    reference = RAPRegressor(tuner=Fixed(0.1)).fit(GOOD, y)
    np.testing.assert_allclose(model.predict(GOOD), reference.predict(GOOD), rtol=1e-6)


@pytest.mark.parametrize("spent_after", [0, 1, 5, N + 3])
@pytest.mark.parametrize(("kind", "y"), [(RAPRegressor, GOOD[:, 0]), (RAPClassifier, labels(GOOD, list("abc")))])
def test_a_tuner_that_raises_half_way_leaves_the_model_as_it_was(kind, y, spent_after):
    budget = [-1]
    model = kind(tuner=Fragile(budget)).fit(GOOD, y)
    budget[0] = spent_after
    before = [learner.state() for learner in model.learners_]
    if spent_after > N and kind is RAPRegressor:
        return
    for learn in (model.partial_fit, model.fit):
        with pytest.raises(RuntimeError, match="broken"):
            learn(GOOD, y)
        after = [learner.state() for learner in model.learners_]
        assert all(np.array_equal(a[name], b[name]) for a, b in zip(before, after, strict=True) for name in a)
        budget[0] = spent_after


def test_a_singular_block_is_no_error():
    X = np.repeat(GOOD[:, :1], 3, axis=1)
    for tuner in (None, Fixed(0.0), SGD(10.0)):
        model = RAPRegressor(tuner=tuner, memory=Window(2)).fit(X, ANSWERS)
        assert np.all(np.isfinite(model.coef_))
        assert model.learners_[0].status in ("ok", "singular", "unfinished", "waiting")


def test_gaussian_is_the_default():
    assert bits(RAPRegressor().fit(GOOD, ANSWERS))[0] == bits(RAPRegressor(family=Gaussian()).fit(GOOD, ANSWERS))[0]


def test_a_second_thread_gets_an_error_and_the_model_stays_whole():
    class Slow(Tuner):
        def update(self, lam, slope, norm, lam_max, state):
            entered.set()
            leave.wait(10)
            return lam

    entered, leave = threading.Event(), threading.Event()
    X = np.random.default_rng(0).normal(size=(12, 2))
    model = RAPRegressor(tuner=Slow()).partial_fit(X[:9], X[:9, 0])
    first = threading.Thread(target=model.partial_fit, args=(X[9:], X[9:, 0]))
    first.start()
    entered.wait(10)
    with pytest.raises(RuntimeError, match="another thread"):
        model.partial_fit(X, X[:, 0])
    leave.set()
    first.join()
    assert model.n_seen_ == 12


def test_settings_changed_mid_stream_wait_for_the_next_fit():
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = RAPRegressor(family="poisson").fit(X, np.arange(30.0))
    model.set_params(family="gaussian")
    with pytest.raises(ValueError, match="a count, 0 or larger"):
        model.partial_fit(X, -np.ones(30))
    assert model.fit(X, -np.ones(30)).predict(X) == pytest.approx(-np.ones(30))


def test_lambda_init_beside_a_fixed_penalty_is_refused():
    with pytest.raises(ValueError, match=r"lambda_init=5.0: Fixed\(lam=0.1\) brings its own"):
        RAPRegressor(tuner=Fixed(0.1), lambda_init=5.0).fit(np.eye(3), np.arange(3.0))


def test_dates_among_numbers_are_refused_in_words():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame({"when": pandas.date_range("2026", periods=20), "a": np.arange(20.0)})
    with pytest.raises(ValueError, match="X: numbers are needed, but there are dates"):
        RAPRegressor().fit(X, np.arange(20.0))


def test_labels_of_two_types_are_refused_in_words():
    X = np.random.default_rng(0).normal(size=(20, 2))
    mixed = np.array(["a", 1] * 10, dtype=object)
    with pytest.raises(ValueError, match="y: labels of one type"):
        RAPClassifier().fit(X, mixed)
    model = RAPClassifier().fit(X, ["a", "b"] * 10)
    with pytest.raises(ValueError, match="y: labels of one type"):
        model.partial_fit(X, mixed)
    with pytest.raises(ValueError, match="classes: labels of one type"):
        RAPClassifier().partial_fit(X, ["a", "b"] * 10, classes=mixed[:2])


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    model = RAPRegressor().fit(np.random.default_rng(0).normal(size=(20, 2)), np.arange(20.0))
    with pytest.raises(FileNotFoundError) as refusal:
        model.save(tmp_path / "nowhere" / "model")
    assert refusal.value.filename == str(tmp_path / "nowhere" / "model")


def test_factors_may_be_a_column_of_a_table():
    X = np.random.default_rng(0).normal(size=(60, 3))
    factors = np.array([[1.0, 9.0], [0.5, 9.0], [2.0, 9.0]])
    column, copy = (RAPRegressor(penalty_factor=each).fit(X, X[:, 0]) for each in (factors[:, 0], factors[:, 0].copy()))
    np.testing.assert_array_equal(column.coef_, copy.coef_)
