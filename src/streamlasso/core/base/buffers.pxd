cimport cython


cdef extern from "Python.h":
    void** items_of "(void**) PySequence_Fast_ITEMS"(object objects) noexcept


cdef class Pointers:
    cdef readonly tuple objects
    cdef void** at
    cdef Py_ssize_t n


@cython.final
cdef class Doubles:
    cdef double* at


cdef Doubles in_doubles(values)
cdef object copied(double* at, Py_ssize_t n)
cdef int fill(double* at, Py_ssize_t n, values) except -1
