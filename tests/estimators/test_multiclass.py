"""Several classes, for all faces: probabilities, losses, and classes that appear late."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlasso import RAPClassifier, RAPRegressor, river
from streamlasso.estimators.multiclass import N_RECENT, Recent, best_class, losses_of, probabilities, targets_of
from streamlasso.families import Binomial
from streamlasso.memories import Window
from streamlasso.tuners import Fixed, LogRMS, Mixture
from support.estimators import P, bits, labels, responses, rows
from support.river import bits as river_bits
from support.river import dicts, taught

# --- one model, or one per class --------------------------------------------------------------------------------------


def test_two_classes_are_one_model():
    X = rows()
    # A ridge of few rows is held back where it is too sure, and then its coefficients say more than it predicts.
    model = RAPClassifier(tuner=Mixture(carry=False, runs=0)).fit(X, labels(X, ["no", "yes"]))
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.coef_.shape == (1, P)
    assert isinstance(model.lambda_, float)
    eta = model.decision_function(X)
    np.testing.assert_allclose(eta, model.intercept_[0] + X @ model.coef_[0], rtol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-eta)), rtol=1e-12)
    assert model.predict(X).tolist() == np.where(eta > 0, "yes", "no").tolist()


def test_two_classes_are_the_binomial_family():
    X = rows()
    y = responses(Binomial(), X).round()
    classifier, regressor = RAPClassifier().fit(X, y), RAPRegressor(family="binomial").fit(X, y)
    assert classifier.predict_proba(X)[:, 1].tobytes() == regressor.predict(X).tobytes()
    assert classifier.lambda_ == regressor.lambda_


def test_several_classes_are_one_model_each_with_its_own_lam():
    X = rows()
    y = labels(X, [3, 5, 7])
    model = RAPClassifier().fit(X, y)
    assert model.coef_.shape == (3, P)
    assert len(set(model.lambda_.tolist())) == 3
    for i, label in enumerate([3, 5, 7]):
        alone = RAPClassifier().fit(X, y == label)
        assert model.decision_function(X)[:, i].tobytes() == alone.decision_function(X).tobytes()
        assert (model.lambda_[i], model.lambda_max_[i]) == (alone.lambda_, alone.lambda_max_)
    proba = model.predict_proba(X)
    share = 1 / (1 + np.exp(-model.decision_function(X)))
    np.testing.assert_allclose(proba, share / share.sum(axis=1, keepdims=True), rtol=1e-12)
    assert model.predict(X).tolist() == model.classes_[proba.argmax(axis=1)].tolist()


def test_probabilities_that_all_vanish_are_equal():
    X = np.eye(3) * 1e6
    model = RAPClassifier(tuner=Fixed(0.0), memory=1.0).fit(np.vstack([X] * 4), list("abc") * 4)
    proba = model.predict_proba(np.full((1, 3), -1e9))
    np.testing.assert_allclose(proba.sum(), 1.0)
    assert np.all(np.isfinite(proba))


def test_classes_may_be_named_before_they_are_seen():
    X = rows()
    y = labels(X, list("abc"))
    y[:20] = labels(X[:20], list("ab"))
    first = np.flatnonzero(y == "c")[0]
    model = RAPClassifier().partial_fit(X[:first], y[:first], classes=list("cba"))
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.predict_proba(X)[:, 2].max() < 0.5
    assert bits(model.partial_fit(X[first:], y[first:])) == bits(RAPClassifier().partial_fit(X, y, classes=list("abc")))


# --- probabilities and losses, against arithmetic on plain floats -----------------------------------------------------


def by_hand(etas):
    """The probabilities of the classes of one row."""
    own = [1 / (1 + math.exp(-eta)) for eta in etas]
    return [1 - own[0], own[0]] if len(own) == 1 else [share / sum(own) for share in own]


@given(st.sampled_from([1, 3, 4, 7, 12]), st.integers(1, 6), st.integers(0, 10**6))
def test_probabilities_and_losses_are_those_of_the_formula(n_models, n_rows, seed):
    rng = np.random.default_rng(seed)
    n_classes = max(n_models, 2)
    eta, y = rng.normal(scale=4, size=(n_rows, n_models)), rng.integers(0, n_classes, size=n_rows)
    expected = np.array([by_hand(row) for row in eta.tolist()])
    np.testing.assert_allclose(probabilities(Binomial().mean(eta)), expected, rtol=1e-12)
    assert best_class(eta).tolist() == expected.argmax(axis=1).tolist()
    losses = losses_of(Binomial(), targets_of(y, n_classes), eta)
    np.testing.assert_allclose(losses, -np.log(expected[np.arange(n_rows), y]), rtol=1e-9)


# --- classes that appear late -----------------------------------------------------------------------------------------

FIRST = 400


def late_stream(n=600, p=4):
    """Two classes, and a third from row FIRST on."""
    X = rows(n, p)
    y = labels(X, list("abc"))
    y[:FIRST] = labels(X[:FIRST], list("ab"))
    y[FIRST] = "c"
    return X, y.tolist()


def model_of(X, y, label, weights=None):
    """The model of one class against the rest, alone."""
    return RAPRegressor("binomial", memory=Window(300), tuner=LogRMS()).partial_fit(
        X, np.equal(y, label) * 1.0, weights
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_a_late_class_has_learnt_the_last_rows(weighted):
    X, y = late_stream()
    weights = np.random.default_rng(4).integers(0, 3, size=len(X)).astype(float) if weighted else np.ones(len(X))
    weights[FIRST] = 1.0
    classifier = river.RAPClassifier(memory=Window(300), tuner=LogRMS())
    classifier.learn_many(pd.DataFrame(X, columns=list("abcd")), pd.Series(y), w=pd.Series(weights))
    start = np.flatnonzero(weights[:FIRST])[-N_RECENT]
    alone = {label: model_of(X, y, label, weights) for label in "ab"}
    alone["c"] = model_of(X[start:], y[start:], "c", weights[start:])
    for label, model in alone.items():
        assert list(classifier.coef_[label].values()) == model.coef_.tolist()
        assert classifier.lambda_[label] == model.lambda_


def test_all_faces_have_one_rule():
    X, y = late_stream()
    tuner = Mixture(carry=False)
    one = taught(river.RAPClassifier(tuner=tuner), dicts(X), y)
    other = RAPClassifier(tuner=tuner)._start(list("abcd"), one.classes_[:2])
    for start, stop in ((0, FIRST), (FIRST, len(X))):
        if start:
            other._add_classes(one.classes_)
        other.partial_fit(pd.DataFrame(X[start:stop], columns=list("abcd")), y[start:stop])
        other._remember(X[start:stop], np.ones(stop - start))
    assert river_bits(one)[0] == bits(other)[0]
    assert other.predict_proba(pd.DataFrame(X, columns=list("abcd"))).tolist() == [
        list(one.predict_proba_one(x).values()) for x in dicts(X)
    ]


def test_a_new_feature_was_zero_in_the_rows_kept():
    X, y = late_stream()
    xs = [x if t >= FIRST - 100 else {name: x[name] for name in "abc"} for t, x in enumerate(dicts(X))]
    X[: FIRST - 100, 3] = 0.0
    grown, zeroed = (taught(river.RAPClassifier(tuner=Fixed(0.01)), each, y) for each in (xs, dicts(X)))
    for label in "abc":
        assert list(grown.coef_[label].values()) == pytest.approx(list(zeroed.coef_[label].values()), rel=1e-6)


@given(st.lists(st.integers(0, 200), max_size=6), st.integers(0, 10**6))
def test_the_rows_kept_are_the_last_that_were_learnt(sizes, seed):
    rng = np.random.default_rng(seed)
    recent, expected = Recent(2), []
    for size in sizes:
        X, weights = rng.normal(size=(size, 2)), rng.integers(0, 3, size=size).astype(float)
        expected += [[*x, w] for x, w in zip(X.tolist(), weights.tolist(), strict=True) if w]
        assert recent.followed_by(X, weights).rows.tolist() == expected[-N_RECENT:]
        recent.add(X, weights)
        X[:], weights[:] = np.nan, np.nan
    assert recent.rows.tolist() == expected[-N_RECENT:]
    assert recent.grown(3).rows[:, 2].tolist() == [0.0] * len(recent.rows)


def test_a_file_keeps_the_rows(tmp_path):
    X, y = late_stream()
    model = taught(river.RAPClassifier(tuner=LogRMS()), dicts(X[:FIRST]), y[:FIRST])
    model.save(tmp_path / "model")
    copies = model, river.RAPClassifier.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))
    whole, loaded, pickled = (river_bits(taught(copy, dicts(X[FIRST:]), y[FIRST:])) for copy in copies)
    assert whole == loaded == pickled


@pytest.mark.parametrize("kept", [np.ones((3, 4)), np.ones(5), np.full((3, 5), np.nan), -np.ones((3, 5))], ids=repr)
def test_rows_that_do_not_fit_are_refused(tmp_path, monkeypatch, kept):
    model = taught(river.RAPClassifier(), dicts(rows(20)), list("ab") * 10)
    monkeypatch.setattr(river.RAPClassifier, "_recent_rows", kept)
    model.save(tmp_path / "model")
    monkeypatch.undo()
    with pytest.raises(ValueError, match="not a streamlasso checkpoint, or one that was cut short or altered"):
        river.RAPClassifier.load(tmp_path / "model")
