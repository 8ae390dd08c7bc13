"""Every family: its loss is what it says, slope and curvature are its derivatives, and its draws have its mean."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from streamlasso import families
from streamlasso.families import Binomial, Family, Gamma, Gaussian, Poisson

every_family = pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
etas = st.floats(-6, 6)

#: The same families as scipy has them, with the natural parameterisation of docs/method.md, section 1.
LOG_LIKELIHOOD = {
    Gaussian: lambda y, eta: stats.norm.logpdf(y, loc=eta),
    Binomial: lambda y, eta: stats.bernoulli.logpmf(y, 1 / (1 + np.exp(-eta))),
    Poisson: lambda y, eta: stats.poisson.logpmf(y, np.exp(eta)),
    Gamma: lambda y, eta: stats.expon.logpdf(y, scale=np.exp(eta)),
}


def responses(family, n=40):
    return family.sample(np.random.default_rng(0), np.linspace(-2, 2, n))


def test_every_family_is_exported():
    built_in = {getattr(families, name) for name in families.__all__} - {Family}
    assert {type(family) for family in families.EXAMPLES} == built_in


@pytest.mark.parametrize("family", [cls() for cls in LOG_LIKELIHOOD], ids=str)
@given(etas, etas)
def test_the_loss_is_the_negative_log_likelihood_up_to_a_constant(family, eta, other):
    for y in responses(family, 5):
        likelihood = LOG_LIKELIHOOD[type(family)]
        expected = likelihood(y, other) - likelihood(y, eta)
        assert family.loss(y, eta) - family.loss(y, other) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@every_family
@given(etas)
def test_slope_and_curvature_are_derivatives(family, eta):
    h = 1e-5
    for y in responses(family, 5):
        scale = 1 + abs(family.slope(y, eta)) + family.curvature(y, eta)
        slope = (family.loss(y, eta + h) - family.loss(y, eta - h)) / (2 * h)
        curvature = (family.slope(y, eta + h) - family.slope(y, eta - h)) / (2 * h)
        assert family.slope(y, eta) == pytest.approx(slope, abs=1e-6 * scale)
        assert family.curvature(y, eta) == pytest.approx(curvature, abs=1e-6 * scale)


@every_family
@given(etas)
def test_the_loss_is_convex(family, eta):
    assert (family.curvature(responses(family), eta) >= 0).all()


@every_family
@given(st.floats(-3, 3))
def test_the_mean_minimises_the_expected_loss(family, eta):
    """The slope is linear in y for all of these, so at y = mean(eta) it is 0."""
    assert family.slope(family.mean(eta), eta) == pytest.approx(0.0, abs=1e-9)


@every_family
def test_draws_have_the_mean_and_repeat(family):
    for eta in (-1.0, 0.0, 1.0):
        y = family.sample(np.random.default_rng(1), np.full(20_000, eta))
        assert y.dtype == float
        assert y.mean() == pytest.approx(family.mean(eta), abs=5 * y.std() / np.sqrt(20_000))
        assert (y == family.sample(np.random.default_rng(1), np.full(20_000, eta))).all()


@every_family
def test_its_own_draws_are_accepted(family):
    assert family.check_target(responses(family)) is None


@pytest.mark.parametrize(
    "family,y",
    [(Binomial(), -0.1), (Binomial(), 2.0), (Poisson(), -1.0), (Gamma(), -1.0), (Gamma(), 0.0)],
    ids=str,
)
def test_impossible_responses_are_named(family, y):
    words = family.check_target(np.array([0.5, y]))
    assert isinstance(words, str) and words


@every_family
@pytest.mark.parametrize("eta", [-700.0, -40.0, 40.0, 700.0])
def test_far_out_it_stays_a_number(family, eta):
    for y in responses(family, 5):
        for value in (family.loss(y, eta), family.slope(y, eta), family.curvature(y, eta), family.mean(eta)):
            assert not np.isnan(value)


@every_family
def test_arrays_and_numbers_agree(family):
    y, eta = responses(family, 6), np.linspace(-2, 2, 6)
    for name in ("loss", "slope", "curvature"):
        method = getattr(family, name)
        assert method(y, eta) == pytest.approx([method(a, b) for a, b in zip(y, eta, strict=True)], rel=1e-15)
        assert method(y.reshape(2, 3), eta.reshape(2, 3)).shape == (2, 3)
    assert family.mean(eta) == pytest.approx([family.mean(e) for e in eta], rel=1e-15)


@every_family
def test_it_is_a_value(family):
    copy = pickle.loads(pickle.dumps(family))
    assert copy == family and hash(copy) == hash(family) and repr(copy) == repr(family)
    assert eval(repr(family), vars(families)) == family
