cimport cython

from streamlasso.core.state cimport Stateful


@cython.final
cdef class Relevance(Stateful):
    cdef readonly Py_ssize_t p
    cdef readonly double[::1] mean, variance, strength, shown
    # Sizes of the effects after the last row.
    cdef readonly double[::1] effect
    cdef public double weight

    cdef void see(self, const double* x) noexcept nogil
    cdef void update(self, const double* coef) noexcept nogil
