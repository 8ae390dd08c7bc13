cimport cython

from streamlasso.core.state cimport Stateful

#: What a rule weights the experts by: their losses; the same, sparse experts alone; their evidence; not at all.
cdef enum:
    BY_LOSS, SPARSE_ONLY, BY_EVIDENCE, N_CRITERIA, EMPTY = N_CRITERIA

#: Seven shares by loss, four of the sparse experts alone, three by evidence, and the empty model.
cdef enum:
    N_SHARES = 15


@cython.final
cdef class Shares(Stateful):
    cdef Py_ssize_t M, K, n
    cdef Py_ssize_t[::1] first, n_alive
    cdef readonly double[::1] pi
    cdef readonly double[:, ::1] w
    cdef readonly signed char[::1] alive
    cdef signed char[:, ::1] allowed
    cdef int[::1] criterion
    cdef double[::1] least
    cdef double[::1] alpha, total, likelihood, common

    cdef void start(self) noexcept nogil
    cdef void count(self) noexcept nogil
    cdef bint has(self, Py_ssize_t h, Py_ssize_t m) noexcept nogil
    cdef void enter(self, Py_ssize_t m) noexcept nogil
    cdef void leave(self, Py_ssize_t m) noexcept nogil
    cdef void update(self, const double[:, ::1] loss, const double* share_loss) noexcept nogil
    cdef void _likelihoods(self, const double* loss) noexcept nogil
    cdef double weight_of(self, Py_ssize_t m) noexcept nogil
    cdef Py_ssize_t _size(self, Py_ssize_t m) noexcept nogil
    cdef void _level(self, Py_ssize_t h) noexcept nogil
    cdef void _normalise(self, Py_ssize_t h) noexcept nogil
    cdef void _share_out(self, Py_ssize_t h) noexcept nogil
    cdef void _add_groups(self, const double* w, double part) noexcept nogil
    cdef void _add_up(self) noexcept nogil
