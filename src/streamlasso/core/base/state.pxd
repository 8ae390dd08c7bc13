from streamlasso.core.base.tape cimport Tape


cdef class Stateful:
    cdef void travel(self, Tape tape) noexcept nogil
    cdef Py_ssize_t n_bytes(self, Tape tape) noexcept nogil
    cdef void write(self, Tape tape, char* start, Py_ssize_t size) noexcept nogil
    cdef void read(self, Tape tape, char* start, Py_ssize_t size) noexcept nogil
    cdef bint fits(self, Tape tape, char* start, Py_ssize_t size) noexcept nogil
    cdef int _refuse_unfit(self, Tape tape, bytes data) except -1
