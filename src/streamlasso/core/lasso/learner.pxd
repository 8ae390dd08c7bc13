cimport cython

from streamlasso.core.model cimport Engine
from streamlasso.core.lasso.objective cimport Objective
from streamlasso.core.base.buffers cimport Doubles
from streamlasso.core.base.record cimport Record
from streamlasso.tuners.base cimport Tuner


@cython.final
cdef class Learner(Engine):
    cdef public double lam
    cdef Tuner tuner
    cdef Objective objective
    cdef Doubles tuner_state
    #: How many numbers the tuner keeps.
    cdef readonly Py_ssize_t n_tuner
    cdef public bint started
    cdef bint updated, clamped

    cdef double look(
        self, Py_ssize_t n, const double* X, const double* y, const double* w, Record* out
    ) except? -1 nogil
    cdef int take_in(self, Py_ssize_t n, const double* X, const double* y, const double* w) except -1 nogil
    cdef double slope_before(
        self, Py_ssize_t n, const double* X, const double* y, const double* w, Record* out
    ) except? -1 nogil
    cdef int answer(
        self, double slope, Py_ssize_t n, const double* X, const double* y, const double* w, Record* out
    ) except -1 nogil
    cdef void note(self, Py_ssize_t n, Record* out) noexcept nogil
    cdef double _slope(
        self, Py_ssize_t n, const double* X, const double* y, const double* w, Record* out
    ) except? -1 nogil
    cdef int _move(self, double slope) except -1 nogil
    cdef int _refuse_lam(self, double before) except -1 nogil
    cdef int _solve(self) except -1 nogil
    cdef Py_ssize_t _n_active(self) noexcept nogil
