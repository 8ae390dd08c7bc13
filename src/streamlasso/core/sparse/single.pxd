# cython: language_level=3
cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from streamlasso.core.sparse.blend cimport Units
from streamlasso.core.sparse.rows cimport SparseRows
from streamlasso.core.sparse.table cimport Entry, Table
from streamlasso.families.base cimport Family
from streamlasso.tuners.base cimport Tuner


#: Of one feature: z and n, and how both change with lam.
cdef struct Evidence:
    double z, n, dz, dn
    float seen  # sqrt(n), where the table looks for it
    float unused


#: A coefficient over -a, signed, and how it changes with lam; r = sqrt(n), likewise.
cdef struct Share:
    double q, dq, r, dr


@cython.final
cdef class Single(SparseRows):
    cdef readonly dict settings
    cdef readonly Family family
    cdef readonly Table table
    cdef readonly Tuner tuner
    cdef readonly double lam, lam_max
    cdef readonly int64_t n_seen
    cdef Units units
    cdef Evidence bias
    cdef double alpha, beta, squares
    cdef double[::1] tuner_state
    cdef unsigned char[::1] room
    cdef Entry* entries

    cdef Share _share(self, Evidence* one, double lam, bint penalised) noexcept nogil
    cdef void _learn(self, Evidence* one, double x, double g, double dg, bint penalised) noexcept nogil
    cdef int _move(self, double y, double eta, double dm, double weight) except -1
    cdef dict _state(self)


cdef void _shrink(Evidence* one, double ratio) noexcept nogil
