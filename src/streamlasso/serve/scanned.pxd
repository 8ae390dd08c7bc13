cdef class Scanner:
    cdef const unsigned char* text
    cdef Py_ssize_t at, end, n_names, room
    cdef object body, buffer
    cdef list names, keys
    cdef double[:, ::1] values
    cdef unsigned char[::1] fractions
    cdef bint whole

    cdef void blank(self) noexcept
    cdef bint take(self, unsigned char mark) noexcept
    cdef bint word(self, const unsigned char* wanted, Py_ssize_t n) noexcept
    cdef bint number(self, double* value) except -1
    cdef bint digits(self, unsigned long long* mantissa, Py_ssize_t* n) noexcept
    cdef bint first_row(self) except -1
    cdef bint row(self, Py_ssize_t i) except -1
    cdef Py_ssize_t rows(self) except -1
    cdef object numbers(self)
