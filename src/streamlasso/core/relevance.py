# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Which features matter, steadily.

The effect of a feature is its coefficient times its deviation of late: how far the prediction moves when the feature
does. Coefficients of an average of many experts are seldom 0, and which of them is the largest expert's changes often;
effects wander less. The strength of a feature is a fading mean of the size of its effect, over some five rows, and it
is relevant in comparison with the largest, and with how many there are. Of p features that vary

    k = (sum of strengths)^2 / sum of squared strengths

matter, in effect. Where few of many do, a small effect is more likely one by chance: what log(p / k) is to the
likelihood, the prior odds, the threshold is to the strength.

    enters where its strength is above ENTERS log(p / k) times the largest,  leaves where it is below a third of that

An effect that is estimated from the rows of a memory moves by a fraction of its size while nothing changes; between the
two lies a factor of three, so that this does not move the set.
"""

import cython
import numpy as np
from cython.cimports.libc.math import fabs, log, sqrt
from cython.cimports.streamlasso.core.pointers import Doubles, copied
from cython.cimports.streamlasso.core.state import Stateful
from cython.cimports.streamlasso.core.tape import FINITE, WEIGHT

from streamlasso.core.state import FEATURES, Column, array, numbers

ENTERS = cython.declare(cython.double, 0.07)
LEAVES = cython.declare(cython.double, 0.07 / 3.0)
#: Of the strength, and of the mean and variance of features.
FADES = cython.declare(cython.double, 0.8)
DECAY = cython.declare(cython.double, 0.99)


@cython.cclass
class Relevance(Stateful):
    """The deviations of features of late, the strengths of their effects, and which of them are relevant."""

    STATE = (
        array("mean", FEATURES),
        array("variance", FEATURES),
        array("strength", FEATURES),
        array("shown", FEATURES),
        numbers("rows", Column("weight")),
    )

    def __cinit__(self, p: cython.Py_ssize_t):
        self.p = p
        self.room = Doubles(5 * p)
        self.mean = self.room.at
        self.variance = self.mean + p
        self.strength = self.variance + p
        self.shown = self.strength + p
        self.effect = self.shown + p
        self.weight = 0.0

    def see(self, x):
        """A row that was learnt."""
        j: cython.Py_ssize_t
        apart: cython.double
        step: cython.double
        mean: cython.p_double = self.mean
        variance: cython.p_double = self.variance
        self.weight = DECAY * self.weight + 1.0
        step = 1.0 / self.weight
        for j in range(self.p):
            apart = x[j] - mean[j]
            mean[j] += step * apart
            variance[j] += step * (apart * (x[j] - mean[j]) - variance[j])

    def update(self, coef):
        """The coefficients after it."""
        j: cython.Py_ssize_t
        n: cython.double = 0.0
        largest: cython.double = 0.0
        total: cython.double = 0.0
        squares: cython.double = 0.0
        for j in range(self.p):
            self.strength[j] *= FADES
            self.effect[j] = fabs(coef[j]) * sqrt(max(self.variance[j], 0.0))
            self.strength[j] += (1.0 - FADES) * self.effect[j]
            largest = max(largest, self.strength[j])
            n += self.variance[j] > 0.0
        for j in range(self.p if largest > 0.0 else 0):
            total += self.strength[j] / largest
            squares += (self.strength[j] / largest) * (self.strength[j] / largest)
        if total > 0.0:
            largest *= log(max(n * squares / (total * total), 1.0))
        for j in range(self.p):
            self.shown[j] = self.strength[j] > (LEAVES if self.shown[j] > 0.0 else ENTERS) * largest

    def deviations(self):
        """Of the features, of late."""
        return np.sqrt(np.maximum(copied(self.variance, self.p), 0.0))

    def relevant(self):
        """Which features are."""
        return copied(self.shown, self.p) > 0.0

    def travel(self, tape):
        tape.doubles(self.mean, 2 * self.p, FINITE)
        tape.doubles(self.strength, 2 * self.p, WEIGHT)
        tape.number(cython.address(self.weight), WEIGHT)
