"""Quantiles of errors by the rule of `core/monitor/intervals.py`, slowly."""

import numpy as np
from scipy.stats import norm, t

LEVELS = np.array([0.005, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.995])
RATES = np.array([0.003, 0.01, 0.03, 0.1])
SHARE = 0.001


def followed(errors, halves=None):
    """Quantiles of the next error before each error, then after the last; `halves` is half the distance of two values
    that an error can have, 0 for any number. An integral over that distance is a mean over many points of it."""
    q, w, square, weight = np.tile(norm.ppf(LEVELS)[:, None], (1, 4)), np.full(4, 0.25), 0.0, 0.0
    ratios = []
    points = (np.arange(4000) + 0.5) / 4000 * 2 - 1
    for error, half in zip(errors, np.zeros(len(errors)) if halves is None else halves, strict=True):
        yield said(q, w, square)
        if square > 0:
            z = np.clip(error / np.sqrt(square), -20, 20)
            where = z + (points if half > 0 else np.zeros(1)) * half / np.sqrt(square)
            below = (where <= q[:, :, None]).mean(axis=2)
            step = LEVELS[:, None, None] - (where <= q[:, :, None])
            w = w * np.exp(-((where - q[:, :, None]) * step).mean(axis=(0, 2)))
            w = (1 - SHARE) * w / w.sum() + SHARE / 4
            q = q + RATES * (LEVELS[:, None] - below)
        counted = min(error**2, 25 * square) if square > 0 else error**2
        if square > 0 and error != 0:
            ratios.append(max(np.log(counted / square), -6.9))
        weight = 0.98 * weight + 1
        square += (counted - square) / weight
        fading = 0.1 * 0.9 ** np.arange(len(ratios))[::-1]
        log_ratio = -1.27 * (1 - fading.sum()) + fading @ np.array(ratios)
        if log_ratio < -1.27 - np.log(50):
            square, weight, ratios = square * np.exp(log_ratio + 1.27), 5.0, []
            q = np.tile(q[:, :1], (1, 4))
    yield said(q, w, square)


def said(q, w, square):
    """Rates are weighed by their weights less twice what leaks back per row."""
    used = np.maximum(w - 2 * SHARE / 4, 0)
    return np.sqrt(square) * np.maximum.accumulate(q @ used / used.sum())


def wider(n, level):
    """After n errors, as Student's t is wider than the normal distribution."""
    return t.ppf(level, n - 1) / norm.ppf(level) if n < 100 and level != 0.5 else 1.0
