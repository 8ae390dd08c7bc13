"""The test by circular shifts: as documented, fair where there is nothing, and it finds what is there."""

import numpy as np
import pytest
from scipy import stats

from streamlasso.reproduce.fmri import least_p
from streamlasso.reproduce.shifts import ALPHA, certainty_of, contrast, detrended, p_value, shifted, unit_effect

N = 150
#: Five blocks, as in the study: neutral, emotion, neutral, ...
DESIGN = np.zeros(N)
for k in range(5):
    DESIGN[10 + 28 * k : 33 + 28 * k] = (-1, 1)[k % 2]


def wandering(rng, n_series, rho=0.9):
    """Slow series without a beginning: all their circular shifts are equally likely."""
    spectrum = 1 / np.abs(1 - rho * np.exp(-2j * np.pi * np.fft.fftfreq(N))) ** 2
    noise = np.fft.ifft(np.fft.fft(rng.normal(size=(n_series, N))) * np.sqrt(spectrum)).real
    return noise / noise.std()


def by_hand(series, effect=0.0):
    """Contrasts of all shifts by loops, of the series without an effect in its blocks."""
    trend = np.arange(N) - (N - 1) / 2
    rest = np.array(series) - effect * DESIGN / 2
    rest = rest - trend * (rest @ trend) / (trend @ trend)
    found = []
    for k in range(N):
        high = [rest[(t + k) % N] for t in range(N) if DESIGN[t] == 1]
        low = [rest[(t + k) % N] for t in range(N) if DESIGN[t] == -1]
        found.append(sum(high) / len(high) - sum(low) / len(low))
    return np.array(found)


def test_shifts_are_those_of_the_obvious_loop():
    series = np.random.default_rng(0).normal(size=N)
    np.testing.assert_allclose(shifted(detrended(series), DESIGN), by_hand(series))


def test_a_series_that_follows_the_design_gets_the_least_p():
    series = 2.0 - DESIGN
    assert contrast(series, DESIGN) == -2.0
    assert p_value(shifted(series, DESIGN)) == least_p(DESIGN) == 1 / N
    assert p_value(shifted(-series, DESIGN)) > 0.9


def test_the_ends_are_where_the_test_turns():
    """Brute force: an effect just inside is not rejected by the one-sided test on that side, one just outside is."""
    rng = np.random.default_rng(1)
    for series in wandering(rng, 5) - 0.8 * DESIGN / 2:
        (found,) = certainty_of(shifted(detrended(series), DESIGN)[:, None], unit_effect(DESIGN))
        assert found.p == found.p_corrected
        for end, sign in ((found.high, 1.0), (found.low, -1.0)):
            for apart, kept in ((-1e-6, True), (1e-6, False)):
                contrasts = sign * by_hand(series, end + sign * apart)
                assert (np.mean(contrasts <= contrasts[0]) > ALPHA) == kept


def test_corrected_ps_are_those_of_the_lowest_contrast():
    rng = np.random.default_rng(2)
    series = wandering(rng, 4)
    contrasts = np.column_stack([by_hand(each) for each in series])
    units = contrasts / contrasts.std(axis=0)
    found = certainty_of(shifted(detrended(series), DESIGN), unit_effect(DESIGN))
    for j, each in enumerate(found):
        assert each.p_corrected == np.mean([min(units[k]) <= units[0, j] for k in range(N)])
        assert (each.high < 0) == (each.p <= ALPHA)


def test_where_there_is_nothing_ps_are_uniform():
    rng = np.random.default_rng(3)
    alone, any_of_three, covered = [], [], []
    for _ in range(300):
        series = wandering(rng, 3)
        found = certainty_of(shifted(series, DESIGN), unit_effect(DESIGN))
        alone.append(found[0].p)
        any_of_three.append(min(each.p_corrected for each in found))
        covered.append(found[0].low <= 0 <= found[0].high)
    assert stats.kstest(alone, "uniform").pvalue > 0.01
    assert stats.kstest(any_of_three, "uniform").pvalue > 0.01
    assert np.mean(covered) == pytest.approx(0.9, abs=0.05)


def test_slow_series_with_a_trend_get_a_fair_test():
    """Not circular any more, and with the trend taken out: p <= .1 about one time in ten."""
    rng = np.random.default_rng(4)
    ps = []
    for _ in range(400):
        noise, series = rng.normal(size=3 * N), np.zeros(3 * N)
        for t in range(1, 3 * N):
            series[t] = 0.9 * series[t - 1] + noise[t]
        ps.append(p_value(shifted(detrended(series[-N:]), DESIGN)))
    for level in (0.1, 0.3, 0.5):
        assert np.mean(np.array(ps) <= level) == pytest.approx(level, abs=0.06)


def test_a_known_effect_is_found_and_covered():
    """One of three series has it: corrected ps find it, and intervals hold what is true."""
    rng = np.random.default_rng(5)
    effects = np.array([-3.0, 0.0, 0.0])
    ps, covered = [], []
    for _ in range(200):
        series = wandering(rng, 3) + effects[:, None] * DESIGN / 2
        found = certainty_of(shifted(detrended(series), DESIGN), unit_effect(DESIGN))
        ps.append(found[0].p_corrected)
        covered.append([each.low <= effect <= each.high for each, effect in zip(found, effects, strict=True)])
    assert np.mean(np.array(ps) <= ALPHA) > 0.8
    np.testing.assert_allclose(np.mean(covered, axis=0), 0.9, atol=0.06)


def test_a_constant_series_says_nothing():
    (found,) = certainty_of(np.zeros((N, 1)), unit_effect(DESIGN))
    assert found.p == found.p_corrected == 1.0
    assert found.low <= 0 <= found.high
