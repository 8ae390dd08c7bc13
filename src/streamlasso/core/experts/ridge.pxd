cimport cython

from streamlasso.core.experts.base cimport Experts
from streamlasso.families.base cimport Family


@cython.final
cdef class RidgeExperts(Experts):
    cdef readonly Py_ssize_t p
    cdef Family family
    cdef bint fit_intercept, standardize, quadratic
    cdef double[::1] kappas, penalty_factor
    cdef public double kappa, rows
    cdef readonly double[::1] P, b, centre
    cdef double[::1] z, q

    cdef void _begin_at(self, const double* model) noexcept nogil
    cdef double _precision(self, Py_ssize_t j, double deviation, double common) noexcept nogil
    cdef int _take(self, const double* x, double y, double weight, double low, double high) except -1 nogil
    cdef double _spread(self) noexcept nogil
    cdef void _shrink(self, double gain) noexcept nogil
    cdef double _eta(self, const double* x) noexcept nogil
