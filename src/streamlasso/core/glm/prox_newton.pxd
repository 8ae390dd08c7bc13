cimport cython

from streamlasso.core.lasso.active_set cimport ActiveSet
from streamlasso.core.glm.irls cimport Expansion
from streamlasso.core.lasso.objective cimport Objective
from streamlasso.core.glm.gradient cimport Point
from streamlasso.core.lasso.moments cimport Moments
from streamlasso.core.glm.recent_rows cimport WholeRows


@cython.final
cdef class Exchange:
    cdef Expansion expansion
    cdef Point point
    cdef Objective objective
    cdef WholeRows rows
    cdef Moments moments
    cdef ActiveSet active
    cdef Py_ssize_t p
    # The features that take part; b before the step, and the step, by feature.
    cdef Py_ssize_t[::1] working
    cdef Py_ssize_t n_working
    cdef double[::1] old, step, work, along
    cdef double start_intercept, intercept_step
    cdef double[::1] start_eta, eta_step
    # By how much the mean prediction of the folded rows moves; their slope and curvature along the step; the slope that
    # the expansion expects of all; and the size of what is added up in a change of the objective.
    cdef double shift, linear, quadratic, expected, magnitude

    cdef void work_on(self, bint with_violators) noexcept nogil
    cdef void pose(self, Moments local) noexcept nogil
    cdef int step_to_target(self) except -1 nogil
    cdef void _slopes_along(self) noexcept nogil
    cdef int search(self) except -1 nogil
    cdef void _folded_along(self) noexcept nogil
    cdef double _change(self, double t) except? -1 nogil
    cdef int _move(self, double t) except -1 nogil
