cimport cython

from streamlasso.core.pointers cimport Doubles, Pointers
from streamlasso.core.shares cimport Shares
from streamlasso.core.state cimport Stateful


@cython.final
cdef class Average(Stateful):
    cdef readonly Py_ssize_t p
    cdef Shares shares
    cdef Pointers each
    cdef Doubles room
    # (b0, b), and whether no expert with a weight is left out of it.
    cdef double* model
    cdef bint is_whole
    cdef double* weights
    cdef signed char* used

    cdef int outline(self) except -1 nogil
    cdef int whole(self) except -1 nogil
    cdef int _add_models(self, const double* weights) except -1 nogil
    cdef Py_ssize_t n_active(self) except -1 nogil
    cdef int _write_model_of(self, Py_ssize_t m, Py_ssize_t k, double* only, double* model) except -1 nogil
