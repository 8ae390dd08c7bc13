cimport cython

from streamlasso.core.newton cimport Newton
from streamlasso.core.objective cimport Objective
from streamlasso.core.statistics cimport Moments
from streamlasso.core.whole_rows cimport WholeRows


@cython.final
cdef class Likelihood(Objective):
    cdef WholeRows rows
    cdef Newton main, null
    cdef Moments local, null_local
    cdef double signal

    cdef void _rows_changed(self) noexcept nogil
    cdef bint _one_response(self) noexcept nogil
    cdef int _constant_response(self, double omega) except -1 nogil
