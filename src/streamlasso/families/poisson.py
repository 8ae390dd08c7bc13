# cython: language_level=3, cdivision=True
"""Counts, log link: loss e^eta - y eta."""

import cython
import numpy as np
from cython.cimports.libc.math import exp, log, sqrt
from cython.cimports.streamlasso.core.linalg.kernels import exps
from cython.cimports.streamlasso.families.base import Family
from scipy.special import xlogy

#: Beyond this eta the exponential goes on as its tangent: still convex, never infinite.
LARGEST_ETA = cython.declare(cython.double, 300.0)
#: Below this one it is 0.
SMALLEST_ETA = cython.declare(cython.double, -700.0)
#: Counts begin within this share of their mean, and vary at least by this share of what counts do.
NEAR_ZERO, LEAST_DISPERSION = 0.1, 0.5


@cython.cclass
class Poisson(Family):
    """Counts, log link: loss e^eta - y eta.

    >>> from streamlasso.families import Poisson
    >>> Poisson().loss(2.0, 0.0), Poisson().mean(0.0)
    (1.0, 1.0)
    """

    compiled = True
    name = "poisson"
    goes_wide = True
    response = "a count"
    loss_name = "Poisson loss"
    lowest = 0.0
    whole = True
    deviance_name = "half Poisson deviance"

    def loss_at(self, y, eta):
        if eta > LARGEST_ETA:
            return exp(LARGEST_ETA) * (1.0 + (eta - LARGEST_ETA)) - y * eta
        return exp(eta) - y * eta

    def slope_at(self, y, eta):
        return exp(min(eta, LARGEST_ETA)) - y

    def curvature_at(self, y, eta):
        return exp(min(eta, LARGEST_ETA))

    def slopes_at(self, y, eta, slope, curvature):
        curvature[0] = exp(min(eta, LARGEST_ETA))
        slope[0] = curvature[0] - y
        return 0

    def slopes(self, n, y, eta, slope, curvature):
        i: cython.Py_ssize_t
        for i in range(n):
            slope[i] = max(min(eta[i], LARGEST_ETA), SMALLEST_ETA)
        exps(n, slope, curvature)
        for i in range(n):
            slope[i] = curvature[i] - y[i]
        return 0

    def mean_at(self, eta):
        return exp(min(eta, LARGEST_ETA))

    def spread_at(self, eta):
        return sqrt(self.mean_at(eta))

    def residual_at(self, y, eta):
        return log((y + 0.5) / (self.mean_at(eta) + 0.5))

    def level_at(self, y):
        return log(y + 0.5)

    def best_eta(self, y, low, high):
        return min(max(log(y), low), high)

    def link(self, mean):
        return np.log(mean)

    def least_loss(self, y):
        return y - xlogy(y, y)

    def running_mean(self, n, total):
        """From Jeffreys' prior: a mean of 0 would make the next count impossible."""
        return np.log(np.where(n > 0, (total + 0.5) / np.maximum(n, 1), 1))

    def persistence(self, last):
        """After a count of 0, half of one."""
        return np.log(np.maximum(last, 0.5))

    def lagged(self, y):
        return np.log1p(y)

    def lagged_name(self, name):
        return f"log(1 + {name})"

    def looks_like(self, y):
        """Whole numbers, three or more, from near 0 on, that vary at least half as much as counts with their mean: a
        score from 3 to 9 or a price does not."""
        if len(np.unique(y)) < 3 or not np.all(y == np.round(y)) or y.min() < 0:
            return False
        return bool(y.min() <= NEAR_ZERO * y.mean() and y.var() >= LEAST_DISPERSION * y.mean())

    def sample(self, rng, eta):
        return rng.poisson(self.mean(eta)).astype(float)

    def check_target(self, y):
        if np.any(y < 0):
            return "a Poisson response is a count, 0 or larger"
        return None
