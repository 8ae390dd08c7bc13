# cython: language_level=3, cdivision=True
"""Two classes, 0 and 1 (or a share between): loss log(1 + e^eta) - y eta."""

import cython
import numpy as np
from cython.cimports.libc.math import exp, fabs, log, log1p
from cython.cimports.streamlasso.core.linalg.kernels import exps, log1ps, logistic_slopes
from cython.cimports.streamlasso.families.base import Family
from scipy.special import logit, xlogy

#: Beyond this eta there is nothing left of a slope.
FARTHEST_ETA = cython.declare(cython.double, 700.0)


@cython.cclass
class Binomial(Family):
    """Two classes, 0 and 1 (or a share between): loss log(1 + e^eta) - y eta.

    >>> from streamlasso.families import Binomial
    >>> round(Binomial().loss(1.0, 0.0), 4), Binomial().mean(0.0)
    (0.6931, 0.5)
    """

    compiled = True
    name = "binomial"
    goes_wide = True
    response = "a share"
    loss_name = "log loss"
    has_scale = False
    binary = True

    def loss_at(self, y, eta):
        return log1p(exp(-fabs(eta))) + (1.0 - y if eta > 0.0 else -y) * eta

    def slope_at(self, y, eta):
        e: cython.double = exp(-fabs(eta))
        return ((1.0 - y) - y * e) / (1.0 + e) if eta > 0.0 else ((1.0 - y) * e - y) / (1.0 + e)

    def curvature_at(self, y, eta):
        e: cython.double = exp(-fabs(eta))
        return e / ((1.0 + e) * (1.0 + e))

    def losses_of(self, n, y, eta, loss):
        i: cython.Py_ssize_t
        _odds(n, eta, loss)
        log1ps(n, loss)
        for i in range(n):
            loss[i] += (1.0 - y if eta[i] > 0.0 else -y) * eta[i]
        return 0

    def slopes_at(self, y, eta, slope, curvature):
        e: cython.double = exp(-fabs(eta))
        share: cython.double = 1.0 / (1.0 + e)
        slope[0] = ((1.0 - y) - y * e) * share if eta > 0.0 else ((1.0 - y) * e - y) * share
        curvature[0] = e * share * share
        return 0

    def slopes(self, n, y, eta, slope, curvature):
        logistic_slopes(n, y, eta, slope, curvature)
        return 0

    def mean_at(self, eta):
        e: cython.double = exp(-fabs(eta))
        return 1.0 / (1.0 + e) if eta > 0.0 else e / (1.0 + e)

    def means_of(self, n, eta, mean):
        i: cython.Py_ssize_t
        _odds(n, eta, mean)
        for i in range(n):
            mean[i] = (1.0 if eta[i] > 0.0 else mean[i]) / (1.0 + mean[i])
        return 0

    def best_eta(self, y, low, high):
        return min(max(log(y / (1.0 - y)), low), high)

    def link(self, mean):
        return logit(mean)

    def least_loss(self, y):
        return -xlogy(y, y) - xlogy(1 - y, 1 - y)

    def running_mean(self, n, total):
        """From Jeffreys' prior: what has never happened has not got probability 0."""
        return np.log(total + 0.5) - np.log(n - total + 0.5)

    def persistence(self, last):
        """A share of 0 or 1 would be certainty: even odds."""
        return np.zeros(len(last))

    def looks_like(self, y):
        """Two whole numbers."""
        return len(np.unique(y)) == 2 and bool(np.all(y == np.round(y)))

    def sample(self, rng, eta):
        return rng.binomial(1, self.mean(eta)).astype(float)

    def check_target(self, y):
        if np.any((y < 0) | (y > 1)):
            return "a binomial response lies between 0 and 1"
        return None


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _odds(n: cython.Py_ssize_t, eta: cython.pointer[cython.const[cython.double]], out: cython.p_double) -> cython.void:
    """e^-|eta|, of the less likely class against the other."""
    i: cython.Py_ssize_t
    m: cython.Py_ssize_t
    done: cython.Py_ssize_t = 0
    part: cython.double[MOST_AT_ONCE]
    while done < n:
        m = min(n - done, MOST_AT_ONCE)
        for i in range(m):
            part[i] = max(-fabs(eta[done + i]), -FARTHEST_ETA)
        exps(m, part, out + done)
        done += m
