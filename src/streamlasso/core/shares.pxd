cimport cython

@cython.final
cdef class Shares:
    cdef Py_ssize_t M, K, n_alive
    cdef double[::1] alpha, pi, total, likelihood, common
    cdef double[:, ::1] w
    cdef signed char[::1] alive

    cdef void start(self) noexcept nogil
    cdef void enter(self, Py_ssize_t m) noexcept nogil
    cdef void leave(self, Py_ssize_t m) noexcept nogil
    cdef void judge(self, const double* loss) noexcept nogil
    cdef double belief(self, Py_ssize_t m) noexcept nogil
    cdef Py_ssize_t leader(self, Py_ssize_t m) noexcept nogil
    cdef void _level(self, Py_ssize_t h) noexcept nogil
    cdef void _share_out(self, Py_ssize_t h) noexcept nogil
    cdef void _add_up(self) noexcept nogil
