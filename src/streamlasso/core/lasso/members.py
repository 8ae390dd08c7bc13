# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The members of an active set: who they are, their coefficients and signs, and the factor of their block of

    H = S + diag(ridge).

The factor follows S as rows come and go. Where it does not (`broken`) it is made again before it is used. A feature
that is a combination of the members (more features than rows, duplicates) cannot be factored, and does not join.

`members`, `b`, `sign` and `target` are indexed by position among the members, all else by feature.
"""

import cython
import numpy as np
from cython.cimports.libc.stdlib import abort, calloc, free, malloc
from cython.cimports.libc.string import memcpy
from cython.cimports.streamlasso.core.base.tape import CHECK, FINITE, READ, SIGN
from cython.cimports.streamlasso.core.linalg.cholesky import Factor
from cython.cimports.streamlasso.core.linalg.kernels import factor_block

from streamlasso.core.base.state import COLUMNS, ROWS, TRIANGLE, Column, array, numbers, table

#: A feature whose pivot falls below this share of its variance is a combination of the members.
DEPENDENT = cython.declare(cython.double, 1e-12)

DOUBLE = cython.declare(cython.size_t, cython.sizeof(cython.double))
INDEX = cython.declare(cython.size_t, cython.sizeof(cython.Py_ssize_t))


@cython.cclass
class Scratch:
    """Work space for p features, used by one active set after the other."""

    def __cinit__(self, p: cython.Py_ssize_t):
        self.tau = cython.cast(cython.p_double, calloc(10 * p * DOUBLE + 4 * p * INDEX + p + 1, 1))
        if self.tau == cython.NULL:
            raise MemoryError
        self.p = p
        self.tol = self.tau + p
        self.ridge = self.tol + p
        self.g = self.ridge + p
        self.target = self.g + p
        self.work = self.target + p
        self.kept_b = self.work + p
        self.kept_sign = self.kept_b + p
        self.slope_b = self.kept_sign + p
        self.slope_mean = self.slope_b + p
        self.where = cython.cast(cython.pointer[cython.Py_ssize_t], self.slope_mean + p)
        self.slope_members = self.where + p
        self.kept_members = self.slope_members + p
        self.candidates = self.kept_members + p
        self.resting = cython.cast(cython.pointer[cython.schar], self.candidates + p)
        self.kept = self.n_resting = self.n_candidates = 0

    def __dealloc__(self):
        free(self.tau)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def all_differ(x: cython.pointer[cython.const[cython.Py_ssize_t]], n: cython.Py_ssize_t) -> cython.bint:
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    for i in range(n):
        for j in range(i):
            if x[i] == x[j]:
                return False
    return True


@cython.no_gc
@cython.cclass
class Members(Factor):
    """The members, their signs and coefficients, and the factor of their block.

    Those that are solved in turn share their scratch space. Where it is asked for (`keeps_g`), one keeps its g.
    """

    STATE = (
        array("members", ROWS, dtype=np.int64),
        table("solution", (ROWS, COLUMNS), Column("b", np.negative), Column("sign", np.negative)),
        numbers("age", Column("broken"), Column("age"), dtype=np.int64),
        array("factor", TRIANGLE),
    )

    def __cinit__(self, p: cython.Py_ssize_t, scratch: Scratch, keeps_g: cython.bint):
        self.scratch = scratch
        self.g = scratch.g
        if keeps_g:
            self.g = cython.cast(cython.p_double, calloc(max(p, 1), DOUBLE))
            if self.g == cython.NULL:
                raise MemoryError
        self.keeps_g = keeps_g
        self.has_ridge = self.has_free = False
        self.age = self.held = 0

    def __dealloc__(self):
        free(self.members)
        if self.keeps_g:
            free(self.g)

    def hold(self, k):
        """Make room for a list of k members and a few more; False if there is no memory."""
        return k <= self.held or self._list(min(self.p, k + max(k // 4, 4)))

    def _list(self, room):
        """Make room for a list of exactly so many members; False if there is no memory."""
        kept: cython.Py_ssize_t = min(self.k, self.held)
        if room == 0:
            free(self.members)
            self.members = cython.NULL
            self.b = self.sign = cython.NULL
            self.held = 0
            return True
        members: cython.pointer[cython.Py_ssize_t] = cython.cast(
            cython.pointer[cython.Py_ssize_t], malloc(room * (INDEX + 2 * DOUBLE))
        )
        if members == cython.NULL:
            return False
        b: cython.p_double = cython.cast(cython.p_double, members + room)
        if kept > 0:
            memcpy(members, self.members, kept * INDEX)
            memcpy(b, self.b, kept * DOUBLE)
            memcpy(b + room, self.sign, kept * DOUBLE)
        free(self.members)
        self.members = members
        self.b = b
        self.sign = b + room
        self.held = room
        return True

    def hold_or_end(self, k):
        """`hold` where the caller cannot undo what it did."""
        if not self.hold(k):
            abort()

    def locate(self):
        """Write the place of each feature among the members, or -1, to `scratch.where`."""
        q: cython.Py_ssize_t
        j: cython.Py_ssize_t
        for j in range(self.p):
            self.scratch.where[j] = -1
        for q in range(self.k):
            self.scratch.where[self.members[q]] = q

    def reset(self):
        """Remove all members."""
        self.k = 0
        self.broken = False

    def remember(self):
        """Copy the solution to the scratch space."""
        self.scratch.kept = self.k
        if self.k > 0:
            memcpy(self.scratch.kept_members, self.members, self.k * INDEX)
            memcpy(self.scratch.kept_b, self.b, self.k * DOUBLE)
            memcpy(self.scratch.kept_sign, self.sign, self.k * DOUBLE)

    def recall(self):
        """Restore the solution that was copied; its factor has to be made again."""
        self.reset()
        self.hold_or_end(self.scratch.kept)
        self.k = self.scratch.kept
        if self.k > 0:
            memcpy(self.members, self.scratch.kept_members, self.k * INDEX)
            memcpy(self.b, self.scratch.kept_b, self.k * DOUBLE)
            memcpy(self.sign, self.scratch.kept_sign, self.k * DOUBLE)
        self.broken = True

    def follow(self, other):
        """Start from the solution of another active set on the same problem."""
        other.remember()
        self.recall()

    def times(self, x):
        """x'b"""
        i: cython.Py_ssize_t = 0
        k: cython.Py_ssize_t = self.k
        b: cython.p_double = self.b
        members: cython.pointer[cython.Py_ssize_t] = self.members
        even: cython.double = 0.0
        odd: cython.double = 0.0
        while i + 1 < k:
            even += x[members[i]] * b[i]
            odd += x[members[i + 1]] * b[i + 1]
            i += 2
        if i < k:
            even += x[members[i]] * b[i]
        return even + odd

    def add_to(self, coef, weight):
        """coef += weight b"""
        i: cython.Py_ssize_t
        b: cython.p_double = self.b
        members: cython.pointer[cython.Py_ssize_t] = self.members
        for i in range(self.k):
            coef[members[i]] += weight * b[i]

    def mark(self, used):
        """Set `used` of the features with coefficients; how many were not set before."""
        i: cython.Py_ssize_t
        n: cython.Py_ssize_t = 0
        for i in range(self.k):
            if self.b[i] != 0.0 and not used[self.members[i]]:
                used[self.members[i]] = True
                n += 1
        return n

    def spread(self, x, mean):
        """z_A' H_A^{-1} z_A, for a row z = x - mean."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        total: cython.double = 0.0
        target: cython.p_double = self.scratch.target
        for i in range(self.k):
            j = self.members[i]
            target[i] = x[j] - mean[j]
        self.solve_block(target)
        for i in range(self.k):
            j = self.members[i]
            total += target[i] * (x[j] - mean[j])
        return total

    # --- the rows of the stream ---------------------------------------------------------------------------------

    def absorb(self, z, sign):
        """Update the factor after S has become S + sign z z'; it is broken if too little is left."""
        i: cython.Py_ssize_t
        if self.has_ridge or self.broken:
            return
        for i in range(self.k):
            self.scratch.target[i] = z[self.members[i]]
        self.broken = not self.update_from(0, self.scratch.target, sign)
        self.age += 1

    def abandon(self):
        """Drop the factor until the next solve, and room for members that is not used."""
        self.broken = True
        self.give_back()
        if self.held != self.k:
            self._list(self.k)

    def trim(self):
        """No room for more members than there are; it is made again where some enter. Without memory for less room it
        stays."""
        if self.broken or self.k == 0:
            self.give_back()
        elif self.room > self.k:
            self._change_room(self.k)
        if self.held != self.k:
            self._list(self.k)

    # --- members come and go ------------------------------------------------------------------------------------

    def _join(self, j, sign, b):
        """Write j as the last member."""
        q: cython.Py_ssize_t = self.k - 1
        self.members[q] = j
        self.sign[q] = sign
        self.b[q] = b

    def leave(self, q):
        """Remove the q-th member."""
        i: cython.Py_ssize_t
        for i in range(q + 1, self.k):
            self.members[i - 1] = self.members[i]
            self.sign[i - 1] = self.sign[i]
            self.b[i - 1] = self.b[i]
        if self.broken or self.k > self.room:
            self.k -= 1
        else:
            self._drop_column(q, self.scratch.work)

    def append(self, m, j):
        """Add j to the factor; False if it is a combination of the members."""
        diagonal: cython.double = m.diagonal(j) + self.scratch.ridge[j]
        column: cython.p_double = self.scratch.target
        if not self.hold(self.k + 1):
            return False
        m.column(j, self.members, self.k, column)
        return self._append_column(column, diagonal, DEPENDENT) > DEPENDENT * diagonal

    def refactor(self, m):
        """Make the factor again from S. Members that are combinations of others leave; True if none did."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        k: cython.Py_ssize_t = self.k
        whole: cython.bint = True
        self.k = 0
        self._make_room(k + 2)
        self.broken = False
        self.age = 0
        if self._factor_block(m, k):
            return True
        for i in range(k):
            j = self.members[i]
            if self.append(m, j):
                self._join(j, self.sign[i], self.b[i])
            else:
                whole = False
        return whole

    def _factor_block(self, m, k):
        """Factor the first k members at once; False, and no factor, if one is a combination of others."""
        ld: cython.Py_ssize_t = self.room
        U: cython.p_double = self.row(0)
        ridge: cython.p_double = self.scratch.ridge
        if k + 2 > ld or k > factor_block(
            k, self.members, self.p, m.S, m.n_pending, m.rows, m.signed, ridge, DEPENDENT, ld, U, self.d, self.d + ld
        ):
            return False
        self.k = k
        return True

    # --- for checkpoints ----------------------------------------------------------------------------------------

    def travel(self, tape):
        """A broken factor is not part of the state: it is made again before it is used."""
        members: cython.pointer[cython.const[cython.Py_ssize_t]]
        k: cython.Py_ssize_t = tape.rows(cython.address(self.k), self.p)
        if tape.mode == READ and not self.hold(k):
            k = self.k = 0
            tape.lack()
        members = tape.indices(self.members, k, 0, self.p)
        tape.doubles(self.b, k, FINITE)
        tape.doubles(self.sign, k, SIGN)
        if tape.mode == CHECK:
            tape.require(tape.wrong != cython.NULL or all_differ(members, k), b"the active set names a feature twice")
            if tape.wrong == cython.NULL and not self.hold(k):
                tape.lack()
        broken: cython.bint = tape.flag(cython.address(self.broken))
        tape.count(cython.address(self.age))
        if not broken:
            self._travel_factor(tape)

    def _keeps_triangle(self, known):
        return not known["age"][0]
