"""Changes: the statistics against their definitions, what is found and named, states to the bit, and quiet streams."""

import numpy as np
import pytest

from oracles.changes import (
    POWERS,
    SHARE,
    SHIFTS,
    evidence,
    likeliest_start,
    moved_posterior,
    rank_e_values,
    shift_e_values,
)
from streamlasso import RAPClassifier, RAPRegressor, families
from streamlasso.core.monitor.attribution import unpacked_change
from streamlasso.core.monitor.detector import Changes
from streamlasso.core.monitor.diagnosis import Diagnosis
from streamlasso.families import Gaussian
from streamlasso.simulate import simulate
from streamlasso.tuners import LogRMS

#: Columns of the notes about a row.
RESPONSE, OFFSET, LOSS, SCORE, SURPRISE, N_NOTES = range(6)
#: Rows of which no error counts, and errors before their deviation is known.
FIRST_ROWS, UNKNOWN = 10, 3


def watched(n, p=2, seed=0, alarms=False):
    """A detector that has seen rows of noise, with the true model; and the rows."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, p)), rng.normal(size=n)
    changes = Changes(p, Gaussian(), 1.0)
    if not alarms:
        changes.limit = np.inf
    changes.watch(X, y, np.zeros(n), 0.5 * y**2, np.zeros((n, p + 1)))
    return changes, X, y


def changing(n=700, at=500, p=6, seed=1, size=2.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    moved = np.where(np.arange(n) < at, 0.0, size)
    return X, X[:, 0] + moved * X[:, 3] + rng.normal(size=n)


def test_evidence_that_errors_grew_is_a_sum_of_products_of_e_values():
    changes, _, y = watched(110)
    errors = np.abs(y)[FIRST_ROWS:]
    expected = [evidence(rank_e_values(errors, power), SHARE / len(POWERS)) for power in POWERS]
    np.testing.assert_allclose(changes.evidence_so_far()[0], expected, rtol=1e-9)


def test_evidence_that_errors_go_with_a_feature_is_a_sum_of_products_of_e_values():
    changes, X, _ = watched(110)
    scores = changes.rows_kept()[1][FIRST_ROWS:110, SCORE]
    before = [X[:t] for t in range(FIRST_ROWS, 110)]
    for j in range(3):
        z = np.ones(110 - FIRST_ROWS)
        if j:
            z = np.array([(X[t + FIRST_ROWS] - seen.mean(axis=0)) / seen.std(axis=0) for t, seen in enumerate(before)])
            z = np.clip(z[:, j - 1], -3, 3)
        weights = np.minimum(z**2, 1)
        expected = [evidence(shift_e_values(scores, z, shift, UNKNOWN), weights) for shift in SHIFTS]
        np.testing.assert_allclose(changes.evidence_so_far()[1][j], expected, rtol=1e-6)


NOISES = {
    "normal": lambda rng, X: rng.normal(size=len(X)),
    "Cauchy": lambda rng, X: rng.standard_cauchy(size=len(X)),
    "that depends on a feature": lambda rng, X: np.exp(X[:, 0]) * rng.normal(size=len(X)),
    "skewed": lambda rng, X: rng.exponential(size=len(X)) - 1.0,
    "with equal errors": lambda rng, X: rng.integers(-2, 3, size=len(X)).astype(float),
    "seldom": lambda rng, X: (rng.random(len(X)) < 0.02) * rng.normal(size=len(X)),
}


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("rate", [5.0, 50.0])
def test_false_alarms_are_no_more_than_is_asked_for_whatever_the_noise(noise, rate):
    """Alarms of exchangeable rows come every 10,000 / rate rows or later; thrice the deviation of their number."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(40000, 3))
    y = NOISES[noise](rng, X)
    alarms = Changes(3, Gaussian(), rate).watch(X, y, np.zeros(40000), 0.5 * y**2, np.zeros((40000, 4)))
    assert len(alarms) <= 4 * rate + 3 * np.sqrt(4 * rate)


def test_features_that_stay_the_same_are_no_evidence():
    rng = np.random.default_rng(9)
    X = np.where(np.arange(4) < 1, rng.normal(size=(30000, 4)), 1.0)
    changes = Changes(4, Gaussian(), 1.0)
    changes.limit = np.inf
    y = rng.normal(size=30000)
    changes.watch(X, y, np.zeros(30000), 0.5 * y**2, np.zeros((30000, 5)))
    assert np.all(changes.evidence_so_far()[1][2:] == 0)


