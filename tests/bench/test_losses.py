"""Losses are those of scikit-learn and of the families; predictions are clipped by the responses before."""

import numpy as np
import pytest
from sklearn.metrics import log_loss, mean_poisson_deviance

from streamlasso.bench.losses import BURN_IN, clipped, half_deviance, mean_loss
from streamlasso.families import Binomial, Gaussian, Poisson

FAMILIES = {"gaussian": Gaussian(), "binomial": Binomial(), "poisson": Poisson()}


@pytest.mark.parametrize("family", FAMILIES)
def test_half_deviance_is_the_family_loss_less_that_of_a_perfect_prediction(family):
    rng = np.random.default_rng(1)
    eta = rng.normal(size=30)
    y = FAMILIES[family].sample(rng, eta)
    link = {"gaussian": lambda m: m, "binomial": lambda m: np.log(m / (1 - m)), "poisson": np.log}[family]
    near = {"binomial": np.clip(y, 1e-12, 1 - 1e-12), "poisson": np.maximum(y, 1e-12)}.get(family, y)
    excess = FAMILIES[family].loss(y, eta) - FAMILIES[family].loss(y, link(near))
    np.testing.assert_allclose(half_deviance(family, y, FAMILIES[family].mean(eta)), excess, atol=1e-9)


def test_losses_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    y, rate = rng.poisson(4.0, 90).astype(float), rng.uniform(1, 6, 90)
    y[0] = 20
    assert mean_loss("poisson", y, rate) == pytest.approx(mean_poisson_deviance(y[BURN_IN:], rate[BURN_IN:]))
    label, share = (y > 4).astype(float), rng.uniform(0.1, 0.9, 90)
    assert mean_loss("binomial", label, share) == pytest.approx(log_loss(label[BURN_IN:], share[BURN_IN:]))


def test_predictions_are_clipped_by_what_was_seen_before():
    y = np.array([1.0, 3.0, 100.0, 0.0])
    np.testing.assert_array_equal(clipped("gaussian", y, np.full(4, 1e9)), [0, 1, 4, 149.5])
    np.testing.assert_array_equal(clipped("gaussian", y, np.full(4, -np.inf)), [0, 1, 0, -48.5])
    np.testing.assert_array_equal(clipped("poisson", y, np.full(4, np.inf)), [1, 3, 7, 201])
    np.testing.assert_array_equal(clipped("poisson", y, np.zeros(4)), np.full(4, 0.1))
    np.testing.assert_array_equal(clipped("binomial", y > 2, np.array([0, 0.5, 1, 2])), [1e-4, 0.5, 1 - 1e-4, 1 - 1e-4])
