cimport cython

from streamlasso.core.active_set cimport ActiveSet
from streamlasso.core.statistics cimport Moments, Ring, Scaler
from streamlasso.core.objective cimport Objective


@cython.final
cdef class Newton:
    cdef Objective objective
    cdef Py_ssize_t p
    cdef Ring ring
    cdef Moments moments
    cdef Scaler scaler
    cdef ActiveSet active
    cdef double intercept, pull, activity, magnitude
    cdef double[::1] tau, tol, g, folded_g, old, step, eta, eta_step
    cdef double[:, ::1] z
    cdef Py_ssize_t[::1] working
    cdef Py_ssize_t n_working

    cdef int solve_or_restart(self, Moments local) except -1 nogil
    cdef int solve(self, Moments local) except -1 nogil
    cdef void tolerate(self, double share, double most) noexcept nogil
    cdef int look(self) except -1 nogil
    cdef int expand(self, Moments local) except -1 nogil
    cdef int _centre(self, Moments local) except -1 nogil
    cdef void _gram(self, Moments local) noexcept nogil
    cdef void _linear_term(self, Moments local) noexcept nogil
    cdef double _residual(self) noexcept nogil
    cdef bint _optimal(self) noexcept nogil
    cdef void _work_on(self, bint with_violators) noexcept nogil
    cdef int _search(self, Moments local) except -1 nogil
    cdef double _change(self, double t, double linear, double quadratic) except? -1 nogil
    cdef void _move(self, double t, double intercept_step) noexcept nogil


@cython.final
cdef class Likelihood(Objective):
    cdef Newton main, null
    cdef Moments local
    cdef double signal

    cdef bint _one_response(self) noexcept nogil
    cdef int _fold_oldest(self) except -1 nogil
    cdef int _constant_response(self, double omega) except -1 nogil
