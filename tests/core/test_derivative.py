"""dC/dlam and db/dlam against differences of solutions, and against the formula of docs/method.md, section 3."""

import numpy as np
import pytest

from oracles.replay import Stream, folded_problems, learner, problems, run, violations
from streamlasso import families, memories, penalties
from streamlasso.families import Binomial, Gaussian, Poisson
from streamlasso.memories import Forgetting, Window
from streamlasso.penalties import L1, ElasticNet
from streamlasso.tuners import LARS, SGD, Fixed, LogRMS

LAM = 0.08
#: The step of the differences, a share of lam; with five points their error is of its fourth power.
STEP = 2e-3
STENCIL = {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}
FIRST = 12

every_part = [
    pytest.param(family, penalty, memory, id=f"{family}-{penalty}-{memory}")
    for family in families.EXAMPLES
    for penalty in penalties.EXAMPLES
    for memory in memories.EXAMPLES
]
every_way = pytest.mark.parametrize("fit_intercept,standardize", [(True, True), (True, False), (False, False)])


def at(lam, stream, **setting):
    """The same stream with lam held fixed; a history longer than the stream."""
    setting = dict(history=len(stream) + 1, curvature="previous", **setting)
    return run(learner(stream, tuner=Fixed(lam), **setting), stream)


def differences(of, stream, **setting):
    """d of(run)/dlam by five points."""
    return sum(c * of(at(LAM * (1 + k * STEP), stream, **setting)) for k, c in STENCIL.items()) / (LAM * STEP)


def same_active_set(stream, **setting):
    """Rows before which the active set is the same over the whole stencil, so that the path is smooth there."""
    signs = [np.sign(at(LAM * (1 + k * STEP), stream, **setting).coef[:, 1:]) for k in (-2, -1, 0, 1, 2)]
    smooth = np.all([(s == signs[2]).all(axis=1) for s in signs], axis=0)
    return np.append(False, smooth[:-1])


def smooth_rows(stream, middle, **setting):
    rows = same_active_set(stream, **setting) & (np.arange(len(stream)) >= FIRST)
    rows &= np.append(False, [s == "ok" for s in middle.status[:-1]])
    assert rows.sum() > len(stream) / 3, "hardly any row could be evaluated"
    return rows


