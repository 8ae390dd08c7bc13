"""The simulated stream has the distribution that the paper states."""

from itertools import pairwise

import numpy as np
import pytest

from streamlasso.families import Binomial, Gaussian
from streamlasso.simulate import simulate


@pytest.fixture(scope="module")
def long():
    return simulate(0, n_features=20, lengths=(20_000, 20_000), densities=(0.8, 0.2))


def test_features_are_five_equal_blocks_of_correlation_point_eight(long):
    for regime in (0, 1):
        covariance = np.cov(long.X[long.regime == regime], rowvar=False)
        together = covariance > 0.4
        assert (together.sum(axis=1) == 4).all()
        assert len(np.unique(together, axis=0)) == 5
        truth = np.where(together, 0.8, 0.0)
        np.fill_diagonal(truth, 1.0)
        np.testing.assert_allclose(covariance, truth, atol=0.05)


def test_blocks_are_dealt_anew_in_each_regime(long):
    blocks = [np.cov(long.X[long.regime == regime], rowvar=False) > 0.4 for regime in (0, 1)]
    assert not np.array_equal(*blocks)


def test_coefficients_are_sparse_as_asked_and_constant_within_a_regime(long):
    assert np.count_nonzero(long.beta[0]) == 16
    assert np.count_nonzero(long.beta[-1]) == 4
    assert (long.beta[:20_000] == long.beta[0]).all()
    assert (long.beta[20_000:] == long.beta[-1]).all()
    assert long.changes.tolist() == [20_000]


def test_coefficients_are_standard_normal_where_they_are_not_zero():
    stream = simulate(1, lengths=(1,) * 400, densities=(0.5,) * 400)
    values = stream.beta[stream.beta != 0]
    assert len(values) == 400 * 10
    assert abs(values.mean()) < 0.06
    assert abs(values.std() - 1) < 0.04
    assert (np.abs((stream.beta != 0).mean(axis=0) - 0.5) < 0.12).all()


def test_gaussian_responses_have_unit_noise_around_the_truth(long):
    noise = long.y - np.sum(long.X * long.beta, axis=1)
    assert abs(noise.mean()) < 0.02
    assert abs(noise.std() - 1) < 0.02
    np.testing.assert_allclose(long.floor, noise**2 / 2)


def test_binomial_responses_have_the_probability_of_the_truth():
    stream = simulate(0, lengths=(40_000,), densities=(0.2,), family=Binomial())
    p = 1 / (1 + np.exp(-np.sum(stream.X * stream.beta, axis=1)))
    assert set(np.unique(stream.y)) == {0.0, 1.0}
    edges = np.quantile(p, np.linspace(0, 1, 11))
    for low, high in pairwise(edges):
        rows = (p >= low) & (p <= high)
        assert abs(stream.y[rows].mean() - p[rows].mean()) < 0.03


def test_default_is_the_papers_stream():
    stream = simulate(5)
    assert stream.X.shape == (300, 20)
    assert [np.count_nonzero(stream.beta[t]) for t in (0, 99, 100, 199, 200, 299)] == [16, 16, 4, 4, 16, 16]
    assert isinstance(stream.family, Gaussian)


def test_a_seed_gives_one_stream_and_a_generator_the_next():
    assert (simulate(3).X == simulate(3).X).all()
    rng = np.random.default_rng(3)
    first, second = simulate(rng), simulate(rng)
    assert (first.y == simulate(3).y).all()
    assert not (first.y == second.y).all()


def test_blocks_of_unequal_size_differ_by_one():
    covariance = np.cov(simulate(0, n_features=12, lengths=(20_000,), densities=(1.0,)).X, rowvar=False)
    assert set((covariance > 0.4).sum(axis=1)) == {2, 3}
