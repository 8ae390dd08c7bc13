"""The rules of `core/mixture/calibration.py`, slowly."""

import numpy as np
from scipy.special import expit


def calibrated(etas, y, weights=None):
    """(shift, scale) before each row, then after the last: logistic regressions on eta that compete with no change."""
    theta, A = [np.array([1.0, 0.0]) for _ in range(2)], [np.zeros((2, 2)) for _ in range(2)]
    prior = np.array([0.9, 0.05, 0.05])
    share = prior
    for eta, target, w in zip(etas, y, np.ones(len(y)) if weights is None else weights, strict=True):
        yield averaged(theta, share)
        z = np.array([np.clip(eta, -12, 12), 1.0])
        means = [expit(z[0]), *(expit(z @ each) for each in theta)]
        share = share * np.array([mean if target else 1 - mean for mean in means]) ** w
        share = 0.998 * share / share.sum() + 0.002 * prior
        for h, decay in enumerate((0.98, 0.995)):
            mean = means[h + 1]
            A[h] = decay * A[h] + w * max(mean * (1 - mean), 1e-6) * np.outer(z, z)
            theta[h] = theta[h] - np.linalg.solve(A[h] + 10 * np.eye(2), w * (mean - target) * z)
            theta[h] = np.clip(theta[h], [0.2, -12], [5, 12])
    yield averaged(theta, share)


def averaged(theta, share):
    used = np.maximum(share - 2 * 0.002 * np.array([0.9, 0.05, 0.05]), 0)
    scale, shift = used @ np.array([[1.0, 0.0], *theta]) / used.sum()
    return shift, scale
