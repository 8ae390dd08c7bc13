cimport cython

#: What a tape does with the numbers that it is shown.
cdef enum Mode:
    MEASURE, WRITE, CHECK, READ

#: Which numbers are admissible.
cdef enum Kind:
    ANY, FINITE, WEIGHT, PENALTY, POSITIVE, SIGN


@cython.final
cdef class Tape:
    cdef Mode mode
    cdef char* start
    cdef Py_ssize_t at, size, wrong_at, n_rows, n_seen
    cdef const char* wrong
    cdef bint lends

    cdef void use(self, Mode mode, char* start, Py_ssize_t size) noexcept nogil
    cdef const double* doubles(self, double* own, Py_ssize_t n, Kind kind) noexcept nogil
    cdef double* lent(self, double* own, Py_ssize_t n, Kind kind) noexcept nogil
    cdef void triangle(self, double* rows, Py_ssize_t k, Py_ssize_t ld, Kind kind) noexcept nogil
    cdef double number(self, double* own, Kind kind) noexcept nogil
    cdef const Py_ssize_t* indices(self, Py_ssize_t* own, Py_ssize_t n, Py_ssize_t first, Py_ssize_t end) noexcept nogil
    cdef Py_ssize_t index(self, Py_ssize_t* own, Py_ssize_t end) noexcept nogil
    cdef Py_ssize_t count(self, Py_ssize_t* own) noexcept nogil
    cdef Py_ssize_t rows(self, Py_ssize_t* own, Py_ssize_t capacity) noexcept nogil
    cdef int small(self, int* own, int end) noexcept nogil
    cdef bint flag(self, bint* own) noexcept nogil
    cdef void require(self, bint holds, const char* otherwise) noexcept nogil
    cdef char* _next(self, Py_ssize_t n) noexcept nogil
    cdef void _admissible(self, const double* x, Py_ssize_t n, Kind kind) noexcept nogil
    cdef void _refuse(self, const char* why) noexcept nogil
