# cython: language_level=3
cimport cython
from libc.stdint cimport uint32_t, uint64_t


cdef struct Candidate:
    uint32_t tag
    float z
    float n


@cython.final
cdef class Candidates:
    cdef readonly Py_ssize_t size
    cdef Py_ssize_t used
    cdef double lam
    cdef Candidate* all

    cdef bint admit(self, uint64_t key, float g, float* z, float* n) except -1
    cdef int _grow(self) except -1
