# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The numbers of a state in one row of memory, written and read in compiled code.

An object shows its numbers to a tape, one array after the other (`travel`, in `state.py`). What the tape does with
them is its mode. MEASURE counts them, WRITE copies them onto the tape, and READ copies them back. CHECK looks at the
numbers on the tape before READ lets compiled code trust them; it changes nothing, but makes room for them. Each method
returns the numbers that apply: those of the object, or, in CHECK, those on the tape. `n_rows` and `n_seen` are the
numbers of rows that the tape has met last.

Every number takes eight bytes: a double, or an integer. The methods that are called for every array (`doubles`,
`number`, `indices`, `index`, `count`, `rows`, `small`, `flag`, `require`) are in `tape.pxd`.
"""

import cython
from cython.cimports.libc.math import fabs, isfinite
from cython.cimports.streamlasso.core.linalg.kernels import all_finite


@cython.cclass
class Tape:
    """A row of memory, and where on it the next number is."""

    def use(self, mode, start, size):
        """From the start, for this purpose; MEASURE needs no memory."""
        self.mode = mode
        self.start = start
        self.size = size
        self.end = -1 if mode == MEASURE else size
        # Integers are looked at as well: small ones are tiny numbers, and where one is negative all arrays are checked.
        self.clean = mode == CHECK and all_finite(size // WIDTH, cython.cast(cython.p_double, start))
        self.at = self.n_rows = self.n_seen = 0
        self.wrong_at = -1
        self.wrong = cython.NULL
        self.lacks = False

    def lack(self):
        """There is no memory for what comes here: nothing more is copied, or looked at."""
        self.lacks = True
        self.wrong = b"there is too little memory"
        self.end = -1

    def lent(self, own, n, kind):
        """`doubles` for numbers that may stay on the tape: where they are from now on. Where the tape `lends`, READ
        copies nothing, and WRITE to the same place neither."""
        there: cython.p_double = cython.cast(cython.p_double, self.start + self.at)
        if self.lends and self.mode == READ:
            return there if self._next(n) != cython.NULL else own
        if self.mode == WRITE and there == own:
            self._next(n)
        else:
            self.doubles(own, n, kind)
        return own

    def triangle(self, rows, k, ld, kind):
        """Of k rows, `ld` numbers apart, those right of the diagonal."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        there: cython.p_double = cython.cast(cython.p_double, self._next(k * (k - 1) // 2))
        if there == cython.NULL:
            return
        if self.mode == CHECK:
            if not (self.clean and kind == FINITE):
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

    def _stop(self, n):
        """Nothing is copied, or looked at, from here on; MEASURE goes on counting."""
        if self.mode == MEASURE:
            self.at += n * WIDTH
        elif self.wrong == cython.NULL:
            self.wrong = b"numbers are missing"
            self.end = -1

    def _admissible(self, x, n, kind):
        """Refuse the first number that is not of this kind."""
        i: cython.Py_ssize_t
        for i in range(n if kind != ANY else 0):
            if kind != PENALTY and not isfinite(x[i]):
                self._refuse_at(i - n, b"must be finite")
            elif kind == SIGN and fabs(x[i]) != 1.0:
                self._refuse_at(i - n, b"must be 1 or -1")
            elif kind == POSITIVE and not x[i] > 0.0:
                self._refuse_at(i - n, b"must be above 0")
            elif (kind == WEIGHT or kind == PENALTY) and not x[i] >= 0.0:
                self._refuse_at(i - n, b"must be 0 or larger")
            else:
                continue
            return

    def _within(self, x, n, first, end):
        """Refuse the first integer that is not one of `first` to `end - 1`."""
        i: cython.Py_ssize_t
        for i in range(n):
            if not first <= x[i] < end:
                self._refuse_at(i - n, b"is out of range")
                return

    def _refuse_at(self, i, why):
        """The i-th number from here: one of those that were shown last, which are before it."""
        self.wrong = why
        self.wrong_at = self.at + i * WIDTH
        self.end = -1
