"""Where lam starts, what bounds it, and lam_max itself."""

import numpy as np
import pytest

from oracles.replay import Stream, learner, problems, run
from oracles.solver import solve
from streamlasso import families, memories, tuners
from streamlasso.families import Binomial, Gaussian, Poisson
from streamlasso.memories import Forgetting, Window
from streamlasso.penalties import L1, ElasticNet, Ridge
from streamlasso.tuners import LARS, SGD, Fixed, LogRMS

BASE = dict(memory=Forgetting(0.95), penalty=L1())


@pytest.mark.parametrize("memory", memories.EXAMPLES, ids=str)
@pytest.mark.parametrize("penalty", [L1(), ElasticNet(0.3), Ridge()], ids=str)
@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_lam_max_by_brute_force(family, penalty, memory, make_stream):
    stream = make_stream(family, n=30, weights=True)
    for fit_intercept, standardize in [(True, True), (True, False), (False, True), (False, False)]:
        setting = dict(
            family=family, memory=memory, penalty=penalty, fit_intercept=fit_intercept, standardize=standardize
        )
        result = run(learner(stream, tuner=LogRMS(), **setting), stream)
        expected = [0.0 if problem.undefined else problem.lam_max for problem in problems(stream, **setting)]
        assert result.lam_max[2:] == pytest.approx(expected[2:], rel=1e-7)


@pytest.mark.parametrize("factor", [(0.0, 1.0, 1.0, 1.0), (0.5, 3.0, 1.0, 0.0), (2.0, 2.0, 2.0, 2.0)], ids=str)
def test_lam_max_with_penalty_factors(factor, make_stream):
    """Features of factor 0 are in the null model."""
    stream = make_stream(Gaussian(), n=30, weights=True)
    setting = dict(family=Gaussian(), penalty_factor=np.array(factor), **BASE)
    result = run(learner(stream, tuner=LogRMS(), **setting), stream)
    expected = [problem.lam_max for problem in problems(stream, **setting)]
    assert result.lam_max[4:] == pytest.approx(expected[4:], rel=1e-9)


@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_lam_max_is_the_smallest_lam_at_which_nothing_is_in(family, make_stream):
    stream = make_stream(family, n=30)
    setting = dict(family=family, history=64, **BASE)
    top = run(learner(stream, tuner=Fixed(1.0), **setting), stream).lam_max[-1]
    above, below = (run(learner(stream, tuner=Fixed(top * f), **setting), stream) for f in (1 + 1e-6, 1 - 1e-6))
    assert (above.b(-1) == 0).all()
    assert (below.b(-1) != 0).any()
    *_, problem = problems(stream, family=family, **BASE)
    assert (solve(problem, top * (1 + 1e-6))[1] == 0).all()
    assert (solve(problem, top * (1 - 1e-6))[1] != 0).any()


def test_the_lam_max_of_ridge_is_glmnets(make_stream):
    stream = make_stream(Gaussian(), n=30)
    lasso, ridge = (
        run(learner(stream, family=Gaussian(), memory=Window(20), penalty=penalty, tuner=Fixed(0.1)), stream).lam_max[
            -1
        ]
        for penalty in (L1(), Ridge())
    )
    assert ridge == pytest.approx(1000 * lasso)


@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_lam_starts_at_a_tenth_of_lam_max_after_ten_rows(family, make_stream):
    """Before that the model is empty: after two rows, every standardised feature fits the response perfectly."""
    stream = make_stream(family, n=20)
    result = run(learner(stream, family=family, tuner=LogRMS(), **BASE), stream)
    assert (result.lam[:9] == result.lam_max[:9]).all()
    assert (result.coef[:9, 1:] == 0).all()
    assert set(result.status[:9]) == {"waiting"}
    assert result.lam[9] == pytest.approx(0.1 * result.lam_max[9])
    assert set(result.status[9:]) == {"ok"}


@pytest.mark.parametrize("tuner", [LogRMS(), SGD(1e-9), LARS(1e-9)], ids=str)
def test_lambda_init_is_obeyed(tuner, make_stream):
    stream = make_stream(Gaussian(), n=20)
    model = learner(stream, family=Gaussian(), tuner=tuner, lambda_init=0.07, **BASE)
    assert model.lam == 0.07
    result = run(model, stream)
    first = np.flatnonzero(result.lam_max > 0.1)[0]
    assert result.lam[first] == pytest.approx(0.07, rel=0.06)


@pytest.mark.parametrize("tuner", [tuner for tuner in tuners.EXAMPLES if tuner.clamped], ids=str)
@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_lam_stays_between_0_and_lam_max(family, tuner, make_stream):
    stream = make_stream(family, n=60, seed=1)
    for first in (None, 1e4):
        result = run(learner(stream, family=family, tuner=tuner, lambda_init=first, **BASE), stream)
        there = result.lam_max > 0
        assert (result.lam[there] <= result.lam_max[there]).all()
        assert (result.lam[there] >= 0).all()


@pytest.mark.parametrize("tuner", [SGD(100.0), LARS(1e5)], ids=str)
def test_a_wild_step_ends_at_the_bounds(tuner, make_stream):
    stream = make_stream(Gaussian(), n=60)
    result = run(learner(stream, family=Gaussian(), tuner=tuner, **BASE), stream)
    assert set(np.unique(result.lam[10:] / result.lam_max[10:])) <= {0.0, 1.0}
    assert np.isfinite(result.coef).all()


@pytest.mark.parametrize("tuner", [SGD(1.0), LARS(1.0)], ids=str)
@pytest.mark.parametrize("family", [Gaussian(), Binomial()], ids=str)
def test_lam_stays_sane_where_nothing_can_be_fitted(family, tuner):
    """In a window of two, responses are often alike and lam_max is 0: no excuse for a lam that was never possible."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        stream = Stream(rng.normal(size=(12, 2)), rng.integers(0, 2, size=12))
        result = run(
            learner(stream, family=family, tuner=tuner, memory=Window(2), penalty=L1(), lambda_init=0.01), stream
        )
        assert (result.lam >= 0).all(), f"seed {seed}"
        assert (result.lam <= np.maximum.accumulate(np.maximum(result.lam_max, 0.01))).all(), f"seed {seed}"


@pytest.mark.parametrize("lam", [0.0, 0.1, 1e6])
def test_a_fixed_lam_is_never_clamped(lam, make_stream):
    stream = make_stream(Gaussian(), n=20)
    result = run(learner(stream, family=Gaussian(), tuner=Fixed(lam), **BASE), stream)
    assert (result.lam == lam).all()


def test_the_solution_changes_continuously_with_lam(make_stream):
    """Along the path, from lam_max to 0, neighbours differ by no more than the steepest derivative allows."""
    stream = make_stream(Poisson(), n=40)
    lams = np.linspace(0.0, 1.0, 200)
    path = np.array([run(learner(stream, family=Poisson(), tuner=Fixed(x), **BASE), stream).b(-1) for x in lams])
    steps = np.abs(np.diff(path, axis=0)).max(axis=1)
    assert steps.max() < 20 * np.median(steps[steps > 0])
