"""One observation, one mini-batch: what is predicted, noted and moved, and what is not (`core/lasso/learner.py`)."""

import numpy as np
import pytest

from oracles.replay import Stream, learner, problems, run, same_bits, violations
from oracles.weights import weighted_mean, weights
from streamlasso import families, memories, tuners
from streamlasso.core.base.record import ADVICE, RECORD, STATUS
from streamlasso.families import Gaussian, Poisson
from streamlasso.memories import Forgetting, Window
from streamlasso.penalties import L1, ElasticNet, Ridge
from streamlasso.tuners import SGD, Fixed, LogRMS

BASE = dict(memory=Forgetting(0.95), penalty=L1())


def test_names_of_what_is_noted():
    assert RECORD == ("eta", "loss", "slope", "lam", "lam_max", "n_active", "effective_size", "status")
    assert STATUS == ("ok", "singular", "unfinished", "waiting")
    assert all(advice.endswith(".") for advice in ADVICE.values())


@pytest.mark.parametrize("tuner", tuners.EXAMPLES, ids=str)
@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_the_prediction_is_that_of_the_state_before_the_row(family, tuner, make_stream):
    stream = make_stream(family, n=30)
    result = run(learner(stream, family=family, tuner=tuner, **BASE), stream)
    before = np.vstack([np.zeros(5), result.coef[:-1]])
    eta = before[:, 0] + np.sum(before[:, 1:] * stream.X, axis=1)
    assert result.eta == pytest.approx(eta, rel=1e-12, abs=1e-12)
    assert result.loss == pytest.approx(family.loss(stream.y, eta), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_nothing_of_the_row_leaks_into_its_prediction(family, make_stream):
    stream = make_stream(family, n=30)
    other = Stream(stream.X, stream.y.copy())
    other.y[-1] = 1.0 - other.y[-1] if type(family) is families.Binomial else other.y[-1] + 3.0
    one, two = (run(learner(s, family=family, tuner=LogRMS(), **BASE), s) for s in (stream, other))
    assert one.eta[-1] == two.eta[-1]
    assert one.loss[-1] != two.loss[-1]


def test_what_is_noted_is_what_the_learner_says(make_stream):
    stream = make_stream(Gaussian(), n=30)
    model = learner(stream, family=Gaussian(), tuner=LogRMS(), **BASE)
    result = run(model, stream)
    assert model.lam == result.lam[-1]
    assert model.lam_max == result.lam_max[-1]
    assert model.effective_size == result.effective_size[-1]
    assert model.status == result.status[-1]
    assert model.n_seen == 30
    assert model.n_features == 4
    assert model.intercept == result.b0(-1)
    assert (model.coef == result.b(-1)).all()
    assert result.n_active[-1] == np.count_nonzero(model.coef)
    assert model.decision(stream.X) == pytest.approx(model.intercept + stream.X @ model.coef, rel=1e-12)


def test_noting_changes_nothing(make_stream):
    stream = make_stream(Poisson(), n=30)
    noted, silent = (learner(stream, family=Poisson(), tuner=LogRMS(), **BASE) for _ in range(2))
    run(noted, stream)
    silent.learn(stream.X, stream.y)
    assert same_bits(noted.state(), silent.state())


@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
@pytest.mark.parametrize("memory", memories.EXAMPLES, ids=str)
def test_one_call_or_many_give_the_same_bits(family, memory, make_stream):
    stream = make_stream(family, n=30, weights=True)
    whole, rows = (learner(stream, family=family, tuner=LogRMS(), memory=memory, penalty=L1()) for _ in range(2))
    run(whole, stream)
    for t in range(30):
        run(rows, stream.part(t, t + 1))
    assert same_bits(whole.state(), rows.state())


def test_the_input_is_left_alone(make_stream):
    stream = make_stream(Gaussian(), weights=True)
    X, y, a = stream.X.copy(), stream.y.copy(), stream.a.copy()
    run(learner(stream, family=Gaussian(), tuner=LogRMS(), **BASE), stream)
    assert (X == stream.X).all() and (y == stream.y).all() and (a == stream.a).all()


# --- weights ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", memories.EXAMPLES, ids=str)
@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_a_row_of_weight_zero_changes_no_bit(family, memory, make_stream):
    stream = make_stream(family, n=30, weights=True)
    model = learner(stream, family=family, tuner=LogRMS(), memory=memory, penalty=L1())
    run(model, stream.part(0, 20))
    before = model.state()
    run(model, Stream(stream.X[20:], stream.y[20:], np.zeros(10)))
    assert same_bits(before, model.state())


@pytest.mark.parametrize("memory", memories.EXAMPLES, ids=str)
def test_rows_of_weight_zero_might_as_well_not_be_there(memory, make_stream):
    stream = make_stream(Gaussian(), n=40, weights=True)
    stream.a[::3] = 0.0
    there = stream.a > 0
    fewer = Stream(stream.X[there], stream.y[there], stream.a[there])
    full, short = (learner(stream, family=Gaussian(), tuner=LogRMS(), memory=memory, penalty=L1()) for _ in range(2))
    run(full, stream)
    run(short, fewer)
    assert same_bits(full.state(), short.state())


@pytest.mark.parametrize("memory", memories.EXAMPLES, ids=str)
@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_omega_is_the_sum_of_the_weights(family, memory, make_stream):
    stream = make_stream(family, n=40, weights=True)
    result = run(learner(stream, family=family, tuner=LogRMS(), memory=memory, penalty=L1()), stream)
    expected = [weights(memory, stream.a[: t + 1]).sum() for t in range(40)]
    assert result.effective_size == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("memory", memories.EXAMPLES, ids=str)
def test_weighted_moments_by_brute_force(memory, make_stream):
    """With one feature, everything the statistics hold can be read off: means, variance and covariance."""
    stream = make_stream(Gaussian(), n=50, p=1, weights=True)
    nothing = run(learner(stream, family=Gaussian(), tuner=Fixed(1e6), memory=memory, penalty=L1()), stream)
    full = run(learner(stream, family=Gaussian(), tuner=Fixed(0.0), memory=memory, penalty=L1()), stream)
    x = stream.X[:, 0]
    for t in range(3, 50):
        w = weights(memory, stream.a[: t + 1])
        x_mean, y_mean = weighted_mean(x[: t + 1], w), weighted_mean(stream.y[: t + 1], w)
        variance = weighted_mean((x[: t + 1] - x_mean) ** 2, w)
        covariance = weighted_mean((x[: t + 1] - x_mean) * (stream.y[: t + 1] - y_mean), w)
        assert nothing.b0(t) == pytest.approx(y_mean, rel=1e-11)
        assert nothing.lam_max[t] == pytest.approx(abs(covariance) / np.sqrt(variance), rel=1e-10)
        assert full.b(t)[0] == pytest.approx(covariance / variance, rel=1e-10)
        assert full.b0(t) == pytest.approx(y_mean - x_mean * covariance / variance, rel=1e-10)


@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_weight_k_is_k_rows_where_nothing_fades(family, make_stream):
    stream = make_stream(family, n=30)
    stream.a = np.random.default_rng(0).integers(1, 4, size=30).astype(float)
    times = stream.a.astype(int)
    repeated = Stream(np.repeat(stream.X, times, axis=0), np.repeat(stream.y, times))
    setting = dict(family=family, tuner=Fixed(0.1), memory=Forgetting(1.0), penalty=L1(), history=200)
    weighted, plain = run(learner(stream, **setting), stream), run(learner(stream, **setting), repeated)
    assert weighted.coef[-1] == pytest.approx(plain.coef[-1], rel=1e-7, abs=1e-8)
    assert weighted.effective_size[-1] == pytest.approx(plain.effective_size[-1])


def test_weight_k_ages_by_one_row_where_things_fade(make_stream):
    """w_i = a_i r^(t - i): t counts rows, not weight."""
    stream = make_stream(Gaussian(), n=30)
    stream.a = np.random.default_rng(0).integers(1, 4, size=30).astype(float)
    setting = dict(family=Gaussian(), memory=Forgetting(0.8), penalty=L1())
    result = run(learner(stream, tuner=Fixed(0.1), **setting), stream)
    assert result.effective_size[-1] == pytest.approx(sum(a * 0.8 ** (29 - i) for i, a in enumerate(stream.a)))
    for t, _, violation in violations(stream, result, history=64, **setting):
        assert violation <= 1e-9, f"row {t}"


@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_only_ratios_of_weights_matter(family, make_stream):
    """L is divided by omega; a power of two changes no rounding either."""
    stream = make_stream(family, n=30, weights=True)
    heavier = Stream(stream.X, stream.y, 2.0**20 * stream.a)
    setting = dict(family=family, tuner=Fixed(0.1), **BASE)
    one, two = run(learner(stream, **setting), stream), run(learner(stream, **setting), heavier)
    rows = [s == "ok" for s in one.status]  # a model of alike responses is shrunk by omega
    assert one.coef[rows] == pytest.approx(two.coef[rows], rel=1e-6, abs=1e-7)


# --- mini-batches -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("curvature", ["updated", "previous"])
@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_a_mini_batch_is_predicted_and_differentiated_from_the_state_before_it(family, curvature, make_stream):
    """`updated`: with a Hessian that has the whole mini-batch in it."""
    stream = make_stream(family, n=40, seed=1)
    setting = dict(family=family, **BASE)
    model = learner(stream, tuner=SGD(1e-4), batch_size=5, curvature=curvature, **setting)
    result, sequence = run(model, stream), list(problems(stream, **setting))
    for start in range(15, 40, 5):
        b0, b, lam = result.b0(start - 1), result.b(start - 1), result.lam[start - 1]
        rows = range(start, start + 5)
        assert result.eta[start : start + 5] == pytest.approx(
            b0 + stream.X[start : start + 5] @ b, rel=1e-12, abs=1e-12
        )
        hessian_of = sequence[start + 4] if curvature == "updated" else None
        before = sequence[start - 1]
        expected = [before.slope(b0, b, lam, stream.X[t], stream.y[t], hessian_of=hessian_of) for t in rows]
        assert result.slope[start : start + 5] == pytest.approx(expected, rel=1e-6, abs=1e-9)
        moved = lam - 1e-4 * result.slope[start : start + 5].sum()
        assert result.lam[start + 4] == pytest.approx(min(moved, result.lam_max[start + 4]), rel=1e-12)


def test_a_mini_batch_weighs_its_rows(make_stream):
    stream = make_stream(Gaussian(), n=40, weights=True)
    result = run(learner(stream, family=Gaussian(), tuner=SGD(1e-4), batch_size=5, **BASE), stream)
    for start in range(15, 40, 5):
        moved = result.lam[start - 1] - 1e-4 * stream.a[start : start + 5] @ result.slope[start : start + 5]
        assert result.lam[start + 4] == pytest.approx(min(moved, result.lam_max[start + 4]), rel=1e-12)


@pytest.mark.parametrize("penalty", [L1(), ElasticNet(0.5), Ridge()], ids=str)
@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_the_solution_after_a_mini_batch_is_exact(family, penalty, make_stream):
    stream = make_stream(family, n=43, weights=True)
    setting = dict(family=family, memory=Forgetting(0.95), penalty=penalty)
    result = run(learner(stream, tuner=LogRMS(), batch_size=5, **setting), stream)
    for t, _, violation in violations(stream, result, history=64, batch_size=5, **setting):
        assert violation <= (1e-9 if type(family) is Gaussian else 1e-7), f"row {t}"


def test_one_batch_of_many_rows_is_one_step(make_stream):
    stream = make_stream(Gaussian(), n=40)
    setting = dict(family=Gaussian(), tuner=Fixed(0.1), memory=Window(25), penalty=L1())
    once, each = (run(learner(stream, batch_size=size, **setting), stream) for size in (40, 1))
    assert (once.eta == 0).all()
    assert once.coef[-1] == pytest.approx(each.coef[-1], rel=1e-10)
