from streamlasso.core.base.state cimport Stateful
from streamlasso.core.base.tape cimport Tape


cdef class Factor(Stateful):
    cdef readonly Py_ssize_t p
    cdef Py_ssize_t k
    cdef int room
    #: Is the factor that of another block by now?
    cdef public bint broken
    cdef double* d

    cdef bint _make_room(self, Py_ssize_t k) noexcept nogil
    cdef bint _change_room(self, Py_ssize_t room) noexcept nogil
    cdef void _travel_factor(self, Tape tape) noexcept nogil
    cdef void give_back(self) noexcept nogil
    cdef void scale(self, double factor) noexcept nogil
    cdef double _append_column(self, double* column, double diagonal, double tolerance) noexcept nogil
    cdef void pop(self) noexcept nogil
    cdef void _drop_column(self, Py_ssize_t q, double* work) noexcept nogil
    cdef void solve_block(self, double* b) noexcept nogil
    cdef void _solve_lower(self, double* b) noexcept nogil
    cdef bint update_from(self, Py_ssize_t start, double* x, double a) noexcept nogil

    cdef inline double* row(self, Py_ssize_t i) noexcept nogil:
        """The i-th row of U, which is kept behind D and its inverse."""
        return self.d + (2 + i) * self.room
