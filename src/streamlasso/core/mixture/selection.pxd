cimport cython

from streamlasso.core.base.buffers cimport Doubles
from streamlasso.core.base.state cimport Stateful
from streamlasso.core.lasso.moments cimport Sums


@cython.final
cdef class Selection(Stateful):
    cdef readonly Py_ssize_t p
    cdef readonly Py_ssize_t every
    cdef object factors
    cdef const double* penalty_factor
    cdef Doubles room
    # Of each feature: the probability that it matters, whether it is in the support, and the importance by which it is
    # ordered; then room for one look.
    cdef double* probability
    cdef double* held
    cdef double* importance
    cdef double* evidence
    cdef double* now
    cdef double* row
    cdef Py_ssize_t* order
    cdef public Py_ssize_t since
    # Of the memories that were looked at.
    cdef public double rows

    cdef bint is_due(self, Py_ssize_t before, Py_ssize_t after) noexcept nogil
    cdef int look(self, Sums* sums, const double* model, Py_ssize_t n_seen) except -1 nogil
    cdef void look_at(self, const double* model, Py_ssize_t n_seen) noexcept nogil
    cdef void refit(self, Sums* sums, double* model) noexcept nogil
    cdef void measure(self, Sums* sums, const double* model, double* importance) noexcept nogil
    cdef Py_ssize_t _sort(self, Sums* sums, const double* model, double rate) noexcept nogil
    cdef int _weigh(self, Sums* sums, Py_ssize_t n, double* L) noexcept nogil
    cdef double _n_penalised(self, Sums* sums) noexcept nogil
    cdef void _spread(self, Sums* sums, Py_ssize_t k) noexcept nogil
    cdef double _rate(self, double rows) noexcept nogil
    cdef void _settle(self, double rate, Py_ssize_t n_seen) noexcept nogil


cdef int new_sums(Py_ssize_t p, Sums* sums) except -1 nogil
