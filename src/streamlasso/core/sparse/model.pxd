# cython: language_level=3
cimport cython
from libc.stdint cimport int64_t, uint64_t

from streamlasso.core.sparse.blend cimport Units
from streamlasso.core.sparse.ensemble cimport Ensemble
from streamlasso.core.sparse.entries cimport Entries
from streamlasso.core.sparse.nursery cimport Nursery
from streamlasso.core.sparse.rows cimport SparseRows
from streamlasso.core.sparse.table cimport Entry, Table
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
    cdef Ensemble experts
    cdef Py_ssize_t n_experts
    cdef readonly int64_t n_seen
    cdef double squares
    #: Of the row that was looked at: what it adds to `squares`, and what the experts said, if that still holds.
    cdef double more, said
    cdef bint told
    cdef float* spare
    cdef Py_ssize_t spare_capacity

    cdef Py_ssize_t _enter_free(self, x) except -1
    cdef double _learn_entered(self, Py_ssize_t n, double y, double weight) except? -1
    cdef Py_ssize_t _enter_named(self, x, bint remember) except -1
    cdef int _forget_names(self) except -1
    cdef int _keep_names(self, Py_ssize_t n) except -1
    cdef dict _state(self)
    cdef int _look(self, Py_ssize_t n) except -1
    cdef void _put_known(self, Py_ssize_t n) noexcept nogil
    cdef int _bring_in(self, Py_ssize_t n) except -1 nogil
    cdef int _nurse(self, Py_ssize_t n, double g) except -1
    cdef double _rate(self)


cdef void shrink(float* state, float* out, Py_ssize_t n, float ratio) noexcept nogil
