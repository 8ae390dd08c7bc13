cimport cython

from streamlasso.core.learner cimport Learner
from streamlasso.core.objective cimport LeastSquares
from streamlasso.core.record cimport Record
from streamlasso.core.state cimport Stateful


@cython.final
cdef class Commons(LeastSquares):
    cdef list nodes
    cdef void** each
    cdef Py_ssize_t n

    cdef void share(self) noexcept nogil


@cython.final
cdef class Node(LeastSquares):
    cdef Py_ssize_t place
    cdef Commons commons

    cdef void refresh(self) noexcept nogil
    cdef double residual_variance(self) noexcept nogil


@cython.final
cdef class Neighbourhoods(Stateful):
    cdef readonly list learners
    cdef Commons commons
    cdef void** each
    cdef double[::1] slope
    cdef readonly Py_ssize_t first
    cdef Py_ssize_t p, n

    cdef int _learn_point(self, const double* x, Record** records) except -1 nogil
