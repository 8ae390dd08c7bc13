cimport cython

from streamlasso.core.objective cimport Objective
from streamlasso.families.base cimport Family
from streamlasso.tuners.base cimport Tuner


@cython.final
cdef class Learner:
    cdef readonly dict settings
    cdef Family family
    cdef Tuner tuner
    cdef Objective objective
    cdef double[::1] tuner_state
    cdef bint updated, clamped, started, compiled, busy
    cdef readonly double lam
    cdef readonly Py_ssize_t n_seen
    cdef double decay, unit
    cdef Py_ssize_t batch_size
    cdef int code

    cdef int take(self, const double[:, ::1] x, const double[::1] y, const double[::1] w, double[:, ::1] note) except -1
    cdef int _learn(self, const double[:, ::1] X, const double[::1] y, weight, record, coef) except -1
    cdef int _step(self, Py_ssize_t n, const double* X, const double* y, const double* w, double* out) except -1 nogil
    cdef void _grow_unit(self) noexcept nogil
    cdef double _slope(
        self, Py_ssize_t n, const double* X, const double* y, const double* w, double* out
    ) except? -1 nogil
    cdef int _move(self, double slope) except -1 nogil
    cdef int _refuse_lam(self, double before) except -1 nogil
    cdef int _solve(self) except -1 nogil
    cdef Py_ssize_t _n_active(self) noexcept nogil
    cdef void _trace(self, double[:, ::1] path, Py_ssize_t start, Py_ssize_t stop) noexcept nogil
