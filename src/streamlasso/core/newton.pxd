cimport cython

from streamlasso.core.active_set cimport ActiveSet
from streamlasso.core.objective cimport Objective
from streamlasso.core.pointers cimport Doubles
from streamlasso.core.statistics cimport Moments, Ring


#: Steps on the members before the rows are expanded anew.
cdef enum:
    MOST_STEPS = 8
    #: Different responses, so few that rows which have the same one are worth finding.
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


@cython.final
cdef class Newton:
    cdef Objective objective
    cdef WholeRows rows
    cdef Py_ssize_t p
    cdef Moments moments
    cdef ActiveSet active
    # Whether slope, curvature and eta are known by level only.
    cdef bint by_level
    cdef double[MOST_LEVELS] level_slope, level_curvature
    cdef bint evaluated, curved, posed, rooted
    cdef double intercept, pull, folded_pull, magnitude
    cdef double mass, total, start_intercept, intercept_step, shift, size, expected, linear, quadratic
    cdef const double** columns
    cdef double[::1] tau, tol, g, folded_g, centre, old, step, work, gram, now, after
    cdef double[::1] eta, start_eta, eta_step, slope, curvature, root
    cdef double[:, ::1] z, steps, changes
    cdef double[MOST_STEPS] rho
    cdef Py_ssize_t[::1] working, expanded, place
    cdef Py_ssize_t n_working, n_expanded, n_pairs

    cdef int solve_or_restart(self, Moments local) except -1 nogil
    cdef int solve(self, Moments local) except -1 nogil
    cdef void tolerate(self, double share, double most) noexcept nogil
    cdef int evaluate(self) except -1 nogil
    cdef double activity(self) noexcept nogil
    cdef int _slopes(self) except -1 nogil
    cdef int _evaluate_levels(self) except -1 nogil
    cdef void _row_by_row(self) noexcept nogil
    cdef void _add_members(self) noexcept nogil
    cdef void look(self) noexcept nogil
    cdef void _fold_gradient(self) noexcept nogil
    cdef double _residual(self) noexcept nogil
    cdef double _violation(self) noexcept nogil
    cdef void _work_on(self, bint with_violators) noexcept nogil
    cdef void expand(self, Moments local) noexcept nogil
    cdef void _take_roots(self) noexcept nogil
    cdef void expand_members(self, Moments local) noexcept nogil
    cdef void bring_in(self, Moments local, Py_ssize_t j) noexcept nogil
    cdef void _centre(self, Py_ssize_t j, double* z) noexcept nogil
    cdef void _prepare(self, Moments local) noexcept nogil
    cdef double _settle_members(self) except? -1 nogil
    cdef bint _alike(self) noexcept nogil
    cdef double _equations(self, double* out) noexcept nogil
    cdef void _quasi_newton_step(self) noexcept nogil
    cdef bint _keeps_signs(self) noexcept nogil
    cdef int _shift_members(self) except -1 nogil
    cdef int _shift_back(self) except -1 nogil
    cdef void _remember_pair(self) noexcept nogil
    cdef int _exchange(self, Moments local, double violation, bint careful, int* status) except -1 nogil
    cdef void _pose(self, Moments local) noexcept nogil
    cdef int _step_to_target(self) except -1 nogil
    cdef void _slopes_along(self) noexcept nogil
    cdef int _search(self) except -1 nogil
    cdef void _folded_along(self) noexcept nogil
    cdef double _change(self, double t) except? -1 nogil
    cdef int _move(self, double t) except -1 nogil
