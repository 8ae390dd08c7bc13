"""progressive against a plain loop of predict and partial_fit, and the baseline against sums written out."""

import base64
import sys
from dataclasses import replace
from math import exp, log

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import log_loss, mean_gamma_deviance, mean_poisson_deviance

from streamlasso import RAPClassifier, RAPRegressor, progressive
from streamlasso.baselines import RunningMean
from streamlasso.families import Binomial, Family, Gamma, Gaussian, Poisson
from streamlasso.memories import AdaptiveForgetting, Window
from streamlasso.penalties import ElasticNet
from streamlasso.simulate import simulate
from streamlasso.tuners import SGD, Fixed, LogRMS, Tuner
from support.plain import PlainGaussian

MODULE = sys.modules["streamlasso._progressive"]
AFTER = ("lam", "lam_max", "n_active", "effective_size", "status")


class OwnPoisson(Family):
    """Poisson, for plain floats only, as a user would write it."""

    def loss(self, y, eta):
        return exp(eta) - y * eta

    def slope(self, y, eta):
        return exp(eta) - y

    def curvature(self, y, eta):
        return exp(eta)

    def mean(self, eta):
        return exp(eta)


class Breaks(Tuner):
    """Raises at its n-th step."""

    n_state = 1

    def update(self, lam, slope, norm, lam_max, state):
        state[0] += 1
        if state[0] == 30:
            raise RuntimeError("the tuner broke")
        return lam


REGRESSORS = [
    RAPRegressor(),
    RAPRegressor(memory=0.9, tuner=LogRMS()),
    RAPRegressor(memory=Window(15), penalty=ElasticNet(0.5), tuner=SGD(0.01), lambda_init=0.1),
    RAPRegressor(family="poisson", memory=0.95, tuner=LogRMS(), gradient="diagonal"),
    RAPRegressor(family=Gamma(), tuner=LogRMS(), curvature="previous", history=5),
    RAPRegressor(family="binomial", standardize=False),
    RAPRegressor(family=OwnPoisson(), memory=0.95, tuner=LogRMS(), history=10),
    RAPRegressor(family=OwnPoisson(), memory=AdaptiveForgetting((0.9, 1.0))),
]


