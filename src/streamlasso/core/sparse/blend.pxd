# cython: language_level=3
cimport cython

from streamlasso.core.base.hedge cimport Hedge
from streamlasso.families.base cimport Family

cdef enum:
    #: A stack for each prior; the outputs are the mixture of the experts, then the stacks.
    N_STACKS = 2
    N_OUTPUTS = 3


@cython.final
cdef class Units:
    """eta = level + unit m; a slope is divided by `steep`, a loss by `phi`."""
    cdef readonly Family family
    cdef readonly bint fixed
    cdef bint quadratic
    cdef readonly double level, unit, steep, phi, low, high
    cdef double[::1] sums

    cdef double eta_of(self, double m) noexcept nogil
    cdef double m_of(self, double eta) noexcept nogil
    cdef double slope(self, double y, double m) except? -1 nogil
    cdef int learn(self, double y, double m, double weight) except -1
    cdef int _settle(self) except -1
    cdef double _eta(self, double mean) except? -1


@cython.final
cdef class Blend:
    cdef readonly Py_ssize_t n
    cdef Py_ssize_t d
    cdef Units units
    cdef readonly Hedge experts, outputs
    cdef double[:, ::1] theta, P
    cdef double[::1] f, out, row
    #: Of the experts, then of the outputs.
    cdef double[::1] y, eta, mean, loss, slope, curvature

    cdef double combine(self, const double* m) except? -1
    cdef int learn(self, double y, const double* m, double weight) except -1
    cdef double _pooled(self, Py_ssize_t n, const double* w, const double* mean) except? -1
    cdef void _newton(self, Py_ssize_t s, double weight) noexcept
