cimport cython

from streamlasso.core.mixture.groups.base cimport Experts
from streamlasso.core.base.buffers cimport Doubles
from streamlasso.core.lasso.moments cimport Scaler
from streamlasso.families.base cimport Family


#: Rows after which a ridge that began with the first keeps its prior.
cdef enum:
    RENEWED = 16


@cython.final
cdef class Ridge(Experts):
    cdef readonly Py_ssize_t p, n_columns
    cdef Py_ssize_t* column
    cdef double* row
    cdef Family family
    cdef bint whole, fit_intercept, standardize, quadratic, drifts
    cdef Doubles room, scratch
    cdef object factors
    cdef const double* penalty_factor
    cdef public double worth, kappa, rows, shape, spread, level, noise, evidence
    cdef double* P
    cdef double* b
    cdef double* centre
    # Of the prior of each coefficient, as it is in P^{-1}.
    cdef double* precision
    cdef double* z
    cdef double* q

    cdef int begin(self, Scaler stream, double eta, bint other) noexcept nogil
    cdef int begin_uncentred(self, Scaler stream) noexcept nogil
    cdef int renew(self, Scaler stream) noexcept nogil
    cdef int drift(self, Scaler stream, double part, double of_level) noexcept nogil
    cdef double _level(self) noexcept nogil
    cdef void _precisions(self, Scaler stream, bint raw, double* out) noexcept nogil
    cdef void _renew_level(self, Scaler stream) noexcept nogil
    cdef void _set_precision(self, Py_ssize_t j) noexcept nogil
    cdef double _column(self, Py_ssize_t i, double* out) noexcept nogil
    cdef void _leave(self, Py_ssize_t i) noexcept nogil
    cdef void _add_precision(self, Py_ssize_t i, double gain, const double* column) noexcept nogil
    cdef void _gather(self, const double* x) noexcept nogil
    cdef int _take(self, const double* x, double y, double weight, double low, double high) except -1 nogil
    cdef void _judge(self, double error, double weight, double v) noexcept nogil
    cdef double _eta(self, const double* x) noexcept nogil
