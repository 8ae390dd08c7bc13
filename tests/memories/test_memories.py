"""Every memory: the weights it gives, and that a learner obeys them."""

import pickle

import numpy as np
import pytest

from oracles.mixtures import COMPOSED
from oracles.replay import learner, run, violations
from oracles.weights import weights
from streamlasso import memories
from streamlasso.families import Gaussian
from streamlasso.memories import AdaptiveForgetting, Forgetting, Memory, Window
from streamlasso.penalties import L1
from streamlasso.tuners import LogRMS

every_memory = pytest.mark.parametrize("memory", memories.EXAMPLES, ids=str)


def test_every_memory_is_exported():
    built_in = {getattr(memories, name) for name in memories.__all__} - {Memory}
    assert {type(memory) for memory in memories.EXAMPLES} == built_in - {*COMPOSED}
    assert {AdaptiveForgetting} == built_in & {*COMPOSED}


@pytest.mark.parametrize("r", [0.5, 0.99, 1.0])
def test_forgetting_fades_by_r_a_row(r):
    a = [1.0, 2.0, 0.5, 1.0]
    assert weights(Forgetting(r), a) == pytest.approx([a[i] * r ** (3 - i) for i in range(4)])


def test_a_window_holds_the_last_rows_whole():
    assert weights(Window(2), [1.0, 2.0, 0.5, 3.0]).tolist() == [0.0, 0.0, 0.5, 3.0]
    assert weights(Window(9), [1.0, 2.0]).tolist() == [1.0, 2.0]


@every_memory
def test_a_learner_weighs_the_past_so(memory, make_stream):
    stream = make_stream(Gaussian(), n=40, weights=True)
    setting = dict(family=Gaussian(), memory=memory, penalty=L1())
    result = run(learner(stream, tuner=LogRMS(), **setting), stream)
    for t, problem, violation in violations(stream, result, history=64, **setting):
        assert result.effective_size[t] == pytest.approx(problem.omega, rel=1e-12)
        assert violation <= 1e-9, f"row {t}"


def test_a_window_forgets_to_the_last_digit(make_stream):
    """A wild past leaves no rounding behind: rows of size 1e8 have passed through the window."""
    stream = make_stream(Gaussian(), n=120)
    stream.X[:60] *= 1e8
    stream.y[:60] *= 1e8
    setting = dict(family=Gaussian(), memory=Window(20), penalty=L1())
    result = run(learner(stream, tuner=LogRMS(), **setting), stream)
    for t, _, violation in violations(stream, result, history=200, **setting):
        if t >= 85:
            assert violation <= 1e-9, f"row {t}"


def test_forgetting_forgets_a_wild_past(make_stream):
    """After 400 rows at r = .9 nothing of size 1e8 is left (.9^400 is 5e-19)."""
    stream = make_stream(Gaussian(), n=480)
    stream.X[:60] *= 1e4
    stream.y[:60] *= 1e4
    setting = dict(family=Gaussian(), memory=Forgetting(0.9), penalty=L1())
    result = run(learner(stream, tuner=LogRMS(), **setting), stream)
    last = list(violations(stream, result, history=1000, **setting))[-5:]
    assert max(violation for _, _, violation in last) <= 1e-9


@pytest.mark.parametrize("r", [0.0, -0.5, 1.2, float("nan"), float("inf")])
def test_a_factor_outside_0_to_1_is_refused(r):
    with pytest.raises(ValueError, match=r"\(0, 1\]"):
        Forgetting(r)


@pytest.mark.parametrize("n", [0, -3, 2.5, float("nan"), float("inf"), True])
def test_a_window_of_no_whole_number_of_rows_is_refused(n):
    with pytest.raises(ValueError, match="whole number"):
        Window(n)


@pytest.mark.parametrize("memory", [*memories.EXAMPLES, AdaptiveForgetting(), AdaptiveForgetting([0.9, 1])], ids=str)
def test_it_is_a_frozen_value(memory):
    assert pickle.loads(pickle.dumps(memory)) == memory
    assert eval(repr(memory), vars(memories)) == memory
    assert hash(memory) == hash(pickle.loads(pickle.dumps(memory)))
    name = next(iter(memory.__dataclass_fields__))
    with pytest.raises(AttributeError):
        setattr(memory, name, 1)


def test_a_numpy_number_is_a_number():
    assert weights(Forgetting(np.float64(0.5)), [1.0, 1.0]).tolist() == [0.5, 1.0]
    assert weights(Window(np.int64(1)), [1.0, 1.0]).tolist() == [0.0, 1.0]
