# cython: language_level=3
cimport cython

from streamlasso.families.base cimport Family

cdef enum:
    #: The mixture that shares back 1/t, the one that shares back a fixed part, and a stack for each prior.
    N_MIXTURES = 2
    N_STACKS = 2
    N_OUTPUTS = 4


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
    cdef double loss(self, double y, double m) except? -1 nogil
    cdef double slope(self, double y, double m) except? -1 nogil
    cdef int learn(self, double y, double m, double weight) except -1
    cdef int _settle(self) except -1
    cdef double _eta(self, double mean) except? -1


@cython.final
cdef class Blend:
    cdef readonly Py_ssize_t n
    cdef Py_ssize_t d
    cdef Units units
    cdef double[:, ::1] w, theta, P
    cdef double[::1] pi, f, out, row
    #: Of the experts, then of the outputs.
    cdef double[::1] y, eta, mean, loss, slope, curvature
    cdef double t

    cdef double combine(self, const double* m) except? -1
    cdef int learn(self, double y, const double* m, double weight) except -1
    cdef double _pooled(self, Py_ssize_t n, const double* w, const double* mean) except? -1
    cdef void _to_likelihoods(self, Py_ssize_t first, Py_ssize_t n, double weight) noexcept
    cdef void _newton(self, Py_ssize_t s, double weight) noexcept


cdef void share_back(Py_ssize_t n, double* w, const double* likelihood, double share) noexcept nogil
