"""What the last residuals add: against least squares over all rows, on streams whose errors come in runs or do not."""

import numpy as np
import pytest

from oracles.calibration import calibrated
from oracles.carry import Oracle
from oracles.mixtures import mixture
from oracles.replay import Stream, run, same_bits
from streamlasso import RAPClassifier, RAPRegressor, families, progressive, river
from streamlasso.families import Binomial, Gaussian, Poisson
from streamlasso.memories import Forgetting
from streamlasso.tuners import Mixture

every_family = pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
CARRIED, OWN = (Mixture(powers=(0.0, 0.5), factors=(), runs=0, carry=carry) for carry in (True, False))
#: One group, of one expert.
ALONE = [dict(memory=Forgetting(1.0), tuner=Mixture(powers=(0.5,), carry=carry)) for carry in (True, False)]


def drifting(family, n=150, seed=0, correlation=0.95):
    """An intercept that wanders: what is missing from the features changes slowly."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 3))
    level = np.zeros(n)
    for t in range(1, n):
        level[t] = correlation * level[t - 1] + rng.normal(scale=0.4)
    y = np.maximum(family.sample(rng, 0.5 * X[:, 0] + level), 0.01 if family.name == "gamma" else -np.inf)
    # The extremes first, so that no value is ever beyond its bounds.
    X[:8] = np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, 8).T
    y[:2] = y.min(), y.max()
    return Stream(X, y)


@every_family
def test_the_prediction_is_its_own_and_the_offset_of_the_oracle(family):
    """The mixture's own eta is that of the same mixture without a carry, which the residuals do not touch. Classes are
    calibrated after that."""
    stream = drifting(family)
    carried, own = (mixture(stream, family=family, **setting) for setting in ALONE)
    other, again = run(own, stream), mixture(stream, family=family, **ALONE[0])
    one = run(carried, stream)
    oracle, expected = Oracle(family), []
    for t in range(len(stream)):
        low, high = bounds_before(stream, family, t)
        expected.append(min(max(other.eta[t] + oracle.offset(other.eta[t]), low), high))
        run(again, stream.part(t, t + 1))
        if t > 1:
            phi = again.state()["dispersion"][0]
            oracle.learn(stream.y[t], other.eta[t], least_loss(family, stream.y[t], low, high), phi)
    if family.name == "binomial":
        lines = np.array([(0.0, 1.0), (0.0, 1.0), *calibrated(np.array(expected[2:]), stream.y[2:])])[:-1]
        expected = lines[:, 0] + lines[:, 1] * expected
    np.testing.assert_allclose(one.eta, expected, rtol=1e-7, atol=1e-9)


def bounds_before(stream, family, t):
    """Of eta, before row t."""
    model = mixture(stream, family=family, **ALONE[1])
    run(model, stream.part(0, t))
    return model.state()["bounds/response"][2:]


def least_loss(family, y, low, high):
    """Within the bounds of eta; a perfect prediction where these do not matter."""
    return float(np.min(family.loss(y, np.linspace(max(low, -50), min(high, 50), 200_001))))


@every_family
def test_errors_that_come_in_runs_are_carried_on(family):
    stream = drifting(family, n=800, seed=2)
    one, other = (run(mixture(stream, family=family, tuner=tuner), stream).loss for tuner in (CARRIED, OWN))
    least = family.least_loss(stream.y)
    assert (one - least)[50:].mean() < 0.97 * (other - least)[50:].mean()


@every_family
@pytest.mark.parametrize("seed", range(3))
def test_where_residuals_say_nothing_the_gate_stays_closed(family, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(800, 3))
    y = np.maximum(family.sample(rng, 0.5 * X[:, 0]), 1e-9 if family.name == "gamma" else -np.inf)
    stream = Stream(X, y)
    one, other = (run(mixture(stream, family=family, tuner=tuner), stream).loss for tuner in (CARRIED, OWN))
    least = family.least_loss(y)
    assert (one - least)[50:].mean() < 1.005 * (other - least)[50:].mean()


@every_family
def test_the_model_says_what_the_next_row_gets(family):
    """`coef` and `intercept` have the offset in them."""
    stream = drifting(family, n=300)
    model = mixture(stream, family=family, tuner=CARRIED)
    exact = 0
    for t in range(100, 300):
        run(model, stream.part(100 if t == 100 else t, t + 1) if t > 100 else stream.part(0, 101))
        x = stream.X[(t + 1) % 300]
        exact += model.decision(x[None])[0] == pytest.approx(model.intercept + x @ model.coef, rel=1e-9, abs=1e-12)
    assert exact > 150


def test_further_ahead_the_offset_fades():
    """Over many rows with the same features the offset goes to where its own autoregression goes."""
    stream = drifting(Gaussian(), n=400, seed=4)
    carried, own = (mixture(stream, family=Gaussian(), **setting) for setting in ALONE)
    run(carried, stream), run(own, stream)
    X = np.repeat(stream.X[:1], 600, axis=0)
    offset = carried.decision(X) - own.decision(X)
    assert abs(offset[0]) > 0.05
    assert np.all(np.abs(np.diff(offset[50:])) <= np.abs(np.diff(offset[:-50])) + 1e-3)
    assert abs(offset[-1] - offset[-2]) < 1e-3 * abs(offset[0])


def test_rows_of_a_mini_batch_have_no_fresh_residual():
    stream = drifting(Gaussian(), n=120)
    model = mixture(stream, family=Gaussian(), tuner=CARRIED, batch_size=6)
    run(model, stream.part(0, 114))
    expected = model.decision(stream.X[114:])
    assert run(model, stream.part(114, 120)).eta == pytest.approx(expected, rel=1e-12)


@every_family
def test_it_goes_on_to_the_bit(family):
    stream = drifting(family, n=160)
    whole, parts = (mixture(stream, family=family, tuner=Mixture()) for _ in range(2))
    run(whole, stream)
    run(parts, stream.part(0, 80))
    again = mixture(stream, family=family, tuner=Mixture())
    again.restore(parts.state())
    run(again, stream.part(80, 160))
    assert same_bits(whole.state(), again.state())


def test_classes_exchanged_are_the_same_model():
    stream = drifting(Binomial(), n=200)
    model = mixture(stream, family=Binomial(), tuner=CARRIED)
    run(model, stream)
    X = stream.X[:5]
    assert model.mirrored().decision(X) == pytest.approx(-model.decision(X), rel=1e-9)


def test_no_intercept_no_offset():
    stream = drifting(Gaussian())
    one, other = (
        run(mixture(stream, family=Gaussian(), tuner=tuner, fit_intercept=False), stream) for tuner in (CARRIED, OWN)
    )
    assert (one.eta == other.eta).all()


@pytest.mark.parametrize("size", [1e3, 1e9])
def test_one_outlier_does_not_move_the_predictions_after_it(size):
    stream = drifting(Gaussian(), n=300, seed=5)
    wild = Stream(stream.X, stream.y.copy())
    wild.y[200] += size
    calm, moved = (run(mixture(s, family=Gaussian(), tuner=CARRIED), s).eta[201:] for s in (stream, wild))
    assert np.abs(calm - moved).max() < 6 * stream.y.std()
    assert np.abs(calm - moved)[20:].mean() < 0.5 * stream.y.std()


def test_all_faces_carry():
    stream = drifting(Poisson(), n=200)
    trace = progressive(RAPRegressor(family="poisson"), stream.X, stream.y)
    model, predicted = river.RAPRegressor(family="poisson"), []
    for x, y in zip(stream.X, stream.y, strict=True):
        row = dict(zip("abc", x, strict=True))
        predicted.append(model.predict_one(row))
        model.learn_one(row, y)
    assert predicted == pytest.approx(trace.prediction, rel=1e-12)
    assert RAPClassifier(tuner=Mixture(carry=False)).get_params()["tuner"].carry is False


def test_constant_and_perfect_responses():
    """No residual at all: nothing to carry, and nothing that is not a number."""
    X = np.random.default_rng(0).normal(size=(100, 2))
    for y in (np.full(100, 3.0), X[:, 0]):
        model = RAPRegressor()
        trace = progressive(model, X, y)
        assert np.isfinite(trace.prediction).all() and np.isfinite(model.coef_).all()
