cdef class Pointers:
    cdef readonly list objects
    cdef void** at
    cdef Py_ssize_t n