# --- what is found ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"tuner": LogRMS()}, {"memory": 200, "tuner": LogRMS()}])
def test_a_coefficient_that_moves_is_found_and_named(settings):
    X, y = changing()
    (change,) = RAPRegressor(**settings, false_alarms=1.0).fit(X, y).changes_
    assert abs(change.row - 500) <= 5 and change.detected < 540
    assert list(change.features) == ["x3"]
    before, after = change.features["x3"]
    assert abs(before) < 0.3 and after == pytest.approx(2.0, abs=0.4)
    assert sum(change.probability.values()) == pytest.approx(1.0) and change.loss > 0
    assert max(change.probability, key=change.probability.get) == change.row


@pytest.mark.parametrize("family", ["poisson", "gamma"])
def test_so_it_is_in_other_families(family):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(900, 4))
    eta = 0.5 + 0.3 * X[:, 0] + np.where(np.arange(900) < 600, -0.4, 0.4) * X[:, 2]
    y = rng.poisson(np.exp(eta)) if family == "poisson" else rng.gamma(4.0, np.exp(eta) / 4.0) + 1e-9
    changes = [change for change in RAPRegressor(family).fit(X, y).changes_ if change.detected >= 600]
    assert changes and "x2" in changes[0].features and changes[0].detected < 680


def test_classes_that_change_are_found_and_mirrored_models_say_the_opposite():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(900, 3))
    y = (np.where(np.arange(900) < 600, 2.0, -2.0) * X[:, 1] + rng.logistic(size=900) > 0).astype(int)
    model = RAPClassifier().fit(X, y)
    (change,) = [change for change in model.changes_ if change.detected >= 600]
    before, after = change.features["x1"]
    assert before > 0 > after and change.detected < 640
    other = model.learners_[0].mirrored().changes.list()[-1].features[1]
    assert other == (-before, -after)


def test_noise_that_doubles_is_found_and_blamed_on_no_feature():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(900, 5))
    y = X[:, 0] + np.where(np.arange(900) < 600, 1.0, 2.0) * rng.normal(size=900)
    (change,) = RAPRegressor().fit(X, y).changes_
    assert 600 <= change.detected < 640 and not change.features


def test_a_stream_that_does_not_change_is_quiet_also_with_outliers():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(3000, 5))
    y = X[:, 0] + rng.standard_t(3, size=3000)
    y[[700, 1500, 2500]] += 1e6
    assert RAPRegressor().fit(X, y).changes_ == []
    assert not hasattr(RAPRegressor(false_alarms=0.0).fit(X, y), "changes_")


@pytest.mark.parametrize("response", [lambda X: X[:, 0], lambda X: X @ [1.0, 2.0, 0.0]])
def test_a_stream_without_noise_is_quiet(response):
    X = np.random.default_rng(10).normal(size=(4000, 3))
    assert RAPRegressor().fit(X, response(X)).changes_ == []


def test_what_a_linear_model_misses_raises_no_more_alarms_than_promised():
    """One per 10,000 rows: of four that are expected, more than nine would come in one run of a hundred."""
    alarms = 0
    for seed in range(10, 20):
        X = np.random.default_rng(seed).normal(size=(4000, 3))
        alarms += len(RAPRegressor().fit(X, np.sin(3 * X[:, 0])).changes_)
    assert alarms <= 9


def test_two_values_without_noise_are_quiet():
    """At most 1 alarm per 10,000 rows and thrice the deviation of their number; 17 when errors counted from 1e-4 on."""
    found = 0
    for seed in range(6):
        X = (np.random.default_rng(seed).random((1500, 4)) < 0.3).astype(float)
        found += len(RAPRegressor().fit(X, X[:, 0]).changes_)
    assert found <= 3


def test_rare_classes_and_levels_are_quiet():
    rng = np.random.default_rng(11)
    X = rng.normal(size=(4000, 3))
    assert RAPClassifier().fit(X, (X[:, 0] + rng.logistic(size=4000) > 5).astype(int)).changes_ == []
    level = rng.choice(20, size=4000, p=(share := 1 / np.arange(1, 21) ** 1.3) / share.sum())
    y = rng.normal(size=20)[level] + np.exp(rng.normal(size=20))[level] * rng.normal(size=4000)
    assert RAPRegressor().fit((level[:, None] == np.arange(20)).astype(float), y).changes_ == []


def test_most_coefficients_that_move_far_are_named():
    """F against moves of a noise deviation or more; least squares on as many rows of both sides has .80."""
    scores = []
    for seed in range(24):
        stream = simulate(seed)
        truth = set(np.flatnonzero(np.abs(stream.beta[100] - stream.beta[99]) >= 1.0))
        found = [change for change in RAPRegressor().fit(stream.X, stream.y).changes_ if change.detected >= 100]
        named = {int(name[1:]) for name in found[0].features if name != "intercept"}
        scores.append(2 * len(named & truth) / (len(named) + len(truth)))
    assert np.mean(scores) > 0.8


