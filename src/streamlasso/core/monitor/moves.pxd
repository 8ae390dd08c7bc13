cimport cython

from streamlasso.families.base cimport Family

#: Rows and models that are kept for an answer, and rows between two of these models.
cdef enum:
    N_RECENT = 128
    N_PAST = 8
    BETWEEN = 16

#: What is kept of a row beside its features.
cdef enum:
    RESPONSE, OFFSET, LOSS, SCORE, SURPRISE, N_NOTES

#: A change as numbers: these, then three for each of the most features that are named, then the probabilities of rows.
cdef enum:
    ROW, DETECTED, COST, N_NAMED, FIRST, NAMED
    MOST_NAMED = 16
    MOST_ROWS = 24


#: A coefficient after a change: as before, 0, or another one.
cdef enum:
    STAY, ZERO, NEW, N_WAYS


@cython.final
cdef class Moves:
    cdef Family family
    cdef readonly Py_ssize_t p, n, first, last, since, begin, n_named, n_varied
    cdef bint scaled, quadratic
    cdef const double[:, ::1] x, notes, past
    cdef const double[::1] mean
    cdef readonly double[:, ::1] columns
    cdef readonly double[::1] before, beta, target, root, left, chance, unit, move, stays, prior, share
    cdef readonly signed char[::1] named
    cdef readonly double noise, tau, size, weight, rows_before

    cdef const double* _notes_of(self, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t _score_start(self, Py_ssize_t feature) noexcept nogil
    cdef Py_ssize_t _surprise_start(self) noexcept nogil
    cdef int _compare(self, Py_ssize_t since) except -1 nogil
    cdef int _miss(self, Py_ssize_t i, double eta) except -1 nogil
    cdef void _explain(self, Py_ssize_t since, const double[::1] now) noexcept nogil
    cdef void _scale(self, Py_ssize_t since) noexcept nogil
    cdef double _squares(self, Py_ssize_t since, const double* values) noexcept nogil
    cdef void _start(self, Py_ssize_t since, const double[::1] now) noexcept nogil
    cdef void _leave(self, Py_ssize_t since) noexcept nogil
    cdef double _sweep(self, Py_ssize_t since) noexcept nogil
    cdef void _name(self) noexcept nogil
    cdef Py_ssize_t _date(self, Py_ssize_t since) noexcept nogil
    cdef double _gain(self, Py_ssize_t i, double ratio) noexcept nogil
    cdef double _cost(self) noexcept nogil
    cdef Py_ssize_t _largest(self) noexcept nogil
    cdef void _write_chances(self, double[::1] record) noexcept nogil
