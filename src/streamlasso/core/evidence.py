# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""How likely a response was to an expert that knows how large its own errors are.

An expert that predicted eta with variance v (in units of the noise, `Experts.spread_of`), and whose own errors so far
have the mean square s^2, says that y is distributed as Student's t with nu = PRIOR_ROWS + n degrees of freedom:

    l = w (1/2 log(s^2 (1 + v))  +  (nu + 1)/2 log(1 + (y - eta)^2 / (nu s^2 (1 + v))))
    nu s^2 = PRIOR_ROWS phi + sum w (y - eta)^2 / (1 + v)

with phi the dispersion of the mixture, and sums that fade as the expert's memory does. For a ridge this is its marginal
likelihood, for a lasso it is like it. (What depends on nu alone is left out.) Right after a change all old experts are
wrong by much, and none of them gains on another; a new one whose errors are small says so within a few rows, where the
common noise phi is still that of the change.
"""

import cython
import numpy as np
from cython.cimports.libc.math import log, log1p
from cython.cimports.streamlasso.core.state import Stateful
from cython.cimports.streamlasso.core.tape import WEIGHT

from streamlasso.core.state import FIXED, array

#: What the common noise counts for among an expert's own errors.
PRIOR_ROWS = cython.declare(cython.double, 0.3)


@cython.cclass
class Evidence(Stateful):
    """The errors of n experts."""

    STATE = (
        array("squares", FIXED),
        array("rows", FIXED),
    )

    def __cinit__(self, n: cython.Py_ssize_t):
        self.n = n
        self.squares = np.zeros(n)
        self.rows = np.zeros(n)

    def loss(self, e, error, spread, noise, weight, decay):
        """l of the e-th expert, whose error then counts; `noise` is phi."""
        square: cython.double = error * error / (1.0 + spread)
        own: cython.double = PRIOR_ROWS * noise + self.squares[e]
        nu: cython.double = PRIOR_ROWS + self.rows[e]
        found: cython.double = log(own / nu * (1.0 + spread)) + (nu + 1.0) * log1p(square / own)
        self.squares[e] = decay * self.squares[e] + weight * square
        self.rows[e] = decay * self.rows[e] + weight
        return 0.5 * weight * found

    def restart(self, first, end):
        """These experts have no errors yet."""
        e: cython.Py_ssize_t
        for e in range(first, end):
            self.squares[e] = self.rows[e] = 0.0

    def travel(self, tape):
        tape.doubles(cython.address(self.squares[0]), self.n, WEIGHT)
        tape.doubles(cython.address(self.rows[0]), self.n, WEIGHT)
