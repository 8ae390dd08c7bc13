cimport cython

from streamlasso.core.experts.base cimport Batch
from streamlasso.core.pointers cimport Doubles, Pointers
from streamlasso.core.shares cimport Shares


@cython.final
cdef class Division:
    cdef Pointers each
    cdef Shares shares
    cdef bint divides
    cdef Doubles room
    # Of two threads: the groups in the order in which they are taken, from both ends, and how many are; the row.
    cdef Py_ssize_t* order
    cdef long taken
    cdef Batch* batch

    cdef int learn(self, Batch* batch) except -1 nogil
    cdef int _learn_group(self, Py_ssize_t m, Batch* batch) except -1 nogil
    cdef int _learn_share(self, bint second) except -1 nogil
