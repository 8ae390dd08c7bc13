"""After every single row the optimality conditions hold, whatever the stream."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.replay import Stream, learner, run, violations
from streamlasso import families, memories, penalties
from streamlasso.families import Binomial, Gamma, Gaussian, Poisson
from streamlasso.memories import Forgetting, Window
from streamlasso.penalties import L1, ElasticNet, Ridge
from streamlasso.tuners import LARS, SGD, Fixed, LogRMS
from support.streams import KINDS, factors, made, streams

#: Largest violation divided by lam_max: Gaussian, and every other family.
EXACT, NEWTON = 1e-9, 1e-7

MEMORIES = (Forgetting(0.9), Forgetting(0.7), Forgetting(1.0), Window(1), Window(5), Window(12))
PENALTIES = (L1(), ElasticNet(0.5), ElasticNet(0.95), Ridge())
TUNERS = (LogRMS(), LogRMS(0.5), SGD(0.01), LARS(0.05), Fixed(0.1), Fixed(0.001), Fixed(0.0))


def allowed(family):
    return EXACT if type(family) is Gaussian else NEWTON


def assert_optimal(stream, result, *, history=64, **setting):
    share = setting["penalty"].l1_ratio or 1e-3
    tolerance = allowed(setting["family"])
    for t, problem, violation in violations(stream, result, history=history, **setting):
        assert violation <= tolerance, f"row {t}: violation {violation:.1e}, status {result.status[t]}"
        off = abs(result.lam_max[t] - problem.lam_max) * share
        assert off <= tolerance * problem.unit, f"row {t}: lam_max {result.lam_max[t]} is {problem.lam_max}"


def drawn(data, stream, family, tuners=TUNERS, factor=True):
    return dict(
        family=family,
        memory=data.draw(st.sampled_from(MEMORIES), "memory"),
        penalty=data.draw(st.sampled_from(PENALTIES), "penalty"),
        tuner=data.draw(st.sampled_from(tuners), "tuner"),
        lambda_init=data.draw(st.sampled_from([None, 0.001, 0.1]), "lambda_init"),
        gradient=data.draw(st.sampled_from(["exact", "diagonal"]), "gradient"),
        curvature=data.draw(st.sampled_from(["updated", "previous"]), "curvature"),
        penalty_factor=data.draw(factors(stream.X.shape[1]), "penalty_factor") if factor else None,
        fit_intercept=data.draw(st.booleans(), "fit_intercept"),
        standardize=data.draw(st.booleans(), "standardize"),
        history=data.draw(st.sampled_from([1, 3, 64]), "history"),
    )


@settings(max_examples=200)
@given(st.data())
def test_gaussian_on_any_stream(data):
    stream = data.draw(streams(Gaussian()), "stream")
    chosen = drawn(data, stream, Gaussian())
    assert_optimal(stream, run(learner(stream, **chosen), stream), **chosen)


@pytest.mark.parametrize("family", [Binomial(), Poisson(), Gamma()], ids=str)
@settings(max_examples=100)
@given(data=st.data())
def test_other_families_on_any_stream(family, data):
    # lam stays well above 0 with LogRMS; at 0, two classes that a plane separates have no minimum
    stream = data.draw(streams(family, max_rows=16, max_features=8), "stream")
    chosen = drawn(data, stream, family, tuners=(LogRMS(), LogRMS(0.5)), factor=False)
    assert_optimal(stream, run(learner(stream, **chosen), stream), **chosen)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_each_kind_of_feature(family, kind):
    stream = made(family, ["normal", kind, "normal", kind], 30, np.random.default_rng(3))
    for standardize in (True, False):
        setting = dict(family=family, memory=Forgetting(0.95), penalty=L1(), standardize=standardize)
        assert_optimal(stream, run(learner(stream, tuner=LogRMS(), lambda_init=0.05, **setting), stream), **setting)


@pytest.mark.parametrize("memory", memories.EXAMPLES, ids=str)
@pytest.mark.parametrize("penalty", penalties.EXAMPLES, ids=str)
@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_every_family_penalty_and_memory(family, penalty, memory, make_stream):
    stream = make_stream(family, n=40, p=5, weights=True)
    setting = dict(family=family, memory=memory, penalty=penalty)
    assert_optimal(stream, run(learner(stream, tuner=LogRMS(), lambda_init=0.05, **setting), stream), **setting)


@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_more_features_than_rows(family):
    stream = made(family, ["normal"] * 30, 12, np.random.default_rng(5))
    setting = dict(family=family, memory=Window(8), penalty=L1())
    assert_optimal(stream, run(learner(stream, tuner=LogRMS(), lambda_init=0.05, **setting), stream), **setting)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_a_feature_that_is_never_penalised(family, seed, make_stream):
    """Early rows may be separable by it, so that there is no minimum; as soon as there is one, it is reached."""
    stream = make_stream(family, n=25, p=3, seed=seed)
    setting = dict(family=family, memory=Forgetting(1.0), penalty=L1(), penalty_factor=np.array([0.0, 1.0, 1.0]))
    assert_optimal(stream, run(learner(stream, tuner=LogRMS(), lambda_init=0.05, **setting), stream), **setting)


def test_coefficients_come_back_from_rows_that_a_feature_separates():
    """Ten rows that the unpenalised feature separates, then one that ends that."""
    x = np.array([1.05, -0.14, 0.65, 0.55, -0.85, 1.27, -0.03, -0.82, -1.6, -0.86, 0.31])
    other = np.array([1.78, 1.01, 1.5, 0.18, 0.38, 1.29, 1.38, 0.08, -1.73, 1.21, 0.21])
    y = np.array([0, 0, 0, 0, 1, 0, 0, 1, 1, 1, 1.0])
    stream = Stream(np.column_stack([x, other]), y)
    setting = dict(family=Binomial(), memory=Forgetting(1.0), penalty=L1(), penalty_factor=np.array([0.0, 1.0]))
    assert_optimal(stream, run(learner(stream, tuner=Fixed(0.1), **setting), stream), **setting)


@pytest.mark.parametrize("centre,seed", [(0.0, 2), (0.0, 41), (30.0, 13), (30.0, 33), (30.0, 41)])
def test_a_short_ring_comes_back_from_separable_rows_too(centre, seed):
    """The first rows are folded where an unpenalised feature has run far away; they must not hold it there."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(25, 2)) + np.array([centre, 0.0])
    stream = Stream(X, Binomial().sample(rng, 0.2 + 0.6 * (X[:, 0] - centre) - 0.4 * X[:, 1]))
    setting = dict(family=Binomial(), memory=Forgetting(0.95), penalty=L1(), penalty_factor=np.array([0.0, 1.0]))
    result = run(learner(stream, tuner=LogRMS(), lambda_init=0.1, history=3, **setting), stream)
    for t, problem, violation in violations(stream, result, history=3, **setting):
        if np.abs(problem.null).max() < 6:
            assert violation <= NEWTON, f"row {t}, {result.status[t]}"


