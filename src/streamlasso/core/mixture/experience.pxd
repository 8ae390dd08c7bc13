cimport cython

from streamlasso.core.mixture.bounds cimport Bounds
from streamlasso.core.base.buffers cimport Doubles
from streamlasso.core.base.state cimport Stateful
from streamlasso.families.base cimport Family


#: What a group has seen of the responses: their range (of classes: how many of each), and how many.
cdef enum:
    LOW, HIGH, ROWS_SEEN, N_EXPERIENCE


@cython.final
cdef class Experience(Stateful):
    cdef readonly Py_ssize_t M
    cdef Family family
    cdef Bounds bounds
    cdef bint scaled, linked
    cdef Doubles room
    # By group: what it has seen, how fast it forgets that, and whether it is never held.
    cdef double* seen
    cdef double* fades
    cdef signed char* free

    cdef void see(self, double y) noexcept nogil
    cdef void _see(self, double* seen, double fade, double y) noexcept nogil
    cdef void forget(self, Py_ssize_t m) noexcept nogil
    cdef double reference(self, Py_ssize_t n, const double* weight, const double* etas) except? -1 nogil
    cdef int hold_back(self, Py_ssize_t m, double reference, Py_ssize_t n, double* etas) except -1 nogil
    cdef double _eta_of(self, double mean) except? -1 nogil
