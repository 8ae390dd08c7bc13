from cpython.object cimport PyObject

from streamlasso.core.base.tape cimport Tape


cdef extern from "Python.h":
    #: Bytes that nobody else has seen yet may change, and be made shorter or longer.
    PyObject* new_bytes "PyBytes_FromStringAndSize"(const char* data, Py_ssize_t size) except NULL
    char* in_bytes "PyBytes_AS_STRING"(PyObject* data) noexcept nogil
    int resize_bytes "_PyBytes_Resize"(PyObject** data, Py_ssize_t size) except -1


cdef class Stateful:
    cdef void travel(self, Tape tape) noexcept nogil
    cdef Py_ssize_t n_bytes(self, Tape tape) noexcept nogil
    cdef void write(self, Tape tape, char* start, Py_ssize_t size) noexcept nogil
    cdef void read(self, Tape tape, char* start, Py_ssize_t size) noexcept nogil
    cdef bint fits(self, Tape tape, char* start, Py_ssize_t size) noexcept nogil
    cdef int _refuse_unfit(self, Tape tape, bytes data) except -1
