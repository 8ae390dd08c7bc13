cimport cython

from streamlasso.core.lasso.active_set cimport ActiveSet
from streamlasso.core.mixture.groups.base cimport Experts
from streamlasso.core.lasso.objective cimport LeastSquares
from streamlasso.core.base.buffers cimport Doubles


@cython.final
cdef class Path(LeastSquares):
    cdef public Py_ssize_t leader
    cdef readonly Py_ssize_t n, n_powers, n_views
    # The weights of all solutions; by view, lam_max, and which features may enter.
    cdef Doubles weights
    cdef double* top
    cdef signed char* masks
    cdef bint quadratic, none_due
    #: The weights that `settle` will have, while its last row is on the way.
    cdef const double* coming
    cdef double predicted, eta_low, eta_high
    cdef Doubles each
    cdef double* lam
    cdef double* intercepts
    cdef Py_ssize_t* age
    cdef Py_ssize_t* code
    cdef bint _none_due(self, const double* weight) noexcept nogil
    cdef double* power
    cdef double* coef

    cdef void predict_from(self, Py_ssize_t first, const double* x, double* eta) noexcept nogil
    cdef const signed char* _mask(self, Py_ssize_t view) noexcept nogil
    cdef void _look_at_views(self) noexcept nogil
    cdef void expect(self, const double* weight) noexcept nogil
    cdef int settle(self, const double* weight) except -1 nogil
    cdef Py_ssize_t mark_from(self, Py_ssize_t first, const double* weight, signed char* used) noexcept nogil
    cdef void add_from(self, Py_ssize_t first, const double* weight, double* model) noexcept nogil
    cdef int look(self) except -1 nogil
    cdef void _clear_null(self) noexcept nogil
    cdef void _follow(self, double* z) noexcept nogil
    cdef double _row_leverage(self, const double* x, double y, double weight) except? -1 nogil
    cdef double _leverage(self, const double* x) noexcept nogil
    cdef bint _saturated(self, Py_ssize_t k) noexcept nogil
    cdef void _copy(self, Py_ssize_t k) noexcept nogil
    cdef void _spread_out(self, Py_ssize_t k) noexcept nogil


@cython.final
cdef class PathExperts(Experts):
    cdef readonly Path path
    cdef Py_ssize_t view, first

    cdef double _average(self, const double* etas, const double* weight) noexcept nogil
    cdef Py_ssize_t _leader(self, const double* weight) noexcept nogil
