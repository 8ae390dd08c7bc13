cimport cython

from streamlasso.core.shares cimport Shares
from streamlasso.core.state cimport Stateful


@cython.final
cdef class Choice(Stateful):
    cdef Shares shares
    cdef bytes sparsity
    cdef const signed char* sparse
    cdef public Py_ssize_t held
    # The group that a tape had: what is to be read is looked at first.
    cdef Py_ssize_t travelled

    cdef void update(self) noexcept nogil
    cdef void forget(self, Py_ssize_t m) noexcept nogil
    cdef Py_ssize_t group_of(self, Py_ssize_t e) noexcept nogil
    cdef bint _holds(self, Py_ssize_t m, Py_ssize_t candidate, double most, double all_sparse) noexcept nogil
