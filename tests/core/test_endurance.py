"""Long streams: the violation at the end is what it was at the start. (A million rows: benchmarks/endurance.py.)"""

import numpy as np
import pytest

from oracles.problem import Problem
from oracles.replay import Stream, learner, run
from oracles.weights import weights
from streamlasso.families import Binomial, Gaussian
from streamlasso.memories import Forgetting, Window
from streamlasso.penalties import L1
from streamlasso.tuners import LogRMS

N = 20_000


def drifting(family, n, p=8, seed=0):
    """Correlated features far from zero, coefficients that change every 500 rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + rng.normal(size=(n, 1)) + 3.0
    b = np.repeat(rng.normal(size=(n // 500 + 1, p)) * (rng.random((n // 500 + 1, p)) < 0.5), 500, axis=0)[:n]
    return Stream(X, family.sample(rng, np.sum((X - 3.0) * b, axis=1) / 2))


def violation(stream, result, t, family, memory, kept=600):
    """Of the problem after row t; rows older than `kept` weigh nothing that counts."""
    rows = slice(max(0, t + 1 - kept), t + 1)
    w = weights(memory, np.ones(rows.stop - rows.start))
    rows, w = np.arange(rows.start, rows.stop)[w > 0], w[w > 0]
    return Problem(stream.X[rows], stream.y[rows], w, family).violation(result.b0(t), result.b(t), result.lam[t])


@pytest.mark.parametrize("memory", [Forgetting(0.9), Window(50)], ids=str)
def test_gaussian_neither_drifts_nor_decays(memory):
    stream = drifting(Gaussian(), N)
    result = run(learner(stream, family=Gaussian(), memory=memory, penalty=L1(), tuner=LogRMS()), stream)
    start = max(violation(stream, result, t, Gaussian(), memory) for t in range(100, 200))
    end = max(violation(stream, result, t, Gaussian(), memory) for t in range(N - 100, N))
    assert end <= 1e-9
    assert end <= 10 * start + 1e-13
    size = 10.0 if type(memory) is Forgetting else 50.0
    assert result.effective_size[-1] == pytest.approx(size, rel=1e-12)


@pytest.mark.parametrize("memory", [Forgetting(0.9), Window(50)], ids=str)
def test_logistic_neither_drifts_nor_decays(memory):
    stream = drifting(Binomial(), 4000)
    setting = dict(family=Binomial(), memory=memory, penalty=L1(), tuner=LogRMS(), history=600)
    result = run(learner(stream, **setting), stream)
    rows = [t for t in range(3900, 4000) if result.status[t] != "waiting"]
    assert max(violation(stream, result, t, Binomial(), memory) for t in rows) <= 1e-7


@pytest.mark.parametrize("r", [0.9, 0.999, 1.0])
def test_weights_neither_overflow_nor_vanish(r):
    """The sum of the weights after many rows, and a unit that came back: nothing but the formula."""
    stream = drifting(Gaussian(), N, p=2)
    result = run(learner(stream, family=Gaussian(), memory=Forgetting(r), penalty=L1(), tuner=LogRMS()), stream)
    expected = N if r == 1 else (1 - r**N) / (1 - r)
    assert result.effective_size[-1] == pytest.approx(expected, rel=1e-10)
    assert np.isfinite(result.coef).all()


def test_the_state_does_not_grow():
    stream = drifting(Binomial(), 3000, p=3)
    model = learner(stream, family=Binomial(), memory=Forgetting(0.99), penalty=L1(), tuner=LogRMS(), history=20)

    def size():
        return sum(np.asarray(value).nbytes for value in model.state().values())

    run(model, stream.part(0, 500))
    early = size()
    run(model, stream.part(500, 3000))
    assert size() <= 1.2 * early
