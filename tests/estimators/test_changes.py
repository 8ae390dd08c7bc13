"""Who is told of changes, and how: callbacks of all faces, river's drift detector, refusals."""

import pickle

import numpy as np
import pytest
from river import drift
from sklearn.base import clone

import streamlasso.river
from streamlasso import RAPClassifier, RAPRegressor, progressive
from streamlasso.river import ChangeDetector
from streamlasso.simulate import simulate
from streamlasso.tuners import LogRMS

N, AT = 460, 400


@pytest.fixture(scope="module")
def stream():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    return X, np.where(np.arange(N) < AT, 2.0, -1.0) * X[:, 1] + rng.normal(size=N)


def test_progressive_tells_of_each_change_once(stream):
    told = []
    model = RAPRegressor()
    trace = progressive(model, *stream, on_change=told.append)
    assert [change.detected for change in told] == [change.detected for change in model.changes_]
    assert trace.detected == tuple(model.changes_) and len(told) == 1
    assert str(told[0]).startswith(f"row {told[0].row}, found at row {told[0].detected}")


def test_partial_fit_tells_the_models_own_callback(stream):
    X, y = stream
    told, model = [], RAPRegressor()
    model.on_change = told.append
    for start in range(0, N, 20):
        model.partial_fit(X[start : start + 20], y[start : start + 20])
    assert [change.row // 20 for change in told] == [AT // 20] or abs(told[0].row - AT) < 5
    assert len(told) == 1 and "on_change" not in model.get_params()
    assert clone(model).on_change is None and pickle.loads(pickle.dumps(model)).on_change is None


def test_a_callback_that_raises_loses_no_row_and_no_change(stream):
    """Two streams in one batch: both changes are told, the rows are learnt, and the error is the caller's."""
    X, y = np.vstack([stream[0], stream[0]]), np.concatenate([stream[1], stream[1]])
    expected = RAPRegressor().fit(X, y)
    told, model = [], RAPRegressor()

    def fail(change):
        told.append(change)
        raise RuntimeError(f"at {change.detected}")

    model.on_change = fail
    with pytest.raises(RuntimeError, match=f"at {expected.changes_[0].detected}"):
        model.partial_fit(X, y)
    assert len(told) >= 2 and told == model.changes_ == expected.changes_
    assert model.n_seen_ == len(y) and model.to_bytes() == expected.to_bytes()
    model.on_change = told.append
    model.partial_fit(X[:5], y[:5])
    assert len(told) == len(expected.changes_)


def test_progressive_keeps_what_was_learnt_when_the_callback_raises(stream):
    def fail(change):
        raise RuntimeError("no")

    model = RAPRegressor()
    with pytest.raises(RuntimeError, match="no") as caught:
        progressive(model, *stream, on_change=fail)
    assert len(caught.value.trace.y) == model.n_seen_ and len(model.changes_) == 1


@pytest.mark.parametrize("cut", [300, 401, 404, 420, 455])
def test_each_change_is_told_once_across_save_and_load(stream, cut, tmp_path):
    X, y = stream
    told, model = [], RAPRegressor()
    model.on_change = told.append
    model.partial_fit(X[:cut], y[:cut]).save(tmp_path / "model.safetensors")
    loaded = RAPRegressor.load(tmp_path / "model.safetensors")
    assert loaded.on_change is None
    loaded.on_change = told.append
    loaded.partial_fit(X[cut:], y[cut:])
    (expected,) = RAPRegressor().fit(X, y).changes_
    (change,) = told
    assert change.detected == expected.detected and abs(change.row - AT) < 5 and list(change.features) == ["x1"]
    assert loaded.changes_ == [expected]


def test_a_second_fit_is_a_new_stream(stream):
    told, model = [], RAPRegressor()
    model.on_change = told.append
    model.fit(*stream).fit(*stream)
    assert len(told) == 2 and told[0] == told[1]


def test_rows_by_name_tell_too(stream):
    X, y = stream
    told, model = [], streamlasso.river.RAPRegressor()
    model.on_change = told.append
    for row, target in zip(X, y, strict=True):
        model.learn_one({"a": row[0], "b": row[1], "c": row[2]}, target)
    assert len(told) == 1 and list(model.changes_[0].features) == ["b"]
    same = RAPRegressor().fit(X, y).changes_[0]
    assert (same.row, same.detected) == (model.changes_[0].row, model.changes_[0].detected)


def test_models_of_several_classes_each_have_theirs():
    """Of four streams, in which each of the three models has a change: one may be missed, and none is made up."""
    n_found = 0
    for seed in range(1, 5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(900, 3))
        shifted = np.where(np.arange(900)[:, None] < 600, X, np.roll(X, 1, axis=1))
        y = np.array(["p", "q", "r"])[np.argmax(3 * shifted + rng.gumbel(size=(900, 3)), axis=1)]
        changes = RAPClassifier().fit(X, y).changes_
        assert all(change.detected >= 600 for change in changes)
        n_found += len({change.label for change in changes} & {"p", "q", "r"})
    assert n_found >= 11


@pytest.mark.parametrize("value", [-1.0, float("nan"), 1000.0, "often", True])
def test_a_rate_that_is_none_is_refused(value):
    with pytest.raises(ValueError, match="false_alarms"):
        RAPRegressor(false_alarms=value).fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(ValueError, match="false_alarms"):
        ChangeDetector(value)


# --- river's drift detectors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [(1.5, 1.0), (0.0, 3.0)])
def test_a_mean_and_a_spread_that_change_are_found(after):
    rng = np.random.default_rng(2)
    detector, found = ChangeDetector(), []
    for t in range(1500):
        mean, spread = (0.0, 1.0) if t < 1000 else after
        detector.update(float(mean + spread * rng.normal()))
        if detector.drift_detected:
            found.append(t)
    assert len(found) == 1 and 1000 <= found[0] < 1040 and abs(detector.change - 1000) < 8


def test_it_fits_where_adwin_fits():
    detector = ChangeDetector()
    assert isinstance(detector, type(drift.ADWIN()).__mro__[1]) and not detector.drift_detected
    assert detector.clone().false_alarms == 1.0
    rng = np.random.default_rng(3)
    retrained = drift.DriftRetrainingClassifier(streamlasso.river.RAPClassifier(), detector, train_in_background=False)
    for _ in range(30):
        retrained.learn_one({"x": float(rng.normal())}, bool(rng.integers(2)))


@pytest.mark.parametrize("x", [float("nan"), float("inf"), "1", None])
def test_what_is_no_number_is_refused_and_changes_nothing(x):
    detector = ChangeDetector()
    detector.update(1.0)
    with pytest.raises((TypeError, ValueError), match="x"):
        detector.update(x)
    assert detector._changes.n == 1


def test_a_sequence_that_does_not_change_is_quiet():
    rng = np.random.default_rng(4)
    detector = ChangeDetector()
    for x in rng.standard_t(3, size=4000):
        detector.update(1e9 + 1e3 * x)
        assert not detector.drift_detected


# --- why --------------------------------------------------------------------------------------------------------------


def test_the_rows_that_pushed_lam_are_those_with_the_largest_steps():
    stream = simulate(3)
    trace = progressive(RAPRegressor(tuner=LogRMS()), stream.X, stream.y)
    for t in (90, 150, 240):
        steps = {i: trace.lam[i] - trace.lam[i - 1] for i in range(t - 19, t + 1)}
        up = trace.lam[t] > trace.lam[t - 20]
        most = sorted(sorted(steps, key=lambda i: -steps[i] if up else steps[i])[:3])
        words = trace.why(t)
        if "hardly" not in words:
            assert ("rose" if up else "fell") in words
            assert [
                int(row.split(" (")[0]) for row in words.split("rows ")[2].replace(" and ", ", ").split("), ")[:3]
            ] == most


def test_the_row_is_named_at_which_the_features_were_selected():
    stream = simulate(0)
    trace = progressive(RAPRegressor(), stream.X, stream.y)
    there = trace.selected.coef != 0
    for t in (50, 120, 150, 210, 299):
        k = max(k for k in range(1, t + 1) if np.any(there[k] != there[k - 1]))
        words = trace.why(t)
        assert f"selected since row {k:,}" in words
        for what, which in (("entered", there[k] & ~there[k - 1]), ("left", there[k - 1] & ~there[k])):
            assert (what in words) == which.any()


@pytest.mark.parametrize("t", [-1, 300, 1.5, True, "3"])
def test_a_row_that_is_not_there_has_no_reason(t):
    stream = simulate(0)
    trace = progressive(RAPRegressor(tuner=LogRMS()), stream.X, stream.y)
    with pytest.raises(ValueError, match="use one from 0 to 299"):
        trace.why(t)


def test_a_single_model_looks_for_changes_when_it_is_asked_to():
    stream = simulate(0, lengths=(300, 300), densities=(0.2, 0.2))
    with pytest.raises(AttributeError, match="use false_alarms=1"):
        _ = RAPRegressor(tuner=LogRMS()).fit(stream.X, stream.y).changes_
    assert RAPRegressor(tuner=LogRMS(), false_alarms=1).fit(stream.X, stream.y).changes_
