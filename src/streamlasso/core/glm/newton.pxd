cimport cython

from streamlasso.core.lasso.active_set cimport ActiveSet
from streamlasso.core.glm.prox_newton cimport Exchange
from streamlasso.core.glm.irls cimport Expansion
from streamlasso.core.glm.quasi_newton cimport MemberSteps
from streamlasso.core.glm.gradient cimport Point
from streamlasso.core.lasso.moments cimport Moments


@cython.final
cdef class Newton:
    cdef Point point
    cdef ActiveSet active
    cdef Expansion expansion
    cdef MemberSteps members
    cdef Exchange exchange

    cdef int solve_or_restart(self, Moments local) except -1 nogil
    cdef int solve(self, Moments local) except -1 nogil
    cdef void _prepare(self, Moments local) noexcept nogil
    cdef int _exchange(self, Moments local, double violation, bint careful, int* status) except -1 nogil