def stream_for(model, n=60, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    family = {"gaussian": Gaussian(), "poisson": Poisson(), "binomial": Binomial()}.get(model.family, model.family)
    family = Poisson() if isinstance(family, OwnPoisson) else family
    return X, family.sample(rng, X[:, 0] - 0.5 * X[:, 1])


def labels(X, classes):
    rng = np.random.default_rng(1)
    return np.array(classes)[np.argmax(X[:, : len(classes)] + rng.gumbel(size=(len(X), len(classes))), axis=1)]


def same_state(one, other):
    states = [[learner.state() for learner in model.learners_] for model in (one, other)]
    return all(np.array_equal(a[name], b[name], equal_nan=True) for a, b in zip(*states, strict=True) for name in a | b)


def same(one, other):
    if one.dtype.kind == "f":
        return np.array_equal(one, other, equal_nan=True)
    return np.array_equal(one, other)


def what_is_so(model):
    first = model.learners_[0]
    return first.lam, first.lam_max, int(np.count_nonzero(first.coef)), first.effective_size, first.status


def assert_selected(trace, t, model):
    """After row t the trace shows the selected model of each learner."""
    assert trace.selected.t[t] == t
    for name in ("since", "coef"):
        expected = np.array([getattr(learner.single(), name) for learner in model.learners_])
        np.testing.assert_array_equal(
            getattr(trace.selected, name)[t], np.squeeze(expected, axis=0) if len(expected) == 1 else expected
        )


# --- the plain loop ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", REGRESSORS, ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_regressor_is_a_plain_loop_to_the_bit(model, weighted):
    X, y = stream_for(model)
    weight = np.random.default_rng(2).integers(0, 3, size=len(y)).astype(float) if weighted else np.ones(len(y))
    weight[0] = 2.0
    one = clone(model)
    trace = progressive(one, X, y, weight if weighted else None, coef=True)
    family = one.learners_[0].settings["family"]
    assert (trace.prediction[0], trace.loss[0]) == (family.mean(0.0), family.loss(y[0], 0.0))

    other = clone(model)
    for t in range(len(y)):
        row = X[t : t + 1]
        if t > 0:
            assert trace.prediction[t] == other.predict(row)[0]
            assert trace.loss[t] == family.loss(y[t], float(other.learners_[0].decision(row)[0]))
        if weight[t] > 0:
            other.partial_fit(row, y[t : t + 1], sample_weight=weight[t : t + 1] if weighted else None)
        assert trace.coef[t].tolist() == other.coef_.tolist()
        assert trace.intercept[t] == other.intercept_
        np.testing.assert_array_equal(np.array([trace[name][t] for name in AFTER]), np.array(what_is_so(other)))
        assert_selected(trace, t, other)
    assert same_state(one, other)
    assert trace.last_coef.tolist() == one.learners_[0].single().coef.tolist()


@pytest.mark.parametrize("classes", [["down", "up"], [3, 1, 2], [True, False]])
def test_classifier_is_a_plain_loop(classes):
    X = np.random.default_rng(0).normal(size=(60, 4))
    y = labels(X, classes)
    one, other = RAPClassifier(memory=0.95), RAPClassifier(memory=0.95)
    trace = progressive(one, X, y, coef=True)
    assert trace.loss[0] == pytest.approx(log(len(classes)))
    for t in range(len(y)):
        row = X[t : t + 1]
        if t > 0:
            assert trace.prediction[t] == other.predict(row)[0]
            proba = other.predict_proba(row)[0, list(other.classes_).index(y[t])]
            assert trace.loss[t] == pytest.approx(-log(proba), rel=1e-9, abs=1e-14)
        other.partial_fit(row, y[t : t + 1], classes=classes)
        np.testing.assert_array_equal(trace.lam[t], other.lambda_)
        np.testing.assert_array_equal(trace.lam_max[t], other.lambda_max_)
        np.testing.assert_array_equal(np.atleast_2d(trace.coef[t]), other.coef_)
        np.testing.assert_array_equal(trace.n_active[t], np.squeeze(np.count_nonzero(other.coef_, axis=1)))
        assert_selected(trace, t, other)
    assert same_state(one, other)
    assert trace.y.tolist() == y.tolist()
    assert trace.classes.tolist() == one.classes_.tolist() == sorted(classes)


def test_several_classes_are_finite_where_probabilities_underflow():
    X = np.repeat([[0.0], [1.0], [2.0]], 40, axis=0) * 1e3
    trace = progressive(RAPClassifier(memory=1.0), np.vstack([X, [[1e6]]]), np.append(np.repeat([0, 1, 2], 40), 0))
    assert np.all(np.isfinite(trace.loss))


@pytest.mark.parametrize("family", ["gaussian", "binomial", "poisson"])
def test_slope_is_that_of_the_loss(family):
    """With curvature="previous" and one lam for all rows, the slope is the derivative of each row's loss in it."""
    X, y = stream_for(RAPRegressor(family=family))
    shift = 1e-5
    below, at, above = (
        progressive(RAPRegressor(family, 0.95, curvature="previous", tuner=Fixed(0.05 + h)), X, y)
        for h in (-shift, 0.0, shift)
    )
    rows = slice(30, None)
    np.testing.assert_allclose(at.slope[rows], (above.loss - below.loss)[rows] / (2 * shift), rtol=1e-5, atol=1e-7)


# --- nothing leaks, nothing depends on the cut ------------------------------------------------------------------------


@given(st.integers(0, 39), st.sampled_from(["gaussian", "poisson"]))
def test_a_row_changes_nothing_before_it(t, family):
    X, y = stream_for(RAPRegressor(family=family), n=40)
    before = progressive(RAPRegressor(family=family), X, y)
    X_changed, y_changed = X.copy(), y.copy()
    y_changed[t] += 3
    after = progressive(RAPRegressor(family=family), X, y_changed)
    assert before.prediction[: t + 1].tolist() == after.prediction[: t + 1].tolist()
    X_changed[t] *= -2
    after = progressive(RAPRegressor(family=family), X_changed, y_changed)
    for name in ("prediction", "loss", "baseline", "slope", *AFTER):
        assert same(before[name][:t], after[name][:t])


@pytest.mark.parametrize("batch_size", [1, 7])
@pytest.mark.parametrize("rows", [1, 10, 4096])
def test_where_the_stream_is_cut_does_not_matter(monkeypatch, batch_size, rows):
    monkeypatch.setattr(MODULE, "PIECE_ROWS", rows)
    X, y = stream_for(RAPRegressor(), n=100)
    one, other = (RAPRegressor(memory=0.95, batch_size=batch_size) for _ in range(2))
    trace = progressive(one, X, y)
    other.partial_fit(X, y)
    assert same_state(one, other)
    assert len(trace) == 100


def test_a_fitted_model_continues():
    X, y = stream_for(RAPRegressor())
    whole = progressive(RAPRegressor(), X, y)
    model = RAPRegressor()
    progressive(model, X[:25], y[:25])
    rest = progressive(model, X[25:], y[25:])
    assert rest.t.tolist() == list(range(25, 60))
    for name in ("prediction", "loss", "slope", *AFTER):
        assert same(whole[name][25:], rest[name])


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_a_bad_last_row_is_refused_whole():
    X, y = stream_for(RAPRegressor())
    X[-1, 2] = np.nan
    new = RAPRegressor()
    with pytest.raises(ValueError, match="NaN"):
        progressive(new, X, y)
    assert not hasattr(new, "learners_")
    fitted, twin = (RAPRegressor().fit(X[:30], y[:30]) for _ in range(2))
    with pytest.raises(ValueError, match="NaN"):
        progressive(fitted, X[30:], y[30:])
    assert same_state(fitted, twin)


@pytest.mark.parametrize("classes", [[0, 1], [0, 1, 2]])
def test_an_error_half_way_leaves_the_model_as_it_was(monkeypatch, classes):
    monkeypatch.setattr(MODULE, "PIECE_ROWS", 4)
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = labels(X, classes)
    model, twin = (RAPClassifier(tuner=Breaks()).fit(X[:15], y[:15]) for _ in range(2))
    with pytest.raises(RuntimeError, match="broke"):
        progressive(model, X[15:], y[15:])
    assert same_state(model, twin)


def test_other_models_are_refused():
    from sklearn.linear_model import Lasso

    with pytest.raises(TypeError, match="RAPRegressor or RAPClassifier"):
        progressive(Lasso(), [[1.0]], [1.0])


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="one class only"):
        progressive(RAPClassifier(), [[1.0], [2.0]], ["a", "a"])


