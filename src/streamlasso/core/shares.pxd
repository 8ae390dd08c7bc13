cimport cython

from streamlasso.core.pointers cimport Doubles
from streamlasso.core.state cimport Stateful

#: How many shares run side by side.
cdef enum:
    N_SHARES = 8


@cython.final
cdef class Shares(Stateful):
    cdef readonly Py_ssize_t n
    cdef Py_ssize_t M, K, n_alive
    cdef Doubles room
    cdef Py_ssize_t* first
    cdef double* pi
    # Of nothing to learn: the odds before any row, and the evidence of the rows.
    cdef public double odds, evidence
    # By expert and by penalty, N_SHARES numbers each.
    cdef double* lanes
    cdef double* common
    cdef double* half
    cdef double* hazard
    cdef double* total
    cdef double* likelihood
    cdef signed char* alive

    cdef void start(self) noexcept nogil
    cdef void doubt(self, double gain, double information) noexcept nogil
    cdef void enter(self, Py_ssize_t m, Py_ssize_t rows) noexcept nogil
    cdef void leave(self, Py_ssize_t m) noexcept nogil
    cdef void update(self, const double* loss, const double* share_loss) noexcept nogil
    cdef void averages(self, const double* pulls, double* out) noexcept nogil
    cdef double weight_of(self, Py_ssize_t m) noexcept nogil
    cdef Py_ssize_t _size(self, Py_ssize_t m) noexcept nogil
    cdef void _level(self, Py_ssize_t h) noexcept nogil
    cdef void _reweigh(self, double* kept) noexcept nogil
    cdef void _add_to_one(self, Py_ssize_t h) noexcept nogil
    cdef void _share_out(self) noexcept nogil
    cdef void _pool(self, const double* kept) noexcept nogil
    cdef void _add_up(self) noexcept nogil