def test_a_feature_that_never_varied_has_no_coefficient():
    X = np.column_stack([np.full(20, 3.0), np.linspace(0, 1, 20)])
    stream = Stream(X, X[:, 1] * 2)
    result = run(learner(stream, family=Gaussian(), memory=Forgetting(0.9), penalty=Ridge(), tuner=Fixed(0.0)), stream)
    assert (result.coef[:, 1] == 0).all()
    assert result.coef[-1, 2] == pytest.approx(2.0, rel=1e-9)


def test_without_intercept_or_scaling_a_constant_is_a_feature_like_any_other():
    stream = Stream(np.full((10, 1), 3.0), np.full(10, 6.0))
    setting = dict(family=Gaussian(), memory=Forgetting(1.0), penalty=L1(), fit_intercept=False, standardize=False)
    result = run(learner(stream, tuner=Fixed(0.0), **setting), stream)
    assert result.b(-1)[0] == pytest.approx(2.0)


def test_a_singular_block_is_not_an_error():
    """Two equal unpenalised features: the stream goes on, the fit is right, and no number is lost."""
    x = np.random.default_rng(0).normal(size=30)
    stream = Stream(np.column_stack([x, x]), 2 * x)
    setting = dict(family=Gaussian(), memory=Forgetting(0.9), penalty=L1(), penalty_factor=np.zeros(2))
    result = run(learner(stream, tuner=Fixed(0.1), **setting), stream)
    assert np.isfinite(result.coef).all()
    assert result.learner.decision(stream.X) == pytest.approx(stream.y, abs=1e-8)


ALIKE = [(Binomial(), 1.0, True), (Binomial(), 0.0, True), (Poisson(), 0.0, True), (Poisson(), 2.0, False)]
ALIKE += [(Gamma(), 2.0, False), (Gamma(), 0.5, False)]


@pytest.mark.parametrize(("family", "y", "shrunken"), ALIKE, ids=str)
def test_while_all_responses_are_alike_only_an_intercept_is_fitted(family, y, shrunken):
    """It is shrunken where it would otherwise run to infinity, and only there."""
    rng = np.random.default_rng(1)
    stream = Stream(rng.normal(size=(6, 2)), np.full(6, y), rng.uniform(0.5, 2, 6))
    model = learner(stream, family=family, memory=Forgetting(0.9), penalty=L1(), tuner=LogRMS())
    result = run(model, stream)
    grid = np.linspace(-5, 5, 2_000_001)
    loss = family.loss(np.full(len(grid), y), grid) + shrunken * np.abs(grid) / (2 * (model.effective_size + 1))
    assert result.b0(-1) == pytest.approx(grid[np.argmin(loss)], abs=1e-5)
    assert (result.coef[:, 1:] == 0).all()
    assert set(result.status) == {"waiting"}


@pytest.mark.parametrize("family", [Binomial(), Poisson()], ids=str)
def test_a_solved_problem_is_not_called_unfinished(family):
    """One feature on the scale 1e8: every row is solved to rounding, with status ok."""
    rng = np.random.default_rng(2)
    stream = made(family, ["huge"], 40, rng)
    setting = dict(family=family, memory=Forgetting(0.9), penalty=L1())
    result = run(learner(stream, tuner=LogRMS(), lambda_init=0.05, **setting), stream)
    for t, _, violation in violations(stream, result, history=64, **setting):
        assert violation <= NEWTON
        assert result.status[t] == "ok", f"row {t}: {result.status[t]} with a violation of {violation:.1e}"
