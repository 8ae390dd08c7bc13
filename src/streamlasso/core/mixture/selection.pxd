cimport cython

from streamlasso.core.base.buffers cimport Doubles
from streamlasso.core.base.state cimport Stateful
from streamlasso.core.lasso.moments cimport Sums


@cython.final
cdef class Selection(Stateful):
    cdef readonly Py_ssize_t p
    cdef object factors
    cdef const double* penalty_factor
    cdef Doubles room
    # Of each feature: the probability that it matters, and whether it is in the support.
    cdef double* probability
    cdef double* held
    # Of the models on a path, and of the features that may still enter: what is left of their variance and of c.
    cdef double* evidence
    cdef double* pivot
    cdef double* left
    cdef Py_ssize_t* order
    # Rows seen when the support was last another, and at the last look; the rows of the memory then.
    cdef public Py_ssize_t since, looked
    cdef public double rows

    cdef bint is_due(self, double rows, Py_ssize_t n_seen) noexcept nogil
    cdef void look(self, Sums* sums, Py_ssize_t n_seen) noexcept nogil
    cdef void look_at(self, const double* model, Py_ssize_t n_seen) noexcept nogil
    cdef void refit(self, Sums* sums, double* model) noexcept nogil
    cdef void measure(self, Sums* sums, const double* model, double* importance) noexcept nogil
    cdef Py_ssize_t _path(self, Sums* sums, bint held) noexcept nogil
    cdef double _begin(self, Sums* sums, bint held) noexcept nogil
    cdef Py_ssize_t _next(self) noexcept nogil
    cdef double _spread(self, Sums* sums, Py_ssize_t n) noexcept nogil
    cdef void _settle(self, Py_ssize_t n_seen) noexcept nogil


cdef int new_sums(Py_ssize_t p, Sums* sums) except -1 nogil