@pytest.mark.parametrize("family,penalty,memory", every_part)
@every_way
def test_slope_is_the_derivative_of_the_prequential_loss(
    family, penalty, memory, fit_intercept, standardize, make_stream
):
    stream = make_stream(family, n=45, weights=True)
    setting = dict(family=family, penalty=penalty, memory=memory, fit_intercept=fit_intercept, standardize=standardize)
    middle = at(LAM, stream, **setting)
    expected = differences(lambda result: result.loss, stream, **setting)
    rows = smooth_rows(stream, middle, **setting) & ((middle.n_active > 0) | (np.abs(expected) > 0))
    assert middle.slope[rows] == pytest.approx(expected[rows], rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("family,penalty,memory", every_part)
def test_the_direction_behind_the_slope_is_db_dlam(family, penalty, memory, make_stream):
    """Rows that are unit vectors read db0/dlam and db/dlam off the slopes, one feature each."""
    stream = make_stream(family, n=30)
    setting = dict(family=family, penalty=penalty, memory=memory)
    expected = differences(lambda result: result.coef[-1], stream, **setting)
    middle = at(LAM, stream, **setting)
    state, eta0 = middle.learner.state(), middle.b0(-1)
    found = []
    for x in [np.zeros(4), *np.eye(4)]:
        eta = eta0 + x @ middle.b(-1)
        y = {"Gaussian": eta + 1.0, "Binomial": 1.0}.get(type(family).__name__, float(family.mean(eta)) + 1.0)
        middle.learner.restore(state)
        record = np.empty((1, 8))
        middle.learner.learn(x[None], np.array([y]), record=record)
        found.append(record[0, 2] / family.slope(y, eta))
    found = np.array(found) - np.append(0.0, np.full(4, found[0]))
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("gradient", ["exact", "diagonal"])
@pytest.mark.parametrize("curvature", ["updated", "previous"])
@pytest.mark.parametrize("family,penalty,memory", every_part)
def test_slope_against_the_formula(family, penalty, memory, curvature, gradient, make_stream):
    stream = make_stream(family, n=35, p=5, seed=1, weights=True)
    setting = dict(family=family, penalty=penalty, memory=memory)
    result = run(learner(stream, tuner=LogRMS(0.2), curvature=curvature, gradient=gradient, **setting), stream)
    assert_formula(stream, result, problems(stream, **setting), curvature, gradient)


def assert_formula(stream, result, sequence, curvature, gradient):
    before = None
    for t, problem in enumerate(sequence):
        if t >= FIRST and result.status[t - 1] == "ok":
            expected = before.slope(
                result.b0(t - 1),
                result.b(t - 1),
                result.lam[t - 1],
                stream.X[t],
                stream.y[t],
                hessian_of=problem if curvature == "updated" else None,
                diagonal=gradient == "diagonal",
            )
            assert result.slope[t] == pytest.approx(expected, rel=1e-6, abs=1e-9), f"row {t}"
        before = problem


@pytest.mark.parametrize("history", [1, 5])
@pytest.mark.parametrize("curvature", ["updated", "previous"])
@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_slope_with_folded_rows_against_the_formula(family, curvature, history, make_stream):
    stream = make_stream(family, n=35, seed=2)
    setting = dict(family=family, penalty=ElasticNet(0.7), memory=Forgetting(0.95))
    result = run(learner(stream, tuner=LogRMS(), curvature=curvature, history=history, **setting), stream)
    sequence = folded_problems(stream, lambda t: (result.b0(t), result.b(t)), history, **setting)
    assert_formula(stream, result, sequence, curvature, "exact")


@pytest.mark.parametrize("factor", [None, np.array([0.5, 2.0, 1.0, 1.0]), np.array([0.0, 1.0, 1.0, 1.0])], ids=str)
@pytest.mark.parametrize("curvature", ["updated", "previous"])
@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_an_empty_active_set_has_the_slope_of_the_first_feature_to_enter(family, curvature, factor, make_stream):
    """lam is far above lam_max, so nothing that is penalised is ever active."""
    stream = make_stream(family, n=35, seed=3, gain=0.2)
    setting = dict(family=family, penalty=L1(), memory=Forgetting(0.97), penalty_factor=factor)
    result = run(learner(stream, tuner=Fixed(50.0), curvature=curvature, **setting), stream)
    assert (result.coef[:, 2:] == 0).all()
    assert np.any(result.slope[FIRST:] != 0)
    assert_formula(stream, result, problems(stream, **setting), curvature, "exact")


@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_at_the_end_of_the_path_the_slope_is_one_sided(family, make_stream):
    """At lam = lam_max nothing is active; as lam falls, the first feature enters with the slope that is reported."""
    stream = make_stream(family, n=30, seed=4)
    setting = dict(family=family, penalty=L1(), memory=Forgetting(1.0), history=64)
    short = stream.part(0, 29)
    top = run(learner(short, tuner=Fixed(1.0), **setting), short).lam_max[-1]

    def next_loss(lam):
        return run(learner(stream, tuner=Fixed(lam), curvature="previous", **setting), stream)

    h = 1e-4 * top
    below, deeper, end = next_loss(top - h), next_loss(top - 2 * h), next_loss(top * (1 + 1e-12))
    assert (below.b(28) != 0).sum() == (deeper.b(28) != 0).sum() == 1
    one_sided = (3 * end.loss[-1] - 4 * below.loss[-1] + deeper.loss[-1]) / (2 * h)
    assert end.n_active[28] == 0
    assert end.slope[-1] == pytest.approx(one_sided, rel=1e-4)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("family", [Gaussian(), Binomial(), Poisson()], ids=str)
def test_at_lam_zero_the_signs_are_those_of_the_coefficients(family, seed, make_stream):
    """Coefficients cross zero freely when lam is 0; s = sign(b) all the same."""
    stream = make_stream(family, n=60, p=3, seed=seed, gain=0.1)
    setting = dict(family=family, penalty=L1(), memory=Forgetting(0.95))
    result = run(learner(stream, tuner=Fixed(0.0), **setting), stream)
    assert np.diff(np.sign(result.coef[FIRST:, 1:]), axis=0).any(), "no coefficient changed its sign"
    assert_formula(stream, result, problems(stream, **setting), "updated", "exact")


def test_ridge_needs_no_sign(make_stream):
    stream = make_stream(Gaussian(), n=40)
    setting = dict(family=Gaussian(), penalty=penalties.Ridge(), memory=Window(20))
    result = run(learner(stream, tuner=Fixed(0.3), **setting), stream)
    assert (result.coef[5:, 1:] != 0).all()


@pytest.mark.parametrize("curvature", ["updated", "previous"])
@pytest.mark.parametrize("penalty", [L1(), ElasticNet(0.5)], ids=str)
def test_lars_takes_the_direction_at_unit_length(penalty, curvature, make_stream):
    stream = make_stream(Gaussian(), n=40)
    setting = dict(family=Gaussian(), penalty=penalty, memory=Forgetting(0.98))
    result = run(learner(stream, tuner=LARS(1e-3), curvature=curvature, **setting), stream)
    before = None
    for t, problem in enumerate(problems(stream, **setting)):
        if t >= FIRST:
            rows = problem if curvature == "updated" else None
            length = before.direction(result.b0(t - 1), result.b(t - 1), result.lam[t - 1], hessian_of=rows)[2]
            assert result.lam[t - 1] - result.lam[t] == pytest.approx(
                1e-3 * result.slope[t] / length, rel=1e-8, abs=1e-14
            )
        before = problem


@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_a_row_of_weight_a_moves_lam_a_times_as_far(family, make_stream):
    """Loss and slope are noted for the row itself; as the weight goes to 0, so does all that the row does."""
    stream = make_stream(family, n=40, weights=True)
    setting = dict(family=family, penalty=L1(), memory=Forgetting(0.98))
    result = run(learner(stream, tuner=SGD(1e-4), **setting), stream)
    assert result.loss == pytest.approx(family.loss(stream.y, result.eta), rel=1e-12)
    moved = -np.diff(result.lam)[FIRST:]
    inside = (result.lam < result.lam_max)[1:][FIRST:]
    expected = 1e-4 * (stream.a * result.slope)[1:][FIRST:]
    assert moved[inside] == pytest.approx(expected[inside], rel=1e-6, abs=1e-13)


@pytest.mark.parametrize("curvature", ["updated", "previous"])
@pytest.mark.parametrize("seed", range(5))
def test_the_derivative_step_does_not_touch_the_solution(seed, curvature):
    """Two equal features on the scale 1e8, one row whole: rows are expanded at the solution that was reported."""
    rng = np.random.default_rng(seed)
    x, z = 1e8 * rng.normal(size=40), rng.normal(size=40)
    stream = Stream(np.column_stack([x, x, z]), rng.poisson(np.exp(0.5 + x / 2e8 + z)))
    setting = dict(family=Poisson(), memory=Forgetting(0.7), penalty=L1(), history=1)
    result = run(learner(stream, tuner=LogRMS(0.5), lambda_init=0.1, curvature=curvature, **setting), stream)
    for t, _, violation in violations(stream, result, **setting):
        assert violation <= 1e-7, f"row {t}"
