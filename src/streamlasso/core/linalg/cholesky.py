# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The Cholesky factor of the active block, kept up to date instead of computed again.

`U'DU = H_A` with U unit upper triangular, stored by rows, so that every loop below runs along memory, and D diagonal:
without square roots the chain of operations that wait for one another is half as long. With `k` members each change
costs O(k^2):

- a new row of data, `H_A + a x x'`: row by row, `d' = d + a p^2`, and what is left of x goes on to the next row with
  weight `a d/d'` (Gill, Golub, Murray and Saunders, method C1);
- a feature that enters: one triangular solve gives its column, `delta = H_jj - y'D^{-1}y` its pivot;
- a feature that leaves: deleting column q leaves `U33'D33 U33 + d_q u u'` in the lower right, an update by one row;
- a row of data that is taken out again: an update with a = -1, which can fail where the others cannot.
"""

import cython
from cython.cimports.libc.stdlib import free, malloc
from cython.cimports.libc.string import memcpy
from cython.cimports.streamlasso.core.base.state import Stateful
from cython.cimports.streamlasso.core.base.tape import CHECK, FINITE, POSITIVE, READ
from cython.cimports.streamlasso.core.linalg.kernels import (
    axpy,
    axpy4,
    dot,
    dot4,
    drop_column,
    eliminate,
    long_eliminate,
    long_solve_lower,
    long_solve_upper,
)

#: Loops in fours pay for as many numbers.
LONG = cython.declare(cython.Py_ssize_t, 24)


@cython.cclass
class Factor(Stateful):
    """U'DU = H_A for a block of k features, up to p; D is kept beside U, with its inverse.

    There is `room` for as many members; where k is larger, they are listed only, and have no columns here.
    """

    def __cinit__(self, p: cython.Py_ssize_t, *args):
        self.p = p
        self.room = self.k = 0
        self.broken = False

    def __dealloc__(self):
        free(self.d)

    def _make_room(self, k):
        """Make room for k members and some more: most blocks stay much smaller than p. False if there is no memory."""
        return k <= self.room or self._change_room(min(self.p + 2, max(k, self.room + max(self.room // 4, 4))))

    def _change_room(self, room):
        """Make room for exactly so many members; False, and no change, if there is no memory."""
        i: cython.Py_ssize_t
        kept: cython.Py_ssize_t = min(self.k, self.room)
        d: cython.p_double = cython.cast(cython.p_double, malloc((room + 2) * room * cython.sizeof(cython.double)))
        if d == cython.NULL:
            return False
        for i in range(kept):
            d[i] = self.d[i]
            d[room + i] = self.d[self.room + i]
            memcpy(d + (2 + i) * room + i, self.row(i) + i, (kept - i) * cython.sizeof(cython.double))
        free(self.d)
        self.d = d
        self.room = room
        return True

    def give_back(self):
        """Free D and U, which must be made again before they are used; the members stay listed."""
        free(self.d)
        self.d = cython.NULL
        self.room = 0

    def scale(self, factor):
        """Multiply H_A by a factor."""
        i: cython.Py_ssize_t
        for i in range(self.k if self.k <= self.room else 0):
            self.d[i] *= factor
            self.d[self.room + i] /= factor

    def _append_column(self, column, diagonal, tolerance):
        """Enter a feature with the column H_Aj, which is overwritten; returns its pivot `delta`, and enters nothing
        where `delta <= tolerance * diagonal`: the feature is then a combination of the members."""
        i: cython.Py_ssize_t
        k: cython.Py_ssize_t = self.k
        delta: cython.double = diagonal
        if not self._make_room(k + 1):
            return 0.0
        self._solve_lower(column)
        for i in range(k):
            delta -= column[i] * column[i] * self.d[self.room + i]
        if not delta > tolerance * diagonal:
            return delta
        for i in range(k):
            self.row(i)[k] = column[i] * self.d[self.room + i]
        self.d[k] = delta
        self.d[self.room + k] = 1.0 / delta
        self.k = k + 1
        return delta

    def pop(self):
        """Undo the last append."""
        self.k -= 1

    def _drop_column(self, q, work):
        """Take the q-th member out; there is room for p numbers in `work`."""
        i: cython.Py_ssize_t
        m: cython.Py_ssize_t = self.k - 1
        weight: cython.double = self.d[q]
        for i in range(q, m):
            work[i] = self.row(q)[i + 1]
        for i in range(q, m):
            self.d[i] = self.d[i + 1]
            self.d[self.room + i] = self.d[self.room + i + 1]
        drop_column(self.k, q, self.room, self.row(0))
        self.k = m
        self.update_from(q, work, weight)

    def update_from(self, start, x, a):
        """H_A + a x x' where x is zero before `start`; x is overwritten. False, and the factor is of no further use,
        where too little would be left."""
        i: cython.Py_ssize_t
        p: cython.double
        d: cython.double
        inverse: cython.double
        beta: cython.double
        if self.k > self.room:
            return False
        for i in range(start, self.k):
            p = x[i]
            if p == 0.0:
                continue
            d = self.d[i] + a * p * p
            if not d > 1e-10 * self.d[i]:
                return False
            inverse = 1.0 / d
            beta = a * p * inverse
            a *= self.d[i] * inverse
            self.d[i] = d
            self.d[self.room + i] = inverse
            if self.k - i > LONG:
                long_eliminate(self.k - i - 1, p, beta, self.row(i) + i + 1, x + i + 1)
            else:
                eliminate(self.k - i - 1, p, beta, self.row(i) + i + 1, x + i + 1)
        return True

    def solve_block(self, b):
        """b <- H_A^{-1} b, four rows at a time."""
        i: cython.Py_ssize_t
        k: cython.Py_ssize_t = self.k
        ld: cython.Py_ssize_t = self.room
        row: cython.p_double
        s: cython.double[4]
        if k > ld:
            return
        self._solve_lower(b)
        for i in range(k):
            b[i] *= self.d[self.room + i]
        if k >= LONG:
            long_solve_upper(k, ld, self.row(0), b)
            return
        i = k - 4
        while i >= 0:
            row = self.row(i)
            dot4(k - i - 4, row + i + 4, ld, b + i + 4, s)
            b[i + 3] -= s[3]
            b[i + 2] -= s[2] + row[2 * ld + i + 3] * b[i + 3]
            b[i + 1] -= (s[1] + row[ld + i + 3] * b[i + 3]) + row[ld + i + 2] * b[i + 2]
            b[i] -= ((s[0] + row[i + 3] * b[i + 3]) + row[i + 2] * b[i + 2]) + row[i + 1] * b[i + 1]
            i -= 4
        i += 3
        while i >= 0:
            b[i] -= dot(k - i - 1, self.row(i) + i + 1, b + i + 1)
            i -= 1

    def _solve_lower(self, b):
        """b <- U'^{-1} b, four rows at a time."""
        i: cython.Py_ssize_t = 0
        k: cython.Py_ssize_t = self.k
        ld: cython.Py_ssize_t = self.room
        row: cython.p_double
        a: cython.double[4]
        if k >= LONG:
            long_solve_lower(k, ld, self.row(0), b)
            return
        while i + 3 < k:
            row = self.row(i)
            b[i + 1] -= row[i + 1] * b[i]
            b[i + 2] -= row[i + 2] * b[i] + row[ld + i + 2] * b[i + 1]
            b[i + 3] -= (row[i + 3] * b[i] + row[ld + i + 3] * b[i + 1]) + row[2 * ld + i + 3] * b[i + 2]
            a[0] = -b[i]
            a[1] = -b[i + 1]
            a[2] = -b[i + 2]
            a[3] = -b[i + 3]
            row += i + 4
            axpy4(k - i - 4, a, row, row + ld, row + 2 * ld, row + 3 * ld, b + i + 4)
            i += 4
        while i < k:
            axpy(k - i - 1, -b[i], self.row(i) + i + 1, b + i + 1)
            i += 1

    def _travel_factor(self, tape):
        """Show the tape D, then the rows of U right of the diagonal; `n_rows` must be known."""
        i: cython.Py_ssize_t
        k: cython.Py_ssize_t = tape.n_rows
        if k == 0:
            return
        if tape.mode == READ and not self._make_room(k):
            tape.lack()
            return
        tape.doubles(self.d, k, POSITIVE)
        tape.triangle(self.row(0), k, self.room, FINITE)
        if tape.mode == CHECK and tape.wrong == cython.NULL and not self._make_room(k):
            tape.lack()
        if tape.mode == READ and tape.wrong == cython.NULL:
            for i in range(k):
                self.d[self.room + i] = 1.0 / self.d[i]
