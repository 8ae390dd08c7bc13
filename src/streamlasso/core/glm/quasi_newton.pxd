cimport cython

from streamlasso.core.lasso.active_set cimport ActiveSet
from streamlasso.core.glm.irls cimport Expansion
from streamlasso.core.glm.gradient cimport Point
from streamlasso.core.glm.recent_rows cimport WholeRows


#: Steps on the members before the rows are expanded anew.
cdef enum:
    MOST_STEPS = 8


#: Steps on the members go on until the violation is this share of what is tolerated.
cdef inline bint is_settled(double violation) noexcept nogil:
    return violation <= 0.9


@cython.final
cdef class MemberSteps:
    cdef Expansion expansion
    cdef Point point
    cdef WholeRows rows
    cdef ActiveSet active
    # Whether F and its size are those of the point.
    cdef bint posed
    cdef double size, start_intercept
    # F before and after a step; the step in (e, b), and b before it.
    cdef double[::1] now, after, step, old
    # The pairs, and 1 / step'change.
    cdef double[:, ::1] steps, changes
    cdef double[MOST_STEPS] rho
    cdef Py_ssize_t n_pairs

    cdef double settle(self) except? -1 nogil
    cdef void pose(self) noexcept nogil
    cdef double _equations(self, double* out) noexcept nogil
    cdef void _quasi_newton_step(self) noexcept nogil
    cdef bint _keeps_signs(self) noexcept nogil
    cdef int _shift(self) except -1 nogil
    cdef int _shift_back(self) except -1 nogil
    cdef void _remember_pair(self) noexcept nogil
