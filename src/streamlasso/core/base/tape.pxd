cimport cython
from libc.string cimport memcpy

#: What a tape does with the numbers that it is shown.
cdef enum Mode:
    MEASURE, WRITE, CHECK, READ

#: Which numbers are admissible.
cdef enum Kind:
    ANY, FINITE, WEIGHT, PENALTY, POSITIVE, SIGN

#: Bytes of a number.
cdef enum:
    WIDTH = 8


@cython.final
cdef class Tape:
    cdef Mode mode
    cdef char* start
    #: Where the next number is, where the last may end (before the start where nothing may be copied), and the memory.
    cdef Py_ssize_t at, end, size
    cdef Py_ssize_t wrong_at, n_rows, n_seen
    cdef const char* wrong
    #: Whether numbers may stay here; and, while checking, whether none is infinite or not a number, whatever it means.
    cdef bint lends, clean
    #: Whether there was too little memory for what is here.
    cdef bint lacks

    cdef void use(self, Mode mode, char* start, Py_ssize_t size) noexcept nogil
    cdef double* lent(self, double* own, Py_ssize_t n, Kind kind) noexcept nogil
    cdef void triangle(self, double* rows, Py_ssize_t k, Py_ssize_t ld, Kind kind) noexcept nogil
    cdef void lack(self) noexcept nogil
    cdef void _stop(self, Py_ssize_t n) noexcept nogil
    cdef void _admissible(self, const double* x, Py_ssize_t n, Kind kind) noexcept nogil
    cdef void _within(self, const Py_ssize_t* x, Py_ssize_t n, Py_ssize_t first, Py_ssize_t end) noexcept nogil
    cdef void _refuse_at(self, Py_ssize_t i, const char* why) noexcept nogil

    # A state is some hundred arrays and numbers: what is called for each of them is compiled where it is called.

    cdef inline char* _next(self, Py_ssize_t n) noexcept nogil:
        """Where the next n numbers are; NULL where there is nothing to copy or to look at."""
        cdef char* there = self.start + self.at
        if self.at + n * WIDTH > self.end:
            self._stop(n)
            return NULL
        self.at += n * WIDTH
        return there

    cdef inline const double* doubles(self, double* own, Py_ssize_t n, Kind kind) noexcept nogil:
        cdef double* there = <double*> self._next(n)
        if there == NULL or n == 0:
            return own
        if self.mode == WRITE:
            memcpy(there, own, n * WIDTH)
        elif self.mode == READ:
            memcpy(own, there, n * WIDTH)
        else:
            if not (self.clean and kind == FINITE):
                self._admissible(there, n, kind)
            return there
        return own

    cdef inline double number(self, double* own, Kind kind) noexcept nogil:
        return self.doubles(own, 1, kind)[0]

    cdef inline const Py_ssize_t* indices(
        self, Py_ssize_t* own, Py_ssize_t n, Py_ssize_t first, Py_ssize_t end
    ) noexcept nogil:
        """Integers from `first` to `end - 1`; those of the object where those on the tape are none of these."""
        cdef Py_ssize_t* there = <Py_ssize_t*> self._next(n)
        if there == NULL or n == 0:
            return own
        if self.mode == WRITE:
            memcpy(there, own, n * WIDTH)
        elif self.mode == READ:
            memcpy(own, there, n * WIDTH)
        else:
            self._within(there, n, first, end)
            return there if self.wrong == NULL else own
        return own

    cdef inline Py_ssize_t index(self, Py_ssize_t* own, Py_ssize_t end) noexcept nogil:
        """One integer from 0 to `end - 1`."""
        return self.indices(own, 1, 0, end)[0]

    cdef inline Py_ssize_t count(self, Py_ssize_t* own) noexcept nogil:
        """An integer that is far from where integers end."""
        return self.index(own, <Py_ssize_t> 1 << 62)

    cdef inline Py_ssize_t rows(self, Py_ssize_t* own, Py_ssize_t capacity) noexcept nogil:
        """How many rows follow."""
        self.n_rows = self.index(own, capacity + 1)
        return 0 if self.wrong != NULL else self.n_rows

    cdef inline int small(self, int* own, int end) noexcept nogil:
        """An integer that its object keeps in four bytes."""
        cdef Py_ssize_t value = own[0]
        value = self.index(&value, end)
        if self.mode == READ:
            own[0] = <int> value
        return <int> value

    cdef inline bint flag(self, bint* own) noexcept nogil:
        cdef Py_ssize_t value = own[0]
        value = self.index(&value, 2)
        if self.mode == READ:
            own[0] = value != 0
        return value != 0

    cdef inline void require(self, bint holds, const char* otherwise) noexcept nogil:
        """Of numbers that must belong together."""
        if self.mode == CHECK and not holds and self.wrong == NULL:
            self.wrong = otherwise
            self.end = -1
