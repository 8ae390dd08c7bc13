"""What must change nothing but units: LogRMS is free of all scales."""

import numpy as np
import pytest

from oracles.replay import Stream, learner, run
from streamlasso import families, memories
from streamlasso.families import Gaussian
from streamlasso.memories import Forgetting
from streamlasso.penalties import L1
from streamlasso.tuners import LogRMS

FACTORS = [1e6, 1e-6]


@pytest.fixture
def untied(make_stream):
    """Two rows cannot tell features apart; where their responses are alike, nothing is chosen before the third."""

    def make(*args, **kwargs):
        stream = make_stream(*args, **kwargs)
        stream.y[1] = stream.y[0]
        return stream

    return make


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("memory", memories.EXAMPLES, ids=str)
def test_y_times_a_factor(memory, standardize, factor, untied):
    stream = untied(Gaussian(), n=200, p=5)
    setting = dict(family=Gaussian(), memory=memory, penalty=L1(), tuner=LogRMS(), standardize=standardize)
    one = run(learner(stream, **setting), stream)
    two = run(learner(stream, **setting), Stream(stream.X, factor * stream.y))
    assert two.eta == pytest.approx(factor * one.eta, rel=1e-7, abs=1e-9 * factor)
    assert two.lam[2:] == pytest.approx(factor * one.lam[2:], rel=1e-7)
    assert (two.n_active == one.n_active).all()


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_X_times_a_factor(family, standardize, factor, untied):
    stream = untied(family, n=200, p=5)
    setting = dict(family=family, memory=Forgetting(0.97), penalty=L1(), tuner=LogRMS(), standardize=standardize)
    one = run(learner(stream, **setting), stream)
    two = run(learner(stream, **setting), Stream(factor * stream.X, stream.y))
    loose = 1e-7 if type(family) is Gaussian else 1e-5
    assert two.eta == pytest.approx(one.eta, rel=loose, abs=loose)
    units = 1.0 if standardize else factor
    rows = np.isfinite(one.lam)
    assert two.lam[rows] == pytest.approx(units * one.lam[rows], rel=loose)


@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_each_feature_in_its_own_unit(family, untied):
    """With standardisation, every feature may be measured in what it likes, and from where it likes."""
    stream = untied(family, n=150, p=4)
    units, shift = np.array([1e-6, 1.0, 1e3, 1e6]), np.array([0.0, 5.0, 0.0, 0.0])
    setting = dict(family=family, memory=Forgetting(0.97), penalty=L1(), tuner=LogRMS())
    one = run(learner(stream, **setting), stream)
    two = run(learner(stream, **setting), Stream((stream.X + shift) * units, stream.y))
    assert two.coef[50:, 1:] * units == pytest.approx(one.coef[50:, 1:], rel=1e-5, abs=1e-6)
    assert two.lam[50:] == pytest.approx(one.lam[50:], rel=1e-5)


@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_the_order_of_the_features_does_not_matter(family, untied):
    stream = untied(family, n=100, p=5)
    order = np.array([3, 0, 4, 2, 1])
    setting = dict(family=family, memory=Forgetting(0.97), penalty=L1(), tuner=LogRMS())
    one = run(learner(stream, **setting), stream)
    two = run(learner(stream, **setting), Stream(np.ascontiguousarray(stream.X[:, order]), stream.y))
    assert two.coef[:, 1:] == pytest.approx(one.coef[:, 1:][:, order], rel=1e-5, abs=1e-6)
