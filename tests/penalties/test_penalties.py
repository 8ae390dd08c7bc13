"""Every penalty: its share of l1, and that a learner pays it."""

import pickle

import numpy as np
import pytest

from oracles.replay import learner, problems, run, violations
from streamlasso import penalties
from streamlasso.families import Gaussian
from streamlasso.memories import Forgetting, Window
from streamlasso.penalties import L1, ElasticNet, Ridge
from streamlasso.tuners import Fixed, LogRMS

every_penalty = pytest.mark.parametrize("penalty", penalties.EXAMPLES, ids=str)


def test_every_penalty_is_exported():
    assert {type(penalty).__name__ for penalty in penalties.EXAMPLES} == {*penalties.__all__} - {"Penalty"}


def test_shares():
    assert (L1().l1_ratio, ElasticNet(0.3).l1_ratio, Ridge().l1_ratio) == (1.0, 0.3, 0.0)


@every_penalty
@pytest.mark.parametrize("factor", [None, np.array([0.0, 1.0, 2.0, 0.5])], ids=["equal", "factors"])
def test_a_learner_pays_it(penalty, factor, make_stream):
    stream = make_stream(Gaussian(), n=40, weights=True)
    setting = dict(family=Gaussian(), memory=Forgetting(0.95), penalty=penalty, penalty_factor=factor)
    result = run(learner(stream, tuner=LogRMS(), **setting), stream)
    for t, _, violation in violations(stream, result, history=64, **setting):
        assert violation <= 1e-9, f"row {t}"


@every_penalty
def test_no_neighbour_is_cheaper(penalty, make_stream):
    """The objective itself, not its derivatives: every small step away from the solution costs."""
    stream = make_stream(Gaussian(), n=40, weights=True)
    setting = dict(family=Gaussian(), memory=Window(25), penalty=penalty)
    result = run(learner(stream, tuner=Fixed(0.1), **setting), stream)
    *_, problem = problems(stream, **setting)
    best = problem.objective(result.b0(-1), result.b(-1), 0.1)
    rng = np.random.default_rng(0)
    for size in (1e-1, 1e-2, 1e-3):
        for step in rng.normal(size=(50, 5)) * size:
            assert problem.objective(result.b0(-1) + step[0], result.b(-1) + step[1:], 0.1) > best


def test_elastic_net_of_1_is_the_lasso(make_stream):
    stream = make_stream(Gaussian(), n=40)
    setting = dict(family=Gaussian(), memory=Window(25), tuner=LogRMS())
    one, two = (run(learner(stream, penalty=penalty, **setting), stream) for penalty in (L1(), ElasticNet(1.0)))
    assert (one.coef == two.coef).all()


@every_penalty
def test_a_factor_of_zero_is_never_penalised(penalty, make_stream):
    """With lam far above lam_max, what is left is least squares on the free features."""
    stream = make_stream(Gaussian(), n=40)
    setting = dict(family=Gaussian(), memory=Window(30), penalty=penalty, penalty_factor=np.array([0.0, 1.0, 0.0, 1.0]))
    result = run(learner(stream, tuner=Fixed(1e9), **setting), stream)
    X, y = stream.X[-30:], stream.y[-30:]
    expected = np.linalg.lstsq(np.column_stack([np.ones(30), X[:, [0, 2]]]), y, rcond=None)[0]
    assert result.coef[-1, [0, 1, 3]] == pytest.approx(expected, rel=1e-6)
    assert result.coef[-1, [2, 4]] == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize("l1_ratio", [0.0, -0.1, 1.1, float("nan")])
def test_a_share_outside_0_to_1_is_refused(l1_ratio):
    with pytest.raises(ValueError, match="l1_ratio"):
        ElasticNet(l1_ratio)


@every_penalty
def test_it_is_a_frozen_value(penalty):
    assert pickle.loads(pickle.dumps(penalty)) == penalty
    assert eval(repr(penalty), vars(penalties)) == penalty
    with pytest.raises(AttributeError):
        penalty.l1_ratio = 0.7
