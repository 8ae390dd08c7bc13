# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Steps on the members of the active set: their signs stay, and no factor is made again.

From one row to the next the members and their signs mostly stay. Their conditions (`gradient.py`) are then smooth
equations in e = b0 + m'b and b,

    F = (G_0,  G_A + (mu - m)_A G_0 - tau_A s_A) = 0,      with the Jacobian  - diag(K, S_AA)

where the rows were expanded (`irls.py`). Newton steps take that curvature as it was when the row came in (the
derivative of the minimiser needs its factor anyway), corrected by the pairs (step, change of F) of the steps so far, as
in L-BFGS: no Gram matrix and no factor is made again. A step counts if it halves the largest violation, changes no
sign, and leaves the curvature about as it was.
"""

import cython
import numpy as np
from cython.cimports.libc.math import fabs
from cython.cimports.libc.string import memcpy
from cython.cimports.streamlasso.core.glm.gradient import worse
from cython.cimports.streamlasso.core.glm.irls import Expansion
from cython.cimports.streamlasso.core.linalg.kernels import axpy, dot

DOUBLE = cython.declare(cython.size_t, cython.sizeof(cython.double))


@cython.cclass
class MemberSteps:
    """From the point of an expansion, with the factor that its active set has."""

    def __cinit__(self, expansion: Expansion):
        p: cython.Py_ssize_t = expansion.p
        self.expansion = expansion
        self.point = expansion.point
        self.rows = expansion.rows
        self.active = expansion.active
        self.posed = False
        self.n_pairs = 0
        with_intercept: cython.double[:, ::1] = np.zeros((4 + 2 * MOST_STEPS, p + 1))
        self.now, self.after = with_intercept[0], with_intercept[1]
        self.step, self.old = with_intercept[2], with_intercept[3]
        self.steps = with_intercept[4 : 4 + MOST_STEPS]
        self.changes = with_intercept[4 + MOST_STEPS :]

    def settle(self):
        """Take steps while each halves the violation; returns the violation that is left."""
        size: cython.double
        if not self.posed:
            self.pose()
        self.posed = False
        self.n_pairs = 0
        size = self.size
        while not is_settled(size) and self.n_pairs < MOST_STEPS:
            self._quasi_newton_step()
            if not self._keeps_signs():
                return size
            self._shift()
            self.size = self._equations(cython.address(self.after[0]))
            if not (self.size <= 0.5 * size and self.expansion.alike()):
                self._shift_back()
                self.expansion.curved = False
                return size
            self._remember_pair()
            size = self.size
        return size

    def pose(self):
        """F at the point, and its size."""
        self.size = self._equations(cython.address(self.now[0]))
        self.posed = True

    def _equations(self, out):
        """F, and G of the members; the largest violation among them, in units of what is tolerated."""
        j: cython.Py_ssize_t
        q: cython.Py_ssize_t
        r: cython.double
        largest: cython.double = worse(0.0, fabs(self.point.pull), self.point.tol[self.point.p])
        out[0] = self.point.pull
        self.point.look_at_members(out + 1)
        for q in range(self.active.k):
            j = self.active.members[q]
            r = self.point.g[j] - self.point.tau[j] * self.active.sign[q]
            largest = worse(largest, fabs(r), self.point.tol[j])
            out[1 + q] = r + (self.rows.origin[j] - self.expansion.centre[j]) * self.point.pull
        return largest

    def _quasi_newton_step(self):
        """The step in (e, b): diag(K, S_AA)^{-1} F, corrected by the pairs (the two loops of L-BFGS)."""
        i: cython.Py_ssize_t
        n: cython.Py_ssize_t = self.active.k + 1
        d: cython.p_double = cython.address(self.step[0])
        along: cython.double[MOST_STEPS]
        memcpy(d, cython.address(self.now[0]), n * DOUBLE)
        for i in range(self.n_pairs - 1, -1, -1):
            along[i] = self.rho[i] * dot(n, cython.address(self.steps[i, 0]), d)
            axpy(n, -along[i], cython.address(self.changes[i, 0]), d)
        d[0] /= self.expansion.total
        self.active.solve_block(d + 1)
        for i in range(self.n_pairs):
            along[i] -= self.rho[i] * dot(n, cython.address(self.changes[i, 0]), d)
            axpy(n, along[i], cython.address(self.steps[i, 0]), d)

    def _keeps_signs(self):
        """Whether no penalised member would change its sign."""
        q: cython.Py_ssize_t
        for q in range(self.active.k):
            if not (self.active.b[q] + self.step[1 + q]) * self.active.sign[q] > 0.0:
                if self.point.tau[self.active.members[q]] > 0.0:
                    return False
        return True

    def _shift(self):
        """Move by the step; b0 = e - m'b."""
        q: cython.Py_ssize_t
        b: cython.p_double = self.active.b
        if self.active.k > 0:
            memcpy(cython.address(self.old[0]), b, self.active.k * DOUBLE)
        self.start_intercept = self.point.intercept
        self.point.intercept += self.step[0]
        for q in range(self.active.k):
            b[q] += self.step[1 + q]
            self.point.intercept -= self.expansion.centre[self.active.members[q]] * self.step[1 + q]
            if self.point.tau[self.active.members[q]] == 0.0:
                self.active.sign[q] = -1.0 if b[q] < 0.0 else 1.0
        return self.point.evaluate()

    def _shift_back(self):
        q: cython.Py_ssize_t
        self.point.intercept = self.start_intercept
        for q in range(self.active.k):
            self.active.b[q] = self.old[q]
            if self.point.tau[self.active.members[q]] == 0.0:
                self.active.sign[q] = -1.0 if self.old[q] < 0.0 else 1.0
        return self.point.evaluate()

    def _remember_pair(self):
        """Store the step and the change of F, and let `now` be the new F."""
        i: cython.Py_ssize_t
        n: cython.Py_ssize_t = self.active.k + 1
        step: cython.p_double = cython.address(self.steps[self.n_pairs, 0])
        change: cython.p_double = cython.address(self.changes[self.n_pairs, 0])
        for i in range(n):
            step[i] = self.step[i]
            change[i] = self.now[i] - self.after[i]
            self.now[i] = self.after[i]
        self.rho[self.n_pairs] = dot(n, step, change)
        self.rho[self.n_pairs] = 1.0 / self.rho[self.n_pairs] if self.rho[self.n_pairs] > 0.0 else 0.0
        self.n_pairs += 1
