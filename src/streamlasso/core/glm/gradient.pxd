cimport cython
from libc.math cimport INFINITY

from streamlasso.core.lasso.active_set cimport ActiveSet
from streamlasso.core.lasso.objective cimport Objective
from streamlasso.core.lasso.moments cimport Moments
from streamlasso.core.glm.recent_rows cimport MOST_LEVELS, WholeRows


#: The larger of two violations in units of what is tolerated; what is not a number violates everything.
cdef inline double worse(double largest, double excess, double tol) noexcept nogil:
    if excess <= largest * tol:
        return largest
    return excess / tol if excess == excess and tol > 0.0 else INFINITY


@cython.final
cdef class Point:
    cdef Objective objective
    cdef WholeRows rows
    cdef Py_ssize_t p
    cdef Moments moments
    cdef ActiveSet active
    # Whether slope, curvature and eta are known by level only.
    cdef bint by_level
    cdef double[MOST_LEVELS] level_slope, level_curvature
    # G_0, the part of it that is of the folded rows, and K, the curvature of all rows.
    cdef bint evaluated
    cdef double intercept, pull, folded_pull, mass
    cdef double[::1] tau, tol, g, folded_g
    cdef double[::1] eta, slope, curvature
    cdef const double** columns

    cdef void restart(self) noexcept nogil
    cdef int evaluate(self) except -1 nogil
    cdef void _pull(self, double slope) noexcept nogil
    cdef double activity(self) noexcept nogil
    cdef int _slopes(self) except -1 nogil
    cdef int _evaluate_levels(self) except -1 nogil
    cdef void row_by_row(self) noexcept nogil
    cdef void _add_members(self) noexcept nogil
    cdef double _residual(self) noexcept nogil
    cdef void _fold_gradient(self) noexcept nogil
    cdef void look(self) noexcept nogil
    cdef void look_at_members(self, double* slopes) noexcept nogil
    cdef void tolerate(self, double share, double most) noexcept nogil
    cdef double violation(self) noexcept nogil
