# cython: language_level=3
cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from streamlasso.core.wide.blend cimport Blend, Units
from streamlasso.core.wide.entries cimport Entries
from streamlasso.core.wide.lanes cimport Lanes
from streamlasso.core.wide.nursery cimport Nursery
from streamlasso.core.wide.rows cimport SparseRows
from streamlasso.core.wide.table cimport Entry, Table
from streamlasso.families.base cimport Family


@cython.final
cdef class Wide(SparseRows):
    cdef readonly dict settings
    cdef public dict names
    cdef readonly Entries row
    cdef readonly Family family
    cdef readonly Table table
    cdef readonly Nursery nursery
    cdef Units units
    cdef Blend blend
    cdef Lanes lanes
    cdef readonly int64_t n_seen
    cdef double squares, said, more
    cdef bint told
    cdef double[::1] alpha, bias_alpha, implicit, m, length, bias_z, bias_n, bias_q
    cdef Py_ssize_t capacity, spare_capacity, n_known
    cdef float** states
    cdef float* x
    cdef float* fast
    cdef float* slow
    cdef float* noted
    cdef float* spare

    cdef int make_room(self, Py_ssize_t n) except -1
    cdef Py_ssize_t _enter_named(self, x, bint remember) except -1
    cdef int _keep_names(self, Py_ssize_t n) except -1
    cdef double _say_again(self, Py_ssize_t n)
    cdef double _take_found(self, Py_ssize_t n, double y, double weight) except? -1
    cdef double _bring_in(self, Py_ssize_t n) except? -1 nogil
    cdef double _look_at(self, Py_ssize_t n) noexcept nogil
    cdef float _place(self, float* state, float x, uint32_t age) noexcept nogil
    cdef double _say(self, double squares, bint keep) except? -1
    cdef int _learn(self, double y, double weight) except -1
    cdef int _nurse(self, Py_ssize_t n, double g) except -1
    cdef double _rate(self)
    cdef void _learn_bias(self, Py_ssize_t e, double g) noexcept nogil


cdef void* _resized(void* old, size_t size) except NULL
cdef void _shrink(float* state, float* out, Py_ssize_t n, float ratio) noexcept nogil