def kept_rows(n=100, at=40, p=4, seed=0):
    """Rows as a detector keeps them, one coefficient of which moves, one becomes 0 and two stay; the model before."""
    rng = np.random.default_rng(seed)
    X, before = rng.normal(size=(n, p)) * np.arange(1, p + 1), np.array([0.5, 1.0, 0.5, 0.0, -0.3])
    after = before + np.array([0.0, 0.0, 1.0, 0.0, 0.3])
    y = np.where(np.arange(n) < at, before[0] + X @ before[1:], after[0] + X @ after[1:]) + rng.normal(size=n)
    notes = np.zeros((n, N_NOTES))
    notes[:, RESPONSE], notes[:, LOSS] = y, 0.5 * (y - before[0] - X @ before[1:]) ** 2
    notes[:, SCORE] = y - before[0] - X @ before[1:]
    return X, notes, np.tile(before, (8, 1)), before


@pytest.mark.parametrize("seed", range(4))
def test_moves_are_the_posterior_of_each_coefficient_given_the_others(seed):
    X, notes, past, before = kept_rows(seed=seed)
    mean = X.mean(axis=0)
    moves = Diagnosis(X, notes, past, 100, Gaussian(), mean)
    change = unpacked_change(moves.find(before, 60, 2, 0.0))
    assert abs(change.row - 40) < 4 and set(change.features) == {1, 3}
    rows = slice(moves.since, None)
    design = np.column_stack([np.ones(100), X - mean])[rows]
    missed = notes[rows, RESPONSE] - before[0] - X[rows] @ before[1:]
    move = np.asarray(moves.move) * moves.unit * moves.size
    for j in range(5):
        share = np.asarray(moves.share) / np.sum(moves.share)
        noise, tau = moves.noise * moves.size**2, moves.tau * moves.size**2
        expected = moved_posterior(
            design, missed, move, j, 0.0 if j == 0 else before[j], noise, tau, share, moves.since
        )
        np.testing.assert_allclose([moves.stays[j], move[j]], expected, rtol=0.01, atol=0.003)
    left = missed - design @ move
    assert np.mean(left**2) <= moves.noise * moves.size**2 <= 1.3 * np.mean(left**2)


@pytest.mark.parametrize("p", [60, 200])
@pytest.mark.parametrize("n_moved", [1, 3])
def test_few_coefficients_of_many_are_named(p, n_moved):
    """Also where there are more of them than rows, and all were a little wrong before."""
    scores = []
    for seed in range(10):
        rng = np.random.default_rng([seed, p, n_moved])
        X, before = rng.normal(size=(128, p)), np.zeros(p + 1)
        before[1:5] = rng.normal(size=4)
        moved = rng.choice(p, n_moved, replace=False)
        move = np.zeros(p + 1)
        move[1 + moved] = rng.choice([-1.0, 1.0], n_moved)
        y = X @ before[1:] + (np.arange(128) >= 50) * (X @ move[1:]) + rng.normal(size=128)
        known = before + 0.05 * rng.normal(size=p + 1)
        notes = np.zeros((128, N_NOTES))
        notes[:, RESPONSE], notes[:, SCORE] = y, y - known[0] - X @ known[1:]
        diagnosis = Diagnosis(X, notes, np.tile(known, (8, 1)), 128, Gaussian(), X.mean(axis=0))
        named = set(unpacked_change(diagnosis.find(known + 0.4 * move, 64, int(moved[0]) + 1, 0.0)).features)
        scores.append(2 * len(named & set(moved.tolist())) / (len(named) + n_moved))
    assert np.mean(scores) > 0.95


def test_the_row_of_a_change_is_as_likely_as_all_rows_are_with_it():
    X, notes, past, before = kept_rows()
    moves = Diagnosis(X, notes, past, 100, Gaussian(), X.mean(axis=0))
    change = unpacked_change(moves.find(before, 60, 2, 0.0))
    move = np.asarray(moves.move) * moves.unit * moves.size
    missed = notes[:, RESPONSE] - before[0] - X @ before[1:]
    left = missed - np.column_stack([np.ones(100), X - X.mean(axis=0)]) @ move
    expected = likeliest_start(missed[:61], left[:61], moves.noise * moves.size**2)
    np.testing.assert_allclose(
        list(change.probability.values()), [expected[row] for row in change.probability], rtol=0.02
    )
    assert change.row == np.argmax(expected)
    assert change.loss == pytest.approx(np.sum(notes[change.row :, LOSS] - notes[: change.row, LOSS].mean()))


