# cython: language_level=3, cdivision=True
"""Counts, log link: loss e^eta - y eta."""

import cython
import numpy as np
from cython.cimports.libc.math import exp
from cython.cimports.streamlasso.families.base import Family

#: Beyond this eta the exponential goes on as its tangent: still convex, never infinite.
CAP = cython.declare(cython.double, 300.0)


@cython.cclass
class Poisson(Family):
    """Counts, log link: loss e^eta - y eta.

    >>> from streamlasso.families import Poisson
    >>> Poisson().loss(2.0, 0.0), Poisson().mean(0.0)
    (1.0, 1.0)
    """

    compiled = True

    def loss_at(self, y, eta):
        if eta > CAP:
            return exp(CAP) * (1.0 + (eta - CAP)) - y * eta
        return exp(eta) - y * eta

    def slope_at(self, y, eta):
        return exp(min(eta, CAP)) - y

    def curvature_at(self, y, eta):
        return exp(min(eta, CAP))

    def mean_at(self, eta):
        return exp(min(eta, CAP))

    def sample(self, rng, eta):
        return rng.poisson(self.mean(eta)).astype(float)

    def check_target(self, y):
        if np.any(y < 0):
            return "a Poisson response is a count, 0 or larger"
        return None
