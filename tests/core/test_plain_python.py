"""A family and a tuner written in plain Python do what the built-in ones do, and may raise."""

import numpy as np
import pytest

from oracles.replay import Stream, learner, run, same_bits, violations
from streamlasso import RAPRegressor
from streamlasso.families import Binomial, Family, Gamma, Gaussian, Poisson
from streamlasso.memories import Forgetting, Window
from streamlasso.penalties import L1
from streamlasso.settings import build_learner
from streamlasso.tuners import LARS, SGD, LogRMS, Tuner
from support.plain import PlainBinomial, PlainGamma, PlainGaussian, PlainLARS, PlainLogRMS, PlainPoisson, PlainSGD

BASE = dict(memory=Forgetting(0.97), penalty=L1())


@pytest.mark.parametrize("memory", [Forgetting(0.97), Window(20)], ids=str)
@pytest.mark.parametrize(
    "plain,built_in",
    [
        (PlainGaussian(), Gaussian()),
        (PlainBinomial(), Binomial()),
        (PlainPoisson(), Poisson()),
        (PlainGamma(), Gamma()),
    ],
    ids=str,
)
def test_a_plain_family_equals_the_built_in_one(plain, built_in, memory, make_stream):
    stream = make_stream(built_in, n=50, seed=1)
    setting = dict(memory=memory, penalty=L1(), tuner=LogRMS(), history=100)
    ours, theirs = (run(learner(stream, family=family, **setting), stream) for family in (plain, built_in))
    rows = slice(10, None)  # while all responses are alike, only what is not Gaussian waits
    assert ours.lam[rows] == pytest.approx(theirs.lam[rows], rel=1e-5)
    assert ours.coef[rows] == pytest.approx(theirs.coef[rows], rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(
    "plain,built_in",
    [(PlainSGD(0.01), SGD(0.01)), (PlainLARS(0.01), LARS(0.01)), (PlainLogRMS(), LogRMS())],
    ids=str,
)
def test_a_plain_tuner_equals_the_built_in_one(plain, built_in, make_stream):
    stream = make_stream(Gaussian(), n=80)
    ours, theirs = (run(learner(stream, family=Gaussian(), tuner=tuner, **BASE), stream) for tuner in (plain, built_in))
    assert ours.lam[2:] == pytest.approx(theirs.lam[2:], rel=1e-12)
    assert ours.coef == pytest.approx(theirs.coef, rel=1e-10, abs=1e-12)


def test_what_a_plain_tuner_remembers_is_in_the_state(make_stream):
    stream = make_stream(Gaussian(), n=60)
    setting = dict(family=Gaussian(), tuner=PlainLogRMS(), **BASE)
    through, first, second = (learner(stream, **setting) for _ in range(3))
    run(through, stream)
    run(first, stream.part(0, 30))
    second.restore(first.state())
    run(second, stream.part(30, 60))
    assert same_bits(through.state(), second.state())


def test_a_family_that_is_not_built_in():
    """A fourth power beside the square: convex, and solved like any other."""

    class Quartic(PlainGaussian):
        def loss(self, y, eta):
            return (y - eta) ** 4 / 4 + (y - eta) ** 2 / 2

        def slope(self, y, eta):
            return (eta - y) ** 3 + eta - y

        def curvature(self, y, eta):
            return 3 * (eta - y) ** 2 + 1

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    stream = Stream(X, X @ [1.0, -1.0, 0.0] + 0.3 * rng.normal(size=40))
    setting = dict(family=Quartic(), **BASE)
    result = run(learner(stream, tuner=LogRMS(), **setting), stream)
    for t, _, violation in violations(stream, result, history=64, **setting):
        assert violation <= 1e-7, f"row {t}"


class Trouble(Exception):
    pass


def raising(cls, name, after):
    """The class, whose method raises from its `after`-th call on."""
    method, calls = getattr(cls, name), [0]

    def broken(self, *args):
        calls[0] += 1
        if calls[0] > after:
            raise Trouble(name)
        return method(self, *args)

    return type("Broken" + cls.__name__, (cls,), {name: broken}), calls


@pytest.mark.parametrize("name", ["loss", "slope", "curvature"])
@pytest.mark.parametrize("after", [0, 5, 50, 500])
@pytest.mark.parametrize("batch_size", [1, 7])
def test_a_family_that_raises_leaves_no_trace(name, after, batch_size, make_stream):
    stream = make_stream(Poisson(), n=40, seed=2)
    cls, calls = raising(PlainPoisson, name, 10**9)
    model = learner(stream, family=cls(), tuner=LogRMS(), batch_size=batch_size, **BASE)
    run(model, stream.part(0, 20))
    before, coef = model.state(), model.coef.copy()
    calls[0] = 10**9 - after
    with pytest.raises(Trouble, match=name):
        while True:
            run(model, stream.part(20, 40))
            before, coef = model.state(), model.coef.copy()
    assert same_bits(before, model.state())
    assert (model.coef == coef).all()
    calls[0] = 0
    run(model, stream.part(20, 40))
    assert np.isfinite(model.coef).all()


@pytest.mark.parametrize("after", [0, 1, 13])
def test_a_tuner_that_raises_leaves_no_trace(after, make_stream):
    stream = make_stream(Gaussian(), n=40)
    cls, calls = raising(PlainLogRMS, "update", 10**9)
    model = learner(stream, family=Gaussian(), tuner=cls(), **BASE)
    untouched = learner(stream, family=Gaussian(), tuner=cls(), **BASE)
    run(model, stream.part(0, 20))
    run(untouched, stream.part(0, 20))
    calls[0] = 10**9 - after
    with pytest.raises(Trouble):
        run(model, stream.part(20, 40))
    assert same_bits(untouched.state(), model.state())
    calls[0] = 0
    first, second = run(model, stream.part(20, 40)), run(untouched, stream.part(20, 40))
    assert (first.coef == second.coef).all()


def test_a_half_written_family_is_refused_at_once():
    class Half(Family):
        def loss(self, y, eta):
            return 0.0

    with pytest.raises(TypeError, match="slope"):
        learner(Stream(np.zeros((1, 1)), np.zeros(1)), family=Half(), tuner=LogRMS(), **BASE)


def test_a_built_in_family_is_not_half_replaced():
    class Odd(Gaussian):
        def loss(self, y, eta):
            return 0.0

    with pytest.raises(TypeError, match="loss"):
        learner(Stream(np.zeros((1, 1)), np.zeros(1)), family=Odd(), tuner=LogRMS(), **BASE)


def test_a_tuner_without_a_rule_is_refused():
    rng = np.random.default_rng(0)
    stream = Stream(rng.normal(size=(20, 2)), rng.normal(size=20))
    with pytest.raises(TypeError, match="update"):
        run(learner(stream, family=Gaussian(), tuner=Tuner(), **BASE), stream)


@pytest.mark.parametrize("lam", [float("nan"), float("inf"), -1.0])
def test_a_tuner_that_returns_no_penalty_is_named(lam):
    class Wrong(Tuner):
        clamped = False

        def update(self, *arguments):
            return lam

    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    model = build_learner(2, {**RAPRegressor(tuner=Wrong()).get_params(deep=False)})
    before = model.state()
    with pytest.raises(ValueError, match=r"tuner=Wrong\(\) returned lam="):
        model.learn(X, X[:, 0].copy())
    assert all(np.array_equal(before[name], value) for name, value in model.state().items())
