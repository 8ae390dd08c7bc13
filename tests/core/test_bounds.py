"""What has been seen so far holds features, responses and predictions: bounds.py against ranges written out."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.mixtures import FIRST_ROWS, Row, eta_bounds, mixture, trust, widened
from oracles.replay import Stream, run
from streamlasso import families
from streamlasso.families import Binomial, Family, Gamma, Gaussian, Poisson
from streamlasso.memories import Forgetting
from streamlasso.tuners import Mixture
from support.streams import streams

every_family = pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
CHEAP = dict(tuner=Mixture(powers=(0.0, 0.5), factors=(), runs=0))


def assert_bounds(model, before, after, x, y, weight):
    """The bounds after the row are those of the oracle, from those before it."""
    features, response = Row(model, before, x, y, weight).bounds()
    assert after["bounds/features"] == pytest.approx(features, rel=1e-12)
    assert after["bounds/response"] == pytest.approx(response, rel=1e-7, abs=1e-7)


@every_family
def test_every_row_moves_the_bounds_as_the_rule_says(family, make_stream):
    stream = make_stream(family, n=70, seed=2)
    stream.X[30, 1] = 50.0
    stream.X[45:, 2] += 20.0
    stream.y[50] *= 1.0 if type(family) is Binomial else 40.0
    model = mixture(stream, family=family, **CHEAP)
    for t in range(70):
        before = model.state()
        run(model, stream.part(t, t + 1))
        assert_bounds(model, before, model.state(), stream.X[t], stream.y[t], 1.0)


@given(st.data())
def test_any_stream_moves_the_bounds_as_the_rule_says(data):
    family = data.draw(st.sampled_from(families.EXAMPLES), "family")
    stream = data.draw(streams(family, weightings=("none", "zeros")), "stream")
    model = mixture(stream, family=family, **CHEAP)
    for t in range(len(stream)):
        before = model.state()
        run(model, stream.part(t, t + 1))
        if stream.weight[t] > 0:
            assert_bounds(model, before, model.state(), stream.X[t], stream.y[t], stream.weight[t])
        else:
            assert np.array_equal(before["bounds/features"], model.state()["bounds/features"])


# --- the rules by hand ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "y_low", "y_high", "n", "low", "high"),
    [
        (Gaussian(), -1.0, 3.0, 20, -3.0, 5.0),
        (Gaussian(), 7.0, 7.0, 1, 7.0, 7.0),
        (Poisson(), 2.0, 4.0, 20, 0.0, math.log(5.0)),
        (Poisson(), 1.0, 9.0, 20, math.log(0.5), math.log(13.0)),
        (Poisson(), 0.0, 8.0, 15, math.log(8 / 32), math.log(12.0)),
        (Poisson(), 0.0, 0.0, 3, math.log(1 / 8), math.log(1 / 8)),
        (Gamma(), 0.5, 2.5, 9, math.log(0.25), math.log(3.5)),
        (Binomial(), 0.0, 1.0, 31, math.log(1 / 63), math.log(63)),
        (Binomial(), 0.4, 0.6, 31, math.log(0.3 / 0.7), math.log(0.7 / 0.3)),
        (Binomial(), 0.1, 0.5, 31, math.log(0.05 / 0.95), math.log(0.7 / 0.3)),
        (Binomial(), 1.0, 1.0, 7, math.log(15), math.log(15)),
    ],
    ids=str,
)
def test_the_oracles_bounds_of_eta_by_hand(family, y_low, y_high, n, low, high):
    assert eta_bounds(family, y_low, y_high, n) == pytest.approx((low, high))


def test_the_oracles_trust_by_hand():
    low, high = np.array([0.0, -1.0]), np.array([2.0, 1.0])
    assert trust(np.array([1.0, 0.0]), low, high) == 1
    assert trust(np.array([3.0, 2.0]), low, high) == 1
    assert trust(np.array([5.0, 0.0]), low, high) == pytest.approx(1 / 2)
    assert trust(np.array([5.0, -8.0]), low, high) == pytest.approx(1 / 4)
    assert trust(np.array([5.0]), np.array([1.0]), np.array([1.0])) == 1


# --- what is learnt of a wild value -----------------------------------------------------------------------------------


def calm(family, n=40, seed=0):
    """Rows from a box: none is ever beyond the bounds once ten are seen."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 3))
    X[:2] = [[-1.0] * 3, [1.0] * 3]
    y = family.sample(rng, 0.5 * X[:, 0])
    return Stream(X, y)