# --- the baseline -----------------------------------------------------------------------------------------------------


def brute_force(family, y):
    """The loss of the mean of the rows before, written out."""
    losses = []
    for t, target in enumerate(y):
        before = y[:t]
        if isinstance(family, Binomial):
            p = (sum(before) + 0.5) / (t + 1)
            losses.append(-target * log(p) - (1 - target) * log(1 - p))
        elif isinstance(family, Gaussian):
            mean = sum(before) / t if t else 0.0
            losses.append((target - mean) ** 2 / 2)
        elif isinstance(family, Poisson):
            mean = (sum(before) + 0.5) / t if t else 1.0
            losses.append(mean - target * log(mean))
        else:
            mean = sum(before) / t if t else 1.0
            losses.append(target / mean + log(mean))
    return losses


@pytest.mark.parametrize("family", ["gaussian", "binomial", "poisson", "gamma"])
def test_baseline_is_the_running_mean(family):
    model = RAPRegressor(family={"gamma": Gamma()}.get(family, family), memory=0.9)
    X, y = stream_for(model)
    weight = np.random.default_rng(3).uniform(0, 2, size=len(y))
    trace = progressive(model, X, y, weight)
    np.testing.assert_allclose(trace.baseline, brute_force(model.learners_[0].settings["family"], y), rtol=1e-12)


@pytest.mark.parametrize("family", [Poisson(), Binomial()])
def test_baseline_is_finite_when_it_has_seen_only_zeros(family):
    y = np.append(np.zeros(50), 1.0)
    assert np.all(np.isfinite(family.loss(y, RunningMean(family).etas(y))))


def test_baseline_of_several_classes_counts_them():
    X = np.random.default_rng(0).normal(size=(50, 3))
    y = labels(X, ["a", "b", "c"])
    trace = progressive(RAPClassifier(), X, y)
    expected = [-log((np.sum(y[:t] == y[t]) + 0.5) / (t + 1.5)) for t in range(50)]
    np.testing.assert_allclose(trace.baseline, expected, rtol=1e-12)


def test_baseline_of_a_family_of_ones_own_is_the_mean_too():
    y = np.random.default_rng(0).poisson(3.0, size=60).astype(float)
    etas = RunningMean(OwnPoisson()).etas(y)
    means = np.array([y[:t].mean() for t in range(5, 60)])
    np.testing.assert_allclose(np.exp(etas[5:]), means, rtol=1e-6)


