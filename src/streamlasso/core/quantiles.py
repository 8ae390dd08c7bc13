# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""How far responses fall from their predictions: quantiles of the errors, followed row by row.

An error is measured in units of the noise of late and of the family's own spread at its mean (1, the root of the mean
of counts, the mean of positive responses):

    z = (y - mu) / (spread(mu) s),        s^2 <- fading mean of ((y - mu) / spread(mu))^2, a square at most CAP s^2

so that a quantile of z need not move when the noise does. For each level tau it follows the errors by a step of online
gradient descent on the pinball loss, which makes the share of errors below q the level, whatever the errors do (Gibbs
and Candes; Angelopoulos, Candes and Tibshirani):

    q <- q + rate (tau - 1{z <= q})

A large rate follows a change, a small one is steady. RATES run side by side, and what is said is their average by
weights exp(-TRUST loss), loss the pinball loss that fades by LOSS_DECAY a row; so no rate is to be set.
"""

import cython
import numpy as np
from cython.cimports.libc.math import isfinite, sqrt
from cython.cimports.streamlasso.core.state import Stateful
from cython.cimports.streamlasso.core.tape import FINITE, WEIGHT
from scipy.special import ndtri, stdtrit

from streamlasso.core.state import FIXED, Column, array, numbers

#: The first level is that of the lower end of a 99 % interval.
LEVELS = np.array([0.005, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.995])
RATES = np.array([0.003, 0.01, 0.03, 0.1])
TRUST, LOSS_DECAY = 5.0, cython.declare(cython.double, 0.99)
#: Of s^2, and the most that one square counts.
SQUARE_DECAY = cython.declare(cython.double, 0.98)
CAP = cython.declare(cython.double, 25.0)
#: Errors beyond this are this far out.
FARTHEST = cython.declare(cython.double, 20.0)
#: The rows after which the noise counts as known; before, quantiles are as much wider as those of Student's t.
KNOWN = 100


def _exchanged(q):
    """Errors change their sign."""
    return -q[::-1]


@cython.cclass
class Quantiles(Stateful):
    """The quantiles of one model's errors."""

    STATE = (
        array("q", FIXED, FIXED, exchanged=_exchanged),
        array("losses", FIXED, FIXED, exchanged=lambda losses: losses[::-1]),
        numbers("noise", Column("square"), Column("weight")),
        numbers("seen", Column("n"), dtype=np.int64),
    )

    def __cinit__(self, family):
        self.family = family
        self.tau, self.rate = LEVELS, RATES
        self.q = np.tile(ndtri(LEVELS)[:, None], (1, N_RATES))
        self.losses = np.zeros((N_LEVELS, N_RATES))
        self.square = self.weight = 0.0
        self.n = 0

    def see(self, y, eta, weight):
        """A row of which eta was predicted."""
        error: cython.double
        square: cython.double
        if not weight > 0.0:
            return 0
        error = (y - self.family.mean_at(eta)) / self.family.spread_at(eta)
        if not isfinite(error * error):
            return 0
        square = error * error
        if self.square > 0.0:
            self._follow(min(max(error / sqrt(self.square), -FARTHEST), FARTHEST))
            square = min(square, CAP * self.square)
        self.weight = SQUARE_DECAY * self.weight + 1.0
        self.square += (square - self.square) / self.weight
        self.n += 1
        return 0

    def _follow(self, z):
        i: cython.Py_ssize_t
        k: cython.Py_ssize_t
        step: cython.double
        q: cython.p_double = cython.address(self.q[0, 0])
        loss: cython.p_double = cython.address(self.losses[0, 0])
        rate: cython.p_double = cython.address(self.rate[0])
        for i in range(N_LEVELS):
            for k in range(N_RATES):
                step = self.tau[i] - (1.0 if z <= q[k] else 0.0)
                loss[k] = LOSS_DECAY * loss[k] + (z - q[k]) * step
                q[k] += rate[k] * step
            q += N_RATES
            loss += N_RATES

    def travel(self, tape):
        tape.doubles(cython.address(self.q[0, 0]), N_LEVELS * N_RATES, FINITE)
        tape.doubles(cython.address(self.losses[0, 0]), N_LEVELS * N_RATES, FINITE)
        tape.number(cython.address(self.square), WEIGHT)
        tape.number(cython.address(self.weight), WEIGHT)
        tape.count(cython.address(self.n))

    # --- what is said -------------------------------------------------------------------------------------------

    def errors(self, levels):
        """Quantiles of (y - mu) / spread(mu) at these levels; without end before there are two rows."""
        levels = np.asarray(levels, dtype=float)
        if self.n < 2:
            return np.where(levels == 0.5, 0.0, np.copysign(np.inf, levels - 0.5))
        errors = sqrt(self.square) * _between(ndtri(levels), ndtri(LEVELS), self._averages())
        if self.n < KNOWN:
            apart = levels != 0.5
            errors[apart] *= stdtrit(self.n - 1, levels[apart]) / ndtri(levels[apart])
        return np.maximum.accumulate(errors)

    def around(self, etas: cython.const[cython.double][::1], levels):
        """Quantiles of the responses of rows with this eta: (row, level)."""
        i: cython.Py_ssize_t
        errors = self.errors(levels)
        mean, spread = np.empty(etas.shape[0]), np.empty(etas.shape[0])
        means: cython.double[::1] = mean
        spreads: cython.double[::1] = spread
        for i in range(etas.shape[0]):
            means[i] = self.family.mean_at(etas[i])
            spreads[i] = self.family.spread_at(etas[i])
        return np.maximum(mean[:, None] + spread[:, None] * errors, self.family.lowest)

    def _averages(self):
        """Of the rates, in order."""
        losses = np.asarray(self.losses)
        weight = np.exp(-TRUST * (losses - losses.min(axis=1, keepdims=True)))
        return np.maximum.accumulate((weight * np.asarray(self.q)).sum(axis=1) / weight.sum(axis=1))


@cython.wraparound(True)
def _between(at, knots, values):
    """Straight lines between the knots; beyond the last ones in proportion to the knot, as for a normal error."""
    found = np.interp(at, knots, values)
    low, high = at < knots[0], at > knots[-1]
    found[low] = values[0] * at[low] / knots[0] if values[0] < 0 else values[0]
    found[high] = values[-1] * at[high] / knots[-1] if values[-1] > 0 else values[-1]
    return found
