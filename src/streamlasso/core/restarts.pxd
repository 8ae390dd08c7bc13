cimport cython

from streamlasso.core.pointers cimport Doubles
from streamlasso.core.shares cimport Shares
from streamlasso.core.state cimport Stateful
from streamlasso.core.tape cimport Tape


#: Of a kind that restarts: its first group, the one after its last, and the rows between restarts.
cdef struct Pool:
    Py_ssize_t first
    Py_ssize_t end
    Py_ssize_t every


@cython.final
cdef class Restarts(Stateful):
    cdef readonly Py_ssize_t M
    cdef Py_ssize_t n_permanent, n_pools
    cdef Shares shares
    cdef Doubles room
    # The rows seen when each group began, -1 where it is not there.
    cdef Py_ssize_t* began
    cdef Pool* pools

    cdef Py_ssize_t due(self, Pool* pool, Py_ssize_t n_seen) noexcept nogil
    cdef const Py_ssize_t* travelled(self, Tape tape) noexcept nogil
