cimport cython

from streamlasso.core.lasso.active_set cimport ActiveSet
from streamlasso.core.lasso.objective cimport Objective
from streamlasso.core.glm.gradient cimport Point
from streamlasso.core.lasso.moments cimport Moments
from streamlasso.core.glm.recent_rows cimport WholeRows


@cython.final
cdef class Expansion:
    cdef Point point
    cdef Objective objective
    cdef WholeRows rows
    cdef Moments moments
    cdef ActiveSet active
    cdef Py_ssize_t p
    # Whether the factor of the active set is that of its members here.
    cdef bint curved
    # K; m; the features in S, and where each is among them.
    cdef double total
    cdef double[::1] centre
    cdef Py_ssize_t[::1] expanded, place
    cdef Py_ssize_t n_expanded
    # sqrt(k_i), whether it is known, and z_i of the features in S; room for a row of S.
    cdef bint rooted
    cdef double[::1] root, work, gram
    cdef double[:, ::1] z

    cdef void expand(self, Moments local) noexcept nogil
    cdef void _take_roots(self) noexcept nogil
    cdef void expand_members(self, Moments local) noexcept nogil
    cdef void bring_in(self, Moments local, Py_ssize_t j) noexcept nogil
    cdef void _centre(self, Py_ssize_t j, double* z) noexcept nogil
    cdef bint alike(self) noexcept nogil
