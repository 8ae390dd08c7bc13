cimport cython

from streamlasso.core.base.buffers cimport Doubles
from streamlasso.core.base.hedge cimport Hedge
from streamlasso.core.base.state cimport Stateful
from streamlasso.families.base cimport Family

#: The levels that are followed, and the rates for each.
cdef enum:
    N_LEVELS = 11
    N_RATES = 4


@cython.final
cdef class Quantiles(Stateful):
    cdef Family family
    cdef readonly bint whole
    cdef readonly double lowest
    cdef Doubles room
    # By level and rate.
    cdef double* q
    cdef readonly Hedge hedge
    cdef public double square, weight, fast
    cdef public Py_ssize_t n

    cdef int see(self, double y, double eta, double weight) except -1 nogil
    cdef void _follow(self, double z, double half) noexcept nogil
    cdef void _report(self, double[::1] at, double[::1] wide, double[::1] out) noexcept nogil
    cdef int _place(self, double eta, double[::1] errors, double[::1] out) except -1 nogil
    cdef void _shrink(self) noexcept nogil
