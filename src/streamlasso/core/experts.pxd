cimport cython

from streamlasso.core.learner cimport Learner
from streamlasso.core.path cimport Path
from streamlasso.core.state cimport Stateful


cdef class Experts(Stateful):
    cdef readonly Py_ssize_t n
    cdef readonly object memory
    cdef readonly bint alike

    cdef int predict(self, const double* x, double* eta) except -1 nogil
    cdef int learn(
        self, Py_ssize_t n, const double* X, const double* y, const double* w, const double* predicted, const double* weight,
        Py_ssize_t leader, double eta_low, double eta_high
    ) except -1 nogil
    cdef void blend(self, const double* weight, double* model) noexcept nogil
    cdef double lam_of(self, Py_ssize_t k) noexcept nogil
    cdef double lam_max_of(self) noexcept nogil
    cdef double size_of(self) noexcept nogil
    cdef int code_of(self, Py_ssize_t k) noexcept nogil
    cdef void forget(self) noexcept nogil


@cython.final
cdef class PathExperts(Experts):
    cdef Path path


@cython.final
cdef class ModelExperts(Experts):
    cdef Learner learner
    cdef Py_ssize_t stale_rows
    cdef double[:, ::1] notes
    cdef double[::1] model

    cdef double _total(self, const double* weight) noexcept nogil
