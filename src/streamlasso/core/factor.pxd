cdef class Factor:
    cdef Py_ssize_t k
    cdef double[:, ::1] R
    cdef double[::1] work, inverse

    cdef void clear(self) noexcept nogil
    cdef void scale(self, double root) noexcept nogil
    cdef double append(self, double* column, double diagonal, double tolerance) noexcept nogil
    cdef void pop(self) noexcept nogil
    cdef void drop(self, Py_ssize_t q) noexcept nogil
    cdef void update(self, double* x) noexcept nogil
    cdef bint downdate(self, double* x) noexcept nogil
    cdef void solve(self, double* b) noexcept nogil
    cdef void _solve_transposed(self, double* b) noexcept nogil
    cdef void _update_from(self, Py_ssize_t start, double* x) noexcept nogil
