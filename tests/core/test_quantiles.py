"""Quantiles of errors: the steps anew in Python, and the coverage that they promise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, t

from oracles.quantiles import LEVELS, followed
from streamlasso import RAPRegressor, progressive, river
from streamlasso.core.monitor.intervals import Quantiles
from streamlasso.estimators.intervals import Ends
from streamlasso.families import Binomial, Gamma, Gaussian, Poisson
from streamlasso.simulate import simulate
from streamlasso.tuners import Fixed, LogRMS


@pytest.mark.parametrize("family", [Gaussian(), Poisson(), Gamma()], ids=str)
@pytest.mark.parametrize("settings", [{}, {"memory": 0.99, "tuner": LogRMS()}], ids=["default", "one model"])
def test_quantiles_follow_the_errors(family, settings):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 3))
    y = np.maximum(family.sample(rng, 1 + 0.3 * X[:, 0]), 0.0 if type(family) is Poisson else 1e-9)
    model = RAPRegressor(family, **settings)
    mean = progressive(model, X, y)["prediction"]
    after = model.predict(X[:5])
    spread = {Gaussian: np.ones_like, Poisson: np.sqrt, Gamma: np.copy}[type(family)]
    halves = 0.5 / spread(mean) if type(family) is Poisson else np.zeros(160)
    first = 1 if settings else 2  # a mixture predicts its second row by one row alone
    *_, errors = followed(((y - mean) / spread(mean))[first:], halves[first:])
    expected = after[:, None] + spread(after)[:, None] * errors
    if type(family) is not Gaussian:
        expected = np.maximum(expected, 0.0)
    # The oracle's integrals over a count are sums of 4,000 points.
    close = dict(rtol=1e-9, atol=1e-9) if type(family) is not Poisson else dict(rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(model.predict_quantiles(X[:5], LEVELS), expected, **close)
    # Where a count of 0 is likely, an interval is not central.
    two_sided = expected[:, 2] > 0 if type(family) is Poisson else np.ones(5, bool)
    assert two_sided.sum() >= 3
    np.testing.assert_allclose(model.predict_interval(X[:5], 0.8)[two_sided], expected[two_sided][:, [3, 7]], **close)


def test_the_first_row_which_nothing_could_predict_says_nothing_of_the_noise():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 2))
    y = 1e6 + rng.normal(size=60)
    for model in (RAPRegressor(), RAPRegressor(tuner=LogRMS(), memory=0.98)):
        low, high = model.partial_fit(X, y).predict_interval(X[:1], 0.9)[0]
        assert 1.5 < high - low < 8


def test_walking_is_saying_and_seeing_in_turn():
    rng = np.random.default_rng(4)
    for family in (Gaussian(), Poisson(), Gamma()):
        eta = rng.normal(size=150)
        y = family.sample(rng, eta)
        y[::7] = np.nan
        walked, one = Quantiles(family).walk(y, eta, [0.1, 0.5, 0.9]), Quantiles(family)
        for i in range(150):
            np.testing.assert_array_equal(one.around(eta[i : i + 1], [0.1, 0.5, 0.9])[0], walked[i])
            one.walk(y[i : i + 1], eta[i : i + 1], [])


@pytest.mark.parametrize("mean", [0.5, 1.0, 3.0, 10.0])
def test_counts_of_a_small_mean_are_covered_as_often_as_asked_for(mean):
    """Where the mean varies; of one mean alone no interval need have the share."""
    rng = np.random.default_rng(5)
    eta = np.log(mean) + 0.5 * rng.normal(size=8000)
    y = rng.poisson(np.exp(eta)).astype(float)
    for coverage in (0.8, 0.9, 0.95):
        quantiles = Quantiles(Poisson())
        ends = Ends(quantiles, coverage)
        low, high = ends.of(quantiles.walk(y, eta, ends.levels))[100:].T
        assert np.mean((low <= y[100:]) & (y[100:] <= high)) == pytest.approx(coverage, abs=0.015)


@given(
    st.sampled_from([Gaussian(), Poisson(), Gamma()]),
    st.integers(0, 300),
    st.floats(-2.0, 3.0),
    st.integers(0, 2**32 - 1),
    st.lists(st.floats(0.001, 0.999), min_size=2, max_size=6),
)
def test_an_interval_lies_inside_those_of_larger_coverage(family, n, level, seed, coverages):
    """From the first row on, also where predictions are biased and the lowest count is likely."""
    rng = np.random.default_rng(seed)
    eta = level + 0.5 * rng.normal(size=n + 5)
    quantiles = Quantiles(family)
    quantiles.walk(family.sample(rng, eta + rng.normal())[:n], eta[:n], [])
    ends = [Ends(quantiles, coverage) for coverage in sorted(coverages)]
    low, high = np.array([each.of(quantiles.around(eta[n:], each.levels)) for each in ends]).T
    rounding = 1e-12 * np.maximum(1.0, np.abs(np.where(np.isfinite(high), high, 0.0)).max())
    assert np.all(low[:, 1:] <= low[:, :-1] + rounding) and np.all(high[:, 1:] >= high[:, :-1] - rounding)
    assert np.all(low <= high)


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
    assert t.ppf(0.95, 2) / norm.ppf(0.95) > 1.3


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


@pytest.mark.parametrize(("factor", "rows"), [(1e-3, 70), (1e-6, 80)])
def test_intervals_are_narrow_again_soon_after_the_noise_falls(factor, rows):
    """A mean of squares that fades by .98 would need 700 and 1,400 rows."""
    rng = np.random.default_rng(0)
    errors = rng.normal(size=600) * np.where(np.arange(600) < 300, 1.0, factor)
    walked = Quantiles(Gaussian()).walk(errors, np.zeros(600), LEVELS)
    np.testing.assert_allclose(walked[100:], np.array(list(followed(errors)))[100:-1], rtol=1e-7, atol=1e-12)
    width = walked[:, 8] - walked[:, 2]
    assert 2.5 < np.median(width[100:300]) < 4.5
    assert 2.5 < np.median(width[300 + rows :]) / factor < 4.5
    assert width[300 + rows] / factor < 8


@pytest.mark.parametrize("seed", range(3))
def test_intervals_are_narrow_again_100_rows_after_a_jump_of_a_hundred(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(700, 5))
    y = X[:, 0] + rng.normal(size=700) + 100 * (np.arange(700) >= 500)
    model, width = RAPRegressor().fit(X[:500], y[:500]), []
    for row in range(500, 700):
        low, high = model.predict_interval(X[row : row + 1], 0.9)[0]
        width.append(high - low)
        model.partial_fit(X[row : row + 1], y[row : row + 1])
    assert max(width[100:]) < 15 and width[0] < 5


@pytest.mark.parametrize("noise", ["normal", "t2", "Laplace"])
def test_noise_that_does_not_fall_starts_nothing_again(noise):
    rng = np.random.default_rng(0)
    errors = {
        "normal": rng.normal(size=100000),
        "t2": rng.standard_t(2, size=100000),
        "Laplace": rng.laplace(size=100000),
    }[noise]
    quantiles, weights = Quantiles(Gaussian()), []
    for start in range(0, 100000, 20):
        quantiles.walk(errors[start : start + 20], np.zeros(20), [])
        weights.append(quantiles.weight)
    assert min(weights[20:]) > 49.9
