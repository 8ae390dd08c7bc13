"""Every tuner: the rule, and that a learner follows it."""

import pickle

import numpy as np
import pytest

from oracles.mixtures import COMPETITIONS, COMPOSED
from oracles.replay import learner, run
from streamlasso import families, tuners
from streamlasso.core.lasso.learner import Learner
from streamlasso.families import Gaussian
from streamlasso.memories import Forgetting
from streamlasso.penalties import L1
from streamlasso.tuners import LARS, SGD, Fixed, LogRMS, Mixture, Tuner

every_tuner = pytest.mark.parametrize("tuner", tuners.EXAMPLES, ids=str)
BASE = dict(memory=Forgetting(0.97), penalty=L1())


def test_every_tuner_is_exported():
    built_in = {getattr(tuners, name) for name in tuners.__all__} - {Tuner}
    assert {type(tuner) for tuner in tuners.EXAMPLES} == built_in - {*COMPOSED}
    assert {Mixture} == built_in & {*COMPOSED}


def test_the_rules():
    assert Fixed(0.3).update(0.3, 5.0, 1.0, 1.0, []) == 0.3
    assert SGD(0.1).update(0.5, 2.0, 4.0, 1.0, []) == pytest.approx(0.5 - 0.1 * 2.0)
    assert LARS(0.1).update(0.5, 2.0, 4.0, 1.0, []) == pytest.approx(0.5 - 0.1 * 2.0 / 4.0)
    assert LARS(0.1).update(0.5, 0.0, 0.0, 1.0, []) == 0.5


def test_log_rms_by_hand():
    """SGD on log lam, its derivative over its running root mean square (fading by .99, corrected for the start)."""
    slopes, lam = np.random.default_rng(0).normal(size=50), 0.4
    state, mine, seen = np.zeros(LogRMS.n_state), 0.4, []
    for slope in slopes:
        lam = LogRMS(0.1).update(lam, slope, 1.0, 1.0, state)
        seen.append(mine * slope)
        fade = 0.99 ** np.arange(len(seen))[::-1]
        rms = np.sqrt(fade @ np.square(seen) / fade.sum())
        mine = max(mine * np.exp(-0.1 * mine * slope / rms), 1e-4)
        assert lam == pytest.approx(mine, rel=1e-10)


def test_log_rms_first_step_is_its_step_size():
    assert LogRMS(0.2).update(1.0, 7.0, 1.0, 10.0, np.zeros(2)) == pytest.approx(np.exp(-0.2))
    assert LogRMS(0.2).update(1.0, -7.0, 1.0, 10.0, np.zeros(2)) == pytest.approx(np.exp(0.2))
    assert LogRMS(0.2).update(1.0, 0.0, 1.0, 10.0, np.zeros(2)) == 1.0


@every_tuner
@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_a_learner_follows_it(family, tuner, make_stream):
    """lam after each row is the tuner's update of lam before it, clamped; only the norm is not noted (for LARS)."""
    if type(tuner) is LARS:
        pytest.skip("needs the length of the direction: core/test_derivative.py")
    stream = make_stream(family, n=60)
    result = run(learner(stream, family=family, tuner=tuner, **BASE), stream)
    first = result.status.index("ok")
    state = np.zeros(max(tuner.n_state, 1))
    for t in range(first + 1, 60):
        lam = tuner.update(result.lam[t - 1], result.slope[t], 1.0, result.lam_max[t - 1], state)
        lam = min(max(lam, 0.0), result.lam_max[t]) if tuner.clamped else lam
        assert result.lam[t] == pytest.approx(lam, rel=1e-9), f"row {t}"


@every_tuner
@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_a_long_stream_stays_finite(family, tuner, make_stream):
    stream = make_stream(family, n=400, seed=5)
    result = run(learner(stream, family=family, tuner=tuner, **BASE), stream)
    assert np.isfinite(result.coef).all()
    there = result.lam_max > 0
    assert np.isfinite(result.lam[there]).all() and (result.lam[there] >= 0).all()


def test_log_rms_comes_back_from_the_bottom(make_stream):
    """A stretch in which less penalty is always better, then noise: lam rises again."""
    rng = np.random.default_rng(3)
    stream = make_stream(Gaussian(), n=1200, p=12, gain=0.0)
    stream.y[:400] = stream.X[:400] @ rng.normal(size=12)
    stream.y[400:] = rng.normal(size=800)
    result = run(learner(stream, family=Gaussian(), tuner=LogRMS(), memory=Forgetting(0.97), penalty=L1()), stream)
    share = result.lam[10:] / result.lam_max[10:]
    assert share[380:390].mean() < 0.05
    assert share[1090:].mean() > 0.3


@pytest.mark.parametrize("tuner", [SGD, LARS, LogRMS])
@pytest.mark.parametrize("step_size", [0.0, -1.0, float("nan"), float("inf")])
def test_a_step_that_is_not_positive_is_refused(tuner, step_size):
    with pytest.raises(ValueError, match="step_size"):
        tuner(step_size)


@pytest.mark.parametrize("lam", [-0.1, float("nan"), float("inf")])
def test_a_penalty_that_is_not_a_number_from_0_up_is_refused(lam):
    with pytest.raises(ValueError, match="lam"):
        Fixed(lam)


@pytest.mark.parametrize("tuner", [*tuners.EXAMPLES, *(tuner for _, tuner in COMPETITIONS.values())], ids=str)
def test_it_is_a_value(tuner):
    copy = pickle.loads(pickle.dumps(tuner))
    assert copy == tuner and hash(copy) == hash(tuner) and repr(copy) == repr(tuner)
    assert eval(repr(tuner), vars(tuners)) == tuner


def test_a_state_that_is_too_short_is_refused():
    """It ended the process."""
    for short in ([], [0.0]):
        with pytest.raises(ValueError, match="LogRMS needs 2"):
            LogRMS().update(0.5, 1.0, 1.0, 1.0, short)


def test_a_tuner_whose_state_grows_while_it_is_used_gets_the_numbers_that_there_are():
    """It got those beyond its own, and wrote over them."""

    class Grows(Tuner):
        n_state = 2

        def update(self, lam, slope, norm, lam_max, state):
            lengths.add(len(state))
            state[:] += 1.0
            type(self).n_state = 5000
            return 0.1 * lam_max

    lengths = set()
    one = Learner(3, family=Gaussian(), tuner=Grows(), **BASE)
    one.learn(np.random.default_rng(0).normal(size=(50, 3)), np.arange(50.0))
    assert lengths == {2}
    assert len(one.state()["tuner"]) == 2