@pytest.mark.parametrize("family", [Gaussian(), Binomial(), Poisson(), Gamma(), OwnPoisson()])
def test_baseline_continues_where_it_was(family):
    y = np.random.default_rng(0).integers(0, 2, size=40) + (1.0 if isinstance(family, Gamma) else 0.0)
    pieces = RunningMean(family)
    together = np.concatenate([pieces.etas(y[:13]), pieces.etas(y[13:])])
    assert together.tolist() == RunningMean(family).etas(y).tolist()


@pytest.mark.parametrize(("family", "deviance"), [("poisson", mean_poisson_deviance), ("gamma", mean_gamma_deviance)])
def test_saved_is_a_ratio_of_deviances(family, deviance):
    model = RAPRegressor(family=Gamma() if family == "gamma" else family)
    X, y = stream_for(model)
    trace = progressive(model, X, y)
    naive = np.exp(RunningMean(model.learners_[0].settings["family"]).etas(y))
    expected = 1 - deviance(y[1:], trace.prediction[1:]) / deviance(y[1:], naive[1:])
    assert trace.saved == pytest.approx(expected, rel=1e-9)


def test_saved_by_a_classifier_is_a_ratio_of_log_losses():
    X = np.random.default_rng(0).normal(size=(60, 4))
    y = labels(X, ["a", "b"])
    trace = progressive(RAPClassifier(), X, y)
    share = np.array([(np.sum(y[:t] == "b") + 0.5) / (t + 1) for t in range(60)])
    assert trace.mean_baseline == pytest.approx(log_loss(y[1:] == "b", share[1:]))
    assert trace.saved == pytest.approx(1 - trace.loss[1:].mean() / trace.baseline[1:].mean())


# --- the table --------------------------------------------------------------------------------------------------------

TABLE = ["t", "y", "prediction", "loss", "slope", "lam", "lam_max", "n_active", "effective_size", "status", "baseline"]


def test_table_has_the_columns_of_the_trace():
    X, y = stream_for(RAPRegressor())
    trace = progressive(RAPRegressor(), X, y)
    frame = trace.to_pandas()
    assert list(frame) == TABLE == list(trace.columns)
    for name in TABLE:
        assert same(frame[name].to_numpy(), trace[name]) or frame[name].tolist() == trace[name].tolist()
    assert trace.to_arrow().column_names == TABLE
    assert len(trace) == len(frame) == 60


def test_table_of_coefficients_by_name():
    X, y = stream_for(RAPRegressor())
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    trace = progressive(RAPRegressor(), frame, y, coef=True)
    assert trace.feature_names == ("a", "b", "c", "d")
    table = trace.to_pandas()
    assert list(table)[len(TABLE) :] == ["intercept", "coef[a]", "coef[b]", "coef[c]", "coef[d]"]
    np.testing.assert_array_equal(table[["coef[a]", "coef[b]", "coef[c]", "coef[d]"]].to_numpy(), trace.coef)
    assert progressive(RAPRegressor(), pl.DataFrame(frame.to_dict("list")), y).feature_names == ("a", "b", "c", "d")


def test_table_of_several_classes():
    X = np.random.default_rng(0).normal(size=(50, 2))
    y = labels(np.column_stack([X, X[:, 0]]), ["a", "b", "c"])
    trace = progressive(RAPClassifier(), X, y, coef=True)
    table = trace.to_pandas()
    for name in ("slope", "lam", "lam_max", "n_active", "status"):
        assert trace[name].shape == (50, 3)
        assert table[f"{name}[b]"].tolist() == trace[name][:, 1].tolist() or name in ("lam", "slope")
    np.testing.assert_array_equal(table["lam[c]"], trace.lam[:, 2])
    np.testing.assert_array_equal(table["coef[x1][a]"], trace.coef[:, 0, 1])
    assert table["y"].tolist() == y.tolist()


