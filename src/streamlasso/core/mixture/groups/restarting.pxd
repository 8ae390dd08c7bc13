cimport cython

from streamlasso.core.mixture.groups.base cimport Group
from streamlasso.core.base.buffers cimport Doubles, Pointers
from streamlasso.core.lasso.moments cimport Scaler


@cython.final
cdef class Restarting(Group):
    cdef readonly Py_ssize_t p
    cdef Pointers ridges
    cdef bint quadratic
    cdef Doubles more
    # By expert: the rows seen when it began, -1 where it has not.
    cdef Py_ssize_t* began

    cdef void _follow(self) noexcept nogil
    cdef void _show(self, Py_ssize_t n_seen) noexcept nogil
    cdef Py_ssize_t _least(self, Py_ssize_t n_seen) noexcept nogil
    cdef int _begin(self, Scaler stream, double eta, Py_ssize_t n_seen) noexcept nogil
