# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""All rows as weighted least squares about a point (`gradient.py`).

With the intercept profiled out its Gram matrix is

    S = S_old + K_old (m_old - m)(m_old - m)' + sum_whole k_i (x_i - m)(x_i - m)',     k_i = w_i loss''(eta_i),
    K m = K_old m_old + sum_whole k_i x_i

S gets a row for each feature when it is first asked for, in a `Moments` of the caller's.
"""

import cython
import numpy as np
from cython.cimports.streamlasso.core.glm.gradient import Point
from cython.cimports.streamlasso.core.linalg.kernels import centred_product, long_dot, matrix_times, roots

#: By which factor the curvature may change in a step that is not searched.
ALIKE = cython.declare(cython.double, 4.0)


@cython.cclass
class Expansion:
    """At the point where it was last made."""

    def __cinit__(self, point: Point):
        p: cython.Py_ssize_t = point.p
        n: cython.Py_ssize_t = point.rows.y.shape[0]
        self.point = point
        self.objective = point.objective
        self.rows = point.rows
        self.moments = point.moments
        self.active = point.active
        self.p = p
        self.rooted = self.curved = False
        by_feature: cython.double[:, ::1] = np.zeros((3, p))
        by_row: cython.double[:, ::1] = np.zeros((p + 1, n))
        self.centre, self.work, self.gram = by_feature[0], by_feature[1], by_feature[2]
        self.root = by_row[0]
        self.z = by_row[1:]
        self.expanded = np.zeros(p, dtype=np.intp)
        self.place = np.full(p, -1, dtype=np.intp)
        self.n_expanded = 0

    def expand(self, local):
        """All rows as weighted least squares at the current point; S has no features yet."""
        a: cython.Py_ssize_t
        for a in range(self.n_expanded):
            self.place[self.expanded[a]] = -1
        self.n_expanded = 0
        self.rooted = False
        self.point.row_by_row()
        self.total = max(self.point.mass, 1e-300)
        local.n_pending = 0
        local.weight = self.total

    def _take_roots(self):
        """sqrt(k_i), for the first feature that is brought in."""
        roots(self.objective.n_whole, cython.address(self.point.curvature[0]), cython.address(self.root[0]))
        self.rooted = True

    def expand_members(self, local):
        q: cython.Py_ssize_t
        self.expand(local)
        for q in range(self.active.k):
            self.bring_in(local, self.active.members[q])

    def bring_in(self, local, j):
        """Feature j with m_j and its row of S: the folded rows moved to the common mean, plus the whole rows."""
        a: cython.Py_ssize_t
        k: cython.Py_ssize_t = self.n_expanded
        n: cython.Py_ssize_t = self.objective.n_whole
        d: cython.double = 0.0
        w: cython.pointer[cython.Py_ssize_t] = cython.address(self.expanded[0])
        row: cython.p_double = cython.address(self.work[0])
        z: cython.p_double = cython.address(self.z[k, 0])
        if self.place[j] >= 0:
            return
        if not self.rooted:
            self._take_roots()
        self.place[j] = k
        w[k] = j
        self.n_expanded = k + 1
        self._centre(j, z)
        local.mean[j] = self.centre[j]
        self.moments.column(j, w, k + 1, row)
        matrix_times(k + 1, n, self.z.shape[1], cython.address(self.z[0, 0]), z, cython.address(self.gram[0]))
        if self.objective.fit_intercept:
            d = self.moments.weight * (self.moments.mean[j] - self.centre[j])
        for a in range(k + 1):
            row[a] += self.gram[a] + d * (self.moments.mean[w[a]] - self.centre[w[a]])
            local.S[j * self.p + w[a]] = local.S[w[a] * self.p + j] = row[a]

    def _centre(self, j, z):
        """m_j, and z_i = sqrt(k_i) (x_ij - m_j)."""
        n: cython.Py_ssize_t = self.objective.n_whole
        shift: cython.double = 0.0
        x: cython.p_double = self.rows.column(j)
        if self.objective.fit_intercept:
            shift = self.moments.weight * (self.moments.mean[j] - self.rows.origin[j])
            shift += long_dot(n, cython.address(self.point.curvature[0]), x)
            shift /= self.total
        centred_product(n, cython.address(self.root[0]), x, shift, z)
        self.centre[j] = self.rows.origin[j] + shift

    def alike(self):
        """Whether the rows are curved about as they were where they were expanded. Where all are saturated slopes
        vanish, far from any minimum."""
        return self.total <= ALIKE * self.point.mass and self.point.mass <= ALIKE * self.total