def test_unknown_column_names_the_known_ones():
    trace = progressive(RAPRegressor(), [[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(KeyError, match="effective_size"):
        trace["alpha"]
    with pytest.raises(KeyError, match="effective_size"):
        trace["coef"]


def test_missing_pandas_names_the_extra(monkeypatch):
    trace = progressive(RAPRegressor(), [[0.0], [1.0]], [0.0, 1.0])
    trace.to_arrow()  # pyarrow looks for pandas once, and trips over a None in its place
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"streamlasso\[river\]"):
        trace.to_pandas()
    assert trace.to_arrow().num_rows == 2


def test_repr_says_how_it_went():
    stream = simulate(0)
    trace = progressive(RAPRegressor(memory=0.95), stream.X, stream.y)
    words = repr(trace)
    assert "300 rows and 20 features" in words
    assert f"{trace.loss[1:].mean():.3g}" in words
    assert f"{trace.baseline[1:].mean():.3g}" in words
    assert f"{100 * (1 - trace.loss[1:].mean() / trace.baseline[1:].mean()):.0f} % lower" in words
    assert f"active {trace.selected.n_active[-1]} of 20" in words


def test_html_for_notebooks_escapes_names_and_shows_the_figure():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["<script>alert(1)</script>", "b"])
    y = np.array(["<i>x</i>", "y", "z"])[rng.integers(3, size=60)]
    for trace in (progressive(RAPClassifier(), X, y), progressive(RAPRegressor(), X, X["b"] + rng.normal(size=60))):
        html = trace._repr_html_()
        assert "<script" not in html
        assert "<i>x" not in html
        assert f"<td>{trace.loss_name}</td><td>{trace.mean_loss:.3g} (" in html
        assert f"<td>loss of the running mean</td><td>{trace.mean_baseline:.3g}</td>" in html
        picture = base64.b64decode(html.split("base64,")[1].split('"')[0])
        assert picture.startswith(b"\x89PNG")


def test_spread_is_the_standard_deviation_within_the_memorys_reach():
    X, y = stream_for(RAPRegressor(), n=6000)
    still, trend, jumps = np.ones(6000), np.arange(6000.0), np.repeat([0.0, 1e3, -1e3], 2000)
    asleep = np.where(np.arange(6000) < 5000, 0.0, X[:, 0])
    X = np.column_stack([X[:, 0], still, 1e6 + X[:, 1], trend, jumps + 1e-3 * X[:, 2], asleep])
    spread = progressive(RAPRegressor(memory=0.99), X, y).spread
    within = np.arange(100).std()
    np.testing.assert_allclose(spread, [1.0, 0.0, 1.0, within, 1e-3, 1.0], rtol=0.1)


def test_spread_of_a_memory_that_never_ends_is_the_standard_deviation():
    X, y = stream_for(RAPRegressor())
    np.testing.assert_allclose(progressive(RAPRegressor(memory=1.0), X, y).spread, X.std(axis=0), rtol=1e-12)


# --- what entered and left --------------------------------------------------------------------------------------------


def with_coef(path):
    """A trace whose coefficients are these."""
    path = np.asarray(path, dtype=float)
    trace = progressive(RAPRegressor(), np.random.default_rng(0).normal(size=path.shape), np.arange(len(path)))
    return replace(trace, selected=replace(trace.selected, coef=path), spread=np.full(path.shape[1], 2.0))


def test_changes_by_hand():
    #        0  1  2  3  4  5  6  7  8  9
    path = [[0, 1, 1, 1, 0, 1, 0, 0, 0, 1]]
    entered, left = with_coef(np.transpose(path)).changes(least=3)
    assert (entered.t, entered.feature, entered.entered, entered.rows) == (1, "x0", True, 5)
    assert (left.t, left.feature, left.entered, left.rows) == (6, "x0", False, 5)
    assert entered.effect == pytest.approx(2.0 * 4 / 5)


def state_after(active, least):
    """In or out, row by row, known once it has lasted; the change dates from where that run began."""
    state = [active[0]] * len(active)
    for start in range(1, len(active)):
        run = active[start : start + least]
        if len(run) == least and all(value != state[start] for value in run) and active[start - 1] != active[start]:
            state[start:] = [active[start]] * (len(active) - start)
    return state


@given(st.lists(st.booleans(), min_size=2, max_size=40), st.integers(1, 5))
def test_changes_are_those_that_last(active, least):
    state = state_after(active, least)
    expected = [(t, state[t]) for t in range(1, len(state)) if state[t] != state[t - 1]]
    found = with_coef(np.array(active, dtype=float)[:, None]).changes(least)
    assert [(change.t, change.entered) for change in found] == expected


# --- the selected model -----------------------------------------------------------------------------------------------


def test_the_figure_of_the_default_shows_who_was_active_when():
    """The average of all models has every feature; what is drawn and printed is sparse, and changes with the truth."""
    stream = simulate(0, densities=(0.2, 0.8, 0.2))
    model = RAPRegressor()
    trace = progressive(model, stream.X, stream.y)
    assert trace.n_active[-1] == 20
    assert f"active {len(model.selected_.support)} of 20" in repr(trace)
    assert len(model.selected_.support) < 20
    summary = trace.summary()
    np.testing.assert_array_equal(summary.n_active, trace.selected.n_active)
    np.testing.assert_array_equal(summary.lam, trace.lam)
    np.testing.assert_array_equal(summary.coef, trace.selected.coef)
    np.testing.assert_array_equal(summary.lam_range[:, 0, 0], trace.lam)
    (image,) = (image for axes in trace.plot().axes for image in axes.images)
    blank = np.all(image.get_array() == image.get_array()[0, 0], axis=2)
    np.testing.assert_array_equal(blank, trace.selected.coef.T == 0, err_msg="the first row has an empty model")
    assert len(set(trace.selected.n_active.tolist())) > 5
    assert any(200 <= change.t < 260 for change in trace.changes())


def test_one_model_is_its_own_selected_model():
    X, y = stream_for(RAPRegressor())
    trace = progressive(RAPRegressor(memory=0.95, tuner="logrms"), X, y, coef=True)
    assert trace.selected.is_one_model
    for name in ("n_active", "coef"):
        np.testing.assert_array_equal(getattr(trace.selected, name), getattr(trace, name))


@pytest.mark.parametrize(("n_rows", "batch_size"), [(1999, 1), (2000, 1), (5003, 1), (5003, 7), (60, 7), (1, 1)])
def test_the_selected_model_of_a_long_stream_is_kept_now_and_then(n_rows, batch_size):
    X, y = stream_for(RAPRegressor(), n=n_rows, p=2)
    settings = dict(memory=0.9, tuner=LogRMS(), batch_size=batch_size)
    trace = progressive(RAPRegressor(**settings), X, y, coef=True)
    assert len(trace.selected.t) <= 2000
    assert trace.selected.t[-1] == n_rows - 1
    assert np.all(np.diff(trace.selected.t)[:-1] == trace.selected.size)
    np.testing.assert_array_equal(trace.selected.coef, trace.coef[trace.selected.t])
    summary = trace.summary()
    if batch_size == 1:
        assert set(summary.t) <= set(trace.selected.t)
        np.testing.assert_array_equal(summary.coef, trace.coef[summary.t])


def test_where_the_stream_is_cut_does_not_matter_to_the_selected_model(monkeypatch):
    X, y = stream_for(RAPRegressor(), n=100)
    whole = progressive(RAPRegressor(), X, y).selected
    monkeypatch.setattr(MODULE, "PIECE_ROWS", 3)
    pieces = progressive(RAPRegressor(), X, y).selected
    for name in ("t", "since", "coef"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(pieces, name))


# --- progress ---------------------------------------------------------------------------------------------------------


def test_progress_is_shown_when_asked_for(capsys):
    X, y = stream_for(RAPRegressor())
    progressive(RAPRegressor(), X, y, progress=True)
    shown = capsys.readouterr()
    assert "60/60" in shown.err
    assert not shown.out


@pytest.mark.parametrize("progress", [None, False])
def test_progress_is_silent_off_a_terminal(capsys, progress):
    X, y = stream_for(RAPRegressor())
    progressive(RAPRegressor(), X, y, progress=progress)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("patience", "shown"), [(-1.0, True), (1e9, False)])
