# cython: language_level=3, cdivision=True
"""Positive responses whose spread grows with their mean, log link: loss y e^(-eta) + eta."""

import cython
import numpy as np
from cython.cimports.libc.math import exp
from cython.cimports.streamlasso.families.base import Family

#: Beyond this eta the exponential goes on as its tangent: still convex, never infinite.
CAP = cython.declare(cython.double, 300.0)


@cython.cclass
class Gamma(Family):
    """Positive responses whose spread grows with their mean, log link: loss y e^(-eta) + eta.

    >>> from streamlasso.families import Gamma
    >>> Gamma().loss(2.0, 0.0), Gamma().slope(2.0, 0.0)
    (2.0, -1.0)
    """

    compiled = True

    def loss_at(self, y, eta):
        if eta < -CAP:
            return y * exp(CAP) * (1.0 - (eta + CAP)) + eta
        return y * exp(-eta) + eta

    def slope_at(self, y, eta):
        return 1.0 - y * exp(min(-eta, CAP))

    def curvature_at(self, y, eta):
        return y * exp(min(-eta, CAP))

    def mean_at(self, eta):
        return exp(min(eta, CAP))

    def sample(self, rng, eta):
        return rng.exponential(self.mean(eta))

    def check_target(self, y):
        if np.any(y <= 0):
            return "a Gamma response is larger than 0"
        return None
