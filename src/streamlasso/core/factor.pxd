cimport cython

from streamlasso.core.tape cimport Tape

@cython.final
cdef class Factor:
    cdef Py_ssize_t k
    cdef Py_ssize_t n, room
    cdef double* U
    cdef double* d
    cdef double* inverse
    # Room for n numbers while a member is taken out, which the owner gives.
    cdef double* work

    cdef double* row(self, Py_ssize_t i) noexcept nogil
    cdef bint _make_room(self, Py_ssize_t k) noexcept nogil
    cdef void travel(self, Tape tape) noexcept nogil
    cdef void clear(self) noexcept nogil
    cdef void give_back(self) noexcept nogil
    cdef void reserve(self, Py_ssize_t k) noexcept nogil
    cdef void scale(self, double factor) noexcept nogil
    cdef double append(self, double* column, double diagonal, double tolerance) noexcept nogil
    cdef void pop(self) noexcept nogil
    cdef void drop(self, Py_ssize_t q) noexcept nogil
    cdef void update(self, double* x) noexcept nogil
    cdef bint downdate(self, double* x) noexcept nogil
    cdef void solve(self, double* b) noexcept nogil
    cdef void _solve_lower(self, double* b) noexcept nogil
    cdef bint _update_from(self, Py_ssize_t start, double* x, double a) noexcept nogil
