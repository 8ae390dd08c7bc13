# cython: language_level=3, cdivision=True
"""Real responses with constant variance: loss (y - eta)^2 / 2."""

import cython
import numpy as np
from cython.cimports.streamlasso.families.base import Family


@cython.cclass
class Gaussian(Family):
    """Real responses with constant variance: loss (y - eta)^2 / 2.

    >>> from streamlasso.families import Gaussian
    >>> Gaussian().loss(3.0, 1.0), Gaussian().slope(3.0, 1.0)
    (2.0, -2.0)
    """

    compiled = True
    name = "gaussian"
    goes_wide = True
    loss_name = "half squared error"
    quadratic = True

    def loss_at(self, y, eta):
        return 0.5 * (y - eta) * (y - eta)

    def losses_of(self, n, y, eta, loss):
        i: cython.Py_ssize_t
        for i in range(n):
            loss[i] = 0.5 * (y - eta[i]) * (y - eta[i])
        return 0

    def slope_at(self, y, eta):
        return eta - y

    def curvature_at(self, y, eta):
        return 1.0

    def mean_at(self, eta):
        return eta

    def best_eta(self, y, low, high):
        return min(max(y, low), high)

    def link(self, mean):
        return np.asarray(mean)

    def least_loss(self, y):
        return np.zeros(len(y))

    def running_mean(self, n, total):
        return total / np.maximum(n, 1)

    def sample(self, rng, eta):
        return rng.normal(eta, 1.0)
