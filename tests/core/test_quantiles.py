"""Quantiles of errors: the steps anew in Python, and the coverage that they promise."""

import numpy as np
import pytest
from scipy.stats import norm, t

from streamlasso import RAPRegressor, progressive, river
from streamlasso.families import Binomial, Gamma, Gaussian, Poisson
from streamlasso.simulate import simulate
from streamlasso.tuners import Fixed, LogRMS

LEVELS = np.array([0.005, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.995])
RATES = np.array([0.003, 0.01, 0.03, 0.1])


def followed(errors):
    """Quantiles of the next error after each, by the rule of `core/quantiles.py`."""
    q, losses, square, weight = np.tile(norm.ppf(LEVELS)[:, None], (1, 4)), np.zeros((11, 4)), 0.0, 0.0
    for error in errors:
        if square > 0:
            z = np.clip(error / np.sqrt(square), -20, 20)
            step = LEVELS[:, None] - (z <= q)
            losses = 0.99 * losses + (z - q) * step
            q = q + RATES * step
        weight = 0.98 * weight + 1
        square += ((min(error**2, 25 * square) if square > 0 else error**2) - square) / weight
        share = np.exp(-5 * (losses - losses.min(axis=1, keepdims=True)))
        yield np.sqrt(square) * np.maximum.accumulate((share * q).sum(axis=1) / share.sum(axis=1))


@pytest.mark.parametrize("family", [Gaussian(), Poisson(), Gamma()], ids=str)
@pytest.mark.parametrize("settings", [{}, {"memory": 0.99, "tuner": LogRMS()}], ids=["default", "one model"])
def test_quantiles_follow_the_errors(family, settings):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 3))
    y = np.maximum(family.sample(rng, 1 + 0.3 * X[:, 0]), 1e-9)
    model = RAPRegressor(family, **settings)
    mean = progressive(model, X, y)["prediction"]
    spread = {"Gaussian": np.ones(160), "Poisson": np.sqrt(mean), "Gamma": mean}[type(family).__name__]
    *_, errors = followed((y - mean) / spread)
    after = model.predict(X[:5])
    at = {"Gaussian": np.ones(5), "Poisson": np.sqrt(after), "Gamma": after}[type(family).__name__]
    expected = after[:, None] + at[:, None] * errors
    if type(family) is not Gaussian:
        expected = np.maximum(expected, 0.0)
    np.testing.assert_allclose(model.predict_quantiles(X[:5], LEVELS), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.predict_interval(X[:5], 0.8), expected[:, [3, 7]], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("noise", ["normal", "t2", "skewed", "doubling"])
def test_the_share_inside_is_what_was_asked_for(noise):
    """Overall within 1.5 points, and from 85 to 95 % in every stretch of 500 rows."""
    rng = np.random.default_rng(1)
    stream = simulate(rng, lengths=[500] * 8, densities=[0.2] * 8)
    n = len(stream.y)
    error = {
        "normal": lambda: rng.normal(size=n),
        "t2": lambda: rng.standard_t(2, size=n),
        "skewed": lambda: rng.exponential(size=n),
        "doubling": lambda: rng.normal(size=n) * 2.0 ** (np.arange(n) // 500 % 3),
    }[noise]()
    y = (stream.X * stream.beta).sum(axis=1) + error
    model, inside = RAPRegressor(tuner=LogRMS(), memory=0.98), []
    for start in range(n):
        row = slice(start, start + 1)
        if start:
            low, high = model.predict_interval(stream.X[row], 0.9)[0]
            inside.append(low <= y[start] <= high)
        model.partial_fit(stream.X[row], y[row])
    inside = np.array(inside[49:])
    assert abs(inside.mean() - 0.9) < 0.015
    stretches = [inside[i : i + 500].mean() for i in range(0, len(inside) - 499, 500)]
    assert min(stretches) > 0.85 and max(stretches) < 0.95


def test_few_rows_have_wide_intervals():
    model, X = RAPRegressor(tuner=LogRMS()), np.zeros((1, 2))
    model.partial_fit(X, [1.0])
    assert model.predict_interval(X, 0.9).tolist() == [[-np.inf, np.inf]]
    assert RAPRegressor("poisson").partial_fit(X, [1.0]).predict_interval(X).tolist() == [[0.0, np.inf]]
    model.partial_fit(np.zeros((3, 2)), [2.0, 3.0, 2.0])
    four = np.diff(model.predict_interval(X, 0.9))[0, 0]
    noise = model.learners_[0].state()["errors.noise"][0]
    assert four > 1.2 * 2 * norm.ppf(0.95) * np.sqrt(noise)
    assert t.ppf(0.95, 3) / norm.ppf(0.95) > 1.3


def test_nothing_is_out_of_order_whatever_comes():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 2))
    for y in (np.ones(400), 1e6 * (np.arange(400) == 200), rng.standard_cauchy(size=400) ** 3, 1e50 * X[:, 0]):
        model = RAPRegressor(tuner=Fixed(0.1), memory=0.9)
        for i in range(0, 400, 20):
            model.partial_fit(X[i : i + 20], y[i : i + 20])
            found = model.predict_quantiles(X[:7], np.linspace(0.001, 0.999, 57))
            assert not np.isnan(found).any() and (np.diff(found, axis=1) >= 0).all()
    assert (np.isfinite(found)).all()


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 1.5, np.nan, "90%", None, [0.9], True])
def test_a_coverage_is_a_probability(coverage):
    model = RAPRegressor().fit(np.eye(3), [1.0, 2.0, 3.0])
    with pytest.raises((ValueError, TypeError), match="coverage="):
        model.predict_interval(np.eye(3), coverage)


@pytest.mark.parametrize("levels", [[], [0.5, 0.5], [0.9, 0.1], [0.0], [1.0], [np.nan], [[0.1, 0.9]]])
def test_levels_ascend(levels):
    with pytest.raises(ValueError, match="levels="):
        RAPRegressor().fit(np.eye(3), [1.0, 2.0, 3.0]).predict_quantiles(np.eye(3), levels)


def test_classes_have_no_intervals():
    with pytest.raises(ValueError, match=r"family=Binomial\(\) has no intervals"):
        RAPRegressor(Binomial()).fit(np.eye(3), [1.0, 0.0, 1.0]).predict_interval(np.eye(3))


def test_river_says_the_same():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + rng.normal(size=60)
    one, other = RAPRegressor().partial_fit(X, y), river.RAPRegressor()
    assert other.predict_interval_one({"a": 1.0}) == (-np.inf, np.inf)
    for x, target in zip(X.tolist(), y.tolist(), strict=True):
        other.learn_one(dict(zip("ab", x, strict=True)), target)
    assert other.predict_interval_one({"a": 1.0, "b": 2.0}, 0.8) == pytest.approx(
        tuple(one.predict_interval([[1.0, 2.0]], 0.8)[0])
    )
    assert other.predict_quantiles_one({"a": 1.0, "b": 2.0}, [0.1, 0.5]) == pytest.approx(
        one.predict_quantiles([[1.0, 2.0]], [0.1, 0.5])[0].tolist()
    )
