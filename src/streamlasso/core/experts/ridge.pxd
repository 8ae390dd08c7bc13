cimport cython

from streamlasso.core.experts.base cimport Experts
from streamlasso.core.pointers cimport Doubles
from streamlasso.families.base cimport Family


@cython.final
cdef class RidgeExperts(Experts):
    cdef readonly Py_ssize_t p
    cdef Family family
    cdef bint fit_intercept, standardize, quadratic, family_has_scale
    cdef double[3] kappas
    cdef Py_ssize_t n_kappas
    cdef Doubles room, scratch
    cdef object factors
    cdef const double* penalty_factor
    cdef public double kappa, rows
    cdef double* P
    cdef double* b
    cdef double* centre
    cdef double* z
    cdef double* q

    cdef void _begin_at(self, const double* model) noexcept nogil
    cdef double _level_precision(self, Py_ssize_t turn) noexcept nogil
    cdef double _precision(self, Py_ssize_t j, double deviation, double common) noexcept nogil
    cdef int _take(self, const double* x, double y, double weight, double low, double high) except -1 nogil
    cdef double _spread(self) noexcept nogil
    cdef void _shrink(self, double gain) noexcept nogil
    cdef double _eta(self, const double* x) noexcept nogil
