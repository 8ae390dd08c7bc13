# cython: language_level=3
from libc.stdint cimport int64_t

from streamlasso.core.base.lock cimport Gate


cdef class SparseRows:
    #: An estimator's models are behind that of its first one.
    cdef public Gate gate

    cdef int learn_rows(self, const int64_t[::1] starts, const int64_t[::1] columns, const double[::1] values,
                        const double[::1] y, weight, before) except -1
    cdef Py_ssize_t enter(self, Py_ssize_t start, Py_ssize_t end, const int64_t[::1] columns,
                          const double[::1] values) except -1
    cdef double take(self, Py_ssize_t n, double y, double weight) except? -1
    cdef double tell(self, Py_ssize_t n) except? -1
