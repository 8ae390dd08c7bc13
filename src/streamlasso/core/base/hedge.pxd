cimport cython

from streamlasso.core.base.buffers cimport Doubles
from streamlasso.core.base.state cimport Stateful


@cython.final
cdef class Hedge(Stateful):
    cdef readonly Py_ssize_t n
    cdef readonly double rate, share
    cdef Doubles room
    cdef double* w
    cdef double* used
    cdef double* prior
    cdef double* factor

    cdef void update(self, const double* loss) noexcept nogil
    cdef void admit(self, Py_ssize_t k, double weight) noexcept nogil
    cdef void _use(self) noexcept nogil
    cdef double average(self, const double* x) noexcept nogil
