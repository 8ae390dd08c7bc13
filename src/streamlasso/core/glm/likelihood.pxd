from streamlasso.core.glm.newton cimport Newton
from streamlasso.core.lasso.objective cimport Objective
from streamlasso.core.lasso.moments cimport Moments
from streamlasso.core.glm.recent_rows cimport WholeRows


cdef class Likelihood(Objective):
    cdef WholeRows rows
    cdef Newton main, null
    cdef Moments local, null_local
    cdef double signal

    cdef void _rows_changed(self) noexcept nogil
    cdef bint _one_response(self) noexcept nogil
    cdef int _constant_response(self, double omega) except -1 nogil
