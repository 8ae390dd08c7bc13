from streamlasso.core.lasso.active_set cimport ActiveSet, ActiveSets
from streamlasso.core.base.buffers cimport Doubles
from streamlasso.core.base.state cimport Stateful
from streamlasso.core.lasso.moments cimport Moments, Ring, Scaler, Sums
from streamlasso.core.base.tape cimport Tape
from streamlasso.families.base cimport Family


cdef class Objective(Stateful):
    cdef readonly Py_ssize_t p
    cdef Family family
    cdef Scaler scaler
    cdef Moments moments
    cdef Ring ring
    cdef ActiveSet active
    cdef ActiveSets actives
    cdef bint fit_intercept, standardize, diagonal
    cdef public double unit, intercept, lam_max
    cdef double l1_ratio, decay, norm, tolerance
    cdef Doubles room
    cdef double* v
    cdef double* size
    cdef object factors
    cdef const double* penalty_factor
    cdef public Py_ssize_t n_seen, n_whole, n_removed
    cdef Py_ssize_t n_free, window, history, n_slope

    cdef void _numbers(self, Tape tape) noexcept nogil
    cdef double predict(self, const double* x) noexcept nogil
    cdef int absorb(self, const double* x, double y, double weight) except -1 nogil
    cdef void _grow_unit(self) noexcept nogil
    cdef void rescale(self, double factor) noexcept nogil
    cdef int differentiate(self, double lam) except -1 nogil
    cdef double slope_of(self, const double* x) noexcept nogil
    cdef int measure(self) except -1 nogil
    cdef int solve(self, double lam) except -1 nogil
    cdef double effective_size(self) noexcept nogil
    cdef bint keeps_sums(self) noexcept nogil
    cdef void write_sums(self, Sums* sums) noexcept nogil
    cdef int slopes_at(self, double y, double eta, double* slope, double* curvature) except -1 nogil
    cdef double curvature_at(self, double y, double eta) except? -1 nogil

    cdef int _admit(self, const double* x, double y, double weight) except -1 nogil
    cdef int fold_oldest(self) except -1 nogil
    cdef void _expel_oldest(self) noexcept nogil
    cdef void _rebuild(self) noexcept nogil
    cdef void _penalty_units(self) noexcept nogil
    cdef void _ridge(self, ActiveSet active, double lam) noexcept nogil
    cdef Py_ssize_t _first_to_enter(self, double* g) noexcept nogil
    cdef double _lam_max(self, double* g, const signed char* allowed) noexcept nogil
    cdef bint _penalised(self) noexcept nogil
    cdef bint _enter_first(self, Moments m) noexcept nogil
    cdef void _direction(self, Moments m) noexcept nogil
    cdef void _solve_direction(self, Moments m) noexcept nogil


cdef class LeastSquares(Objective):
    cdef ActiveSet null
    #: Which features may enter; NULL for all.
    cdef const signed char* allowed

    cdef void _tolerate(self, ActiveSet active) noexcept nogil
    cdef void _enter(self, const double* x, double y, double weight, double target, double curvature) noexcept nogil
    cdef int solve_for(self, ActiveSet active, double lam) noexcept nogil
    cdef double intercept_of(self, ActiveSet active) noexcept nogil
