# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""A step of proximal Newton, in which features join and leave.

Where a sign would change, or one of the other features violates its condition, the lasso solution of the expansion
(`irls.py`, `active_set.py`) with `c = S b + G - m G_0` is the target. Only members and features that violate their
condition take part; S gets a row for each when it first does. Where the target is no better than the point, a line
search on the true objective decides how far to go. With the step d, its slope in the expansion `expected`, and the
objective f, that is the first t of 1, 1/4, 1/16, ... with

    f(b + t d) - f(b)  <=  1e-4 t expected
"""

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY, fabs
from cython.cimports.libc.string import memcpy, memset
from cython.cimports.streamlasso.core.glm.irls import Expansion

#: What rounding leaves of a sum, as a share of the sum of its absolute terms.
LOST_DIGITS = cython.declare(cython.double, 1e-14)

DOUBLE = cython.declare(cython.size_t, cython.sizeof(cython.double))


@cython.cclass
class Exchange:
    """From the point of an expansion to the target, or part of the way."""

    def __cinit__(self, expansion: Expansion):
        p: cython.Py_ssize_t = expansion.p
        n: cython.Py_ssize_t = expansion.rows.y.shape[0]
        self.expansion = expansion
        self.point = expansion.point
        self.objective = expansion.objective
        self.rows = expansion.rows
        self.moments = expansion.moments
        self.active = expansion.active
        self.p = p
        by_feature: cython.double[:, ::1] = np.zeros((4, p))
        by_row: cython.double[:, ::1] = np.zeros((2, n))
        self.old, self.step = by_feature[0], by_feature[1]
        self.work, self.along = by_feature[2], by_feature[3]
        self.start_eta, self.eta_step = by_row[0], by_row[1]
        self.working = np.zeros(p, dtype=np.intp)
        self.n_working = 0

    def work_on(self, with_violators):
        """List the members, and the features whose condition is violated."""
        j: cython.Py_ssize_t
        self.n_working = 0
        self.active.locate()
        for j in range(self.p):
            if self.active.scratch.where[j] >= 0 or (
                with_violators and fabs(self.point.g[j]) > self.point.tau[j] + self.point.tol[j]
            ):
                self.working[self.n_working] = j
                self.n_working += 1

    def pose(self, local):
        """The lasso on the expansion: c = S b + G - m G_0, for the features at work; and the point itself."""
        a: cython.Py_ssize_t
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        self.active.has_free = True
        for j in range(self.p):
            self.active.scratch.tau[j] = INFINITY
        for a in range(self.n_working):
            j = self.working[a]
            self.expansion.bring_in(local, j)
            self.active.scratch.tau[j] = self.point.tau[j]
            self.active.scratch.tol[j] = 0.01 * self.point.tol[j]
        self.active.locate()
        for a in range(self.n_working):
            j = self.working[a]
            local.c[j] = self.point.g[j] + self.point.pull * (self.rows.origin[j] - self.expansion.centre[j])
            for i in range(self.active.k):
                local.c[j] += local.S[j * self.p + self.active.members[i]] * self.active.b[i]
            i = self.active.scratch.where[j]
            self.old[j] = self.active.b[i] if i >= 0 else 0.0
            if self.active.has_ridge:
                local.c[j] += self.active.scratch.ridge[j] * self.old[j]

    def step_to_target(self):
        """Move to the target, evaluate there, and keep the step."""
        a: cython.Py_ssize_t
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        n: cython.Py_ssize_t = self.objective.n_whole
        place: cython.Py_ssize_t
        self.intercept_step = self.point.pull / self.expansion.total if self.objective.fit_intercept else 0.0
        self.active.locate()
        for a in range(self.n_working):
            j = self.working[a]
            place = self.active.scratch.where[j]
            self.step[j] = (self.active.b[place] if place >= 0 else 0.0) - self.old[j]
            self.intercept_step -= self.expansion.centre[j] * self.step[j]
        self.start_intercept = self.point.intercept
        self.point.intercept += self.intercept_step
        memcpy(cython.address(self.start_eta[0]), cython.address(self.point.eta[0]), n * DOUBLE)
        self._slopes_along()
        self.point.evaluate()
        self.point.row_by_row()
        for i in range(n):
            self.eta_step[i] = self.point.eta[i] - self.start_eta[i]
        return 0

    def _slopes_along(self):
        """Compute the change that the expansion predicts for the step, and the slope of the folded rows along it."""
        a: cython.Py_ssize_t
        j: cython.Py_ssize_t
        d: cython.double
        self.shift = self.intercept_step
        self.expected = -self.point.pull * (self.point.pull / self.expansion.total)
        self.linear = 0.0
        for a in range(self.n_working):
            j = self.working[a]
            d = self.step[j]
            self.shift += self.moments.mean[j] * d
            self.linear -= self.point.folded_g[j] * d
            self.expected += self.point.tau[j] * (fabs(self.old[j] + d) - fabs(self.old[j]))
            self.expected -= (self.point.g[j] + self.point.pull * (self.rows.origin[j] - self.expansion.centre[j])) * d
            if self.active.has_ridge:
                self.expected += 0.5 * self.active.scratch.ridge[j] * d * d
        self.linear -= self.point.folded_pull * self.shift

    # --- how far to go ------------------------------------------------------------------------------------------

    def search(self):
        """Walk towards the target as far as the true objective falls; 0 if nowhere."""
        turn: cython.int
        t: cython.double = 1.0
        self._folded_along()
        for turn in range(60):
            if self._change(t) <= 1e-4 * t * self.expected + LOST_DIGITS * self.magnitude:
                break
            t *= 0.25
        else:
            t = 0.0
        self._move(t)
        return 1 if t > 0.0 else 0

    def _folded_along(self):
        """The curvature of the folded rows along the step: d'S_old d, and what their mean adds."""
        a: cython.Py_ssize_t
        out: cython.p_double = cython.address(self.work[0])
        d: cython.p_double = cython.address(self.along[0])
        for a in range(self.n_working):
            d[a] = self.step[self.working[a]]
        memset(out, 0, self.p * DOUBLE)
        self.moments.times(cython.address(self.working[0]), self.n_working, d, out)
        self.quadratic = self.moments.weight * self.shift * self.shift if self.objective.fit_intercept else 0.0
        for a in range(self.n_working):
            self.quadratic -= d[a] * out[self.working[a]]

    def _change(self, t):
        """The objective at step t less the objective at the old point."""
        a: cython.Py_ssize_t
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        b: cython.double
        before: cython.double
        total: cython.double = t * self.linear + 0.5 * t * t * self.quadratic
        self.magnitude = fabs(t * self.linear)
        for i in range(self.objective.n_whole):
            before = self.objective.family.loss_at(self.rows.y[i], self.start_eta[i])
            total += self.rows.weight[i] * (
                self.objective.family.loss_at(self.rows.y[i], self.start_eta[i] + t * self.eta_step[i]) - before
            )
            self.magnitude += self.rows.weight[i] * fabs(before)
        for a in range(self.n_working):
            j = self.working[a]
            b = self.old[j] + t * self.step[j]
            total += self.point.tau[j] * (fabs(b) - fabs(self.old[j]))
            if self.active.has_ridge:
                total += 0.5 * self.active.scratch.ridge[j] * (b * b - self.old[j] * self.old[j])
        return total

    def _move(self, t):
        """Move to old + t step. At t = 1 the active set is there already."""
        a: cython.Py_ssize_t
        j: cython.Py_ssize_t
        b: cython.double
        if t == 1.0:
            return 0
        self.point.intercept = self.start_intercept + t * self.intercept_step
        self.active.reset()
        for a in range(self.n_working):
            j = self.working[a]
            b = self.old[j] + t * self.step[j]
            if b != 0.0:
                self.active.hold_or_end(self.active.k + 1)
                self.active.k += 1
                self.active._join(j, 1.0 if b > 0.0 else -1.0, b)
        self.active.broken = True
        self.expansion.curved = False
        return self.point.evaluate()
