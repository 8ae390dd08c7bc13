# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""A point (b0, b) on the way to the minimiser, and how far it is from it.

With `slope_i = w_i loss'(eta_i)` on the rows kept whole and the quadratic of the folded ones (`likelihood.py`), G is
minus the gradient of the smooth part, about the running mean mu, so that large offsets of a feature do not drown it:

    G_0 = K_old (target_mean - b0 - mean'b) - sum_whole slope_i
    G_j = (c_old - S_old b)_j + K_old (target_mean - b0 - mean'b) (mean - mu)_j - sum_whole slope_i (x_i - mu)_j

The point is the minimiser where G_0 = 0, G_j = tau_j sign(b_j) for the members, and |G_j| <= tau_j for all others.
"""

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY, fabs
from cython.cimports.libc.stdlib import calloc, free
from cython.cimports.libc.string import memcpy
from cython.cimports.streamlasso.core.glm.recent_rows import WholeRows
from cython.cimports.streamlasso.core.lasso.active_set import ActiveSet
from cython.cimports.streamlasso.core.lasso.members import Scratch
from cython.cimports.streamlasso.core.lasso.objective import Objective
from cython.cimports.streamlasso.core.linalg.kernels import add_rows, dot_rows, subtract_centred, sum_of_sizes, weigh


@cython.cclass
class Point:
    """b0 is `intercept`, b is in `active`; `rows` are current whenever it is asked for anything."""

    def __cinit__(self, objective: Objective, rows: WholeRows):
        p: cython.Py_ssize_t = objective.p
        n: cython.Py_ssize_t = rows.y.shape[0]
        self.objective = objective
        self.rows = rows
        self.p = p
        self.moments = objective.moments
        self.active = ActiveSet(p, Scratch(p), True)
        self.intercept = self.pull = 0.0
        self.evaluated = self.by_level = False
        by_feature: cython.double[:, ::1] = np.zeros((3, p))
        by_row: cython.double[:, ::1] = np.zeros((3, n))
        self.tau, self.g, self.folded_g = by_feature[0], by_feature[1], by_feature[2]
        self.eta, self.slope, self.curvature = by_row[0], by_row[1], by_row[2]
        self.tol = np.zeros(p + 1)
        self.columns = cython.cast(
            cython.pointer[cython.pointer[cython.const[cython.double]]],
            calloc(max(p, 1), cython.sizeof(cython.p_double)),
        )
        if self.columns == cython.NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.columns)

    def restart(self):
        """From zero."""
        self.active.reset()
        self.intercept = 0.0
        self.evaluated = False

    def evaluate(self):
        """eta, loss' and loss'' on the whole rows, times their weights; G_0 (`pull`) and K (`mass`)."""
        n: cython.Py_ssize_t = self.objective.n_whole
        weight: cython.p_double = cython.address(self.rows.weight[0])
        slope: cython.double
        if self.active.k == 0 and self.rows.n_levels > 0:
            return self._evaluate_levels()
        self._slopes()
        slope = weigh(n, weight, cython.address(self.slope[0]))
        self.mass = self.moments.weight + weigh(n, weight, cython.address(self.curvature[0]))
        self._pull(slope)
        return 0

    def _pull(self, slope):
        """Compute G_0 from the folded rows and the sum of the slopes of the whole ones."""
        self.folded_pull = self.pull = 0.0
        if self.objective.fit_intercept:
            self.folded_pull = self.moments.weight * self._residual()
            self.pull = self.folded_pull - slope
        self.evaluated = True

    def activity(self):
        """sum_i w_i |loss'_i|"""
        i: cython.Py_ssize_t
        total: cython.double = fabs(self.folded_pull)
        if self.by_level:
            for i in range(self.rows.n_levels):
                total += self.rows.level_weight[i] * fabs(self.level_slope[i])
            return total
        return total + sum_of_sizes(self.objective.n_whole, cython.address(self.slope[0]))

    def _slopes(self):
        self.by_level = False
        self._add_members()
        return self.objective.family.slopes(
            self.objective.n_whole,
            cython.address(self.rows.y[0]),
            cython.address(self.eta[0]),
            cython.address(self.slope[0]),
            cython.address(self.curvature[0]),
        )

    def _evaluate_levels(self):
        """Evaluate an empty model once for each response that occurs."""
        i: cython.Py_ssize_t
        slope: cython.double = 0.0
        self.by_level = True
        self.mass = self.moments.weight
        for i in range(self.rows.n_levels):
            self.objective.family.slopes_at(
                self.rows.levels[i],
                self.intercept,
                cython.address(self.level_slope[i]),
                cython.address(self.level_curvature[i]),
            )
            slope += self.rows.level_weight[i] * self.level_slope[i]
            self.mass += self.rows.level_weight[i] * self.level_curvature[i]
        self._pull(slope)
        return 0

    def row_by_row(self):
        """Copy what was evaluated by level to each row."""
        i: cython.Py_ssize_t
        level: cython.Py_ssize_t
        if not self.by_level:
            return
        for i in range(self.objective.n_whole):
            level = self.rows.level_of[i]
            self.eta[i] = self.intercept
            self.slope[i] = self.rows.weight[i] * self.level_slope[level]
            self.curvature[i] = self.rows.weight[i] * self.level_curvature[level]
        self.by_level = False

    def _add_members(self):
        """eta = b0 + mu'b + (x - mu)'b on the whole rows."""
        i: cython.Py_ssize_t
        q: cython.Py_ssize_t
        n: cython.Py_ssize_t = self.objective.n_whole
        k: cython.Py_ssize_t = self.active.k
        eta: cython.p_double = cython.address(self.eta[0])
        b: cython.p_double = self.active.b
        level: cython.double = self.intercept
        for i in range(k):
            level += self.rows.origin[self.active.members[i]] * b[i]
        for i in range(n):
            eta[i] = level
        for q in range(k):
            self.columns[q] = self.rows.column(self.active.members[q])
        add_rows(n, k, self.columns, b, eta)

    def _residual(self):
        """target_mean - b0 - mean'b over the folded rows."""
        q: cython.Py_ssize_t
        r: cython.double = self.moments.target_mean - self.intercept
        for q in range(self.active.k):
            r -= self.moments.mean[self.active.members[q]] * self.active.b[q]
        return r

    def _fold_gradient(self):
        """What the folded rows add to G, but for their mean."""
        memcpy(cython.address(self.folded_g[0]), self.moments.c, self.p * cython.sizeof(cython.double))
        self.moments.times(
            self.active.members,
            self.active.k,
            self.active.b,
            cython.address(self.folded_g[0]),
        )

    def look(self):
        """G about the running mean, for all p features. `evaluate` comes before."""
        j: cython.Py_ssize_t
        q: cython.Py_ssize_t
        n: cython.Py_ssize_t = self.objective.n_whole
        first: cython.Py_ssize_t = self.rows.before_end()
        g: cython.p_double = cython.address(self.g[0])
        origin: cython.p_double = self.rows.origin
        slope: cython.p_double = cython.address(self.slope[0])
        self.row_by_row()
        self._fold_gradient()
        for j in range(self.p):
            g[j] = self.folded_g[j] + self.folded_pull * (self.moments.mean[j] - origin[j])
        subtract_centred(first, self.p, slope, self.rows.row(0), origin, g)
        subtract_centred(n - first, self.p, slope + first, self.rows.ring.x, origin, g)
        if self.active.has_ridge:
            for q in range(self.active.k):
                j = self.active.members[q]
                g[j] -= self.active.scratch.ridge[j] * self.active.b[q]

    def look_at_members(self, slopes):
        """G of the members alone; `slopes` is room for a number by member."""
        j: cython.Py_ssize_t
        q: cython.Py_ssize_t
        self._fold_gradient()
        for q in range(self.active.k):
            self.columns[q] = self.rows.column(self.active.members[q])
        dot_rows(self.objective.n_whole, self.active.k, self.columns, cython.address(self.slope[0]), slopes)
        for q in range(self.active.k):
            j = self.active.members[q]
            self.g[j] = self.folded_g[j] + self.folded_pull * (self.moments.mean[j] - self.rows.origin[j]) - slopes[q]
            if self.active.has_ridge:
                self.g[j] -= self.active.scratch.ridge[j] * self.active.b[q]

    # --- its conditions -----------------------------------------------------------------------------------------

    def tolerate(self, share, most):
        """Write the tolerance of each condition."""
        j: cython.Py_ssize_t
        unit: cython.double
        for j in range(self.p):
            unit = self.objective.size[j] if self.objective.standardize else 1.0
            self.tol[j] = min(share * self.objective.size[j], most * unit)
        self.tol[self.p] = share

    def violation(self):
        """The largest violation of a condition, in units of what is tolerated."""
        j: cython.Py_ssize_t
        q: cython.Py_ssize_t
        largest: cython.double = worse(0.0, fabs(self.pull), self.tol[self.p])
        self.active.locate()
        for j in range(self.p):
            q = self.active.scratch.where[j]
            if q >= 0:
                largest = worse(largest, fabs(self.g[j] - self.tau[j] * self.active.sign[q]), self.tol[j])
            elif self.tau[j] < INFINITY:
                largest = worse(largest, fabs(self.g[j]) - self.tau[j], self.tol[j])
        return largest
