"""Rows that leave the ring become their second-order expansion (`core/glm/likelihood.py`)."""

import numpy as np
import pytest

from oracles.problem import Problem
from oracles.replay import folded_problems, learner, problems, run, violations
from oracles.solver import solve
from oracles.weights import weights
from streamlasso import families, memories
from streamlasso.families import Binomial, Gamma, Gaussian, Poisson
from streamlasso.memories import Forgetting, Window
from streamlasso.penalties import L1, Ridge
from streamlasso.tuners import Fixed, LogRMS

LAM = 0.1


def slow_path(stream, history, **setting):
    """The fold on its own: each solution by the slow solver, each expansion at the slow solution before it."""
    found = []
    for problem in folded_problems(stream, lambda t: found[t], history, **setting):
        alike = problem.undefined
        found.append((shrunken_intercept(problem), np.zeros(stream.X.shape[1])) if alike else solve(problem, LAM))
    return np.array([np.append(b0, b) for b0, b in found])


def shrunken_intercept(problem):
    """While all are alike b0 minimises the loss or, where that has no minimum, loss + |b0| / (2 (omega + 1));
    by bisection of its derivative."""
    low, high, y = -30.0, 30.0, problem.y[-1]
    has_minimum = problem.family.slope(y, low) < 0 < problem.family.slope(y, high)
    pull = 0.0 if has_minimum else 1 / (2 * (problem.omega + 1))
    for _ in range(200):
        b0 = (low + high) / 2
        rising = problem.family.slope(y, b0) + np.sign(b0) * pull > 0
        low, high = (low, b0) if rising else (b0, high)
    return b0


@pytest.mark.parametrize("memory", [Forgetting(0.95), Forgetting(1.0), Window(12)], ids=str)
@pytest.mark.parametrize("history", [1, 2, 7])
@pytest.mark.parametrize("family", [Binomial(), Poisson(), Gamma()], ids=str)
def test_a_slow_implementation_agrees(family, history, memory, make_stream):
    stream = make_stream(family, n=25, p=3, seed=1, weights=True)
    setting = dict(family=family, memory=memory, penalty=L1())
    result = run(learner(stream, tuner=Fixed(LAM), history=history, **setting), stream)
    unique = slice(4, None)  # of three features and an intercept, fewer rows do not tell apart
    assert result.coef[unique] == pytest.approx(slow_path(stream, history, **setting)[unique], rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("memory", memories.EXAMPLES, ids=str)
@pytest.mark.parametrize("history", [1, 4, 30])
@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_optimal_with_folded_rows(family, history, memory, make_stream):
    stream = make_stream(family, n=45, p=4, seed=2, weights=True)
    setting = dict(family=family, memory=memory, penalty=L1(), history=history)
    result = run(learner(stream, tuner=LogRMS(), **setting), stream)
    for t, _, violation in violations(stream, result, **setting):
        assert violation <= 1e-7, f"row {t}"


@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_a_ring_longer_than_the_stream_is_the_exact_problem(family, make_stream):
    stream = make_stream(family, n=40, p=3)
    setting = dict(family=family, memory=Forgetting(0.98), penalty=L1())
    long, longer = (run(learner(stream, tuner=Fixed(LAM), history=h, **setting), stream) for h in (40, 1000))
    assert (long.coef == longer.coef).all()
    *_, last = problems(stream, **setting)
    b0, b = solve(last, LAM)
    assert longer.coef[-1] == pytest.approx(np.append(b0, b), rel=1e-7, abs=1e-8)


def test_gaussian_rows_are_quadratic_already(make_stream):
    stream = make_stream(Gaussian(), n=40)
    setting = dict(family=Gaussian(), memory=Forgetting(0.9), penalty=L1(), tuner=LogRMS())
    one, many = (run(learner(stream, history=h, **setting), stream) for h in (1, 100))
    assert (one.coef == many.coef).all()


def test_a_window_shorter_than_the_ring_forgets_exactly(make_stream):
    """What left the window leaves no trace: a learner that never saw it has the same solution."""
    stream = make_stream(Poisson(), n=60, seed=3)
    setting = dict(family=Poisson(), memory=Window(10), penalty=L1(), tuner=Fixed(LAM))
    old, fresh = run(learner(stream, **setting), stream), run(learner(stream, **setting), stream.part(50, 60))
    assert old.coef[-1] == pytest.approx(fresh.coef[-1], rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("history", [1, 3, 9])
def test_a_window_longer_than_the_ring_takes_folded_rows_out_again(history, make_stream):
    """After a jump the window fills with new rows; the old ones' expansions are gone with them."""
    stream = make_stream(Binomial(), n=80, seed=4)
    setting = dict(family=Binomial(), memory=Window(20), penalty=Ridge(), history=history)
    result = run(learner(stream, tuner=Fixed(0.3), **setting), stream)
    for t, problem, violation in violations(stream, result, **setting):
        assert len(problem.y) <= 20
        assert violation <= 1e-7, f"row {t}"


@pytest.mark.parametrize("batch_size,history", [(2, 1), (5, 1), (5, 3), (5, 5), (5, 20)])
@pytest.mark.parametrize("family", [Binomial(), Poisson(), Gamma()], ids=str)
def test_a_row_is_in_an_exact_solve_before_it_is_folded(family, batch_size, history, make_stream):
    """The first mini-batch is all there is, so its rows are all whole, however short the ring."""
    stream = make_stream(family, n=batch_size, p=2, seed=8)
    stream.y[:2] = 0.1 * (type(family) is Gamma), 1.0
    setting = dict(family=family, memory=Forgetting(0.95), penalty=L1())
    model = learner(stream, tuner=Fixed(0.05), history=history, batch_size=batch_size, **setting)
    result = run(model, stream)
    whole = Problem(stream.X, stream.y, weights(Forgetting(0.95), np.ones(batch_size)), family)
    assert not whole.undefined
    assert whole.violation(result.b0(-1), result.b(-1), 0.05) <= 1e-7
