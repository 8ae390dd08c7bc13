cimport cython

from streamlasso.core.base.tape cimport Tape
from streamlasso.core.lasso.moments cimport Moments
from streamlasso.core.linalg.cholesky cimport Factor


@cython.final
cdef class Scratch:
    cdef Py_ssize_t p
    # By feature; `where` is that of `locate`.
    cdef double* tau
    cdef double* tol
    cdef double* ridge
    cdef double* g
    cdef Py_ssize_t* where
    cdef signed char* resting
    # By member.
    cdef double* target
    cdef double* work
    cdef double* kept_b
    cdef double* kept_sign
    cdef double* slope_b
    cdef double* slope_mean
    cdef Py_ssize_t* slope_members
    cdef Py_ssize_t* kept_members
    cdef Py_ssize_t* candidates
    cdef Py_ssize_t kept, n_resting, n_candidates


cdef class Members(Factor):
    cdef Scratch scratch
    cdef Py_ssize_t* members
    cdef double* b
    cdef double* sign
    cdef double* g
    cdef public Py_ssize_t age
    # There is room for `held` members; the others are yes or no. Few bytes: a mixture has many of these.
    cdef int held
    cdef signed char has_ridge, has_free, keeps_g

    cdef bint hold(self, Py_ssize_t k) noexcept nogil
    cdef bint _list(self, Py_ssize_t room) noexcept nogil
    cdef void hold_or_end(self, Py_ssize_t k) noexcept nogil
    cdef void locate(self) noexcept nogil
    cdef void reset(self) noexcept nogil
    cdef void remember(self) noexcept nogil
    cdef void recall(self) noexcept nogil
    cdef void follow(self, Members other) noexcept nogil
    cdef double times(self, const double* x) noexcept nogil
    cdef void add_to(self, double* coef, double weight) noexcept nogil
    cdef Py_ssize_t mark(self, signed char* used) noexcept nogil
    cdef double spread(self, const double* x, const double* mean) noexcept nogil
    cdef void absorb(self, double* z, double sign) noexcept nogil
    cdef void abandon(self) noexcept nogil
    cdef void trim(self) noexcept nogil
    cdef void _join(self, Py_ssize_t j, double sign, double b) noexcept nogil
    cdef void leave(self, Py_ssize_t q) noexcept nogil
    cdef bint append(self, Moments m, Py_ssize_t j) noexcept nogil
    cdef bint refactor(self, Moments m) noexcept nogil
    cdef bint _factor_block(self, Moments m, Py_ssize_t k) noexcept nogil