@every_family
@pytest.mark.parametrize("value", [2.5, 40.0, 1e9, -1e9])
def test_a_wild_feature_is_learnt_as_its_bound_with_less_weight(family, value):
    """The same model results from the value at its bound, weighed by how far away it was."""
    stream = calm(family)
    wild, held = calm(family), calm(family)
    low, high = stream.X[:30].min(axis=0)[1], stream.X[:30].max(axis=0)[1]
    wild.X[30, 1] = value
    held.X[30, 1] = np.clip(value, *widened(low, high))
    held.a = np.ones(40)
    held.a[30] = trust(np.array([value]), np.array([low]), np.array([high]))
    one, other = (run(mixture(s, family=family), s) for s in (wild, held))
    assert one.coef == pytest.approx(other.coef, rel=1e-8, abs=1e-10)


def test_a_wild_response_is_learnt_as_its_bound_with_less_weight():
    stream = calm(Gaussian())
    wild, held = calm(Gaussian()), calm(Gaussian())
    low, high = stream.y[:30].min(), stream.y[:30].max()
    wild.y[30] = 1e6
    held.y[30] = widened(low, high)[1]
    held.a = np.ones(40)
    held.a[30] = trust(np.array([1e6]), np.array([low]), np.array([high]))
    one, other = (run(mixture(s, family=Gaussian()), s) for s in (wild, held))
    assert one.coef == pytest.approx(other.coef, rel=1e-8, abs=1e-10)
    assert one.loss[30] > other.loss[30]  # the loss that is noted is that of the response as it came


def test_in_the_first_rows_everything_is_trusted():
    stream = calm(Gaussian(), n=30)
    stream.X[FIRST_ROWS - 1, 0] = 1e4
    model = mixture(stream, family=Gaussian(), **CHEAP)
    run(model, stream.part(0, FIRST_ROWS))
    assert model.state()["bounds/features"][1, 0] == 1e4


def test_a_feature_that_was_constant_is_trusted_whatever_its_value():
    stream = calm(Gaussian(), n=40)
    stream.X[:30, 2] = 5.0
    stream.X[30, 2] = 1e7
    model = mixture(stream, family=Gaussian(), **CHEAP)
    run(model, stream.part(0, 31))
    assert model.state()["bounds/features"][:, 2].tolist() == [5.0, 1e7]


def test_a_world_that_moved_is_followed_within_a_few_rows():
    """The range grows by half of itself a row: a thousand times as far takes log(1000)/log(1.5) rows."""
    stream = calm(Gaussian(), n=60)
    stream.X[30:, 0] = 1000.0 + stream.X[30:, 0]
    model = mixture(stream, family=Gaussian(), **CHEAP)
    run(model, stream.part(0, 50))
    assert model.state()["bounds/features"][1, 0] == pytest.approx(1000.0, abs=2.0)


# --- predictions ------------------------------------------------------------------------------------------------------


@every_family
def test_no_prediction_leaves_the_widened_range(family):
    stream = calm(family, n=100)
    model = mixture(stream, family=family)
    run(model, stream)
    low, high = model.state()["bounds/response"][2:]
    far = np.random.default_rng(1).normal(size=(200, 3)) * 10.0 ** np.arange(200)[:, None] ** 0.7
    eta = model.decision(np.clip(far, -1e59, 1e59))
    assert np.isfinite(eta).all() and (eta >= low).all() and (eta <= high).all()


@every_family
def test_a_feature_is_predicted_from_as_if_it_were_at_its_bound(family):
    stream = calm(family, n=100)
    model = mixture(stream, family=family)
    run(model, stream)
    low, high = widened(stream.X.min(axis=0), stream.X.max(axis=0))
    rows = np.array([[50.0, 0.3, 0.1], [0.1, -9.0, 1e20], [-3.0, 3.0, -3.0]])
    assert model.decision(rows) == pytest.approx(model.decision(np.clip(rows, low, high)), rel=1e-12)


def test_a_familys_own_mean_is_where_the_bounds_come_from():
    """A link that is not built in: the mean is eta cubed, and has no ends."""

    class Cubic(Family):
        def loss(self, y, eta):
            return eta**4 / 4 - y * eta

        def slope(self, y, eta):
            return eta**3 - y

        def curvature(self, y, eta):
            return 3 * eta**2 + 1e-6

        def mean(self, eta):
            return eta**3

    rng = np.random.default_rng(0)
    stream = Stream(rng.uniform(-1, 1, size=(40, 2)), rng.uniform(-8, 8, size=40))
    model = mixture(stream, family=Cubic(), memory=Forgetting(1.0), tuner=Mixture(powers=(0.0, 0.5)))
    run(model, stream)
    low, high = model.state()["bounds/response"][2:] ** 3
    assert (low, high) == pytest.approx(widened(stream.y.min(), stream.y.max()), rel=1e-9)
