# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Probabilities that mean what they say: eta is scaled and shifted where that predicted better of late.

A model that has met few rows of a kind is too cautious, one that has just been wrong too sure. A rule is a logistic
regression on eta alone (Platt), followed row by row with a memory of its own, from (1, 0), which changes nothing:

    p = mean(a eta + b),      A <- r A + w z z',      (a, b) <- (a, b) - (A + PRIOR I)^{-1} z loss'(a eta + b)

with z = (eta, 1) and w the curvature of the loss there. The rules compete with no change (`hedge.py`). What comes out
is the average of a eta + b, so the model stays linear. Where probabilities are right already, the rules gain nothing,
and their weight stays small."""

import cython
import numpy as np
from cython.cimports.libc.math import isfinite
from cython.cimports.streamlasso.core.base.hedge import Hedge
from cython.cimports.streamlasso.core.base.state import Stateful
from cython.cimports.streamlasso.core.base.tape import FINITE

from streamlasso.core.base.state import array

#: The memories of the two rules.
FAST, SLOW = cython.declare(cython.double, 0.98), cython.declare(cython.double, 0.995)
#: The weights of no change and of the rules before the first row, and how much of them returns to these per row.
GATE_PRIOR, GATE_SHARE = (0.9, 0.05, 0.05), 0.002
PRIOR = cython.declare(cython.double, 10.0)
#: No rule scales by more, or by less than its inverse; and no eta counts as further out than MOST_ETA.
MOST_SCALE = cython.declare(cython.double, 5.0)
MOST_ETA = cython.declare(cython.double, 12.0)
LEAST_CURVATURE = cython.declare(cython.double, 1e-6)


def _other_shift(theta):
    """Of two classes: eta changes its sign, and so does what is added to it."""
    return theta * np.array([1.0, -1.0])


def _other_products(A):
    """Of eta with itself, with 1, and of 1 with itself."""
    return A * np.array([1.0, -1.0, 1.0])


@cython.cclass
class Calibration(Stateful):
    """The rules, and how well they have predicted."""

    STATE = (
        array("theta", N_RULES, 2, exchanged=_other_shift),
        array("A", N_RULES, 3, exchanged=_other_products),
    )

    def __cinit__(self, family):
        self.family = family
        self.hedge = Hedge(GATE_PRIOR, 1.0, GATE_SHARE)
        for h in range(N_RULES):
            self.theta[h][0] = 1.0

    def linear(self, shift, scale):
        """The calibrated eta is shift + scale eta."""
        h: cython.Py_ssize_t
        scale[0] = self.hedge.used[0]
        shift[0] = 0.0
        for h in range(N_RULES):
            scale[0] += self.hedge.used[h + 1] * self.theta[h][0]
            shift[0] += self.hedge.used[h + 1] * self.theta[h][1]

    def of(self, eta):
        shift: cython.double
        scale: cython.double
        self.linear(cython.address(shift), cython.address(scale))
        return shift + scale * eta

    def see(self, y, eta, weight):
        """A row that was predicted with this eta, before calibration."""
        h: cython.Py_ssize_t
        if not isfinite(eta) or not weight > 0.0:
            return 0
        eta = min(max(eta, -MOST_ETA), MOST_ETA)
        losses: cython.double[N_CHOICES]
        losses[0] = weight * self.family.loss_at(y, eta)
        for h in range(N_RULES):
            losses[h + 1] = weight * self.family.loss_at(y, self.theta[h][0] * eta + self.theta[h][1])
        self.hedge.update(losses)
        for h in range(N_RULES):
            self._learn_rule(h, y, eta, weight)
        return 0

    def _learn_rule(self, h, y, eta, weight):
        theta: cython.p_double = self.theta[h]
        A: cython.p_double = self.A[h]
        here: cython.double = theta[0] * eta + theta[1]
        slope: cython.double = weight * self.family.slope_at(y, here)
        curvature: cython.double = weight * max(self.family.curvature_at(y, here), LEAST_CURVATURE)
        determinant: cython.double
        A[0] = (FAST if h == 0 else SLOW) * A[0] + curvature * eta * eta
        A[1] = (FAST if h == 0 else SLOW) * A[1] + curvature * eta
        A[2] = (FAST if h == 0 else SLOW) * A[2] + curvature
        determinant = (A[0] + PRIOR) * (A[2] + PRIOR) - A[1] * A[1]
        theta[0] -= slope * ((A[2] + PRIOR) * eta - A[1]) / determinant
        theta[1] -= slope * ((A[0] + PRIOR) - A[1] * eta) / determinant
        theta[0] = min(max(theta[0], 1.0 / MOST_SCALE), MOST_SCALE)
        theta[1] = min(max(theta[1], -MOST_ETA), MOST_ETA)
        return 0

    # --- in Python ----------------------------------------------------------------------------------------------

    def line(self):
        """(shift, scale) of the next row."""
        shift: cython.double
        scale: cython.double
        self.linear(cython.address(shift), cython.address(scale))
        return shift, scale

    def learn(self, y: cython.double, eta: cython.double, weight: cython.double):
        self.see(y, eta, weight)

    def travel(self, tape):
        tape.doubles(self.theta[0], 2 * N_RULES, FINITE)
        tape.doubles(self.A[0], 3 * N_RULES, FINITE)
        self.hedge.travel(tape)

    def parts(self):
        return {"gate/": self.hedge}
