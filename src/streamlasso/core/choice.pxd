cimport cython

from streamlasso.core.pointers cimport Doubles, Pointers
from streamlasso.core.shares cimport Shares
from streamlasso.core.state cimport Stateful


@cython.final
cdef class Choice(Stateful):
    cdef Shares shares
    cdef Pointers each
    cdef Py_ssize_t p
    cdef Doubles room
    # Of each group: whether its experts are sparse, whether the first has no features; whether there is such a group.
    cdef signed char* sparse
    cdef signed char* begins_empty
    cdef bint has_empty
    # Of each feature: whether it matters, and whether an expert uses it; the weights of one expert alone.
    cdef signed char* matters
    cdef signed char* used
    cdef double* only
    cdef Py_ssize_t n_matter
    cdef public Py_ssize_t held
    # The group that a tape had: what is to be read is looked at first.
    cdef Py_ssize_t travelled

    cdef int update(self, const double* effect) except -1 nogil
    cdef bint _nothing_matters(self) noexcept nogil
    cdef double _weight_at(self, Py_ssize_t k) noexcept nogil
    cdef bint _is_empty(self, Py_ssize_t m, Py_ssize_t e) noexcept nogil
    cdef bint _is_sparse(self, Py_ssize_t e) noexcept nogil
    cdef bint _holds(self, bint nothing, double most) noexcept nogil
    cdef void _note(self, const double* effect) noexcept nogil
    cdef int _by_support(self, double most) except -1 nogil
    cdef double _agreement(self, Py_ssize_t m, Py_ssize_t e) except -1 nogil
    cdef void forget(self, Py_ssize_t m) noexcept nogil
    cdef Py_ssize_t group_of(self, Py_ssize_t e) noexcept nogil
