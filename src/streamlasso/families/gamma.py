# cython: language_level=3, cdivision=True
"""Positive responses whose spread grows with their mean, log link: loss y e^(-eta) + eta."""

import cython
import numpy as np
from cython.cimports.libc.math import exp, log
from cython.cimports.streamlasso.core.linalg.kernels import exps
from cython.cimports.streamlasso.families.base import Family

#: Beyond this eta the exponential goes on as its tangent: still convex, never infinite.
LARGEST_ETA = cython.declare(cython.double, 300.0)
#: Below its negative it is 0.
SMALLEST_ETA = cython.declare(cython.double, -700.0)


@cython.cclass
class Gamma(Family):
    """Positive responses whose spread grows with their mean, log link: loss y e^(-eta) + eta.

    >>> from streamlasso.families import Gamma
    >>> Gamma().loss(2.0, 0.0), Gamma().slope(2.0, 0.0)
    (2.0, -1.0)
    """

    compiled = True
    name = "gamma"
    response = "a positive number"
    loss_name = "Gamma loss"
    lowest = 0.0
    deviance_name = "half Gamma deviance"

    def loss_at(self, y, eta):
        if eta < -LARGEST_ETA:
            return y * exp(LARGEST_ETA) * (1.0 - (eta + LARGEST_ETA)) + eta
        return y * exp(-eta) + eta

    def slope_at(self, y, eta):
        return 1.0 - y * exp(min(-eta, LARGEST_ETA))

    def curvature_at(self, y, eta):
        return y * exp(min(-eta, LARGEST_ETA))

    def slopes(self, n, y, eta, slope, curvature):
        i: cython.Py_ssize_t
        for i in range(n):
            slope[i] = max(min(-eta[i], LARGEST_ETA), SMALLEST_ETA)
        exps(n, slope, curvature)
        for i in range(n):
            curvature[i] *= y[i]
            slope[i] = 1.0 - curvature[i]
        return 0

    def mean_at(self, eta):
        return exp(min(eta, LARGEST_ETA))

    def spread_at(self, eta):
        return self.mean_at(eta)

    def residual_at(self, y, eta):
        return log(y) - eta

    def level_at(self, y):
        return log(y)

    def best_eta(self, y, low, high):
        return min(max(log(y), low), high)

    def link(self, mean):
        return np.log(mean)

    def least_loss(self, y):
        return 1 + np.log(y)

    def running_mean(self, n, total):
        return np.log(np.where(n > 0, total / np.maximum(n, 1), 1))

    def lagged(self, y):
        return np.log(y)

    def lagged_name(self, name):
        return f"log {name}"

    def sample(self, rng, eta):
        return rng.exponential(self.mean(eta))

    def check_target(self, y):
        if np.any(y <= 0):
            return "a Gamma response is larger than 0"
        return None
