cimport cython

from streamlasso.core.lasso.learner cimport Learner
from streamlasso.core.lasso.objective cimport LeastSquares
from streamlasso.core.base.buffers cimport Pointers
from streamlasso.core.base.record cimport Record
from streamlasso.core.base.state cimport Stateful


@cython.final
cdef class SharedCovariance(LeastSquares):
    cdef Pointers nodes

    cdef void share(self) noexcept nogil


@cython.final
cdef class Node(LeastSquares):
    cdef Py_ssize_t place
    cdef SharedCovariance shared

    cdef void refresh(self) noexcept nogil
    cdef double residual_variance(self) noexcept nogil


@cython.final
cdef class Neighbourhoods(Stateful):
    cdef readonly list learners
    cdef readonly Py_ssize_t first
    cdef SharedCovariance shared
    cdef Pointers each
    cdef double[::1] slope
    cdef Py_ssize_t p, n

    cdef int _learn_point(self, const double* x, double[:, :, ::1] records, Py_ssize_t t) except -1 nogil
    cdef int _before(self, Learner learner, Py_ssize_t i, const double* x, Record* record) except -1 nogil
    cdef int _after(self, Learner learner, Py_ssize_t i, const double* x, Record* record) except -1 nogil
    cdef double _write(self, Learner learner, double* model) noexcept nogil
