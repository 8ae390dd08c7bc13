# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The numbers of a state in one row of memory, written and read in compiled code.

An object shows its numbers to a tape, one array after the other (`travel`, in `state.py`); what becomes of them is the
tape's affair. MEASURE counts them, WRITE copies them onto the tape and READ back, and CHECK looks at what is on the
tape, before READ lets compiled code trust it, and changes nothing. So each method returns the numbers that count: those
of the object, or, while checking, those on the tape. `n_rows` and `n_seen` are the numbers of rows that were last
spoken of.

Every number takes eight bytes: a double, or an integer.
"""

import cython
from cython.cimports.libc.math import fabs
from cython.cimports.libc.string import memcpy
from cython.cimports.streamlasso.core.kernels import all_finite

WIDTH = cython.declare(cython.Py_ssize_t, 8)
MOST = cython.declare(cython.Py_ssize_t, 2**62)


@cython.cclass
class Tape:
    """A row of memory, and where on it the next number is."""

    def use(self, mode, start, size):
        """From the start, for this purpose; MEASURE needs no memory."""
        self.mode = mode
        self.start = start
        self.size = size
        self.at = self.n_rows = self.n_seen = 0
        self.wrong_at = -1
        self.wrong = cython.NULL

    def doubles(self, own, n, kind):
        there: cython.p_double = cython.cast(cython.p_double, self._next(n))
        if there == cython.NULL:
            return own
        if self.mode == WRITE:
            memcpy(there, own, n * WIDTH)
        elif self.mode == READ:
            memcpy(own, there, n * WIDTH)
        else:
            self._admissible(there, n, kind)
            return there
        return own

    def lent(self, own, n, kind):
        """The same for numbers that may stay on the tape: where they are from now on. Where the tape `lends`, READ
        copies nothing, and WRITE to the same place neither."""
        there: cython.p_double = cython.cast(cython.p_double, self.start + self.at)
        if self.lends and self.mode == READ:
            return there if self._next(n) != cython.NULL else own
        if self.mode == WRITE and there == own:
            self._next(n)
        else:
            self.doubles(own, n, kind)
        return own

    def number(self, own, kind):
        there: cython.p_double = cython.cast(cython.p_double, self._next(1))
        if there == cython.NULL:
            return own[0]
        if self.mode == WRITE:
            there[0] = own[0]
        elif self.mode == READ:
            own[0] = there[0]
        else:
            self._admissible(there, 1, kind)
            return there[0]
        return own[0]

    def triangle(self, rows, k, ld, kind):
        """Of k rows, `ld` numbers apart, those right of the diagonal."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        there: cython.p_double = cython.cast(cython.p_double, self._next(k * (k - 1) // 2))
        if there == cython.NULL:
            return
        if self.mode == CHECK:
            self._admissible(there, k * (k - 1) // 2, kind)
            return
        for i in range(k - 1):
            if self.mode == WRITE:
                for j in range(i + 1, k):
                    there[j - i - 1] = rows[i * ld + j]
            else:
                for j in range(i + 1, k):
                    rows[i * ld + j] = there[j - i - 1]
            there += k - i - 1

    def indices(self, own, n, first, end):
        """Integers from `first` to `end - 1`."""
        i: cython.Py_ssize_t
        there: cython.pointer[cython.Py_ssize_t] = cython.cast(cython.pointer[cython.Py_ssize_t], self._next(n))
        if there == cython.NULL:
            return own
        if self.mode == WRITE:
            memcpy(there, own, n * WIDTH)
        elif self.mode == READ:
            memcpy(own, there, n * WIDTH)
        else:
            for i in range(n):
                if there[i] < first or there[i] >= end:
                    self.at += (i - n + 1) * WIDTH
                    self._refuse(b"is out of range")
                    return own
            return there
        return own

    def index(self, own, end):
        """One integer from 0 to `end - 1`."""
        there: cython.pointer[cython.Py_ssize_t] = cython.cast(cython.pointer[cython.Py_ssize_t], self._next(1))
        if there == cython.NULL:
            return own[0]
        if self.mode == WRITE:
            there[0] = own[0]
        elif self.mode == READ:
            own[0] = there[0]
        elif 0 <= there[0] < end:
            return there[0]
        else:
            self._refuse(b"is out of range")
        return own[0]

    def count(self, own):
        """An integer that is far from where integers end."""
        return self.index(own, MOST)

    def rows(self, own, capacity):
        """How many rows follow."""
        self.n_rows = self.index(own, capacity + 1)
        return 0 if self.wrong != cython.NULL else self.n_rows

    def small(self, own, end):
        """An integer that its object keeps in four bytes."""
        value: cython.Py_ssize_t = own[0]
        value = self.index(cython.address(value), end)
        if self.mode == READ:
            own[0] = cython.cast(cython.int, value)
        return cython.cast(cython.int, value)

    def flag(self, own):
        value: cython.Py_ssize_t = own[0]
        value = self.index(cython.address(value), 2)
        if self.mode == READ:
            own[0] = value != 0
        return value != 0

    def require(self, holds, otherwise):
        """Of numbers that must belong together."""
        if self.mode == CHECK and not holds and self.wrong == cython.NULL:
            self.wrong = otherwise

    def _next(self, n):
        """Where the next n numbers are; NULL where there is nothing to copy or to look at."""
        there: cython.p_char = self.start + self.at
        if self.wrong != cython.NULL:
            return cython.NULL
        self.at += n * WIDTH
        if self.mode == MEASURE:
            return cython.NULL
        if self.at > self.size:
            self.wrong = b"numbers are missing"
            return cython.NULL
        return there

    def _admissible(self, x, n, kind):
        """Refuse the first number that is not of this kind."""
        i: cython.Py_ssize_t
        bad: cython.Py_ssize_t = 0
        if kind == ANY:
            return
        if kind != PENALTY and not all_finite(n, x):
            self._refuse(b"must be finite")
        elif kind == SIGN:
            for i in range(n):
                bad += fabs(x[i]) != 1.0
            if bad > 0:
                self._refuse(b"must be 1 or -1")
        elif kind != FINITE:
            for i in range(n):
                bad += not (x[i] > 0.0 if kind == POSITIVE else x[i] >= 0.0)
            if bad > 0:
                self._refuse(b"must be above 0" if kind == POSITIVE else b"must be 0 or larger")

    def _refuse(self, why):
        """What was shown last."""
        self.wrong = why
        self.wrong_at = self.at - WIDTH