@pytest.mark.parametrize("y", [np.ones(300), np.zeros(300), np.where(np.arange(300) < 200, 1.0, 1e6)])
def test_responses_without_noise_give_finite_numbers(y):
    model = RAPRegressor().fit(np.random.default_rng(0).normal(size=(300, 2)), y)
    assert all(np.isfinite(value).all() for value in model.learners_[0].changes.state().values())
    assert all(np.isfinite(change.loss) for change in model.changes_)


def test_a_step_without_noise_is_a_change():
    X = np.random.default_rng(0).normal(size=(400, 2))
    y = np.where(np.arange(400) < 300, 1.0, 3.0) + 0.1 * X[:, 0] + 0.01 * np.random.default_rng(1).normal(size=400)
    change = RAPRegressor().fit(X, y).changes_[0]
    assert change.row == 300 and "intercept" in change.features


# --- states -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [250, 505, 560, 650])
def test_a_copy_continues_to_the_bit(cut):
    X, y = changing()
    whole = RAPRegressor().fit(X, y)
    part = RAPRegressor.from_bytes(RAPRegressor().fit(X[:cut], y[:cut]).to_bytes()).partial_fit(X[cut:], y[cut:])
    assert part.to_bytes() == whole.to_bytes() and part.changes_ == whole.changes_


def test_features_that_come_later_were_zero():
    X, y = changing(300)
    learner = RAPRegressor().fit(X[:, :4], y).learners_[0]
    grown = learner.grown(6).changes.state()
    wide = RAPRegressor().fit(np.column_stack([X[:, :4], np.zeros((300, 2))]), y).learners_[0].changes.state()
    assert grown["moved"].shape == wide["moved"].shape and np.all(grown["moved"][5:] == 0)
    assert np.all(grown["usual"][5:] == 1)
    assert np.array_equal(grown["x"], wide["x"])


def test_the_last_32_changes_are_kept():
    rng = np.random.default_rng(7)
    changes = Changes(0, None, 1.0)
    for t in range(8000):
        changes.update(rng.normal() + 20.0 * (t // 200 % 2))
    found = changes.list()
    assert len(found) in (32, 33) and [change.detected for change in found] == sorted(c.detected for c in found)
    assert all(change.row % 200 in (199, 0, 1) for change in found)


@pytest.mark.parametrize("far", [10.0, 400.0, 1e4, 1e30])
@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_rows_that_a_model_misses_by_far_still_have_an_answer(family, far):
    """It is found while rows are learnt, so that an error here would end the learning."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    notes = np.zeros((40, N_NOTES))
    notes[:, RESPONSE] = np.maximum(family.sample(rng, X[:, 0]), 1e-9)
    notes[:, OFFSET] = far * np.where(np.arange(40) < 20, 1.0, -1.0)
    for feature in (-1, 1):
        for now in (np.zeros(4), np.array([0.0, 1.0, 0.0, far])):
            record = Diagnosis(X, notes, np.zeros((8, 4)), 40, family, np.zeros(3)).find(now, 30, feature, 0.0)
            assert np.all(np.isfinite(record))
            assert sum(unpacked_change(record).probability.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_features_and_responses_of_any_size_have_an_answer(size):
    X, notes, past, before = kept_rows()
    for scaled, scaled_notes in ((size * X, notes), (X, notes * [size, size, 1.0, 1.0, 1.0])):
        diagnosis = Diagnosis(scaled, scaled_notes, past, 100, Gaussian(), scaled.mean(axis=0))
        assert np.all(np.isfinite(diagnosis.find(before, 60, 2, 0.0)))


def test_classes_that_are_nearly_certain_are_learnt_through_a_change():
    stream = simulate(0, n_features=12, lengths=(150, 150), densities=(0.8, 0.2))
    eta = np.einsum("ij,ij->i", stream.X, stream.beta) / 3
    y = np.maximum(families.Binomial().sample(np.random.default_rng(1), eta), 1e-9)
    assert RAPRegressor("binomial").fit(stream.X, y).n_seen_ == 300


@pytest.mark.parametrize("row", [0, 300])
def test_an_alarm_outside_the_rows_that_are_kept_is_refused(row):
    """Compiled code reads the rows around an alarm."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    learner = RAPRegressor().fit(X, X[:, 0] + rng.normal(size=300)).learners_[0]
    state = learner.state()
    assert state["changes/rows"][0] == 300
    state["changes/rows"][4], state["changes/rows"][6] = row, 2
    with pytest.raises(ValueError, match="the alarm is not among the rows that are kept"):
        learner.restore(state)
