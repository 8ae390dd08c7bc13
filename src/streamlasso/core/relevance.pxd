cimport cython

from streamlasso.core.pointers cimport Doubles
from streamlasso.core.state cimport Stateful


@cython.final
cdef class Relevance(Stateful):
    cdef readonly Py_ssize_t p
    cdef Doubles room
    cdef double* mean
    cdef double* variance
    cdef double* strength
    cdef double* shown
    # Sizes of the effects after the last row.
    cdef double* effect
    cdef public double weight

    cdef void see(self, const double* x) noexcept nogil
    cdef void update(self, const double* coef) noexcept nogil
