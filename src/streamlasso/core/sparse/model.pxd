# cython: language_level=3
cimport cython
from libc.stdint cimport int64_t, uint64_t

from streamlasso.core.base.lock cimport Gate
from streamlasso.core.sparse.blend cimport Units
from streamlasso.core.sparse.candidates cimport Candidates
from streamlasso.core.sparse.ensemble cimport Ensemble
from streamlasso.core.sparse.entries cimport Entries
from streamlasso.core.sparse.table cimport Entry, Table
from streamlasso.families.base cimport Family


@cython.final
cdef class Wide:
    #: An estimator's models are behind that of its first one.
    cdef public Gate gate
    cdef readonly dict settings
    cdef public dict names
    cdef readonly Entries row
    cdef readonly Family family
    cdef readonly Table table
    cdef Candidates candidates
    cdef Units units
    cdef Ensemble experts
    cdef Py_ssize_t n_experts
    cdef readonly int64_t n_seen
    cdef double squares
    #: Of the row that was looked at: what it adds to `squares`, and the experts' prediction, if that still holds.
    cdef double more, m
    cdef bint looked

    cdef int _learn_columns(self, const int64_t[::1] starts, const int64_t[::1] columns, const double[::1] values,
                            const double[::1] y, weight, double[::1] etas) except -1
    cdef int _enter_columns(self, Py_ssize_t i, const int64_t[::1] starts, const int64_t[::1] columns,
                            const double[::1] values) except -1
    cdef int _enter_names(self, x, bint remember) except -1
    cdef double _learn_names(self, x, double y, double weight) except? -1
    cdef int _forget_names(self) except -1
    cdef int _keep_names(self) except -1
    cdef double _predict(self) except? -1
    cdef double _learn(self, double y, double weight) except? -1
    cdef int _look(self) except -1
    cdef int _bring_in(self) except -1
    cdef int _gather_evidence(self, double g) except -1
    cdef double _rate(self)
