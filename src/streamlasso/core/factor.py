# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The Cholesky factor of the active block, kept up to date instead of computed again.

`R` is upper triangular with `R'R = H_A`, stored by rows, so that every loop below runs along memory. With `k`
members each change costs O(k^2):

- a new row of data, `H_A + x x'`: one Givens rotation a row of R;
- a feature that enters: one triangular solve gives its column, `delta = H_jj - |r|^2` its pivot;
- a feature that leaves: deleting column q leaves `R33'R33 + r r'` in the lower right, again an update by one row;
- a row of data that is taken out again: hyperbolic rotations, which can fail where rotations cannot.
"""

import cython
import numpy as np
from cython.cimports.libc.math import sqrt
from cython.cimports.libc.string import memmove
from cython.cimports.streamlasso.core.kernels import axpy, axpy4, dot, dot4, rotate


@cython.cclass
class Factor:
    """R'R = H_A for a block of up to `n` features."""

    def __cinit__(self, n: cython.Py_ssize_t):
        self.R = np.zeros((n, n))
        self.work = np.zeros(n)
        self.inverse = np.zeros(n)
        self.k = 0

    def clear(self):
        self.k = 0

    def scale(self, root):
        """H_A times root^2."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        for i in range(self.k):
            self.inverse[i] /= root
            for j in range(i, self.k):
                self.R[i, j] *= root

    def append(self, column, diagonal, tolerance):
        """Enter a feature: `column` is H_Aj and becomes `R'^{-1} H_Aj`; returns its pivot `delta`, and enters
        nothing where `delta <= tolerance * diagonal`: the feature is then a combination of the members."""
        i: cython.Py_ssize_t
        k: cython.Py_ssize_t = self.k
        delta: cython.double
        self._solve_transposed(column)
        delta = diagonal - dot(k, column, column)
        if not delta > tolerance * diagonal:
            return delta
        for i in range(k):
            self.R[i, k] = column[i]
        self.R[k, k] = sqrt(delta)
        self.inverse[k] = 1.0 / self.R[k, k]
        self.k = k + 1
        return delta

    def pop(self):
        """Undo the last append."""
        self.k -= 1

    def drop(self, q):
        """Take the q-th member out."""
        i: cython.Py_ssize_t
        m: cython.Py_ssize_t = self.k - 1
        size: cython.size_t = cython.sizeof(cython.double)
        for i in range(q + 1, m + 1):
            self.work[i - 1] = self.R[q, i]
        for i in range(q):
            memmove(cython.address(self.R[i, q]), cython.address(self.R[i, q]) + 1, (m - q) * size)
        for i in range(q, m):
            self.inverse[i] = self.inverse[i + 1]
            memmove(cython.address(self.R[i, i]), cython.address(self.R[i + 1, i]) + 1, (m - i) * size)
        self.k = m
        self._update_from(q, cython.address(self.work[0]))

    def update(self, x):
        """H_A + x x'; x is overwritten."""
        self._update_from(0, x)

    def _update_from(self, start, x):
        i: cython.Py_ssize_t
        r: cython.double
        c: cython.double
        s: cython.double
        inverse: cython.double
        row: cython.p_double
        for i in range(start, self.k):
            if x[i] == 0.0:
                continue
            row = cython.address(self.R[i, 0])
            r = sqrt(row[i] * row[i] + x[i] * x[i])
            inverse = 1.0 / r
            c = row[i] * inverse
            s = x[i] * inverse
            row[i] = r
            self.inverse[i] = inverse
            rotate(self.k - i - 1, c, s, row + i + 1, x + i + 1)

    def downdate(self, x):
        """H_A - x x'; x is overwritten. False, and the factor is of no further use, where too little would be left."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        r: cython.double
        c: cython.double
        s: cython.double
        row: cython.p_double
        for i in range(self.k):
            if x[i] == 0.0:
                continue
            row = cython.address(self.R[i, 0])
            r = (row[i] - x[i]) * (row[i] + x[i])
            if not r > 1e-10 * row[i] * row[i]:
                return False
            r = sqrt(r)
            c = r / row[i]
            s = x[i] / row[i]
            row[i] = r
            self.inverse[i] = 1.0 / r
            for j in range(i + 1, self.k):
                row[j] = (row[j] - s * x[j]) / c
                x[j] = c * x[j] - s * row[j]
        return True

    def solve(self, b):
        """b <- H_A^{-1} b"""
        i: cython.Py_ssize_t
        k: cython.Py_ssize_t = self.k
        ld: cython.Py_ssize_t = self.R.shape[1]
        row: cython.p_double
        inverse: cython.p_double = cython.address(self.inverse[0])
        s: cython.double[4]
        self._solve_transposed(b)
        i = k - 4
        while i >= 0:
            row = cython.address(self.R[i, 0])
            dot4(k - i - 4, row + i + 4, ld, b + i + 4, s)
            b[i + 3] = (b[i + 3] - s[3]) * inverse[i + 3]
            b[i + 2] = (b[i + 2] - s[2] - row[2 * ld + i + 3] * b[i + 3]) * inverse[i + 2]
            b[i + 1] = (b[i + 1] - s[1] - row[ld + i + 3] * b[i + 3] - row[ld + i + 2] * b[i + 2]) * inverse[i + 1]
            b[i] = (b[i] - s[0] - row[i + 3] * b[i + 3] - row[i + 2] * b[i + 2] - row[i + 1] * b[i + 1]) * inverse[i]
            i -= 4
        i += 3
        while i >= 0:
            row = cython.address(self.R[i, 0])
            b[i] = (b[i] - dot(k - i - 1, row + i + 1, b + i + 1)) * inverse[i]
            i -= 1

    def _solve_transposed(self, b):
        """b <- R'^{-1} b"""
        i: cython.Py_ssize_t = 0
        k: cython.Py_ssize_t = self.k
        ld: cython.Py_ssize_t = self.R.shape[1]
        row: cython.p_double
        inverse: cython.p_double = cython.address(self.inverse[0])
        a: cython.double[4]
        while i + 3 < k:
            row = cython.address(self.R[i, 0])
            b[i] *= inverse[i]
            b[i + 1] = (b[i + 1] - row[i + 1] * b[i]) * inverse[i + 1]
            b[i + 2] = (b[i + 2] - row[i + 2] * b[i] - row[ld + i + 2] * b[i + 1]) * inverse[i + 2]
            b[i + 3] = (
                b[i + 3] - row[i + 3] * b[i] - row[ld + i + 3] * b[i + 1] - row[2 * ld + i + 3] * b[i + 2]
            ) * inverse[i + 3]
            a[0] = -b[i]
            a[1] = -b[i + 1]
            a[2] = -b[i + 2]
            a[3] = -b[i + 3]
            row += i + 4
            axpy4(k - i - 4, a, row, row + ld, row + 2 * ld, row + 3 * ld, b + i + 4)
            i += 4
        while i < k:
            row = cython.address(self.R[i, 0])
            b[i] *= inverse[i]
            axpy(k - i - 1, -b[i], row + i + 1, b + i + 1)
            i += 1
