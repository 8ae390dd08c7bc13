cimport cython

from streamlasso.core.lasso.objective cimport Objective
from streamlasso.core.base.buffers cimport Doubles
from streamlasso.core.lasso.moments cimport Ring


#: Different responses, so few that rows which have the same one are worth finding.
cdef enum:
    MOST_LEVELS = 8


@cython.final
cdef class WholeRows:
    cdef Objective objective
    cdef Ring ring
    cdef bint current
    cdef double[::1] y, weight
    cdef Doubles zeros
    cdef double* origin
    cdef double[MOST_LEVELS] levels, level_weight
    cdef Py_ssize_t n_levels, first
    cdef Py_ssize_t[::1] level_of
    cdef double[:, ::1] columns
    cdef signed char[::1] there

    cdef void refresh(self) noexcept nogil
    cdef bint _find_two_levels(self) noexcept nogil
    cdef void _find_levels(self) noexcept nogil
    cdef double* row(self, Py_ssize_t i) noexcept nogil
    cdef double* column(self, Py_ssize_t j) noexcept nogil
    cdef Py_ssize_t before_end(self) noexcept nogil
    cdef void _make_column(self, Py_ssize_t j, double* out) noexcept nogil