def test_progress_waits_on_a_terminal(capsys, monkeypatch, patience, shown):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(MODULE, "PATIENCE", patience)
    X, y = stream_for(RAPRegressor())
    progressive(RAPRegressor(), X, y)
    assert ("60/60" in capsys.readouterr().err) is shown


class Refuses(PlainGaussian):
    """A family that learns, but cannot say what it predicts."""

    def mean(self, eta):
        raise ZeroDivisionError


def test_a_family_that_raises_after_the_last_row_leaves_a_new_model_unfitted():
    model = RAPRegressor(family=Refuses())
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ZeroDivisionError):
        progressive(model, X, X[:, 0])
    assert vars(model).keys() == vars(RAPRegressor()).keys()


def test_a_refused_response_leaves_a_new_model_unfitted():
    model = RAPRegressor()
    with pytest.raises(ValueError, match="NaN"):
        progressive(model, np.zeros((3, 2)), [1.0, np.nan, 2.0])
    assert vars(model).keys() == vars(RAPRegressor()).keys()


def test_read_only_arrays_are_as_good_as_any():
    X = np.random.default_rng(0).normal(size=(30, 3))
    y = X[:, 0] * 2
    expected = progressive(RAPRegressor(), X, y)
    X, y = X.copy(), y.copy()
    X.flags.writeable = y.flags.writeable = False
    np.testing.assert_array_equal(progressive(RAPRegressor(), X, y).prediction, expected.prediction)
