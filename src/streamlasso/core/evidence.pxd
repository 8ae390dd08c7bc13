cimport cython

from streamlasso.core.state cimport Stateful


@cython.final
cdef class Evidence(Stateful):
    cdef Py_ssize_t n
    cdef readonly double[::1] squares, rows

    cdef double loss(
        self, Py_ssize_t e, double error, double spread, double noise, double weight, double decay
    ) noexcept nogil
    cdef void restart(self, Py_ssize_t first, Py_ssize_t end) noexcept nogil
