cimport cython

from streamlasso.core.base.buffers cimport Pointers
from streamlasso.core.lasso.members cimport Members
from streamlasso.core.lasso.moments cimport Moments

#: Why a feature is no candidate, as bits: it rests, or is a member.
cdef enum:
    RESTING = 1
    MEMBER = 2


@cython.final
cdef class ActiveSet(Members):
    cdef int solve(self, Moments m) noexcept nogil
    cdef bint enter(self, Moments m, Py_ssize_t j, double direction) noexcept nogil
    cdef void gradient(self, Moments m) noexcept nogil
    cdef void _bar_members(self, bint bar) noexcept nogil
    cdef void _drop_barred(self) noexcept nogil
    cdef void _enter_free(self, Moments m) noexcept nogil
    cdef void _sign_free(self) noexcept nogil
    cdef void _solve_for_target(self, Moments m) noexcept nogil
    cdef bint _wrong(self, Py_ssize_t i) noexcept nogil
    cdef bint _hold_signs(self, Moments m) noexcept nogil
    cdef double _few(self) noexcept nogil
    cdef void _walk(self, Moments m) noexcept nogil
    cdef bint _settled(self, double slack) noexcept nogil
    cdef bint _settle(self, Moments m) noexcept nogil
    cdef Py_ssize_t _violators(self) noexcept nogil
    cdef void _enter_all(self, Moments m) noexcept nogil
    cdef void _enter_worst(self, Moments m) noexcept nogil
    cdef void _rest(self, Py_ssize_t j) noexcept nogil
    cdef Py_ssize_t _wake(self) noexcept nogil
    cdef int _coordinate_descent(self, Moments m) noexcept nogil


@cython.final
cdef class ActiveSets(Pointers):
    cdef void absorb(self, double* z, double sign) noexcept nogil
    cdef void lose_track(self) noexcept nogil
    cdef void trim(self) noexcept nogil
    cdef void scale(self, double factor) noexcept nogil
    cdef void reset(self) noexcept nogil
