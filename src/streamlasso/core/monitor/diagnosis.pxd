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

#: A coefficient after a change: as before, 0, or another one.
cdef enum:
    STAY, ZERO, NEW, N_WAYS


@cython.final
cdef class Diagnosis:
    cdef Family family
    cdef readonly Py_ssize_t p, n, first, last, since, begin, n_varied
    cdef bint scaled, quadratic
    cdef readonly object x, notes, past, mean, named, chance
    cdef readonly double[:, ::1] columns
    cdef readonly double[::1] before, beta, target, root, left, unit, move, stays, prior, share
    cdef readonly double noise, tau, size, weight, rows_before

    cdef int _compare(self) except -1
    cdef void _scale(self) noexcept nogil
    cdef double _squares(self, const double* values) noexcept nogil
    cdef int _start(self, const double[::1] now) except -1
    cdef void _leave(self, Py_ssize_t since) noexcept nogil
    cdef double _sweep(self) noexcept nogil
