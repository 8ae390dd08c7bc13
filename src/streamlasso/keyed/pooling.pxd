cimport cython

from streamlasso.core.base.hedge cimport Hedge
from streamlasso.core.base.state cimport Stateful
from streamlasso.core.mixture.dispersion cimport Noise
from streamlasso.families.base cimport Family

cdef enum:
    OWN, POOLED, SHIFTED, N_COMPETING


@cython.final
cdef class Pooling(Stateful):
    cdef Family family
    cdef Hedge hedge
    cdef Noise noise
    cdef double shift, curvature

    cdef double combined(self, double own, double pooled) noexcept nogil
    cdef int see(self, Py_ssize_t n_seen, double y, double weight, double own, double pooled) except -1 nogil
    cdef int _judge(self, Py_ssize_t n_seen, double y, double weight, double own, double pooled) except -1 nogil
